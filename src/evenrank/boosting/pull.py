"""`FairPull`: what the fairness term adds to a boosted loss's gradient, round after round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.targets import BoundTarget, LossScale

# √(gap² + ε²) stands for |gap|, whose slope changes sign tree after tree once the gap is near 0. ε is this share of the
# spread of the value over rows, so that gaps of long lists, where few items are selected, are not all "near 0", joined
# with the standard error of the gap between groups of that many rows: a gap that chance could have made pulls less.
SMOOTHING = 0.1
# Where features tell little of the group, rows are pulled less than by the groups themselves. This power of the ratio
# of the two pulls is made up for: at 0 nothing, so that such data hardly notice a strength of 1, at 1 all of it.
# Features that have nothing to do with the group still leave a ratio of about the least one.
MADE_UP, LEAST_KNOWN = 0.6, 0.1
# A tree may carry a gap beyond 0. Then the share of the strength that is used for that gap is halved, and let go
# slowly: a strong α swings no more than a weak one. Gaps within this share of ε are noise, not a swing.
HALVED, RELEASE, SWING = 0.5, 1.1, 0.2
# The first trees belong to the loss: the strength rises to its full size over these rounds.
WARM_UP = 5
# Values that vary by less than this share of their size are one value.
FLAT = 2.0**-40
# c is taken in every one of so many first rounds, and then in every so many rounds: it moves slowly, and costs time.
CLOSELY, SELDOM = 10, 5


class FairPull:
    """The gradient of c·α·Γ by row, with c the loss's pull over the term's (see `LossScale`).

    Parameters
    ----------
    contrast : Contrast
        The gaps, between the groups as they are.
    target : BoundTarget
        The value that is evened out.
    known : Contrast, optional
        The same gaps between the groups as features tell them (see `group_chances`). Rows are pulled along these, so
        that trees learn nothing that holds on the training rows alone; how far is decided by the gaps themselves.
    total : Callable, optional
        Adds an array up over the processes that train together, each on its own rows.

    Attributes
    ----------
    scale : LossScale
        c so far.
    share : ndarray
        The share of the strength that is used for each gap, (J,).
    rounds : int
        The rounds so far.
    """

    def __init__(
        self,
        contrast: Contrast,
        target: BoundTarget,
        known: Contrast | None = None,
        total: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> None:
        self.contrast, self.target, self.total = contrast, target, total
        self.known = contrast if known is None else known
        self.scale, self.rounds = LossScale(), 0
        self.share = np.ones(len(contrast.pairs.a))
        self._error = _relative_errors(contrast, total)
        self._last: NDArray[Any] | None = None

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
        gaps, spread = self.contrast.gaps(value), self._spread(value)
        if spread == 0:
            # As before the first tree: what sums leave of a gap is rounding, and its sign means nothing.
            gaps = np.zeros_like(gaps)
        smoothing = np.maximum(spread * np.hypot(SMOOTHING, self._error), np.finfo(np.float64).tiny)
        self._steady(gaps, smoothing)
        full = self.contrast.pairs.slope(gaps if spread > 0 else np.ones_like(gaps))
        if self.rounds <= CLOSELY or self.rounds % SELDOM == 0:
            sums = self.scale.sums(loss_gradient, self._full_pull(scores, full))
            self.scale.update_sums(*(sums if self.total is None else self.total(sums)))
        strength = alpha * float(self.scale.value) * min(1.0, self.rounds / WARM_UP)
        self.rounds += 1
        slope = full * self.share * np.abs(gaps) / np.hypot(gaps, smoothing)  # 0 where the value is flat
        return strength * self._pulled(scores, self.known, slope)

    def _full_pull(self, scores: NDArray[np.float64], slope: NDArray[Any]) -> NDArray[np.float64]:
        """The pull by the groups themselves, less a part of what features do not tell of them."""
        pull = self._pulled(scores, self.contrast, slope)
        if self.known is self.contrast:
            return pull
        known, whole = (float(np.abs(each).sum()) for each in (self._pulled(scores, self.known, slope), pull))
        return pull * np.clip(known / whole, LEAST_KNOWN, 1) ** MADE_UP if whole > 0 else pull

    def _spread(self, value: NDArray[np.float64]) -> float:
        """The standard deviation of the value over all rows; 0 where it is all rounding."""
        total = np.asarray if self.total is None else self.total
        n, summed, size = total(np.array([float(len(value)), value.sum(), np.abs(value).sum()]))
        square = total(np.array([((value - summed / n) ** 2).sum()]))[0]
        spread = float(np.sqrt(square / n))
        return spread if spread > FLAT * size / n else 0.0

    def _pulled(self, scores: NDArray[np.float64], along: Contrast, slope: NDArray[Any]) -> NDArray[np.float64]:
        return self.target.pull_back(scores, along.pull_back(slope))

    def _steady(self, gaps: NDArray[Any], smoothing: NDArray[Any]) -> None:
        """Less of the strength where the last tree carried a gap to the other side of 0, more of it elsewhere."""
        if self._last is not None:
            swung = (gaps * self._last < 0) & (np.abs(gaps) > SWING * smoothing)
            self.share = np.where(swung, HALVED * self.share, np.minimum(1.0, RELEASE * self.share))
        self._last = gaps


def _relative_errors(contrast: Contrast, total: Callable[[NDArray[Any]], NDArray[Any]] | None) -> NDArray[np.float64]:
    """The standard error of each gap over the spread of the value, (J,); 0 for gaps within queries, which are many."""
    pairs = contrast.pairs
    if contrast.cell_weight.shape[1] > 1:
        return np.zeros(len(pairs.a))
    # The squares of the shares that rows have in their cell sum to 1 / (effective number of rows), whatever the unit.
    by_cell = np.asarray(contrast.cells.multiply(contrast.cells).sum(axis=1)).reshape(-1)
    by_cell = by_cell if total is None else total(by_cell)
    return np.asarray(np.sqrt(by_cell[pairs.a] + by_cell[pairs.b]), np.float64)
