"""The end of a Parquet file: its columns, rows and chunks, read without trust in any number of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenrank.io.thrift import BadThrift, Compact

MAGIC = b"PAR1"
# Numbers of the fields that are used, as the format's definition gives them.
SCHEMA, ROWS, ROW_GROUPS = 2, 3, 4
TYPE, TYPE_LENGTH, REPETITION, NAME, CHILDREN = 1, 2, 3, 4, 5
CHUNKS, GROUP_ROWS, CHUNK_META = 1, 3, 3
PATH, CODEC, VALUES, UNPACKED, PACKED, DATA_AT, DICTIONARY_AT = 3, 4, 5, 6, 7, 9, 11
FIXED_LENGTH, REPEATED = 7, 2
STORED = {0: "true or false", 1: "whole numbers", 2: "whole numbers", 3: "times", 4: "float32", 5: "float64"}


class BadParquet(ValueError):
    """The bytes are not those of a Parquet file, or say what cannot be."""


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in one group of rows: where they are, and what they are said to hold."""

    column: str
    n_values: int
    start: int
    stop: int
    unpacked: int
    compressed: bool


@dataclass(frozen=True)
class Footer:
    """What a file says of itself: its columns, its number of rows, its chunks, each column's bytes in memory and type.

    Types are the format's own kinds of storage; a column of several values per row has none.
    """

    names: tuple[str, ...]
    n_rows: int
    chunks: tuple[Chunk, ...]
    sizes: dict[str, int]
    types: dict[str, int]


def read_footer(path: Path) -> Footer:
    """Read the end of a file; `BadParquet` where it is none of a Parquet file."""
    with path.open("rb") as file:
        length = file.seek(0, 2)
        if length < 12:
            raise BadParquet("too short")
        file.seek(length - 8)
        size, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or size > length - 12:
            raise BadParquet("no footer")
        file.seek(length - 8 - size)
        content = file.read(size)
    try:
        meta = Compact(content).structure()
        tops, leaves = _columns(meta[SCHEMA])
        sizes = dict.fromkeys(tops, 0)
        chunks = []
        for group in meta.get(ROW_GROUPS, ()):
            for chunk in group[CHUNKS]:
                about = chunk[CHUNK_META]
                leaf = leaves[tuple(about[PATH])]
                _refuse_odd_values(about[VALUES], group[GROUP_ROWS], leaf)
                chunks.append(_chunk(about, leaf.top, length - 8 - size))
                sizes[leaf.top] += max(chunks[-1].unpacked, leaf.width * about[VALUES])
        # Some writers give the file another number of rows than its groups.
        n_rows = max(meta[ROWS], sum(group[GROUP_ROWS] for group in meta.get(ROW_GROUPS, ())))
        types = {leaf.top: leaf.type for leaf in leaves.values() if leaf.one_per_row}
        return Footer(tops, n_rows, tuple(chunks), sizes, types)
    except (BadThrift, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = str(error) if isinstance(error, BadParquet | BadThrift) else type(error).__name__
        raise BadParquet(f"the footer is damaged: {reason}") from None


@dataclass(frozen=True)
class _Leaf:
    """A column of values: the table's column it belongs to, its bytes per value, and whether it has one per row."""

    top: str
    width: int
    one_per_row: bool
    type: int


def _columns(schema: list[dict[int, Any]]) -> tuple[tuple[str, ...], dict[tuple[bytes, ...], _Leaf]]:
    """The table's columns, and the columns of values by their paths; the first element is the table itself."""
    tops: list[str] = []
    leaves = {}
    open_nodes: list[tuple[int, tuple[bytes, ...], bool]] = [(schema[0].get(CHILDREN, 0), (), True)]
    for element in schema[1:]:
        while open_nodes and open_nodes[-1][0] == 0:
            open_nodes.pop()
        left, above, one_per_row = open_nodes.pop()
        open_nodes.append((left - 1, above, one_per_row))
        path = (*above, element[NAME])
        if not above:
            tops.append(path[0].decode())
        one_per_row = one_per_row and element.get(REPETITION) != REPEATED
        if TYPE not in element:
            open_nodes.append((element[CHILDREN], path, one_per_row))
            continue
        width = element[TYPE_LENGTH] if element[TYPE] == FIXED_LENGTH else 0
        leaves[path] = _Leaf(tops[-1], width, one_per_row, element[TYPE])
    if any(left for left, _, _ in open_nodes):
        raise BadParquet("columns are missing")
    return tuple(tops), leaves


def _refuse_odd_values(n_values: int, n_rows: int, leaf: _Leaf) -> None:
    if n_rows < 0 or n_values < 0 or leaf.width < 0 or (leaf.one_per_row and n_values != n_rows):
        raise BadParquet(f"{n_values} values in {n_rows} rows")


def _chunk(about: dict[int, Any], column: str, end: int) -> Chunk:
    """A chunk whose bytes are in the file, before the footer; one without values may be anywhere."""
    if not about[VALUES]:
        return Chunk(column, 0, 0, 0, 0, False)
    start = about[DATA_AT]
    if about.get(DICTIONARY_AT, 0) > 0:
        start = min(start, about[DICTIONARY_AT])
    stop = start + about[PACKED]
    if not len(MAGIC) <= start <= stop <= end or about[UNPACKED] < 0:
        raise BadParquet("a column's place is outside the file")
    return Chunk(column, about[VALUES], start, stop, about[UNPACKED], about[CODEC] != 0)


def stored(footer: Footer, column: str) -> str:
    """Say what a column holds by its kind of storage, as far as ids of one kind differ from those of another."""
    return STORED.get(footer.types.get(column, -1), "text or other values")
