"""DetConstSort over all lists at once: items enter when a minimum rises, and move up as far as no deadline forbids."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evenrank.rerankers.group_lists import NONE_LEFT, GroupLists

Ints = NDArray[np.int64]


def const_sort(lists: GroupLists, shares: list[Fraction]) -> NDArray[np.float64]:
    """Re-rank every list.

    Parameters
    ----------
    lists : GroupLists
        The lists.
    shares : list of Fraction
        The groups' shares.

    Returns
    -------
    ndarray
        Scores of the new order, (n,), in the caller's row order.
    """
    order = _Orders(lists)
    for place, groups in _rises(shares, lists.count.max(axis=0, initial=0).tolist(), order.width):
        order.enter(place, groups)
        if order.full:
            break
    return lists.new_scores(order.sequence())


def _rises(shares: list[Fraction], most: list[int], width: int) -> list[tuple[int, list[int]]]:
    """The places at which minima rise, ascending, each with the groups whose minimum does."""
    at: dict[int, list[int]] = {}
    for group, (share, number) in enumerate(zip(shares, most, strict=True)):
        if share:
            for item in range(1, min(number, width) + 1):
                at.setdefault(-(-item * share.denominator // share.numerator), []).append(group)
    return sorted(at.items())


class _Orders:
    """The lists as far as they are made: (lists, places) of rows, and of their deadlines."""

    def __init__(self, lists: GroupLists) -> None:
        self.lists = lists
        self.width = int(lists.depth[0]) if len(lists.depth) else 0
        shape = (len(lists.depth), self.width)
        self.rows = np.zeros(shape, np.int64)
        self.deadline = np.zeros(shape, np.int64)
        self.size = np.zeros(shape[0], np.int64)
        self.taken = np.zeros_like(lists.count)

    @property
    def full(self) -> bool:
        """Whether every list has all its places."""
        return bool((self.size == self.lists.depth).all())

    def enter(self, deadline: int, groups: list[int]) -> None:
        """Let the next item of each of these groups in, the best first."""
        waiting = np.zeros(self.lists.count.shape, bool)
        waiting[:, groups] = True
        for _ in groups:
            rows, rank = self.lists.heads(self.taken)
            rank = np.where(waiting, rank, NONE_LEFT)
            best = np.argmin(rank, axis=1)
            every = np.arange(len(best))
            enters = np.flatnonzero((rank[every, best] != NONE_LEFT) & (self.size < self.lists.depth))
            best = best[enters]
            self._insert(enters, rows[enters, best], deadline)
            self.taken[enters, best] += 1
            waiting[enters, best] = False

    def _insert(self, lists: Ints, rows: Ints, deadline: int) -> None:
        """Put a row at the end of each of these lists and let it move up."""
        at = self.size[lists].copy()
        self.rows[lists, at], self.deadline[lists, at] = rows, deadline
        self.size[lists] += 1
        block, moving = self.lists.block, np.arange(len(lists))
        while len(moving):
            moving = moving[at[moving] > 0]
            here, place = lists[moving], at[moving]
            above = self.rows[here, place - 1]
            # The item above would sink to the place from 1 that is this one from 0, plus 1.
            sinks = (block[above] > block[rows[moving]]) & (self.deadline[here, place - 1] >= place + 1)
            moving, here, place = moving[sinks], here[sinks], place[sinks]
            for table in (self.rows, self.deadline):
                table[here, place], table[here, place - 1] = table[here, place - 1], table[here, place]
            at[moving] -= 1

    def sequence(self) -> Ints:
        """Each row's place among those of its list that entered; rows that did not follow by score, as -1 says."""
        out = np.full(self.lists.data.n_rows, -1, np.int64)
        entered = np.arange(self.width) < self.size[:, None]
        out[self.rows[entered]] = np.nonzero(entered)[1]
        return out
