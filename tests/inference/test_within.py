"""Two groups compared list by list: against leaving out clusters one by one, and what must always agree."""

from __future__ import annotations

from math import inf, isinf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student

from evenrank.inference import ItemSums, Lists, Within, pooled, within
from evenrank.inference.clusters import cluster_freedom
from inference_oracles import Counts, bearing, count, jackknife, lists_of

MANY = st.lists(count(5), min_size=2, max_size=12)


def drawn(lists: int, seed: int, chance: float = 0.5, users: int = 0) -> tuple[list[Counts], list[int]]:
    """Lists whose rows are selected at random, group a with the given chance, b with one half."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 6, (lists, 2))
    counts = [(int(a), int(b), int(rng.binomial(a, chance)), int(rng.binomial(b, 0.5))) for a, b in rows]
    return counts, (rng.integers(0, users, lists) if users else np.arange(lists)).tolist()


@pytest.mark.parametrize("users", [0, 30])
def test_large_samples_leave_out_each_cluster_in_turn(users: int) -> None:
    counts, clusters = drawn(200, 3, 0.6, users)
    result = within(lists_of(counts, clusters))
    estimate, variance = jackknife(counts, clusters)
    assert result.method == "cluster t"
    assert result.difference == pytest.approx(estimate)
    half = student(result.freedom).ppf(0.975) * variance**0.5
    assert (result.low, result.high) == pytest.approx((estimate - half, estimate + half))
    # The test is that of ΣD/ΣV, left out in turn, with V the variance that chance alone gives a list's D.
    chance = [hypergeometric_variance(*one) for one in counts]
    excess = [(x_a * b - x_b * a) / (a + b) for a, b, x_a, x_b in counts]
    names = sorted({c for c, v in zip(clusters, chance, strict=True) if v})
    slope = sum(excess) / sum(chance)
    without = []
    for name in names:
        rest = [i for i, c in enumerate(clusters) if c != name]
        without.append(sum(excess[i] for i in rest) / sum(chance[i] for i in rest))
    error = ((len(names) - 1) / len(names) * sum((slope - one) ** 2 for one in without)) ** 0.5
    sizes = np.array([sum(v for v, c in zip(chance, clusters, strict=True) if c == name) for name in names])
    moved = np.array([sum(d for d, c in zip(excess, clusters, strict=True) if c == name) for name in names])
    lean = max(0.0, float(((moved - slope * sizes) ** 2).sum()) - sizes.sum()) / float((sizes**2).sum())
    freedom = (cluster_freedom(sizes, sizes) + cluster_freedom(sizes + lean * sizes**2, sizes)) / 2
    assert result.p == pytest.approx(2 * student(freedom).sf(abs(slope) / error))


def hypergeometric_variance(a: int, b: int, x_a: int, x_b: int) -> float:
    n, k = a + b, x_a + x_b
    return k * (a / n) * (b / n) * (n - k) / (n - 1) if n > 1 else 0.0


def test_a_few_long_lists_do_not_hide_a_lean() -> None:
    """Lists of 4 that put group a second, and two of 400 whose top 2 say no more than theirs."""
    counts = [(2, 2, 0, 2), (2, 2, 1, 1), (2, 2, 1, 1)] * 40 + [(200, 200, 1, 1), (200, 200, 0, 2)]
    result = within(lists_of(counts))
    alone = within(lists_of(counts[:-2]))
    assert (result.method, alone.method) == ("cluster t", "cluster t")
    assert result.p < 1e-3
    assert alone.p < 1e-3
    assert result.high <= 0


@given(MANY)
def test_the_gap_is_the_rankers_part_and_the_mix(counts: list[Counts]) -> None:
    assume(sum(c[0] for c in counts) and sum(c[1] for c in counts))
    lists = lists_of(counts)
    inner, outer = within(lists), pooled(lists)
    assert outer.difference == pytest.approx(inner.ranker_part + outer.mix_part, abs=1e-12)
    # what remains when every row gets its list's mean
    mean = [(x_a + x_b) / (a + b) if a + b else 0.0 for a, b, x_a, x_b in counts]
    rate_a, rate_b = (
        sum(m * c[i] for m, c in zip(mean, counts, strict=True)) / sum(c[i] for c in counts) for i in (0, 1)
    )
    assert outer.mix_part == pytest.approx(rate_a - rate_b, abs=1e-12)


@given(MANY, st.sampled_from([0.8, 0.95]))
def test_intervals_and_p_value_agree(counts: list[Counts], confidence: float) -> None:
    result = within(lists_of(counts), confidence=confidence)
    assume(result.decidable)
    significant = result.p < 1 - confidence
    assert significant == (not result.low < 1e-12 or not result.high > -1e-12) or result.low * result.high == 0
    assert significant == (not result.ratio_low < 1 + 1e-9 or not result.ratio_high > 1 - 1e-9) or 1 in (
        result.ratio_low,
        result.ratio_high,
    )
    assert result.low - 1e-12 <= result.difference <= result.high + 1e-12
    assert result.ratio_low * (1 - 1e-9) <= result.ratio <= result.ratio_high * (1 + 1e-9)


@given(MANY)
def test_the_other_order_of_groups_is_the_same_test(counts: list[Counts]) -> None:
    lists = lists_of(counts)
    one, other = within(lists), within(lists.swapped)
    assert one.decidable == other.decidable
    assume(one.decidable)
    assert other.p == pytest.approx(one.p, rel=1e-6)
    assert other.difference == pytest.approx(-one.difference)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-6)
    if one.ratio_kind == "odds ratio" and one.ratio_low > 0 and not isinf(one.ratio_high):
        assert (other.ratio_low, other.ratio_high) == pytest.approx((1 / one.ratio_high, 1 / one.ratio_low), rel=1e-4)


@given(MANY, st.randoms(use_true_random=False))
def test_the_order_of_lists_changes_nothing(counts: list[Counts], random) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    one, other = (within(lists_of([counts[i] for i in places], places)) for places in (list(range(len(order))), order))
    assert other.p == pytest.approx(one.p, rel=1e-9)
    np.testing.assert_array_equal(other.residuals.codes, one.residuals.codes)
    np.testing.assert_allclose(other.residuals.values, one.residuals.values, atol=1e-6)


@given(MANY)
def test_lists_of_one_group_or_selected_whole_change_no_test(counts: list[Counts]) -> None:
    more = [*counts, (3, 0, 2, 0), (0, 4, 0, 1), (2, 2, 2, 2), (3, 1, 0, 0)]
    one, other = within(lists_of(counts)), within(lists_of(more))
    assume(one.decidable)
    assert one.method.startswith("exact")
    assert other.p == pytest.approx(one.p, rel=0.3)  # the degrees of freedom may see the last two
    assert other.lists == one.lists == len(bearing(counts))
    if one.method == other.method == "exact":
        assert other.p == pytest.approx(one.p, rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ([(2, 0, 1, 0), (0, 3, 0, 1)], "No list holds rows of both groups."),
        ([(2, 2, 2, 2), (1, 2, 1, 2)], "all rows are treated alike"),
        ([(2, 4, 0, 2)], "one query or cluster"),
        ([(2, 4, 0, 2), (3, 3, 3, 3), (1, 0, 1, 0)], "one query or cluster"),
    ],
)
def test_what_cannot_be_told_is_said(counts: list[Counts], word: str) -> None:
    result = within(lists_of(counts))
    assert (result.decidable, result.method, result.p, result.z) == (False, "none", 1.0, 0.0)
    assert (result.low, result.high, result.ratio_low, result.ratio_high) == (-1.0, 1.0, 0.0, inf)
    assert word in result.reason


def test_one_cluster_of_many_lists_cannot_be_told() -> None:
    counts, _ = drawn(50, 1)
    assert not within(lists_of(counts, [7] * 50)).decidable


def test_none_of_25_is_no_evidence_and_none_of_60_long_lists_is() -> None:
    rare = within(lists_of([(1, 19, 0, 1)] * 25 + [(0, 20, 0, 1)] * 275))
    assert rare.method == "exact"
    assert rare.p > 0.3
    assert rare.low < rare.high
    long = within(lists_of([(21, 179, 0, 10)] * 60))
    assert long.p < 1e-20
    assert long.ratio == 0
    assert 0 < long.ratio_high < 0.1
    assert long.observed == 0
    assert long.expected == pytest.approx(63)


def test_overdispersed_clusters_widen_the_exact_test() -> None:
    together = [(2, 4, 2, 0)] * 2 + [(2, 4, 0, 2)] * 14  # all of a or none
    apart = [(2, 4, 1, 1)] * 4 + [(2, 4, 0, 2)] * 12
    wide, plain = within(lists_of(together)), within(lists_of(apart))
    assert wide.method == "exact, overdispersed"
    assert plain.method == "exact"
    assert wide.observed == plain.observed
    assert wide.p > plain.p
    assert wide.high - wide.low > plain.high - plain.low


def test_fractions_are_not_exact_and_say_so() -> None:
    lists = lists_of([(1, 3, 0, 1)] * 20)
    tied = Lists(lists.a, lists.b, np.full(20, 0.25), np.full(20, 0.75), np.full(20, 0.5), lists.clusters, False)
    result = within(tied)
    assert (result.method, result.p) == ("cluster t", 1.0)
    assert "no exact law" in result.reason
    assert result.high > 0.05  # equal lists are not certain


def test_two_clusterings_are_never_narrower_than_either() -> None:
    counts, users = drawn(300, 5, 0.55, 40)
    days = [i % 23 for i in range(300)]
    both, first, second = (within(lists_of(counts, *clusters)) for clusters in ((users, days), (users,), (days,)))
    widths = [r.high - r.low for r in (both, first, second)]
    assert widths[0] >= max(widths[1:]) - 1e-12
    apart = {(u, d): i for i, (u, d) in enumerate(sorted(set(zip(users, days, strict=True))))}
    pairs = [apart[u, d] for u, d in zip(users, days, strict=True)]
    variances = [jackknife(counts, c)[1] for c in (users, days, pairs)]
    expected = max(*variances[:2], variances[0] + variances[1] - variances[2])
    assert ((both.high - both.low) / 2 / student(both.freedom).ppf(0.975)) ** 2 == pytest.approx(expected)


def item_example(poorest: int = 0) -> tuple[Lists, ItemSums, np.ndarray, np.ndarray]:
    """30 items in 80 lists; group a is some of them, or the poorest."""
    rng = np.random.default_rng(2)
    chosen = np.stack([rng.permutation(30)[:8] for _ in range(80)])
    quality, of_a = rng.standard_normal(30), np.arange(30) < 12
    of_a = np.argsort(np.argsort(quality)) < poorest if poorest else of_a
    score = quality[chosen] + 0.2 * rng.standard_normal(chosen.shape)
    x = (np.argsort(np.argsort(-score)) < 3).astype(float)
    is_a = of_a[chosen]
    a, x_a, total = is_a.sum(axis=1), (x * is_a).sum(axis=1), x.sum(axis=1)
    lists = Lists(a * 1.0, 8.0 - a, x_a, total - x_a, total, (np.arange(80),), True)
    value, group = (np.zeros(30) for _ in range(2))
    for i in range(80):
        for j in range(8):
            value[chosen[i, j]] += (x[i, j] - x[i].mean()) * (0 < a[i] < 8)
            group[chosen[i, j]] += is_a[i, j] - is_a[i].mean()
    rows, shared = (np.bincount(chosen[kept].ravel(), minlength=30) * 1.0 for kept in (slice(None), (a > 0) & (a < 8)))
    return lists, ItemSums(of_a, value, group, rows, rows * 0, shared), chosen, x


def sums_of_squares(items: ItemSums, difference: float, weight: float) -> tuple[float, float]:
    """Welch's, from each item's own residual, and Student's, from the mean square per row of all; item by item."""
    share, welch, usual, student_s = items.is_a.mean(), 0.0, 0.0, 0.0
    assert items.shared is not None
    for item in range(30):
        total = items.value_deviation[item] - difference * items.group_deviation[item]
        leverage = (items.is_a[item] - share) * items.group_deviation[item] / weight
        welch += ((items.is_a[item] - share) * total / (1 - leverage)) ** 2
        usual += total**2 / items.shared[item] / items.shared.sum()
    for item in range(30):
        student_s += ((items.is_a[item] - share) * items.shared[item]) ** 2 * usual
    return welch, student_s


def test_recurring_items_are_the_units_where_they_vary_more() -> None:
    lists, items, chosen, x = item_example()
    plain, robust = within(lists), within(lists, items=items)
    assert robust.method == "item t"
    assert robust.difference == plain.difference
    for item in range(30):  # what the sums are of
        total = 0.0
        for i, j in zip(*np.nonzero(chosen == item), strict=True):
            total += x[i, j] - x[i].mean()
        assert items.value_deviation[item] == pytest.approx(total)
    welch, student_s = sums_of_squares(items, plain.difference, lists.weight.sum())
    assert welch > student_s
    half = student(robust.freedom).ppf(0.975) * (29 / 30 * welch) ** 0.5 / lists.weight.sum()
    assert robust.high - robust.difference == pytest.approx(half)
    assert 10 < robust.freedom < 29
    assert robust.p > plain.p


def test_few_items_that_happen_to_be_alike_are_taken_to_vary_as_all_items_do() -> None:
    lists, items, _, _ = item_example(poorest=5)
    assert lists.x_a.sum() == 0
    welch, student_s = sums_of_squares(items, within(lists).difference, lists.weight.sum())
    assert student_s > 2 * welch
    assert within(lists, items=items).p > 1e-3  # by chance 5 items of 30 are the 5 poorest, or the 5 best, seldom
    assert within(lists).p < 1e-9


def test_a_group_of_one_recurring_item_cannot_be_told() -> None:
    lists, items, _, _ = item_example()
    alone = ItemSums(np.arange(30) == 0, items.value_deviation, items.group_deviation)
    assert not within(lists, items=alone).decidable


def test_a_ratio_without_a_denominator_is_unbounded() -> None:
    lists = lists_of([(3, 3, 2, 0), (3, 3, 1, 0)] * 100)
    result: Within = within(lists)
    assert result.ratio == inf
    assert result.ratio_high == inf
    assert result.ratio_low > 1
    assert not np.isnan([result.low, result.high, result.p, result.z]).any()


def test_few_successes_from_few_leaning_clusters_cannot_be_told() -> None:
    counts = [(1, 9, int(i % 20 == 0), 1 - int(i % 20 == 0)) for i in range(140)]
    users = [i // 10 for i in range(140)]
    result = within(lists_of(counts, users))
    assert not result.decidable
    assert "14 clusters of several lists" in result.reason
    assert within(lists_of(counts)).decidable
    outer = pooled(lists_of(counts, users))
    assert not outer.decidable
    assert "14 clusters of several lists" in outer.reason
    assert pooled(lists_of(counts)).decidable
