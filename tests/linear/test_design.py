"""The standardised problem: gradients against finite differences, blocks, units and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenrank.row_checks
from evenrank.data import RankingData
from evenrank.linear.descent import Penalty
from evenrank.linear.design import Design
from evenrank.losses import LOSSES
from evenrank.notions import NOTIONS
from linear_oracles import Gaps, Rows, objective, random_data

pytestmark = pytest.mark.numeric


def design_of(data: RankingData, notions: Any = ("equalized_odds",), **options: Any) -> Design:
    defaults: dict[str, Any] = {
        "scope": "amortized",
        "across": "mean",
        "scale": "train",
        "ridge": 0.0,
        "fit_intercept": True,
        "group_aware": False,
        "any_units": False,
    }
    return Design([data], [NOTIONS[name] for name in notions], **defaults | options)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "not scaled": {"scale": None},
    "group-aware": {"group_aware": True},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scope", ["amortized", "per_query"])
@pytest.mark.parametrize("across", ["mean", "max"])
@pytest.mark.parametrize("target", ["score", "centered"])
def test_gradients_meet_finite_differences(
    options: dict[str, Any], loss: str, scope: str, across: str, target: str
) -> None:
    data = random_data(0, n=60, groups=3, unknown=True, weighted=True)
    design = design_of(data, scope=scope, across=across, target=target, within=LOSSES[loss].within, **options)
    rows = Rows.of(
        data,
        scaled=options.get("scale", "train") is not None,
        intercept=options.get("fit_intercept", True),
        group_aware=options.get("group_aware", False),
    )
    gaps = Gaps.of(data, "eod", scope, target=target)
    theta = np.random.default_rng(1).normal(size=(2, design.width))
    alphas = np.array([0.0, 0.7])
    slope = design.slope(LOSSES[loss])(theta) + Penalty(design.terms(), alphas).subgradient(theta)

    def value(at: Any, alpha: float) -> float:
        return objective(rows, gaps, at, 0.0, loss=loss) + alpha * gaps.gamma(rows.Z @ at, across)

    for model, alpha in enumerate(alphas):
        for j in range(design.width):
            step = np.zeros(design.width)
            step[j] = 1e-6
            difference = (value(theta[model] + step, alpha) - value(theta[model] - step, alpha)) / 2e-6
            assert slope[model, j] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_blocks_are_the_standardised_rows(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(2, groups=3, unknown=True, weighted=True)
    design = design_of(data, **options)
    rows = Rows.of(
        data,
        scaled=options.get("scale", "train") is not None,
        intercept=options.get("fit_intercept", True),
        group_aware=options.get("group_aware", False),
    )
    for block_bytes, number in ((1 << 25, 1), (8 * 3 * 50, 3)):
        monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", block_bytes)
        blocks = design.blocks(LOSSES["logistic"])
        for _ in range(2):  # the second time from what was kept
            parts = list(blocks())
            assert len(parts) == number
            Z, target, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
            np.testing.assert_allclose(Z, rows.Z, rtol=0, atol=1e-11)
            np.testing.assert_allclose(target, rows.target)
            np.testing.assert_allclose(weight, rows.weight)
        theta = np.random.default_rng(3).normal(size=(2, design.width))
        expected = (rows.weight[:, None] * (1 / (1 + np.exp(-rows.Z @ theta.T)) - rows.target[:, None])).T @ rows.Z
        np.testing.assert_allclose(design.slope(LOSSES["logistic"])(theta), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [*CASES.values(), {"scale": None, "any_units": True}], ids=[*CASES, "any units"])
def test_own_units_give_the_same_scores(options: dict[str, Any]) -> None:
    data = random_data(4, groups=3)
    design = design_of(data, **options)
    theta = np.random.default_rng(5).normal(size=(4, design.width))
    Z = next(design.blocks(LOSSES["squared"])())[0]
    coef, intercept, offset = design.in_own_units(theta)
    scores = np.array(data.features) @ coef.T + intercept
    if offset is not None:
        assert (offset[:, 0] == 0).all()
        scores += offset.T[data.group]
    np.testing.assert_allclose(scores, Z @ theta.T, rtol=0, atol=1e-10)


def test_any_units_keep_the_ridge_in_the_caller_s() -> None:
    data = random_data(6)
    design = design_of(data, scale=None, any_units=True, ridge=0.3)
    spread = np.array(data.features).std(axis=0)
    np.testing.assert_allclose(design.ridge, [*(0.3 / spread**2), 0])
    np.testing.assert_allclose(design_of(data, ridge=0.3).ridge, [0.3, 0.3, 0.3, 0])
    np.testing.assert_allclose(design_of(data, ridge=0.3, fit_intercept=False).ridge, [0.3] * 3)


def test_the_dataset_s_scale_is_that_of_all_its_rows() -> None:
    data = random_data(7)
    part = data.take(np.arange(5)).take([1, 2, 4])
    X, own = np.array(data.features), np.array(part.features)
    dataset, train = design_of(part, scale="dataset"), design_of(part)
    np.testing.assert_allclose(dataset.center, X.mean(axis=0))
    np.testing.assert_allclose(dataset.spread, X.std(axis=0))
    np.testing.assert_allclose(train.center, own.mean(axis=0))
    np.testing.assert_allclose(train.spread, own.std(axis=0))
    assert (design_of(data, scale="dataset").spread == design_of(data).spread).all()
    none = design_of(part, scale=None)
    assert (none.center == 0).all()
    assert (none.spread == 1).all()
