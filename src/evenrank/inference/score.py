"""Score intervals of one rate, a difference and a ratio of two, with variances that clusters multiply.

The rates are constrained as Miettinen and Nurminen (difference) and Koopman (ratio) do, so that an interval from 0 of n
has a width; the binomial variance under the constraint is multiplied by how much more clusters vary than it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable

HUGE = 1e6  # a statistic that stands for infinity


def wilson(rate: float, number: float, t_squared: float) -> tuple[float, float]:
    """Give Wilson's limits of a rate from an effective number of rows."""
    if not math.isfinite(t_squared):
        return 0.0, 1.0
    centre = (rate + t_squared / (2 * number)) / (1 + t_squared / number)
    inside = rate * (1 - rate) / number + t_squared / (4 * number * number)
    half = math.sqrt(t_squared * max(0.0, inside)) / (1 + t_squared / number)
    low = 0.0 if rate <= 0 else max(0.0, centre - half)
    high = 1.0 if rate >= 1 else min(1.0, centre + half)
    return low, high


def with_difference(x_a: float, n_a: float, x_b: float, n_b: float, difference: float) -> tuple[float, float]:
    """Give the likeliest two rates with the given difference: the root of the cubic of Miettinen and Nurminen."""
    n = n_a + n_b
    quadratic = (n_a + 2 * n_b) * difference - n - x_a - x_b
    linear = (n_b * difference - n - 2 * x_b) * difference + x_a + x_b
    constant = x_b * difference * (1 - difference)
    third = quadratic / (3 * n)
    v = third**3 - quadratic * linear / (6 * n * n) + constant / (2 * n)
    u = math.copysign(math.sqrt(max(0.0, third * third - linear / (3 * n))), v)
    cosine = v / u**3 if u else 0.0
    angle = (math.pi + math.acos(min(1.0, max(-1.0, cosine)))) / 3
    rate_b = 2 * u * math.cos(angle) - third
    rate_b = min(max(rate_b, 0.0, -difference), 1.0, 1 - difference)
    return min(1.0, max(0.0, rate_b + difference)), rate_b


def with_ratio(x_a: float, n_a: float, x_b: float, n_b: float, ratio: float) -> tuple[float, float]:
    """Give the likeliest two rates whose ratio, a's to b's, is the given one: the root of Koopman's quadratic."""
    n = n_a + n_b
    square = n * ratio
    linear = n_a * ratio + x_a + n_b + x_b * ratio
    constant = x_a + x_b
    root = math.sqrt(max(0.0, linear * linear - 4 * square * constant))
    rate_b = 2 * constant / (linear + root)  # the smaller root, written without cancellation
    rate_b = min(rate_b, 1.0, 1 / ratio if ratio > 0 else 1.0)
    return ratio * rate_b, rate_b


def crossing(statistic: Callable[[float], float], inside: float, outside: float) -> float:
    """Find where ``statistic`` turns from at most 0 at ``inside`` to above 0 at ``outside`` (Chandrupatla's method)."""
    x, at_x = outside, statistic(outside)
    if at_x <= 0:
        return outside
    other, at_other = inside, min(statistic(inside), 0.0)
    share = 0.5
    for _ in range(100):
        tried = x + share * (other - x)
        at_tried = min(max(statistic(tried), -HUGE), HUGE)
        if (at_tried > 0) == (at_x > 0):
            third, at_third = x, at_x
        else:
            third, at_third = other, at_other
            other, at_other = x, at_x
        x, at_x = tried, at_tried
        smallest = 1e-11 * max(1.0, abs(x)) / abs(other - x) if other != x else 1.0
        if smallest > 0.5 or at_x == 0:
            break
        place, height = (x - other) / (third - other), (at_x - at_other) / (at_third - at_other)
        share = 0.5
        if height**2 < place and (1 - height) ** 2 < 1 - place:  # an inverse parabola through the three stays between
            share = at_x / (at_other - at_x) * at_third / (at_other - at_third) + (third - x) / (other - x) * at_x / (
                at_third - at_x
            ) * at_other / (at_third - at_other)
        share = min(1 - smallest, max(smallest, share))
    return x
