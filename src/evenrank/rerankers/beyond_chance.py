"""How much of a group's gap is beyond chance: what other lists can be expected to show as well."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.rerankers.chances import RowWeights
from evenrank.rerankers.moving import TopLists

ROUNDING = 1e-12  # of a variance, in squares of the gap


def parts_beyond_chance(
    top: TopLists, weights: RowWeights, data: RankingData, offsets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give max(0, 1 − v/g²) of each group: g is its gap, and v the variance of the gap over queries.

    The gap is that between the group's selection rate and the rate of all other groups together; g² and v are summed
    over strata and cut-offs. Rates are ratios of sums over queries, and v is the sum of squares of what each query adds
    to the gap (a jackknife to first order). With two groups this is positive-part shrinkage of the gap itself.

    Parameters
    ----------
    top : TopLists
        The rows that can be in a top k.
    weights : RowWeights
        What all rows count for.
    data : RankingData
        All rows.
    offsets : ndarray
        Where the gap is taken, (groups,).

    Returns
    -------
    ndarray
        From 0 (no more than chance) to 1, (groups,). With one query nothing is known to be beyond chance, and all
        are 0.
    """
    groups, queries = data.n_groups, data.n_queries
    squares, variance = np.zeros(groups), np.zeros(groups)
    if queries < 2:
        return np.zeros(groups)
    selected = top.selected(offsets)
    for stratum, total in enumerate(weights.total):
        if stratum not in weights.by_query:
            rows = np.flatnonzero((data.group >= 0) & (weights.share[stratum] > 0))
            share = weights.share[stratum, rows] * weights.weight[rows]
            weights.by_query[stratum] = by_query(data.query_of_row[rows], data.group[rows], share, groups, queries)
        sizes = weights.by_query[stratum]
        inside = np.flatnonzero((top.rows.cell >= 0) & (top.weight[stratum] > 0))
        for chosen in selected:
            counted = top.weight[stratum, inside] * chosen[inside]
            sums = by_query(top.rows.query[inside], top.rows.cell[inside], counted, groups, queries)
            gap, spread = _gap_of_each(sums, sizes, total)
            squares, variance = squares + gap**2, variance + spread * queries / (queries - 1)
    certain = variance <= ROUNDING * squares
    return np.asarray(np.where(certain, 1.0, np.maximum(0.0, 1 - variance / np.where(squares > 0, squares, 1e-300))))


Tables = list[NDArray[np.float64]]


def by_query(query: NDArray[Any], group: NDArray[Any], value: NDArray[np.float64], groups: int, queries: int) -> Tables:
    """Give the sums of each group by query, (queries,) each, and last those of all groups."""
    tables = []
    for code in range(groups):
        mine = group == code
        tables.append(np.bincount(query[mine], value[mine], minlength=queries).astype(float, copy=False))
    return [*tables, np.sum(tables, axis=0)]


def _gap_of_each(sums: Tables, sizes: Tables, total: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """The gap of each group against all others together, and the sum of squares of the queries' parts of it."""
    gap, spread = np.zeros(len(total)), np.zeros(len(total))
    whole = total.sum()
    for code, own in enumerate(total):
        if own <= 0 or whole - own <= 0:
            continue
        rate, others_rate = sums[code].sum() / own, (sums[-1] - sums[code]).sum() / (whole - own)
        part = (sums[code] - rate * sizes[code]) / own
        part -= (sums[-1] - sums[code] - others_rate * (sizes[-1] - sizes[code])) / (whole - own)
        gap[code], spread[code] = rate - others_rate, part @ part
    return gap, spread
