"""An audit in plain words: what it shows, what it does not, and what to do next."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from evenrank.intervals import FEW, student
from evenrank.measures import MeasureAt
from evenrank.wording import FOUR_FIFTHS, TITLES, notion_title, number, quoted, title

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.parts import Finding

ITEMS = {"all rows": "items", "relevant rows": "relevant items", "irrelevant rows": "irrelevant items"}
NOTICEABLE = 0.05


def conclusions(audit: Audit) -> list[str]:
    """Write the answer first, then each notion, then what the data cannot show, then what to do."""
    sentences = [_in_short(audit), *(_of_gap(audit, audit.find(measure)) for measure in _gaps(audit))]
    sentences += [_four_fifths(audit), _certified(audit), _compared(audit), *_limits(audit), _next(audit)]
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


def _in_short(audit: Audit) -> str:
    tested = _tested(audit)
    shown = [finding for finding in tested if finding.shown]
    if audit.facts["queries"] < 2:
        return "In short: one query alone cannot show how sure the numbers are; they describe that query only."
    if not tested:
        return "In short: no gap could be measured; see below why."
    if not shown:
        return (
            f"In short: no gap is shown in these {audit.facts['queries']:,} queries. That is not proof of evenness: "
            "see below how large a gap could go unnoticed."
        )
    firm = _firm(audit, tested)
    biggest = max(firm or shown, key=lambda finding: finding.interval.low)
    lead = max(biggest.leads, key=lambda lead: lead.highest - lead.lowest)
    where = f"the {title(biggest.measure, biggest.k)}, in favour of {quoted(lead.favoured)} over"
    if not firm:
        return (
            f"In short: hints, nothing firm. {len(shown)} of {len(tested)} gaps are above 0 when looked at one by one, "
            f"none when corrected for looking at {len(tested)}; the clearest is {where} {quoted(lead.other)}."
        )
    return (
        f"In short: uneven. {len(shown)} of {len(tested)} gaps are above 0 with {audit.confidence:.0%} confidence, "
        f"{len(firm)} even when corrected for looking at {len(tested)}; the clearest is {where} {quoted(lead.other)}."
    )


def _firm(audit: Audit, tested: list[Finding]) -> list[Finding]:
    """Gaps shown also when every interval is widened so that all of them hold at once (Bonferroni's correction)."""
    all_at_once = 1 - (1 - audit.confidence) / max(len(tested), 1)

    def holds(finding: Finding) -> bool:
        freedom = max(finding.interval.queries - 1, 1)
        wider = student(freedom, all_at_once) / student(freedom, audit.confidence)
        return finding.interval.estimate > wider * (finding.interval.estimate - finding.interval.low)

    return [finding for finding in tested if finding.shown and holds(finding)]


def _of_gap(audit: Audit, findings: list[Finding]) -> str:
    measure = findings[0].measure
    name = notion_title(measure).capitalize()
    defined = [finding for finding in findings if not math.isnan(finding.interval.estimate)]
    if not defined:
        return f"{name}: cannot be computed; one of the groups has no such items."
    parts = []
    shown = [finding for finding in defined if finding.shown]

    def who(finding: Finding) -> list[tuple[str, str, str]]:
        return [(lead.stratum, lead.favoured, lead.other) for lead in finding.leads]

    for _, same in groupby(sorted(shown, key=who), key=who):
        members = list(same)
        widest = max(members, key=lambda finding: finding.interval.estimate)
        parts.append(f"a gap is shown at {_cuts(members)}. {_who(widest)}")
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
    return f"{sentence[0].upper()}{sentence[1:]}: {size}.{_by_chance(finding)}"


def _by_chance(finding: Finding) -> str:
    gap, chance = finding.interval.estimate, finding.chance
    if chance < gap / 4:
        return ""
    if chance >= gap:
        return f" In random order it would be {chance:.3f}: it comes from lists of different length, not the ranking."
    return f" Of this, {chance:.3f} would be left in random order: the groups are in lists of different length."


def _cuts(findings: list[Finding]) -> str:
    return "k = " + ", ".join(str(finding.k) for finding in sorted(findings, key=lambda finding: finding.k))


def _four_fifths(audit: Audit) -> str:
    ratios = {
        finding.k: finding.interval
        for finding in audit.find("four_fifths")
        if not math.isnan(finding.interval.estimate)
    }
    verdicts = {k: verdict for k, verdict in audit.verdicts().items() if k in ratios}
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
    tested = _tested(audit)
    if _firm(audit, tested):
        cost = "dp" if not audit.labelled else "eop"
        return (
            "What now: look at the queries that weigh most, below; see what a more even ranking costs with "
            f"`evenrank train --notion {cost}` on rows with features, or re-rank with `evenrank rank --method fastar`; "
            "then compare with `evenrank audit --compare`."
        )
    at_main = [finding for finding in tested if finding.k == audit.main_k]
    if not at_main:
        return ""
    loosest = max(at_main, key=lambda finding: finding.interval.high)
    reach = loosest.interval.high - loosest.interval.estimate
    needed = math.ceil(audit.facts["queries"] * (reach / NOTICEABLE) ** 2)
    if needed <= audit.facts["queries"]:
        return ""
    return (
        f"What now: to notice a {TITLES[loosest.measure]} of {NOTICEABLE} at k = {loosest.k}, about {needed:,} queries "
        "like these are needed. Collect them before calling these rankings even or uneven."
    )
