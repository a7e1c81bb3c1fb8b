"""Changes of sizes: of one gap, of Γ over several, and of the four-fifths ratio; and many corrected together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.spread import Array, Spread, Tests

CLEAR = 3.0  # standard errors from 0 at which a gap's sign, or which of several is largest, is taken as known
LEAST = 1e-300  # p-values below are not told apart


def size_changes(difference: Tests, sums: Tests, alpha: float) -> tuple[Array, Array, Array]:
    """Compute the interval and the p-value of the change of each gap's size, |b| − |a|.

    Parameters
    ----------
    difference, sums : Tests
        b − a and b + a of each gap.
    alpha : float
        The intervals miss with this probability.

    Returns
    -------
    tuple of ndarray
        Lower ends, upper ends, p-values, (J,) each; a p-value is at most alpha exactly when its interval excludes 0.
    """
    x, y = ([test.value - test.reach(alpha), test.value + test.reach(alpha)] for test in (difference, sums))
    corners = np.array([_size_change(i, j) for i in x for j in y])
    low, high = corners.min(axis=0), corners.max(axis=0)
    return np.maximum(low, -1), np.minimum(high, 1), np.maximum(difference.p_value, sums.p_value)


def _size_change(difference: Array, total: Array) -> Array:
    """|b| − |a| from b − a and b + a."""
    return np.asarray(np.sign(difference) * np.sign(total) * np.minimum(np.abs(difference), np.abs(total)))


@dataclass(frozen=True, eq=False)
class _Side:
    """One ranking's functions, of which the largest of each block counts: a gap and its negative, or ratios."""

    values: Array  # (F,)
    coefficients: Array  # (F, 2 · width)
    twin: NDArray[np.int64]  # (F,): functions that move together, either way


def total_change(
    spreads: Sequence[Spread], pairs: Pairs, tests: dict[str, Tests], *, alpha: float, ratio: bool
) -> tuple[float, float, float, float]:
    """Compute Γ, or the four-fifths ratio, of both rankings, how far its change may be off, and its p-value.

    Parameters
    ----------
    spreads : sequence of Spread
        The cell means of both rankings, by each clustering.
    pairs : Pairs
        The pairs of cells.
    tests : dict of str to Tests
        Of the pairs' signed gaps: "a", "b" and "difference".
    alpha : float
        The interval misses with this probability.
    ratio : bool
        The lowest rate over the highest in place of Γ.

    Returns
    -------
    tuple of float
        Γ of the first and of the second, the reach of the change, and its p-value.
    """
    if pairs.missing or not len(pairs.a):
        return np.nan, np.nan, np.nan, np.nan
    if ratio:
        return _ratio_change(spreads, pairs, alpha)
    values = [float(pairs.value(tests[side].value)) for side in ("a", "b")]
    if pairs.across == "mean":
        reach = _reach_of_mean(spreads, pairs, tests)
    else:
        reach = _reach_of_largest(spreads, pairs, tests)
    return values[0], values[1], *_conclude(values[1] - values[0], reach, alpha)


def _conclude(change: float, reach: Callable[[float], float], alpha: float) -> tuple[float, float]:
    """The reach at ``alpha``, and the least level at which the reach falls short of the change."""
    width = reach(alpha)
    if not abs(change) > 0 or not np.isfinite(width):
        return width, 1.0
    low, high = np.log(LEAST), 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reach(np.exp(middle)) <= abs(change) else (middle, high)
    return width, float(np.exp(high))


def _linear(spreads: Sequence[Spread], functions: Array) -> Callable[[float], float]:
    """The reach of a function of the means, nothing if it has no part."""
    if not functions.any():
        return lambda alpha: 0.0
    test = Tests.of(spreads, functions[None])
    return lambda alpha: float(test.reach(alpha)[0])


def _reach_of_mean(spreads: Sequence[Spread], pairs: Pairs, tests: dict[str, Tests]) -> Callable[[float], float]:
    """Gaps clear of 0 move Γ together, cluster by cluster; the others move it in the worst way."""
    width = spreads[0].width
    clear = {side: tests[side].clear > CLEAR for side in ("a", "b")}
    functions = np.zeros(2 * width)
    for side, sign, at in (("a", -1, 0), ("b", 1, width)):
        known = clear[side]
        weight = sign * (pairs.weight * np.sign(tests[side].value))[known]
        np.add.at(functions, at + pairs.a[known], weight)
        np.add.at(functions, at + pairs.b[known], -weight)
    together = _linear(spreads, functions)
    change = np.abs(np.abs(tests["b"].value) - np.abs(tests["a"].value))
    at_most = change + np.abs(tests["difference"].value)

    def reach(alpha: float) -> float:
        own = {side: np.where(clear[side], 0.0, tests[side].reach(alpha)) for side in ("a", "b")}
        # Both near 0: neither change of a size exceeds the signed difference.
        alike = np.where(clear["a"] | clear["b"], np.inf, at_most + tests["difference"].reach(alpha))
        return together(alpha) + float(pairs.weight @ np.minimum(own["a"] + own["b"], alike))

    return reach


def _reach_of_largest(spreads: Sequence[Spread], pairs: Pairs, tests: dict[str, Tests]) -> Callable[[float], float]:
    """The same for the largest gap of each stratum."""
    width, number = spreads[0].width, len(pairs.a)
    plain = np.zeros((number, width))
    plain[np.arange(number), pairs.a], plain[np.arange(number), pairs.b] = 1.0, -1.0
    both = np.vstack([plain, -plain])
    none = np.zeros_like(both)
    twin = np.tile(np.arange(number), 2)
    sides = (
        _Side(np.concatenate([tests["a"].value, -tests["a"].value]), np.hstack([both, none]), twin),
        _Side(np.concatenate([tests["b"].value, -tests["b"].value]), np.hstack([none, both]), twin),
    )
    block = np.tile(pairs.block, 2)
    weight = [float(pairs.weight[pairs.block == each][0]) for each in np.unique(pairs.block)]
    return _blocks_reach(spreads, sides, block, weight)


def _ratio_change(spreads: Sequence[Spread], pairs: Pairs, alpha: float) -> tuple[float, float, float, float]:
    """The lowest rate over the highest is the least of all ratios of two rates."""
    width = spreads[0].width
    one, two = np.concatenate([pairs.a, pairs.b]), np.concatenate([pairs.b, pairs.a])
    sides, values = [], []
    for at in (0, width):
        rates = spreads[0].means[at : at + width]
        if not np.nanmax(rates) > 0:
            return np.nan, np.nan, np.nan, np.nan
        bottom = np.where(rates[two] > 0, rates[two], np.inf)
        ratios = np.where(rates[two] > 0, rates[one] / bottom, np.inf)
        coefficients = np.zeros((len(one), 2 * width))
        np.add.at(coefficients, (np.arange(len(one)), at + one), -1 / bottom)
        np.add.at(coefficients, (np.arange(len(one)), at + two), rates[one] / bottom**2)
        sides.append(_Side(-ratios, coefficients, np.arange(len(one))))
        values.append(min(1.0, float(ratios.min())))
    # A ratio to a rate of 0 is never the least.
    kept = np.isfinite(sides[0].values) & np.isfinite(sides[1].values)
    if not kept.any():  # each ranking leaves out a group that the other selects: nothing says how far 0 may move
        return values[0], values[1], 1.0, 1.0
    sides = [_Side(side.values[kept], side.coefficients[kept], side.twin[kept]) for side in sides]
    reach = _blocks_reach(spreads, sides, np.zeros(int(kept.sum()), np.int64), [1.0])
    return values[0], values[1], *_conclude(values[1] - values[0], reach, alpha)


def _blocks_reach(
    spreads: Sequence[Spread], sides: Sequence[_Side], block: NDArray[np.int64], weights: Sequence[float]
) -> Callable[[float], float]:
    functions = np.zeros(sides[0].coefficients.shape[1])
    loose: list[Callable[[float], float]] = []
    for number, weight in zip(np.unique(block).tolist(), weights, strict=True):
        members = np.flatnonzero(block == number)
        unclear = []
        for side, sign in zip(sides, (-1, 1), strict=True):
            lead = members[np.argmax(side.values[members])]
            rest = members[members != lead]
            margins = Tests.of(spreads, side.coefficients[lead] - side.coefficients[rest])
            margins = replace(margins, value=side.values[lead] - side.values[rest])
            near = rest[margins.clear <= CLEAR]
            if len(near):
                unclear.append((side, np.append(near, lead)))
            else:
                functions += sign * weight * side.coefficients[lead]
        loose.append(_loose(spreads, sides, members, unclear, weight))
    together = _linear(spreads, functions)
    return lambda alpha: together(alpha) + sum(reach(alpha) for reach in loose)


def _loose(
    spreads: Sequence[Spread],
    sides: Sequence[_Side],
    members: NDArray[np.int64],
    unclear: list[tuple[_Side, NDArray[np.int64]]],
    weight: float,
) -> Callable[[float], float]:
    """The reach of the largest of some functions where it is not clear which it is: that of any of them."""
    if not unclear:
        return lambda alpha: 0.0
    own = [(Tests.of(spreads, side.coefficients[near]), len(np.unique(side.twin[near]))) for side, near in unclear]
    moves = [side.values[members] for side in sides]
    steps = Tests.of(spreads, sides[1].coefficients[members] - sides[0].coefficients[members])
    number = len(np.unique(sides[0].twin[members]))
    at_most = abs(moves[1].max() - moves[0].max()) + np.abs(moves[1] - moves[0]).max()

    def reach(alpha: float) -> float:
        each = sum(float(test.reach(alpha, count).max()) for test, count in own)
        if len(unclear) == 2:
            each = min(each, float(at_most + steps.reach(alpha, number).max()))
        return weight * each

    return reach


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct p-values by Holm's method, for the chance of any false alarm among all the tests.

    Parameters
    ----------
    p_values : ndarray
        (tests,); NaN where there is no test, which stays NaN and does not count.

    Returns
    -------
    ndarray
        The corrected p-values, (tests,).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    out = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = len(order) - np.arange(len(order))
    out[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors)) if len(order) else 0
    return out
