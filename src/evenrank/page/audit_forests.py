"""The forest plots of an audit: rates by group, pairs within queries, pooled gaps and their parts, ratios of rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank.audits.notable import Tally, by_clearness, measures_of
from evenrank.audits.pair_words import count, notion_words
from evenrank.page.forest import KINDS, Block, Forest, Line, Mark, Scale
from evenrank.wording import FOUR_FIFTHS, NONE, name_cell, p_value, quoted, signed, three_digits

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Gap, Pair

MOST_GROUPS = 24
MOST_PAIRS = 8  # per notion, of those that show something
FEWEST = 3  # per notion, where nothing is shown
MOST_ELSEWHERE = 24
RATIO_END = 1.5


def rates(audit: Audit, k: int) -> Forest:
    """Draw each group's rate of being in the top k, with its number and its ratio to the highest rate."""
    rows = [row for row in audit.categories if row.k == k]
    ordered = sorted(rows, key=lambda row: (row.set_aside, row.ratio if row.ratio is not None else 2.0))
    listed = rows if len(rows) <= MOST_GROUPS else ordered[:MOST_GROUPS]
    intervals = {rate.group: rate.interval for rate in audit.rates if (rate.stratum, rate.k) == ("all rows", k)}
    scale = Scale(0.0, min(1.0, Scale.around(interval.high for interval in intervals.values()).high))
    lines = []
    for row in listed:
        interval = intervals.get(row.category)
        mark = None if interval is None else Mark.of(scale, interval.estimate, interval.low, interval.high, "rate")
        lines.append(
            Line(
                name_cell(row.category, 60) + (" (set aside)" if row.set_aside else ""),
                (mark,),
                (
                    count(row.number),
                    count(row.selected),
                    count(row.expected),
                    three_digits(row.rate),
                    NONE if interval is None else ends(interval.low, interval.high),
                    NONE if row.ratio is None else f"{row.ratio:.2f}",
                ),
            )
        )
    hidden = len(rows) - len(listed)
    rest = f"{hidden} more groups with higher ratios are in the JSON and the spreadsheet." if hidden else ""
    head = ("group", "rate, drawn", "items", f"in the top {k}", "in random order", "rate", _level(audit), "ratio")
    return Forest(f"Rates by group at k = {k}", head, (Block("", lines, rest),), 0.0, ("0", three_digits(scale.high)))


def _level(audit: Audit) -> str:
    return f"{audit.confidence:.0%} interval"


def ends(low: float, high: float) -> str:
    """Write the ends of an interval that may lie below 0."""
    return NONE if low != low or high != high else f"{_three(low)} to {_three(high)}"


def _three(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"


def within_queries(audit: Audit) -> tuple[Forest | None, Forest | None]:
    """Draw the gaps within queries: those at the main cut-off, and what other cut-offs show besides.

    Two groups have all their cut-offs in the first.
    """
    decidable = [pair for pair in audit.pairs if pair.within_query.decidable]
    if not decidable:
        return None, None
    several = len(audit.facts["groups"]) > 2
    if not several:
        first = by_clearness(decidable, "within_query")[0].a
        pairs = [pair if pair.a == first else pair.turned() for pair in decidable]
        note = (
            f"Right of the line: in favour of {quoted(first)}; left of it: of {quoted(pairs[0].b)}. Where an interval "
            "crosses the line, no gap is shown."
        )
        blocks = [(measure, [pair for pair in pairs if pair.measure == measure], "") for measure in measures_of(audit)]
        return _forest(audit, "Gaps within queries", blocks, note, several=False), None
    blocks, rest = [], []
    for measure in measures_of(audit):
        here = [pair for pair in audit.pairs if (pair.measure, pair.k) == (measure, audit.main_k)]
        listed = _matter(audit, by_clearness(here, "within_query"), "within_query")
        names = {frozenset((pair.a, pair.b)) for pair in listed}
        others = [pair for pair in here if frozenset((pair.a, pair.b)) not in names]
        blocks.append((measure, listed, _rest(audit, others, "within_query")))
        rest += [
            pair
            for pair in audit.pairs
            if pair.measure == measure and pair.k != audit.main_k and _shown(audit, pair.within_query)
        ]
    note = (
        "Each pair of groups by its own lists, the group ahead first. Where an interval crosses the line, no gap is "
        "shown."
    )
    elsewhere = by_clearness(rest, "within_query")
    more = None
    if elsewhere:
        left = len(elsewhere) - MOST_ELSEWHERE
        blocks_there: list[tuple[str, list[Pair], str]] = []
        for measure in measures_of(audit):
            same = [pair for pair in elsewhere[:MOST_ELSEWHERE] if pair.measure == measure]
            blocks_there.append((measure, same, ""))
        tail = (
            f"The {MOST_ELSEWHERE} clearest of {len(elsewhere)}; the rest is in the CSV and the JSON."
            if left > 0
            else ""
        )
        more = _forest(audit, "Gaps within queries at other cut-offs", blocks_there, tail, several=True)
    return _forest(audit, f"Gaps within queries at k = {audit.main_k}", blocks, note, several=True), more


def _shown(audit: Audit, gap: Gap) -> bool:
    return gap.verdict(1 - audit.confidence) in ("uneven", "hints")


def _matter(audit: Audit, clearest: list[Pair], question: str) -> list[Pair]:
    """The pairs that show something, or the clearest few if none does."""
    shown = [pair for pair in clearest if _shown(audit, getattr(pair, question))]
    return shown[:MOST_PAIRS] or clearest[:FEWEST]


def _rest(audit: Audit, others: list[Pair], question: str) -> str:
    if not others:
        return ""
    pairs = "1 other pair" if len(others) == 1 else f"{len(others)} other pairs"
    return f"{pairs} at k = {audit.main_k}: {Tally.of(audit, others, question).words}. The CSV and the JSON have them."


def _forest(
    audit: Audit, label: str, blocks: list[tuple[str, list[Pair], str]], note: str, *, several: bool
) -> Forest | None:
    pairs = [pair for _, same, _ in blocks for pair in same]
    if not pairs:
        return None
    scale = Scale.around(
        end for pair in pairs for end in (pair.within_query.low, pair.within_query.high, pair.within_query.difference)
    )
    drawn = [
        Block(_heading(measure), [_within_line(audit, pair, scale, several) for pair in same], rest)
        for measure, same, rest in blocks
        if same or rest
    ]
    head = (
        "groups" if several else "cut-off",
        "difference, drawn",
        "verdict",
        "difference",
        _level(audit),
        "p, corrected",
        "ratio",
        "got (even shares give)",
        "lists",
    )
    return Forest(label, head, drawn, scale.place(0.0), (signed(scale.low), signed(scale.high)), note)


def _heading(measure: str) -> str:
    more = {
        "equal_opportunity": " (relevant items)",
        "equalized_odds": " (with equal opportunity: equalized odds)",
        "exposure_gap": " (what a group got is a sum of exposure)",
    }
    return notion_words(measure).capitalize() + more.get(measure, "")


def _within_line(audit: Audit, pair: Pair, scale: Scale, several: bool) -> Line:
    gap = pair.within_query
    verdict = gap.verdict(1 - audit.confidence)
    return Line(
        _pair_words(pair) if several else f"k = {pair.k}",
        (Mark.of(scale, gap.difference, gap.low, gap.high, KINDS[verdict]),),
        (
            verdict + (f", k = {pair.k}" if several and pair.k != audit.main_k else ""),
            signed(gap.difference),
            ends(gap.low, gap.high),
            p_value(gap.adjusted),
            _ratio(gap),
            f"{count(pair.observed)} ({count(pair.expected)})",
            f"{pair.lists:,}" + (f" in {pair.clusters:,} clusters" if pair.clusters != pair.lists else ""),
        ),
    )


def _ratio(gap: Gap) -> str:
    if gap.ratio != gap.ratio:
        return NONE
    odds = " (odds)" if gap.ratio_kind == "odds ratio" else ""
    return f"{_short(gap.ratio)}, {_short(gap.ratio_low)} to {_short(gap.ratio_high)}{odds}"


def _short(value: float) -> str:
    return NONE if value != value else "∞" if value == float("inf") else f"{value:.3g}"


def _pair_words(pair: Pair) -> str:
    return f"{quoted(pair.a)} over {quoted(pair.b)}"


def decomposition(audit: Audit) -> Forest | None:
    """Draw pooled gap = ranker's part + query mix at the main cut-off, for the pairs that matter."""
    blocks = []
    chosen: list[tuple[str, list[Pair], str]] = []
    for measure in measures_of(audit):
        here = [pair for pair in audit.pairs if (pair.measure, pair.k) == (measure, audit.main_k)]
        listed = _matter(audit, by_clearness(here, "pooled"), "pooled")
        names = {frozenset((pair.a, pair.b)) for pair in listed}
        others = [pair for pair in here if frozenset((pair.a, pair.b)) not in names]
        chosen.append((measure, listed, _rest(audit, others, "pooled") if len(here) > 1 else ""))
    pairs = [pair for _, same, _ in chosen for pair in same]
    if not pairs:
        return None
    scale = Scale.around(
        value
        for pair in pairs
        for value in (pair.pooled.difference, pair.ranker_part, pair.pooled.low, pair.pooled.high)
    )
    for measure, same, rest in chosen:
        blocks.append(Block(_heading(measure), [_parts_line(audit, pair, scale) for pair in same], rest))
    head = (
        "groups",
        "drawn",
        "verdict",
        "pooled gap",
        _level(audit),
        "p, corrected",
        "the ranker's part",
        "query mix",
        "counts",
    )
    return Forest(
        f"Pooled gaps and their parts at k = {audit.main_k}",
        head,
        blocks,
        scale.place(0.0),
        (signed(scale.low), signed(scale.high)),
    )


def _parts_line(audit: Audit, pair: Pair, scale: Scale) -> Line:
    gap = pair.pooled
    verdict = gap.verdict(1 - audit.confidence)
    marks = (
        Mark.bar(scale, 0.0, pair.ranker_part, "ranker"),
        Mark.bar(scale, pair.ranker_part, pair.ranker_part + pair.mix_part, "mix"),
        Mark.of(scale, gap.difference, gap.low, gap.high, KINDS[verdict]),
    )
    exposure = pair.measure == "exposure_gap"
    return Line(
        _pair_words(pair),
        marks,
        (
            verdict,
            signed(gap.difference),
            ends(gap.low, gap.high),
            p_value(gap.adjusted),
            signed(pair.ranker_part),
            signed(pair.mix_part),
            f"{pair.rate_a:.3f} and {pair.rate_b:.3f} per item"
            if exposure
            else f"{_of(pair.selected_a, pair.count_a)} and {_of(pair.selected_b, pair.count_b)}",
        ),
    )


def _of(selected: float, number: float) -> str:
    return f"{count(selected)} of {count(number)}"


def ratios(audit: Audit) -> Forest | None:
    """Draw the lower rate over the higher one for pairs of groups at the main cut-off, beside four fifths."""
    here = [pair for pair in audit.pairs if (pair.measure, pair.k) == ("demographic_parity", audit.main_k)]
    turned = [pair if pair.rate_a <= pair.rate_b else pair.turned() for pair in here if pair.count_a and pair.count_b]
    ordered = sorted(turned, key=lambda pair: _known(pair.pooled.ratio_high))
    listed = ordered if len(ordered) <= FEWEST else ordered[:MOST_PAIRS]
    if not listed:
        return None
    scale = Scale(0.0, RATIO_END)
    lines = [
        Line(
            f"{quoted(pair.a)} to {quoted(pair.b)}",
            (Mark.of(scale, pair.pooled.ratio, pair.pooled.ratio_low, pair.pooled.ratio_high, _rule_kind(pair)),),
            (
                _short(pair.pooled.ratio),
                _interval(pair.pooled.ratio_low, pair.pooled.ratio_high),
                f"{_of(pair.selected_a, pair.count_a)} to {_of(pair.selected_b, pair.count_b)}",
                pair.rule.verdict if pair.rule else NONE,
            ),
        )
        for pair in listed
    ]
    hidden = len(ordered) - len(listed)
    rest = f"{hidden} more pairs, whose intervals reach higher, are in the CSV and the JSON." if hidden else ""
    head = ("groups", "ratio of rates, drawn", "ratio", _level(audit), "counts", "four-fifths rule, this pair")
    return Forest(
        f"Ratios of rates at k = {audit.main_k}",
        head,
        (Block("", lines, rest),),
        scale.place(FOUR_FIFTHS),
        ("0", f"{RATIO_END:g} or more"),
        f"The line stands at {FOUR_FIFTHS:g}, four fifths. A pair alone is not corrected for the number of pairs.",
    )


def _interval(low: float, high: float) -> str:
    return NONE if low != low or high != high else f"{_short(low)} to {_short(high)}"


def _known(value: float) -> float:
    return value if value == value else float("inf")


def _rule_kind(pair: Pair) -> str:
    verdict = pair.rule.verdict if pair.rule else ""
    return {"not met": "uneven", "met": "rate"}.get(verdict, "none")
