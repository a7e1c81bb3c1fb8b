"""The benchmarks page: every record in benchmarks/results/, with its date, commit, machine and versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outside import ROOT

RESULTS = ROOT / "benchmarks" / "results"
HEAD = """# Benchmarks

Each table is a record that a script in `benchmarks/` wrote when it ran: the date, the commit and the machine are its
own. Our side and the peer ran in one run on the same data; times are in seconds unless a column says otherwise. A run
beside other work is marked *busy*: its times are upper bounds and its ratios are rough. Quick runs have smaller sizes.
[What each script measures](/generated/benchmarks-notes.md), and older numbers, have a page of their own.
"""


def _number(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, float):
        if value == 0 or 1e-3 <= abs(value) < 1e5:
            return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
        return f"{value:.1e}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def _table(part: dict[str, Any]) -> str:
    columns = [str(name).replace("|", "\\|") or " " for name in part["columns"]]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(map(_number, row))} |" for row in part["rows"]]
    return "\n".join(lines) + "\n"


def _record(path: Path) -> str:
    record = json.loads(path.read_text(encoding="utf-8"))
    machine, options = record["machine"], " ".join(record["options"])
    busy = " (busy)" if machine.get("busy") else ""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    text = f"\n## {record['title']}{', quick' if record['quick'] else ''}\n\n"
    command = f"python benchmarks/{path.stem}.py {options}".strip()
    where = f"{machine['cores']} cores{busy}, {machine['threads']} threads"
    text += f"{record['date']}, commit `{record['commit']}`, {where}.\n\n"
    text += f"```text\n{command}\n```\n\n"
    for part in record["results"]:
        text += (_table(part) if isinstance(part, dict) and "columns" in part else f"{_words(part)}\n") + "\n"
    return text + f"Versions: {versions}.\n"


def _words(part: Any) -> str:
    return " ".join(str(value) for value in part.values()) if isinstance(part, dict) else str(part)


def pages() -> dict[str, str]:
    files = [*sorted(RESULTS.glob("*.json")), *sorted((RESULTS / "quick").glob("*.json"))]
    # A whole run says all that a quick one of the same script says.
    files = [path for path in files if path.parent == RESULTS or not (RESULTS / path.name).exists()]
    return {"benchmarks.md": HEAD + "".join(map(_record, files))}
