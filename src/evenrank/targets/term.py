"""`FairnessTerm`: Γ of a target as a function of the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number
from evenrank.contrasts import Contrast
from evenrank.targets.bound import BoundTarget


class FairnessTerm:
    """Γ of a target as a function of the scores: Σ_j w_j φ(C_j · v(s)), with its gradient.

    φ(g) = √(g² + ε²) − ε with ``smoothing`` ε; ε = 0 is |g|, whose slope at 0 is 0.

    Parameters
    ----------
    contrast : Contrast
        A notion bound to the rows; see `evenrank.notions.bind`.
    target : BoundTarget
        A target bound to their lists; see `bind_target`.
    smoothing : float
        ε ≥ 0.

    Examples
    --------
    >>> from evenrank.data import RankingData
    >>> from evenrank.notions import bind
    >>> from evenrank.targets import bind_target
    >>> data = RankingData.from_arrays([[0.0]] * 4, [1, 0, 1, 0], ["a", "a", "b", "b"], [1, 1, 1, 1])
    >>> term = FairnessTerm(bind("dp", data), bind_target("score", data.query_ptr))
    >>> value, gradient = term.value_and_gradient(np.array([3.0, 1.0, 1.0, 1.0]))
    >>> float(value), gradient.tolist()
    (1.0, [0.5, 0.5, -0.5, -0.5])
    """

    def __init__(self, contrast: Contrast, target: BoundTarget, smoothing: float = 0.0) -> None:
        check_number(smoothing, "smoothing", least=0)
        self.contrast = contrast
        self.target = target
        self.smoothing = float(smoothing)

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute Γ, () or (models,), from scores (n,) or (n, models) in stored order."""
        return self._value(self.contrast.gaps(self.target.value(scores)))

    def gradient(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute dΓ/ds, of the scores' shape."""
        return self.value_and_gradient(scores)[1]

    def value_and_gradient(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute `value` and `gradient` in one pass."""
        value, pull_back = self.target.at(scores)
        gaps = self.contrast.gaps(value)
        slope = self.contrast.pull_back(self._slope(gaps)).astype(scores.dtype, copy=False)
        return self._value(gaps), pull_back(slope)

    def hessian_diagonal(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute a positive diagonal that bounds the Hessian, of the scores' shape.

        φ lies below the parabola that touches it at ±g, whose curvature is 1/√(g² + ε²); the matrix c cᵀ of a contrast
        c lies below diag(|c_i| Σ|c|). The size of v's own curvature is added. A step of gradient over this, for all
        rows together, closes the gap and does not overshoot. The thresholds of listwise targets are held fixed.
        """
        return self._hessian(scores, self.contrast.gaps(self.target.value(scores)))

    def derivatives(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute `gradient` and `hessian_diagonal` together, for less work than one after the other."""
        gaps = self.contrast.gaps(self.target.value(scores))
        return self._gradient(scores, gaps), self._hessian(scores, gaps)

    def _gradient(self, scores: NDArray[Any], gaps: NDArray[Any]) -> NDArray[Any]:
        slope = self.contrast.pull_back(self._slope(gaps)).astype(scores.dtype, copy=False)
        return self.target.pull_back(scores, slope)

    def _hessian(self, scores: NDArray[Any], gaps: NDArray[Any]) -> NDArray[Any]:
        first, second = self.target.steepness(scores)
        size = np.maximum(np.hypot(gaps, self.smoothing), np.finfo(gaps.dtype).eps)
        means, pairs = self.contrast.means(first), self.contrast.pairs
        weight = pairs.weight.reshape(-1, *(1,) * (gaps.ndim - 1))
        pull = weight / size * (means[pairs.a] + means[pairs.b])
        on_cells = np.zeros(means.shape, means.dtype)
        np.add.at(on_cells, pairs.a, pull)
        np.add.at(on_cells, pairs.b, pull)
        bent = np.abs(self.contrast.pull_back(self._slope(gaps))) * second
        return np.asarray((self.contrast.cells.T @ on_cells) * first + bent).astype(scores.dtype, copy=False)

    def _value(self, gaps: NDArray[Any]) -> NDArray[Any]:
        return self.contrast.pairs.value(np.hypot(gaps, self.smoothing) - self.smoothing if self.smoothing else gaps)

    def _slope(self, gaps: NDArray[Any]) -> NDArray[Any]:
        slope = self.contrast.pairs.slope(gaps)
        return slope * (np.abs(gaps) / np.hypot(gaps, self.smoothing)) if self.smoothing else slope
