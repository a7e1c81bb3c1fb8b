"""An audit in plain words: what it shows, what it does not, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenrank.audits.headline import in_short, is_query_mix
from evenrank.audits.notable import by_clearness
from evenrank.audits.pair_words import count, shown_sentences, untold
from evenrank.confidence import FEW
from evenrank.measures import MeasureAt
from evenrank.wording import FOUR_FIFTHS, TITLES, quoted, signed, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair
    from evenrank.comparisons import PairComparison

NO_LABELS = (
    "Without relevance labels a gap may reflect real differences between items. Equal opportunity, equalized odds and "
    "the quality of the ranking cannot be judged: whether relevant items of each group had equal chances is not known."
)
CAUTION = (
    "Caution: re-ranking that sees the group treats items, or people, by their group. In employment, credit, housing "
    "and elsewhere the law may forbid it, allow it or ask for it, depending on the place and the case: have it checked "
    "before use. Training that needs no group at serving raises other questions. Nothing here is legal advice."
)

MORE_ITEMS = (
    "What now: items recur, and what they carry from list to list makes the gaps unsure. More queries with the same "
    "items would not settle it; more items would."
)
NOTION_OF = {"demographic_parity": "dp", "equal_opportunity": "eop", "equalized_odds": "eod", "exposure_gap": "dp"}


@dataclass(frozen=True)
class Told:
    """An audit in sentences.

    Attributes
    ----------
    answer : str
        The answer in short.
    shown : list of str
        What is shown, notion by notion.
    untold : list of str
        What the data cannot tell.
    about : list of str
        What was done to the data, and the limits of it all.
    next : list of str
        What to do.
    """

    answer: str
    shown: list[str]
    untold: list[str]
    about: list[str]
    next: list[str]


def told(audit: Audit) -> Told:
    """Write an audit in sentences."""
    shown = []
    if audit.facts["queries"] > 1:
        shown = [*shown_sentences(audit, "within_query"), *shown_sentences(audit, "pooled")]
    shown += [_four_fifths(audit), _compared(audit), _certified(audit)]
    return Told(
        in_short(audit),
        [text for text in shown if text],
        untold(audit),
        [*audit.notes, *_limits(audit)],
        [text for text in _next(audit) if text],
    )


def conclusions(audit: Audit) -> list[str]:
    """Write the answer first, then what is shown, what cannot be told, the limits, and what to do."""
    words = told(audit)
    return [words.answer, *words.shown, *words.untold, *words.about, *words.next]


def _gaps(audit: Audit) -> list[str]:
    return list(dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates))


def _four_fifths(audit: Audit) -> str:
    ratios = {
        finding.k: finding.interval
        for finding in audit.find("four_fifths")
        if not math.isnan(finding.interval.estimate)
    }
    verdicts = {
        k: verdict for k, verdict in audit.four_fifths().items() if k in ratios and audit.facts["whole_lists"][k] < 1
    }
    if not verdicts or audit.facts["queries"] < 2:
        return ""
    parts = []
    for verdict in ("not met", "cannot be told", "met"):
        ks = [k for k, reached in verdicts.items() if reached == verdict]
        if ks:
            parts.append(f"{verdict} at k = {', '.join(map(str, ks))}")
    k = min(verdicts, key=lambda k: ratios[k].estimate)
    low = ratios[k]
    compared = [row for row in audit.categories if row.k == k and row.ratio is not None]
    behind, ahead = (choose(compared, key=lambda row: row.rate) for choose in (min, max))
    named = (
        ""
        if low.estimate >= 1
        else (
            f": {quoted(behind.category)} {count(behind.selected)} of {count(behind.number)}, "
            f"{quoted(ahead.category)} {count(ahead.selected)} of {count(ahead.number)}"
        )
    )
    return (
        f"Four-fifths rule (the lowest group's rate at least {FOUR_FIFTHS:g} of the highest's): {'; '.join(parts)}. "
        f"The lowest ratio is {low.estimate:.2f} ({low.low:.2f} to {low.high:.2f}), at k = {k}{named}."
    )


def _certified(audit: Audit) -> str:
    if audit.facts["clusters"]:
        named = " or ".join(map(quoted, audit.facts["clusters"]))
        return (
            "Certified for new queries: nothing. That needs independent queries, and those of the same "
            f"{named} may depend on each other."
        )
    at_main = [certificate for certificate in audit.certificates if certificate.measure.endswith(f"@{audit.main_k}")]
    useful = [certificate for certificate in at_main if not certificate.vacuous]
    if not useful:
        if any(not certificate.vacuous for certificate in audit.certificates):
            return f"Certified for new queries at k = {audit.main_k}: nothing; the table below has other cut-offs."
        rest = "; the intervals, which approximate, are all there is" if audit.facts["queries"] > 1 else ""
        return (
            "Certified for new queries: vacuous. There are too few queries for a promise that needs no approximation"
            f"{rest}."
        )
    limits = ", ".join(
        f"{TITLES[MeasureAt.of(certificate.measure).name]} {certificate.bound:.3f}" for certificate in useful
    )
    rest = "" if len(useful) == len(at_main) else " (the others are vacuous)"
    same = " (as items recur: for new lists of the same items)" if audit.facts["recurring_items"] else ""
    return (
        f"Certified for new queries at k = {audit.main_k}, at most: {limits}{rest}. It holds if queries are "
        f"independent{same}, none was used to train the ranker, and no list is longer than {useful[0].longest:g} items."
    )


def _compared(audit: Audit) -> str:
    """Say which measures differ, and which gaps have moved although their sizes do not differ: a lead that flips."""
    if not audit.comparison:
        return ""
    level = 1 - audit.confidence
    sure = [comparison for comparison in audit.comparison if comparison.adjusted <= level]
    moved = [
        (comparison.measure, pair)
        for comparison in audit.comparison
        for pair in comparison.pairs
        if pair.adjusted <= level and (_flips(pair) or comparison not in sure)
    ]
    if not sure and not moved:
        return (
            f"Compared with the other ranking: none of {len(audit.comparison)} differences is more than chance, once "
            "corrected for their number."
        )
    start = "Compared with the other ranking, "
    changes = ", ".join(
        f"{title(*MeasureAt.of(comparison.measure))} {comparison.difference:+.3f}" for comparison in sure
    )
    sizes = (
        f"more than chance (other minus this): {changes}." if sure else "no measure is larger or smaller for certain."
    )
    if not moved:
        return start + sizes
    measure, clearest = min(moved, key=lambda entry: entry[1].p_value)
    flips = sum(_flips(pair) for _, pair in moved)
    gaps = "1 gap has" if len(moved) == 1 else f"{len(moved)} gaps have"
    where = f", {flips} of them to the other group" if flips else ""
    direction = f"; {clearest.direction}" if _flips(clearest) else ""
    return (
        f"{start}{sizes} {gaps} moved more than chance{where}; the clearest is the {title(*MeasureAt.of(measure))} "
        f"between {quoted(clearest.group)} and {quoted(clearest.other)}: {signed(clearest.a)} here, "
        f"{signed(clearest.b)} there{direction}."
    )


def _flips(pair: PairComparison) -> bool:
    """Tell whether the lead goes to the other group: both gaps must be larger than the chance of their difference."""
    return pair.flips and min(abs(pair.a), abs(pair.b)) > (pair.high - pair.low) / 2


def _limits(audit: Audit) -> list[str]:
    facts = audit.facts
    sentences = []
    if not audit.labelled:
        sentences.append(NO_LABELS)
    if facts["relevant_share"] == 0:
        sentences.append(
            "No item counts as relevant, so quality, equal opportunity and equalized odds cannot be measured. Check "
            "the relevance column and its threshold."
        )
    rare = [
        finding for measure in _gaps(audit) for finding in audit.find(measure) if 0 < finding.interval.queries < FEW
    ]
    if rare and facts["queries"] > 1:
        least = min(rare, key=lambda finding: finding.interval.queries)
        number = least.interval.queries
        lists = "1 query has" if number == 1 else f"{number} queries have"
        sentences.append(
            f"Only {lists} an item of the rarest group for the {TITLES[least.measure]}; its intervals are rough."
        )
    swallowed = [k for k in audit.ks if audit.facts["whole_lists"][k] >= 0.5]
    if swallowed:
        k = swallowed[0]
        sentences.append(
            f"At k = {k} {facts['whole_lists'][k]:.0%} of the lists have no more than k items and are taken whole; "
            f"gaps at k = {', '.join(map(str, swallowed))} say little."
        )
    if facts["unknown_group_share"]:
        sentences.append(
            f"{facts['unknown_group_share']:.0%} of the items have no group label: they are ranked, but count in no "
            "gap. If labels are missing more often in one group, the gaps may be off."
        )
    if facts["queries"] > 1:
        sentences.append(
            f"Each interval is for one number alone: about {100 * (1 - audit.confidence):.3g}% of such intervals miss."
        )
    fair = ", or whether the labels are fair" if audit.labelled else ""
    sentences.append(
        "The audit is about the items listed here. It does not cover items that never came into a list, or why scores "
        f"differ{fair}."
    )
    return sentences


def _next(audit: Audit) -> list[str]:
    verdict = audit.verdict
    if verdict["within_query"] == "uneven":
        best = by_clearness(audit.pairs, "within_query")[0]
        notion = NOTION_OF[best.measure]
        # the queries are those that weigh in the pooled gap, which may be that of the other group
        along = audit.influences and best.pooled.difference > 0
        look = "look at the queries that weigh most, below; " if along else ""
        rows = "rows with features" + ("" if audit.facts["relevant_share"] else " and relevance labels")
        return [
            f"What now: {look}see what a more even ranking costs with `evenrank train --notion {notion}` on {rows}, "
            "or with rankings that see the group: offsets per group "
            f"(`evenrank train --method offset --notion {notion}`) or `evenrank rank --method fastar`; "
            "then compare with `evenrank audit --compare`.",
            CAUTION,
        ]
    if verdict["within_query"] == "hints":
        return [
            "What now: a hint is a reason to look again, with more queries or at one notion and cut-off that is chosen "
            "beforehand.",
            _plan(audit),
        ]
    if verdict["pooled"] == "uneven" and not is_query_mix(by_clearness(audit.pairs, "pooled")[0]):
        return [
            "What now: whether the ranker or the query mix makes the pooled gap cannot be told from these data. "
            "Collect more queries, from more users if they are clusters, before changing the ranker or the lists.",
            _plan(audit),
        ]
    if verdict["pooled"] == "uneven":
        return [
            "What now: look at how the lists are filled (which queries are asked, retrieval, filters). Another order "
            "within the lists does not change in which lists the groups are."
        ]
    return [_plan(audit)]


def _plan(audit: Audit) -> str:
    """Say what these data could have noticed, for the pair of groups that they know best."""
    numbers = {category.category: category.number for category in audit.categories}
    decided = {
        (f"{pair.measure}@{pair.k}", pair.a, pair.b): _largest_gap(pair)
        for pair in audit.pairs
        if pair.within_query.decidable
    }
    plans = [
        plan for plan in audit.plans if 0 < plan.smallest_gap < decided.get((plan.measure, plan.group, plan.other), 0.0)
    ]
    if not plans:
        return MORE_ITEMS if audit.facts["recurring_items"] and decided and not audit.plans else ""
    compared = len(audit.facts["groups"])
    best = max(plans, key=lambda plan: min(numbers[plan.group], numbers[plan.other]))
    measure, k = MeasureAt.of(best.measure)
    pair = f" between {quoted(best.group)} and {quoted(best.other)}" if compared > 2 else ""
    others = "; smaller groups need more" if compared > 2 else ""
    sentence = (
        f"What now: with a probability of {best.power:.0%}, these queries would show a {TITLES[measure]} within queries"
        f"{pair} of {best.smallest_gap:.3f} at k = {k}, looked at alone"
    )
    possible = decided[best.measure, best.group, best.other]
    if best.queries_needed is None or best.queries_needed <= best.queries or best.gap > possible:
        return f"{sentence}{others}."
    return (
        f"{sentence}; to notice one of {best.gap:g}, about {best.queries_needed:,} queries like these are needed"
        f"{others}. Collect them before calling these rankings even or uneven."
    )


def _largest_gap(pair: Pair) -> float:
    """Give the largest gap within queries that the places of these lists allow: all of them to one group."""
    difference = pair.within_query.difference
    if not difference:
        return 1.0
    weight = (pair.observed - pair.expected) / difference
    largest = max(pair.expected, pair.together - pair.expected)
    return min(1.0, largest / weight) if weight > 0 else 1.0
