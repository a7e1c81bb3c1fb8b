"""Vectors of texts in a file, computed block by block, so that a run that was stopped continues where it was.

A cache is a folder: ``embeddings.f16`` has the vectors (rows × width, little-endian float16), ``meta.json`` what they
are of, and ``progress.txt`` one line per finished block, written only after the block itself is safely on disk. A line
has the block's checksum, which begins with that of ``meta.json``: a block of other texts or another encoder does not
fit. Every block is checked before its vectors are used; one that is damaged is computed again, and never served.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.features.encoder import Encoder
from evenrank.features.record import DTYPE, META, Line, Meta, lines_of, read_meta, whole_blocks
from evenrank.io.files import write_whole

VECTORS, PROGRESS, LOCK = "embeddings.f16", "progress.txt", "lock"


class Pairs(Protocol):
    """(query, passage) texts by row number; ``between`` gives those of rows ``start`` to ``stop`` - 1."""

    def __len__(self) -> int: ...

    def between(self, start: int, stop: int) -> tuple[list[str], list[str]]: ...


@dataclass(frozen=True)
class Status:
    """How far a cache is.

    Attributes
    ----------
    done, rows : int
        Rows computed, and rows in all.
    rows_per_second : float
        The speed while computing.
    """

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
    """Compute what the cache still lacks and open it.

    A stop at any moment, also by ``kill -9`` or a power cut, loses at most the block under way; the next call with the
    same encoder continues after the last finished block, and the content is the same as without the stop.

    Parameters
    ----------
    folder : Path
        The cache.
    pairs : Pairs
        The texts.
    encoder : Encoder
        What computes their vectors.
    meta : Meta
        What the cache shall hold.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    ndarray
        (rows, width) float16, memory-mapped and read-only.
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
    """Open the vectors of a finished cache, memory-mapped.

    Parameters
    ----------
    folder : Path
        The cache's folder.
    meta : Meta
        What it is of; `is_finished` checks that it is.

    Returns
    -------
    ndarray
        (rows, width).
    """
    return np.memmap(folder / VECTORS, DTYPE, "r", shape=(meta.rows, meta.width))


def is_finished(folder: Path, meta: Meta) -> bool:
    """Check whether a folder holds all the vectors, undamaged; reads them all once.

    Parameters
    ----------
    folder : Path
        The cache's folder.
    meta : Meta
        What it should be of.
    """
    known = read_meta(folder)
    if known is None or not known.same(meta):
        return False
    try:
        if (folder / VECTORS).stat().st_size != meta.size:
            return False
        lines = lines_of((folder / PROGRESS).read_bytes(), known)
        with (folder / VECTORS).open("rb") as vectors:
            return len(whole_blocks(lines, vectors, known)) == meta.blocks
    except OSError:
        return False


def status(folder: str | os.PathLike[str]) -> Status:
    """Tell how far the cache in a folder is and how fast it is computed; safe while another process computes it.

    Parameters
    ----------
    folder : path-like
        The cache.

    Returns
    -------
    Status
        Rows done, rows in all and the speed.

    Raises
    ------
    DataError
        If the folder holds no cache.
    """
    meta = read_meta(Path(folder))
    if meta is None:
        raise DataError(f"{folder}: holds no embeddings ({META} is absent or damaged).")
    try:
        lines = (Path(folder) / PROGRESS).read_bytes()
    except OSError:
        lines = b""
    finished = {line.block: line for line in lines_of(lines, meta)}
    done = sum(stop - start for start, stop in map(meta.between, finished))
    seconds = sum(line.seconds for line in finished.values())
    return Status(done, meta.rows, done / seconds if seconds else 0.0)


# ---------------------------------------------------------------------- continuing


def _resume(folder: Path, vectors: IO[bytes], meta: Meta) -> dict[int, Line]:
    """The blocks that need not be computed; the record is left with their lines only."""
    _open(folder / PROGRESS).close()
    record = (folder / PROGRESS).read_bytes()
    whole = whole_blocks(lines_of(record, meta), vectors, meta)
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
    encoded = np.asarray(encoder.encode(*pairs.between(start, stop)))
    if encoded.shape != (stop - start, meta.width):
        raise DataError(
            f"the encoder must give {meta.width} numbers per pair for {stop - start} pairs; got shape {encoded.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        data = np.ascontiguousarray(encoded, DTYPE)
    if not np.isfinite(data).all():
        row, column = np.argwhere(~np.isfinite(data))[0].tolist()
        value = encoded[row, column]
        raise DataError(f"row {start + row}: the encoder must give finite numbers within ±65504; got {value}.")
    vectors.seek(start * meta.width * DTYPE.itemsize)
    vectors.write(data.tobytes())
    _to_disk(vectors)
    record.write(bytes(Line(block, zlib.crc32(data.tobytes(), meta.checksum), time.perf_counter() - began)))
    _to_disk(record)


# ---------------------------------------------------------------------- the folder


def _claim(folder: Path, meta: Meta) -> Meta:
    """What the cache is of, written if it is new; vectors of anything else are never overwritten."""
    known = read_meta(folder)
    if known is not None and known.same(meta):
        return known
    started = (folder / PROGRESS).exists() and (folder / PROGRESS).stat().st_size > 0
    if started and _proves(folder, meta):
        warnings.warn(f"{folder / META}: is damaged and written again", DataWarning, stacklevel=3)
    elif started or known is not None:
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
            return bool(whole_blocks(lines_of((folder / PROGRESS).read_bytes(), meta), vectors, meta))
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
