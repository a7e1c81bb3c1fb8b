"""Gaps of running means over batches, for `FairnessLoss` with momentum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast, Pairs
from evenrank.errors import ConfigError


class Memory:
    """Sums of weights and of values in each (stratum, group) cell, in which earlier batches weigh less and less.

    Parameters
    ----------
    momentum : float
        The weight of earlier batches against the current one.
    """

    def __init__(self, momentum: float) -> None:
        self.momentum = momentum
        self.weight: NDArray[np.float64] = np.zeros((0, 1, 0))
        self.total: NDArray[Any] | None = None

    @property
    def groups(self) -> int:
        """The number of groups in the batches so far."""
        return int(self.weight.shape[2])

    def add(self, weight: NDArray[Any]) -> None:
        """Count a batch's rows, with room for new groups.

        Parameters
        ----------
        weight : ndarray
            The weight of each cell, (strata, 1, groups).
        """
        if self.total is not None and self.groups < weight.shape[2]:
            more = [(0, 0), (0, 0), (0, weight.shape[2] - self.groups)]
            tables = self.total.reshape(*self.weight.shape, -1)
            models = self.total.shape[1:]
            self.total = np.pad(tables, [*more, (0, 0)]).reshape(-1, *models)
            self.weight = np.pad(self.weight, more)
        self.weight = self.momentum * self.weight + weight if self.total is not None else weight

    def means(self, means: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        """Give the running means of the cells, this batch included.

        Parameters
        ----------
        means : ndarray
            The batch's means, (cells,) or (cells, models).
        weight : ndarray
            The weight of each cell in the batch.

        Returns
        -------
        ndarray
            The shape of ``means``.
        """
        column = (-1,) if means.ndim == 1 else (-1, 1)
        new = means * weight.reshape(column)
        if self.total is not None and self.total.shape != new.shape:
            raise ConfigError("the number of models changed from one batch to the next. Call reset() in between.")
        self.total = new if self.total is None else self.momentum * self.total + new
        return np.asarray(self.total / np.maximum(self.weight, np.finfo(float).tiny).reshape(column))


class Averaged(Contrast):
    """A batch's contrast that compares running means; slopes go to the rows of the batch as without momentum."""

    def __init__(self, batch: Contrast, memory: Memory) -> None:
        memory.add(batch.cell_weight)
        self.batch, self.cell_weight, self.memory = batch, batch.cell_weight, memory
        self.pairs = Pairs.of(memory.weight, across=batch.pairs.across)

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the running means of the cells, (cells,) or (cells, models), with these values (n,) or (n, models)."""
        return self.memory.means(self.batch.means(values), self.cell_weight)

    def _on_rows(self, on_cells: NDArray[Any]) -> NDArray[Any]:
        return self.batch._on_rows(on_cells)

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        means = self.means(values)  # once: each call counts as a batch
        return np.asarray(means[self.pairs.a] - means[self.pairs.b])
