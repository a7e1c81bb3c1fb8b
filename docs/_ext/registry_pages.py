"""The tables of methods and of measures, from the registries that the program itself reads."""

from __future__ import annotations

from typing import Any

import evenrank as er


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    elif isinstance(value, dict):
        value = ", ".join(f"{name}={default}" for name, default in value.items())
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def pages() -> dict[str, str]:
    return {"methods.md": _methods(), "measures.md": _measures()}


def _methods() -> str:
    text = (
        "# Every method\n\nThe registry that `er.sweep`, `er.bench`, `evenrank train`, `rank` and `bench` read; "
        "`evenrank methods` prints it.\n"
    )
    for name, method in er.METHODS.items():
        text += f"\n## {name}\n\n{_cell(method.title)}.\n\n"
        facts = {"kind": method.kind, "may see": str(method.sees), "extra": method.extra}
        facts |= {"guarantee": method.facts.guarantee, "cost": method.facts.cost, "published": method.facts.reference}
        if method.strength is not None:
            facts["strength"] = f"{method.strength.name}: {method.strength.meaning}"
        text += "\n".join(f"{title}\n: {_cell(value)}\n" for title, value in facts.items() if value)
    return text


def _measures() -> str:
    rows = er.measures_table()
    text = (
        "# Every measure\n\nThe registry that `er.measure`, `er.interval`, `er.compare` and the command line read; "
        "`evenrank measures` prints it. A name is asked for with its cut-off, as `ndcg@5`.\n\n"
    )
    columns = list(rows[0])
    text += f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    for row in rows:
        text += f"| `{row['name']}` | " + " | ".join(_cell(row[name]) for name in columns[1:]) + " |\n"
    return text
