"""What a cache of vectors is of (`Meta`), and the record of its finished blocks, each with a checksum."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

FORMAT = 2
UNBOUND = 1  # the format whose checksums are those of the vectors alone
LARGEST = 2**53  # rows, width and block size are below
BLOCK = 1024  # pairs: work that a sudden stop can lose, and the window within which pairs are sorted by length
DTYPE = np.dtype("<f2")
META = "meta.json"
LINE = re.compile(rb"([0-9]{1,15}) ([0-9a-f]{8}) ([0-9]{1,12}\.[0-9]{3})\n")


@dataclass(frozen=True)
class Meta:
    """What a cache holds: vectors are used again only if all of this is the same.

    Attributes
    ----------
    encoder, data : str
        The fingerprints of the encoder and of the data.
    rows, width : int
        The shape of the vectors.
    block : int
        Rows per block.
    format : int
        The version of the cache's format.
    """

    encoder: str
    data: str
    rows: int
    width: int
    block: int = BLOCK
    format: int = FORMAT

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.rows // self.block)

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return self.rows * self.width * DTYPE.itemsize

    @property
    def checksum(self) -> int:
        """The value that the blocks' checksums begin with."""
        return 0 if self.format == UNBOUND else zlib.crc32(json.dumps(asdict(self), sort_keys=True).encode())

    def same(self, other: Meta) -> bool:
        """Check whether both describe the same vectors, in whichever format."""
        return replace(self, format=FORMAT) == replace(other, format=FORMAT)

    def between(self, block: int) -> tuple[int, int]:
        """Give the first row of a block and the one after its last."""
        return block * self.block, min((block + 1) * self.block, self.rows)


def read_meta(folder: Path) -> Meta | None:
    """Read what the cache in a folder is of.

    Parameters
    ----------
    folder : Path
        The cache's folder.

    Returns
    -------
    Meta or None
        None if there is none that can be read.
    """
    try:
        meta = Meta(**json.loads((folder / META).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    sizes = (meta.rows, meta.width, meta.block, meta.format)
    sound = all(type(size) is int and 0 < size < LARGEST for size in sizes) and meta.format <= FORMAT
    return meta if sound else None


@dataclass(frozen=True)
class Line:
    """A finished block: its number, the checksum of its vectors, and the seconds it took."""

    block: int
    checksum: int
    seconds: float

    def __bytes__(self) -> bytes:
        return f"{self.block} {self.checksum:08x} {self.seconds:.3f}\n".encode()


def lines_of(record: bytes, meta: Meta) -> list[Line]:
    """Read the lines of a record; those that are not whole, or are of no block, are left out.

    Parameters
    ----------
    record : bytes
        The content of the progress file.
    meta : Meta
        What the cache is of.
    """
    matches = (LINE.fullmatch(line) for line in record.splitlines(keepends=True))
    lines = [Line(int(match[1]), int(match[2], 16), float(match[3])) for match in matches if match]
    return [line for line in lines if line.block < meta.blocks]


def whole_blocks(lines: list[Line], vectors: IO[bytes], meta: Meta) -> dict[int, Line]:
    """Find the blocks whose vectors have the checksum that a line gives.

    Parameters
    ----------
    lines : list of Line
        The record.
    vectors : file
        Open for reading bytes.
    meta : Meta
        What the cache is of.

    Returns
    -------
    dict
        Number of the block → its line.
    """
    whole: dict[int, Line] = {}
    width = meta.width * DTYPE.itemsize
    for line in lines:
        start, stop = meta.between(line.block)
        vectors.seek(start * width)
        if line.checksum == zlib.crc32(vectors.read((stop - start) * width), meta.checksum):
            whole[line.block] = line
    return whole
