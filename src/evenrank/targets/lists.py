"""Targets that look at the whole list: a soft top k, and the exposure of a soft rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.losses import sigmoid
from evenrank.targets.bound import BoundTarget, sigmoid_and_slope, sigmoid_slope

CHUNK = 1 << 17  # elements of the largest temporary; lists of one length are worked on together
KEPT = 1 << 22  # numbers of pairs that are kept between a value and its slope; with more they are computed again
Lists = NDArray[Any]  # (m, L): m lists of L scores


class Listwise(BoundTarget):
    """v of a row depends on its list; lists of one length are a dense block, so no loop runs over queries."""

    quadratic = False  # whether the temporaries hold one number per pair of items in a list

    def __init__(self, query_ptr: NDArray[np.int64], temperature: float, floor: float, longer_than: int = 1) -> None:
        self.temperature = temperature
        self.floor = floor
        lengths = np.diff(query_ptr)
        self._blocks: list[tuple[int, Any]] = []
        self._size = 0
        same = len(lengths) > 0 and bool((lengths == lengths[0]).all())  # as in most batches, which are many
        for length in lengths[:1].tolist() if same else np.unique(lengths).tolist():
            if length <= longer_than:
                continue
            starts = query_ptr[:-1] if same else query_ptr[:-1][lengths == length]
            numbers = length * (length if self.quadratic else 1)
            self._size += len(starts) * numbers
            step = max(1, CHUNK // numbers)
            for begin in range(0, len(starts), step):
                part = starts[begin : begin + step]
                rows: Any = slice(int(part[0]), int(part[-1]) + length)
                if part[-1] - part[0] != (len(part) - 1) * length:
                    rows = (part[:, None] + np.arange(length)).ravel()
                self._blocks.append((length, rows))

    def at(self, scores: NDArray[Any]) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        if self._size * (1 if scores.ndim == 1 else scores.shape[1]) > KEPT:
            return super().at(scores)
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


def _centred(lists: Lists, floor: float) -> tuple[Lists, Lists, NDArray[np.bool_]]:
    """Scores less their list's mean, the spread √(variance + floor²), and where the spread is 0 (it is given as 1).

    Scores within rounding of each other are equal, as in a `Ranking`: their differences hold nothing but noise.
    """
    tolerance = 1e-6 if lists.dtype.itemsize < 8 else 1e-12
    length = lists.shape[1]
    centred = lists - _sum(lists) / length
    largest = np.maximum.reduce(np.abs(centred), axis=1, keepdims=True)
    equal = largest <= tolerance * np.maximum.reduce(np.abs(lists), axis=1, keepdims=True)
    scale = np.where(equal, 1, largest)
    spread = scale * np.sqrt(_sum((centred / scale) ** 2) / length)
    if floor > 0:
        return centred, np.hypot(spread, floor).astype(lists.dtype, copy=False), np.zeros_like(equal)
    return centred, np.where(equal, 1, spread), equal


def _through_spread(centred: Lists, spread: Lists, slope: Lists) -> Lists:
    """Turn a slope in the spread, (m, 1), into one in the scores."""
    return np.asarray(slope * (centred / spread) / centred.shape[1])


class SoftTopK(Listwise):
    """sigmoid((s − τ)/(T σ)): τ lies midway between the k-th and the next score, σ is the list's spread."""

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        super().__init__(query_ptr, temperature, floor, longer_than=k)
        self.k = k

    def _place(self, lists: Lists) -> tuple[Lists, Lists, Lists, NDArray[np.bool_], Lists, Lists]:
        centred, spread, equal = _centred(lists, self.floor)
        cut = np.partition(centred, (-self.k - 1, -self.k), axis=1)
        last, following = cut[:, -self.k, None], cut[:, -self.k - 1, None]
        place = (centred - (last + following) / 2) / (self.temperature * spread)
        return place, centred, spread, equal, last, following

    def _list_at(self, lists: Lists) -> tuple[Lists, Callable[[Lists], Lists]]:
        place, centred, spread, equal, last, following = self._place(lists)
        inside, steep = sigmoid_and_slope(place)
        # Equal scores are in random order, where each item is in the top k with probability k / length.
        value = np.where(equal, np.asarray(self.k / lists.shape[1], lists.dtype), inside)

        def pull_back(slope: Lists) -> Lists:
            on_place = slope * steep
            width = self.temperature * spread
            # Scores tied at the threshold share in moving it.
            above, below = centred == last, centred == following
            moves = (above / _sum(above) + below / _sum(below)) / 2
            out = (on_place - _sum(on_place) * moves.astype(lists.dtype)) / width
            out -= _through_spread(centred, spread, _sum(on_place * place) / spread)
            return np.where(equal, 0, out)

        return value, pull_back

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        place, _, spread, equal, _, _ = self._place(lists)
        width = self.temperature * spread
        first = np.where(equal, 0, sigmoid_slope(place) / width)
        return first, first * np.abs(1 - 2 * sigmoid(place)) / width


class SoftExposure(Listwise):
    """1/log2(1 + R), the soft rank R being 1 + Σ sigmoid((s_j − s_i)/(T σ)) over the other items j of the list."""

    quadratic = True

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float = 0.0) -> None:
        super().__init__(query_ptr, temperature, floor)

    def _pairs(self, lists: Lists) -> tuple[Lists, NDArray[Any], Lists, Lists, Lists, NDArray[np.bool_]]:
        """Soft ranks, (m, L); the slope of each pair, (m, L, L); places in units of the width; and of `_centred`."""
        centred, spread, equal = _centred(lists, self.floor)
        place = np.where(equal, 0, centred / (self.temperature * spread))
        lead = place[:, None, :] - place[:, :, None]  # (m, i, j): of j over i
        ahead, bend = sigmoid_and_slope(lead)
        rank = ahead.sum(axis=2) + np.asarray(0.5, lists.dtype)  # an item's lead over itself is 0, which adds ½
        return rank, bend, place, centred, spread, equal

    @staticmethod
    def _discount(rank: Lists) -> tuple[Lists, Lists, Lists]:
        """1/log2(1 + R), its first derivative, and log(1 + R)."""
        log = np.log1p(rank)
        two = np.asarray(np.log(2), rank.dtype)
        return two / log, -two / ((1 + rank) * (log * log)), log

    def _list_at(self, lists: Lists) -> tuple[Lists, Callable[[Lists], Lists]]:
        rank, bend, place, centred, spread, equal = self._pairs(lists)
        value, steep, _ = self._discount(rank)

        def pull_back(slope: Lists) -> Lists:
            on_rank = slope * steep
            # The slope of a pair is the same from either side, so that sums over pairs are products with its table.
            columns = np.empty((*place.shape, 3), place.dtype)
            columns[:, :, 0], columns[:, :, 1], columns[:, :, 2] = on_rank, 1, place
            sums = bend @ columns
            total = sums[:, :, 1]
            out = (sums[:, :, 0] - on_rank * total) / (self.temperature * spread)
            moved = _sum(on_rank * (sums[:, :, 2] - place * total))
            out -= _through_spread(centred, spread, moved / spread)
            return np.where(equal, 0, out)

        return value, pull_back

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        rank, bend, place, _, spread, equal = self._pairs(lists)
        lead = place[:, None, :] - place[:, :, None]
        width = self.temperature * spread
        on_rank = bend.sum(axis=2) - np.asarray(0.25, lists.dtype)
        twist = (bend * (1 - 2 * sigmoid(lead))).sum(axis=2)
        _, first, log = self._discount(rank)
        second = -first * (1 + 2 / log) / (1 + rank)
        # Twice what the row's own score does: while it goes up, those it is compared with may go down.
        steep, bent = 2 * np.abs(first * on_rank) / width, 2 * np.abs(second * on_rank**2 + first * twist) / width**2
        return np.where(equal, 0, steep), np.where(equal, 0, bent)
