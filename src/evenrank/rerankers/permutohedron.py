"""The exposures that random rankings can give: the convex hull of all orders of the places' weights.

A point is in it if its sum is that of the weights and, for every number of items, no items have more together than that
many first places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # of the largest weight: less than this is no difference


def place_weights(n: int, k: int | None = None) -> Floats:
    """Give the weight of each place, 1/log2(1 + place), (n,); 0 beyond the first k."""
    weights = 1.0 / np.log2(np.arange(2, n + 2))
    if k is not None:
        weights[k:] = 0.0
    return weights


def project(point: Floats, weights: Floats) -> Floats:
    """Find the nearest exposures that random rankings can give.

    Parameters
    ----------
    point : ndarray
        (n,), any numbers.
    weights : ndarray
        The places' weights, (n,), falling.

    Returns
    -------
    ndarray
        (n,).
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(-point, kind="stable")
    out = point.astype(float)
    out[order] -= isotonic_regression(point[order] - weights, increasing=False).x
    return out


def decompose(exposure: Floats, weights: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Find rankings that give these exposures on average.

    Each step takes the ranking by exposure out of the mixture, as much of it as leaves the rest within the hull, where
    one more prefix then has all it can have. So there are at most as many rankings as items.

    Parameters
    ----------
    exposure : ndarray
        (n,), within the hull.
    weights : ndarray
        As for `project`.

    Returns
    -------
    rankings, probabilities : ndarray
        Items from the top, (rankings, n), and (rankings,).
    """
    n = len(exposure)
    rest, left = exposure.astype(float), 1.0
    prefix = np.cumsum(weights)
    tolerance = ROUNDING * n * max(float(weights[0]), 1e-300)
    rankings, probabilities = [], []
    for _ in range(n):
        order = np.argsort(-rest, kind="stable")
        corner = np.empty(n)
        corner[order] = weights
        rankings.append(order)
        away = rest - corner
        if np.abs(away).max() <= tolerance or len(rankings) == n:
            break
        step = _farthest(rest, away, prefix, tolerance)
        # rest = (beyond + step·corner) / (1 + step)
        probabilities.append(left * step / (1.0 + step))
        left /= 1.0 + step
        rest = rest + step * away
    probabilities.append(left)
    return np.array(rankings), np.array(probabilities)


def _farthest(rest: Floats, away: Floats, prefix: Floats, tolerance: float) -> float:
    """How far one can go from ``rest`` in the direction ``away`` without leaving the hull.

    Newton's way: the items that have too much together at a step give a smaller step, until none have.
    """
    step = np.inf
    # The first bound: any single prefix of the present order.
    order = np.argsort(-away, kind="stable")
    while True:
        gain, room = np.cumsum(away[order]), prefix - np.cumsum(rest[order])
        rises = gain > tolerance
        rises[-1] = False
        if not rises.any():
            return 0.0 if not np.isfinite(step) else float(step)
        smallest = float(np.maximum(room[rises] / gain[rises], 0.0).min())
        if smallest >= step * (1 - 1e-14):
            return float(step)
        step = smallest
        order = np.argsort(-(rest + step * away), kind="stable")
