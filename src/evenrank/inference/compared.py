"""Two rankers of the same lists: the change of a gap, with its sign and without."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenrank.inference.lists import Array
from evenrank.inference.student import quantile, two_sided


@dataclass(frozen=True)
class Compared:
    """How the gap of ranker B differs from that of ranker A.

    Attributes
    ----------
    difference, low, high, p : float
        B's gap minus A's, its interval, and the p-value of no difference.
    change, change_low, change_high, change_p : float
        The same for the absolute gaps: |B's gap| − |A's gap|. The interval holds 0 exactly when the p-value is above 1
        minus the confidence.
    freedom : float
        The degrees of freedom of Student's t.
    decidable : bool
        Whether there are at least two clusters that bear on it.
    """

    difference: float
    low: float
    high: float
    p: float
    change: float
    change_low: float
    change_high: float
    change_p: float
    freedom: float
    decidable: bool


def compared(
    gap_a: float, influence_a: Array, gap_b: float, influence_b: Array, *, confidence: float = 0.95
) -> Compared:
    """Compare two gaps measured on the same clusters.

    With δ = gap_b − gap_a and σ = gap_b + gap_a, |gap_b| − |gap_a| = sign(δσ) · min(|δ|, |σ|): it is 0 exactly where δ
    or σ is. So both are tested, and its interval is the range of that function over the intervals of δ and σ.

    Parameters
    ----------
    gap_a, gap_b : float
        The two gaps, with their signs.
    influence_a, influence_b : ndarray
        (C,): how far each cluster moved each gap; their sums are near 0.
    confidence : float
        Of the intervals.

    Returns
    -------
    Compared
        The change of the signed and of the absolute gap.

    Examples
    --------
    >>> import numpy as np
    >>> moved = np.array([0.01, -0.01, 0.02, -0.02])
    >>> swap = compared(0.2, moved, -0.2, moved[::-1])
    >>> swap.p < 0.05, swap.change, swap.change_p
    (True, 0.0, 1.0)
    """
    bearing = int(((influence_a != 0) | (influence_b != 0)).sum())
    difference, total = gap_b - gap_a, gap_b + gap_a
    change = abs(gap_b) - abs(gap_a)
    if bearing < 2:
        unknown = (-math.inf, math.inf, 1.0)
        return Compared(difference, *unknown, change, *unknown, 0.0, False)
    freedom = float(bearing - 1)
    low, high, p = _by_t(difference, influence_b - influence_a, freedom, confidence)
    sum_low, sum_high, sum_p = _by_t(total, influence_b + influence_a, freedom, confidence)
    # monotone in each of the two, so its range is that of the corners
    corners = [_change(d, s) for d in (low, high) for s in (sum_low, sum_high)]
    return Compared(difference, low, high, p, change, min(corners), max(corners), max(p, sum_p), freedom, True)


def _change(difference: float, total: float) -> float:
    return math.copysign(min(abs(difference), abs(total)), difference * total)


def _by_t(estimate: float, influence: Array, freedom: float, confidence: float) -> tuple[float, float, float]:
    """Give the interval and the p-value of an estimate by Student's t."""
    error = math.sqrt((freedom + 1) / freedom * float(influence @ influence))
    if not error > 0:
        return estimate, estimate, 1.0 if estimate == 0 else 0.0
    half = quantile(confidence, freedom) * error
    return estimate - half, estimate + half, two_sided(estimate / error, freedom)
