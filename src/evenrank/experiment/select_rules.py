"""The rules by which `select` picks a strength, and the table they pick from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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
    base : int
        The baseline's row, the same for all repeats.
    exact : array of bool
        Whether the row's method has an exact path, which is constant beyond α*, (rows,).
    """

    method: NDArray[Any]
    strength: NDArray[np.float64]
    quality: NDArray[np.float64]
    violation: NDArray[np.float64]
    ratio: NDArray[np.float64]
    spread: str
    base: int
    exact: NDArray[np.bool_]

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
        return Means(quality, error, violation, ratio, self.base, self._ends)

    @cached_property
    def _ends(self) -> NDArray[np.bool_]:
        """The weakest strength of each exact path from which on nothing changes in any repeat, (rows,)."""
        out = np.zeros(len(self.strength), bool)
        values = np.concatenate([self.quality, self.violation, self.ratio], axis=1)
        for method in dict.fromkeys(self.method[self.exact].tolist()):
            rows = np.flatnonzero(self.method == method)
            rows = rows[np.argsort(self.strength[rows], kind="stable")]
            same = np.isclose(values[rows], values[rows[-1]], rtol=0, atol=STRAIGHT, equal_nan=True).all(axis=1)
            first = int(np.flatnonzero(~same)[-1]) + 1 if not same.all() else 0
            # The last strength alone shows no end.
            out[rows[first]] = first < len(rows) - 1 and self.strength[rows[first]] > 0
        return out


@dataclass(frozen=True, eq=False)
class Means:
    """Averages of each row over repeats.

    Attributes
    ----------
    quality, error, violation, ratio : array of float
        Quality and its error, gap, and four-fifths ratio, (rows,).
    base : int
        The baseline's row.
    ends : array of bool
        Whether the row is the first at or beyond α* of its path, (rows,).
    """

    quality: NDArray[np.float64]
    error: NDArray[np.float64]
    violation: NDArray[np.float64]
    ratio: NDArray[np.float64]
    base: int
    ends: NDArray[np.bool_]

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


def _alpha_star(means: Means, _: float) -> int | None:
    """Of the first method that has one; no outcome takes part in the choice."""
    return int(np.argmax(means.ends)) if means.ends.any() else None


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
    "alpha_star": Rule(
        "a training gap of 0, whatever the outcome",
        "no strength is known to reach a training gap of 0 (that needs exact linear training, and strengths beyond it)",
        _alpha_star,
    ),
}
