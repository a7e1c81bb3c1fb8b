"""The benchmarks' record: what a script prints is kept as numbers, with the commit and without paths of the machine."""

from __future__ import annotations

import ast
import importlib.util
import json
import platform
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


@pytest.fixture
def common(tmp_path, monkeypatch) -> ModuleType:
    described = importlib.util.spec_from_file_location("common", FOLDER / "common.py")
    assert described is not None
    module = importlib.util.module_from_spec(described)
    monkeypatch.setitem(sys.modules, "common", module)  # dataclasses look their module up
    described.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(module, "cap_threads", lambda threads: None)
    return module


def recorded(common: ModuleType, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict:
    monkeypatch.setattr(sys, "argv", ["somewhere/race.py", *options])
    common.start("A race", ["no-such-package"], threads=1)
    cells = ["ours", common.seconds(0.001234), common.times(12.345), "1,200", "+4.5%", "0.91 ± 0.02", 7, float("nan")]
    common.table(["", "time", "ratio", "rows", "change", "quality", "k", "none"], [cells])
    common.note("the same to 1e-9")
    return json.loads(common.RECORD.path.read_text(encoding="utf-8"))


def test_numbers_are_kept_as_measured(common, monkeypatch, capsys):
    found = recorded(common, monkeypatch)
    assert found["results"] == [
        {
            "columns": ["", "time", "ratio", "rows", "change", "quality", "k", "none"],
            "rows": [["ours", 0.001234, 12.345, 1200.0, 0.045, "0.91 ± 0.02", 7, "nan"]],
        },
        {"note": "the same to 1e-9"},
    ]
    printed = capsys.readouterr().out
    assert "1.23 ms" in printed
    assert "12.3×" in printed


def test_it_says_what_ran_and_on_what(common, monkeypatch):
    found = recorded(common, monkeypatch)
    assert {"title", "date", "commit", "quick", "options", "machine", "versions", "results"} == set(found)
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["no-such-package"] == "not installed"
    assert found["machine"]["cores"] >= 1


def test_no_path_of_the_machine_is_kept(common, monkeypatch):
    found = recorded(common, monkeypatch, "--data", "/somewhere/of/mine", "--threads", "2")
    assert found["options"] == ["--data", "--threads", "2"]
    assert "somewhere" not in json.dumps(found)


def test_a_quick_run_does_not_replace_a_whole_one(common, monkeypatch, tmp_path):
    assert recorded(common, monkeypatch)["quick"] is False
    assert recorded(common, monkeypatch, "--quick")["quick"] is True
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")} == {"race.json", "quick/race.json"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_keeps_a_record(script):
    """They do by printing with `table` (and `note`) after `start`."""
    calls = [
        node.func for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    named = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    assert {"start", "table"} <= named
