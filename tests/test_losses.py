"""Losses: their derivatives meet finite differences, and nothing overflows."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from evenrank.losses import LOSSES, Loss, sigmoid

losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
SCORES = np.random.default_rng(0).normal(scale=2, size=(40, 3))
RELEVANCE = np.random.default_rng(1).integers(0, 2, (40, 1)).astype(float)


def slope(function: object, scores: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return (function(scores + step, RELEVANCE) - function(scores - step, RELEVANCE)) / (2 * step)


def test_values_are_the_definitions() -> None:
    s, r = 0.7, 1.0
    assert LOSSES["squared"].value(np.array([s]), np.array([r])).tolist() == [(s - r) ** 2]
    assert LOSSES["logistic"].value(np.array([s]), np.array([r]))[0] == pytest.approx(-log(1 / (1 + exp(-s))))
    assert LOSSES["logistic"].value(np.array([s]), np.array([0.0]))[0] == pytest.approx(-log(1 - 1 / (1 + exp(-s))))


@losses
def test_derivatives_meet_finite_differences(loss: Loss) -> None:
    np.testing.assert_allclose(loss.gradient(SCORES, RELEVANCE), slope(loss.value, SCORES), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(SCORES, RELEVANCE), slope(loss.gradient, SCORES), rtol=1e-7, atol=1e-8)


@losses
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_models_are_columns_and_the_precision_stays(loss: Loss, dtype: type) -> None:
    scores, relevance = SCORES.astype(dtype), RELEVANCE.astype(dtype)
    for part in (loss.value, loss.gradient, loss.curvature):
        whole = part(scores, relevance)
        assert whole.dtype == dtype
        assert whole.shape == scores.shape
        for model in range(3):
            # The last digit may differ: numpy's loops over contiguous and strided columns are not the same.
            alone = part(scores[:, model], relevance[:, 0])
            np.testing.assert_allclose(whole[:, model], alone, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("big", [1e3, 1e4, 1e300])
def test_logistic_does_not_overflow(big: float) -> None:
    loss, scores = LOSSES["logistic"], np.array([big, -big, big, -big])
    relevance = np.array([1.0, 0.0, 0.0, 1.0])
    assert loss.value(scores, relevance).tolist() == [0, 0, big, big]
    assert loss.gradient(scores, relevance).tolist() == [0, 0, 1, -1]
    assert loss.curvature(scores, relevance).tolist() == [0, 0, 0, 0]


def test_sigmoid_is_symmetric() -> None:
    assert sigmoid(np.array([0.0]))[0] == 1 / 2
    np.testing.assert_allclose(sigmoid(SCORES) + sigmoid(-SCORES), 1, rtol=1e-15)


def test_names_are_the_keys() -> None:
    assert {name: loss.name for name, loss in LOSSES.items()} == {
        "squared": "squared",
        "pairwise": "pairwise",
        "logistic": "logistic",
    }
    assert [loss.binary for loss in LOSSES.values()] == [False, False, True]
    assert [loss.quadratic for loss in LOSSES.values()] == [True, True, False]
    assert [loss.within for loss in LOSSES.values()] == [False, True, False]
