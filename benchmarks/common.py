"""What the benchmarks share: threads, timing, memory, and printing."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from multiprocessing import get_context
from typing import Any

from threadpoolctl import threadpool_limits

MISSING = "not installed"


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


def start(title: str, packages: Sequence[str], *, threads: int) -> None:
    """Cap the threads of all sides alike and say on what this runs."""
    cap_threads(threads)
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


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def best_of_each(functions: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """`best` of each, taken in turns, so that a slow spell of the machine falls on every side."""
    for function in functions:
        function()
    rounds = [[timed(function)[0] for function in functions] for _ in range(repeats)]
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
    """Print aligned text: the first column to the left, the others to the right."""
    texts = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for number, row in enumerate(texts):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print()


def seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def times(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×"
