"""`Precision`: how precise a gap is in the data at hand, and what power that gives a test of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.inference.students_t import beyond

FEW = 5.0  # selections, or rows not selected, below which a group's spread is taken from its rate alone
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Precision:
    """How precise a gap is in the data at hand.

    Attributes
    ----------
    queries : int
        The number of queries at hand.
    freedom : float
        Degrees of freedom of the gap's standard error.
    rates : tuple of float
        Both groups' rates.
    rows : tuple of float
        Both groups' rows.
    weights : tuple of float
        What each group's r(1 − r) counts for in the gap's variance, if rows were independent.
    excess : float
        How many times larger the variance is than that.
    """

    queries: int
    freedom: float
    rates: tuple[float, float]
    rows: tuple[float, float]
    weights: tuple[float, float]
    excess: float

    @classmethod
    def of(
        cls,
        a: Array,
        b: Array,
        x_a: Array,
        x_b: Array,
        clusters: Sequence[NDArray[Any]],
        *,
        scope: str,
        queries: int,
        times: Array | None = None,
        apart: bool = True,
    ) -> Precision:
        """Take it from sums per list.

        Parameters
        ----------
        a, b : ndarray
            (L,): rows of each group in each list.
        x_a, x_b : ndarray
            (L,): the sum of their values, between 0 and 1 each.
        clusters : sequence of ndarray
            (L,) codes: lists with the same code may depend on each other. Of several clusterings the least precise
            counts.
        scope : str
            "within" lists, or "pooled".
        queries : int
            The number of queries at hand, those without the groups included.
        times : ndarray, optional
            (L,): for how many lists, all alike, each of the L stands.
        apart : bool
            Whether these are clusters by themselves.

        Returns
        -------
        Precision
            Not precise at all (no degrees of freedom) where a gap cannot be measured.
        """
        times = np.ones(len(a)) if times is None else times
        if scope == "within":
            kept = (a > 0) & (b > 0)
            a, b, x_a, x_b, times = a[kept], b[kept], x_a[kept], x_b[kept], times[kept]
            clusters = [code[kept] for code in clusters]
        rows = float(a @ times), float(b @ times)
        if not min(rows) > 0:
            return cls(queries, 0.0, (np.nan, np.nan), rows, (np.nan, np.nan), np.nan)
        if scope == "within":
            each = a * b / (a + b)
            parts, size = (each * x_a / a, each * x_b / b), each
            total = float(each @ times)
            weights = float((each**2 / a) @ times) / total**2, float((each**2 / b) @ times) / total**2
            rates = float(parts[0] @ times) / total, float(parts[1] @ times) / total
            sizes = (size, size)
        else:
            parts, sizes = (x_a, x_b), (a, b)
            weights = 1 / rows[0], 1 / rows[1]
            rates = float(x_a @ times) / rows[0], float(x_b @ times) / rows[1]
        spreads = [_by_cluster(parts, sizes, rates, code, times, apart=apart) for code in clusters]
        variance = max(spread[0] for spread in spreads)
        freedom = min(spread[1] for spread in spreads)
        plain = sum(weight * rate * (1 - rate) for weight, rate in zip(weights, rates, strict=True))
        seen = [min(rate, 1 - rate) * n for rate, n in zip(rates, rows, strict=True)]
        excess = variance / plain if plain > 0 else 1.0
        return cls(queries, freedom, rates, rows, weights, max(excess, 1.0) if min(seen) < FEW else excess)

    def error(self, gap: float) -> float:
        """Give the standard error when the first group's rate is ahead by ``gap``; NaN where that cannot be."""
        total = self.rows[0] + self.rows[1]
        level = (self.rates[0] * self.rows[0] + self.rates[1] * self.rows[1]) / total
        rates = level + gap * self.rows[1] / total, level - gap * self.rows[0] / total
        if min(rates) < 0:
            rates = (max(gap, 0.0), max(-gap, 0.0))
        elif max(rates) > 1:
            rates = (1 - max(-gap, 0.0), 1 - max(gap, 0.0))
        spread = sum(weight * rate * (1 - rate) for weight, rate in zip(self.weights, rates, strict=True))
        return math.sqrt(max(self.excess * spread, 0.0))

    def power(self, gap: float, queries: float, *, alpha: float = 0.05) -> float:
        """Give the probability that a gap of this size shows in so many queries, in the less favourable direction."""
        return min(self._power(gap, queries, alpha), self._power(-gap, queries, alpha))

    def _power(self, gap: float, queries: float, alpha: float) -> float:
        from scipy.special import stdtrit

        times = queries / self.queries
        freedom = (self.freedom + 1) * times - 1
        if not freedom > 0.5:
            return 0.0
        error = self.error(gap) / math.sqrt(times)
        if not error > 0:
            return 1.0
        limit, shift = float(-stdtrit(freedom, alpha / 2)), abs(gap) / error
        return beyond(freedom, shift, limit)


def _by_cluster(
    parts: tuple[Array, ...],
    sizes: tuple[Array, ...],
    rates: tuple[float, ...],
    code: NDArray[Any],
    times: Array,
    *,
    apart: bool,
) -> tuple[float, float]:
    """The variance of the difference of two rates over clusters, each left out in turn, and its degrees of freedom."""
    index = np.unique(code, return_inverse=True)[1]
    count = index.max(initial=-1) + 1
    moved, spread = np.zeros(count), np.zeros(count)
    alike = apart and count == len(code)  # what an entry stands for are clusters; else lists of one cluster
    inside, clusters = (np.ones(count), times) if alike else (times, np.ones(count))
    for part, size, rate, sign in zip(parts, sizes, rates, (1, -1), strict=True):
        own, total = np.bincount(index, size * inside), size @ times
        rest = total - own
        if not (rest > 0).all():
            return np.inf, 0.0
        moved = moved + sign * (np.bincount(index, part * inside) - rate * own) / rest
        spread = spread + own / total**2
    number = float(clusters @ (spread > 0))
    variance = (number - 1) / number * float((clusters * moved) @ moved)
    return variance, float((clusters @ spread) ** 2 / ((clusters * spread) @ spread)) - 1
