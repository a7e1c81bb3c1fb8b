"""Does the ranker favour group a over group b in the lists it got? Stratified by list, robust, exact where small.

Per list, D is what group a got beyond its share of the list's selections and W = ab/(a + b). The difference is
θ = ΣD/ΣW, the risk difference of Mantel and Haenszel; the part of the pooled gap that is the ranker's is
ΣD · (1/N_a + 1/N_b). Both are 0 exactly when ΣD is, which is what is tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenrank.inference.clusters import (
    Covariance,
    cluster_freedom,
    few_items,
    few_leaning,
    item_variances,
    leaning_freedom,
    two_way,
)
from evenrank.inference.conditional import Conditional, conditional
from evenrank.inference.lists import Array, ItemSums, Lists, Residuals
from evenrank.inference.rates import quotient
from evenrank.inference.student import deviate, quantile, two_sided

ENOUGH = 25.0  # variance of the number selected from which a normal law will do
NEAR = 10.0  # selections from the smallest or largest possible number, within which it will not


ALIKE = (
    "In every list with both groups, all rows are treated alike: all are selected, or none, or their scores are tied."
)
ONE_CLUSTER = "All of it comes from one query or cluster, and one says nothing about others."


@dataclass(frozen=True, eq=False)
class Within:
    """The difference between two groups in the lists where they meet.

    Attributes
    ----------
    observed, expected : float
        What group a got in lists with both groups, and what it would get by its share of each list.
    difference, low, high : float
        θ and its interval: a's rate minus b's, list by list.
    ratio, ratio_low, ratio_high : float
        Of a to b, and its interval.
    ratio_kind : str
        "odds ratio" where the method is exact, else "risk ratio" (Mantel and Haenszel's).
    p : float
        The p-value of no difference.
    z : float
        The same as a normal deviate, with the difference's sign.
    method : str
        "exact", "exact, overdispersed", "cluster t", "item t" or "none".
    reason : str
        Why this method, in one sentence; or why nothing can be told.
    lists, clusters : int
        The lists that bear on it (both groups, and more than one outcome), and their clusters.
    freedom : float
        The degrees of freedom of the interval by Student's t; infinite where it is not used.
    decidable : bool
        Whether these data could show a difference at all.
    residuals : Residuals
        Each cluster's standardised residual.
    ranker_part : float
        The part of the pooled gap that comes from within lists.
    """

    observed: float
    expected: float
    difference: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    ratio_kind: str
    p: float
    z: float
    method: str
    reason: str
    lists: int
    clusters: int
    freedom: float
    decidable: bool
    residuals: Residuals
    ranker_part: float


def within(lists: Lists, *, confidence: float = 0.95, items: ItemSums | None = None) -> Within:
    """Compare two groups list by list.

    Parameters
    ----------
    lists : Lists
        The counts and sums of the pair.
    confidence : float
        Of the intervals.
    items : ItemSums, optional
        The sums of recurring items; then items are one more clustering.

    Returns
    -------
    Within
        Difference, ratio, their intervals and the p-value.
    """
    n_a, n_b = lists.total(lists.a), lists.total(lists.b)
    shared = np.flatnonzero(lists.weight)
    if len(shared) < len(lists.a):  # the others say nothing about the ranker
        lists = lists.taken(shared)
    weight, variance = lists.weight, lists.variance
    excess, total_weight = lists.total(lists.excess), lists.total(weight)
    bearing = variance > 0
    clusterings = lists.clusterings
    observed = lists.total(lists.x_a)
    nothing = Within(
        observed=observed,
        expected=observed - excess,
        difference=excess / total_weight if total_weight else math.nan,
        low=-1.0,
        high=1.0,
        ratio=math.nan,
        ratio_low=0.0,
        ratio_high=math.inf,
        ratio_kind="risk ratio",
        p=1.0,
        z=0.0,
        method="none",
        reason="",
        lists=round(lists.total(bearing.astype(np.float64))),
        clusters=clusterings[0].count(clusterings[0].sums(variance) > 0),
        freedom=0.0,
        decidable=False,
        residuals=Residuals.of(clusterings[0], np.zeros(len(clusterings[0]))),
        ranker_part=excess * (1 / n_a + 1 / n_b) if n_a and n_b else math.nan,
    )
    if not total_weight:
        return replace(nothing, reason="No list holds rows of both groups.")
    if not nothing.lists:
        return replace(nothing, reason=ALIKE)
    freedom = min(cluster_freedom(each.sums(variance), each.sums(weight), each.times) for each in clusterings)
    if nothing.clusters < 2 or freedom < 0.5:
        return replace(nothing, reason=ONE_CLUSTER)
    large, item_variance = _large(lists, nothing, confidence, freedom, items)
    why = _small(lists, bearing)
    exact = None
    if why and math.isfinite(item_variance[0]):
        exact = conditional(lists, confidence=confidence, freedom=freedom, by_item=item_variance)
    result = _small_sample(large, exact, why) if exact is not None else large
    leaning = few_leaning(clusterings, variance) if _few(lists) else 0
    if leaning:
        reason = (
            f"The sample is small and comes from {leaning} clusters of several lists, which may lean by themselves."
        )
        return replace(result, decidable=False, reason=reason)
    alone = 0
    if items is not None:
        for own, rows in ((items.is_a, lists.a), (~items.is_a, lists.b)):
            alone = alone or few_items(np.abs(items.group_deviation[own]), lists.total(rows))
    if alone:
        reason = f"One group has only {alone} items that recur, which may differ by themselves."
        return replace(result, decidable=False, reason=reason)
    return result


def _small_sample(large: Within, exact: Conditional, why: str) -> Within:
    """Replace what the exact law says better."""
    widened = exact.growth > 1
    if widened:
        why = f"{why[:-1]}, and clusters vary {exact.growth:.3g} times as much as chance alone."
    return replace(
        large,
        low=exact.low,
        high=exact.high,
        ratio=exact.odds,
        ratio_low=exact.odds_low,
        ratio_high=exact.odds_high,
        ratio_kind="odds ratio",
        p=exact.p,
        z=deviate(exact.p, large.difference) if exact.p < 1 else 0.0,
        method="exact, overdispersed" if widened else "exact",
        reason=why,
        freedom=exact.freedom,
        decidable=True,
    )


def _large(
    lists: Lists, nothing: Within, confidence: float, freedom: float, items: ItemSums | None
) -> tuple[Within, tuple[float, float]]:
    """Use Student's t with the variance over clusters, each weighed by what it leaves to the others."""
    share = lists.b / lists.rows
    parts = (lists.x_a * share * (lists.a > 0), lists.x_b * (1 - share) * (lists.b > 0))
    a_part, b_part = (lists.total(part) for part in parts)
    total, theta = lists.total(lists.weight), nothing.difference
    moments = []
    for clustering in lists.clusterings:
        leverage = clustering.sums(lists.weight) / total
        count = clustering.count(leverage > 0)
        left = np.maximum(1 - leverage, 1e-12)
        of_a = (clustering.sums(parts[0]) - a_part * leverage) / left
        of_b = (clustering.sums(parts[1]) - b_part * leverage) / left
        residual, spread = (clustering.sums(part) for part in (lists.excess - theta * lists.weight, lists.variance))
        freedom = min(freedom, leaning_freedom(spread, leverage, residual, clustering.times))
        scale = (count - 1) / count
        moments.append(clustering.products(of_a, of_b, scale))
    covariance = Covariance(moments)
    by_chance = lists.total(lists.variance)
    # without an exact law: what happens to be equal is not taken to be certain
    least = by_chance if not lists.whole and _few(lists) else 0.0
    variance = max(covariance.of_difference(), least)
    tested, first, test_freedom = _tested(lists)
    tested = max(tested, least)
    by_item, item_freedom = _item_variance(items, theta)
    method, reason, growth = "cluster t", _large_reason(lists, nothing), 1.0
    if math.isinf(by_item):
        return replace(nothing, reason="Items recur, and one of the groups has a single one."), (by_item, item_freedom)
    if items is not None and item_freedom > 0:
        # few items show too little of how much they vary
        freedom, test_freedom = min(freedom, item_freedom), min(test_freedom, item_freedom)
    # lists and items share rows only, whose variance is that of chance
    joint, tested = (two_way([each, by_item, by_chance]) if by_item > 0 else each for each in (variance, tested))
    if joint > variance:
        method, growth = "item t", joint / variance if variance > 0 else 1.0
        reason = f"Items recur: with them the variance is {growth:.3g} times that over lists."
        variance = joint
    if not min(variance, tested) > 0 or min(freedom, test_freedom) <= 0:
        reason = "The lists do not differ from each other, so their chance cannot be told."
        return replace(nothing, reason=reason), (by_item, item_freedom)
    t = quantile(confidence, freedom)
    half = t * math.sqrt(variance) / total
    p = two_sided((a_part - b_part) / math.sqrt(tested), test_freedom)
    low, high = agreeing(theta - half, theta + half, theta, 0.0, shown=p <= 1 - confidence)
    ratio = quotient(a_part, b_part)
    ratio_low, ratio_high = _ratio_limits(a_part, b_part, covariance, growth * t * t)
    ratio_low, ratio_high = agreeing(ratio_low, ratio_high, ratio, 1.0, shown=p <= 1 - confidence)
    result = replace(
        nothing,
        low=max(-1.0, low),
        high=min(1.0, high),
        ratio=ratio,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        p=p,
        z=deviate(p, theta),
        method=method,
        reason=reason,
        freedom=freedom,
        decidable=True,
        residuals=Residuals.of(lists.clusterings[0], first),
    )
    return result, (by_item, item_freedom)


def _tested(lists: Lists) -> tuple[float, Array, float]:
    """Give the variance of ΣD that the test uses, the residuals of the first clustering, and degrees of freedom.

    A lean moves a list's D about as much as chance does: by the variance V that chance gives it, not by its weight W,
    which grows with the length of the list although its top k does not. So residuals are those of D on V.
    """
    total = lists.total(lists.excess)
    each, first, freedom = [], None, math.inf
    for clustering in lists.clusterings:
        spread = clustering.sums(lists.variance)
        leverage = spread / clustering.total(spread)
        count = clustering.count(leverage > 0)
        residual = clustering.sums(lists.excess) - total * leverage
        moved = residual / np.maximum(1 - leverage, 1e-12)
        each.append((count - 1) / count * clustering.dot(moved, moved))
        first = moved if first is None else first
        freedom = min(freedom, leaning_freedom(spread, spread, residual, clustering.times))
    assert first is not None
    return two_way(each), first, freedom


def agreeing(low: float, high: float, estimate: float, null: float, *, shown: bool) -> tuple[float, float]:
    """Let an interval hold the null value exactly where the test does not show a difference."""
    if not shown:
        return min(low, null), max(high, null)
    return (max(low, null), high) if estimate > null else (low, min(high, null))


def _large_reason(lists: Lists, nothing: Within) -> str:
    if not lists.whole:
        return "Values between 0 and 1 (ties, or exposure) have no exact law; Student's t over clusters is used."
    return f"Large sample: {nothing.lists} lists in {nothing.clusters} clusters."


def _ratio_limits(a_part: float, b_part: float, covariance: Covariance, t_squared: float) -> tuple[float, float]:
    """Give Fieller's limits of A/B, every ρ with (A − ρB)² ≤ t² · Var(A − ρB): 1 is outside exactly when p is small."""
    aa, ab, bb = covariance.at_one()
    square = b_part * b_part - t_squared * bb
    linear = a_part * b_part - t_squared * ab
    constant = a_part * a_part - t_squared * aa
    root = math.sqrt(max(0.0, linear * linear - square * constant))
    if square > 0:
        return max(0.0, (linear - root) / square), max(0.0, (linear + root) / square)
    if constant > 0 and square < 0:
        return (linear - root) / square, math.inf
    return 0.0, math.inf


def _item_variance(items: ItemSums | None, theta: float) -> tuple[float, float]:
    """Give the variance of ΣD over items, and its degrees of freedom; 0 where no items are given."""
    if items is None or len(items.is_a) < 3:
        return 0.0, 0.0
    centred = items.is_a - items.is_a.mean()
    leverage = centred * items.group_deviation
    left = np.maximum(1 - leverage / leverage.sum(), 1e-9)  # what an item leaves to the others, as for clusters
    residual = items.value_deviation - theta * items.group_deviation
    rows = items.shared if items.shared is not None else items.rows
    rows = np.abs(items.group_deviation) if rows is None else rows
    if min(items.is_a.sum(), (~items.is_a).sum()) < 2:
        return math.inf, 0.0
    total = below = 0.0
    for part, freedom in item_variances(residual, centred, left, rows, items.is_a):
        total += part
        below += part**2 / freedom  # as Welch does: few items of one group have few degrees of freedom
    return (len(centred) - 1) / len(centred) * total, total**2 / below if below > 0 else 0.0


def _few(lists: Lists) -> bool:
    """Whether so little is selected, or left out, that its variance over clusters may be far too small."""
    got, rows = lists.total(lists.x_a), lists.total(lists.a)
    return lists.total(lists.variance) < ENOUGH or min(got, rows - got) <= NEAR


def _small(lists: Lists, bearing: np.ndarray) -> str:
    """Say why an exact law is needed, or nothing."""
    if not lists.whole:
        return ""
    variance = lists.total(lists.variance)
    if variance < ENOUGH:
        return f"Small sample: the number selected has a variance of {variance:.3g}, below {ENOUGH:g}."
    least = lists.total(np.maximum(0.0, lists.selected - lists.b) * bearing)
    most = lists.total(np.minimum(lists.a, lists.selected) * bearing)
    observed = lists.total(lists.x_a * bearing)
    if observed - least <= NEAR:
        return f"The number selected is within {NEAR:g} of the smallest possible."
    if most - observed <= NEAR:
        return f"The number selected is within {NEAR:g} of the largest possible."
    return ""
