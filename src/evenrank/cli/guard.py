"""What a command reads and what it writes: nothing that is read may be written over, and pipes are read once.

Every path among a command's options is one it reads, unless it is marked as an `Output`. So a new command is guarded
without a word of its own.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from evenrank.cli import spool
from evenrank.errors import ConfigError
from evenrank.io.files import check_output, files_like

STDOUT = 1


@dataclass(frozen=True)
class Input:
    """Says which files of a folder are read; of a folder without this mark, all are.

    Attributes
    ----------
    files : tuple of str
        Names in the folder, whether they exist or not.
    """

    files: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Output:
    """Marks an option as a path that is written.

    Attributes
    ----------
    suffixes : tuple of str
        How the name of the file must end; empty: anyhow.
    files : tuple of str, optional
        The path is a folder, and these are the files and folders written in it.
    """

    suffixes: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None


_inputs: ContextVar[dict[Path, Input]] = ContextVar("inputs of the command")


def roles(command: Callable[..., Any]) -> dict[str, Input | Output]:
    """Find the parameters of a command that are paths, and what is done with each."""
    role_of: dict[str, Input | Output] = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Input | Output)]
        if marks or _holds_path(hint):
            role_of[name] = marks[0] if marks else Input()
    return role_of


def _holds_path(hint: Any) -> bool:
    return hint is Path or any(_holds_path(part) for part in get_args(hint))


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: first it refuses an output that is one of its inputs, and takes pipes for the files they hold."""
    parts = roles(command)
    read = {name: role for name, role in parts.items() if isinstance(role, Input)}

    @functools.wraps(command)
    def run(**options: Any) -> None:
        inputs = {path: role for name, role in read.items() for path in _paths(options[name])}
        token = _inputs.set(inputs)
        try:
            _refuse_stdout()
            for name, role in parts.items():
                if isinstance(role, Output) and options[name] is not None:
                    check(options[name], role, option=f"--{name.replace('_', '-')}")
            with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
                options |= {name: _without_pipes(options[name], Path(folder)) for name in read}
                command(**options)
        finally:
            _inputs.reset(token)

    return run


def check(path: Path, role: Output | None = None, *, option: str = "--out") -> None:
    """Refuse, before the work is done, an output that could not be written or would replace an input."""
    role = role or Output()
    if role.suffixes and path.suffix not in role.suffixes:
        raise ConfigError(f"{option} must end in {', '.join(role.suffixes)}; got {path.name!r}.")
    if role.files is None:
        check_output(path)
    written = [path] if role.files is None else _inside(path, role.files)
    at_risk = {key for file in written for key in _identities(file)}
    for source, files in _read_files():
        for file in files:
            if at_risk & _identities(file):
                inside = "" if file == source else f" ({str(file)!r})"
                paths = f"{str(path)!r} for both" if path == source else f"{str(path)!r} and {str(source)!r}{inside}"
                raise ConfigError(f"{option} must not be the input; got {paths}. Choose another output.")


def _refuse_stdout() -> None:
    """``rank rows.csv >> rows.csv``."""
    try:
        written = os.fstat(STDOUT)
    except OSError:
        return
    if stat.S_ISREG(written.st_mode):
        for source, files in _read_files():
            if any((written.st_dev, written.st_ino) in _identities(file) for file in files):
                raise ConfigError(f"stdout must not be the input; got {str(source)!r} for both. Choose another output.")


def _read_files() -> Iterator[tuple[Path, list[Path]]]:
    """Each input of the command that runs, and the files that are read of it."""
    for source, role in _inputs.get({}).items():
        if str(source) == spool.STDIN:
            yield source, [Path("/dev/stdin")]
        elif source.is_dir():
            yield source, list(_inside(source, ("",) if role.files is None else role.files))
        else:
            yield source, files_like(source) or [source]


def _inside(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """The named files of a folder, and all files of its named folders."""
    for name in names:
        path = folder / name
        if not path.is_dir():
            yield path
        for place, _, files in os.walk(path):
            yield from (Path(place) / file for file in files)


def _identities(path: Path) -> set[Any]:
    """What two names of one file share: where they lead to, and the file's number on its disk."""
    keys: set[Any] = set()
    try:
        status = path.stat()
    except OSError:
        return {os.path.normcase(os.path.realpath(path))}
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):  # terminals and /dev/null may be both
        keys = {os.path.normcase(os.path.realpath(path)), (status.st_dev, status.st_ino)}
    return keys


def _paths(value: Any) -> list[Path]:
    return [] if value is None else [value] if isinstance(value, Path) else list(value)


def _without_pipes(value: Any, folder: Path) -> Any:
    if isinstance(value, Path):
        return spool.spooled(value, folder)
    return value if value is None else [spool.spooled(path, folder) for path in value]
