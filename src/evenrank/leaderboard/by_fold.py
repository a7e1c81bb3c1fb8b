"""`FoldValues`: quality and gap of many models in each fold, and the sums from which gaps over all folds are pooled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast, Pairs
from evenrank.data import RankingData
from evenrank.measures.evaluation import Evaluation, divide
from evenrank.measures.formulas import gap_by_unit, ndcg
from evenrank.methods.method import ANY, Part
from evenrank.notions import Cells
from evenrank.ranking import Ranking

MOST_AT_ONCE = 1 << 22  # scores ranked together


@dataclass(frozen=True, eq=False)
class FoldValues:
    """What models give in one fold.

    Attributes
    ----------
    quality, gap : ndarray
        NDCG@k and the gap, (groupings, notions, ks, models); NaN where it is not defined.
    selected : dict
        (grouping, notion) → the expected number selected in each cell, (ks, strata, groups, models).
    size : dict
        (grouping, notion) → the weight of each cell, (strata, groups).
    """

    quality: NDArray[np.float64]
    gap: NDArray[np.float64]
    selected: dict[tuple[int, int], NDArray[np.float64]]
    size: dict[tuple[int, int], NDArray[np.float64]]


class FoldMeter:
    """Measures scores of the rows of some folds, all folds in one pass.

    Parameters
    ----------
    groupings : sequence of RankingData
        The rows under each grouping.
    fold_of : ndarray of int
        Each query's fold, (q,), numbered from 0.
    n_folds : int
        The number of folds.
    notions : sequence of str
        The notions whose gaps are measured.
    ks : sequence of int
        The cut-offs.
    """

    def __init__(
        self,
        groupings: Sequence[RankingData],
        fold_of: NDArray[np.int64],
        n_folds: int,
        notions: Sequence[str],
        ks: Sequence[int],
    ) -> None:
        self.groupings, self.notions, self.ks, self.n_folds = groupings, tuple(notions), tuple(ks), n_folds
        self._fold_of = fold_of
        self._queries = (fold_of == np.arange(n_folds)[:, None]).astype(float)
        rows = fold_of[groupings[0].query_of_row]
        self._contrasts: dict[tuple[int, int], Contrast] = {
            (g, n): Cells.of(notion, data).contrast(unit=rows, n_units=n_folds, training=False)
            for g, data in enumerate(groupings)
            for n, notion in enumerate(self.notions)
        }
        self._shared: dict[Any, Any] = {}

    def alone(self, fold: int) -> tuple[tuple[RankingData, ...], FoldMeter]:
        """Take the rows of one fold, and what measures them."""
        inside = self._fold_of == fold
        rows = tuple(data.take(inside) for data in self.groupings)
        return rows, FoldMeter(rows, np.zeros(int(inside.sum()), np.int64), 1, self.notions, self.ks)

    def measure(self, parts: Sequence[Part], models: int) -> list[FoldValues]:
        """Measure the test scores of one run.

        Parameters
        ----------
        parts : sequence of Part
            The scores, in the caller's row order.
        models : int
            The number of columns of each.

        Returns
        -------
        list of FoldValues
            One per fold.
        """
        shape = (self.n_folds, len(self.groupings), len(self.notions), len(self.ks), models)
        quality, gap = np.full(shape, np.nan), np.full(shape, np.nan)
        selected = {
            key: np.full((self.n_folds, len(self.ks), strata, groups, models), np.nan)
            for key, contrast in self._contrasts.items()
            for strata, _, groups in [contrast.cell_weight.shape]
        }
        for batch in _batches(parts):
            # The groupings are of the same rows, so one ranking of all columns serves them all.
            data = self.groupings[0]
            stored = data.to_stored(np.concatenate([part.scores for part in batch], axis=1))
            ev = Evaluation(data, Ranking(stored, data.query_ptr), shared=self._shared)
            for number, k in enumerate(self.ks):
                if batch[0].k not in (None, k):
                    continue
                fold_means, top = self._mean_by_fold(ndcg(ev, k)), ev.ranking.top(k)
                for place, part in enumerate(batch):
                    columns = slice(place * models, (place + 1) * models)
                    wanted = range(len(self.notions)) if part.notion == ANY else [self.notions.index(part.notion)]
                    for n in wanted:
                        key, contrast = (part.grouping, n), self._contrasts[part.grouping, n]
                        quality[:, *key, number] = fold_means[:, columns]
                        gap[:, *key, number], sums = _by_cell(contrast, top[:, columns])
                        selected[key][:, number] = sums
        return [
            FoldValues(
                quality[fold],
                gap[fold],
                {key: sums[fold] for key, sums in selected.items()},
                {
                    key: np.asarray(contrast.cell_weight[:, fold], np.float64)
                    for key, contrast in self._contrasts.items()
                },
            )
            for fold in range(self.n_folds)
        ]

    def _mean_by_fold(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over the queries of each fold that have a value, (folds, models)."""
        counted = ~np.isnan(values)
        return divide(self._queries @ np.where(counted, values, 0.0), self._queries @ counted)


def _batches(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Parts that are measured together: those of one k, up to a size that fits into memory."""
    for k in dict.fromkeys(part.k for part in parts):
        batch: list[Part] = []
        for part in parts:
            if part.k != k:
                continue
            if batch and (len(batch) + 1) * part.scores.size > MOST_AT_ONCE:
                yield batch
                batch = []
            batch.append(part)
        yield batch


def _by_cell(contrast: Contrast, top: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The gap of each fold, (folds, models), and the number selected, (folds, strata, groups, models)."""
    strata, folds, groups = contrast.cell_weight.shape
    means: NDArray[np.float64] = contrast.means(top).reshape(strata, folds, groups, -1)
    sums: NDArray[np.float64] = means * np.asarray(contrast.cell_weight, np.float64)[..., None]
    return gap_by_unit(contrast, top), np.moveaxis(sums, 1, 0)


def pooled_gap(selected: NDArray[np.float64], size: NDArray[np.float64]) -> float:
    """Compute the gap over the rows of all folds together.

    Parameters
    ----------
    selected, size : ndarray
        The number selected in each cell, and the cell's weight, (folds, strata, groups).

    Returns
    -------
    float
        Γ of the pooled rates; NaN if a stratum lacks groups.
    """
    total = size.sum(axis=0)
    pairs = Pairs.of(total[:, None], training=False)
    rates = divide(selected.sum(axis=0), total).ravel()
    return float("nan") if pairs.missing else float(pairs.value(rates[pairs.a] - rates[pairs.b]))
