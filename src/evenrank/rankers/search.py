"""Which strength ``max_violation`` takes: the weakest one within the limit, or the one that costs least."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.measures import measure
from evenrank.rankers.spec import FairnessSpec

REFINED = 8  # strengths tried between two neighbours, twice
COARSE = 3  # every third strength is tried first where each takes a training


def weakest_within(
    spec: FairnessSpec,
    data: RankingData,
    strengths: NDArray[np.float64],
    try_strengths: Callable[[NDArray[np.float64]], tuple[Any, NDArray[np.float64]]],
    *,
    across: str = "mean",
) -> tuple[Any, int]:
    """Find the weakest strength whose gap of the top k on ``data`` is at most ``spec.max_violation``.

    The interval between the weakest strength within the limit and the one before it is searched twice more.

    Parameters
    ----------
    spec : FairnessSpec
        The notion, k and limit.
    data : RankingData
        The training rows.
    strengths : ndarray
        Ascending strengths to try first.
    try_strengths : Callable
        Trains models for ascending strengths and gives them with their scores, (n, strengths), in the caller's order.
    across : str
        How more than two groups are combined.

    Returns
    -------
    tuple of Any and int
        The models of one call, and the number of the one to keep. If none is within the limit, the one with the lowest
        gap, with a `DataWarning`.
    """
    limit, name = spec.max_violation, spec.gap_name
    assert limit is not None

    def tried(grid: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        models, scores = try_strengths(grid)
        (violation,) = measure(scores, data, [spec.gap], across=across).values()
        return models, np.asarray(violation)

    models, violation = tried(strengths)
    if np.isnan(violation).all():
        raise ConfigError(f"max_violation needs {name}, which these rows do not define. Set alpha instead.")
    within = np.flatnonzero(violation <= limit)
    if not len(within):
        best = int(np.nanargmin(violation))
        _warn_of_lowest(spec, violation[best], strengths[best])
        return models, best
    at = int(within[0])
    weakest = models, at
    if at == 0:
        return weakest
    low, high = strengths[at - 1], strengths[at]
    for _ in range(2):
        grid = np.linspace(low, high, REFINED + 2)[1:-1]
        models, violation = tried(grid)
        within = np.flatnonzero(violation <= limit)
        if len(within):
            at = int(within[0])
            weakest = models, at
            low, high = grid[at - 1] if at else low, grid[at]
        else:
            low = grid[-1]
    return weakest


def least_loss_of(
    limit: float,
    strengths: NDArray[np.float64],
    try_strengths: Callable[[NDArray[np.float64]], tuple[Any, NDArray[np.float64], NDArray[np.float64]]],
    *,
    all_of_them: bool = True,
) -> tuple[Any, int, list[tuple[float, float, float]]]:
    """Find the strength within a limit at which quality is highest, for models that train for each strength.

    The first strength, 0, is kept if it is within the limit. Then every third one is tried, and those between the
    weakest within the limit and the one before it; all others only if none is within it.

    Parameters
    ----------
    limit : float
        The largest gap.
    strengths : ndarray
        Ascending strengths.
    try_strengths : Callable
        Trains models for ascending strengths and gives them with their gaps and qualities, (strengths,) each.
    all_of_them : bool
        Whether all others are tried if none is within the limit. Where the rows that judge stand for others, each one
        tried is one more chance to be within it by luck.

    Returns
    -------
    tuple
        The models of one call; the number of the one to keep, which has the smallest gap if none is within the limit;
        and the strengths that were tried, in rising order, each with its gap and quality.
    """
    tried: list[tuple[float, float, float, Any, int]] = []  # strength, gap, quality, models, number among them

    def some_within(grid: NDArray[np.float64]) -> bool:
        if len(grid):
            models, gaps, quality = try_strengths(grid)
            values = (np.asarray(each, float).tolist() for each in (grid, gaps, quality))
            tried.extend(zip(*values, len(grid) * [models], range(len(grid)), strict=True))
        return any(gap <= limit for _, gap, *_ in tried)

    if not some_within(strengths[:1]):
        last = len(strengths) - 1
        coarse = np.arange(last, 0, -COARSE)[::-1]
        if some_within(strengths[coarse]):
            weakest = min(alpha for alpha, gap, *_ in tried if gap <= limit)
            at = int(np.flatnonzero(strengths == weakest)[0])
            some_within(strengths[max(1, at - COARSE + 1) : at])
        elif all_of_them:
            some_within(np.delete(strengths, [0, *coarse]))
    within = [each for each in tried if each[1] <= limit]
    best = max(within, key=lambda each: (each[2], -each[0])) if within else min(tried, key=lambda each: each[1])
    return best[3], best[4], sorted(each[:3] for each in tried)


def _warn_of_lowest(spec: FairnessSpec, gap: float, alpha: float) -> None:
    warnings.warn(
        f"max_violation={spec.max_violation:g} was not reached: the lowest {spec.gap_name} on the training rows is "
        f"{gap:.4g}, at alpha={alpha:.4g}; that model is kept",
        DataWarning,
        stacklevel=5,
    )
