"""Rows of files brought together by query: as they stand where a query's rows are together, else sorted by DuckDB."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.io.limits import byte_limit
from evenrank.io.parquet import shown_reason
from evenrank.io.row_files import PART_BYTES, RankingFiles
from evenrank.row_checks import Locate
from evenrank.threads import interruptible

# The number of each row among all rows, added to frames of whole queries.
ROW = "evenrank_row"
FIRST = "evenrank_first"
# Of the memory that may be used, the part that DuckDB sorts in before it goes to the disk.
SORTING = 4
LEAST = 1 << 28


def stand_together(files: RankingFiles) -> bool:
    """Tell whether the rows of each query stand together, in one file or across the end of one.

    Only the query column is read, and of each run of rows with one id a number of 8 bytes is kept.

    Parameters
    ----------
    files : RankingFiles
        The rows.

    Returns
    -------
    bool
        False also where two ids have one number, which is rare and costs no more than a sort.

    Raises
    ------
    DataError
        If a query id is missing.
    """
    query = files.columns.query
    heads: list[NDArray[np.uint64]] = []
    kept, checked, last = 0, 1 << 16, None
    for start, frame in files.frames([query]):
        ids = frame[query]
        refuse_missing(ids, partial(_place, files, start))
        run = ids.ne_missing(ids.shift()).to_numpy().copy()
        run[0] = last is None or ids[0] != last
        last = ids[-1]
        heads.append(ids.filter(pl.Series(run)).hash().to_numpy())
        kept += len(heads[-1])
        if _repeats(heads[-1:]):
            return False
        if kept > checked:
            heads = [np.concatenate(heads)]
            checked = 2 * kept
            if _repeats(heads):
                return False
    return not _repeats(heads)


def _place(files: RankingFiles, start: int, row: int) -> str:
    return files.place(start + row)


def _repeats(heads: Sequence[NDArray[np.uint64]]) -> bool:
    numbers = np.sort(np.concatenate(heads))
    return bool((numbers[1:] == numbers[:-1]).any())


def refuse_missing(ids: pl.Series, at: Locate) -> None:
    """Refuse a query id that is null, NaN or empty text; ``at`` says where a row is."""
    missing = ids.is_null()
    if ids.dtype == pl.String:
        missing |= ids == ""
    elif ids.dtype.is_float():
        missing |= ids.is_nan()
    row = missing.fill_null(True).arg_max()
    if row is not None and missing[row] is not False:
        raise DataError(f"{at(row)}: qid must not be empty. Fill it or drop the row.")


def query_frames(files: RankingFiles, names: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Go through the rows in frames of whole queries, queries in the order of their first rows.

    Parameters
    ----------
    files : RankingFiles
        The rows.
    names : sequence of str
        The columns, the query's among them.

    Yields
    ------
    polars.DataFrame
        The columns and `ROW`.
    """
    if stand_together(files):
        numbered = (
            frame.with_columns(pl.int_range(start, start + frame.height, dtype=pl.Int64).alias(ROW))
            for start, frame in files.frames(names)
        )
        yield from joined(numbered, files.columns.query)
        return
    files.refuse_changed()
    starts = dict(zip(map(str, files.paths), files.starts.tolist(), strict=False))
    rows = 0
    for frame in joined(sorted_frames(starts, names, files.columns.query), files.columns.query):
        rows += frame.height
        yield frame
    files.refuse_changed()
    if rows != files.n_rows:
        raise DataError(f"{files.paths[0]}: {rows} rows came for {files.n_rows}. Write or download the files again.")


def joined(frames: Iterable[pl.DataFrame], query: str) -> Iterator[pl.DataFrame]:
    """Cut frames whose rows come query by query so that no query is in two of them.

    Parameters
    ----------
    frames : iterable of polars.DataFrame
        The rows, those of a query one after the other.
    query : str
        The column of the query ids.

    Yields
    ------
    polars.DataFrame
        Frames of whole queries; none is empty.
    """
    kept: list[pl.DataFrame] = []
    for frame in frames:
        if not frame.height:
            continue
        ids = frame[query]
        if kept and ids[0] != kept[-1][query][-1]:
            yield _stacked(kept)
            kept = []
        begins = int(np.flatnonzero(ids.ne_missing(ids.shift()).to_numpy())[-1]) if frame.height > 1 else 0
        if begins == 0:
            kept.append(frame)
            continue
        yield _stacked([*kept, frame[:begins]])
        kept = [frame[begins:]]
    if kept:
        yield _stacked(kept)


def _stacked(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")


def sorted_frames(starts: dict[str, int], names: Sequence[str], query: str) -> Iterator[pl.DataFrame]:
    """Sort rows of Parquet files by the first row of their query, with DuckDB, on disk where memory does not do.

    Parameters
    ----------
    starts : dict of str to int
        The files, and the number of each one's first row.
    names : sequence of str
        The columns.
    query : str
        The column of the query ids, none of which is missing.

    Yields
    ------
    polars.DataFrame
        The columns and `ROW`.
    """
    duckdb = require("duckdb")
    rows = max(1024, PART_BYTES // (8 * max(1, len(names))))
    wanted = ", ".join(f"t.{_quoted(name)}" for name in names)
    own = _quoted(query)
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder, duckdb.connect() as engine:
        engine.execute(f"SET temp_directory = '{folder}'")
        engine.execute(f"SET memory_limit = '{max(byte_limit() // SORTING, LEAST)}B'")
        engine.execute("CREATE TEMP TABLE parts (file VARCHAR, start BIGINT)")
        engine.executemany("INSERT INTO parts VALUES (?, ?)", [list(pair) for pair in starts.items()])
        source = "read_parquet(?, filename = 'evenrank_file', file_row_number = true, union_by_name = true)"
        numbered = (
            f"SELECT t.*, p.start + t.file_row_number AS {ROW} FROM {source} t JOIN parts p ON t.evenrank_file = p.file"
        )
        text = (
            f"WITH t AS ({numbered}), f AS (SELECT {own} AS id, min({ROW}) AS first_row FROM t GROUP BY 1) "
            f"SELECT {wanted}, t.{ROW}, f.first_row AS {FIRST} FROM t JOIN f ON t.{own} = f.id "
            f"ORDER BY f.first_row, t.{ROW}"
        )
        first = -1
        try:
            sort = engine.sql(text, params=[list(starts)])
            batches = interruptible(lambda: sort.to_arrow_reader(rows), engine.interrupt)
            while (batch := interruptible(lambda: next(batches, None), engine.interrupt)) is not None:
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                first = _refuse_disorder(frame[FIRST], first)
                yield frame.drop(FIRST)
        except (duckdb.Error, OSError) as error:
            raise _failed(error, next(iter(starts)), len(starts)) from None


def _refuse_disorder(first_rows: pl.Series, before: int) -> int:
    """Rows must come in the order asked for: a query in two pieces would be taken for two, and nothing would show."""
    rows = first_rows.to_numpy()
    if len(rows) and (rows[0] < before or (rows[1:] < rows[:-1]).any()):
        raise RuntimeError("DuckDB gave the rows in another order than asked for")
    return int(rows[-1]) if len(rows) else before


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _failed(error: Exception, first: str, files: int) -> DataError | ConfigError:
    """The engine's error in one line; a full disk is said to be one."""
    reason = shown_reason(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    if "space" in str(error).lower() or "temp_directory" in str(error):
        place = Path(tempfile.gettempdir())
        return ConfigError(
            f"{place}: is too small to sort the rows by query in ({reason}). Set TMPDIR to a larger disk, or sort the "
            "files by query."
        )
    more = f" and {files - 1} more" if files > 1 else ""
    return DataError(f"{first}{more}: cannot be sorted by query ({reason}). Write or download them again.")


def query_bounds(ids: pl.Series) -> NDArray[np.int64]:
    """Give where each query begins and, last, the number of rows, (q + 1,), of rows that stand together."""
    changes = np.flatnonzero(ids.ne_missing(ids.shift()).to_numpy()) if len(ids) > 1 else np.zeros(0, np.int64)
    return np.unique(np.concatenate([[0], changes, [len(ids)]])).astype(np.int64)
