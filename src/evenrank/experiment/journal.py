"""The journal of a run: one line per finished block, on disk before the next block begins.

A line carries the id of its run and a checksum: ``{"check": 123, "run": "…", "record": {…}}``. So a damaged line and a
line of another run are recognised. Runs of format 1 have lines without an id.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from evenrank.errors import ConfigError, DataError

SEALED = re.compile(
    rb'\{"check": (?P<check>[0-9]{1,10}), (?P<bound>"run": "(?P<run>[0-9a-f]{32})", )?"record": (?P<record>.*)\}\n',
    re.DOTALL,
)


def sealed(text: str, run: str) -> bytes:
    """Make a line that is bound to a run.

    Parameters
    ----------
    text : str
        The record's JSON.
    run : str
        The run's id.

    Returns
    -------
    bytes
        The line, with its checksum and line end.
    """
    bound = f'"run": "{run}", '
    check = zlib.crc32((bound + text).encode())
    return f'{{"check": {check}, {bound}"record": {text}}}\n'.encode()


def unsealed(line: bytes) -> tuple[str | None, Any] | None:
    """Read a line.

    Parameters
    ----------
    line : bytes
        What `sealed` made, possibly damaged since.

    Returns
    -------
    tuple or None
        The run's id (None in format 1) and the record; None if the line is damaged.
    """
    match = SEALED.fullmatch(line)
    if match is None or int(match["check"]) != zlib.crc32((match["bound"] or b"") + match["record"]):
        return None
    try:
        value = json.loads(match["record"])
    except (ValueError, RecursionError):
        return None
    return match["run"].decode() if match["run"] else None, value


@dataclass(frozen=True)
class Line:
    """A line that is not damaged.

    Attributes
    ----------
    number : int
        Its number in the file, from 1.
    run : str or None
        The run it is bound to; None in format 1.
    record : object
        What it holds.
    """

    number: int
    run: str | None
    record: Any


@dataclass(frozen=True)
class Content:
    """What a journal file holds.

    Attributes
    ----------
    lines : list of Line
        Those that are not damaged.
    damaged : list of int
        Numbers of the damaged lines.
    end : int
        Bytes up to the last line end. What follows is a line that was cut short when the process was killed.
    """

    lines: list[Line]
    damaged: list[int]
    end: int


def read_journal(path: Path) -> Content:
    """Read a journal as far as it can be read.

    Parameters
    ----------
    path : Path
        The file; a missing one is read as empty.

    Returns
    -------
    Content
        Its lines.

    Raises
    ------
    DataError
        If it is not a file or cannot be read.
    """
    lines: list[Line] = []
    damaged: list[int] = []
    end = 0
    if not path.exists():
        return Content(lines, damaged, end)
    if not path.is_file():
        raise DataError(f"{path}: must be a file; found something else.")
    try:
        with open(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    break
                end += len(raw)
                content = unsealed(raw)
                if content is None:
                    damaged.append(number)
                else:
                    lines.append(Line(number, *content))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
    return Content(lines, damaged, end)


class Journal:
    """Append records, each of them on disk before the next step.

    Attributes
    ----------
    records : list of dict
        Those of the blocks that were finished when the journal was opened.
    """

    def __init__(
        self, path: Path, file: FileIO, run: str, records: list[dict[str, Any]], dump: Callable[[Any], str]
    ) -> None:
        self.records = records
        self._path, self._file, self._run, self._dump = path, file, run, dump

    def append(self, record: dict[str, Any]) -> None:
        """Write one record and force it to disk.

        Raises
        ------
        ConfigError
            If it cannot be written, as on a full disk; the records before stay.
        """
        try:
            _to_disk(self._file, sealed(self._dump(record), self._run))
        except OSError as error:
            raise ConfigError(
                f"{self._path}: cannot be written ({error.strerror or error}). Make room, and give the same command "
                "again: it goes on after the last finished block."
            ) from None


def lock_journal(path: Path) -> FileIO:
    """Open the journal for appending, and make it if it is missing; no other process can have it open too.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    file
        Locked; the caller closes it.

    Raises
    ------
    ConfigError
        If it cannot be written, or another process has it open.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: must be a file; found something else. Name another folder.")
    while True:
        try:
            file = open(path, "ab", buffering=0)  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written ({error.strerror or error}). Name another folder.") from None
        try:
            _lock(file, path)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # another process put a mended journal in its place meanwhile


def mended(path: Path, keep: Collection[int]) -> FileIO:
    """Replace the journal in one step by a copy without its damaged lines.

    Parameters
    ----------
    path : Path
        The file.
    keep : collection of int
        Numbers of the lines to keep.

    Returns
    -------
    file
        The new journal, open for appending and locked; the caller closes it.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    file = os.fdopen(handle, "wb", buffering=0)
    try:
        _lock(file, path)
        with open(path, "rb") as old:
            _to_disk(file, b"".join(raw for number, raw in enumerate(old, 1) if number in keep))
        os.chmod(temporary, path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException as error:
        file.close()
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise ConfigError(f"{path}: cannot be mended ({error.strerror or error}).") from None
        raise
    return file


def _to_disk(file: FileIO, data: bytes) -> None:
    """Write without a buffer, which would be written once more, and fail once more, when the file is closed."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def _lock(file: FileIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: two runs in one folder are then the user's care
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ConfigError(
            f"{path.parent}: another process is writing to this run. Wait for it, or name another."
        ) from None
