"""Measures of all lists together, computed again without some lists: for intervals and tests where no sums are known.

A measure made of ratios of sums is computed without each list in turn from those sums. Any other, such as a function of
the user's own, is computed again on the rows of the other lists, without one of at most `PARTS` parts of the lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.measures import MEASURES, Asked, Evaluation
from evenrank.query_sums import quotient
from evenrank.statistic import Statistic

PARTS = 100  # times that a measure is computed again
MOST_LOST = 0.1  # of the values that may be undefined

Floats = NDArray[np.float64]


def without_each(stat: Statistic, part: NDArray[np.int64] | None = None) -> Floats:
    """Compute a statistic without each list, or without each part of the lists.

    Parameters
    ----------
    stat : Statistic
        Made of sums over lists.
    part : ndarray, optional
        The number of each list's part, (q,), from 0, in the order of the statistic's queries.

    Returns
    -------
    ndarray
        (parts,).
    """
    weights = stat.sums.weights
    query = np.repeat(np.arange(weights.n_queries), np.diff(weights.ptr))
    part_of = query if part is None else part[query]
    number = weights.n_queries if part is None else int(part.max()) + 1
    out = np.empty(number)
    step = max(1, (1 << 20) // max(1, weights.width))
    for start in range(0, number, step):
        stop = min(start + step, number)
        inside = (part_of >= start) & (part_of < stop)
        cell = weights.column[inside] * np.int64(stop - start) + part_of[inside] - start
        shape = (weights.width, stop - start)
        top, bottom = (
            np.bincount(cell, values[inside], minlength=shape[0] * shape[1]).reshape(shape)
            for values in (stat.sums.top, weights.weight)
        )
        ratios = quotient(stat.sums.total[:, None] - top, weights.total[:, None] - bottom)
        out[start:stop] = stat.value(stat.gaps(ratios))
    return out


def recomputed(
    evaluation: Evaluation, asked: Asked, part: NDArray[np.int64], also: Evaluation | None = None
) -> tuple[Floats, Floats]:
    """Compute a measure on all lists, and again without each part of them.

    Parameters
    ----------
    evaluation : Evaluation
        One ranking.
    asked : Asked
        The measure.
    part : ndarray
        The number of each list's part, (q,), from 0.
    also : Evaluation, optional
        Another ranking of the same rows.

    Returns
    -------
    whole : ndarray
        The values on all lists, (1,), or (2,) with ``also``.
    without : ndarray
        (parts, 1) or (parts, 2).
    """
    both = [evaluation] if also is None else [evaluation, also]
    data = evaluation.data
    if MEASURES.get(asked.measure.name) is asked.measure:  # one of ours looks at no feature
        data = replace(data, features=np.empty((data.n_rows, 0)), feature_names=(), categories={})
    value = _value_of(asked)
    scores = [ev.scores for ev in both if ev.scores is not None]
    whole = np.array([value(column, data) for column in scores])
    without = []
    for number in range(int(part.max()) + 1):
        kept = part != number
        taken, rows = data.take(kept), kept[data.query_of_row]
        without.append([value(column[rows], taken) for column in scores])
    return whole, np.array(without)


def _value_of(asked: Asked) -> Callable[[Floats, RankingData], float]:
    options = asked.measure.chosen(asked.options)

    def value(stored: Floats, data: RankingData) -> float:
        return float(asked.measure.value(Evaluation.of(stored, data).with_options(options), asked.k))

    return value


def parts_of(data: RankingData, seed: int = 0) -> NDArray[np.int64]:
    """Deal the queries to at most `PARTS` parts of equal size, (q,), whatever the order of the rows."""
    part = np.empty(data.n_queries, np.int64)
    order = data.sorted_queries[np.random.default_rng(seed).permutation(data.n_queries)]
    part[order] = np.arange(data.n_queries) % min(PARTS, data.n_queries)
    return part


def spread_of(without: Floats) -> tuple[float, int]:
    """Give the jackknife's standard error of a value and the number of parts that have one.

    Parameters
    ----------
    without : ndarray
        The value without each part, (parts,); NaN where it is not defined.

    Returns
    -------
    error : float
        NaN if too many values are undefined.
    parts : int
        Those that have a value.
    """
    known = without[np.isfinite(without)]
    count = len(known)
    if count < 2 or count < (1 - MOST_LOST) * len(without):
        return float("nan"), count
    return float(np.sqrt((count - 1) / count * ((known - known.mean()) ** 2).sum())), count
