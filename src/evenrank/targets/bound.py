"""What a target is once it is bound to lists, and the targets of a row's own score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sigmoid_slope(scores: NDArray[Any]) -> NDArray[Any]:
    """The derivative of the sigmoid."""
    small = np.exp(-np.abs(scores))
    return np.asarray(small / (1 + small) ** 2)


class BoundTarget:
    """A target bound to the lists of some data; scores are (n,) or (n, models) in stored order, float32 or float64."""

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """v, the shape of the scores."""
        raise NotImplementedError

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        """Jᵀ u: a slope in v as one in the scores, through everything v depends on."""
        raise NotImplementedError

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """How fast v of each row moves, and bends, as scores move by up to 1, the list's threshold and spread held."""
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
