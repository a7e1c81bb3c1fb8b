"""The columns that linear training sees, block by block: features, group indicators, their scale and their gaps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered
from evenrank.contrasts import Contrast, Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rounding import beyond_rounding
from evenrank.rows import TO_SUM


@np.errstate(over="ignore", invalid="ignore")
def column_scale(data: RankingData, *, group_aware: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give `Moments.mean` and `Moments.deviation` alone, at O(d) per row instead of O(d²).

    Parameters
    ----------
    data : RankingData
        The rows.
    group_aware : bool
        Whether the groups' indicator columns follow the features.

    Returns
    -------
    tuple of ndarray
        Means and standard deviations, (d,) each.

    Raises
    ------
    DataError
        If a feature is too large to square.
    """
    origin: NDArray[np.float64] | None = None
    total: Any = 0.0
    squares: Any = 0.0
    weight = 0.0
    for rows, block in design_blocks(data, group_aware=group_aware):
        if origin is None:
            origin = block.mean(axis=0)
        block -= origin
        row_weight = np.ones(len(block)) if data.sample_weight is None else data.sample_weight[rows]
        weight += float(row_weight.sum())
        total = total + row_weight @ block
        squares = squares + row_weight @ np.square(block, out=block)
    assert origin is not None
    offset = total / weight
    variance = squares / weight - offset**2
    if not np.isfinite(variance).all():
        name = data.feature_names[int(np.argmin(np.isfinite(variance)[: data.n_features]))]
        raise DataError(f"feature {name!r} has values too large to square in double precision. Rescale it.")
    return origin + offset, spread_of(variance, origin + offset)


def spread_of(variance: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute standard deviations (d,) from variances; 1 for a constant feature, so that scaling by it is harmless."""
    deviation = np.sqrt(np.maximum(variance, 0))
    return np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)


def design_blocks(
    data: RankingData,
    *,
    group_aware: bool = False,
    shares: NDArray[np.float64] | None = None,
    whole_queries: bool = False,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield blocks of rows as fresh float64 arrays.

    Parameters
    ----------
    data, group_aware
        As for `column_scale`.
    shares : ndarray, optional
        The groups' shares for rows of unknown group, (G,); by default those of ``data``.
    whole_queries : bool
        As for `RankingData.blocks`.

    Yields
    ------
    tuple of slice and ndarray
        Which rows, and their columns, (rows, d).
    """
    data.need_numbers("a linear ranker", advice=TO_SUM)
    table = group_indicators(data.group, group_shares(data) if shares is None else shares) if group_aware else None
    for rows, block in data.blocks(whole_queries=whole_queries):
        if table is None and block.dtype == np.float64 and block.flags.owndata:  # part of no other array
            yield rows, block
            continue
        # Columns that stand together, as tables have them, stay so: turning them takes longer than all sums.
        order: Any = "C" if block.strides[0] > block.strides[-1] else "F"
        wide = np.empty((len(block), data.n_features + (0 if table is None else table.shape[1])), order=order)
        wide[:, : data.n_features] = block
        if table is not None:
            wide[:, data.n_features :] = table[rows]
        yield rows, wide


def less_query_mean(
    block: NDArray[np.float64], data: RankingData, rows: slice, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Give the columns of a block of whole queries less their query's mean.

    Parameters
    ----------
    block : ndarray
        The columns, (rows, d), or one of them, (rows,).
    data : RankingData
        The data.
    rows : slice
        Which of its rows they are.
    weight : ndarray, optional
        The weight of each row in the mean, (rows,).

    Returns
    -------
    ndarray
        Of the block's shape.
    """
    first, last = np.searchsorted(data.query_ptr, [rows.start, rows.stop])
    return centered(block, data.query_ptr[first : last + 1] - rows.start, weight)


def group_shares(data: RankingData) -> NDArray[np.float64]:
    """Give each group's share of the rows whose group is known.

    Parameters
    ----------
    data : RankingData
        Rows with groups.

    Returns
    -------
    ndarray
        Shares, (G,).
    """
    counts = np.bincount(data.group[data.group >= 0], minlength=data.n_groups)
    return np.asarray(counts / max(1, counts.sum()))


def group_indicators(group: NDArray[np.int32], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make one column for every group but the first.

    Parameters
    ----------
    group : ndarray
        Numbers of the groups, (n,); -1 is unknown.
    shares : ndarray
        Of `group_shares`, (G,).

    Returns
    -------
    ndarray
        (n, G − 1); a row of unknown group gets the groups' shares.
    """
    codes = np.vstack([np.eye(len(shares)), shares])
    return codes[group, 1:]


def contrast_rows(
    contrast: Contrast, data: RankingData, *, group_aware: bool = False, target: str = "score"
) -> NDArray[np.float64]:
    """Give c_j = C_j X of any bound contrast, as `Moments.contrasts` does for pooled ones.

    Parameters
    ----------
    contrast : Contrast
        The contrast, bound to ``data``.
    data, group_aware
        As for `column_scale`.
    target : str
        Of the "score" or of the "centered" score.

    Returns
    -------
    ndarray
        (J, d).
    """
    by_row = contrast.cells.tocsc()
    origin: Any = None
    means: Any = 0.0
    sizes: Any = 0.0
    for rows, block in design_blocks(data, group_aware=group_aware, whole_queries=target == "centered"):
        # No gap depends on the origin, but its digits do.
        origin = block.mean(axis=0) if origin is None else origin
        block = less_query_mean(block, data, rows) if target == "centered" else block - origin
        means = means + by_row[:, rows] @ block
        sizes = sizes + by_row[:, rows] @ np.abs(block, out=block)
    return feature_gaps(means, sizes, contrast.rounding[:, None], contrast.pairs, origin)


def feature_gaps(
    means: NDArray[Any], sizes: NDArray[Any], relative: Any, pairs: Pairs, center: NDArray[Any]
) -> NDArray[np.float64]:
    """Give the differences of cell means (cells, d) of the features, 0 within rounding.

    ``sizes`` are the means of the terms' sizes and ``relative`` the sums' error as a share of them. The features
    themselves are known to their last digit only, where ``center``, their mean, says what size they have.
    """
    error = relative * sizes
    allowed = np.maximum(error[pairs.a], error[pairs.b]) + 2 * np.finfo(float).eps * np.abs(center)
    return beyond_rounding(means[pairs.a] - means[pairs.b], allowed)
