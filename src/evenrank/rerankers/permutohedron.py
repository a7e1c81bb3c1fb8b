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
    the items of one more prefix then have all that its places can give. They stay in those places from there on, so
    there are at most as many rankings as items.

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
    before = np.cumsum(weights)
    block = np.zeros(n, np.int64)  # the first of the places that an item shares with others
    rankings, probabilities = [], []
    while True:
        order = np.lexsort([-rest, block])
        corner = np.empty(n)
        corner[order] = weights
        rankings.append(order)
        away = rest - corner
        inside = block[order][:-1] == block[order][1:]  # prefixes that end within a block
        rounding = ROUNDING * float(weights[0]) / left  # the rest counts with ``left``, and so does what it is off by
        if not inside.any() or np.abs(away).max() <= rounding:
            break
        step, order = _farthest(rest, away, before, block, inside)
        if not np.isfinite(step):
            break
        # rest = (beyond + step·corner) / (1 + step)
        probabilities.append(left * step / (1.0 + step))
        left /= 1.0 + step
        rest = rest + step * away
        room = (before - np.cumsum(rest[order]))[:-1]
        full = inside & (room <= max(float(room[inside].min()), rounding))
        starts = np.r_[0, np.where(full | ~inside, np.arange(1, n), 0)]
        block[order] = np.maximum.accumulate(starts)
    kept = np.array([*probabilities, left])
    return np.array(rankings)[kept > 0], kept[kept > 0]


def _farthest(
    rest: Floats, away: Floats, before: Floats, block: NDArray[np.int64], inside: NDArray[np.bool_]
) -> tuple[float, NDArray[np.int64]]:
    """How far one can go from ``rest`` in the direction ``away`` without leaving the hull, and the order there.

    Newton's way: the items that have too much together at a step give a smaller step, until none have.
    """
    step = np.inf
    order = np.lexsort([-away, block])
    while True:
        gain, room = np.cumsum(away[order])[:-1], (before - np.cumsum(rest[order]))[:-1]
        rises = inside & (gain > 0)
        smallest = float(np.maximum(room[rises] / gain[rises], 0.0).min(initial=np.inf))
        if smallest >= step * (1 - 1e-14):
            return step, order  # infinite if all that is left to go is rounding
        step = smallest
        order = np.lexsort([-(rest + step * away), block])
