"""The tables of a bias audit as cells: for text, pages and spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenrank.audits.pair_words import count
from evenrank.audits.section import Section
from evenrank.audits.standards.categories import MANY_DEVIATIONS, SMALL
from evenrank.audits.standards.words import TITLES, told
from evenrank.wording import FOUR_FIFTHS, NONE, impact_ratio, name_cell, no_formula, p_value, tidy

if TYPE_CHECKING:
    from evenrank.audits.standards.categories import CategoryRate
    from evenrank.audits.standards.ll144 import BiasAudit

NAME = 48


def marks(row: CategoryRate) -> str:
    """Write what is to be noticed about a category."""
    words = ["set aside"] if row.set_aside else [f"under {SMALL:.0%}"] if row.small else []
    if row.below_four_fifths:
        words.append(f"< {FOUR_FIFTHS:g}")
    if row.beyond_two:
        words.append(f"> {MANY_DEVIATIONS:g} SD")
    return ", ".join(words) or NONE


def cells(row: CategoryRate) -> tuple[str, ...]:
    """Write the numbers of a category."""
    return (
        f"{row.number:,}",
        count(row.selected),
        f"{row.rate:.1%}",
        impact_ratio(row.ratio),
        NONE if row.fisher_p is None else p_value(row.fisher_p),
        NONE if row.corrected_p is None else p_value(row.corrected_p),
        NONE if row.deviations is None else f"{row.deviations + 0.0:.1f}",
        marks(row),
    )


def head(audit: BiasAudit) -> tuple[str, ...]:
    """Write the heads of the columns of `cells`."""
    reached = "selected" if audit.rate == "selection" else "above median"
    return ("applicants", reached, f"{audit.rate} rate", "impact ratio", "Fisher p", "corrected", "SD", "marks")


def sections(audit: BiasAudit) -> list[Section]:
    """List the sections, in the order of the document."""
    words = told(audit)
    short = ("number", "selected" if audit.rate == "selection" else "above", "rate", "ratio", "p", "p corr.", "SD", "")
    tables = [
        Section(
            f"{TITLES[table.name]} ({tidy(table.column)})",
            (),
            ("", *short),
            tuple((name_cell(row.category, NAME), *cells(row)) for row in table.categories),
            f"Unknown category, not in the table: {table.unknown:,}.",
        )
        for table in audit.tables
    ]
    return [
        Section("What is shown", (words.answer, *words.shown)),
        *tables,
        Section("How it was counted, and limits", tuple(words.about)),
    ]


def table_rows(audit: BiasAudit) -> list[dict[str, Any]]:
    """List the tables' rows as plain values, a category each."""
    return [
        {
            "table": table.name,
            "column": no_formula(tidy(table.column)),
            "category": no_formula(tidy(row.category)),
            "applicants": row.number,
            "share": row.share,
            "selected" if audit.rate == "selection" else "above_median": row.selected,
            f"{audit.rate}_rate": row.rate,
            "impact_ratio": row.ratio,
            "under_2_percent": row.small,
            "set_aside": row.set_aside,
            "below_four_fifths": row.below_four_fifths,
            "fisher_p": row.fisher_p,
            "corrected_p": row.corrected_p,
            "standard_deviations": row.deviations,
            "unknown_category": table.unknown,
            "k": audit.k,
        }
        for table in audit.tables
        for row in table.categories
    ]
