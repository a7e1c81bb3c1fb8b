"""The exposures that random rankings can give: the convex hull of all orders of the places' weights.

A point is in it if its sum is that of the weights and, for every number of items, no items have more together than that
many first places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FULL = 1e-11  # of the sum of weights: a prefix that lacks less than this has all it can have
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


def decompose(exposure: Floats, weights: Floats) -> tuple[Ints, Floats]:
    """Find rankings that give these exposures on average.

    Each step takes the ranking by exposure out of the mixture, as much of it as leaves the rest within the hull, where
    the items of one more prefix then have all that its places can give. They stay in those places from there on, so
    there are at most as many rankings as items.

    Parameters
    ----------
    exposure : ndarray
        (lists, n), within the hull.
    weights : ndarray
        As for `project`.

    Returns
    -------
    places, chances : ndarray
        The place of each item from 0, (rankings, lists, n), and (rankings, lists); 0 beyond those that a list has.
    """
    rest, left = exposure.astype(float), np.ones(len(exposure))
    before = np.cumsum(weights)
    every = np.arange(exposure.shape[1])
    block = _full_from_the_start(rest, before)  # the first of the places that an item shares with others
    places, chances = [], []
    active = np.arange(len(exposure))
    while len(active):
        own, shared = rest[active], block[active]
        order = np.lexsort([-own, shared])
        place, chance = np.tile(every, (len(exposure), 1)), np.zeros(len(exposure))
        place[active] = np.argsort(order)
        away = own - weights[place[active]]
        sorted_blocks = np.take_along_axis(shared, order, 1)
        inside = sorted_blocks[:, :-1] == sorted_blocks[:, 1:]  # prefixes that end within a block
        rounding = ROUNDING * weights[0] / left[active]  # the rest counts with ``left``, and so does what it is off by
        step, order = _farthest(own, away, before, shared, inside)
        ends = ~inside.any(axis=1) | (np.abs(away).max(axis=1) <= rounding) | ~np.isfinite(step)
        step[ends] = 0.0
        # rest = (beyond + step·corner) / (1 + step)
        chance[active] = np.where(ends, left[active], left[active] * step / (1.0 + step))
        places.append(place)
        chances.append(chance)
        left[active] /= 1.0 + step
        own = own + step[:, None] * away
        room = (before - np.cumsum(np.take_along_axis(own, order, 1), axis=1))[:, :-1]
        least = np.where(inside, room, np.inf).min(axis=1, initial=np.inf)
        full = inside & (room <= np.maximum(least, rounding)[:, None])
        starts = np.where(full | ~inside, every[1:], 0)
        starts = np.maximum.accumulate(np.hstack([np.zeros((len(active), 1), np.int64), starts]), axis=1)
        np.put_along_axis(shared, order, starts, 1)
        rest[active], block[active] = own, shared
        active = active[~ends]
    return np.array(places), np.array(chances)


def _full_from_the_start(exposure: Floats, before: Floats) -> Ints:
    """The first of the places that an item shares with others, (lists, n): prefixes that have all they can stay so."""
    order = np.argsort(-exposure, axis=1, kind="stable")
    room = before - np.cumsum(np.take_along_axis(exposure, order, 1), axis=1)
    full = np.hstack([np.ones((len(exposure), 1), bool), room[:, :-1] <= FULL * before[-1]])
    starts = np.maximum.accumulate(np.where(full, np.arange(exposure.shape[1]), 0), axis=1)
    block = np.empty_like(starts)
    np.put_along_axis(block, order, starts, 1)
    return block


def snapped(exposure: Floats) -> Floats:
    """Make exposures, (n,), that differ by rounding equal, so that no last digit decides which of them comes first."""
    order = np.argsort(-exposure, kind="stable")
    falling = exposure[order]
    starts = np.flatnonzero(np.append(True, falling[:-1] - falling[1:] > FULL))
    sizes = np.diff(np.append(starts, len(falling)))
    out = np.empty_like(falling)
    out[order] = np.repeat(np.add.reduceat(falling, starts) / sizes, sizes)
    return out


def _farthest(
    rest: Floats, away: Floats, before: Floats, block: Ints, inside: NDArray[np.bool_]
) -> tuple[Floats, Ints]:
    """How far one can go from ``rest`` in the direction ``away`` within the hull, (lists,), and the order there.

    Newton's way: the items that have too much together at a step give a smaller step, until none have. The step is
    infinite if all that is left to go is rounding.
    """
    step = np.full(len(rest), np.inf)
    order = np.lexsort([-away, block])
    going = np.arange(len(rest))
    while len(going):
        at = order[going]
        gain = np.cumsum(np.take_along_axis(away[going], at, 1), axis=1)[:, :-1]
        room = (before - np.cumsum(np.take_along_axis(rest[going], at, 1), axis=1))[:, :-1]
        rises = inside[going] & (gain > 0)
        bounds = np.where(rises, np.maximum(room, 0.0) / np.where(rises, gain, 1.0), np.inf)
        smallest = bounds.min(axis=1, initial=np.inf)
        shorter = smallest < step[going] * (1 - 1e-14)
        going = going[shorter]
        step[going] = smallest[shorter]
        order[going] = np.lexsort([-(rest[going] + step[going, None] * away[going]), block[going]])
    return step, order
