"""Shares of exposure against target shares: AWRF, and expected exposure (EE-L, EE-D, EE-R).

Everything here is a function of the exposure of rows, which is linear in rankings: with ties or several rankings of a
query it is the expected exposure, and the measure is one of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenrank.discounts import ERR, PATIENCE, STOP, discount_sums, err_exposure
from evenrank.measures.evaluation import divide
from evenrank.measures.lists import column, group_sums, query_sums
from evenrank.ranking import Ranking


def awrf(exposure: NDArray[Any], target: NDArray[Any]) -> NDArray[np.float64]:
    """Compute attention-weighted rank fairness: 1 − JSD(shares of exposure, target), in nats.

    1 is fair; the lowest value is 1 − ln 2. Definition of the TREC Fair Ranking track, 2021 and 2022, task 1.

    Parameters
    ----------
    exposure : ndarray
        Each group's exposure, (q, G) or (q, G, models); rows of unknown group are in none.
    target : ndarray
        Shares of sum 1, (q, G) or (G,).

    Returns
    -------
    ndarray
        (q,) or (q, models); NaN where no group has exposure.

    Examples
    --------
    >>> awrf(np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([0.75, 0.25])).tolist()
    [1.0, nan]
    """
    shares = divide(exposure, exposure.sum(axis=1, keepdims=True))
    return np.asarray(1 - jensen_shannon(shares, along_groups(target, exposure), axis=1))


def jensen_shannon(a: NDArray[Any], b: NDArray[Any], axis: int = -1) -> NDArray[np.float64]:
    """Compute the Jensen–Shannon divergence of distributions along an axis, in nats; at most ln 2.

    Examples
    --------
    >>> bool(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == np.log(2))
    True
    """
    middle = (a + b) / 2
    return np.asarray((kl_terms(a, middle) + kl_terms(b, middle)).sum(axis=axis) / 2)


def kl_terms(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Compute a ln(a / b), the terms of KL(a ‖ b): 0 where a is 0, inf where only b is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray(a / b)
        out = np.where(np.equal(a, 0), 1.0, out)
        return np.asarray(np.log(out, out=out) * a)


def along_groups(target: NDArray[Any], like: NDArray[Any]) -> NDArray[np.float64]:
    """Shape shares, (G,) or (q, G), so that they broadcast over a table (q, G, …)."""
    table = np.asarray(target, float)
    table = table if table.ndim > 1 else table[None]
    return table.reshape(*table.shape, *(1,) * (like.ndim - 2))


PARTS: dict[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "loss": lambda exposure, target: (exposure - target) ** 2,
    "disparity": lambda exposure, target: exposure**2,
    "relevance": lambda exposure, target: exposure * target,
}


class ExpectedExposure(NamedTuple):
    """Expected exposure against a target; each of shape (q,) or (q, models).

    Attributes
    ----------
    loss : ndarray
        EE-L, Σ (E − T)² = EE-D − 2 EE-R + Σ T²; 0 is fair.
    disparity : ndarray
        EE-D, Σ E²; lower is more even.
    relevance : ndarray
        EE-R, Σ E T; higher is better.
    """

    loss: NDArray[np.float64]
    disparity: NDArray[np.float64]
    relevance: NDArray[np.float64]


def group_expected_exposure(exposure: NDArray[Any], target: NDArray[Any]) -> ExpectedExposure:
    """Compare the groups' expected exposure with a target exposure.

    Parameters
    ----------
    exposure : ndarray
        Each group's mean exposure over the rankings of a query, (q, G) or (q, G, models).
    target : ndarray
        The exposure each group should have, (q, G) or (G,).

    Returns
    -------
    ExpectedExposure
        Loss, disparity and relevance of each query.

    Examples
    --------
    >>> loss, disparity, relevance = group_expected_exposure(np.array([[2.0, 1.0]]), np.array([1.5, 1.5]))
    >>> float(loss[0]), float(disparity[0]), float(relevance[0])
    (0.5, 5.0, 4.5)
    """
    wanted = along_groups(target, exposure)
    return ExpectedExposure(*(part(exposure, wanted).sum(axis=1) for part in PARTS.values()))


def item_expected_exposure(exposure: NDArray[Any], target: NDArray[Any], ptr: NDArray[np.int64]) -> ExpectedExposure:
    """Compare the items' expected exposure with a target exposure.

    Parameters
    ----------
    exposure : ndarray
        Each row's mean exposure over the rankings of its query, (n,) or (n, models).
    target : ndarray
        The exposure it should have, (n,); see `ideal_exposure`.
    ptr : ndarray
        The bounds of the queries, (q + 1,).

    Returns
    -------
    ExpectedExposure
        Loss, disparity and relevance of each query.
    """
    wanted = column(target, exposure)
    return ExpectedExposure(*(query_sums(part(exposure, wanted), ptr) for part in PARTS.values()))


def ideal_exposure(
    relevance: NDArray[Any],
    ptr: NDArray[np.int64],
    *,
    discount: str = "rbp",
    patience: float = PATIENCE,
    stop: float = STOP,
    k: int | None = None,
    among: str = "relevant",
    threshold: float | None = None,
) -> NDArray[np.float64]:
    """Compute the exposure of each row if lists stood by relevance, rows of equal relevance in random order.

    It is the target of expected exposure of Diaz et al. (2020).

    Parameters
    ----------
    relevance : ndarray
        (n,).
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    discount : str
        The exposure of a rank, as in `evenrank.measures.Options`.
    patience, stop : float
        The p and u of discounts.
    k : int, optional
        The exposure is 0 below this rank.
    among : str
        "relevant" gives rows that are not relevant the target 0; "all" gives them the exposure of the ranks they take.
    threshold : float, optional
        Relevance at or above it is relevant; by default all above 0.

    Returns
    -------
    ndarray
        (n,).

    Examples
    --------
    >>> ideal_exposure(np.array([0.0, 2.0, 2.0, 1.0]), np.array([0, 4]), patience=0.5).tolist()
    [0.0, 0.75, 0.75, 0.25]
    """
    relevant = relevance > 0 if threshold is None else relevance >= threshold
    ranking = Ranking(relevance, ptr)
    if discount == ERR:
        places = (ranking.first, ranking.size, relevant, ptr)
        exposure = err_exposure(*places, patience=patience, stop=stop, k=k)
    else:
        exposure = ranking.expected(discount_sums(int(np.diff(ptr).max()), k, discount, patience))
    return exposure if among == "all" else np.where(relevant, exposure, 0.0)


def track_exposure(
    exposure: NDArray[Any],
    membership: NDArray[Any],
    relevant: NDArray[np.bool_],
    ptr: NDArray[np.int64],
    *,
    among: str = "relevant",
) -> NDArray[np.float64]:
    """Compute the groups' exposure as task 2 of the TREC Fair Ranking track does.

    Parameters
    ----------
    exposure : ndarray
        Each row's mean exposure over the rankings of its query, (n,) or (n, models).
    membership : ndarray
        (n, G).
    relevant : ndarray
        (n,).
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    among : str
        Whose exposure counts: "relevant" (2022) or "all" (2021). Either way a query none of whose relevant items is
        ranked has exposure 0.

    Returns
    -------
    ndarray
        (q, G) or (q, G, models).
    """
    merited = exposure * column(relevant, exposure)
    counted = group_sums(merited if among == "relevant" else exposure, membership, ptr)
    return np.asarray(counted * (query_sums(merited, ptr) > 0)[:, None])
