"""Which strength ``max_violation`` takes of models that train for each strength, and how many are trained for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenrank.linear.strengths import strength_grid
from evenrank.rankers import search

GRID = strength_grid()
Found = tuple[float, list[float]]


@pytest.fixture
def least_loss() -> Callable[..., Found]:
    """What is kept, and the strengths that were trained, where the gap and NDCG of a strength are these functions."""

    def find(limit: float, gap: Callable[[Any], Any], ndcg: Callable[[Any], Any]) -> Found:
        trained: list[float] = []

        def try_strengths(grid: Any) -> tuple[Any, Any, Any]:
            trained.extend(grid)
            return grid, gap(grid), ndcg(grid)

        models, number, tried = search.least_loss_of(limit, GRID, try_strengths)
        assert tried == [(alpha, gap(alpha), ndcg(alpha)) for alpha in sorted(trained)]
        assert len(set(trained)) == len(trained)
        return float(models[number]), trained

    return find


def falling(alpha: Any) -> Any:
    return 0.1 / (1 + 10 * alpha)


def test_strength_0_is_kept_and_nothing_else_trained_where_it_is_within_the_limit(least_loss: Any) -> None:
    assert least_loss(0.1, falling, lambda alpha: 1 + alpha) == (0, [0])


@pytest.mark.parametrize("limit", [0.095, 0.05, 0.02, 0.01, 0.0012])
def test_the_weakest_within_the_limit_is_found_among_the_strengths_of_the_grid(least_loss: Any, limit: float) -> None:
    found, trained = least_loss(limit, falling, lambda alpha: 1 - alpha / 100)
    assert found == GRID[falling(GRID) <= limit].min()
    assert len(trained) <= 12


def test_of_those_within_the_limit_the_one_that_ranks_best_is_kept(least_loss: Any) -> None:
    found, trained = least_loss(0.05, falling, lambda alpha: 1 - abs(alpha - GRID[19]))
    assert found == GRID[19]
    assert found in trained


@pytest.mark.parametrize("at", range(1, len(GRID)))
def test_whichever_strength_alone_keeps_the_limit_is_found(least_loss: Any, at: int) -> None:
    found, trained = least_loss(0.01, lambda alpha: np.where(alpha == GRID[at], 0.0, 0.1), np.ones_like)
    assert found == GRID[at]
    assert len(trained) <= len(GRID)


def test_where_none_is_within_the_limit_the_smallest_gap_is_kept(least_loss: Any) -> None:
    found, trained = least_loss(0.0, falling, np.ones_like)
    assert found == GRID[-1]
    assert sorted(trained) == GRID.tolist()


def test_where_each_try_is_one_more_chance_the_others_are_left_out() -> None:
    trained: list[float] = []

    def try_strengths(grid: Any) -> tuple[Any, Any, Any]:
        trained.extend(grid)
        return grid, falling(grid), np.ones_like(grid)

    models, number, tried = search.least_loss_of(0.0, GRID, try_strengths, all_of_them=False)
    assert models[number] == GRID[-1]
    assert sorted(trained) == [alpha for alpha, *_ in tried] == GRID[[0, *range(1, len(GRID), 3)]].tolist()
