"""Measures of the first ranks against target shares: skew@k, NDKL, infeasible index and count, fair prefixes.

They take *counts*, (length, G, …): how many items of each group stand among the first 1, 2, … ranks. An item of unknown
group takes a rank and counts for no group. With ties or several rankings of a query the counts are expected ones, and
the measure is one of these (Geyik, Ambler and Kenthapadi, 2019; Zehlike et al., 2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.discounts import discount_sums

FLOOR = 1e-9  # 0.29 · 100 is 28.999… in floating point, and its floor is meant to be 29


def counts_of(group_at_rank: ArrayLike, n_groups: int) -> NDArray[np.float64]:
    """Count the groups among the first ranks of one ranking.

    Parameters
    ----------
    group_at_rank : array-like
        Group numbers, best rank first, (length,); -1 is unknown.
    n_groups : int
        The number of groups, G.

    Returns
    -------
    ndarray
        (length, G).

    Examples
    --------
    >>> counts_of([1, 0, -1], 2).tolist()
    [[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    at_rank = np.asarray(group_at_rank, np.int64)[:, None] == np.arange(n_groups)
    return np.cumsum(at_rank, axis=0, dtype=float)


def skew(top: NDArray[Any], ranks: ArrayLike, target: NDArray[Any]) -> NDArray[np.float64]:
    """Compute ln(share of the group in the top k / its target share): 0 is fair, above 0 over-represented.

    Parameters
    ----------
    top : ndarray
        Items of each group in the top k, (G, …).
    ranks : array-like
        The number of ranks, (…): k, or the length of a shorter list.
    target : ndarray
        Shares, (G, …).

    Returns
    -------
    ndarray
        (G, …); -inf for a group that is not in the top k, inf for one that is and has target 0, NaN if neither.

    Examples
    --------
    >>> skew(np.array([2.0, 0.0]), 2, np.array([0.5, 0.5])).tolist()
    [0.6931471805599453, -inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(top / ranks / target))


def smoothed_skew(
    top: NDArray[Any], known: ArrayLike, target: NDArray[Any], smoothing: float = 1.0
) -> NDArray[np.float64]:
    """Compute the skew of counts with a constant added to each, which is always finite (LiFT's).

    ln[(p + α) / (Σp + α G)] − ln[(q + α) / (Σq + α G)], with p the counts of the top k, and q those of a whole list
    of the target's shares.

    Parameters
    ----------
    top : ndarray
        Items of each group in the top k, (G, …).
    known : array-like
        The number of items of known group in the whole list, (…).
    target : ndarray
        Shares, (G, …).
    smoothing : float
        α.

    Returns
    -------
    ndarray
        (G, …).

    Examples
    --------
    >>> smoothed_skew(np.array([1.0, 0.0]), 2, np.array([0.5, 0.5])).round(3).tolist()
    [0.288, -0.405]
    """
    added, total = smoothing * len(top), np.asarray(known, float)
    share = (top + smoothing) / (top.sum(axis=0) + added)
    return np.asarray(np.log(share) - np.log((target * total + smoothing) / (total + added)))


def extremes(skews: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the lowest and the highest skew over the groups that have one, (…) each; NaN if none has."""
    missing = np.isnan(skews)
    none = missing.all(axis=0)
    lowest = np.where(missing, np.inf, skews).min(axis=0)
    highest = np.where(missing, -np.inf, skews).max(axis=0)
    return np.where(none, np.nan, lowest), np.where(none, np.nan, highest)


def ndkl(counts: NDArray[Any], target: NDArray[Any], weight: NDArray[Any] | None = None) -> NDArray[np.float64]:
    """Compute the normalised discounted KL divergence of the first ranks' shares from the target, in nats.

    Σ_j w_j KL(shares of the first j ‖ target) / Σ_j w_j. 0 is fair, and there is no upper bound; with items of unknown
    group the shares sum to less than 1, and it may be below 0.

    Parameters
    ----------
    counts : ndarray
        (length, G, …).
    target : ndarray
        Shares, (G, …).
    weight : ndarray, optional
        The weight of each rank, (length,); by default 1 / log2(1 + rank).

    Returns
    -------
    ndarray
        (…); inf where a group of target 0 appears, NaN without target.

    Examples
    --------
    >>> float(ndkl(counts_of([0, 1], 2), np.array([1.0, 0.0])))
    inf
    """
    length = len(counts)
    weights = np.diff(discount_sums(length)) if weight is None else weight[:length]
    shares = counts / np.arange(1, length + 1).reshape(-1, 1, *(1,) * (counts.ndim - 2))
    mean = np.tensordot(weights, shares, axes=1) / weights.sum()
    # Σ p ln p − Σ p ln t, so that there is one logarithm per share.
    logs = np.maximum(shares, np.finfo(float).tiny)
    np.log(logs, out=logs)
    logs *= shares
    with np.errstate(divide="ignore", invalid="ignore"):
        against = np.where(mean == 0, 0.0, mean * np.log(target))
    value = (np.tensordot(weights, logs, axes=1) / weights.sum() - against).sum(axis=0)
    return np.asarray(np.where(np.isnan(target).any(axis=0), np.nan, value))


def infeasible(counts: NDArray[Any], target: NDArray[Any], k: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Count the ranks and the (rank, group) pairs that fall short of the target.

    Parameters
    ----------
    counts : ndarray
        (length, G, …).
    target : ndarray
        Shares, (G, …).
    k : int, optional
        The last rank looked at; by default the length.

    Returns
    -------
    index : ndarray
        The number of ranks j at which some group has fewer than ⌊j · target⌋ items among the first j, (…).
    count : ndarray
        The number of (j, group) so, (…). 0 is fair.

    Examples
    --------
    >>> index, count = infeasible(counts_of([0, 0, 0, 1], 2), np.array([0.5, 0.5]))
    >>> int(index), int(count)
    (3, 3)
    """
    length = min(len(counts), k or len(counts))
    ranks = np.arange(1, length + 1).reshape(-1, 1, *(1,) * (counts.ndim - 2))
    least = np.floor(ranks * target + FLOOR)
    if counts.dtype.kind == "i":  # whole numbers are compared as they are; without target the value is NaN below
        with np.errstate(invalid="ignore"):
            short = counts[:length] < least.astype(counts.dtype)
    else:
        short = counts[:length] < least - FLOOR
    missing = np.isnan(target).any(axis=0)
    index, count = short.any(axis=1).sum(axis=0), short.sum(axis=(0, 1))
    return np.where(missing, np.nan, index), np.where(missing, np.nan, count)


def fair_prefix(protected: NDArray[Any], share: ArrayLike) -> NDArray[np.float64]:
    """Compute the mean over ranks j of P(Binomial(j, share) ≤ protected items among the first j).

    High is good for the protected group; there is no fair value. Counts between whole numbers (ties) are read off the
    continuous form of the binomial distribution, the regularised incomplete beta function.

    Parameters
    ----------
    protected : ndarray
        Protected items among the first 1, 2, … ranks, (length, …).
    share : array-like
        Their target share, (…).

    Returns
    -------
    ndarray
        (…), from 0 to 1.

    Examples
    --------
    >>> float(fair_prefix(np.array([0.0, 1.0]), 0.5))
    0.625
    """
    ranks = np.arange(1, len(protected) + 1).reshape(-1, *(1,) * (protected.ndim - 1))
    return np.asarray(binomial_chance(protected, ranks, np.asarray(share, float)).mean(axis=0))


def binomial_chance(most: NDArray[Any], number: NDArray[Any], share: NDArray[Any]) -> NDArray[np.float64]:
    """Compute P(Binomial(number, share) ≤ most), also between whole numbers; NaN without a share."""
    from scipy.special import betainc

    rest = number - most
    chance = np.where(rest < FLOOR, 1.0, betainc(np.maximum(rest, FLOOR), most + 1, 1 - share))
    return np.where(np.isnan(share), np.nan, chance)
