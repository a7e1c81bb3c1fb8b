"""AWRF and skew as a section of an audit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenrank.audits.list_shares import SHARES
from evenrank.audits.section import Section
from evenrank.wording import NONE, TITLES, three_digits

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.confidence import Interval


def shares_section(audit: Audit) -> Section:
    """Write AWRF and skew, list by list."""
    rows: list[tuple[str, ...]] = []
    endless = False
    head = ("", *(f"k = {k}" for k in audit.ks))
    for name in SHARES:
        found = audit.find(name)
        if not any(finding.interval.estimate == finding.interval.estimate for finding in found):
            continue
        rows.append((TITLES[name], *(_skew(finding.interval.estimate) for finding in found)))
        if any(finding.interval.low == finding.interval.low for finding in found):
            rows.append((f"  {audit.confidence:.0%} interval", *(_ends(finding.interval) for finding in found)))
        endless = endless or any(finding.interval.estimate == -math.inf for finding in found)
    note = (
        "Means over lists, against each list's own shares of the groups. AWRF: 1 less the Jensen–Shannon divergence "
        "of the shares of exposure, which is 1 / log2(1 + rank) (the TREC track weighs ranks 1 and 2 alike). Skew: the "
        "logarithm of a group's share of the top k over its share of the list, for the group where it is highest or "
        "lowest. Lists in random order are not at 1 and 0 either, and are further from them the smaller k is, so no "
        "verdict rests on these."
    )
    if audit.facts["recurring_items"]:
        note += " Items recur, so that lists are not independent: there are no intervals."
    if endless:
        note += " −∞: the top k of some list has none of a group that is in the list."
    return Section("Shares of exposure and of the top k, list by list", (), head, tuple(rows), note)


def _skew(value: float) -> str:
    return "−∞" if value == -math.inf else three_digits(value)


def _ends(interval: Interval) -> str:
    if math.isnan(interval.low) or math.isnan(interval.high):
        return NONE
    return f"{interval.low:.3f}, {interval.high:.3f}"
