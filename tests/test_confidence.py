"""Intervals: estimates are the measures, resampling is resampling, errors are the delta method's, and 0 is honest."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, norm, t

import evenrank as er
from evenrank import query_sums as module
from evenrank.confidence import FEW, METHODS, interval, interval_of, intervals, t_over_normal
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.measures import registry
from evenrank.query_sums import Columns, Sums, resampled, resampled_ratios
from evenrank.statistic import Statistic, statistics
from oracles import Query, as_data, pooled
from strategies import queries

# Random data often lacks a group or has few queries; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")

BASIC = [measure.name for measure in (*registry.QUALITY, *registry.GAPS)]
EVERY = [f"{name}@{k}" for name in BASIC for k in (1, 3)] + ["ndcg", "mrr", "exposure_gap"]
VIOLATIONS = ["dp@3", "eop@3", "eod@3", "exposure_gap"]


def lists(q: int = 60, *, groups: str = "ab", seed: int = 0, ties: bool = False) -> list[Query]:
    """Lists of 4 to 9 items whose scores lean towards the last group."""
    rng = np.random.default_rng(seed)
    made = []
    for length in rng.integers(4, 10, q):
        group = rng.choice(list(groups), length, p=rng.dirichlet(np.full(len(groups), 3.0)))
        relevance = (rng.random(length) < 0.5).astype(float)
        scores = rng.standard_normal(length) + relevance + 0.5 * (group == groups[-1])
        made.append(Query((scores.round() if ties else scores).tolist(), relevance.tolist(), group.tolist()))
    return made


def example(q: int = 60, **options: Any) -> tuple[list[float], RankingData]:
    some = lists(q, **options)
    return pooled(some, "scores"), as_data(some)


def tables(stat: Statistic) -> tuple[np.ndarray, np.ndarray]:
    """Each query's numerators and denominators in full, (q, r) each."""
    weights = stat.sums.weights
    query = np.repeat(np.arange(weights.n_queries), np.diff(weights.ptr))
    top, bottom = np.zeros((2, weights.n_queries, weights.width))
    top[query, weights.column], bottom[query, weights.column] = stat.sums.top, weights.weight
    return top, bottom


def weighted_gaps(stat: Statistic, weight: np.ndarray) -> np.ndarray:
    """The gaps with each query counted so often."""
    top, bottom = (weight @ table for table in tables(stat))
    return stat.gaps(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))


def influence_of(stat: Statistic) -> np.ndarray:
    """(q, J)"""
    return np.hstack([part for _, part in stat.influence()]).T


def close(one: Any, two: Any, tolerance: float = 1e-12) -> bool:
    return bool(np.allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True))


# ---------------------------------------------------------------------- the estimate


@settings(max_examples=20)
@given(queries(groups=4, weights=(1.0, 0.5, 0.0, 3.0)), st.sampled_from(["mean", "max"]))
def test_the_estimate_is_the_measure(some: list[Query], across: str) -> None:
    assume(sum(pooled(some, "weight")) > 0)
    scores, data = pooled(some, "scores"), as_data(some)
    expected = er.measure(scores, data, EVERY, across=across)
    for stat in statistics(scores, data, EVERY, across=across):
        assert close(stat.value(stat.estimates), expected[stat.name]), stat.name
    if data.n_queries > 1:
        for found in intervals(scores, data, EVERY, method="analytic", across=across):
            value = expected[found.measure]
            assert close(found.estimate, value), found
            assert np.isnan(value) or found.low - 1e-12 <= value <= found.high + 1e-12, found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("groups", ["ab", "abc", "abcd"])
def test_the_estimate_lies_inside(method: str, groups: str) -> None:
    scores, data = example(groups=groups, ties=True)
    for found in intervals(scores, data, EVERY, method=method):
        assert 0 <= found.low <= found.estimate <= found.high <= 1, found
        assert found.low < found.high, found
        assert tuple(found) == (found.estimate, found.low, found.high)
        assert (found.method, found.confidence) == (method, 0.95)


def test_unknown_groups_are_in_no_cell() -> None:
    some = lists()
    hidden = [replace(q, group=[None if i == 0 else g for i, g in enumerate(q.group)]) for q in some]
    shown = [Query(*(column[1:] for column in (q.scores, q.relevance, q.group))) for q in some]
    (with_unknown,) = statistics(pooled(some, "scores"), as_data(hidden), ["dp@3"])
    (without,) = statistics(pooled(shown, "scores"), as_data(shown), ["dp@3"])
    assert close(tables(with_unknown)[1], tables(without)[1])


# ---------------------------------------------------------------------- the bootstrap


def resample_and_recompute(
    scores: np.ndarray, data: RankingData, names: list[str], drawn: np.ndarray
) -> dict[str, float]:
    """The slow twin of one replicate: the drawn queries as a data set of their own."""
    chosen = data.take(drawn)
    chosen = replace(chosen, query_ids=np.arange(len(drawn)))
    rows = np.concatenate([np.arange(data.query_ptr[i], data.query_ptr[i + 1]) for i in drawn])
    return er.measure(scores[rows], chosen, names)


@pytest.mark.parametrize("groups", ["ab", "abcd"])
def test_a_replicate_is_the_measure_of_the_drawn_queries(groups: str) -> None:
    scores, data = example(25, groups=groups, ties=True)
    stats = statistics(scores, data, EVERY)
    rng = np.random.default_rng(1)
    for _ in range(10):
        drawn = rng.integers(0, data.n_queries, data.n_queries)
        counts = np.bincount(drawn, minlength=data.n_queries).astype(float)
        slow = resample_and_recompute(np.array(scores), data, EVERY, drawn)
        for stat in stats:
            assert close(stat.value(weighted_gaps(stat, counts)), slow[stat.name]), stat.name


def test_replicates_are_distributed_as_resample_and_recompute() -> None:
    scores, data = example(25)
    names = ["dp@3", "eop@3", "ndcg@3", "four_fifths@3"]
    stats = statistics(scores, data, names)
    fast = resampled_ratios([stat.sums for stat in stats], replicates=4000, seed=0)
    rng = np.random.default_rng(1)
    slow = [
        resample_and_recompute(np.array(scores), data, names, rng.integers(0, data.n_queries, data.n_queries))
        for _ in range(400)
    ]
    for stat, ratios in zip(stats, fast, strict=True):
        assert ks_2samp(stat.value(stat.gaps(ratios)), [one[stat.name] for one in slow]).pvalue > 0.01, stat.name


@pytest.mark.parametrize("cells", [1, 30_000, 1 << 20])
def test_resampled_counts_are_multinomial_in_chunks_of_any_size(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    q, replicates = 23, 3000
    each = Sums.of_tables(np.eye(q), np.eye(q))
    counts = resampled(Columns([(each.weights, each.top)]), replicates=replicates, seed=3).T
    assert (counts.sum(axis=1) == q).all()
    # A count is binomial(q, 1/q): mean 1, variance 1 − 1/q; two counts have covariance −1/q.
    assert np.abs(counts.mean(axis=0) - 1).max() < 5 / sqrt(replicates)
    covariance = np.cov(counts.T)
    assert np.abs(covariance - (np.eye(q) - 1 / q)).max() < 8 / sqrt(replicates)


def test_columns_that_measures_share_are_summed_once() -> None:
    scores, data = example(groups="abc")
    names = ["dp@1", "dp@3", "four_fifths@3", "dp@20", "dp@30"]
    sums = [stat.sums for stat in statistics(scores, data, names)]
    values = [(each.weights, of) for each in sums for of in (each.top, each.weights.weight)]
    # Three rates at 1 and at 3, and the items of each group, which at 20 and 30 are all selected.
    assert Columns(values).width == 9
    assert Columns(values, distinct=False).width == 30


@pytest.mark.parametrize("method", METHODS)
def test_the_size_of_batches_changes_no_number(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, data = example(groups="abcde", ties=True)
    other = np.random.default_rng(0).standard_normal(data.n_rows)

    def found() -> list[Any]:
        ends = [tuple(one) for one in intervals(scores, data, EVERY, method=method, across="max", replicates=200)]
        changes = er.compare(scores, other, data, EVERY)
        audit = er.audit(scores, data, [1, 2, 3, 50], method=method, replicates=200)
        numbers = [(one.low, one.high, one.p_value) for one in changes]
        return [ends, numbers, [tuple(one.interval) for one in (*audit.findings, *audit.rates)], audit.text()]

    at_once = found()
    monkeypatch.setattr("evenrank.statistic.HELD", 1)
    monkeypatch.setattr("evenrank.audits.audit.HELD", 1)
    monkeypatch.setattr("evenrank.query_sums.BLOCK", 7)
    monkeypatch.setattr("evenrank.statistic.BLOCK", 7)
    one_by_one = found()
    assert all(close(one, two) for one, two in zip(at_once[:3], one_by_one[:3], strict=True))
    assert at_once[3] == one_by_one[3]


def test_a_seed_decides_everything() -> None:
    scores, data = example()
    one, two, other = (interval(scores, data, "eop@3", seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one != other
    assert close(tuple(one), tuple(other), 0.05)


@pytest.mark.parametrize("method", METHODS)
def test_order_of_rows_changes_no_number(method: str) -> None:
    some = lists(groups="abc", ties=True)
    scores = np.array(pooled(some, "scores"))
    order = np.random.default_rng(2).permutation(len(scores))
    one = intervals(scores, as_data(some), EVERY, method=method)
    two = intervals(scores[order], as_data(some, order), EVERY, method=method)
    for before, after in zip(one, two, strict=True):
        assert close(tuple(before), tuple(after)), before.measure


@pytest.mark.parametrize("method", METHODS)
def test_renaming_groups_changes_no_absolute_interval_and_mirrors_signed_ones(method: str) -> None:
    some = lists()
    scores = pooled(some, "scores")
    swapped = [replace(query, group=["b" if g == "a" else "a" for g in query.group]) for query in some]
    for name in VIOLATIONS:
        one, two = (interval(scores, as_data(lists), name, method=method) for lists in (some, swapped))
        assert close(tuple(one), tuple(two))
        one, two = (interval(scores, as_data(lists), name, method=method, signed=True) for lists in (some, swapped))
        assert close((one.estimate, one.low, one.high), (-two.estimate, -two.high, -two.low))


def test_several_measures_together_are_each_alone() -> None:
    scores, data = example()
    for found in intervals(scores, data, EVERY):
        assert close(tuple(found), tuple(interval(scores, data, found.measure)), 1e-9)


# ---------------------------------------------------------------------- the analytic interval


@pytest.mark.parametrize("groups", ["ab", "abc"])
def test_influence_is_the_slope_of_the_estimate_in_a_query_s_weight(groups: str) -> None:
    scores, data = example(20, groups=groups)
    step = 1e-6
    for stat in statistics(scores, data, EVERY):
        influence = influence_of(stat)
        for i in range(data.n_queries):
            nudge = np.zeros(data.n_queries)
            nudge[i] = step
            slope = (weighted_gaps(stat, 1 + nudge) - weighted_gaps(stat, 1 - nudge)) / (2 * step)
            assert close(influence[i], slope, 1e-6), stat.name


@pytest.mark.parametrize("name", ["dp@3", "eop@3", "eod@3", "exposure_gap", "ndcg@3", "recall@3"])
def test_the_variance_is_the_jackknife_s(name: str) -> None:
    scores, data = example(20, groups="abc")
    (stat,) = statistics(scores, data, [name])
    q = data.n_queries
    out = np.array([weighted_gaps(stat, 1.0 - (np.arange(q) == i)) for i in range(q)])
    deviations = out - stat.estimates
    number = (tables(stat)[1] > 0).any(axis=1).sum()
    covariance = (number - 1) / number * deviations.T @ deviations
    assert close(stat.variances, np.diag(covariance))
    assert close(stat.covariance_root() @ stat.covariance_root().T, covariance)
    # With many queries it is the delta method's, to order 1 / q.
    assert close(covariance, influence_of(stat).T @ influence_of(stat), 0.3)
    assert close(stat.squares(left_out=False), (influence_of(stat) ** 2).sum(axis=0))


def for_skew(values: np.ndarray, confidence: float) -> float:
    """What skewed values take from the coverage of Student's t, as a share of its reach (Hall 1992)."""
    n, off = len(values), values - values.mean()
    spread = sum(off**2) / n
    skewness, kurtosis = sum(off**3) / n / spread**1.5, sum(off**4) / n / spread**2 - 3
    z = norm.ppf((1 + confidence) / 2)
    return max(0.0, skewness**2 * (z**4 + 2 * z**2 - 3) / 18 - kurtosis * (z**2 - 3) / 12) / n


def test_intervals_of_skewed_values_are_wider() -> None:
    """Student's t of 30 values, most of them 0, covers too little; the widened interval covers more."""
    rng = np.random.default_rng(0)
    hits = np.zeros(2)
    for _ in range(400):
        values = np.where(rng.random(30) < 0.15, rng.random(30), 0.0)
        reach = t.ppf(0.975, 29) * values.std(ddof=1) / sqrt(30)
        wider = reach * (1 + min(for_skew(values, 0.95), 0.5)) if values.std() else 0.0
        hits += [abs(values.mean() - 0.075) <= reach, abs(values.mean() - 0.075) <= wider]
    plain, widened = hits / 400
    assert plain < 0.92
    assert widened > plain + 0.02


def test_the_interval_of_a_mean_is_the_textbook_s() -> None:
    scores, data = example()
    for name in ("ndcg@3", "precision@3", "recall@3", "mrr"):
        values = er.measure(scores, data, name, per_query=True)[name]
        values = values[~np.isnan(values)]
        n = len(values)
        error = values.std(ddof=1) / sqrt(n)
        for confidence in (0.5, 0.9, 0.99):
            found = interval(scores, data, name, confidence, "analytic")
            reach = t.ppf((1 + confidence) / 2, n - 1) * error * (1 + for_skew(values, confidence))
            assert close(tuple(found), (values.mean(), values.mean() - reach, values.mean() + reach))
            assert found.queries == n


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_both_methods_agree_with_many_queries(confidence: float) -> None:
    scores, data = example(1000, groups="abc")
    both = [intervals(scores, data, EVERY, confidence=confidence, method=method) for method in METHODS]
    for one, two in zip(*both, strict=True):
        assert close((one.low, one.high), (two.low, two.high), 0.12 * (two.high - two.low)), one.measure


def test_degrees_of_freedom_count_effective_queries() -> None:
    equal = Statistic("x", Sums.of_tables(np.ones((8, 1)), np.full((8, 1), 2.0)), "mean")
    assert equal.freedom == 7
    one_big = Statistic("x", Sums.of_tables(np.ones((8, 1)), np.array([[1e9]] + [[1.0]] * 7)), "mean")
    assert 0 < one_big.freedom < 1e-6
    assert t_over_normal(10) == pytest.approx(t.ppf(0.975, 10) / t.ppf(0.975, 1e12))
    assert t_over_normal(1e9) == pytest.approx(1)


# ---------------------------------------------------------------------- absolute and signed


@pytest.mark.parametrize("name", ["dp@3", "eop@3", "exposure_gap"])
@pytest.mark.parametrize("seed", range(4))
def test_one_gap_s_interval_is_the_signed_one_folded_at_0(name: str, seed: int) -> None:
    scores, data = example(40, seed=seed)
    signed = interval(scores, data, name, method="analytic", signed=True)
    absolute = interval(scores, data, name, method="analytic")
    assert absolute.estimate == abs(signed.estimate)
    reach = (signed.high - signed.low) / 2
    assert close(absolute.high, abs(signed.estimate) + reach)
    assert close(absolute.low, max(0, abs(signed.estimate) - reach))
    assert (absolute.low == 0) == (signed.low <= 0 <= signed.high)


def test_signed_is_the_first_group_s_rate_minus_the_second_s() -> None:
    scores, data = example()
    rates = er.selection_rates(scores, data, 3)
    assert interval(scores, data, "dp@3", signed=True).estimate == pytest.approx(rates["a"] - rates["b"])
    odds = [er.selection_rates(scores, data, 3, among=among) for among in ("relevant", "irrelevant")]
    assert interval(scores, data, "eod@3", signed=True).estimate == pytest.approx(
        np.mean([rate["a"] - rate["b"] for rate in odds])
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("across", ["mean", "max"])
def test_an_even_ranking_may_have_no_gap_at_all(method: str, across: str) -> None:
    """Scores that ignore the group: intervals reach 0 (a ratio's: 1), nearly always, for any number of groups."""
    rng = np.random.default_rng(0)
    reached = []
    for _ in range(20):
        q, items = 50, 6
        data = RankingData.from_arrays(
            np.zeros((q * items, 0)),
            rng.integers(0, 2, q * items),
            rng.integers(0, 4, q * items),
            np.repeat(np.arange(q), items),
        )
        scores = rng.standard_normal(q * items)
        found = intervals(scores, data, [*VIOLATIONS, "four_fifths@3"], method=method, across=across, replicates=300)
        reached += [one.high == 1 if one.measure.startswith("four") else one.low == 0 for one in found]
    assert np.mean(reached) > 0.93


@given(queries(groups=4, unknown=False))
def test_a_change_of_gaps_moves_a_violation_by_at_most_its_seminorm(some: list[Query]) -> None:
    """|Γ(g) − Γ(h)| ≤ Γ(g − h): why the interval is honest at 0."""
    for across in ("mean", "max"):
        (stat,) = statistics(pooled(some, "scores"), as_data(some), ["dp@2"], across=across)
        gaps = np.random.default_rng(0).standard_normal((50, len(stat.estimates)))
        assert stat.pairs is not None
        size = stat.pairs.value(gaps.T)
        assert (np.abs(np.diff(size)) <= stat.pairs.value(np.diff(gaps, axis=0).T) + 1e-12).all()


@pytest.mark.parametrize("name", ["ndcg@3", "four_fifths@3", "mrr"])
def test_signed_is_for_violations(name: str) -> None:
    scores, data = example()
    with pytest.raises(ConfigError, match=f"signed=True is for violations with two groups; got '{name}' with 2 groups"):
        interval(scores, data, name, signed=True)


def test_signed_is_for_two_groups() -> None:
    scores, data = example(groups="abc")
    with pytest.raises(ConfigError, match="two groups; got 'dp@3' with 3 groups"):
        interval(scores, data, "dp@3", signed=True)


# ---------------------------------------------------------------------- ratios


@pytest.mark.parametrize("method", METHODS)
def test_a_ratio_s_interval_is_symmetric_on_the_log_scale(method: str) -> None:
    scores, data = example(300)
    found = interval(scores, data, "four_fifths@3", method=method)
    assert found.high < 1
    assert found.estimate / found.low == pytest.approx(found.high / found.estimate)


@pytest.mark.parametrize("method", METHODS)
def test_a_group_never_selected_may_yet_be(method: str) -> None:
    q = 30
    data = as_data([Query([2.0, 1.0], [1, 1], ["a", "b"]) for _ in range(q)])
    found = interval([2.0, 1.0] * q, data, "four_fifths@1", method=method)
    # b's rate is 0 of 30: with 1 − 0.025^(1/30) = 0.116 or more, 30 zeros would have a chance below 2.5 %.
    assert tuple(found) == pytest.approx((0, 0, 1 - 0.025 ** (1 / q)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["precision@1", "dp@2", "eod@2", "four_fifths@2"])
def test_queries_that_are_all_alike_do_not_prove_that_others_are(method: str, name: str) -> None:
    q = 40
    data = as_data([Query([2.0, 1.0, 0.0, -1.0], [1, 1, 0, 0], ["a", "b", "a", "b"]) for _ in range(q)])
    found = interval([2.0, 1.0, 0.0, -1.0] * q, data, name, method=method)
    assert found.high - found.low == pytest.approx(1 - 0.025 ** (1 / q))


def test_a_ratio_with_several_empty_groups_is_0_and_with_all_empty_nan() -> None:
    def of(*rates: float) -> float:
        count = len(rates)
        pairs = module.Pairs.of(np.ones((1, 1, count)), across="max")
        sums = Sums.of_tables(np.array([rates]), np.ones((1, count)))
        stat = Statistic("four_fifths@1", sums, "ratio", pairs)
        return float(stat.value(stat.estimates))

    assert of(0, 0, 0.5) == 0
    assert of(0.25, 0.5, 1) == pytest.approx(0.25)
    assert np.isnan(of(0, 0, 0))


# ---------------------------------------------------------------------- what cannot be said


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("signed", [False, True])
def test_an_empty_cell_makes_a_violation_nan(method: str, signed: bool) -> None:
    some = [Query([3.0, 2.0, 1.0], [1, 0, 0], ["a", "a", "b"]), Query([1.0, 2.0], [1, 0], ["a", "b"])]
    for name in ("eop@1", "eod@1"):  # no relevant b
        with pytest.warns(DataWarning, match="relevant rows have no item of group 'b'"):
            found = interval(pooled(some, "scores"), as_data(some), name, method=method, signed=signed)
        assert np.isnan(tuple(found)).all()
        assert found.queries == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_quality_that_exists_nowhere_is_nan(method: str) -> None:
    some = [Query([2.0, 1.0], [0, 0], ["a", "b"])] * 3
    found = interval(pooled(some, "scores"), as_data(some), "ndcg@1", method=method)
    assert np.isnan(tuple(found)).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_of_one_query_leaves_everything_possible(method: str) -> None:
    some = [Query([2.0, 1.0], [1, 1], ["a", "a"]) for _ in range(9)] + [Query([2.0, 1.0], [1, 1], ["a", "b"])]
    found = interval(pooled(some, "scores"), as_data(some), "dp@1", method=method)
    assert (found.low, found.high) == (0, 1)
    found = interval(pooled(some, "scores"), as_data(some), "dp@1", method=method, signed=True)
    assert (found.low, found.high, found.queries) == (-1, 1, 1)


def test_one_query_has_no_interval() -> None:
    data = as_data([Query([2.0, 1.0], [1, 1], ["a", "b"])])
    with pytest.raises(DataError, match="needs at least two; the data has 1"):
        interval([2.0, 1.0], data, "dp@1")


def test_a_matrix_of_scores_has_no_interval() -> None:
    scores, data = example()
    with pytest.raises(DataError, match="intervals take one score per row"):
        interval(np.column_stack([scores, scores]), data, "dp@1")


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, "0.95", np.nan, None])
def test_confidence_is_a_share(confidence: Any) -> None:
    scores, data = example()
    with pytest.raises(ConfigError, match="confidence must be between 0 and 1"):
        interval(scores, data, "dp@1", confidence)


def test_options_are_checked() -> None:
    scores, data = example()
    with pytest.raises(ConfigError, match="method must be one of bootstrap, analytic; got 'jackknife'"):
        interval(scores, data, "dp@1", method="jackknife")
    with pytest.raises(ConfigError, match="replicates must be a whole number"):
        interval(scores, data, "dp@1", replicates=0)


def test_few_queries_in_a_cell_are_said() -> None:
    base = [Query([2.0, 1.0], [1, 1], ["a", "a"]) for _ in range(60)]

    def rare(number: int) -> RankingData:
        return as_data([*base, *(Query([2.0, 1.0], [1, 1], ["a", "b"]) for _ in range(number))])

    for number, told in ((FEW - 1, True), (FEW, False)):
        data = rare(number)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = interval(np.tile([2.0, 1.0], data.n_queries), data, "dp@1")
        assert found.queries == number
        assert [str(w.message) for w in said] == (
            [f"dp@1: queries that have an item of the rarest cell: only {number}; its interval is rough"]
            if told
            else []
        )


# ---------------------------------------------------------------------- coverage, in small


def test_small_study_of_coverage() -> None:
    """benchmarks/interval_coverage.py in small: signed gaps of 100 queries, 400 data sets, truth by symmetry."""
    rng = np.random.default_rng(0)
    q, items, sets = 100, 6, 400
    group = (rng.random((sets * q, items)) < rng.beta(2, 2, (sets * q, 1))).astype(int)
    lean = 0.7 * rng.standard_normal((sets * q, 2))
    scores = rng.standard_normal(group.shape) + np.take_along_axis(lean, group, axis=1)
    data = RankingData.from_arrays(
        np.zeros((group.size, 0)), np.ones(group.size), group.ravel(), np.repeat(np.arange(sets * q), items)
    )
    (stat,) = statistics(scores.ravel(), data, ["dp@3"])
    covered = np.zeros((sets, 2))
    for i in range(sets):
        part = replace(stat, sums=stat.sums.part(i * q, (i + 1) * q))
        (sample,) = resampled_ratios([part.sums], replicates=500, seed=i)
        for m, given_sample in enumerate((sample, None)):
            found = interval_of(part, given_sample, signed=True)
            covered[i, m] = found.low <= 0 <= found.high
    # Four standard errors of a share of 95 % in 400.
    assert (np.abs(covered.mean(axis=0) - 0.95) < 4 * sqrt(0.95 * 0.05 / sets)).all()


def test_pairs_are_all_pairs() -> None:
    scores, data = example(groups="abcd")
    (stat,) = statistics(scores, data, ["dp@3"])
    rates = list(er.selection_rates(scores, data, 3).values())
    assert close(stat.estimates, [a - b for a, b in combinations(rates, 2)])
