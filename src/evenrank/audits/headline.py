"""The answer of an audit in short: what the ranker does within queries, and how the pooled rates stand to that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenrank.audits.notable import by_clearness
from evenrank.audits.pair_words import gap_title, got, rates_words
from evenrank.wording import quoted, signed

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit
    from evenrank.audits.pair import Pair

NOT_PROOF = "That is not proof of evenness: see below how large a gap could go unnoticed."


def in_short(audit: Audit) -> str:
    """Write the answer. That the ranker is uneven is said from the gaps within queries only."""
    queries = audit.facts["queries"]
    if queries < 2:
        return "In short: one query alone cannot show how sure the numbers are; they describe that query only."
    verdict, level = audit.verdict, 1 - audit.confidence
    inside = by_clearness(audit.pairs, "within_query")
    alone = [pair for pair in inside if pair.within_query.p <= level]
    if verdict["within_query"] == "cannot tell":
        return f"In short: cannot tell whether the ranker is even. {_why_not(audit)}{_besides(audit)}"
    if verdict["within_query"] == "uneven":
        firm = [pair for pair in inside if pair.within_query.adjusted <= level]
        best = firm[0]
        return (
            f"In short: uneven. Within queries {len(alone)} of {len(inside)} gaps are shown with "
            f"{audit.confidence:.0%} confidence, {len(firm)} of them also after correction for testing {len(inside)}. "
            f"The clearest is the {_named(best)}. In lists with both groups, {got(best)}.{_hidden(best, level)}"
        )
    if verdict["within_query"] == "hints":
        return (
            f"In short: hints, nothing firm. Within queries {len(alone)} of {len(inside)} gaps are shown when each is "
            f"tested alone, none after correction for testing {len(inside)}. The clearest is the {_named(alone[0])}."
            f"{_besides(audit)}"
        )
    if verdict["pooled"] == "uneven":
        best = by_clearness(audit.pairs, "pooled")[0]
        return (
            f"In short: the pooled rates differ, but no gap within queries is shown{_whose(best, queries)}. The "
            f"clearest pooled gap is the {_named(best)}{_split(best)}."
        )
    if verdict["pooled"] == "hints":
        return (
            f"In short: no gap within queries is shown in these {queries:,} queries, and the pooled rates give a hint, "
            f"nothing firm: the clearest is the {_named(by_clearness(audit.pairs, 'pooled')[0])}. {NOT_PROOF}"
        )
    return f"In short: no gap is shown in these {queries:,} queries. {NOT_PROOF}"


def _named(pair: Pair) -> str:
    return f"{gap_title(pair)}, which favours {quoted(pair.a)} over {quoted(pair.b)}"


def _split(pair: Pair) -> str:
    return (
        f" ({rates_words(pair)}; difference {signed(pair.pooled.difference)} = ranker {signed(pair.ranker_part)}, "
        f"query mix {signed(pair.mix_part)})"
    )


def ranker_ends(pair: Pair) -> tuple[float, float]:
    """Give the interval of the ranker's part of a pooled gap: that of the gap within queries on the pooled scale."""
    gap = pair.within_query
    # The part is the gap within queries times a number of at most 1, which is 1 if all lists are alike.
    times = pair.ranker_part / gap.difference if gap.difference else 1.0
    return gap.low * times, gap.high * times


def is_query_mix(pair: Pair) -> bool:
    """Tell whether at least half of a pooled gap, its group ahead first, is the query mix for certain.

    It is if even the upper end of the ranker's part leaves it so, or if the groups never meet in a list.
    """
    if not pair.lists:
        return pair.mix_part >= pair.pooled.difference / 2
    return pair.within_query.decidable and ranker_ends(pair)[1] <= pair.pooled.difference / 2


def _whose(pair: Pair, queries: int) -> str:
    """Say whose a pooled gap is, as far as that can be told."""
    low, high = ranker_ends(pair)
    if pair.within_query.decidable and is_query_mix(pair):
        return f": as far as these {queries:,} queries tell, it is the query mix, not the ranker"
    if not pair.within_query.decidable or math.isnan(high):
        return ". Whether the clearest one is the ranker's or the query mix cannot be told"
    return (
        f". How much of the clearest one is the ranker's cannot be told: its part is likely {signed(low)} to "
        f"{signed(high)}"
    )


def _hidden(pair: Pair, level: float) -> str:
    """Say where the pooled rates hide what the ranker does, or point the other way (Simpson's paradox)."""
    if not pair.pooled.decidable:
        return ""
    if pair.pooled.difference < 0 and pair.pooled.p <= level:
        return (
            f" The pooled rates point the other way: the query mix favours {quoted(pair.b)} and hides what the ranker "
            f"does{_split(pair)}."
        )
    if pair.pooled.p <= level:
        return ""
    if pair.mix_part < -pair.ranker_part / 4:
        return f" The pooled rates do not show it: the query mix hides it{_split(pair)}."
    return f" The pooled rates alone do not show it{_split(pair)}."


def _besides(audit: Audit) -> str:
    """Add the pooled rates where they differ but say nothing about the ranker."""
    if audit.verdict["pooled"] != "uneven":
        return ""
    best = by_clearness(audit.pairs, "pooled")[0]
    return (
        f" The pooled rates differ: the clearest is the {_named(best)}{_split(best)}; from that alone the ranker's "
        "part is not shown."
    )


def _why_not(audit: Audit) -> str:
    reasons = list(dict.fromkeys(pair.within_query.reason for pair in audit.pairs if pair.count_a and pair.count_b))
    return reasons[0] if reasons else "No pair of groups could be compared; see below why."
