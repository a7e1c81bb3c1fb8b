"""What people of two groups experience: rates over all lists, their difference and their ratio, robust to clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenrank.inference import score
from evenrank.inference.clusters import Covariance, effective_number
from evenrank.inference.lists import Array, Lists, Residuals
from evenrank.inference.student import deviate, quantile, tail, two_sided

FEW = 20.0  # successes or failures of a group below which clusters are not believed to vary less than a coin
VERY_FEW = 3.0  # successes up to which the score interval of a ratio ends too soon


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


@dataclass(frozen=True, eq=False)
class Pooled:
    """The gap between two groups over all lists.

    Attributes
    ----------
    a, b : Rate
        Each group's counts and rate.
    difference, low, high : float
        a's rate minus b's, and its interval.
    ratio, ratio_low, ratio_high : float
        a's rate to b's, and its interval.
    p : float
        The p-value of equal rates.
    z : float
        The same as a normal deviate, with the difference's sign.
    method : str
        "score t", "score t, few" or "none".
    reason : str
        Why this method, in one sentence; or why nothing can be told.
    freedom : float
        The degrees of freedom of Student's t.
    decidable : bool
        Whether these data could show a gap at all.
    residuals : Residuals
        Each cluster's standardised residual.
    mix_part : float
        The part of the difference that comes from which lists the groups are in, not from within lists.
    """

    a: Rate
    b: Rate
    difference: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p: float
    z: float
    method: str
    reason: str
    freedom: float
    decidable: bool
    residuals: Residuals
    mix_part: float


@dataclass(frozen=True)
class RatioRule:
    """Whether the lower of two rates is at least a given part of the higher.

    Attributes
    ----------
    verdict : str
        "met", "not met" or "cannot be told".
    ratio : float
        The lower rate to the higher.
    p_met, p_not_met : float
        One-sided p-values: small where it is shown to be met, and where it is shown not to be.
    rho : float
        The part that is asked for.
    """

    verdict: str
    ratio: float
    p_met: float
    p_not_met: float
    rho: float


class _Score:
    """The score statistics of a pair of rates."""

    def __init__(self, lists: Lists) -> None:
        self.n = (float(lists.a.sum()), float(lists.b.sum()))
        self.x = (float(lists.x_a.sum()), float(lists.x_b.sum()))
        self.rates = tuple(x / n if n else math.nan for x, n in zip(self.x, self.n, strict=True))
        self.few = min(*self.x, *(n - x for n, x in zip(self.n, self.x, strict=True))) < FEW
        self.clusters: tuple[int, ...] = (0, 0)
        self.freedoms: tuple[float, ...] = (0.0, 0.0)
        self.residuals: tuple[Array, Array] | None = None
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
            count = len(clustering)
            scale = (count - 1) / count
            parts.append((scale * float(of_a @ of_a), scale * float(of_a @ of_b), scale * float(of_b @ of_b)))
            clusters.append(tuple(int((n > 0).sum()) for n in sizes))
            freedoms.append(tuple(effective_number(n) - 1 for n in sizes))
            self.residuals = self.residuals or (of_a, of_b)
        self.covariance = Covariance(parts)
        self.clusters = tuple(map(min, zip(*clusters, strict=True)))
        self.freedoms = tuple(map(min, zip(*freedoms, strict=True)))

    def growth(self, ratio: float) -> float:
        """How much more clusters vary than a coin does, for r_a − ratio · r_b."""
        (r_a, r_b), (n_a, n_b) = self.rates, self.n
        binomial = r_a * (1 - r_a) / n_a + ratio * ratio * r_b * (1 - r_b) / n_b
        growth = self.covariance.of_difference(ratio) / binomial if binomial > 0 else 1.0
        return max(growth, 1.0) if self.few else max(growth, 1e-12)

    def freedom(self, ratio: float) -> float:
        """Satterthwaite's degrees of freedom for r_a − ratio · r_b."""
        var_a, var_b = (max(self.covariance.parts[0][i], 0.0) for i in (0, 2))
        var_b *= ratio * ratio
        if not var_a + var_b > 0:
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


def pooled(lists: Lists, *, confidence: float = 0.95) -> Pooled:
    """Compare two groups' rates over all lists.

    Parameters
    ----------
    lists : Lists
        The counts and sums of the pair.
    confidence : float
        Of the intervals.

    Returns
    -------
    Pooled
        Rates, difference, ratio, their intervals and the p-value.
    """
    scores = _Score(lists)
    r_a, r_b = scores.rates
    own_a, own_b = (_rate(scores, which, confidence) for which in (0, 1))
    gap = r_a - r_b
    n_a, n_b = scores.n
    excess = float(lists.excess.sum())
    ranker = excess * (1 / n_a + 1 / n_b) if n_a and n_b else math.nan
    reason = _cannot_tell(scores)
    first = lists.clusterings[0]
    nothing = Pooled(
        a=own_a,
        b=own_b,
        difference=gap,
        low=-1.0,
        high=1.0,
        ratio=_quotient(r_a, r_b),
        ratio_low=0.0,
        ratio_high=math.inf,
        p=1.0,
        z=0.0,
        method="none",
        reason=reason,
        freedom=0.0,
        decidable=False,
        residuals=Residuals.of(first, np.zeros(len(first))),
        mix_part=gap - ranker,
    )
    if reason or scores.residuals is None:
        return nothing
    freedom = scores.freedom(1.0)
    t = quantile(confidence, freedom)
    low = score.crossing(lambda d: abs(scores.of_difference(d)) - t, gap, -1.0)
    high = score.crossing(lambda d: abs(scores.of_difference(d)) - t, gap, 1.0)
    p = two_sided(scores.of_difference(0.0), freedom)
    ratio_low = _lower_ratio(scores, confidence)
    ratio_high = _inverse(_lower_ratio(_Score(lists.swapped), confidence))
    for rates, (x, n) in ((r_b, (scores.x[0], n_a)), (r_a, (scores.x[1], n_b))):
        if 1 <= x <= VERY_FEW and x / n > rates:
            p = max(p, _poisson_above(x, n * rates))
    return replace(
        nothing,
        low=low,
        high=high,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        p=p,
        z=deviate(p, gap) if p < 1 else 0.0,
        method="score t, few" if scores.few else "score t",
        reason=_reason(scores),
        freedom=freedom,
        decidable=True,
        residuals=Residuals.of(first, scores.residuals[0] - scores.residuals[1]),
    )


def _cannot_tell(scores: _Score) -> str:
    if not min(scores.n):
        return "One of the groups has no rows at stake."
    if min(scores.freedoms) < 0.5:
        return "The rows of one group come from one cluster, and one cluster says nothing about others."
    if sum(scores.x) in (0, sum(scores.n)):
        return "No row is selected." if not sum(scores.x) else "Every row is selected."
    return ""


def _reason(scores: _Score) -> str:
    if scores.few:
        return (
            f"A group has fewer than {FEW:g} successes or failures, so clusters are not taken to vary less than chance."
        )
    return f"The groups are in {scores.clusters[0]} and {scores.clusters[1]} clusters."


def _quotient(top: float, bottom: float) -> float:
    if bottom > 0:
        return top / bottom
    return math.inf if top > 0 else math.nan


def _inverse(x: float) -> float:
    return math.inf if x == 0 else 1 / x


def _rate(scores: _Score, which: int, confidence: float) -> Rate:
    """Give a group's own rate with Wilson's interval from its effective number of rows."""
    n, x, freedom = scores.n[which], scores.x[which], scores.freedoms[which]
    if not n:
        return Rate(0.0, 0.0, math.nan, 0.0, 1.0, 0)
    rate = x / n
    if scores.residuals is None or freedom < 0.5:
        return Rate(n, x, rate, 0.0, 1.0, scores.clusters[which])
    binomial = rate * (1 - rate) / n
    variance = max(part[2 * which] for part in scores.covariance.parts[:2])
    growth = variance / binomial if binomial > 0 else 1.0
    growth = max(growth, 1.0 if min(x, n - x) < FEW else 1e-12)
    t = quantile(confidence, freedom)
    return Rate(n, x, rate, *score.wilson(rate, n / growth, t * t), scores.clusters[which])


def _lower_ratio(scores: _Score, confidence: float) -> float:
    """Give the lower end of the interval of r_a/r_b."""
    (x_a, _), (n_a, _), (r_a, r_b) = scores.x, scores.n, scores.rates
    if not x_a > 0:
        return 0.0

    def beyond(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        return abs(scores.of_ratio(ratio)) - quantile(confidence, scores.freedom(ratio))

    inside = math.log(r_a / r_b) if r_b > 0 else 30.0
    low = math.exp(score.crossing(beyond, inside, min(inside, 0.0) - 30.0))
    if 1 <= x_a <= VERY_FEW and r_b > 0:
        from scipy.special import gammaincinv

        low = min(low, float(gammaincinv(x_a, 1 - confidence)) / (n_a * r_b))
    return low


def _poisson_above(x: float, mean: float) -> float:
    """Give P(X ≥ x) of a Poisson variable."""
    from scipy.special import gammainc

    return float(gammainc(x, mean)) if mean > 0 else 0.0


def ratio_rule(lists: Lists, *, rho: float = 0.8, confidence: float = 0.95) -> RatioRule:
    """Is the lower of two rates at least ``rho`` times the higher? Four fifths are a regulator's rule.

    Parameters
    ----------
    lists : Lists
        The counts and sums of the pair.
    rho : float
        The part that is asked for, between 0 and 1.
    confidence : float
        What either answer needs, each by itself.

    Returns
    -------
    RatioRule
        "met", "not met" or "cannot be told", with both p-values.
    """
    scores = _Score(lists)
    r_a, r_b = scores.rates
    if _cannot_tell(scores):
        ratio = _quotient(min(r_a, r_b), max(r_a, r_b)) if min(scores.n) else math.nan
        return RatioRule("cannot be told", ratio, 1.0, 1.0, rho)
    below, above = zip(*(_one_sided(each, rho) for each in (scores, _Score(lists.swapped))), strict=True)
    p_met, p_not_met = max(above), min(below)
    level = 1 - confidence
    verdict = "met" if p_met <= level else "not met" if p_not_met <= level else "cannot be told"
    return RatioRule(verdict, min(r_a, r_b) / max(r_a, r_b), p_met, p_not_met, rho)


def _one_sided(scores: _Score, rho: float) -> tuple[float, float]:
    """Give the p-values for r_a below and above ``rho`` times r_b."""
    t, freedom = scores.of_ratio(rho), scores.freedom(rho)
    below, above = tail(-t, freedom), tail(t, freedom)
    (x, _), (n, _) = scores.x, scores.n
    expected = n * rho * scores.rates[1]
    if expected < VERY_FEW:
        above = max(above, (_poisson_above(x, expected) + _poisson_above(x + 1, expected)) / 2 if x > 0 else 1.0)
    return below, above


def four_fifths(lists: Lists, *, rho: float = 0.8, confidence: float = 0.95) -> str:
    """Say in words whether the lower rate is at least ``rho`` times the higher: `ratio_rule` has the numbers."""
    return ratio_rule(lists, rho=rho, confidence=confidence).verdict
