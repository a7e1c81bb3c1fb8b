"""The score statistics of a pair of rates, robust to clusters, and the interval of each rate by itself."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.inference import score
from evenrank.inference.clusters import (
    Covariance,
    few_items,
    few_leaning,
    item_variances,
    size_freedom,
    two_way,
)
from evenrank.inference.lists import Array, ItemSums, Lists
from evenrank.inference.student import quantile

FEW = 20.0  # successes or failures of a group below which clusters are not believed to vary less than a coin
VERY_FEW = 3.0  # successes up to which the score interval of a ratio ends too soon
LEAST_GROWTH = 1e-12  # of clusters that do not vary at all, but for rounding

Part = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Rate:
    """The rate of one group.

    Attributes
    ----------
    rows : float
        The rows of the group.
    successes : float
        Their sum of x.
    rate, low, high : float
        Successes per row, and its score interval.
    clusters : int
        The clusters that hold a row of the group.
    """

    rows: float
    successes: float
    rate: float
    low: float
    high: float
    clusters: int


class PairScore:
    """The score statistics of a pair of rates."""

    def __init__(self, lists: Lists, items: ItemSums | None = None) -> None:
        self.n = (lists.total(lists.a), lists.total(lists.b))
        self.x = (lists.total(lists.x_a), lists.total(lists.x_b))
        self.rates = tuple(x / n if n else math.nan for x, n in zip(self.x, self.n, strict=True))
        self.few = min(*self.x, *(n - x for n, x in zip(self.n, self.x, strict=True))) < FEW
        self.clusters: tuple[int, ...] = (0, 0)
        self.freedoms: tuple[float, ...] = (0.0, 0.0)
        self.residuals: tuple[Array, Array] | None = None
        self.leaning = self.alone = 0  # the clusters, and the items, that are too few
        if not min(self.n):
            return
        parts, clusters, freedoms = [], [], []
        for clustering in lists.clusterings:
            sizes = [clustering.sums(n) for n in (lists.a, lists.b)]
            sums = [clustering.sums(x) for x in (lists.x_a, lists.x_b)]
            of_a, of_b = (
                (x - rate * n) / np.maximum(total - n, 1e-9 * total)
                for x, n, rate, total in zip(sums, sizes, self.rates, self.n, strict=True)
            )
            count = clustering.number
            scale = (count - 1) / count
            parts.append(clustering.products(of_a, of_b, scale))
            clusters.append(tuple(clustering.count(n > 0) for n in sizes))
            freedoms.append(
                tuple(
                    size_freedom(n, x - rate * n, max(rate * (1 - rate), 1e-6), clustering.times)
                    for x, n, rate in zip(sums, sizes, self.rates, strict=True)
                )
            )
            self.residuals = self.residuals or (of_a, of_b)
        if items is not None and items.rows is not None and items.sums is not None:
            parts, freedom = self._with_items(items.is_a, items.rows, items.sums, parts)
            freedoms.append(freedom)
            for own, n in zip((items.is_a, ~items.is_a), self.n, strict=True):
                self.alone = self.alone or few_items(items.rows[own], n)
        for n, x, rows in zip(self.n, self.x, (lists.a, lists.b), strict=True):
            if min(x, n - x) < FEW:
                self.leaning = self.leaning or few_leaning(lists.clusterings, rows)
        self.covariance = Covariance(parts)
        self.clusters = tuple(map(min, zip(*clusters, strict=True)))
        self.freedoms = tuple(map(min, zip(*freedoms, strict=True)))

    def _with_items(
        self, is_a: NDArray[np.bool_], rows: Array, sums: Array, parts: list[Part]
    ) -> tuple[list[Part], tuple[float, ...]]:
        """Add items as a second clustering: lists and items share no more than rows, which vary as coins do."""
        widest = max(parts[:2], key=lambda part: part[0] - 2 * part[1] + part[2])
        rate, n = (np.where(is_a, *both) for both in (self.rates, self.n))
        squares = item_variances(sums - rate * rows, 1 / n, np.maximum(1 - rows / n, 1e-9), rows, is_a)
        counts = int(is_a.sum()), int((~is_a).sum())
        by_item = [(count - 1) / max(count, 1) * total for count, (total, _) in zip(counts, squares, strict=True)]
        by_row = [rate * (1 - rate) / n for rate, n in zip(self.rates, self.n, strict=True)]
        return [widest, (by_item[0], 0.0, by_item[1]), (by_row[0], 0.0, by_row[1])], tuple(
            freedom for _, freedom in squares
        )

    @property
    def swapped(self) -> PairScore:
        """The same pair in the other order."""
        other = copy(self)
        for name in ("n", "x", "rates", "clusters", "freedoms", "residuals"):
            setattr(other, name, (getattr(self, name) or ())[::-1] or None)
        other.covariance = Covariance([part[::-1] for part in self.covariance.parts])
        return other

    def growth(self, ratio: float) -> float:
        """How much more clusters vary than a coin does, for r_a − ratio · r_b."""
        binomial = self._binomial(ratio)
        growth = self.covariance.of_difference(ratio) / binomial if binomial > 0 else 1.0
        return max(growth, 1.0) if self.few else max(growth, LEAST_GROWTH)

    def _binomial(self, ratio: float) -> float:
        """The variance of r_a − ratio · r_b, were every row a coin of its own."""
        (r_a, r_b), (n_a, n_b) = self.rates, self.n
        return r_a * (1 - r_a) / n_a + ratio * ratio * r_b * (1 - r_b) / n_b

    def freedom(self, ratio: float) -> float:
        """Satterthwaite's degrees of freedom for r_a − ratio · r_b."""
        var_a, var_b = (two_way([part[i] for part in self.covariance.parts]) for i in (0, 2))
        var_b *= ratio * ratio
        if not var_a + var_b > LEAST_GROWTH * self._binomial(ratio):
            # Rounding errors are no variances to weigh the groups by.
            return max(min(self.freedoms), 1e-3)
        below = sum(v * v / max(f, 1e-3) for v, f in zip((var_a, var_b), self.freedoms, strict=True))
        return (var_a + var_b) ** 2 / below

    def of_difference(self, difference: float) -> float:
        """The score statistic, as t, of r_a − r_b being the given difference."""
        (x_a, x_b), (n_a, n_b) = self.x, self.n
        at = score.with_difference(x_a, n_a, x_b, n_b, difference)
        return self._over(self.rates[0] - self.rates[1] - difference, at, 1.0)

    def of_ratio(self, ratio: float) -> float:
        """The score statistic, as t, of r_a being ``ratio`` times r_b."""
        (x_a, x_b), (n_a, n_b) = self.x, self.n
        at = score.with_ratio(x_a, n_a, x_b, n_b, ratio)
        return self._over(self.rates[0] - ratio * self.rates[1], at, ratio)

    def _over(self, distance: float, at: tuple[float, float], ratio: float) -> float:
        (p_a, p_b), (n_a, n_b) = at, self.n
        binomial = (p_a * (1 - p_a) / n_a + ratio * ratio * p_b * (1 - p_b) / n_b) * (n_a + n_b) / (n_a + n_b - 1)
        error = math.sqrt(max(0.0, binomial) * self.growth(ratio))
        if error > 0:
            return distance / error
        return math.copysign(math.inf, distance) if distance else 0.0

    def cannot_tell(self) -> str:
        """Say why there is nothing to compare, or nothing."""
        if not min(self.n):
            return "One of the groups has no rows at stake."
        if min(self.freedoms) < 0.5:
            return "The rows of one group come from one query or cluster, and one says nothing about others."
        if sum(self.x) in (0, sum(self.n)):
            return "No row is selected." if not sum(self.x) else "Every row is selected."
        return ""

    def own_rate(self, which: int, confidence: float) -> Rate:
        """Give a group's own rate with Wilson's interval from its effective number of rows."""
        n, x, freedom = self.n[which], self.x[which], self.freedoms[which]
        if not n:
            return Rate(0.0, 0.0, math.nan, 0.0, 1.0, 0)
        rate = x / n
        if self.residuals is None or freedom < 0.5:
            return Rate(n, x, rate, 0.0, 1.0, self.clusters[which])
        binomial = rate * (1 - rate) / n
        variance = two_way([part[2 * which] for part in self.covariance.parts])
        growth = variance / binomial if binomial > 0 else 1.0
        growth = max(growth, 1.0 if min(x, n - x) < FEW else LEAST_GROWTH)
        t = quantile(confidence, freedom)
        return Rate(n, x, rate, *score.wilson(rate, n / growth, t * t), self.clusters[which])

    def lower_ratio(self, confidence: float) -> float:
        """Give the lower end of the interval of r_a/r_b."""
        (x_a, _), (n_a, _), (r_a, r_b) = self.x, self.n, self.rates
        if not x_a > 0:
            return 0.0

        def beyond(log_ratio: float) -> float:
            ratio = math.exp(log_ratio)
            return abs(self.of_ratio(ratio)) - quantile(confidence, self.freedom(ratio))

        inside = math.log(r_a / r_b) if r_b > 0 else 30.0
        low = math.exp(score.crossing(beyond, inside, min(inside, 0.0) - 30.0))
        if 1 <= x_a <= VERY_FEW and r_b > 0:
            from scipy.special import gammaincinv

            low = min(low, float(gammaincinv(x_a, 1 - confidence)) / (n_a * r_b))
        return low


def quotient(top: float, bottom: float) -> float:
    if bottom > 0:
        return top / bottom
    return math.inf if top > 0 else math.nan


def poisson_above(x: float, mean: float) -> float:
    """Give P(X ≥ x) of a Poisson variable."""
    from scipy.special import gammainc

    return float(gammainc(x, mean)) if mean > 0 else 0.0
