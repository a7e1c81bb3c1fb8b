"""L-BFGS for many smooth problems of one shape at once: each row of Θ is a problem of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Objective = Callable[[NDArray[np.float64], NDArray[np.int64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
MEMORY = 12
HALVINGS = 40


def minimise(
    objective: Objective,
    start: NDArray[np.float64],
    *,
    max_iter: int,
    tolerance: float = 1e-8,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Minimise many problems by L-BFGS.

    Parameters
    ----------
    objective : Callable
        ``objective(theta, models)`` gives values and gradients of the given models at the rows of ``theta``.
    start : ndarray
        Where each model begins, (models, d).
    max_iter : int
        The most iterations.
    tolerance : float
        A model has converged when its largest gradient entry is below this, or when no step lowers its value.
    progress : Callable, optional
        Called with the fraction done.

    Returns
    -------
    tuple of ndarray
        Minimisers (models, d), their values (models,), and which converged (models,).
    """
    theta = start.astype(float)
    models = np.arange(len(theta))
    value, slope = objective(theta, models)
    converged = np.abs(slope).max(axis=1, initial=0) <= tolerance
    moves = np.zeros((0, *theta.shape))
    changes = np.zeros((0, *theta.shape))
    for iteration in range(max_iter):
        todo = models[~converged]
        if len(todo) == 0:
            break
        direction = -_two_loops(slope[todo], moves[:, todo], changes[:, todo])
        descent = (direction * slope[todo]).sum(axis=1)
        uphill = descent >= 0
        direction[uphill] = -slope[todo][uphill]
        descent[uphill] = -(slope[todo][uphill] ** 2).sum(axis=1)
        length = np.ones(len(todo))
        if len(moves) == 0:
            length = np.minimum(1.0, 1 / np.maximum(np.abs(slope[todo]).sum(axis=1), 1e-300))
        new_theta, new_value, new_slope = theta[todo], value[todo].copy(), slope[todo].copy()
        searching = np.arange(len(todo))
        for _ in range(HALVINGS):
            trial = theta[todo[searching]] + length[searching, None] * direction[searching]
            trial_value, trial_slope = objective(trial, todo[searching])
            enough = trial_value <= value[todo[searching]] + 1e-4 * length[searching] * descent[searching]
            accepted = searching[enough]
            new_theta[accepted], new_value[accepted] = trial[enough], trial_value[enough]
            new_slope[accepted] = trial_slope[enough]
            searching = searching[~enough]
            if len(searching) == 0:
                break
            length[searching] /= 2
        move, change = np.zeros_like(theta), np.zeros_like(theta)
        move[todo], change[todo] = new_theta - theta[todo], new_slope - slope[todo]
        theta[todo], value[todo], slope[todo] = new_theta, new_value, new_slope
        moves = np.concatenate([moves, move[None]])[-MEMORY:]
        changes = np.concatenate([changes, change[None]])[-MEMORY:]
        # A model for which no step is lower is as close as rounding allows.
        converged[todo[searching]] = True
        converged[todo] |= np.abs(new_slope).max(axis=1) <= tolerance
        if progress is not None:
            progress(max(converged.mean(), (iteration + 1) / max_iter))
    return theta, value, converged


def _two_loops(
    slope: NDArray[np.float64], moves: NDArray[np.float64], changes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The approximate inverse Hessian applied to the gradients; pairs without positive curvature are passed over."""
    curvature = (moves * changes).sum(axis=2)
    usable = curvature > 1e-10 * (changes**2).sum(axis=2)
    weight = np.where(usable, 1 / np.where(usable, curvature, 1), 0.0)
    result = slope.copy()
    along = np.zeros(curvature.shape)
    for i in range(len(moves) - 1, -1, -1):
        along[i] = weight[i] * (moves[i] * result).sum(axis=1)
        result -= along[i][:, None] * changes[i]
    if len(moves):
        size = (changes**2).sum(axis=2)
        last = np.where(usable, np.arange(len(moves))[:, None], -1).max(axis=0)
        each = np.arange(slope.shape[0])
        scale = np.where(last >= 0, curvature[last, each] / np.where(size[last, each] > 0, size[last, each], 1), 1.0)
        result *= scale[:, None]
    for i in range(len(moves)):
        back = weight[i] * (changes[i] * result).sum(axis=1)
        result += (along[i] - back)[:, None] * moves[i]
    return result
