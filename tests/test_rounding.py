"""Contrasts within rounding are 0 on every processor, whatever the units; genuine ones stay, however small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.contrasts import Pairs
from evenrank.design_columns import contrast_rows
from evenrank.moments import Moments
from evenrank.notions import bind
from evenrank.query_sums import Sums, Weights
from evenrank.statistic import Statistic, statistics

pytestmark = pytest.mark.numeric

FEATURES = {
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
    "0 and 1": lambda rng, n: (rng.random((n, 2)) < 0.3).astype(float),
    "skew": lambda rng, n: np.exp(3 * rng.normal(size=(n, 2))),
    "constant": lambda rng, n: np.full((n, 2), 0.1),
}
UNITS = [(1.0, 0.0), (1 / 3, 1 / 7), (1e-150, 0.0), (1e140, 0.0), (1.0, 1e9), (1.0, -1e15)]


def equal_groups(X: Any, seed: int = 0, queries: int = 8) -> er.RankingData:
    """Each row once in either group, in mixed order."""
    rng = np.random.default_rng(seed)
    n = len(X)
    order = rng.permutation(2 * n)
    relevance, query = rng.integers(0, 2, n), rng.integers(0, queries, n)
    group = np.repeat(["a", "b"], n)[order]
    return er.RankingData.from_arrays(
        np.tile(X, (2, 1))[order], np.tile(relevance, 2)[order], group, np.tile(query, 2)[order]
    )


@pytest.mark.parametrize(("scale", "shift"), UNITS)
@pytest.mark.parametrize("n", [20, 20_000])
@pytest.mark.parametrize("kind", FEATURES)
def test_equal_groups_have_no_contrast(kind: str, n: int, scale: float, shift: float) -> None:
    X = FEATURES[kind](np.random.default_rng(1), n) * scale + shift
    data = equal_groups(X)
    whole = Moments.of(data)
    part = Moments.of(data.take([0, 1, 2]))
    for moments in (whole, whole - part, whole - part + part):
        for notion in ("dp", "eod"):
            assert not moments.contrasts(notion)[0].any()
    assert not contrast_rows(bind("eod", data, scope="per_query", training=True), data).any()
    for notion in ("dp", "eod"):
        assert er.violation(data.to_caller(np.asarray(data.features)), data, notion).tolist() == [0, 0]


@pytest.mark.parametrize("scope", ["amortized", "per_query"])
@pytest.mark.parametrize("notion", ["dp", "eod"])
def test_fractions_of_no_strength_change_nothing(notion: str, scope: str) -> None:
    data = equal_groups(np.random.default_rng(2).normal(size=(200, 3)))
    path = er.fairness_path(data, notion, [0.0, 0.5, 1.0, 100.0], scope=scope, relative=True)
    assert path.alpha_star.tolist() == [0]
    assert path.alphas.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(path.coef, path.coef[[0]] * np.ones((4, 1)))
    strong = er.fairness_path(data, notion, [1e300], scope=scope)
    np.testing.assert_allclose(strong.coef, path.coef[:1], rtol=0, atol=1e-12)


def test_a_value_made_in_two_ways_is_one_value() -> None:
    # 0.1 + 0.2 is not 0.3, but no gap either.
    X = np.repeat([[0.1 + 0.2], [0.3]], 50, axis=0)
    data = er.RankingData.from_arrays(X, np.tile([0, 1], 50), np.repeat(["a", "b"], 50), np.arange(100) % 5)
    assert not Moments.of(data).contrasts("dp")[0].any()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-150, 0.0), (1e150, 0.0), (1.0, 1e3), (1.0, -1e6)])
def test_a_genuine_gap_stays_however_small(scale: float, shift: float) -> None:
    n, gap = 100_000, 1e-9
    X = np.random.default_rng(3).normal(size=(n, 1))
    both = np.vstack([X, X + gap]) * scale + shift
    data = er.RankingData.from_arrays(both, np.tile([0, 1], n), np.repeat(["a", "b"], n), np.tile(np.arange(n) % 4, 2))
    expected = -gap * scale
    # Values of size 10⁶ are known to 10⁻¹⁰ each.
    for contrasts in (
        Moments.of(data).contrasts("dp")[0],
        contrast_rows(bind("dp", data, scope="per_query", training=True), data),
    ):
        np.testing.assert_allclose(contrasts, np.full_like(contrasts, expected), rtol=0.01)


def test_one_row_far_away_hides_no_gap_of_the_others() -> None:
    # The far row is of neither group, and the origin is near it for none of the other features.
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1001, 1))
    X[500:1000] += 1e-3
    X[1000] = 1e6
    group = np.array(["a"] * 500 + ["b"] * 500 + [None], object)
    data = er.RankingData.from_arrays(X, np.arange(1001) % 2, group, np.zeros(1001))
    known = X[:1000, 0].reshape(2, 500).mean(axis=1)
    contrast = Moments.of(data).contrasts("dp")[0]
    assert contrast[0, 0] == pytest.approx(known[0] - known[1], rel=1e-5)


def test_equal_selection_is_reported_as_no_gap() -> None:
    rng = np.random.default_rng(5)
    lists, length = 300, 7
    scores = np.tile(rng.normal(size=(lists, length)), (2, 1)).ravel()
    group = np.repeat(["a", "b"], lists * length)
    order = rng.permutation(len(scores))
    query = np.repeat(np.arange(2 * lists), length)
    data = er.RankingData.from_arrays(
        np.zeros((len(scores), 1)), np.tile([1, 0], lists * length)[order], group[order], query[order]
    )
    names = ["dp@3", "eod@3", "exposure_gap"]
    relevance_free = er.measure(scores[order], data, ["dp@3", "exposure_gap"])
    assert list(relevance_free.values()) == [0, 0]
    for statistic in statistics(scores[order], data, [names[0], names[2]]):
        assert not statistic.estimates.any()


def test_equal_lists_in_another_order_are_reported_as_no_gap() -> None:
    """Sums over lists differ in their last digits with the order of the lists; intervals and audits must not."""
    differing: dict[str, int] = {}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        lists, length = 301, 7
        scores = rng.normal(size=(lists, length))
        group = rng.integers(0, 2, (lists, length))
        order = rng.permutation(lists)
        both = np.concatenate([scores, scores[order]]).ravel()
        data = er.RankingData.from_arrays(
            np.zeros((len(both), 1)),
            np.ones(len(both)),
            np.array(["a", "b"])[np.concatenate([group, 1 - group[order]]).ravel()],
            np.repeat(np.arange(2 * lists), length),
        )
        for statistic in statistics(both, data, ["exposure_gap", "exposure_ratio", "dp@3"]):
            assert not statistic.estimates.any()
            ratios = statistic.sums.ratios
            differing[statistic.name] = differing.get(statistic.name, 0) + int(ratios[0] != ratios[1])
            assert ratios[0] == pytest.approx(ratios[1], rel=1e-13)
        found = er.interval(both, data, "exposure_gap", replicates=50)
        assert (found.estimate, found.low) == (0, 0)
    # Without this the lists would ask nothing.
    assert differing["exposure_gap"]
    assert differing["exposure_ratio"]


def two_ratios(kind: str, queries: int) -> Statistic:
    """Two ratios over so many queries, of which only the number counts here."""
    weights = Weights.of(np.arange(2 * queries), np.ones(2 * queries), queries, 2)
    pairs = Pairs(np.array([0]), np.array([1]), np.ones(1), np.zeros(1, np.int64), "mean", (), 1.0)
    return Statistic("x", Sums(weights, np.zeros(2 * queries)), kind, pairs)


@pytest.mark.parametrize(
    ("kind", "queries", "ratios", "is_gap"),
    [
        ("gap", 10, (0.1 + 0.2, 0.3), False),
        ("gap", 10, (1e-20, 3e-20), True),  # of so small ratios that is no rounding
        ("gap", 10, (1e3 * (1 + 1e-14), 1e3), False),
        ("gap", 10, (0.5 * (1 + 1e-13), 0.5), True),
        ("gap", 250_000, (0.5 * (1 + 1e-13), 0.5), False),  # so many queries may add up in so many ways
        ("gap", 250_000, (0.5 * (1 + 1e-12), 0.5), True),
        ("ratio", 10, (1.0, 1 - 2**-53), False),  # their logarithms are near 0, and no less rounded for that
        ("ratio", 10, (1e-9, 1e-9 * (1 + 1e-15)), False),
        ("ratio", 10, (1e-9, 1e-9 * (1 + 1e-12)), True),
    ],
)
def test_a_gap_is_0_where_the_ratios_may_be_one(kind: str, queries: int, ratios: Any, is_gap: bool) -> None:
    statistic = two_ratios(kind, queries)
    for pair in (ratios, ratios[::-1]):
        assert statistic.gaps(np.array(pair)[:, None]).any() == is_gap
