"""Measures as ratios of sums over queries, and their differences between groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.cell_rows import CellRows
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.measures import Asked, Evaluation, MeasureLike, ask
from evenrank.notions import Notion
from evenrank.query_sums import BLOCK, Sums, Weights
from evenrank.rounding import beyond_rounding, rounding

TINY = 1e-200  # stands for a rate of 0 where logarithms are taken
HELD = 1 << 27  # bytes of sums, and of their resamples, that are worked on at a time


@dataclass(frozen=True, eq=False)
class Statistic:
    """A measure made of ratios of sums over queries.

    Attributes
    ----------
    name : str
        The measure's name.
    sums : Sums
        Each query's part of the numerators and denominators of r ratios.
    kind : str
        "mean", "gap" (Γ of the ratios) or "ratio" (lowest over highest).
    pairs : Pairs or None
        Which ratios are compared; None for a plain mean.
    column : int
        For a mean, the number of its ratio.
    limits : tuple of float
        The least and the largest value that the measure can have.
    """

    name: str
    sums: Sums
    kind: str
    pairs: Pairs | None = None
    column: int = 0
    limits: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The ratios that are compared."""
        return np.array([self.column]) if self.pairs is None else np.union1d(self.pairs.a, self.pairs.b)

    @property
    def queries(self) -> int:
        """The number of queries that bear on the ratio with the fewest."""
        if self.pairs is not None and self.pairs.missing:
            return 0
        weights = self.sums.weights
        return int(weights.queries[self.used].min(initial=weights.n_queries))

    @property
    def freedom(self) -> float:
        """Degrees of freedom: (Σb)² / Σb² − 1 over the queries of the ratio where that is least.

        Queries of equal weight b count in full; one with most of a cell's items leaves next to none.
        """
        total, squares = self.sums.weights.total[self.used], self.sums.weights.squares[self.used]
        return float((total**2 / np.where(squares > 0, squares, np.inf)).min(initial=np.inf)) - 1

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """The gaps on all queries, (J,)."""
        return self.gaps(self.sums.ratios)

    def levels(self, ratios: NDArray[Any]) -> NDArray[np.float64]:
        """Compute what is compared from ratios (r, …): the ratios, or for kind "ratio" their logarithms."""
        if self.kind != "ratio":
            return np.asarray(ratios)
        some = ratios[self.used].max(axis=0, initial=0) > 0
        return np.asarray(np.log(np.maximum(np.where(some, ratios, np.nan), TINY)))

    def gaps(self, ratios: NDArray[Any]) -> NDArray[np.float64]:
        """Compute signed differences (J, …) of the levels of ratios (r, …), 0 within rounding; for a mean, the mean."""
        levels = self.levels(ratios)
        if self.pairs is None:
            return np.asarray(levels[self.used])
        a, b = levels[self.pairs.a], levels[self.pairs.b]
        size = 1.0 if self.kind == "ratio" else np.maximum(np.abs(a), np.abs(b))
        return beyond_rounding(a - b, rounding(self.sums.weights.n_queries + 1) * size)

    def value(self, gaps: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the measure from its gaps (J, …)."""
        if self.pairs is None:
            return np.asarray(gaps[0])
        value = self.pairs.value(gaps)
        if self.pairs.missing:
            return np.full_like(value, np.nan)
        if self.kind == "ratio":
            return np.where(value > -np.log(TINY) / 2, 0.0, np.exp(-value))
        return value

    def few_at_a_time(self, count: int) -> Iterator[slice]:
        """Cut ``count`` columns into parts whose gaps stay small, whatever the number of pairs."""
        step = max(1, 4 * BLOCK // max(1, len(self.estimates)))
        return (slice(start, start + step) for start in range(0, count, step))

    def influence(self, *, left_out: bool = False) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Compute each query's influence on the gaps, (J, queries) for a few queries at a time.

        Each table comes with the number of its first query. The influence is the query's share in the deviation from
        the truth, to first order. With ``left_out``, it is what leaving the query out does to the gaps, sign reversed
        (for kind "ratio" to first order).
        """
        deviation = self.sums.deviation(left_out=left_out, logs=self.kind == "ratio")
        for start, table in self.sums.weights.tables(deviation, len(self.estimates)):
            yield start, table[self.used] if self.pairs is None else table[self.pairs.a] - table[self.pairs.b]

    def squares(self, *, left_out: bool) -> NDArray[np.float64]:
        """Sum the squared `influence` over the queries, (J,)."""
        if self.pairs is None:
            return self.sums.squares(left_out=left_out)[self.used]
        return self.sums.gap_squares(self.pairs, left_out=left_out, logs=self.kind == "ratio")

    @cached_property
    def _jackknife(self) -> float:
        number = self.sums.weights.queries_with(self.used)
        return (number - 1) / max(number, 1)

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """The jackknife's variances of the gaps, (J,)."""
        return np.asarray(self.squares(left_out=True) * self._jackknife)

    def covariance_root(self) -> NDArray[np.float64]:
        """Compute A, (J, r), with A Aᵀ the jackknife's covariance of the gaps, which may be too large to build."""
        deviation = self.sums.deviation(left_out=True, logs=self.kind == "ratio")
        root = np.zeros((0, len(self.used)))
        times = self.sums.weights.times
        for start, table in self.sums.weights.tables(deviation, self.sums.weights.width):
            rows = table[self.used].T
            if times is not None:
                rows = rows * np.sqrt(times[start : start + len(rows)])[:, None]
            root = np.asarray(np.linalg.qr(np.vstack([root, rows]), mode="r"))
        root = root.T * np.sqrt(self._jackknife)
        if self.pairs is None:
            return np.asarray(root)
        a, b = (np.searchsorted(self.used, side) for side in (self.pairs.a, self.pairs.b))
        return np.asarray(root[a] - root[b])


class RankedQueries:
    """The statistics of one ranking, each computed when it is asked for.

    Queries are in the order of their ids, so that seeded draws do not depend on the order of rows.

    Parameters
    ----------
    scores, data
        As in `evenrank.interval`.
    ties : str
        "average" or "input", as in `evenrank.measure`.
    cells : dict, optional
        Notion → `CellRows` that were computed before; new ones are added.
    """

    def __init__(
        self,
        scores: ArrayLike,
        data: RankingData,
        *,
        ties: str = "average",
        cells: dict[Notion, CellRows] | None = None,
    ) -> None:
        stored = data.to_stored(scores)
        if stored.ndim != 1:
            raise DataError(f"intervals take one score per row, ({data.n_rows},); got shape {stored.shape}.")
        self.data = data
        self.longest = int(data.lengths.max())
        self.evaluation = Evaluation.of(stored, data, ties=ties)
        self._cells: dict[Notion, CellRows] = {} if cells is None else cells
        self._existing: list[tuple[NDArray[np.bool_], Weights]] = []

    def ranked_by(self, scores: ArrayLike) -> RankedQueries:
        """Rank the same rows by other scores."""
        return RankedQueries(scores, self.data, cells=self._cells)

    def statistics(
        self, measures: Iterable[tuple[str, Asked]], *, across: str = "mean", known: dict[Any, Sums] | None = None
    ) -> list[Statistic]:
        """Compute the statistics of measures; sums in ``known`` are used again, and new ones are added to it."""
        known = {} if known is None else known
        return [self._statistic(*measure, across, known) for measure in measures]

    def batches(self, units: Sequence[Sequence[tuple[str, Asked]]], *, replicates: int = 0) -> Iterator[list[int]]:
        """Split units into batches whose sums and resamples fit into `HELD` bytes; gives the numbers of the units.

        A unit is a list of measures that are worked on together.
        """
        batch: list[int] = []
        size = 0
        for number, unit in enumerate(units):
            added = sum(self._size(asked, replicates) for _, asked in unit)
            if batch and size + added > HELD:
                yield batch
                batch, size = [], 0
            batch.append(number)
            size += added
        if batch:
            yield batch

    def _size(self, asked: Asked, replicates: int) -> int:
        notion = asked.measure.notion
        if notion is None:
            return 8 * (self.data.n_queries + 4 * replicates)
        weights = self._cells_of(notion).weights
        return 8 * (len(weights.weight) + 4 * weights.width * replicates)

    def _cells_of(self, notion: Notion) -> CellRows:
        if notion not in self._cells:
            self._cells[notion] = CellRows.of(notion, self.data)
        return self._cells[notion]

    def _statistic(self, name: str, asked: Asked, across: str, known: dict[Any, Sums]) -> Statistic:
        item, cut = asked.measure, self.cut(asked)
        options = item.chosen(asked.options)
        notion = item.notion
        if item.sums is not None:
            return self._of_sums(name, asked, known)
        if notion is None:
            if (item, cut, options) not in known:
                known[item, cut, options] = self._mean(asked, cut)
            return Statistic(name, known[item, cut, options], "mean", limits=item.limits)
        cells = self._cells_of(notion)
        key = (notion, item.value_of, cut, options)
        if key not in known:
            whole = item.value_of == "top" and cut == self.longest
            known[key] = Sums(cells.weights, cells.weights.weight if whole else cells.sums(self.row_values(asked)))
        if item.kind == "ratio":
            present = Pairs.of(cells.weights.total[None, None], across="max", training=False)
            return Statistic(name, known[key], "ratio", present)
        return Statistic(name, known[key], "gap", cells.pairs(across))

    def _of_sums(self, name: str, asked: Asked, known: dict[Any, Sums]) -> Statistic:
        item, options = asked.measure, asked.measure.chosen(asked.options)
        key = (item, asked.k, options)
        if key not in known:
            assert item.sums is not None
            top, bottom = item.sums(self.evaluation.with_options(options), asked.k)
            known[key] = Sums.of_tables(top[self.data.sorted_queries], bottom[self.data.sorted_queries])
        sums = known[key]
        pairs = None
        if item.kind == "shares":
            half = np.arange(sums.weights.width // 2)
            pairs = Pairs(half, half + len(half), np.ones(len(half)), np.zeros(len(half), np.int64), "mean", (), 1.0)
        elif item.kind != "mean":
            pairs = Pairs.of(sums.weights.total[None, None], across="max", training=False)
        return Statistic(name, sums, "gap" if item.kind == "shares" else item.kind, pairs, limits=item.limits)

    def cut(self, asked: Asked) -> int:
        """Give the rank below which nothing counts; beyond the longest list only precision, divided by k, has one."""
        if asked.k is None:
            return self.longest
        return asked.k if asked.measure.name == "precision" else min(asked.k, self.longest)

    def row_values(self, asked: Asked) -> NDArray[np.float64]:
        """Give the values of the rows, (n,), whose group means a gap or a ratio compares."""
        ev = self.evaluation.with_options(asked.measure.chosen(asked.options))
        cut = self.cut(asked)
        return ev.exposure(cut) if asked.measure.value_of == "exposure" else ev.top(cut)

    def query_values(self, asked: Asked) -> NDArray[np.float64]:
        """Give the values of the queries, (q,), whose mean a measure is."""
        ev = self.evaluation.with_options(asked.measure.chosen(asked.options))
        return asked.measure.per_query(ev, self.cut(asked))

    def _mean(self, asked: Asked, cut: int) -> Sums:
        values = self.query_values(asked)[self.data.sorted_queries]
        self.evaluation.shared.pop(("ideal", cut), None)  # of no use to another cut-off
        exists = ~np.isnan(values)
        weights = next((weights for before, weights in self._existing if np.array_equal(before, exists)), None)
        if weights is None:
            weights = Weights.of(np.flatnonzero(exists), np.ones(int(exists.sum())), len(exists), 1)
            self._existing.append((exists, weights))
        return Sums(weights, values[exists])


def statistics(
    scores: ArrayLike,
    data: RankingData,
    measures: Iterable[MeasureLike],
    *,
    across: str = "mean",
    ties: str = "average",
) -> list[Statistic]:
    """Compute the statistic of each measure of one ranking.

    Parameters
    ----------
    scores, data, ties
        As for `RankedQueries`.
    measures : iterable of str, Notion or callable
        The measures, as in `evenrank.measure`.
    across : str
        How more than two groups are combined: "mean" over all pairs, or "max".

    Returns
    -------
    list of Statistic
        One per measure, in the order given.
    """
    return RankedQueries(scores, data, ties=ties).statistics([ask(measure) for measure in measures], across=across)
