"""The box problem: its optimality conditions to rounding, a closed form, and an independent convex solver."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenrank.linear import boxqp
from linear_oracles import CONIC, penalised_least_squares

pytestmark = pytest.mark.numeric

Array = NDArray[Any]


def pair_rows(rng: np.random.Generator, groups: int, r: int) -> Array:
    """Differences between all pairs of random points, whose rank is at most groups − 1."""
    points = rng.normal(size=(groups, r))
    return np.array([points[a] - points[b] for a, b in combinations(range(groups), 2)])


def duplicated(rng: np.random.Generator) -> Array:
    F = rng.normal(size=(3, 5))
    return np.concatenate([F, F[:2], -F[2:]])


def with_zero_rows(rng: np.random.Generator) -> Array:
    F = rng.normal(size=(4, 5))
    F[[0, 2]] = 0
    return F


SHAPES = {
    "one": lambda rng: rng.normal(size=(1, 4)),
    "two": lambda rng: rng.normal(size=(2, 4)),
    "two, one dimension": lambda rng: rng.normal(size=(2, 1)),
    "pairs of 4 groups": lambda rng: pair_rows(rng, 4, 6),
    "pairs of 4 groups, two strata": lambda rng: np.concatenate([pair_rows(rng, 4, 5), pair_rows(rng, 4, 5)]),
    "many": lambda rng: rng.normal(size=(60, 5)),
    "duplicated": duplicated,
    "zero rows": with_zero_rows,
    "nearly parallel": lambda rng: rng.normal(size=(1, 4)) + 1e-7 * rng.normal(size=(3, 4)),
    "of very different size": lambda rng: rng.normal(size=(6, 4)) * 10.0 ** rng.integers(-6, 3, (6, 1)),
}


def kkt_residual(F: Array, y: Array, beta: Array, x: Array, u: Array) -> float:
    """The largest failure of any optimality condition of one model, relative to the terms that x is a sum of."""
    length = max(np.linalg.norm(y) + (beta * np.abs(u)) @ np.linalg.norm(F, axis=1), 1e-300)
    stationary = np.abs(x - (y - F.T @ (beta * u))).max() / length
    outside = max(np.abs(u).max() - 1, 0)
    size = np.linalg.norm(F, axis=1) * length
    gaps = (F @ x) / np.where(size > 0, size, 1)
    signs = np.abs(u - np.clip(u + gaps, -1, 1))[beta > 0].max(initial=0)
    return float(max(stationary, outside, signs))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_solutions_are_optimal_to_rounding(shape: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = SHAPES[shape](rng)
    y = rng.normal(size=F.shape[1]) * 10.0 ** rng.integers(-3, 4)
    strengths = np.concatenate([[0], np.logspace(-4, 4, 30)]) * np.linalg.norm(y)
    beta = strengths[:, None] * rng.uniform(0.2, 1, len(F))
    x, u = boxqp.solve(F, y, beta)
    for model in range(len(beta)):
        assert kkt_residual(F, y, beta[model], x[model], u[model]) <= 1e-12
    assert (x[0] == y).all()


@given(
    seed=st.integers(0, 10**6),
    J=st.integers(1, 11),
    r=st.integers(1, 7),
    levels=st.integers(1, 3),
    spread=st.integers(0, 4),
)
@example(seed=298341, J=5, r=5, levels=1, spread=0)
def test_solutions_are_optimal_where_rows_coincide(seed: int, J: int, r: int, levels: int, spread: int) -> None:
    # Small whole numbers make parallel rows, gaps that vanish together and other ties common.
    rng = np.random.default_rng(seed)
    F = rng.integers(-levels, levels + 1, (J, r)) * 10.0 ** rng.integers(-spread, spread + 1, (J, 1))
    y = rng.integers(-3, 4, r) * 10.0 ** rng.integers(-3, 4)
    beta = rng.integers(0, 5, (6, J)) / 4 * 10.0 ** rng.integers(-3, 3)
    x, u = boxqp.solve(F, y, beta)
    for model in range(len(beta)):
        assert kkt_residual(F, y, beta[model], x[model], u[model]) <= 1e-12


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("guess", ["nothing", "all bounds", "the wrong bounds", "random"])
def test_the_last_stage_repairs_any_guess(shape: str, guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    F = SHAPES[shape](rng)
    y = rng.normal(size=F.shape[1])
    beta = np.array([[0.01], [0.1], [1], [10]]) * rng.uniform(0.2, 1, len(F))
    _, best = boxqp.solve(F, y, beta)
    start = {
        "nothing": np.zeros_like(best),
        "all bounds": np.ones_like(best),
        "the wrong bounds": np.where(best > 0, -1.0, 1.0),
        "random": rng.uniform(-1, 1, best.shape),
    }[guess]
    monkeypatch.setattr(boxqp, "_interior_point", lambda G, y: start)
    x, u = boxqp.solve(F, y, beta)
    for model in range(len(beta)):
        assert kkt_residual(F, y, beta[model], x[model], u[model]) <= 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_one_contrast_has_a_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    F, y, beta = rng.normal(size=(1, 3)), rng.normal(size=3), np.linspace(0, 4, 50)[:, None]
    x, u = boxqp.solve(F, y, beta)
    push = np.clip(F[0] @ y / (F[0] @ F[0]), -beta[:, 0], beta[:, 0])
    np.testing.assert_allclose(beta[:, 0] * u[:, 0], push, rtol=0, atol=1e-14)
    np.testing.assert_allclose(x, y - push[:, None] * F[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_are_those_of_a_conic_solver(shape: str) -> None:
    rng = np.random.default_rng(11)
    F = SHAPES[shape](rng)
    r = F.shape[1]
    y = rng.normal(size=r)
    beta = np.array([[0.03], [0.3], [3]]) * rng.uniform(0.2, 1, len(F))
    x, _ = boxqp.solve(F, y, beta)
    for model in range(len(beta)):
        # ½‖x − y‖² + Σ β|F x| is half of ‖x − y‖² + Σ 2β|F x|
        expected = penalised_least_squares(np.eye(r), y, np.zeros(r), F, 2 * beta[model])
        # ‖x − y‖² is strongly convex: a value CONIC above the least is √CONIC away at most.
        np.testing.assert_allclose(x[model], expected, rtol=0, atol=2 * CONIC**0.5)


def test_a_batch_is_its_problems_one_at_a_time() -> None:
    rng = np.random.default_rng(12)
    F, y, beta = rng.normal(size=(9, 7, 4)), rng.normal(size=(9, 4)), rng.uniform(0, 0.5, (9, 7))
    beta[3] = 0
    y[5] = 0
    x, u = boxqp.solve(F, y, beta)
    for model in range(9):
        alone, multipliers = boxqp.solve(F[model], y[model], beta[model : model + 1])
        np.testing.assert_allclose(x[model], alone[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(u[model], multipliers[0], rtol=0, atol=1e-10)


def test_batches_too_large_for_memory_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    F, y, beta = rng.normal(size=(7, 4)), rng.normal(size=4), rng.uniform(0, 0.5, (9, 7))
    expected, _ = boxqp.solve(F, y, beta)
    sizes = []
    whole = boxqp._interior_point
    monkeypatch.setattr(boxqp, "_interior_point", lambda G, y: sizes.append(len(G)) or whole(G, y))
    monkeypatch.setattr(boxqp, "MAX_ELEMENTS", 2 * 7 * 4)
    np.testing.assert_allclose(boxqp.solve(F, y, beta)[0], expected, rtol=0, atol=1e-13)
    assert sizes == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("empty", ["no contrasts", "y = 0", "F = 0", "y orthogonal to F"])
def test_problems_with_nothing_to_do(empty: str) -> None:
    F, y, beta = np.eye(2, 3), np.array([1.0, 2, 3]), np.ones((2, 2))
    if empty == "no contrasts":
        F, beta = np.zeros((0, 3)), np.zeros((2, 0))
    elif empty == "y = 0":
        y = np.zeros(3)
    elif empty == "F = 0":
        F = np.zeros((2, 3))
    else:
        y = np.array([0.0, 0, 3])
    x, u = boxqp.solve(F, y, beta)
    assert (x == y).all()
    assert np.abs(u).max(initial=0) <= 1


def test_many_gaps_that_vanish_together_take_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # At the strength where the last gap closes, nearly every multiplier arrives at its bound at once.
    rng = np.random.default_rng(14)
    F, y = rng.normal(size=(300, 12)), rng.normal(size=12)
    from scipy.optimize import linprog

    box = np.vstack([np.eye(300), -np.eye(300)])
    least = linprog(
        np.append(np.zeros(300), 1),
        A_ub=np.hstack([box, -np.ones((600, 1))]),
        b_ub=np.zeros(600),
        A_eq=np.hstack([F.T, np.zeros((12, 1))]),
        b_eq=y,
        bounds=[(None, None)] * 300 + [(0, None)],
    ).fun
    monkeypatch.setattr(boxqp, "POLISH_ROUNDS", 120)
    beta = np.full((3, 300), least) * np.array([[1 - 1e-7], [1], [1 + 1e-7]])
    x, u = boxqp.solve(F, y, beta)
    for model in range(3):
        assert kkt_residual(F, y, beta[model], x[model], u[model]) <= 1e-12
    assert np.abs(x[1:]).max() <= 1e-8
