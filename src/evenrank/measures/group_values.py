"""One value per group made into one number, and the exposure of groups per item, per merit and per click.

The forms are those of FairRankTune (EXP, EXPU, EXPRU, ERBE, ERBP, ERBR, ARP), of Singh and Joachims (2018; exposure,
treatment and impact ratios) and of the SIGIR 2022 comparison of fair-ranking measures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import choose
from evenrank.measures.evaluation import divide

Combine = Callable[[NDArray[Any]], NDArray[Any]]

COMBINATIONS: dict[str, Combine] = {
    "min_max_ratio": lambda v: v.min(axis=0) / v.max(axis=0),
    "max_min_ratio": lambda v: v.max(axis=0) / v.min(axis=0),
    "max_min_difference": lambda v: v.max(axis=0) - v.min(axis=0),
    "max_deviation": lambda v: np.fmax.reduce(np.abs(v - v.mean(axis=0)), axis=0),
    "mean_deviation": lambda v: np.abs(v - v.mean(axis=0)).mean(axis=0),
    "norm": lambda v: np.sqrt((v**2).sum(axis=0)),
    "variance": lambda v: v.var(axis=0),
}


def combine(values: ArrayLike, how: str) -> NDArray[np.float64]:
    """Combine one value per group into one number.

    Parameters
    ----------
    values : array-like
        (G,) or (G, …).
    how : str
        "min_max_ratio" and "max_min_ratio": 1 is fair. "max_min_difference", "max_deviation" and "mean_deviation" (from
        the mean over groups), "variance" (divided by G): 0 is fair. "norm" (Euclidean) has no fair value.

    Returns
    -------
    ndarray
        (…); infinite or NaN where a group's value is.

    Examples
    --------
    >>> float(combine([1.0, 2.0, 4.0], "min_max_ratio"))
    0.25
    """
    choose(how, COMBINATIONS, what="how")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(COMBINATIONS[how](np.asarray(values, float)))


def per_unit(sums: ArrayLike, units: ArrayLike) -> NDArray[np.float64]:
    """Divide each group's sum by its number of items, its relevance, …: inf or NaN where that is 0.

    Examples
    --------
    >>> per_unit([1.0, 2.0], [4.0, 0.0]).tolist()
    [0.25, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.asarray(sums, float) / np.asarray(units, float))


def lowest_over_highest(sums: NDArray[Any], units: NDArray[Any]) -> NDArray[np.float64]:
    """Divide the lowest of the groups' rates by the highest.

    Parameters
    ----------
    sums, units : ndarray
        Numerators and denominators of the rates, (…, G, models) and (…, G, 1); groups without units are left out.

    Returns
    -------
    ndarray
        (…, models); NaN with fewer than two groups, or if all rates are 0.
    """
    rates = divide(sums, units)
    present = ~np.isnan(rates)
    lowest = np.where(present, rates, np.inf).min(axis=-2)
    highest = np.where(present, rates, -np.inf).max(axis=-2)
    return np.where(present.sum(axis=-2) > 1, divide(lowest, highest), np.nan)


def log_ratio(sums: ArrayLike, units: ArrayLike, *, protected: int = 1, other: int = 0) -> NDArray[np.float64]:
    """Compute ln of the protected group's rate over the other's: 0 is fair, below 0 the protected group has less.

    With sums of exposure it is the log exposure ratio (units: items) and the log disparate treatment ratio (units:
    relevance); with sums of exposure times relevance over relevance, the log disparate impact ratio.

    Parameters
    ----------
    sums, units : array-like
        One number per group, (G,) or (G, …).
    protected, other : int
        The numbers of the two groups.

    Returns
    -------
    ndarray
        (…); NaN where a group has no units or no exposure.

    Examples
    --------
    >>> float(log_ratio([2.0, 1.0], [4.0, 2.0]))
    0.0
    """
    rates = divide(np.asarray(sums, float), np.asarray(units, float))
    ratio = divide(rates[protected], rates[other])
    return np.asarray(np.log(ratio, out=np.full_like(ratio, np.nan), where=ratio > 0))


def share_distance(exposure: ArrayLike, share: ArrayLike, *, protected: int = 1, other: int = 0) -> NDArray[np.float64]:
    """Compute AWRF of two groups as a distance: |the protected group's share of exposure − its target share|.

    Parameters
    ----------
    exposure : array-like
        One number per group, (G,) or (G, …); other groups, such as an unknown one, are left out.
    share : array-like
        The protected group's target share among the two.
    protected, other : int
        The numbers of the two groups.

    Returns
    -------
    ndarray
        (…), from 0 (fair) to 1; NaN where neither has exposure.

    Examples
    --------
    >>> float(share_distance([3.0, 1.0], 0.5))
    0.25
    """
    table = np.asarray(exposure, float)
    return np.asarray(np.abs(divide(table[protected], table[protected] + table[other]) - np.asarray(share, float)))


def attention_gap(exposure: ArrayLike, merit: ArrayLike) -> NDArray[np.float64]:
    """Sum the differences between the groups' shares of exposure and of merit: 0 is fair, 2 the most.

    Parameters
    ----------
    exposure, merit : array-like
        One number per group, (G,) or (G, …).

    Returns
    -------
    ndarray
        (…); NaN where nobody has exposure, or merit.

    Examples
    --------
    >>> float(attention_gap([3.0, 1.0], [1.0, 1.0]))
    0.5
    """
    given, due = np.asarray(exposure, float), np.asarray(merit, float)
    return np.asarray(np.abs(divide(given, given.sum(axis=0)) - divide(due, due.sum(axis=0))).sum(axis=0))
