"""`RunFolder`: a sweep on disk, which survives being killed at any moment.

journal.jsonl   one line a finished block, appended and forced to disk; a line cut short is not counted
examples.json   the example queries and their items; written before the first block
config.json     what was asked, of which data, with which versions; written once, before the first block
trials.parquet  the table of trials, and trials.csv: written when the last block is done
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evenrank.errors import ConfigError, DataError
from evenrank.io.files import write_whole

FORMAT = 1
SHORT = 77  # characters of a value that a message shows
CONFIG, EXAMPLES, JOURNAL = "config.json", "examples.json", "journal.jsonl"
TRIALS = ("trials.csv", "trials.parquet")
FILES = (CONFIG, EXAMPLES, *TRIALS)  # those that are written whole


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def config(self) -> dict[str, Any]:
        """What was asked; an error that says so if this is not a run folder."""
        file = self.path / CONFIG
        if not file.is_file():
            raise DataError(f"{self.path}: is not a run folder (it has no {CONFIG}). Make one with evenrank sweep.")
        found = _load(file)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise DataError(f"{file}: is not a configuration of format {FORMAT}. Make the run anew in another folder.")
        return found

    @property
    def examples(self) -> list[dict[str, Any]]:
        file = self.path / EXAMPLES
        return list(_load(file)) if file.is_file() else []

    def blocks(self) -> list[dict[str, Any]]:
        """The finished blocks, in the order they were finished."""
        return [record for record, _ in self._read()]

    def _read(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Each whole record and the byte after it; reading stops at a line cut short or damaged."""
        file = self.path / JOURNAL
        if not file.is_file():
            return
        end = 0
        with open(file, "rb") as lines:
            for line in lines:
                record = _checked(line)
                if record is None:
                    return
                end += len(line)
                yield record, end

    @contextlib.contextmanager
    def opened(self, config: dict[str, Any], examples: list[dict[str, Any]]) -> Iterator[Journal]:
        """The journal, to go on after its last whole line; nobody else can have it open.

        The folder is made, or was begun with the same configuration. If the work fails before its first block is
        finished, what was made is removed again.
        """
        self._refuse_foreign()
        new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be made ({error.strerror or error}). Choose another.") from None
        with open(self.path / JOURNAL, "ab") as file:
            _lock(file, self.path)
            begun = (self.path / CONFIG).is_file()
            try:
                self._prepare(config, examples, begun=begun)
                file.truncate(max((end for _, end in self._read()), default=0))
                yield Journal(file)
            except Exception:
                if not begun and not self.blocks():
                    self._remove(whole=new)
                raise

    def _prepare(self, config: dict[str, Any], examples: list[dict[str, Any]], *, begun: bool) -> None:
        if begun:
            _refuse_differences(self.path, self.config, config, finished=self.finished)
        for part in self._parts():
            part.unlink(missing_ok=True)
        if not begun or self.examples != _plain(examples):  # their titles may be others now
            write_whole(self.path / EXAMPLES, _dump(examples))
        if not begun:  # last, because its presence says that the folder is a run
            write_whole(self.path / CONFIG, _dump({"format": FORMAT, **config}, indent=1))

    @property
    def finished(self) -> bool:
        return len(self.blocks()) == len(self.config["asked"]["blocks"])

    def _parts(self) -> list[Path]:
        """Files that a killed process was about to write."""
        return [part for name in FILES for part in self.path.glob(f".{name}-*.part")]

    def _refuse_foreign(self) -> None:
        """What is there must be a run, or nothing, or the beginning of a run that was killed before its first block."""
        if not self.path.exists() or (self.path / CONFIG).is_file():
            return
        if self.path.is_dir():
            found = set(self.path.iterdir()) - set(self._parts())
            journal = self.path / JOURNAL
            begun = journal in found and not journal.stat().st_size and found <= {journal, self.path / EXAMPLES}
            if not found or begun:
                return
        raise ConfigError(f"{self.path}: exists and is not a run folder. Name a new or an empty folder.")

    def _remove(self, *, whole: bool) -> None:
        with contextlib.suppress(OSError):
            for name in (CONFIG, EXAMPLES, JOURNAL):
                (self.path / name).unlink(missing_ok=True)
            if whole:
                self.path.rmdir()


class Journal:
    """Appends records, each on disk before the next step."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def append(self, record: dict[str, Any]) -> None:
        text = _dump(record)
        self._file.write(f'{{"check": {zlib.crc32(text.encode())}, "record": {text}}}\n'.encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _checked(line: bytes) -> dict[str, Any] | None:
    """The record of a line, or None if the line is not whole."""
    if not line.endswith(b"}\n"):
        return None
    try:
        parsed = json.loads(line)
        body = line[line.index(b'"record": ') + len(b'"record": ') : -2]
    except ValueError:
        return None
    if not isinstance(parsed, dict) or parsed.get("check") != zlib.crc32(body):
        return None
    record: dict[str, Any] = parsed["record"]
    return record


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: two runs in one folder are then the user's care
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ConfigError(f"{path}: another process is writing to this run. Wait for it, or name another.") from None


def _refuse_differences(path: Path, before: dict[str, Any], now: dict[str, Any], *, finished: bool) -> None:
    for part in ("data", "asked", *(() if finished else ("versions",))):
        for name in {**before.get(part, {}), **now[part]}:
            old, new = before.get(part, {}).get(name), _plain(now[part].get(name))
            if old != new:
                was, is_ = (_short(value) for value in _first_difference(old, new))
                raise ConfigError(
                    f"{path}: holds a run whose {name} ({part}) differ: {was} there, {is_} now. "
                    "Name another folder, or remove this one."
                )


def _first_difference(old: Any, new: Any) -> tuple[Any, Any]:
    """Of two long lists, the first entries that differ."""
    if isinstance(old, list) and isinstance(new, list) and max(len(_short(old)), len(_short(new))) > SHORT:
        for pair in zip_longest(old, new):
            if pair[0] != pair[1]:
                return pair
    return old, new


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else text[:SHORT] + "…"


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error}).") from None
    except ValueError:
        raise DataError(f"{file}: is not whole JSON. Make the run anew in another folder.") from None


def _plain(value: Any) -> Any:
    """What a value is after a round through JSON."""
    return json.loads(_dump(value))


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(_without_nan(value), ensure_ascii=True, allow_nan=False, indent=indent, default=_listed)


def _listed(value: Any) -> Any:
    """Arrays and their elements as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ConfigError(f"a run folder holds numbers, texts and lists of them; got {value!r}. Give such a setting.")


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null stands for it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return value
