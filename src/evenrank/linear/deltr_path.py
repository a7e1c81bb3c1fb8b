"""`deltr_path`: DELTR for every strength at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose, floats_or_none, found
from evenrank.data import RankingData
from evenrank.design_columns import group_shares
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.linear import lbfgs
from evenrank.linear.exposure_objective import ExposureObjective, descend, descend_halving
from evenrank.linear.path import FairnessPath
from evenrank.rankers.matching import protected_code
from evenrank.row_checks import unmasked

WEIGHTINGS = ("queries", "rows")
SOLVERS = ("lbfgs", "gd")
LARGEST_GAMMA = 1e9


def initial_weights(init: ArrayLike | None, d: int) -> NDArray[np.float64]:
    """Check the first weights.

    Parameters
    ----------
    init : array-like, optional
        The weights, (d,); None is 0.
    d : int
        The number of features.

    Returns
    -------
    ndarray
        The weights, (d,).
    """
    if init is None:
        return np.zeros(d)
    init = unmasked(init, "init")
    try:
        weights = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        weights = np.full(0, np.nan)
    if weights.shape != (d,) or not np.isfinite(weights).all():
        raise ConfigError(f"init must be {d} finite numbers, one weight per feature; got {init!r}.")
    return weights


def deltr_path(
    train: RankingData,
    gammas: ArrayLike,
    *,
    protected: Any = None,
    weighting: str = "queries",
    solver: str = "lbfgs",
    group_aware: bool = False,
    max_iter: int | None = None,
    learning_rate: float = 0.001,
    standardize: bool = True,
    init: ArrayLike | None = None,
    tolerance: float = 1e-8,
    progress: Callable[[float], None] | None = None,
) -> tuple[FairnessPath, NDArray[np.float64]]:
    """Train DELTR for every γ at once.

    Parameters
    ----------
    train : RankingData
        The rows.
    gammas : array-like
        The strengths, (models,).
    standardize : bool
        Standardise the features. That changes the steps of gd, but no minimiser.
    init : array-like, optional
        The first weights, (d,), in the features' own units; None is 0.
    tolerance : float
        A model of lbfgs has converged when its largest gradient entry is below this.
    progress : Callable, optional
        Called with the fraction done.
    protected, weighting, solver, group_aware, max_iter, learning_rate
        See `DELTR`.

    Returns
    -------
    tuple of FairnessPath and ndarray
        The models, whose ``alphas`` are the γ, and their losses, (models,).
    """
    strengths = np.atleast_1d(floats_or_none(unmasked(gammas, "gammas")))
    if strengths.ndim != 1 or not (np.isfinite(strengths) & (strengths >= 0)).all():
        raise ConfigError(f"gammas must be finite numbers ≥ 0; got {found(gammas)}.")
    choose(weighting, WEIGHTINGS, what="weighting")
    choose(solver, SOLVERS, what="solver")
    check_number(learning_rate, "learning_rate", above=0)
    if max_iter is not None:
        check_number(max_iter, "max_iter", least=1, whole=True)
    train.need_numbers("DELTR")
    if train.n_features == 0:
        raise DataError("training needs at least one feature; the data has none.")
    code = protected_code(train, protected) if strengths.any() or group_aware else -2
    X = np.asarray(train.features, dtype=float)
    shares = group_shares(train)
    if group_aware:
        X = np.hstack([X, np.append(np.arange(train.n_groups) == code, shares[code])[train.group][:, None]])
    # Weights here too: a row of weight 2 takes the same way to the minimum as two rows.
    center = np.average(X, axis=0, weights=train.sample_weight)
    spread = np.sqrt(np.average((X - center) ** 2, axis=0, weights=train.sample_weight))
    spread = np.where(spread > 1e-12 * np.abs(center), spread, 1.0)
    if not standardize:
        center, spread = np.zeros_like(center), np.ones_like(spread)
    if strengths.max() > LARGEST_GAMMA:
        warnings.warn(
            f"gamma above {LARGEST_GAMMA:g} trains as {LARGEST_GAMMA:g}: beyond it the exposure term leaves "
            "the loss no digits",
            DataWarning,
            stacklevel=2,
        )
    used = np.minimum(strengths, LARGEST_GAMMA)
    objective = ExposureObjective((X - center) / spread, train, used, code, weighting=weighting)
    start = np.tile(initial_weights(init, X.shape[1]) * spread, (len(strengths), 1))
    steps = 3000 if max_iter is None else max_iter
    if solver == "gd":
        theta, curve = descend(objective, start, learning_rate=learning_rate, max_iter=steps, progress=progress)
        with np.errstate(over="ignore", invalid="ignore"):
            value = objective(theta, np.arange(len(theta)))[0]
        lost = np.flatnonzero(~(value <= curve[0]))
        if len(lost):
            warnings.warn(
                f"gd diverged with learning_rate={learning_rate:g} at {len(lost)} of {len(strengths)} strengths (from "
                f"gamma={strengths[lost].min():g} on); these were trained again in steps halved until they lead "
                "downhill. Lower learning_rate, or use solver='lbfgs'",
                DataWarning,
                stacklevel=2,
            )
            theta[lost] = descend_halving(objective, lost, start[lost], learning_rate=learning_rate, max_iter=steps)
            value = objective(theta, np.arange(len(theta)))[0]
    else:
        theta, value, converged = lbfgs.minimise(
            objective, start, max_iter=steps, tolerance=tolerance, progress=progress
        )
        if not converged.all():
            warnings.warn(
                f"DELTR did not converge in {steps} iterations at {(~converged).sum()} strengths", stacklevel=2
            )
    coef = theta / spread
    if not np.isfinite(coef).all():
        raise DataError("DELTR gave weights that are not finite: features are too large. Rescale them.")
    d = train.n_features
    path = FairnessPath(
        coef=coef[:, :d],
        intercept=np.zeros(len(strengths)),
        alphas=strengths,
        notions=("disparate_exposure",) * len(strengths),
        feature_names=train.feature_names,
        group_names=train.group_names,
        residual=np.full(len(strengths), np.nan),
        group_offset=coef[:, d:] * (np.arange(train.n_groups) == code) if group_aware else None,
        shares=shares if group_aware else None,
        steps=steps,
    )
    return path, value
