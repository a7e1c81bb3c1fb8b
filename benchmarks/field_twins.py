"""Plain Python twins of the field's measures for `measures_field.py`: one list at a time, as one would write them.

A list is a `Line`: groups and relevance in the order of its ranks, without ties. Twins of measures that are a mean over
lists give the value of one; those of pooled measures take all lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import comb, log, log2
from typing import NamedTuple


class Line(NamedTuple):
    """One list, best rank first."""

    group: list[int]
    relevance: list[float]
    item: list[int]


GROUPS = range(4)
K, STEP = 10, 10


def shares(values: Sequence[float]) -> list[float]:
    total = sum(values)
    return [value / total for value in values]


def counted(values: Sequence[int]) -> list[int]:
    return [values.count(group) for group in GROUPS]


def by_group(line: Line, values: Sequence[float]) -> list[float]:
    sums = [0.0] * len(GROUPS)
    for group, value in zip(line.group, values, strict=True):
        sums[group] += value
    return sums


def kl(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * log(x / y) for x, y in zip(a, b, strict=True) if x > 0)


def awrf(line: Line) -> float:
    weights = [1 / log2(max(rank, 2)) for rank in range(1, len(line.group) + 1)]
    seen, wanted = shares(by_group(line, weights)), shares(counted(line.group))
    middle = [(a + b) / 2 for a, b in zip(seen, wanted, strict=True)]
    return 1 - (kl(seen, middle) + kl(wanted, middle)) / 2


def _rbp(line: Line) -> tuple[list[float], list[float]]:
    """Exposure of the ranks, and what each should have by relevance, 0 for what is not relevant."""
    weights = [0.5**position for position in range(len(line.group))]
    number = sum(r > 0 for r in line.relevance)
    each = sum(weights[:number]) / number
    return weights, [each * (r > 0) for r in line.relevance]


def ee(line: Line) -> tuple[float, float, float]:
    weights, wanted = _rbp(line)
    seen = by_group(line, [w * (r > 0) for w, r in zip(weights, line.relevance, strict=True)])
    return _ee(seen, by_group(line, wanted))


def item_ee(line: Line) -> tuple[float, float, float]:
    return _ee(*_rbp(line))


def _ee(seen: Sequence[float], wanted: Sequence[float]) -> tuple[float, float, float]:
    loss = sum((e - t) ** 2 for e, t in zip(seen, wanted, strict=True))
    return loss, sum(e * e for e in seen), sum(e * t for e, t in zip(seen, wanted, strict=True))


def min_skew(line: Line) -> float:
    top = counted(line.group[:K])
    wanted = shares(counted(line.group))
    return min(log(n / K / t) if n else float("-inf") for n, t in zip(top, wanted, strict=True) if t > 0)


def ndkl(line: Line) -> float:
    wanted, counts = shares(counted(line.group)), [0] * len(GROUPS)
    total = weights = 0.0
    for rank, group in enumerate(line.group, start=1):
        counts[group] += 1
        weights += 1 / log2(1 + rank)
        total += kl([n / rank for n in counts], wanted) / log2(1 + rank)
    return total / weights


def infeasible_index(line: Line) -> int:
    wanted, counts = shares(counted(line.group)), [0] * len(GROUPS)
    index = 0
    for rank, group in enumerate(line.group, start=1):
        counts[group] += 1
        index += any(n < int(rank * t + 1e-9) for n, t in zip(counts, wanted, strict=True))
    return index


def fair_prefix(line: Line) -> float:
    share, count, total = line.group.count(0) / len(line.group), 0, 0.0
    for rank, group in enumerate(line.group, start=1):
        count += group == 0
        total += sum(comb(rank, s) * share**s * (1 - share) ** (rank - s) for s in range(count + 1))
    return total / len(line.group)


def difference(name: str, s: int, i: int, S: int, N: int) -> float:
    if name == "rnd":
        return abs(s / i - S / N) / log2(i + 1)
    if name == "rkl":
        return kl([s / i, 1 - s / i], [S / N, 1 - S / N]) / log(2) / log2(i + 1)
    return abs((s / (i - s) if i > s else 0) - S / (N - S)) / log2(i + 1)


@cache
def largest(name: str, S: int, N: int) -> float:
    """The largest sum over all orders: the best over the protected items at each cut point in turn."""
    best = {0: 0.0}
    for i in range(STEP, N + 1, STEP):
        best = {
            s: max(value for before, value in best.items() if 0 <= s - before <= STEP) + difference(name, s, i, S, N)
            for s in range(max(0, S - (N - i)), min(S, i) + 1)
        }
    return max(best.values())


def at_cut_points(line: Line, name: str) -> float:
    """rND, rKL or rRD; the largest value of lists alike is found once."""
    N, S = len(line.group), line.group.count(0)
    raw = sum(difference(name, line.group[:i].count(0), i, S, N) for i in range(STEP, N + 1, STEP))
    return raw / largest(name, S, N)


def pairs(lines: Sequence[Line]) -> list[list[float]]:
    """Pairwise accuracy by the two groups, over all lists."""
    pairs, wins = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for line in lines:
        for a, b in combinations(range(len(line.group)), 2):
            if line.relevance[a] > line.relevance[b]:
                pairs[line.group[a], line.group[b]] += 1
                wins[line.group[a], line.group[b]] += 1
            elif line.relevance[b] > line.relevance[a]:
                pairs[line.group[b], line.group[a]] += 1
    return [[wins[i, j] / pairs[i, j] for j in GROUPS] for i in GROUPS]


def pairwise_gap(lines: Sequence[Line]) -> float:
    accuracy = pairs(lines)
    between = [accuracy[i][j] for i in GROUPS for j in GROUPS if i != j]
    return max(between) - min(between)


def iaa(lines: Sequence[Line]) -> float:
    total = Counter[int]()
    for line in lines:
        attention = shares([0.5 * 0.5**position for position in range(len(line.item))])
        for item, a, r in zip(line.item, attention, shares(line.relevance), strict=True):
            total[item] += a - r
    return sum(map(abs, total.values())) / len(lines)


def exposure(lines: Sequence[Line]) -> Counter[int]:
    """Exposure of each item."""
    total = Counter[int]()
    for line in lines:
        for rank, item in enumerate(line.item, start=1):
            total[item] += 1 / log2(1 + rank)  # type: ignore[assignment]
    return total


def gini(lines: Sequence[Line]) -> float:
    ordered = sorted(exposure(lines).values())
    n = len(ordered)
    return sum((2 * i - n - 1) * x for i, x in enumerate(ordered, start=1)) / (n * sum(ordered))


def rate_ratio(lines: Sequence[Line], kind: str) -> float:
    """Exposure per item, per relevance, or of relevance per relevance: lowest group over highest."""
    above, below = [0.0] * len(GROUPS), [0.0] * len(GROUPS)
    for line in lines:
        for rank, (group, relevance) in enumerate(zip(line.group, line.relevance, strict=True), start=1):
            above[group] += (relevance if kind == "impact" else 1) / log2(1 + rank)
            below[group] += 1 if kind == "items" else relevance
    rates = [a / b for a, b in zip(above, below, strict=True)]
    return min(rates) / max(rates)
