"""Is the lower of two rates at least a given part of the higher? The four-fifths rule, with what can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenrank.inference.lists import ItemSums, Lists
from evenrank.inference.rates import VERY_FEW, PairScore, poisson_above, quotient
from evenrank.inference.student import tail


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


def ratio_rule(
    lists: Lists,
    *,
    rho: float = 0.8,
    confidence: float = 0.95,
    items: ItemSums | None = None,
    scores: PairScore | None = None,
) -> RatioRule:
    """Is the lower of two rates at least ``rho`` times the higher? Four fifths are a regulator's rule.

    Parameters
    ----------
    lists : Lists
        The counts and sums of the pair.
    rho : float
        The part that is asked for, between 0 and 1.
    confidence : float
        What either answer needs, each by itself.
    items : ItemSums, optional
        Recurring items with their rows and sums, as a second clustering.
    scores : PairScore, optional
        The score statistics of these lists and items, if they are known.

    Returns
    -------
    RatioRule
        "met", "not met" or "cannot be told", with both p-values.
    """
    scores = scores or PairScore(lists, items)
    r_a, r_b = scores.rates
    if scores.cannot_tell() or scores.leaning or scores.alone:
        ratio = quotient(min(r_a, r_b), max(r_a, r_b)) if min(scores.n) else math.nan
        return RatioRule("cannot be told", ratio, 1.0, 1.0, rho)
    below, above = zip(*(_one_sided(each, rho) for each in (scores, scores.swapped)), strict=True)
    p_met, p_not_met = max(above), min(below)
    level = 1 - confidence
    verdict = "met" if p_met <= level else "not met" if p_not_met <= level else "cannot be told"
    return RatioRule(verdict, min(r_a, r_b) / max(r_a, r_b), p_met, p_not_met, rho)


def _one_sided(scores: PairScore, rho: float) -> tuple[float, float]:
    """Give the p-values for r_a below and above ``rho`` times r_b."""
    t, freedom = scores.of_ratio(rho), scores.freedom(rho)
    below, above = tail(-t, freedom), tail(t, freedom)
    (x, _), (n, _) = scores.x, scores.n
    expected = n * rho * scores.rates[1]
    if expected < VERY_FEW:
        above = max(above, (poisson_above(x, expected) + poisson_above(x + 1, expected)) / 2 if x > 0 else 1.0)
    return below, above


def four_fifths(lists: Lists, *, rho: float = 0.8, confidence: float = 0.95, items: ItemSums | None = None) -> str:
    """Say in words whether the lower rate is at least ``rho`` times the higher: `ratio_rule` has the numbers."""
    return ratio_rule(lists, rho=rho, confidence=confidence, items=items).verdict
