"""`Ranked`: rankings of rows, from which summaries at any cut-offs are made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.audits.ids import canonical_ids, checked_clusters, hashed, list_marks
from evenrank.audits.summary import QUALITY, VALUES, Summary
from evenrank.cell_rows import CellRows
from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.measures import MEASURES, Evaluation
from evenrank.ranking import Ranking


class Ranked:
    """Rankings from which summaries at any cut-offs are made.

    Parameters
    ----------
    scores, data, cluster, labelled, items
        As in `Summary.of`.
    """

    def __init__(
        self, scores: ArrayLike, data: RankingData, *, cluster: Any = None, labelled: bool = True, items: bool = True
    ) -> None:
        stored = data.to_stored(scores)
        if stored.ndim != 1:
            raise DataError(f"an audit takes one score per row, ({data.n_rows},); got shape {stored.shape}.")
        self.data, self.labelled = data, labelled
        self.marks = list_marks(stored, data)
        self.evaluation = Evaluation(data, Ranking(stored, data.query_ptr))
        self.cells = CellRows.of("equalized_odds" if labelled else "demographic_parity", data, warn=False)
        self.clusters, self.cluster_names = checked_clusters(cluster, data)
        self.items = items and data.item_ids is not None and data.membership is None

    @property
    def n_cells(self) -> int:
        """The number of cells of lists that hold an item."""
        return len(self.cells.weights.weight)

    @cached_property
    def _places(self) -> tuple[Any, Any, Any]:
        """The item, the items above and those with the same score, of each row of known group, cell by cell."""
        if not self.items or self.data.item_ids is None:
            return None, None, None
        rows = self.cells.row[np.argsort(self.cells.entry, kind="stable")]
        ranking = self.evaluation.ranking
        return hashed(self.data.item_ids)[rows], ranking.first[rows], ranking.size[rows]

    def summary(self, ks: Sequence[int]) -> Summary:
        """Sum up the lists at some cut-offs."""
        data, cells, weights = self.data, self.cells, self.cells.weights
        cuts = tuple(sorted({check_k(k) for k in ks}))
        soft = data.membership is not None
        sums = np.empty((len(VALUES), len(cuts), self.n_cells))
        squares = np.empty_like(sums)
        quality = np.empty((len(QUALITY) if self.labelled else 0, len(cuts), data.n_queries))
        for j, k in enumerate(cuts):
            ranking = self.evaluation.ranking
            for i, values in enumerate((ranking.top(k), ranking.exposure(k))):
                sums[i, j] = cells.sums(values)
                squares[i, j] = cells.sums(values**2)
            self._fill_quality(quality[:, j], k)
        order = data.sorted_queries
        query = np.repeat(np.arange(data.n_queries), np.diff(weights.ptr))
        items, first, size = self._places
        summary = Summary(
            ks=cuts,
            labelled=self.labelled,
            group_names=data.group_names,
            query_ids=data.query_ids[order],
            lengths=data.lengths[order],
            relevant=np.add.reduceat(data.relevant.astype(np.int64), data.query_ptr[:-1])[order],
            key=query * (2 * data.n_groups) + weights.column,
            count=weights.weight if cells.share is None or soft else cells.counts(),
            weight=weights.weight,
            sums=sums,
            squares=squares,
            quality=quality,
            marks=self.marks[order],
            clusters=tuple(labels[data.query_ptr[:-1]][order] for labels in self.clusters),
            cluster_names=self.cluster_names,
            items=items,
            first=first,
            size=size,
            weighted=soft or data.sample_weight is not None,
        )
        if summary.query_ids.dtype != object and all(ids.dtype != object for ids in summary.clusters):
            return summary
        return summary.ordered(canonical_ids(summary.query_ids), tuple(map(canonical_ids, summary.clusters)))

    def _fill_quality(self, quality: NDArray[np.float64], k: int) -> None:
        """Write each list's quality at a cut-off, (3, q), in the order of the lists' ids."""
        longest = int(self.data.lengths.max())
        for row, name in zip(quality, QUALITY, strict=False):
            # Beyond the longest list a cut-off cuts nothing; precision alone divides by it.
            cut = k if name == "precision" else min(k, longest)
            row[:] = MEASURES[name].per_query(self.evaluation, cut)[self.data.sorted_queries]
        self.evaluation.shared.pop(("ideal", min(k, longest)), None)  # of no use to another cut-off
