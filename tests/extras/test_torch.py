"""`evenrank.torch`: one value and gradient with numpy, losses against slow twins, batches, and the neural ranker."""

from __future__ import annotations

import doctest
import json
import pickle
import runpy
import signal
import subprocess
import sys
from base64 import b64encode
from importlib import import_module
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.losses import LOSSES as NUMPY_LOSSES
from evenrank.notions import bind
from evenrank.targets import TARGETS, FairnessTerm, bind_target
from linear_oracles import random_data
from model_mutations import written

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")
et = import_module("evenrank.torch")
network = import_module("evenrank.torch.network")

NOTIONS = ["dp", "eop", "eod"]
SCOPES = ["amortized", "per_query"]
SETTINGS = list(product(TARGETS, NOTIONS, SCOPES))
MODULES = ["losses", "batches", "fairness", "network", "ranker"]


def batch(seed: int = 0, *, n: int = 60, groups: int = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Scores, relevance, group (some unknown) and query ids in no order, as tensors."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=n), rng.integers(0, 3, n), rng.integers(-1, groups, n), rng.integers(0, 6, n) * 977 - 13
    scores, relevance, group, qid = map(torch.tensor, columns)
    return scores.to(dtype or torch.float64).requires_grad_(), relevance, group, qid


def as_data(relevance: Any, group: Any, qid: Any) -> er.RankingData:
    names = np.array([*range(8), None], object)
    return er.RankingData.from_arrays(
        np.zeros((len(qid), 1)), relevance.numpy(), names[group.numpy()].tolist(), qid.numpy()
    )


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_the_docstrings(module: str) -> None:
    found = doctest.testmod(import_module(f"evenrank.torch.{module}"))
    assert found.failed == 0
    assert found.attempted > 0 or module == "network"


# ---------------------------------------------------------------------- FairnessLoss


@pytest.mark.parametrize(("target", "notion", "scope"), SETTINGS)
@pytest.mark.parametrize("groups", [2, 3])
def test_value_and_gradient_are_numpy_s(target: str, notion: str, scope: str, groups: int) -> None:
    scores, relevance, group, qid = batch(groups, groups=groups)
    gamma = et.FairnessLoss(notion, scope, target, k=3)(scores, relevance, group, qid)
    (2.5 * gamma).backward()
    data = as_data(relevance, group, qid)
    contrast = bind(notion, data, scope=scope, training=True)
    term = FairnessTerm(contrast, bind_target(target, data.query_ptr, k=3))
    value, gradient = term.value_and_gradient(data.to_stored(scores.detach().numpy()))
    assert gamma.item() == pytest.approx(float(value), abs=1e-12)
    assert value > 0.001
    np.testing.assert_allclose(scores.grad.numpy(), 2.5 * data.to_caller(gradient), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("target", "notion", "scope"), SETTINGS)
def test_gradients_meet_finite_differences(target: str, notion: str, scope: str) -> None:
    scores, *rest = batch(3, groups=3)
    loss = et.FairnessLoss(notion, scope, target, k=3, smoothing=0.05)
    assert torch.autograd.gradcheck(lambda s: loss(s, *rest), (scores,), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_models_are_an_axis(target: str) -> None:
    scores, *rest = batch(1)
    several = torch.stack([scores.detach(), scores.detach() ** 2, -scores.detach()], dim=1).requires_grad_()
    epsilon = np.array([0.0, 0.1, 0.3])
    et.FairnessLoss("eod", target=target, k=2, smoothing=epsilon)(several, *rest).sum().backward()
    for model in range(3):
        one = several.detach()[:, model].requires_grad_()
        et.FairnessLoss("eod", target=target, k=2, smoothing=float(epsilon[model]))(one, *rest).backward()
        np.testing.assert_allclose(several.grad[:, model], one.grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_any_floating_type(dtype: str, target: str) -> None:
    exact, *rest = batch(2)
    scores = exact.detach().to(getattr(torch, dtype)).requires_grad_()
    gamma = et.FairnessLoss("dp", target=target, k=2)(scores, *rest)
    gamma.backward()
    assert gamma.dtype == scores.grad.dtype == scores.dtype
    wanted = et.FairnessLoss("dp", target=target, k=2)(scores.detach().double(), *rest)
    eps = torch.finfo(scores.dtype).eps
    # A gap of exposures, which are below 1, is a small difference of numbers in the scores' own precision.
    assert gamma.item() == pytest.approx(wanted.item(), rel=4 * eps, abs=eps / 8 if target == "exposure" else 0)


@pytest.mark.parametrize("padding", [0.0, -1e9, -np.inf, np.nan])
@pytest.mark.parametrize(("target", "notion", "scope"), SETTINGS)
def test_padded_lists_are_their_items(target: str, notion: str, scope: str, padding: float) -> None:
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(6, 9, generator=generator) < 0.7
    scores = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    scores[~mask] = padding
    scores.requires_grad_()
    relevance, group = (torch.randint(0, 2, (6, 9), generator=generator) for _ in range(2))
    weight = torch.rand(6, 9, generator=generator) + 0.5
    qid = torch.arange(6)[:, None].expand(6, 9)
    loss = et.FairnessLoss(notion, scope, target, k=3)
    for weights in (None, weight):
        scores.grad = None
        gamma = loss(scores, relevance, group, sample_weight=weights, mask=mask)
        gamma.backward()
        rows = scores.detach()[mask].requires_grad_()
        chosen = None if weights is None else weights[mask]
        expected = loss(rows, relevance[mask], group[mask], qid[mask], sample_weight=chosen)
        expected.backward()
        assert gamma.item() == expected.item()
        assert (scores.grad[mask] == rows.grad).all()
        assert (scores.grad[~mask] == 0).all()
    full = torch.where(mask, scores.detach(), torch.zeros(())).requires_grad_()
    whole = loss(full, relevance, group)
    rows = loss(full.reshape(-1), *(column.reshape(-1) for column in (relevance, group, qid)))
    assert whole.item() == pytest.approx(rows.item())


@pytest.mark.parametrize("name", ["squared", "logistic", "ranknet", "listnet"])
@pytest.mark.parametrize("padding", [0.0, -1e9, -np.inf, np.nan])
@pytest.mark.parametrize("weighed", [False, True])
def test_padded_lists_of_a_loss_are_their_items(name: str, padding: float, weighed: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(6, 9, generator=generator) < 0.7
    mask[2] = False  # a list that is padded whole
    scores = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    relevance = torch.randint(0, 3, (6, 9), generator=generator).double()
    scores[~mask], relevance[~mask] = padding, padding
    scores.requires_grad_()
    weight = torch.rand(6, 9, generator=generator) + 0.5 if weighed else None
    qid = torch.arange(6)[:, None].expand(6, 9)
    loss = import_module("evenrank.torch.losses").LOSSES[name]()
    group = torch.zeros(6, 9, dtype=torch.int64)  # ignored, as of rows
    value = loss(scores, relevance, group, sample_weight=weight, mask=mask)
    value.backward()
    rows = scores.detach()[mask].requires_grad_()
    expected = loss(rows, relevance[mask], None, qid[mask], sample_weight=None if weight is None else weight[mask])
    expected.backward()
    assert value.item() == expected.item() > 0
    assert (scores.grad[mask] == rows.grad).all()
    assert (scores.grad[~mask] == 0).all()
    full = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    whole = loss(full, group.double() + torch.eye(6, 9))
    assert whole.item() == loss(full.reshape(-1), (group + torch.eye(6, 9)).reshape(-1), None, qid.reshape(-1)).item()
    assert loss(full, group.double(), mask=torch.zeros(6, 9)).item() == 0
    for wrong in ({"qid": qid}, {"mask": mask[:2]}, {"sample_weight": torch.ones(6)}):
        with pytest.raises(DataError, match=r"lists|\(B, L\)"):
            loss(full, group.double(), **wrong)


@pytest.mark.parametrize("notion", ["dp", "eop"])
@pytest.mark.parametrize("weighed", [False, True])
def test_padded_lists_may_have_probabilities_of_groups(notion: str, weighed: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    mask = torch.rand(6, 9, generator=generator) < 0.7
    scores = torch.randn(6, 9, generator=generator, dtype=torch.float64).masked_fill(~mask, np.nan).requires_grad_()
    relevance = torch.randint(0, 2, (6, 9), generator=generator)
    chances = torch.softmax(torch.randn(6, 9, 3, generator=generator, dtype=torch.float64), -1)
    chances = torch.where(mask[..., None], chances, torch.nan)
    weight = torch.rand(6, 9, generator=generator) + 0.5 if weighed else None
    qid = torch.arange(6)[:, None].expand(6, 9)
    loss = et.FairnessLoss(notion, target="topk", k=3)
    gamma = loss(scores, relevance, chances, sample_weight=weight, mask=mask)
    gamma.backward()
    rows = scores.detach()[mask].requires_grad_()
    weights = None if weight is None else weight[mask]
    expected = loss(rows, relevance[mask], chances[mask], qid[mask], sample_weight=weights)
    expected.backward()
    assert gamma.item() == expected.item() > 0
    assert (scores.grad[mask] == rows.grad).all()
    assert (scores.grad[~mask] == 0).all()
    whole = loss(torch.ones(6, 9), relevance, torch.full((6, 9, 2), 0.5))
    assert whole.item() == 0
    with pytest.raises(DataError, match=r"\(B, L, groups\) for probabilities; got \(6, 8, 3\) for \(6, 9\)"):
        loss(scores, relevance, chances[:, 1:], mask=mask)


@pytest.mark.parametrize("padding", [-1e9, -np.inf, torch.finfo(torch.float32).min])
def test_padding_without_a_mask_is_refused(padding: float) -> None:
    loss, ones = et.FairnessLoss("dp"), torch.tensor([[1, 1, 0], [0, 1, 1]])
    scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, padding]])
    with pytest.raises(DataError, match="looks like padding"):
        loss(scores, ones, ones)
    with pytest.raises(DataError, match="looks like padding"):
        loss(scores.reshape(-1), ones.reshape(-1), ones.reshape(-1))


def test_lists_are_checked() -> None:
    loss, lists = et.FairnessLoss("dp"), torch.zeros(2, 3, dtype=torch.int64)
    scores = torch.zeros(2, 3)
    with pytest.raises(DataError, match="take neither qid nor strata"):
        loss(scores, lists, lists, lists)
    with pytest.raises(
        DataError, match=r"group must have the shape of the scores' lists, \(B, L\), or .*; got \(2,\) for \(2, 3\)"
    ):
        loss(scores, lists, lists[:, 0])
    with pytest.raises(DataError, match="mask must have the shape"):
        loss(scores, lists, lists, mask=lists[:1])
    with pytest.raises(DataError, match="relevance must have the shape"):
        loss(scores[:, 0], lists[:, 0], lists[:, 0], mask=lists[:, 0])


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("across", ["mean", "max"])
def test_strata_of_ones_own_that_overlap_or_not(weighed: bool, overlap: bool, across: str) -> None:
    scores, relevance, group, qid = batch(5, groups=3)
    n = len(qid)
    masks = np.array([np.arange(n) % 3 == 0, np.arange(n) % 3 > (0 if overlap else 1)])
    masks[1] |= overlap
    weight = torch.arange(n) % 4 + 0.0 if weighed else None
    gamma = et.FairnessLoss(er.Notion("own", lambda data: list(masks)), across=across)
    found = gamma(scores, relevance, group, qid, sample_weight=weight, strata=masks)
    found.backward()
    values, each = scores.detach().numpy(), np.ones(n) if weight is None else weight.numpy()
    total = 0.0
    for mask in masks:
        means = [
            np.average(values[mask & (group.numpy() == code)], weights=each[mask & (group.numpy() == code)])
            for code in range(3)
        ]
        gaps = [abs(a - b) for j, a in enumerate(means) for b in means[j + 1 :]]
        total += (max(gaps) if across == "max" else sum(gaps) / 3) / 2
    assert found.item() == pytest.approx(total)


def test_order_of_rows_and_names_of_queries_change_nothing() -> None:
    scores, relevance, group, qid = batch(4)
    loss = et.FairnessLoss("eod", "per_query", "topk", k=2)
    expected = loss(scores, relevance, group, qid).item()
    order = torch.randperm(len(qid), generator=torch.Generator().manual_seed(0))
    assert loss(scores[order], relevance[order], group[order], qid[order] * 31 + 5).item() == pytest.approx(expected)


def test_a_missing_stratum_is_dropped_and_keeps_its_half() -> None:
    scores, relevance, group = torch.tensor([3.0, 1.0, 7.0]), torch.tensor([1, 1, 0]), torch.tensor([0, 1, 1])
    assert et.FairnessLoss("eod")(scores, relevance, group).item() == pytest.approx(abs(3.0 - 1.0) / 2)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("group", [[0, 0, 0], [-1, -1, -1], []])
def test_a_batch_with_nothing_to_compare_gives_zero(target: str, scope: str, group: list[int]) -> None:
    scores = torch.arange(float(len(group))).requires_grad_()
    zeros = torch.zeros(len(group), dtype=torch.int64)
    gamma = et.FairnessLoss("dp", scope, target, k=1)(scores, zeros, torch.tensor(group, dtype=torch.int64), zeros)
    gamma.backward()
    assert gamma.item() == 0
    assert (scores.grad == 0).all()


def test_scores_that_overflowed_give_nan_for_a_scaler_to_skip() -> None:
    scores = torch.tensor([torch.inf, 0.0], requires_grad=True)
    gamma = et.FairnessLoss("dp")(scores, torch.ones(2), torch.tensor([0, 1]))
    gamma.backward()
    assert gamma.isnan()
    assert scores.grad.isnan().all()


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError, match="notion must be one of"):
        et.FairnessLoss("parity")
    with pytest.raises(ConfigError, match="target must be one of score"):
        et.FairnessLoss(target="rank")
    with pytest.raises(ConfigError, match="k must be a whole number"):
        et.FairnessLoss(target="topk", k=0)
    with pytest.raises(ConfigError, match="momentum must be a number from 0"):
        et.FairnessLoss(momentum=1.0)
    with pytest.raises(ConfigError, match="momentum is for scope='amortized'"):
        et.FairnessLoss(scope="per_query", momentum=0.9)
    with pytest.raises(DataError, match=r"group must have shape \(2,\)"):
        et.FairnessLoss()(torch.zeros(2), torch.zeros(2), torch.zeros(3))
    with pytest.raises(DataError, match=r"scores must have shape \(n,\) or"):
        et.ListNetLoss()(torch.zeros(2, 1, 1), torch.zeros(2))


# ---------------------------------------------------------------------- the running mean


def running_gap(batches: list[tuple[Any, ...]], momentum: float) -> float:
    """Twin: every row of every batch in one weighted mean a group, an older batch weighing momentum times less."""
    sums, weights = np.zeros(2), np.zeros(2)
    for age, (scores, _, group, _) in enumerate(reversed(batches)):
        for code in (0, 1):
            inside = scores.detach().numpy()[group.numpy() == code]
            sums[code] += momentum**age * inside.sum()
            weights[code] += momentum**age * len(inside)
    return float(sums[0] / weights[0] - sums[1] / weights[1])


def test_momentum_compares_running_means() -> None:
    loss = et.FairnessLoss("dp", momentum=0.8)
    seen = []
    for seed in range(5):
        scores, *rest = batch(seed)
        seen.append((scores, *rest))
        gamma = loss(scores, *rest)
        gamma.backward()
        gap = running_gap(seen, 0.8)
        assert gamma.item() == pytest.approx(abs(gap), abs=1e-12)
        group = rest[1].numpy()
        expected = np.sign(gap) * ((group == 0) / (group == 0).sum() - (group == 1) / (group == 1).sum())
        np.testing.assert_allclose(scores.grad, expected, rtol=0, atol=1e-14)


def test_momentum_remembers_groups_and_forgets_when_told() -> None:
    loss = et.FairnessLoss("dp", momentum=0.5)
    first = torch.tensor([0.0, 4.0], requires_grad=True)
    assert loss(first, torch.ones(2), torch.tensor([0, 1])).item() == 4
    alone = torch.tensor([1.0], requires_grad=True)
    gamma = loss(alone, torch.ones(1), torch.tensor([0]))
    gamma.backward()
    assert gamma.item() == pytest.approx(4 - (0.5 * 0 + 1) / 1.5)
    assert alone.grad.item() == -1
    third = loss(torch.tensor([9.0]), torch.ones(1), torch.tensor([2])).item()
    one = (0.25 * 0 + 0.5 * 1) / 0.75
    assert third == pytest.approx((abs(one - 4) + abs(one - 9) + abs(4 - 9)) / 3)
    loss.eval()
    assert loss(torch.tensor([0.0, 1.0]), torch.ones(2), torch.tensor([0, 1])).item() == 1
    loss.train().reset()
    assert loss(torch.tensor([0.0, 1.0]), torch.ones(2), torch.tensor([0, 1])).item() == 1
    with pytest.raises(ConfigError, match=r"number of models changed.*reset"):
        loss(torch.zeros(2, 3), torch.ones(2), torch.tensor([0, 1]))


# ---------------------------------------------------------------------- base losses


def by_query(scores: Any, relevance: Any, qid: Any) -> list[list[tuple[float, float]]]:
    rows = list(zip(scores.tolist(), relevance.tolist(), qid.tolist(), strict=True))
    return [[(s, r) for s, r, q in rows if q == one] for one in sorted({q for *_, q in rows})]


def slow_ranknet(scores: Any, relevance: Any, qid: Any) -> float:
    means = []
    for items in by_query(scores, relevance, qid):
        pairs = [log(1 + exp(t - s)) for s, r in items for t, o in items if r > o]
        means += [sum(pairs) / len(pairs)] if pairs else []
    return sum(means) / len(means)


def slow_listnet(scores: Any, relevance: Any, qid: Any) -> float:
    total = 0.0
    queries = by_query(scores, relevance, qid)
    for items in queries:
        from_scores, wanted = sum(exp(s) for s, _ in items), sum(exp(r) for _, r in items)
        total -= sum(exp(r) / wanted * log(exp(s) / from_scores) for s, r in items)
    return total / len(queries)


def slow_squared(scores: Any, relevance: Any, qid: Any) -> float:
    return float(NUMPY_LOSSES["squared"].value(scores.numpy(), relevance.numpy()).mean())


def slow_logistic(scores: Any, relevance: Any, qid: Any) -> float:
    return float(NUMPY_LOSSES["logistic"].value(scores.numpy(), relevance.numpy() >= 1).mean())


LOSS_TWINS = {
    "SquaredLoss": slow_squared,
    "LogisticLoss": slow_logistic,
    "RankNetLoss": slow_ranknet,
    "ListNetLoss": slow_listnet,
}


@pytest.mark.parametrize("name", LOSS_TWINS)
@pytest.mark.parametrize("seed", range(4))
def test_losses_equal_their_slow_twins(name: str, seed: int) -> None:
    scores, relevance, group, qid = batch(seed, n=25)
    loss, twin = getattr(et, name)(), LOSS_TWINS[name]
    assert loss(scores, relevance, group, qid).item() == pytest.approx(twin(scores.detach(), relevance, qid), abs=1e-12)
    assert torch.autograd.gradcheck(lambda s: loss(s, relevance, group, qid), (scores,))
    several = torch.stack([scores.detach(), -scores.detach()], dim=1)
    expected = [twin(several[:, model], relevance, qid) for model in range(2)]
    np.testing.assert_allclose(loss(several, relevance, group, qid), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LOSS_TWINS)
def test_losses_withstand_large_scores_and_nothing_to_learn(name: str) -> None:
    scores = torch.tensor([1e4, -1e4, 0.0], requires_grad=True)
    value = getattr(et, name)()(scores, torch.zeros(3), None, torch.tensor([1, 1, 2]))
    value.backward()
    assert value.isfinite()
    assert scores.grad.isfinite().all()
    if name == "RankNetLoss":
        assert value.item() == 0


# ---------------------------------------------------------------------- batches


def test_batches_keep_queries_whole_and_change_by_epoch() -> None:
    data = random_data(0, n=200, queries=23)
    sampler = et.QueryBatchSampler(data, 5, seed=1)
    one, two = list(sampler), list(sampler)
    assert len(sampler) == len(one) == 5
    assert one != two
    for rows in (one, two):
        assert sorted(row for some in rows for row in some) == list(range(200))
        query = [set(data.query_of_row[some].tolist()) for some in rows]
        assert [len(some) for some in query] == [5, 5, 5, 5, 3]
        assert sum(map(len, query)) == len(set.union(*query))
    again = et.QueryBatchSampler(data, 5, seed=1)
    assert list(again) == one
    again.set_epoch(1)
    assert list(again) == two
    assert list(et.QueryBatchSampler(data, 5, seed=2)) != one
    assert [len(et.QueryBatchSampler(data, 5, drop_last=drop)) for drop in (False, True)] == [5, 4]


def test_batches_from_query_ids_in_any_order() -> None:
    qid = ["b", "a", "b", "c", "a"]
    assert list(et.QueryBatchSampler(qid, 2, shuffle=False)) == [[0, 2, 1, 4], [3]]
    assert list(et.QueryBatchSampler(torch.tensor([5, 3, 5]), 1, shuffle=False)) == [[0, 2], [1]]
    with pytest.raises(ConfigError, match="batch_queries must be a whole number"):
        et.QueryBatchSampler(qid, 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gives_every_row_once(workers: int) -> None:
    data = random_data(0, n=90, queries=12, groups=3, unknown=True)
    dataset = et.RankingDataset(data, dtype=torch.float32)
    parts = [torch.cat(column) for column in zip(*dataset.loader(4, num_workers=workers), strict=True)]
    features, relevance, group, qid = parts
    assert features.dtype == relevance.dtype == torch.float32
    order = torch.argsort(qid, stable=True)
    np.testing.assert_array_equal(features[order], data.features.astype(np.float32))
    np.testing.assert_array_equal(relevance[order], data.relevance)
    np.testing.assert_array_equal(group[order], data.group)
    np.testing.assert_array_equal(qid[order], data.query_of_row)
    row = dataset[7]
    assert row[0].shape == (3,)
    stacked = et.collate([dataset[row] for row in range(3)])
    np.testing.assert_array_equal(stacked[3], data.query_of_row[:3])


# ---------------------------------------------------------------------- the ranker


def quick(**options: Any) -> Any:
    return et.FairNeuralRanker(
        **{"notion": "dp", "alpha": 0.3, "epochs": 4, "hidden": (8,), "k": 2, "target": "topk"} | options
    )


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return random_data(0, n=300, queries=40)


def test_same_seed_same_model_and_parameters_matter(data: er.RankingData) -> None:
    scores = quick().fit(data).predict(data)
    assert (quick().fit(data).predict(data) == scores).all()
    changes = {"random_state": 1, "alpha": 3.0, "scope": "per_query", "target": "score", "k": 1, "loss": "squared"}
    changes |= {"hidden": (8, 4), "epochs": 5, "batch_queries": 7, "learning_rate": 0.01}
    changes |= {"weight_decay": 0.5, "smoothing": 0.0, "notion": "eop"}
    for name, value in changes.items():
        assert np.abs(quick(**{name: value}).fit(data).predict(data) - scores).max() > 1e-5, name
    alone, averaged = (quick(momentum=m, batch_queries=7).fit(data).predict(data) for m in (None, 0.9))
    assert np.abs(alone - averaged).max() > 1e-5


@pytest.mark.parametrize("times", [1e-2, 1e3])
def test_a_strength_means_the_same_whatever_the_losss_units(data: er.RankingData, times: float) -> None:
    from evenrank.torch.network import Networks, train
    from evenrank.torch.pull import BatchPull, Term

    def trained(factor: float, alpha: float) -> np.ndarray:
        networks = Networks.fresh(data, (8,), 1, seed=0)
        loss = et.ListNetLoss()
        pull = BatchPull(Term("dp", k=2), data, np.array([alpha]), np.eye(data.n_groups)[data.group])
        options = {"learning_rate": 0.01, "weight_decay": 0.0, "epochs": 5, "batch_queries": 10, "seed": 0}
        train(
            networks,
            data,
            lambda *batch, **more: factor * loss(*batch, **more),
            np.array([alpha]),
            pull,
            **options,
        )
        return networks.score_data(data)[:, 0]

    # Adam's steps do not depend on the units either, so equal scores say that the two parts keep their proportion.
    same, plain = np.ptp(trained(times, 1.0) - trained(1.0, 1.0)), np.ptp(trained(1.0, 0.0) - trained(1.0, 1.0))
    assert same < 1e-3 < 0.01 < plain


def test_a_strength_trains_alone_as_it_does_among_others(data: er.RankingData) -> None:
    settings = {"epochs": 4, "hidden": (8,), "k": 2, "target": "topk"}
    together = et.train_scores(data, data, "dp", [0.0, 0.3, 1.0], **settings)
    assert together.shape == (300, 3)
    for model, alpha in enumerate([0.0, 0.3, 1.0]):
        # A constant added to all scores is nothing to the listwise loss, so rounding decides about it.
        difference = quick(alpha=alpha).fit(data).predict(data) - together[:, model]
        assert np.ptp(difference) < 1e-4
        assert np.ptp(together[:, model]) > 0.1


def test_epochs_left_out_are_enough_for_few_queries(data: er.RankingData) -> None:
    assert quick(epochs=None).fit(data).n_iter_ == 100
    assert quick(epochs=None, batch_queries=7).fit(data).n_iter_ == 17 * 6
    assert quick(epochs=None, batch_queries=2).fit(data).n_iter_ == 10 * 20


def test_rows_frames_and_data_agree(data: er.RankingData) -> None:
    names = np.array([*data.group_names, None], object)
    X, qid = np.array(data.features), data.query_ids[data.query_of_row]
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    ranker = quick().fit(frame, data.relevance, qid=qid, sensitive_features=names[data.group])
    assert ranker.feature_names_ == ("u", "v", "w")
    expected = data.to_stored(quick().fit(data).predict(data))
    np.testing.assert_allclose(ranker.predict(frame), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ranker.predict(frame[["w", "u", "v"]]), expected, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"(?s)missing.*w"):  # scikit-learn's words, as for linear rankers
        ranker.predict(frame[["u", "v"]])


def test_scikit_learn_s_conventions(data: er.RankingData) -> None:
    ranker = quick(momentum=0.5)
    assert clone(ranker).get_params() == ranker.get_params()
    with pytest.raises(er.NotFittedError, match="not fitted yet"):
        ranker.predict(data)
    assert ranker.fit(data) is ranker
    again = pickle.loads(pickle.dumps(ranker))
    assert (again.predict(data) == ranker.predict(data)).all()
    assert ranker.score(data) == pytest.approx(er.measure(ranker.predict(data), data, ["ndcg"])["ndcg"])
    assert quick(alpha=0.0).fit(np.array(data.features), data.relevance).n_features_in_ == 3


def test_what_the_ranker_refuses(data: er.RankingData) -> None:
    for options, message in [
        ({"alpha": -1}, "alpha must be a finite number"),
        ({"loss": "hinge"}, "loss must be one of squared, logistic, ranknet, listnet"),
        ({"hidden": (0,)}, "hidden must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"target": "rank"}, "target must be one of"),
    ]:
        with pytest.raises(ConfigError, match=message):
            quick(**options).fit(data)
    with pytest.raises(ConfigError, match=r"alpha=0\.3 needs groups"):
        quick().fit(data.with_group(None))


def test_max_violation_is_met_or_said_not_to_be(data: er.RankingData) -> None:
    data = data.with_group(np.where(data.to_caller(data.features[:, 0]) > data.features[:, 0].mean(), "a", "b"))
    enough = {"epochs": 30, "batch_queries": 10, "learning_rate": 0.01}
    free = quick(alpha=0.0, **enough).fit(data)
    before = er.measure(free.predict(data), data, ["dp@2"])["dp@2"]
    ranker = quick(max_violation=before / 2, **enough).fit(data)
    reached = er.measure(ranker.predict(data), data, ["dp@2"])["dp@2"]
    assert ranker.violation_ == pytest.approx(reached, abs=1e-6)
    assert reached <= before / 2
    assert ranker.alpha_ > 0
    assert quick(max_violation=1.0).fit(data).alpha_ == 0
    said = r"max_violation=0 was not reached: demographic_parity@2 on the training rows is 0\..*Train longer, let the"
    with pytest.warns(DataWarning, match=said):
        kept = quick(max_violation=0.0, epochs=1, hidden=(2,)).fit(data)
    assert kept.violation_ > 0


def test_an_interrupt_keeps_the_weights_so_far(data: er.RankingData, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(self: Any, features: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(signal.SIGINT)
        return original(self, features)

    original = network.Networks.scores
    monkeypatch.setattr(network.Networks, "scores", interrupted)
    with pytest.warns(UserWarning, match="interrupted after 3 of 32 batches; the weights so far are kept"):
        ranker = quick(batch_queries=5).fit(data)
    assert ranker.n_iter_ == 3
    assert np.isfinite(ranker.predict(data)).all()


def test_a_model_file_keeps_the_scores(data: er.RankingData, tmp_path: Path) -> None:
    ranker = quick(hidden=(8, 4)).fit(data)
    ranker.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    assert type(again) is et.FairNeuralRanker
    assert (again.predict(data) == ranker.predict(data)).all()
    assert again.alpha_ == 0.3
    assert again.group_names_ == ranker.group_names_
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    with pytest.raises(er.NotFittedError, match="before save"):
        quick().save(tmp_path / "none.json")


def layer(**changes: Any) -> Any:
    return lambda content: content["layers"][0].update(changes)


DAMAGE: dict[str, tuple[Any, str]] = {
    "short": (
        lambda content: layer(weight=content["layers"][0]["weight"][:-8])(content),
        "must hold 48 numbers as base64",
    ),
    "missing": (lambda content: content.pop("layers"), "the last layer must have one output"),
    "no list": (lambda content: content.update(layers="x"), "the last layer must have one output"),
    "width": (lambda content: content.update(layers=content["layers"][:1]), "the last layer must have one output"),
    "not a layer": (lambda content: content["layers"].insert(0, 5), "shape must be two whole numbers above 0"),
    "terabytes": (layer(shape=[3, 10**12]), "must hold 3000000000000 numbers as base64"),
    "beyond any number": (layer(shape=[3, 10**24]), "numbers as base64"),
    "below 0": (layer(shape=[-3, -4]), "shape must be two whole numbers above 0"),
    "shape of text": (layer(shape=["3", 4]), "shape must be two whole numbers above 0"),
    "shape true": (layer(shape=[True, 4]), "shape must be two whole numbers above 0"),
    "other letters": (layer(weight="ü" * 64), "numbers as base64"),
    "weight of numbers": (layer(weight=[0.0] * 12), "numbers as base64"),
    "weight that is none": (
        lambda content: layer(bias=b64encode(np.full(16, np.nan, "<f4").tobytes()).decode())(content),
        "a weight is not finite",
    ),
    "center": (lambda content: content.update(center=[None, 0, 0]), "'center' must hold 3 finite numbers"),
    "center of a text": (lambda content: content.update(center="abc"), "'center' must hold 3 finite numbers"),
    "spread 0": (lambda content: content.update(spread=[0, 1, 1]), "every spread must be above 0"),
    "features twice": (lambda content: content.update(features=["a", "a", "b"]), "'features' has a name twice"),
    "features of numbers": (lambda content: content.update(features=[1, 2, 3]), "'features' must hold names"),
    "strength": (lambda content: content.update(alpha=float("nan")), "'alpha' must hold 1 finite numbers"),
    "parameter": (lambda content: content["parameters"].update(depth=3), "FairNeuralRanker has no parameter 'depth'"),
    "hidden": (lambda content: content["parameters"].update(hidden=[10**30]), "a whole number has 31 digits"),
    "notion": (lambda content: content["parameters"].update(notion=[[1]]), "'notion' must be a name"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_model_file_is_one_clear_line(
    change: Any, message: str, data: er.RankingData, tmp_path: Path
) -> None:
    quick(hidden=(16,)).fit(data).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    change(content)
    (tmp_path / "model.json").write_bytes(written(content))
    with pytest.raises(DataError, match=message) as caught:
        er.load(tmp_path / "model.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_file_has_no_say_about_the_device(data: er.RankingData, tmp_path: Path) -> None:
    ranker = quick(device="cpu").fit(data)
    ranker.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    assert "device" not in content["parameters"]
    content["parameters"]["device"] = "cuda:7"
    (tmp_path / "model.json").write_bytes(written(content))
    again = er.load(tmp_path / "model.json")
    assert again.device is None
    assert (again.predict(data) == ranker.predict(data)).all()


# ---------------------------------------------------------------------- installing and examples


def test_without_torch_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nimport evenrank as er\ntry: er.extras\nexcept AttributeError: pass\n"
    )
    code += (
        "import importlib\ntry: importlib.import_module('evenrank.torch')\nexcept er.MissingExtraError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "torch is not installed. Run: pip install 'evenrank[torch]'"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "torch_one_line.py"), run_name="__main__")
    before, after = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[-2:])
    # By how much depends on the processor: 30 epochs of Adam in float32 make a different network of other last digits.
    assert after < before


def test_groups_may_be_floating_whole_numbers():
    scores, relevance = torch.tensor([3.0, 1.0, 1.0, 9.0]), torch.ones(4)
    fairness = et.FairnessLoss("dp")
    assert fairness(scores, relevance, torch.tensor([0.0, 0.0, 1.0, float("nan")])).item() == 1
    with pytest.raises(DataError, match=r"group must hold whole numbers .*; got 0\.5"):
        fairness(scores, relevance, torch.tensor([0.5, 0.0, 1.0, 1.0]))


def test_a_fairness_loss_can_be_pickled():
    fairness = pickle.loads(pickle.dumps(et.FairnessLoss("eod", target="topk")))
    assert fairness.notion.name == "equalized_odds"


@pytest.mark.parametrize("loss", [et.SquaredLoss, et.LogisticLoss, et.RankNetLoss, et.ListNetLoss])
def test_a_batch_without_rows_has_a_loss_of_0(loss):
    scores = torch.zeros(0, requires_grad=True)
    value = loss()(scores, torch.zeros(0), None, torch.zeros(0))
    value.backward()
    assert value.item() == 0


@pytest.mark.parametrize("hidden", [64, "64,32"])
def test_hidden_must_be_a_list(hidden):
    with pytest.raises(ConfigError, match="hidden must be a list of widths"):
        et.FairNeuralRanker(alpha=0, hidden=hidden).fit(random_data(0))


def test_one_group_cannot_be_compared():
    data = random_data(0)
    with pytest.raises(DataError, match="at least two"):
        et.FairNeuralRanker(alpha=1.0, epochs=1).fit(data.with_group(np.zeros(data.n_rows, int)))


@pytest.mark.parametrize("scope", ["amortized", "per_query"])
def test_a_notion_of_ones_own_sees_the_features_in_training(scope):
    data = random_data(0)
    first = data.feature_names[0]
    own = er.Notion("banded", lambda rows: [rows.column(first) < 0, rows.column(first) >= 0])
    masks = [data.to_caller(mask) for mask in own.masks(data)]
    settings: dict[str, Any] = {"alpha": 3.0, "scope": scope, "epochs": 2, "batch_queries": 5, "target": "score"}
    one, two = (et.FairNeuralRanker(notion, **settings).fit(data).predict(data) for notion in (own, masks))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - et.FairNeuralRanker("dp", **settings).fit(data).predict(data)).max() > 1e-6


def test_strata_of_a_batch_stand_for_the_notion():
    rng = np.random.default_rng(0)
    scores, relevance = torch.tensor(rng.normal(size=40)), torch.tensor(rng.integers(0, 2, 40))
    group, qid = torch.tensor(rng.integers(-1, 3, 40)), torch.tensor(rng.integers(0, 6, 40))
    rows = scores, relevance, group, qid
    given = et.FairnessLoss("dp", target="topk", k=2)(*rows, strata=torch.stack([relevance == 0, relevance == 1]))
    assert given.item() == pytest.approx(et.FairnessLoss("eod", target="topk", k=2)(*rows).item(), abs=1e-12)


@pytest.mark.parametrize("name", ["relevance", "group", "sample_weight", "strata"])
def test_masked_inputs_of_the_fairness_loss_are_refused(name: str) -> None:
    rows = {
        "relevance": torch.tensor([1.0, 0.0, 1.0, 0.0]),
        "group": torch.tensor([0, 1, 0, 1]),
        "sample_weight": torch.ones(4),
        "strata": np.ones((1, 4), bool),
    }
    scores = torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    good = et.FairnessLoss("dp")(scores, **rows)
    assert float(good.detach()) == pytest.approx(0.1)
    values = np.asarray(rows[name])
    rows[name] = np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) == 1)
    with pytest.raises(er.DataError, match=rf"{name} must not be masked; got a masked value"):
        et.FairnessLoss("dp")(scores, **rows)


def test_a_batch_is_refused_where_its_numbers_are_no_groups_or_weights() -> None:
    scores, relevance = torch.tensor([3.0, 1.0, 2.0, 0.5]), torch.tensor([1, 0, 1, 0])
    fairness = er.torch.FairnessLoss("dp")
    group = torch.tensor([0, 0, 1, 1])
    assert fairness(scores, relevance, group.bool()).item() == fairness(scores, relevance, group).item()
    for wrong in (group - 2, group * 10**9):
        with pytest.raises(DataError, match="group must hold numbers of groups from 0"):
            fairness(scores, relevance, wrong)
    for weight in (-torch.ones(4), torch.full((4,), torch.nan)):
        with pytest.raises(DataError, match="sample_weight must be numbers ≥ 0; got"):
            fairness(scores, relevance, group, sample_weight=weight)


def test_the_lowest_half_number_is_padding() -> None:
    scores = torch.tensor([[3.0, 1.0], [2.0, torch.finfo(torch.float16).min]], dtype=torch.float16)
    with pytest.raises(DataError, match="-65504 looks like padding"):
        er.torch.FairnessLoss("dp")(scores, torch.ones(2, 2), torch.tensor([[0, 1], [0, 1]]))


@pytest.mark.parametrize("device", ["cuda:99", "nowhere"])
def test_a_device_that_is_not_there(device: str) -> None:
    data = er.datasets.german_credit("age")
    with pytest.raises(ConfigError, match=f"device must be one that torch has here, as 'cpu'; got {device!r}"):
        er.torch.FairNeuralRanker("dp", device=device).fit(data)
