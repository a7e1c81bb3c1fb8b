"""Vectors of texts in a file, computed block by block, so that a run that was stopped anywhere goes on where it was.

A cache is a folder: ``embeddings.f16`` has the vectors (rows × width, little-endian float16), ``meta.json`` what they
are of, and ``progress.txt`` one line per finished block, written only after the block itself is safely on disk. A line
has the block's checksum, which begins with that of ``meta.json``: a block of other texts or another encoder does not
fit. Every block is checked before its vectors are used; one that is damaged is computed again, and never served.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.features.encoder import Encoder
from evenrank.io.files import write_whole

FORMAT = 2
UNBOUND = 1  # the format whose checksums are those of the vectors alone
LARGEST = 2**53  # rows, width and block size are below
BLOCK = 1024  # pairs: work that a sudden stop can lose, and the window within which pairs are sorted by length
DTYPE = np.dtype("<f2")
VECTORS, META, PROGRESS, LOCK = "embeddings.f16", "meta.json", "progress.txt", "lock"
LINE = re.compile(rb"([0-9]{1,15}) ([0-9a-f]{8}) ([0-9]{1,12}\.[0-9]{3})\n")


class Pairs(Protocol):
    """(query, passage) texts by row number."""

    def __len__(self) -> int: ...

    def between(self, start: int, stop: int) -> tuple[list[str], list[str]]: ...


@dataclass(frozen=True)
class Meta:
    """What a cache holds: vectors are used again only if all of this is the same."""

    encoder: str
    data: str
    rows: int
    width: int
    block: int = BLOCK
    format: int = FORMAT

    @property
    def blocks(self) -> int:
        return -(-self.rows // self.block)

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return self.rows * self.width * DTYPE.itemsize

    @property
    def checksum(self) -> int:
        """What the blocks' checksums begin with."""
        return 0 if self.format == UNBOUND else zlib.crc32(json.dumps(asdict(self), sort_keys=True).encode())

    def same(self, other: Meta) -> bool:
        """Whether both are of the same vectors, in whichever format."""
        return replace(self, format=FORMAT) == replace(other, format=FORMAT)

    def between(self, block: int) -> tuple[int, int]:
        """The block's rows, from and to."""
        return block * self.block, min((block + 1) * self.block, self.rows)


@dataclass(frozen=True)
class Status:
    """How far a cache is: rows done, rows in all, and rows a second while computing."""

    done: int
    rows: int
    rows_per_second: float


def fill_cache(
    folder: Path,
    pairs: Pairs,
    encoder: Encoder,
    meta: Meta,
    *,
    progress: Callable[[float], None] | None = None,
) -> NDArray[Any]:
    """Compute what the cache still lacks and open it: (rows, width), float16, memory-mapped and read-only.

    A stop at any moment, also by ``kill -9`` or a power cut, loses at most the block under way; the next call with the
    same encoder goes on after the last finished block, and the content is the same as without the stop.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        meta = _claim(folder, meta)
        with _open(folder / VECTORS) as vectors:
            _reserve(vectors, meta, folder)
            finished = _resume(folder, vectors, meta)
            done = sum(stop - start for start, stop in map(meta.between, finished))
            began, before = time.perf_counter(), done
            with _open(folder / PROGRESS) as record:
                record.seek(0, os.SEEK_END)
                for block in range(meta.blocks):
                    if block in finished:
                        continue
                    if progress is not None:
                        progress(done / meta.rows)
                    _compute(block, pairs, encoder, meta, record, vectors)
                    start, stop = meta.between(block)
                    done += stop - start
                    rate = (done - before) / (time.perf_counter() - began)
                    getattr(progress, "note", lambda _: None)(f"{rate:.0f} pairs/s")
    if progress is not None:
        progress(1.0)
    return open_cache(folder, meta)


def open_cache(folder: Path, meta: Meta) -> NDArray[Any]:
    """The vectors of a finished cache, memory-mapped; `is_finished` checks them."""
    return np.memmap(folder / VECTORS, DTYPE, "r", shape=(meta.rows, meta.width))


def is_finished(folder: Path, meta: Meta) -> bool:
    """Whether the folder holds all the vectors that ``meta`` describes, undamaged: it reads them all once."""
    found = read_meta(folder)
    if found is None or not found.same(meta):
        return False
    try:
        if (folder / VECTORS).stat().st_size != meta.size:
            return False
        lines = _lines((folder / PROGRESS).read_bytes(), found)
        with (folder / VECTORS).open("rb") as vectors:
            return len(_whole_blocks(lines, vectors, found)) == meta.blocks
    except OSError:
        return False


def read_meta(folder: Path) -> Meta | None:
    """What the folder's cache is of, or None if it has none that can be read."""
    try:
        meta = Meta(**json.loads((folder / META).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    sizes = (meta.rows, meta.width, meta.block, meta.format)
    sound = all(type(size) is int and 0 < size < LARGEST for size in sizes) and meta.format <= FORMAT
    return meta if sound else None


def status(folder: str | os.PathLike[str]) -> Status:
    """How far the cache in ``folder`` is and how fast it is being computed; safe to call while another process does."""
    meta = read_meta(Path(folder))
    if meta is None:
        raise DataError(f"{folder}: holds no embeddings ({META} is absent or damaged).")
    try:
        lines = (Path(folder) / PROGRESS).read_bytes()
    except OSError:
        lines = b""
    finished = {line.block: line for line in _lines(lines, meta)}
    done = sum(stop - start for start, stop in map(meta.between, finished))
    seconds = sum(line.seconds for line in finished.values())
    return Status(done, meta.rows, done / seconds if seconds else 0.0)


# ---------------------------------------------------------------------- the record of finished blocks


@dataclass(frozen=True)
class _Line:
    block: int
    checksum: int
    seconds: float

    def __bytes__(self) -> bytes:
        return f"{self.block} {self.checksum:08x} {self.seconds:.3f}\n".encode()


def _lines(record: bytes, meta: Meta) -> list[_Line]:
    """The lines of a record; those that are not whole are left out."""
    matches = (LINE.fullmatch(line) for line in record.splitlines(keepends=True))
    lines = [_Line(int(match[1]), int(match[2], 16), float(match[3])) for match in matches if match]
    return [line for line in lines if line.block < meta.blocks]


def _whole_blocks(lines: list[_Line], vectors: IO[bytes], meta: Meta) -> dict[int, _Line]:
    """The blocks whose vectors have the checksum that a line says, with that line."""
    whole: dict[int, _Line] = {}
    width = meta.width * DTYPE.itemsize
    for line in lines:
        start, stop = meta.between(line.block)
        vectors.seek(start * width)
        if line.checksum == zlib.crc32(vectors.read((stop - start) * width), meta.checksum):
            whole[line.block] = line
    return whole


def _resume(folder: Path, vectors: IO[bytes], meta: Meta) -> dict[int, _Line]:
    """The blocks that need not be computed; the record is left with their lines only."""
    _open(folder / PROGRESS).close()
    record = (folder / PROGRESS).read_bytes()
    whole = _whole_blocks(_lines(record, meta), vectors, meta)
    kept = b"".join(bytes(line) for line in whole.values())
    if kept != record:
        finished = {line for line in record.splitlines(keepends=True) if line.endswith(b"\n")}
        damaged = len(finished) - len(whole)
        if damaged:
            warnings.warn(
                f"{folder}: {damaged} of {len(finished)} finished blocks are damaged and computed again",
                DataWarning,
                stacklevel=3,
            )
        write_whole(folder / PROGRESS, kept)
    return whole


# ---------------------------------------------------------------------- computing


def _compute(block: int, pairs: Pairs, encoder: Encoder, meta: Meta, record: IO[bytes], vectors: IO[bytes]) -> None:
    start, stop = meta.between(block)
    began = time.perf_counter()
    found = np.asarray(encoder.encode(*pairs.between(start, stop)))
    if found.shape != (stop - start, meta.width):
        raise DataError(
            f"the encoder must give {meta.width} numbers for each of {stop - start} pairs; got shape {found.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        data = np.ascontiguousarray(found, DTYPE)
    if not np.isfinite(data).all():
        row, column = np.argwhere(~np.isfinite(data))[0].tolist()
        value = found[row, column]
        raise DataError(f"row {start + row}: the encoder must give finite numbers within ±65504; got {value}.")
    vectors.seek(start * meta.width * DTYPE.itemsize)
    vectors.write(data.tobytes())
    _to_disk(vectors)
    record.write(bytes(_Line(block, zlib.crc32(data.tobytes(), meta.checksum), time.perf_counter() - began)))
    _to_disk(record)


# ---------------------------------------------------------------------- the folder


def _claim(folder: Path, meta: Meta) -> Meta:
    """What the cache is of, written if it is new; vectors of anything else are never overwritten."""
    found = read_meta(folder)
    if found is not None and found.same(meta):
        return found
    started = (folder / PROGRESS).exists() and (folder / PROGRESS).stat().st_size > 0
    if started and _proves(folder, meta):
        warnings.warn(f"{folder / META}: is damaged and written again", DataWarning, stacklevel=3)
    elif started or found is not None:
        raise ConfigError(
            f"{folder}: holds other embeddings than these, or its {META} is damaged. Choose another cache folder, or "
            "delete it."
        )
    write_whole(folder / META, json.dumps(asdict(meta), indent=1) + "\n")
    return meta


def _proves(folder: Path, meta: Meta) -> bool:
    """Whether a finished block fits ``meta``, whatever meta.json says."""
    try:
        with (folder / VECTORS).open("rb") as vectors:
            return bool(_whole_blocks(_lines((folder / PROGRESS).read_bytes(), meta), vectors, meta))
    except OSError:
        return False


def _reserve(vectors: IO[bytes], meta: Meta, folder: Path) -> None:
    """Take the disk space at once, so that a full disk stops the work before it starts."""
    size = meta.size
    try:
        if os.fstat(vectors.fileno()).st_size != size:
            vectors.truncate(size)
            with contextlib.suppress(AttributeError):  # not on every system
                os.posix_fallocate(vectors.fileno(), 0, size)
    except OSError as error:
        vectors.truncate(0)
        raise ConfigError(
            f"{folder}: the embeddings need {size / 1e9:.1f} GB ({error.strerror}). Choose another cache folder."
        ) from None


def _open(path: Path) -> IO[bytes]:
    path.touch()
    return path.open("r+b")


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second process from writing the same cache; the system lets go when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with (folder / LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"{folder}: another process is computing these embeddings. Wait for it, or choose another cache folder."
            ) from None
        yield
