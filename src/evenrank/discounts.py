"""How much attention each rank gets: the discounts of measures, and their sums over ranks.

A discount of the rank alone is an array over ranks, and its sums over the first 0, 1, 2, … ranks give the expectation
over random tie-breaking. The discount "err" depends on what stands above, and has an expectation of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rank from 1 and patience p → weight.
BY_RANK: dict[str, Callable[[NDArray[Any], float], NDArray[Any]]] = {
    "log2": lambda rank, p: 1 / np.log2(1 + rank),
    "log2_clipped": lambda rank, p: 1 / np.log2(np.maximum(rank, 2)),
    "rbp": lambda rank, p: p ** (rank - 1.0),
    "geometric": lambda rank, p: p * (1 - p) ** (rank - 1.0),
    "none": lambda rank, p: np.ones(len(rank)),
}
ERR = "err"
DISCOUNTS = (*BY_RANK, ERR)
PATIENCE = 0.5
STOP = 0.5
CHUNK = 1 << 20  # of ranks that are held at a time


@lru_cache(maxsize=64)
def discount_sums(
    length: int, k: int | None = None, discount: str = "log2", patience: float = PATIENCE
) -> NDArray[np.float64]:
    """Sum the discounts of the first 0, 1, …, ``length`` ranks, of which those below rank k are 0.

    Parameters
    ----------
    length : int
        The longest list.
    k : int, optional
        The cut-off.
    discount : str
        One of `BY_RANK`.
    patience : float
        The p of "rbp", p^(rank − 1), and of "geometric", p (1 − p)^(rank − 1).

    Returns
    -------
    ndarray
        (length + 1,), read-only.
    """
    discounts = BY_RANK[discount](np.arange(1, length + 1), patience)
    if k is not None:
        discounts[k:] = 0
    sums = np.concatenate([[0.0], np.cumsum(discounts)])
    sums.flags.writeable = False
    return sums


@lru_cache(maxsize=64)
def discount_total(k: int, discount: str = "log2", patience: float = PATIENCE) -> float:
    """Sum the discounts of the first k ranks, however long lists are.

    Parameters
    ----------
    k : int
        The number of ranks.
    discount, patience
        As in `discount_sums`.

    Returns
    -------
    float
        The sum.

    Examples
    --------
    >>> discount_total(3, "rbp", 0.5)
    1.75
    """
    parts = (np.arange(start, min(start + CHUNK, k)) + 1 for start in range(0, k, CHUNK))
    return sum(float(BY_RANK[discount](ranks, patience).sum()) for ranks in parts)


def err_exposure(
    first: NDArray[Any],
    size: NDArray[Any],
    relevant: NDArray[np.bool_],
    query_ptr: NDArray[np.int64],
    *,
    patience: float = PATIENCE,
    stop: float = STOP,
    k: int | None = None,
) -> NDArray[np.float64]:
    """Expect p^(rank − 1) (1 − u)^(relevant items above), exactly, over random orders of tied items.

    Of a block of m tied items with R relevant ones besides the row itself, the row has x = 0 … m − 1 above it with
    equal probability, and of these a hypergeometric number is relevant.

    Parameters
    ----------
    first, size : ndarray
        The places of `Ranking`, (n,) or (n, columns).
    relevant : ndarray
        (n,).
    query_ptr : ndarray
        The bounds of the queries, (q + 1,).
    patience, stop : float
        p, the chance to go on to the next rank; u, the chance to stop at a relevant item.
    k : int, optional
        Nothing is seen below this rank.

    Returns
    -------
    ndarray
        The shape of ``first``.
    """
    table = first.reshape(len(first), -1)
    sizes = size.reshape(table.shape).astype(np.int64)
    start = np.repeat(query_ptr[:-1], np.diff(query_ptr))
    out = np.empty(table.shape)
    for column in range(table.shape[1]):
        place = start + table[:, column]
        by_place = np.bincount(place[relevant], minlength=len(start))
        above = np.concatenate([[0], np.cumsum(by_place)])
        mates = by_place[place] - relevant
        seen = sizes[:, column] if k is None else np.clip(k - table[:, column], 0, sizes[:, column])
        within = (seen > 0).astype(float)
        tied = np.flatnonzero(sizes[:, column] > 1)
        if len(tied):
            within[tied] = _within_blocks(sizes[tied, column], mates[tied], seen[tied], patience, stop)
        reached = patience ** table[:, column].astype(float) * (1 - stop) ** (above[place] - above[start])
        out[:, column] = reached * within
    return out.reshape(first.shape)


def _within_blocks(
    size: NDArray[np.int64], mates: NDArray[np.int64], seen: NDArray[np.int64], patience: float, stop: float
) -> NDArray[np.float64]:
    """Mean over x = 0 … size − 1, of which those from ``seen`` on count 0, of p^x E[(1 − u)^H], H of x items above."""
    widest, most = int(size.max()) + 1, int(mates.max()) + 1
    keys, which = np.unique((size * most + mates) * widest + seen, return_inverse=True)
    size, mates, seen = keys // widest // most, keys // widest % most, keys % widest
    total = np.zeros(len(keys))
    count = np.arange(most)
    # chance[i, h]: of the first x of the other items of block i, h are relevant.
    active, chance = np.arange(len(keys)), np.tile(count == 0, (len(keys), 1)).astype(float)
    for x in range(int(seen.max())):
        going = seen[active] > x
        active, chance = active[going], chance[going]
        total[active] += patience**x * (chance @ (1 - stop) ** count)
        left = np.maximum(size[active] - 1 - x, 1)[:, None]
        hits = chance * np.clip((mates[active, None] - count) / left, 0, 1)
        chance -= hits
        chance[:, 1:] += hits[:, :-1]
    return np.asarray((total / size)[which])
