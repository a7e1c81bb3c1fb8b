"""Paired comparisons: differences of measures, tests that agree with their intervals, and Holm's correction."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import evenrank as er
from evenrank.comparison_totals import holm
from evenrank.comparisons import compare
from evenrank.confidence import interval
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.measures import registry
from oracles import Query, as_data

# Small data has few queries in a cell; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")

BASIC = [measure.name for measure in (*registry.QUALITY, *registry.GAPS)]
EVERY = [f"{name}@{k}" for name in BASIC for k in (1, 3)] + ["ndcg", "mrr", "exposure_gap"]


def example(q: int, *, noise: float = 1.0, groups: str = "ab", seed: int = 0) -> tuple[Any, Any, RankingData]:
    """Scores that lean towards the last group, the same with noise and no lean, and their data."""
    rng = np.random.default_rng(seed)
    length = rng.integers(4, 8, q)
    n = length.sum()
    group = rng.choice(list(groups), n)
    relevance = rng.integers(0, 2, n)
    quality = rng.standard_normal(n) + relevance
    a, b = quality + 0.8 * (group == groups[-1]), quality + noise * rng.standard_normal(n)
    return a, b, RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.repeat(np.arange(q), length))


@pytest.mark.parametrize("groups", ["ab", "abcd"])
@pytest.mark.parametrize("across", ["mean", "max"])
def test_the_difference_is_that_of_the_measures(groups: str, across: str) -> None:
    a, b, data = example(30, groups=groups)
    before, after = (er.measure(scores, data, EVERY, across=across) for scores in (a, b))
    for found in compare(a, b, data, EVERY, across=across):
        name = found.measure
        assert found.a == pytest.approx(before[name], abs=1e-12)
        assert found.b == pytest.approx(after[name], abs=1e-12)
        assert found.difference == pytest.approx(after[name] - before[name], abs=1e-12)
        assert -1 <= found.low <= found.difference <= found.high <= 1
        assert 0 < found.p_value <= found.adjusted <= 1


def plain_pair(a: Any, b: Any, data: RankingData, k: int, cluster: Any) -> dict[str, tuple[float, float, float]]:
    """Value, standard error and degrees of freedom of δ and σ of dp@k between two groups, cluster by cluster."""
    first, second = (er.Ranking(data.to_stored(scores), data.query_ptr).top(k) for scores in (a, b))
    labels = sorted(set(cluster))
    out = {}
    for name, sign in (("difference", -1), ("sum", 1)):
        x = second + sign * first
        rows = [[i for i in range(data.n_rows) if data.group[i] == code] for code in (0, 1)]
        means = [sum(x[i] for i in of) / len(of) for of in rows]
        squares, sizes, roots, spreads = 0.0, [], [], []
        for label in labels:
            moved = size = spread = 0.0
            for of, mean, way in zip(rows, means, (1, -1), strict=True):
                own = [i for i in of if cluster[i] == label]
                moved += way * sum(x[i] - mean for i in own) / (len(of) - len(own))
                size += 2 * len(own) / len(of) ** 2
                spread += sum((x[i] - mean) ** 2 for i in own) / len(of) ** 2
            squares += moved**2
            sizes.append(size)
            roots.append(sqrt(spread))
            spreads.append(spread)
        error = sqrt(squares * (len(labels) - 1) / len(labels))
        equal = sum(sizes) ** 2 / sum(size**2 for size in sizes)
        out[name] = (means[0] - means[1], error, min(equal, sum(roots) ** 2 / sum(spreads)) - 1)
    return out


@pytest.mark.parametrize("clustered", [False, True])
def test_a_pair_is_the_plain_sum_over_clusters(clustered: bool) -> None:
    a, b, data = example(30, seed=4)
    cluster = data.query_of_row // 3 if clustered else data.query_of_row
    (pair,) = compare(a, b, data, ["dp@2"], cluster=cluster if clustered else None)[0].pairs
    plain = plain_pair(a, b, data, 2, cluster.tolist())
    (delta, delta_error, delta_freedom), (sigma, sigma_error, sigma_freedom) = plain["difference"], plain["sum"]
    assert pair.difference == pytest.approx(delta, abs=1e-12)
    reach = stats.t.ppf(0.975, delta_freedom) * delta_error
    assert (pair.low, pair.high) == pytest.approx((delta - reach, delta + reach))
    p = [2 * stats.t.sf(abs(v) / e, f) for v, e, f in plain.values()]
    assert pair.p_value == pytest.approx(p[0])
    assert pair.change_p_value == pytest.approx(max(p))
    wide = stats.t.ppf(0.975, sigma_freedom) * sigma_error
    grid = [
        abs((s + d) / 2) - abs((s - d) / 2)
        for d in np.linspace(delta - reach, delta + reach, 201)
        for s in np.linspace(sigma - wide, sigma + wide, 201)
    ]
    assert (pair.change_low, pair.change_high) == pytest.approx((min(grid), max(grid)), abs=2e-3)


def test_quality_is_compared_by_the_paired_t_test() -> None:
    a, b, data = example(60)
    (found,) = compare(a, b, data, ["precision@3"])
    tops = [er.Ranking(data.to_stored(scores), data.query_ptr).top(3) for scores in (a, b)]
    each = [np.add.reduceat(top * data.relevance, data.query_ptr[:-1]) / 3 for top in tops]
    vary = int((each[0] != each[1]).sum()) - 1
    difference = each[1] - each[0]
    t = difference.mean() / (difference.std(ddof=1) / sqrt(60))
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), vary))


@pytest.mark.parametrize("groups", ["ab", "abcd"])
@pytest.mark.parametrize("across", ["mean", "max"])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_p_values_and_intervals_agree(groups: str, across: str, confidence: float) -> None:
    for seed in range(3):
        a, b, data = example(40, groups=groups, seed=seed)
        b = b - 0.5 * (seed % 3) * (data.group == 0)
        for found in compare(a, b, data, EVERY, across=across, confidence=confidence):
            assert (found.p_value <= 1 - confidence) == (not found.low <= 0 <= found.high), found
            for pair in found.pairs:
                assert (pair.p_value <= 1 - confidence) == (not pair.low <= 0 <= pair.high)
                assert (pair.change_p_value <= 1 - confidence) == (not pair.change_low <= 0 <= pair.change_high)


def opposite(q: int, lean: tuple[float, float], seed: int) -> tuple[Any, Any, RankingData]:
    """Two rankers that lean towards the second of two equal groups, by as much as is said."""
    rng = np.random.default_rng(seed)
    n, query = 8 * q, np.repeat(np.arange(q), 8)
    group = rng.integers(0, 2, n)
    quality = rng.standard_normal(n)
    a, b = (quality + rng.standard_normal(n) + by * group for by in lean)
    return a, b, RankingData.from_arrays(np.zeros((n, 0)), rng.integers(0, 2, n), group, query, group_names=["x", "y"])


def test_equal_and_opposite_gaps_are_not_a_change_of_size() -> None:
    """It was called one in 55 % of data sets."""
    rejected = []
    for seed in range(80):
        (found,) = compare(*opposite(60, (0.8, -0.8), seed), ["dp@3"])
        rejected.append((found.p_value <= 0.05, found.pairs[0].p_value <= 0.05))
    size, signed = np.mean(rejected, axis=0)
    assert size <= 0.05 + 3 * sqrt(0.05 * 0.95 / 80)
    assert signed > 0.9


def test_a_large_lead_that_flips_is_said() -> None:
    (found,) = compare(*opposite(200, (1.0, -1.0), 0), ["dp@3"])
    (pair,) = found.pairs
    assert pair.adjusted < 1e-10
    assert pair.flips
    assert pair.leads == ("y", "x")
    assert pair.direction == 'the lead flips from "y" to "x"'
    assert found.p_value > 0.05


def test_fourteen_cut_offs_can_be_significant() -> None:
    a, b, data = opposite(200, (1.0, 0.0), 1)
    names = [f"{name}@{k}" for name in ("dp", "eop") for k in range(1, 8)]
    found = compare(a, b, data, names)
    assert max(line.adjusted for line in found) < 0.05
    assert min(line.p_value for line in found) < 1e-6  # 1/2001 was the least


def test_a_tiny_group_does_not_silence_the_others() -> None:
    a, b, data = opposite(100, (1.0, 0.0), 2)
    group = np.where(data.group == 1, "y", "x").astype(object)
    group[[0, 8]] = "z"
    three = RankingData.from_arrays(np.zeros((len(a), 0)), data.relevance, group, data.query_of_row)
    (found,) = compare(a, b, three, ["dp@3"])
    by = {(pair.group, pair.other): pair for pair in found.pairs}
    assert by["x", "y"].adjusted < 1e-4
    assert by["x", "z"].p_value > 0.01


def test_rows_of_a_cluster_count_as_one() -> None:
    """Each query ten times over is no more than once, if it is said to be one cluster."""
    a, b, data = opposite(40, (0.6, 0.0), 3)
    (alone,) = compare(a, b, data, ["dp@3"])
    labels = np.tile(data.query_of_row, 10)
    many = RankingData.from_arrays(
        np.zeros((10 * len(a), 0)),
        np.tile(data.relevance, 10),
        np.tile(data.group, 10),
        labels + 1000 * np.repeat(np.arange(10), len(a)),
        group_names=["x", "y"],
    )
    (found,) = compare(np.tile(a, 10), np.tile(b, 10), many, ["dp@3"], cluster=labels)
    assert found.pairs[0].p_value == pytest.approx(alone.pairs[0].p_value, rel=1e-6)
    (both,) = compare(np.tile(a, 10), np.tile(b, 10), many, ["dp@3"], cluster=[np.arange(10 * len(a)), labels])
    assert both.pairs[0].p_value >= found.pairs[0].p_value


def test_all_queries_alike_still_leave_room() -> None:
    data = as_data([Query([2.0, 1.0], [1, 0], ["a", "b"]) for _ in range(20)])
    a = np.array([2.0, 1.0] * 20)
    (pair,) = compare(a, -a, data, ["dp@1"])[0].pairs
    share = 1 - 0.025 ** (1 / 20)
    assert (pair.difference, pair.high) == (-2, pytest.approx(-2 + share * 4))
    assert pair.p_value == pytest.approx(2 * 0.5**20)


def test_a_p_value_is_rarely_small_without_a_difference() -> None:
    """Two noisy versions of the same scores: p ≤ 0.1 in about a tenth of the cases, for every measure."""
    small = []
    for seed in range(60):
        base, _, data = example(30, seed=seed)
        rng = np.random.default_rng(seed)
        a, b = (base + rng.standard_normal(len(base)) for _ in range(2))
        small += [[one.p_value <= 0.1 for one in compare(a, b, data, ["dp@2", "ndcg@3"])]]
    share = np.mean(small, axis=0)
    assert (share < 0.1 + 4 * sqrt(0.1 * 0.9 / 60)).all()


def test_an_interval_holds_also_where_one_gap_is_0() -> None:
    """b ignores the group, so its true gap is 0 and its seen gap always above: a plain bootstrap covers too rarely."""
    names = ["dp@3", "eod@3", "four_fifths@3"]
    a, _, data = example(10_000, seed=1000)
    gap = er.measure(a, data, names)
    truth = {name: (1.0 if name.startswith("four") else 0.0) - gap[name] for name in names}
    covered = []
    for seed in range(50):
        a, b, data = example(60, seed=seed)
        found = compare(a, b, data, names)
        covered.append([one.low <= truth[one.measure] <= one.high for one in found])
    assert (np.mean(covered, axis=0) > 0.95 - 4 * sqrt(0.95 * 0.05 / 50)).all()


def test_a_real_difference_is_found() -> None:
    a, b, data = example(200, noise=0.3)
    (found,) = compare(a, b, data, ["dp@3"])
    assert found.high < 0
    assert found.p_value < 0.01
    (back,) = compare(b, a, data, ["dp@3"])
    assert back.difference == pytest.approx(-found.difference)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))


def test_the_same_ranking_twice_does_not_differ() -> None:
    a, _, data = example(30)
    for found in compare(a, 2 * a + 1, data, EVERY):
        assert (found.difference, found.low, found.high, found.p_value, found.adjusted) == (0, 0, 0, 1, 1)


def test_pairing_narrows_the_interval_of_similar_rankings() -> None:
    a, _, data = example(200)
    b = a + 0.1 * np.random.default_rng(1).standard_normal(len(a))
    for name in ("ndcg@3", "dp@3", "four_fifths@3"):
        (paired,) = compare(a, b, data, [name])
        widths = [interval(scores, data, name).high - interval(scores, data, name).low for scores in (a, b)]
        unpaired = sqrt(widths[0] ** 2 + widths[1] ** 2)
        assert paired.high - paired.low < 0.7 * unpaired


def test_order_of_rows_changes_no_number() -> None:
    a, b, data = example(40, groups="abc")
    order = np.random.default_rng(1).permutation(len(a))
    shuffled = RankingData.from_arrays(
        np.zeros((len(a), 0)),
        data.relevance[order],
        np.array(data.group_names)[data.group[order]],
        data.query_of_row[order],
    )
    one, two = compare(a, b, data, EVERY), compare(a[order], b[order], shuffled, EVERY)
    for before, after in zip(one, two, strict=True):
        for field in ("a", "b", "difference", "low", "high", "p_value", "adjusted"):
            assert getattr(before, field) == pytest.approx(getattr(after, field), abs=1e-12), (before.measure, field)


def test_one_name_is_enough() -> None:
    a, b, data = example(40)
    assert compare(a, b, data, "dp@3") == compare(a, b, data, ["dp@3"])


def test_a_missing_cell_is_nan_and_leaves_the_others_corrected_alone() -> None:
    some = [Query([3.0, 2.0, 1.0], [1, 0, 0], ["a", "a", "b"]) for _ in range(12)]
    data = as_data(some)
    a = np.array([3.0, 2.0, 1.0] * 12)
    odd, even = compare(a, -a, data, ["eop@1", "dp@1"])
    assert np.isnan([odd.difference, odd.low, odd.high, odd.p_value, odd.adjusted]).all()
    assert even.adjusted == even.p_value


def test_a_cell_of_one_query_leaves_everything_possible() -> None:
    some = [Query([2.0, 1.0], [1, 1], ["a", "a"]) for _ in range(9)] + [Query([2.0, 1.0], [1, 1], ["a", "b"])]
    a = np.array([2.0, 1.0] * 10)
    (found,) = compare(a, -a, as_data(some), ["dp@1"])
    assert (found.low, found.high) == (-1, 1)


def test_options_are_checked() -> None:
    a, b, data = example(5)
    with pytest.raises(ConfigError, match="confidence must be between 0 and 1"):
        compare(a, b, data, ["dp@1"], confidence=95)
    with pytest.raises(DataError, match="cluster must have a label for each"):
        compare(a, b, data, ["dp@1"], cluster=[1, 2, 3])
    with pytest.raises(DataError, match="row 0: cluster has no label"):
        compare(a, b, data, ["dp@1"], cluster=np.full(len(a), np.nan))
    with pytest.raises(DataError, match="scores must have shape"):
        compare(a, b[:-1], data, ["dp@1"])
    one = data.take([0])
    with pytest.raises(DataError, match="needs at least two; the data has 1"):
        compare(a[: one.n_rows], b[: one.n_rows], one, ["ndcg@1"])


# ---------------------------------------------------------------------- Holm


def plain_holm(p_values: list[float]) -> list[float]:
    """Step down from the smallest: the i-th smallest of m is multiplied by m − i, and none is below its predecessor."""
    out = [0.0] * len(p_values)
    largest = 0.0
    for i, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, (len(p_values) - i) * p_values[at])
        out[at] = min(1.0, largest)
    return out


@given(st.lists(st.floats(0, 1), min_size=0, max_size=8))
def test_holm_is_the_plain_step_down(p_values: list[float]) -> None:
    assert holm(np.array(p_values)).tolist() == pytest.approx(plain_holm(p_values))


def test_holm_rejects_as_often_as_it_should() -> None:
    """Of five true null hypotheses, some is rejected in at most about 5 % of the cases."""
    draws = np.random.default_rng(0).random((4000, 5))
    rejected = np.mean([(holm(line) <= 0.05).any() for line in draws])
    assert abs(rejected - 0.05) < 4 * sqrt(0.05 * 0.95 / 4000)


def test_holm_leaves_nan_out_of_the_count() -> None:
    assert holm(np.array([0.01, np.nan, 0.04])).tolist() == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)


def test_rankings_that_leave_out_one_group_each_have_no_ratio_to_tell_apart() -> None:
    data = er.RankingData.from_arrays(
        np.zeros((80, 0)), np.tile([1, 1, 0, 0], 20), ["a", "b"] * 40, np.repeat(range(20), 4)
    )
    scores = np.tile([4.0, 3.0, 2.0, 1.0], 20)
    (ratio,) = er.compare(scores, 5.0 - scores, data, ["four_fifths@1"])
    assert (ratio.low, ratio.high, ratio.p_value) == (-1.0, 1.0, 1.0)
