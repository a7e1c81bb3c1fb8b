"""Tests of change: spans of windows that end at a look, against the reference, with a level that looks share.

Each look may spend a share 1/looks of the level. It is divided equally among the spans that end there (the last 1, 2,
4, 8 … windows: short ones notice a large change at once, long ones a small one that lasts) and, by Holm's method, among
all gaps and measures watched. So the chance of any false alarm in so many looks is at most the level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.comparison_totals import holm
from evenrank.monitoring.estimates import RATIO, Array, Estimate, over
from evenrank.monitoring.rates import QUOTIENT, SIDES, Rates

SPANS = (1, 2, 4, 8, 16, 32)
FEWEST = 8.0  # bins that must bear on a span, below which it is not tested
FEWEST_LISTS = 15.0  # the same for means and rates, of which nothing is known by chance
STRAIGHT = 1e-4  # skewness below which the normal law is taken


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks at one gap or measure.

    Attributes
    ----------
    p : ndarray
        (T,): the p-value of no change at each look, corrected for its spans; NaN where nothing could be tested.
    span : ndarray
        (T,): the windows of the span that shows most; 0 where there is none.
    change, expected, shown : ndarray
        (T,): over that span, as shown: the change, what the reference would give in these lists, and what there is.
    """

    p: Array
    span: NDArray[np.int64]
    change: Array
    expected: Array
    shown: Array


def looks_of(kind: str, references: list[Array], windows: list[Array], ratio: float = 1.0) -> Looks:
    """Test every look.

    Parameters
    ----------
    kind : str
        As of `Estimate`.
    references : list of ndarray
        (R, bins, …) per clustering: the reference's windows.
    windows : list of ndarray
        (T, bins, …) per clustering: the windows looked at, in order.
    ratio : float
        As of `Estimate`.
    """
    count = len(windows[0])
    tests = [
        _Test(kind, reference.sum(0, keepdims=True), watched, ratio)
        for reference, watched in zip(references, windows, strict=True)
    ]
    p_value, change_of, expected, shown_at = (np.full(count, np.nan) for _ in range(4))
    best = Looks(p_value, np.zeros(count, np.int64), change_of, expected, shown_at)
    spans = np.zeros(count)
    for span in SPANS:
        if span > count:
            break
        at = slice(span - 1, count)
        spans[at] += 1
        results = [test.p_values(span) for test in tests]
        p = np.max([result[0] for result in results], axis=0)  # NaN in one clustering is NaN
        segment, both = results[0][1:]
        better = np.flatnonzero(np.nan_to_num(p, nan=2.0) < np.nan_to_num(best.p[at], nan=1.5))
        place = better + span - 1
        best.p[place], best.span[place] = p[better], span
        shown = segment.shown
        expected = both.expected(segment)
        best.shown[place], best.change[place] = shown[better], (shown - expected)[better]
        best.expected[place] = expected[better]
    return Looks(np.minimum(1.0, best.p * spans), best.span, best.change, best.expected, best.shown)


def estimate_of(kind: str, sums: Array, ratio: float = 1.0) -> Estimate:
    """Make the estimate of a kind of question."""
    return (Rates if kind in SIDES else Estimate)(kind, sums, ratio)


class _Test:
    """Spans of windows against the reference, by one clustering."""

    def __init__(self, kind: str, reference: Array, windows: Array, ratio: float) -> None:
        self.kind, self.ratio = kind, ratio
        own = np.ascontiguousarray(np.moveaxis(reference, -1, 0))
        self.reference = estimate_of(kind, np.moveaxis(own, 0, -1), ratio)
        columns = np.moveaxis(windows, -1, 0)  # one after the other in memory, as they are worked on
        self.cumulated = np.zeros((len(columns), len(windows) + 1, windows.shape[1]))
        np.cumsum(columns, axis=1, out=self.cumulated[:, 1:])
        self.single = compared(self.segments(1), self.reference)
        self.growth, self.freedom = self._growth(self.single)

    def segments(self, span: int) -> Estimate:
        """The sums of each span of so many windows."""
        sums = self.cumulated[:, span:] - self.cumulated[:, :-span]
        return estimate_of(self.kind, np.moveaxis(sums, 0, -1), self.ratio)

    def _growth(self, single: Compared) -> tuple[Array, Array]:
        """How much more bins vary than by chance, from all windows up to each look, and its degrees of freedom."""
        alone = self.reference.at_one_mix(self.reference)[0] if self.kind in SIDES else self.reference
        squares = np.concatenate([(alone.moves(0.5) ** 2).sum(-1), (single.moves(0.5) ** 2).sum(-1)])
        by_chance = np.concatenate([alone.by_chance(alone, seen=True), single.by_chance(seen=True)])
        ratios = np.divide(squares, by_chance, out=np.full(len(squares), np.nan), where=by_chance > 0)
        each = [estimate.number - estimate.means for estimate in (alone, single.own)]
        weights = np.maximum(np.concatenate(each), 0)
        weights = np.where(np.isfinite(ratios), weights, 0)
        total = np.cumsum(weights)[1:]
        growth = np.cumsum(weights * np.nan_to_num(ratios))[1:] / np.maximum(total, 1e-300)
        return growth, total

    def p_values(self, span: int) -> tuple[Array, Estimate, Compared]:
        """The p-value of no change in each span, (T − span + 1,), the spans, and how they compare.

        It is two-sided, and NaN where there is too little.
        """
        segment = self.segments(span)
        both = self.single if span == 1 else compared(segment, self.reference)
        at = slice(span - 1, None)
        few = segment.few | self.reference.few
        growth = np.where(few, np.maximum(self.growth[at], 1.0), self.growth[at])
        moves = both.moves(1.0)
        variance = np.maximum((moves**2).sum(-1), growth * both.by_chance())
        number = np.minimum(both.own.number, both.base.number)
        enough = number >= (FEWEST_LISTS if self.kind in SIDES else FEWEST)
        tested = enough & (variance > 0) & np.isfinite(both.change)
        variance = np.where(tested, variance, 1.0)
        z = np.where(tested, both.change, 0.0) / np.sqrt(variance)
        skewness = np.nan_to_num((moves**3).sum(-1) / variance**1.5)
        return np.where(tested, two_sided(z, skewness, self.freedom[at]), np.nan), segment, both


@dataclass(frozen=True, eq=False)
class Compared:
    """Spans and the reference, weighed alike; the change of each, and the factor that the reference counts with."""

    own: Estimate
    base: Estimate
    change: Array
    factor: Array

    def moves(self, power: float) -> Array:
        """How far each bin moved the change, (s, bins)."""
        return self.own.moves(power) - self.factor[:, None] * self.base.moves(power)

    def expected(self, segment: Estimate) -> Array:
        """What the reference would give in the lists of each span, as shown, (s,)."""
        if segment.kind == RATIO:
            return np.full(len(self.change), float(segment.ratio))
        if segment.kind == QUOTIENT:
            return segment.shown * over(self.base.shown, self.own.shown)
        return segment.shown - self.change * segment.scale

    def by_chance(self, *, seen: bool = False) -> Array:
        """The variance of the change by chance, (s,); ``seen`` as of `Estimate.by_chance`."""
        return self.own.by_chance(self.base, seen=seen) + self.factor**2 * self.base.by_chance(self.base, seen=seen)


def compared(segment: Estimate, reference: Estimate) -> Compared:
    """Compare spans of windows with the reference.

    Parameters
    ----------
    segment : Estimate
        The spans, (s, bins, …).
    reference : Estimate
        The reference, (1, bins, …).
    """
    own, base = segment.at_one_mix(reference)
    factor = np.ones(len(segment.sums))
    change = own.value - base.value
    if segment.kind in (RATIO, QUOTIENT):  # the reference's own r_a − ratio · r_b is 0; it counts by r_b of the span
        change, factor = own.value, np.nan_to_num(base.scale / own.scale)
    return Compared(own, base, change, factor)


def two_sided(z: Array, skewness: Array, freedom: Array) -> Array:
    """The two-sided p-value of a standardised sum, from its skewness and its variance's degrees of freedom.

    The law is Pearson's third: a gamma variable, moved and scaled to mean 0, variance 1 and the skewness. Then the
    normal deviate of that p-value is taken for Student's t.

    Parameters
    ----------
    z, skewness, freedom : ndarray
        (s,) each.
    """
    from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

    turned = np.where(skewness < 0, -z, z)
    size = np.clip(np.abs(skewness), STRAIGHT, 2.0)
    shape = 4 / size**2
    at = np.maximum(shape + turned * np.sqrt(shape), 0.0)
    straight = np.abs(skewness) <= STRAIGHT
    upper = np.where(straight, ndtr(-turned), gammaincc(shape, at))
    lower = np.where(straight, ndtr(turned), gammainc(shape, at))
    tail = np.clip(np.minimum(upper, lower), 1e-300, 0.5)
    return np.asarray(np.minimum(1.0, 2 * stdtr(np.maximum(freedom, 1.0), ndtri(tail))))


def corrected(p: Array, looks: int) -> Array:
    """Correct p-values, (questions, T), for the questions of each look by Holm's method, and for so many looks.

    Parameters
    ----------
    p : ndarray
        (questions, T); NaN where nothing was tested.
    looks : int
        The number of looks that share the level.
    """
    out = np.full(p.shape, np.nan)
    for t in range(p.shape[1]):
        out[:, t] = np.minimum(1.0, holm(p[:, t]) * looks)
    return out


__all__ = ["SPANS", "Looks", "compared", "corrected", "estimate_of", "looks_of", "two_sided"]
