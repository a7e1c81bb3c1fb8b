"""The chance that a row is relevant, from its score: an isotonic fit, for lists that have no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.notions import Cells, NotionLike

# Scores are taken together at so many levels; where there are fewer, each is a point of its own.
MOST = 4096
# A group with fewer relevant, or fewer irrelevant rows than this has no fit of its own.
FEW = 50


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
    def of(cls, score: NDArray[np.float64], relevant: NDArray[np.bool_], weight: NDArray[np.float64]) -> Chances:
        """Fit the share of relevant rows as a rising function of the score, by least squares.

        Parameters
        ----------
        score, relevant, weight : ndarray
            (n,) each.

        Returns
        -------
        Chances
            The fit; of each level only the ends are kept.
        """
        from scipy.optimize import isotonic_regression

        levels = np.sort(score)
        if len(levels) > MOST:
            levels = levels[np.linspace(0, len(levels) - 1, MOST).astype(np.int64)]
        levels = levels[np.append(True, levels[1:] > levels[:-1])]
        # Scores up to each level and above the one before are one point, at their mean.
        bin_of = np.searchsorted(levels, score)
        counted = np.bincount(bin_of, weight, minlength=len(levels))
        used = counted > 0
        share = np.bincount(bin_of, weight * relevant, minlength=len(levels))[used] / counted[used]
        unit = 2.0**200 if np.abs(levels).max(initial=0) > 2.0**800 else 1.0  # so that sums stay finite
        middle = unit * (np.bincount(bin_of, weight * (score / unit), minlength=len(levels))[used] / counted[used])
        chance = np.clip(isotonic_regression(share, weights=counted[used]).x, 0, 1)
        # A mean may leave its bin by rounding; of each step of the fit only the ends are kept.
        points = np.clip(middle, np.append(-np.inf, levels[:-1])[used], levels[used])
        ends = np.ones(len(chance), bool)
        ends[1:-1] = (chance[1:-1] != chance[:-2]) | (chance[1:-1] != chance[2:])
        ends[1:] &= points[1:] > points[:-1]
        return cls(points[ends], chance[ends])

    def __call__(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the chance of each score, (n,)."""
        return np.interp(score, self.score, self.chance)


def shared_chances(score: NDArray[np.float64], data: RankingData) -> Chances:
    """Fit one set of chances to the rows of all groups; scores (n,) in stored order."""
    weight = _weights(data)
    counted = weight > 0
    return Chances.of(score[counted], data.relevant[counted], weight[counted])


def _weights(data: RankingData) -> NDArray[np.float64]:
    return np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight


def group_chances(score: NDArray[np.float64], data: RankingData) -> tuple[Chances, ...]:
    """Fit the chances of each group; one with few relevant or few irrelevant rows has those of all rows.

    Each group has its own, because rows of equal score need not be relevant equally often in all groups, and it is this
    difference that a gap among relevant rows is made of.

    Parameters
    ----------
    score : ndarray
        (n,), in stored order.
    data : RankingData
        The rows, with labels.

    Returns
    -------
    tuple of Chances
        One per group.
    """
    weight = _weights(data)
    counted = weight > 0
    fits: list[Chances | None] = []
    for code in range(data.n_groups):
        mine = (data.group == code) & counted
        relevant = data.relevant[mine]
        enough = FEW <= relevant.sum() <= len(relevant) - FEW
        fits.append(Chances.of(score[mine], relevant, weight[mine]) if enough else None)
    pooled = shared_chances(score, data) if None in fits else None
    return tuple(fit or pooled for fit in fits)  # type: ignore[misc]


def chance_of_rows(
    chances: tuple[Chances, ...], score: NDArray[np.float64], group: NDArray[Any]
) -> NDArray[np.float64]:
    """Give the chance of each row, (n,), by its group; of an unknown group the mean over groups."""
    each = np.stack([fit(score) for fit in chances])
    return np.asarray(np.where(group < 0, each.mean(axis=0), each[group, np.arange(len(score))]))


class ChanceTable:
    """The chances of several groups on one set of points, so that a list takes one search whatever its groups.

    Parameters
    ----------
    fits : mapping
        The fit of each group, by its label; a label that is not there has the mean of all fits.
    labels : sequence
        The label of each row of the table.
    """

    def __init__(self, fits: Mapping[Any, Chances], labels: Sequence[Any]) -> None:
        self.rows = len(labels)
        self._points = np.unique(np.concatenate([fit.score for fit in fits.values()]))
        values: dict[Any, NDArray[Any]] = {label: fit(self._points) for label, fit in fits.items()}
        mean: NDArray[Any] = np.mean(list(values.values()), axis=0)
        each = np.stack([values.get(label, mean) for label in labels])
        # Each interval of the points has its value at the lower end and its slope; both ends are flat.
        slopes = np.zeros((self.rows, len(self._points) + 1))
        slopes[:, 1:-1] = np.diff(each, axis=1) / np.diff(self._points)
        self._width = len(self._points) + 1
        self._slope = slopes.ravel()
        self._value = np.concatenate([each[:, :1], each], axis=1).ravel()
        self._lower = np.concatenate([self._points[:1], self._points])

    def __call__(self, score: NDArray[np.float64], row: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the chance of each score, (n,), by its row of the table, (n,)."""
        place = self._points.searchsorted(score)
        cell = row * self._width + place
        chance = self._value.take(cell) + (score - self._lower.take(place)) * self._slope.take(cell)
        return np.asarray(np.minimum(chance, 1.0))


@dataclass(frozen=True, eq=False)
class RowWeights:
    """What rows count for in the strata of a notion.

    Attributes
    ----------
    share : ndarray
        (strata, n): whether a row is in the stratum, or the chance that it is.
    weight : ndarray
        The weight of each row, (n,).
    total : ndarray
        The sum of weights in each cell, (strata, groups).
    by_query : dict
        By stratum, the sums of each group by query, kept once they are asked for.
    """

    share: NDArray[Any]
    weight: NDArray[np.float64]
    total: NDArray[np.float64]
    by_query: dict[int, list[NDArray[np.float64]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, share: NDArray[Any], weight: NDArray[np.float64], data: RankingData) -> RowWeights:
        """Sum the cells of some data; rows of no group have no share."""
        code = np.where(data.group < 0, data.n_groups, data.group)
        sums = [np.bincount(code, part * weight, minlength=data.n_groups + 1)[: data.n_groups] for part in share]
        return cls(share, weight, np.array(sums))

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the weights of some rows, (strata, rows)."""
        return np.asarray(self.share[:, rows] * self.weight[rows])


def labelled_weights(notion: NotionLike, data: RankingData) -> RowWeights:
    """Take the strata by the rows' labels."""
    cells = Cells.of(notion, data)
    return RowWeights.of(cells.strata, cells.weight, data)


def expected_weights(notion: NotionLike, data: RankingData, chance: NDArray[np.float64]) -> RowWeights:
    """Take the strata where labels are not known: the mean of both, by the chance that the row is relevant.

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
    RowWeights
        The weights.
    """
    threshold = data.relevance_threshold
    with_label, without = (
        Cells.of(notion, replace(data, relevance=np.full(data.n_rows, level)))
        for level in (float(threshold), min(0.0, threshold - 1))
    )
    share = with_label.strata * chance + without.strata * (1 - chance)
    return RowWeights.of(share, with_label.weight, data)
