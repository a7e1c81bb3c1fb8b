"""Parquet tables: only the needed columns are read, and their types are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, assemble, plan
from evenrank.io.files import unreadable


def read_parquet(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Rows of files that share their columns; rows are counted from 0 in each file."""
    columns.refuse_trec("a table")
    chosen = plan(_names(paths[0]), columns, str(paths[0]))
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
    try:
        with path.open("rb") as file:
            return list(pl.read_parquet_schema(file))
    except OSError as error:
        raise unreadable(path, error) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
        raise _damaged(path) from None


def _load(path: Path, needed: Sequence[str]) -> pl.DataFrame:
    absent = set(needed) - set(_names(path))
    if absent:
        raise DataError(f"{path}: parts of one table must have the same columns; {min(absent)!r} is missing here.")
    try:
        return pl.read_parquet(path, columns=list(needed), glob=False, hive_partitioning=False)
    except OSError as error:
        raise unreadable(path, error) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
        raise _damaged(path) from None


def _refuse_other_types(path: Path, part: pl.DataFrame, first: pl.DataFrame) -> None:
    """Numbers of any width go together, and a column of nulls with anything; text and numbers do not."""
    for name, dtype in part.schema.items():
        other = first.schema[name]
        numeric = all(one.is_numeric() or one == pl.Boolean for one in (dtype, other))
        if not numeric and dtype != other and pl.Null not in (dtype, other):
            raise DataError(
                f"{path}: parts of one table must have the same types; column {name!r} is {dtype} here "
                f"and {other} in the first file."
            )


def _damaged(path: Path) -> DataError:
    return DataError(f"{path}: is not a Parquet file, or is damaged or cut short. Write or download it again.")
