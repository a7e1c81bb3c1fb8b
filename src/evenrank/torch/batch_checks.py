"""What is refused in a batch's scores, groups and weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.torch.losses import Tensor

torch: Any = require("torch")
PADDING = -1e8  # scores at or below it are no items' own
SUM_SLACK = 1e-5  # of probabilities in float32
HALF_PADDING = torch.finfo(torch.float16).min  # the lowest number of half precision, which does not reach so far
MOST_GROUPS = 1000  # whose pairs, half a million, still fit


def usable(scores: Tensor, low: float, high: float) -> bool:
    """Refuse scores that look like padding, and tell whether all are finite.

    Parameters
    ----------
    scores : Tensor
        The scores, whose type says what overflows.
    low, high : float
        The least and the largest of them; NaN if one is.

    Returns
    -------
    bool
        False for scores of a step that overflowed: the loss is NaN then too, and a gradient scaler skips the step.
    """
    # Half precision reaches −∞ on its own.
    padded = low <= (HALF_PADDING if scores.dtype == torch.float16 else PADDING)
    if padded and (low > -np.inf or scores.dtype in (torch.float32, torch.float64)):
        raise DataError(
            f"scores must be those of items; {low:g} looks like padding. Leave padded places out, or pass lists "
            "(B, L) with mask=."
        )
    return math.isfinite(low) and math.isfinite(high)


def check_groups(least: int, most: int, lightest: float) -> None:
    """Refuse groups that are no numbers of groups, and weights below 0.

    Parameters
    ----------
    least, most : int
        The least and the largest group.
    lightest : float
        The least weight.
    """
    if least < -1 or most >= MOST_GROUPS:
        raise DataError(
            f"group must hold numbers of groups from 0 (at most {MOST_GROUPS}), or -1 for an unknown one; got "
            f"{least if least < -1 else most}. Number the groups 0, 1, 2 …"
        )
    if not lightest >= 0:
        raise DataError(f"sample_weight must be numbers ≥ 0; got {lightest:g}.")


def codes(group: NDArray[Any]) -> NDArray[Any]:
    """Take groups as whole numbers.

    Parameters
    ----------
    group : ndarray
        (n,); in floating ones, which come from a single tensor of all columns, NaN is unknown.

    Returns
    -------
    ndarray
        (n,) of integers.
    """
    if group.dtype.kind != "f":
        return group.astype(np.int64) if group.dtype.kind == "b" else group
    known = np.where(np.isnan(group), -1, group)
    wrong = known[known != np.floor(known)]
    if len(wrong) or np.isinf(known).any():
        value = wrong[0] if len(wrong) else np.inf
        raise DataError(f"group must hold whole numbers from 0, or -1 for an unknown one; got {value:g}.")
    return known.astype(np.int64)


def likeliest(chances: NDArray[Any], n: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Check the probabilities of groups.

    Parameters
    ----------
    chances : ndarray
        (n, groups).
    n : int
        The number of rows.

    Returns
    -------
    tuple of ndarray
        The likeliest group of each row, (n,), and the probabilities, (n, groups) of float64.
    """
    chances = chances.astype(np.float64)
    if len(chances) != n or chances.shape[1] < 2:
        raise DataError(
            f"group must have shape ({n},), or ({n}, groups) for probabilities of two groups or more; "
            f"got {tuple(chances.shape)}."
        )
    if not ((chances >= 0).all() and (chances.sum(axis=1) <= 1 + SUM_SLACK).all()):
        raise DataError("group must hold probabilities ≥ 0 of sum ≤ 1 in each row, where it has a column per group.")
    return chances.argmax(axis=1), chances
