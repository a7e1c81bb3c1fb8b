"""`Contrast`: the means of any value over (stratum, group) cells, and their differences between groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.rounding import beyond_rounding, rounding

ACROSS = ("mean", "max")
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which cells are compared, and with what weight.

    Cells are numbered block · G + group; a block is a stratum (of a query, in the per-query scope).

    Attributes
    ----------
    a, b : ndarray
        The two cells of each pair, (J,).
    weight : ndarray
        The weight of each pair, (J,).
    block : ndarray
        The block of each pair, (J,).
    across : str
        "mean" or "max" over the pairs of a block.
    missing : tuple of int
        Strata that have no pair.
    share : float
        The share of blocks that have a pair.
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    weight: NDArray[np.float64]
    block: NDArray[np.int64]
    across: str
    missing: tuple[int, ...]
    share: float

    @classmethod
    def of(cls, cell_weight: NDArray[Any], *, across: str = "mean", training: bool = True) -> Pairs:
        """Compare all groups present in each block of a (strata, units, groups) table of cell weights.

        Pairs with an empty cell are dropped and the block's weight is spread over the rest.

        Parameters
        ----------
        cell_weight : ndarray
            (strata, units, groups); units are the queries in the per-query scope, and one otherwise.
        across : str
            "mean" or "max" over the pairs of a block.
        training : bool
            Average over all units; a measure averages over those that have a pair.

        Returns
        -------
        Pairs
            The pairs.
        """
        choose(across, ACROSS, what="across")
        strata, units, groups = cell_weight.shape
        lower, higher = np.triu_indices(groups, 1)
        present = cell_weight.reshape(-1, groups) > 0
        exists = present[:, lower] & present[:, higher]
        block, pair = np.nonzero(exists)
        usable = exists.any(axis=1).reshape(strata, units)
        denominator = np.full(strata, units) if training else np.maximum(usable.sum(axis=1), 1)
        block_weight = np.repeat(1 / (strata * denominator), units)
        weight = block_weight[block] / (exists.sum(axis=1)[block] if across == "mean" else 1)
        missing = np.flatnonzero(~usable.any(axis=1))
        return cls(
            a=block * groups + lower[pair],
            b=block * groups + higher[pair],
            weight=weight,
            block=block,
            across=across,
            missing=tuple(missing.tolist()),
            share=float(usable.mean()),
        )

    def value(self, gaps: NDArray[Any]) -> NDArray[Any]:
        """Give Γ of signed gaps.

        Parameters
        ----------
        gaps : ndarray
            Signed gaps, (J,) or (J, models).

        Returns
        -------
        ndarray
            Γ: a 0-d array, or (models,).
        """
        size = np.abs(gaps)
        if self.across == "max" and len(self.block):
            starts = np.flatnonzero(np.diff(self.block, prepend=-1))
            return np.asarray(self.weight[starts] @ np.maximum.reduceat(size, starts, axis=0))
        return np.asarray(self.weight @ size)

    def slope(self, gaps: NDArray[Any]) -> NDArray[Any]:
        """Give dΓ/dgap; sign(0) = 0, and a tied maximum shares its weight.

        Parameters
        ----------
        gaps
            As for `value`.

        Returns
        -------
        ndarray
            The slope, in the shape of ``gaps``.
        """
        weight = self.weight if gaps.ndim == 1 else self.weight[:, None]
        slope = np.sign(gaps) * weight.astype(gaps.dtype, copy=False)
        if self.across == "max" and len(self.block):
            size = np.abs(gaps)
            starts = np.flatnonzero(np.diff(self.block, prepend=-1))
            number = np.cumsum(np.diff(self.block, prepend=-1) > 0) - 1
            largest = size == np.maximum.reduceat(size, starts, axis=0)[number]
            slope = slope * largest / np.add.reduceat(largest, starts, axis=0, dtype=gaps.dtype)[number]
        return np.asarray(slope)


@lru_cache(maxsize=256)
def pairs_of(shape: tuple[int, int, int], present: tuple[bool, ...], across: str) -> Pairs:
    """Give the pairs of a table of cells in training, which depend on nothing but which cells have rows."""
    return Pairs.of(np.array(present, float).reshape(shape), across=across)


class Contrast:
    """A notion bound to data, in stored row order.

    Attributes
    ----------
    cells : csr_array
        (cells, n); its product with v is the mean of v in each cell.
    cell_weight : ndarray
        (strata, units, groups).
    pairs : Pairs
        The compared cells and their weights.
    rounding : ndarray
        The rounding error of each cell's mean, as a share of its terms' size, (cells,).
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        cell: NDArray[np.int64],
        row_weight: NDArray[Any],
        n: int,
        shape: tuple[int, int, int],
        *,
        across: str = "mean",
        training: bool = True,
        dtype: Any = np.float64,
    ) -> None:
        from scipy.sparse import csr_array

        n_cells = shape[0] * shape[1] * shape[2]
        total = np.bincount(cell, row_weight, minlength=n_cells)
        # Short numbers are sorted by counting, which is much faster.
        order = np.argsort(cell.astype(np.int16) if n_cells < 1 << 15 else cell, kind="stable")
        counts = np.bincount(cell, minlength=n_cells)
        share = row_weight[order] / np.repeat(total, counts)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        self.cells = csr_array((share.astype(dtype), rows[order], bounds), shape=(n_cells, n))
        self._rows = self.cells.T  # a view of the same numbers, whose making takes as long as a product with it
        self.cell_weight, self.rounding = total.reshape(shape), rounding(counts, dtype).astype(dtype)
        self.pairs = Pairs.of(self.cell_weight, across=across, training=training)

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the mean of the values in each cell, 0 in an empty one.

        Parameters
        ----------
        values : ndarray
            (n,) or (n, models), in stored row order.

        Returns
        -------
        ndarray
            (cells,) or (cells, models).
        """
        return np.asarray(self.cells @ values)

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give C v: signed differences between the groups of each pair, 0 within rounding.

        Parameters
        ----------
        values
            As for `means`.

        Returns
        -------
        ndarray
            (J,) or (J, models).
        """
        means, a, b = self.means(values), self.pairs.a, self.pairs.b
        gaps: NDArray[Any] = means[a] - means[b]
        error = np.maximum(self.rounding[a], self.rounding[b]).reshape(-1, *(1,) * (gaps.ndim - 1))
        if gaps.size and (np.abs(gaps) <= error * np.abs(values).max(axis=0)).any():
            sizes = means if (values >= 0).all() else self.means(np.abs(values))
            gaps = beyond_rounding(gaps, error * np.maximum(sizes[a], sizes[b]))
        return gaps

    def violation(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give Γ(v), the weighted sum of the sizes of the gaps.

        Parameters
        ----------
        values : ndarray
            The values, as for `means`.

        Returns
        -------
        ndarray
            A 0-d array, or (models,).
        """
        return self.pairs.value(self.gaps(values))

    def gradient(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give Cᵀ sign(C v) w, a subgradient of Γ in the shape of ``values``."""
        return self.pull_back(self.pairs.slope(self.gaps(values)))

    def pull_back(self, slope: NDArray[Any]) -> NDArray[Any]:
        """Give Cᵀ u: turn a slope in the gaps into one in the values.

        Parameters
        ----------
        slope : ndarray
            (J,) or (J, models).

        Returns
        -------
        ndarray
            (n,) or (n, models).
        """
        on_cells = np.zeros((self.cell_weight.size, *slope.shape[1:]), slope.dtype)
        if len(self.pairs.a) == 1:
            on_cells[self.pairs.a], on_cells[self.pairs.b] = slope, -slope
        else:
            np.add.at(on_cells, self.pairs.a, slope)
            np.subtract.at(on_cells, self.pairs.b, slope)
        return self._on_rows(on_cells)

    def _on_rows(self, on_cells: NDArray[Any]) -> NDArray[Any]:
        """What a slope in the cells' means, (cells,) or (cells, models), is in the values."""
        return np.asarray(self._rows @ on_cells)


class PooledContrast(Contrast):
    """A contrast for training on rows that are in one cell at most, made anew for each batch: no table is built.

    Parameters
    ----------
    cell : ndarray
        The cell of each row, (n,); rows in no cell have the number of cells.
    row_weight : ndarray or None
        (n,); None is 1 everywhere.
    shape : tuple of int
        The numbers of strata and groups.
    across : str
        As in `Pairs.of`.
    """

    def __init__(
        self, cell: NDArray[Any], row_weight: NDArray[Any] | None, shape: tuple[int, int], *, across: str = "mean"
    ) -> None:
        self._cell, self._row_weight, self._n_cells = cell, row_weight, shape[0] * shape[1]
        self._counts = np.bincount(cell, minlength=self._n_cells + 1)[:-1]
        total: Any = self._counts.astype(np.float64) if row_weight is None else self._sums(np.ones(len(cell)))
        self._share = 1 / np.maximum(total, TINY)  # sums over no rows are 0, whatever they are multiplied by
        self.cell_weight = total.reshape(shape[0], 1, shape[1])
        self.pairs = pairs_of((shape[0], 1, shape[1]), tuple((total > 0).tolist()), across)

    def _sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of values, (n,) or (n, models), in each cell."""
        if values.ndim == 1:
            weighed = values if self._row_weight is None else values * self._row_weight
            return np.asarray(np.bincount(self._cell, weighed, minlength=self._n_cells + 1)[:-1], np.float64)
        from scipy.sparse import csc_array

        weight = np.ones(len(values)) if self._row_weight is None else self._row_weight
        columns = (weight, self._cell, np.arange(len(values) + 1))
        return np.asarray((csc_array(columns, shape=(self._n_cells + 1, len(values))) @ values)[:-1])

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        if len(self.pairs.a) == 1 == values.ndim:
            # A gap beyond the rounding of the largest value over all rows, as in most batches, needs no closer look.
            means = self.means(values)
            gap = means.item(self.pairs.a.item()) - means.item(self.pairs.b.item())
            largest = max(float(np.maximum.reduce(values)), -float(np.minimum.reduce(values)))
            if abs(gap) > float(rounding(len(values))) * largest:
                return np.array([gap])
        self.rounding = rounding(self._counts)
        return super().gaps(values)

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._sums(values) * self._share.reshape(-1, *(1,) * (values.ndim - 1)))

    def _on_rows(self, on_cells: NDArray[Any]) -> NDArray[Any]:
        column = (-1, *(1,) * (on_cells.ndim - 1))
        shares = np.zeros((self._n_cells + 1, *on_cells.shape[1:]))
        np.multiply(on_cells, self._share.reshape(column), out=shares[:-1])
        by_row = shares[self._cell]
        return by_row if self._row_weight is None else np.asarray(by_row * self._row_weight.reshape(column))
