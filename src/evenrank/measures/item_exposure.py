"""How evenly exposure is spread over items, and over rankings: Gini, entropy, diversity, inequity of attention.

An item is counted over all the lists it is in. With ties or several rankings of a query, exposure is expected exposure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.measures.evaluation import divide
from evenrank.measures.exposure_shares import kl_terms
from evenrank.measures.lists import column, query_sums


def item_totals(values: NDArray[Any], items: NDArray[np.int64], n_items: int) -> NDArray[np.float64]:
    """Sum row values over each item.

    Parameters
    ----------
    values : ndarray
        (n,) or (n, models).
    items : ndarray
        The number of each row's item, (n,).
    n_items : int
        The number of items; those in no row have 0.

    Returns
    -------
    ndarray
        (n_items,) or (n_items, models).

    Examples
    --------
    >>> item_totals(np.array([1.0, 0.5, 0.25]), np.array([2, 0, 2]), 3).tolist()
    [0.5, 0.0, 1.25]
    """
    table = np.asarray(values, float).reshape(len(values), -1)
    sums = [np.bincount(items, table[:, model], n_items) for model in range(table.shape[1])]
    return np.stack(sums, axis=1).astype(float, copy=False).reshape(n_items, *values.shape[1:])


def gini(totals: ArrayLike, *, corrected: bool = False) -> NDArray[np.float64]:
    """Compute the Gini coefficient of items' exposure: 0 is even.

    Σ_{i<j} |x_i − x_j| / (n Σ x) over all items, those that are never shown included.

    Parameters
    ----------
    totals : array-like
        One number ≥ 0 per item, (n,) or (n, models).
    corrected : bool
        Divide by n − 1 instead of n, so that the largest value is 1 and not (n − 1)/n.

    Returns
    -------
    ndarray
        () or (models,); NaN if nothing is shown, or with ``corrected`` for one item.

    Examples
    --------
    >>> float(gini([0.0, 0.0, 0.0, 4.0])), float(gini([0.0, 0.0, 0.0, 4.0], corrected=True))
    (0.75, 1.0)
    """
    ordered = np.sort(np.asarray(totals, float), axis=0)
    n = len(ordered)
    place = column(2.0 * np.arange(1, n + 1) - n - 1, ordered)
    differences = np.maximum((place * ordered).sum(axis=0), 0)
    return divide(differences, (n - 1 if corrected else n) * ordered.sum(axis=0))


def entropy(totals: ArrayLike) -> NDArray[np.float64]:
    """Compute the entropy of items' shares of exposure, in nats: ln n is even, 0 is one item only.

    Parameters
    ----------
    totals : array-like
        One number ≥ 0 per item, (n,) or (n, models).

    Returns
    -------
    ndarray
        () or (models,); NaN if nothing is shown.

    Examples
    --------
    >>> bool(entropy([1.0, 1.0, 0.0]) == np.log(2))
    True
    """
    shares = _shares(totals)
    return np.asarray(-kl_terms(shares, np.ones(())).sum(axis=0))


def total_variation(totals: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """Compute half the summed differences between two audiences' shares of items: 0 is the same, 1 nothing shared.

    Parameters
    ----------
    totals, other : array-like
        Appearances or exposure of each item in the lists of two groups of users, (n,) or (n, models).

    Returns
    -------
    ndarray
        () or (models,).

    Examples
    --------
    >>> float(total_variation([1, 1], [2, 0]))
    0.5
    """
    return np.asarray(np.abs(_shares(totals) - _shares(other)).sum(axis=0) / 2)


def audience_divergence(totals: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """Compute KL(one audience's shares of items ‖ another's), in nats: 0 is the same, inf if the other lacks an item.

    Parameters
    ----------
    totals, other : array-like
        As in `total_variation`.

    Returns
    -------
    ndarray
        () or (models,).
    """
    return np.asarray(kl_terms(_shares(totals), _shares(other)).sum(axis=0))


def _shares(totals: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(totals, float)
    return divide(table, table.sum(axis=0))


def aggregate_diversity(top: NDArray[Any], items: NDArray[np.int64], n_items: int) -> NDArray[np.float64]:
    """Compute the expected share of items that appear in some top k: exact if lists break ties independently.

    Parameters
    ----------
    top : ndarray
        Each row's probability of being in its list's top k, (n,) or (n, models).
    items : ndarray
        The number of each row's item, (n,).
    n_items : int
        The number of items.

    Returns
    -------
    ndarray
        () or (models,), from 0 to 1.

    Examples
    --------
    >>> float(aggregate_diversity(np.array([0.5, 0.5, 0.0]), np.array([0, 0, 1]), 2))
    0.375
    """
    sure = top >= 1
    seen = item_totals(sure, items, n_items) > 0
    chance = (top > 0) & ~sure
    if not chance.any():
        return np.asarray(seen.mean(axis=0))
    log_missed = np.log1p(-top, out=np.zeros(top.shape), where=chance)
    return np.asarray(np.where(seen, 1.0, -np.expm1(item_totals(log_missed, items, n_items))).mean(axis=0))


def average_popularity(
    top: NDArray[Any], items: NDArray[np.int64], n_items: int, ptr: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute the mean number of appearances of the items in the top k, of each list.

    Parameters
    ----------
    top : ndarray
        Each row's probability of being in its list's top k, (n,) or (n, models).
    items : ndarray
        The number of each row's item, (n,).
    n_items : int
        The number of items.
    ptr : ndarray
        The bounds of the lists, (q + 1,).

    Returns
    -------
    ndarray
        Expected values, exact if lists break ties independently, (q,) or (q, models).

    Examples
    --------
    >>> average_popularity(np.array([1.0, 0.0, 1.0]), np.array([0, 1, 0]), 2, np.array([0, 2, 3])).tolist()
    [2.0, 2.0]
    """
    # The item counts itself for certain where it is shown, and by its probability in every other list.
    seen = item_totals(top, items, n_items)[items] - top + 1
    return divide(query_sums(top * seen, ptr), query_sums(top, ptr))


def attention_shares(values: NDArray[Any], ptr: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Divide row values, attention or relevance, by their sum over the list.

    Parameters
    ----------
    values : ndarray
        (n,) or (n, models).
    ptr : ndarray
        The bounds of the lists, (q + 1,).

    Returns
    -------
    shares : ndarray
        The shape of ``values``; 0 in a list whose sum is 0.
    exist : ndarray
        Whether the sum is above 0, (q,) or (q, models).
    """
    sums = query_sums(values, ptr)
    exist = sums > 0
    scale = np.divide(1.0, sums, out=np.zeros(sums.shape), where=exist)
    return values * np.repeat(scale, np.diff(ptr), axis=0), exist


def attention_difference(
    attention: NDArray[Any], relevance: NDArray[Any], ptr: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Compute each row's share of attention less its share of relevance.

    Parameters
    ----------
    attention, relevance, ptr
        As in `inequity_of_attention`.

    Returns
    -------
    difference : ndarray
        The shape of ``attention``; 0 in a list that is left out.
    exist : ndarray
        Whether the list has attention and relevance, (q,) or (q, models).
    """
    given, seen = attention_shares(attention, ptr)
    due, merited = attention_shares(relevance, ptr)
    exist = seen & column(merited, seen)
    difference = given - column(due, given)
    if not exist.all():
        difference *= np.repeat(exist, np.diff(ptr), axis=0)
    return difference, exist


def inequity_of_attention(
    attention: NDArray[Any],
    relevance: NDArray[Any],
    ptr: NDArray[np.int64],
    items: NDArray[np.int64] | None = None,
    n_items: int = 0,
    *,
    normalise: bool = True,
) -> NDArray[np.float64]:
    """Compute the inequity of amortised attention (Biega et al., 2018): Σ_i |Σ_t a_i − Σ_t r_i| over rankings t.

    Parameters
    ----------
    attention : ndarray
        Each row's exposure, (n,) or (n, models).
    relevance : ndarray
        (n,).
    ptr : ndarray
        The bounds of the rankings, (q + 1,).
    items : ndarray, optional
        The number of each row's item, or of its group, (n,); -1 takes no part. By default every row is its own.
    n_items : int
        The number of items or groups.
    normalise : bool
        Divide attention and relevance by their sums over each ranking first, as in the paper; rankings without any
        relevance or attention are then left out.

    Returns
    -------
    ndarray
        () or (models,): 0 is fair; with ``normalise`` at most 2 per ranking. NaN if no ranking is left.

    Examples
    --------
    >>> float(inequity_of_attention(np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([0, 2])))
    1.0
    """
    if normalise:
        difference, exist = attention_difference(attention, relevance, ptr)
    else:
        difference = np.asarray(attention - column(relevance, attention))
        exist = np.ones((1, *attention.shape[1:]), bool)
    if items is not None:
        rows = slice(None) if items.min(initial=0) >= 0 else items >= 0
        difference = item_totals(difference[rows], items[rows], n_items)
    return np.asarray(np.where(exist.any(axis=0), np.abs(difference).sum(axis=0), np.nan))
