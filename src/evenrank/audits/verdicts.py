"""Verdicts: what the tests of all pairs show together, what each shows, and how groups stand to the highest rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.audits.cells import SummaryStatistics
from evenrank.audits.pair import QUESTIONS, Pair
from evenrank.audits.summary import Summary

STRENGTHS = ("uneven", "hints", "none shown")  # the strongest first


@dataclass(frozen=True)
class Verdict:
    """What one test shows.

    Attributes
    ----------
    question : str
        "pooled" or "within_query".
    measure, stratum, k, a, b
        Which pair, as in `Pair`.
    verdict : str
        "uneven", "hints", "none shown" or "cannot tell".
    favoured : str or None
        The group ahead where something is shown.
    p, adjusted : float
        The p-value alone and corrected.
    reason : str
        The numbers behind it, or why it cannot be told.
    """

    question: str
    measure: str
    stratum: str
    k: int
    a: str
    b: str
    verdict: str
    favoured: str | None
    p: float
    adjusted: float
    reason: str


@dataclass(frozen=True)
class Category:
    """A group's number and rate at one cut-off.

    Attributes
    ----------
    k : int
        The cut-off.
    category : str
        The group.
    number, selected, rate : float
        Its items, those in the top k, and their share.
    expected : float
        How many would be in the top k if each list were in random order.
    ratio : float or None
        Its rate over the highest rate of a group; None for a group set aside.
    set_aside : bool
        Whether the group is too small to be compared, by the limits that were given.
    """

    k: int
    category: str
    number: float
    selected: float
    rate: float
    expected: float
    ratio: float | None
    set_aside: bool


def overall(pairs: Sequence[Pair], level: float) -> dict[str, str]:
    """Give the verdict over all pairs, for each question."""
    result = {}
    for question in QUESTIONS:
        reached = {getattr(pair, question).verdict(level) for pair in pairs}
        result[question] = next((verdict for verdict in STRENGTHS if verdict in reached), "cannot tell")
    return result


def verdicts_of(pairs: Iterable[Pair], level: float) -> list[Verdict]:
    """Give the verdict on each pair, for each question."""
    return [_verdict(pair, question, level) for pair in pairs for question in QUESTIONS]


def _verdict(pair: Pair, question: str, level: float) -> Verdict:
    gap = getattr(pair, question)
    verdict = gap.verdict(level)
    return Verdict(
        question=question,
        measure=pair.measure,
        stratum=pair.stratum,
        k=pair.k,
        a=pair.a,
        b=pair.b,
        verdict=verdict,
        favoured=pair.favoured(question)[0] if verdict in ("uneven", "hints") else None,
        p=gap.p,
        adjusted=gap.adjusted,
        reason=_reason(pair, question, verdict),
    )


def _reason(pair: Pair, question: str, verdict: str) -> str:
    gap = getattr(pair, question)
    if verdict == "cannot tell":
        return f"{gap.reason} Rows: {pair.count_a:g} and {pair.count_b:g}."
    difference, low, high = (round(each, 9) for each in (gap.difference, gap.low, gap.high))
    between = f"difference {difference:+.3f} ({low:+.3f} to {high:+.3f})"
    # A last digit of a sum, which depends on the order of its parts, must not decide how it is rounded.
    pairs = ("selected_a", "selected_b") if question == "pooled" else ("observed", "expected")
    first, second = (f"{round(getattr(pair, name), 6):.4g}" for name in pairs)
    if question == "pooled":
        numbers = f"{first} of {pair.count_a:g} against {second} of {pair.count_b:g}, {between}"
    else:
        numbers = f"in lists with both, {first} where {second} would be expected, {between}"
    return f"{numbers}; p = {gap.p:.2g}, corrected {gap.adjusted:.2g}. {gap.method}: {gap.reason}"


def four_fifths_of(pairs: Iterable[Pair], ks: Sequence[int], level: float) -> dict[int, str]:
    """Judge the four-fifths rule at each cut-off over all pairs."""
    verdicts = {}
    for k in ks:
        rules = [
            pair.rule
            for pair in pairs
            if pair.measure == "demographic_parity" and pair.k == k and pair.rule is not None
        ]
        if any(rule.p_not_met * len(rules) <= level for rule in rules):
            verdicts[k] = "not met"
        else:
            verdicts[k] = "met" if rules and all(rule.p_met <= level for rule in rules) else "cannot be told"
    return verdicts


def categories_of(summary: Summary, statistics: SummaryStatistics, aside: Sequence[int] = ()) -> list[Category]:
    """Give each group's number, rate and ratio to the highest rate, cut-off by cut-off."""
    stratum = statistics.stratum("all rows")
    lengths = np.repeat(summary.lengths, np.diff(stratum.weights.ptr))
    rows = []
    for cut, k in enumerate(summary.ks):
        weights = stratum.weights
        selected, number = weights.by_column(stratum.sums("sums", 0, cut)), weights.total
        rates = np.divide(selected, number, out=np.full(len(number), np.nan), where=number > 0)
        expected = weights.by_column(weights.weight * np.minimum(k, lengths) / lengths)
        compared = [rate for code, rate in enumerate(rates.tolist()) if code not in aside and rate == rate]
        highest = max(compared, default=np.nan)
        for code, name in enumerate(summary.group_names):
            ratio = float(rates[code] / highest) if code not in aside and highest > 0 else None
            rows.append(
                Category(
                    k=k,
                    category=str(name),
                    number=float(number[code]),
                    selected=float(selected[code]),
                    rate=float(rates[code]),
                    expected=float(expected[code]),
                    ratio=ratio,
                    set_aside=code in aside,
                )
            )
    return rows
