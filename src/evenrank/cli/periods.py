"""Which files a monitor reads, and which period each of them is."""

from __future__ import annotations

from pathlib import Path

from evenrank.errors import ConfigError, DataError
from evenrank.io.registry import FORMATS

SUFFIXES = {suffix for format in FORMATS.values() for suffix in format.suffixes}


def files_in_turn(given: list[Path]) -> list[Path]:
    """The files, and those of folders in the order of their names."""
    files = []
    for path in given:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(one for one in path.iterdir() if one.is_file() and set(one.suffixes) & SUFFIXES)
        if not inside:
            raise DataError(f"{path}: the folder has no file of rows ({', '.join(sorted(SUFFIXES))}).")
        files += inside
    return files


def periods(files: list[Path], time: str | None, names: list[str] | None) -> list[tuple[list[Path], str]]:
    """The files that are read together, and the name of their period."""
    if time is not None:
        if names:
            raise ConfigError("--period names files without times; --time was given as well. Give one of them.")
        return [(files, "")] if files else []
    if names and len(names) != len(files):
        raise ConfigError(f"--period must be given once per file, {len(files)} times; got {len(names)}.")
    named = names or [
        path.name.removesuffix("".join(s for s in path.suffixes if s in {*SUFFIXES, ".gz"})) for path in files
    ]
    twice = next((name for j, name in enumerate(named) if name in named[:j]), None)
    if twice is not None:
        raise ConfigError(f"two files are of period {twice!r}; name each with --period, or give --time.")
    return [([path], name) for path, name in zip(files, named, strict=True)]
