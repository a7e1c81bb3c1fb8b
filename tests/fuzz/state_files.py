"""Files that carry sums from one run to the next, damaged: states of monitors and controllers, summaries of audits.

A damaged file gives the same answer as the whole one, or a clean error; never another answer in silence. Forged files,
whose digest was made anew or which have none, may give other answers, but no error that is not one of ours.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import damage
import evenrank as er
from evenrank.audits import Summary, summary_file
from evenrank.errors import DataWarning, EvenrankError
from evenrank.monitoring import state_file
from fuzz.cases import Slow, numbers, time_limit

NAME = "state_files"
EXTRA = None
VALUES = (np.nan, np.inf, -np.inf, -1, 0, 1e308, 2**62)


@dataclass(frozen=True)
class Base:
    """A whole file, what reads it and uses it, and its answer; ``forge`` writes it anew with a changed part."""

    path: Path
    use: Callable[[Path], str]
    forge: Callable[[Path, random.Random], None]
    sealed: bool
    answer: str


def run(n: int, seed: int) -> list[str]:
    """Failures of ``n`` cases, one line each."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="evenrank-fuzz-") as made:
        bases = _bases(Path(made))
        for number in numbers(n):
            rng = random.Random(f"{seed} {number}")
            base, other = rng.choice(bases), rng.choice(bases)
            path = Path(made) / f"case{base.path.suffix}"
            _clear(path)
            shutil.copy(base.path, path)
            told, forged = _damaged(path, rng, base, other)
            problem = _problem(base, path, forged=forged)
            if problem:
                failures.append(f"{NAME}, seed {seed}, case {number}: {base.path.name}: {told}: {problem}")
    return failures


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---------------------------------------------------------------------- whole files


def _bases(folder: Path) -> list[Base]:
    bases = []
    for seed in (0, 1):
        scores, data = _rows(seed)
        times = data.to_caller(data.query_of_row)
        groups = data.to_caller(data.group).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            monitor = er.Monitor(window="6", k=2, measures=["dp", "eop", "ndcg"]).update(scores, data, times)
            monitor.save(folder / f"monitor {seed}.npz")
            summary = Summary.of(scores, data, [1, 3], cluster=times // 2, labelled=seed == 0)
            summary.save(folder / f"summary {seed}.npz")
        controller = er.FairController(notion="dp", k=2)
        equity = er.EquityOfAttention()
        for query in range(data.n_queries):
            rows = np.flatnonzero(times == query)
            controller.rank(scores[rows], [f"g{groups[row]}" for row in rows])
            equity.rank(np.abs(scores[rows]), [f"i{row % 7}" for row in rows])
        (folder / f"controller {seed}.json").write_text(json.dumps(controller.state()))
        (folder / f"equity {seed}.json").write_text(json.dumps(equity.state()))
        kinds: dict[str, tuple[Callable[[Path], str], Callable[[Path, random.Random], None], bool]] = {
            f"monitor {seed}.npz": (_use_monitor, _forge_monitor, True),
            f"summary {seed}.npz": (_use_summary, _forge_summary, True),
            f"controller {seed}.json": (_use_controller, _forge_json, False),
            f"equity {seed}.json": (_use_equity, _forge_json, False),
        }
        for name, (use, forge, sealed) in kinds.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                bases.append(Base(folder / name, use, forge, sealed, use(folder / name)))
    return bases


def _rows(seed: int) -> tuple[Any, er.RankingData]:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(24), 5)
    scores = rng.integers(0, 9, 120) / 4
    group = rng.integers(0, 2 + seed, 120)
    items = (np.arange(120) * 7) % 40
    return scores, er.RankingData.from_arrays(np.zeros((120, 1)), rng.integers(0, 2, 120), group, query, item_ids=items)


def _use_monitor(path: Path) -> str:
    monitor = er.Monitor.load(path)
    scores, data = _rows(7)
    later = monitor.update(scores, data, data.to_caller(data.query_of_row) + 1000)
    return repr(_judged(monitor)) + repr(_judged(later))


def _judged(monitor: er.Monitor) -> Any:
    from evenrank.monitoring.judge import judged

    return judged(monitor, reference=1).to_dict()


def _use_summary(path: Path) -> str:
    return repr(er.audit(Summary.load(path)).to_dict())


def _use_controller(path: Path) -> str:
    controller = er.FairController.from_state(_json(path))
    orders = [controller.rank([0.9, 0.5, 0.4, 0.1], ["g0", "g1", "g0", "g1"]).tolist() for _ in range(3)]
    return repr((orders, controller.merge(controller).state()))


def _use_equity(path: Path) -> str:
    equity = er.EquityOfAttention.from_state(_json(path))
    orders = [np.asarray(equity.rank([0.9, 0.5, 0.4, 0.1], ["i0", "i1", "i2", "new"])).tolist() for _ in range(3)]
    return repr((orders, equity.merge(equity).state()))


def _json(path: Path) -> Any:
    """What a user's program reads; a file that is no JSON is not for the library to refuse."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise er.DataError("no JSON") from None


# ---------------------------------------------------------------------- damage


def _damaged(path: Path, rng: random.Random, base: Base, other: Base) -> tuple[str, bool]:
    kind = rng.choice(["bytes", "bytes", "files", "swap", "forge", "forge", "forge", "forge"])
    if kind in ("bytes", "files"):
        action = rng.choice(damage.BYTES if kind == "bytes" else damage.FILES)
        action(path, rng)
        return action.__name__, not base.sealed
    if kind == "swap":
        shutil.copy(other.path, path)
        return f"that is {other.path.name}", True
    base.forge(path, rng)
    return "forged", True


def _forge_json(path: Path, rng: random.Random) -> None:
    value = json.loads(path.read_bytes())
    for _ in range(rng.choice([1, 1, 2])):
        value = damage.edit(value, rng)
    path.write_text(json.dumps(value))


def _forge_monitor(path: Path, rng: random.Random) -> None:
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    arrays = {name: parts[name] for name in state_file.ARRAYS}
    text = str(parts["header"])
    if rng.random() < 0.5:
        text = json.dumps(damage.edit(json.loads(text), rng))
    else:
        _change(arrays, rng)
    whole = set(arrays) == set(state_file.ARRAYS) and rng.random() < 0.9
    check = state_file._digest(text, arrays) if whole else "0"
    np.savez(path, header=np.array(text), check=np.array(check), **arrays)


def _forge_summary(path: Path, rng: random.Random) -> None:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    if rng.random() < 0.5:
        header = damage.edit(header, rng)
    else:
        _change(arrays, rng)
    if isinstance(header, dict) and rng.random() < 0.9:
        header["check"] = summary_file._digest(arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def _change(arrays: dict[str, Any], rng: random.Random) -> None:
    """One array is cut, reshaped, of another type, gone, or has a strange value."""
    name = rng.choice(sorted(arrays))
    array = np.array(arrays[name])
    match rng.randrange(6):
        case 0:
            arrays[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array
        case 1:
            arrays[name] = array[None]
        case 2:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(rng.choice([np.float32, np.int8, np.float64, "U5", bool, np.complex128]))
        case 3:
            del arrays[name]
        case 4:
            arrays[name] = np.concatenate([array, array])
        case _:
            if array.size:
                with np.errstate(all="ignore"):
                    changed = array.ravel().copy()
                    changed[rng.randrange(array.size)] = np.array(rng.choice(VALUES)).astype(array.dtype)
                arrays[name] = changed.reshape(array.shape)


def _problem(base: Base, path: Path, *, forged: bool) -> str:
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DataWarning)
            answer = base.use(path)
    except EvenrankError as error:
        plain = str(error).isprintable() and len(str(error)) < 1000
        return "" if plain else f"the message is not one plain line: {str(error)!r:.300}"
    except Slow as slow:
        return str(slow)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]!r} at {Path(where.filename).name}:{where.lineno}"
    return "" if forged or answer == base.answer else "another answer in silence"
