"""From a summary to what is computed with: statistics of all groups, and the lists of each pair of groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.recurring import Recurring
from evenrank.audits.summary import QUALITY, VALUES, Summary
from evenrank.contrasts import Pairs
from evenrank.discounts import discount_sums
from evenrank.inference import ItemSums, Lists
from evenrank.measures import MeasureAt
from evenrank.query_sums import Sums, Weights
from evenrank.statistic import Statistic

STRATA = {"all rows": None, "relevant rows": 1, "irrelevant rows": 0}
OF_NOTION = {"demographic_parity": "all rows", "exposure_gap": "all rows", "equal_opportunity": "relevant rows"}


class Stratum:
    """The cells of one stratum: at most one per list and group.

    Parameters
    ----------
    summary : Summary
        The sums.
    name : str
        "all rows", "relevant rows" or "irrelevant rows".
    """

    def __init__(self, summary: Summary, name: str) -> None:
        self.summary = summary
        self.name = name
        wanted = STRATA[name]
        key = summary.query * summary.n_groups + summary.group
        self._cells: NDArray[np.int64] | None = None
        self._entry: NDArray[np.int64] | None = None
        if wanted is not None:
            self._cells = np.flatnonzero(summary.stratum == wanted)
            self.key = key[self._cells]
        elif not summary.labelled:
            self.key = key
        else:
            self.key, self._entry = np.unique(key, return_inverse=True)
        self._taken: dict[tuple[str, int, int], NDArray[np.float64]] = {}

    @cached_property
    def weights(self) -> Weights:
        """The weights of the groups' rates in each list."""
        summary = self.summary
        return Weights.of(self.key, self.take(summary.weight), summary.held, summary.n_groups, summary.times)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """The items of each group in the stratum, (G,)."""
        count = self.take(self.summary.count * self.summary.cell_times)
        return np.bincount(self.key % self.summary.n_groups, count, minlength=self.summary.n_groups).astype(np.float64)

    def take(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring one value per cell of the summary, (e,), to the cells of this stratum."""
        if self._cells is not None:
            return values[self._cells]
        if self._entry is None:
            return values
        return np.bincount(self._entry, values, minlength=len(self.key)).astype(np.float64)

    def sums(self, kind: str, value: int, cut: int) -> NDArray[np.float64]:
        """Give the sums of x (``kind`` "sums") or of x² ("squares") over each cell, computed once."""
        place = (kind, value, cut)
        if place not in self._taken:
            self._taken[place] = self.take(getattr(self.summary, kind)[value, cut])
        return self._taken[place]

    def forget(self) -> None:
        """Drop the sums taken so far; they are taken again when asked for."""
        self._taken.clear()

    @cached_property
    def _by_group(self) -> list[NDArray[np.int64]]:
        """The cells of each group, in the order of the lists."""
        order = np.argsort(self.key % self.summary.n_groups, kind="stable")
        ends = np.cumsum(np.bincount(self.key % self.summary.n_groups, minlength=self.summary.n_groups))
        return np.split(order, ends[:-1])

    def pair(self, a: int, b: int) -> PairLists:
        """Take the lists that hold an item of either group."""
        cells = self._by_group[a], self._by_group[b]
        queries = [self.key[side] // self.summary.n_groups for side in cells]
        there = np.zeros(self.summary.held, bool)
        for side in queries:
            there[side] = True
        place = np.cumsum(there) - 1
        return PairLists(self, (a, b), np.flatnonzero(there), cells, (place[queries[0]], place[queries[1]]))


@dataclass(frozen=True, eq=False)
class PairLists:
    """The lists of one stratum that hold an item of either of two groups.

    Attributes
    ----------
    stratum : Stratum
        The stratum.
    groups : tuple of int
        The two groups.
    queries : ndarray
        (L,): the lists.
    cells, places : tuple of ndarray
        The cells of each group, and which of the L lists each is of.
    """

    stratum: Stratum
    groups: tuple[int, int]
    queries: NDArray[np.int64]
    cells: tuple[NDArray[np.int64], NDArray[np.int64]]
    places: tuple[NDArray[np.int64], NDArray[np.int64]]

    def _spread(self, values: NDArray[np.float64], side: int) -> NDArray[np.float64]:
        out = np.zeros(len(self.queries))
        out[self.places[side]] = values[self.cells[side]]
        return out

    @cached_property
    def rows(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The rows of each group in the lists, (L,) each."""
        weight = self.stratum.weights.weight
        return self._spread(weight, 0), self._spread(weight, 1)

    @cached_property
    def unit(self) -> float:
        """The mean weight of the pair's rows; tests count in it, so that only the weights' ratios matter."""
        times = self.times
        total = float((self.number * times).sum()) if self.stratum.summary.weighted else 0.0
        return float(sum((side * times).sum() for side in self.rows)) / total if total else 1.0

    @cached_property
    def times(self) -> NDArray[np.float64] | float:
        """For how many lists each of the L stands."""
        times = self.stratum.summary.times
        return 1.0 if times is None else times[self.queries]

    @cached_property
    def number(self) -> NDArray[np.float64]:
        """The rows of both groups in the lists, whatever they weigh, (L,)."""
        count = self.stratum.take(self.stratum.summary.count)
        return self._spread(count, 0) + self._spread(count, 1)

    def lists(self, value: int, cut: int, clusters: tuple[NDArray[np.int64], ...]) -> Lists:
        """Give what the tests are computed from, for one value and cut-off."""
        sums, squares = (self.stratum.sums(kind, value, cut) for kind in ("sums", "squares"))
        arrays = [
            *self.rows,
            self._spread(sums, 0),
            self._spread(sums, 1),
            self._spread(squares, 0) + self._spread(squares, 1),
        ]
        unit = self.unit
        a, b, x_a, x_b, both = arrays if unit == 1 else (array / unit for array in arrays)
        return Lists(
            a,
            b,
            x_a,
            x_b,
            both,
            clusters=tuple(codes[self.queries] for codes in clusters),
            whole=bool(self.stratum.summary.whole[value, cut]),
            number=self.number if self.stratum.summary.weighted else None,
            times=None if self.stratum.summary.times is None else self.stratum.summary.times[self.queries],
            apart=not self.stratum.summary.clusters,
        )

    def items(self, lists: Lists, values: NDArray[np.float64], recurring: Recurring) -> ItemSums:
        """Sum what recurring items got, and their deviations from the means of their lists with both groups.

        Parameters
        ----------
        lists : Lists
            What `lists` gave.
        values : ndarray
            (m,): x of every row.
        recurring : Recurring
            The rows' items.
        """
        a, b = self.groups
        rows = recurring.rows_of(STRATA[self.stratum.name], a, b)
        place = np.zeros(self.stratum.summary.held, np.int64)
        place[self.queries] = np.arange(len(self.queries))
        at, item, x = place[recurring.query[rows]], recurring.item[rows], values[rows]
        is_a = recurring.group[rows] == a
        # Lists that lack one of the groups say nothing about the other.
        both = ((lists.a > 0) & (lists.b > 0))[at]
        means, shares = lists.selected / lists.rows, lists.a / lists.rows
        number = recurring.n_items
        present = np.flatnonzero(np.bincount(item, minlength=number))
        weight = 1.0 if recurring.weight is None else recurring.weight[rows] / self.unit

        def sums(of_row: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(item, weight * of_row, minlength=number)[present].astype(np.float64)

        return ItemSums(
            sums(is_a) > 0,
            sums((x - means[at]) * both),
            sums((is_a - shares[at]) * both),
            sums(np.ones(len(rows))),
            sums(x),
            sums(both),
        )


class SummaryStatistics:
    """The statistics of a summary, each computed when it is asked for.

    Parameters
    ----------
    summary : Summary
        The sums.
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self._strata: dict[str, Stratum] = {}
        self._known: dict[Any, Sums] = {}
        self._odds: Weights | None = None

    def stratum(self, name: str) -> Stratum:
        """Give a stratum by its name."""
        if name not in self._strata:
            self._strata[name] = Stratum(self.summary, name)
        return self._strata[name]

    def statistics(self, names: list[str], *, across: str = "mean") -> list[Statistic]:
        """Compute the statistics of measures at the summary's cut-offs."""
        return [self._statistic(name, across) for name in names]

    def chances(self, name: str) -> NDArray[np.float64]:
        """Compute the ratios of a gap if each list were in random order."""
        measure, k = MeasureAt.of(name)
        assert k is not None
        lengths = self.summary.lengths
        if measure == "exposure_gap":
            mean = discount_sums(int(lengths.max()), k)[lengths] / lengths
        else:
            mean = np.minimum(k, lengths) / lengths
        weights = self._statistic(name, "mean").sums.weights
        return Sums(weights, weights.weight * np.repeat(mean, np.diff(weights.ptr))).ratios

    def _statistic(self, name: str, across: str) -> Statistic:
        measure, k = MeasureAt.of(name)
        assert k is not None
        cut = self.summary.ks.index(k)
        if measure in QUALITY:
            return Statistic(name, self._once((measure, cut), lambda: self._mean(QUALITY.index(measure), cut)), "mean")
        value = VALUES.index("exposure" if measure == "exposure_gap" else "top")
        if measure == "equalized_odds":
            sums = self._once((measure, cut), lambda: Sums(self._odds_weights, self.summary.sums[value, cut]))
        else:
            stratum = self.stratum(OF_NOTION.get(measure, "all rows"))
            sums = self._once(
                (stratum.name, value, cut), lambda: Sums(stratum.weights, stratum.sums("sums", value, cut))
            )
        total = sums.weights.total
        if measure == "four_fifths":
            return Statistic(name, sums, "ratio", Pairs.of(total[None, None], across="max", training=False))
        table = total.reshape(-1, 1, self.summary.n_groups)
        return Statistic(name, sums, "gap", Pairs.of(table, across=across, training=False))

    @cached_property
    def _odds_weights(self) -> Weights:
        summary = self.summary
        return Weights.of(summary.key, summary.weight, summary.held, 2 * summary.n_groups, summary.times)

    def _once(self, key: Any, make: Any) -> Sums:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _mean(self, number: int, cut: int) -> Sums:
        values = self.summary.quality[number, cut]
        exists = ~np.isnan(values)
        times = self.summary.times
        weights = Weights.of(np.flatnonzero(exists), np.ones(int(exists.sum())), len(exists), 1, times)
        return Sums(weights, values[exists])


def pairs_of(summary: Summary, most: int) -> Iterator[tuple[int, int]]:
    """Give the pairs of groups to compare: all, or, if they are more than ``most``, each with the largest group."""
    number = summary.n_groups
    if number * (number - 1) // 2 <= most:
        yield from ((a, b) for a in range(number) for b in range(a + 1, number))
        return
    largest = int(np.argmax(summary.group_counts))
    yield from ((min(j, largest), max(j, largest)) for j in range(number) if j != largest)
