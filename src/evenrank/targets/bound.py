"""What a target is once it is bound to lists, and the targets without a temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered


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

        The mean, the threshold and the spread of a list are held fixed. Both results have the scores' shape.
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


class Centered(BoundTarget):
    """v is the score less the mean of its list: what differs between lists cannot change a ranking."""

    def __init__(self, query_ptr: NDArray[np.int64]) -> None:
        self.query_ptr = query_ptr

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        return centered(scores, self.query_ptr)

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        return centered(slope, self.query_ptr)

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.ones_like(scores), np.zeros_like(scores)
