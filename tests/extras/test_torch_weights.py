"""Weights of rows in the torch losses and in `FairNeuralRanker`."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import evenrank as er  # noqa: E402
from evenrank.torch.losses import LOSSES  # noqa: E402

pytestmark = pytest.mark.extras
RNG = np.random.default_rng(0)
SCORES = torch.tensor(RNG.normal(size=(12, 2)))
RELEVANCE = torch.tensor(RNG.integers(0, 2, 12))
GROUP = torch.tensor(RNG.integers(0, 2, 12))
QID = torch.arange(12) % 3
TWICE = [3, 7]
WEIGHT = torch.ones(12)
WEIGHT[TWICE] = 2
ROWS = torch.tensor([*range(12), *TWICE])


def slope(function, scores):
    scores = scores.clone().requires_grad_()
    value = function(scores)
    value.sum().backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize("name", LOSSES)
def test_equal_weights_change_nothing(name):
    loss = LOSSES[name]()
    for scores in (SCORES, SCORES[:, 0]):
        plain = slope(lambda s: loss(s, RELEVANCE, GROUP, QID), scores)
        for weight in (1.0, 5.0):
            given = torch.full((12,), weight)
            same = slope(lambda s, given=given: loss(s, RELEVANCE, GROUP, QID, sample_weight=given), scores)
            torch.testing.assert_close(same, plain)


@pytest.mark.parametrize("name", LOSSES)
def test_a_weight_of_2_is_the_row_twice(name):
    loss = LOSSES[name]()
    weighted = slope(lambda s: loss(s, RELEVANCE, GROUP, QID, sample_weight=WEIGHT), SCORES)[1]
    doubled = slope(lambda s: loss(s[ROWS], RELEVANCE[ROWS], GROUP[ROWS], QID[ROWS]), SCORES)[1]
    torch.testing.assert_close(weighted, doubled)


@pytest.mark.parametrize("name", LOSSES)
def test_a_weight_of_0_leaves_the_row_out(name):
    loss = LOSSES[name]()
    kept = torch.arange(12) % 4 != 0
    kept &= QID != 1  # a query without a row
    weighted = slope(lambda s: loss(s, RELEVANCE, GROUP, QID, sample_weight=kept.double()), SCORES)
    fewer = slope(lambda s: loss(s[kept], RELEVANCE[kept], GROUP[kept], QID[kept]), SCORES)
    torch.testing.assert_close(weighted, fewer)
    nothing = loss(SCORES, RELEVANCE, GROUP, QID, sample_weight=torch.zeros(12))
    assert nothing.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("target", ["score", "probability"])
def test_the_gap_of_weighted_rows_is_that_of_repeated_ones(target):
    fairness = er.torch.FairnessLoss("dp", target=target)
    weighted = slope(lambda s: fairness(s, RELEVANCE, GROUP, QID, sample_weight=WEIGHT), SCORES)
    doubled = slope(lambda s: fairness(s[ROWS], RELEVANCE[ROWS], GROUP[ROWS], QID[ROWS]), SCORES)
    torch.testing.assert_close(weighted, doubled)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_ranker_trains_as_on_repeated_rows(loss):
    rng = np.random.default_rng(4)
    X, y, qid = rng.normal(size=(30, 3)), rng.integers(0, 2, 30), np.arange(30) % 3
    group = np.where(rng.random(30) < 0.5, "a", "b")
    weight = np.ones(30)
    weight[:5] = 2
    rows = [*range(30), *range(5)]
    options = {"notion": "dp", "alpha": 0.3, "target": "score", "loss": loss, "hidden": (4,), "epochs": 20}
    weighted = er.torch.FairNeuralRanker(**options).fit(X, y, qid=qid, sensitive_features=group, sample_weight=weight)
    doubled = er.torch.FairNeuralRanker(**options).fit(X[rows], y[rows], qid=qid[rows], sensitive_features=group[rows])
    np.testing.assert_allclose(weighted.predict(X), doubled.predict(X), atol=1e-3)
    plain = er.torch.FairNeuralRanker(**options).fit(X, y, qid=qid, sensitive_features=group)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-2
    data = er.RankingData.from_arrays(X, y, group, qid, sample_weight=weight)
    np.testing.assert_allclose(er.torch.FairNeuralRanker(**options).fit(data).predict(X), weighted.predict(X))
