"""`CellRows`: the rows of a notion's cells, and what each query has of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.notions import Cells, NotionLike, warn_empty
from evenrank.query_sums import Weights


@dataclass(frozen=True, eq=False)
class CellRows:
    """The rows of a notion's cells, and the cells' weights in each query.

    Attributes
    ----------
    row, entry : ndarray
        (m,) each: a row, and the entry of ``weights`` it counts in.
    share : ndarray or None
        (m,), the weight it counts with; None where that is always 1.
    weights : Weights
        The cells' weights; cells are numbered stratum · groups + group.
    n_groups : int
        The number of groups.
    """

    row: NDArray[np.int32]
    entry: NDArray[np.int32]
    share: NDArray[np.float64] | None
    weights: Weights
    n_groups: int

    @classmethod
    def of(cls, notion: NotionLike, data: RankingData, *, warn: bool = True) -> CellRows:
        """Take the cells of a notion, with the queries in the order of their ids; ``warn`` of empty ones."""
        cells = Cells.of(notion, data)
        stratum, row = np.nonzero(cells.strata)
        code: NDArray[Any] = cells.group[row]
        share = None if data.sample_weight is None else cells.weight[row]
        if cells.membership is not None:
            # A row is in every group, with its probability of being in it.
            chance = cells.membership[row]
            entry, code = np.nonzero(chance)
            share = chance[entry, code] * (1.0 if share is None else share[entry])
            stratum, row = stratum[entry], row[entry]
        width = len(cells.strata) * data.n_groups
        place = np.empty(data.n_queries, np.int64)
        place[data.sorted_queries] = np.arange(data.n_queries)
        key = place[data.query_of_row[row]] * width
        key += stratum * data.n_groups + code
        keys, entry = np.unique(key, return_inverse=True)
        weight = np.bincount(entry, share, minlength=len(keys)).astype(np.float64)
        weights = Weights.of(keys, weight, data.n_queries, width)
        if warn:
            warn_empty(cells.notion, weights.total.reshape(len(cells.strata), -1), data.group_names, training=False)
        return cls(row.astype(np.int32), entry.astype(np.int32), share, weights, data.n_groups)

    def counts(self) -> NDArray[np.float64]:
        """Count the rows of each entry, (entries,)."""
        return np.bincount(self.entry, minlength=len(self.weights.weight)).astype(np.float64)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum values of the rows, (n,), over each entry, (entries,)."""
        inside = values[self.row]
        if self.share is not None:
            inside *= self.share
        return np.bincount(self.entry, inside, minlength=len(self.weights.weight)).astype(np.float64, copy=False)

    def pairs(self, across: str) -> Pairs:
        """Pair all groups of each stratum, over the queries together."""
        return Pairs.of(self.weights.total.reshape(-1, 1, self.n_groups), across=across, training=False)
