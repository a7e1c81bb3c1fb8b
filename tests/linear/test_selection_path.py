"""The gap of the selection closed along a straight line: a plain twin, and what it is the same as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import evenrank as er
from evenrank.errors import ConfigError
from evenrank.linear.selection_path import chances_and_densities, selection_path

pytestmark = pytest.mark.numeric


def ragged(seed: int, lengths: Any, groups: str = "ab") -> er.RankingData:
    """Lists in which the groups are unevenly many, by their length."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(len(lengths)), lengths)
    n = len(query)
    leans = np.repeat(np.asarray(lengths) > np.median(lengths), lengths)
    group = np.where(rng.random(n) < 0.3 + 0.4 * leans, groups[0], rng.choice(list(groups[1:]), n))
    X = (
        rng.normal(size=(n, 4))
        + np.outer(group == groups[0], [0.8, 0, 0.3, 0])
        + rng.normal(size=(len(lengths), 4))[query]
    )
    relevance = (X @ [1.0, 0.5, 0, 0] + rng.normal(size=n) > 0.5).astype(int)
    return er.RankingData.from_arrays(X, relevance, group, query)


LENGTHS = np.random.default_rng(0).integers(2, 12, 40)


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
@pytest.mark.parametrize("makes_up", [0.0, 0.2, 1.0])
def test_weights_are_those_of_a_plain_minimisation(notion: str, makes_up: float) -> None:
    data, k = ragged(1, LENGTHS), 3
    X, r, query = np.asarray(data.features), data.relevance.astype(float), data.query_of_row
    inside = np.array([X[i] - X[query == query[i]].mean(axis=0) for i in range(len(X))])
    wanted = np.array([r[i] - r[query == query[i]].mean() for i in range(len(X))])
    chance = np.array([min(1.0, k / (query == q).sum()) for q in query])
    density = np.array([norm.pdf(norm.ppf(1 - p)) if p < 1 else 0.0 for p in chance])
    strata = {"dp": [r >= 0], "eop": [r == 1], "eod": [r == 1, r == 0]}[notion]
    signs = [
        np.where(kind & (data.group == 0), 1 / (kind & (data.group == 0)).sum(), 0)
        - np.where(kind & (data.group == 1), 1 / (kind & (data.group == 1)).sum(), 0)
        for kind in strata
    ]

    def loss(theta: np.ndarray) -> float:
        return float(np.mean((inside @ theta - wanted) ** 2))

    plain = minimize(loss, np.zeros(4), tol=1e-14).x
    spread = np.sqrt(np.mean((inside @ plain) ** 2))
    rules = [
        {"type": "eq", "fun": lambda t, a=a: (a * density) @ inside @ t + makes_up * spread * (a @ chance)}
        for a in signs
    ]
    found = minimize(loss, plain, constraints=rules, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}).x
    path = selection_path(data, notion, k, [0.0, 0.5, 1.0], makes_up=makes_up)
    assert path.coef[0] == pytest.approx(plain, abs=1e-5)
    assert path.coef[2] == pytest.approx(found, abs=1e-5)
    assert path.coef[1] == pytest.approx((path.coef[0] + path.coef[2]) / 2)
    assert loss(path.coef[2]) <= loss(found) + 1e-9


@pytest.mark.parametrize("groups", ["ab", "abc"])
def test_lists_of_one_length_have_the_centred_path_s_end(groups: str) -> None:
    """Every list counts alike, and random order has no gap to make up for."""
    data = ragged(2, np.full(30, 8), groups)
    ends = er.fairness_path(data, "dp", [0.0, 1.0], target="centered", loss="pairwise", relative=True)
    path = selection_path(data, "dp", 3, [0.0, 1.0], makes_up=0.5)
    assert path.scores(data) == pytest.approx(ends.scores(data), abs=1e-9)


def test_lists_that_are_selected_whole_change_nothing() -> None:
    data = ragged(3, np.full(20, 3))
    path = selection_path(data, "dp", 3, [0.0, 1.0])
    assert path.coef[1] == pytest.approx(path.coef[0])
    chance, density = chances_and_densities(np.array([1, 3, 4, 6]), 3)
    assert chance.tolist() == [1, 1, 0.75, 0.5]
    assert density == pytest.approx([0, 0, norm.pdf(norm.ppf(0.75)), 1 / np.sqrt(2 * np.pi)])


def test_the_gap_of_random_order_is_made_up_for() -> None:
    """On lists whose groups differ by length, gaps of the top k fall further the more of it is made up for."""
    data = ragged(4, np.random.default_rng(1).integers(2, 14, 600))
    gaps = [
        er.measure(selection_path(data, "dp", 3, [1.0], makes_up=part).scores(data)[:, 0], data, "dp@3")["dp@3"]
        for part in (0.0, 0.25, 0.5)
    ]
    assert gaps[0] > 1.2 * gaps[1] > 1.2**2 * gaps[2]


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="makes_up must be a finite number ≥ 0 and ≤ 1; got 2"):
        selection_path(ragged(5, [4, 5, 6]), "dp", 3, [1.0], makes_up=2)
    with pytest.raises(ConfigError, match="k must be a whole number ≥ 1"):
        selection_path(ragged(5, [4, 5, 6]), "dp", 0, [1.0])
