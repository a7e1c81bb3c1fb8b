"""Slow plain-Python twins of the field's measures, written from the definitions.

Each takes queries of plain lists and gives the values of the queries; ties are broken in every possible way. A value
that does not exist is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from math import comb, floor, inf, isnan, log, log2, nan

from oracles import Query, expected, orders, pooled

Lists = Sequence[Query]


def weight(discount: str, position: int, p: float) -> float:
    rank = position + 1
    return {
        "log2": 1 / log2(1 + rank),
        "log2_clipped": 1 / log2(max(rank, 2)),
        "rbp": p ** (rank - 1),
        "geometric": p * (1 - p) ** (rank - 1),
        "none": 1.0,
    }[discount]


def exposure(
    query: Query,
    k: int | None = None,
    discount: str = "log2",
    p: float = 0.5,
    u: float = 0.5,
    scores: Sequence[float] | None = None,
) -> list[float]:
    """Each item's mean exposure over all tie-breakings."""
    scores = query.scores if scores is None else scores

    def of(item: int) -> Callable[[tuple[int, ...]], float]:
        def value(order: tuple[int, ...]) -> float:
            position = order.index(item)
            if k is not None and position >= k:
                return 0.0
            if discount == "err":
                return p**position * (1 - u) ** sum(query.relevant[other] for other in order[:position])
            return weight(discount, position, p)

        return value

    return [expected(of(item), scores) for item in range(len(scores))]


def labels(queries: Lists) -> list[str]:
    return sorted({label for label in pooled(queries, "group") if label is not None})


def by_group(query: Query, values: Sequence[float], names: Sequence[str]) -> list[float]:
    return [sum(v for v, group in zip(values, query.group, strict=True) if group == name) for name in names]


def divided(a: float, b: float) -> float:
    return a / b if b > 0 else nan


def shares(values: Sequence[float]) -> list[float]:
    return [divided(value, sum(values)) for value in values]


def target(query: Query, kind: str, names: Sequence[str]) -> list[float]:
    if kind == "equal":
        return [1 / len(names)] * len(names)
    counted = [1.0 if kind == "data" or relevant else 0.0 for relevant in query.relevant]
    return shares(by_group(query, counted, names))


def kl(a: Sequence[float], b: Sequence[float]) -> float:
    if any(map(isnan, [*a, *b])):
        return nan
    return sum((x * log(x / y) if y > 0 else inf) for x, y in zip(a, b, strict=True) if x > 0)


# ---------------------------------------------------------------------- exposure


def awrf(query: Query, names: Sequence[str], k: int | None, discount: str, kind: str) -> float:
    share, wanted = shares(by_group(query, exposure(query, k, discount), names)), target(query, kind, names)
    middle = [(a + b) / 2 for a, b in zip(share, wanted, strict=True)]
    return 1 - (kl(share, middle) + kl(wanted, middle)) / 2


def track_ndcg(query: Query, k: int | None, discount: str) -> float:
    """NDCG of 0/1 gains under a discount."""
    gained = sum(x for x, relevant in zip(exposure(query, k, discount), query.relevant, strict=True) if relevant)
    number = sum(map(bool, query.relevant))
    return divided(gained, sum(weight(discount, place, 0.5) for place in range(min(number, k or number))))


def ee(
    query: Query, names: Sequence[str] | None, k: int | None, discount: str, kind: str | None, among: str
) -> tuple[float, float, float]:
    """EE-L, EE-D and EE-R, of groups or without names of items."""
    if not any(query.relevant) and (among == "relevant" or kind is None):
        return nan, nan, nan
    keep = [among == "all" or relevant for relevant in query.relevant]
    given = exposure(query, k, discount)
    wanted = [x * kept for x, kept in zip(exposure(query, k, discount, scores=query.relevance), keep, strict=True)]
    if names is not None:
        given = by_group(query, [x * kept for x, kept in zip(given, keep, strict=True)], names)
        wanted = by_group(query, wanted, names)
        if kind is not None:
            whole = sum(weight(discount, position, 0.5) for position in range(k or len(query)))
            wanted = [whole * share for share in target(query, kind, names)]
            shown = exposure(query, k, discount)
            if any(query.relevant) and not any(x for x, r in zip(shown, query.relevant, strict=True) if r):
                given = [0.0] * len(given)
    loss = sum((e - t) ** 2 for e, t in zip(given, wanted, strict=True))
    return loss, sum(e * e for e in given), sum(e * t for e, t in zip(given, wanted, strict=True))


def exposure_ratio(queries: Lists, k: int | None, kind: str) -> float:
    """Lowest over highest rate of the groups."""
    rates = []
    for name in labels(queries):
        above = below = 0.0
        for query in queries:
            rows = zip(exposure(query, k), query.relevance, query.group, query.weight, strict=True)
            for seen, relevance, group, row_weight in rows:
                if group == name:
                    above += row_weight * seen * (relevance if kind == "impact" else 1)
                    below += row_weight * (1 if kind == "items" else relevance)
        if below > 0:
            rates.append(above / below)
    return divided(min(rates), max(rates)) if len(rates) > 1 else nan


# ---------------------------------------------------------------------- the first ranks


def prefix_counts(query: Query, names: Sequence[str]) -> list[list[float]]:
    """Expected counts of each group among the first 1, 2, … ranks."""
    every = orders(tuple(query.scores))
    return [
        [sum(query.group[item] == name for order in every for item in order[:j]) / len(every) for name in names]
        for j in range(1, len(query) + 1)
    ]


def skews(query: Query, names: Sequence[str], k: int, kind: str, smoothing: float = 0.0) -> list[float]:
    counts, wanted = prefix_counts(query, names), target(query, kind, names)
    top, known = counts[min(k, len(query)) - 1], sum(counts[-1])
    if any(map(isnan, wanted)):
        return []
    if smoothing:
        a, groups = smoothing, len(names)
        return [
            log((p + a) / (sum(top) + a * groups)) - log((known * t + a) / (known + a * groups))
            for p, t in zip(top, wanted, strict=True)
        ]
    out = []
    for count, share in zip(top, wanted, strict=True):
        if count > 0:
            out.append(log(count / min(k, len(query)) / share) if share > 0 else inf)
        elif share > 0:
            out.append(-inf)
    return out


def ndkl(query: Query, names: Sequence[str], k: int | None, kind: str) -> float:
    counts, wanted = prefix_counts(query, names)[:k], target(query, kind, names)
    weights = [1 / log2(1 + j) for j in range(1, len(counts) + 1)]
    if any(map(isnan, wanted)):
        return nan
    terms = [kl([c / j for c in counts[j - 1]], wanted) for j in range(1, len(counts) + 1)]
    return sum(w * d for w, d in zip(weights, terms, strict=True)) / sum(weights)


def infeasible(query: Query, names: Sequence[str], k: int | None, kind: str) -> tuple[float, float]:
    counts, wanted = prefix_counts(query, names)[:k], target(query, kind, names)
    if any(map(isnan, wanted)):
        return nan, nan
    short = [
        [count < floor(j * share + 1e-9) - 1e-9 for count, share in zip(row, wanted, strict=True)]
        for j, row in enumerate(counts, start=1)
    ]
    return sum(map(any, short)), sum(map(sum, short))


def fair_prefix(query: Query, names: Sequence[str], protected: int, kind: str) -> float:
    """For lists without ties."""
    counts, share = prefix_counts(query, names), target(query, kind, names)[protected]
    chances = [
        sum(comb(j, s) * share**s * (1 - share) ** (j - s) for s in range(round(row[protected]) + 1))
        for j, row in enumerate(counts, start=1)
    ]
    return sum(chances) / len(chances)


def difference(name: str, s: float, i: int, S: float, N: int) -> float:
    def odds(part: float, rest: float) -> float:
        return part / rest if rest else 0.0

    return {
        "rnd": lambda: abs(s / i - S / N),
        "rkl": lambda: kl([s / i, 1 - s / i], [S / N, 1 - S / N]) / log(2),
        "rrd": lambda: abs(odds(s, i - s) - odds(S, N - S)),
        "rrd_shortfall": lambda: abs(min(odds(s, i - s), odds(S, N - S)) - odds(S, N - S)),
    }[name]()


def cut_point_sum(name: str, counts: Sequence[float], step: int, k: int | None = None) -> float:
    N = len(counts)
    cuts = [i for i in range(step, N + 1, step) if k is None or i <= k]
    return sum(difference(name, counts[i - 1], i, counts[-1], N) / log2(i + 1) for i in cuts)


def largest_sum(name: str, S: int, N: int, step: int, k: int | None = None) -> float:
    """The largest sum over all orders, one by one."""
    best = 0.0
    for places in combinations(range(N), S):
        counts = [float(sum(place < j for place in places)) for j in range(1, N + 1)]
        best = max(best, cut_point_sum(name, counts, step, k))
    return best


def at_cut_points(query: Query, label: str, name: str, step: int, k: int | None) -> float:
    counts = [row[0] for row in prefix_counts(query, [label])]
    largest = largest_sum(name, query.group.count(label), len(query), step, k)
    return divided(cut_point_sum(name, counts, step, k), largest)


# ---------------------------------------------------------------------- pairs


def pair_accuracy(
    queries: Lists, first: Callable[[str], bool], second: Callable[[str, str], bool], *, by_relevance: bool = True
) -> float:
    """The share of pairs whose first item has the higher score, ties one half."""
    won = pairs = 0.0
    for query in queries:
        for a, b in permutations(range(len(query)), 2):
            mine, other = query.group[a], query.group[b]
            if mine is None or other is None or (by_relevance and not query.relevance[a] > query.relevance[b]):
                continue
            if first(mine) and second(mine, other):
                pairs += 1
                won += 1.0 if query.scores[a] > query.scores[b] else 0.5 if query.scores[a] == query.scores[b] else 0.0
    return divided(won, pairs)


def gap(values: Sequence[float]) -> float:
    some = [value for value in values if not isnan(value)]
    return max(some) - min(some) if len(some) > 1 else nan


def pairwise(queries: Lists, names: Sequence[str], which: str) -> float:
    """``names`` are the groups of all data."""
    if which == "accuracy":
        return pair_accuracy(queries, lambda mine: True, lambda mine, other: True)
    if which in ("gap", "parity"):
        return gap(
            [
                pair_accuracy(
                    queries,
                    lambda mine, one=one: mine == one,
                    lambda mine, other, two=two: other == two,
                    by_relevance=which == "gap",
                )
                for one, two in permutations(names, 2)
            ]
        )
    with_other = {
        "intra": lambda mine, other: mine == other,
        "inter": lambda mine, other: mine != other,
        "marginal": lambda mine, other: True,
    }[which]
    return gap([pair_accuracy(queries, lambda mine, one=one: mine == one, with_other) for one in names])


# ---------------------------------------------------------------------- items


def totals(values: Sequence[float], items: Sequence[int]) -> list[float]:
    return [sum(v for v, i in zip(values, items, strict=True) if i == item) for item in sorted(set(items))]


def gini(values: Sequence[float], *, corrected: bool = False) -> float:
    n = len(values)
    return divided(sum(abs(x - y) for x, y in combinations(values, 2)), (n - 1 if corrected else n) * sum(values))


def entropy(values: Sequence[float]) -> float:
    if sum(values) == 0:
        return nan
    return -sum(share * log(share) for share in shares(values) if share > 0)


def attention_gaps(query: Query, k: int | None) -> list[float] | None:
    """Shares of attention less shares of relevance; None where nothing is relevant."""
    if sum(query.relevance) == 0:
        return None
    seen, due = shares(exposure(query, k, "geometric")), shares(query.relevance)
    return [a - r for a, r in zip(seen, due, strict=True)]
