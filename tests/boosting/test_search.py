"""The strength that keeps a gap within a limit: found where any of the grid does, and at the least loss of quality."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import evenrank as er
from evenrank.boosting.search import BETWEEN, COARSE, Tried, least_loss_within


def trainer(
    gap: Callable[[float], float], quality: Callable[[float], float] = lambda alpha: -alpha
) -> Callable[[float], Tried]:
    return lambda alpha: Tried(alpha, gap(alpha), quality(alpha), None)


def test_strength_0_is_kept_where_it_is_within_the_limit() -> None:
    kept, tried = least_loss_within(0.05, trainer(lambda alpha: 0.05 + alpha))
    assert kept.alpha == 0
    assert len(tried) == 1


@pytest.mark.parametrize("needed", [0.005, 0.02, 0.25, 1.0, 3.0, 9.9])
def test_the_weakest_strength_is_found_closely_where_gaps_fall(needed: float) -> None:
    kept, tried = least_loss_within(0.05, trainer(lambda alpha: 0.0 if alpha >= needed else 0.1))
    assert needed <= kept.alpha <= max(2 * needed, COARSE[0])
    assert len(tried) <= 6 + (needed > COARSE[-2])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", [0.2, 0.5, 0.8])
def test_what_the_grid_can_reach_is_reached_however_the_gaps_jump(seed: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    gaps, values = (dict(zip((0.0, *COARSE), rng.random(len(COARSE) + 1), strict=True)) for _ in range(2))
    kept, tried = least_loss_within(
        limit, trainer(lambda alpha: gaps.get(alpha, 1.0), lambda alpha: values.get(alpha, 0.0))
    )
    assert len(tried) <= 10
    if min(gaps.values()) <= limit:
        assert kept.gap <= limit
        assert gaps[0.0] <= limit or kept.quality == max(model.quality for model in tried if model.gap <= limit)
    else:
        assert kept.gap == min(gaps.values())
        assert len(tried) == len(COARSE) + 1


@pytest.mark.parametrize(
    ("gaps", "quality", "trained"),
    [((0.3, 0.04, 0.0), 0.0, 2), ((0.3, 0.2, 0.1), 0.0, 3), ((0.3, 0.04, 0.03), -11.0, 3)],
)
def test_other_models_are_tried_only_where_no_strength_is_within_the_limit(
    gaps: tuple[float, ...], quality: float, trained: int
) -> None:
    # A strength of 10 has a quality of -10: what keeps less is too dear to stop at.
    others = [lambda gap=gap, at=at: Tried(5.0, gap, quality - at, None) for at, gap in enumerate(gaps)]
    kept, tried = least_loss_within(0.05, trainer(lambda alpha: 0.5), last=others)
    assert len(tried) == 1 + len(COARSE) + trained
    assert kept.gap == (0.04 if 0.04 in gaps else 0.1)
    cheap = trainer(lambda alpha: 0.0 if alpha > 1 else 0.5, lambda alpha: -0.001 * alpha)
    kept, tried = least_loss_within(0.05, cheap, last=others)
    assert all(model.alpha != 5.0 for model in tried)


def test_other_models_are_tried_beside_a_strength_that_is_dear() -> None:
    def train(alpha: float) -> Tried:
        return Tried(alpha, 0.0 if alpha > 1 else 0.5, 0.9 if alpha < 1 else 0.8, None)

    better, worse = (Tried(1.0, 0.01, quality, None) for quality in (0.85, 0.7))
    kept, _ = least_loss_within(0.05, train, last=[lambda: worse, lambda: better, lambda: pytest.fail("is enough")])
    assert kept is better
    kept, tried = least_loss_within(0.05, train, last=[lambda: worse])
    assert kept.quality == 0.8
    assert worse in tried


def test_the_rest_of_the_grid_is_tried_only_where_nothing_is_within_the_limit() -> None:
    gaps = {BETWEEN[3]: 0.01}
    train = trainer(lambda alpha: gaps.get(alpha, 0.5))
    kept, tried = least_loss_within(0.05, train, last=[lambda: train(0.2)], finally_=BETWEEN)
    assert kept.alpha == BETWEEN[3]
    assert len(tried) == 1 + len(COARSE) + 1 + 4
    _, tried = least_loss_within(0.05, train, last=[lambda: Tried(0.2, 0.0, -99.0, None)], finally_=BETWEEN)
    assert len(tried) == 1 + len(COARSE) + 1


def test_beside_the_strongest_what_bisection_left_out_is_tried() -> None:
    # Gaps jump: 1 keeps the limit as 10 does, and costs less; bisection went from 0.3 to 3 and on to 10.
    def gap(alpha: float) -> float:
        return 0.0 if alpha in (1.0, 10.0) else 0.5

    kept, _ = least_loss_within(0.05, trainer(gap))
    assert kept.alpha == 1
    cheap = Tried(1.0, 0.02, 1.0, "of another kind")
    kept, tried = least_loss_within(0.05, trainer(gap), last=[lambda: cheap, lambda: pytest.fail("one is enough")])
    assert kept is cheap
    assert len(tried) <= 9


def test_the_strengths_between_make_the_grid_whole() -> None:
    assert sorted([0.0, *COARSE, *BETWEEN]) == er.strength_grid().tolist()
