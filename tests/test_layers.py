"""The layers of the design, held as data: a module imports only from its own layer or an earlier one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenrank

SOURCE = Path(evenrank.__file__).parent
LAYERS = [
    {"errors", "extras", "progress"},
    {"row_checks", "data", "ranking"},
    {"notions", "losses", "targets"},
    {"measures", "moments"},
    {"query_sums", "intervals", "comparisons", "bounds"},
    {"io", "features", "datasets"},
    {"rankers", "linear", "rerankers", "boosting"},
    {"lightgbm", "xgboost", "torch", "spark"},
    {"methods"},
    {"audits", "experiment", "paper"},
    {"page"},
    {"cli"},
]
LAYER_OF = {name: number for number, layer in enumerate(LAYERS) for name in layer}
EXEMPT = {"__init__", "__main__"}
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if "data" not in path.parts[:-1])


def unit(module: Path) -> str:
    """The module or package directly under evenrank, as the table names it."""
    return module.parts[0].removesuffix(".py")


def imports(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Full names of everything imported, also inside functions; a name from a package may be a module of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imported_by(module: Path) -> set[str]:
    package = ("evenrank", *module.parts[:-1])
    return set(imports((SOURCE / module).read_text(encoding="utf-8"), package))


def units_in(names: set[str]) -> set[str]:
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "evenrank" and len(part) > 1}


def test_every_module_is_in_the_table() -> None:
    assert {unit(module) for module in MODULES} - EXEMPT <= set(LAYER_OF)
    assert sum(map(len, LAYERS)) == len(LAYER_OF)


@pytest.mark.parametrize("module", [m for m in MODULES if unit(m) not in EXEMPT], ids=str)
def test_module_imports_its_own_layer_or_earlier_ones(module: Path) -> None:
    used = units_in(imported_by(module)) & set(LAYER_OF)
    later = {name for name in used if LAYER_OF[name] > LAYER_OF[unit(module)]}
    assert not later, f"{module} imports {sorted(later)}, which come after it"


@pytest.mark.parametrize("module", [m for m in MODULES if unit(m) not in ("rankers", "linear", "boosting")], ids=str)
def test_only_rankers_touch_scikit_learn(module: Path) -> None:
    assert not [name for name in imported_by(module) if name.split(".")[0] == "sklearn"]


def test_imports_inside_functions_and_relative_ones_are_seen() -> None:
    source = "def f():\n    from ..rankers import x\n    import evenrank.cli as c\n    from evenrank import page\n"
    found = units_in(set(imports(source, ("evenrank", "io"))))
    assert found == {"rankers", "cli", "page"}
    assert units_in(set(imports("from . import files", ("evenrank", "io")))) == {"io"}


@pytest.mark.parametrize("statement", ["import evenrank", "import evenrank.measures, evenrank.notions, evenrank.data"])
def test_import_is_light_and_silent(statement: str) -> None:
    heavy = ["torch", "pandas", "polars", "matplotlib", "altair", "scipy.optimize", "sklearn", "lightgbm", "xgboost"]
    code = f"{statement}\nimport sys\nprint(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
