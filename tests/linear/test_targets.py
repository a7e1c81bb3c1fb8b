"""Linear rankers trained on other targets than the score, and those asked for an outcome instead of a strength."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataWarning
from evenrank.linear.descent import TargetPenalty
from evenrank.linear.design import Design
from evenrank.losses import LOSSES
from evenrank.notions import NOTIONS, bind
from evenrank.targets import TARGETS, FairnessTerm, bind_target
from linear_oracles import Rows, random_data

pytestmark = pytest.mark.numeric

OTHERS = [name for name, target in TARGETS.items() if not target.linear]


def slow_gd(
    data: er.RankingData, notion: str, alpha: float, target: str, scope: str, *, k: int, loss: str = "squared"
) -> Any:
    """Scores in stored order after 60 steps, one model, gradient taken row by row."""
    rows = Rows.of(data)
    relevance = data.relevant.astype(float) if loss == "logistic" else data.relevance
    contrast = bind(notion, data, scope=scope, training=True)
    term = FairnessTerm(contrast, bind_target(target, data.query_ptr, k=k))
    theta = np.zeros(rows.Z.shape[1])
    for _ in range(60):
        scores = rows.Z @ theta
        slope = LOSSES[loss].gradient(scores, relevance) / data.n_rows + alpha * term.gradient(scores)
        theta -= 0.05 * sum(slope[i] * rows.Z[i] for i in range(data.n_rows))
    return rows.Z @ theta


@pytest.mark.parametrize(("target", "scope"), list(product(OTHERS, ["amortized", "per_query"])))
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gd_equals_a_slow_loop(target: str, scope: str, loss: str) -> None:
    data = random_data(0, n=90, groups=3, unknown=True)
    options: dict[str, Any] = {"target": target, "k": 2, "loss": loss, "learning_rate": 0.05, "max_iter": 60}
    path = er.fairness_path(data, "eod", [0.0, 0.4], "gd", scope, **options)
    for model, alpha in enumerate([0.0, 0.4]):
        expected = slow_gd(data, "eod", alpha, target, scope, k=2, loss=loss)
        np.testing.assert_allclose(data.to_stored(path.scores(data)[:, model]), expected, rtol=0, atol=1e-10)
    assert np.abs(np.diff(path.scores(data), axis=1)).max() > 1e-4


@pytest.mark.parametrize(("target", "notion", "scope"), list(product(TARGETS, NOTIONS, ["amortized", "per_query"])))
def test_gradient_in_the_weights_meets_finite_differences(target: str, notion: str, scope: str) -> None:
    data = random_data(4, n=70, groups=3)
    design = Design(
        [data],
        [NOTIONS[notion]],
        scope=scope,
        across="mean",
        scale="train",
        ridge=0.0,
        fit_intercept=True,
        group_aware=False,
        any_units=False,
    )
    alphas = np.array([0.0, 0.5, 2.0])
    penalty = design.target_penalty(bind_target(target, data.query_ptr, k=2), alphas, LOSSES["squared"])
    theta = np.random.default_rng(0).normal(size=penalty.shape)
    found = penalty.subgradient(theta)
    assert (found[0] == 0).all()
    step = 1e-6
    for model, column in product(range(3), range(theta.shape[1])):
        moved = [theta[model].copy(), theta[model].copy()]
        moved[0][column] += step
        moved[1][column] -= step
        values = [alphas[model] * penalty.terms[0].value(penalty.Z @ point) for point in moved]
        assert found[model, column] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)


def test_notions_groupings_and_strengths_train_together() -> None:
    data = random_data(1, groups=3)
    other = data.with_group(np.where(np.arange(data.n_rows) % 2, "x", "y"))
    options: dict[str, Any] = {"target": "topk", "k": 2, "max_iter": 40, "learning_rate": 0.05}
    together = er.fairness_path([data, other], ["dp", "eop"], [0.0, 0.3], "gd", **options)
    assert len(together) == 8
    settings = product([data, other], ["dp", "eop"], [0.0, 0.3])
    for model, (grouping, notion, alpha) in enumerate(settings):
        alone = er.fairness_path(grouping, notion, [alpha], "gd", **options)
        np.testing.assert_allclose(together.coef[model], alone.coef[0], rtol=0, atol=1e-12)


def test_the_score_as_target_is_what_was_there_before() -> None:
    data = random_data(1)
    options: dict[str, Any] = {"max_iter": 50, "learning_rate": 0.05}
    plain = er.fairness_path(data, "dp", [0.2], "gd", **options)
    assert (er.fairness_path(data, "dp", [0.2], "gd", target="score", **options).coef == plain.coef).all()
    terms = [FairnessTerm(bind("dp", data, training=True), bind_target("score", data.query_ptr))]
    rows = Rows.of(data)
    theta = np.random.default_rng(0).normal(size=(1, rows.Z.shape[1]))
    slope = TargetPenalty(rows.Z, terms, np.array([1.0])).subgradient(theta)[0]
    np.testing.assert_allclose(slope, rows.Z.T @ terms[0].gradient(rows.Z @ theta[0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_other_solvers_name_gd(solver: str) -> None:
    with pytest.raises(ConfigError, match="target='topk' trains with solver='gd'"):
        er.fairness_path(random_data(0), "dp", [0.1], solver, target="topk")
    with pytest.raises(ConfigError, match="target='exposure' trains with solver='gd'"):
        er.FairLinearRanker("dp", 0.1, solver=solver, target="exposure").fit(random_data(0))


def test_unknown_targets_and_cut_offs_are_refused() -> None:
    with pytest.raises(ConfigError, match="target must be one of score, centered, probability, topk, exposure"):
        er.fairness_path(random_data(0), "dp", [0.1], "gd", target="rank")
    with pytest.raises(ConfigError, match="k must be a whole number"):
        er.fairness_path(random_data(0), "dp", [0.1], "gd", target="topk", k=0)


def test_the_top_k_target_lowers_what_is_measured() -> None:
    data = random_data(0, n=400, queries=40)
    path = er.fairness_path(data, "dp", [0.0, 0.5], "gd", target="topk", k=3, learning_rate=0.05, max_iter=400)
    before, after = er.measure(path.scores(data), data, ["dp@3"])["dp@3"]
    assert after < before / 2


# ---------------------------------------------------------------------- max_violation


def top_violation(ranker: Any, data: er.RankingData, name: str) -> float:
    return float(er.measure(ranker.predict(data), data, [name])[name])


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
@pytest.mark.parametrize("options", [{}, {"solver": "gd", "target": "topk", "learning_rate": 0.05, "max_iter": 200}])
def test_max_violation_is_met_by_the_weakest_strength(notion: str, options: dict[str, Any]) -> None:
    data = random_data(0, n=400, queries=40)
    free = top_violation(er.FairLinearRanker(notion, 0.0, **options).fit(data), data, f"{notion}@3")
    limit = 0.8 * free
    ranker = er.FairLinearRanker(notion, k=3, max_violation=limit, **options).fit(data)
    assert ranker.violation_ == pytest.approx(top_violation(ranker, data, f"{notion}@3"), abs=1e-12)
    assert ranker.violation_ <= limit < free
    assert ranker.alpha_ > 0
    again = er.FairLinearRanker(notion, ranker.alpha_, k=3, **options).fit(data)
    np.testing.assert_allclose(again.coef_, ranker.coef_, rtol=1e-6, atol=1e-9)
    grid = er.strength_grid()
    weaker = grid[grid < ranker.alpha_]
    path = er.fairness_path(data, notion, weaker, k=3, **options)
    assert (er.measure(path.scores(data), data, [f"{notion}@3"])[f"{notion}@3"] > limit).all()


def test_no_fairness_term_where_none_is_needed() -> None:
    ranker = er.FairLinearRanker("dp", alpha=-7.0, max_violation=1.0).fit(random_data(0))
    assert ranker.alpha_ == 0
    plain = er.FairLinearRanker("dp", 0.0).fit(random_data(0))
    np.testing.assert_allclose(ranker.coef_, plain.coef_, rtol=1e-12)


def test_what_cannot_be_reached_is_said_with_the_lowest() -> None:
    data = random_data(0, n=400, queries=40)
    message = r"max_violation=0 was not reached: the lowest eop@3 on the training rows is 0\.05"
    with pytest.warns(DataWarning, match=message):
        ranker = er.FairLinearRanker("eop", k=3, max_violation=0.0).fit(data)
    path = er.fairness_path(data, "eop")
    assert ranker.violation_ <= er.measure(path.scores(data), data, ["eop@3"])["eop@3"].min()
    assert ranker.violation_ == pytest.approx(top_violation(ranker, data, "eop@3"), abs=1e-12)


def test_max_violation_says_what_it_needs() -> None:
    data = random_data(0)
    with pytest.raises(ConfigError, match="max_violation must be a finite number"):
        er.FairLinearRanker("dp", max_violation=-0.1).fit(data)
    with pytest.raises(ConfigError, match=r"max_violation=0\.1 needs groups"):
        er.FairLinearRanker("dp", max_violation=0.1).fit(data.with_group(None))


def test_alpha_is_reported_where_it_was_given() -> None:
    data = random_data(0)
    ranker = er.FairLinearRanker("dp", 0.25).fit(data)
    assert ranker.alpha_ == 0.25
    assert ranker.violation_ == pytest.approx(er.measure(ranker.predict(data), data, "dp@5")["dp@5"], abs=1e-12)
    assert np.isnan(er.FairLinearRanker(alpha=0).fit(data.with_group(None)).violation_)
