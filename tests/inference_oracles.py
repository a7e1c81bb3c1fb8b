"""Slow plain twins of the statistics of an audit, and lists to try them on."""

from __future__ import annotations

from itertools import combinations, product
from math import exp, sqrt

import numpy as np
from hypothesis import strategies as st

from evenrank.inference import Lists

Counts = tuple[int, int, int, int]  # rows of a, rows of b, selected of a, selected of b


def lists_of(counts: list[Counts], *clusters: list[int], whole: bool = True) -> Lists:
    a, b, x_a, x_b = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    codes = clusters or (list(range(len(counts))),)
    return Lists(a, b, x_a, x_b, x_a + x_b, tuple(np.array(c) for c in codes), whole)


@st.composite
def count(draw: st.DrawFn, most: int = 4) -> Counts:
    a, b = draw(st.integers(0, most)), draw(st.integers(0, most))
    return a, b, draw(st.integers(0, a)), draw(st.integers(0, b))


def bearing(counts: list[Counts]) -> list[Counts]:
    """Those with both groups and more than one outcome."""
    return [c for c in counts if c[0] and c[1] and 0 < c[2] + c[3] < c[0] + c[1]]


def law_by_enumeration(counts: list[Counts]) -> dict[int, float]:
    """The law of the number selected of group a: every way to hand out each list's selections is as likely."""
    each = []
    for a, b, x_a, x_b in counts:
        ways = [sum(row < a for row in chosen) for chosen in combinations(range(a + b), x_a + x_b)]
        each.append([(s, ways.count(s) / len(ways)) for s in sorted(set(ways))])
    law: dict[int, float] = {}
    for outcome in product(*each):
        s = sum(number for number, _ in outcome)
        law[s] = law.get(s, 0.0) + float(np.prod([p for _, p in outcome]))
    return law


def tilted(law: dict[int, float], log_odds: float) -> dict[int, float]:
    least = min(law)
    raised = {s: p * exp((s - least) * log_odds) for s, p in law.items()}
    return {s: p / sum(raised.values()) for s, p in raised.items()}


def blaker(law: dict[int, float], observed: int) -> float:
    """The probability of an outcome whose smaller tail is not larger than that of what was observed."""

    def smaller_tail(s: int) -> float:
        return min(sum(p for t, p in law.items() if t <= s), sum(p for t, p in law.items() if t >= s))

    return sum(p for s, p in law.items() if smaller_tail(s) <= smaller_tail(observed) * (1 + 1e-9))


def jackknife(counts: list[Counts], clusters: list[int]) -> tuple[float, float]:
    """The Mantel-Haenszel risk difference, and its variance from leaving out each cluster with both groups in turn."""

    def difference(kept: list[Counts]) -> float:
        top = sum((x_a * b - x_b * a) / (a + b) for a, b, x_a, x_b in kept if a + b)
        return top / sum(a * b / (a + b) for a, b, _, _ in kept if a + b)

    estimate = difference(counts)
    carrying = sorted({c for c, (a, b, _, _) in zip(clusters, counts, strict=True) if a and b})
    without = [
        difference([row for row, c in zip(counts, clusters, strict=True) if c != left_out]) for left_out in carrying
    ]
    return estimate, (len(carrying) - 1) / len(carrying) * sum((estimate - x) ** 2 for x in without)


def standard_error(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
