"""Targets that look at the whole list: a soft top k, and the exposure of a soft rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.losses import sigmoid
from evenrank.targets.bound import BoundTarget, sigmoid_and_slope, sigmoid_slope

CHUNK = 1 << 17  # elements of the largest temporary; lists of one length are worked on together
KEPT = 1 << 22  # numbers that are kept between a value and its slope; with more they are computed again
LAPLACE = np.pi / np.sqrt(6)  # Laplace's distribution of this scale varies as much as the logistic one of scale 1
SHORT = 24  # lists up to this length are summed by a product with a table of ones, which takes less time
FAR = 600.0  # exponents that floating point holds
# Scores of a list that differ by less than this share of the largest one are equal; a spread² below the least one is
# worked out with care.
TOLERANCE, LEAST = 1e-12, 1e-280
LOG_2 = np.log(2)
Lists = NDArray[Any]  # (m, L): m lists of L scores


class Listwise(BoundTarget):
    """v of a row depends on its list; lists of one length are a dense block, so no loop runs over queries."""

    def __init__(self, query_ptr: NDArray[np.int64], temperature: float, floor: float, longer_than: int = 1) -> None:
        self.temperature = temperature
        self.floor = floor
        lengths = query_ptr[1:] - query_ptr[:-1]
        self._blocks: list[tuple[int, Any]] = []
        self._size = 0
        same = len(lengths) > 0 and bool(np.logical_and.reduce(lengths == lengths[0]))
        if same and longer_than < (first := int(lengths[0])) and len(lengths) * first <= CHUNK:
            # One block, as in most batches, which are many: nothing needs to be put together.
            self._size, self._whole = len(lengths) * first, first
            self._blocks = [(first, slice(int(query_ptr[0]), int(query_ptr[-1])))]
            return
        for length in lengths[:1].tolist() if same else np.unique(lengths).tolist():
            if length <= longer_than:
                continue
            starts = query_ptr[:-1] if same else query_ptr[:-1][lengths == length]
            self._size += len(starts) * length
            step = max(1, CHUNK // length)
            for begin in range(0, len(starts), step):
                part = starts[begin : begin + step]
                rows: Any = slice(int(part[0]), int(part[-1]) + length)
                if part[-1] - part[0] != (len(part) - 1) * length:
                    rows = (part[:, None] + np.arange(length)).ravel()
                self._blocks.append((length, rows))
        self._whole = 0  # the length of all lists, where they are one block

    def at(self, scores: NDArray[Any]) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        if self._size * (1 if scores.ndim == 1 else scores.shape[1]) > KEPT:
            return super().at(scores)
        if self._whole and scores.ndim == 1:
            of_lists, back = self._list_at(scores.reshape(-1, self._whole))
            return of_lists.reshape(-1), lambda slope: back(slope.reshape(-1, self._whole)).reshape(-1)
        value = np.ones_like(scores)
        backs = []
        for rows, (lists,) in self._lists(scores):
            of_lists, back = self._list_at(lists)
            value[rows] = self._apart(of_lists, scores)
            backs.append(back)

        def pull_back(slope: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros_like(scores)
            for (rows, (slopes,)), back in zip(self._lists(slope), backs, strict=True):
                out[rows] = self._apart(back(slopes), scores)
            return out

        return value, pull_back

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        out = np.ones_like(scores)  # in a list too short to be cut, and in a list of one
        for rows, (lists,) in self._lists(scores):
            out[rows] = self._apart(self._list_at(lists)[0], scores)
        return out

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros_like(scores)
        for rows, (lists, slopes) in self._lists(scores, slope):
            out[rows] = self._apart(self._list_at(lists)[1](slopes), scores)
        return out

    def steepness(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        first, second = np.zeros_like(scores), np.zeros_like(scores)
        for rows, (lists,) in self._lists(scores):
            steep, bent = self._list_steepness(lists)
            first[rows], second[rows] = self._apart(steep, scores), self._apart(bent, scores)
        return first, second

    def _lists(self, *columns: NDArray[Any]) -> Iterator[tuple[Any, list[Lists]]]:
        """The rows of each block and the columns there, one line per list and model."""
        for length, rows in self._blocks:
            if columns[0].ndim == 1:
                yield rows, [column[rows].reshape(-1, length) for column in columns]
            else:
                models = columns[0].shape[1]
                cut = [column[rows].reshape(-1, length, models).transpose(0, 2, 1) for column in columns]
                yield rows, [part.reshape(-1, length) for part in cut]

    @staticmethod
    def _apart(lists: Lists, like: NDArray[Any]) -> NDArray[Any]:
        """Lines back as rows of the scores' shape."""
        if like.ndim == 1:
            return lists.reshape(-1)
        length, models = lists.shape[1], like.shape[1]
        return lists.reshape(-1, models, length).transpose(0, 2, 1).reshape(-1, models)

    def _list_at(self, lists: Lists) -> tuple[Lists, Callable[[Lists], Lists]]:
        """v of the lists' items, and what turns a slope in v into one in the scores."""
        raise NotImplementedError

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        raise NotImplementedError


def _sum(lists: Lists) -> Lists:
    """The sum of each list, (m, 1); the function itself, since batches are small and many."""
    return np.asarray(np.add.reduce(lists, axis=1, keepdims=True))


def _products(lists: Lists, others: Lists) -> Lists:
    """The sum of each list's products, (m, 1)."""
    with np.errstate(over="ignore", under="ignore"):  # who cares for such numbers looks closer, as `_centred` does
        return _sum(lists * others)


def _centred(lists: Lists, floor: float) -> tuple[Lists, Lists, NDArray[np.bool_] | None]:
    """Scores less their list's mean, the spread √(variance + floor²), and where the spread is 0 (it is given as 1).

    Scores within rounding of each other are equal, as in a `Ranking`: their differences hold nothing but noise. None
    stands for no list of such scores.
    """
    tolerance, least = (1e-6, 1e-30) if lists.dtype.itemsize < 8 else (TOLERANCE, LEAST)
    length = lists.shape[1]
    mean = _sum(lists) / length
    centred = lists - mean
    variance = _products(centred, centred) / length
    spread, equal = np.sqrt(variance), None
    # Usual lists are seen to differ without looking closer: their least spread is beyond the rounding of any score.
    low, high = float(np.minimum.reduce(variance, axis=None)), float(np.maximum.reduce(variance, axis=None))
    highest = float(np.maximum.reduce(np.abs(lists), axis=None))
    usual = least < low and high < 1 / least and low**0.5 > 2 * tolerance * highest
    if not usual:
        largest = np.maximum.reduce(np.abs(centred), axis=1, keepdims=True)
        equal = largest <= tolerance * np.maximum.reduce(np.abs(lists), axis=1, keepdims=True)
        scale = np.where(equal, 1, largest)
        spread = scale * np.sqrt(_sum((centred / scale) ** 2) / length)
    if floor > 0:
        return centred, np.hypot(spread, floor).astype(lists.dtype, copy=False), None
    spread = spread.astype(lists.dtype, copy=False)
    return (centred, spread, None) if equal is None else (centred, np.where(equal, 1, spread), equal)


def _unless(equal: NDArray[np.bool_] | None, value: Any, otherwise: Lists) -> Lists:
    """``value`` in lists of equal scores."""
    return otherwise if equal is None else np.where(equal, np.asarray(value, otherwise.dtype), otherwise)


class SoftTopK(Listwise):
    """sigmoid((s − τ)/(T σ)): τ lies midway between the k-th and the next score, σ is the list's spread."""

    shares = True

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        super().__init__(query_ptr, temperature, floor, longer_than=k)
        self.k = k

    def _place(self, lists: Lists) -> tuple[Lists, Lists, Lists, NDArray[np.bool_] | None, Lists, Lists]:
        centred, spread, equal = _centred(lists, self.floor)
        cut = np.partition(centred, (-self.k - 1, -self.k), axis=1)
        last, following = cut[:, -self.k, None], cut[:, -self.k - 1, None]
        width = self.temperature * spread
        place = centred - (last + following) / 2
        place /= width
        return place, centred, width, equal, last, following

    def _list_at(self, lists: Lists) -> tuple[Lists, Callable[[Lists], Lists]]:
        place, centred, width, equal, last, following = self._place(lists)
        inside, steep = sigmoid_and_slope(place)

        def pull_back(slope: Lists) -> Lists:
            out = slope * steep
            half = _sum(out) / 2
            drawn = _products(out, place)
            drawn *= self.temperature**2 / lists.shape[1]
            drawn /= width
            out -= centred * drawn
            cut = (centred >= following) & (centred <= last)
            if np.count_nonzero(cut) == 2 * len(lists):  # the k-th item and the next one of each list, and no other
                np.subtract(out, half, out=out, where=cut)
            else:  # scores tied at a threshold share in moving it
                for tied in (centred == last, centred == following):
                    out -= half / _sum(tied).astype(lists.dtype) * tied
            out /= width
            return _unless(equal, 0, out)

        # Equal scores are in random order, where each item is in the top k with probability k / length.
        return _unless(equal, self.k / lists.shape[1], inside), pull_back

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        place, _, width, equal, _, _ = self._place(lists)
        first = _unless(equal, 0, sigmoid_slope(place) / width)
        return first, first * np.abs(1 - 2 * sigmoid(place)) / width


class SoftExposure(Listwise):
    """1/log2(1 + R), the soft rank R being 1 + Σ H((s_j − s_i)/(W T σ)) over the other items j of the list.

    H is Laplace's distribution function, e^x/2 below 0 and 1 − e^−x/2 above, and W gives it the spread of the logistic
    one. Its sums over a sorted list are running sums, so that nothing is worked out for each pair of items.
    """

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        super().__init__(query_ptr, temperature, floor)

    def _list_at(self, lists: Lists) -> tuple[Lists, Callable[[Lists], Lists]]:
        ranks = _Ranks(lists, self.temperature, self.floor)
        log = np.log1p(ranks.rank)
        value = LOG_2 / log
        steep = -value / ((1 + ranks.rank) * log)

        def pull_back(slope: Lists) -> Lists:
            on_rank = ranks.sort(slope) * steep
            lower, upper = ranks.fading(on_rank)
            lower += upper
            lower /= 2
            on_place = np.subtract(lower, on_rank * ranks.others, out=lower)
            # A wider spread moves every place: what that does is shared out over the scores that make the spread.
            drawn = _products(on_place, ranks.place)
            drawn *= LAPLACE * self.temperature / lists.shape[1]
            drawn /= ranks.spread
            out = ranks.unsort(on_place)
            out -= ranks.centred * drawn
            out /= ranks.width
            return _unless(ranks.equal, 0, out)

        return ranks.unsort(value), pull_back

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        ranks = _Ranks(lists, self.temperature, self.floor)
        log = np.log1p(ranks.rank)
        first = -LOG_2 / ((1 + ranks.rank) * log**2)
        second = -first * (1 + 2 / log) / (1 + ranks.rank)
        on_rank, twist = ranks.others, ranks.twist
        # Twice what the row's own score does: while it goes up, those it is compared with may go down.
        steep, bent = 2 * np.abs(first * on_rank), 2 * np.abs(second * on_rank**2 + first * twist)
        parts = ranks.unsort(steep) / ranks.width, ranks.unsort(bent) / ranks.width**2
        return _unless(ranks.equal, 0, parts[0]), _unless(ranks.equal, 0, parts[1])


@lru_cache(maxsize=64)
def _first_places(lists: int, length: int) -> NDArray[np.int64]:
    return np.arange(0, lists * length, length)[:, None]


@lru_cache(maxsize=64)
def _falling(length: int) -> NDArray[np.float64]:
    return np.arange(length, 0.0, -1.0)


@lru_cache(maxsize=SHORT)
def _triangles(length: int) -> tuple[Lists, Lists]:
    ones = np.ones((length, length))
    return np.triu(ones, 1), np.tril(ones, -1)


def _sums_beside(rising: Lists, falling: Lists) -> tuple[Lists, Lists]:
    """The sum of the first lists' items before each place, and of the second ones' items after it."""
    length = rising.shape[1]
    if length <= SHORT:
        before, after = _triangles(length)
        return rising @ before, falling @ after
    lower, upper = np.zeros_like(rising), np.zeros_like(falling)
    np.cumsum(rising[:, :-1], axis=1, out=lower[:, 1:])
    np.cumsum(falling[:, :0:-1], axis=1, out=upper[:, -2::-1])
    return lower, upper


class _Ranks:
    """The soft ranks of lists; what is (m, L) is in the order of rising scores and in double precision, unless said.

    Attributes
    ----------
    place : ndarray
        Scores in units of the width W T σ.
    rank, others, twist : ndarray
        R; Σ_j h((s_j − s_i)/width) over the other items, h being the slope of H; and the same of the slope of h.
    centred, spread, width, equal : ndarray
        Of `_centred`, in the scores' order and precision; the width, (m, 1).
    """

    def __init__(self, lists: Lists, temperature: float, floor: float) -> None:
        self.centred, self.spread, self.equal = _centred(lists, floor)
        self.width = LAPLACE * temperature * self.spread
        place = _unless(self.equal, 0, self.centred / self.width).astype(np.float64, copy=False)
        length = lists.shape[1]
        self._dtype = lists.dtype
        self._at = np.argsort(place, axis=1, kind="stable")
        self._at += _first_places(len(lists), length)
        self.place = self.sort(place)
        self._apart = float(np.maximum.reduce(self.place[:, -1] - self.place[:, 0]))
        self._up: Any = np.exp(self.place) if self._apart < FAR else None
        self._down: Any = None if self._up is None else 1 / self._up
        lower, upper = self.fading(None)
        lower -= upper
        lower /= 2
        self.twist = lower
        self.rank = _falling(length) + self.twist
        self.others = self.twist + upper

    def sort(self, lists: Lists) -> Lists:
        """Bring (m, L) from the order of the scores into that of rising ones."""
        return np.asarray(lists.reshape(-1)[self._at])

    def unsort(self, lists: Lists) -> Lists:
        """Bring (m, L) back, in the scores' precision."""
        out = np.empty(lists.size, self._dtype)
        out[self._at] = lists
        return out.reshape(lists.shape)

    def fading(self, weight: Lists | None) -> tuple[Lists, Lists]:
        """Σ of the weights (1 for None) of lower and of higher items, each times e^−(distance in widths)."""
        if self._up is not None:
            rising, falling = (self._up, self._down) if weight is None else (weight * self._up, weight * self._down)
            lower, upper = _sums_beside(rising, falling)
            lower *= self._down
            upper *= self._up
            return lower, upper
        lower, upper = np.zeros_like(self.place), np.zeros_like(self.place)
        # Numbers beyond the range of floating point: item by item, for all lists together.
        fade = np.exp(-np.diff(self.place, axis=1))
        own = np.ones_like(self.place) if weight is None else weight
        for i in range(1, self.place.shape[1]):
            lower[:, i] = (lower[:, i - 1] + own[:, i - 1]) * fade[:, i - 1]
            upper[:, -1 - i] = (upper[:, -i] + own[:, -i]) * fade[:, -i]
        return lower, upper
