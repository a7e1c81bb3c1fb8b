"""What the tests of pairs of groups show, notion by notion, and what they cannot tell, in words."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from evenrank.audits.notable import Tally, by_clearness, measures_of
from evenrank.wording import notion_title, quoted, signed, three_digits, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair

SMALL = 20  # items of a group that is called small
LEAST = 0.0005  # what rounds to 0
MOST_LISTED = 6
MOST_NAMED = 4  # groups that a sentence names as being ahead of another


def notion_words(measure: str) -> str:
    """Write what pairs of a measure compare; those of equalized odds are its irrelevant items.

    >>> notion_words("equal_opportunity"), notion_words("equalized_odds")
    ('equal opportunity', 'irrelevant items')
    """
    return "irrelevant items" if measure == "equalized_odds" else notion_title(measure)


def gap_title(pair: Pair) -> str:
    """Write a pair's gap and its cut-off."""
    if pair.measure == "equalized_odds":
        return f"gap among irrelevant items at {pair.k}"
    return title(pair.measure, pair.k)


def count(value: float) -> str:
    """Write a number of items or places.

    >>> count(1200.0), count(133.2307), count(0.6153), count(12345.67)
    ('1,200', '133.2', '0.6', '12,346')
    """
    value = round(value, 6)  # sums of parts may be a last digit away from what they are
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:,.1f}"


def rates_words(pair: Pair) -> str:
    """Write both groups' counts and rates."""
    if pair.measure == "exposure_gap":
        return (
            f"mean exposure {pair.rate_a:.3f} against {pair.rate_b:.3f}, of {count(pair.count_a)} and "
            f"{count(pair.count_b)} items"
        )
    return (
        f"{count(pair.selected_a)} of {count(pair.count_a)} against {count(pair.selected_b)} of {count(pair.count_b)} "
        f"in the top {pair.k}, {pair.rate_a:.1%} against {pair.rate_b:.1%}"
    )


def got(pair: Pair) -> str:
    """Write what the first group got in lists with both, beside what even shares would give it."""
    both = count(pair.together)
    what = f"exposure of {both}" if pair.measure == "exposure_gap" else f"{both} places in the top {pair.k}"
    return (
        f"{quoted(pair.a)} got {count(pair.observed)} of the two groups' {what} ({count(pair.expected)} if every list "
        "were shared evenly)"
    )


def is_cut(audit: Audit, pair: Pair) -> bool:
    """Tell whether a pair's cut-off leaves something out: of lists that are taken whole, exposure alone differs."""
    return pair.measure == "exposure_gap" or audit.facts["whole_lists"][pair.k] < 1


def shown_sentences(audit: Audit, question: str) -> list[str]:
    """Write what is shown, and where nothing is, notion by notion; many groups are summed up."""
    several = len(audit.facts["groups"]) > 2
    sentences = []
    for measure in measures_of(audit):
        same = [pair for pair in audit.pairs if pair.measure == measure and is_cut(audit, pair)]
        decided = by_clearness(same, question)
        if decided:
            start = "Within queries" if question == "within_query" else "Pooled"
            body = _many(audit, same, decided, question) if several else _two(audit, decided, question)
            sentences.append(f"{start}, {notion_words(measure)}: {body}")
    return sentences


def _two(audit: Audit, decided: list[Pair], question: str) -> str:
    level = 1 - audit.confidence
    shown = [pair for pair in decided if getattr(pair, question).p <= level]
    parts = []
    for ahead in dict.fromkeys(pair.a for pair in shown):
        pairs = [pair for pair in shown if pair.a == ahead]
        parts.append(
            f"{quoted(ahead)} is ahead of {quoted(pairs[0].b)} at k = {_cuts(pairs)}{_weak(pairs, question, level)}."
        )
        parts.append(f"At k = {pairs[0].k}: {_numbers(pairs[0], question)}.")
    unshown = [pair for pair in decided if getattr(pair, question).p > level]
    if unshown:
        gaps = [getattr(pair, question) for pair in unshown]
        most = max(max(-gap.low, gap.high) for gap in gaps)
        rest = f", where one of up to {most:.3f} could go unnoticed" if most >= LEAST else ": the two are the same"
        parts.append(f"{'No' if parts else 'no'} gap is shown at k = {_cuts(unshown)}{rest}.")
    return " ".join(parts)


def _weak(pairs: list[Pair], question: str, level: float) -> str:
    firm = [pair for pair in pairs if getattr(pair, question).adjusted <= level]
    if len(firm) == len(pairs):
        return ""
    if not firm:
        return " (a hint: not when corrected for the number of gaps)"
    return f" (when corrected for the number of gaps, at k = {_cuts(firm)})"


def _cuts(pairs: list[Pair]) -> str:
    return ", ".join(map(str, sorted({pair.k for pair in pairs})))


def _numbers(pair: Pair, question: str) -> str:
    gap = getattr(pair, question)
    size = f"difference {gap.difference:.3f}, likely {three_digits(gap.low)} to {three_digits(gap.high)}"
    if question == "pooled":
        parts = f"; ranker's part {signed(pair.ranker_part)}, query mix {signed(pair.mix_part)}"
        return f"{rates_words(pair)}; {size}{parts if abs(pair.mix_part) >= abs(gap.difference) / 10 else ''}"
    kind = "odds ratio" if gap.ratio_kind == "odds ratio" else "ratio of rates"
    ratio = "" if not math.isfinite(gap.ratio) else f"; {kind} {gap.ratio:.2f}"
    return f"{got(pair)}; {size}{ratio}"


def _many(audit: Audit, same: list[Pair], decided: list[Pair], question: str) -> str:
    """Sum up the pairs of many groups: how many, who is behind whom, and the clearest in numbers."""
    level = 1 - audit.confidence
    pairs = len({(pair.a, pair.b) for pair in same})
    cuts = len({pair.k for pair in same})
    start = (
        f"{len(same):,} gaps ({pairs} pairs of groups at {cuts} cut-off{'s' * (cuts > 1)}): "
        + Tally.of(audit, same, question).words
    )
    firm = [pair for pair in decided if getattr(pair, question).adjusted <= level]
    if not firm:
        return f"{start}."
    behind: dict[str, list[Pair]] = {}
    for pair in firm:
        behind.setdefault(pair.b, []).append(pair)
    most = sorted(behind, key=lambda name: -len({pair.a for pair in behind[name]}))
    clauses = []
    for name in most[:MOST_LISTED]:
        ahead = list(dict.fromkeys(pair.a for pair in behind[name]))
        names = ", ".join(map(quoted, sorted(ahead)[:MOST_NAMED]))
        more = f" and {len(ahead) - MOST_NAMED} more" if len(ahead) > MOST_NAMED else ""
        clauses.append(f"{quoted(name)} is behind {names}{more} (k = {_cuts(behind[name])})")
    left = len(most) - MOST_LISTED
    rest = f"; {left} more groups are behind some" if left > 0 else ""
    best = firm[0]
    return (
        f"{start}. {'; '.join(clauses)}{rest}. The clearest is {quoted(best.a)} over {quoted(best.b)} at k = {best.k}: "
        f"{_numbers(best, question)}."
    )


def untold(audit: Audit) -> list[str]:
    """List what the data cannot tell: pairs that no list can compare, and small groups with their counts."""
    sentences = []
    if audit.facts["queries"] > 1:
        empty = [
            measure
            for measure in measures_of(audit)
            if all(math.isnan(finding.interval.estimate) for finding in audit.find(measure))
        ]
        sentences += [
            f"{notion_title(measure).capitalize()}: cannot be computed; fewer than two groups have "
            f"{'relevant items' if measure == 'equal_opportunity' else 'relevant and irrelevant items'}."
            for measure in empty
        ]
        closed = [
            pair
            for pair in audit.pairs
            if not pair.within_query.decidable and is_cut(audit, pair) and pair.measure not in empty
        ]
        if len(audit.facts["groups"]) > 2:
            sentences += _untold_many(audit, closed)
        else:
            sentences += [
                f"Cannot be told within queries: {_untold_line(audit, pairs)}" for pairs in untold_pairs(closed)
            ]
    small = [row for row in audit.categories if row.number < SMALL and not row.set_aside and row.k == audit.main_k]
    if small and len(small) < len({row.category for row in audit.categories}):
        rows = ", ".join(
            f"{quoted(row.category)} {row.number:g} ({row.selected:.3g} in the top {row.k})"
            for row in small[: 2 * MOST_LISTED]
        )
        left = len(small) - 2 * MOST_LISTED
        more = f" and {left} more groups" if left > 0 else ""
        # a sentence about others needs two of them
        others = len(audit.facts["groups"]) - len(small)
        rest = " What is said of others does not rest on them." if others > 1 else ""
        sentences.append(f"Small groups, items: {rows}{more}.{rest}")
    return sentences


def untold_pairs(closed: list[Pair]) -> list[list[Pair]]:
    """Put together what cannot be told of the same two groups for the same reason."""
    keys: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in closed:
        keys.setdefault((pair.a, pair.b, pair.within_query.reason), []).append(pair)
    return list(keys.values())


def notions_and_cuts(pairs: list[Pair]) -> str:
    """Write notions with their cut-offs."""
    measures = dict.fromkeys(pair.measure for pair in pairs)
    return "; ".join(
        f"{notion_words(measure)} at k = {_cuts([pair for pair in pairs if pair.measure == measure])}"
        for measure in measures
    )


def _untold_line(audit: Audit, pairs: list[Pair]) -> str:
    pair = pairs[0]
    kind, items = "", [audit.facts["counts"][name] for name in (pair.a, pair.b)]
    if all(each.stratum == pair.stratum != "all rows" for each in pairs):
        kind, items = pair.stratum.removesuffix("rows"), [pair.count_a, pair.count_b]
    counts = f"{items[0]:,.8g} and {items[1]:,.8g} {kind}items"
    return f"{quoted(pair.a)} and {quoted(pair.b)} ({counts}), {notions_and_cuts(pairs)}: {pair.within_query.reason}"


def _untold_many(audit: Audit, closed: list[Pair]) -> list[str]:
    """Sum up what cannot be told of many groups: whose, and why."""
    if not closed:
        return []
    sizes = audit.facts["counts"]
    gaps = Counter(name for pair in closed for name in (pair.a, pair.b))
    names = [name for name, _ in gaps.most_common(MOST_NAMED)]
    listed = ", ".join(f"{quoted(name)} ({count(sizes[name])} items) {gaps[name]}" for name in names)
    reasons = Counter(pair.within_query.reason for pair in closed).most_common()
    told = " ".join(f"{number:,}: {reason}" for reason, number in reasons[:MOST_NAMED])
    left = f" And {len(reasons) - MOST_NAMED} more reasons." if len(reasons) > MOST_NAMED else ""
    return [
        f"{len(closed):,} gaps within queries cannot be told; the groups most often among them: {listed}.",
        f"Why not. {told}{left} The CSV and the JSON list each.",
    ]
