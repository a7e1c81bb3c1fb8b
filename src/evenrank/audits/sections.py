"""An audit as sections of sentences and tables, which text, Markdown and HTML only lay out."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenrank.measures import MeasureAt
from evenrank.wording import TITLES, data_line, name_cell, notion_title, number, signed, span, three_digits, tidy, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair
    from evenrank.audits.parts import Finding

WIDTH = 80
NAME = 12
QUERY = 14
WRAP: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


@dataclass(frozen=True)
class Section:
    """A heading, sentences and a table; a row whose first cell is indented belongs to the one above it."""

    heading: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


def summary(audit: Audit) -> str:
    """Write what the data is in one line."""
    facts = audit.facts
    return data_line(
        rows=facts["rows"],
        queries=facts["queries"],
        relevant=facts["relevant_share"] if audit.labelled else None,
        groups=facts["groups"],
        unknown=facts["unknown_group_share"],
    )


def sections(audit: Audit) -> list[Section]:
    """List the sections that have something to say, in the order of the document."""
    parts = [
        Section("What can and cannot be concluded", tuple(audit.conclusions())),
        _within(audit),
        _gaps(audit),
        _categories(audit),
        _rates(audit),
        _quality(audit),
        _certified(audit),
        _queries(audit),
        _comparison(audit),
    ]
    return [section for section in parts if section.sentences or section.rows]


def _head(audit: Audit) -> tuple[str, ...]:
    return ("", *(f"k = {k}" for k in audit.ks))


def _level(audit: Audit) -> str:
    return f"  {audit.confidence:.0%} interval"


def _with_interval(audit: Audit, label: str, findings: list[Finding]) -> list[tuple[str, ...]]:
    return [
        (label, *(number(finding.interval.estimate) for finding in findings)),
        (_level(audit), *(span(finding.interval.low, finding.interval.high) for finding in findings)),
    ]


def _gaps(audit: Audit) -> Section:
    rows: list[tuple[str, ...]] = []
    several = len(audit.facts["groups"]) > 2
    mixed = any(abs(pair.mix_part) >= 0.0005 for pair in audit.pairs)
    for measure in dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates):
        findings = audit.find(measure)
        rows += _with_interval(audit, TITLES[measure] + (" (largest pair)" if several else ""), findings)
        rows.append(("  favoured", *(_ahead(finding, finding.favoured) for finding in findings)))
        if several:
            rows.append(("  over", *(_ahead(finding, finding.other) for finding in findings)))
        if mixed and measure != "equalized_odds":
            pairs = [_pair_of(audit, finding) for finding in findings]
            rows.append(("  the ranker's part", *(signed(pair.ranker_part) if pair else "–" for pair in pairs)))
            rows.append(("  query mix", *(signed(pair.mix_part) if pair else "–" for pair in pairs)))
        if several:
            rows += _with_interval(audit, f"{TITLES[measure]} (mean over pairs)", audit.find(measure, "mean"))
    note = "Gap = ranker's part + query mix (which lists the groups are in); + is for the favoured group."
    return Section("Gaps between groups (0 is even)", (), _head(audit), tuple(rows), note if mixed else "")


def _pair_of(audit: Audit, finding: Finding) -> Pair | None:
    """The pair that a gap is between, its leading group first."""
    for pair in audit.pairs:
        if (pair.measure, pair.k) == (finding.measure, finding.k):
            if (pair.a, pair.b) == (finding.favoured, finding.other):
                return pair
            if (pair.b, pair.a) == (finding.favoured, finding.other):
                return pair.turned()
    return None


def _within(audit: Audit) -> Section:
    """The clearest pair of each notion and cut-off, within queries."""
    rows: list[tuple[str, ...]] = []
    for measure in dict.fromkeys(pair.measure for pair in audit.pairs):
        best = []
        for k in audit.ks:
            pairs = [p for p in audit.pairs if (p.measure, p.k) == (measure, k) and p.within_query.decidable]
            pair = min(pairs, key=lambda pair: pair.within_query.p, default=None)
            best.append(pair if pair is None or pair.within_query.difference >= 0 else pair.turned())
        if not any(best):
            continue
        label = "irrelevant items" if measure == "equalized_odds" else notion_title(measure)
        level = 1 - audit.confidence
        gaps = [None if pair is None else pair.within_query for pair in best]
        rows.append((label, *("–" if gap is None else number(gap.difference) for gap in gaps)))
        rows.append((_level(audit), *("–" if gap is None else f"{gap.low:.3f}–{gap.high:.3f}" for gap in gaps)))
        rows.append(("  p, corrected", *("–" if gap is None else _p(gap.adjusted) for gap in gaps)))
        shown = [pair if pair is not None and pair.within_query.p <= level else None for pair in best]
        rows.append(("  favoured", *("none shown" if pair is None else name_cell(pair.a, NAME) for pair in shown)))
        if len(audit.facts["groups"]) > 2:
            rows.append(("  over", *("none shown" if pair is None else name_cell(pair.b, NAME) for pair in shown)))
    several = " The clearest pair of groups is shown." if len(audit.facts["groups"]) > 2 else ""
    note = f"Each list by itself: what the ranker does with the lists it got.{several}"
    return Section("Within queries (0 is even)", (), _head(audit), tuple(rows), note)


def _p(value: float) -> str:
    return "–" if math.isnan(value) else "<.0001" if value < 0.0001 else f"{value:.4f}"[: 6 if value < 0.001 else 5]


def _categories(audit: Audit) -> Section:
    """Each group's number, rate and ratio to the highest rate."""
    rows = [
        (
            name_cell(row.category, 2 * NAME) + (" (set aside)" if row.set_aside else ""),
            f"{row.number:,.8g}",
            f"{row.selected:,.6g}",
            three_digits(row.rate),
            "–" if row.ratio is None else f"{row.ratio:.2f}",
        )
        for row in audit.categories
        if row.k == audit.main_k
    ]
    head = ("", "items", f"in the top {audit.main_k}", "rate", "ratio to the highest")
    return Section(f"Impact ratios at k = {audit.main_k}", (), head, tuple(rows))


def _ahead(finding: Finding, name: str | None) -> str:
    """A group where a gap is shown; "differs" where the strata disagree."""
    if not finding.shown:
        return "none shown"
    return "differs" if name is None else name_cell(name, NAME)


def _rates(audit: Audit) -> Section:
    rows: list[tuple[str, ...]] = []
    for stratum in dict.fromkeys(rate.stratum for rate in audit.rates):
        for group in dict.fromkeys(rate.group for rate in audit.rates):
            cells = [rate.interval for rate in audit.rates if (rate.stratum, rate.group) == (stratum, group)]
            rows.append((f"{stratum.removesuffix(' rows')}: {tidy(group)}", *(number(cell.estimate) for cell in cells)))
            rows.append((_level(audit), *(span(cell.low, cell.high) for cell in cells)))
        if stratum == "all rows":
            rows += _with_interval(audit, TITLES["four_fifths"], audit.find("four_fifths"))
            rows.append(("  four-fifths rule", *(_short(verdict) for verdict in audit.four_fifths().values())))
    return Section("How often items of each group are in the top k", (), _head(audit), tuple(rows))


def _short(verdict: str) -> str:
    return "can't tell" if verdict == "cannot be told" else verdict


def _quality(audit: Audit) -> Section:
    names = [name for name in ("ndcg", "precision", "recall") if audit.find(name)]
    rows = [row for name in names for row in _with_interval(audit, TITLES[name], audit.find(name))]
    return Section("Quality", (), _head(audit), tuple(rows))


def _certified(audit: Audit) -> Section:
    rows = []
    for measure in dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates):
        at_each_k = [
            certificate for certificate in audit.certificates if MeasureAt.of(certificate.measure).name == measure
        ]
        rows.append(
            (
                notion_title(measure),
                *("vacuous" if certificate.vacuous else f"≤ {certificate.bound:.3f}" for certificate in at_each_k),
            )
        )
    note = f"With {audit.confidence:.0%} confidence each. Vacuous: the bound is 1 or more and says nothing."
    return Section("Certified for new queries", (), _head(audit), tuple(rows), note)


def _queries(audit: Audit) -> Section:
    measures = list(dict.fromkeys(influence.measure for influence in audit.influences))
    columns = [[influence for influence in audit.influences if influence.measure == measure] for measure in measures]
    depth = max(map(len, columns), default=0)
    rows = []
    for i in range(depth):
        cells = [f"{name_cell(c[i].query, QUERY)} {c[i].without:.4f}" if i < len(c) else "" for c in columns]
        rows.append((str(i + 1), *cells))
    head = ("", *(notion_title(MeasureAt.of(m).name) for m in measures))
    if rows:
        rows.insert(0, ("now", *(f"{column[0].gap:.4f}" for column in columns)))
    note = f"At k = {audit.main_k}: the gap now, and what it would be without each query."
    return Section("Queries that weigh most", (), head, tuple(rows), note)


def _comparison(audit: Audit) -> Section:
    rows = [
        (
            title(*MeasureAt.of(comparison.measure)),
            number(comparison.a),
            number(comparison.b),
            signed(comparison.difference),
            f"{signed(comparison.low)} to {signed(comparison.high)}",
            f"{comparison.adjusted:.3f}",
        )
        for comparison in audit.comparison
    ]
    head = ("", "this", "other", "change", f"{audit.confidence:.0%} interval", "p (Holm)")
    level = f"{1 - audit.confidence:.2g}"
    note = f"Paired by query. p is corrected for the number of lines; below {level} the change is more than chance."
    return Section("Compared with the other ranking", (), head, tuple(rows), note)


def as_text(audit: Audit, heading: str) -> str:
    """Lay the sections out as plain text, 80 columns wide unless names or many cut-offs need more."""
    parts = [tidy(heading), "", *textwrap.wrap(summary(audit), WIDTH)]
    for section in sections(audit):
        parts += ["", section.heading, "─" * len(section.heading)]
        for sentence in section.sentences:
            parts += textwrap.wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ", **WRAP)
        parts += _text_table(section)
        parts += textwrap.wrap(section.note, WIDTH, **WRAP)
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _text_table(section: Section) -> list[str]:
    if not section.rows:
        return []
    table = [section.head, *section.rows]
    widths = [max(len(row[j]) for row in table) for j in range(len(section.head))]
    # A label that leaves the numbers no room stands on a line of its own.
    room = max(WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1), 20)
    widths[0] = max(len(row[0]) for row in table if len(row[0]) <= room)
    lines = []
    for row in table:
        label = row[0]
        if len(label) > widths[0]:
            lines.append(label)
            label = ""
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([label.ljust(widths[0]), *cells]))
    return lines


def as_markdown(audit: Audit, heading: str) -> str:
    """Lay the sections out as Markdown."""
    parts = [f"# {_escaped(tidy(heading))}", "", _escaped(summary(audit))]
    for section in sections(audit):
        parts += ["", f"## {section.heading}", ""]
        parts += [f"- {_escaped(sentence)}" for sentence in section.sentences]
        if section.rows:
            parts += [_line(section.head), "|".join(["", "---", *["---:"] * (len(section.head) - 1), ""])]
            parts += [_line(row) for row in section.rows]
        if section.note:
            parts += ["", section.note]
    return "\n".join(parts) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(cell.strip()) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Names from a file as they are, not as Markdown; code in backticks stays code."""
    for mark in "\\|*_<>[]#":
        text = text.replace(mark, "\\" + mark)
    return text
