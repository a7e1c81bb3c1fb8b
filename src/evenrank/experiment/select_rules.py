"""The rules by which `select` picks a strength, and the table they pick from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import mean_and_error, pareto_front
from evenrank.wording import FOUR_FIFTHS

STRAIGHT = 1e-9  # a front that bends less has no knee


@dataclass(frozen=True, eq=False)
class Table:
    """What rules pick from: one row per method and strength, one column per repeat.

    Attributes
    ----------
    method, strength : array
        What each row is, (rows,).
    quality, violation, ratio : array of float
        What each row gives in each repeat, (rows, repeats).
    spread : str
        "standard error" or "standard deviation".
    """

    method: NDArray[Any]
    strength: NDArray[np.float64]
    quality: NDArray[np.float64]
    violation: NDArray[np.float64]
    ratio: NDArray[np.float64]
    spread: str

    def means(self, repeats: NDArray[np.int64]) -> Means:
        """Average over some of the repeats.

        Parameters
        ----------
        repeats : array of int
            Numbers of the columns.

        Returns
        -------
        Means
            One average per row.
        """
        quality, error = mean_and_error(self.quality[:, repeats], self.spread)
        violation, ratio = (mean_and_error(table[:, repeats])[0] for table in (self.violation, self.ratio))
        zero = np.flatnonzero(self.strength == 0)
        # Methods may have baselines of their own; a choice is held against the best of them.
        base = int(zero[np.argmax(np.where(np.isnan(quality[zero]), -np.inf, quality[zero]))])
        return Means(quality, error, violation, ratio, base)


@dataclass(frozen=True, eq=False)
class Means:
    """Averages of each row over repeats.

    Attributes
    ----------
    quality, error, violation, ratio : array of float
        Quality and its error, gap, and four-fifths ratio, (rows,).
    base : int
        The baseline's row: strength 0 of the method that is best there.
    """

    quality: NDArray[np.float64]
    error: NDArray[np.float64]
    violation: NDArray[np.float64]
    ratio: NDArray[np.float64]
    base: int

    @property
    def fairer(self) -> NDArray[np.bool_]:
        """Whether each row's gap is known and below the baseline's, (rows,)."""
        return np.asarray(self.violation < self.violation[self.base])


@dataclass(frozen=True)
class Rule:
    """A way to choose a strength.

    Attributes
    ----------
    asked : str
        What the rule asks for, in words.
    lacking : str
        What to say if no strength meets it.
    pick : callable
        Of the means and the tolerance, to the row that is chosen, or None.
    """

    asked: str
    lacking: str
    pick: Callable[[Means, float], int | None]


def least(values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> int | None:
    """Find the row with the least value among those allowed.

    Parameters
    ----------
    values : array of float
        One value per row, (rows,); NaN is never chosen.
    allowed : array of bool
        The rows to choose from, (rows,).

    Returns
    -------
    int or None
        The first such row; None if there is none.
    """
    allowed = allowed & ~np.isnan(values)
    return int(np.argmin(np.where(allowed, values, np.inf))) if allowed.any() else None


def current_rule(rule: str) -> str:
    """Give a rule's name of today: ``"no_loss"`` was called ``"free"`` before."""
    return "no_loss" if rule == "free" else rule


def _no_loss(means: Means, _: float) -> int | None:
    allowed = np.nan_to_num(means.error + means.error[means.base])  # an unknown error allows no loss
    return least(means.violation, (means.quality[means.base] - means.quality <= allowed) & means.fairer)


def _within(means: Means, tolerance: float) -> int | None:
    best = np.where(np.isnan(means.quality), -np.inf, means.quality).max()
    return least(means.violation, (means.quality >= (1 - tolerance) * best) & means.fairer)


def _four_fifths(means: Means, _: float) -> int | None:
    met = means.ratio >= FOUR_FIFTHS
    # Nothing needs doing where the baseline meets it.
    return means.base if met[means.base] else least(-means.quality, met)


def _knee(means: Means, _: float) -> int | None:
    """On axes from 0 to 1, the point of the front farthest above the line between the front's ends."""
    eligible = means.fairer
    eligible[means.base] = True
    front = np.flatnonzero(pareto_front(means.quality, np.where(eligible, means.violation, np.nan)))
    if len(front) < 3:
        return None
    quality, violation = means.quality[front], means.violation[front]
    above = (quality - quality.min()) / np.ptp(quality) - (violation - violation.min()) / np.ptp(violation)
    farthest = int(np.argmax(above))
    return int(front[farthest]) if above[farthest] > STRAIGHT else None


RULES = {
    "no_loss": Rule(
        "the smallest gap at no significant loss of {quality}",
        "no strength lowers the gap without a significant loss of {quality}",
        _no_loss,
    ),
    "four_fifths": Rule(
        "the best {quality} of those that meet the four-fifths rule",
        "no strength meets the four-fifths rule",
        _four_fifths,
    ),
    "within": Rule(
        "the smallest gap with {quality} within {share} of the best",
        "no strength lowers the gap with {quality} within {share} of the best",
        _within,
    ),
    "knee": Rule(
        "the knee of the trade-off between gap and {quality}",
        "the trade-off between gap and {quality} has no knee",
        _knee,
    ),
}
