"""What is watched, and its sums by window and bin of clusters: a table that can be added to.

Lists (or what they share, such as a user) and items are put into bins by their ids, the same bin in every window. Bins
are independent of each other where the clusters are, so that variances and covariances between windows come from the
sums of bins, whatever the number of lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.cells import STRATA, PairLists, SummaryStatistics
from evenrank.audits.ids import hashed
from evenrank.audits.recurring import Recurring
from evenrank.audits.summary import VALUES, Summary

BINS = 512
COLUMNS = 3  # of a table: the sum of x and the rows of a group; D, V and W of a pair; or those of a mean or rate
# Columns of a pair and its groups together: rows and sums of x, then D, V and W of lists with both, kind by kind.
N_A, X_A, N_B, X_B, EXCESS, VARIANCE, WEIGHT = range(7)
TOTAL, NUMBER, LISTS = range(COLUMNS)  # of means and rates: numerator, denominator, and the lists that have one
ITEMS = "items"
SHARES = 3  # kinds of list by shares of the groups: the first has less than a third, neither has, or the second
LONGEST = 9  # lists longer than 2**9 cut-offs are of one kind


@dataclass(frozen=True, order=True)
class Series:
    """One value of one group or of one pair of groups, or of all of a list.

    Attributes
    ----------
    measure : str
        A gap's full name, or another measure with its options.
    k : int
        The cut-off; 0 for whole lists.
    a, b : str
        The groups; ``b`` is empty for one group, and both are for a measure that has one value per list.
    clusters : str
        What the bins are made of: "lists", the name of a clustering, or "items".
    kind : int
        The kind of list, by `kinds_of` or `field.kinds_of_lists`.
    mix : str
        Of a measure that is no gap: the group that has more than two thirds of the list, if one has.
    """

    measure: str
    k: int
    a: str = ""
    b: str = ""
    clusters: str = "lists"
    kind: int = 0
    mix: str = ""


# The stratum and the value of each gap; equalized odds adds the irrelevant rows to equal opportunity.
GAPS = {
    "demographic_parity": ("all rows", "top"),
    "equal_opportunity": ("relevant rows", "top"),
    "equalized_odds": ("irrelevant rows", "top"),
    "exposure_gap": ("all rows", "exposure"),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Sums by series, window and bin; entries that are not there are 0.

    Attributes
    ----------
    series : tuple of Series
        Sorted.
    key : ndarray
        (e,), increasing: (series · windows + window) · `BINS` + bin.
    values : ndarray
        (e, 3).
    windows : int
        Their number.
    """

    series: tuple[Series, ...]
    key: NDArray[np.int64]
    values: NDArray[np.float64]
    windows: int

    @classmethod
    def sum_of(cls, parts: Sequence[tuple[Table, NDArray[np.int64]]], windows: int) -> Table:
        """Add tables whose windows get new numbers."""
        series = tuple(sorted({one for table, _ in parts for one in table.series}))
        place = {one: j for j, one in enumerate(series)}
        keys = []
        for table, number in parts:
            rest, bins = np.divmod(table.key, BINS)
            which, window = np.divmod(rest, max(1, table.windows))
            to = np.array([place[one] for one in table.series], np.int64)
            keys.append((to[which] * windows + number[window]) * BINS + bins if len(table.key) else table.key)
        key, entry = np.unique(np.concatenate(keys), return_inverse=True)
        values = np.zeros((len(key), COLUMNS))
        np.add.at(values, entry, np.concatenate([table.values for table, _ in parts]))
        return cls(series, key, values, windows)

    def without(self, windows: NDArray[np.int64]) -> Table:
        """Drop some windows' sums; their numbers stay."""
        kept = ~np.isin(self.key // BINS % max(1, self.windows), windows)
        return replace(self, key=self.key[kept], values=self.values[kept])

    def dense(self, series: Series) -> NDArray[np.float64]:
        """Give the sums of one series, (windows, bins, 3); 0 if it is not there."""
        out = np.zeros((self.windows * BINS, COLUMNS))
        if series in self.series:
            first = self.series.index(series) * len(out)
            start, stop = np.searchsorted(self.key, [first, first + len(out)])
            out[self.key[start:stop] - first] = self.values[start:stop]
        return out.reshape(self.windows, BINS, COLUMNS)

    def kinds(self, measure: str, a: str, b: str) -> set[int]:
        """Find the kinds of list that a pair has."""
        return {one.kind for one in self.series if (one.measure, one.a, one.b) == (measure, a, b)}

    def of_pair(self, measure: str, k: int, a: str, b: str, clusters: str, kinds: Sequence[int]) -> NDArray[np.float64]:
        """Give the sums of a pair and its groups together, (windows, bins, 4 + 3 per kind)."""
        alone = [self.dense(Series(measure, k, name, "", clusters))[..., [NUMBER, TOTAL]] for name in (a, b)]
        both = [self.dense(Series(measure, k, a, b, clusters, kind)) for kind in kinds]
        return np.concatenate([*alone, *both], axis=-1)


def kinds_of(lengths: NDArray[np.int64], k: int, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sort lists into kinds, each compared with its own: by length over k, in octaves, and by the groups' shares.

    Parameters
    ----------
    lengths : ndarray
        (L,).
    k : int
        The cut-off.
    a, b : ndarray
        (L,) each: the rows of the two groups.

    Returns
    -------
    ndarray
        (L,), from 0.
    """
    octave = np.clip(np.rint(np.log2(np.maximum(lengths, 1) / k)), 0, LONGEST).astype(np.int64)
    third = (a + b) / SHARES
    return octave * SHARES + np.where(a < third, 0, np.where(b < third, 2, 1))


def clusterings(summary: Summary, ids: NDArray[np.uint64]) -> tuple[tuple[str, ...], tuple[NDArray[np.int64], ...]]:
    """Name what bins are made of, and give the bin of each list, (q,), by each: its clusters, or else its own id."""
    bits = [hashed(labels) for labels in summary.clusters] or [ids]
    return summary.cluster_names or ("lists",), tuple((one % BINS).astype(np.int64) for one in bits)


def table_of(
    summary: Summary,
    window: NDArray[np.int64],
    windows: int,
    ids: NDArray[np.uint64],
    measures: Sequence[str],
    *,
    items: bool,
) -> Table:
    """Sum up lists by window and bin.

    Parameters
    ----------
    summary : Summary
        The lists.
    window : ndarray
        (q,): the window of each.
    windows : int
        Their number.
    ids : ndarray
        (q,): 64 bits per list, the same for a query that recurs.
    measures : sequence of str
        Keys of `GAPS`.
    items : bool
        Whether items recur and are to be clusters, too.
    """
    collected: dict[Series, NDArray[np.float64]] = {}
    names, codes = clusterings(summary, ids)
    recurring = Recurring(summary) if items and summary.items is not None else None
    item_bin = np.zeros(0, np.int64) if summary.items is None else (summary.items % BINS).astype(np.int64)
    statistics = SummaryStatistics(summary)
    for measure, k, cut, lists in _pairs(summary, statistics, measures):
        value = VALUES.index(GAPS[measure][1])
        inside = lists.lists(value, cut, codes)
        a, b = (str(summary.group_names[code]) for code in lists.groups)
        of_list = inside.x_a, inside.a, inside.x_b, inside.b, inside.excess, inside.variance, inside.weight
        kinds = np.where(inside.weight > 0, kinds_of(summary.lengths[lists.queries], k, inside.a, inside.b), -1)
        for name, code in zip(names, codes, strict=True):
            place = (window * BINS + code)[lists.queries]
            _add(collected, (measure, k, a, b, name), of_list, place, kinds, windows)
        if recurring is not None:
            of_row, rows, at = _by_row(lists, inside, recurring, recurring.values[value, cut])
            place = window[recurring.query[rows]] * BINS + item_bin[rows]
            _add(collected, (measure, k, a, b, ITEMS), of_row, place, kinds[at], windows)
    return _table(collected, windows)


def _pairs(
    summary: Summary, statistics: SummaryStatistics, measures: Sequence[str]
) -> Iterator[tuple[str, int, int, PairLists]]:
    """Each gap, the cut-off and its number, and the lists of a pair; a group that is alone is paired with itself."""
    names = [str(name) for name in summary.group_names]
    there = np.flatnonzero(summary.group_counts).tolist()
    order = sorted(there, key=names.__getitem__)
    pairs = [(a, b) for j, a in enumerate(order) for b in order[j + 1 :]] or [(a, a) for a in order]
    for measure in measures:
        stratum = statistics.stratum(GAPS[measure][0])
        for a, b in pairs:
            lists = stratum.pair(a, b)
            for cut, k in enumerate(summary.ks):
                yield measure, k, cut, lists


def _add(
    collected: dict[Series, NDArray[np.float64]],
    name: tuple[str, int, str, str, str],
    columns: Sequence[NDArray[np.float64]],
    place: NDArray[np.int64],
    kinds: NDArray[np.int64],
    windows: int,
) -> None:
    """Add a pair's sums by kind of list (-1: it lacks a group), and those of each of its groups that is not there."""
    measure, k, a, b, clusters = name
    for group, own in ((a, columns[:2]), (b, columns[2:4])):
        series = Series(measure, k, group, "", clusters)
        if series not in collected:
            collected[series] = _summed(dict(enumerate(own)), place, windows)
    for kind in np.unique(kinds[kinds >= 0]).tolist() if a != b else ():
        own_kind = np.flatnonzero(kinds == kind)
        several = {j: column[own_kind] for j, column in enumerate(columns[4:])}
        collected[Series(measure, k, a, b, clusters, kind)] = _summed(several, place[own_kind], windows)


def _by_row(
    lists: PairLists, inside: Any, recurring: Recurring, x: NDArray[np.float64]
) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.int64], NDArray[np.int64]]:
    """Share D, V and W of the lists among their rows: D = Σ(g − ḡ)(x − x̄), and W = Σ(g − ḡ)², which V follows."""
    a, b = lists.groups
    rows = recurring.rows_of(STRATA[lists.stratum.name], a, b)
    place = np.zeros(lists.stratum.summary.n_queries, np.int64)
    place[lists.queries] = np.arange(len(lists.queries))
    at = place[recurring.query[rows]]
    is_a = (recurring.group[rows] == a).astype(np.float64)
    mean, share = inside.selected / inside.rows, inside.a / inside.rows
    off = is_a - share[at]
    per_weight = np.divide(inside.variance, inside.weight, out=np.zeros(len(inside.a)), where=inside.weight > 0)
    columns = (
        is_a * x[rows],
        is_a,
        (1 - is_a) * x[rows],
        1 - is_a,
        off * (x[rows] - mean[at]),
        off * off * per_weight[at],
        off * off,
    )
    return columns, rows, at


def _summed(columns: dict[int, NDArray[np.float64]], place: NDArray[np.int64], windows: int) -> NDArray[np.float64]:
    out = np.zeros((windows * BINS, COLUMNS))
    for column, values in columns.items():
        out[:, column] = np.bincount(place, values, minlength=windows * BINS)
    return out


def _table(collected: dict[Series, NDArray[np.float64]], windows: int) -> Table:
    series = tuple(sorted(collected))
    keys, values = [np.zeros(0, np.int64)], [np.zeros((0, COLUMNS))]
    for j, one in enumerate(series):
        entries = np.flatnonzero(collected[one].any(axis=1))
        keys.append(entries + j * windows * BINS)
        values.append(collected[one][entries])
    return Table(series, np.concatenate(keys), np.concatenate(values), windows)
