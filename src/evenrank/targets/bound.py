"""What a target is once it is bound to lists, and the targets without a temperature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered

BLOCK = 1 << 14  # numbers that are worked on together


def sigmoid_slope(scores: NDArray[Any]) -> NDArray[Any]:
    """Compute the derivative of the sigmoid."""
    small = np.exp(-np.abs(scores))
    larger = 1 / (1 + small)
    return np.asarray(larger * (small * larger))


class BoundTarget:
    """A target bound to the lists of some data; scores are (n,) or (n, models) in stored order, float32 or float64.

    Attributes
    ----------
    shares : bool
        Whether v is a row's share of a place in its list, of which there are so many: the fewer there are, the smaller
        any gap can be.
    """

    shares = False

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute v, of the scores' shape."""
        raise NotImplementedError

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        """Turn a slope u in v into the slope Jᵀ u in the scores, through everything that v depends on."""
        raise NotImplementedError

    def counted(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute what v is the soft form of, as the top k itself, where a target can; else v."""
        return self.value(scores)

    def pull_lists(
        self,
        scores: NDArray[Any],
        slope: NDArray[Any],
        hold: NDArray[Any],
        longest: float = np.inf,
        least: NDArray[Any] | float = 0.0,
    ) -> NDArray[Any]:
        """Turn a slope in v into a pull at all rows of a list, where a target can; else as `pull_back` does.

        ``hold`` is how firmly the loss holds each row, its second derivative, (n,); pull / hold, a step of Newton's, is
        then at most ``longest`` times the spread of the list, or ``least`` where that is more, (q,).
        """
        return self.pull_back(scores, slope)

    def at(self, scores: NDArray[Any]) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        """Compute v, and what turns a slope in v into one in these scores, for less work than one after the other."""
        return self.value(scores), lambda slope: self.pull_back(scores, slope)

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bound how fast each row's v moves and bends while no score moves by more than 1.

        The mean, the threshold and the spread of a list are held fixed. Both results have the scores' shape.
        """
        raise NotImplementedError


def sigmoid_and_slope(scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute the sigmoid and its derivative without overflow, from one exponential."""
    if scores.size <= BLOCK:
        return _sigmoid_and_slope(scores)
    value, slope = np.empty_like(scores), np.empty_like(scores)
    # Few rows at a time stay in the processor's cache; long temporaries would cost more than the arithmetic.
    step = max(1, BLOCK // max(1, scores[:1].size))
    for start in range(0, len(scores), step):
        part = slice(start, start + step)
        value[part], slope[part] = _sigmoid_and_slope(scores[part])
    return value, slope


def _sigmoid_and_slope(scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    small = np.abs(scores)
    np.exp(np.negative(small, out=small), out=small)
    larger = 1 / (1 + small)  # the sigmoid of the score's size
    value = np.maximum(small, scores >= 0)  # which chooses 1 or the exponential for less than np.where takes
    value *= larger
    small *= larger
    return value, np.multiply(larger, small, out=larger)


class Rowwise(BoundTarget):
    """v of a row depends on its own score alone; ``both`` gives v and its first derivative."""

    def __init__(self, value: Any, first: Any, second: Any, both: Any) -> None:
        self._value, self._first, self._second, self._both = value, first, second, both

    def at(self, scores: NDArray[Any]) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        value, first = self._both(scores)
        return value, lambda slope: np.asarray(first * slope)

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
