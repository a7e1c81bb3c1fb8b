"""`SeenGaps`: the gaps of all training rows, of which a batch shows a few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import TINY, Contrast


class SeenGaps:
    """Gaps of all rows at the values that they had when they were last in a batch.

    A batch has a handful of rows of a small group, and the sign of its gap is then chance. The last values are an epoch
    old at most.

    Parameters
    ----------
    contrast : Contrast
        The gaps, over all training rows.
    models : int
        The number of models.
    momentum : float, optional
        With it, gaps are those of running means in which earlier batches weigh so much against the current one.
    """

    def __init__(self, contrast: Contrast, models: int, momentum: float | None = None) -> None:
        self.pairs, self.momentum = contrast.pairs, momentum
        self._share = contrast.cells.T.tocsr()  # (n, cells): the part that each row has in its cells' means
        self._weight = np.zeros((contrast.cells.shape[0], 1))
        self._total = np.zeros((contrast.cells.shape[0], models))

    def take(
        self, rows: NDArray[Any], values: NDArray[Any], last: NDArray[Any], new: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Take in a batch.

        Parameters
        ----------
        rows : ndarray
            The numbers of its rows, (b,).
        values, last : ndarray
            Their values now and when they were last seen (0 if never), (b, models).
        new : ndarray
            Whether they are seen for the first time, (b,).

        Returns
        -------
        ndarray
            The gaps, (J, models); 0 where a group has not been seen.
        """
        self._batch = self._share[rows]
        if self.momentum is None:
            self._weight += self._sums(new[:, None])
            self._total += self._sums(values - last)
        else:
            self._weight = self.momentum * self._weight + self._sums(np.ones((len(rows), 1)))
            self._total = self.momentum * self._total + self._sums(values)
        means, a, b = self._total / np.maximum(self._weight, TINY), self.pairs.a, self.pairs.b
        both = (self._weight[a] > 0) & (self._weight[b] > 0)
        return np.asarray(np.where(both, means[a] - means[b], 0.0))

    def pull_back(self, slope: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a slope in the gaps, (J, models), into one in the values of the last batch, (b, models)."""
        on_cells = np.zeros_like(self._total)
        np.add.at(on_cells, self.pairs.a, slope)
        np.subtract.at(on_cells, self.pairs.b, slope)
        return np.asarray(self._batch @ on_cells)

    def _sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self._batch.T @ values.astype(np.float64))


class QueryGaps:
    """Gaps within queries: those of a batch are its own queries', so nothing is remembered.

    Parameters
    ----------
    cells : Cells
        Of all training rows.
    query : ndarray
        The number of each row's query, (n,).
    """

    def __init__(self, cells: Any, query: NDArray[np.int64]) -> None:
        self._cells, self._query = cells, query

    def take(self, rows: NDArray[Any], values: NDArray[Any], *_: Any) -> NDArray[np.float64]:
        """Take in a batch, as `SeenGaps.take` does."""
        queries, unit = np.unique(self._query[rows], return_inverse=True)
        self._contrast = self._cells.contrast(rows, unit, len(queries))
        self.pairs = self._contrast.pairs
        return np.asarray(self._contrast.gaps(values))

    def pull_back(self, slope: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a slope in the gaps into one in the values, as `SeenGaps.pull_back` does."""
        return np.asarray(self._contrast.pull_back(slope))
