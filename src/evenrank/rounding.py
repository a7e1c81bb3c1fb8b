"""How far rounding takes a mean astray: what a difference of means must exceed to be one on every processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def rounding(rows: Any, dtype: Any = np.float64) -> Any:
    """The error of a mean over so many rows, relative to the mean of its terms' sizes.

    A sum goes astray by about √rows of its terms' last digits; the rest is room for the ways in which processors add.

    Examples
    --------
    >>> bool(rounding(10_000) < 4e-14)
    True
    """
    return np.finfo(dtype).eps * (64 + np.sqrt(rows))


def beyond_rounding(difference: NDArray[Any], error: Any) -> NDArray[Any]:
    """The differences, with 0 in place of those no larger than their error, whose digits and sign mean nothing.

    Examples
    --------
    >>> beyond_rounding(np.array([0.5, -1e-17]), 1e-15).tolist()
    [0.5, 0.0]
    """
    return np.where(np.abs(difference) <= error, np.zeros_like(difference), difference)
