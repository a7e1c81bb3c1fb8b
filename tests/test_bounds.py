"""Bounds against hand calculations, monotonicity, and simulation of what they promise."""

from math import e, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank import bounds

PAPER = {"n_queries": 652, "list_length": 7, "vc": 10}


@pytest.mark.parametrize(("notion", "constant"), [("dp", 24), ("eop", 24), ("eod", 48)])
def test_theorem_by_hand(notion, constant):
    by_hand = 8 * sqrt(2 * (10 * log(2 * e * 652 * 7 / 10) + log(constant / 0.05)) / (652 * 0.2**2))
    found = bounds.uniform(notion, **PAPER, min_share=0.2, delta=0.05)
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert found.vacuous
    assert str(found) == f"{float(found):.3f} (says nothing)"
    assert "paper" in found.claim


@pytest.mark.parametrize(("notion", "constant"), [("dp", 8), ("eop", 8), ("eod", 16)])
def test_lemmas_by_hand(notion, constant):
    found = bounds.fixed(notion, n_queries=652, min_share=0.45, delta=0.05)
    assert found == pytest.approx(2 * sqrt(log(constant / 0.05) / (652 * 0.45)), rel=1e-12)
    assert found.holds
    needed = 8 * log(8 / 0.05) / 0.45**2
    assert not bounds.fixed(notion, n_queries=int(needed), min_share=0.45, delta=0.05).holds
    assert bounds.fixed(notion, n_queries=int(needed) + 1, min_share=0.45, delta=0.05).holds
    assert "does not apply" in str(bounds.fixed(notion, n_queries=10, min_share=0.45))


def test_condition_of_the_theorem():
    assert not bounds.uniform("dp", n_queries=1, list_length=2, vc=4, min_share=0.5).holds
    assert bounds.uniform("dp", n_queries=1, list_length=2, vc=3, min_share=0.5).holds


def test_vc_dimension_of_linear_scores():
    assert bounds.vc_dimension(9) == 10


@given(
    st.sampled_from(["dp", "eop", "eod"]),
    st.integers(10, 10**6),
    st.floats(0.01, 0.5),
    st.floats(0.001, 0.5),
)
def test_bounds_move_as_they_should(notion, n, share, delta):
    def uniform(n=n, share=share, delta=delta, m=7, vc=5):
        return bounds.uniform(notion, n_queries=n, list_length=m, vc=vc, min_share=share, delta=delta)

    assert uniform(n=2 * n) < uniform()
    assert uniform(share=share * 1.1) < uniform()
    assert uniform(delta=delta * 1.1) < uniform()
    assert uniform(m=8) > uniform()
    assert uniform(vc=6) > uniform()
    for bound in (bounds.fixed, bounds.planned):
        plain = bound(notion, n_queries=n, min_share=share, delta=delta)
        assert bound(notion, n_queries=2 * n, min_share=share, delta=delta) < plain
        assert bound(notion, n_queries=n, min_share=share * 1.1, delta=delta) < plain
        assert bound(notion, n_queries=n, min_share=share, delta=delta * 1.1) < plain


@pytest.mark.parametrize("kind", bounds.KINDS)
@pytest.mark.parametrize("notion", ["dp", "eod"])
def test_queries_needed_is_the_fewest(kind, notion):
    settings = {"min_share": 0.2, "delta": 0.05}
    needed = bounds.queries_needed(notion, 0.1, bound=kind, list_length=7, vc=10, **settings)
    compute = {
        "uniform": lambda n: bounds.uniform(notion, n_queries=n, list_length=7, vc=10, **settings),
        "fixed": lambda n: bounds.fixed(notion, n_queries=n, **settings),
        "hoeffding": lambda n: bounds.planned(notion, n_queries=n, **settings),
    }[kind]
    assert compute(needed) <= 0.1
    assert compute(needed).holds
    assert compute(needed - 1) > 0.1 or not compute(needed - 1).holds


def logged(rng, queries, *, rare=0.3, k=3):
    """Ragged lists whose rows depend on each other: a query's own share of the group, and its effect on scores."""
    lengths = rng.integers(2, 11, queries)
    n = lengths.sum()
    query = np.repeat(np.arange(queries), lengths)
    own = rng.beta(2 * rare, 2 * (1 - rare), queries)[query]
    group = rng.random(n) < own
    relevance = rng.random(n) < 0.3 + 0.2 * group
    scores = rng.normal(size=n) - 0.7 * group + relevance + 2 * rng.normal(size=queries)[query] * group
    data = er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group.astype(int), query)
    return data, scores


@pytest.mark.parametrize("method", bounds.METHODS)
@pytest.mark.parametrize("measure", ["dp@3", "eod@3"])
def test_certified_bounds_hold(method, measure):
    rng = np.random.default_rng(0)
    truth = er.measure(*reversed(logged(rng, 60_000)), measure)[measure]
    broken = 0
    for _ in range(200):
        data, scores = logged(rng, 150)
        made = bounds.certified(scores, data, measure, 0.2, method=method)
        broken += made.bound < truth
        assert made.bound >= made.estimate
    assert broken / 200 <= 0.2


def weighted(data, weight):
    columns = (np.zeros((data.n_rows, 0)), data.relevance, data.group, data.query_of_row)
    return er.RankingData.from_arrays(*columns, group_names=[0, 1], sample_weight=weight)


@pytest.mark.parametrize("method", bounds.METHODS)
def test_weights_of_any_scale_give_the_same_bound(method):
    """A list is as long as its weights sum to; weights × 100 once gave bounds that held in 60 %."""
    data, scores = logged(np.random.default_rng(6), 800)
    weight = np.random.default_rng(7).uniform(0.5, 2, data.n_rows)
    one, hundred = (bounds.certified(scores, weighted(data, w), "dp@3", method=method) for w in (weight, 100 * weight))
    assert hundred.bound == pytest.approx(one.bound)
    assert one.longest == pytest.approx(max(np.bincount(data.query_of_row, weight)))
    alike = weighted(data, np.ones(data.n_rows))
    plain, ones = (bounds.certified(scores, each, "dp@3", method=method) for each in (data, alike))
    assert plain.bound == pytest.approx(ones.bound)


def test_weighted_bounds_hold():
    rng = np.random.default_rng(8)

    def draw(queries):
        data, scores = logged(rng, queries)
        heavy = rng.random(data.n_queries) < 0.05
        weight = np.where(heavy[data.query_of_row], 100.0, 1.0)
        return weighted(data, weight), scores + 2 * heavy[data.query_of_row] * data.group

    truth = er.measure(*reversed(draw(60_000)), "dp@3")["dp@3"]
    made = [bounds.certified(*reversed(draw(400)), "dp@3", 0.2, longest=1000).bound for _ in range(100)]
    assert np.mean(np.array(made) >= truth) >= 0.8


def test_the_next_queries_are_another_statement_than_the_population():
    data, scores = logged(np.random.default_rng(9), 5000)
    population = bounds.certified(scores, data, "dp@3")
    soon, later = (bounds.certified(scores, data, "dp@3", next_queries=n) for n in (2000, 10**7))
    assert population.bound < later.bound < soon.bound
    assert "in the next 2,000 queries" in str(soon)
    assert "no list is longer than 10, the longest seen" in population.condition
    assert bounds.certified(scores, data, "dp@3", next_queries=3).vacuous


def test_next_queries_by_hand():
    data, scores = logged(np.random.default_rng(9), 5000)
    made = bounds.certified(scores, data, "dp@3", 0.1, method="hoeffding", next_queries=4000)
    selected = er.Ranking(data.to_stored(scores), data.query_ptr).top(3)
    limits = []
    for code in (0, 1):
        cell = data.group == code
        mean = cell.sum() / 10 / 5000
        reach = sqrt(log(2 / 0.025) / 2 / 5000) / mean
        tail = log(4 / 0.025)
        reach += sqrt(tail / 8000) / (mean - sqrt(tail / 10000) - sqrt(tail / 8000))
        limits.append((selected[cell].mean() - reach, selected[cell].mean() + reach))
    by_hand = max(limits[0][1] - limits[1][0], limits[1][1] - limits[0][0])
    assert made.bound == pytest.approx(by_hand, abs=3 / bounds.GRID)


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
def test_the_plan_is_what_hoeffding_s_bound_adds(notion):
    """Lists of 2 to 10, and up to 15 possible: the share is of the longest, and cells count by their own sizes."""
    data, scores = logged(np.random.default_rng(10), 30_000)
    share = bounds.certified_share(data, notion, longest=15)
    plan = bounds.planned(notion, n_queries=30_000, min_share=share)
    made = bounds.certified(scores, data, f"{notion}@3", method="hoeffding", longest=15)
    assert made.bound - made.estimate == pytest.approx(float(plan), abs=4 / bounds.GRID)
    assert share < bounds.min_share(data, notion).estimate
    needed = bounds.queries_needed(notion, 0.1, min_share=share)
    assert needed == pytest.approx(30_000 * (float(plan) / 0.1) ** 2, rel=1e-3)


def test_hoeffding_by_hand():
    data, scores = logged(np.random.default_rng(1), 3000)
    made = bounds.certified(scores, data, "dp@3", 0.05, method="hoeffding")
    selected = er.Ranking(data.to_stored(scores), data.query_ptr).top(3)
    limit = 0.0
    for code in (0, 1):
        cell = data.group == code
        limit += sqrt(3000 * log(2 / 0.025) / 2) / (cell.sum() / 10)
        assert 0 < selected[cell].mean() < 1
    assert made.bound == pytest.approx(made.estimate + limit, abs=3 / bounds.GRID)
    assert (made.longest, made.assumed) == (10, True)


def test_bernstein_beats_hoeffding_with_many_queries_and_longer_lists_cost():
    data, scores = logged(np.random.default_rng(2), 5000)
    sharp, plain = (bounds.certified(scores, data, "dp@3", method=method).bound for method in bounds.METHODS)
    assert sharp < plain
    assert bounds.certified(scores, data, "dp@3", longest=50).bound > sharp


def test_few_queries_are_vacuous_and_said_so():
    data, scores = logged(np.random.default_rng(3), 12)
    made = bounds.certified(scores, data, "eop@3")
    assert made.vacuous
    assert "at most 1.000 with confidence 95% (says nothing)" in str(made)


def test_lemma_s_conditional_mean_fails_for_dependent_lists():
    """Query type A: both items in the cell and selected; B: one item in the cell, not selected."""
    lists = [(2, 2), (1, 0)]
    rate = sum(selected for _, selected in lists) / sum(items for items, _ in lists)
    assert rate == pytest.approx(2 / 3)
    given_two_items = [selected / items for items, selected in lists if items == 2]
    assert given_two_items == [1.0]


def test_min_share():
    data, _ = logged(np.random.default_rng(4), 4000, rare=0.1)
    share = bounds.min_share(data, "dp", 0.05)
    assert share.lower < share.estimate == pytest.approx(0.1, abs=0.02)
    assert share.lower == pytest.approx(share.estimate - sqrt(log(2 / 0.05) / 8000))
    assert bounds.min_share(data, "eop").estimate == bounds.min_share(data, "eod").estimate < share.estimate


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda d, s: bounds.uniform("dp", n_queries=0, list_length=7, vc=3, min_share=0.1),
            "n_queries must be a whole",
        ),
        (
            lambda d, s: bounds.uniform("dp", n_queries=9, list_length=7, vc=3, min_share=0),
            "min_share must be a finite number > 0 and ≤ 1",
        ),
        (
            lambda d, s: bounds.fixed("dp", n_queries=9, min_share=0.1, delta=1),
            "delta must be between 0 and 1, ends excluded",
        ),
        (lambda d, s: bounds.fixed("parity", n_queries=9, min_share=0.1), "notion must be one of"),
        (lambda d, s: bounds.queries_needed("dp", 0.1, bound="uniform", min_share=0.1), "needs vc"),
        (lambda d, s: bounds.queries_needed("dp", 0.1, bound="magic", min_share=0.1), "bound must be one of"),
        (lambda d, s: bounds.certified(s, d, "ndcg@3"), "for violations and exposure gaps"),
        (
            lambda d, s: bounds.certified(s, d, "dp@3", longest=3),
            "longest must be at least the longest list, 10",
        ),
        (lambda d, s: bounds.certified(s, d, "dp@3", method="t"), "method must be one of"),
    ],
)
def test_bad_options(make, message):
    data, scores = logged(np.random.default_rng(5), 50)
    with pytest.raises(er.ConfigError, match=message):
        make(data, scores)
