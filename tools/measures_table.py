"""The table of measures in docs/measures.md, from the registry.

Run ``python tools/measures_table.py`` to renew it; tests/measures/test_page.py holds it up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenrank.measures import measures_table

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "measures.md"
BEGIN, END = "<!-- measures: tools/measures_table.py -->", "<!-- end of measures -->"
CUT = {"needed": "@k", "optional": "[@k]", "none": ""}
KINDS = (
    ("Quality", {"ndcg", "precision", "recall", "mrr"}),
    ("Gaps and ratios of selection and exposure", {"dtr", "dir", "exposure_gap", "exposure_ratio", "four_fifths"}),
    ("Shares of exposure, expected exposure", {"awrf", "awrf_ndcg"}),
    ("The first ranks", {"min_skew", "max_skew", "ndkl", "fair_prefix", "rnd", "rkl", "rrd"}),
    ("Pairs", set()),
    ("Items", set()),
)


def kind(row: dict[str, Any]) -> str:
    """The heading under which a measure stands."""
    name = row["name"]
    for heading, names in KINDS:
        if name in names:
            return heading
    if ("parity" in name and "pairwise" not in name) or name.startswith("equal"):
        return KINDS[1][0]
    if name.startswith(("ee_", "item_ee")):
        return KINDS[2][0]
    if name.startswith("infeasible"):
        return KINDS[3][0]
    return KINDS[4][0] if name.startswith("pairwise") else KINDS[5][0]


def cell(text: str) -> str:
    """Text of a table's cell."""
    return text.replace("|", "\\|")


def drawn(document: str) -> str:
    """The document with its table renewed."""
    lines = []
    rows = measures_table()
    for heading, _ in KINDS:
        lines += [
            f"### {heading}",
            "",
            "| measure | formula | range; what is fair | ties | options |",
            "|---|---|---|---|---|",
        ]
        for row in rows:
            if kind(row) != heading:
                continue
            alias = f" (`{row['alias']}`)" if row["alias"] else ""
            options = ", ".join(f"`{name}={value}`" for name, value in row["options"].items())
            over = " One value of all lists together." if row["over"] == "all lists" else ""
            none = f" No interval: {row['no_interval']}." if row["no_interval"] else ""
            fair = f"; {row['fair']}" if row["fair"] else ""
            cells = [
                f"`{row['name']}{CUT[row['k']]}`{alias}",
                f"{row['formula']}.{over}{none}" + (f" {row['reference']}." if row["reference"] else ""),
                f"{row['range']}, {row['best']} is better{fair}",
                row["ties"],
                options,
            ]
            lines.append("| " + " | ".join(map(cell, cells)) + " |")
        lines.append("")
    head, _, rest = document.partition(BEGIN)
    return f"{head}{BEGIN}\n" + "\n".join(lines) + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(drawn(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
