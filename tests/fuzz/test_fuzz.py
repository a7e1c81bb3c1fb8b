"""A few hundred cases of each fuzz target; ``make test-fresh`` takes new ones, ``make fuzz`` as many as asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuzz.__main__ as driver
from fuzz import cases
from fuzz.targets import missing, targets

CASES = 500
SEED = int(os.environ.get("EVENRANK_FUZZ_SEED", 1))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", targets())
def test_no_crash_and_no_silent_difference(name: str) -> None:
    target = targets()[name]
    if missing(target):
        pytest.skip(f"{missing(target)} is not installed")
    print(f"EVENRANK_FUZZ_SEED={SEED}")
    assert target.run(CASES, SEED) == [], f"EVENRANK_FUZZ_SEED={SEED}"


def test_a_target_that_is_stopped_gives_its_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    progress = tmp_path / "case"
    monkeypatch.setenv(cases.PROGRESS, str(progress))
    monkeypatch.setattr(cases, "_stopped", False)
    seen = []
    for number in cases.numbers(10):
        seen.append(number)
        if number == 3:
            cases.stop_early()
    assert (seen, progress.read_text()) == ([0, 1, 2, 3], "4")


@pytest.mark.parametrize(
    ("seconds", "clock", "busy", "told"),
    [
        (0.2, 60, False, ""),  # waiting for a processor that others have
        (0.2, 60, True, "took more than 0.2 s of the processor"),
        (60, 0.2, False, "took more than 0.2 s"),
    ],
)
def test_a_case_has_so_long_of_the_processor(
    monkeypatch: pytest.MonkeyPatch, seconds: float, clock: float, busy: bool, told: str
) -> None:
    monkeypatch.setattr(cases, "SECONDS", seconds)
    monkeypatch.setattr(cases, "CLOCK", clock)

    def read() -> None:
        end = time.process_time() + 30
        while busy and time.process_time() < end:
            pass
        time.sleep(0.6)
        raise cases.EvenrankError("done")

    assert cases.outcome(read) == (cases.REFUSED, told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "clock", "hung"),
    [
        ("import time; time.sleep(2)", 60, ""),
        ("while True: pass", 60, "1.5 s of the processor"),
        ("import time; time.sleep(100)", 0.5, "1.5 s"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say how long a process ran")
def test_the_driver_ends_what_hangs_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, clock: float, hung: str
) -> None:
    monkeypatch.setattr(driver, "SECONDS", 0.5)
    monkeypatch.setattr(driver, "CLOCK", clock)
    progress = tmp_path / "case"
    progress.write_text("3")
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        assert driver.wait(process, progress) == hung
        assert process.returncode == (-9 if hung else 0)


@pytest.mark.parametrize(
    ("code", "clock", "answered"),
    [
        ("import time; time.sleep(2); print(1)", 60, True),
        ("while True: pass", 60, False),
        ("import time; time.sleep(100)", 0.5, False),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say how long a process ran")
def test_a_worker_is_given_the_processor_before_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, code: str, clock: float, answered: bool
) -> None:
    monkeypatch.setattr(cases, "CLOCK", clock)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert cases.answers(process.stdout, process.pid, 1) == answered
        process.kill()
