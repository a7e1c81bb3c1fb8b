"""Targets that look at the whole list: a soft top k, and the exposure of a soft rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.losses import sigmoid
from evenrank.targets.bound import BoundTarget, sigmoid_slope

CHUNK = 1 << 20  # elements of the largest temporary; lists of one length are worked on together
Lists = NDArray[Any]  # (m, L): m lists of L scores


class Listwise(BoundTarget):
    """v of a row depends on its list; lists of one length are a dense block, so no loop runs over queries."""

    quadratic = False  # whether the temporaries hold one number per pair of items in a list

    def __init__(self, query_ptr: NDArray[np.int64], temperature: float, floor: float, longer_than: int = 1) -> None:
        self.temperature = temperature
        self.floor = floor
        lengths = np.diff(query_ptr)
        self._blocks: list[tuple[int, Any]] = []
        for length in np.unique(lengths[lengths > longer_than]).tolist():
            starts = query_ptr[:-1][lengths == length]
            step = max(1, CHUNK // (length * (length if self.quadratic else 1)))
            for begin in range(0, len(starts), step):
                rows = (starts[begin : begin + step, None] + np.arange(length)).ravel()
                solid = rows[-1] - rows[0] == len(rows) - 1
                self._blocks.append((length, slice(rows[0], rows[-1] + 1) if solid else rows))

    def value(self, scores: NDArray[Any]) -> NDArray[Any]:
        out = np.ones_like(scores)  # in a list too short to be cut, and in a list of one
        for rows, (lists,) in self._lists(scores):
            out[rows] = self._apart(self._list_value(lists), scores)
        return out

    def pull_back(self, scores: NDArray[Any], slope: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros_like(scores)
        for rows, (lists, slopes) in self._lists(scores, slope):
            out[rows] = self._apart(self._list_pull_back(lists, slopes), scores)
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

    def _list_value(self, lists: Lists) -> Lists:
        raise NotImplementedError

    def _list_pull_back(self, lists: Lists, slope: Lists) -> Lists:
        raise NotImplementedError

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        raise NotImplementedError


def _centred(lists: Lists, floor: float) -> tuple[Lists, Lists, NDArray[np.bool_]]:
    """Scores less their list's mean, the spread √(variance + floor²), and where the spread is 0 (it is given as 1).

    Scores within rounding of each other are equal, as in a `Ranking`: their differences hold nothing but noise.
    """
    tolerance = 1e-6 if lists.dtype.itemsize < 8 else 1e-12
    centred = lists - lists.mean(axis=1, keepdims=True)
    largest = np.abs(centred).max(axis=1, keepdims=True)
    equal = largest <= tolerance * np.abs(lists).max(axis=1, keepdims=True)
    scale = np.where(equal, 1, largest)
    spread = scale * np.sqrt(np.mean((centred / scale) ** 2, axis=1, keepdims=True))
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

    def _list_value(self, lists: Lists) -> Lists:
        place, _, _, equal, _, _ = self._place(lists)
        # Equal scores are in random order, where each item is in the top k with probability k / length.
        return np.where(equal, np.asarray(self.k / lists.shape[1], lists.dtype), sigmoid(place))

    def _list_pull_back(self, lists: Lists, slope: Lists) -> Lists:
        place, centred, spread, equal, last, following = self._place(lists)
        on_place = slope * sigmoid_slope(place)
        width = self.temperature * spread
        # Scores tied at the threshold share in moving it.
        above, below = centred == last, centred == following
        moves = (above / above.sum(axis=1, keepdims=True) + below / below.sum(axis=1, keepdims=True)) / 2
        out = (on_place - on_place.sum(axis=1, keepdims=True) * moves.astype(lists.dtype)) / width
        out -= _through_spread(centred, spread, (on_place * place).sum(axis=1, keepdims=True) / spread)
        return np.where(equal, 0, out)

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

    def _pairs(self, lists: Lists) -> tuple[Lists, NDArray[Any], NDArray[Any], Lists, Lists, NDArray[np.bool_]]:
        centred, spread, equal = _centred(lists, self.floor)
        width = (self.temperature * spread)[:, :, None]
        lead = np.where(
            equal[:, :, None], 0, (centred[:, None, :] - centred[:, :, None]) / width
        )  # (m, i, j): of j over i
        rank = sigmoid(lead).sum(axis=2) + np.asarray(0.5, lists.dtype)  # an item's lead over itself is 0, which adds ½
        return rank, lead, sigmoid_slope(lead), centred, spread, equal

    @staticmethod
    def _discount(rank: Lists) -> tuple[Lists, Lists, Lists]:
        """1/log2(1 + R) and its first and second derivative."""
        log = np.log1p(rank)
        first = -np.log(2) / ((1 + rank) * log**2)
        second = -first * (1 + 2 / log) / (1 + rank)
        return np.log(2) / log, first.astype(rank.dtype), second.astype(rank.dtype)

    def _list_value(self, lists: Lists) -> Lists:
        return self._discount(self._pairs(lists)[0])[0]

    def _list_pull_back(self, lists: Lists, slope: Lists) -> Lists:
        rank, lead, bend, centred, spread, equal = self._pairs(lists)
        on_lead = (slope * self._discount(rank)[1])[:, :, None] * bend
        out = (on_lead.sum(axis=1) - on_lead.sum(axis=2)) / (self.temperature * spread)
        out -= _through_spread(centred, spread, (on_lead * lead).sum(axis=(1, 2))[:, None] / spread)
        return np.where(equal, 0, out)

    def _list_steepness(self, lists: Lists) -> tuple[Lists, Lists]:
        rank, lead, bend, _, spread, equal = self._pairs(lists)
        width = self.temperature * spread
        on_rank = bend.sum(axis=2) - np.asarray(0.25, lists.dtype)
        twist = (bend * (1 - 2 * sigmoid(lead))).sum(axis=2)
        _, first, second = self._discount(rank)
        # Twice what the row's own score does: while it goes up, those it is compared with may go down.
        steep, bent = 2 * np.abs(first * on_rank) / width, 2 * np.abs(second * on_rank**2 + first * twist) / width**2
        return np.where(equal, 0, steep), np.where(equal, 0, bent)
