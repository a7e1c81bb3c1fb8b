"""Student's t, the normal and p-values as normal deviates, without underflow where it can be helped."""

from __future__ import annotations

import math

LARGEST = 38.0  # the normal deviate of the smallest p-value that a float can hold
NORMAL = 1e9  # degrees of freedom from which Student's t is the normal


def quantile(confidence: float, freedom: float) -> float:
    """Give the number that |t| stays below with the given confidence."""
    from scipy.special import ndtri, stdtrit

    upper = (1 + confidence) / 2
    return float(ndtri(upper) if freedom >= NORMAL else stdtrit(freedom, upper))


def tail(t: float, freedom: float) -> float:
    """Give P(T > t)."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t) if freedom >= NORMAL else stdtr(freedom, -t))


def two_sided(t: float, freedom: float) -> float:
    """Give P(|T| > |t|)."""
    return min(1.0, 2 * tail(abs(t), freedom))


def deviate(p: float, sign: float) -> float:
    """Write a two-sided p-value as a normal deviate with the given sign."""
    from scipy.special import ndtri

    if not p > 0:
        return math.copysign(LARGEST, sign)
    return math.copysign(min(LARGEST, float(-ndtri(p / 2)) + 0.0), sign)
