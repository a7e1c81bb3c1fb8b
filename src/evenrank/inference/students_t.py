"""The power of t-tests."""

from __future__ import annotations

import math

import numpy as np

FAR = 30.0  # a shift beyond which scipy's sum is not exact


def beyond(freedom: float, shift: float, limit: float) -> float:
    """Give the probability that Student's t with a shift is beyond ± the limit.

    scipy's sum is NaN for many small probabilities of the far side, elsewhere on every processor, and is not made for
    large shifts. There the chance is that of the error (a chi-squared number), averaged over the normal number.

    Parameters
    ----------
    freedom : float
        Degrees of freedom.
    shift : float
        What is looked for, in standard errors, ≥ 0.
    limit : float
        The t from which on it shows, > 0.

    Examples
    --------
    >>> round(beyond(2.0, 0.0, 4.302652729749), 6)
    0.05
    """
    from scipy.special import gammainc, nctdtr, ndtr

    if shift >= FAR:
        reach = (shift + math.sqrt(3) * np.array([-1.0, 0.0, 1.0])) / limit
        return float(gammainc(freedom / 2, freedom / 2 * reach**2) @ np.array([1, 4, 1])) / 6
    near, far = 1 - nctdtr(freedom, shift, limit), nctdtr(freedom, shift, -limit)
    if not np.isfinite(near):  # very many degrees of freedom: Student's t is the normal
        return float(ndtr(shift - limit) + ndtr(-shift - limit))
    return float(near + (far if np.isfinite(far) else 0.0))  # which is below Φ(−shift)
