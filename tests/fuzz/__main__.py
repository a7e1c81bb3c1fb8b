"""Run the fuzz targets: ``make fuzz N=20000 SEED=1``, or ``python -m fuzz`` with tests/ on the path.

Each target runs in a process of its own, so that one which crashes or hangs is a failure and not the end.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.cases import CASE, CLOCK, PROGRESS, SECONDS, processor_seconds, stop_early, stopped
from fuzz.targets import missing, targets

SHOWN = 20
# A target that does not tell its progress has this long for all its cases.
WHOLE_SECONDS = 6 * 3600


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TARGET", help=f"of {', '.join(targets())}; default: all")
    parser.add_argument("-n", type=int, default=1000, help="cases per target")
    parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    strange = set(asked.names) - set(targets())
    if strange:
        parser.error(f"there is no target {min(strange)}; there are {', '.join(targets())}")
    if asked.inside:
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, stop_early)
        failures = targets()[asked.names[0]].run(asked.n, asked.seed)
        print(json.dumps({"failures": failures, "stopped": stopped()}))
        return 0
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    if asked.case is not None:
        os.environ[CASE] = str(asked.case)
    print(f"seed {seed}", flush=True)
    failed = 0
    chosen = list(asked.names or targets())
    for name in chosen:
        lacking = missing(targets()[name])
        if lacking:
            print(f"{name}: skipped, {lacking} is not installed", flush=True)
            continue
        began = time.monotonic()
        failures, cases = run_apart(name, asked.n, seed)
        failed += bool(failures)
        whole = 1 if asked.case is not None else asked.n
        cases = min(cases, whole)
        early = f" of {whole} (stopped early)" if cases < whole else ""
        print(f"{name}: {cases}{early} cases, {len(failures)} failures, {time.monotonic() - began:.0f} s", flush=True)
        for failure in failures[:SHOWN]:
            print(f"  {failure}", flush=True)
        if failures:
            print(f"  to repeat one: make fuzz TARGET={name} N={asked.n} SEED={seed} CASE=its number", flush=True)
        if early:
            return 130
    return int(failed > 0)


def run_apart(name: str, n: int, seed: int) -> tuple[list[str], int]:
    """The target's failures, and its end if it did not come by itself; and how many cases it had.

    Ctrl-C stops a target after its present case, and its verdict is on those before.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        progress = Path(folder) / "case"
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "fuzz",
            name,
            "-n",
            str(n),
            "--seed",
            str(seed),
            "--inside",
        ]
        answer = (Path(folder) / "answer").open("w+b")
        errors = (Path(folder) / "errors").open("w+b")
        environment = {**os.environ, PROGRESS: str(progress)}
        with answer, errors, subprocess.Popen(command, stdout=answer, stderr=errors, env=environment) as process:
            interrupted = False
            try:
                hung = wait(process, progress)
            except KeyboardInterrupt:
                interrupted = True
                process.send_signal(signal.SIGINT)
                hung = wait(process, progress)
            except BaseException:
                process.kill()
                raise
            case = int(progress.read_text() or 0) if progress.exists() else 0
            cases = case if interrupted else n
            if hung:
                return [f"{name}, seed {seed}, case {case}: no end within {hung}"], cases
            answer.seek(0)
            errors.seek(0)
            if process.returncode and cases == 0:
                return [], 0  # stopped before its first case
            if process.returncode:
                last = errors.read().decode(errors="replace").strip().splitlines()[-3:]
                end = f"the process ended with {process.returncode}: {' / '.join(last)}"
                return [f"{name}, seed {seed}, case {case}: {end[:600]}"], cases
            verdict = json.loads(answer.read().splitlines()[-1])
            return verdict["failures"], case if verdict["stopped"] else n


def wait(process: subprocess.Popen[bytes], progress: Path) -> str:
    """Empty when the process has ended; what was allowed if a case took longer, which ends it."""
    last, since, spent = "", time.monotonic(), 0.0
    while process.poll() is None:
        time.sleep(0.2)
        now, busy = time.monotonic(), processor_seconds(process.pid)
        case = progress.read_text() if progress.exists() else ""
        if case != last:
            last, since, spent = case, now, busy
        # The target itself notices what hangs in Python; it gets the time to say so.
        for taken, allowed, unit in (
            (busy - spent, 3 * SECONDS if last else WHOLE_SECONDS, "s of the processor"),
            (now - since, 3 * CLOCK if last else WHOLE_SECONDS, "s"),
        ):
            if taken > allowed:
                process.kill()
                process.wait()
                return f"{allowed} {unit}"
    return ""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
