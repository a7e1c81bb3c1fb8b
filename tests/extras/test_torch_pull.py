"""Groups known by probability in `FairnessLoss`, and the two ways in which networks are pulled."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import DataError
from evenrank.notions import bind
from evenrank.targets import STRONGEST, TARGETS, FairnessTerm, bind_target

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")
et = import_module("evenrank.torch")
pull_module = import_module("evenrank.torch.pull")
SETTINGS = list(product(TARGETS, ["dp", "eop", "eod"], ["amortized", "per_query"]))


def batch(seed: int = 0, n: int = 60) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=n)).requires_grad_()
    return scores, torch.tensor(rng.integers(0, 3, n)), torch.tensor(rng.integers(0, 6, n))


@pytest.mark.parametrize(("target", "notion", "scope"), SETTINGS)
def test_probabilities_of_groups_are_those_of_soft_data(target: str, notion: str, scope: str) -> None:
    scores, relevance, qid = batch()
    chances = np.random.default_rng(1).dirichlet([1, 1, 1, 1], len(qid))[:, :3]  # the rest is unknown
    gamma = et.FairnessLoss(notion, scope, target, k=3)(scores, relevance, torch.tensor(chances), qid)
    gamma.backward()
    data = er.RankingData.from_arrays(np.zeros((len(qid), 1)), relevance.numpy(), None, qid.numpy())
    soft = data.with_membership(chances, ["a", "b", "c"])
    term = FairnessTerm(bind(notion, soft, scope=scope, training=True), bind_target(target, data.query_ptr, k=3))
    value, gradient = term.value_and_gradient(data.to_stored(scores.detach().numpy()))
    assert gamma.item() == pytest.approx(float(value), abs=1e-12)
    assert value > 1e-4
    np.testing.assert_allclose(scores.grad.numpy(), data.to_caller(gradient), rtol=0, atol=1e-12)


@pytest.mark.parametrize("momentum", [None, 0.9])
def test_probabilities_of_0_and_1_are_labels(momentum: float | None) -> None:
    scores, relevance, qid = batch(2)
    group = torch.arange(len(qid)) % 2
    by_label, by_chance = (et.FairnessLoss("eod", target="topk", k=2, momentum=momentum) for _ in range(2))
    for times in (1.0, -0.5):
        expected = by_label(times * scores, relevance, group, qid)
        assert by_chance(times * scores, relevance, torch.eye(2)[group], qid).item() == pytest.approx(expected.item())


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        (torch.ones(4, 1), "probabilities of two groups or more"),
        (torch.ones(3, 2) / 2, r"group must have shape \(4,\), or \(4, groups\)"),
        (torch.tensor([[1.5, -0.5]] * 4), "probabilities ≥ 0 of sum ≤ 1"),
        (torch.full((4, 2), 0.6), "probabilities ≥ 0 of sum ≤ 1"),
        (torch.full((4, 2), torch.nan), "probabilities ≥ 0 of sum ≤ 1"),
    ],
)
def test_what_is_no_probability_is_refused(chances: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        et.FairnessLoss("dp")(torch.zeros(4), torch.ones(4), chances)


def pulled(chances: Any, group: np.ndarray) -> Any:
    scores, relevance, qid = batch(3)
    leaf = torch.stack([scores.detach(), -2 * scores.detach()], dim=1).requires_grad_()

    def terms() -> tuple[Any, Any]:
        return et.FairnessLoss("dp", target="score", smoothing=0.05), et.FairnessLoss("dp", target="score")

    pull = pull_module.BatchPull(terms, group, chances)
    rows = np.arange(len(qid))
    return pull(torch.ones_like(leaf), leaf, rows, relevance=relevance, qid=qid, sample_weight=None).numpy()


def test_features_that_tell_the_group_pull_as_the_group_does() -> None:
    group = np.arange(60) % 2
    alone, told = pulled(None, group), pulled(np.eye(2)[group], group)
    np.testing.assert_allclose(told, (pull_module.OWN + pull_module.KNOWN) * alone, rtol=1e-9)
    nothing = pulled(np.full((60, 2), 0.5), group)
    np.testing.assert_allclose(nothing, pull_module.OWN * alone, rtol=1e-6, atol=1e-12)


def test_groups_are_told_by_features_and_not_by_the_rows_own_query() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1200)
    shown = group + 0.3 * rng.normal(size=1200)
    for X, least, most in ((shown, 0.8, 1.0), (rng.normal(size=1200), 0.4, 0.6)):
        data = er.RankingData.from_arrays(X[:, None], rng.integers(0, 2, 1200), group, np.repeat(np.arange(120), 10))
        chances = pull_module.told_groups(data)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        assert least < chances[np.arange(1200), data.group].mean() <= most


def test_beyond_the_strongest_strength_nothing_changes() -> None:
    rng = np.random.default_rng(0)
    qid, group = np.repeat(np.arange(20), 6), rng.integers(0, 2, 120)
    X = rng.normal(size=(120, 4)) + 0.5 * group[:, None]
    data = er.RankingData.from_arrays(X, (X[:, 0] > 0) * 1, group, qid)
    found = [
        et.FairNeuralRanker("dp", alpha=alpha, epochs=2, hidden=[8]).fit(data).predict(data)
        for alpha in (1.0, STRONGEST, 1e300)
    ]
    assert np.isfinite(found).all()
    assert not np.allclose(found[0], found[1])
    np.testing.assert_array_equal(found[1], found[2])
