"""Two groups' rates over all lists: constrained rates against brute force, leaving out clusters, few successes."""

from __future__ import annotations

from math import exp, inf, isnan, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2
from scipy.stats import t as student

from evenrank.inference import ItemSums, Lists, PairScore, four_fifths, pooled, ratio_rule
from evenrank.inference.score import crossing, wilson, with_difference, with_ratio
from inference_oracles import Counts, count, lists_of

MANY = st.lists(count(5), min_size=3, max_size=12)
WOMEN = [(22, 183, 1, 4), *[(21, 183, 0, 5)] * 8, *[(21, 182, 1, 4)] * 2, *[(21, 182, 0, 5)] * 49]


def log_likelihood(x_a: int, n_a: int, x_b: int, n_b: int, rate_a: np.ndarray, rate_b: np.ndarray) -> np.ndarray:
    tiny = 1e-300
    return (
        x_a * np.log(rate_a + tiny)
        + (n_a - x_a) * np.log(1 - rate_a + tiny)
        + x_b * np.log(rate_b + tiny)
        + (n_b - x_b) * np.log(1 - rate_b + tiny)
    )


CELLS = st.tuples(st.integers(1, 30), st.integers(1, 30), st.floats(0, 1), st.floats(0, 1))


@given(CELLS, st.floats(-0.95, 0.95))
def test_rates_with_a_difference_are_the_likeliest(cells: tuple, difference: float) -> None:
    n_a, n_b, share_a, share_b = cells
    x_a, x_b = round(share_a * n_a), round(share_b * n_b)
    rate_a, rate_b = with_difference(x_a, n_a, x_b, n_b, difference)
    assert rate_a - rate_b == pytest.approx(difference, abs=1e-9)
    grid = np.linspace(max(0.0, -difference), min(1.0, 1 - difference), 4001)
    best = log_likelihood(x_a, n_a, x_b, n_b, np.clip(grid + difference, 0, 1), grid).max()
    own = log_likelihood(x_a, n_a, x_b, n_b, np.array(rate_a), np.array(rate_b))
    assert own >= best - 1e-6


@given(CELLS, st.floats(0.05, 20))
def test_rates_with_a_ratio_are_the_likeliest(cells: tuple, ratio: float) -> None:
    n_a, n_b, share_a, share_b = cells
    x_a, x_b = round(share_a * n_a), round(share_b * n_b)
    rate_a, rate_b = with_ratio(x_a, n_a, x_b, n_b, ratio)
    assert rate_a == pytest.approx(ratio * rate_b)
    grid = np.linspace(0, min(1.0, 1 / ratio), 4001)
    best = log_likelihood(x_a, n_a, x_b, n_b, np.clip(ratio * grid, 0, 1), grid).max()
    own = log_likelihood(x_a, n_a, x_b, n_b, np.array(min(rate_a, 1.0)), np.array(rate_b))
    assert own >= best - 1e-6


def test_wilsons_limits_are_where_the_score_is_t() -> None:
    low, high = wilson(0.3, 20, 2.1**2)
    for limit in (low, high):
        assert abs(0.3 - limit) / (limit * (1 - limit) / 20) ** 0.5 == pytest.approx(2.1)
    assert wilson(0.0, 25, 3.84) == pytest.approx((0.0, 3.84 / 28.84))


@given(st.floats(-0.99, 0.99))
def test_crossings_are_found(root: float) -> None:
    assert crossing(lambda x: (x - root) ** 3 + (x - root), -1.0, 1.0) == pytest.approx(root, abs=1e-9)
    assert crossing(lambda x: -1.0, 0.0, 1.0) == 1.0


def test_3_of_1261_against_297_of_10929() -> None:
    result = pooled(lists_of(WOMEN))
    assert (result.a.rows, result.a.successes, result.b.rows, result.b.successes) == (1261, 3, 10929, 297)
    assert result.ratio == pytest.approx(0.088, abs=0.0005)
    assert result.ratio_low == pytest.approx(0.024, abs=0.0005)
    assert result.ratio_low == pytest.approx(chi2(6).ppf(0.05) / 2 / (1261 * 297 / 10929))
    assert result.ratio_high == pytest.approx(0.258, abs=0.01)
    assert 7e-7 < result.p < 3e-6
    assert result.high < 0
    rule = ratio_rule(lists_of(WOMEN))
    assert (rule.verdict, four_fifths(lists_of(WOMEN))) == ("not met", "not met")
    assert rule.p_not_met < 1e-4


def test_none_of_25() -> None:
    result = pooled(lists_of([(1, 19, 0, 1)] * 25 + [(0, 20, 0, 1)] * 275))
    assert (result.ratio, result.ratio_low) == (0.0, 0.0)
    assert result.ratio_high == pytest.approx(2.67, abs=0.02)
    assert result.a.low == 0
    assert result.a.high > 0.1
    assert result.low < result.difference < result.high
    assert result.p > 0.2
    assert ratio_rule(lists_of([(1, 19, 0, 1)] * 25 + [(0, 20, 0, 1)] * 275)).verdict == "cannot be told"


def test_many_successes_leave_out_each_cluster_in_turn() -> None:
    rng = np.random.default_rng(1)
    counts = [(4, 6, int(rng.binomial(4, p)), int(rng.binomial(6, 0.5))) for p in rng.beta(2, 2, 150)]
    users = [i // 3 for i in range(150)]
    result = pooled(lists_of(counts, users))

    def gap(kept: list[Counts]) -> float:
        a, b, x_a, x_b = (sum(column) for column in zip(*kept, strict=True))
        return x_a / a - x_b / b

    estimate = gap(counts)
    without = [gap([c for c, u in zip(counts, users, strict=True) if u != user]) for user in range(50)]
    error = (49 / 50 * sum((estimate - x) ** 2 for x in without)) ** 0.5
    # the score interval is the one of the estimate, a little bent by the constraint
    half = student(result.freedom).ppf(0.975) * error
    assert (result.low, result.high) == pytest.approx((estimate - half, estimate + half), abs=0.003)


@given(MANY)
def test_intervals_and_p_value_agree(counts: list[Counts]) -> None:
    result = pooled(lists_of(counts))
    assume(result.decidable)
    significant = result.p < 0.05
    assert significant == (result.low > 0 or result.high < 0)
    if abs(result.p - 0.05) > 1e-6:
        assert significant == (result.ratio_low > 1 or result.ratio_high < 1)
    assert result.low <= result.difference <= result.high
    assert result.ratio_low <= result.ratio * (1 + 1e-9)
    assert result.ratio <= result.ratio_high * (1 + 1e-9)
    assert result.low < result.high
    for rate in (result.a, result.b):
        assert 0 <= rate.low <= rate.rate <= rate.high <= 1
        assert rate.low < rate.high


@given(MANY)
def test_the_other_order_of_groups_is_the_same_test(counts: list[Counts]) -> None:
    one, other = pooled(lists_of(counts)), pooled(lists_of(counts).swapped)
    assert one.decidable == other.decidable
    assume(one.decidable)
    assert other.p == pytest.approx(one.p, rel=1e-6)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-7)
    if one.ratio_low > 0:
        assert other.ratio_high == pytest.approx(1 / one.ratio_low, rel=1e-6)
    assert ratio_rule(lists_of(counts)).verdict == ratio_rule(lists_of(counts).swapped).verdict


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ([(2, 0, 1, 0), (3, 0, 1, 0)], "no rows"),
        ([(2, 3, 0, 0)] * 4, "No row is selected."),
        ([(2, 3, 2, 3)] * 4, "Every row is selected."),
        ([(5, 3, 2, 1), (0, 3, 0, 1), (0, 4, 0, 2)], "one query or cluster"),
    ],
)
def test_what_cannot_be_told_is_said(counts: list[Counts], word: str) -> None:
    result = pooled(lists_of(counts))
    assert (result.decidable, result.method, result.p) == (False, "none", 1.0)
    assert word in result.reason
    assert ratio_rule(lists_of(counts)).verdict == "cannot be told"
    assert isnan(result.ratio) or 0 <= result.ratio <= inf


def test_the_rule_is_met_where_the_interval_is_above_it() -> None:
    rng = np.random.default_rng(0)
    even = [(10, 10, int(rng.binomial(10, 0.5)), int(rng.binomial(10, 0.5))) for _ in range(200)]
    assert ratio_rule(lists_of(even)).verdict == "met"
    assert ratio_rule(lists_of(even), rho=0.999).verdict == "cannot be told"
    uneven = [(10, 10, int(rng.binomial(10, 0.3)), int(rng.binomial(10, 0.5))) for _ in range(200)]
    rule = ratio_rule(lists_of(uneven))
    assert (rule.verdict, ratio_rule(lists_of(uneven).swapped).verdict) == ("not met", "not met")
    assert rule.ratio == pytest.approx(0.6, abs=0.05)


def test_recurring_items_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    rate = np.where(rng.random(20) < 0.5, 0.9, 0.1)  # each item is nearly always selected, or nearly never
    sums, is_a = rng.binomial(40, rate).astype(float), np.arange(20) % 2 == 0
    counts = [(10, 10, int(rng.binomial(10, rate[is_a].mean())), int(rng.binomial(10, 0.5))) for _ in range(40)]
    items = ItemSums(is_a, np.zeros(20), np.zeros(20), np.full(20, 40.0), sums)
    plain, robust = pooled(lists_of(counts)), pooled(lists_of(counts), items=items)
    assert robust.high - robust.low > 2 * (plain.high - plain.low)
    assert robust.freedom < 20


def test_few_recurring_items_that_happen_to_be_alike_are_taken_to_vary_as_all_items_do() -> None:
    """Five items that were never selected, in 40 rows each, beside 20 of which half always were."""
    is_a = np.arange(25) < 5
    sums = np.where(is_a, 0.0, 40.0 * (np.arange(25) % 2))
    items = ItemSums(is_a, np.zeros(25), np.zeros(25), np.full(25, 40.0), sums)
    rate = float(sums[~is_a].mean() / 40)
    lists = lists_of([(5, 20, 0, round(20 * rate))] * 40)
    scores = PairScore(lists, items)
    # By hand: the mean square of all items' mean deviations, for 5 items and for 20.
    usual = sum((sums[j] / 40 - (0.0 if is_a[j] else rate)) ** 2 for j in range(25)) / 25
    assert scores.covariance.of_difference() == pytest.approx(usual * (4 / 5 / 5 + 19 / 20 / 20))
    assert pooled(lists).p < 1e-6 < 0.01 < pooled(lists, items=items).p


def test_fractions_and_a_million_rows_are_no_trouble() -> None:
    tied = Lists(*np.array([[2.0] * 30, [3.0] * 30, [0.4] * 30, [0.6] * 30, [0.2] * 30]), (np.arange(30),), False)
    assert pooled(tied).p > 0.999
    large = pooled(lists_of([(10**6, 10**6, 10**5, 11 * 10**4), (10**6, 10**6, 10**5, 12 * 10**4)] * 10))
    assert exp(log(large.ratio_low)) < large.ratio < large.ratio_high < 1


def test_rounding_errors_are_no_variances() -> None:
    """Rows that all get the same, but for their last digits: those decide neither the freedom nor the interval."""
    a, b = np.resize([6.0, 5.0, 3.0], 30), np.resize([1.0, 2.0, 0.0, 3.0], 30)
    intervals = []
    for seed, scale in enumerate((0.0, 1e-17, 1e-16, 1e-15)):
        noise = np.random.default_rng(seed).normal(size=(2, 30)) * scale
        share = 2.13 / 8
        x_a, x_b = share * a + noise[0] * (a > 0), share * b + noise[1] * (b > 0)
        lists = Lists(a, b, x_a, x_b, share * (x_a + x_b), (np.arange(30),), whole=False)
        found = pooled(lists)
        intervals.append((found.low, found.high, found.ratio_low, found.ratio_high, found.freedom))
    for other in intervals[1:]:
        assert other == pytest.approx(intervals[0], rel=1e-6)
