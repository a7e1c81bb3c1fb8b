"""What a group-aware ranker adds to its model's scores: a part of the exact offsets, learned on other queries.

Trees and networks memorise the queries they learn from, so offsets that close the gap there carry a group too far, or
not far enough, on any others. So the offsets are those of scores that models of half the queries give the other half.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.rows import in_order
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.rankers.spec import FairnessSpec
from evenrank.rerankers.offset import GroupOffset

FOLDS = 2
# Of ``max_violation``: strengths cost no training here, so more of them are tried, up to all of the offsets but a
# thousandth.
STRENGTHS = tuple(10 ** (power / 2) for power in range(-4, 7))
REFINED = 5
# Beyond all of them: the offsets of the training rows' own scores, for a gap that is asked for on those rows.
OF_THESE_ROWS = 1e4


def has_exact_offsets(spec: FairnessSpec, data: RankingData) -> bool:
    """Whether the gap that is evened out is the one that `GroupOffset` closes: that of the top k over all queries."""
    return spec.target == "topk" and spec.scope == "amortized" and data.membership is None


def part_of_offsets(alpha: float) -> float:
    """Give the part of the offsets that a strength stands for: half of them at 1, where both sides pull alike.

    Examples
    --------
    >>> part_of_offsets(0.0), part_of_offsets(1.0), part_of_offsets(9.0)
    (0.0, 0.5, 0.9)
    """
    return alpha / (1 + alpha)


def exact_offsets(scores: NDArray[Any], data: RankingData, spec: FairnessSpec) -> NDArray[np.float64]:
    """Give the number of each group that makes the gap of the top k smallest.

    Parameters
    ----------
    scores : ndarray
        (n,), in stored order.
    data : RankingData
        The rows.
    spec : FairnessSpec
        The notion and k.

    Returns
    -------
    ndarray
        (groups,).
    """
    # Chance is left in: the strength says how much is corrected.
    offset = GroupOffset(spec.notion, spec.k, shrink=False).fit(data.to_caller(np.asarray(scores, np.float64)), data)
    return np.array([offset.offsets_.get(name, 0.0) for name in data.group_names])


def offsets_by_strength(
    others: NDArray[Any], trained: NDArray[Any], data: RankingData, spec: FairnessSpec
) -> Callable[[float], NDArray[np.float64]]:
    """Learn the exact offsets, and give what makes of a strength the numbers that are added.

    Parameters
    ----------
    others, trained : ndarray
        Each row's score by a model of other queries, and by the ranker itself, (n,), in stored order.
    data : RankingData
        The training rows.
    spec : FairnessSpec
        The notion and k.

    Returns
    -------
    Callable
        Strength → the number of each group, (groups,).
    """
    offsets = exact_offsets(others, data, spec)

    def at(alpha: float) -> NDArray[np.float64]:
        whole = exact_offsets(trained, data, spec) if alpha == OF_THESE_ROWS else offsets
        return part_of_offsets(alpha) * whole if alpha < OF_THESE_ROWS else whole

    return at


def scores_by_others(
    X: Any,
    data: RankingData,
    train: Callable[[Any, RankingData, NDArray[np.int64]], Callable[[Any], NDArray[Any]]],
) -> NDArray[np.float64]:
    """Give each row's score by a model that was trained on other queries.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The features, (n, d), in stored order.
    data : RankingData
        The rows, of two queries or more.
    train : Callable
        Trains on features, rows and their numbers, and gives what scores features.

    Returns
    -------
    ndarray
        (n,), in stored order.
    """
    scores, fold = np.empty(data.n_rows), data.folds(FOLDS, 0)
    of_row = fold[data.query_of_row]
    for number in range(FOLDS):
        others, rest = np.flatnonzero(of_row != number), np.flatnonzero(of_row == number)
        scores[rest] = train(in_order(X, others), data.take(fold != number), others)(in_order(X, rest))
    return scores


def evened(scores: NDArray[Any], data: RankingData, spec: FairnessSpec, part: float) -> NDArray[Any]:
    """Give the scores of an evaluation set with offsets of its own: what trees are worth once groups are evened out.

    Parameters
    ----------
    scores : ndarray
        (n,), in stored order.
    data : RankingData
        The rows of the set.
    spec : FairnessSpec
        The notion and k.
    part : float
        The part of the offsets that is used.

    Returns
    -------
    ndarray
        (n,); as they are where the set has no two groups to compare.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            offsets = part * exact_offsets(scores, data, spec)
        except DataError:
            return scores
    return np.asarray(scores + np.append(offsets, 0.0)[data.group])
