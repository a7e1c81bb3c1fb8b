"""What each group got from one list, and what it could have got, by the strata of a controller's notion."""

from __future__ import annotations

from collections.abc import Callable
from operator import sub

import numpy as np
from numpy.typing import NDArray

Sums = tuple[list[list[float]], list[list[float]]]
Values = NDArray[np.float64] | None


def sums_of(notion: str, value: str) -> Callable[..., Sums]:
    """Choose how lists are counted.

    Parameters
    ----------
    notion, value : str
        Those of the controller.

    Returns
    -------
    Callable
        A function of the groups of the items that get something, best first, (k,), what their places give, (k,) (None
        is 1), their relevance, (k,), and each group's number of items and sum of relevance, (groups,). It gives two
        tables (strata, groups): what was given and what could have been.
    """
    if value == "impact":
        return _impact
    return {"equal_opportunity": _opportunity, "equalized_odds": _odds}.get(notion, _parity)


def _parity(
    groups: NDArray[np.int64], gives: Values, relevant: Values, count: list[float], mass: list[float] | None
) -> Sums:
    return [np.bincount(groups, gives, len(count)).tolist()], [count]


def _impact(
    groups: NDArray[np.int64],
    gives: NDArray[np.float64],
    relevant: NDArray[np.float64],
    count: list[float],
    mass: Values,
) -> Sums:
    return [np.bincount(groups, gives * relevant, len(count)).tolist()], [count]


def _opportunity(
    groups: NDArray[np.int64], gives: Values, relevant: NDArray[np.float64], count: list[float], mass: list[float]
) -> Sums:
    given = np.bincount(groups, relevant if gives is None else gives * relevant, len(count)).tolist()
    return [given], [mass]


def _odds(
    groups: NDArray[np.int64], gives: Values, relevant: NDArray[np.float64], count: list[float], mass: list[float]
) -> Sums:
    """The irrelevant stratum is what is not of the relevant one."""
    (to_relevant,), _ = _opportunity(groups, gives, relevant, count, mass)
    to_all = np.bincount(groups, gives, len(count)).tolist()
    return [list(map(sub, to_all, to_relevant)), to_relevant], [list(map(sub, count, mass)), mass]
