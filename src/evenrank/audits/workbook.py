"""Audits as a workbook: one sheet per table. Every text is a text, whatever it begins with."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evenrank.audits.method_words import methods_used
from evenrank.audits.tables import tidy_table
from evenrank.extras import require
from evenrank.wording import name_cell

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.comparisons import Comparison

LONGEST = 32_767  # what a cell can hold
WIDEST = 60  # of a column, in letters
MOST_ROWS = 1_048_575  # below the heading
Rows = list[dict[str, Any]]


def sheets(audits: Mapping[str, Audit], made: Mapping[str, Any] | None = None) -> dict[str, Rows]:
    """Give the tables of audits, by the name of their sheet; those without rows are left out.

    Parameters
    ----------
    audits : mapping of str to Audit
        What each is by, such as the column of the group, and the audit.
    made : mapping, optional
        How the numbers were made, as in the JSON.

    Returns
    -------
    dict
        Rows of each table, every row a dict.
    """
    tables: dict[str, Rows] = {
        "about": _about(audits, made or {}),
        "conclusions": _each(audits, lambda audit: [{"conclusion": text} for text in audit.conclusions()]),
        "impact ratios": _each(audits, lambda audit: audit.impact_ratios()),
        "tests": tidy_table(audits).to_dicts() if any(audit.pairs for audit in audits.values()) else [],
        "rates": _each(audits, lambda audit: audit.to_dict()["rates"]),
        "measures": _each(audits, lambda audit: audit.frame().to_dicts()),
        "shares": _each(audits, lambda audit: audit.to_dict()["shares"]),
        "certified": _each(audits, lambda audit: audit.to_dict()["certified"]),
        "queries": _each(audits, lambda audit: map(asdict, audit.influences)),
        "compared": _each(audits, lambda audit: map(_without_pairs, audit.comparison)),
        "compared by pair": _each(audits, _pairs_compared),
        "plans": _each(audits, lambda audit: map(asdict, audit.plans)),
        "methods": _each(audits, lambda audit: map(asdict, methods_used(audit))),
    }
    return {name: rows for name, rows in tables.items() if rows}


def _each(audits: Mapping[str, Audit], rows: Any) -> Rows:
    return [{"attribute": name, **row} for name, audit in audits.items() for row in rows(audit)]


def _without_pairs(comparison: Comparison) -> dict[str, Any]:
    return {name: value for name, value in asdict(comparison).items() if name != "pairs"}


def _pairs_compared(audit: Audit) -> Rows:
    return [
        {"measure": comparison.measure, **asdict(pair)} for comparison in audit.comparison for pair in comparison.pairs
    ]


def _about(audits: Mapping[str, Audit], made: Mapping[str, Any]) -> Rows:
    rows: Rows = []
    for name, audit in audits.items():
        facts = {
            **{key: audit.facts[key] for key in ("rows", "queries", "longest_list", "median_list", "relevant_share")},
            **{f"items of {group}": number for group, number in audit.facts["counts"].items()},
            "unknown_group_share": audit.facts["unknown_group_share"],
            "confidence": audit.confidence,
            "main k": audit.main_k,
            **{f"verdict, {question}": verdict for question, verdict in audit.verdict.items()},
            **{f"four-fifths rule at k = {k}": verdict for k, verdict in audit.four_fifths().items()},
        }
        rows += [{"attribute": name, "name": key, "value": value} for key, value in facts.items()]
    return rows + [{"attribute": "", **row} for row in made_rows(made)]


def made_rows(made: Mapping[str, Any]) -> Rows:
    """List how the numbers were made, a fact per row."""
    files = [(f"SHA-256 of {file['name']}", file["sha256"]) for file in made.get("files", ())]
    others = [(key, value) for key, value in made.items() if key != "files"]
    return [{"name": key, "value": value} for key, value in [*files, *others]]


def workbook(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """Write tables as an XLSX file, one sheet each; needs the extra ``xlsx``.

    Parameters
    ----------
    tables : mapping of str to rows
        Rows of each table, every row a mapping with the same keys.

    Returns
    -------
    bytes
        The file.
    """
    xlsxwriter = require("xlsxwriter")
    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(buffer, options) as book:
        heading = book.add_format({"bold": True, "bottom": 1})
        for name, rows in tables.items():
            _write(book.add_worksheet(name), rows[:MOST_ROWS], heading)
    return buffer.getvalue()


def _write(sheet: Any, rows: Sequence[Mapping[str, Any]], heading: Any) -> None:
    names = list(rows[0])
    widths = [len(name) for name in names]
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, heading)
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(_cell(value) for value in row.values()):
            if isinstance(value, bool):
                sheet.write_boolean(number, column, value)
            elif isinstance(value, str):
                sheet.write_string(number, column, value)
            elif value is not None:
                sheet.write_number(number, column, value)
            widths[column] = max(widths[column], min(WIDEST, len(str(value))))
    for column, width in enumerate(widths):
        sheet.set_column(column, column, width + 1)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(rows), len(names) - 1)


def _cell(value: Any) -> str | float | bool | None:
    """A value as a cell holds it: no NaN, and no text that begins like a formula."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        number = float(value)
        return number if math.isfinite(number) else None if math.isnan(number) else str(number)
    if isinstance(value, Mapping) or (isinstance(value, Iterable) and not isinstance(value, str)):
        return None if not value else name_cell(str(value), LONGEST)
    return name_cell(str(value), LONGEST)
