"""The sums that `Moments` hold, over the rows of some data in blocks; in memory, from files and on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.design_columns import design_blocks, less_query_mean
from evenrank.notions import Cells


def moment_sums(
    data: RankingData,
    cells: Sequence[Cells],
    *,
    group_aware: bool,
    shares: NDArray[np.float64] | None,
    origin: NDArray[np.float64] | None,
    centers: bool,
    within: bool,
) -> dict[str, Any]:
    """Sum over the rows in blocks, so that a memmap may be larger than memory.

    Parameters
    ----------
    data : RankingData
        The rows.
    cells : sequence of Cells
        The notions, bound to the rows.
    group_aware, shares, origin, within
        See `Moments.of`.
    centers : bool
        Whether cells sum x less its query's mean.

    Returns
    -------
    dict
        The fields of `Moments` that are sums, the origin included.
    """
    strata, place = _different(np.concatenate([np.zeros((0, data.n_rows), bool), *(item.strata for item in cells)]))
    n_groups = data.n_groups
    d = data.n_features + (max(n_groups - 1, 0) if group_aware else 0)
    origin = np.zeros(d) if origin is None and data.n_rows == 0 else origin
    x, xx, xr = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    weight, r, rr, inner_rr = 0.0, 0.0, 0.0, 0.0
    cell_weight = np.zeros(len(strata) * n_groups)
    cell_sum = np.zeros((len(strata) * n_groups, d))
    cell_size = np.zeros_like(cell_sum)
    inner = np.zeros((d, d + 1))
    blocks = design_blocks(data, group_aware=group_aware, shares=shares, whole_queries=centers or within)
    for rows, block in blocks:
        if origin is None:
            origin = block.mean(axis=0)
        block -= origin
        relevance = data.relevance[rows]
        row_weight = np.ones(len(block)) if data.sample_weight is None else data.sample_weight[rows]
        weighted = block if data.sample_weight is None else block * row_weight[:, None]
        weight += float(row_weight.sum())
        r += float(row_weight @ relevance)
        rr += float(row_weight @ relevance**2)
        xx += weighted.T @ block
        # One product gives every sum of x: over all rows, times the relevance, and in each cell.
        member = np.empty((2 + len(cell_weight), len(block)))
        member[0], member[1] = row_weight, row_weight * relevance
        for code in range(n_groups):
            inside = np.where(data.group[rows] == code, row_weight, 0.0)
            np.multiply(strata[:, rows], inside, out=member[2 + code :: n_groups])
        cell_weight += member[2:].sum(axis=1)
        sums = member @ block
        x += sums[0]
        xr += sums[1]
        if within:
            centred = less_query_mean(block, data, rows, row_weight)
            inner += (centred * row_weight[:, None]).T @ np.column_stack([centred, relevance])
            inner_rr += float(row_weight @ less_query_mean(relevance, data, rows, row_weight) ** 2)
        if centers:
            block = less_query_mean(block, data, rows)
            sums[2:] = member[2:] @ block
        cell_sum += sums[2:]
        cell_size += member[2:] @ np.abs(block, out=block)
    assert origin is not None
    cell_shape = len(strata), n_groups
    of_strata = cell_weight.reshape(cell_shape), cell_sum.reshape(*cell_shape, d), cell_size.reshape(*cell_shape, d)
    weights, totals, sizes = (table[place] for table in of_strata)
    return {
        "weight": weight,
        "origin": origin,
        "x": x,
        "xx": xx,
        "xr": xr,
        "r": r,
        "rr": rr,
        "cell_weight": weights,
        "cell_sum": totals,
        "cell_size": sizes,
        "group_rows": np.bincount(data.group[data.group >= 0], minlength=n_groups),
        "within": inner if within else None,
        "within_rr": inner_rr,
    }


def _different(strata: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Leave out strata that occur twice, as those of equal opportunity and equalized odds; and where each one went."""
    seen: dict[bytes, int] = {}
    place = [seen.setdefault(np.packbits(row).tobytes(), len(seen)) for row in strata]
    first = [place.index(number) for number in range(len(seen))]
    return strata[first], np.array(place, np.intp)
