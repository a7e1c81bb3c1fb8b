"""What a target is once it is bound to lists, and the targets that look at a row's own score only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sigmoid_slope(scores: NDArray[Any]) -> NDArray[Any]:
    """Compute the derivative of the sigmoid."""
    small = np.exp(-np.abs(scores))
    return np.asarray(small / (1 + small) ** 2)


class BoundTarget:
    """A target bound to the lists of some data; scores are (n,) or (n, models) in stored order, float32 or float64."""

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute v, of the scores' shape."""
        raise NotImplementedError

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        """Turn a slope u in v into the slope Jᵀ u in the scores, through everything that v depends on."""
        raise NotImplementedError

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bound how fast each row's v moves and bends while no score moves by more than 1.

        The threshold and the spread of a list are held fixed. Both results have the scores' shape.
        """
        raise NotImplementedError


class Rowwise(BoundTarget):
    """v of a row depends on its own score alone."""

    def __init__(self, value: Any, first: Any, second: Any) -> None:
        self._value, self._first, self._second = value, first, second

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._value(scores))

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._first(scores) * slope)

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.abs(self._first(scores)), np.abs(self._second(scores))
