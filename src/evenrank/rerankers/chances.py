"""The chance that a row is relevant, from its score: an isotonic fit, for lists that have no labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.notions import Cells, NotionLike


@dataclass(frozen=True, eq=False)
class Chances:
    """A chance that rises with the score: linear between the points, flat outside.

    Attributes
    ----------
    score, chance : ndarray
        The points, (points,) each, ascending.
    """

    score: NDArray[np.float64]
    chance: NDArray[np.float64]

    @classmethod
    def of(cls, score: NDArray[np.float64], data: RankingData) -> Chances:
        """Fit the share of relevant rows as a rising function of the score, by least squares.

        Parameters
        ----------
        score : ndarray
            (n,), in stored order.
        data : RankingData
            The rows, with labels.

        Returns
        -------
        Chances
            The fit; of each level only the ends are kept.
        """
        from scipy.optimize import isotonic_regression

        order = np.argsort(score, kind="stable")
        ordered = score[order]
        new = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0)
        weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight[order]
        counted = np.maximum(np.add.reduceat(weight, new), np.finfo(float).tiny)
        relevant = np.add.reduceat(weight * data.relevant[order], new)
        level = np.clip(isotonic_regression(relevant / counted, weights=counted).x, 0, 1)
        ends = np.ones(len(level), bool)
        ends[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
        return cls(ordered[new][ends], level[ends])

    def __call__(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the chance of each score, (n,)."""
        return np.interp(score, self.score, self.chance)


def row_weights(notion: NotionLike, data: RankingData) -> NDArray[np.float64]:
    """Give what each row counts for in each stratum, by its label, (strata, n)."""
    cells = Cells.of(notion, data)
    return np.asarray(cells.strata * cells.weight)


def expected_weights(notion: NotionLike, data: RankingData, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the same where labels are not known: the mean of both, by the chance that the row is relevant.

    The notion is asked twice, once with every row relevant and once with none; the data's own labels are not looked at.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    data : RankingData
        The rows.
    chance : ndarray
        The chance of each row, (n,).

    Returns
    -------
    ndarray
        (strata, n).
    """
    threshold = data.relevance_threshold
    without = min(0.0, threshold - 1)
    total = np.zeros(0)
    for level, share in ((threshold, chance), (without, 1 - chance)):
        weights = row_weights(notion, replace(data, relevance=np.full(data.n_rows, float(level)))) * share
        total = total + weights if total.size else weights
    return total
