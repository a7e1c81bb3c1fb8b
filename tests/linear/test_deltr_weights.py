"""Weights of rows in DELTR, and in the score of a ranker."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank as er
from evenrank.linear.exposure_objective import ExposureObjective


def rows(seed=0, n=24, d=3, queries=4):
    rng = np.random.default_rng(seed)
    return {
        "X": rng.normal(size=(n, d)),
        "y": rng.integers(0, 2, n),
        "qid": np.arange(n) % queries,
        "sensitive_features": np.where(rng.random(n) < 0.4, "b", "a"),
    }


def as_data(parts, weight=None):
    return er.RankingData.from_arrays(
        parts["X"], parts["y"], parts["sensitive_features"], parts["qid"], sample_weight=weight
    )


def plain_loss(theta, data, gamma, protected):
    """Slow twin: one query after another, every row standing ``weight`` times."""
    live = data.sample_weight[data.sample_weight > 0]
    total, queries = 0.0, 0
    for start, stop in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        weight = data.sample_weight[start:stop] / live.mean()
        if not weight.sum():
            continue
        queries += 1
        scores, relevance = data.features[start:stop] @ theta, data.relevance[start:stop]
        each = np.exp(scores) / sum(w * np.exp(s) for w, s in zip(weight, scores, strict=True))
        wanted = np.exp(relevance) / sum(w * np.exp(r) for w, r in zip(weight, relevance, strict=True))
        total -= sum(w * t * np.log(p) for w, t, p in zip(weight, wanted, each, strict=True)) / np.log(len(live))
        inside = data.group[start:stop] == protected
        if weight[inside].sum() and weight[~inside].sum():
            exposures = [np.average(each[mask], weights=weight[mask]) / np.log(2) for mask in (~inside, inside)]
            total += gamma * max(0.0, exposures[0] - exposures[1]) ** 2
    return total / queries


def weighted(seed=1):
    parts = rows(seed)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], 24)
    weight[parts["qid"] == 2] = 0.0  # a query that does not count at all
    return as_data(parts, weight)


@pytest.mark.parametrize("protected", [0, 1])
def test_loss_and_gradient_are_those_of_the_slow_twin(protected):
    data = weighted()
    gammas = np.array([0.0, 3.0])
    objective = ExposureObjective(data.features, data, gammas, protected, weighting="queries")
    theta = np.random.default_rng(5).normal(size=(2, 3))
    value, slope = objective(theta, np.arange(2))
    step = 1e-6
    for model, gamma in enumerate(gammas):
        assert value[model] == pytest.approx(plain_loss(theta[model], data, gamma, protected), rel=1e-12)
        for j in range(3):
            move = step * np.eye(3)[j]
            ends = [plain_loss(theta[model] + sign * move, data, gamma, protected) for sign in (1, -1)]
            assert slope[model, j] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("gamma", [0.0, 10.0])
def test_equal_weights_change_nothing(gamma):
    parts = rows()
    plain = er.DELTR(gamma, "b").fit(**parts)
    for weight in (1.0, 7.0):
        other = er.DELTR(gamma, "b").fit(**parts, sample_weight=np.full(24, weight))
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
        assert other.loss_ == pytest.approx(plain.loss_, rel=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 10.0])
def test_a_weight_of_0_leaves_the_row_out(gamma):
    parts = rows(2)
    kept = np.arange(24) % 5 != 0
    some = er.DELTR(gamma, "b").fit(**{name: values[kept] for name, values in parts.items()})
    all_rows = er.DELTR(gamma, "b").fit(**parts, sample_weight=kept.astype(float))
    np.testing.assert_allclose(all_rows.coef_, some.coef_, rtol=1e-5, atol=1e-8)
    assert all_rows.loss_ == pytest.approx(some.loss_, rel=1e-10)


def test_a_weight_of_2_is_the_row_twice_without_the_exposure_term():
    parts = rows(3)
    again = np.concatenate([np.arange(24), [4, 9]])
    twice = er.DELTR(0.0).fit(**{name: values[again] for name, values in parts.items()})
    weight = np.ones(24)
    weight[[4, 9]] = 2
    np.testing.assert_allclose(er.DELTR(0.0).fit(**parts, sample_weight=weight).coef_, twice.coef_, rtol=1e-5)
    np.testing.assert_allclose(er.DELTR(0.0).fit(as_data(parts, weight)).coef_, twice.coef_, rtol=1e-5)


def test_the_published_package_has_no_weights():
    parts = rows()
    with pytest.raises(er.ConfigError, match="the published DELTR has no sample_weight"):
        er.DELTR(reference=True, standardize=False).fit(**parts, sample_weight=np.ones(24))


def test_a_query_counts_with_the_mean_weight_of_its_rows_in_the_score():
    X, y = np.array([[3.0], [2.0], [1.0], [5.0], [6.0]]), [0, 1, 1, 1, 0]
    qid, weight = [1, 1, 1, 2, 2], [1.0, 2.0, 3.0, 0.5, 0.5]
    ranker = er.FairLinearRanker(alpha=0.0, fit_intercept=False).fit(np.array([[1.0], [2.0]]), [1, 2])
    first = (1 / np.log2(3) + 1 / np.log2(4)) / (1 + 1 / np.log2(3))
    second = 1 / np.log2(3)
    expected = (2 * first + 0.5 * second) / 2.5
    assert ranker.score(X, y, qid=qid, sample_weight=weight) == pytest.approx(expected)
    data = er.RankingData.from_arrays(X, y, None, qid, sample_weight=weight)
    assert ranker.score(data) == pytest.approx(expected)
    assert ranker.score(X, y, qid=qid, sample_weight=np.full(5, 3.0)) == pytest.approx((first + second) / 2)
    assert ranker.score(X, y, qid=qid) == pytest.approx((first + second) / 2)
    with pytest.raises(er.ConfigError, match="leave sample_weight out"):
        ranker.score(data, sample_weight=weight)
