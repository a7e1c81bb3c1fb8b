"""Opening and writing files with one-line errors, and text files as checked UTF-8 with line numbers."""

from __future__ import annotations

import codecs
import contextlib
import glob
import gzip
import io
import os
import sys
import tempfile
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenrank.errors import ConfigError, DataError
from evenrank.io.limits import too_large, unpacked_limit

DECODE_BYTES = 1 << 24
DEFLATE_TIMES = 1033  # gzip cannot pack more tightly
# How files that are often taken for text begin.
BINARY = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"%PDF": "a PDF",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"BZh": "a bzip2 archive",
}


def load_bytes(path: Path) -> bytes:
    """Read a file's content, decompressed if it is gzip, whatever its name."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        _refuse_bombs(content, path)
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path}: the gzip file is damaged or cut short. Copy or download it again.") from None


def _refuse_bombs(content: bytes, path: Path) -> None:
    """Unpack into nothing first, where there may be too much for the memory."""
    limit = unpacked_limit(len(content))
    if len(content) * DEFLATE_TIMES <= limit:
        return
    with gzip.open(io.BytesIO(content)) as file:
        size = 0
        while chunk := file.read(DECODE_BYTES):
            size += len(chunk)
            if size > limit:
                raise too_large(str(path), f"{len(content):,} bytes of gzip unpack to more than", limit, limit)


def unreadable(path: Path, error: OSError) -> DataError:
    """Make the DataError for a path that cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: there is no such file. Check the path.")
    if os.path.isdir(path):
        return DataError(f"{path}: is a folder; a file is needed. Name the files in it.")
    if isinstance(error, PermissionError):
        return DataError(f"{path}: may not be read (permission denied).")
    return DataError(f"{path}: cannot be read ({error.strerror or error}).")


def has_utf8_name(path: Path) -> bool:
    """Tell whether libraries that take names of files as UTF-8 can open the file."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def need_utf8_name(path: Path) -> None:
    """Raise a DataError unless libraries that take names of files as UTF-8 can open the file."""
    if not has_utf8_name(path):
        raise DataError(f"{path}: the name of a Parquet file that is read part by part must be UTF-8. Rename it.")


@dataclass(frozen=True)
class Text:
    """UTF-8 text of one or more files, one after the other, that still knows where each line came from.

    ``data`` ends with a newline unless it is empty; ``first_lines[i]`` is the number of lines before file i.
    """

    data: bytes
    paths: tuple[Path, ...]
    first_lines: tuple[int, ...]

    def place(self, line: int) -> str:
        """Write the place of a line of ``data``, counted from 1, as ``file:line``."""
        part = bisect_right(self.first_lines, line - 1) - 1
        return f"{self.paths[part]}:{line - self.first_lines[part]}"

    @property
    def name(self) -> str:
        """What an error calls the files: the first, and how many more."""
        return str(self.paths[0]) + (f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else "")


def load_text(paths: Sequence[Path]) -> Text:
    """Read text files as one, so that a file split into parts reads like the whole."""
    contents = [_checked_text(load_bytes(path), path) for path in paths]
    first_lines = [0]
    if len(contents) == 1:
        return Text(contents[0], tuple(paths), (0,))
    for content in contents[:-1]:
        first_lines.append(first_lines[-1] + content.count(b"\n"))
    return Text(b"".join(contents), tuple(paths), tuple(first_lines))


def _checked_text(content: bytes, path: Path) -> bytes:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: the file is UTF-16; UTF-8 is needed. Save it again as UTF-8.")
    for beginning, what in BINARY.items():
        if content.startswith(beginning):
            raise DataError(f"{path}: is {what}; UTF-8 text is needed. Name the format it has, or export it as text.")
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.isascii():
        _refuse_other_encodings(content, path)
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise DataError(f"{path}:{line}: text must not hold NUL bytes; found one. Save the file again as UTF-8 text.")
    if b"\r" in content and b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    return content if content.endswith(b"\n") or not content else content + b"\n"


def _refuse_other_encodings(content: bytes, path: Path) -> None:
    view = memoryview(content)
    start = 0
    while start < len(content):
        stop = min(start + DECODE_BYTES, len(content))
        try:
            _, used = codecs.utf_8_decode(view[start:stop], "strict", stop == len(content))
        except UnicodeDecodeError as error:
            position = start + error.start
            line = content.count(b"\n", 0, position) + 1
            raise DataError(
                f"{path}:{line}: text must be UTF-8; found the byte 0x{content[position]:02x}. "
                "Save the file again as UTF-8 (it may be Latin-1 or Windows-1252)."
            ) from None
        start += used


def files_like(path: Path) -> list[Path] | None:
    """Find the files that a pattern such as ``rows/*.parquet`` stands for; None if the path is no pattern."""
    if path.exists() or not glob.has_magic(str(path)):
        return None
    return sorted(file for file in map(Path, glob.glob(str(path), recursive=True)) if not file.is_dir())


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file whole or not at all: readers see the old content or the new, never a part.

    Parameters
    ----------
    path : path
        The file. Missing folders are not made; a symbolic link keeps pointing to its target, which is replaced.
    content : str or bytes
        Text is written as UTF-8.

    Raises
    ------
    ConfigError
        The path cannot be written.
    """
    # Names of files that are not UTF-8 come as lone surrogates.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    target = check_output(path)
    try:
        if target.exists() and not target.is_file():  # /dev/stdout, a pipe: nothing to replace
            _write_stream(target, data)
            return
        _replace(target, data)
    except BrokenPipeError:  # the reader of /dev/stdout has seen enough
        raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror or error}). Choose another output.") from None


def _write_stream(target: Path, data: bytes) -> None:
    """Write to a pipe or a device; to stdout as it is open, because opening a pipe waits for a reader."""
    try:
        standard = os.path.samestat(target.stat(), os.fstat(1))
    except OSError:
        standard = False
    if not standard:
        target.write_bytes(data)
        return
    sys.stdout.flush()
    with open(1, "wb", closefd=False) as stream:
        stream.write(data)


def check_output(path: str | os.PathLike[str]) -> Path:
    """Find the file that writing to ``path`` would replace or make.

    Raises
    ------
    ConfigError
        The path is a folder, or its folder does not exist; this can be known before the work.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        return Path(path)  # a pipe such as /dev/stdout, whose real path is none
    target = Path(os.path.realpath(path))
    if os.path.isdir(target):
        raise ConfigError(f"{path}: is a folder; the output must be a file. Add a file name.")
    if not os.path.isdir(target.parent):
        raise ConfigError(f"{path}: the folder {str(Path(path).parent)!r} does not exist. Create it first.")
    return target


def _replace(target: Path, data: bytes) -> None:
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "permission denied")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode_of(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def mode_of(target: Path) -> int:
    """Find the permissions an ordinary write would leave: those of the old file, or what the umask allows."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class OwnsFile:
    """A reader or writer that closes its file at the end of a ``with`` block."""

    _file: Any

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
