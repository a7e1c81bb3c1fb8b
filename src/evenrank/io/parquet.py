"""Parquet tables: only the needed columns are read, and their types are kept."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, assemble, plan
from evenrank.io.files import has_utf8_name, unreadable
from evenrank.io.limits import byte_limit, too_large
from evenrank.io.parquet_footer import BadParquet, Footer, read_footer, stored
from evenrank.io.parquet_pages import refuse_odd_pages
from evenrank.row_checks import listed

PLAIN: dict[str, Any] = {"glob": False, "hive_partitioning": False}
LONGEST = 100
# Set by the command line, which may silence its own stderr.
OWN_PROCESS = False
T = TypeVar("T")


def read_parquet(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Read Parquet files that share their columns; errors count rows from 0 in each file.

    Parameters
    ----------
    paths : sequence of Path
        The files, read as one.
    columns : Columns
        The caller's choice of columns.
    """
    columns.refuse_trec("a table")
    footers = [checked_footer(path) for path in paths]
    chosen = plan(footers[0].names, columns, str(paths[0]))
    _refuse_bombs(paths, footers, chosen.needed)
    refuse_other_ids(paths, footers, columns.query)
    frames = [_load(path, footer, chosen.needed) for path, footer in zip(paths, footers, strict=True)]
    for path, part in zip(paths, frames, strict=True):
        _refuse_other_types(path, part, frames[0])
    frame = pl.concat(frames, how="vertical_relaxed")
    if not frame.height:
        raise DataError(f"{paths[0]}: the file has no rows; at least one is needed.")
    starts = np.cumsum([0] + [part.height for part in frames])

    def at(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return f"{paths[part]}: row {row - starts[part]}"

    return assemble(frame, chosen, columns, at)


def checked_footer(path: Path) -> Footer:
    """Read what a file says of itself; a DataError in one line where that cannot be."""
    try:
        footer = read_footer(path)
    except OSError as error:
        raise unreadable(path, error) from None
    except BadParquet as error:
        raise _damaged(path, str(error)) from None
    doubled = [name for name, count in Counter(footer.names).items() if count > 1]
    if doubled:
        raise DataError(f"{path}: column names must differ; {listed(doubled)} occurs twice. Rename one.")
    return footer


def _refuse_bombs(paths: Sequence[Path], footers: Sequence[Footer], needed: Sequence[str]) -> None:
    """A file of a few bytes can hold any number of equal rows, or long texts."""
    for path, footer in zip(paths, footers, strict=True):
        absent = set(needed) - set(footer.names)
        if absent:
            raise DataError(f"{path}: parts of one table must have the same columns; {min(absent)!r} is missing here.")
    n, limit = sum(footer.n_rows for footer in footers), byte_limit()
    if 8 * n * len(needed) > limit:
        raise too_large(str(paths[0]), f"{n} rows × {len(needed)} columns need", 8 * n * len(needed), limit)
    unpacked = sum(footer.sizes[name] for footer in footers for name in needed)
    if unpacked > limit:
        raise too_large(str(paths[0]), f"{n} rows unpack to", unpacked, limit)


def checked_pages(path: Path, footer: Footer, needed: Sequence[str]) -> None:
    """Refuse pages of the needed columns whose heads say what cannot be."""
    try:
        refuse_odd_pages(path, [chunk for chunk in footer.chunks if chunk.column in needed])
    except OSError as error:
        raise unreadable(path, error) from None
    except BadParquet as error:
        raise _damaged(path, str(error)) from None


def _load(path: Path, footer: Footer, needed: Sequence[str]) -> pl.DataFrame:
    checked_pages(path, footer, needed)

    def load() -> pl.DataFrame:
        source = path if has_utf8_name(path) else io.BytesIO(path.read_bytes())
        return pl.read_parquet(source, columns=list(needed), **PLAIN)

    return tried(path, load)


def _damaged(path: Path, reason: str) -> DataError:
    first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    return DataError(
        f"{path}: is not a Parquet file, or is damaged or cut short, or has types that cannot be read "
        f"({shown_reason(first)}). Write or download it again."
    )


def tried(path: Path, load: Callable[[], T]) -> T:
    """Give what ``load`` gives, or the error in one line: the library's panics come with pages of their own."""
    try:
        with path.open("rb"), _quiet():
            return load()
    except OSError as error:
        raise unreadable(path, error) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from None


def shown_reason(reason: str) -> str:
    """Shorten a library's reason, without what a terminal would act on."""
    plain = "".join(mark if mark.isprintable() else "?" for mark in reason)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


@contextmanager
def _quiet() -> Iterator[None]:
    """Send what is written to stderr below Python to nowhere, if this process is the command line's alone."""
    if not OWN_PROCESS:
        yield
        return
    sys.stderr.flush()
    saved_stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved_stderr, 2)
        os.close(saved_stderr)
        os.close(nowhere)


def _refuse_other_types(path: Path, part: pl.DataFrame, first: pl.DataFrame) -> None:
    """Numbers of any width go together, and a column of nulls with anything; text and numbers do not."""
    for name, dtype in part.schema.items():
        other = first.schema[name]
        numeric = all(kind.is_numeric() or kind == pl.Boolean for kind in (dtype, other))
        if not numeric and dtype != other and pl.Null not in (dtype, other):
            raise DataError(
                f"{path}: parts of one table must have the same types; column {name!r} is {dtype} here "
                f"and {other} in the first file."
            )


def refuse_other_ids(paths: Sequence[Path], footers: Sequence[Footer], column: str) -> None:
    """Refuse ids that are whole numbers in one file and something else in another: made alike, some may become equal.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    footers : sequence of Footer
        What each says of itself.
    column : str
        The column of the query ids.
    """
    kinds = [(path, stored(footer, column)) for path, footer in zip(paths, footers, strict=True) if footer.n_rows]
    for path, kind in kinds:
        if kind != kinds[0][1]:
            raise DataError(
                f"{path}: the query ids of all parts must have one type; {column!r} holds {kind} here and "
                f"{kinds[0][1]} in {kinds[0][0].name}. Write them as one type."
            )
