"""Comma- and tab-separated tables, read as text first so that an error can quote the value and its line."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.io.columns import Columns, MissingColumn, assemble, plan
from evenrank.io.files import Text, load_text
from evenrank.io.records import refuse_ragged, scan
from evenrank.row_checks import is_number, listed


@dataclass(frozen=True)
class TextTable:
    """All columns as text, null where nothing is written, and the line on which each row starts."""

    frame: pl.DataFrame
    lines: NDArray[np.int64]
    text: Text


def read_csv(paths: Sequence[Path], columns: Columns, *, separator: str = ",") -> RankingData:
    """Read tables that share a header; each row must have as many fields as its header.

    Parameters
    ----------
    paths : sequence of Path
        The files, read as one.
    columns : Columns
        The caller's choice of columns.
    separator : str
        Between fields: one character.
    """
    columns.refuse_trec("a table")
    texts = [load_text([path]) for path in paths]
    names = header(texts[0], separator, columns.header)
    try:
        chosen = plan(names, columns, str(paths[0]))
    except MissingColumn as error:
        if not columns.header or not any(map(is_number, names)):
            raise
        fact = f"{error.fact} If its first line holds no names, pass header=False (--no-header)."
        raise MissingColumn(error.role, fact, error.advice, error.name) from None
    if "" in names and columns.features is None and columns.score is None:
        warnings.warn(
            f"{paths[0]}: column {names.index('') + 1} has no name and is left out of the features (a row index?)",
            DataWarning,
            stacklevel=3,
        )
    tables = [load_table(text, separator, names, chosen.needed, has_header=columns.header) for text in texts]
    frame = pl.concat([table.frame for table in tables])
    if not frame.height:
        raise DataError(f"{texts[0].name}: the file has a header but no rows; at least one is needed.")
    starts = np.cumsum([0] + [table.frame.height for table in tables])

    def at(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return tables[part].text.place(int(tables[part].lines[row - starts[part]]))

    return assemble(frame, chosen, columns, at, typed=False)


def header(text: Text, separator: str, has_header: bool = True) -> list[str]:
    """Read the names on the first line that is not blank; a name may be empty, but none may occur twice.

    Without a header, columns are named by their number, from 1.
    """
    first = text.data.lstrip(b"\r\n")
    if not first:
        raise DataError(f"{text.name}: the file is empty; a header and at least one row are needed.")
    line = 1 + text.data.count(b"\n", 0, len(text.data) - len(first))
    record = io.StringIO(_first_record(first).decode(), newline="")
    try:
        names: list[str] = next(csv.reader(record, delimiter=separator))
    except csv.Error as error:
        raise DataError(f"{text.place(line)}: the header cannot be read ({error}). Check its quotes.") from None
    if not has_header:
        return [str(number) for number in range(1, len(names) + 1)]
    again = [name for j, name in enumerate(names) if name and name in names[:j]]
    if again:
        advice = "If they are no names, pass header=False (--no-header)." if is_number(again[0]) else "Rename one."
        raise DataError(f"{text.place(line)}: column names must differ; {again[0]!r} occurs twice. {advice}")
    return names


def _first_record(data: bytes) -> bytes:
    stop = quotes = 0
    while stop < len(data):
        start, stop = stop, data.index(b"\n", stop) + 1
        quotes += data.count(b'"', start, stop)
        if quotes % 2 == 0:
            break
    return data[:stop]


def load_table(
    text: Text, separator: str, expected: Sequence[str], needed: Sequence[str], *, has_header: bool = True
) -> TextTable:
    """Read the needed columns of one file.

    Parameters
    ----------
    text : Text
        The file's content.
    separator : str
        Between fields.
    expected : sequence of str
        The names its header must have, in any order.
    needed : sequence of str
        The columns to read.
    has_header : bool
        Whether its first row holds names; else columns are named by their number.
    """
    names = header(text, separator, has_header)
    if sorted(names) != sorted(expected):
        raise DataError(
            f"{text.name}: parts of one table must have the same columns; "
            f"got {listed(names)} where the first file has {listed(expected)}."
        )
    records = scan(text, separator.encode())
    refuse_ragged(records, text, len(names), "as the header has" if has_header else "as the first row has")
    body = records.without_blanks()[records.first_stop if has_header else 0 :]
    # Positions as names: a header may hold empty names, which polars would invent others for.
    schema = {str(j): pl.String() for j in range(len(names))}
    at = [names.index(name) for name in needed]
    if not body:
        frame = pl.DataFrame(schema={str(j): pl.String() for j in at})
    else:
        try:
            frame = pl.read_csv(body, has_header=False, separator=separator, schema=schema, columns=at)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{text.name}: the file cannot be read as a table ({reason}).") from None
    lines = records.lines[1:] if has_header else records.lines
    if frame.height != len(lines):
        raise DataError(f"{text.name}: the file cannot be read as a table. Check its quotes and line ends.")
    frame = frame.select(pl.col(str(j)).replace("", None).alias(names[j]) for j in at)
    return TextTable(frame, lines, text)
