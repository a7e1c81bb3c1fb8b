"""Choosing among rankers with scikit-learn: folds that keep a query whole, and scorers that know queries and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn
import sklearn.metrics
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures import measure, parse_measure
from evenrank.rankers.base import seed_of


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds by query: all rows of a query are in one fold, and the folds differ by one query at most.

    Queries are given as ``qid`` (with metadata routing) or as scikit-learn's ``groups``.

    Parameters
    ----------
    n_splits : int
        The number of folds.
    random_state : int, RandomState or None
        The seed.

    Examples
    --------
    >>> import numpy as np
    >>> folds = QueryKFold(2, random_state=0).split(np.zeros((6, 1)), qid=[1, 1, 2, 2, 3, 3])
    >>> [test.tolist() for _, test in folds]
    [[2, 3, 4, 5], [0, 1]]
    """

    __metadata_request__split = {"groups": False, "qid": True}  # noqa: RUF012 - scikit-learn's own way of declaring it

    def __init__(self, n_splits: int = 5, *, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None) -> int:
        """Give the number of folds, as scikit-learn asks; the arguments change nothing."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the row numbers of the training and test part of each fold.

        Parameters
        ----------
        X, y : Any
            Taken as in scikit-learn; they change nothing.
        groups, qid : array-like, optional
            The query of each row, (n,); one of the two.

        Yields
        ------
        tuple of ndarray
            Training and test rows.
        """
        query = qid if qid is not None else groups
        if query is None:
            raise ConfigError("QueryKFold needs the query of each row: pass qid (or groups).")
        n = len(np.asarray(query))
        data = RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), None, query)
        fold = data.to_caller(data.folds(self.n_splits, seed_of(self.random_state))[data.query_of_row])
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def ranking_scorer(name: str, *, relevance_threshold: float = 1.0) -> Any:
    """Make a scikit-learn scorer of a measure.

    It gets ``qid`` and ``sensitive_features`` by metadata routing, which must be on:
    ``sklearn.set_config(enable_metadata_routing=True)``.

    Parameters
    ----------
    name : str
        A measure such as "ndcg@5" or "eop@5"; those of which lower is better are negated.
    relevance_threshold : float
        Relevance at or above it counts as relevant.

    Returns
    -------
    Callable
        The scorer.
    """
    item, _ = parse_measure(name)
    if not sklearn.get_config()["enable_metadata_routing"]:
        raise ConfigError(
            "ranking_scorer needs sklearn.set_config(enable_metadata_routing=True), to be given the queries."
        )

    def value(y_true: Any, y_pred: Any, qid: Any = None, sensitive_features: Any = None) -> float:
        n = len(y_true)
        query = np.zeros(n, np.int64) if qid is None else qid
        data = RankingData.from_arrays(
            np.zeros((n, 0)), y_true, sensitive_features, query, relevance_threshold=relevance_threshold
        )
        return float(measure(y_pred, data, [name])[name])

    scorer = sklearn.metrics.make_scorer(value, greater_is_better=item.best == "high")
    return scorer.set_score_request(qid=True, sensitive_features=True)
