"""Γ of the top k as a function of a number added to some groups' scores, exactly.

Take one list: the items that move, best first, and the items that stay, best first. The top k holds the first x that
move and the first k − x that stay. When the moving items are raised, the one of rank r (from 0) enters at the moment it
passes the staying item of rank k − 1 − r, and that item leaves. So a list has at most k crossings, each known in
advance, and between two crossings nothing changes. All crossings of all lists are sorted, the changes of the groups'
sums are added up in that order, and Γ follows for every number there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Pairs
from evenrank.ranking import Ranking

# A crossing is known up to this much of the scores that cross; scores nearer than that may count as tied.
BLUR = 16 * np.finfo(np.float64).eps
# Values of Γ closer than this are one value: sums of fractions carry that much rounding.
SAME = 1e-12
# Where rounding decides which scores tie, so many numbers are tried by ranking the lists, if they may save this part.
TRIED, WORTH = 8, 1e-3


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
    score : ndarray
        (n,), float64; tied scores are equal.
    query : ndarray
        The number of each row's list, (n,), ascending.
    group : ndarray
        The group that each row moves with, (n,); -1 never moves.
    cell : ndarray
        The group that each row counts in, (n,); -1 is none.
    weight : ndarray
        What a row counts for in its group's mean, (strata, n).
    total : ndarray
        The sum of weights of each group, over all rows of the data, (strata, groups).
    pairs : Pairs
        The pairs of groups that Γ compares.
    ks : tuple of int
        The cut-offs; Γ is the mean over them.
    step : float
        The usual difference between neighbours in a list.
    """

    score: NDArray[np.float64]
    query: NDArray[np.int64]
    group: NDArray[np.int64]
    cell: NDArray[np.int64]
    weight: NDArray[np.float64]
    total: NDArray[np.float64]
    pairs: Pairs
    ks: tuple[int, ...]
    step: float
    _selected: dict[bytes, list[NDArray[np.float64]]] = field(default_factory=dict, repr=False)

    def adjusted(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add each group's offset, (groups,), to its rows' scores."""
        return np.asarray(self.score + np.append(offsets, 0.0)[self.group])

    def selected(self, offsets: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Give the chance of each row to be in the top k at some offsets, (groups,): one array (n,) per cut-off."""
        key = offsets.tobytes()
        if key not in self._selected:
            bounds = np.append(np.flatnonzero(np.diff(self.query, prepend=-1)), len(self.query))
            ranking = Ranking(self.adjusted(offsets), bounds)
            self._selected.clear()  # the last offsets are asked for again, others are not
            self._selected[key] = [ranking.top(k) for k in self.ks]
        return self._selected[key]

    def gamma(self, offsets: NDArray[np.float64]) -> float:
        """Give Γ at some offsets, (groups,), by ranking the lists."""
        groups = self.total.shape[1]
        known = self.cell >= 0
        values = []
        for chosen in self.selected(offsets):
            counted = (self.weight * chosen)[:, known]
            sums = [np.bincount(self.cell[known], part, minlength=groups).astype(float) for part in counted]
            values.append(self.gamma_of_sums(np.concatenate(sums)[None, :])[0])
        return float(np.mean(values))

    def gamma_of_sums(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give Γ of the selected weight in each cell, (states, strata · groups)."""
        means = sums / np.where(self.total > 0, self.total, 1).ravel()
        out = np.zeros(len(sums))
        for a, b, weight in zip(self.pairs.a, self.pairs.b, self.pairs.weight, strict=True):
            out += weight * np.abs(means[:, a] - means[:, b])
        return out

    def best_move(self, moving: NDArray[np.bool_], offsets: NDArray[np.float64]) -> Move:
        """Find the smallest number that makes Γ smallest when it is added to some groups' offsets.

        Parameters
        ----------
        moving : ndarray
            Which groups move, (groups,).
        offsets : ndarray
            The offsets so far, (groups,).

        Returns
        -------
        Move
            The number, 0 if nothing is gained, and Γ.
        """
        stay = Move(0.0, self.gamma(offsets))
        if np.bincount(self.query).max(initial=0) <= self.ks[0]:  # all rows are in every top k
            return stay
        moves = np.append(moving, False)[self.group]
        sides = _Side(self, moves, offsets), _Side(self, ~moves, offsets)
        blur = float(np.abs(offsets).max(initial=0))
        states, doubtful = _joined([_crossings(*sides, k, blur) for k in self.ks], self)
        best = _smallest(states, stay, self.step)
        for number in np.argsort(doubtful.gamma, kind="stable")[:TRIED].tolist():
            if doubtful.gamma[number] >= best.gamma - max(SAME, WORTH * stay.gamma):
                break
            low, high = float(doubtful.low[number]), float(doubtful.high[number])
            for by in dict.fromkeys((low, high, (low + high) / 2)):
                gamma = self.gamma(offsets + np.where(moving, by, 0.0))
                best = Move(by, gamma) if gamma < best.gamma - SAME else best
        return best


class _Side:
    """The rows that move, or those that stay: each list's from the best down, equal scores as blocks."""

    def __init__(self, lists: TopLists, mask: NDArray[np.bool_], offsets: NDArray[np.float64]) -> None:
        rows = np.flatnonzero(mask)
        score, query = lists.adjusted(offsets)[rows], lists.query[rows]
        if not ((np.diff(score) <= 0) | (np.diff(query) > 0)).all():
            order = np.lexsort((-score, query))
            rows, score, query = rows[order], score[order], query[order]
        self.score, self.query, self.size = score, query, np.abs(lists.score[rows])
        self.count = np.bincount(query, minlength=int(lists.query[-1]) + 1)
        self.start = np.cumsum(self.count) - self.count
        self.rank = np.arange(len(rows)) - self.start[query]
        new = np.ones(len(rows), bool)
        new[1:] = (np.diff(query) > 0) | (np.diff(score) != 0)
        self.block = np.cumsum(new) - 1
        self.block_size = np.bincount(self.block)
        self.block_first = self.rank[new]
        # What a row of the block counts for in each cell, ties averaged; the column past the groups is of none.
        groups, blocks = lists.total.shape[1], len(self.block_size)
        code = self.block * (groups + 1) + np.where(lists.cell[rows] < 0, groups, lists.cell[rows])
        sums = [np.bincount(code, weight[rows], minlength=blocks * (groups + 1)) for weight in lists.weight]
        means = [part.reshape(blocks, groups + 1)[:, :groups] / self.block_size[:, None] for part in sums]
        self.mean = np.concatenate(means, axis=1)


@dataclass(frozen=True, eq=False)
class _Crossings:
    """Crossings of one k: where (sorted), how surely, what changes, and what part of it at the crossing itself."""

    at: NDArray[np.float64]
    blur: NDArray[np.float64]
    exact: NDArray[np.bool_]
    change: NDArray[np.float64]
    part: NDArray[np.float64]
    before: NDArray[np.float64]


def _crossings(mover: _Side, stayer: _Side, k: int, blur: float) -> _Crossings:
    """All crossings at cut-off k, sorted; ``before`` are the sums when all that moves stands below all that stays."""
    partner_rank = k - 1 - mover.rank
    crosses = (partner_rank >= 0) & (partner_rank < stayer.count[mover.query])
    row = np.flatnonzero(crosses)
    partner = stayer.start[mover.query[row]] + partner_rank[row]
    at = stayer.score[partner] - mover.score[row]
    order = np.argsort(at, kind="stable")
    at, row, partner = at[order], row[order], partner[order]
    ours, theirs = mover.block[row], stayer.block[partner]
    # At the crossing both blocks are one, whose rows share the places that are left: this part of the changes is done.
    x, y = mover.block_size[ours], stayer.block_size[theirs]
    places = k - mover.block_first[ours] - stayer.block_first[theirs]
    least = np.maximum(0, places - y)
    part = (places * x / (x + y) - least) / (np.minimum(places, x) - least)
    sizes = mover.size[row] + stayer.size[partner] + np.abs(at) + blur
    change = mover.mean[ours] - stayer.mean[theirs]
    first = stayer.mean[stayer.block[stayer.rank < k]].sum(axis=0)
    left = mover.rank < k - stayer.count[mover.query]
    met = stayer.score[partner]
    exact = np.abs(mover.score[row] + at - met) <= 2 * np.spacing(np.abs(met))
    return _Crossings(at, BLUR * sizes, exact, change, part, first + mover.mean[mover.block[left]].sum(axis=0))


@dataclass(frozen=True, eq=False)
class _States:
    """What can be chosen: ranges of numbers, or single ones (low = high), and Γ there."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    gamma: NDArray[np.float64]


def _joined(curves: list[_Crossings], lists: TopLists) -> tuple[_States, _States]:
    """The states between the crossings of all cut-offs and at those where ties are certain; and where they are not.

    Of the latter Γ is known only if all crossings of a cluster are ties at once.
    """
    at = np.concatenate([curve.at for curve in curves])
    order = np.argsort(at, kind="stable")
    at = at[order]
    blur = np.concatenate([curve.blur for curve in curves])[order]
    exact = np.concatenate([curve.exact for curve in curves])[order]
    # A cluster is a run of crossings that cannot be told apart; between clusters Γ is certain.
    reach = np.maximum.accumulate(at + blur)
    depth = np.minimum.accumulate((at - blur)[::-1])[::-1]
    splits = np.flatnonzero(depth[1:] > reach[:-1]) + 1
    starts = np.concatenate([[0], splits])[: len(at)]
    ends = np.append(splits, len(at))[: len(at)]
    low = np.concatenate([[-np.inf], reach[ends - 1]])
    high = np.concatenate([depth[starts], [np.inf]])
    certain = np.zeros(len(starts), bool)
    if len(at):
        certain = (at[starts] == at[ends - 1]) & np.logical_and.reduceat(exact, starts)
    bounds = np.concatenate([[0], ends])
    between, tied = np.zeros(len(bounds)), np.zeros(len(starts))
    source = np.repeat(np.arange(len(curves)), [len(curve.at) for curve in curves])[order]
    for number, curve in enumerate(curves):
        done = np.concatenate([[0], np.cumsum(source == number)])[bounds]
        total = curve.before + np.concatenate([np.zeros((1, curve.change.shape[1])), np.cumsum(curve.change, axis=0)])
        between += lists.gamma_of_sums(total[done]) / len(curves)
        partial = np.cumsum(curve.change * curve.part[:, None], axis=0)
        partial = np.concatenate([np.zeros((1, partial.shape[1])), partial])
        middle = total[done[:-1]] + partial[done[1:]] - partial[done[:-1]]
        tied += lists.gamma_of_sums(middle) / len(curves)
    first, last = (at[starts], at[ends - 1]) if len(at) else (at, at)
    point = first[certain]
    sure = _States(
        np.concatenate([low, point]), np.concatenate([high, point]), np.concatenate([between, tied[certain]])
    )
    return sure, _States(first[~certain], last[~certain], tied[~certain])


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
    inside = min(step, float(high[chosen] - low[chosen]) / 2)
    by = low[chosen] + inside if low[chosen] >= 0 else high[chosen] - inside
    return Move(float(by), float(gamma[chosen]))


def usual_step(ordered: NDArray[Any], query: NDArray[np.int64]) -> float:
    """Give the median difference between neighbours of a list, of those that are more than rounding.

    Parameters
    ----------
    ordered : ndarray
        Scores, (n,), each list's from the best down.
    query : ndarray
        The number of each row's list, (n,).

    Returns
    -------
    float
        The median; 1 if no two scores of a list differ.
    """
    steps = ordered[:-1] - ordered[1:]
    sizes = np.maximum(np.abs(ordered[:-1]), np.abs(ordered[1:]))
    inside = (query[1:] == query[:-1]) & (steps > 0)
    visible = inside & (steps > 2.0**-40 * sizes)
    steps = steps[visible] if visible.any() else steps[inside]
    return float(np.median(steps)) if len(steps) else 1.0
