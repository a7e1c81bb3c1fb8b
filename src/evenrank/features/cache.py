"""Vectors of texts in a file, computed block by block, so that a run that was stopped anywhere goes on where it was.

A cache is a folder: ``embeddings.f16`` has the vectors (rows × width, little-endian float16), ``meta.json`` what they
are of, and ``progress.txt`` a line for each finished block, written only after the block itself is safely on disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.features.encoder import Encoder
from evenrank.io.files import write_whole

FORMAT = 1
BLOCK = 1024  # pairs: work that a sudden stop can lose, and the window within which pairs are sorted by length
DTYPE = np.dtype("<f2")
VECTORS, META, PROGRESS, LOCK = "embeddings.f16", "meta.json", "progress.txt", "lock"


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
        _claim(folder, meta)
        with _open(folder / PROGRESS) as record, _open(folder / VECTORS) as vectors:
            _reserve(vectors, meta, folder)
            done = _resume(record, vectors, meta)
            began = time.perf_counter()
            for block in range(done, _blocks(meta)):
                if progress is not None:
                    progress(block * meta.block / meta.rows)
                _compute(block, pairs, encoder, meta, record, vectors)
                rate = (_rows(block, meta)[1] - done * meta.block) / (time.perf_counter() - began)
                getattr(progress, "note", lambda _: None)(f"{rate:.0f} pairs/s")
    if progress is not None:
        progress(1.0)
    return open_cache(folder, meta)


def open_cache(folder: Path, meta: Meta) -> NDArray[Any]:
    """The vectors of a finished cache, memory-mapped."""
    return np.memmap(folder / VECTORS, DTYPE, "r", shape=(meta.rows, meta.width))


def is_finished(folder: Path, meta: Meta) -> bool:
    """Whether the folder holds all the vectors that ``meta`` describes."""
    try:
        same = json.loads((folder / META).read_bytes()) == asdict(meta)
        size = (folder / VECTORS).stat().st_size
        lines = (folder / PROGRESS).read_bytes()
    except (OSError, ValueError):
        return False
    return same and size == meta.rows * meta.width * DTYPE.itemsize and len(_finished(lines, meta)) == _blocks(meta)


def read_meta(folder: Path) -> Meta | None:
    """What the folder's cache is of, or None if it has none that can be read."""
    try:
        return Meta(**json.loads((folder / META).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def status(folder: str | os.PathLike[str]) -> Status:
    """How far the cache in ``folder`` is and how fast it is being computed; safe to call while another process does."""
    meta = read_meta(Path(folder))
    if meta is None:
        raise DataError(f"{folder}: holds no embeddings ({META} is absent or damaged).")
    try:
        lines = (Path(folder) / PROGRESS).read_bytes()
    except OSError:
        lines = b""
    finished = _finished(lines, meta)
    done = min(len(finished) * meta.block, meta.rows)
    seconds = sum(line.seconds for line in finished)
    return Status(done, meta.rows, done / seconds if seconds else 0.0)


# ---------------------------------------------------------------------- the record of finished blocks


@dataclass(frozen=True)
class _Line:
    block: int
    checksum: int
    seconds: float
    end: int  # bytes of the record up to and with this line

    def __bytes__(self) -> bytes:
        return f"{self.block} {self.checksum:08x} {self.seconds:.3f}\n".encode()


def _finished(data: bytes, meta: Meta) -> list[_Line]:
    """The whole lines in order from block 0; what follows the first that is not is left out."""
    found: list[_Line] = []
    end = 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        try:
            block, checksum, seconds = line.split()
            read = _Line(int(block), int(checksum, 16), float(seconds), end)
        except ValueError:
            break
        if not line.endswith(b"\n") or read.block != len(found) or read.block >= _blocks(meta):
            break
        found.append(read)
    return found


def _resume(record: IO[bytes], vectors: IO[bytes], meta: Meta) -> int:
    """Blocks that need not be computed; the record is cut after the last of them."""
    finished = _finished(record.read(), meta)
    while finished and finished[-1].checksum != _stored_checksum(vectors, finished[-1].block, meta):
        finished.pop()
    record.truncate(finished[-1].end if finished else 0)
    record.seek(0, os.SEEK_END)
    return len(finished)


def _stored_checksum(vectors: IO[bytes], block: int, meta: Meta) -> int:
    start, stop = _rows(block, meta)
    line = meta.width * DTYPE.itemsize
    vectors.seek(start * line)
    return zlib.crc32(vectors.read((stop - start) * line))


# ---------------------------------------------------------------------- computing


def _compute(block: int, pairs: Pairs, encoder: Encoder, meta: Meta, record: IO[bytes], vectors: IO[bytes]) -> None:
    start, stop = _rows(block, meta)
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
    record.write(bytes(_Line(block, zlib.crc32(data.tobytes()), time.perf_counter() - began, 0)))
    _to_disk(record)


def _blocks(meta: Meta) -> int:
    return -(-meta.rows // meta.block)


def _rows(block: int, meta: Meta) -> tuple[int, int]:
    return block * meta.block, min((block + 1) * meta.block, meta.rows)


# ---------------------------------------------------------------------- the folder


def _claim(folder: Path, meta: Meta) -> None:
    """Write what the cache is of, or check that it is the same; vectors of anything else are never overwritten."""
    found = read_meta(folder)
    started = (folder / PROGRESS).exists() and (folder / PROGRESS).stat().st_size > 0
    if found is None and not started:
        write_whole(folder / META, json.dumps(asdict(meta), indent=1) + "\n")
    elif found != meta:
        raise ConfigError(f"{folder}: holds other embeddings than these. Choose another cache folder, or delete it.")


def _reserve(vectors: IO[bytes], meta: Meta, folder: Path) -> None:
    """Take the disk space at once, so that a full disk stops the work before it starts."""
    size = meta.rows * meta.width * DTYPE.itemsize
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
