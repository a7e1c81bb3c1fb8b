"""`weakest_within`: the weakest strength whose top-k violation is at most a given one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_k, check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.measures import measure
from evenrank.notions import NOTIONS, NotionLike, as_notion

REFINED = 8  # strengths tried between two neighbours, twice


def weakest_within(
    limit: Any,
    notion: NotionLike,
    k: int,
    data: RankingData,
    strengths: NDArray[np.float64],
    try_strengths: Callable[[NDArray[np.float64]], tuple[Any, NDArray[np.float64]]],
    *,
    across: str = "mean",
) -> tuple[Any, int, float]:
    """The weakest strength whose top-k violation on ``data`` is at most ``limit``: models, which one, its violation.

    ``try_strengths`` trains models for ascending strengths and gives them with their scores, (n, strengths), in the
    caller's row order. The gap between the weakest that will do and the one before is searched twice more.
    """
    check_number(limit, "max_violation", least=0)
    check_k(k)
    asked = as_notion(notion)
    if asked.name not in NOTIONS:
        raise ConfigError(f"max_violation is for {', '.join(NOTIONS)}; set alpha for the notion {asked.name!r}.")
    name = f"{asked.alias}@{k}"

    def tried(grid: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        models, scores = try_strengths(grid)
        return models, np.asarray(measure(scores, data, [name], across=across)[name])

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
        return models, best, float(violation[best])
    at = int(within[0])
    found = models, at, float(violation[at])
    if at == 0:
        return found
    low, high = strengths[at - 1], strengths[at]
    for _ in range(2):
        grid = np.linspace(low, high, REFINED + 2)[1:-1]
        models, violation = tried(grid)
        within = np.flatnonzero(violation <= limit)
        if len(within):
            at = int(within[0])
            found = models, at, float(violation[at])
            low, high = grid[at - 1] if at else low, grid[at]
        else:
            low = grid[-1]
    return found
