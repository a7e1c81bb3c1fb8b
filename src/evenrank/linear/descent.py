"""Full-batch descent, and the penalty it shares with the other solvers.

Weights are those of the standardised columns of a `Design`; Θ is (models, width).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.errors import ConfigError, DataWarning
from evenrank.progress import Progress, warn_interrupted
from evenrank.targets import FairnessTerm

LAST = 4  # Θ looked at to see whether descent diverged


@dataclass(frozen=True, eq=False)
class Term:
    """One notion's contrasts on the weights: c_j (J, width) with 0 for the intercept, and the pairs they compare."""

    rows: NDArray[np.float64]
    pairs: Pairs


class Penalised(Protocol):
    """What descent needs of a penalty α·Γ: the shape of Θ, (models, width), the strengths, Γ and a subgradient."""

    alphas: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]: ...

    def gamma(self, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...

    def at(self, alphas: NDArray[np.float64]) -> Penalised: ...


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
        # Few contrasts: one product for all models. Many (one per query): a model meets only its own notion's.
        self.together = len(self.rows) <= 4 * len(terms) and all(term.pairs.across == "mean" for term in terms)

    def at(self, alphas: NDArray[np.float64]) -> Penalty:
        """Give the same penalty with other strengths, (strengths,)."""
        return Penalty(self.terms, alphas)

    def gamma(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute Γ of weights (models, width), (models,)."""
        out = np.empty(len(theta))
        for term, (models, _) in zip(self.terms, self.parts, strict=True):
            out[models] = term.pairs.value(term.rows @ theta[models].T)
        return out

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute a subgradient of α·Γ in the weights, (models, width)."""
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

    def at(self, alphas: NDArray[np.float64]) -> TargetPenalty:
        """Give the same penalty with other strengths, (strengths,)."""
        return TargetPenalty(self.Z, self.terms, alphas)

    def gamma(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute Γ of weights (models, width), (models,)."""
        parts = np.split(theta, len(self.terms))
        return np.concatenate([term.value(self.Z @ part.T) for term, part in zip(self.terms, parts, strict=True)])

    def subgradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute a subgradient of α·Γ in the weights, (models, width)."""
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
    capped: bool = False,
    progress: Progress | None = None,
) -> tuple[list[NDArray[np.float64]], int]:
    """Descend from 0 by full-batch (sub)gradients; gives the last few Θ and the number of steps taken.

    An interrupt ends it early. With ``capped`` the penalty's part of a step ends where Γ would be 0 (`capped_step`),
    whatever the strength. What jumps to and fro passes 0 now and then, so that divergence shows in several Θ only.
    """
    theta = np.zeros(penalty.shape)
    strengths = np.tile(penalty.alphas, len(theta) // len(penalty.alphas))
    unit = penalty.at(np.ones_like(penalty.alphas)) if capped else penalty
    taken = 0
    last = [theta]
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            for taken in range(1, steps + 1):
                gradient = loss_gradient(theta) + 2 * ridge * theta
                if capped:
                    slope = unit.subgradient(theta)
                    length = capped_step(unit.gamma(theta), (slope**2).sum(axis=1), learning_rate * strengths)
                    theta = theta - (learning_rate * gradient + length[:, None] * slope)
                else:
                    theta = theta - learning_rate * (gradient + penalty.subgradient(theta))
                last = [*last[-LAST + 1 :], theta]
                if progress is not None and (taken % 50 == 0 or taken == steps):
                    progress(taken / steps)
    except KeyboardInterrupt:
        warn_interrupted(taken, steps, "steps")
    return last, taken


def capped_step(
    gamma: NDArray[np.float64], square: NDArray[np.float64], length: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute how far to go down Γ: ``length``, but not past the point where Γ, followed along its slope, is 0.

    ``square`` is the slope's squared norm. Such a step never takes Θ further from where Γ vanishes.
    """
    with np.errstate(over="ignore"):
        return np.minimum(length, gamma / np.where(square > 0, square, 1))


def beyond(paper: float, learning_rate: float, alphas: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which strengths take longer steps of the penalty than the paper's longest, (models,).

    Up to there the plain steps stay, with the gap that they leave: the paper's numbers are made with them.
    """
    return learning_rate * alphas > paper * (1 + 1e-9)


def diverged(start: float, rise: NDArray[np.float64], penalty: NDArray[np.float64] | float = 0.0) -> NDArray[np.bool_]:
    """Tell which models are worse, by their own objective, than the model that gives every row the score 0, (models,).

    That is where descent begins: its loss is ``start`` and its Γ is 0. ``rise`` is how far the loss with its ridge
    is above ``start``, and ``penalty`` is α·Γ.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return ~(rise + penalty <= 1e-9 * start)


class Diverged(DataWarning):
    """Says that descent diverged at some strengths.

    Attributes
    ----------
    alphas : ndarray
        These strengths.
    """

    def __init__(self, message: str, alphas: NDArray[np.float64]) -> None:
        super().__init__(message)
        self.alphas = alphas


def warn_diverged(solver: str, lost: NDArray[np.bool_], alphas: NDArray[np.float64], learning_rate: float) -> None:
    """Say which strengths were trained again with shorter steps."""
    message = (
        f"{solver} diverged with learning_rate={learning_rate:g} at {lost.sum()} of {len(lost)} strengths (from "
        f"alpha={alphas[lost].min():g} on); these were trained again in the longest steps that are stable. "
        "Lower learning_rate, or use solver='exact'"
    )
    warnings.warn(Diverged(message, alphas[lost]), stacklevel=4)


def still_diverged(solver: str, learning_rate: float) -> ConfigError:
    """Make the error for models that diverge in the shorter steps too."""
    return ConfigError(f"{solver} diverged with learning_rate={learning_rate:g}. Lower it, or keep scale='train'.")
