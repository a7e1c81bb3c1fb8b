"""Stochastic descent against one model at a time over the same batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
import linear_oracles as oracle
from evenrank.linear import sgd
from linear_oracles import STRATA, random_data

SCOPES = ("amortized", "per_query")
ALPHAS = [0.0, 0.1, 2.0]
OURS: dict[str, Any] = {"epochs": 3, "batch_queries": 4, "learning_rate": 0.02, "seed": 5, "batch_items": None}
TWIN: dict[str, Any] = {"epochs": 3, "batch_queries": 4, "rate": 0.02, "seed": 5, "batch_items": None}


@pytest.fixture(autouse=True)
def _plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes plain steps whatever comes of them; tests/linear/test_ends.py has those that diverge."""
    monkeypatch.setattr(sgd, "PAPERS", np.inf)


def stored_scores(path: Any, data: er.RankingData) -> Any:
    return data.to_stored(path.scores(data))


@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("groups", [2, 3])
def test_batches_are_the_loop_over_their_rows(notion: str, scope: str, groups: int) -> None:
    # 15 queries of a few items, some without a group, and a last batch of 3.
    data = random_data(0, n=80, queries=15, groups=groups, unknown=True, weighted=True)
    path = er.fairness_path(data, notion, ALPHAS, "sgd", scope, **OURS)
    assert path.steps == 3 * 4
    for alpha, scores in zip(ALPHAS, stored_scores(path, data).T, strict=True):
        np.testing.assert_allclose(scores, oracle.sgd(data, notion, alpha, scope, **TWIN), rtol=0, atol=1e-8)


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no intercept": ({"fit_intercept": False}, {"intercept": False}),
    "ridge": ({"ridge": 0.3}, {"ridge": 0.3}),
    "not scaled": ({"scale": None}, {"scaled": False}),
    "group-aware": ({"group_aware": True}, {"group_aware": True}),
    "logistic": ({"loss": "logistic"}, {"loss": "logistic"}),
    "pairwise": ({"loss": "pairwise"}, {"loss": "pairwise"}),
    "pairwise, 3 items a query": ({"loss": "pairwise", "batch_items": 3}, {"loss": "pairwise", "batch_items": 3}),
    "largest pair": ({"across": "max"}, {"across": "max"}),
    "3 items a query": ({"batch_items": 3}, {"batch_items": 3}),
    "another seed": ({"seed": 6}, {"seed": 6}),
    "one batch": ({"batch_queries": 100}, {"batch_queries": 100}),
}


@pytest.mark.parametrize(("options", "twin"), OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("scope", SCOPES)
def test_options_mean_what_they_say(options: dict[str, Any], twin: dict[str, Any], scope: str) -> None:
    data = random_data(1, n=80, queries=15, groups=3, unknown=True, weighted=True)
    path = er.fairness_path(data, "eod", ALPHAS, "sgd", scope, **OURS | options)
    plain = er.fairness_path(data, "eod", ALPHAS, "sgd", scope, **OURS)
    assert np.abs(path.scores(data) - plain.scores(data)).max() > 1e-4
    for alpha, scores in zip(ALPHAS, stored_scores(path, data).T, strict=True):
        np.testing.assert_allclose(scores, oracle.sgd(data, "eod", alpha, scope, **TWIN | twin), rtol=0, atol=1e-8)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("across", ["mean", "max"])
def test_several_notions_and_groupings_train_together_as_alone(scope: str, across: str) -> None:
    data = random_data(2, n=150, queries=20)
    other = data.with_group(np.random.default_rng(0).choice(["u", "v", "w", None], data.n_rows))
    options = OURS | {"alphas": ALPHAS, "solver": "sgd", "scope": scope, "across": across}
    path = er.fairness_path([data, other], list(STRATA), **options)
    alone = [er.fairness_path(each, notion, **options) for each in (data, other) for notion in STRATA]
    np.testing.assert_allclose(path.coef, np.vstack([each.coef for each in alone]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.intercept, np.concatenate([each.intercept for each in alone]), rtol=0, atol=1e-12)


def test_the_paper_s_settings_are_the_default() -> None:
    data = random_data(3, n=600, queries=150, unknown=True)
    path = er.fairness_path(data, "eop", [0.5], "sgd")
    assert path.steps == 5 * 2
    expected = oracle.sgd(data, "eop", 0.5, epochs=5, batch_queries=100, batch_items=10, rate=1e-4)
    np.testing.assert_allclose(stored_scores(path, data)[:, 0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scale", ["train", None])
@pytest.mark.parametrize("scope", SCOPES)
def test_float32_features_train_in_float32(scale: str | None, scope: str, tmp_path: Path) -> None:
    data = random_data(4, dtype=np.float32, shuffled=False)
    path = er.fairness_path(data, "eod", ALPHAS, "sgd", scope, scale=scale, **OURS)
    for alpha, scores in zip(ALPHAS, stored_scores(path, data).T, strict=True):
        expected = oracle.sgd(data, "eod", alpha, scope, scaled=scale is not None, **TWIN)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-5)
    file = np.memmap(tmp_path / "X", np.float32, "w+", shape=data.features.shape)
    file[:] = data.features
    mapped = er.RankingData.from_arrays(
        file, data.relevance, data.group, data.query_of_row, group_names=data.group_names
    )
    assert isinstance(mapped.features, np.memmap)
    again = er.fairness_path(mapped, "eod", ALPHAS, "sgd", scope, scale=scale, **OURS)
    assert (again.coef == path.coef).all()


def test_a_long_list_gives_a_fresh_draw_every_epoch() -> None:
    # One query, two items a batch: without fresh draws a third epoch would see the rows of the first.
    data = random_data(5, n=30, queries=1)
    options = OURS | {"batch_items": 2, "scale": None, "learning_rate": 1e-3}
    steps = [er.fairness_path(data, alphas=[0.0], solver="sgd", **options | {"epochs": e}).coef[0] for e in range(1, 5)]
    moves = np.diff(np.vstack([np.zeros(3), *steps]), axis=0)
    assert np.linalg.matrix_rank(moves, tol=1e-9) == 3


def test_the_seed_and_only_the_seed_changes_the_batches() -> None:
    data = random_data(6, n=90, queries=20)
    one, same, other = (er.fairness_path(data, "dp", [0.1], "sgd", **OURS | {"seed": seed}).coef for seed in (1, 1, 2))
    assert (one == same).all()
    assert np.abs(one - other).max() > 1e-6


def test_weights_count_in_the_loss_and_in_the_means() -> None:
    data = random_data(7, n=90, queries=20)
    weight = np.random.default_rng(0).integers(0, 3, data.n_rows).astype(float)
    weighted = er.RankingData.from_arrays(
        data.features, data.relevance, data.group, data.query_of_row, group_names=["a", "b"], sample_weight=weight
    )
    times = weight.astype(int)
    repeated = er.RankingData.from_arrays(
        np.repeat(data.features, times, axis=0),
        np.repeat(data.relevance, times),
        np.repeat(data.group, times),
        np.repeat(data.query_of_row, times),
        group_names=["a", "b"],
    )
    assert repeated.n_queries == weighted.n_queries
    one, two = (er.fairness_path(each, "eod", ALPHAS, "sgd", **OURS) for each in (weighted, repeated))
    np.testing.assert_allclose(one.coef, two.coef, rtol=0, atol=1e-12)


def test_progress_and_ctrl_c() -> None:
    data = random_data(8, n=90, queries=20)
    seen: list[float] = []

    def stop(done: float) -> None:
        seen.append(done)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 5 of 15 batches; the weights so far are kept"):
        path = er.fairness_path(data, "dp", [0.1], "sgd", progress=stop, **OURS)
    assert path.steps == 5
    one_epoch = er.fairness_path(data, "dp", [0.1], "sgd", **OURS | {"epochs": 1})
    assert one_epoch.steps == 5
    assert (path.coef == one_epoch.coef).all()
    whole: list[float] = []
    er.fairness_path(data, "dp", [0.1], "sgd", progress=whole.append, **OURS)
    assert whole == [i / 15 for i in range(1, 16)]
