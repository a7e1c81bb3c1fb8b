"""A bias audit as one self-contained page, in the look of the audit's.

The public names `bias_audit` and `BiasAudit` are taken from here, so that a bias audit knows its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenrank.audits.method_words import made_facts
from evenrank.audits.standards import BiasAudit, CategoryTable, bias_audit
from evenrank.audits.standards.layout import cells, head
from evenrank.audits.standards.ll144 import RULE
from evenrank.audits.standards.words import TITLES, summary, told
from evenrank.page.forest import Block, Forest, Line, Mark, Scale
from evenrank.page.skeleton import page
from evenrank.wording import FOUR_FIFTHS, name_cell, percent, tidy

__all__ = ["BiasAudit", "bias_audit", "bias_audit_page"]


def bias_audit_page(title: str, audit: BiasAudit, *, made: Mapping[str, Any] | None = None) -> str:
    """Write a bias audit as one self-contained page.

    Parameters
    ----------
    title : str
        The page's title.
    audit : BiasAudit
        The tables.
    made : mapping, optional
        How the numbers were made: "files", "command", "date" and so on, as in the JSON.

    Returns
    -------
    str
        HTML.
    """
    words = told(audit)
    answer = words.answer.removeprefix("In short: ")
    return page(
        "bias_audit.html",
        tidy(title),
        summary=summary(audit),
        answer=answer[:1].upper() + answer[1:],
        shown=words.shown,
        about=words.about,
        tables=[{"heading": TITLES[table.name], "forest": _forest(audit, table)} for table in audit.tables],
        provenance=[*made_facts(made or {}), ("Form", RULE), ("Level of the tests", f"{1 - audit.confidence:.2g}")],
    )


def _forest(audit: BiasAudit, table: CategoryTable) -> Forest:
    """Draw each category's rate, with a line at four fifths of the highest."""
    scale = Scale(0.0, min(1.0, Scale.around(row.rate for row in table.categories).high))
    lines = [
        Line(name_cell(row.category, 60), (Mark.bar(scale, 0.0, row.rate, _kind(row)),), cells(row))
        for row in table.categories
    ]
    best = 0.0 if table.highest is None else table.of(table.highest).rate
    line = f"The line is at four fifths of the highest rate, {percent(FOUR_FIFTHS * best)}. " if best else ""
    return Forest(
        f"{TITLES[table.name]}: {tidy(table.column)}",
        ("category", "rate, drawn", *head(audit)),
        (Block("", lines),),
        scale.place(FOUR_FIFTHS * best),
        ("0", percent(scale.high)),
        f"{line}Applicants of unknown category, not in the table: {table.unknown:,}.",
    )


def _kind(row: Any) -> str:
    return "none" if row.set_aside else "hint" if row.below_four_fifths else "rate"


BiasAudit.page = staticmethod(bias_audit_page)
