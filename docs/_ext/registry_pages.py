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
        "# Every method\n\nThis is the registry that `er.sweep`, `er.bench`, `evenrank train`, `rank` and `bench` use. "
        "`evenrank methods` prints it. An *in-processing* method trains a ranker; a *post-processing* method re-orders "
        "the lists of a ranker that is trained already. *May see the group at serving* means that it needs the group "
        "of every item in a new list; see [law and policy](/howto/law-and-policy.md) before you use such a method.\n\n"
        "| method | what it does | sees the group | needs labels |\n|---|---|---|---|\n"
    )
    for name, method in er.METHODS.items():
        moments = {"training": method.sees.group_at_training, "serving": method.sees.group_at_serving}
        seen = " and ".join(moment for moment, sees in moments.items() if sees) or "never"
        labels = "yes" if method.sees.labels else "no"
        text += f"| [`{name}`](#{name.replace('_', '-')}) | {_cell(method.title)} | {seen} | {labels} |\n"
    for name, method in er.METHODS.items():
        text += f"\n## {name}\n\n{_cell(method.title)}.\n\n"
        labels = "yes" if method.sees.labels else "no"
        facts = {"kind": method.kind, "what it sees": str(method.sees), "needs labels": labels, "extra": method.extra}
        facts |= {"guarantee": method.facts.guarantee, "cost": method.facts.cost, "published": method.facts.reference}
        if method.strength is not None:
            facts["strength"] = f"{method.strength.name}: {method.strength.meaning}"
        text += "\n".join(f"{title}\n: {_cell(value)}\n" for title, value in facts.items() if value)
    return text


def _measures() -> str:
    rows = er.measures_table()
    text = (
        "# Every measure\n\nThis is the registry that `er.measure`, `er.interval`, `er.compare` and the commands read. "
        "`evenrank measures` prints it. Write a name with its cut-off, for example `ndcg@5`. "
        "[Measures](/measures.md) explains them.\n\n"
    )
    columns = list(rows[0])
    text += f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    for row in rows:
        text += f"| `{row['name']}` | " + " | ".join(_cell(row[name]) for name in columns[1:]) + " |\n"
    return text
