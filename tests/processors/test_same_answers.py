"""One question, one answer, whatever the processor: numbers to 1e-9, orders, verdicts and words exactly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from processors.compare import differences

HERE = Path(__file__).parent
TOOL = HERE.parents[1] / "tools" / "as_processor.py"
SHOWN = 12


def run(*words: str | Path) -> str:
    return subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, text=True).stdout


@cache
def processors() -> list[str]:
    return run(TOOL).split()


@cache
def answers(processor: str) -> dict[str, Any]:
    """The answers as this processor gives them."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "answers.json"
        run(TOOL, processor, sys.executable, HERE / "answers.py", out)
        return dict(json.loads(out.read_text()))


def faults(answer: Any, place: str = "") -> Iterator[str]:
    """Places of questions that ended in a traceback, or of commands that ended in an error: they compare nothing."""
    if isinstance(answer, dict):
        yield from (f"{place}: {answer[key]}" for key in ("traceback", "error") if isinstance(answer.get(key), str))
        for key, part in answer.items():
            yield from faults(part, f"{place}/{key}")


@pytest.mark.processors
def test_every_question_is_answered() -> None:
    assert list(faults(answers(processors()[0]))) == []


@pytest.mark.processors
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_answers_are_the_same(number: int) -> None:
    if number >= len(processors()):
        pytest.skip("this machine cannot stand in for more processors")
    found = list(differences(answers(processors()[0]), answers(processors()[number])))
    assert found[:SHOWN] == [], f"{len(found)} differences of {processors()[0]} and {processors()[number]}"


def test_differences_are_seen() -> None:
    one = {"a": [1.0, 2, "x 0.123456789012"], "b": float("nan"), "c": {"d": True}}
    same = {"a": [1.0 + 1e-12, 2, "x 0.123456789013"], "b": float("nan"), "c": {"d": True}}
    assert list(differences(one, same)) == []
    for other in (
        {**one, "a": [1.0 + 1e-6, 2, "x 0.123456789012"]},
        {**one, "a": [1.0, 3, "x 0.123456789012"]},
        {**one, "a": [1.0, 2, "y 0.123456789012"]},
        {**one, "a": [1.0, 2]},
        {**one, "b": 0.0},
        {**one, "c": {"d": False}},
        {**one, "c": {}},
    ):
        assert len(list(differences(one, other))) == 1, other
