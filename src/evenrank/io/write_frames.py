"""Tables written part by part: a file appears whole, after its last part, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from evenrank.checks import choose
from evenrank.errors import ConfigError
from evenrank.io.files import check_output, mode_of

SUFFIXES = (".csv", ".jsonl", ".parquet")


def write_frames(path: str | os.PathLike[str], frames: Iterable[pl.DataFrame]) -> int:
    """Write tables of the same columns one after the other, as CSV, JSON lines or Parquet.

    Parameters
    ----------
    path : path
        The file; its suffix decides the format. A pipe is written to as the parts come.
    frames : iterable of polars.DataFrame
        The parts, made while they are written; one at least.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    ConfigError
        The file cannot be written, as on a full disk. What was there before stays.
    """
    suffix = choose(Path(path).suffix, SUFFIXES, what="the suffix of the output")
    counted = _Counted(frames)
    target = check_output(path)
    stream = target.exists() and not target.is_file()
    temporary = None
    try:
        if stream:
            with target.open("wb") as file:
                _write(file, suffix, counted)
            return counted.rows
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(13, "permission denied")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}-", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            _write(file, suffix, counted)
        os.chmod(temporary, mode_of(target))
        os.replace(temporary, target)
        temporary = None
        return counted.rows
    except BrokenPipeError:
        raise
    except (OSError, pl.exceptions.ComputeError) as error:
        if counted.failed is not None:
            raise counted.failed from None
        reason = getattr(error, "strerror", None) or str(error).rpartition("error: ")[2] or str(error)
        raise ConfigError(f"{path}: cannot be written ({reason}). Choose another output.") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


class _Counted:
    """The parts, their rows counted; it knows whether making them has failed, rather than writing them."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        self._frames, self.rows = frames, 0
        self.failed: BaseException | None = None

    def __iter__(self) -> Iterator[pl.DataFrame]:
        try:
            for frame in self._frames:
                self.rows += frame.height
                yield frame
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failed = error
            raise


def _write(file: BinaryIO, suffix: str, frames: Iterable[pl.DataFrame]) -> None:
    parts = iter(frames)
    first = next(parts)
    if suffix == ".parquet":
        _write_parquet(file, first, parts)
        return
    for number, frame in enumerate(chain([first], parts)):
        if suffix == ".csv":
            frame.write_csv(file, include_header=number == 0)
        else:
            frame.write_ndjson(file)
    file.flush()


def _write_parquet(file: BinaryIO, first: pl.DataFrame, rest: Iterator[pl.DataFrame]) -> None:
    from polars.io.plugins import register_io_source

    def source(columns: Any, predicate: Any, n_rows: Any, batch_size: Any) -> Iterator[pl.DataFrame]:
        for frame in chain([first], rest):
            yield frame if frame.schema == first.schema else frame.cast(first.schema)

    register_io_source(source, schema=first.schema).sink_parquet(file, engine="streaming")
