"""Intervals of gaps and rates from the tests of pairs of groups, each by its own data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.audits.pair import Pair
from evenrank.audits.pairs import Tests
from evenrank.confidence import Interval, interval_of
from evenrank.measures import MeasureAt
from evenrank.statistic import Statistic

# The pairs whose largest difference makes a gap, stratum by stratum.
MEASURES_OF = {"equalized_odds": ("equalized_odds", "equal_opportunity")}
OF_STRATUM = {
    "all rows": "demographic_parity",
    "relevant rows": "equal_opportunity",
    "irrelevant rows": "equalized_odds",
}


@dataclass(frozen=True, eq=False)
class TestedGaps:
    """Intervals from the tests of pairs.

    Attributes
    ----------
    tests : Tests
        The pairs, and their intervals at the confidence that holds for all pairs of a gap at once.
    confidence : float
        Of the intervals.
    """

    tests: Tests
    confidence: float

    def interval(self, stat: Statistic, *, largest: bool, seed: int) -> Interval:
        """Give the interval of a measure.

        A gap is the largest pair of each stratum, averaged over the strata; its ends are those of the pairs, widened so
        that all of them hold at once. The mean over pairs, and quality, take each query's influence.

        Parameters
        ----------
        stat : Statistic
            The measure.
        largest : bool
            Whether it is the largest pair, or the only one.
        seed : int
            Seeds the draws for a mean over pairs.
        """
        measure, k = MeasureAt.of(stat.name)
        if stat.kind == "mean" or (stat.kind == "gap" and not largest):
            return interval_of(stat, None, confidence=self.confidence, seed=seed)
        estimate = float(stat.value(stat.estimates)) if np.isfinite(stat.estimates).all() and stat.queries else np.nan
        names = MEASURES_OF.get(measure, ("demographic_parity" if stat.kind == "ratio" else measure,))
        low, high = np.nan, np.nan
        if not np.isnan(estimate):
            ends = [self._ends(name, k, ratio=stat.kind == "ratio") for name in names]
            low, high = np.mean(ends, axis=0).tolist()
            low, high = min(low, estimate), max(high, estimate)
        return Interval(stat.name, estimate, low, high, self.confidence, "analytic", stat.queries)

    def _pairs(self, measure: str, k: int | None) -> list[Pair]:
        return self.tests.by_measure.get((measure, k), [])

    def _ends(self, measure: str, k: int | None, *, ratio: bool) -> tuple[float, float]:
        """The ends of the largest difference, or of the lowest ratio, over the pairs of a stratum."""
        ends = []
        for pair in self._pairs(measure, k):
            if not (pair.count_a and pair.count_b):
                continue
            low, high, ratio_low, ratio_high = self.tests.ends(pair)
            if ratio:
                # The lower rate over the higher: whichever of the two it may be.
                either_way = ratio_low <= 1 <= ratio_high
                highest = 1.0 if either_way else min(ratio_high, _inverse(ratio_low))
                ends.append((min(ratio_low, _inverse(ratio_high)), highest))
            else:
                ends.append(folded(low, high))
        if not ends:
            return 0.0, 1.0
        best = np.min(ends, axis=0) if ratio else np.max(ends, axis=0)
        return float(best[0]), float(best[1])

    def shown(self, measure: str, stratum: str, k: int) -> tuple[str, str] | None:
        """Name the group ahead and the one behind of the pair whose pooled gap is shown to be the largest, if any is.

        A small group may have the highest rate and show nothing.
        """
        name = measure if measure == "exposure_gap" else OF_STRATUM[stratum]
        least, names = 0.0, None
        for pair in self._pairs(name, k):
            low = folded(*self.tests.ends(pair)[:2])[0] if pair.pooled.decidable else 0.0
            if low > least:
                least, names = low, pair.favoured("pooled")
        return names

    def rate(self, stat: Statistic, stratum: str, group: str, k: int) -> Interval:
        """Give the interval of a group's rate in a stratum."""
        known = self.tests.rates.get((OF_STRATUM[stratum], k, group))
        if known is None or not known.rows:
            return interval_of(stat, None, confidence=self.confidence)
        return Interval(stat.name, known.rate, known.low, known.high, self.confidence, "analytic", known.clusters)


def folded(low: float, high: float) -> tuple[float, float]:
    """Turn the interval of a signed difference into that of its size.

    >>> folded(-0.1, 0.3), folded(-0.3, -0.1)
    ((0.0, 0.3), (0.1, 0.3))
    """
    if low > 0:
        return low, high
    return (-high, -low) if high < 0 else (0.0, max(-low, high))


def _inverse(value: float) -> float:
    return float("inf") if value == 0 else 1 / value
