"""Groups known by probability in `FairnessLoss`, and the two ways in which networks are pulled."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import DataError
from evenrank.notions import Cells, bind
from evenrank.targets import STRONGEST, TARGETS, FairnessTerm, bind_target

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")
et = import_module("evenrank.torch")
pull_module, seen_module = (import_module(f"evenrank.torch.{name}") for name in ("pull", "seen"))
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


def rows_of(group: np.ndarray, seed: int = 3) -> tuple[er.RankingData, np.ndarray]:
    rng, n = np.random.default_rng(seed), len(group)
    data = er.RankingData.from_arrays(np.zeros((n, 1)), rng.integers(0, 2, n), group, np.arange(n) // 6)
    return data, rng.normal(size=(n, 2))


def pulled(chances: Any, group: np.ndarray, batches: int = 1) -> Any:
    data, scores = rows_of(group)
    leaf = torch.tensor(scores)
    term = pull_module.Term("dp", target="score")
    pull = pull_module.BatchPull(term, data, np.array([1.0, 1.0]), chances)
    return [pull(torch.ones_like(leaf), leaf, np.arange(len(group))).numpy() for _ in range(batches)][-1]


def test_features_that_tell_the_group_pull_as_the_group_does() -> None:
    group = np.arange(60) % 2
    alone, told = pulled(None, group), pulled(np.eye(2)[group], group)
    np.testing.assert_allclose(told, (pull_module.OWN + pull_module.KNOWN) * alone, rtol=1e-9)
    nothing = pulled(np.full((60, 2), 0.5), group)
    np.testing.assert_allclose(nothing, pull_module.OWN * alone, rtol=1e-6, atol=1e-12)


def test_the_first_batches_belong_to_the_loss() -> None:
    group = np.arange(60) % 2
    sizes = [np.abs(pulled(None, group, batches)).sum() for batches in (1, 5, 10, 12)]
    np.testing.assert_allclose(sizes, sizes[-1] * np.array([0.1, 0.5, 1, 1]), rtol=1e-9)


def test_gaps_are_those_of_all_rows_at_the_values_last_seen() -> None:
    rng = np.random.default_rng(0)
    data, _ = rows_of(np.arange(60) % 3)
    contrast = bind("eod", data, training=True)
    seen = seen_module.SeenGaps(contrast, 2)
    table, known = np.zeros((60, 2)), np.zeros(60, bool)
    for rows in (np.arange(30), np.arange(20, 60), np.arange(0, 60, 2), np.arange(7)):
        values = rng.normal(size=(len(rows), 2))
        gaps = seen.take(rows, values, table[rows], ~known[rows])
        table[rows], known[rows] = values, True
        for j, (a, b) in enumerate(zip(contrast.pairs.a, contrast.pairs.b, strict=True)):
            means = []
            for cell in (a, b):
                here = [row for row in range(60) if known[row] and contrast.cells[cell, row] > 0]
                means.append(table[here].mean(axis=0))
            np.testing.assert_allclose(gaps[j], means[0] - means[1], rtol=0, atol=1e-12)
        slope = rng.normal(size=gaps.shape)
        np.testing.assert_allclose(seen.pull_back(slope), contrast.pull_back(slope)[rows], rtol=0, atol=1e-12)


def test_a_group_that_no_batch_has_shown_has_no_gap() -> None:
    data, values = rows_of(np.repeat([0, 1], 30))
    seen = seen_module.SeenGaps(bind("dp", data, training=True), 2)
    first = seen.take(np.arange(30), values[:30], np.zeros((30, 2)), np.ones(30, bool))
    np.testing.assert_array_equal(first, 0)
    second = seen.take(np.arange(30, 60), values[30:], np.zeros((30, 2)), np.ones(30, bool))
    np.testing.assert_allclose(second[0], values[:30].mean(axis=0) - values[30:].mean(axis=0), rtol=0, atol=1e-12)


def test_gaps_within_queries_are_the_batchs_own() -> None:
    data, values = rows_of(np.arange(60) % 2)
    cells = Cells.of("dp", data)
    gaps = seen_module.QueryGaps(cells, data.query_of_row)
    rows = np.arange(12, 36)
    found = gaps.take(rows, values[rows])
    expected = [
        values[q * 6 : q * 6 + 6 : 2].mean(axis=0) - values[q * 6 + 1 : q * 6 + 6 : 2].mean(axis=0) for q in range(2, 6)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_gap_that_swings_is_pulled_less_until_it_rests() -> None:
    data, _ = rows_of(np.arange(60) % 2)
    way = pull_module.Way(seen_module.SeenGaps(bind("dp", data, training=True), 1), 1.0)
    rows, last, sizes = np.arange(60), np.zeros((60, 1)), []
    for sign in (1, -1, 1, 1, 1):
        values = sign * np.where(rows % 2, -1.0, 1.0)[:, None]
        way.go_to((rows, values, last, np.full(60, not sizes)), np.array([0.1]), np.array([1.0]))
        last = values
        sizes.append(np.abs(way.slope).sum())
    shares = np.array(sizes) / sizes[0]
    release = pull_module.RELEASE
    np.testing.assert_allclose(shares, [1, 0.5, 0.25, 0.25 * release, 0.25 * release**2], rtol=1e-9)


def cut_way() -> tuple[Any, np.ndarray, np.ndarray]:
    contrast = bind("dp", rows_of(np.arange(60) % 2)[0], training=True)
    way = pull_module.Way(*(seen_module.SeenGaps(contrast, 1), 1.0, seen_module.SeenGaps(contrast, 1)))
    return way, np.arange(60), np.where(np.arange(60) % 2, -0.5, 0.5)[:, None]


@pytest.mark.parametrize("unit", [10.0, 0.1])
def test_the_gap_of_the_top_k_itself_is_aimed_at_as_far_as_the_smoothing(unit: float) -> None:
    way, rows, half = cut_way()
    nothing, new = np.zeros((60, 1)), np.ones(60, bool)
    way.go_to((rows, 0.2 * half, nothing, new), np.array([unit]), np.array([1.0]), (rows, -0.3 * half, nothing, new))
    gap = 0.2 - min(0.5, pull_module.MOST_BIAS * unit)  # a soft gap of 0.2, a gap of -0.3
    expected = np.sign(gap) * way.gaps.pull_back(np.ones((1, 1))) * abs(gap) / np.hypot(gap, unit)
    np.testing.assert_allclose(way.slope, expected, rtol=1e-9)


def test_the_difference_of_both_gaps_is_a_running_mean() -> None:
    way, rows, half = cut_way()
    last, sizes = np.zeros((60, 1)), []
    for times in (1.0, 0.0, 0.0):
        batches = [
            (rows, values, before, np.full(60, not sizes))
            for values, before in ((0 * half, 0 * half), (times * half, last))
        ]
        way.go_to(batches[0], np.array([1e6]), np.array([1.0]), batches[1])
        last = times * half
        sizes.append(np.abs(way.slope).sum())
    memory = pull_module.BIAS_MEMORY
    np.testing.assert_allclose(np.array(sizes) / sizes[0], [1, memory, memory**2], rtol=1e-6)


@pytest.mark.parametrize("lengths", [(7, 7, 7, 7), (2, 9, 3, 30)])
def test_the_gaps_that_are_aimed_at_are_those_of_the_ranking(lengths: tuple[int, ...], monkeypatch: Any) -> None:
    monkeypatch.setattr(pull_module, "MOST_BIAS", np.inf)
    rng, qid = np.random.default_rng(0), np.repeat(np.arange(len(lengths)), lengths)
    scores, group = rng.normal(size=(len(qid), 1)), rng.integers(0, 2, len(qid))
    data = er.RankingData.from_arrays(np.zeros((len(qid), 1)), rng.integers(0, 2, len(qid)), group, qid)
    pull = pull_module.BatchPull(pull_module.Term("dp", k=3), data, np.ones(1))
    leaf = torch.tensor(scores)
    pull(torch.ones_like(leaf), leaf, np.arange(len(qid)))
    expected = er.measure(scores[:, 0], data, "dp@3")["dp@3"]
    assert expected > 0.01
    assert abs(pull.ways[0]._last.item()) == pytest.approx(expected, abs=1e-6)


def test_groups_are_told_by_features_and_not_by_the_rows_own_query() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1200)
    shown = group + 0.3 * rng.normal(size=1200)
    for X, least, most in ((shown, 0.8, 1.0), (rng.normal(size=1200), 0.4, 0.6)):
        data = er.RankingData.from_arrays(X[:, None], rng.integers(0, 2, 1200), group, np.repeat(np.arange(120), 10))
        chances = pull_module.told_groups(data, "dp")
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
