"""Slow plain-Python twins of the formulas, written from the definitions.

A `Query` is plain lists. Ties are broken in every possible way and the results averaged, so nothing here knows a
formula for ties; violations are loops over strata, queries, pairs of groups and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations
from math import frexp, isnan, log2, nan
from typing import Any

import numpy as np

from evenrank.data import RankingData

STRATA: dict[str, list[Callable[[bool], bool]]] = {
    "dp": [lambda relevant: True],
    "eop": [lambda relevant: relevant],
    "eod": [lambda relevant: not relevant, lambda relevant: relevant],
}


@dataclass
class Query:
    """One list: a score, relevance, group label (None: unknown) and weight for each item."""

    scores: list[float]
    relevance: list[float]
    group: list[Any]
    weight: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.scores)

    def __post_init__(self) -> None:
        self.weight = self.weight or [1.0] * len(self)

    @property
    def relevant(self) -> list[bool]:
        return [r >= 1 for r in self.relevance]


def pooled(queries: Sequence[Query], name: str) -> list[Any]:
    return [value for query in queries for value in getattr(query, name)]


def as_data(queries: Sequence[Query], order: Sequence[int] | None = None, **options: Any) -> RankingData:
    """The rows of the queries in the given order (as they stand by default)."""
    numbers = [i for i, query in enumerate(queries) for _ in range(len(query))]
    rows = list(range(len(numbers))) if order is None else list(order)
    columns = {name: pooled(queries, name) for name in ("relevance", "group", "weight")}
    return RankingData.from_arrays(
        np.zeros((len(rows), 1)),
        [columns["relevance"][i] for i in rows],
        [columns["group"][i] for i in rows],
        [numbers[i] for i in rows],
        **{"sample_weight": [columns["weight"][i] for i in rows]} | options,
    )


# ---------------------------------------------------------------------- rankings


def ulp(number: float, kind: type = np.float64) -> Fraction:
    """The distance of neighbouring numbers of a floating type at a number's magnitude."""
    digits, lowest = {np.float16: (11, -24), np.float32: (24, -149), np.float64: (53, -1074)}[kind]
    exponent = frexp(abs(number))[1] if number else lowest
    return Fraction(2) ** max(exponent - digits, lowest)


def tied(one: float, two: float, kind: type = np.float64) -> bool:
    """The rule for a pair of scores: equal, or within 4 ulps of the larger in magnitude; integers if equal."""
    if one == two or isinstance(one, int):
        return one == two
    return abs(Fraction(one) - Fraction(two)) <= 4 * ulp(max(abs(one), abs(two)), kind)


def blocks(scores: Sequence[float], kind: type = np.float64) -> list[list[int]]:
    """Items that are tied, from the largest score down: who is not tied with a block's first starts the next."""
    out: list[list[int]] = []
    for item in sorted(range(len(scores)), key=lambda item: -scores[item]):
        if out and tied(scores[out[-1][0]], scores[item], kind):
            out[-1].append(item)
        else:
            out.append([item])
    return out


@cache
def orders(scores: tuple[float, ...]) -> list[tuple[int, ...]]:
    """Every order of the items, best first, that the scores allow."""
    block_of = {item: number for number, block in enumerate(blocks(scores)) for item in block}
    return [
        order
        for order in permutations(range(len(scores)))
        if all(block_of[one] <= block_of[two] for one, two in pairwise(order))
    ]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan


def expected(value: Callable[[tuple[int, ...]], float], scores: Sequence[float]) -> float:
    """The mean of a value of an order over random tie-breaking."""
    return mean([value(order) for order in orders(tuple(scores))])


def by_position(value: Callable[[int], float], scores: Sequence[float]) -> list[float]:
    """Each item's mean, over random tie-breaking, of a value of its position from 0."""
    every = orders(tuple(scores))
    return [mean([value(order.index(item)) for order in every]) for item in range(len(scores))]


def rank(scores: Sequence[float]) -> list[float]:
    return by_position(lambda position: position + 1, scores)


def top(scores: Sequence[float], k: int) -> list[float]:
    return by_position(lambda position: position < k, scores)


def exposure(scores: Sequence[float], k: int | None = None) -> list[float]:
    return by_position(lambda position: 1 / log2(2 + position) if k is None or position < k else 0.0, scores)


# ---------------------------------------------------------------------- quality


def gains(query: Query, gain: str = "linear") -> list[float]:
    return [r if gain == "linear" else 2**r - 1 for r in query.relevance]


def dcg(values: Sequence[float], k: int | None) -> float:
    return sum(value / log2(2 + position) for position, value in enumerate(values[:k]))


def ndcg(query: Query, k: int | None = None, gain: str = "linear") -> float:
    values = gains(query, gain)
    ideal = dcg(sorted(values, reverse=True), k)
    return expected(lambda order: dcg([values[i] for i in order], k) / ideal, query.scores) if ideal else nan


def precision(query: Query, k: int) -> float:
    return expected(lambda order: sum(query.relevant[i] for i in order[:k]) / k, query.scores)


def recall(query: Query, k: int) -> float:
    total = sum(query.relevant)
    return expected(lambda order: sum(query.relevant[i] for i in order[:k]) / total, query.scores) if total else nan


def mrr(query: Query, k: int | None = None) -> float:
    def reciprocal(order: tuple[int, ...]) -> float:
        return next((1 / (place + 1) for place, i in enumerate(order[:k]) if query.relevant[i]), 0.0)

    return expected(reciprocal, query.scores)


def over_queries(values: Sequence[float]) -> float:
    """The mean over the queries where a value exists."""
    return mean([value for value in values if not isnan(value)])


# ---------------------------------------------------------------------- fairness

Row = tuple[float, bool, Any, float]  # value, relevant, group, weight


def rows(query: Query, values: Sequence[float]) -> list[Row]:
    return list(zip(values, query.relevant, query.group, query.weight, strict=True))


def cell_mean(cell: Sequence[Row]) -> float:
    return sum(value * weight for value, _, _, weight in cell) / sum(weight for *_, weight in cell)


def group_means(stratum: Sequence[Row]) -> dict[Any, float]:
    labels = {group for _, _, group, weight in stratum if group is not None and weight > 0}
    return {label: cell_mean([row for row in stratum if row[2] == label]) for label in labels}


def pair_gap(stratum: Sequence[Row], across: str = "mean") -> float | None:
    """The mean or largest absolute difference between the means of two groups; None with fewer than two groups."""
    gaps = [abs(a - b) for a, b in combinations(group_means(stratum).values(), 2)]
    if not gaps:
        return None
    return mean(gaps) if across == "mean" else max(gaps)


def strata_of(notion: str, some: Sequence[Row]) -> Iterator[list[Row]]:
    for inside in STRATA[notion]:
        yield [row for row in some if inside(row[1])]


def violation(
    queries: Sequence[Query],
    values: Sequence[Sequence[float]],
    notion: str,
    scope: str = "amortized",
    *,
    across: str = "mean",
    training: bool = False,
) -> float:
    """Γ of the values of each query. An empty stratum makes a measure NaN and adds 0 in training."""
    each = [rows(query, mine) for query, mine in zip(queries, values, strict=True)]
    units = each if scope == "per_query" else [[row for some in each for row in some]]
    total = 0.0
    for stratum in zip(*(strata_of(notion, unit) for unit in units), strict=True):
        gaps = [pair_gap(part, across) for part in stratum]
        if training:
            total += mean([gap or 0.0 for gap in gaps])
        else:
            total += mean([gap for gap in gaps if gap is not None])
    return total / len(STRATA[notion])


def share(queries: Sequence[Query], notion: str) -> float:
    """The share of (stratum, query) in which two groups can be compared."""
    cells = [stratum for query in queries for stratum in strata_of(notion, rows(query, query.scores))]
    return mean([float(pair_gap(cell) is not None) for cell in cells])


def four_fifths(queries: Sequence[Query], k: int) -> float:
    """The lowest group's selection rate over the highest's."""
    rates = group_means([row for query in queries for row in rows(query, top(query.scores, k))]).values()
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) > 0 else nan
