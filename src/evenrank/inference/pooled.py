"""What people of two groups experience: rates over all lists, their difference and their ratio, robust to clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenrank.inference import score
from evenrank.inference.lists import ItemSums, Lists, Residuals
from evenrank.inference.rates import FEW, VERY_FEW, PairScore, Rate, poisson_above, quotient
from evenrank.inference.student import deviate, quantile, two_sided


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


def pooled(
    lists: Lists, *, confidence: float = 0.95, items: ItemSums | None = None, scores: PairScore | None = None
) -> Pooled:
    """Compare two groups' rates over all lists.

    Parameters
    ----------
    lists : Lists
        The counts and sums of the pair.
    confidence : float
        Of the intervals.
    items : ItemSums, optional
        Recurring items with their rows and sums, as a second clustering.
    scores : PairScore, optional
        The score statistics of these lists and items, if they are known.

    Returns
    -------
    Pooled
        Rates, difference, ratio, their intervals and the p-value.
    """
    scores = scores or PairScore(lists, items)
    r_a, r_b = scores.rates
    own_a, own_b = (scores.own_rate(which, confidence) for which in (0, 1))
    gap = r_a - r_b
    n_a, n_b = scores.n
    excess = lists.total(lists.excess)
    ranker = excess * (1 / n_a + 1 / n_b) if n_a and n_b else math.nan
    reason = scores.cannot_tell()
    first = lists.clusterings[0]
    nothing = Pooled(
        a=own_a,
        b=own_b,
        difference=gap,
        low=-1.0,
        high=1.0,
        ratio=quotient(r_a, r_b),
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
    ratio_low = scores.lower_ratio(confidence)
    ratio_high = _inverse(scores.swapped.lower_ratio(confidence))
    for x, n, other in ((scores.x[0], n_a, r_b), (scores.x[1], n_b, r_a)):
        if 1 <= x <= VERY_FEW and x / n > other:
            p = max(p, poisson_above(x, n * other))
    if p > 1 - confidence:  # the few successes decide for the difference as well
        low, high = min(low, 0.0), max(high, 0.0)
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
        decidable=not (scores.leaning or scores.alone),
        residuals=Residuals.of(first, scores.residuals[0] - scores.residuals[1]),
    )


def _reason(scores: PairScore) -> str:
    if scores.leaning:
        return (
            f"A group with few successes or failures comes from {scores.leaning} clusters of several lists, "
            "which may lean by themselves."
        )
    if scores.alone:
        return f"One group has only {scores.alone} items that recur, which may differ by themselves."
    if scores.few:
        return (
            f"A group has fewer than {FEW:g} successes or failures, so clusters are not taken to vary less than chance."
        )
    return f"The groups are in {scores.clusters[0]} and {scores.clusters[1]} clusters."


def _inverse(x: float) -> float:
    return math.inf if x == 0 else 1 / x
