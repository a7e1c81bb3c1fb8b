"""An audit as sections of sentences and tables, which text, Markdown and HTML lay out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evenrank.audits.notable import by_clearness, measures_of
from evenrank.audits.pair_words import count, notion_words
from evenrank.audits.section import Section
from evenrank.audits.share_words import shares_section
from evenrank.audits.words import told
from evenrank.measures import MEASURE_ALIASES, MEASURES, MeasureAt
from evenrank.wording import (
    NONE,
    TITLES,
    data_line,
    impact_ratio,
    name_cell,
    notion_title,
    number,
    p_value,
    signed,
    span,
    three_digits,
    tidy,
    title,
)

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair
    from evenrank.audits.parts import Finding

NAME = 12
MOST_GROUPS = 12  # that a table names
QUERY = 14


def summary(audit: Audit) -> str:
    """Write what the data is in one line."""
    facts = audit.facts
    return data_line(
        rows=facts["rows"],
        queries=facts["queries"],
        relevant=facts["relevant_share"] if audit.labelled else None,
        groups=facts["groups"],
        unknown=facts["unknown_group_share"],
        aside=facts["set_aside_share"],
    )


def verdict_line(audit: Audit) -> str:
    """Write the verdicts in one line."""
    verdict = audit.verdict
    rule = audit.four_fifths().get(audit.main_k, "cannot be told")
    return (
        f"Verdict: within queries (the ranker) {verdict['within_query']}; pooled (what the groups get) "
        f"{verdict['pooled']}; four-fifths rule at k = {audit.main_k} {rule}."
    )


def sections(audit: Audit) -> list[Section]:
    """List the sections that have something to say, in the order of the document."""
    words = told(audit)
    parts = [
        Section("What is shown", (words.answer, *words.shown)),
        Section("What to do", tuple(words.next)),
        _categories(audit),
        _within(audit),
        _gaps(audit),
        _rates(audit),
        Section("What cannot be told", tuple(words.untold)),
        *further_sections(audit),
        Section("About the data, and limits", tuple(words.about)),
    ]
    return [section for section in parts if section.sentences or section.rows]


def further_sections(audit: Audit) -> list[Section]:
    """List the sections that the page shows as they are."""
    parts = [
        shares_section(audit),
        _quality(audit),
        _further(audit),
        _certified(audit),
        _queries(audit),
        _comparison(audit),
    ]
    return [section for section in parts if section.rows]


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
    """The pooled gaps: their sizes, who is ahead, and the parts of the ranker and of the query mix."""
    rows: list[tuple[str, ...]] = []
    several = len(audit.facts["groups"]) > 2
    mixed = any(abs(pair.mix_part) >= 0.0005 for pair in audit.pairs)
    for measure in dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates):
        rows += _with_interval(audit, TITLES[measure] + (" (largest pair)" if several else ""), audit.find(measure))
        if measure != "equalized_odds":  # its strata are tested one by one
            best = _clearest(audit, measure, "pooled")
            rows += _ahead(audit, best, "pooled", several=several)
            if mixed:
                rows.append(("  the ranker's part", *(signed(pair.ranker_part) if pair else NONE for pair in best)))
                rows.append(("  query mix", *(signed(pair.mix_part) if pair else NONE for pair in best)))
        if several:
            rows.append(("  mean over pairs", *(number(f.interval.estimate) for f in audit.find(measure, "mean"))))
    notes = ["Names are of the clearest pair; the largest gap may be that of a small group."] if several else []
    if mixed:
        whose = "the pair's gap" if several else "gap"
        notes.append(
            f"Ranker's part + query mix (which lists the groups are in) = {whose}; + is for the group that is ahead."
        )
    return Section("Pooled over all queries (0 is even)", (), _head(audit), tuple(rows), " ".join(notes))


def _clearest(audit: Audit, measure: str, question: str) -> list[Pair | None]:
    """The clearest pair at each cut-off, its group ahead first; None where nothing can be decided."""
    best: list[Pair | None] = []
    for k in audit.ks:
        clear = by_clearness((p for p in audit.pairs if (p.measure, p.k) == (measure, k)), question)
        best.append(clear[0] if clear else None)
    return best


def _groups_named(audit: Audit) -> tuple[list[str], str]:
    """The groups that tables name, in their order: all, or of many those with the lowest and the highest rates."""
    compared = [row for row in audit.categories if row.k == audit.main_k and not row.set_aside]
    names = [row.category for row in compared]
    if len(names) <= MOST_GROUPS:
        return names, ""
    ordered = [row.category for row in sorted(compared, key=lambda row: row.rate)]
    kept = {*ordered[: MOST_GROUPS // 2], *ordered[-(MOST_GROUPS // 2) :]}
    note = (
        f"Of {len(names)} groups, the {MOST_GROUPS // 2} with the lowest rates at k = {audit.main_k} and the "
        f"{MOST_GROUPS // 2} with the highest; the JSON has them all."
    )
    return [name for name in names if name in kept], note


def _ahead(audit: Audit, best: list[Pair | None], question: str, *, several: bool) -> list[tuple[str, ...]]:
    """Rows that name who is ahead of whom, where that is shown."""
    level = 1 - audit.confidence

    def named(side: str) -> list[str]:
        return [
            NONE
            if pair is None
            else name_cell(getattr(pair, side), NAME)
            if getattr(pair, question).p <= level
            else "none shown"
            for pair in best
        ]

    return [("  favoured", *named("a")), *([("  over", *named("b"))] if several else [])]


def _whose(audit: Audit, best: list[Pair | None], *, several: bool) -> list[tuple[str, ...]]:
    """Rows that name the groups of the numbers above them, if for some cut-off no gap is shown and so none is named."""
    if all(pair is None or pair.within_query.p <= 1 - audit.confidence for pair in best):
        return []

    def named(side: str) -> list[str]:
        return [NONE if pair is None else name_cell(getattr(pair, side), NAME) for pair in best]

    return [("  of", *named("a")), *([("  beside", *named("b"))] if several else [])]


def _within(audit: Audit) -> Section:
    """The clearest pair of each notion and cut-off, within queries."""
    rows: list[tuple[str, ...]] = []
    several = len(audit.facts["groups"]) > 2
    for measure in measures_of(audit):
        best = _clearest(audit, measure, "within_query")
        if not any(best):
            continue

        def row(label: str, words: Callable[[Pair], str], best: list[Pair | None] = best) -> tuple[str, ...]:
            return label, *(NONE if pair is None else words(pair) for pair in best)

        rows += [
            row(notion_words(measure), lambda pair: number(pair.within_query.difference)),
            row(
                _level(audit),
                lambda pair: ", ".join(map(three_digits, (pair.within_query.low, pair.within_query.high))),
            ),
            row("  p, corrected", lambda pair: p_value(pair.within_query.adjusted)),
            *_ahead(audit, best, "within_query", several=several),
            row("  got (even shares)", lambda pair: f"{count(pair.observed)} ({count(pair.expected)})"),
            *_whose(audit, best, several=several),
            row("  lists", lambda pair: f"{pair.lists:,}"),
        ]
    note = "Each list by itself: what the ranker does with the lists it got."
    if several:
        note += " The clearest pair of groups is shown; the CSV and the JSON have them all."
    return Section("Within queries (0 is even)", (), _head(audit), tuple(rows), note)


def _categories(audit: Audit) -> Section:
    """Each group's number, rate and ratio to the highest rate."""
    named, more = _groups_named(audit)
    rows = [
        (
            name_cell(row.category, 2 * NAME) + (" (set aside)" if row.set_aside else ""),
            count(row.number),
            count(row.selected),
            count(row.expected),
            three_digits(row.rate),
            impact_ratio(row.ratio),
        )
        for row in audit.categories
        if row.k == audit.main_k and (row.set_aside or row.category in named)
    ]
    head = ("", "items", f"in the top {audit.main_k}", "at random", "rate", "ratio")
    note = f"Ratio: to the highest rate. At random: how many there would be if each list were shuffled. {more}".rstrip()
    return Section(f"Impact ratios at k = {audit.main_k}", (), head, tuple(rows), note)


def _rates(audit: Audit) -> Section:
    rows: list[tuple[str, ...]] = []
    named, note = _groups_named(audit)
    for stratum in dict.fromkeys(rate.stratum for rate in audit.rates):
        for group in named:
            cells = [rate.interval for rate in audit.rates if (rate.stratum, rate.group) == (stratum, group)]
            items = _items(audit, stratum, group)
            rows.append(
                (f"{stratum.removesuffix(' rows')}: {tidy(group)}{items}", *(number(cell.estimate) for cell in cells))
            )
            rows.append((_level(audit), *(span(cell.low, cell.high) for cell in cells)))
        if stratum == "all rows":
            rows += _with_interval(audit, TITLES["four_fifths"], audit.find("four_fifths"))
            rows.append(("  four-fifths rule", *(_short(verdict) for verdict in audit.four_fifths().values())))
    return Section("How often items of each group are in the top k", (), _head(audit), tuple(rows), note)


def _items(audit: Audit, stratum: str, group: str) -> str:
    """The number of a group's items in a stratum."""
    for pair in audit.pairs:
        if pair.stratum == stratum and group in (pair.a, pair.b):
            return f" ({count(pair.count_a if group == pair.a else pair.count_b)})"
    return ""


def _short(verdict: str) -> str:
    return "can't tell" if verdict == "cannot be told" else verdict


def _quality(audit: Audit) -> Section:
    names = [name for name in ("ndcg", "precision", "recall") if audit.find(name)]
    rows = [row for name in names for row in _with_interval(audit, TITLES[name], audit.find(name))]
    return Section("Quality", (), _head(audit), tuple(rows))


def _further(audit: Audit) -> Section:
    """What was asked for besides: intervals over queries, or why there is none, and how each measure is read."""
    rows, read, without = [], [], []
    for interval in audit.measures:
        name, missing = tidy(interval.measure), interval.low != interval.low
        ends = "" if missing else span(interval.low, interval.high)
        rows.append((name, number(interval.estimate), ends, str(interval.queries)))
        if missing and interval.reason:
            without.append(f"{name} has no interval: {interval.reason}.")
        if (ours := MEASURES.get(MEASURE_ALIASES.get(head := _head_of(interval.measure), head))) is not None:
            read.append(f"{name}: {ours.best} is better, {ours.range}" + (f"; {ours.fair}." if ours.fair else "."))
    sentences = []
    if any(row[2] for row in rows):
        recurring = audit.facts["recurring_items"]
        more = " Items recur here, so that the intervals are for new lists of the same items." if recurring else ""
        sentences.append(f"These intervals take queries as independent of each other.{more}")
    head_row = ("", "value", f"{audit.confidence:.0%} interval", "queries")
    return Section("Further measures", (*sentences, *without), head_row, tuple(rows), " ".join(read))


def _head_of(measure: str) -> str:
    return measure.partition("(")[0].partition("@")[0].strip().lower()


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
    if audit.facts["clusters"]:
        note += " The bounds need independent queries, which queries of the same cluster are not."
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
