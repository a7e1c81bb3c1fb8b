"""Model files of every kind, damaged and crafted: no crash, no hang, no traceback, no other scores.

Cases run in a worker process, so that a crash is seen: it says which case it begins, and is started again behind a case
that killed it or took longer than ten seconds. A case is its number and the seed: ``python tests/fuzz/model_files.py
--case 17 --seed 3`` writes its file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from fuzz import cases  # noqa: E402
from fuzz.cases import CASE, PROGRESS, answers, stopped  # noqa: E402
from model_mutations import hostile_file  # noqa: E402
from model_scores import scores_of  # noqa: E402

NAME = "model_files"
EXTRA: str | None = None  # kinds whose library is absent are left out
PATIENCE = 10.0  # seconds of the processor a case may take
GROWTH = 300_000  # kilobytes a case may add
SAVED = TESTS / "rankers" / "model_files_v1"
FEATURES = ["u", "v v", "größe"]
LIBRARY = {"lightgbm": "lightgbm", "xgboost": "xgboost", "neural": "torch"}
KINDS = ("linear", "deltr", "lightgbm", "xgboost", "neural")


def run(n: int, seed: int) -> list[str]:
    """``n`` cases over all kinds; one line per failure."""
    failures: list[str] = []
    only = os.environ.get(CASE)
    first, n = (0, n) if only is None else (int(only), int(only) + 1)
    while first < n and not stopped():
        first = _watch(first, n, seed, failures)
    return failures


def _watch(first: int, n: int, seed: int, failures: list[str]) -> int:
    """Run a worker from case ``first`` on; gives the case to go on with."""
    command = [sys.executable, __file__, "--worker", str(first), str(n), "--seed", str(seed)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | threads,
        text=True,
        start_new_session=True,  # Ctrl-C is for the one who watches
    )
    progress = os.environ.get(PROGRESS)
    assert process.stdout is not None
    current, started = first, False
    try:
        while True:
            patience = PATIENCE if started else 120.0
            if not answers(process.stdout, process.pid, patience):
                limits = f"{patience:g} s of the processor, or {cases.CLOCK:g} s by the clock"
                failures.append(f"{NAME} case {current} (seed {seed}): no end after {limits}")
                return current + 1
            line = process.stdout.readline()
            if not line:
                process.wait()
                break
            message = json.loads(line)
            started, current = True, message["case"]
            if progress is not None:
                Path(progress).write_text(str(current))
            if stopped():
                return n
            if message["failure"]:
                failures.append(f"{NAME} case {current} (seed {seed}, {message['kind']}): {message['failure']}")
            if message.get("last"):
                return n
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if not started:
        failures.append(f"{NAME} (seed {seed}): the worker does not start, exit code {process.returncode}")
        return n
    failures.append(f"{NAME} case {current} (seed {seed}): the process died, exit code {process.returncode}")
    return current + 1


# ---------------------------------------------------------------------- in the worker


def bases() -> dict[str, list[tuple[dict[str, Any], Any, np.ndarray]]]:
    """Per kind, good files of this version: content, ranker, and rows to score."""
    import evenrank as er

    warnings.simplefilter("ignore")
    out: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    draw = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        for file in sorted(SAVED.glob("*.json")):
            kind = file.stem.partition("_")[0]
            if file.stem != "expected" and _at_hand(kind):
                er.load(file).save(path)
                out[kind].append(_base(er, path, draw))
        for kind, ranker in _trained(er):
            ranker.save(path)
            out[kind].append(_base(er, path, draw))
    return {kind: found for kind, found in out.items() if found}


def _base(er: Any, path: Path, draw: np.random.Generator) -> tuple[dict[str, Any], Any, np.ndarray]:
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = draw.normal(size=(8, 3)).round(3)
    rows[::2, 1] = draw.integers(0, 45, 4)
    if "model" in content:
        rows[[1, 5], [0, 2]] = np.nan
    return content, er.load(path), rows


def _at_hand(kind: str) -> bool:
    return kind not in LIBRARY or find_spec(LIBRARY[kind]) is not None


def _trained(er: Any) -> Any:
    """Kinds of trees and networks that the saved files lack."""
    draw = np.random.default_rng(1)
    X, y, qid = draw.normal(size=(300, 3)), draw.integers(0, 2, 300), np.repeat(np.arange(30), 10)
    group = draw.choice(["a", "b"], 300)
    if _at_hand("lightgbm"):
        shared = {"alpha": 0.2, "n_estimators": 3, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
        for options in ({"linear_tree": True}, {"boosting_type": "dart"}, {"num_leaves": 2, "n_estimators": 1}):
            yield (
                "lightgbm",
                er.lightgbm.FairLGBMRanker(**shared | options).fit(X, y, qid=qid, sensitive_features=group),
            )
    if _at_hand("xgboost"):
        shared = {"alpha": 0.2, "n_estimators": 3, "max_depth": 3, "n_jobs": 1}
        for options in (
            {"booster": "gblinear"},
            {"tree_method": "exact", "gamma": 1.0},
            {"num_parallel_tree": 2, "subsample": 0.5},
        ):
            yield "xgboost", er.xgboost.FairXGBRanker(**shared | options).fit(X, y, qid=qid, sensitive_features=group)
    if _at_hand("neural"):
        rows = er.RankingData.from_arrays(X, y, group, qid, feature_names=FEATURES)
        yield "neural", er.torch.FairNeuralRanker("dp", epochs=1, hidden=[4], group_aware=True).fit(rows)


def case(number: int, seed: int, good: dict[str, Any]) -> tuple[str, bytes, Any, Any]:
    """The kind of a case, its file, what the file claims to hold, and the good model it was made from."""
    random = Random(f"{seed}/{number}")
    kind = list(good)[number % len(good)]
    base = random.choice(good[kind])
    data, claimed = hostile_file(base[0], random)
    return kind, data, claimed, base


def tried(path: Path, claimed: Any, base: Any) -> str | None:
    """What is wrong with how one file is taken; None if nothing is."""
    import evenrank as er

    content, ranker, rows = base
    try:
        loaded = er.load(path)
        scores = np.asarray(loaded.predict(_rows(er, content, rows)), float)
        loaded.get_params()
    except er.EvenrankError as error:
        text = str(error)
        short = len(text) < 300 or not text.startswith(path.name)  # names of features may be long
        return None if "\n" not in text and short else f"not one short line: {text[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    if claimed is None:
        expected = np.asarray(ranker.predict(_rows(er, content, rows)), float)
        return None if np.array_equal(scores, expected, equal_nan=True) else "a damaged file gives other scores"
    try:
        expected = scores_of(claimed, rows, FEATURES, _groups(len(rows)))
    except Exception as error:
        return f"loads what another reader refuses ({type(error).__name__}: {str(error)[:80]})"
    if expected is None or not np.isfinite(expected).all() or np.abs(expected).max() > 1e30:
        return None
    slack = 1e-4 * max(1e-6, np.abs(expected).max(), np.abs(scores).max())
    return None if np.abs(scores - expected).max() <= slack else "another reader of the file gives other scores"


def _rows(er: Any, content: dict[str, Any], rows: np.ndarray) -> Any:
    if "model" in content:
        return rows
    zeros = np.zeros(len(rows), np.int64)
    return er.RankingData.from_arrays(rows, zeros, _groups(len(rows)), zeros, feature_names=FEATURES)


def _groups(n: int) -> list[str]:
    return ["ab"[row % 2] for row in range(n)]


def _work(first: int, n: int, seed: int) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is not ours to read
    good = bases()

    def say(number: int, failure: str | None = None, **more: Any) -> None:
        out.write(json.dumps({"case": number, "failure": failure, **more}) + "\n")
        out.flush()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        for number in range(first, n):
            say(number)
            kind, data, claimed, base = case(number, seed, good)
            path.write_bytes(data)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            failure = tried(path, claimed, base)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            if grown > GROWTH:
                failure = f"took {grown // 1000} MB"
            if failure:
                say(number, failure, kind=kind)
    say(n - 1, last=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=int, help="write the file of this case to the output")
    given = parser.parse_args()
    if given.worker:
        _work(*given.worker, given.seed)
    elif given.case is not None:
        sys.stdout.buffer.write(case(given.case, given.seed, bases())[1])
    else:
        failures = run(given.n, given.seed)
        print(*failures, f"{given.n} cases, seed {given.seed}: {len(failures)} failures", sep="\n")


if __name__ == "__main__":
    main()
