"""The tests of an audit as one tidy table: a row per question and pair, a column per number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evenrank.audits.pair import QUESTIONS
from evenrank.wording import name_cell

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit

WIDTH = 1 << 15  # names are cut at nothing shorter
COUNTS = ("count_a", "count_b", "selected_a", "selected_b", "rate_a", "rate_b", "observed", "expected")
TEXTS = (
    "attribute",
    "question",
    "measure",
    "stratum",
    "a",
    "b",
    "verdict",
    "favoured",
    "ratio_kind",
    "method",
    "reason",
)


def tidy_table(audits: Mapping[str, Audit]) -> Any:
    """Write audits as one polars table.

    Parameters
    ----------
    audits : mapping of str to Audit
        What each is by, such as the column of the group, and the audit.

    Returns
    -------
    polars.DataFrame
        One row per attribute, question ("pooled" or "within_query"), measure, stratum, k and pair of groups. What is
        not defined is null.
    """
    import polars as pl

    rows = [row for name, audit in audits.items() for row in _rows(name, audit)]
    types: dict[str, Any] = dict.fromkeys(TEXTS, pl.String)
    types |= {"k": pl.Int64, "lists": pl.Int64, "clusters": pl.Int64, "decidable": pl.Boolean}
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _rows(attribute: str, audit: Audit) -> list[dict[str, Any]]:
    rows = []
    for pair in audit.pairs:
        for question in QUESTIONS:
            gap = getattr(pair, question)
            verdict = gap.verdict(1 - audit.confidence)
            ahead = pair.favoured(question)[0] if verdict in ("uneven", "hints") else None
            rows.append(
                {
                    "attribute": name_cell(attribute, WIDTH),
                    "question": question,
                    "measure": pair.measure,
                    "stratum": pair.stratum,
                    "k": pair.k,
                    "a": name_cell(pair.a, WIDTH),
                    "b": name_cell(pair.b, WIDTH),
                    "verdict": verdict,
                    "favoured": None if ahead is None else name_cell(ahead, WIDTH),
                    **{name: float(getattr(pair, name)) for name in COUNTS},
                    **asdict(gap),
                    "lists": pair.lists,
                    "clusters": pair.clusters,
                    "confidence": audit.confidence,
                }
            )
    return rows
