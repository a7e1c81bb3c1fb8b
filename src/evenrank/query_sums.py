"""Measures as sums over queries: taken once, then resampled or swapped by a matrix product.

A `Statistic` holds each query's part of the numerators and denominators a measure is made of; whatever is drawn from
the queries, with replacement or not, is a product of counts with those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.measures import Evaluation, parse_measure
from evenrank.notions import NOTIONS, Cells, Contrast, Pairs, bind
from evenrank.ranking import Ranking

CELLS = 1 << 20
TINY = 1e-200  # stands for a rate of 0 where logarithms are taken


@dataclass(frozen=True, eq=False)
class Statistic:
    """A measure as ratios of sums over queries.

    Attributes
    ----------
    name : the measure's
    top, bottom : (q, r) each query's part of the numerators and denominators of r ratios
    kind : "mean", "gap" (Γ of the ratios) or "ratio" (lowest over highest)
    pairs : which ratios are compared; None for a plain mean
    """

    name: str
    top: NDArray[np.float64]
    bottom: NDArray[np.float64]
    kind: str
    pairs: Pairs | None = None

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The ratios that are compared."""
        return np.arange(self.top.shape[1]) if self.pairs is None else np.union1d(self.pairs.a, self.pairs.b)

    @property
    def queries(self) -> int:
        """Queries that bear on the ratio with the fewest."""
        if self.pairs is not None and self.pairs.missing:
            return 0
        return int((self.bottom[:, self.used] > 0).sum(axis=0).min(initial=len(self.bottom)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom: (Σb)² / Σb² − 1 over the queries of the ratio where that is least.

        Queries of equal weight b count in full; one with most of a cell's items leaves next to none.
        """
        bottom = self.bottom[:, self.used]
        squares = (bottom**2).sum(axis=0)
        return float((bottom.sum(axis=0) ** 2 / np.where(squares > 0, squares, np.inf)).min(initial=np.inf)) - 1

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """The gaps on all queries, (J,)."""
        return self.gaps(self.ratios(self.top.sum(axis=0), self.bottom.sum(axis=0)))

    def ratios(self, top: NDArray[Any], bottom: NDArray[Any]) -> NDArray[np.float64]:
        """Of sums (…, r)."""
        out = np.full(np.shape(top), np.nan)
        np.divide(top, bottom, out=out, where=np.asarray(bottom) > 0)
        return out

    def gaps(self, ratios: NDArray[Any]) -> NDArray[np.float64]:
        """Signed differences (…, J), of logarithms for kind "ratio"; a mean is its own only 'gap'."""
        if self.pairs is None:
            return np.asarray(ratios)
        if self.kind == "ratio":
            some = ratios[..., self.used].max(axis=-1, keepdims=True, initial=0) > 0
            ratios = np.log(np.maximum(np.where(some, ratios, np.nan), TINY))
        return np.asarray(ratios[..., self.pairs.a] - ratios[..., self.pairs.b])

    def value(self, gaps: NDArray[Any]) -> NDArray[np.float64]:
        """The measure from its gaps (…, J)."""
        if self.pairs is None:
            return np.asarray(gaps[..., 0])
        value = self.pairs.value(np.moveaxis(gaps, -1, 0))
        if self.pairs.missing:
            return np.full_like(value, np.nan)
        if self.kind == "ratio":
            return np.where(value > -np.log(TINY) / 2, 0.0, np.exp(-value))
        return value

    def influence(self, *, left_out: bool = False) -> NDArray[np.float64]:
        """Each query's influence on the gaps, (q, J): its first-order share in the deviation from the truth.

        With ``left_out``, what leaving the query out does to the gaps, sign reversed (for kind "ratio" to first order).
        """
        total = self.bottom.sum(axis=0)
        ratios = self.ratios(self.top.sum(axis=0), total)
        rest = total - self.bottom if left_out else total
        each = np.full(self.top.shape, np.nan)
        np.divide(self.top - ratios * self.bottom, rest, out=each, where=np.broadcast_to(rest > 0, each.shape))
        if self.kind == "ratio":
            each /= np.where(ratios > 0, ratios, np.nan)
        if self.pairs is None:
            return each
        return np.asarray(each[:, self.pairs.a] - each[:, self.pairs.b])

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """The jackknife's, of the gaps, (J, J)."""
        number = int((self.bottom[:, self.used] > 0).any(axis=1).sum())
        left_out = self.influence(left_out=True)
        return np.asarray(left_out.T @ left_out * ((number - 1) / max(number, 1)))


def statistics(
    scores: ArrayLike, data: RankingData, measures: Iterable[str], *, across: str = "mean", ties: str = "average"
) -> list[Statistic]:
    """The sums of each measure, once; ``scores`` (n,) in the caller's row order."""
    stored = data.to_stored(scores)
    if stored.ndim != 1:
        raise DataError(f"intervals take one score a row, ({data.n_rows},); got shape {stored.shape}.")
    ev = Evaluation(data, Ranking(stored, data.query_ptr, ties=ties), across=across)
    contrasts: dict[str, tuple[Contrast, Pairs]] = {}
    out = []
    for name in measures:
        item, k = parse_measure(name)
        if item.pooled is None:
            values = item.per_query(ev, k)
            exists = ~np.isnan(values)
            known = np.where(exists, values, 0.0)
            out.append(Statistic(name, known[:, None], exists[:, None].astype(np.float64), "mean"))
            continue
        notion = item.name if item.name in NOTIONS else "demographic_parity"
        if notion not in contrasts:
            pooled = bind(notion, data, across=across)
            # Not bound per query, which would warn of strata whose groups meet in no query; pooled, they need not.
            each = Cells.of(notion, data).contrast(unit=data.query_of_row, n_units=data.n_queries, across=across)
            contrasts[notion] = (each, pooled.pairs)
        cells, pairs = contrasts[notion]
        rows = ev.ranking.exposure(k) if item.name == "exposure_gap" else ev.ranking.top(k or 1)
        # (strata, queries, groups) → (queries, strata · groups), the order in which pooled cells are numbered.
        weight = cells.cell_weight.astype(np.float64)
        means = cells.means(rows).reshape(weight.shape)
        bottom = weight.transpose(1, 0, 2).reshape(data.n_queries, -1)
        top = (means * weight).transpose(1, 0, 2).reshape(data.n_queries, -1)
        if item.name == "four_fifths":
            present = Pairs.of(bottom.sum(axis=0)[None, None], across="max", training=False)
            out.append(Statistic(name, top, bottom, "ratio", present))
        else:
            out.append(Statistic(name, top, bottom, "gap", pairs))
    return out


def resampled_sums(columns: NDArray[np.float64], *, replicates: int, seed: int) -> NDArray[np.float64]:
    """Sums of the columns (q, c) over queries drawn with replacement, (replicates, c).

    Queries go in chunks: how many of a replicate's draws fall in one is multinomial, and within it they are uniform, so
    that a chunk's counts are a small dense matrix. Columns that several measures share are summed once.
    """
    columns, place = distinct(columns)
    queries = len(columns)
    rng = np.random.default_rng(seed)
    sums = np.zeros((replicates, columns.shape[1]))
    chunk = max(1, CELLS // replicates)
    starts = np.arange(0, queries, chunk)
    sizes = np.minimum(chunk, queries - starts)
    hits = rng.multinomial(queries, sizes / queries, replicates)
    for start, size, hit in zip(starts.tolist(), sizes.tolist(), hits.T, strict=True):
        cell = np.repeat(np.arange(replicates) * size, hit)
        cell += rng.integers(0, size, len(cell), dtype=np.uint16 if size <= 1 << 16 else np.int64)
        counts = np.bincount(cell, minlength=replicates * size).reshape(replicates, size)
        sums += counts.astype(np.float64) @ columns[start : start + size]
    return sums[:, place]


def distinct(columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[int]]:
    """The columns (q, c) without repetitions, and where each of the given ones is among them."""
    first: dict[bytes, int] = {}
    place = [first.setdefault(blake2b(column.tobytes()).digest(), len(first)) for column in columns.T]
    chosen = [place.index(number) for number in range(len(first))]
    return np.ascontiguousarray(columns[:, chosen]), place


def swapped_sums(
    one: NDArray[np.float64], two: NDArray[np.float64], *, replicates: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of two tables (q, c) with each query's lines swapped between them at random, (replicates, c) each."""
    rng = np.random.default_rng(seed)
    difference = two - one
    moved = np.zeros((replicates, one.shape[1]))
    chunk = max(1, CELLS // replicates)
    for start in range(0, len(one), chunk):
        part = difference[start : start + chunk]
        moved += rng.integers(0, 2, (replicates, len(part)), dtype=np.int8).astype(np.float64) @ part
    return one.sum(axis=0) + moved, two.sum(axis=0) - moved


def stacked(stats: Sequence[Statistic]) -> NDArray[np.float64]:
    """All sums side by side, (q, columns); `unstacked` takes them apart."""
    return np.hstack([part for stat in stats for part in (stat.top, stat.bottom)])


def by_id(table: NDArray[np.float64], data: RankingData) -> NDArray[np.float64]:
    """A table of queries (q, …) in the order of their ids, so that seeded draws do not depend on the order of rows."""
    order = data.sorted_queries
    return table if bool((np.diff(order) == 1).all()) else table[order]


def unstacked(stats: Sequence[Statistic], sums: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The gaps of each statistic from stacked sums (…, columns): (…, J) each."""
    out, at = [], 0
    for stat in stats:
        width = stat.top.shape[1]
        out.append(stat.gaps(stat.ratios(sums[..., at : at + width], sums[..., at + width : at + 2 * width])))
        at += 2 * width
    return out
