"""`offset`: one number per group for the scores of any ranker, chosen on Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.io.columns import Columns
from evenrank.io.stream_moments import codes_of, sorted_groups
from evenrank.io.values import labels, numbers, score_numbers
from evenrank.notions import NotionLike, as_notion
from evenrank.ranking import Ranking
from evenrank.rerankers.base import Settled
from evenrank.rerankers.chances import group_chances
from evenrank.rerankers.offset import GroupOffset
from evenrank.rerankers.offset_file import warn_unchanged
from evenrank.rerankers.reduced_lists import (
    PASSES,
    Extent,
    Kept,
    ReducedLists,
    Wanted,
    as_digits,
    ends_of,
    from_digits,
    median_of,
    middle_ranks,
    streams_of,
)
from evenrank.rerankers.scored_lists import ScoredLists, is_sentinel, largest_move
from evenrank.row_checks import checked_numbers
from evenrank.spark.engine import in_one_line
from evenrank.spark.parts import (
    check_frame,
    collected,
    column,
    query_frames,
    row_of_batch,
    settled,
    summarised,
    together,
)
from evenrank.spark.summing import group_counts

# Rows that can reach the top k come to the driver, up to so many; of more, those of some queries.
MOST_ROWS = 2_000_000
# How relevance rises with the score, which only `GroupOffset.adapt` uses, is learned from about so many rows.
CHANCE_ROWS = 200_000
RULE = "a finite number ≥ 0", "Drop the row or fill the value."
HASHED = 1 << 30


@dataclass(frozen=True)
class Lists:
    """How a frame of whole queries becomes scored lists, on any worker.

    Attributes
    ----------
    columns : Columns
        The columns.
    group_names : tuple
        The groups of all rows.
    """

    columns: Columns
    group_names: tuple[Any, ...]

    def of(self, frame: pl.DataFrame) -> ScoredLists:
        """Take a frame's rows."""
        columns, n = self.columns, frame.height
        score, group = columns.score or "score", columns.group or "group"
        ids = frame[columns.query]
        relevance = np.zeros(n)
        if columns.relevance is not None:
            found = numbers(frame[columns.relevance], "relevance", row_of_batch, RULE)
            relevance = checked_numbers(found, n, "relevance", row_of_batch)
        weight = None
        if columns.sample_weight is not None:
            found = numbers(frame[columns.sample_weight], "sample_weight", row_of_batch, RULE)
            weight = checked_numbers(found, n, "sample_weight", row_of_batch)
        data = RankingData.from_arrays(
            np.zeros((n, 0)),
            relevance,
            None,
            labels(ids),
            relevance_threshold=columns.relevance_threshold,
            sample_weight=weight,
        )
        codes = codes_of(frame[group], self.group_names, row_of_batch)
        stored = codes if data.row_order is None else codes[data.row_order]
        data = replace(data, group=stored, group_names=self.group_names)
        values = data.to_stored(score_numbers(frame[score], row_of_batch))
        return ScoredLists(Settled.of(values, data), data)


def offset(
    df: Any,
    notion: NotionLike = "eop",
    k: int | Sequence[int] = 5,
    strength: float = 1.0,
    *,
    score: str = "score",
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str = "group",
    sample_weight: str | None = None,
    relevance_threshold: float = 1.0,
    shrink: bool = True,
    most_rows: int = MOST_ROWS,
) -> GroupOffset:
    """Fit a `GroupOffset` to logged scores, so that any ranker's lists can be made fair.

    The workers find the median score and step exactly, by counting, and keep of each list the rows that can reach the
    top k at some offsets: at most k per group, and those tied with them. These rows (some 30 bytes each) come to the
    driver, where the offsets are chosen as in memory: they are the same numbers. If there are more than ``most_rows``,
    lists are drawn by a hash of their ids, so that about so many come; a `DataWarning` says how many lists the offsets
    were chosen on, and ``gap_before_`` and ``gap_after_`` are then measured on all lists by the workers.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows, with scores of any ranker.
    notion, k, strength, shrink
        See `evenrank.GroupOffset`; ``max_ndcg_loss`` needs the rows in memory.
    score, query, relevance, group, sample_weight : str
        The columns; ``relevance=None`` where the notion asks for none.
    relevance_threshold : float
        Relevance at or above it is relevant.
    most_rows : int
        How many rows may come to the driver.

    Returns
    -------
    GroupOffset
        Fitted. ``RerankedRanker(model, offset)`` ranks with it, and so does `rank`. What `GroupOffset.adapt` learns of
        relevance is from the lists of about 200,000 rows where there are more.
    """
    check_frame(df)
    reranker = GroupOffset(notion, k, strength, shrink=shrink)
    ks = reranker._check()
    columns = Columns(
        query=query,
        relevance=relevance,
        group=group,
        score=score,
        sample_weight=sample_weight,
        relevance_threshold=relevance_threshold,
    )
    columns, plan = settled(df, replace(columns, item=None))
    needed = [name for name in plan.needed if name != plan.item]
    rows = df.select(*map(column, needed))
    names, counts = sorted_groups(group_counts(rows, group))
    if len(names) < 2:
        raise DataError(f"GroupOffset needs two groups; the DataFrame has {len(names)}. Name the column of the group.")
    lists = Lists(columns, names)
    everything = together(rows, query).persist()
    try:
        n_rows, n_queries = _sizes(everything, query)
        share = min(1.0, most_rows / max(1, min(n_rows, n_queries * (len(names) + 1) * ks[-1])))
        drawn = _drawn(everything, query, share)
        chosen_from, largest = drawn, _largest(counts)
        if share < 1:
            n_rows, n_queries = _sizes(drawn, query)
            counts_drawn = group_counts(drawn, group)
            largest = _largest([counts_drawn.get(name, 0) for name in names])
        extent, reference = _extent(chosen_from, lists, n_rows, largest)
        kept = summarised(chosen_from, partial(_kept, lists, notion, ks, extent), Kept.__add__)
        sample = together(_drawn(chosen_from, query, min(1.0, CHANCE_ROWS / n_rows)), query)
        chances = _chances(sample, lists)
        reranker.fit_lists(ReducedLists(kept, extent, names, reference, chances))
        if share < 1:
            offsets = np.array([reranker.offsets_[name] for name in names])
            before, after = _gaps(everything, lists, notion, ks, [np.zeros(len(names)), offsets], extent)
            reranker.gap_before_, reranker.gap_after_ = before, after
            warnings.warn(
                f"offsets were chosen on {n_queries:,} lists, drawn by their ids; their gaps are of all lists. Raise "
                "most_rows to choose on more.",
                DataWarning,
                stacklevel=2,
            )
    finally:
        everything.unpersist()
    warn_unchanged(reranker, n_queries, stacklevel=3)
    return reranker


def _sizes(df: Any, query: str) -> tuple[int, int]:
    from pyspark.sql import functions

    with in_one_line("df"):
        row = df.agg(functions.count(functions.lit(1)), functions.count_distinct(column(query))).collect()[0]
    if not row[0]:
        raise DataError("the DataFrame has no rows; at least one is needed.")
    return int(row[0]), int(row[1])


def _drawn(df: Any, query: str, share: float) -> Any:
    """The rows of the queries whose ids' hash is below a share; their order and partitions stay."""
    from pyspark.sql import functions

    if share >= 1:
        return df
    return df.where(functions.pmod(functions.xxhash64(column(query)), functions.lit(HASHED)) < int(share * HASHED))


def _largest(counts: Sequence[int]) -> list[int]:
    """The groups that have the most rows."""
    most = max(counts)
    return [code for code, count in enumerate(counts) if count == most]


def _extent(df: Any, lists: Lists, n_rows: int, largest: list[int]) -> tuple[Extent, int]:
    """The median score and step, the largest move, and the largest group, of which several may be equally large."""
    tied = largest if len(largest) > 1 else []
    total = summarised(df, partial(_work, lists, partial(_counted_streams, tied)), _add_counts)
    wanted = []
    steps = "visible" if total["visible"] else "inside"
    for stream in ("score", steps, *(f"group {code}" for code in tied)):
        wanted += [Wanted(stream, rank) for rank in middle_ranks(total[stream])] if total[stream] else []
    for _ in range(PASSES):
        found = summarised(df, partial(_work, lists, partial(_digits, tied, wanted)), np.add)
        wanted = [item.narrowed(counts) for item, counts in zip(wanted, found, strict=True)]
    values: dict[str, list[float]] = {}
    for item in wanted:
        values.setdefault(item.stream, []).append(from_digits(item.prefix))
    step = float(np.mean(values[steps])) if steps in values else 1.0
    extent = Extent(step, median_of(*values["score"]))
    low, high = summarised(df, partial(_work, lists, partial(_ends, extent)), _wider)
    limit = largest_move(low, high, step) if low <= high else largest_move(0.0, 0.0, step)
    reference = largest[0]
    if tied:
        reference = largest[int(np.argmax([np.mean(np.array(values[f"group {code}"]) / 2) for code in tied]))]
    return replace(extent, limit=limit), reference


def _work(lists: Lists, each: Callable[[ScoredLists], Any], batches: Iterator[Any]) -> Any:
    """What a function gives for the frames of a partition, put together as those of partitions are."""
    total: Any = None
    for frame in query_frames(batches, lists.columns.query):
        part, add = each(lists.of(frame))
        total = part if total is None else add(total, part)
    return total


def _counted_streams(tied: list[int], lists: ScoredLists) -> Any:
    return {name: len(values) for name, values in streams_of(lists, tied).items()}, _add_counts


def _add_counts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {name: count + second[name] for name, count in first.items()}


def _digits(tied: list[int], wanted: list[Wanted], lists: ScoredLists) -> Any:
    digits = {name: as_digits(values) for name, values in streams_of(lists, tied).items()}
    return np.array([item.counts(digits[item.stream]) for item in wanted]), np.add


def _ends(extent: Extent, lists: ScoredLists) -> Any:
    return ends_of(lists, extent), _wider


def _wider(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return min(first[0], second[0]), max(first[1], second[1])


def _kept(lists: Lists, notion: NotionLike, ks: tuple[int, ...], extent: Extent, batches: Iterator[Any]) -> Any:
    return _work(lists, lambda some: (Kept.of(some, as_notion(notion), ks, extent), Kept.__add__), batches)


def _chances(df: Any, lists: Lists) -> Any:
    """How relevance rises with the score in each group, on rows that all come to the driver."""
    frame = pl.from_arrow(collected(df))
    assert isinstance(frame, pl.DataFrame)
    some = lists.of(frame)
    return group_chances(some.score, some.data)


def _gaps(
    df: Any, lists: Lists, notion: NotionLike, ks: tuple[int, ...], choices: list[Any], extent: Extent
) -> list[float]:
    """Γ of the top k at several offsets, over all lists."""
    work = partial(_selected, lists, notion, ks, choices, extent)
    total = summarised(df, work, np.add)  # (choices + 1, ks, strata, groups); last what all rows weigh
    weight = total[-1, 0]
    pairs = Pairs.of(weight[:, None, :])
    divisor = np.where(weight > 0, weight, 1)
    return [
        float(np.mean([pairs.value((m := (part / divisor).ravel())[pairs.a] - m[pairs.b]) for part in chosen]))
        for chosen in total[:-1]
    ]


def _selected(
    lists: Lists, notion: NotionLike, ks: tuple[int, ...], choices: list[Any], extent: Extent, batches: Iterator[Any]
) -> Any:
    def each(some: ScoredLists) -> Any:
        data, weights = some.data, some.weights(as_notion(notion))
        group = data.group
        out = np.zeros((len(choices) + 1, len(ks), len(weights.share), data.n_groups))
        known = group >= 0
        far = is_sentinel(some.score, extent.centre, extent.reach)
        for number, offsets in enumerate([*choices, None]):
            if offsets is not None:
                added = np.where(far, 0.0, np.append(offsets, 0.0)[group])
                ranking = Ranking(some.score + added, data.query_ptr)
            for place, k in enumerate(ks):
                top = np.ones(data.n_rows) if offsets is None else ranking.top(k)
                for stratum, share in enumerate(weights.share):
                    value = (top * share * weights.weight)[known]
                    out[number, place, stratum] = np.bincount(group[known], value, minlength=data.n_groups)
        return out, np.add

    return _work(lists, each, batches)
