"""`weakest_within`: the weakest strength whose gap of the top k is at most a given one."""

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
        warnings.warn(
            f"max_violation={limit:g} was not reached: the lowest {name} on the training rows is "
            f"{violation[best]:.4g}, at alpha={strengths[best]:.4g}; that model is kept",
            DataWarning,
            stacklevel=4,
        )
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
