"""Pipes as files: what can be read only once is copied to a temporary file, because files are read twice."""

from __future__ import annotations

import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from evenrank.errors import DataError
from evenrank.io.limits import byte_limit, too_large
from evenrank.io.registry import FORMATS

STDIN = "-"
STANDARD = (STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
CHUNK_BYTES = 1 << 20
_FOLDERS = {Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd")}
_SUFFIXES = {suffix for format in FORMATS.values() for suffix in format.suffixes}
# Temporary files and what the user called them: messages may come when the files are gone.
_NAMES: dict[str, str] = {}


def spooled(path: Path, folder: Path) -> Path:
    """Copy what a pipe holds into ``folder``; a file, a folder or a path where there is nothing stays as it is."""
    named = str(path)
    if named != STDIN and (not path.exists() or path.is_dir() or (path.is_file() and path.parent not in _FOLDERS)):
        return path
    for copy, name in _NAMES.items():
        if name == named and Path(copy).is_relative_to(folder):
            return Path(copy)
    copy_folder = folder / str(len(_NAMES))
    copy_folder.mkdir()
    _copy(path, copy_folder / "part")
    standard = named in STANDARD
    known_suffixes = {suffix.lower() for suffix in path.suffixes} & _SUFFIXES
    final = copy_folder / (
        path.name if known_suffixes else f"{'stdin' if standard else 'pipe'}{_suffix(copy_folder / 'part')}"
    )
    (copy_folder / "part").rename(final)
    _NAMES[os.fspath(final)] = named
    return final


def title_of(path: Path) -> str:
    """Give the name of a file for a heading; what came through a pipe without a name is called by its stream."""
    named = _NAMES.get(os.fspath(path))
    if named is None or path.name == Path(named).name:
        return path.name
    return "standard input" if named in STANDARD else "a pipe"


def as_named(text: str) -> str:
    """Put the user's names of pipes in the place of those of their copies."""
    for copy, named in _NAMES.items():
        text = text.replace(copy, named)
    return text


def _copy(path: Path, target: Path) -> None:
    limit, size = byte_limit(), 0
    try:
        with target.open("wb") as to:
            for chunk in _chunks(path):
                size += len(chunk)
                if size > limit:
                    raise too_large(str(path), "the pipe holds at least", size, limit)
                to.write(chunk)
    except OSError as error:
        raise DataError(
            f"{path}: the pipe cannot be copied to {tempfile.gettempdir()} ({error.strerror or error}). Make room "
            "there, or set TMPDIR to a folder that has it."
        ) from None
    if not size:
        raise DataError(f"{path}: the pipe is empty. Did the command before it fail?")


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with open(0, "rb", closefd=False) if str(path) == STDIN else path.open("rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise DataError(f"{path}: the pipe cannot be read ({error.strerror or error}).") from None


def _suffix(file: Path) -> str:
    """The ending that stands for what the content looks like, or '' where that cannot be told."""
    with file.open("rb") as opened:
        head = opened.read(1 << 16)
    if head[:2] == b"\x1f\x8b":
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 1 << 16)
        except zlib.error:
            return ""
    if head.startswith(b"PAR1"):
        return ".parquet"
    lines = head.removeprefix(b"\xef\xbb\xbf").lstrip().splitlines()
    first = lines[0] if lines else b""
    if first.startswith(b"{"):
        return ".jsonl"
    if re.match(rb"\S+\s+qid:", first):
        return ".letor"
    if b"," in first or b"\t" in first:
        return ".csv" if b"," in first else ".tsv"
    return ".run" if len(first.split()) == 6 else ""
