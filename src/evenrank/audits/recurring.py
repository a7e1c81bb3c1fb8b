"""`Recurring`: items that stand in several lists, from a summary with item ids."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.summary import Summary
from evenrank.discounts import discount_sums

STRAYING = 0.25  # of the rows that would have another group than their id's usual one by chance: labelling errors


class Recurring:
    """Items that stand in several lists, row by row. An id that is seen in two groups is an item in each.

    Parameters
    ----------
    summary : Summary
        A summary with item ids.
    """

    def __init__(self, summary: Summary) -> None:
        assert summary.items is not None
        self.summary = summary
        cell = np.repeat(np.arange(len(summary.key)), summary.count.astype(np.int64))
        self.query, self.stratum, self.group = summary.query[cell], summary.stratum[cell], summary.group[cell]
        # rows with weights: of each the mean weight of its cell
        self.weight = (summary.weight / summary.count)[cell] if summary.weighted else None
        ids, self.item = np.unique(summary.items, return_inverse=True)
        self.n_ids = len(ids)
        self.strayed = 0.0  # the share of rows whose group is not the one that their id mostly has
        group = np.empty(len(ids), np.int64)
        group[self.item] = self.group
        if len(ids) and (group[self.item] != self.group).any():
            both, self.item = np.unique(self.item * summary.n_groups + self.group, return_inverse=True)
            starts = np.flatnonzero(np.diff(both // summary.n_groups, prepend=-1))
            usual = np.maximum.reduceat(np.bincount(self.item), starts)
            self.strayed = 1 - float(usual.sum()) / len(self.item)
        self.n_items = int(self.item.max(initial=-1)) + 1

    @cached_property
    def lists_per_item(self) -> float:
        """In how many lists an item stands on average."""
        return len(self.item) / max(1, self.n_ids)

    @cached_property
    def most_recurring(self) -> float:
        """In how many lists the item of a row stands, on average over the rows of the group where that is largest."""
        lists = np.bincount(self.item)[self.item] if len(self.item) else np.zeros(0)
        rows = np.bincount(self.group)
        return float((np.bincount(self.group, lists) / np.maximum(rows, 1)).max(initial=0.0))

    @cached_property
    def of_one_group(self) -> bool:
        """Whether ids go with groups, as they do if they name items: hardly any row strays from its id's group.

        Ids such as places in a list do not: their rows stray as often as chance has it.
        """
        if not self.strayed:
            return True
        by_chance = 1 - float(np.bincount(self.group).max()) / len(self.group)
        return self.strayed <= STRAYING * by_chance

    def rows_of(self, wanted: int | None, a: int, b: int) -> NDArray[np.int64]:
        """The rows of two groups in a stratum, by its number in the summary; None is all rows."""
        chosen = (self.group == a) | (self.group == b)
        return np.flatnonzero(chosen if wanted is None else chosen & (self.stratum == wanted))

    @cached_property
    def values(self) -> dict[tuple[int, int], NDArray[np.float64]]:
        """x of every row, for each value and cut-off."""
        first, size = self.summary.first, self.summary.size
        assert first is not None
        assert size is not None
        longest = int(self.summary.lengths.max())
        table = {}
        for cut, k in enumerate(self.summary.ks):
            sums = discount_sums(longest, k)
            table[0, cut] = np.clip(min(k, longest) - first, 0, size) / size
            table[1, cut] = (sums[first + size] - sums[first]) / size
        return table
