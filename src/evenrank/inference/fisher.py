"""Two rates of independent decisions: Fisher's exact test, and their difference in standard deviations."""

from __future__ import annotations

import math

import numpy as np

TIES = 1e-7  # outcomes whose probabilities differ by less, relatively, are equally likely but for rounding


def fisher(x_a: int, n_a: int, x_b: int, n_b: int) -> float:
    """Test whether two rates differ, given how many are selected in all: Fisher's exact test, two-sided.

    Parameters
    ----------
    x_a, n_a, x_b, n_b : int
        Those selected and the number of each group.

    Returns
    -------
    float
        The probability of outcomes that are no likelier than this one; 1 if a group is empty.

    Examples
    --------
    >>> round(fisher(1, 10, 8, 10), 6)  # 2 * (10 * 45 + 10) / 167960: one or none of 9, either way
    0.005477
    """
    from scipy.special import gammaln

    selected = x_a + x_b
    least, most = max(0, selected - n_b), min(n_a, selected)
    x = np.arange(least, most + 1)

    # of a's n choose x and of b's n choose the rest, up to a factor that all outcomes share
    log_p = -(gammaln(x + 1) + gammaln(n_a - x + 1) + gammaln(selected - x + 1) + gammaln(n_b - selected + x + 1))
    p = np.exp(log_p - log_p.max())
    return float(min(1.0, p[p <= p[x_a - least] * (1 + TIES)].sum() / p.sum()))


def standard_deviations(x_a: float, n_a: float, x_b: float, n_b: float) -> float:
    """Give the difference of two rates, the first minus the second, in standard deviations of equal rates.

    Parameters
    ----------
    x_a, n_a, x_b, n_b : float
        Those selected and the number of each group.

    Returns
    -------
    float
        0 if none or all of both are selected.

    Examples
    --------
    >>> standard_deviations(30, 100, 50, 100)  # (0.3 - 0.5) / sqrt(0.4 * 0.6 * (1/100 + 1/100))
    -2.886751345948129
    """
    rate = (x_a + x_b) / (n_a + n_b)
    spread = math.sqrt(max(0.0, rate * (1 - rate)) * (1 / n_a + 1 / n_b))
    return (x_a / n_a - x_b / n_b) / spread if spread > 0 else 0.0
