"""Rows through the other libraries' scorers: identical rows score alike, and shuffled ones keep their scores."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank as er

pytestmark = pytest.mark.extras
RANKERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "torch": ("evenrank.torch", "FairNeuralRanker", {"epochs": 1, "hidden": (17, 5), "k": 2}),
    "lightgbm": ("evenrank.lightgbm", "FairLGBMRanker", {"n_estimators": 5, "min_child_samples": 2, "verbose": -1}),
    "xgboost": ("evenrank.xgboost", "FairXGBRanker", {"n_estimators": 5}),
}


def ranker_of(library: str) -> Any:
    pytest.importorskip(library, reason="installed by make test-extras")
    module, name, settings_ = RANKERS[library]
    return getattr(import_module(module), name)(notion="dp", alpha=0.1, **settings_)


@pytest.mark.parametrize("library", RANKERS)
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 23))
def test_scores_are_the_row_s_own(library: str, seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, d))[rng.integers(40, size=120)]
    y, group, qid = rng.integers(0, 3, 120), np.tile(["a", "b"], 60), np.repeat(np.arange(12), 10)
    shuffled = rng.permutation(120)
    data = er.RankingData.from_arrays(X, y, group, qid)
    mixed = er.RankingData.from_arrays(X[shuffled], y[shuffled], group[shuffled], qid[shuffled])
    ranker = ranker_of(library).fit(data)
    scores = ranker.predict(data)
    np.testing.assert_array_equal(ranker.predict(mixed), scores[shuffled])
    np.testing.assert_array_equal(ranker.predict(X[shuffled]), scores[shuffled])
    np.testing.assert_array_equal(ranker.predict(X[7:8]), scores[7:8])
    _, first, again = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(scores, scores[first][again.ravel()])


def test_scoring_a_network_is_its_forward_pass() -> None:
    torch = pytest.importorskip("torch", reason="installed by make test-extras")
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(
        rng.normal(size=(60, 4)), rng.integers(0, 2, 60), np.tile(["a", "b"], 30), np.repeat(np.arange(6), 10)
    )
    networks = ranker_of("torch").fit(data).networks_
    with torch.no_grad():
        forward = networks.scores(data.features).numpy()
    np.testing.assert_allclose(networks.score_data(data), forward, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("library", RANKERS)
def test_columns_that_the_model_does_not_know_are_left_aside(library: str) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"price": rng.normal(size=60), "stars": rng.normal(size=60)})
    y, group, qid = rng.integers(0, 2, 60), np.tile(["a", "b"], 30), np.repeat(np.arange(6), 10)
    ranker = ranker_of(library).fit(frame, y, qid=qid, sensitive_features=group)
    turned = pd.DataFrame({"name": ["x"] * 60, "stars": frame["stars"], "score": y, "price": frame["price"]})
    np.testing.assert_array_equal(ranker.predict(turned), ranker.predict(frame))
    data = er.RankingData.from_arrays(frame, y, group, qid)
    more = er.RankingData.from_arrays(turned[["stars", "score", "price"]], y, None, qid)
    ranker = ranker_of(library).fit(data)
    np.testing.assert_array_equal(ranker.predict(more), ranker.predict(data))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_masked_features_are_missing_ones_to_boosters(library: str) -> None:
    rng = np.random.default_rng(0)
    X, mask = rng.normal(size=(60, 3)), rng.random((60, 3)) < 0.2
    y, group, qid = rng.integers(0, 2, 60), np.tile(["a", "b"], 30), np.repeat(np.arange(6), 10)
    masked, missing = np.ma.array(np.where(mask, 99.0, X), mask=mask), np.where(mask, np.nan, X)
    fitted = [ranker_of(library).fit(rows, y, qid=qid, sensitive_features=group) for rows in (masked, missing)]
    expected = fitted[1].predict(missing)
    np.testing.assert_array_equal(fitted[0].predict(masked), expected)
    with pytest.raises(er.DataError, match=r"^row 3: relevance must not be masked"):
        ranker_of(library).fit(X, np.ma.array(y, mask=np.arange(60) == 3), qid=qid, sensitive_features=group)
