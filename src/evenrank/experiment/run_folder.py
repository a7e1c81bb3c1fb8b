"""`RunFolder`: a sweep on disk, which survives a kill at any moment and damage to its files.

journal.jsonl   one line per finished block, appended and forced to disk; a line that is not whole is not counted
examples.json   the example queries and their items; written before the first block
config.json     the plan, the data's fingerprint and the versions; written once, before the first block
trials.parquet  the table of trials, and trials.csv: written when the last block is done

``config.json`` holds an id made from all else in it; the lines of the journal and ``examples.json`` carry that id.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment.journal import Content, Journal, Line, lock_journal, mended, read_journal, sealed, unsealed
from evenrank.experiment.json_checks import SHORT, short
from evenrank.experiment.plain_json import dump, plain
from evenrank.experiment.run_schema import check_config, check_examples, check_record
from evenrank.io.files import write_whole

FORMAT = 2
UNBOUND = 1  # the format whose files carry no id
CONFIG, EXAMPLES, JOURNAL = "config.json", "examples.json", "journal.jsonl"
TRIALS = ("trials.csv", "trials.parquet")
FILES = (CONFIG, EXAMPLES, JOURNAL, *TRIALS)
ANEW = "Make the run anew in another folder."


class RunFolder:
    """The files of one run.

    Parameters
    ----------
    path : path-like
        The folder; `opened` makes it.

    Attributes
    ----------
    command : str
        The command that makes such a run.
    files : tuple of str
        The files that it writes.
    """

    command = "sweep"
    files: tuple[str, ...] = FILES

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, checked.

        Raises
        ------
        DataError
            If this is not a run folder, or its configuration was changed.
        """
        file = self.path / CONFIG
        if not file.is_file():
            raise DataError(
                f"{self.path}: is not a run folder (it has no {CONFIG}). Make one with evenrank {self.command}."
            )
        config = _load(file)
        known = isinstance(config, dict) and type(config.get("format")) is int
        if not known or config["format"] not in (UNBOUND, FORMAT):
            raise DataError(f"{file}: is not a configuration of format {UNBOUND} or {FORMAT}. {ANEW}")
        self._check_config(config, file)
        if config["format"] != UNBOUND and config.get("id") != run_id(config):
            raise DataError(f"{file}: was changed after the run began (its id is not that of its content). {ANEW}")
        return dict(config)

    def examples(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        """Read the example queries.

        Parameters
        ----------
        config : dict
            The run's configuration.

        Returns
        -------
        list of dict
            The queries with their items.

        Raises
        ------
        DataError
            If the file is missing, damaged or another run's.
        """
        file = self.path / EXAMPLES
        if not file.is_file():
            raise DataError(f"{file}: is missing. The command that began the run writes it again.")
        if config["format"] == UNBOUND:
            queries = _load(file)
        else:
            content = unsealed(_bytes(file))
            if content is None or content[0] != run_id(config):
                what = "is damaged" if content is None else "belongs to another run"
                raise DataError(f"{file}: {what}. The command that began the run writes it again.")
            queries = content[1]
        check_examples(queries, config, file)
        return list(queries)

    def examples_or_none(self, config: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Read the example queries, or warn and return None: no number depends on them."""
        try:
            return self.examples(config)
        except DataError as error:
            warnings.warn(f"{error} Until then the run is shown without examples", DataWarning, stacklevel=3)
            return None

    def finished(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        """Read the records of the finished blocks: a warning if some are still to do, a DataError if all are."""
        records, go_on = self.blocks(config), "Go on with the command that began it"
        wanted = len(config["asked"]["blocks"])
        if not records:
            raise DataError(f"{self.path}: the run has no finished block yet. {go_on}.")
        if len(records) < wanted:
            warnings.warn(
                f"{self.path}: the run is not finished, {len(records)} of {wanted} blocks are done. {go_on}",
                DataWarning,
                stacklevel=3,
            )
        return records

    def blocks(self, config: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Read the records of the finished blocks, in the order in which they were finished.

        A damaged line is left out with a warning; a block that stands twice counts once. A record that belongs to
        another run or breaks a rule is a DataError.

        Parameters
        ----------
        config : dict, optional
            The run's configuration; read from the folder by default.
        """
        content = read_journal(self.path / JOURNAL)
        if not content.lines and not content.damaged:
            return []
        lines = self._counted(content, self.config if config is None else config)
        self._warn_of_damage(content)
        return [line.record for line in lines]

    def _counted(self, content: Content, config: dict[str, Any]) -> list[Line]:
        """The lines whose records count; a line of another run, or one that breaks a rule, is an error."""
        check, this_run = self._record_check(config), run_id(config)
        counted: dict[str, Line] = {}
        for line in content.lines:
            where = f"{self.path / JOURNAL}, line {line.number}"
            if line.run != this_run and not (line.run is None and config["format"] == UNBOUND):
                raise DataError(f"{where}: belongs to another run. Put back the journal of this one.")
            check(line.record, where)
            first = counted.setdefault(dump(line.record["block"]), line)
            if {**first.record, "seconds": 0} != {**line.record, "seconds": 0}:
                raise DataError(
                    f"{where}: must have the values of line {first.number}, which is the same block; they differ. "
                    "Remove one of the lines."
                )
        return list(counted.values())

    def _check_config(self, config: dict[str, Any], file: Path) -> None:
        """Refuse what is no configuration of such a run."""
        check_config(config, file)

    def _record_check(self, config: dict[str, Any]) -> Callable[[Any, str], None]:
        """What refuses a record that is not one of this run."""
        lengths = None  # the number of items of each example query, if the file can be read
        with contextlib.suppress(DataError):
            lengths = [len(query["items"]) for query in self.examples(config)]
        return lambda record, where: check_record(record, config, lengths, where)

    def _warn_of_damage(self, content: Content) -> None:
        if content.damaged:
            first, *others = content.damaged
            more = f" and {len(others)} more" if others else ""
            warnings.warn(
                f"{self.path / JOURNAL}, line {first}{more}: damaged and left out. The command that began the run does "
                "the blocks again",
                DataWarning,
                stacklevel=4,
            )

    @contextlib.contextmanager
    def opened(self, config: dict[str, Any], examples: list[dict[str, Any]] | None) -> Iterator[Journal]:
        """Open the journal, to go on after its last whole line; no other process can have it open.

        A missing folder is made. Damaged lines are removed. If the work fails before its first block is finished, what
        was made is removed again.

        Parameters
        ----------
        config : dict
            The configuration; that of a folder that was begun must be the same.
        examples : list of dict or None
            The example queries; None if such a run has none.

        Yields
        ------
        Journal
            With the records of the blocks that are finished.

        Raises
        ------
        ConfigError
            If the folder is something else, in use, or holds a run of another configuration.
        """
        self._refuse_foreign()
        new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be made ({error.strerror or error}). Choose another.") from None
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(lock_journal(self.path / JOURNAL))
            begun = (self.path / CONFIG).is_file()
            try:
                content = read_journal(self.path / JOURNAL)
                lines = self._resumed(content, config) if begun else []
                self._prepare(config, examples, begun=begun)
                if content.damaged or len(lines) < len(content.lines):
                    file = stack.enter_context(mended(self.path / JOURNAL, {line.number for line in lines}))
                else:
                    file.truncate(content.end)
                yield Journal(self.path / JOURNAL, file, run_id(self.config), [line.record for line in lines], dump)
            except Exception:
                if not begun and not read_journal(self.path / JOURNAL).lines:
                    self._remove(whole=new)
                raise

    def _resumed(self, content: Content, config: dict[str, Any]) -> list[Line]:
        """The lines that count in a run that was begun; another configuration is refused."""
        before = self.config
        lines = self._counted(content, before)
        finished = len(lines) == len(before["asked"]["blocks"])
        _refuse_differences(self.path, before, config, finished=finished)
        self._warn_of_damage(content)
        return lines

    def _prepare(self, config: dict[str, Any], examples: list[dict[str, Any]] | None, *, begun: bool) -> None:
        for part in self._parts():
            part.unlink(missing_ok=True)
        whole = self.config if begun else plain({"format": FORMAT, **config})
        if examples is not None and not (begun and self._has_examples(whole, examples)):
            text = dump(examples)
            bound = whole["format"] != UNBOUND
            write_whole(self.path / EXAMPLES, sealed(text, run_id(whole)) if bound else text)
        if not begun:  # last, because its presence says that the folder is a run
            write_whole(self.path / CONFIG, dump({"id": run_id(whole), **whole}, indent=1))

    def _has_examples(self, config: dict[str, Any], examples: list[dict[str, Any]]) -> bool:
        """Whether the file holds these: it may be damaged, and their titles may be others now."""
        try:
            return bool(self.examples(config) == plain(examples))
        except DataError:
            return False

    def _parts(self) -> list[Path]:
        """Files that a killed process was about to write."""
        return [part for name in self.files for part in self.path.glob(f".{name}-*.part")]

    def _refuse_foreign(self) -> None:
        """What is there must be a run, or nothing, or the beginning of a run that was killed before its first block."""
        if not self.path.exists() or (self.path / CONFIG).is_file():
            return
        if self.path.is_dir():
            present = set(self.path.iterdir()) - set(self._parts())
            journal = self.path / JOURNAL
            begun = journal.is_file() and not journal.stat().st_size and present <= {journal, self.path / EXAMPLES}
            if not present or begun:
                return
        raise ConfigError(f"{self.path}: exists and is not a run folder. Name a new or an empty folder.")

    def _remove(self, *, whole: bool) -> None:
        with contextlib.suppress(OSError):
            for name in (CONFIG, EXAMPLES, JOURNAL):
                (self.path / name).unlink(missing_ok=True)
            if whole:
                self.path.rmdir()


def run_id(config: dict[str, Any]) -> str:
    """Make the run's id: a digest of all that its configuration says.

    Parameters
    ----------
    config : dict
        The configuration; an id in it does not count.

    Returns
    -------
    str
        The id, 32 hexadecimal digits.
    """
    content = {key: value for key, value in config.items() if key != "id"}
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _refuse_differences(path: Path, before: dict[str, Any], now: dict[str, Any], *, finished: bool) -> None:
    for part in ("data", "asked", *(() if finished else ("versions",))):
        for name in {**before.get(part, {}), **now[part]}:
            old, new = before.get(part, {}).get(name), plain(now[part].get(name))
            if old != new:
                was, is_ = (short(value) for value in _first_difference(old, new))
                raise ConfigError(
                    f"{path}: holds a run whose {name} ({part}) differ: {was} there, {is_} now. "
                    "Name another folder, or remove this one."
                )


def _first_difference(old: Any, new: Any) -> tuple[Any, Any]:
    """Of two long lists, the first entries that differ."""
    if isinstance(old, list) and isinstance(new, list) and max(len(short(old)), len(short(new))) > SHORT:
        for pair in zip_longest(old, new):
            if pair[0] != pair[1]:
                return pair
    return old, new


def _load(file: Path) -> Any:
    try:
        return json.loads(_bytes(file), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise DataError(f"{file}: is not whole JSON. {ANEW}") from None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error}).") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
