"""`FairPull`: what the fairness term adds to a boosted loss's gradient, round after round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.targets import BoundTarget, LossScale

# √(gap² + ε²) stands for |gap|, whose slope changes sign tree after tree once the gap is near 0. ε is this share of the
# spread of the value over rows, so that gaps of long lists, where few items are selected, are not all "near 0".
SMOOTHING = 0.1
# A tree may carry a gap beyond 0. Then the share of the strength that is used for that gap is halved, and let go
# slowly: a strong α swings no more than a weak one. Gaps within this share of ε are noise, not a swing.
HALVED, RELEASE, SWING = 0.5, 1.1, 0.2
# The first trees belong to the loss: the strength rises to its full size over these rounds.
WARM_UP = 5
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

    Attributes
    ----------
    scale : LossScale
        c so far.
    share : ndarray
        The share of the strength that is used for each gap, (J,).
    rounds : int
        The rounds so far.
    """

    def __init__(self, contrast: Contrast, target: BoundTarget, known: Contrast | None = None) -> None:
        self.contrast, self.target = contrast, target
        self.known = contrast if known is None else known
        self.scale, self.rounds = LossScale(), 0
        self.share = np.ones(len(contrast.pairs.a))
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
        gaps = self.contrast.gaps(value)
        smoothing = max(SMOOTHING * float(value.std()), np.finfo(np.float64).tiny)
        self._steady(gaps, smoothing)
        full = self.contrast.pairs.slope(gaps)
        if self.rounds <= CLOSELY or self.rounds % SELDOM == 0:
            self.scale.update(loss_gradient, self._pulled(scores, self.contrast, full))
        strength = alpha * float(self.scale.value) * min(1.0, self.rounds / WARM_UP)
        self.rounds += 1
        slope = full * self.share * np.abs(gaps) / np.hypot(gaps, smoothing)
        return strength * self._pulled(scores, self.known, slope)

    def _pulled(self, scores: NDArray[np.float64], along: Contrast, slope: NDArray[Any]) -> NDArray[np.float64]:
        return self.target.pull_back(scores, along.pull_back(slope))

    def _steady(self, gaps: NDArray[Any], smoothing: float) -> None:
        """Less of the strength where the last tree carried a gap to the other side of 0, more of it elsewhere."""
        if self._last is not None:
            swung = (gaps * self._last < 0) & (np.abs(gaps) > SWING * smoothing)
            self.share = np.where(swung, HALVED * self.share, np.minimum(1.0, RELEASE * self.share))
        self._last = gaps
