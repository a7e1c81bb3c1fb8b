"""Parquet tables: only the needed columns are read, and their types are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, assemble, plan
from evenrank.io.files import unreadable
from evenrank.io.limits import byte_limit, too_large

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
    chosen = plan(_names(paths[0]), columns, str(paths[0]))
    _refuse_bombs(paths, len(chosen.needed))
    frames = [_load(path, chosen.needed) for path in paths]
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


def _names(path: Path) -> list[str]:
    return list(_tried(path, lambda: pl.scan_parquet(path, **PLAIN).collect_schema()))


def _refuse_bombs(paths: Sequence[Path], n_columns: int) -> None:
    """A file of a few bytes can hold any number of equal rows."""
    n = sum(_tried(path, partial(_n_rows, path)) for path in paths)
    if 8 * n * n_columns > byte_limit():
        raise too_large(str(paths[0]), f"{n} rows × {n_columns} columns need", 8 * n * n_columns, byte_limit())


def _n_rows(path: Path) -> int:
    return int(pl.scan_parquet(path, **PLAIN).select(pl.len()).collect().item())


def _load(path: Path, needed: Sequence[str]) -> pl.DataFrame:
    absent = set(needed) - set(_names(path))
    if absent:
        raise DataError(f"{path}: parts of one table must have the same columns; {min(absent)!r} is missing here.")
    return _tried(path, lambda: pl.read_parquet(path, columns=list(needed), **PLAIN))


def _tried(path: Path, load: Callable[[], T]) -> T:
    """What ``load`` gives, or the error in one line: the library's panics come with pages of their own."""
    try:
        with path.open("rb"), _quiet():
            return load()
    except OSError as error:
        raise unreadable(path, error) from None
    except pl.exceptions.DuplicateError as error:
        raise DataError(f"{path}: column names must differ ({_reason(error)}). Rename one.") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise DataError(
            f"{path}: is not a Parquet file, or is damaged or cut short, or has types that cannot be read "
            f"({_reason(error)}). Write or download it again."
        ) from None


def _reason(error: BaseException) -> str:
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return first if len(first) <= LONGEST else first[: LONGEST - 1] + "…"


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
