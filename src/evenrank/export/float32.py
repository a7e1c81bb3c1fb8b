"""Numbers of 32 bits: the neighbours of a threshold, and texts that every reader takes for the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
LARGEST = np.finfo(np.float32).max
# LightGBM reads a number no further from 0 than this as 0.
LIGHTGBM_ZERO = 1.0000000180025095e-35


def cast(values: Any) -> Floats:
    """Round to the nearest 32-bit number; what is too large becomes infinite, without a warning."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)


def above(values: Any) -> Floats:
    """Give the next 32-bit number upwards: x ≤ t of 32-bit numbers is x < above(t)."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(values, np.float32), np.float32(np.inf))


def below(values: Any) -> Floats:
    """Give the next 32-bit number downwards: x < t of 32-bit numbers is x ≤ below(t)."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(values, np.float32), np.float32(-np.inf))


def lightgbm_at_most(thresholds: NDArray[np.float64]) -> Floats:
    """Give the 32-bit T for which x ≤ T sends every 32-bit x where LightGBM sends it.

    LightGBM compares x ≤ t with a 64-bit t, after an x close to 0 has become 0.

    Parameters
    ----------
    thresholds : ndarray
        LightGBM's thresholds t, (nodes,).

    Returns
    -------
    ndarray
        (nodes,).
    """
    nearest = cast(thresholds)
    at_most = np.where(nearest.astype(np.float64) > thresholds, below(nearest), nearest)
    zero = cast(LIGHTGBM_ZERO)
    at_most = np.where((thresholds >= 0) & (thresholds < LIGHTGBM_ZERO), zero, at_most)
    at_most = np.where((thresholds >= -LIGHTGBM_ZERO) & (thresholds < 0), below(-zero), at_most)
    return np.minimum(at_most, LARGEST).astype(np.float32)


def exact_text(value: Any) -> str:
    """Write a 32-bit number as the shortest decimal of its 64-bit value, which reads back the same in either width.

    >>> exact_text(np.float32(0.1))
    '0.10000000149011612'
    """
    number = float(np.float32(value))
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)
