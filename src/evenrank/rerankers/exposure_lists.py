"""Random rankings of many lists at once: what is drawn with which chance, and the best draws for two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenrank.rerankers.exposure_program import MOST_ROUNDS, SAME
from evenrank.rerankers.permutohedron import decompose, project

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRECISION = 1e-11  # of the utility: what does not improve it by more does not improve it
CHUNK = 1 << 22  # places of all rankings of the lists that are decomposed together


@dataclass(eq=False)
class ListDraws:
    """Rankings of each list, drawn with chances.

    Attributes
    ----------
    ptr : ndarray
        The bounds of the lists, (q + 1,).
    place : ndarray
        The place of each row, from 0, in each ranking of its list, (n, rankings).
    chance : ndarray
        (q, rankings); 0 beyond those that a list has.
    slack : ndarray
        How far the groups' values are apart at most, (q,).
    feasible : ndarray
        Whether that is as asked, (q,).
    """

    ptr: Ints
    place: Ints
    chance: Floats
    slack: Floats
    feasible: NDArray[np.bool_]

    @classmethod
    def of(cls, ptr: Ints, most: int = 1) -> Self:
        """Make the draws of lists that stay as they are, with room for this many rankings."""
        n, q = int(ptr[-1]), len(ptr) - 1
        place = np.repeat((np.arange(n) - np.repeat(ptr[:-1], np.diff(ptr)))[:, None], most, axis=1)
        chance = np.zeros((q, most))
        chance[:, 0] = 1.0
        return cls(ptr, place, chance, np.zeros(q), np.ones(q, bool))

    @property
    def list_of_row(self) -> Ints:
        """The list of each row, (n,)."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def put(self, lists: Ints, place: Ints, chance: Floats, slack: Floats, feasible: NDArray[np.bool_]) -> None:
        """Enter draws of some lists, whose rows' places are (rows, rankings); there is room for more if needed."""
        more = place.shape[1] - self.place.shape[1]
        if more > 0:
            self.place = np.hstack([self.place, np.repeat(self.place[:, :1], more, axis=1)])
            self.chance = np.hstack([self.chance, np.zeros((len(self.chance), more))])
        chosen = np.zeros(len(self.ptr) - 1, bool)
        chosen[lists] = True
        rows = np.flatnonzero(chosen[self.list_of_row])
        self.place[rows, : place.shape[1]] = place
        self.chance[lists] = 0.0
        self.chance[lists, : chance.shape[1]] = chance
        self.slack[lists], self.feasible[lists] = slack, feasible

    def expected(self, weights: Floats) -> Floats:
        """Average the places' weights, (longest,), over the draws: (n,)."""
        return np.asarray((weights[self.place] * self.chance[self.list_of_row]).sum(axis=1))

    def drawn(self, seed: int, turn: Ints) -> Ints:
        """Draw one ranking of each list: the place of each row, (n,); ``turn`` numbers the lists from 0, (q,)."""
        chosen = np.random.default_rng(seed).random((len(self.chance), 1))[turn]
        below = np.cumsum(self.chance, axis=1) <= chosen
        last = (self.chance > 0).shape[1] - 1 - np.argmax(self.chance[:, ::-1] > 0, axis=1)
        column = np.minimum(below.sum(axis=1), last)  # rounding may leave the sum below 1
        return np.asarray(self.place[np.arange(len(self.place)), column[self.list_of_row]])

    def rankings(self, number: int) -> tuple[Ints, Floats]:
        """Give the rankings of one list, items from the top, (rankings, length), and their chances."""
        used = np.flatnonzero(self.chance[number] > 0)
        place = self.place[self.ptr[number] : self.ptr[number + 1], used]
        return np.argsort(place, axis=0).T, self.chance[number, used]


class TwoGroupLists:
    """Lists in which the difference of two groups' values is to be small, with one price of it per list.

    As the price rises so does the difference, and at one price two rankings meet: one on either side of what is asked.

    Parameters
    ----------
    utility : ndarray
        What exposure of each item is worth, (n,).
    signed : ndarray
        What it adds to the difference, (n,): the value for items of the second group, minus that for those of the
        first, 0 for others.
    weights : ndarray
        The places' weights, (longest,), falling.
    ptr : ndarray
        The bounds of the lists, (q + 1,).
    """

    def __init__(self, utility: Floats, signed: Floats, weights: Floats, ptr: Ints) -> None:
        self.utility, self.signed, self.weights, self.ptr = utility, signed, weights, ptr
        self.list_of_row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))

    def plain(self) -> tuple[Ints, Floats, Floats]:
        """The order by utility, its utility and the difference of the groups' values."""
        every = np.ones(len(self.ptr) - 1, bool)
        _, place = self._best(every, np.zeros(len(every)))
        return place, *self._result(place, every)

    def solve(self, lists: Ints, slack: Floats) -> ListDraws:
        """Find the draws of most utility of lists whose plain order is further apart than ``slack``, (q,).

        Where no mixture of rankings is as asked, the draw is that whose values are least apart.
        """
        low, u_low, d_low = self.plain()
        turned = np.where(d_low > 0, -1.0, 1.0)
        d_low, wanted = turned * d_low, -slack
        scale = np.maximum(np.abs(u_low), 1e-300)
        active = np.zeros(len(turned), bool)
        active[lists] = True
        high = low.copy()
        rows, high[rows] = self._best(active, turned, utility=0.0)
        u_high, d_high = self._result(high, active)
        d_high *= turned
        size = np.bincount(self.list_of_row, np.abs(self.signed) * self.weights[high], len(turned))
        short = active & (d_high < wanted - SAME * size)
        active &= ~short
        for _ in range(MOST_ROUNDS):
            rise = d_high - d_low
            active &= rise > 0
            if not active.any():
                break
            price = np.where(active, (u_low - u_high) / np.where(active, rise, 1.0), 0.0)
            rows, middle = self._best(active, price * turned)
            place = low.copy()
            place[rows] = middle
            u, d = self._result(place, active)
            d *= turned
            active &= u + price * d > u_low + price * d_low + PRECISION * scale
            below = active & (d <= wanted)
            for side, use in ((low, below), (high, active & ~below)):
                chosen = use[self.list_of_row]
                side[chosen] = place[chosen]
            u_low, d_low = np.where(below, u, u_low), np.where(below, d, d_low)
            above = active & ~below
            u_high, d_high = np.where(above, u, u_high), np.where(above, d, d_high)
        rise = d_high - d_low
        share = np.where(rise > 0, np.clip((wanted - d_low) / np.where(rise > 0, rise, 1.0), 0.0, 1.0), 1.0)
        share[short] = 1.0
        draws = ListDraws.of(self.ptr, 2)
        inside = np.isin(self.list_of_row, lists)
        place = np.stack([low, high], axis=1)[inside]
        apart = np.where(short, -d_high, slack)
        draws.put(lists, place, np.stack([1 - share, share], axis=1)[lists], apart[lists], ~short[lists])
        return draws

    def _best(self, lists: NDArray[np.bool_], price: Floats, *, utility: float = 1.0) -> tuple[Ints, Ints]:
        """The rows of these lists, and their places by utility and the price of what they add to the difference.

        Equal ones go by utility, then as they stand.
        """
        rows = np.flatnonzero(lists[self.list_of_row])
        of_row, own = self.list_of_row[rows], self.utility[rows]
        order = np.lexsort([-own, -(utility * own + price[of_row] * self.signed[rows]), of_row])
        lengths = np.diff(self.ptr)[lists]
        place = np.empty(len(rows), np.int64)
        place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return rows, place

    def _result(self, place: Ints, lists: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Utility and difference of these lists, (q,) each; 0 for others."""
        exposure = np.where(lists[self.list_of_row], self.weights[place], 0.0)
        q = len(self.ptr) - 1
        utility = np.bincount(self.list_of_row, self.utility * exposure, q)
        return utility.astype(float), np.bincount(self.list_of_row, self.signed * exposure, q).astype(float)


def in_proportion(merit: Floats, weights: Floats, ptr: Ints, strength: float) -> ListDraws:
    """Find draws whose exposure is in proportion to merit, as nearly as rankings allow.

    Parameters
    ----------
    merit : ndarray
        (n,), at least 0.
    weights : ndarray
        The places' weights, (longest,), falling.
    ptr : ndarray
        The bounds of the lists, (q + 1,).
    strength : float
        The part of the way from the order by merit.

    Returns
    -------
    ListDraws
        Where exposure is within 1e-9 of what was wanted it is feasible; a list without merit stays as it is.
    """
    draws = ListDraws.of(ptr)
    lengths = np.diff(ptr)
    for length in np.unique(lengths).tolist():
        every = np.flatnonzero(lengths == length)
        step = max(1, CHUNK // length**2)
        for lists in (every[begin : begin + step] for begin in range(0, len(every), step)):
            rows = ptr[lists][:, None] + np.arange(length)
            own, given = merit[rows], weights[:length]
            by_merit = np.argsort(np.argsort(-own, axis=1, kind="stable"), axis=1)
            total = own.sum(axis=1)
            wanted = own * (given.sum() / np.where(total > 0, total, 1.0))[:, None]
            wanted = np.where(total[:, None] > 0, strength * wanted + (1 - strength) * given[by_merit], given[by_merit])
            nearest = np.stack([project(line, given) for line in wanted])
            places, chances = decompose(nearest, given)
            apart = np.where(total > 0, np.abs(nearest - wanted).max(axis=1), np.nan)
            place = places.transpose(1, 2, 0).reshape(-1, len(places))
            draws.put(lists, place, chances.T, apart, apart <= 1e-9)
    return draws
