"""`Curve`: quality and violation of one method along its strengths, and how far the gap falls at no loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.measures import MeasureAt

SPREADS = ("standard error", "standard deviation")
DECIMALS = 12  # of a violation that are not rounding: lists with every item selected have a gap of 1e-15


@dataclass(frozen=True, eq=False)
class Curve:
    """Quality and violation of one method along its strengths, averaged over repeats (folds or seeds).

    Attributes
    ----------
    method, notion : str
        What was trained.
    quality_name, violation_name : str
        The measures, with their cut-off, such as "ndcg@5".
    strengths : array of float
        From 0 up, (strengths,).
    quality, quality_error : array of float
        Mean and error, (strengths,).
    violation, violation_error : array of float
        Mean and error of the gap, (strengths,).
    grouping : str
        Which labels the groups are of, if the sweep has several.
    """

    method: str
    notion: str
    quality_name: str
    violation_name: str
    strengths: NDArray[np.float64]
    quality: NDArray[np.float64]
    quality_error: NDArray[np.float64]
    violation: NDArray[np.float64]
    violation_error: NDArray[np.float64]
    grouping: str = ""

    @property
    def k(self) -> int:
        """The cut-off; 0 if the measure has none."""
        return int(MeasureAt.of(self.violation_name).k or 0)

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Whether mean quality is below that of strength 0 by more than the sum of both errors, (strengths,)."""
        # An error that is not known (one fold only) allows no drop, and a quality that is not known is worse.
        allowed = np.nan_to_num(self.quality_error + self.quality_error[0])
        worse = np.asarray(~(self.quality[0] - self.quality <= allowed))
        worse[0] = False
        return worse

    @property
    def even(self) -> bool:
        """Whether strength 0 has no gap."""
        return bool(np.round(self.violation[0], DECIMALS) == 0)

    @property
    def reduction(self) -> NDArray[np.float64]:
        """(Γ(0) − Γ(α)) / Γ(0), (strengths,); NaN if strength 0 has no gap."""
        base = self.violation[0]
        return np.full(len(self.violation), np.nan) if self.even else (base - self.violation) / base

    @property
    def best(self) -> int:
        """The number of the strength with the smallest gap at no significant quality loss; the weakest of equals."""
        violation = np.round(self.violation, DECIMALS)
        return int(np.argmin(np.where(self.worse | np.isnan(violation), np.inf, violation)))

    @property
    def max_reduction(self) -> float:
        """The reduction at `best`."""
        return float(self.reduction[self.best])

    @property
    def mean_reduction(self) -> float:
        """The mean reduction over all strengths at no significant quality loss, strength 0 included."""
        return float(self.reduction[~self.worse].mean())

    @property
    def front(self) -> NDArray[np.bool_]:
        """Whether each strength is on the Pareto front, (strengths,); see `pareto_front`."""
        return pareto_front(self.quality, self.violation)

    def to_dict(self) -> dict[str, Any]:
        """Give the curve as plain values, the form that `--json` prints."""
        return {
            "method": self.method,
            "grouping": self.grouping,
            "notion": self.notion,
            "k": self.k,
            "strength": self.strengths.tolist(),
            self.quality_name: self.quality.tolist(),
            f"{self.quality_name} error": self.quality_error.tolist(),
            self.violation_name: self.violation.tolist(),
            f"{self.violation_name} error": self.violation_error.tolist(),
            "significantly_worse": self.worse.tolist(),
            "best_strength": float(self.strengths[self.best]),
            "max_reduction": self.max_reduction,
            "mean_reduction": self.mean_reduction,
        }


def pareto_front(quality: NDArray[np.float64], violation: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Find the points that no other point beats: at least the quality, at most the violation, one of them better.

    Parameters
    ----------
    quality, violation : array of float
        The points, (points,).

    Returns
    -------
    array of bool
        Whether each is on the front, (points,). Of equal points the first is; a point with a NaN is not.

    Examples
    --------
    >>> pareto_front(np.array([0.9, 0.8, 0.7, 0.7]), np.array([0.3, 0.1, 0.2, 0.1])).tolist()
    [True, True, False, False]
    """
    known = ~(np.isnan(quality) | np.isnan(violation))
    order = np.lexsort([np.arange(len(quality)), violation, -quality])
    order = order[known[order]]
    lowest = np.minimum.accumulate(np.concatenate([[np.inf], violation[order]]))[:-1]
    front = np.zeros(len(quality), bool)
    front[order[violation[order] < lowest]] = True
    return front


def mean_and_error(
    table: NDArray[np.float64], spread: str = "standard error"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average over the repeats that have a value; a fold that lacks a group or a relevant item has none.

    Which folds those are depends on the data and not on the scores, so all strengths are averaged over the same ones.

    Parameters
    ----------
    table : array of float
        One column per repeat, (strengths, repeats).
    spread : str
        "standard error" or "standard deviation".

    Returns
    -------
    mean, error : array of float
        (strengths,) each; NaN where there are too few repeats.
    """
    table = table[:, ~np.isnan(table).all(axis=0)]
    count = table.shape[1]
    nothing = np.full(len(table), np.nan)
    mean = table.mean(axis=1) if count else nothing
    if count < 2:
        return mean, nothing
    error = table.std(axis=1, ddof=1)
    return mean, error / np.sqrt(count) if spread == "standard error" else error
