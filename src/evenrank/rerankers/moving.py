"""Γ of the top k as a function of a number added to some groups' scores, exactly.

Take one list: the items that move, best first, and the items that stay, best first. The top k holds the first x that
move and the first k − x that stay. When the moving items are raised, the one of rank r (from 0) enters at the moment it
passes the staying item of rank k − 1 − r, and that item leaves. So a list has at most k crossings, each known in
advance, and between two crossings nothing changes. All crossings of all lists are sorted (`evenrank.rerankers.
crossings`), the changes of the groups' sums are added up in that order, and Γ follows for every number there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.rerankers.crossings import Crossings, TopRows

# Values of Γ closer than this are one value: sums of fractions carry that much rounding.
SAME = 1e-12
# Where rounding decides which scores tie, so many numbers are tried by ranking the lists, if they may save this part.
TRIED, WORTH = 8, 1e-3
# Where an offset itself makes scores of one group tie, by rounding, as many are tried as rank so many rows.
RANKED = 1 << 16


@dataclass(frozen=True)
class Move:
    """What to add to the moving groups, and Γ then."""

    by: float
    gamma: float


@dataclass(frozen=True, eq=False)
class TopLists:
    """The rows that can be in a top k at some offsets, and what each counts for.

    Attributes
    ----------
    rows : TopRows
        The rows.
    weight : ndarray
        What a row counts for in its group's mean, (strata, n).
    total : ndarray
        The sum of weights of each group, over all rows of the data, (strata, groups).
    pairs : Pairs
        The pairs of groups that Γ compares.
    """

    rows: TopRows
    weight: NDArray[np.float64]
    total: NDArray[np.float64]
    pairs: Pairs

    @cached_property
    def by_pair(self) -> bool:
        """Whether sums are kept by pair of cells, which is shorter for few groups, or by cell."""
        return len(self.pairs.a) <= self.total.size

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """What each row adds to the sums when it is selected, (columns, n).

        By pair (a, b) it is its weight times the total of the other cell, so that whole weights stay whole numbers and
        no rounding piles up.
        """
        strata, groups = self.total.shape
        columns = len(self.pairs.a) if self.by_pair else self.total.size
        table = np.zeros((columns, strata * (groups + 1)))
        place = np.arange(strata * groups) + np.repeat(np.arange(strata), groups)  # the last of a stratum is no group
        if self.by_pair:
            total = self.total.ravel()
            each = np.arange(columns)
            table[each, place[self.pairs.a]] = total[self.pairs.b]
            table[each, place[self.pairs.b]] = -total[self.pairs.a]
        else:
            table[np.arange(columns), place] = 1.0
        cell = np.where(self.rows.cell < 0, groups, self.rows.cell)
        out = np.zeros((columns, len(cell)))
        for column, line in zip(out, table, strict=True):
            for stratum in range(strata):
                factor = line[stratum * (groups + 1) : (stratum + 1) * (groups + 1)]
                if factor.any():
                    column += factor[cell] * self.weight[stratum]
        return out

    def selected(self, offsets: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Give the chance of each row to be in the top k at some offsets, (groups,): one array (n,) per cut-off."""
        return self.rows.selected(offsets)

    def gamma(self, offsets: NDArray[np.float64]) -> float:
        """Give Γ at some offsets, (groups,), by ranking the lists."""
        sums = [(self.values * chosen).sum(axis=1) for chosen in self.selected(offsets)]
        return float(self.gamma_of_sums(np.stack(sums, axis=1)).mean())

    def gamma_of_sums(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give Γ of the selected rows' values, (columns, states)."""
        total, out = self.total.ravel(), np.zeros(sums.shape[1])
        for number, (a, b, weight) in enumerate(zip(self.pairs.a, self.pairs.b, self.pairs.weight, strict=True)):
            if self.by_pair:
                out += np.abs(sums[number]) * (weight / (total[a] * total[b]))
            else:
                out += weight * np.abs(sums[a] / total[a] - sums[b] / total[b])
        return out

    def best_move(self, moving: NDArray[np.bool_], offsets: NDArray[np.float64], *, ties: bool = False) -> Move:
        """Find the smallest number that makes Γ smallest when it is added to some groups' offsets.

        Parameters
        ----------
        moving : ndarray
            Which groups move, (groups,).
        offsets : ndarray
            The offsets so far, (groups,).
        ties : bool
            Whether a single number at which rows tie may be chosen of more than two groups' real-valued scores.

        Returns
        -------
        Move
            The number, 0 if nothing is gained, and Γ.
        """
        best = stay = Move(0.0, self.gamma(offsets))
        if self.rows.whole or stay.gamma <= SAME:
            return stay
        states, doubtful = self._states(self.rows.crossings(moving, offsets))
        if len(moving) > 2 and not (ties or self.rows.on_grid):
            # The next move would carry a tie along, and its last digits would decide whether it stays one.
            states, doubtful = states.ranges(), doubtful.sorted(0)
        many = RANKED // len(self.rows.score) if len(moving) == 2 else 0
        if self.rows.crisp:
            best = _smallest(states, stay, self.rows.step)
            tried = doubtful.sorted(max(TRIED, many))
            tried = tried if many > TRIED else tried.below(best.gamma - max(SAME, WORTH * stay.gamma))
        else:
            tried = states.joined(doubtful).sorted(max(TRIED, many))
        for low, high in zip(tried.low.tolist(), tried.high.tolist(), strict=True):
            for by in _numbers(low, high, self.rows.step):
                gamma = self.gamma(offsets + np.where(moving, by, 0.0))
                nearer = abs(gamma - best.gamma) <= SAME and abs(by) < abs(best.by) and not self.rows.crisp
                if gamma < best.gamma - max(SAME, WORTH * stay.gamma) or nearer:
                    best = Move(by, gamma)
        return best

    def _states(self, found: Crossings) -> tuple[_States, _States]:
        """The states between the crossings and at those where ties are certain; and those where they are not.

        Of the latter Γ is known only if all crossings of a cluster are ties at once.
        """
        values = self.values
        if any(side.starts is not None for side in found.sides):
            values = values.copy()
            for side in found.sides:
                side.average(values)
        change = values[:, found.comes] - values[:, found.goes]
        partial = change * found.part
        between, tied = np.zeros(len(found.bounds)), np.zeros(len(found.first))
        curves = len(self.rows.ks)
        for number, rows in enumerate(found.before):
            done, mine = found.bounds, slice(None)
            if curves > 1:
                here = found.curve == number
                done, mine = np.concatenate([[0], np.cumsum(here)])[found.bounds], here
            start = values[:, rows].sum(axis=1, keepdims=True)
            total, middle = _running(change[:, mine], start)[:, done], _running(partial[:, mine])[:, done]
            between += self.gamma_of_sums(total) / curves
            tied += self.gamma_of_sums(total[:, :-1] + middle[:, 1:] - middle[:, :-1]) / curves
        sure, point = found.certain, found.first[found.certain]
        limit = self.rows.limit
        states = _States(
            np.concatenate([[-limit], found.reach, point]),
            np.concatenate([found.depth, [limit], point]),
            np.concatenate([between, tied[sure]]),
        )
        return states.within(limit), _States(found.first[~sure], found.last[~sure], tied[~sure]).within(limit)


def _running(values: NDArray[np.float64], start: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
    """Sums of the first 0, 1, … columns, (rows, columns + 1)."""
    out = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    out += start
    return out


@dataclass(frozen=True, eq=False)
class _States:
    """What can be chosen: ranges of numbers, or single ones (low = high), and Γ there."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    gamma: NDArray[np.float64]

    def joined(self, other: _States) -> _States:
        pairs = ((self.low, other.low), (self.high, other.high), (self.gamma, other.gamma))
        return _States(*(np.concatenate(pair) for pair in pairs))

    def ranges(self) -> _States:
        """Those that leave a choice, without the single numbers at which rows tie."""
        wide = self.low < self.high
        return _States(self.low[wide], self.high[wide], self.gamma[wide])

    def within(self, limit: float) -> _States:
        """Those that can be reached."""
        good = (self.low <= limit) & (self.high >= -limit)
        if good.all() and self.low.min(initial=0) >= -limit and self.high.max(initial=0) <= limit:
            return self
        return _States(np.maximum(self.low[good], -limit), np.minimum(self.high[good], limit), self.gamma[good])

    def sorted(self, most: int) -> _States:
        """Those of the smallest Γ."""
        order = np.argsort(self.gamma, kind="stable")[:most]
        return _States(self.low[order], self.high[order], self.gamma[order])

    def below(self, gamma: float) -> _States:
        """Those whose Γ is smaller."""
        good = self.gamma < gamma
        return _States(self.low[good], self.high[good], self.gamma[good])


def _smallest(states: _States, stay: Move, step: float) -> Move:
    """The state of the smallest Γ, of these the one nearest to 0, and in it a number just inside."""
    least = min(stay.gamma, float(states.gamma.min()))
    if stay.gamma <= least + SAME:
        return stay
    good = states.gamma <= least + SAME
    low, high, gamma = states.low[good], states.high[good], states.gamma[good]
    distance = np.maximum(np.maximum(low, -high), 0)
    nearest = distance == distance.min()
    # Of two states equally near the one that raises the moving groups.
    chosen = int(np.flatnonzero(nearest)[np.argmax(high[nearest])])
    inside = min(step, float(high[chosen]) / 2 - float(low[chosen]) / 2)
    by = low[chosen] + inside if low[chosen] >= 0 else high[chosen] - inside
    return Move(float(by), float(gamma[chosen]))


def _numbers(low: float, high: float, step: float) -> list[float]:
    """Numbers to try in a range: its ends, just inside them, and its middle."""
    inside = min(step, high / 2 - low / 2)
    return list(dict.fromkeys((low, high, low + inside, high - inside, low / 2 + high / 2)))
