"""An audit in plain words: what it shows, what it does not, and what to do next."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from evenrank.audits.pair_words import in_short, parts_of_gap, untold, within_sentences
from evenrank.intervals import FEW
from evenrank.measures import MeasureAt
from evenrank.wording import FOUR_FIFTHS, TITLES, notion_title, number, quoted, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.parts import Finding

ITEMS = {"all rows": "items", "relevant rows": "relevant items", "irrelevant rows": "irrelevant items"}


def conclusions(audit: Audit) -> list[str]:
    """Write the answer first, then each notion, then what the data cannot show, then what to do."""
    sentences = [in_short(audit), *within_sentences(audit), *(_of_gap(audit, audit.find(m)) for m in _gaps(audit))]
    sentences += [_four_fifths(audit), *untold(audit), _certified(audit), _compared(audit)]
    sentences += [*audit.notes, *_limits(audit), _next(audit)]
    return [text for text in sentences if text]


def _gaps(audit: Audit) -> list[str]:
    return list(dict.fromkeys(MeasureAt.of(certificate.measure).name for certificate in audit.certificates))


def _tested(audit: Audit) -> list[Finding]:
    """Gaps that have an interval, and lists long enough for the cut-off to choose among items."""
    findings = [finding for measure in _gaps(audit) for finding in audit.find(measure)]
    return [
        finding
        for finding in findings
        if not math.isnan(finding.interval.low) and audit.facts["whole_lists"][finding.k] < 1
    ]


def _of_gap(audit: Audit, findings: list[Finding]) -> str:
    measure = findings[0].measure
    name = f"{notion_title(measure).capitalize()}, pooled over all queries"
    defined = [finding for finding in findings if not math.isnan(finding.interval.estimate)]
    if not defined:
        return f"{notion_title(measure).capitalize()}: cannot be computed; one of the groups has no such items."
    parts = []
    shown = [finding for finding in defined if finding.shown]

    def who(finding: Finding) -> list[tuple[str, str, str]]:
        return [(lead.stratum, lead.favoured, lead.other) for lead in finding.leads]

    for _, same in groupby(sorted(shown, key=who), key=who):
        members = list(same)
        widest = max(members, key=lambda finding: finding.interval.estimate)
        parts.append(f"a gap is shown at {_cuts(members)}. {_who(widest)}{parts_of_gap(audit, widest)}")
    unshown = [finding for finding in defined if not finding.shown and not math.isnan(finding.interval.low)]
    open_ = [finding for finding in unshown if audit.facts["whole_lists"][finding.k] < 1]
    if open_:
        worst = max(finding.interval.high for finding in open_)
        parts.append(f"no gap is shown at {_cuts(open_)}, where one of up to {worst:.3f} would go unnoticed")
    if not parts:
        return ""
    first, *rest = (sentence if sentence.endswith(".") else sentence + "." for sentence in parts)
    return f"{name}: " + " ".join([first, *(sentence[0].upper() + sentence[1:] for sentence in rest)])


def _who(finding: Finding) -> str:
    exposure = finding.measure == "exposure_gap"
    parts = []
    for (ahead, behind), same in groupby(finding.leads, key=lambda lead: (lead.favoured, lead.other)):
        leads = list(same)
        form = "mean exposure {:.3f} against {:.3f}" if exposure else "{:.1%} against {:.1%}"
        shares = [form.format(lead.highest, lead.lowest) for lead in leads]
        place = f"{'stand higher in' if exposure else 'are more often in'} the top {finding.k}"
        if len(leads) == 1:
            items, figures = ITEMS.get(leads[0].stratum, leads[0].stratum), f"({shares[0]})"
        else:
            items = "items"
            kinds = [lead.stratum.removesuffix(" rows") for lead in leads]
            figures = "(" + "; ".join(f"{kind}: {share}" for kind, share in zip(kinds, shares, strict=True)) + ")"
        parts.append(f"{items} of {quoted(ahead)} {place} than those of {quoted(behind)} {figures}")
    sentence = "; ".join(parts)
    kind = "mean gap" if len(finding.leads) > 1 else "gap"
    gap = finding.interval
    size = f"a {kind} of {gap.estimate:.3f}, likely {number(gap.low)} to {gap.high:.3f}"
    return f"{sentence[0].upper()}{sentence[1:]}: {size}."


def _cuts(findings: list[Finding]) -> str:
    return "k = " + ", ".join(str(finding.k) for finding in sorted(findings, key=lambda finding: finding.k))


def _four_fifths(audit: Audit) -> str:
    ratios = {
        finding.k: finding.interval
        for finding in audit.find("four_fifths")
        if not math.isnan(finding.interval.estimate)
    }
    verdicts = {k: verdict for k, verdict in audit.four_fifths().items() if k in ratios}
    if not verdicts or audit.facts["queries"] < 2:
        return ""
    parts = []
    for verdict in ("not met", "cannot be told", "met"):
        ks = [k for k, reached in verdicts.items() if reached == verdict]
        if ks:
            parts.append(f"{verdict} at k = {', '.join(map(str, ks))}")
    k = min(ratios, key=lambda k: ratios[k].estimate)
    low = ratios[k]
    return (
        f"Four-fifths rule (the lowest group's rate at least {FOUR_FIFTHS:g} of the highest's): {'; '.join(parts)}. "
        f"The lowest ratio is {low.estimate:.2f} ({low.low:.2f} to {low.high:.2f}), at k = {k}."
    )


def _certified(audit: Audit) -> str:
    at_main = [certificate for certificate in audit.certificates if certificate.measure.endswith(f"@{audit.main_k}")]
    useful = [certificate for certificate in at_main if not certificate.vacuous]
    if not useful:
        return (
            "Certified for new queries: vacuous. There are too few queries for a promise that needs no approximation; "
            "the intervals, which approximate, are all there is."
        )
    limits = ", ".join(
        f"{TITLES[MeasureAt.of(certificate.measure).name]} {certificate.bound:.3f}" for certificate in useful
    )
    rest = "" if len(useful) == len(at_main) else " (the others are vacuous)"
    return (
        f"Certified for new queries at k = {audit.main_k}, at most: {limits}{rest}. It holds if queries are "
        f"independent, none was used to train the ranker, and no list is longer than {useful[0].longest:g} items."
    )


def _compared(audit: Audit) -> str:
    if not audit.comparison:
        return ""
    sure = [comparison for comparison in audit.comparison if comparison.adjusted <= 1 - audit.confidence]
    if not sure:
        return (
            f"Compared with the other ranking: none of {len(audit.comparison)} differences is more than chance, once "
            "corrected for their number."
        )
    changes = ", ".join(
        f"{title(*MeasureAt.of(comparison.measure))} {comparison.difference:+.3f}" for comparison in sure
    )
    return f"Compared with the other ranking, more than chance (other minus this): {changes}."


def _limits(audit: Audit) -> list[str]:
    facts = audit.facts
    sentences = []
    if not audit.labelled:
        sentences.append(
            "Without relevance labels a gap may reflect real differences between items: only demographic parity and "
            "exposure are measured, not whether relevant items of each group had equal chances."
        )
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
        sentences.append(
            f"Only {least.interval.queries} queries have an item of the rarest group for the "
            f"{TITLES[least.measure]}; its intervals are rough."
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
    sentences.append(
        f"Each interval is for one number alone: {1 - audit.confidence:.0%} of such intervals miss. The "
        "audit is about the items listed here. It does not cover items that never came into a list, why scores differ, "
        "or whether the labels are fair."
    )
    return sentences


def _next(audit: Audit) -> str:
    verdict = audit.verdict
    if verdict["within_query"] == "uneven":
        cost = "dp" if not audit.labelled else "eop"
        return (
            "What now: look at the queries that weigh most, below; see what a more even ranking costs with "
            f"`evenrank train --notion {cost}` on rows with features, or re-rank with `evenrank rank --method fastar`; "
            "then compare with `evenrank audit --compare`."
        )
    if verdict["pooled"] == "uneven":
        return (
            "What now: look at how the lists are filled (which queries are asked, retrieval, filters). Another order "
            "within the lists does not change in which lists the groups are."
        )
    return _plan(audit)


def _plan(audit: Audit) -> str:
    """Say what these data could have noticed, for the pair of groups that they know best."""
    numbers = {category.category: category.number for category in audit.categories}
    plans = [plan for plan in audit.plans if math.isfinite(plan.smallest_gap)]
    if not plans:
        return ""
    best = max(plans, key=lambda plan: min(numbers[plan.group], numbers[plan.other]))
    measure, k = MeasureAt.of(best.measure)
    pair = f" between {quoted(best.group)} and {quoted(best.other)}" if len(numbers) > 2 else ""
    others = "; smaller groups need more" if len(numbers) > 2 else ""
    sentence = (
        f"What now: with a probability of {best.power:.0%}, these queries would show a {TITLES[measure]} within queries"
        f"{pair} of {best.smallest_gap:.3f} at k = {k}"
    )
    if best.queries_needed is None or best.queries_needed <= best.queries:
        return f"{sentence}{others}."
    return (
        f"{sentence}; to notice one of {best.gap:g}, about {best.queries_needed:,} queries like these are needed"
        f"{others}. Collect them before calling these rankings even or uneven."
    )
