"""Damaged run folders: the same numbers, a clean error, or a stated loss; never other numbers in silence.

A case copies the folder of a finished run, damages a file or two, and then loads it, makes its page, chooses from it
and goes on with it. Damage that no checksum can tell (edits with the checksum made anew, and folders of format 1, which
have no id) may change numbers, but must not end in an error that is not one of ours.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import damage
import evenrank as er
from evenrank.errors import DataWarning, EvenrankError
from fuzz.cases import numbers, time_limit

NAME = "run_folders"
EXTRA = None
FILES = ("config.json", "examples.json", "journal.jsonl")
RULES = ("no_loss", "four_fifths", "within", "knee")
OPTIONS: dict[str, Any] = {
    "methods": ["amortized", "fastar"],
    "notions": ["dp", "eop"],
    "strengths": [0, 0.1, 0.5],
    "ks": [2, 3],
    "folds": 3,
    "examples": 4,
}
SEEDS: dict[str, Any] = {**OPTIONS, "methods": ["amortized"], "folds": None, "seeds": 2, "settings": {"amortized": {}}}


@dataclass(frozen=True)
class Base:
    """An untouched folder, how it was made, and what it gives."""

    folder: Path
    data: Any
    options: dict[str, Any]
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def bound(self) -> bool:
        return bool(json.loads((self.folder / "config.json").read_bytes())["format"] > 1)


@dataclass(frozen=True)
class Case:
    """A damaged copy; ``forged``: its checksums were made anew, or it has none."""

    base: Base
    folder: Path
    told: str
    forged: bool


def run(n: int, seed: int) -> list[str]:
    """Failures of ``n`` cases, one line each."""
    with tempfile.TemporaryDirectory(prefix="evenrank-fuzz-") as made, _quick_pages():
        bases = _bases(Path(made))
        failures = []
        for number in numbers(n):
            rng = random.Random(f"{seed} {number}")
            folder = Path(made) / "case"
            shutil.rmtree(folder, ignore_errors=True)
            case = _damaged(rng, bases, folder)
            failures += [f"{NAME}, seed {seed}, case {number}: {case.told}: {line}" for line in _wrong(case, rng)]
        return failures


# ---------------------------------------------------------------------- untouched folders


def _bases(made: Path) -> list[Base]:
    first, second = _data(0), _data(1)
    several = {"one": first, "two": first.with_group((np.arange(60) % 3).astype(np.int32), ("x", "y", "z"))}
    asked = [(first, OPTIONS), (second, OPTIONS), (several, OPTIONS), (first, SEEDS)]
    bases = []
    for number, (data, options) in enumerate(asked):
        folder = made / f"base {number}"
        with _warned():
            er.sweep(data, out=folder, **options)
            bases.append(Base(folder, data, options, _rows(er.Sweep.load(folder))))
    old = made / "old"
    shutil.copytree(bases[0].folder, old)
    _unbind(old)
    with _warned():
        bases.append(Base(old, first, OPTIONS, _rows(er.Sweep.load(old))))
    assert bases[-1].rows == bases[0].rows
    return bases


def _data(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(12), 5)
    return er.RankingData.from_arrays(rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.integers(0, 2, 60), qid)


def _unbind(folder: Path) -> None:
    """Make the folder one of format 1."""
    config = json.loads((folder / "config.json").read_bytes())
    del config["id"]
    (folder / "config.json").write_text(json.dumps({**config, "format": 1}))
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    (folder / "journal.jsonl").write_text("".join(_line(json.loads(line)["record"], None) for line in lines))
    (folder / "examples.json").write_text(json.dumps(json.loads((folder / "examples.json").read_bytes())["record"]))


def _line(record: Any, run_id: str | None) -> str:
    """A line as the journal has it, with its checksum: written here once more, so that the form is held to."""
    text = json.dumps(record)
    bound = f'"run": "{run_id}", ' if run_id else ""
    return f'{{"check": {zlib.crc32((bound + text).encode())}, {bound}"record": {text}}}\n'


def _rows(sweep: er.Sweep) -> dict[str, str]:
    """Each trial's values by its key, as text that tells every bit; seconds are no result."""
    keys = ("grouping", "method", "notion", "strength", "fold", "seed")
    frame = sweep.frame().drop("seconds")
    return {repr([row.pop(key) for key in keys]): repr(sorted(row.items())) for row in frame.iter_rows(named=True)}


# ---------------------------------------------------------------------- damage


def _damaged(rng: random.Random, bases: list[Base], folder: Path) -> Case:
    base, other = rng.choice(bases), rng.choice(bases)
    shutil.copytree(base.folder, folder)
    told, forged = [], not base.bound
    swapped: set[str] = set()
    for _ in range(rng.choice([1, 1, 1, 2])):
        file = folder / rng.choice(FILES)
        if not file.is_file():
            continue
        kind = rng.choice(
            ["bytes", "bytes", "bytes", "files", "swap", "lines", "lines", "edit", "edit", "forge", "forge"]
        )
        if kind in ("bytes", "files"):
            action = rng.choice(damage.BYTES if kind == "bytes" else damage.FILES)
            action(file, rng)
            told.append(f"{action.__name__} of {file.name}")
        elif kind == "swap":
            damage.swap(file, other.folder)
            told.append(f"{file.name} of {other.folder.name}")
            swapped.add(file.name)
            # With both files of another run the folder is that run.
            forged |= not other.bound or {"config.json", "journal.jsonl"} <= swapped
        elif kind == "lines" and (folder / "journal.jsonl").is_file():
            mutate = rng.choice(LINES)
            mutate(folder / "journal.jsonl", rng, other.folder)
            told.append(mutate.__name__)
            forged |= not other.bound
        else:
            # The first damage may have left no JSON, or another than is edited here.
            with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
                _edit(file, rng, seal=kind == "forge")
                told.append(f"{kind} of {file.name}")
                forged |= kind == "forge"
    return Case(base, folder, f"{base.folder.name}: {' and '.join(told)}", forged)


def _double(journal: Path, rng: random.Random, other: Path) -> None:
    lines = _lines(journal)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    journal.write_bytes(b"".join(lines))


def _reorder(journal: Path, rng: random.Random, other: Path) -> None:
    lines = _lines(journal)
    rng.shuffle(lines)
    journal.write_bytes(b"".join(lines))


def _drop(journal: Path, rng: random.Random, other: Path) -> None:
    lines = _lines(journal)
    del lines[rng.randrange(len(lines))]
    journal.write_bytes(b"".join(lines))


def _foreign(journal: Path, rng: random.Random, other: Path) -> None:
    lines = _lines(journal)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(_lines(other / "journal.jsonl")))
    journal.write_bytes(b"".join(lines))


def _join(journal: Path, rng: random.Random, other: Path) -> None:
    """A line end lost: two lines are one."""
    lines = _lines(journal)
    place = rng.randrange(len(lines))
    lines[place] = lines[place].rstrip(b"\n")
    journal.write_bytes(b"".join(lines))


def _first_line(journal: Path, rng: random.Random, other: Path) -> None:
    lines = _lines(journal)
    lines[0] = rng.choice([b"\n", b"{}\n", b"[" * 100_000 + b"\n", lines[0][:50] + b"\n"])
    journal.write_bytes(b"".join(lines))


LINES: list[Callable[[Path, random.Random, Path], None]] = [_double, _reorder, _drop, _foreign, _join, _first_line]


def _lines(journal: Path) -> list[bytes]:
    return (journal.read_bytes() if journal.is_file() else b"").splitlines(keepends=True) or [b"\n"]


def _edit(file: Path, rng: random.Random, *, seal: bool) -> None:
    """Change a value; ``seal``: with the checksums and ids that then belong to it."""
    if file.name == "journal.jsonl":
        lines = _lines(file)
        place = rng.randrange(len(lines))
        sealed = json.loads(lines[place])
        changed = {**sealed, "record": damage.edit(sealed["record"], rng)} if seal else damage.edit(sealed, rng)
        text = _line(changed["record"], sealed.get("run")) if seal else json.dumps(changed) + "\n"
        lines[place] = text.encode()
        file.write_bytes(b"".join(lines))
        return
    value = json.loads(file.read_bytes())
    if file.name == "examples.json" and seal and isinstance(value, dict):
        file.write_text(_line(damage.edit(value["record"], rng), value["run"]))
        return
    value = damage.edit(value, rng)
    file.write_text(json.dumps(value))
    if file.name == "config.json" and seal and isinstance(value, dict):
        _bind(file.parent, value)


def _bind(folder: Path, config: dict[str, Any]) -> None:
    """Give an edited configuration its id, and the other files too, as if it had always been so."""
    from evenrank.experiment.run_folder import run_id

    config["id"] = run_id(config)
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("journal.jsonl", "examples.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            lines = [json.loads(line)["record"] for line in (folder / name).read_bytes().splitlines()]
            (folder / name).write_text("".join(_line(record, config["id"]) for record in lines))


# ---------------------------------------------------------------------- what must hold


def _wrong(case: Case, rng: random.Random) -> Iterator[str]:
    yield from _outcome(case, "load", lambda: _load(case, rng))
    if rng.random() < 0.1:
        yield from _outcome(case, "page", lambda: _page(case))
    if rng.random() < 0.005:
        yield from _command(["report", str(case.folder), "-o", str(case.folder.parent / "page.html")])
        yield from _command(["select", str(case.folder), "--rule", "all"])
    if rng.random() < 0.3:
        yield from _outcome(case, "resume", lambda: _resume(case))
        yield from _outcome(case, "load after resume", lambda: _load(case, rng))


def _outcome(case: Case, step: str, act: Callable[[], str | None]) -> Iterator[str]:
    try:
        with time_limit(), _warned():
            line = act()
    except EvenrankError as error:
        line = None if "\n" not in str(error) and len(str(error)) < 1000 else f"a long message: {error!r}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{type(error).__name__}: {str(error)[:100]!r} at {Path(where.filename).name}:{where.lineno}"
    if line is not None:
        yield f"{step}: {line}"


def _load(case: Case, rng: random.Random) -> str | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        sweep = er.Sweep.load(case.folder)
    sweep.to_dict()
    with contextlib.suppress(er.ConfigError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        er.select(sweep, rng.choice(sweep.notions), rule=rng.choice(RULES))
    if case.forged:
        return None
    rows = _rows(sweep)
    other = [key for key, values in rows.items() if case.base.rows.get(key) != values]
    if other:
        return f"other numbers in silence: {other[0]}"
    if len(rows) < len(case.base.rows) and not any("not finished" in str(one.message) for one in caught):
        return "rows are missing in silence"
    if sweep.examples is None and not any("without examples" in str(one.message) for one in caught):
        return "examples are missing in silence"
    return None


def _page(case: Case) -> str | None:
    page = er.Sweep.load(case.folder).html()
    page.encode()
    return None


def _resume(case: Case) -> str | None:
    sweep = er.sweep(case.base.data, out=case.folder, **case.base.options)
    if not case.forged and _rows(sweep) != case.base.rows:
        return "other numbers after going on"
    return None


def _command(arguments: list[str]) -> Iterator[str]:
    from evenrank.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as stop:
        code = stop.code
    except Exception as error:
        yield f"{arguments[0]}: {type(error).__name__}: {error}"
        return
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("evenrank: warning: ")]
    if code not in (0, 2) or len(lines) != (code == 2):
        yield f"{arguments[0]}: exit code {code}, {lines[:3]}"


@contextlib.contextmanager
def _warned() -> Iterator[None]:
    """DataWarnings are right; others, such as numpy's on strange numbers, are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        yield


@contextlib.contextmanager
def _quick_pages() -> Iterator[None]:
    """Pages with the parts that depend on no run made once: the charts' program and their descriptions."""
    import vl_convert

    from evenrank.page import live_charts

    bundle, charts = vl_convert.javascript_bundle, live_charts.live_charts
    vl_convert.javascript_bundle, live_charts.live_charts = lambda *_, **__: "", cache(charts)
    try:
        yield
    finally:
        vl_convert.javascript_bundle, live_charts.live_charts = bundle, charts
