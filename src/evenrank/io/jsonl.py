"""JSON lines: one object a line; lines are looked at one by one only when the fast parser refuses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, assemble, plan, shown
from evenrank.io.files import Text, load_text


def read_jsonl(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Rows of one or more files of JSON objects; a key absent from an object is a missing value."""
    columns.refuse_trec("a table")
    text = load_text(paths)
    lines = _written_lines(text.data)
    if not len(lines):
        raise DataError(f"{text.name}: the file is empty; at least one JSON object is needed.")
    try:
        frame = pl.read_ndjson(text.data, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        frame = None
    if frame is None or frame.height != len(lines):
        frame = _load_slowly(text)
    chosen = plan(frame.columns, columns, text.name)
    return assemble(frame, chosen, columns, lambda row: text.place(int(lines[row])))


def _written_lines(data: bytes) -> NDArray[np.int64]:
    """Numbers, from 1, of the lines that hold more than white space."""
    array = np.frombuffer(data, np.uint8)
    stops = np.flatnonzero(array == ord("\n"))
    starts = np.concatenate([[0], stops[:-1] + 1])[: len(stops)]
    written = array[starts] == ord("{")
    for line in np.flatnonzero(~written).tolist():  # few: objects nearly always start their line
        written[line] = bool(data[starts[line] : stops[line]].strip())
    return np.flatnonzero(written) + 1


def _load_slowly(text: Text) -> pl.DataFrame:
    """The same table by the standard parser, or the error of the first line that is not an object."""
    if text.data.lstrip().startswith((b"[{", b"[\n", b"[\r", b"[ ")):
        raise DataError(
            f"{text.name}: the file is a JSON array; one object a line is needed, without [ ] and commas between. "
            "Convert it, say with: jq -c '.[]'"
        )
    objects: list[dict[str, Any]] = []
    for number, line in enumerate(text.data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise DataError(
                f"{text.place(number)}: each line must be one JSON object ({reason}); "
                f"got {shown(line.decode().strip())}. Correct or drop the line."
            ) from None
        if not isinstance(found, dict):
            raise DataError(
                f"{text.place(number)}: each line must be a JSON object {{…}}; got {shown(found)}. "
                "Correct or drop the line."
            )
        objects.append(found)
    names = dict.fromkeys(name for found in objects for name in found)
    return pl.DataFrame([_series(name, [found.get(name) for found in objects]) for name in names])


def _series(name: str, values: list[Any]) -> pl.Series:
    """Numbers if all are; else text, which for a nested value or an integer beyond 64 bits is its JSON."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pl.Series(name, values, dtype=pl.Null)
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {int, float, bool} and kinds != {int}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    written = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, written, dtype=pl.String)
