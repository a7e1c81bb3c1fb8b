"""The pooled contrast of a batch, compiled: a network's batches are small and many, and numpy takes long to begin.

Import it only where it is used: numba compiles (and caches) the kernels when they are first called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import TINY, PooledContrast, pairs_of
from evenrank.targets.compiled import kernel

NO_WEIGHT = np.empty(0)
EPS = float(np.finfo(np.float64).eps)


class CompiledContrast(PooledContrast):
    """The compiled form of a `PooledContrast`, for values (n,).

    Parameters
    ----------
    strata : sequence of ndarray
        The masks of the strata, (n,) of booleans each; a row is in one of them at most.
    group : ndarray
        The groups, (n,) of int64; -1 is unknown.
    row_weight : ndarray or None
        (n,); None is 1 everywhere.
    groups : int
        The number of groups.
    across : str
        As in `Pairs.of`.
    """

    def __init__(
        self,
        strata: Sequence[NDArray[np.bool_]],
        group: NDArray[np.int64],
        row_weight: NDArray[np.float64] | None,
        groups: int,
        *,
        across: str = "mean",
    ) -> None:
        n_cells = len(strata) * groups
        self._row_weight, self._n_cells = row_weight, n_cells
        self._weights = NO_WEIGHT if row_weight is None else row_weight
        self._cell = np.empty(len(group), np.int64)
        self._counts, total, self._share = sums = np.zeros((3, n_cells))
        for number, rows in enumerate(strata):
            _put(rows, group, self._weights, number * groups, groups, self._cell, sums)
        self.cell_weight = total.reshape(len(strata), 1, groups)
        self.pairs = pairs_of(self.cell_weight.shape, tuple([weight > 0 for weight in total.tolist()]), across)

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        if values.ndim > 1:
            return super().gaps(values)
        gaps = np.empty(len(self.pairs.a))
        _gaps(self._cell, self._weights, values, self._counts, self._share, self.pairs.a, self.pairs.b, gaps)
        return gaps

    def pull_back(self, slope: NDArray[Any]) -> NDArray[Any]:
        if slope.ndim > 1:
            return super().pull_back(slope)
        out = np.empty(len(self._cell))
        _pull_back(self._cell, self._weights, self._share, self.pairs.a, self.pairs.b, slope, out)
        return out


def group_lists(query: NDArray[np.int64]) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Bring each query's rows together, as `evenrank.labels.group_rows` does; the queries are in the order of their ids.

    Parameters
    ----------
    query : ndarray
        (n,) of int64, without a gap in memory.

    Returns
    -------
    order : ndarray or None
        The permutation, (n,); None if the rows are in the order of their ids.
    ptr : ndarray
        Where each query begins and, last, n, (q + 1,).
    """
    bounds = np.empty(len(query) + 1, np.int64)
    count = _runs(query, bounds)
    if count > 0:
        return None, bounds[: count + 1]
    order = np.empty(len(query), np.int64)
    return order, bounds[: _sort_lists(query, order, bounds) + 1]


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def extremes(values: Any) -> tuple[Any, Any]:
    """The least and the largest value, (n,) with n > 0; NaN twice if there is one."""
    low = high = values[0]
    for value in values:
        if not (low <= value <= high):
            if value < low:
                low = value
            elif value > high:
                high = value
            else:
                return value + low - low, value + low - low
    return low, high


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _runs(query: Any, bounds: Any) -> int:
    """The number of queries if their ids rise, and where they begin; else 0."""
    count = bounds[0] = 0
    for i in range(1, len(query)):
        if query[i] != query[i - 1]:
            if query[i] < query[i - 1]:
                return 0
            count += 1
            bounds[count] = i
    bounds[count + 1] = len(query)
    return count + 1


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _sort_lists(query: Any, order: Any, bounds: Any) -> int:
    n = len(query)
    low, high = query.min(), query.max()
    if 0 <= high - low < 8 * n:  # counted, which takes less time; a difference beyond 63 bits is below 0
        starts = np.zeros(high - low + 2, np.int64)
        for i in range(n):
            starts[query[i] - low + 1] += 1
        for value in range(high - low + 1):
            starts[value + 1] += starts[value]
        for i in range(n):
            order[starts[query[i] - low]] = i
            starts[query[i] - low] += 1
    else:
        order[:] = np.argsort(query, kind="mergesort")
    count = bounds[0] = 0
    for i in range(1, n):
        if query[order[i]] != query[order[i - 1]]:
            count += 1
            bounds[count] = i
    bounds[count + 1] = n
    return count + 1


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _put(rows: Any, group: Any, weight: Any, first: int, groups: int, cell: Any, sums: Any) -> None:
    """Put a stratum's rows into its cells, the first of which is given.

    ``sums`` takes the cells' counts, their weights, and the share in a mean that a weight of 1 has.
    """
    nowhere = sums.shape[1]
    for i in range(len(group)):
        if first == 0:
            cell[i] = nowhere
        if not rows[i] or group[i] < 0 or group[i] >= groups:
            continue
        own = 1.0 if len(weight) == 0 else weight[i]
        if own > 0:
            cell[i] = first + group[i]
            sums[0, cell[i]] += 1
            sums[1, cell[i]] += own
    for c in range(first, first + groups):
        sums[2, c] = 1 / max(sums[1, c], TINY)  # sums over no rows are 0, whatever they are multiplied by


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _gaps(cell: Any, weight: Any, values: Any, counts: Any, share: Any, a: Any, b: Any, gaps: Any) -> None:
    """The difference of the means of each pair's cells; 0 within rounding, as `Contrast.gaps` has it."""
    cells = len(counts)
    mean, size = np.zeros(cells + 1), np.zeros(cells + 1)
    for i in range(len(cell)):
        value = values[i] if len(weight) == 0 else values[i] * weight[i]
        mean[cell[i]] += value
        size[cell[i]] += abs(value)
    for c in range(cells):
        mean[c] *= share[c]
        size[c] *= share[c]
    for j in range(len(a)):
        gap = mean[a[j]] - mean[b[j]]
        error = EPS * (64 + np.sqrt(max(counts[a[j]], counts[b[j]])))
        gaps[j] = 0.0 if abs(gap) <= error * max(size[a[j]], size[b[j]]) else gap


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _pull_back(cell: Any, weight: Any, share: Any, a: Any, b: Any, slope: Any, out: Any) -> None:
    on_cells = np.zeros(len(share) + 1)
    for j in range(len(a)):
        on_cells[a[j]] += slope[j]
        on_cells[b[j]] -= slope[j]
    for c in range(len(share)):
        on_cells[c] *= share[c]
    for i in range(len(cell)):
        out[i] = on_cells[cell[i]] if len(weight) == 0 else on_cells[cell[i]] * weight[i]
