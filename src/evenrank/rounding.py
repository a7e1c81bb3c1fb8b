"""How far rounding takes numbers astray: what differences of means and of scores must exceed on every processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT = 2.0**50  # whole numbers below are told apart as floats too: they are more than 4 ulps from each other
NEAR = 2.0**-50  # of the larger of two scores: no less than 4 ulps
ROOM = 64  # last digits of a mean, for the ways in which processors add


def rounding(rows: Any, dtype: Any = np.float64) -> Any:
    """The error of a mean over so many rows, relative to the mean of its terms' sizes.

    A sum goes astray by about √rows of its terms' last digits; `ROOM` comes on top.

    Examples
    --------
    >>> bool(rounding(10_000) < 4e-14)
    True
    """
    return np.finfo(dtype).eps * (ROOM + np.sqrt(rows))


def beyond_rounding(difference: NDArray[Any], error: Any) -> NDArray[Any]:
    """The differences, with 0 in place of those no larger than their error, whose digits and sign mean nothing.

    Examples
    --------
    >>> beyond_rounding(np.array([0.5, -1e-17]), 1e-15).tolist()
    [0.5, 0.0]
    """
    return np.where(np.abs(difference) <= error, np.zeros_like(difference), difference)


def resolution(size: Any) -> Any:
    """The step that scores of this size are told apart by: a power of 2, some 1e-10 of it, far above their rounding.

    Examples
    --------
    >>> float(resolution(3.0)) == 2.0**-31
    True
    """
    # By the number's own exponent: a logarithm of a power of 2 may fall below it on some processor.
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1] - 33), 0.0)


def to_resolution(scores: NDArray[Any], step: NDArray[Any]) -> NDArray[Any]:
    """Round scores, (n, models), to multiples of each model's step, in place; 0 leaves a model's scores as they are.

    Examples
    --------
    >>> to_resolution(np.array([[0.3, 0.3], [1e300, -0.7]]), np.array([0.25, 0.0])).tolist()
    [[0.25, 0.3], [1e+300, -0.7]]
    """
    for model in np.flatnonzero(step):
        column = scores[:, model]
        coarse = np.abs(column) < step[model] * 2.0**52  # larger scores have no digits below the step
        column[coarse] = np.rint(column[coarse] / step[model]) * step[model]
    return scores


def rounded_scores(name: str, number: int) -> str:
    """Say that floats may tie whole numbers that differ.

    Examples
    --------
    >>> rounded_scores("score", 2)[:63]
    "scores of column 'score' beyond 2^50 are rounded, which may tie"
    """
    return (
        f"scores of column {name!r} beyond 2^50 are rounded, which may tie {number} that differ; subtract the smallest "
        "score first"
    )
