"""The heads of a Parquet file's pages: the library takes their sizes on trust, and asks for that much memory.

A request for memory that no machine has ends the process, so sizes that cannot be are refused before. A head is a
few dozen bytes per page (usually 1 MB), so this costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from evenrank.io.parquet_footer import BadParquet, Chunk
from evenrank.io.thrift import BadThrift, Compact

# Numbers of the fields that are used, as the format's definition gives them.
KIND, UNPACKED, PACKED = 1, 2, 3
HEADS = {0: 5, 2: 7, 3: 8}  # data pages, dictionaries and data pages of version 2
DATA, DICTIONARY, DATA_2 = HEADS
VALUES, NULLS, ROWS, LEVELS, REPETITIONS = 1, 2, 3, 5, 6
HEAD_BYTES = 256


def refuse_odd_pages(path: Path, chunks: Iterable[Chunk]) -> None:
    """Walk the pages of these chunks; `BadParquet` where a head says what cannot be."""
    with path.open("rb") as file:
        for chunk in chunks:
            try:
                _walk(file, chunk)
            except (BadThrift, LookupError, TypeError, ValueError) as error:
                reason = str(error) if isinstance(error, BadParquet | BadThrift) else type(error).__name__
                raise BadParquet(f"a page of column {chunk.column!r} is damaged: {reason}") from None


def _walk(file: BinaryIO, chunk: Chunk) -> None:
    """The pages until all values were seen, as readers do."""
    at, values_left, bytes_left = chunk.start, chunk.n_values, chunk.unpacked
    while values_left:
        head, at = _head(file, at, chunk.stop)
        unpacked, packed = head[UNPACKED], head[PACKED]
        if not 0 <= packed <= chunk.stop - at or not 0 <= unpacked <= bytes_left:
            raise BadParquet(f"{packed} bytes that unpack to {unpacked}")
        if not chunk.compressed and packed != unpacked:
            raise BadParquet(f"{packed} bytes that unpack to {unpacked} without compression")
        at += packed
        bytes_left -= unpacked
        values_left -= _n_values(head, values_left)


def _head(file: BinaryIO, at: int, stop: int) -> tuple[dict[int, Any], int]:
    """The head of the page at ``at``, and where it ends; heads with long least and largest values are long."""
    size = HEAD_BYTES
    while True:
        file.seek(at)
        reader = Compact(file.read(min(size, stop - at)))
        try:
            return reader.structure(), at + reader.at
        except BadThrift:
            if size >= stop - at:
                raise
            size *= 16


def _n_values(head: dict[int, Any], most: int) -> int:
    """The number of values of a data page, 0 of another; refused where the head's numbers do not go together."""
    if head[KIND] not in HEADS:
        return 0
    about = head[HEADS[head[KIND]]]
    n_values = about[VALUES]
    if head[KIND] == DICTIONARY:
        if not 0 <= n_values <= head[UNPACKED]:  # a value takes a byte at least
            raise BadParquet(f"{n_values} values in {head[UNPACKED]} bytes")
        return 0
    if not 0 <= n_values <= most:
        raise BadParquet(f"{n_values} values, where at most {most} are left")
    if head[KIND] == DATA_2:
        levels = (about[LEVELS], about[REPETITIONS])
        if min(levels) < 0 or sum(levels) > min(head[UNPACKED], head[PACKED]):
            raise BadParquet(f"levels of {sum(levels)} bytes")
        if not (0 <= about[NULLS] <= n_values and 0 <= about[ROWS] <= n_values):
            raise BadParquet(f"{about[NULLS]} nulls and {about[ROWS]} rows in {n_values} values")
    return int(n_values)
