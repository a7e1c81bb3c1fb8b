"""Targets of the TREC Fair Ranking track: shares of the relevant items, by work needed, and mixed with a background."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.discounts import discount_sums
from evenrank.errors import DataError
from evenrank.measures.evaluation import divide
from evenrank.measures.lists import group_sums
from evenrank.ranking import Ranking


def relevant_shares(
    membership: NDArray[Any], ptr: NDArray[np.int64], weight: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Compute the shares of the categories among relevant items: the target of task 1, or with weights of task 2.

    Parameters
    ----------
    membership : ndarray
        Of the relevant items of each query, (n, C).
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    weight : ndarray, optional
        The exposure each item should have, (n,), such as `work_exposure`.

    Returns
    -------
    ndarray
        (q, C); NaN for a query without items.

    Examples
    --------
    >>> relevant_shares(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 2])).tolist()
    [[0.75, 0.25]]
    """
    sums = group_sums(np.ones(len(membership)) if weight is None else weight, membership, ptr)
    return divide(sums, sums.sum(axis=1, keepdims=True))


def work_exposure(level: ArrayLike, ptr: NDArray[np.int64], *, discount: str = "log2_clipped") -> NDArray[np.float64]:
    """Compute the exposure that relevant items should have by the work they need.

    Items stand by level, those that need most work first; the items of a level share the mean weight of their ranks.

    Parameters
    ----------
    level : array-like
        The level of each relevant item, (n,); 0 needs most work.
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    discount : str
        The exposure of a rank: "log2" or "log2_clipped".

    Returns
    -------
    ndarray
        (n,).

    Examples
    --------
    >>> work_exposure([3, 0, 3], np.array([0, 3])).round(3).tolist()
    [0.815, 1.0, 0.815]
    """
    levels = np.asarray(level)
    ranking = Ranking(-levels.astype(float), ptr)
    return ranking.expected(discount_sums(int(np.diff(ptr).max()), None, discount))


def mixed_with_background(
    target: ArrayLike, sizes: Sequence[int], background: Sequence[ArrayLike]
) -> NDArray[np.float64]:
    """Average target shares with a background distribution of their first dimensions.

    Category 0 of an averaged dimension is unknown, and the background is over the others. For each pattern of known
    and unknown averaged dimensions, except all unknown, with mass c: T ← ½ T + ½ c · (product of the known dimensions'
    background) · (distribution of the remaining dimensions given the coordinate; where the coordinate has no mass,
    their marginal). Masses of patterns stay.

    Parameters
    ----------
    target : array-like
        Shares of the combinations of all dimensions, (q, C) or (C,); the last dimension varies fastest.
    sizes : sequence of int
        The number of categories of each dimension.
    background : sequence of array-like
        One distribution per averaged dimension, which come first, (C_d − 1,).

    Returns
    -------
    ndarray
        The shape of ``target``.

    Examples
    --------
    >>> mixed_with_background([0.5, 0.5, 0.0], [3], [[0.5, 0.5]]).tolist()
    [0.5, 0.375, 0.125]
    """
    flat = np.asarray(target, float)
    if flat.shape[-1] != np.prod(sizes, dtype=int) or any(
        np.shape(part) != (size - 1,) for part, size in zip(background, sizes, strict=False)
    ):
        shapes = [np.shape(part) for part in background]
        raise DataError(
            f"target must have a share per combination of {list(sizes)} categories, and a background one per known "
            f"category; got {flat.shape[-1]} shares and backgrounds of shapes {shapes}."
        )
    averaged = len(background)
    rest = int(np.prod(sizes[averaged:], dtype=int))
    mixed = flat.reshape(-1, *sizes[:averaged], rest).copy()
    inner = tuple(range(1, averaged + 1))
    marginal = mixed.sum(axis=inner, keepdims=True)
    for pattern in product((False, True), repeat=averaged):
        if not any(pattern):
            continue
        where = (slice(None), *(slice(1, None) if known else slice(0, 1) for known in pattern))
        part = mixed[where]
        mass = part.sum(axis=(*inner, averaged + 1), keepdims=True)
        given = divide(part, part.sum(axis=-1, keepdims=True))
        known = np.ones((1,) * (averaged + 2))
        for axis, (is_known, shares) in enumerate(zip(pattern, background, strict=True), start=1):
            if is_known:
                known = known * np.asarray(shares, float).reshape(-1, *(1,) * (averaged + 1 - axis))
        wanted = mass * known * np.where(np.isnan(given), marginal, given)
        mixed[where] = np.where(mass > 0, (part + wanted) / 2, part)
    return mixed.reshape(flat.shape)
