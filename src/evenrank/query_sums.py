"""Sums over queries, taken once, then resampled by a matrix product.

Every measure here consists of ratios of two sums over queries. A query bears on few of them: on those of the groups
that are in its list. So only the parts that are there are held, query by query, and tables of all ratios are built for
a few queries at a time: memory grows with the rows, not with queries × groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs

CELLS = 1 << 20  # counts of draws held at a time; the draws of a seed depend on it
BLOCK = 1 << 16  # numbers of a block that a processor's cache holds


@dataclass(frozen=True, eq=False)
class Weights:
    """The denominators: each query's weight in each of ``width`` ratios, held where it is above 0.

    Attributes
    ----------
    ptr : ndarray
        (q + 1,): the entries of query i are ``ptr[i]:ptr[i + 1]``.
    column : ndarray
        (entries,): the ratio that each entry bears on.
    weight : ndarray
        (entries,): the weight, above 0.
    width : int
        The number of ratios.
    times : ndarray or None
        (q,): for how many queries, alike in all that counts here, each of the q stands; None where each is one.
    """

    ptr: NDArray[np.int64]
    column: NDArray[np.int32]
    weight: NDArray[np.float64]
    width: int
    times: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        key: NDArray[np.int64],
        weight: NDArray[np.float64],
        n_queries: int,
        width: int,
        times: NDArray[np.float64] | None = None,
    ) -> Weights:
        """Build them from increasing keys, query · width + column, and one weight per key."""
        query = key // width
        ptr = np.searchsorted(query, np.arange(n_queries + 1))
        return cls(ptr, (key - query * width).astype(np.int32), weight, width, times)

    @property
    def held(self) -> int:
        """The number of queries that are held, q."""
        return len(self.ptr) - 1

    @cached_property
    def n_queries(self) -> int:
        """The number of queries, as often as each of those held stands for one."""
        return self.held if self.times is None else round(float(self.times.sum()))

    @cached_property
    def _entry_times(self) -> NDArray[np.float64]:
        assert self.times is not None
        return np.repeat(self.times, np.diff(self.ptr))

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """The sum of weights of each ratio, (width,)."""
        return self.by_column(self.weight)

    @cached_property
    def queries(self) -> NDArray[np.int64]:
        """The number of queries that bear on each ratio, (width,)."""
        if self.times is None:
            return np.bincount(self.column, minlength=self.width)
        return np.bincount(self.column, self._entry_times, minlength=self.width).round().astype(np.int64)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """The sum of squared weights of each ratio, (width,)."""
        return self.by_column(self.weight**2)

    def by_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum one value per entry, (entries,), over each ratio, (width,)."""
        if self.times is not None:
            values = values * self._entry_times
        return np.bincount(self.column, values, minlength=self.width).astype(np.float64, copy=False)

    def queries_with(self, used: NDArray[np.int64]) -> int:
        """Count the queries that bear on at least one of the given ratios."""
        wanted = np.zeros(self.width, bool)
        wanted[used] = True
        before = np.concatenate([[0], np.cumsum(wanted[self.column])])[self.ptr]
        there = np.diff(before) > 0
        return int(np.count_nonzero(there)) if self.times is None else round(float(self.times[there].sum()))

    def tables(self, values: NDArray[np.float64], width: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Spread the entries' values into tables (width, queries) of a few queries each.

        Each comes with the number of its first query. What is computed from a table may have ``width`` numbers per
        query and stays small.
        """
        columns = Columns([(self, values)])
        step = max(1, BLOCK // max(width, self.width, 1))
        for start in range(0, self.held, step):
            yield start, columns.table(start, min(start + step, self.held))

    def part(self, start: int, stop: int) -> tuple[Weights, slice]:
        """Take queries ``start`` to ``stop`` - 1, and the slice of their entries."""
        entries = slice(self.ptr[start], self.ptr[stop])
        ptr = self.ptr[start : stop + 1] - self.ptr[start]
        times = None if self.times is None else self.times[start:stop]
        return Weights(ptr, self.column[entries], self.weight[entries], self.width, times), entries


@dataclass(frozen=True, eq=False)
class Sums:
    """Each query's part of the numerators and denominators of some ratios.

    Attributes
    ----------
    weights : Weights
        The denominators.
    top : ndarray
        The numerators, (entries,), one per entry of the weights.
    """

    weights: Weights
    top: NDArray[np.float64]
    _squares: dict[Any, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_tables(cls, top: NDArray[Any], bottom: NDArray[Any]) -> Sums:
        """Build them from tables (q, r) of the numerators and the denominators.

        A list may have a part in a numerator alone: exposure of a group without relevance there.
        """
        key = np.flatnonzero((bottom.ravel() > 0) | (top.ravel() != 0))
        weight = bottom.ravel()[key].astype(np.float64)
        return cls(Weights.of(key, weight, *bottom.shape), top.ravel()[key].astype(np.float64))

    def part(self, start: int, stop: int) -> Sums:
        """Take queries ``start`` to ``stop`` - 1."""
        weights, entries = self.weights.part(start, stop)
        return Sums(weights, self.top[entries])

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """The numerators over all queries, (r,)."""
        return self.weights.by_column(self.top)

    @cached_property
    def ratios(self) -> NDArray[np.float64]:
        """The ratios over all queries, (r,); NaN where no query bears on one."""
        return quotient(self.total, self.weights.total)

    def deviation(self, *, left_out: bool, logs: bool = False) -> NDArray[np.float64]:
        """Compute each entry's share in the deviation of its ratio from the truth, to first order, (entries,).

        With ``logs``, of the ratio's logarithm. With ``left_out``, what leaving the query out does to the ratio, sign
        reversed (to first order for a logarithm).
        """
        column, weight = self.weights.column, self.weights.weight
        rest = self.weights.total[column]
        if left_out:
            rest = rest - weight
        share = quotient(self.top - self.ratios[column] * weight, rest)
        return quotient(share, self.ratios[column]) if logs else share

    def squares(self, *, left_out: bool) -> NDArray[np.float64]:
        """Sum the squared deviations of each ratio over the queries, (r,)."""
        if left_out not in self._squares:
            self._squares[left_out] = self.weights.by_column(self.deviation(left_out=left_out) ** 2)
        return self._squares[left_out]

    def gap_squares(self, pairs: Pairs, *, left_out: bool, logs: bool) -> NDArray[np.float64]:
        """Sum the squared deviations of each difference of two ratios over the queries, (J,)."""
        key = (left_out, logs, pairs.a.tobytes(), pairs.b.tobytes())
        if key not in self._squares:
            total = np.zeros(len(pairs.a))
            deviation = self.deviation(left_out=left_out, logs=logs)
            for start, table in self.weights.tables(deviation, len(total)):
                gaps = table[pairs.a] - table[pairs.b]
                if self.weights.times is None:
                    total += np.einsum("jq,jq->j", gaps, gaps)
                else:
                    total += (gaps * gaps) @ self.weights.times[start : start + gaps.shape[1]]
            self._squares[key] = total
        return self._squares[key]


def quotient(top: NDArray[Any], bottom: NDArray[Any]) -> NDArray[np.float64]:
    """Divide, with NaN where the denominator is not above 0."""
    out = np.full(np.shape(top), np.nan)
    np.divide(top, bottom, out=out, where=np.broadcast_to(bottom > 0, out.shape))
    return out


class Columns:
    """Values of entries as one table over all queries, built for a few queries at a time.

    Parameters
    ----------
    parts : sequence of tuple
        Weights, and one value per entry of them.
    distinct : bool
        Give an array that occurs in several parts one place in the table.
    """

    def __init__(self, parts: Sequence[tuple[Weights, NDArray[np.float64]]], *, distinct: bool = True) -> None:
        self.n_queries = parts[0][0].held
        self.places: list[slice] = []
        self._kept: list[tuple[Weights, NDArray[np.float64], int]] = []
        self.width = 0
        known: dict[int, slice] = {}
        for weights, values in parts:
            place = slice(self.width, self.width + weights.width)
            if distinct:
                place = known.setdefault(id(values), place)
            if place.start == self.width:
                self._kept.append((weights, values, self.width))
                self.width = place.stop
            self.places.append(place)

    def table(self, start: int, stop: int) -> NDArray[np.float64]:
        """Build the table of queries ``start`` to ``stop`` - 1, (width, queries)."""
        size = stop - start
        out = np.zeros((self.width, size))
        cells: dict[int, NDArray[np.int64]] = {}
        for weights, values, at in self._kept:
            entries = slice(weights.ptr[start], weights.ptr[stop])
            if id(weights) not in cells:
                query = np.repeat(np.arange(size), np.diff(weights.ptr[start : stop + 1]))
                cells[id(weights)] = weights.column[entries] * np.int64(size) + query
            out[at : at + weights.width].ravel()[cells[id(weights)]] = values[entries]
        return out


def resampled_ratios(sums: Sequence[Sums], *, replicates: int, seed: int) -> list[NDArray[np.float64]]:
    """Compute the ratios over queries drawn with replacement.

    Parameters
    ----------
    sums : sequence of Sums
        All of the same queries; they share the draws.
    replicates : int
        The number of resamples.
    seed : int
        Seeds the draws.

    Returns
    -------
    list of ndarray
        One per entry of ``sums``, (r, replicates).
    """
    parts = [part for each in sums for part in ((each.weights, each.top), (each.weights, each.weights.weight))]
    columns = Columns(parts)
    drawn = resampled(columns, replicates=replicates, seed=seed)
    totals = [drawn[place] for place in columns.places]
    return [quotient(top, bottom) for top, bottom in zip(totals[::2], totals[1::2], strict=True)]


def resampled(columns: Columns, *, replicates: int, seed: int) -> NDArray[np.float64]:
    """Sum the columns over queries drawn with replacement, (width, replicates).

    Queries are drawn in chunks: the number of a replicate's draws that fall in a chunk is multinomial, and within it
    they are uniform. So a chunk's counts are a small dense matrix. The draws depend only on the seed, the number of
    queries and the number of replicates.
    """
    rng = np.random.default_rng(seed)
    sums = np.zeros((columns.width, replicates))
    chunk = max(1, CELLS // replicates)
    starts = np.arange(0, columns.n_queries, chunk)
    sizes = np.minimum(chunk, columns.n_queries - starts)
    hits = rng.multinomial(columns.n_queries, sizes / columns.n_queries, replicates)
    for start, size, hit in zip(starts.tolist(), sizes.tolist(), hits.T, strict=True):
        cell = np.repeat(np.arange(replicates) * size, hit)
        cell += rng.integers(0, size, len(cell), dtype=np.uint16 if size <= 1 << 16 else np.int64)
        counts = np.bincount(cell, minlength=replicates * size).reshape(replicates, size)
        sums += columns.table(start, start + size) @ counts.astype(np.float64).T
    return sums
