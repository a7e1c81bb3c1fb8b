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
    """The answer first, then each notion, then what the data cannot tell, then what to do."""
    told = [_in_short(audit), *(_of_gap(audit, audit.find(measure)) for measure in _gaps(audit))]
    told += [_four_fifths(audit), _certified(audit), _compared(audit), *_limits(audit), _next(audit)]
    return [text for text in told if text]


def _gaps(audit: Audit) -> list[str]:
    return list(dict.fromkeys(MeasureAt.of(made.measure).name for made in audit.certificates))


def _tested(audit: Audit) -> list[Finding]:
    """Gaps that have an interval, and lists long enough for the cut-off to choose among items."""
    found = [one for measure in _gaps(audit) for one in audit.find(measure)]
    return [one for one in found if not math.isnan(one.interval.low) and audit.facts["whole_lists"][one.k] < 1]


def _in_short(audit: Audit) -> str:
    tested = _tested(audit)
    shown = [one for one in tested if one.shown]
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
    biggest = max(firm or shown, key=lambda one: one.interval.low)
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

    def holds(one: Finding) -> bool:
        freedom = max(one.interval.queries - 1, 1)
        wider = student(freedom, all_at_once) / student(freedom, audit.confidence)
        return one.interval.estimate > wider * (one.interval.estimate - one.interval.low)

    return [one for one in tested if one.shown and holds(one)]


def _of_gap(audit: Audit, found: list[Finding]) -> str:
    measure = found[0].measure
    name = notion_title(measure).capitalize()
    defined = [one for one in found if not math.isnan(one.interval.estimate)]
    if not defined:
        return f"{name}: cannot be computed; one of the groups has no such items."
    told = []
    shown = [one for one in defined if one.shown]

    def who(one: Finding) -> list[tuple[str, str, str]]:
        return [(lead.stratum, lead.favoured, lead.other) for lead in one.leads]

    for _, same in groupby(sorted(shown, key=who), key=who):
        members = list(same)
        widest = max(members, key=lambda one: one.interval.estimate)
        told.append(f"a gap is shown at {_cuts(members)}. {_who(widest)}")
    unshown = [one for one in defined if not one.shown and not math.isnan(one.interval.low)]
    open_ = [one for one in unshown if audit.facts["whole_lists"][one.k] < 1]
    if open_:
        worst = max(one.interval.high for one in open_)
        told.append(f"no gap is shown at {_cuts(open_)}, where one of up to {worst:.3f} would go unnoticed")
    if not told:
        return ""
    first, *rest = (part if part.endswith(".") else part + "." for part in told)
    return f"{name}: " + " ".join([first, *(part[0].upper() + part[1:] for part in rest)])


def _who(one: Finding) -> str:
    exposure = one.measure == "exposure_gap"
    parts = []
    for (ahead, behind), same in groupby(one.leads, key=lambda lead: (lead.favoured, lead.other)):
        leads = list(same)
        form = "mean exposure {:.3f} against {:.3f}" if exposure else "{:.1%} against {:.1%}"
        shares = [form.format(lead.highest, lead.lowest) for lead in leads]
        place = f"{'stand higher in' if exposure else 'are more often in'} the top {one.k}"
        if len(leads) == 1:
            items, told = ITEMS.get(leads[0].stratum, leads[0].stratum), f"({shares[0]})"
        else:
            items = "items"
            kinds = [lead.stratum.removesuffix(" rows") for lead in leads]
            told = "(" + "; ".join(f"{kind}: {share}" for kind, share in zip(kinds, shares, strict=True)) + ")"
        parts.append(f"{items} of {quoted(ahead)} {place} than those of {quoted(behind)} {told}")
    said = "; ".join(parts)
    kind = "mean gap" if len(one.leads) > 1 else "gap"
    size = f"a {kind} of {one.interval.estimate:.3f}, likely {number(one.interval.low)} to {one.interval.high:.3f}"
    return f"{said[0].upper()}{said[1:]}: {size}.{_by_chance(one)}"


def _by_chance(one: Finding) -> str:
    if one.chance < one.interval.estimate / 4:
        return ""
    if one.chance >= one.interval.estimate:
        return (
            f" In random order it would be {one.chance:.3f}: it comes from lists of different length, not the ranking."
        )
    return f" Of it {one.chance:.3f} would be left in random order: the groups stand in lists of different length."


def _cuts(found: list[Finding]) -> str:
    return "k = " + ", ".join(str(one.k) for one in sorted(found, key=lambda one: one.k))


def _four_fifths(audit: Audit) -> str:
    ratios = {one.k: one.interval for one in audit.find("four_fifths") if not math.isnan(one.interval.estimate)}
    verdicts = {k: verdict for k, verdict in audit.verdicts().items() if k in ratios}
    if not verdicts or audit.facts["queries"] < 2:
        return ""
    parts = []
    for verdict in ("not met", "cannot be told", "met"):
        ks = [k for k, found in verdicts.items() if found == verdict]
        if ks:
            parts.append(f"{verdict} at k = {', '.join(map(str, ks))}")
    k = min(ratios, key=lambda k: ratios[k].estimate)
    low = ratios[k]
    return (
        f"Four-fifths rule (the lowest group's rate at least {FOUR_FIFTHS:g} of the highest's): {'; '.join(parts)}. "
        f"The lowest ratio is {low.estimate:.2f} ({low.low:.2f} to {low.high:.2f}), at k = {k}."
    )


def _certified(audit: Audit) -> str:
    made = [one for one in audit.certificates if one.measure.endswith(f"@{audit.main_k}")]
    useful = [one for one in made if not one.vacuous]
    if not useful:
        return (
            "Certified for new queries: vacuous. There are too few queries for a promise that needs no approximation; "
            "the intervals, which approximate, are all there is."
        )
    limits = ", ".join(f"{TITLES[MeasureAt.of(one.measure).name]} {one.bound:.3f}" for one in useful)
    rest = "" if len(useful) == len(made) else " (the others are vacuous)"
    return (
        f"Certified for new queries at k = {audit.main_k}, at most: {limits}{rest}. It holds if queries are "
        f"independent, none was used to train the ranker, and no list is longer than {useful[0].list_length} items."
    )


def _compared(audit: Audit) -> str:
    if not audit.comparison:
        return ""
    sure = [one for one in audit.comparison if one.adjusted <= 1 - audit.confidence]
    if not sure:
        return (
            f"Compared with the other ranking: none of {len(audit.comparison)} differences is more than chance, once "
            "corrected for their number."
        )
    told = ", ".join(f"{title(*MeasureAt.of(one.measure))} {one.difference:+.3f}" for one in sure)
    return f"Compared with the other ranking, more than chance (other minus this): {told}."


def _limits(audit: Audit) -> list[str]:
    facts = audit.facts
    told = []
    if not audit.labelled:
        told.append(
            "Without relevance labels a gap may reflect real differences between items: only demographic parity and "
            "exposure are measured, not whether relevant items of each group had equal chances."
        )
    if facts["relevant_share"] == 0:
        told.append(
            "No item counts as relevant, so quality, equal opportunity and equalized odds cannot be measured. Check "
            "the relevance column and its threshold."
        )
    rare = [one for measure in _gaps(audit) for one in audit.find(measure) if 0 < one.interval.queries < FEW]
    if rare and facts["queries"] > 1:
        least = min(rare, key=lambda one: one.interval.queries)
        told.append(
            f"Only {least.interval.queries} queries have an item of the rarest group for the "
            f"{TITLES[least.measure]}; its intervals are rough."
        )
    swallowed = [k for k in audit.ks if audit.facts["whole_lists"][k] >= 0.5]
    if swallowed:
        k = swallowed[0]
        told.append(
            f"At k = {k} {facts['whole_lists'][k]:.0%} of the lists have no more than k items and are taken whole; "
            f"gaps at k = {', '.join(map(str, swallowed))} say little."
        )
    if facts["unknown_group_share"]:
        told.append(
            f"{facts['unknown_group_share']:.0%} of the items have no group label: they are ranked, but stand in no "
            "gap. If labels are missing more often in one group, the gaps may be off."
        )
    told.append(
        f"Each interval is for one number alone: {1 - audit.confidence:.0%} of such intervals miss. All is about the "
        "items listed here, not about items that never came into a list, nor why scores differ, nor whether the "
        "labels are fair."
    )
    return told


def _next(audit: Audit) -> str:
    tested = _tested(audit)
    if _firm(audit, tested):
        cost = "dp" if not audit.labelled else "eop"
        return (
            "What now: look at the queries that weigh most, below; see what a more even ranking costs with "
            f"`evenrank train --notion {cost}` on rows with features, or re-rank with `evenrank rank --method fastar`; "
            "then compare with `evenrank audit --compare`."
        )
    at_main = [one for one in tested if one.k == audit.main_k]
    if not at_main:
        return ""
    loosest = max(at_main, key=lambda one: one.interval.high)
    reach = loosest.interval.high - loosest.interval.estimate
    needed = math.ceil(audit.facts["queries"] * (reach / NOTICEABLE) ** 2)
    if needed <= audit.facts["queries"]:
        return ""
    return (
        f"What now: to notice a {TITLES[loosest.measure]} of {NOTICEABLE} at k = {loosest.k}, about {needed:,} queries "
        "like these are needed. Collect them before calling these rankings even or uneven."
    )
