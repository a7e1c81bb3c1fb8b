"""DELTR's objective: ListNet's loss and the squared difference of exposures, of many models at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData


class ExposureObjective:
    """The loss of all models and its gradient, over ragged queries without padding.

    Weights of rows, over their mean, are in both softmaxes and in the groups' mean exposures: a row of weight 2 counts
    as two of them, and one of weight 0 as none.
    """

    def __init__(
        self,
        X: NDArray[np.float64],
        data: RankingData,
        gammas: NDArray[np.float64],
        protected: int,
        *,
        weighting: str,
        reference: bool = False,
    ) -> None:
        self.X, self.gammas, self.reference = X, gammas, reference
        self.starts, self.lengths = data.query_ptr[:-1], data.lengths
        query = data.query_of_row
        rows, live = _row_weights(data)
        self.row_weight = None if data.sample_weight is None else rows[:, None]
        self.target = _softmax_pair(data.relevance[:, None], self.starts, self.lengths, self.row_weight)[0]
        n_rows = np.count_nonzero(rows * live[query])
        self.log_rows = np.log(n_rows) if n_rows > 1 else 1.0
        each = np.add.reduceat(rows, self.starts) if weighting == "rows" else np.full(data.n_queries, 1 / live.sum())
        self.weight = (each * live)[:, None]
        is_protected = data.group == protected
        is_other = (data.group != protected) & (data.group >= 0)
        counts = [np.add.reduceat(flag * rows, self.starts) for flag in (is_other, is_protected)]
        both = (counts[0] > 0) & (counts[1] > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [
                flag / (count * np.log(2))[query] for flag, count in zip((is_other, is_protected), counts, strict=True)
            ]
        contrast = shares[0] - shares[1]
        # The published package has no such guard: a query of one group makes its weights NaN.
        self.contrast = (contrast if reference else np.where(both[query], contrast, 0.0))[:, None]
        self.counts = counts
        self.members = (is_other, is_protected)

    def __call__(
        self, theta: NDArray[np.float64], models: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (models,) and gradients (models, d)."""
        gamma = self.gammas[models]
        scores = self.X @ theta.T
        chance, log_chance = _softmax_pair(scores, self.starts, self.lengths, self.row_weight)
        cross = -np.add.reduceat(self.target * log_chance, self.starts, axis=0) / self.log_rows
        pull = (chance - self.target) / self.log_rows
        value, published = cross, np.zeros_like(theta)
        if gamma.any():
            gap = np.add.reduceat(self.contrast * chance, self.starts, axis=0)
            unfair = np.maximum(gap, 0)
            value = cross + gamma * unfair**2
            if self.reference:
                published = self._published_exposure(chance, gamma * unfair)
            else:
                step = np.repeat(2 * gamma * unfair, self.lengths, axis=0)
                pull += step * chance * (self.contrast - np.repeat(gap, self.lengths, axis=0))
        slope = (np.repeat(self.weight, self.lengths, axis=0) * pull).T @ self.X
        return (self.weight * value).sum(axis=0), slope + published

    def _published_exposure(self, chance: NDArray[Any], strength: NDArray[Any]) -> NDArray[np.float64]:
        """The published exposure gradient, wrong twice: its first term lacks 1/n_g, its second sums over features."""
        everything = np.add.reduceat(chance * self.X.sum(axis=1)[:, None], self.starts, axis=0)
        total = np.zeros((chance.shape[1], self.X.shape[1]))
        for sign, member, count in zip((1.0, -1.0), self.members, self.counts, strict=True):
            group_chance = np.where(member[:, None], chance, 0.0)
            weight = 2 * self.weight * strength / np.log(2)
            first = (group_chance * np.repeat(weight, self.lengths, axis=0)).T @ self.X
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.add.reduceat(group_chance, self.starts, axis=0) / count[:, None]
            total += sign * (first - (weight * share * everything).sum(axis=0)[:, None])
        return total


def _row_weights(data: RankingData) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Weights of mean 1 over the rows that have any, (n,), and which queries have any, (q,); others keep ones."""
    if data.sample_weight is None:
        return np.ones(data.n_rows), np.ones(data.n_queries, bool)
    live = np.add.reduceat(data.sample_weight, data.query_ptr[:-1]) > 0
    scaled = data.sample_weight / data.sample_weight[data.sample_weight > 0].mean()
    return np.where(live[data.query_of_row], scaled, 1.0), live


def _softmax_pair(
    scores: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64], weight: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Softmax within queries, each row counting with its weight, (n, 1), and the logarithm of a single row's."""
    counted = scores if weight is None else np.where(weight > 0, scores, -np.inf)
    shifted = scores - np.repeat(np.maximum.reduceat(counted, starts, axis=0), lengths, axis=0)
    power = np.exp(shifted) if weight is None else weight * np.exp(np.minimum(shifted, 0.0))
    total = np.add.reduceat(power, starts, axis=0)
    return power / np.repeat(total, lengths, axis=0), shifted - np.repeat(np.log(total), lengths, axis=0)


def descend(
    objective: Callable[..., tuple[NDArray[Any], NDArray[Any]]],
    start: NDArray[np.float64],
    *,
    learning_rate: float,
    max_iter: int,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Descend by plain gradients; gives Θ, and the values before each step, (max_iter, models)."""
    theta, models = start.copy(), np.arange(len(start))
    curve = np.empty((max_iter, len(start)))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(max_iter):
            curve[step], slope = objective(theta, models)
            theta = theta - learning_rate * slope
            if progress is not None and step % 100 == 0:
                progress(step / max_iter)
    return theta, curve


def descend_halving(
    objective: Callable[..., tuple[NDArray[Any], NDArray[Any]]],
    models: NDArray[np.int64],
    start: NDArray[np.float64],
    *,
    learning_rate: float,
    max_iter: int,
) -> NDArray[np.float64]:
    """Descend with some models in steps of ``learning_rate``, halved while they lead uphill."""
    theta = start.copy()
    rate = np.full(len(models), learning_rate)
    value, slope = objective(theta, models)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            trial = theta - rate[:, None] * slope
            trial_value, trial_slope = objective(trial, models)
            lower = trial_value <= value
            theta[lower], value[lower], slope[lower] = trial[lower], trial_value[lower], trial_slope[lower]
            rate[~lower] /= 2
    return theta
