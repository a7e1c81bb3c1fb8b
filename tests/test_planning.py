"""Plans: precision against a slow twin, power against simulation, and the claims that were wrong."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenrank as er
from evenrank.data import RankingData
from evenrank.planning import Precision, noticeable


def lists(q: int, seed: int, *, lean: float = 0.0, share: float = 0.4) -> tuple[Any, RankingData]:
    rng = np.random.default_rng(seed)
    length = rng.integers(5, 11, q)
    n = int(length.sum())
    group = (rng.random(n) < share).astype(int)
    scores = rng.standard_normal(n) + lean * group
    query = np.repeat(np.arange(q), length)
    return scores, RankingData.from_arrays(np.zeros((n, 0)), np.ones(n), group, query, group_names=["x", "y"])


def plain(scores: Any, data: RankingData, k: int, scope: str) -> tuple[float, float]:
    """Gap and standard error, query by query, each left out in turn."""
    top = er.Ranking(data.to_stored(scores), data.query_ptr).top(k)

    def gap(skip: int | None) -> float:
        if scope == "pooled":
            keep = data.query_of_row != skip
            return float(top[keep & (data.group == 0)].mean() - top[keep & (data.group == 1)].mean())
        excess = weight = 0.0
        for q in range(data.n_queries):
            rows = slice(data.query_ptr[q], data.query_ptr[q + 1])
            x, y = (top[rows][data.group[rows] == code] for code in (0, 1))
            if q != skip and len(x) and len(y):
                w = len(x) * len(y) / (len(x) + len(y))
                excess, weight = excess + w * (x.mean() - y.mean()), weight + w
        return excess / weight

    whole = gap(None)
    moves = [gap(q) - whole for q in range(data.n_queries)]
    return whole, sqrt(sum(move**2 for move in moves) * (data.n_queries - 1) / data.n_queries)


@pytest.mark.parametrize("scope", ["within", "pooled"])
def test_the_error_is_that_of_leaving_out_queries(scope: str) -> None:
    scores, data = lists(40, 0)
    top = er.Ranking(data.to_stored(scores), data.query_ptr).top(3)
    sums = [np.bincount(data.query_of_row, v * (data.group == g)) for v in (np.ones(len(top)), top) for g in (0, 1)]
    made = Precision.of(*sums, [np.arange(40)], scope=scope, queries=40)
    gap, error = plain(scores, data, 3, scope)
    assert made.rates[0] - made.rates[1] == pytest.approx(gap)
    spread = sum(w * r * (1 - r) for w, r in zip(made.weights, made.rates, strict=True))
    assert sqrt(made.excess * spread) == pytest.approx(error, rel=0.02)


def test_power_is_that_of_the_t_test() -> None:
    """One row of each group per list: a paired t-test of differences, whose power scipy's noncentral t gives."""
    made = Precision(50, 49.0, (0.5, 0.5), (50.0, 50.0), (1 / 50, 1 / 50), 1.0)
    error = sqrt(2 * (0.5 + 0.1) * (0.5 - 0.1) / 100)  # rates move to 0.6 and 0.4, with twice the queries
    limit = stats.t.ppf(0.975, 99)
    by_hand = stats.nct.sf(limit, 99, 0.2 / error) + stats.nct.cdf(-limit, 99, 0.2 / error)
    assert made.power(0.2, 100) == pytest.approx(by_hand, abs=1e-6)


def test_numbers_agree_with_each_other() -> None:
    scores, data = lists(200, 1)
    (plan,) = noticeable(scores, data, "dp@3")
    assert plan.queries_needed is not None
    assert plan.queries_needed > 200
    assert plan.power_now < 0.8
    (larger,) = noticeable(scores, data, "dp@3", plan.smallest_gap)
    assert larger.power_now == pytest.approx(0.8, abs=1e-4)
    assert larger.queries_needed in (200, 201)
    (corrected,) = noticeable(scores, data, "dp@3", tests=10)
    assert corrected.queries_needed is not None
    assert corrected.queries_needed > plan.queries_needed
    assert f"With {plan.queries_needed:,} queries like these a gap of 0.05 between" in str(plan)
    assert noticeable(scores, data, "dp@3") == [plan]


@pytest.mark.parametrize("scope", ["within", "pooled"])
def test_the_gap_is_noticed_in_four_of_five(scope: str) -> None:
    """At the 201 queries that were once said to be enough for 0.05, it was noticed in 49 %."""
    lean = 0.35
    truth, _ = plain_fast(*lists(60_000, 5, lean=lean), scope)
    scores, data = lists(400, 6)
    (plan,) = noticeable(scores, data, "dp@3", abs(truth), scope=scope)
    assert plan.queries_needed is not None
    noticed = []
    for seed in range(150):
        gap, error = plain_fast(*lists(plan.queries_needed, 100 + seed, lean=lean), scope)
        noticed.append(abs(gap) / error > stats.t.ppf(0.975, plan.queries_needed - 1))
    assert abs(np.mean(noticed) - 0.8) < 0.05 + 2.5 * sqrt(0.8 * 0.2 / 150)


def plain_fast(scores: Any, data: RankingData, scope: str) -> tuple[float, float]:
    """The same as `plain` for dp@3, to first order."""
    top = er.Ranking(data.to_stored(scores), data.query_ptr).top(3)
    of_query, one = data.query_of_row, np.ones(len(top))
    a, b, x, y = (np.bincount(of_query, v * (data.group == g)) for v in (one, top) for g in (0, 1))
    if scope == "pooled":
        moves = (x - x.sum() / a.sum() * a) / a.sum() - (y - y.sum() / b.sum() * b) / b.sum()
        return float(x.sum() / a.sum() - y.sum() / b.sum()), float(np.sqrt(moves @ moves))
    weight, excess = a * b / (a + b), (x * b - y * a) / (a + b)
    gap = excess.sum() / weight.sum()
    moves = (excess - gap * weight) / weight.sum()
    return float(gap), float(np.sqrt(moves @ moves))


def test_clusters_and_rare_groups_take_more_queries() -> None:
    scores, data = lists(300, 2)
    (alone,) = noticeable(scores, data, "dp@3")
    twice = RankingData.from_arrays(
        np.zeros((2 * len(scores), 0)), np.ones(2 * len(scores)), np.tile(data.group, 2),
        np.concatenate([data.query_of_row, 1000 + data.query_of_row]), group_names=["x", "y"],
    )  # fmt: skip
    user = np.tile(data.query_of_row, 2)
    (copied,) = noticeable(np.tile(scores, 2), twice, "dp@3", cluster=user)
    assert alone.queries_needed is not None
    assert copied.queries_needed is not None
    assert copied.queries_needed == pytest.approx(2 * alone.queries_needed, abs=2)
    (rare,) = noticeable(*lists(300, 2, share=0.03), "dp@3")
    assert rare.queries_needed is not None
    assert rare.queries_needed > 3 * alone.queries_needed


def test_a_group_in_one_list_can_show_nothing() -> None:
    scores, data = lists(30, 3)
    group = np.zeros(len(scores), int)
    group[data.query_ptr[4]] = 1
    alone = RankingData.from_arrays(np.zeros((len(group), 0)), np.ones(len(group)), group, data.query_of_row)
    for scope in ("within", "pooled"):
        (plan,) = noticeable(scores, alone, "dp@3", scope=scope)
        assert (plan.power_now, plan.queries_needed) == (0, None)
        assert np.isnan(plan.smallest_gap)
        assert "No number of queries" in str(plan)


def test_options_are_checked() -> None:
    scores, data = lists(10, 0)
    for options, message in (
        ({"gap": 0}, "gap must be between 0 and 1"),
        ({"power": 1}, "power must be between 0 and 1"),
        ({"scope": "both"}, "scope must be one of within, pooled"),
        ({"tests": 0}, "tests must be a whole number ≥ 1"),
        ({"measure": "ndcg@3"}, "a plan is for violations"),
    ):
        with pytest.raises(er.ConfigError, match=message):
            noticeable(scores, data, **({"measure": "dp@3"} | options))
    with pytest.raises(er.DataError, match="one label per query"):
        noticeable(scores, data, "dp@3", cluster=np.arange(len(scores)))
