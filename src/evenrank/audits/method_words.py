"""How an audit's numbers were made, in words: the methods, how often and why, and what they were made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenrank.audits.pair import QUESTIONS
from evenrank.wording import tidy

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit

ASKED = {"within_query": "within queries", "pooled": "pooled"}
METHODS = {
    "exact": (
        "Exact conditional test: given how many of each list are selected, every choice of items is as likely as any "
        "other if the ranker is even. p-value and interval by Blaker's method; the ratio is one of odds."
    ),
    "exact, overdispersed": (
        "The exact test, widened because clusters of lists vary more than chance alone would let them."
    ),
    "cluster t": (
        "Difference of rates within lists (Mantel and Haenszel's weights), variance from what clusters of lists do, "
        "Student's t. A cluster is a query, unless --cluster names another."
    ),
    "item t": (
        "The same difference with the variance from what recurring items do, because it is larger than that over lists."
    ),
    "score t": (
        "Score intervals of Miettinen and Nurminen for the difference and the ratio of pooled rates, variance from "
        "what clusters do, Student's t."
    ),
    "score t, few": (
        "The same score intervals, never narrower than independent items would give, because few are selected (or not)."
    ),
}


@dataclass(frozen=True)
class Used:
    """A method, the question it answered, for how many pairs, and why in one of them."""

    question: str
    method: str
    pairs: int
    what: str
    example: str


def methods_used(audit: Audit) -> list[Used]:
    """List the methods, the most frequent first, question by question; what could not be told has none."""
    used = []
    for question in reversed(QUESTIONS):
        gaps = [getattr(pair, question) for pair in audit.pairs]
        answered = [gap for gap in gaps if gap.decidable]
        for method, count in Counter(gap.method for gap in answered).most_common():
            example = next(gap.reason for gap in answered if gap.method == method)
            used.append(Used(ASKED[question], method, count, METHODS.get(method, ""), example))
    return used


def families(audit: Audit) -> list[str]:
    """Say how p-values were corrected, and what intervals are."""
    sentences = []
    for question in reversed(QUESTIONS):
        number = sum(getattr(pair, question).decidable for pair in audit.pairs)
        if number:
            sentences.append(
                f"{ASKED[question].capitalize()}, {number:,} gaps were tested (pairs of groups, notions and cut-offs); "
                "corrected p-values allow for all of them together and for how they go together."
            )
    if audit.pairs:
        sentences.append(
            f"The interval of a pair is for that pair alone, with {audit.confidence:.0%} confidence, and not corrected."
            " The interval of the largest gap of several groups is widened to hold for all pairs at once."
        )
    if audit.method == "bootstrap":
        sentences.append("Intervals of gaps, rates and quality in the tables by k are from resampled queries.")
    return sentences


def made_facts(made: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what a result was made from and with, each fact with its name."""
    facts = [(f"File {file['name']}", f"SHA-256 {file['sha256']}") for file in made.get("files", ())]
    for name, label in (("command", "Command"), ("date", "Date"), ("evenrank", "evenrank"), ("seed", "Seed")):
        if name in made:
            facts.append((label, str(made[name])))
    return [(tidy(name), tidy(text)) for name, text in facts]
