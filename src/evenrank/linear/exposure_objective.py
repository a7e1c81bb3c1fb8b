"""DELTR's objective: ListNet's loss and the squared difference of exposures, of many models at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evenrank.data import RankingData

SAFE = 300.0  # scores up to this have exponentials whose sums and quotients keep all digits


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
        self.by_query = csr_array((np.ones(data.n_rows), np.arange(data.n_rows), data.query_ptr))  # sums by query
        self.target = self._softmax(data.relevance[:, None])[0]
        n_rows = np.count_nonzero(rows * live[query])
        self.log_rows = np.log(n_rows) if n_rows > 1 else 1.0
        each = np.add.reduceat(rows, self.starts) if weighting == "rows" else np.full(data.n_queries, 1 / live.sum())
        self.weight = (each * live)[:, None]
        self.weight_of_row = self._by_row(self.weight)
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
        if reference:
            self.side = (is_other / np.log(2) - is_protected / np.log(2))[:, None]
            self.sums_of_rows = X.sum(axis=1)[:, None]

    def __call__(
        self, theta: NDArray[np.float64], models: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (models,) and gradients (models, d)."""
        gamma = self.gammas[models]
        chance, log_chance = self._softmax(self.X @ theta.T)
        value = -(self.by_query @ (self.target * log_chance)) / self.log_rows
        pull = (chance - self.target) * (self.weight_of_row / self.log_rows)
        published: Any = 0.0
        if gamma.any():
            gap = self.by_query @ (self.contrast * chance)
            unfair = np.maximum(gap, 0)
            value += gamma * unfair**2
            step = self._by_row(2 * self.weight * gamma * unfair)
            if self.reference:
                # The published gradient, wrong twice: its first term lacks 1/n_g, its second sums over features.
                pull += step * (self.side * chance)
                sums = self.by_query @ (chance * self.sums_of_rows)
                published = (2 * self.weight * gamma * unfair * gap * sums).sum(axis=0)[:, None]
            else:
                pull += step * chance * (self.contrast - self._by_row(gap))
        return (self.weight * value).sum(axis=0), pull.T @ self.X - published

    def _by_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of queries, (q, models), for each of their rows."""
        return np.repeat(values, self.lengths, axis=0)

    def _softmax(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Softmax within queries, each row counting with its weight, (n, 1), and the logarithm of a single row's."""
        weight, shifted = self.row_weight, scores
        if not np.abs(scores).max(initial=0.0) <= SAFE:  # NaN too
            counted = scores if weight is None else np.where(weight > 0, scores, -np.inf)
            shifted = scores - self._by_row(np.maximum.reduceat(counted, self.starts, axis=0))
        power = np.exp(shifted) if weight is None else weight * np.exp(np.minimum(shifted, SAFE))
        total = self.by_query @ power
        return power / self._by_row(total), shifted - self._by_row(np.log(total))


def _row_weights(data: RankingData) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Weights of mean 1 over the rows that have any, (n,), and which queries have any, (q,); others keep ones."""
    if data.sample_weight is None:
        return np.ones(data.n_rows), np.ones(data.n_queries, bool)
    live = np.add.reduceat(data.sample_weight, data.query_ptr[:-1]) > 0
    scaled = data.sample_weight / data.sample_weight[data.sample_weight > 0].mean()
    return np.where(live[data.query_of_row], scaled, 1.0), live


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
