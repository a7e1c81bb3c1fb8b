"""The end of a Parquet file: its columns, rows and sizes, read without trust in any number of it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"PAR1"
DEEPEST = 16
# Numbers of the fields that are used, as the format's definition gives them.
SCHEMA, ROWS, ROW_GROUPS = 2, 3, 4
NAME, CHILDREN = 4, 5
CHUNKS, CHUNK_META, CHUNK_PATH, CHUNK_SIZE = 1, 3, 3, 6


class BadFooter(ValueError):
    """The end of the file is not that of a Parquet file."""


@dataclass(frozen=True)
class Footer:
    """What a file says of itself: its columns, its number of rows, and the bytes of each column when unpacked."""

    names: tuple[str, ...]
    n_rows: int
    sizes: dict[str, int]


def read_footer(path: Path) -> Footer:
    """Read the end of a file; `BadFooter` where it is none of a Parquet file."""
    with path.open("rb") as file:
        length = file.seek(0, 2)
        if length < 12:
            raise BadFooter("too short")
        file.seek(length - 8)
        size, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or size > length - 12:
            raise BadFooter("no footer")
        file.seek(length - 8 - size)
        content = file.read(size)
    try:
        meta = _Compact(content).structure(0)
        names = _top_names(meta[SCHEMA])
        sizes = dict.fromkeys(names, 0)
        for group in meta.get(ROW_GROUPS, ()):
            for chunk in group.get(CHUNKS, ()):
                about = chunk[CHUNK_META]
                sizes[about[CHUNK_PATH][0].decode()] += max(0, about[CHUNK_SIZE])
        return Footer(names, int(meta[ROWS]), sizes)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadFooter(f"the footer is damaged: {type(error).__name__}") from None


def _top_names(schema: list[dict[int, Any]]) -> tuple[str, ...]:
    """The columns: the first element is the table, and each column's own parts follow it."""
    names, at = [], 1
    for _ in range(int(schema[0].get(CHILDREN, 0))):
        names.append(schema[at][NAME].decode())
        left = 1
        while left:
            left += int(schema[at].get(CHILDREN, 0)) - 1
            at += 1
    return tuple(names)


class _Compact:
    """Thrift's compact protocol, as far as footers use it: a structure is its fields by number."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def whole(self) -> int:
        """A number of any length, seven bits per byte."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise BadFooter("a number is too long")

    def signed(self) -> int:
        value = self.whole()
        return value >> 1 ^ -(value & 1)

    def text(self) -> bytes:
        size = self.whole()
        if size > len(self.content) - self.at:
            raise BadFooter("a text is too long")
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self) -> bytes:
        self.at += 8
        return self.content[self.at - 8 : self.at]

    def value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise BadFooter("too deep")
        if kind in (9, 10):
            return self.items(depth)
        if kind == 12:
            return self.structure(depth)
        plain: dict[int, Callable[[], Any]] = {
            3: self.byte,
            4: self.signed,
            5: self.signed,
            6: self.signed,
            7: self.number,
            8: self.text,
        }
        return plain[kind]()

    def items(self, depth: int) -> list[Any]:
        head = self.byte()
        size, kind = head >> 4, head & 15
        size = self.whole() if size == 15 else size
        if size > len(self.content) - self.at:  # an item takes a byte at least
            raise BadFooter("a list is too long")
        if kind in (1, 2):
            return [self.byte() == 1 for _ in range(size)]
        return [self.value(kind, depth + 1) for _ in range(size)]

    def structure(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            step, kind = head >> 4, head & 15
            number = number + step if step else self.signed()
            fields[number] = kind == 1 if kind in (1, 2) else self.value(kind, depth + 1)
