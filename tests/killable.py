"""Sweeps in processes of their own, to be killed: run as a program, this forks one for each line on its stdin.

The modules are imported once and each sweep is a fork, which starts at once. A line of JSON holds the folder and the
sweep's options; the answer is the fork's process id, and later how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

METHODS = ["amortized", "per_query", "fastar", "deltr"]
OPTIONS: dict[str, Any] = {
    "methods": METHODS,
    "notions": ["dp", "eop"],
    "strengths": [0, 0.1, 0.3],
    "ks": [3, 5],
    "folds": 6,
    "examples": 8,
}


class Forks:
    """The program, from the outside."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def start(self, out: str, *, die_at: int | None = None, **options: Any) -> int:
        """Begin a sweep; its process id. ``die_at``: it kills itself at that step of writing files, counted from 0."""
        assert self._process.stdin is not None
        asked = {"out": out, "die_at": die_at, "options": {**OPTIONS, **options}}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def wait(self) -> int:
        """The exit code of the sweep that was started last; minus the signal if one killed it."""
        return int(self._answer())

    def run(self, out: str, **asked: Any) -> int:
        self.start(out, **asked)
        return self.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


def die_at(step: int) -> None:
    """SIGKILL this process before its ``step``-th step of writing files: a file made, moved, or forced to disk."""
    import tempfile

    left = [step]

    def counted(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return function(*args, **kwargs)

        return call

    os.fsync, os.replace, os.mkdir = counted(os.fsync), counted(os.replace), counted(os.mkdir)
    tempfile.mkstemp = counted(tempfile.mkstemp)


def main() -> None:
    import warnings

    import evenrank as er
    import evenrank.linear.deltr
    import evenrank.rerankers.fastar

    data = er.datasets.german_credit("age", lists=60, items=12)
    er.sweep  # noqa: B018 - imports it
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            warnings.simplefilter("ignore")
            if asked["die_at"] is not None:
                die_at(asked["die_at"])
            code = 1
            try:
                er.sweep(data, out=asked["out"], **asked["options"])
                code = 0
            finally:
                os._exit(code)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
