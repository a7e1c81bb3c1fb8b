"""Full-batch descent, and the penalty it shares with the other solvers.

Weights are those of the standardised columns of a `Design`; Θ is (models, width).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError
from evenrank.notions import Pairs
from evenrank.progress import Progress, warn_interrupted
from evenrank.targets import FairnessTerm


@dataclass(frozen=True, eq=False)
class Term:
    """One notion's contrasts on the weights: c_j (J, width) with 0 for the intercept, and the pairs they compare."""

    rows: NDArray[np.float64]
    pairs: Pairs


class Penalised(Protocol):
    """What descent needs of a penalty: the shape of Θ, (models, width), and a subgradient there."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...


class Penalty:
    """α·Γ for models laid out notion by notion, each with every strength: weight of contrast j in model m."""

    def __init__(self, terms: Sequence[Term], alphas: NDArray[np.float64]) -> None:
        self.terms = terms
        self.alphas = alphas
        self.rows = np.concatenate([term.rows for term in terms])
        self.weight = np.zeros((len(terms) * len(alphas), len(self.rows)))
        self.shape = len(self.weight), self.rows.shape[1]
        self.parts: list[tuple[slice, slice]] = []
        start = 0
        for number, term in enumerate(terms):
            models = slice(number * len(alphas), (number + 1) * len(alphas))
            columns = slice(start, start + len(term.rows))
            self.weight[models, columns] = alphas[:, None] * term.pairs.weight
            self.parts.append((models, columns))
            start += len(term.rows)
        # Few contrasts: one product for all models. Many (one a query): a model meets only its own notion's.
        self.together = len(self.rows) <= 4 * len(terms) and all(term.pairs.across == "mean" for term in terms)

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of α·Γ in the weights, (models, width)."""
        if self.together:
            return np.asarray((np.sign(theta @ self.rows.T) * self.weight) @ self.rows)
        out = np.empty_like(theta)
        for term, (models, _) in zip(self.terms, self.parts, strict=True):
            slope = term.pairs.slope(term.rows @ theta[models].T)
            out[models] = self.alphas[:, None] * (slope.T @ term.rows)
        return out


class TargetPenalty:
    """α·Γ of another value of the rows than the score, whose slope has to go through the rows Z, (n, width)."""

    def __init__(self, Z: NDArray[np.float64], terms: Sequence[FairnessTerm], alphas: NDArray[np.float64]) -> None:
        self.Z, self.terms, self.alphas = Z, terms, alphas
        self.shape = len(terms) * len(alphas), Z.shape[1]

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of α·Γ in the weights, (models, width)."""
        out = np.zeros_like(theta)
        penalised = self.alphas > 0
        for number, term in enumerate(self.terms):
            models = number * len(self.alphas) + np.flatnonzero(penalised)
            slope = term.gradient(self.Z @ theta[models].T) * self.alphas[penalised]
            out[models] = slope.T @ self.Z
        return out


def descend(
    loss_gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    penalty: Penalised,
    ridge: NDArray[np.float64],
    *,
    learning_rate: float,
    steps: int,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], int]:
    """Full-batch (sub)gradient descent from 0: Θ and the steps taken, fewer than asked if interrupted."""
    theta = np.zeros(penalty.shape)
    taken = 0
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            for taken in range(1, steps + 1):
                gradient = loss_gradient(theta) + 2 * ridge * theta + penalty.subgradient(theta)
                theta -= learning_rate * gradient
                if progress is not None and (taken % 50 == 0 or taken == steps):
                    progress(taken / steps)
    except KeyboardInterrupt:
        warn_interrupted(taken, steps, "steps")
    if not np.isfinite(theta).all():
        raise ConfigError(
            f"gradient descent diverged with learning_rate={learning_rate:g}. Lower it, or keep scale='train'."
        )
    return theta, taken
