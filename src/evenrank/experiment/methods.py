"""The methods a sweep can run, as data: what each is, its strength parameter and its default grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.rankers.path import fairness_path, strength_grid


@dataclass(frozen=True)
class Method:
    """``run(train, test, notions, strengths, solver)`` gives test scores (n, notions · strengths) and the strengths."""

    name: str
    title: str
    kind: str
    strength: str
    grid: Callable[[], NDArray[np.float64]]
    run: Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]


def _regularized(scope: str) -> Any:
    def run(
        train: RankingData, test: RankingData, notions: Sequence[str], strengths: NDArray[np.float64], solver: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        path = fairness_path(train, list(notions), strengths, solver, scope)
        return path.scores(test), path.alphas

    return run


METHODS = {
    method.name: method
    for method in (
        Method(
            "amortized",
            "fairness regularisation pooled over all queries",
            "in-processing",
            "alpha",
            strength_grid,
            _regularized("amortized"),
        ),
        Method(
            "per_query",
            "fairness regularisation within each query",
            "in-processing",
            "alpha",
            strength_grid,
            _regularized("per_query"),
        ),
    )
}
