"""`check`: an export against the model itself, on the user's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.export.exported import Exported
from evenrank.extras import require
from evenrank.rankers.matching import match_features
from evenrank.ranking import strict_places


@dataclass(frozen=True)
class Checked:
    """How an engine's scores and lists differ from the model's own.

    Attributes
    ----------
    rows, queries : int
        What was compared.
    largest_difference : float
        Between the engine's score and `predict`, over all rows; NaN if one of them is not a number where the other is.
    largest_score : float
        The largest absolute value of `predict`.
    lists : dict
        k → how many lists have other items, or the same in another order, in their top k.
    largest_swap : float
        The largest difference, in `predict`, of two items of which the engine puts the lower one above the other within
        a list; 0 if there are none. Items that are swapped because of rounding are about as close as the largest
        difference.
    """

    rows: int
    queries: int
    largest_difference: float
    largest_score: float
    lists: dict[int, int]
    largest_swap: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self)


def check(exported: Exported, model: Any, data: RankingData, ks: Sequence[int] = (10,), **options: Any) -> Checked:
    """Compare the scores and top-k lists of an export with those of the model.

    Parameters
    ----------
    exported : Exported
        The export.
    model : ranker or booster
        What it was made of.
    data : RankingData
        The rows.
    ks : sequence of int
        The lengths of the lists.
    **options : Any
        Further arguments of `Exported.score`.

    Returns
    -------
    Checked
        The differences.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    >>> result = er.export.check(er.export.to_solr(ranker), ranker, data)
    >>> result.lists
    {10: 0}
    """
    theirs = data.to_stored(exported.score(data, **options)).astype(np.float64) - exported.shift
    ours = data.to_stored(np.asarray(predicted(model, data), np.float64))
    same = (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(theirs - ours))
    places = [strict_places(np.where(np.isnan(scores), -np.inf, scores), data) for scores in (ours, theirs)]
    lists = {}
    for k in sorted({check_k(k) for k in ks}):
        moved = (places[0] != places[1]) & (np.minimum(*places) < k)
        lists[k] = int((np.add.reduceat(moved, data.query_ptr[:-1]) > 0).sum())
    return Checked(
        data.n_rows,
        data.n_queries,
        float(difference.max()) if len(difference) else 0.0,
        float(np.abs(ours).max()) if len(ours) else 0.0,
        lists,
        _largest_swap(ours, places[1], data),
    )


def predicted(model: Any, data: RankingData) -> NDArray[Any]:
    """Score rows with the model itself, ours or a library's, in the caller's order."""
    if hasattr(model, "feature_names_"):
        return np.asarray(model.predict(data))
    if hasattr(model, "get_booster"):
        names = tuple(model.get_booster().feature_names or ())
    else:
        names = tuple(getattr(model, "feature_name_", None) or _booster_names(model))
    features = data.features[:, match_features(data, names)] if names else data.features
    if type(model).__module__.startswith("xgboost") and not hasattr(model, "get_booster"):
        matrix = require("xgboost").DMatrix(features, feature_names=names or None)
        best = model.attributes().get("best_iteration")
        rounds = (0, 0 if best is None else int(best) + 1)
        return np.asarray(data.to_caller(model.predict(matrix, iteration_range=rounds)))
    return np.asarray(data.to_caller(model.predict(np.asarray(features))))


def _booster_names(model: Any) -> list[str]:
    if hasattr(model, "feature_name"):
        return list(model.feature_name())
    return list(getattr(model, "feature_names", None) or [])


def _largest_swap(scores: NDArray[np.float64], place: NDArray[np.int64], data: RankingData) -> float:
    """The largest rise of the model's score down a list of the engine's."""
    ordered = np.empty_like(scores)
    ordered[np.repeat(data.query_ptr[:-1], data.lengths) + place] = scores
    finite = np.where(np.isfinite(ordered), ordered, 0.0)
    largest = 0.0
    rises = np.flatnonzero((np.diff(finite) > 0) & (np.diff(data.query_of_row) == 0))
    for query in np.unique(data.query_of_row[rises]).tolist():
        part = finite[data.query_ptr[query] : data.query_ptr[query + 1]]
        largest = max(largest, float((part - np.minimum.accumulate(part)).max()))
    return largest
