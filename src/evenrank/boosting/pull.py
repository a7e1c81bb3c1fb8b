"""`FairPull`: what the fairness term adds to a boosted loss's gradient, round after round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.targets import BoundTarget, LossScale, made_up

# √(gap² + ε²) stands for |gap|, whose slope changes sign tree after tree once the gap is near 0. ε is this share of the
# spread of the value over rows, so that gaps of long lists, where few items are selected, are not all "near 0", joined
# with the standard error of the gap between groups of that many rows: a gap that chance could have made pulls less.
SMOOTHING = 0.1
# Rows are pulled in two ways, so many times as strongly as the loss does at a strength of 1: along the groups as features
# tell them, by the gap between those, which holds on other queries; and a little along the groups themselves, by their
# own gap, which closes what is left on the training rows at little cost.
KNOWN, OWN = 2.5, 0.2
# A tree may carry a gap beyond 0. Then the share of the strength that is used for that gap is halved, and let go
# slowly: a strong α swings no more than a weak one. Gaps within this share of ε are noise, not a swing.
HALVED, RELEASE, SWING = 0.5, 1.1, 0.2
# The first trees belong to the loss: the strength rises to its full size over these rounds.
WARM_UP = 5
# Values that vary by less than this share of their size are one value.
FLAT = 2.0**-40
# c is taken in every one of so many first rounds, and then in every so many rounds: it moves slowly, and costs time.
CLOSELY, SELDOM = 10, 5


class Way:
    """One way in which rows are pulled: along a contrast, by the gaps of that contrast.

    Parameters
    ----------
    contrast : Contrast
        The gaps.
    times : float
        How strongly, at a strength of 1, beside the loss.

    Attributes
    ----------
    scale : LossScale
        c so far.
    share : ndarray
        The share of the strength that is used for each gap, (J,).
    full, slope : ndarray
        The slope in each gap in this round, (J,): of |gap|, and of its smooth form times the share.
    """

    def __init__(self, contrast: Contrast, times: float) -> None:
        self.contrast, self.times, self.scale = contrast, times, LossScale()
        self.share = np.ones(len(contrast.pairs.a))
        self._last: NDArray[Any] | None = None

    def go_to(self, value: NDArray[np.float64], smoothing: NDArray[Any], *, flat: bool) -> None:
        """Take the gaps of a round; where the value is flat, what sums leave of them is rounding, with no sign."""
        gaps = self.contrast.gaps(value)
        if flat:
            gaps = np.zeros_like(gaps)
        self._steady(gaps, smoothing)
        self.full = self.contrast.pairs.slope(np.ones_like(gaps) if flat else gaps)
        self.slope = self.full * self.share * np.abs(gaps) / np.hypot(gaps, smoothing)

    def on_values(self) -> NDArray[np.float64]:
        """The slope in the values at a strength of 1, (n,)."""
        return self.times * float(self.scale.value) * self.contrast.pull_back(self.slope)

    def _steady(self, gaps: NDArray[Any], smoothing: NDArray[Any]) -> None:
        """Less of the strength where the last tree carried a gap to the other side of 0, more of it elsewhere."""
        if self._last is not None:
            swung = (gaps * self._last < 0) & (np.abs(gaps) > SWING * smoothing)
            self.share = np.where(swung, HALVED * self.share, np.minimum(1.0, RELEASE * self.share))
        self._last = gaps


class FairPull:
    """The gradient of c·α·Γ by row, with c the loss's pull over the term's (see `LossScale`).

    Parameters
    ----------
    contrast : Contrast
        The gaps, between the groups as they are.
    target : BoundTarget
        The value that is evened out.
    known : Contrast, optional
        The same gaps between the groups as features tell them (see `group_chances`). Rows are pulled along these above
        all, so that trees learn what holds on other queries too.
    total : Callable, optional
        Adds an array up over the processes that train together, each on its own rows.
    own : float
        With ``known``, how strongly rows are pulled along the groups themselves.

    Attributes
    ----------
    ways : list of Way
        Along the groups themselves and, with ``known``, as features tell them.
    rounds : int
        The rounds so far.
    """

    def __init__(
        self,
        contrast: Contrast,
        target: BoundTarget,
        known: Contrast | None = None,
        total: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        own: float = OWN,
    ) -> None:
        self.target, self.total, self.rounds = target, total, 0
        self.ways = [Way(contrast, 1.0)] if known is None else [Way(contrast, own), Way(known, KNOWN)]
        self._error = _relative_errors(contrast, total)

    def __call__(self, scores: NDArray[np.float64], loss_gradient: NDArray[Any], alpha: float) -> NDArray[np.float64]:
        """Give the gradient of a round.

        Parameters
        ----------
        scores : ndarray
            (n,), in stored order.
        loss_gradient : ndarray
            The loss's own first derivative, (n,).
        alpha : float
            The strength.

        Returns
        -------
        ndarray
            What is to be added to the loss's, (n,).
        """
        value = self.target.value(scores)
        spread = self._spread(value)
        smoothing = np.maximum(spread * np.hypot(SMOOTHING, self._error), np.finfo(np.float64).tiny)
        for way in self.ways:
            way.go_to(value, smoothing, flat=spread == 0)
        if self.rounds <= CLOSELY or self.rounds % SELDOM == 0:
            self._rescale(scores, loss_gradient)
        strength = alpha * min(1.0, self.rounds / WARM_UP)
        self.rounds += 1
        return strength * self.target.pull_back(scores, sum(way.on_values() for way in self.ways))

    def _rescale(self, scores: NDArray[np.float64], loss_gradient: NDArray[Any]) -> None:
        """Take in the pulls of a round at full slope: by the groups themselves, less a part of what features miss."""
        pulls = [self.target.pull_back(scores, way.contrast.pull_back(way.full)) for way in self.ways]
        sums = np.array([np.abs(part).sum(dtype=np.float64) for part in (loss_gradient, *pulls)])
        loss, own, *known = sums if self.total is None else self.total(sums)
        self.ways[0].scale.update_sums(loss, own)
        for way, along in zip(self.ways[1:], known, strict=True):
            way.scale.update_sums(loss, made_up(own, along))

    def _spread(self, value: NDArray[np.float64]) -> float:
        """The standard deviation of the value over all rows; 0 where it is all rounding."""
        total = np.asarray if self.total is None else self.total
        n, summed, size = total(np.array([float(len(value)), value.sum(), np.abs(value).sum()]))
        square = total(np.array([((value - summed / n) ** 2).sum()]))[0]
        spread = float(np.sqrt(square / n))
        return spread if spread > FLAT * size / n else 0.0


def _relative_errors(contrast: Contrast, total: Callable[[NDArray[Any]], NDArray[Any]] | None) -> NDArray[np.float64]:
    """The standard error of each gap over the spread of the value, (J,); 0 for gaps within queries, which are many."""
    pairs = contrast.pairs
    if contrast.cell_weight.shape[1] > 1:
        return np.zeros(len(pairs.a))
    # The squares of the shares that rows have in their cell sum to 1 / (effective number of rows), whatever the unit.
    by_cell = np.asarray(contrast.cells.multiply(contrast.cells).sum(axis=1)).reshape(-1)
    by_cell = by_cell if total is None else total(by_cell)
    return np.asarray(np.sqrt(by_cell[pairs.a] + by_cell[pairs.b]), np.float64)
