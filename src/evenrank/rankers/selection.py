"""Choosing among rankers with scikit-learn: folds that keep a query whole, and scorers that know queries and groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.metadata_routing import UNUSED, get_routing_for_object

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.measures import MeasureLike, ask, measure
from evenrank.rankers.base import seed_of

# Of a fold over the limit. Folds are averaged: no other folds' values, and no sum of gaps over some hundred folds, can
# make up for one more; and a gap that is larger by a thousandth costs more than those values can give.
OVER, PER_GAP = 1e9, 1e6


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


class RankingScorer(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn scorer of a measure; make one with `ranking_scorer`.

    Parameters
    ----------
    name, max_violation, relevance_threshold
        See `ranking_scorer`.
    """

    __metadata_request__score = {"estimator": UNUSED, "qid": True, "sensitive_features": True}  # noqa: RUF012 - as above

    def __init__(
        self,
        name: MeasureLike,
        max_violation: tuple[MeasureLike, float] | None = None,
        relevance_threshold: float = 1.0,
    ) -> None:
        self.name = name
        self.max_violation = max_violation
        self.relevance_threshold = relevance_threshold

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        """Score a trained ranker, as scikit-learn calls a scorer; see `score`."""
        return self.score(estimator, X, y, **metadata)

    def score(self, estimator: Any, X: Any, y: Any, *, qid: Any = None, sensitive_features: Any = None) -> float:
        """Score a trained ranker.

        Parameters
        ----------
        estimator : ranker
            The ranker; one that sees the group at serving is given ``sensitive_features`` to predict.
        X, y : array-like
            Features, (n, d), and relevance, (n,).
        qid, sensitive_features : array-like, optional
            The query and the group label of each row, (n,).

        Returns
        -------
        float
            Higher is better.
        """
        seen = {"sensitive_features": sensitive_features} if _sees_group(estimator) else {}
        scores = estimator.predict(X, **seen)
        rows = RankingData.from_arrays(
            np.empty((len(scores), 0)),
            y,
            sensitive_features,
            np.zeros(len(scores), np.int64) if qid is None else qid,
            relevance_threshold=self.relevance_threshold,
        )
        name, asked = ask(self.name)
        value = float(measure(scores, rows, [self.name])[name])
        value = value if asked.measure.best == "high" else -value
        if self.max_violation is None:
            return value
        gap, limit = self.max_violation
        excess = _gap(scores, rows, gap, instead=name, labelled=sensitive_features is not None) - limit
        return -OVER - PER_GAP * excess if excess > 0 else value


def _gap(scores: Any, rows: RankingData, gap: MeasureLike, *, instead: str, labelled: bool) -> float:
    """The gap; NaN, with a warning, on labelled rows that do not tell it, as those of a fold may not."""
    name = ask(gap)[0]
    lacking = f"their rows are all of group {rows.group_names[0]!r}" if rows.n_groups else "no group is known"
    try:
        value = float(measure(scores, rows, [gap])[name])
        lacking = "not every group has the items that it compares"
    except DataError:
        if not labelled or rows.n_groups > 1:
            raise
        value = float("nan")
    if np.isnan(value):
        warnings.warn(
            f"these {rows.n_queries} queries do not tell {name} ({lacking}) and are scored by {instead} alone. Use "
            "fewer folds, or a cv that spreads the groups.",
            DataWarning,
            stacklevel=3,
        )
    return value


def _sees_group(estimator: Any) -> bool:
    """Whether a ranker needs the group to predict, or a pipeline asks for it by metadata routing."""
    if getattr(estimator, "group_aware", False) or getattr(estimator, "needs_groups", False):
        return True
    routing = get_routing_for_object(estimator)
    return "sensitive_features" in routing.consumes("predict", {"sensitive_features"})


def ranking_scorer(
    name: MeasureLike, *, max_violation: tuple[MeasureLike, float] | None = None, relevance_threshold: float = 1.0
) -> RankingScorer:
    """Make a scikit-learn scorer of a measure, on its own or subject to a limit on another.

    It gets ``qid`` and ``sensitive_features`` by metadata routing, which must be on:
    ``sklearn.set_config(enable_metadata_routing=True)``. A ranker with ``group_aware=True`` is given the groups to
    predict; a pipeline is if its last step asks for them, ``ranker.set_predict_request(sensitive_features=True)``.

    Parameters
    ----------
    name : str, Notion or callable
        A measure such as "ndcg@5" or "eop@5", or one of your own; those of which lower is better are negated.
    max_violation : tuple of measure and float, optional
        A gap and its limit, as ("dp@5", 0.05) or ((notion, 5), 0.05). Rows on which the gap is above the limit score
        −10⁹ − 10⁶ · (gap − limit), all others the measure. So a search over any folds, which it averages, prefers what
        keeps to the limit in every fold to all else; then what is above it in fewer folds; then the smaller sum of
        excesses (gaps from 0 to 1, up to 1,000 folds). Folds that do not tell the gap, as they lack a group, score
        the measure alone, with a `DataWarning`.
    relevance_threshold : float
        Relevance at or above it counts as relevant.

    Returns
    -------
    RankingScorer
        The scorer.
    """
    wanted = [name]
    if max_violation is not None:
        gap, limit = _gap_and_limit(max_violation)
        max_violation = (gap, limit)
        wanted.append(gap)
    for called, asked in map(ask, wanted):
        if "items" in asked.measure.needs:
            raise ConfigError(f"a scorer is given no item ids, which {called!r} needs; use er.measure for it.")
    if not sklearn.get_config()["enable_metadata_routing"]:
        raise ConfigError(
            "ranking_scorer needs sklearn.set_config(enable_metadata_routing=True), to be given the queries."
        )
    return RankingScorer(name, max_violation, relevance_threshold)


def _gap_and_limit(given: Any) -> tuple[MeasureLike, float]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ConfigError(f"max_violation must be a gap and its limit, as ('dp@5', 0.05); got {given!r}.")
    gap, limit = given
    name, asked = ask(gap)
    if asked.measure.best == "high":
        raise ConfigError(
            f"max_violation must name a gap, as 'dp@5', of which lower is better (of your own, er.Measure.of(function, "
            f"best='low')); got {name!r}."
        )
    check_number(limit, "the limit of max_violation", least=0)
    return gap, float(limit)
