"""Strengths: the grid that is tried by default, and the checks of those given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import floats_or_none, found
from evenrank.errors import ConfigError
from evenrank.row_checks import unmasked


def strength_grid(points: int = 25, low: float = 0.01, high: float = 10.0) -> NDArray[np.float64]:
    """Give 0 and then strengths that are spaced evenly in the logarithm: the paper's TREC grid by default.

    Parameters
    ----------
    points : int
        The number of strengths besides 0.
    low, high : float
        The first and the last of them.

    Returns
    -------
    ndarray
        Ascending strengths, (points + 1,).

    Examples
    --------
    >>> strength_grid(3).round(3).tolist()
    [0.0, 0.01, 0.316, 10.0]
    """
    return np.concatenate([[0.0], np.logspace(np.log10(low), np.log10(high), points)])


def checked_strengths(alphas: ArrayLike | None) -> NDArray[np.float64]:
    """Take strengths as finite numbers ≥ 0; None is the default grid."""
    if alphas is None:
        return strength_grid()
    alphas = unmasked(alphas, "alphas")
    strengths = np.atleast_1d(floats_or_none(alphas))
    if strengths.ndim != 1 or len(strengths) == 0 or not (np.isfinite(strengths) & (strengths >= 0)).all():
        raise ConfigError(f"alphas must be a list of finite numbers ≥ 0; got {found(alphas)}.")
    return strengths
