"""The audit as one self-contained page; intervals are drawn with plain CSS.

The public names `audit` and `Audit` are taken from here, so that an audit in a notebook knows its page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenrank.audits.audit import Audit, audit
from evenrank.audits.sections import Section, sections, summary
from evenrank.measures import MeasureAt
from evenrank.page.skeleton import Row, Table, page, piece
from evenrank.wording import TITLES, tidy

__all__ = ["Audit", "audit", "audit_page"]


@dataclass(frozen=True)
class Bar:
    """A gap and its interval, as the page draws them.

    Attributes
    ----------
    label, value : str
        What the gap is, and its numbers.
    low, high, estimate : float
        In percent of the scale's length.
    shown : bool
        Whether the interval stays above 0.
    """

    label: str
    value: str
    low: float
    high: float
    estimate: float
    shown: bool


def audit_page(audits: Sequence[tuple[str, Audit]], *, whole: bool = True) -> str:
    """Write audits as one self-contained page.

    Parameters
    ----------
    audits : sequence of (str, Audit)
        Each audit with its title.
    whole : bool
        False for the piece that a notebook shows instead of the page.

    Returns
    -------
    str
        HTML.
    """
    parts = [_parts(title, audit) for title, audit in audits]
    if not whole:
        return piece("audit_piece.html", audits=parts)
    first = audits[0][1]
    made = (
        f"Intervals by {first.method} over queries, {first.confidence:.0%} confidence; certified bounds rest on "
        "queries being independent and none having been used in training."
    )
    return page("audit.html", tidy(audits[0][0]), audits=parts, made=made)


def _parts(title: str, audit: Audit) -> dict[str, Any]:
    """What the template shows of an audit: the answer first, then section by section."""
    conclusions, *others = sections(audit)
    answer, *sentences = conclusions.sentences
    answer = answer.removeprefix("In short: ")
    bars, end = _bars(audit)
    return {
        "title": tidy(title),
        "summary": summary(audit),
        "answer": answer[:1].upper() + answer[1:],
        "sections": [_section(Section(conclusions.heading, tuple(sentences))), *map(_section, others)],
        "bars": bars,
        "end": end,
    }


def _section(section: Section) -> dict[str, Any]:
    rows = [Row(cells, {"class": "sub" if cells[0].startswith(" ") else "of"}) for cells in section.rows]
    return {
        "heading": section.heading,
        "sentences": section.sentences,
        "table": Table(section.heading, section.head, rows) if rows else None,
        "note": section.note,
    }


def _bars(audit: Audit) -> tuple[list[Bar], float]:
    """The gaps with their intervals on one scale, and the value at its right end."""
    measures = dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates)
    gaps = [gap for measure in measures for gap in audit.find(measure) if not math.isnan(gap.interval.low)]
    end = max([1e-9, *(gap.interval.high for gap in gaps)])
    bars = []
    for gap in gaps:
        interval = gap.interval
        low, high, estimate = (value / end * 100 for value in (interval.low, interval.high, interval.estimate))
        value = f"{interval.estimate:.3f} ({interval.low:.3f}–{interval.high:.3f})"
        bars.append(Bar(f"{TITLES[gap.measure]}, k = {gap.k}", value, low, high, estimate, bool(gap.shown)))
    return bars, end


Audit.page = staticmethod(audit_page)
