"""The targets that look at whole lists, compiled: for float64 scores (n,), list by list, whatever the lists' lengths.

Import it only where it is used: numba compiles (and caches) the kernels when they are first called. `lists` has the
same formulas for all other scores, and says what they are.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from evenrank.targets.bound import BoundTarget
from evenrank.targets.lists import LAPLACE, LEAST, TOLERANCE

FEW = 50  # so many are sorted by insertion, which takes less time
LONG = 10  # times the places that are looked for: most scores of such a list are seen at once not to be among them
kernel = numba.njit(cache=True, error_model="numpy")


class CompiledTarget(BoundTarget):
    """A target that remembers what it worked out at the last scores, so that a slope there takes less time."""

    _at: NDArray[Any] | None = None

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute v, (n,); see `BoundTarget.value`. The next scores overwrite it."""
        raise NotImplementedError


class CompiledTopK(CompiledTarget):
    """The compiled form of `SoftTopK`.

    Parameters
    ----------
    query_ptr : ndarray
        The bounds of the lists, (q + 1,) of int64.
    k : int
        The cut-off.
    temperature : float
        Softness of the cut.
    floor : float
        The least spread of a list.
    """

    shares = True

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        self.ptr, self.k, self.temperature, self.floor = query_ptr, k, temperature, floor
        self._value, self._first = np.empty((2, int(query_ptr[-1])))
        self._places = np.empty((len(query_ptr) - 1, 4))  # mean, spread, k-th and next score less the mean, of lists

    def _go_to(self, scores: NDArray[Any]) -> None:
        if self._at is not scores:
            arguments = scores, self.ptr, self.k, self.temperature, self.floor
            soft_top(*arguments, self._places, self._value, self._first)
            self._at = scores

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        self._go_to(scores)
        return self._value

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        self._go_to(scores)
        out = np.empty_like(scores)
        pull_back_top(scores, self.ptr, self.k, self._places, self._first, slope, out)
        return out


class CompiledExposure(CompiledTarget):
    """The compiled form of `SoftExposure`; the parameters are those of `CompiledTopK`."""

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        self.ptr, self.width, self.floor = query_ptr, float(LAPLACE * temperature), floor
        n = int(query_ptr[-1])
        self._order, self._sorted = np.empty(n, np.int64), np.empty((4, n))
        self._places = np.empty((len(query_ptr) - 1, 2))  # mean and spread of lists; 0 where nothing can move
        self._value = np.empty(n)

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        if self._at is not scores:
            arguments = scores, self.ptr, self.width, self.floor
            soft_exposure(*arguments, self._places, self._order, self._sorted, self._value)
            self._at = scores
        return self._value

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        self.value(scores)
        out = np.empty_like(scores)
        pull_back_exposure(scores, self.ptr, self.width, self._places, self._order, self._sorted, slope, out)
        return out


class CompiledCentered(BoundTarget):
    """The compiled form of `Centered`; the parameters are those of `CompiledTopK`."""

    def __init__(self, query_ptr: NDArray[np.int64], *_: Any) -> None:
        self.ptr = query_ptr

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        out = np.empty_like(scores)
        less_mean(scores, self.ptr, out)
        return out

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        return self.value(slope)


COMPILED = {"centered": CompiledCentered, "topk": CompiledTopK, "exposure": CompiledExposure}


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def of_exponential(score: float, small: float) -> tuple[float, float]:
    """Compute the sigmoid and its derivative without overflow, from e^−|score|."""
    share = 1 / (1 + small)
    return share if score >= 0 else small * share, small * share * share


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def sigmoid_and_slope(score: float) -> tuple[float, float]:
    """Compute the sigmoid and its derivative."""
    value, slope = of_exponential(score, np.exp(-abs(score)))
    return value, slope


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def less_mean(values: Any, ptr: Any, out: Any) -> None:
    """Write the values less their list's mean; see `centered`."""
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        first = values[begin]
        total = 0.0
        for i in range(begin, end):
            out[i] = values[i] - first
            total += out[i]
        mean = total / (end - begin)
        for i in range(begin, end):
            out[i] -= mean


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _spread(scores: Any, begin: int, end: int, floor: float) -> tuple[float, float]:
    """Mean and spread of the list; the spread of equal scores without a floor is 0."""
    length = end - begin
    total = highest = 0.0
    for i in range(begin, end):
        total += scores[i]
        highest = max(highest, abs(scores[i]))
    mean = total / length
    total = 0.0
    for i in range(begin, end):
        total += (scores[i] - mean) ** 2
    variance = total / length
    if LEAST < variance < 1 / LEAST and (floor > 0 or np.sqrt(variance) > 2 * TOLERANCE * highest):
        return mean, np.sqrt((total + floor * floor * length) / length)
    largest = total = 0.0
    for i in range(begin, end):
        largest = max(largest, abs(scores[i] - mean))
    if largest == 0 or (not floor > 0 and largest <= TOLERANCE * highest):
        return mean, floor
    for i in range(begin, end):
        total += ((scores[i] - mean) / largest) ** 2
    return mean, np.hypot(largest * np.sqrt(total / length), floor)


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _cut(scores: Any, begin: int, end: int, k: int, mean: float, best: Any) -> tuple[float, float]:
    """The k-th and the next score of the list, less its mean; ``best`` is room for k + 1 scores."""
    if k > FEW:
        rising = np.sort(scores[begin:end])
        return rising[-k] - mean, rising[-k - 1] - mean
    best[: k + 1] = -np.inf
    long = end - begin > LONG * (k + 1)
    for i in range(begin, end):
        score = scores[i]
        if long and score <= best[k]:
            continue
        for j in range(k + 1):  # no branch: whether a score of a short list is among the best cannot be foreseen
            above, held = score > best[j], best[j]
            best[j] = score if above else held
            score = held if above else score
    return best[k - 1] - mean, best[k] - mean


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def soft_top(
    scores: Any, ptr: Any, k: int, temperature: float, floor: float, places: Any, value: Any, first: Any
) -> None:
    """Write v and its slope with the cut held fixed; ``places`` takes what `CompiledTopK` says, (q, 4)."""
    best = np.empty(min(k, FEW) + 1)
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        mean, spread = _spread(scores, begin, end, floor) if end - begin > k else (0.0, 0.0)
        places[q, 0], places[q, 1] = mean, spread
        if spread == 0:
            first[begin:end] = 0
            continue
        last, following = _cut(scores, begin, end, k, mean, best)
        places[q, 2], places[q, 3] = last, following
        middle, width = (last + following) / 2, temperature * spread
        for i in range(begin, end):
            first[i] = (scores[i] - mean - middle) / width
    # All rows at once, one step after the other: so but for the exponential several are worked out together.
    for i in range(ptr[0], ptr[-1]):
        value[i] = np.exp(-abs(first[i]))
    for i in range(ptr[0], ptr[-1]):
        value[i], first[i] = of_exponential(first[i], value[i])
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        if places[q, 1] > 0:
            width = temperature * places[q, 1]
            for i in range(begin, end):
                first[i] /= width
        else:  # equal scores are in random order
            value[begin:end] = min(1.0, k / max(end - begin, 1))
            first[begin:end] = 0


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def pull_back_top(scores: Any, ptr: Any, k: int, places: Any, first: Any, slope: Any, out: Any) -> None:
    """Write what a slope in v is in the scores, after `soft_top`."""
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        if places[q, 1] == 0:
            out[begin:end] = 0
            continue
        mean, spread, last, following = places[q, 0], places[q, 1], places[q, 2], places[q, 3]
        middle = (last + following) / 2
        total = drawn = 0.0
        above = below = 0
        for i in range(begin, end):
            centred = scores[i] - mean
            pull = slope[i] * first[i]
            total += pull
            drawn += pull * ((centred - middle) / spread)
            above += centred == last
            below += centred == following
        drawn /= end - begin
        for i in range(begin, end):
            centred = scores[i] - mean
            out[i] = slope[i] * first[i] - drawn * (centred / spread)
            if centred == last:
                out[i] -= total / (2 * above)
            if centred == following:  # scores tied at the threshold share in moving it
                out[i] -= total / (2 * below)


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def _sort(scores: Any, begin: int, end: int, order: Any) -> None:
    """The rows of the list in the order of rising scores."""
    if end - begin > FEW:
        order[begin:end] = begin + np.argsort(scores[begin:end], kind="mergesort")
        return
    for i in range(begin, end):
        j = i
        while j > begin and scores[order[j - 1]] > scores[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def soft_exposure(
    scores: Any, ptr: Any, width: float, floor: float, places: Any, order: Any, by_rank: Any, value: Any
) -> None:
    """Write v; ``places`` takes each list's mean and spread, ``order`` and ``by_rank``, (4, n), its sorted rows."""
    place, fade, steep, others = by_rank[0], by_rank[1], by_rank[2], by_rank[3]
    log_2 = np.log(2.0)
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        length = end - begin
        places[q, 1] = 0
        if length <= 1:
            value[begin:end] = 1
            continue
        mean, spread = _spread(scores, begin, end, floor)
        places[q, 0], places[q, 1] = mean, spread
        if spread == 0:  # equal scores share the middle rank
            value[begin:end] = log_2 / np.log((length + 3) / 2)
            continue
        _sort(scores, begin, end, order)
        lower = upper = fade[begin] = 0.0
        for i in range(begin, end):
            place[i] = (scores[order[i]] - mean) / (width * spread)
            if i > begin:
                fade[i] = np.exp(place[i - 1] - place[i])
                lower = (lower + 1) * fade[i]
            others[i] = lower
        for j in range(length):
            i = end - 1 - j
            if j > 0:
                upper = (upper + 1) * fade[i + 1]
            rank = 1 + j + (others[i] - upper) / 2
            log = np.log(1 + rank)
            others[i] = (others[i] + upper) / 2
            value[order[i]] = log_2 / log
            steep[i] = -log_2 / (log * log * (1 + rank))


@kernel  # type: ignore[misc, untyped-decorator, unused-ignore]
def pull_back_exposure(
    scores: Any, ptr: Any, width: float, places: Any, order: Any, by_rank: Any, slope: Any, out: Any
) -> None:
    """Write what a slope in v is in the scores, after `soft_exposure`."""
    place, fade, steep, others = by_rank[0], by_rank[1], by_rank[2], by_rank[3]
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        mean, spread = places[q, 0], places[q, 1]
        if spread == 0 or end - begin <= 1:
            out[begin:end] = 0
            continue
        lower = upper = drawn = before = 0.0
        for i in range(begin, end):
            on_rank = slope[order[i]] * steep[i]
            lower = (lower + before) * fade[i]
            before = on_rank
            out[order[i]] = lower / 2 - on_rank * others[i]
        before = 0.0
        for j in range(end - begin):
            i = end - 1 - j
            if j > 0:
                upper = (upper + before) * fade[i + 1]
            before = slope[order[i]] * steep[i]
            out[order[i]] += upper / 2
            drawn += out[order[i]] * place[i]
        # A wider spread moves every place: what that does is shared out over the scores that make the spread.
        drawn *= width / (end - begin)
        for i in range(begin, end):
            out[i] = (out[i] - (scores[i] - mean) / spread * drawn) / (width * spread)
