"""Lists reduced to the rows that can reach the top k, part by part, so that offsets can be chosen without all rows.

Which rows can reach a top k at some offsets is decided within each list and group; only the median score, the usual
step between neighbours and the ends of the scores are of all rows (`Extent`). Medians of parts do not add up, but
counts do: `Digits` finds order statistics exactly, two bytes at a time, in four passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.notions import Notion
from evenrank.rerankers.beyond_chance import by_query
from evenrank.rerankers.chances import Chances, RowWeights
from evenrank.rerankers.crossings import FLOATS, TopRows
from evenrank.rerankers.moving import TopLists
from evenrank.rerankers.scored_lists import FAR, ScoredLists, is_sentinel

BITS, PASSES = 16, 4


@dataclass(frozen=True)
class Extent:
    """What choosing offsets needs to know of all scores: see the attributes of `ScoredLists` of the same names."""

    step: float
    centre: float
    limit: float = 0.0

    @property
    def reach(self) -> float:
        """How far from the centre a score may be and still move."""
        return min(FAR * self.step, np.finfo(np.float64).max)

    def on(self, lists: ScoredLists) -> ScoredLists:
        """Take these for the lists' own."""
        lists.__dict__.update(step=self.step, centre=self.centre, limit=self.limit)
        return lists


# ---------------------------------------------------------------------- order statistics


def as_digits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Give whole numbers in the order of the values; -0 and 0 are one value."""
    bits = (values + 0.0).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    return np.where(negative, ~bits, bits | np.uint64(1 << 63))


def from_digits(number: int) -> float:
    """Give the value of which `as_digits` gives this number."""
    bits = number & ((1 << 63) - 1) if number >> 63 else ~number & ((1 << 64) - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])


@dataclass(frozen=True, eq=False)
class Wanted:
    """An order statistic that is looked for: its first digits so far, and its rank among the values that have them."""

    stream: str
    rank: int
    prefix: int = 0
    passes: int = 0

    def counts(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Count the next digit of the numbers that begin so, (2^16,)."""
        shift = np.uint64(64 - BITS * (self.passes + 1))
        if self.passes:
            numbers = numbers[numbers >> np.uint64(64 - BITS * self.passes) == np.uint64(self.prefix)]
        digit = (numbers >> shift) & np.uint64((1 << BITS) - 1)
        return np.bincount(digit.astype(np.int64), minlength=1 << BITS)

    def narrowed(self, counts: NDArray[np.int64]) -> Wanted:
        """Take in the counts of all values."""
        before = np.cumsum(counts) - counts
        digit = int(np.flatnonzero((before <= self.rank) & (counts > 0))[-1])
        return replace(
            self, rank=self.rank - int(before[digit]), prefix=self.prefix << BITS | digit, passes=self.passes + 1
        )


def middle_ranks(n: int) -> tuple[int, int]:
    """Give the ranks, from 0, of the values whose mean is the median of n."""
    return (n - 1) // 2, n // 2


def streams_of(lists: ScoredLists, tied_groups: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Give the values whose medians are needed: scores, steps between neighbours, scores of groups equally large."""
    score, query = lists.score[lists.settled.order], lists.data.query_of_row
    with np.errstate(over="ignore"):
        steps = np.minimum(score[:-1] - score[1:], FLOATS)
    sizes = np.maximum(np.abs(score[:-1]), np.abs(score[1:]))
    inside = (query[1:] == query[:-1]) & (steps > 0)
    visible = inside & (steps > 2.0**-40 * sizes)
    out = {"score": lists.score, "visible": steps[visible], "inside": steps[inside]}
    return out | {f"group {code}": lists.score[lists.data.group == code] for code in tied_groups}


def median_of(lower: float, upper: float) -> float:
    """Give the mean of two scores, or of two equal ones, without overflow."""
    return 2 * float(np.mean([lower / 2, upper / 2]))


# ---------------------------------------------------------------------- rows that can reach the top


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows of some lists that can reach the top k, and what all rows of these lists count for.

    Attributes
    ----------
    score, query, group, cell : ndarray
        As in `TopRows`, (m,); queries are numbered from 0.
    share : ndarray
        Whether a row is in a stratum, (strata, m).
    weight : ndarray
        The weight of each row, (m,).
    sizes : ndarray
        The weights of each list's rows by stratum and group, (strata, groups, queries).
    close : bool
        Whether offsets may make rows tie by rounding.
    """

    score: NDArray[np.float64]
    query: NDArray[np.int64]
    group: NDArray[np.int64]
    cell: NDArray[np.int64]
    share: NDArray[np.bool_]
    weight: NDArray[np.float64]
    sizes: NDArray[np.float64]
    close: bool

    @classmethod
    def of(cls, lists: ScoredLists, notion: Notion, ks: tuple[int, ...], extent: Extent) -> Kept:
        """Reduce lists, whose ends and steps are those of all lists."""
        data, weights = extent.on(lists).data, lists.weights(notion)
        top = lists.top(weights, ks)
        kept = lists.kept_rows(ks)
        sizes = np.zeros((len(weights.share), data.n_groups, data.n_queries))
        for stratum, share in enumerate(weights.share):
            rows = np.flatnonzero((data.group >= 0) & (share > 0))
            parts = by_query(
                data.query_of_row[rows],
                data.group[rows],
                share[rows] * weights.weight[rows],
                data.n_groups,
                data.n_queries,
            )
            sizes[stratum] = parts[:-1]
        return cls(
            top.rows.score,
            top.rows.query,
            top.rows.group,
            top.rows.cell,
            np.asarray(weights.share[:, kept], bool),
            np.array(weights.weight[kept], np.float64),
            sizes,
            not top.rows.crisp,
        )

    def __add__(self, other: Kept) -> Kept:
        """Put the lists of both one after the other."""
        return Kept(
            np.concatenate([self.score, other.score]),
            np.concatenate([self.query, other.query + self.sizes.shape[2]]),
            np.concatenate([self.group, other.group]),
            np.concatenate([self.cell, other.cell]),
            np.concatenate([self.share, other.share], axis=1),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.sizes, other.sizes], axis=2),
            self.close or other.close,
        )


@dataclass(frozen=True, eq=False)
class ReducedLists:
    """What `GroupOffset.fit_lists` needs of lists, made of `Kept` rows; for one notion and its cut-offs.

    Attributes
    ----------
    kept : Kept
        The rows.
    extent : Extent
        Of all scores.
    group_names : tuple
        The groups.
    largest : int
        The number of the largest group.
    chances : tuple of Chances
        How relevance rises with the score in each group.
    """

    kept: Kept
    extent: Extent
    group_names: tuple[Any, ...]
    largest: int
    chances: tuple[Chances, ...]

    @cached_property
    def data(self) -> Any:
        """The names and numbers of groups and lists, as a `RankingData` has them."""
        return SimpleNamespace(
            group_names=self.group_names, n_groups=len(self.group_names), n_queries=self.kept.sizes.shape[2]
        )

    @property
    def centre(self) -> float:
        """The median score."""
        return self.extent.centre

    @property
    def reach(self) -> float:
        """How far from the centre a score may be and still move."""
        return self.extent.reach

    def weights(self, notion: Notion) -> RowWeights:
        """Give what the rows count for, and the sums over all rows."""
        sizes = self.kept.sizes
        tables = {stratum: [*part, part.sum(axis=0)] for stratum, part in enumerate(sizes)}
        return RowWeights(self.kept.share, self.kept.weight, sizes.sum(axis=2), tables)

    def top(self, weights: RowWeights, ks: tuple[int, ...]) -> TopLists:
        """Give the rows that can reach the largest k."""
        kept = self.kept
        rows = TopRows(
            score=kept.score,
            query=kept.query,
            group=kept.group,
            cell=kept.cell,
            ks=ks,
            step=self.extent.step,
            limit=self.extent.limit,
            crisp=not kept.close,
        )
        everything = np.arange(len(kept.score))
        return TopLists(rows, weights[everything], weights.total, Pairs.of(weights.total[:, None, :]))


def ends_of(lists: ScoredLists, extent: Extent) -> tuple[float, float]:
    """Give the smallest and the largest score that can move; infinite ends if none can."""
    moved = lists.score[~is_sentinel(lists.score, extent.centre, extent.reach)]
    return (float(moved.min()), float(moved.max())) if len(moved) else (np.inf, -np.inf)
