"""The test of a pair of groups given each list's rows and selections: exact, widened where clusters vary more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.inference.clusters import two_way
from evenrank.inference.exact import Law, Margins
from evenrank.inference.lists import Array, Lists
from evenrank.inference.student import NORMAL, deviate, quantile, two_sided


@dataclass(frozen=True)
class Conditional:
    """What the exact law says of the number selected of group a.

    Attributes
    ----------
    p : float
        Blaker's p-value of an odds ratio of 1, widened.
    odds, odds_low, odds_high : float
        The likeliest odds ratio, and its interval.
    low, high : float
        The interval of the difference θ.
    growth : float
        How much more clusters vary than the law says; at least 1.
    freedom : float
        The degrees of freedom of Student's t; infinite where nothing was widened.
    """

    p: float
    odds: float
    odds_low: float
    odds_high: float
    low: float
    high: float
    growth: float
    freedom: float


@dataclass(frozen=True, eq=False)
class _Counted:
    """The lists that bear on the test, their law, and what was observed, counted from the end that is nearer."""

    lists: Lists
    bearing: NDArray[np.bool_]
    margins: Margins
    law: Law
    above: Array
    flipped: bool

    @classmethod
    def of(cls, lists: Lists) -> _Counted | None:
        bearing = lists.variance > 0
        own, other, got, got_other = (x[bearing] for x in (lists.a, lists.b, lists.x_a, lists.x_b))
        least, most = np.maximum(0.0, got - other + got_other), np.minimum(own, got + got_other)
        times = None if lists.times is None else lists.times[bearing]
        flipped = _total(got - least, times) > _total(most - got, times)
        if flipped:
            own, other, got, got_other = other, own, got_other, got
            least = np.maximum(0.0, got - other + got_other)
        margins = Margins.of(own, other, got + got_other, times)
        above = got - least
        law = Law.of(margins, round(_total(above, times)))
        return None if law is None else cls(lists, bearing, margins, law, above, flipped)

    def spread_out(self, values: Array) -> Array:
        """Put one value per bearing list among all lists, (L,); the others get 0."""
        full = np.zeros(len(self.bearing))
        full[self.bearing] = values
        return full

    def growth(self) -> tuple[float, float]:
        """How much more clusters vary than the law says, at the estimate; and the variance that it says.

        A cluster of one list with two possible outcomes varies as its mean says; what can vary more are the others.
        """
        if not 0 < self.law.observed < self.margins.support:
            return 1.0, self.lists.total(self.lists.variance)
        _, mean, variance = self.margins.tilted(self.law.log_odds)
        kind = self.margins.kind
        deviation = self.spread_out(self.above - mean[kind])
        spread = self.spread_out(variance[kind])
        more = self.spread_out((self.margins.size[kind] - 1).astype(np.float64))
        each = []
        for clustering in self.lists.clusterings:
            free = clustering.sums(more) > 1
            count = clustering.count(free)
            moved = clustering.sums(deviation) * free
            bound = clustering.total(clustering.sums(spread) * ~free)
            each.append(bound + count / max(count - 1, 1) * clustering.dot(moved, moved))
        total = self.lists.total(spread)
        return max(1.0, two_way(each) / total), total

    def difference(self, log_odds: float) -> tuple[float, float]:
        """Give the difference θ that an odds ratio means in these lists, and its variance over lists like these."""
        kind, most = self.margins.kind, self.margins.size - 1.0
        plain = self.margins.tilted(0.0)[1]
        mean = (0.0 * most if log_odds < 0 else most) if math.isinf(log_odds) else self.margins.tilted(log_odds)[1]
        excess = self.spread_out((mean - plain)[kind])
        total = self.lists.total(self.lists.weight)
        theta = self.lists.total(excess) / total
        each = []
        for clustering in self.lists.clusterings:
            share = clustering.sums(self.lists.weight) / total
            moved = (clustering.sums(excess) - theta * total * share) / np.maximum(1 - share, 1e-12)
            each.append(clustering.dot(moved, moved) / total**2)
        return theta, two_way(each)


def _total(values: Array, times: Array | None) -> float:
    return float(values.sum() if times is None else values @ times)


def conditional(lists: Lists, *, confidence: float, freedom: float, by_item: tuple[float, float]) -> Conditional | None:
    """Test and estimate by the exact law; None where too much of it would be needed.

    Parameters
    ----------
    lists : Lists
        Whole selections.
    confidence : float
        Of the intervals.
    freedom : float
        The degrees of freedom of the clusters.
    by_item : tuple
        The variance of ΣD over recurring items and its degrees of freedom; 0 where there are none.

    Returns
    -------
    Conditional or None
        The test and its intervals.
    """
    counted = _Counted.of(lists)
    if counted is None:
        return None
    law, margins = counted.law, counted.margins
    growth, spread = counted.growth()
    t = quantile(confidence, freedom)
    if by_item[0] > spread:  # lists and items share rows only, whose variance is that of the law
        growth, freedom = growth + by_item[0] / spread - 1, min(freedom, max(by_item[1], 0.1))
    p, level = float(law.p_values(np.zeros(1))[0]), 1 - confidence
    if growth > 1:
        level = two_sided(math.sqrt(growth) * quantile(confidence, freedom), NORMAL)
        p = two_sided(abs(deviate(p, 1.0)) / math.sqrt(growth), freedom)
    ends = law.limits(level)
    odds = 0.0 if law.observed == 0 else math.inf if law.observed == margins.support else math.exp(law.log_odds)
    above = lists.total(counted.spread_out(counted.above))
    estimate = (above - margins.mean(0.0)) / lists.total(lists.weight)
    limits = []
    for end, sign in zip(ends, (-1, 1), strict=True):
        # an odds ratio fixes the difference in these lists; lists like these would have other rows and selections
        theta, variance = counted.difference(end)
        limits.append(estimate + sign * math.hypot(theta - estimate, t * math.sqrt(variance)))
    low, high = limits
    odds_low, odds_high = (math.exp(end) for end in ends)
    if counted.flipped:
        estimate, low, high = -estimate, -high, -low
        odds, odds_low, odds_high = (math.inf if x == 0 else 1 / x for x in (odds, odds_high, odds_low))
    if p > 1 - confidence:
        low, high, odds_low, odds_high = min(low, 0.0), max(high, 0.0), min(odds_low, 1.0), max(odds_high, 1.0)
    elif estimate < 0:  # the odds ratios that are not rejected may have gaps between them; 1 is not among them
        high, odds_high = min(high, 0.0), min(odds_high, 1.0)
    else:
        low, odds_low = max(low, 0.0), max(odds_low, 1.0)
    return Conditional(
        p=p,
        odds=odds,
        odds_low=odds_low,
        odds_high=odds_high,
        low=max(-1.0, low),
        high=min(1.0, high),
        growth=growth,
        freedom=freedom if growth > 1 else math.inf,
    )
