"""JSON lines: one object per line, read by Python's own parser, which neither guesses types nor drops repeated keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, assemble, plan
from evenrank.io.files import Text, load_text
from evenrank.io.values import shown

BLOCK_LINES = 20_000
# Of these types, blocks of rows are kept as columns; other columns stay lists until all rows are known.
DTYPES: dict[type, Any] = {int: pl.Int64, float: pl.Float64, str: pl.String, bool: pl.Boolean}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_jsonl(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Read files of JSON objects, one per line; a key absent from an object is a missing value.

    A key may occur once per object. ``NaN`` and ``Infinity``, which Python writes, are numbers. A column of numbers
    and text is text; integers beyond 64 bits are too, as ids.

    Parameters
    ----------
    paths : sequence of Path
        The files, read as one.
    columns : Columns
        The caller's choice of columns.
    """
    columns.refuse_trec("a table")
    text = load_text(paths)
    lines: list[int] = []
    blocks: dict[str, list[pl.Series | list[Any]]] = {}
    for numbers, objects in _blocks(text):
        names = dict.fromkeys([*blocks, *(name for content in objects for name in content)])
        for name in names:
            # A column that turns up late was missing in all rows before.
            earlier = blocks.setdefault(name, [[None] * len(lines)] if lines else [])
            earlier.append(_packed([content.get(name) for content in objects]))
        lines += numbers
    if not lines:
        raise DataError(f"{text.name}: the file is empty; at least one JSON object is needed.")
    chosen = plan(list(blocks), columns, text.name)
    frame = pl.DataFrame([_series(name, blocks[name]) for name in chosen.needed])
    at = np.array(lines)
    return assemble(frame, chosen, columns, lambda row: text.place(int(at[row])))


def _blocks(text: Text) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Line numbers and objects, some thousand at a time; the first line that is not an object is the error."""
    if text.data.lstrip().startswith((b"[{", b"[\n", b"[\r", b"[ ")):
        raise DataError(
            f"{text.name}: the file is a JSON array; one object per line is needed, without [ ] and commas between. "
            "Convert it, say with: jq -c '.[]'"
        )
    numbers: list[int] = []
    objects: list[dict[str, Any]] = []
    start = number = 0
    while start < len(text.data):
        stop = text.data.index(b"\n", start)
        line, start, number = text.data[start:stop], stop + 1, number + 1
        if not line.strip():
            continue
        objects.append(_parsed(line, number, text))
        numbers.append(number)
        if len(numbers) == BLOCK_LINES:
            yield numbers, objects
            numbers, objects = [], []
    if numbers:
        yield numbers, objects


def _parsed(line: bytes, number: int, text: Text) -> dict[str, Any]:
    try:
        value = _DECODER.decode(line.decode().strip(" \t\r"))
        if _SURROGATE.search(line):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(
            f"{text.place(number)}: text must be Unicode; found {half}, one half of a pair. Correct or drop the line."
        ) from None
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise DataError(
            f"{text.place(number)}: each line must be one JSON object ({reason}); "
            f"got {shown(line.decode().strip())}. Correct or drop the line."
        ) from None
    if not isinstance(value, dict):
        raise DataError(
            f"{text.place(number)}: each line must be a JSON object {{…}}; got {shown(value)}. "
            "Correct or drop the line."
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _packed(values: list[Any]) -> pl.Series | list[Any]:
    """Values of one plain type as a column, which takes a fraction of their memory; others as they are."""
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) != 1 or not kinds <= set(DTYPES):
        return values if kinds else pl.Series(values, dtype=pl.Null)
    try:
        return pl.Series(values, dtype=DTYPES[kinds.pop()])
    except (OverflowError, TypeError, pl.exceptions.PolarsError):  # an integer beyond 64 bits
        return values


def _series(name: str, blocks: list[pl.Series | list[Any]]) -> pl.Series:
    """Numbers if all are; objects if any is a list or an object; else text, which of a number is its JSON."""
    columns = [block for block in blocks if isinstance(block, pl.Series)]
    types = {column.dtype for column in columns} - {pl.Null()}
    if len(columns) == len(blocks) and (len(types) <= 1 or types == {pl.Int64(), pl.Float64()}):
        widest = pl.Float64() if len(types) > 1 else types.pop() if types else pl.Null()
        return pl.concat([column.cast(widest) for column in columns]).alias(name)
    values = [value for block in blocks for value in block]
    kinds = {type(value) for value in values} - {type(None)}
    if kinds & {list, dict}:
        return pl.Series(name, values, dtype=pl.Object)
    if kinds <= {int, float, bool} and kinds != {int}:
        return pl.Series(name, [None if value is None else _float(value) for value in values], dtype=pl.Float64)
    written = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, written, dtype=pl.String)


def _float(value: float) -> float:
    """An integer beyond all floats is infinite, as 1e999 is."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
