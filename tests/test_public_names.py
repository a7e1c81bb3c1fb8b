"""The public face: every name has its type for mypy and editors, a docstring, and loads by itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import evenrank as er

EXTRAS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "torch": "torch"}
STUB = Path(er.__file__).with_suffix(".pyi")


def stub_names() -> set[str]:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    imported = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    declared = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    return (imported | declared) - {None, "__all__"}


def test_the_stub_lists_exactly_the_public_names() -> None:
    assert stub_names() == set(er.__all__)


@pytest.mark.parametrize("name", er.__all__)
def test_every_name_loads_and_says_what_it_is(name: str) -> None:
    if name in EXTRAS and find_spec(EXTRAS[name]) is None:
        pytest.skip(f"{name} is not installed")
    value = getattr(er, name)
    if not isinstance(value, str | dict):
        assert (value.__doc__ or "").strip()


def test_no_function_is_named_like_a_module() -> None:
    """Importing a module sets its name on the package, and the function would be gone."""
    modules = {path.stem for path in Path(er.__file__).parent.iterdir()}
    assert modules & set(er.__all__) == set(er._MODULES)  # type: ignore[attr-defined]


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        er.nothing  # noqa: B018


SCRIPT = """
import numpy as np
import evenrank as er

data = er.RankingData.from_arrays(np.zeros((2, 1)), [0, 1], ["a", "b"], [1, 1])
reveal_type(data)
reveal_type(er.read("rows.csv"))
reveal_type(er.measure([1.0, 2.0], data, "ndcg@1"))
reveal_type(er.interval([1.0, 2.0], data, "dp@1"))
reveal_type(er.compare([1.0, 2.0], [2.0, 1.0], data, ["dp@1"]))
reveal_type(er.fairness_path(data))
reveal_type(er.FairLinearRanker().fit(data))
reveal_type(er.sweep(data))
reveal_type(er.select(er.sweep(data), "dp"))
reveal_type(er.audit([1.0, 2.0], data))
reveal_type(er.FAStar(0.5).rerank([1.0, 2.0], data))
reveal_type(er.bounds.uniform("dp", n_queries=10, list_length=5, vc=3, min_share=0.1))
reveal_type(er.__version__)
"""
TYPES = [
    "RankingData",
    "RankingData",
    "dict[str",
    "Interval",
    "list[evenrank.comparisons.Comparison]",
    "FairnessPath",
    "FairLinearRanker",
    "Sweep",
    "Choice",
    "Audit",
    "ndarray",
    "Bound",
    "str",
]


def test_mypy_finds_the_type_of_every_public_name(tmp_path: Path) -> None:
    """A user's script that touches every name, checked as strictly as mypy can."""
    file = tmp_path / "user.py"
    everything = "\n".join(f"reveal_type(er.{name})" for name in er.__all__)
    file.write_text(f"{SCRIPT}\n{everything}\n", encoding="utf-8")
    cache = Path(__file__).parents[1] / ".mypy_cache"  # which `make lint` has filled
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(file)]
    command += ["--follow-imports=silent", "--ignore-missing-imports"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = [line for line in done.stdout.splitlines() if "Revealed type is" in line]
    assert not [line for line in done.stdout.splitlines() if ": error: " in line], done.stdout
    revealed = [line.partition('is "')[2].rstrip('"') for line in lines]
    assert len(revealed) == len(TYPES) + len(er.__all__)
    for found, expected in zip(revealed, TYPES, strict=False):
        assert expected in found
    unknown = [name for name, found in zip(er.__all__, revealed[len(TYPES) :], strict=True) if found == "Any"]
    assert unknown == []
