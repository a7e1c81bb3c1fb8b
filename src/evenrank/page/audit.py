"""The audit as one self-contained page. All text from data is escaped; intervals are drawn with plain CSS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from evenrank import __version__
from evenrank.experiment.audit import Audit
from evenrank.experiment.audit_sections import Section, sections, summary
from evenrank.experiment.audit_words import TITLES

# Scoped to the audit, so that it can stand in a notebook too.
STYLE = """
.evenrank-audit { font-variant-numeric: tabular-nums; }
.evenrank-audit h1 { font-size: 1.7rem; line-height: 1.25; margin: 2rem 0 .25rem; }
.evenrank-audit h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
.evenrank-audit .soft, .soft { color: #5b6675; }
.evenrank-audit ul { padding-left: 1.1rem; } .evenrank-audit li { margin: .35rem 0; max-width: 60rem; }
.evenrank-audit li:first-child { font-weight: 600; }
.evenrank-audit .scroll { overflow-x: auto; }
.evenrank-audit table { border-collapse: collapse; width: 100%; }
.evenrank-audit th, .evenrank-audit td { text-align: right; padding: .35rem .6rem; white-space: nowrap; }
.evenrank-audit tr.of td { border-top: 1px solid #d9dee5; }
.evenrank-audit tr.sub td { color: #5b6675; padding-top: 0; }
.evenrank-audit th:first-child, .evenrank-audit td:first-child { text-align: left; }
.evenrank-audit td.bar { width: 45%; min-width: 16rem; }
.evenrank-audit .track { display: block; position: relative; height: .9rem; background: #eef1f5; }
.evenrank-audit .band { position: absolute; top: .2rem; height: .5rem; background: #56B4E9; min-width: 2px; }
.evenrank-audit .zero { background: #c3cad4; }
.evenrank-audit .dot { position: absolute; top: 0; width: 3px; height: .9rem; background: #1d2430; }
"""


def audit_page(audits: Sequence[tuple[str, Audit]], *, whole: bool = True) -> str:
    """Audits under their titles as a page (or, with ``whole=False``, as the piece of one that a notebook shows)."""
    body = f"<style>{STYLE}</style>\n" + "\n".join(_audit(title, audit) for title, audit in audits)
    if not whole:
        return body
    template = Template(files("evenrank.page").joinpath("audit.html").read_text(encoding="utf-8"))
    made = f"evenrank {__version__}, intervals by {audits[0][1].method} over queries."
    return template.substitute(title=escape(audits[0][0]), body=body, made=escape(made))


def _audit(title: str, audit: Audit) -> str:
    parts = [f"<h1>{escape(title)}</h1>", f"<p class='soft'>{escape(summary(audit))}</p>"]
    for number, section in enumerate(sections(audit)):
        parts.append(_section(section))
        if number == 0:
            parts.append(_bars(audit))
    return "<div class='evenrank-audit'>" + "\n".join(parts) + "</div>"


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.heading)}</h2>"]
    if section.sentences:
        parts.append("<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in section.sentences) + "</ul>")
    if section.rows:
        top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in section.head)
        lines = "".join(
            f"<tr class='{'sub' if row[0].startswith(' ') else 'of'}'>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in section.rows
        )
        parts.append(f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>")
    if section.note:
        parts.append(f"<p class='soft'>{escape(section.note)}</p>")
    return "\n".join(parts)


def _bars(audit: Audit) -> str:
    """The gaps with their intervals on one scale; grey where the interval reaches 0."""
    measures = dict.fromkeys(made.measure.partition("@")[0] for made in audit.certificates)
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
        lines.append(f"<tr class='of'><td>{label}</td><td>{value}</td><td class='bar'>{bar}</td></tr>")
    note = f"The bar is the interval, from 0 at the left to {end:.3f}; grey where it reaches 0 and no gap is shown."
    head = "<tr><th scope='col'>gap</th><th scope='col'>estimate and interval</th><th scope='col'></th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f"<div class='scroll'>{table}</div><p class='soft'>{escape(note)}</p>"
