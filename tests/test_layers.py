"""The layers of the design, held as data: a module imports only from its own layer or an earlier one."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

_SPEC = spec_from_file_location("import_graph", Path(__file__).parents[1] / "tools" / "import_graph.py")
assert _SPEC is not None
assert _SPEC.loader is not None
graph = module_from_spec(_SPEC)
_SPEC.loader.exec_module(graph)

LAYERS = [
    {"errors"},
    {"extras", "checks", "progress", "quiet", "threads", "wording", "rounding", "discounts"},
    {"row_checks", "labels", "categories", "frame_columns", "rows", "data", "ranking", "centering"},
    {"contrasts", "notions", "losses", "targets"},
    {"measures", "design_columns", "moment_sums", "moments"},
    {
        "group_table",
        "query_sums",
        "cell_rows",
        "statistic",
        "interval_ends",
        "jackknife",
        "confidence",
        "inference",
        "spread",
        "comparison_totals",
        "comparison_jackknife",
        "comparisons",
        "precision",
        "planning",
        "bounds",
    },
    {"io", "features", "datasets"},
    {"rankers"},
    {"linear", "rerankers", "boosting"},
    {"lightgbm", "xgboost", "torch", "ir_measures"},
    {"methods"},
    {"audits", "experiment", "export"},
    {"paper", "leaderboard", "monitoring"},
    {"page"},
    {"engines"},
    {"duckdb", "spark"},
    {"cli"},
]
LAYER_OF = {name: number for number, layer in enumerate(LAYERS) for name in layer}
MODULES = [module for module in graph.modules() if graph.unit(module) not in graph.FACADE]
SCIKIT_LEARN = ("rankers", "linear", "boosting", "torch")
LONGEST = 350  # lines of a module


def test_every_unit_is_in_the_table() -> None:
    assert graph.units() == set(LAYER_OF)
    assert sum(map(len, LAYERS)) == len(LAYER_OF)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_module_imports_its_own_layer_or_earlier_ones(module: Path) -> None:
    names = graph.imported_by(module)
    assert "evenrank.*" not in names, f"{module} imports by a name that cannot be read; write it out"
    used = graph.units_in(names) & set(LAYER_OF)
    later = {name for name in used if LAYER_OF[name] > LAYER_OF[graph.unit(module)]}
    assert not later, f"{module} imports {sorted(later)}, which come after it"


def test_no_cycle_between_packages_and_the_drawing_is_up_to_date() -> None:
    edges = graph.edges()
    assert graph.cycles(edges) == []
    document = graph.DOCUMENT.read_text(encoding="utf-8")
    assert graph.drawn(document, edges) == document, "run python tools/import_graph.py"


def test_a_cycle_is_found() -> None:
    assert graph.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


@pytest.mark.parametrize("module", [m for m in MODULES if graph.unit(m) not in SCIKIT_LEARN], ids=str)
def test_only_rankers_touch_scikit_learn(module: Path) -> None:
    assert not [name for name in graph.imported_by(module) if name.split(".")[0] == "sklearn"]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules_are_short(module: Path) -> None:
    lines = len((graph.SOURCE / module).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{module} has {lines} lines: is it still one idea?"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_module_needs_its_neighbours_private_names(module: Path) -> None:
    private = [
        name
        for name in graph.imported_by(module)
        if name.startswith("evenrank.") and any(p.startswith("_") and p != "__version__" for p in name.split("."))
    ]
    assert private == []


def test_imports_of_every_form_are_seen() -> None:
    source = (
        "from typing import TYPE_CHECKING\n"
        "def f():\n    from ..rankers import x\n    import evenrank.cli as c\n    from evenrank import page\n"
        "if TYPE_CHECKING:\n    from evenrank.paper import y\n"
        "import_module('evenrank.torch')\nfrom evenrank import report_page\n"
    )
    seen = graph.units_in(set(graph.imports(source, ("evenrank", "io"))))
    assert seen == {"rankers", "cli", "page", "paper", "torch"}
    assert graph.units_in(set(graph.imports("from . import files", ("evenrank", "io")))) == {"io"}
    assert "evenrank.*" in set(graph.imports("import_module(f'evenrank.{name}')", ("evenrank",)))


@pytest.mark.parametrize("statement", ["import evenrank", "import evenrank.measures, evenrank.notions, evenrank.data"])
def test_import_is_light_and_silent(statement: str) -> None:
    heavy = [
        "torch",
        "pandas",
        "polars",
        "matplotlib",
        "altair",
        "scipy.optimize",
        "sklearn",
        "lightgbm",
        "xgboost",
        "jinja2",
        "duckdb",
        "pyspark",
    ]
    code = f"{statement}\nimport sys\nprint(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_the_commands_that_train_nothing_load_no_scikit_learn() -> None:
    """It takes 100 MB and more than a second, of every audit as well if one command imports it."""
    heavy = ["sklearn", "scipy.stats", "pandas"]
    code = f"import evenrank.cli.app, sys\nprint(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
