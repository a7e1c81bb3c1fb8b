"""The soft top k of `evenrank.targets`, compiled: boosting takes its value and slope of every row in every round.

Import it only where it is used: numba compiles (and caches) the kernels when they are first called.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from evenrank.targets import BoundTarget


class FastTopK(BoundTarget):
    """The compiled form of ``bind_target("topk", …)``, for float64 scores (n,).

    Parameters
    ----------
    query_ptr : ndarray
        The bounds of the lists, (q + 1,).
    k : int
        The cut-off.
    temperature : float
        Softness of the cut.
    floor : float
        The least spread of a list, above 0.
    """

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float) -> None:
        if not floor > 0:
            raise ValueError("the compiled soft top k needs a floor under the spread")
        self.ptr = np.asarray(query_ptr, np.int64)
        self.k, self.temperature, self.floor = k, temperature, floor
        n = int(self.ptr[-1])
        self._value, self._first = np.empty(n), np.empty(n)
        self._places = np.empty((len(self.ptr) - 1, 4))  # mean, spread, k-th and next score of each list
        self._at: NDArray[Any] | None = None

    def _go_to(self, scores: NDArray[Any]) -> None:
        if self._at is not scores:
            arguments = scores, self.ptr, self.k, self.temperature, self.floor
            _soft_top(*arguments, self._places, self._value, self._first)
            self._at = scores

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Give each row's soft share of the top k, (n,); see `BoundTarget.value`."""
        self._go_to(scores)
        return self._value

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        """Turn a slope in the values, (n,), into one in the scores; see `BoundTarget.pull_back`."""
        self._go_to(scores)
        out = np.empty_like(scores)
        _pull_back(scores, self.ptr, self.k, self._places, self._first, slope, out)
        return out

    def pull_lists(
        self, scores: NDArray[Any], slope: NDArray[Any], hold: NDArray[Any], longest: float = np.inf
    ) -> NDArray[Any]:
        """Share out the pull at a list's cut over all its rows, by how firmly the loss holds them.

        A row's weight is w = Σd · h/Σh, sums over its list, where d is the slope of its share of the top k and h its
        ``hold``; its pull is w (slope − the mean slope of the list, by w). With w = d it would be that of a cut that
        moves with the scores. So a step of Newton's, pull / h, is the same for rows of one slope, near the cut or far
        from it: there is nothing to learn about single rows. A list that the loss does not hold is left alone, as that
        of a query without a relevant item: a step there has no bound, and other lists would have to follow it.
        """
        self._go_to(scores)
        out = np.empty_like(scores)
        _pull_lists(self.ptr, self.k, self._places, self._first, slope, np.asarray(hold, np.float64), longest, out)
        return out


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _pull_lists(ptr: Any, k: int, places: Any, first: Any, slope: Any, hold: Any, longest: float, out: Any) -> None:
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        steep = held = drawn = 0.0
        lowest, highest = np.inf, -np.inf
        for i in range(begin, end):
            steep += first[i]
            held += hold[i]
            drawn += hold[i] * slope[i]
            lowest, highest = min(lowest, slope[i]), max(highest, slope[i])
        if end - begin <= k or not held > 0:
            out[begin:end] = 0
            continue
        mean = drawn / held
        step, farthest, most = steep / held, max(highest - mean, mean - lowest), longest * places[q, 1]
        if step * farthest > most:
            step = most / farthest
        for i in range(begin, end):
            out[i] = step * hold[i] * (slope[i] - mean)


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _place(scores: Any, begin: int, end: int, k: int, floor: float, best: Any) -> tuple[float, float, float, float]:
    """Mean, spread, and the k-th and the next score of the list; ``best`` is room for k + 1 scores."""
    total = 0.0
    for i in range(begin, end):
        total += scores[i]
    mean = total / (end - begin)
    total, held = floor * floor * (end - begin), 0
    for i in range(begin, end):
        score = scores[i]
        total += (score - mean) ** 2
        if held > k and score <= best[k]:
            continue
        j = held if held <= k else k
        while j > 0 and best[j - 1] < score:
            best[j] = best[j - 1]
            j -= 1
        best[j] = score
        if held <= k:
            held += 1
    return mean, np.sqrt(total / (end - begin)), best[k - 1], best[k]


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _soft_top(
    scores: Any,
    ptr: Any,
    k: int,
    temperature: float,
    floor: float,
    places: Any,
    value: Any,
    first: Any,
) -> None:
    best = np.empty(k + 1)
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        if end - begin <= k:
            value[begin:end] = 1
            first[begin:end] = 0
            continue
        mean, spread, last, following = _place(scores, begin, end, k, floor, best)
        places[q, 0], places[q, 1], places[q, 2], places[q, 3] = mean, spread, last, following
        middle, per_unit = (last + following) / 2, 1 / (temperature * spread)
        for i in range(begin, end):
            place = (scores[i] - middle) * per_unit
            small = np.exp(-abs(place))
            share = 1 / (1 + small)
            value[i] = share if place >= 0 else small * share
            first[i] = small * share * share * per_unit


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _pull_back(scores: Any, ptr: Any, k: int, places: Any, first: Any, slope: Any, out: Any) -> None:
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        if end - begin <= k:
            out[begin:end] = 0
            continue
        mean, spread, last, following = places[q]
        middle = (last + following) / 2
        total = drawn = 0.0
        above = below = 0
        for i in range(begin, end):
            pull = slope[i] * first[i]
            total += pull
            drawn += pull * (scores[i] - middle)
            above += scores[i] == last
            below += scores[i] == following
        drawn /= spread * spread * (end - begin)
        for i in range(begin, end):
            out[i] = slope[i] * first[i] - drawn * (scores[i] - mean)
            if scores[i] == last:
                out[i] -= total / (2 * above)
            if scores[i] == following:
                out[i] -= total / (2 * below)
