"""The audit as one self-contained page; what is drawn is plain CSS and SVG.

The public names `audit` and `Audit` are taken from here, so that an audit in a notebook knows its page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenrank.audits.audit import Audit, audit
from evenrank.audits.method_words import families, made_facts, methods_used
from evenrank.audits.notable import Tally
from evenrank.audits.pair_words import count, is_cut, notions_and_cuts, untold_pairs
from evenrank.audits.section import Section
from evenrank.audits.sections import further_sections, summary
from evenrank.audits.words import told
from evenrank.page.audit_forests import decomposition, rates, ratios, within_queries
from evenrank.page.curve import curve
from evenrank.page.skeleton import Row, Table, page, piece
from evenrank.wording import quoted, tidy

__all__ = ["Audit", "audit", "audit_page"]
MOST_UNTOLD = 40


def audit_page(
    audits: Sequence[tuple[str, Audit]], *, whole: bool = True, made: Mapping[str, Any] | None = None
) -> str:
    """Write audits as one self-contained page.

    Parameters
    ----------
    audits : sequence of (str, Audit)
        Each audit with its title.
    whole : bool
        False for the piece that a notebook shows instead of the page.
    made : mapping, optional
        How the numbers were made: "files", "command", "date" and so on, as in the JSON.

    Returns
    -------
    str
        HTML.
    """
    parts = [_parts(title, audit) for title, audit in audits]
    if not whole:
        return piece("audit_piece.html", audits=parts)
    return page("audit.html", tidy(audits[0][0]), audits=parts, provenance=_provenance(audits[0][1], made or {}))


def _parts(title: str, audit: Audit) -> dict[str, Any]:
    """What the template shows of an audit: the answer first, then who got what, then how sure it is."""
    words = told(audit)
    answer = words.answer.removeprefix("In short: ")
    inside, elsewhere = within_queries(audit)
    return {
        "title": tidy(title),
        "summary": summary(audit),
        "answer": answer[:1].upper() + answer[1:],
        "tiles": _tiles(audit),
        "shown": words.shown,
        "untold": words.untold,
        "untold_table": _untold(audit),
        "about": words.about,
        "next": words.next,
        "main_k": audit.main_k,
        "rates": rates(audit, audit.main_k),
        "other_rates": [rates(audit, k) for k in audit.ks if k != audit.main_k],
        "within": inside,
        "elsewhere": elsewhere,
        "parts": decomposition(audit),
        "ratios": ratios(audit),
        "curve": curve(audit),
        "sections": [_section(section) for section in further_sections(audit)],
        "methods": _methods(audit),
        "families": families(audit),
    }


def _tiles(audit: Audit) -> list[dict[str, str]]:
    """The verdicts, large."""
    verdict = audit.verdict
    tiles = []
    for question, heading in (
        ("within_query", "Within queries: what the ranker does with the lists it got"),
        ("pooled", "Pooled over all queries: what the groups get in the end"),
    ):
        tally = Tally.of(audit, audit.pairs, question)
        tiles.append(
            {
                "heading": heading,
                "figure": verdict[question].capitalize(),
                "kind": verdict[question].replace(" ", "-"),
                "text": f"Gaps tested: {tally.words or 'none'}.",
            }
        )
    rule = audit.four_fifths().get(audit.main_k, "cannot be told")
    ratio = next((gap.interval for gap in audit.find("four_fifths") if gap.k == audit.main_k), None)
    lowest = "" if ratio is None or ratio.estimate != ratio.estimate else f"Lowest ratio {ratio.estimate:.2f}"
    if lowest and ratio is not None and ratio.low == ratio.low:
        lowest += f" ({audit.confidence:.0%} interval {ratio.low:.2f} to {ratio.high:.2f})"
    kind = {"not met": "uneven", "met": "none-shown"}.get(rule, "cannot-tell")
    tiles.append(
        {
            "heading": f"Four-fifths rule on pooled rates at k = {audit.main_k}",
            "figure": rule.capitalize(),
            "kind": kind,
            "text": f"{lowest}." if lowest else "",
        }
    )
    return tiles


def _section(section: Section) -> dict[str, Any]:
    rows = [Row(cells, {"class": "sub" if cells[0].startswith(" ") else "of"}) for cells in section.rows]
    return {
        "heading": section.heading,
        "sentences": section.sentences,
        "table": Table(section.heading, section.head, rows) if rows else None,
        "note": section.note,
    }


def _untold(audit: Audit) -> Table | None:
    """Each pair that cannot be told within queries, with its counts and the reason."""
    closed = [pair for pair in audit.pairs if not pair.within_query.decidable and is_cut(audit, pair)]
    rows = []
    for pairs in untold_pairs(closed):
        pair = max(pairs, key=lambda pair: pair.count_a + pair.count_b)
        groups = f"{quoted(pair.a)} and {quoted(pair.b)}"
        items = f"{count(pair.count_a)} and {count(pair.count_b)}"
        rows.append(
            Row((groups, notions_and_cuts(pairs), pair.within_query.reason, items, f"{pair.lists:,}"), {"class": "of"})
        )
    if not rows:
        return None
    if len(rows) > MOST_UNTOLD:
        left = len(rows) - MOST_UNTOLD
        rows = [
            *rows[:MOST_UNTOLD],
            Row((f"and {left} more, in the CSV and the JSON", "", "", "", ""), {"class": "of"}),
        ]
    head = ("groups", "notions", "why", "items", "lists that bear on it")
    return Table("What cannot be told within queries", head, rows, words=3)


def _methods(audit: Audit) -> Table | None:
    rows = [
        Row((used.question, used.method, used.what, used.example, f"{used.pairs:,}"), {"class": "of"})
        for used in methods_used(audit)
    ]
    head = ("question", "method", "what it is", "why, in one case", "gaps")
    return Table("Methods used", head, rows, words=4) if rows else None


def _provenance(audit: Audit, made: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the numbers were made, fact by fact."""
    return [
        *made_facts(made),
        ("Confidence", f"{audit.confidence:.0%}"),
        ("Intervals", f"{audit.method}; see the methods used, above"),
        ("Certified bounds", "rest on queries being independent and none having been used in training"),
    ]


Audit.page = staticmethod(audit_page)
