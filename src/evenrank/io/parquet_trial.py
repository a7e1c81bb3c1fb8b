"""Parquet files are first read in a process of their own: a damaged one can end the process that reads it.

Sizes in damaged pages become requests for memory that no machine has, for which the library ends its process; it may
do so after it has already given an error, in another thread. The trial costs a start of Python and reading twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

CHILD = """
import json, sys
sys.path[:] = json.loads(sys.stdin.readline())
import polars as pl
print("{}", flush=True)
for line in sys.stdin:
    path, columns = json.loads(line)
    answer = {"error": ""}
    try:
        pl.read_parquet(path, columns=columns, glob=False, hive_partitioning=False)
    except BaseException as error:
        answer["error"] = str(error) or type(error).__name__
    print(json.dumps(answer), flush=True)
"""
DIED = "it ended the process that tried to read it"


class Trial:
    """A process that reads files on trial."""

    def __init__(self) -> None:
        self.used = False
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, question: object) -> dict[str, str] | None:
        """Send a line and wait for its answer; None if the process ended instead."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except (BrokenPipeError, OSError):
            return None
        return dict(json.loads(answer)) if answer.endswith("\n") else None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


_one_at_a_time = Lock()
_kept: list[Trial] = []
_keep = False


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Use one process for all files that are read meanwhile."""
    global _keep
    before, _keep = _keep, True
    try:
        yield
    finally:
        _keep = before
        if not _keep:
            _end()


def failure(path: Path, columns: Sequence[str]) -> str:
    """Say why these columns of a file cannot be read, or give ""; also where no process can be started."""
    if not sys.executable or getattr(sys, "frozen", False):
        return ""
    with _one_at_a_time:
        answer = None
        try:
            for _ in range(2):
                trial = _trial()
                if trial is None:
                    return ""
                fresh, trial.used = not trial.used, True
                answer = trial.ask([os.path.abspath(path), list(columns)])
                if answer is not None or fresh:
                    break
                _end()  # what it read before may have ended it
            return DIED if answer is None else answer["error"]
        finally:
            if not _keep or answer is None:
                _end()


def _trial() -> Trial | None:
    """A process that is ready; None where it does not start here."""
    if not _kept:
        try:
            _kept.append(Trial())
        except OSError:
            return None
        if _kept[0].ask(sys.path) is None:
            _end()
            return None
    return _kept[0]


def _end() -> None:
    while _kept:
        _kept.pop().close()
