"""Who imports whom in src/evenrank, and the drawing of it in ARCHITECTURE.md.

Run ``python tools/import_graph.py`` to renew the drawing; tests/test_layers.py holds it up to date. A unit is a module
or package directly under evenrank. Imports inside functions, under TYPE_CHECKING, by string ("evenrank.torch") and of
public names (``from evenrank import measure``) all count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "evenrank"
DOCUMENT = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- import graph: tools/import_graph.py -->", "<!-- end of import graph -->"
FACADE = {"__init__", "__main__"}  # lists the public names; starts the program


def modules() -> list[Path]:
    """Every module, relative to the package."""
    return sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def unit(module: Path) -> str:
    """The module or package directly under evenrank that a module belongs to."""
    return module.parts[0].removesuffix(".py")


def units() -> set[str]:
    """Every unit but the facade."""
    return {unit(module) for module in modules()} - FACADE


def public_names() -> dict[str, str]:
    """Public name → the unit it is taken from."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_NAMES":
            return {name: home.partition(".")[0] for name, home in ast.literal_eval(node.value).items()}
    raise ValueError("evenrank/__init__.py has no table _NAMES")


def imports(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Full names of everything imported; a name from a package may be a module of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("evenrank."):
            yield node.value
        elif isinstance(node, ast.JoinedStr) and ast.unparse(node).startswith("f'evenrank.{"):
            yield "evenrank.*"  # any unit


def imported_by(module: Path) -> set[str]:
    """Full names of everything that a module imports."""
    package = ("evenrank", *module.parts[:-1])
    return set(imports((SOURCE / module).read_text(encoding="utf-8"), package))


def units_in(names: set[str]) -> set[str]:
    """The units that full names belong to; a public name counts as the unit it is taken from."""
    public = public_names()
    parts = [name.split(".") for name in names]
    return {public.get(part[1], part[1]) for part in parts if part[0] == "evenrank" and len(part) > 1}


def edges() -> dict[str, set[str]]:
    """Unit → the other units it imports."""
    known = units()
    out: dict[str, set[str]] = {name: set() for name in known}
    for module in modules():
        if unit(module) in known:
            out[unit(module)] |= units_in(imported_by(module)) & known - {unit(module)}
    return out


def reach(start: str, graph: dict[str, set[str]]) -> set[str]:
    """Everything that can be come to from a unit."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Units that import each other, directly or not."""
    return sorted(name for name in graph if name in reach(name, graph))


def drawing(graph: dict[str, set[str]]) -> str:
    """A Mermaid drawing of the edges that do not follow from others."""
    lines = ["```mermaid", "graph BT"]
    for name in sorted(graph):
        indirect = set().union(*(reach(other, graph) for other in graph[name]))
        lines += [f"    {name} --> {other}" for other in sorted(graph[name] - indirect)]
    return "\n".join([*lines, "```"])


def drawn(document: str, graph: dict[str, set[str]]) -> str:
    """The document with its drawing renewed."""
    head, _, rest = document.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{drawing(graph)}\n{END}{tail}"


if __name__ == "__main__":
    found = edges()
    if cycles(found):
        sys.exit(f"import cycle between {', '.join(cycles(found))}")
    DOCUMENT.write_text(drawn(DOCUMENT.read_text(encoding="utf-8"), found), encoding="utf-8")
