"""DELTR as its package 1.0.2 trains it, all strengths at once: its loss, gradient, steps, start and standardisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.linear.exposure_objective import ExposureObjective, descend

Floats = NDArray[np.float64]
STEPS = 3000
START = 0.01  # first weights are uniform below this


@dataclass(frozen=True)
class Scaling:
    """One mean and deviation for the whole matrix; the protected column is put back as it was.

    Attributes
    ----------
    mean, deviation : float
        Of all features together.
    column : int
        The protected flag.
    """

    mean: float
    deviation: float
    column: int

    @classmethod
    def of(cls, features: Floats, flag: NDArray[np.bool_]) -> Scaling:
        """Take them from the training rows, (n, d), one of whose columns is the protected flag, (n,)."""
        columns = np.flatnonzero((features == flag[:, None]).all(axis=0))
        if len(columns) != 1:
            raise DataError(
                f"with reference=True and standardize=True, X must have one column equal to the protected flag; "
                f"it has {len(columns)}."
            )
        return cls(float(features.mean()), float(features.std()), int(columns[0]))

    def scale(self, features: Floats) -> Floats:
        """Standardise rows, (n, d)."""
        out = (features - self.mean) / self.deviation
        out[:, self.column] = features[:, self.column]
        return out

    def in_own_units(self, weights: Floats) -> tuple[Floats, Floats]:
        """Give weights, (…, d), and intercepts, (…), for rows that are not standardised."""
        coef = weights / self.deviation
        coef[..., self.column] = 0.0
        intercept = -self.mean * coef.sum(axis=-1)
        coef[..., self.column] = weights[..., self.column]
        return coef, intercept


def first_weights(seed: int, d: int) -> Floats:
    """Draw the first weights of the package, (d,)."""
    return np.random.RandomState(seed).rand(d) * START


def train_published(
    data: RankingData,
    gammas: Floats,
    protected: int,
    start: Floats,
    scaling: Scaling | None,
    *,
    learning_rate: float,
    max_iter: int | None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Floats, Floats]:
    """Train a model for each strength.

    Parameters
    ----------
    data : RankingData
        The rows, one of whose features is the protected flag.
    gammas : ndarray
        The strengths, (models,).
    protected : int
        The code of the protected group.
    start : ndarray
        The first weights, (d,).
    scaling : Scaling, optional
        How features are standardised; None: not at all.
    learning_rate : float
        The length of a step.
    max_iter : int, optional
        The number of steps; None is 3000.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    weights, losses : ndarray
        (models, d), in the standardised space, and the losses before each step, (steps, models).
    """
    features = np.asarray(data.features, dtype=float)
    features = features if scaling is None else scaling.scale(features)
    objective = ExposureObjective(features, data, gammas, protected, weighting="rows", reference=True)
    return descend(
        objective,
        np.tile(start, (len(gammas), 1)),
        learning_rate=learning_rate,
        max_iter=STEPS if max_iter is None else max_iter,
        progress=progress,
    )
