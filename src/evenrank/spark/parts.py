"""What runs on Spark's workers: Arrow batches in, small summaries or scored rows out; and how errors come back."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from evenrank.errors import ConfigError, DataError, EvenrankError
from evenrank.extras import require
from evenrank.frame_columns import note_left_out
from evenrank.io.columns import Columns, Plan, plan
from evenrank.io.whole_queries import joined, refuse_missing
from evenrank.spark.engine import in_one_line

SUMMARY = "part binary, error string"
# Summaries are merged on the workers down to so many before they come to the driver.
MERGED = 8
STACK = 4


def check_frame(df: Any) -> None:
    """Refuse what is no Spark DataFrame; no session is made here."""
    require("pyspark")
    if not hasattr(df, "mapInArrow") or not hasattr(df, "sparkSession"):
        raise ConfigError(f"df must be a Spark DataFrame; got {type(df).__name__}. Read one with your session.")


def settled(df: Any, columns: Columns) -> tuple[Columns, Plan]:
    """Settle which column of a Spark DataFrame has which part; features are those of numbers unless named.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows.
    columns : Columns
        The caller's choice.

    Returns
    -------
    tuple of Columns and Plan
        The choice, and the parts.
    """
    check_frame(df)
    chosen = plan(df.columns, columns, "the DataFrame")
    if chosen.features is None:
        kinds = {field.name: field.dataType.typeName() for field in df.schema.fields}
        taken = tuple(name for name in chosen.rest if name in columns.categorical or kinds[name] in NUMBERS)
        note_left_out(chosen.by_name, [name for name in chosen.rest if name not in taken], stacklevel=STACK)
        needed = tuple(name for name in chosen.needed if name not in chosen.rest or name in taken)
        chosen = replace(chosen, features=taken, needed=needed)
    return columns, chosen


NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal", "boolean")


def column(name: str) -> Any:
    """Give a column by its name, whatever marks are in it."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def mapped(df: Any, work: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> Any:
    """Map Arrow batches; PySpark's word on new versions of pandas, which is not used, is kept back."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        return df.mapInArrow(work, schema)


def collected(df: Any) -> Any:
    """Bring small rows to the driver as an Arrow table, as quietly as `mapped`."""
    with warnings.catch_warnings(), in_one_line("df"):
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        return df.toArrow()


def together(df: Any, query: str) -> Any:
    """Bring the rows of each query to one partition, one after the other."""
    return df.repartition(column(query)).sortWithinPartitions(column(query))


def frames(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """Take Arrow batches as polars frames, without those that are empty."""
    for batch in batches:
        if batch.num_rows:
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame


def query_frames(batches: Iterable[Any], query: str) -> Iterator[pl.DataFrame]:
    """Take Arrow batches of a partition of `together` as frames of whole queries."""

    def checked() -> Iterator[pl.DataFrame]:
        for frame in frames(batches):
            refuse_missing(frame[query], row_of_batch)
            yield frame

    return joined(checked(), query)


def row_of_batch(row: int) -> str:
    """Say where a row is, as far as it can be known in the middle of a cluster."""
    return f"row {row} of a batch of the DataFrame"


# ---------------------------------------------------------------------- summaries


def summarised(df: Any, work: Callable[[Iterator[Any]], Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Reduce every partition to a summary on the workers, and merge the summaries.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows.
    work : callable
        From the Arrow batches of a partition to its summary, or None if it has no rows.
    merge : callable
        From two summaries to one.

    Returns
    -------
    object or None
        The summary of all rows; None if there are none.

    Raises
    ------
    DataError, ConfigError
        What ``work`` raised on a worker, as it would be raised in memory.
    """
    parts = mapped(df, partial(_summary, work), SUMMARY)
    parts = mapped(parts.repartition(MERGED), partial(_merged, merge), SUMMARY)
    return _reduced(_rows(collected(parts).to_batches()), merge)


def _summary(work: Callable[[Iterator[Any]], Any], batches: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from _packed(work(batches))
    except EvenrankError as error:
        # An error in the data is no reason to try the partition again, as Spark does with one that is raised.
        yield _row(None, f"{type(error).__name__}:{error}")


def _merged(merge: Callable[[Any, Any], Any], batches: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from _packed(_reduced(_rows(batches), merge))
    except EvenrankError as error:
        yield _row(None, f"{type(error).__name__}:{error}")


def _reduced(parts: Iterable[tuple[bytes | None, str | None]], merge: Callable[[Any, Any], Any]) -> Any:
    total = None
    for part, error in parts:
        if error is not None:
            kind, _, text = error.partition(":")
            raise (ConfigError if kind == "ConfigError" else DataError)(text)
        assert part is not None
        value = pickle.loads(part)
        total = value if total is None else merge(total, value)
    return total


def _rows(batches: Iterable[Any]) -> Iterator[tuple[bytes | None, str | None]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _packed(value: Any) -> Iterator[Any]:
    if value is not None:
        yield _row(pickle.dumps(value, protocol=5), None)


def _row(part: bytes | None, error: str | None) -> Any:
    pyarrow = require("pyarrow", extra="spark")
    arrays: Sequence[Any] = [pyarrow.array([part], pyarrow.binary()), pyarrow.array([error], pyarrow.string())]
    return pyarrow.RecordBatch.from_arrays(list(arrays), ["part", "error"])
