"""What the tests of pairs of groups show, in words: the answer in short, the ranker's part, what cannot be told."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from evenrank.wording import notion_title, quoted, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair
    from evenrank.audits.parts import Finding

SMALL = 20  # items of a group that is called small
MOST_LISTED = 6
NOT_PROOF = "That is not proof of evenness: see below how large a gap could go unnoticed."


def in_short(audit: Audit) -> str:
    """Write the answer: what the ranker does within queries, and how the pooled rates stand to that."""
    queries = audit.facts["queries"]
    if queries < 2:
        return "In short: one query alone cannot show how sure the numbers are; they describe that query only."
    verdict = audit.verdict
    inside = [pair for pair in audit.pairs if pair.within_query.decidable]
    level = 1 - audit.confidence
    alone = [pair for pair in inside if pair.within_query.p <= level]
    if verdict["within_query"] == "cannot tell":
        return f"In short: cannot tell whether the ranker is even. {_why_not(audit)}{_pooled_besides(audit)}"
    if verdict["within_query"] == "uneven":
        firm = [pair for pair in inside if pair.within_query.adjusted <= level]
        best = _clearest(firm, "within_query")
        return (
            f"In short: uneven. Within queries {len(alone)} of {len(inside)} gaps are shown with "
            f"{audit.confidence:.0%} confidence, {len(firm)} even when corrected for looking at {len(inside)}; the "
            f"clearest is the {_named(best)}.{_got(best)}{_hidden(best, verdict['pooled'], level)}"
        )
    if verdict["within_query"] == "hints":
        best = _clearest(alone, "within_query")
        return (
            f"In short: hints, nothing firm. Within queries {len(alone)} of {len(inside)} gaps are shown when looked "
            f"at one by one, none when corrected for looking at {len(inside)}; the clearest is the {_named(best)}."
            f"{_pooled_besides(audit)}"
        )
    if verdict["pooled"] == "uneven":
        best = _clearest(audit.pairs, "pooled")
        return (
            "In short: the pooled rates differ, but no gap within queries is shown: as far as these "
            f"{queries:,} queries tell, it is the query mix, not the ranker. The clearest pooled gap is the "
            f"{_named(best, 'pooled')}{_split(best, 'pooled')}."
        )
    return f"In short: no gap is shown in these {queries:,} queries. {NOT_PROOF}"


def _clearest(pairs: list[Pair] | tuple[Pair, ...], question: str) -> Pair:
    """The pair with the smallest p-value, its favoured group first."""
    decidable = [pair for pair in pairs if getattr(pair, question).decidable]
    best = min(decidable, key=lambda pair: (getattr(pair, question).p, -abs(getattr(pair, question).difference)))
    return best if best.favoured(question)[0] == best.a else best.turned()


def _named(pair: Pair, question: str = "within_query") -> str:
    ahead, behind = pair.favoured(question)
    return f"{_title(pair)}, in favour of {quoted(ahead)} over {quoted(behind)}"


def _title(pair: Pair) -> str:
    if pair.measure == "equalized_odds":
        return f"gap among irrelevant items at {pair.k}"
    return title(pair.measure, pair.k)


def _rates(pair: Pair) -> str:
    if pair.measure == "exposure_gap":
        return f"mean exposure {pair.rate_a:.3f} against {pair.rate_b:.3f}"
    return (
        f"{pair.selected_a:,.4g} of {pair.count_a:,.8g} against {pair.selected_b:,.4g} of {pair.count_b:,.8g} in the "
        f"top {pair.k}"
    )


def _got(pair: Pair) -> str:
    what = "exposure" if pair.measure == "exposure_gap" else f"places in the top {pair.k}"
    return (
        f" In lists with both, {quoted(pair.a)} got {pair.observed:,.4g} {what} where its share of each list would "
        f"give {pair.expected:,.4g}."
    )


def _split(pair: Pair, question: str) -> str:
    return (
        f" ({_rates(pair)}; difference {pair.pooled.difference:+.3f} = ranker {pair.ranker_part:+.3f}, query mix "
        f"{pair.mix_part:+.3f})"
    )


def _hidden(pair: Pair, pooled: str, level: float) -> str:
    """Say where the pooled rates hide what the ranker does, or point the other way (Simpson's paradox)."""
    if pair.pooled.difference < 0 and pair.pooled.p <= level:
        return (
            f" The pooled rates point the other way: the query mix favours {quoted(pair.b)} and hides what the ranker "
            f"does{_split(pair, 'pooled')}."
        )
    if pooled in ("none shown", "cannot tell") or (pair.pooled.p > level and pair.mix_part < 0):
        return f" The pooled rates do not show it: the query mix hides it{_split(pair, 'pooled')}."
    return ""


def _pooled_besides(audit: Audit) -> str:
    if audit.verdict["pooled"] != "uneven":
        return ""
    best = _clearest(audit.pairs, "pooled")
    return (
        f" The pooled rates differ: the clearest is the {_named(best, 'pooled')}{_split(best, 'pooled')}; from that "
        "alone the ranker's part is not shown."
    )


def _why_not(audit: Audit) -> str:
    reasons = list(dict.fromkeys(pair.within_query.reason for pair in audit.pairs if pair.count_a and pair.count_b))
    return reasons[0] if reasons else "No pair of groups could be compared; see below why."


def within_sentences(audit: Audit) -> list[str]:
    """Write what the ranker does within queries, notion by notion, where something is shown."""
    level = 1 - audit.confidence
    sentences = []
    shown = [
        pair if pair.within_query.difference >= 0 else pair.turned()
        for pair in audit.pairs
        if pair.within_query.decidable and pair.within_query.p <= level
    ]
    for measure in dict.fromkeys(pair.measure for pair in shown):
        same = sorted((pair for pair in shown if pair.measure == measure), key=lambda pair: (pair.a, pair.b, pair.k))
        parts = []
        for (ahead, behind), members in groupby(same, key=lambda pair: (pair.a, pair.b)):
            pairs = list(members)
            firm = [pair for pair in pairs if pair.within_query.adjusted <= level]
            best = _clearest(firm or pairs, "within_query")
            gap = best.within_query
            parts.append(
                f"{quoted(ahead)} is favoured over {quoted(behind)} at k = {', '.join(str(pair.k) for pair in pairs)}"
                f"{'' if firm else ' (a hint: not when corrected for the number of gaps)'}; at k = {best.k} the "
                f"difference is {gap.difference:.3f}, likely {gap.low:.3f} to {gap.high:.3f}, {gap.ratio_kind} "
                f"{gap.ratio:.2f} ({gap.method})"
            )
        where = "irrelevant items" if measure == "equalized_odds" else notion_title(measure)
        more = f"; and {len(parts) - MOST_LISTED} more pairs" if len(parts) > MOST_LISTED else ""
        sentences.append(f"Within queries, {where}: {'; '.join(parts[:MOST_LISTED])}{more}.")
    return sentences


def parts_of_gap(audit: Audit, finding: Finding) -> str:
    """Say how much of a pooled gap is the ranker's and how much the query mix, where the mix is a good part."""
    match = [
        pair
        for pair in audit.pairs
        if (pair.measure, pair.k) == (finding.measure, finding.k)
        and {pair.a, pair.b} == {finding.favoured, finding.other}
    ]
    if not match or finding.measure == "equalized_odds":
        return ""
    pair = match[0] if match[0].a == finding.favoured else match[0].turned()
    if not abs(pair.mix_part) >= finding.interval.estimate / 10:
        return ""
    return f" Of this, {pair.ranker_part:+.3f} is the ranker's, within queries, and {pair.mix_part:+.3f} the query mix."


def untold(audit: Audit) -> list[str]:
    """List what the data cannot tell: pairs that no list can compare, and small groups with their counts."""
    sentences = []
    if audit.facts["queries"] > 1:
        cut = [k for k in audit.ks if audit.facts["whole_lists"][k] < 1]
        closed = [pair for pair in audit.pairs if not pair.within_query.decidable and pair.k in cut]
        keys = dict.fromkeys((pair.a, pair.b, pair.measure) for pair in closed)
        lines = []
        for a, b, measure in keys:
            same = [pair for pair in closed if (pair.a, pair.b, pair.measure) == (a, b, measure)]
            counts = f"{same[0].count_a:,.8g} and {same[0].count_b:,.8g} items"
            where = "irrelevant items" if measure == "equalized_odds" else notion_title(measure)
            ks = ", ".join(str(pair.k) for pair in same)
            lines.append(
                f"{where} of {quoted(a)} and {quoted(b)} ({counts}) at k = {ks}: {same[0].within_query.reason}"
            )
        if lines:
            more = f" And {len(lines) - MOST_LISTED} more." if len(lines) > MOST_LISTED else ""
            sentences.append(f"Cannot be told within queries: {' '.join(lines[:MOST_LISTED])}{more}")
    small = [row for row in audit.categories if row.number < SMALL and not row.set_aside and row.k == audit.main_k]
    if small:
        rows = ", ".join(
            f"{quoted(row.category)} {row.number:g} ({row.selected:.3g} in the top {row.k})" for row in small
        )
        sentences.append(f"Small groups, items: {rows}. What is said of others does not rest on them.")
    return sentences
