"""`scan`: Parquet files of any size, read part by part when their rows are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import is_categorical, note_ids, note_left_out
from evenrank.io.columns import Columns, Plan, plan
from evenrank.io.files import files_like, need_utf8_name
from evenrank.io.parquet import PLAIN, checked_footer, checked_pages, refuse_other_ids, tried
from evenrank.io.parquet_footer import Footer

PathLike = str | os.PathLike[str]
# The float64 copy of a part's columns stays within so many bytes, unless one group of rows of a file is larger.
PART_BYTES = 1 << 26
FIRST_ROWS = 1000  # that must differ for a column of whole numbers to look like ids
STACK = 2  # user → scan


@dataclass(frozen=True, eq=False)
class RankingFiles:
    """Query–item rows in Parquet files, which may be larger than memory.

    Make one with `evenrank.scan`. `fairness_path` and `FairLinearRanker.fit` take it, as does ``evenrank rank``. Rows
    are read again at each use; a query whose rows are spread over files is still one query.

    Attributes
    ----------
    paths : tuple of Path
        The files, in the order in which their rows count.
    columns : Columns
        The caller's choice of columns.
    plan : Plan
        The part of each column.
    footers : tuple of Footer
        What each file says of itself.
    feature_names : tuple of str
        The features.
    """

    paths: tuple[Path, ...]
    columns: Columns
    plan: Plan
    footers: tuple[Footer, ...]
    feature_names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each file's rows begin among all and, last, their number, (files + 1,)."""
        return np.cumsum([0] + [footer.n_rows for footer in self.footers])

    def __repr__(self) -> str:
        files = f"{len(self.paths)} file{'s' if len(self.paths) > 1 else ''}"
        return f"RankingFiles({files}, {self.n_rows} rows, {len(self.feature_names)} features)"

    def place(self, row: int) -> str:
        """Write the place of a row, as errors name it."""
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"{self.paths[part]}: row {row - int(self.starts[part])}"

    def refuse_changed(self) -> None:
        """Raise a DataError if a file is no longer what it was when it was scanned."""
        for path, footer in zip(self.paths, self.footers, strict=True):
            _refuse_changed(path, footer)

    def frames(self, names: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Go through all rows in parts.

        Parameters
        ----------
        names : sequence of str
            The columns to read.

        Yields
        ------
        start : int
            The number of the first row.
        frame : polars.DataFrame
            The rows.

        Raises
        ------
        DataError
            If a file is damaged, or is no longer what it was when it was scanned.
        """
        most = max(1024, PART_BYTES // (8 * max(1, len(names))))
        types: dict[str, Any] = {}
        for number, (path, footer) in enumerate(zip(self.paths, self.footers, strict=True)):
            _refuse_changed(path, footer)
            checked_pages(path, footer, names)
            begin = 0
            for frame in _parts(path, footer, names, most):
                _refuse_other_types(path, frame, types)
                yield int(self.starts[number]) + begin, frame
                begin += frame.height
            if begin != footer.n_rows:
                raise DataError(f"{path}: {begin} rows came for {footer.n_rows}. Write or download it again.")


def _refuse_changed(path: Path, footer: Footer) -> None:
    if checked_footer(path) != footer:
        raise DataError(f"{path}: the file has changed since it was scanned. Scan it again.")


def _parts(path: Path, footer: Footer, names: Sequence[str], most: int) -> Iterator[pl.DataFrame]:
    """The rows of a file in their order; the next ones are unpacked meanwhile, where the library can."""
    rows = pl.scan_parquet(path, **PLAIN).select(names)
    if not hasattr(rows, "collect_batches"):  # older versions of polars
        for begin, end in pairwise(_bounds(footer, most)):
            yield tried(path, rows.slice(begin, end - begin).collect)
        return
    largest = max(np.diff(_bounds(footer, most)), default=most)
    parts = tried(path, lambda: iter(rows.collect_batches(chunk_size=int(largest), maintain_order=True)))
    while (frame := tried(path, lambda: next(parts, None))) is not None:
        if frame.height:
            yield frame


def _bounds(footer: Footer, most: int) -> list[int]:
    """Where parts begin and, last, the number of rows: whole groups of rows, as many as may be together."""
    first = footer.chunks[0].column if footer.chunks else None
    sizes = [chunk.n_values for chunk in footer.chunks if chunk.column == first]
    if sum(sizes) != footer.n_rows:  # a column of lists comes first
        sizes = [footer.n_rows]
    bounds, end = [0], 0
    for size in sizes:
        if end > bounds[-1] and end + size - bounds[-1] > most:
            bounds.append(end)
        end += size
    return [*bounds, end] if end > bounds[-1] else bounds


def _refuse_other_types(path: Path, frame: pl.DataFrame, first: dict[str, Any]) -> None:
    """Numbers of any width go together; text and numbers do not."""
    for name, dtype in frame.schema.items():
        other = first.setdefault(name, dtype)
        numeric = all(kind.is_numeric() or kind == pl.Boolean for kind in (dtype, other))
        if other == pl.Null:
            first[name] = dtype
        elif not numeric and dtype not in (other, pl.Null):
            raise DataError(
                f"{path}: parts of one table must have the same types; column {name!r} is {dtype} here "
                f"and {other} before."
            )


def parquet_parts(path: PathLike | Sequence[PathLike]) -> list[Path]:
    """Find the Parquet files that a path stands for.

    Parameters
    ----------
    path : path or sequence of paths
        A file, a folder, whose .parquet files are taken in the order of their names, those of folders in it too, or a
        pattern such as ``rows/*.parquet``. Hidden files and those whose names begin with _ are no parts.

    Returns
    -------
    list of Path
        The files.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not given:
        raise ConfigError("path must name at least one file; got an empty list.")
    parts: list[Path] = []
    for item in map(Path, given):
        if item.is_dir():
            found = sorted(file for file in item.rglob("*.parquet") if _is_part(file.relative_to(item)))
            if not found:
                raise DataError(f"{item}: the folder has no .parquet files. Name the files in it.")
        else:
            like = files_like(item)
            if like == []:
                raise DataError(f"{item}: no file is like that. Check the pattern.")
            found = [item] if like is None else like
        parts += found
    again = [file for number, file in enumerate(parts) if file in parts[:number]] if len(parts) < 1000 else []
    if again or len(set(parts)) < len(parts):
        twice = again[0] if again else next(file for file in parts if parts.count(file) > 1)
        raise ConfigError(f"{twice}: is named twice; each part must be named once. Drop one.")
    return parts


def _is_part(inside: Path) -> bool:
    return not any(name.startswith((".", "_")) for name in inside.parts)


def scan(
    path: PathLike | Sequence[PathLike],
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str | None = "group",
    item: str | None = None,
    features: Sequence[str] | None = None,
    relevance_threshold: float = 1.0,
    sample_weight: str | None = None,
    score: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> RankingFiles:
    """Take Parquet files of any size as rows to train on or to rank, without reading them yet.

    Parameters
    ----------
    path : path or sequence of paths
        A file, a folder or a pattern; see `parquet_parts`.
    query, relevance, group, item, features, relevance_threshold, sample_weight, score, ignore, categorical
        As in `evenrank.read`, but a column is a feature by its type alone: text that reads as numbers is not.

    Returns
    -------
    RankingFiles
        The rows.

    Raises
    ------
    DataError
        If a file cannot be read, or files differ in their columns.

    Examples
    --------
    >>> import tempfile, pathlib, polars as pl
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = pl.DataFrame({"qid": [1, 1, 2], "relevance": [1, 0, 1], "group": ["a", "b", "b"], "price": [3.0, 2, 1]})
    >>> rows[:2].write_parquet(folder / "1.parquet"); rows[2:].write_parquet(folder / "2.parquet")
    >>> scan(folder)
    RankingFiles(2 files, 3 rows, 1 features)
    """
    for name, value in (("features", features), ("categorical", categorical)):
        if isinstance(value, str):
            raise ConfigError(f"{name} must be a list of names; got the text {value!r}. Write [{value!r}].")
    columns = Columns(
        query=query,
        relevance=relevance,
        group=group,
        item=item,
        features=None if features is None else tuple(features),
        relevance_threshold=relevance_threshold,
        sample_weight=sample_weight,
        score=score,
        ignore=tuple(ignore),
        categorical=tuple(categorical),
    )
    paths = parquet_parts(path)
    for part in paths:
        need_utf8_name(part)
    footers = [checked_footer(part) for part in paths]
    chosen = plan(footers[0].names, columns, str(paths[0]))
    for part, footer in zip(paths, footers, strict=True):
        absent = set(chosen.needed) - set(footer.names)
        if absent:
            raise DataError(f"{part}: parts of one table must have the same columns; {min(absent)!r} is missing here.")
    refuse_other_ids(paths, footers, columns.query)
    n_rows = sum(footer.n_rows for footer in footers)
    if not n_rows:
        raise DataError(f"{paths[0]}: the file has no rows; at least one is needed.")
    taken = chosen.features
    if taken is None:
        schema = tried(paths[0], lambda: pl.scan_parquet(paths[0], **PLAIN).select(chosen.rest).collect_schema())
        taken = tuple(name for name in chosen.rest if name in columns.categorical or _is_feature(schema[name]))
        note_left_out(chosen.by_name, [name for name in chosen.rest if name not in taken], stacklevel=STACK)
        chosen = replace(
            chosen, features=taken, needed=tuple(n for n in chosen.needed if n not in chosen.rest or n in taken)
        )
        whole = [name for name in taken if schema[name].is_integer()]
        first = _first_rows(paths, footers, whole)
        rows = "every row" if len(first) == n_rows else f"each of the first {len(first):,} rows"
        note_ids(first, whole, stacklevel=STACK, rows=rows)
    return RankingFiles(tuple(paths), columns, chosen, tuple(footers), taken)


def _first_rows(paths: Sequence[Path], footers: Sequence[Footer], names: Sequence[str]) -> NDArray[Any]:
    """The first rows of some columns of numbers, enough to tell ids by."""
    found = [np.empty((0, len(names)))]
    for path, footer in zip(paths, footers, strict=True):
        lacking = FIRST_ROWS - sum(map(len, found))
        if names and footer.n_rows and lacking:
            checked_pages(path, footer, names)
            rows = pl.scan_parquet(path, **PLAIN).select(pl.col(names).cast(pl.Float64, strict=False)).head(lacking)
            found.append(tried(path, rows.collect).to_numpy())
    return np.concatenate(found)


def _is_feature(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or dtype == pl.Boolean or is_categorical(dtype)
