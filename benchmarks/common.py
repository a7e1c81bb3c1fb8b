"""What the benchmarks share: threads, timing, memory, printing, and the record of every run."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module, metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

MISSING = "not installed"
RESULTS = Path(__file__).parent / "results"


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    made.add_argument("--threads", type=int, default=2, help="of BLAS and OpenMP, on every side (default: 2)")
    return made


def peer(name: str) -> Any:
    """A module to compare with, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


# ---------------------------------------------------------------------- the record


class Measured(str):
    """A number as it is printed, which the record keeps as it was measured: seconds, or a plain ratio."""

    value: float

    @classmethod
    def of(cls, value: float, text: str) -> Measured:
        made = cls(text)
        made.value = value
        return made


@dataclass
class Record:
    """A run as a JSON file: where and on what it ran, and every table and note it printed.

    A whole run is ``results/<script>.json``, a quick one ``results/quick/<script>.json``; a new run replaces the old.
    Times are seconds, ratios plain numbers.
    """

    about: dict[str, Any] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)
    path: Path | None = None  # None before `start`, and in processes of a script's own

    def begin(self, title: str, packages: Sequence[str], threads: int) -> None:
        quick = "--quick" in sys.argv[1:]
        self.path = RESULTS / ("quick" if quick else "") / f"{Path(sys.argv[0]).stem}.json"
        self.parts = []
        load, cores = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan, os.cpu_count() or 1
        self.about = {
            "title": title,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "commit": commit(),
            "quick": quick,
            "options": [option for option in sys.argv[1:] if os.sep not in option],
            "machine": {
                "cores": cores,
                "processor": platform.machine(),
                "kernels": sorted({str(info["architecture"]) for info in threadpool_info() if "architecture" in info}),
                "system": platform.system(),
                "threads": threads,
                # Work of others at the start: times on a busy machine are upper bounds, and ratios are rough.
                "busy": None if math.isnan(load) else load > 0.25 * cores,
            },
            "versions": {"python": platform.python_version()} | {name: _version(name) for name in packages},
        }

    def add(self, part: dict[str, Any]) -> None:
        """Write at once, so that a run which is stopped leaves what it found."""
        if self.path is None:
            return
        self.parts.append(part)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        about = json.dumps(self.about, indent=1, ensure_ascii=False).removesuffix("\n}")
        parts = ",\n".join(map(_lines, self.parts))
        self.path.write_text(f'{about},\n "results": [\n{parts}\n ]\n}}\n', encoding="utf-8")


def _lines(part: dict[str, Any]) -> str:
    """A part as JSON, one line per row of a table, so that two runs are easy to compare."""
    if "rows" not in part:
        return "  " + json.dumps(part, ensure_ascii=False)
    columns = json.dumps(part["columns"], ensure_ascii=False)
    rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in part["rows"])
    return f'  {{"columns": {columns},\n   "rows": [\n{rows}\n  ]}}'


RECORD = Record()


def commit() -> str:
    """The commit that runs, marked if files differ from it; "unknown" outside a repository."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(RESULTS.parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "..", ":(exclude)results")
        return git("rev-parse", "--short=12", "HEAD") + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def as_recorded(cell: Any) -> Any:
    """A cell as a number where it is one.

    >>> as_recorded(seconds(0.0123)), as_recorded("1,200"), as_recorded("+4.5%"), as_recorded("–"), as_recorded("torch")
    (0.0123, 1200.0, 0.045, '–', 'torch')
    """
    if isinstance(cell, Measured):
        return float(f"{cell.value:.5g}")
    if isinstance(cell, int | float):
        return cell if math.isfinite(cell) else str(cell)
    text = str(cell)
    plain = text.replace(",", "").removesuffix("%")
    try:
        number = float(plain)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return round(number / 100, 12) if text.endswith("%") else number


def note(text: str) -> None:
    """Print a finding and keep it."""
    print(text, flush=True)
    RECORD.add({"note": text.strip()})


# ---------------------------------------------------------------------- running


def start(title: str, packages: Sequence[str], *, threads: int) -> None:
    """Cap the threads of all sides alike, say on what this runs, and begin the record."""
    cap_threads(threads)
    RECORD.begin(title, ("evenrank", "numpy", "scipy", *packages), threads)
    print(f"{title}\n{'=' * len(title)}")
    print(
        f"{os.cpu_count()} cores, at most {threads} BLAS/OpenMP threads on every side; "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
    print(
        ", ".join(f"{name} {_version(name)}" for name in ("evenrank", "numpy", "scipy", *packages)) + "\n", flush=True
    )


def cap_threads(threads: int) -> None:
    threadpool_limits(threads)
    for module in {"torch", "numba"} & set(sys.modules):
        sys.modules[module].set_num_threads(min(threads, os.cpu_count() or 1))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return MISSING


def best(function: Callable[[], Any], repeats: int, *, warm_up: bool = True) -> float:
    """Seconds of the fastest of ``repeats`` calls, after one that is not counted."""
    if warm_up:
        function()
    return min(timed(function)[0] for _ in range(repeats))


def timed(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    begin = clock()
    result = function()
    return clock() - begin, result


def best_of_each(
    functions: Sequence[Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """`best` of each, taken in turns, so that a slow spell of the machine falls on every side.

    By ``time.process_time``, processor seconds: for one thread on a machine that has other work.
    """
    for function in functions:
        function()
    rounds = [[timed(function, clock)[0] for function in functions] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


@dataclass
class Peak:
    """Largest anonymous memory seen, in MB: the process's own, without pages of mapped files."""

    before: float
    highest: float

    @property
    def growth(self) -> float:
        return self.highest - self.before


def anonymous_mb() -> float:
    """RssAnon of this process, or NaN where the system does not report it."""
    return _status_mb("RssAnon")


def highest_resident_mb() -> float:
    """The most this process ever held, pages of mapped files included, or NaN."""
    return _status_mb("VmHWM")


def _status_mb(name: str) -> float:
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))
    except (OSError, StopIteration):
        return float("nan")


@contextmanager
def watch_memory(every: float = 0.01) -> Iterator[Peak]:
    """Sample the anonymous memory while the block runs."""
    now = anonymous_mb()
    peak = Peak(now, now)
    done = threading.Event()

    def sample() -> None:
        while not done.wait(every):
            peak.highest = max(peak.highest, anonymous_mb())

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peak
    finally:
        done.set()
        sampler.join()
        peak.highest = max(peak.highest, anonymous_mb())


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call in a process of its own, so that memory kept from earlier work is not counted."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print aligned text, the first column to the left, the others to the right, and keep the numbers."""
    RECORD.add({"columns": list(columns), "rows": [list(map(as_recorded, row)) for row in rows]})
    texts = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for number, row in enumerate(texts):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print()


def seconds(value: float) -> Measured:
    if value >= 1:
        text = f"{value:.2f} s"
    else:
        text = f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"
    return Measured.of(value, text)


def times(ratio: float) -> Measured:
    return Measured.of(ratio, f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×")
