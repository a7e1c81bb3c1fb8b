"""The fair objective where each process has some of the queries: sums of groups are added up over all processes.

Every process must take part in every sum, in the same order: what decides whether a sum is asked for is the same
number everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.objective import FairObjective, Gradients, bound_target, fixed_sums
from evenrank.boosting.pull import FairPull
from evenrank.contrasts import Contrast, Pairs
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.notions import Cells
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation
from evenrank.rounding import beyond_rounding, rounding

Total = Callable[[NDArray[Any]], NDArray[Any]]


class SummedContrast(Contrast):
    """A pooled contrast of which each process has some rows; means and gaps are those of all rows.

    Parameters
    ----------
    local : Contrast
        The contrast on the rows of this process.
    total : callable
        Adds an array up over all processes.
    """

    def __init__(self, local: Contrast, total: Total) -> None:
        counts = np.diff(local.cells.indptr)
        self._total = total
        self.cell_weight = total(local.cell_weight)
        own, all_rows = local.cell_weight.ravel(), self.cell_weight.ravel()
        part = np.divide(own, all_rows, out=np.zeros_like(own), where=all_rows > 0)
        self.cells = local.cells.copy()
        self.cells.data = self.cells.data * np.repeat(part, counts)
        self._rows = self.cells.T
        self.rounding = rounding(total(counts.astype(np.float64))).astype(np.float64)
        self.pairs = Pairs.of(self.cell_weight)

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the mean over all rows in each cell; see `Contrast.means`."""
        return self._total(np.asarray(self.cells @ values))

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the differences over all rows, 0 within rounding; see `Contrast.gaps`."""
        means, sizes = self.means(np.stack([values, np.abs(values)], axis=1)).T
        a, b = self.pairs.a, self.pairs.b
        error = np.maximum(self.rounding[a], self.rounding[b]) * np.maximum(sizes[a], sizes[b])
        return beyond_rounding(means[a] - means[b], error)


class _SummedViolation(TopViolation):
    """The gap of the top k over the rows of all processes."""

    def __init__(self, data: RankingData, spec: FairnessSpec, contrast: Contrast) -> None:
        self.data, self.k, self.contrast, self.name = data, spec.k, contrast, spec.gap_name


class CollectiveObjective(FairObjective):
    """`FairObjective` on the queries of one process, with the gaps of all.

    Parameters
    ----------
    data : RankingData
        The rows of this process, of whole queries; its groups are numbered as in every other process.
    base : Callable
        The loss's derivatives by row; see `base_gradients`.
    spec : FairnessSpec
        What is evened out; of the pooled scope.
    total : callable
        Adds an array up over all processes.
    """

    def __init__(self, data: RankingData, base: Gradients, spec: FairnessSpec, total: Total) -> None:
        self._begin(data, base, spec)
        self.weight = data.sample_weight
        if self.alpha <= 0:
            return
        if spec.scope != "amortized":
            raise ConfigError(f"scope={spec.scope!r} is not for training on several machines; use 'amortized'.")
        contrast = SummedContrast(Cells.of(spec.notion, data).contrast(), total)
        if contrast.pairs.missing:
            raise ConfigError(f"{spec.gap_name} has strata without two groups in all rows. Set alpha=0, or add rows.")
        lists = fixed_sums(spec, data.query_ptr)
        self.pull = FairPull(contrast, bound_target(spec, data.query_ptr), total=total, lists=lists)
        if spec.bounded:
            self.measured = _SummedViolation(data, spec, contrast)


def local_rows(
    relevance: NDArray[Any], group: NDArray[Any], query_ptr: NDArray[Any], n_groups: int, threshold: float
) -> RankingData:
    """Make the rows of one process, without features.

    Parameters
    ----------
    relevance, group : ndarray
        (n,) each; the numbers of the groups, -1 for an unknown one.
    query_ptr : ndarray
        The bounds of the queries, (q + 1,).
    n_groups : int
        The number of groups in all processes.
    threshold : float
        Relevance at or above it is relevant.

    Returns
    -------
    RankingData
        The rows.
    """
    data = RankingData.from_arrays(
        np.zeros((len(relevance), 0)),
        relevance,
        None,
        np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr)),
        relevance_threshold=threshold,
    )
    return replace(data, group=group.astype(np.int32), group_names=tuple(range(n_groups)))
