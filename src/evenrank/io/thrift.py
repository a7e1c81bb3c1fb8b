"""Thrift's compact protocol, as far as Parquet files use it, read without trust in any number of it."""

from __future__ import annotations

from typing import Any

DEEPEST = 16
TRUE, FALSE, BYTE, DOUBLE, TEXT, LIST, SET, STRUCTURE = 1, 2, 3, 7, 8, 9, 10, 12
WHOLE = (4, 5, 6)


class BadThrift(ValueError):
    """The bytes are no structure of the protocol."""


class Compact:
    """Bytes and a place in them; a structure is its fields by number."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Read the structure that begins here."""
        if depth > DEEPEST:
            raise BadThrift("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)

    def _byte(self) -> int:
        if self.at >= len(self.content):
            raise BadThrift("cut short")
        self.at += 1
        return self.content[self.at - 1]

    def _whole(self) -> int:
        """A number of any length, seven bits per byte."""
        value = self._byte()
        if value < 128:
            return value
        value, shift = value & 127, 7
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise BadThrift("a number is too long")

    def _signed(self) -> int:
        value = self._whole()
        return value >> 1 ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        if size > len(self.content) - self.at:
            raise BadThrift("cut short")
        self.at += size
        return self.content[self.at - size : self.at]

    def _value(self, kind: int, depth: int) -> Any:
        if kind in WHOLE:
            return self._signed()
        if kind == TEXT:
            return self._bytes(self._whole())
        if kind == STRUCTURE:
            return self.structure(depth + 1)
        if kind in (LIST, SET):
            return self._items(depth + 1)
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise BadThrift(f"type {kind}")

    def _items(self, depth: int) -> list[Any]:
        if depth > DEEPEST:
            raise BadThrift("too deep")
        head = self._byte()
        size, kind = head >> 4, head & 15
        size = self._whole() if size == 15 else size
        if size > len(self.content) - self.at:  # an item takes a byte at least
            raise BadThrift("a list is too long")
        if kind in (TRUE, FALSE):
            return [self._byte() == 1 for _ in range(size)]
        return [self._value(kind, depth) for _ in range(size)]
