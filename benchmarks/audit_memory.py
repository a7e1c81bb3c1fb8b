"""Peak memory and seconds of `evenrank audit` as rows, groups, cut-offs and list lengths grow.

Each case is a process of its own, the whole command: interpreter, libraries, reading the file, auditing, printing JSON.
Memory is all that is resident (VmHWM); seconds are the processor's, so that other work on the machine adds little.
`--before PATH` runs the same with the `src` folder of an older checkout, prints both, and compares the numbers printed
(cases that took the older one more than `--memory` GB or `--seconds` are cut off and said to be so).
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common

SRC = Path(__file__).resolve().parents[1] / "src"
# The command as a user runs it; what it held at its highest goes to the file named by the last argument.
COMMAND = """
import sys, time
from evenrank.cli import main
try:
    main(sys.argv[1:-1])
finally:
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    open(sys.argv[-1], "w").write(f"{int(peak) / 1024} {time.process_time()}")
"""


@dataclass(frozen=True)
class Case:
    """Rows of a made-up log and the cut-offs to audit it at."""

    rows: int
    groups: int
    length: int
    cuts: int = 0  # 0: the default cut-offs
    suffix: str = ".parquet"

    @property
    def options(self) -> list[str]:
        return ["--k", ",".join(map(str, range(1, self.cuts + 1)))] if self.cuts else []


CASES = (
    Case(100_000, 6, 10),
    Case(100_000, 20, 10),
    Case(100_000, 60, 10),
    Case(100_000, 6, 1),
    Case(100_000, 6, 1000),
    Case(100_000, 6, 10, 1000),
    Case(100_000, 6, 1000, 100),
    Case(100_000, 6, 10, suffix=".csv"),
    Case(1_000_000, 6, 10),
    Case(1_000_000, 6, 10, suffix=".csv"),
    Case(1_000_000, 60, 10),
    Case(1_000_000, 6, 1),
)


def write_log(path: Path, case: Case) -> None:
    """Lists of equal length; a tenth of the groups unknown, a fifth of the scores tied, the groups not alike."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(case.rows + case.groups)
    group = rng.integers(0, case.groups, case.rows)
    score = np.round(rng.standard_normal(case.rows) + group / case.groups / 4, 1 if case.length < 100 else 3)
    names = np.array([f"group {code}" for code in range(case.groups)] + [""])
    known = np.where(rng.random(case.rows) < 0.9, group, case.groups)
    frame = pl.DataFrame(
        {
            "qid": np.arange(case.rows) // case.length,
            "item": np.arange(case.rows),
            "relevance": (rng.random(case.rows) < 0.3).astype(np.int64),
            "group": names[known],
            "score": score,
        }
    ).with_columns(pl.col("group").replace("", None))
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)


def run(source: Path, path: Path, case: Case, *, memory: float, seconds: float) -> tuple[float, float, Any]:
    """Peak in MB, seconds and the JSON of one audit; NaN and None if it was cut off."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30), resource.RLIM_INFINITY))

    with tempfile.TemporaryDirectory() as folder:
        told, out = Path(folder) / "told", Path(folder) / "audit.json"
        arguments = ["audit", str(path), "--json", "-o", str(out), *case.options]
        try:
            subprocess.run(
                [sys.executable, "-c", COMMAND, *arguments, str(told)],
                env={**os.environ, "PYTHONPATH": str(source)},
                preexec_fn=limit,
                check=True,
                capture_output=True,
                timeout=seconds,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return math.nan, math.nan, None
        peak, took = map(float, told.read_text().split())
        return peak, took, json.loads(out.read_text())


def differences(one: Any, two: Any) -> float:
    """The largest difference of two nested values, relative to those above 1; infinite if it is no number."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return max((differences(one[key], two[key]) for key in one), default=0.0)
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return max(map(differences, one, two), default=0.0)
    if isinstance(one, float) and isinstance(two, float | int):
        return abs(one - two) / max(1.0, abs(one))
    return 0.0 if one == two else math.inf


def main() -> None:
    made = common.parser(__doc__)
    made.add_argument("--before", type=Path, help="the src folder of an older checkout, run beside this one")
    made.add_argument("--memory", type=float, default=8.0, help="GB of address space at which a run is cut off")
    made.add_argument("--seconds", type=float, default=300.0, help="after which a run is cut off")
    args = made.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)
    common.start("Memory of an audit", ["polars"], threads=args.threads)
    sources = [SRC] if args.before is None else [args.before, SRC]
    columns = ["rows × groups", "list", "cut-offs", "file", *["MB", "seconds"] * len(sources)]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for case in [case for case in CASES if case.rows <= 100_000 or not args.quick]:
            path = Path(folder) / f"log{case.suffix}"
            common.in_fresh_process(write_log, path, case)
            runs = [run(source, path, case, memory=args.memory, seconds=args.seconds) for source in sources]
            shown = [text for peak, took, _ in runs for text in (f"{peak:.0f}", f"{took:.1f}")]
            line = [f"{case.rows:,} × {case.groups}", case.length, case.cuts or 4, case.suffix, *shown]
            if len(runs) == 2:
                both = all(result is not None for _, _, result in runs)
                line.append(f"{differences(runs[0][2], runs[1][2]):.1g}" if both else "–")
            lines.append(line)
            print(*line, file=sys.stderr, flush=True)
    common.table([*columns, "difference"] if args.before else columns, lines)


if __name__ == "__main__":
    main()
