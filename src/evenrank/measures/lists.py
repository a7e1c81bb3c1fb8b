"""What measures of many lists share: blocks of lists of one length, sums over groups, and counts of the first ranks.

Rows stand in stored order, bounded by ``ptr``; a table of rows has the models as its last axis. Groups are a
*membership*, (n, G): 0 and 1 for labels, shares for soft groups, all 0 for a row of unknown group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.discounts import ERR, PATIENCE, STOP, discount_sums
from evenrank.errors import DataError

CELLS = 1 << 17  # of a table that is worked on at a time, so that it stays in the processor's cache


class Block(NamedTuple):
    """Some queries of one length.

    Attributes
    ----------
    queries : ndarray
        Their numbers, (c,).
    rows : slice or ndarray
        Their rows, of which there are c · length, one query after the other.
    length : int
        The number of items of each.
    """

    queries: NDArray[np.int64]
    rows: Any
    length: int


def list_blocks(ptr: NDArray[np.int64], width: int = 1) -> Iterator[Block]:
    """Go through queries of one length, a few at a time; ``width`` is the number of values held per row."""
    lengths = np.diff(ptr)
    for length in np.unique(lengths[lengths > 0]).tolist():
        queries = np.flatnonzero(lengths == length)
        step = max(1, CELLS // (length * width))
        for start in range(0, len(queries), step):
            chunk = queries[start : start + step]
            begin, end = ptr[chunk[0]], ptr[chunk[-1]] + length
            together = end - begin == len(chunk) * length
            rows: Any = slice(begin, end) if together else (ptr[chunk][:, None] + np.arange(length)).ravel()
            yield Block(chunk, rows, length)


def one_hot(group: ArrayLike, n_groups: int) -> NDArray[np.bool_]:
    """Turn labels into a membership.

    Parameters
    ----------
    group : array-like
        Group numbers from 0, (n,); -1 is unknown.
    n_groups : int
        The number of groups, G.

    Returns
    -------
    ndarray
        (n, G).

    Examples
    --------
    >>> one_hot([1, -1], 2).tolist()
    [[False, True], [False, False]]
    """
    return np.asarray(np.asarray(group)[:, None] == np.arange(n_groups))


def joint_membership(dimensions: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Combine memberships in several dimensions into one, whose categories are all combinations.

    Parameters
    ----------
    dimensions : sequence of array-like
        One membership per dimension, (n, C_d).

    Returns
    -------
    ndarray
        Products of the dimensions' shares, (n, Π C_d); the last dimension varies fastest.

    Examples
    --------
    >>> joint_membership([[[1, 0]], [[0.5, 0.25, 0.25]]]).tolist()
    [[0.5, 0.25, 0.25, 0.0, 0.0, 0.0]]
    """
    joint = np.asarray(dimensions[0], float)
    for other in dimensions[1:]:
        joint = (joint[:, :, None] * np.asarray(other, float)[:, None, :]).reshape(len(joint), -1)
    return joint


def group_sums(
    values: NDArray[Any], membership: NDArray[Any], ptr: NDArray[np.int64], weight: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Sum row values over each group of each query.

    Parameters
    ----------
    values : ndarray
        (n,) or (n, models).
    membership : ndarray
        (n, G).
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    weight : ndarray, optional
        What the values of each row count, (n,).

    Returns
    -------
    ndarray
        (q, G) or (q, G, models).

    Examples
    --------
    >>> group_sums(np.array([1.0, 0.5, 0.25]), one_hot([0, 1, 0], 2), np.array([0, 3])).tolist()
    [[1.25, 0.5]]
    """
    table = values.reshape(len(values), -1)
    models, groups = table.shape[1], membership.shape[1]
    out = np.zeros((len(ptr) - 1, groups, models))
    for block in list_blocks(ptr, models + groups):
        shape = (len(block.queries), block.length)
        member = membership[block.rows]
        if weight is not None:
            member = member * weight[block.rows, None]
        member = member.reshape(*shape, groups)
        rows = table[block.rows].reshape(*shape, models)
        out[block.queries] = member.transpose(0, 2, 1).astype(float) @ rows
    return out.reshape(len(out), groups, *values.shape[1:])


def column(row_values: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Shape one value per row, (n,), so that it broadcasts over a table (n, …)."""
    return row_values.reshape(-1, *(1,) * (like.ndim - 1))


def query_sums(values: NDArray[Any], ptr: NDArray[np.int64]) -> NDArray[Any]:
    """Sum row values, (n, …), over each query."""
    return np.asarray(np.add.reduceat(values, ptr[:-1], axis=0))


def prefix_counts(
    first: NDArray[Any],
    size: NDArray[Any] | None,
    membership: NDArray[Any],
    ptr: NDArray[np.int64],
    codes: NDArray[np.int8] | None = None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Count each group among the first 1, 2, … ranks, expected over random tie-breaking.

    Parameters
    ----------
    first, size : ndarray
        The places of `evenrank.ranking.Ranking`, (n, models); no size if nothing is tied.
    membership : ndarray
        (n, G).
    ptr : ndarray
        The bounds of the queries, (q + 1,).
    codes : ndarray, optional
        The group number of each row, (n,), -1 for none, if each row is of one group at most.

    Yields
    ------
    queries : ndarray
        The numbers of some queries of one length, (c,).
    counts : ndarray
        (length, G, c, models); whole numbers where no items are tied and each is of one group.
    """
    models, groups = first.shape[1], membership.shape[1]
    for block in list_blocks(ptr, models * groups):
        places = Places.of(first, size, block)
        of_block = None
        if places.untied:
            of_block = group_codes(membership[block.rows]) if codes is None else codes[block.rows]
        if of_block is None:
            at_rank = places.means_at_rank(membership[block.rows])
        else:
            at_rank = np.empty((block.length, groups, places.lists), np.int16 if block.length < 1 << 15 else np.int32)
            by_rank = places.codes_at_rank(of_block)
            for group in range(groups):
                np.equal(by_rank, group, out=at_rank[:, group], casting="unsafe")
        add_up(at_rank)
        yield block.queries, at_rank.reshape(block.length, groups, -1, models)


def add_up(table: NDArray[Any]) -> None:
    """Replace the rows of a table, (length, …), by their sums with all rows before them."""
    if table[0].size < len(table):
        np.cumsum(table, axis=0, out=table, dtype=table.dtype)
        return
    for before, row in pairwise(table):  # wide rows: numpy sums each column by itself, which is slower
        row += before


def group_codes(member: NDArray[Any]) -> NDArray[np.int8] | None:
    """Give the group number of each row of a membership, (rows,), -1 for none; None if a row is of several groups."""
    if not ((member == 0) | (member == 1)).all() or (member.sum(axis=1) > 1).any() or member.shape[1] > 127:
        return None
    return np.where(member.any(axis=1), member.argmax(axis=1), -1).astype(np.int8)


class Places(NamedTuple):
    """Where the rows of a block stand, in every list; a list is a query under one model.

    Attributes
    ----------
    first, size : ndarray
        Items above each row, and those tied with it, (c, length, models).
    untied : bool
        Whether no items are tied.
    """

    first: NDArray[Any]
    size: NDArray[Any]
    untied: bool

    @classmethod
    def of(cls, first: NDArray[Any], size: NDArray[Any] | None, block: Block) -> Places:
        """Take the places of a block's rows out of those of all rows, (n, models); no size if nothing is tied."""
        shape = (len(block.queries), block.length, first.shape[1])
        places = first[block.rows].reshape(shape)
        if size is None:
            return cls(places, np.ones((1, 1, 1), np.int64), True)
        sizes = size[block.rows].reshape(shape)
        return cls(places, sizes, bool(sizes.max() == 1))

    @property
    def lists(self) -> int:
        """The number of lists, c · models."""
        count, _, models = self.first.shape
        return int(count * models)

    def cells(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """Give the number of each (place, list) in a table (places, lists), (c, length, models)."""
        count, _, models = self.first.shape
        cells: NDArray[np.int64] = np.multiply(places, self.lists, dtype=np.int64)
        cells += np.arange(self.lists).reshape(count, 1, models)
        return cells

    def codes_at_rank(self, codes: NDArray[np.int8]) -> NDArray[np.int8]:
        """Put the codes of rows, (c · length,), where they stand, (length, lists); for untied lists."""
        count, length, _ = self.first.shape
        out = np.empty(length * self.lists, np.int8)
        out[self.cells(self.first)] = codes.reshape(count, length, 1)
        return out.reshape(length, self.lists)

    def counts_at_cuts(self, member: NDArray[np.bool_], step: int, number: int) -> NDArray[np.float64]:
        """Count rows, (c · length,), among the first step, 2·step, … ranks, expected under ties: (number, lists)."""
        _, length, models = self.first.shape
        if not self.untied:
            return np.cumsum(self.means_at_rank(member[:, None])[:, 0], axis=0)[step - 1 :: step][:number]
        rows = np.flatnonzero(member)
        cells = self.first.reshape(-1, models)[rows] // step * np.int64(self.lists)
        cells += (rows // length * models)[:, None] + np.arange(models)
        bins = np.bincount(cells.ravel(), minlength=(length // step + 1) * self.lists)
        return np.cumsum(bins.reshape(-1, self.lists)[:number], axis=0, dtype=float)

    def sums_at_start(self, member: NDArray[Any]) -> NDArray[np.float64]:
        """Sum a membership, (c · length, G), over tied items, where the first of them stands: (length, lists, G)."""
        count, length, _ = self.first.shape
        cells = self.cells(self.first).ravel()
        sums = np.zeros((length * self.lists, member.shape[1]))
        for group in range(member.shape[1]):
            weight = np.broadcast_to(member[:, group].reshape(count, length, 1), self.first.shape)
            sums[:, group] = np.bincount(cells, weight.ravel(), len(sums))
        return sums.reshape(length, self.lists, -1)

    def means_at_rank(self, member: NDArray[Any]) -> NDArray[np.float64]:
        """Give what stands at each rank, (length, G, lists): the mean of the tied items that share it."""
        length = self.first.shape[1]
        by_cell = np.zeros(length * self.lists, np.int64)
        by_cell[self.cells(self.first)] = self.size
        sizes = by_cell.reshape(length, -1)
        start = np.maximum.accumulate(np.where(sizes > 0, np.arange(length)[:, None], 0), axis=0)
        means = self.sums_at_start(member) / np.maximum(sizes, 1)[:, :, None]
        return np.take_along_axis(means.transpose(0, 2, 1), start[:, None], axis=0)


def ranked_exposure(
    rankings: Sequence[ArrayLike],
    n_items: int,
    *,
    discount: str = "log2",
    patience: float = PATIENCE,
    stop: float = STOP,
    relevant: ArrayLike | None = None,
    k: int | None = None,
) -> NDArray[np.float64]:
    """Compute each item's mean exposure over rankings of one query that are given as orders.

    Parameters
    ----------
    rankings : sequence of array-like
        Item numbers from 0, best first. An item that is not ranked gets no exposure; -1 takes a rank and is no item.
    n_items : int
        The number of items.
    discount : str
        The exposure of a rank, as in `evenrank.measures.Options`.
    patience, stop : float
        The p and u of discounts.
    relevant : array-like, optional
        Which items are relevant, (n_items,); the discount "err" needs it.
    k : int, optional
        The exposure is 0 below this rank.

    Returns
    -------
    ndarray
        (n_items,).

    Examples
    --------
    >>> ranked_exposure([[2, 0], [0, 2]], 3, discount="rbp", patience=0.5).tolist()
    [0.75, 0.0, 0.75]
    """
    exposure = np.zeros(n_items)
    if discount == ERR and relevant is None:
        raise DataError("discount 'err' needs relevant=, one truth value per item; got none.")
    for ranking in rankings:
        items = np.asarray(ranking, np.int64).ravel()
        if len(items) and not -1 <= items.min() <= items.max() < n_items:
            raise DataError(f"a ranking holds item numbers in 0…{n_items - 1} or -1; got {items.min()}…{items.max()}.")
        name = "rbp" if discount == ERR else discount
        weight = np.diff(discount_sums(len(items), k, name, patience))
        if discount == ERR:
            stops = np.asarray(relevant, bool)[items] & (items >= 0)
            weight = weight * (1 - stop) ** (np.cumsum(stops) - stops)
        np.add.at(exposure, items[items >= 0], weight[items >= 0])
    return exposure / max(len(rankings), 1)
