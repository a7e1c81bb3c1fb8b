"""`GroupLists`: every list's items of each group in score order, and the loop that fills places from them.

All lists go through a place at once. They stand in order of how many places there are to fill, so that those still
being filled are the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.ranking import Ranking, strict_places

Ints = NDArray[np.int64]
NONE_LEFT = np.iinfo(np.int64).max  # the rank of a group's next item where there is none


class GroupLists:
    """The lists of data, by group.

    Rows of unknown group keep their place; only the places of the others are filled.

    Parameters
    ----------
    stored : ndarray
        Scores, (n,), in stored order.
    data : RankingData
        The rows.
    group : ndarray
        Each row's group, (n,), -1 for unknown.
    n_groups : int
        The number of groups.
    k : int, optional
        Fill the first k places only; the rest follow by score.

    Attributes
    ----------
    lists : ndarray
        The queries, those with most places to fill first, (q,).
    depth : ndarray
        How many places each of ``lists`` has to fill, (q,), falling.
    count : ndarray
        How many items each of ``lists`` has of each group, (q, groups).
    rank : ndarray
        Each row's place by score, ties broken, (n,).
    block : ndarray
        The same with equal scores sharing the first of their places, (n,).
    """

    def __init__(self, stored: NDArray[np.generic], data: RankingData, group: Ints, n_groups: int, k: int | None):
        self.data = data
        self.rank = strict_places(stored, data)
        self.block = Ranking(stored, data.query_ptr).first.astype(np.int64)
        self._by_rank = np.empty(data.n_rows, np.int64)
        self._by_rank[data.query_ptr[data.query_of_row] + self.rank] = np.arange(data.n_rows)
        known = group >= 0
        first = known if k is None else known & (self.rank < k)
        depth = np.add.reduceat(first.astype(np.int64), data.query_ptr[:-1])
        self.lists = np.argsort(-depth, kind="stable")
        self.depth = depth[self.lists]
        size = np.bincount(data.query_of_row[known] * n_groups + group[known], minlength=data.n_queries * n_groups)
        start = (np.cumsum(size) - size).reshape(-1, n_groups)
        self.count = size.reshape(-1, n_groups)[self.lists]
        self._start = start[self.lists]
        rows = self._by_rank[known[self._by_rank]]
        self._rows = rows[np.argsort(data.query_of_row[rows] * n_groups + group[rows], kind="stable")]
        self._known = known

    def heads(self, taken: Ints) -> tuple[Ints, Ints]:
        """Find the next item of each group.

        Parameters
        ----------
        taken : ndarray
            How many of each group the first lists have used, (lists, groups).

        Returns
        -------
        rows, rank : ndarray
            Its row, and its place by score, or `NONE_LEFT`; (lists, groups).
        """
        active = len(taken)
        left = taken < self.count[:active]
        rows = self._rows[np.where(left, self._start[:active] + taken, 0)]
        return rows, np.where(left, self.rank[rows], NONE_LEFT)

    def steps(self) -> Iterator[tuple[int, int]]:
        """Go through the places: each, from 0, and how many of ``lists`` have it."""
        deepest = int(self.depth[0]) if len(self.depth) else 0
        having = len(self.depth) - np.searchsorted(self.depth[::-1], np.arange(deepest), side="right")
        yield from enumerate(having.tolist())

    def new_scores(self, sequence: Ints) -> NDArray[np.float64]:
        """Turn the order in which rows were taken into scores.

        Parameters
        ----------
        sequence : ndarray
            (n,), how many of its list were taken before the row, -1 for rows that were not taken.

        Returns
        -------
        ndarray
            Minus the new rank, from 1, (n,), in the caller's row order: rows not taken follow by score.
        """
        data, by_rank = self.data, self._by_rank
        of_known = by_rank[self._known[by_rank]]
        query = data.query_of_row[of_known]
        of_list = np.searchsorted(query, np.arange(data.n_queries))
        rest = sequence[of_known] < 0
        before: Ints = np.cumsum(rest) - rest
        offset = np.bincount(query[~rest], minlength=data.n_queries)
        has_some = of_list < len(of_known)
        offset[has_some] -= before[of_list[has_some]]
        at = np.where(rest, before + offset[query], sequence[of_known])
        place = self.rank.copy()
        place[of_known] = self.rank[of_known][of_list[query] + at]
        return data.to_caller(-1.0 - place)


def fill(lists: GroupLists, low: Ints, high: Ints | None = None, due: Ints | None = None) -> NDArray[np.float64]:
    """Fill the places from the top, each with the next item of a group.

    A group below its minimum comes first; then, where ``high`` is given, one below its maximum, of which the one with
    the smallest ``due``; then any. Among several, the best next item.

    Parameters
    ----------
    lists : GroupLists
        The lists.
    low, high : ndarray
        The least number of each group's items in the first 1, 2, … places, (places, groups), and the most that may
        be there while another group has fewer.
    due : ndarray, optional
        Numbers from 0, (places, groups); smaller ones are served first.

    Returns
    -------
    ndarray
        Scores of the new order, (n,), in the caller's row order.
    """
    n_groups = lists.count.shape[1]
    longest = int(lists.data.lengths.max(initial=1))
    sequence = np.full(lists.data.n_rows, -1, np.int64)
    taken = np.zeros_like(lists.count)
    for place, active in lists.steps():
        used = taken[:active]
        rows, rank = lists.heads(used)
        turn = np.zeros_like(used)
        if high is not None:
            waits = np.zeros(n_groups, np.int64) if due is None else due[place]
            turn = np.where(used < high[place], 1 + waits, 2 + waits.max(initial=0))
        turn[used < low[place]] = -1 if high is None else 0
        turn[rank == NONE_LEFT] = NONE_LEFT // longest - 1
        chosen = np.argmin(turn * longest + np.minimum(rank, longest - 1), axis=1)
        every = np.arange(active)
        sequence[rows[every, chosen]] = place
        used[every, chosen] += 1
    return lists.new_scores(sequence)
