"""Processes that work for this one: they end with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenrank.threads import in_processes

KILLED = """
import os, signal
from joblib import delayed
from evenrank.threads import in_processes

for number in in_processes([delayed(os.getpid)() for _ in range(6)], 2, ordered={ordered}):
    print(number, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_ends_if_its_parent_was_killed_before_it_began() -> None:
    # A process that is not its parent stands for one that is no more; without the watch it would sleep on.
    code = "import time; from evenrank.threads import _follow; _follow(0); time.sleep(60)"
    assert subprocess.run([sys.executable, "-c", code], timeout=50).returncode == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say which processes run")
@pytest.mark.parametrize("ordered", [False, True])
def test_workers_end_when_their_parent_is_killed(ordered: bool) -> None:
    # Its output stays open as long as one of them lives: a pipe behind it would wait.
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(ordered=ordered)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    workers = set(map(int, done.stdout.split()))
    assert workers
    assert os.getpid() not in workers
    end = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, workers))


def test_results_come_in_the_order_of_the_calls_if_asked_for() -> None:
    from joblib import delayed

    calls = [delayed(divmod)(number, 7) for number in range(20)]
    expected = [divmod(number, 7) for number in range(20)]
    for n_jobs in (1, 2):
        assert list(in_processes(calls, n_jobs, ordered=True)) == expected
        assert sorted(in_processes(calls, n_jobs)) == sorted(expected)
