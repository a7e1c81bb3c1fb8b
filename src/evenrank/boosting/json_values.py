"""Values of a JSON model: objects with known keys, arrays of numbers with known length and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.trees import need
from evenrank.rankers.content import short

INT32 = (-(2**31), 2**31 - 1)
LARGEST = 3.4028235e38  # of 32-bit floats, as XGBoost writes it


def fields(value: Any, what: str, *keys: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Take an object with these keys, perhaps the optional ones, and no others."""
    need(isinstance(value, dict), f"{what} must be an object")
    missing = next((key for key in keys if key not in value), None)
    need(missing is None, f"{what} has no {missing!r}")
    strange = next((key for key in value if key not in (*keys, *optional)), None)
    need(strange is None, f"{what} has {short(strange)}, which this evenrank does not know")
    return dict(value)


def _array(value: Any, what: str, count: int | None) -> NDArray[Any]:
    need(isinstance(value, list), f"{what} must be a list")
    need(count is None or len(value) == count, f"{what} must have {count} entries; it has {len(value)}")
    try:
        array = np.array(value if len(value) else np.zeros(0, np.int64))
    except (ValueError, OverflowError):
        array = np.array(None)
    need(array.ndim == 1 and array.dtype.kind in "if", f"{what} must be numbers")
    return array


def wholes(value: Any, what: str, count: int | None, bounds: tuple[int, int]) -> NDArray[np.int64]:
    """Take whole numbers within the bounds, (count,)."""
    array = _array(value, what, count)
    need(array.dtype.kind == "i", f"{what} must be whole numbers")
    need(((array >= bounds[0]) & (array <= bounds[1])).all(), f"{what} must be from {bounds[0]} to {bounds[1]}")
    return array.astype(np.int64)


def floats(value: Any, what: str, count: int | None) -> NDArray[np.float64]:
    """Take numbers that are finite as 32-bit floats, (count,)."""
    array = _array(value, what, count).astype(np.float64)
    need((np.abs(array) <= LARGEST).all(), f"{what} must be finite numbers")
    return array
