"""The audit as one self-contained page. All text from data is escaped; intervals are drawn with plain CSS.

The public names `audit` and `Audit` are taken from here, so that an audit in a notebook knows its page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from evenrank.audits.audit import Audit, audit
from evenrank.audits.sections import Section, sections, summary
from evenrank.measures import MeasureAt
from evenrank.page.skeleton import fill, page, piece, scrolled, signature, table, text_of
from evenrank.wording import TITLES

__all__ = ["Audit", "audit", "audit_page"]


def audit_page(audits: Sequence[tuple[str, Audit]], *, whole: bool = True) -> str:
    """Audits under their titles as a page (or, with ``whole=False``, as the piece of one that a notebook shows)."""
    if not whole:
        return piece("\n".join(_audit(title, audit) for title, audit in audits))
    first = audits[0][1]
    made = (
        f"Intervals by {first.method} over queries, {first.confidence:.0%} confidence; certified bounds rest on "
        "queries being independent and none having been used in training."
    )
    body = fill(
        "audit.html",
        audits="\n".join(_audit(title, audit) for title, audit in audits),
        made=escape(made),
        glossary=text_of("glossary.html"),
        signature=escape(signature()),
    )
    return page(audits[0][0], body)


def _audit(title: str, audit: Audit) -> str:
    """The answer first, as the report has it; then each section in a box of its own."""
    found = sections(audit)
    answer, *rest = found[0].sentences
    answer = answer.removeprefix("In short: ")
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p class='soft'>{escape(summary(audit))}</p>",
        f"<p class='lead'>{escape(answer[:1].upper() + answer[1:])}</p>",
        _card(_section(Section(found[0].heading, tuple(rest))) + _bars(audit)),
    ]
    parts += [_card(_section(section)) for section in found[1:]]
    return "<div class='audit'>" + "\n".join(parts) + "</div>"


def _card(content: str) -> str:
    return f"<section class='card'>{content}</section>"


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.heading)}</h2>"]
    if section.sentences:
        parts.append("<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in section.sentences) + "</ul>")
    if section.rows:
        lines = [(row, f" class='{'sub' if row[0].startswith(' ') else 'of'}'") for row in section.rows]
        parts.append(scrolled(table(section.head, lines), section.heading))
    if section.note:
        parts.append(f"<p class='soft small'>{escape(section.note)}</p>")
    return "\n".join(parts)


def _bars(audit: Audit) -> str:
    """The gaps with their intervals on one scale; grey where the interval reaches 0."""
    measures = dict.fromkeys(MeasureAt.of(made.measure).name for made in audit.certificates)
    found = [one for measure in measures for one in audit.find(measure) if not math.isnan(one.interval.low)]
    if not found:
        return ""
    end = max(max(one.interval.high for one in found), 1e-9)
    lines = []
    for one in found:
        low, high, at = (value / end * 100 for value in (one.interval.low, one.interval.high, one.interval.estimate))
        kind = "band" if one.shown else "band zero"
        bar = (
            f"<span class='track'><span class='{kind}' style='left:{low:.2f}%;width:{high - low:.2f}%'></span>"
            f"<span class='dot' style='left:calc({at:.2f}% - 1px)'></span></span>"
        )
        label = escape(f"{TITLES[one.measure]}, k = {one.k}")
        value = f"{one.interval.estimate:.3f} ({one.interval.low:.3f}–{one.interval.high:.3f})"
        lines.append(f"<tr class='of'><th scope='row'>{label}</th><td>{value}</td><td class='bar'>{bar}</td></tr>")
    note = f"The bar is the interval, from 0 at the left to {end:.3f}; grey where it reaches 0 and no gap is shown."
    head = "<tr><th scope='col'>gap</th><th scope='col'>estimate and interval</th><th scope='col'>drawn</th></tr>"
    drawn = f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f"{scrolled(drawn, 'Gaps and their intervals')}<p class='soft small'>{escape(note)}</p>"


Audit.page = staticmethod(audit_page)
