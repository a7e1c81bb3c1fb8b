"""A few hundred cases of each fuzz target; ``make test-fresh`` takes new ones, ``make fuzz`` as many as asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
