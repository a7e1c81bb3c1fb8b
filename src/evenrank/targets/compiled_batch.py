"""Γ of a small batch and its gradient in two compiled calls: numpy takes longer to begin than to work on one.

`lay_out` says what the rows hold, `evaluate` works out Γ with the pairs that `contrasts.pairs_of` finds there. It is
that of `FairnessTerm` with a `PooledContrast`, "mean" over the pairs, for float64 scores (n,).

Import it only where it is used: numba compiles (and caches) the kernels when they are first called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.contrasts import TINY
from evenrank.rounding import ROOM
from evenrank.targets.compiled import (
    kernel,
    less_mean,
    pull_back_exposure,
    pull_back_top,
    sigmoid_and_slope,
    soft_exposure,
    soft_top,
)
from evenrank.targets.lists import LAPLACE

EPS = float(np.finfo(np.float64).eps)
NO_ROWS, NO_WEIGHT, NO_QUERY = np.empty(0, bool), np.empty(0), np.empty(0, np.int64)
SCORE, PROBABILITY, CENTERED, TOPK, EXPOSURE = range(5)
NUMBER = {
    "score": SCORE,
    "probability": PROBABILITY,
    "centered": CENTERED,
    "topk": TOPK,
    "exposure": EXPOSURE,
}  # how `evaluate` calls the targets
WIDTH = {"exposure": LAPLACE}  # by which it wants the temperature multiplied


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def lay_out(scores: Any, first: Any, second: Any, group: Any, weight: Any, query: Any, most_groups: int) -> Any:
    """Check the rows of a batch, put them into cells, and bring each query's rows together.

    Parameters
    ----------
    scores : ndarray
        (n,) of float64, n > 0.
    first, second : ndarray
        The masks of the strata, (n,) of booleans; a row is in one of them at most. `NO_ROWS` where there is no second.
    group : ndarray
        (n,) of int64; -1 is unknown.
    weight : ndarray
        (n,) of float64, or `NO_WEIGHT`.
    query : ndarray
        (n,) of int64 in any order, or `NO_QUERY` for a single query.
    most_groups : int
        With more groups nothing is put anywhere.

    Returns
    -------
    tuple
        The least and the largest score and group and the least weight (NaN if one is); the cells of the rows, (n,),
        those in none having the number of cells; the cells' counts, their weights and the share in a mean that a weight
        of 1 has, (3, cells); the rows in the order of queries, (n,), or (0,) if they are; and the queries' bounds.
    """
    low, high = _extremes(scores)
    least, most = _extremes(group)
    lightest = _extremes(weight)[0] if len(weight) else 1.0
    n, groups, strata = len(scores), max(most + 1, 2), 2 if len(second) else 1
    good = low > -np.inf and high < np.inf and least >= -1 and most < most_groups and lightest >= 0
    cells = strata * groups if good else 0
    cell, sums = np.full(n, cells, np.int64), np.zeros((3, cells))
    order, ptr = np.empty(0, np.int64), np.array([0, n])
    if not good:
        return low, high, least, most, lightest, cell, sums, order, ptr
    for i in range(n):
        own = weight[i] if len(weight) else 1.0
        stratum = 0 if first[i] else 1 if strata == 2 and second[i] else -1
        if stratum >= 0 and group[i] >= 0 and own > 0:
            cell[i] = stratum * groups + group[i]
            sums[0, cell[i]] += 1
            sums[1, cell[i]] += own
    for c in range(cells):
        sums[2, c] = 1 / max(sums[1, c], TINY)  # sums over no rows are 0, whatever they are multiplied by
    if len(query):
        order, ptr = _lists(query)
    return low, high, least, most, lightest, cell, sums, order, ptr


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def evaluate(
    scores: Any,
    target: int,
    k: int,
    temperature: float,
    cell: Any,
    weight: Any,
    sums: Any,
    order: Any,
    ptr: Any,
    a: Any,
    b: Any,
    pair_weight: Any,
    smoothing: float,
    gradient: Any,
) -> float:
    """Work out Γ of the rows that `lay_out` has laid out, and write its gradient, (n,).

    Parameters
    ----------
    scores : ndarray
        (n,) of float64.
    target, k, temperature : number
        The target by its `NUMBER`, with its options (the temperature times `LAPLACE` for exposure).
    cell, weight, sums, order, ptr : ndarray
        As `lay_out` takes and gives them.
    a, b, pair_weight : ndarray
        The pairs of cells that are compared, see `Pairs`.
    smoothing : float
        ε of √(gap² + ε²) − ε.
    gradient : ndarray
        (n,) of float64, which is overwritten.

    Returns
    -------
    float
        Γ.
    """
    n, lists = len(scores), len(ptr) - 1
    listed = _taken(scores, order)
    value, first, by_rank = np.empty(n), np.empty(n), np.empty((4, n if target == EXPOSURE else 0))
    places, at = np.empty((lists, 4)), np.empty(n if target == EXPOSURE else 0, np.int64)
    if target == SCORE:
        value = listed
    elif target == PROBABILITY:
        for i in range(n):
            value[i], first[i] = sigmoid_and_slope(listed[i])
    elif target == CENTERED:
        less_mean(listed, ptr, value)
    elif target == TOPK:
        soft_top(listed, ptr, k, temperature, 0.0, places, value, first)
    else:
        soft_exposure(listed, ptr, temperature, 0.0, places, at, by_rank, value)

    gaps = _gaps(cell, weight, _put_back(value, order), sums, a, b)
    gamma = 0.0
    for j in range(len(gaps)):
        size = np.hypot(gaps[j], smoothing) if smoothing > 0 else abs(gaps[j])
        gamma += pair_weight[j] * (size - smoothing)
        gaps[j] = pair_weight[j] * (gaps[j] / size) if size > 0 else 0.0
    slope = _taken(_on_rows(cell, weight, sums, a, b, gaps), order)

    if target == SCORE:
        value = slope
    elif target == PROBABILITY:
        for i in range(n):
            value[i] = first[i] * slope[i]
    elif target == CENTERED:
        less_mean(slope, ptr, value)
    elif target == TOPK:
        pull_back_top(listed, ptr, k, places, first, slope, value)
    else:
        pull_back_exposure(listed, ptr, temperature, places, at, by_rank, slope, value)
    gradient[:] = _put_back(value, order)
    return gamma


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _extremes(values: Any) -> tuple[Any, Any]:
    """The least and the largest value; NaN twice if there is one."""
    low = high = values[0]
    for value in values:
        if not low <= value <= high:
            if value < low:
                low = value
            elif value > high:
                high = value
            else:
                return value + low, value + low
    return low, high


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _lists(query: Any) -> tuple[Any, Any]:
    """The rows in the order of the queries' ids, (n,), or (0,) if they are; and where each query begins."""
    n = len(query)
    order, ptr = np.empty(0, np.int64), np.empty(n + 1, np.int64)
    for i in range(1, n):
        if query[i] < query[i - 1]:
            order = _sorted(query)
            break
    count = ptr[0] = 0
    for i in range(1, n):
        here, before = (query[order[i]], query[order[i - 1]]) if len(order) else (query[i], query[i - 1])
        if here != before:
            count += 1
            ptr[count] = i
    ptr[count + 1] = n
    return order, ptr[: count + 2]


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _sorted(query: Any) -> Any:
    low, span = query.min(), query.max() - query.min()
    if not 0 <= span < 8 * len(query):  # a difference of more than 63 bits is below 0
        return np.argsort(query, kind="mergesort")
    order, starts = np.empty(len(query), np.int64), np.zeros(span + 2, np.int64)
    for id in query:
        starts[id - low + 1] += 1
    for place in range(span + 1):
        starts[place + 1] += starts[place]
    for i in range(len(query)):
        order[starts[query[i] - low]] = i
        starts[query[i] - low] += 1
    return order


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _taken(values: Any, order: Any) -> Any:
    """The values in the order of queries."""
    return values[order] if len(order) else values


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _put_back(values: Any, order: Any) -> Any:
    """The values in the order of rows."""
    if not len(order):
        return values
    out = np.empty_like(values)
    for i in range(len(order)):
        out[order[i]] = values[i]
    return out


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _gaps(cell: Any, weight: Any, values: Any, sums: Any, a: Any, b: Any) -> Any:
    """The difference of the means of each pair's cells; 0 within rounding, as `Contrast.gaps` has it."""
    cells = sums.shape[1]
    mean, size = np.zeros(cells + 1), np.zeros(cells + 1)
    for i in range(len(cell)):
        value = values[i] * weight[i] if len(weight) else values[i]
        mean[cell[i]] += value
        size[cell[i]] += abs(value)
    gaps = np.empty(len(a))
    for j in range(len(a)):
        gap = mean[a[j]] * sums[2, a[j]] - mean[b[j]] * sums[2, b[j]]
        error = EPS * (ROOM + np.sqrt(max(sums[0, a[j]], sums[0, b[j]])))  # `rounding` of the cell with more rows
        largest = max(size[a[j]] * sums[2, a[j]], size[b[j]] * sums[2, b[j]])
        gaps[j] = 0.0 if abs(gap) <= error * largest else gap
    return gaps


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _on_rows(cell: Any, weight: Any, sums: Any, a: Any, b: Any, slope: Any) -> Any:
    """A slope in the gaps as one in the values, (n,); see `Contrast.pull_back`."""
    cells = sums.shape[1]
    on_cells, out = np.zeros(cells + 1), np.empty(len(cell))
    for j in range(len(a)):
        on_cells[a[j]] += slope[j]
        on_cells[b[j]] -= slope[j]
    for c in range(cells):
        on_cells[c] *= sums[2, c]
    for i in range(len(cell)):
        out[i] = on_cells[cell[i]] * weight[i] if len(weight) else on_cells[cell[i]]
    return out
