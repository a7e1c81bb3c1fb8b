"""`Moments` of files larger than memory, and of the tables that an engine hands over part by part."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import is_categorical
from evenrank.io.columns import Columns
from evenrank.io.feature_columns import feature_table
from evenrank.io.row_files import RankingFiles
from evenrank.io.values import labels, numbers
from evenrank.io.whole_queries import ROW, query_bounds, query_frames
from evenrank.labels import group_codes, is_missing
from evenrank.moments import Moments
from evenrank.notions import NOTIONS, Cells, NotionLike, as_notion
from evenrank.row_checks import Locate, checked_numbers

MOST_THREADS = 8
RULE = "a finite number ≥ 0", "Drop the row or fill the value."


@dataclass(frozen=True)
class Summing:
    """What moments of parts are asked for, the same for every part, so that they add up.

    Attributes
    ----------
    columns : Columns
        The parts of the columns.
    features : tuple of str
        The features.
    notions : tuple
        The notions.
    group_aware, target, within
        See `Moments.of`.
    group_names : tuple
        The groups of all rows.
    group_rows : tuple of int
        The number of rows of each.
    """

    columns: Columns
    features: tuple[str, ...]
    notions: tuple[NotionLike, ...]
    group_aware: bool = False
    target: str = "score"
    within: bool = False
    group_names: tuple[Any, ...] = ()
    group_rows: tuple[int, ...] = ()

    @property
    def whole_queries(self) -> bool:
        """Whether parts must be of whole queries."""
        return self.within or self.target == "centered" or any(_own(notion) for notion in self.notions)

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        parts = [self.columns.query if self.whole_queries else None, self.columns.relevance]
        parts += [self.columns.group if self.group_names else None, self.columns.sample_weight]
        return list(dict.fromkeys(name for name in (*parts, *self.features) if name is not None))

    def moments(self, frames: Iterable[tuple[Locate, pl.DataFrame]], threads: int = 1) -> Moments | None:
        """Add up the moments of tables.

        Parameters
        ----------
        frames : iterable
            What says where a row is, and the rows; of whole queries where that is needed.
        threads : int
            How many tables are summed at a time; the sums do not depend on it.

        Returns
        -------
        Moments or None
            The sums; None if there were no rows.
        """
        total: Moments | None = None
        for part in _in_turn(partial(self._part, _Once()), frames, threads):
            if part is not None:
                total = part if total is None else total + part
        return total

    def _part(self, first: _Once, located: tuple[Locate, pl.DataFrame]) -> Moments | None:
        """The moments of one table, about the origin of the first."""
        at, frame = located
        if not frame.height:
            return None
        data = self._rows(frame, at)
        if not first.checked and data.n_queries > 1:
            refuse_pooled(self.notions, data)
            first.checked = True
        shares = np.array(self.group_rows) / max(1, sum(self.group_rows)) if self.group_aware else None
        with np.errstate(over="ignore", invalid="ignore"):
            part = Moments.of(
                data,
                self.notions,
                group_aware=self.group_aware,
                shares=shares,
                origin=first.origin,
                target=self.target,
                within=self.within,
            )
        first.origin = part.origin if first.origin is None else first.origin
        # A missing or infinite value shows in the sums: to look for it in every row would cost another pass.
        if not (np.isfinite(part.x).all() and np.isfinite(part.xx).all()):
            refuse_odd_values(data, at)
        return part

    def _rows(self, frame: pl.DataFrame, at: Locate) -> RankingData:
        """The rows as they are: only what sums do not show is checked."""
        n, columns = frame.height, self.columns
        relevance = np.zeros(n)
        if columns.relevance is not None:
            relevance = _positive(frame[columns.relevance], "relevance", at)
        weight = None
        if columns.sample_weight is not None:
            weight = _positive(frame[columns.sample_weight], "sample_weight", at)
        group = np.full(n, -1, np.int32)
        if self.group_names and columns.group is not None:
            group = codes_of(frame[columns.group], self.group_names, at)
        bounds = query_bounds(frame[columns.query]) if self.whole_queries else np.array([0, n])
        return RankingData(
            features=feature_table(frame, self.features),  # type: ignore[arg-type]
            relevance=relevance,
            group=group,
            query_ptr=bounds,
            query_ids=labels(frame[columns.query].gather(bounds[:-1])) if self.whole_queries else np.zeros(1),
            item_ids=None,
            feature_names=self.features,
            group_names=self.group_names,
            relevance_threshold=columns.relevance_threshold,
            sample_weight=weight,
        )


class _Once:
    """What the first table settles for all: the origin of the sums, and that the notions are of rows or queries."""

    def __init__(self) -> None:
        self.origin: NDArray[np.float64] | None = None
        self.checked = False


def _in_turn(work: Callable[[Any], Any], parts: Iterable[Any], threads: int) -> Iterator[Any]:
    """Results in the order of the parts, some of which are worked on at a time; the first comes before all others."""
    parts = iter(parts)
    for part in parts:
        yield work(part)
        break
    if threads < 2:
        yield from map(work, parts)
        return
    pending: deque[Any] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part in parts:
            pending.append(pool.submit(work, part))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _own(notion: NotionLike) -> bool:
    return as_notion(notion).name not in NOTIONS


def refuse_masks(notions: Sequence[NotionLike]) -> None:
    """Refuse notions that are masks of rows in memory, since parts of files are other rows."""
    for notion in notions:
        if not isinstance(notion, str) and not hasattr(notion, "name") and not callable(notion):
            raise ConfigError("a notion of row masks is for rows in memory; pass a function of the rows instead.")


def refuse_pooled(notions: Sequence[NotionLike], data: RankingData) -> None:
    """Refuse a notion of one's own that looks at other queries too: parts would be judged each by itself."""
    for notion in notions:
        if not _own(notion):
            continue
        half = data.take(np.arange((data.n_queries + 1) // 2))
        both = (Cells.of(notion, rows).strata for rows in (data, half))
        whole, part = both
        if not np.array_equal(whole[:, : half.n_rows], part):
            raise ConfigError(
                f"notion {as_notion(notion).name!r} gives a row another stratum when other queries are left out, so "
                "parts of files cannot be judged by themselves. Make it look at the row or its query alone."
            )


def _positive(series: pl.Series, role: str, at: Locate) -> NDArray[np.float64]:
    name = role if series.name == role else f"{role} {series.name!r}"
    return checked_numbers(numbers(series, name, at, RULE), len(series), role, at)


def codes_of(series: pl.Series, names: tuple[Any, ...], at: Locate) -> NDArray[np.int32]:
    """Give the groups' numbers, (n,), -1 for a missing label; a label that is not among the names is refused."""
    series = plain_labels(series)
    present = series.unique().drop_nulls()
    place = {name: code for code, name in enumerate(names)}
    known = labels(present).tolist()
    strange = [label for label in known if label not in place and not is_missing(label)]
    if strange:
        row = int((series == present[known.index(strange[0])]).arg_max() or 0)
        raise DataError(f"{at(row)}: group {strange[0]!r} was not there before. Did the data change meanwhile?")
    codes = [place.get(label, -1) for label in known]
    if not codes:
        return np.full(len(series), -1, np.int32)
    return series.replace_strict(present, codes, default=-1, return_dtype=pl.Int32).to_numpy()


def plain_labels(series: pl.Series) -> pl.Series:
    """Give labels in a type that can be compared; categories as the texts they stand for."""
    return series.cast(pl.String) if is_categorical(series.dtype) else series


def count_groups(parts: Iterable[pl.Series]) -> Counter[Any]:
    """Count the rows of each group label, missing ones aside."""
    counts: Counter[Any] = Counter()
    for series in parts:
        table = plain_labels(series).alias("label").value_counts()
        for label, count in zip(labels(table["label"]).tolist(), table["count"].to_list(), strict=True):
            if not is_missing(label):
                counts[label] += count
    return counts


def sorted_groups(counts: Counter[Any]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Give the labels in the order that `RankingData` has them in, and the rows of each."""
    names = group_codes(list(counts), None, len(counts))[1] if counts else ()
    return names, tuple(counts[name] for name in names)


def refuse_odd_values(data: RankingData, at: Locate) -> None:
    """Raise a DataError at the first feature that is missing, infinite or too large to square."""
    bad = ~np.isfinite(data.features)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        value, name = data.features[row, column], data.feature_names[column]
        if np.isnan(value):
            raise DataError(
                f"{at(row)}: feature {name!r} is missing; training from files takes numbers only. Fill it, or leave "
                "the feature out with ignore= (--ignore)."
            )
        raise DataError(f"{at(row)}: feature {name!r} must be a finite number; got {value:g}. Fill or drop it.")
    largest = int(np.argmax(np.abs(data.features).max(axis=0)))
    name = data.feature_names[largest]
    raise DataError(f"feature {name!r} has values too large to square in double precision. Rescale it.")


def stream_moments(
    files: RankingFiles,
    notions: Sequence[NotionLike] | None = None,
    *,
    group_aware: bool = False,
    target: str = "score",
    within: bool = False,
) -> Moments:
    """Sum over the rows of files, part by part.

    Parameters
    ----------
    files : RankingFiles
        The rows.
    notions, group_aware, target, within
        See `Moments.of`.

    Returns
    -------
    Moments
        Those of all rows.
    """
    group = files.columns.group
    counts: Counter[Any] = Counter()
    if group is not None and (notions is None or notions or group_aware):
        counts = count_groups(frame[group] for _, frame in files.frames([group]))
    names, rows = sorted_groups(counts)
    summing = asked(files.columns, files.feature_names, notions, group_aware, target, within, names, rows)
    # Each part on a thread of its own: products this narrow, split among threads, wait for each other.
    with threadpool_limits(1):
        total = summing.moments(_located(files, summing), threads=min(os.cpu_count() or 1, MOST_THREADS))
    assert total is not None
    return total


def asked(
    columns: Columns,
    features: tuple[str, ...],
    notions: Sequence[NotionLike] | None,
    group_aware: bool,
    target: str,
    within: bool,
    names: tuple[Any, ...],
    rows: tuple[int, ...],
) -> Summing:
    """Settle what is summed, once the groups are known; refuses what cannot be."""
    if notions is None:
        notions = list(NOTIONS) if len(names) > 1 else []
    refuse_masks(notions)
    if group_aware and not names:
        raise ConfigError("group_aware needs data with one grouping; got none.")
    return Summing(columns, features, tuple(notions), group_aware, target, within, names, rows)


def _located(files: RankingFiles, summing: Summing) -> Iterator[tuple[Locate, pl.DataFrame]]:
    if summing.whole_queries:
        for frame in query_frames(files, summing.names):
            yield _at_rows(files, frame[ROW]), frame
        return
    for start, frame in files.frames(summing.names):
        yield _from(files, start), frame


def _at_rows(files: RankingFiles, rows: pl.Series) -> Callable[[int], str]:
    return lambda row: files.place(int(rows[row]))


def _from(files: RankingFiles, start: int) -> Callable[[int], str]:
    return lambda row: files.place(start + row)
