"""Where items of moving groups pass items of the others, for every list and cut-off; the same for all notions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.ranking import Ranking

# A crossing is known up to this much of the scores that cross; scores nearer than that may count as tied.
BLUR = 16 * np.finfo(np.float64).eps
DIGITS, DECIMALS = 53, 6  # binary, of a float; and decimals of scores that people write
FLOATS = np.finfo(np.float64).max / 4  # no crossing is further away, so that sums stay finite


@dataclass(frozen=True, eq=False)
class TopRows:
    """The rows that can be in a top k at some offsets, each list's from the best down.

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
    ks : tuple of int
        The cut-offs.
    step : float
        The usual difference between neighbours in a list.
    limit : float
        The largest move.
    crisp : bool
        Whether all scores of a list and group that differ still do so after any offset, in spite of rounding.
    """

    score: NDArray[np.float64]
    query: NDArray[np.int64]
    group: NDArray[np.int64]
    cell: NDArray[np.int64]
    ks: tuple[int, ...]
    step: float
    limit: float
    crisp: bool
    _selected: dict[bytes, list[NDArray[np.float64]]] = field(default_factory=dict, repr=False)
    _crossings: dict[bytes, Crossings] = field(default_factory=dict, repr=False)

    @cached_property
    def whole(self) -> bool:
        """Whether all rows are in every top k."""
        return bool(np.bincount(self.query).max(initial=0) <= self.ks[0])

    @cached_property
    def on_grid(self) -> bool:
        """Whether a tie that an offset makes stays one, after the next offset and on every processor.

        It does where sums carry no rounding (all scores are whole multiples of one power of two), and where rounding
        stays within what counts as tied (they are decimals of few places). Other scores meet in single points only.
        """
        moving = self.group >= 0
        size = np.abs(self.score)
        near = size[moving | (size <= size[moving].max(initial=0.0) + self.limit)]  # the others are sentinels
        if (np.round(near, DECIMALS) == near).all():
            return True
        mantissa, exponent = np.frexp(near[near > 0])
        whole = (mantissa * 2.0**DIGITS).astype(np.int64)
        last = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # the place of the last digit that is not 0
        finest = int((exponent - DIGITS + last).min(initial=0))
        return bool(int(np.frexp(4 * self.limit + near.max(initial=0.0))[1]) - finest < DIGITS)

    def adjusted(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add each group's offset, (groups,), to its rows' scores."""
        return np.asarray(self.score + np.append(offsets, 0.0)[self.group])

    def selected(self, offsets: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Give the chance of each row to be in the top k at some offsets, (groups,): one array (n,) per cut-off."""
        key = offsets.tobytes() if offsets.any() else b""
        if key not in self._selected:
            bounds = np.append(np.flatnonzero(np.diff(self.query, prepend=-1)), len(self.query))
            with np.errstate(over="ignore"):
                ranking = Ranking(self.adjusted(offsets), bounds)
            # Of no offsets, and of the last ones, it is asked for again.
            for old in [old for old in self._selected if old and key]:
                del self._selected[old]
            self._selected[key] = [ranking.top(k) for k in self.ks]
        return self._selected[key]

    def crossings(self, moving: NDArray[np.bool_], offsets: NDArray[np.float64]) -> Crossings:
        """Find all crossings of some groups, (groups,), when a number is added to their offsets, (groups,)."""
        if offsets.any() or len(moving) > 2:
            return Crossings.of(self, moving, offsets)
        # Of two groups, every notion asks for the same ones.
        key = moving.tobytes()
        if key not in self._crossings:
            self._crossings[key] = Crossings.of(self, moving, offsets)
        return self._crossings[key]


class Side:
    """The rows that move, or those that stay, each list's from the best down.

    Attributes
    ----------
    rows, score, query : ndarray
        The rows' numbers, adjusted scores and lists, (m,).
    count, start : ndarray
        The number of rows of each list, and where they begin, (queries,).
    rank : ndarray
        From 0 within the list, (m,).
    block_first, block_size : ndarray
        The rank at which the block of equal scores begins, and its size, (m,).
    starts : ndarray or None
        Where blocks begin; None if no scores of a list are equal.
    """

    def __init__(self, top: TopRows, mask: NDArray[np.bool_], offsets: NDArray[np.float64]) -> None:
        rows = np.flatnonzero(mask)
        score, query = (top.adjusted(offsets) if offsets.any() else top.score)[rows], top.query[rows]
        if offsets.any() and not ((np.diff(score) <= 0) | (np.diff(query) > 0)).all():
            order = np.lexsort((-score, query))
            rows, score, query = rows[order], score[order], query[order]
        self.rows, self.score, self.query = rows, score, query
        self.count = np.bincount(query, minlength=int(top.query[-1]) + 1)
        self.start = np.cumsum(self.count) - self.count
        self.rank = np.arange(len(rows)) - np.repeat(self.start, self.count)
        self.block_first, self.block_size, self.starts = self.rank, np.ones(1, np.int64), None
        same = (score[1:] == score[:-1]) & (query[1:] == query[:-1])
        if same.any():
            self.starts = np.flatnonzero(np.append(True, ~same))
            size = np.diff(np.append(self.starts, len(rows)))
            self.block_first, self.block_size = np.repeat(self.rank[self.starts], size), np.repeat(size, size)

    def average(self, values: NDArray[np.float64]) -> None:
        """Give tied rows the mean of their block, in values (columns, n) of all rows."""
        if self.starts is not None:
            size = np.diff(np.append(self.starts, len(self.rows)))
            means = np.add.reduceat(values[:, self.rows], self.starts, axis=1) / size
            values[:, self.rows] = np.repeat(means, size, axis=1)


@dataclass(frozen=True, eq=False)
class Crossings:
    """All crossings, in the order of the numbers at which they happen.

    Attributes
    ----------
    sides : tuple of Side
        The rows that move, and those that stay.
    comes, goes : ndarray
        The row that enters the top k, and the one that leaves it, (m,).
    curve : ndarray
        The number of the cut-off among the ``ks``, (m,).
    part : ndarray
        What part of the change is done at the crossing itself, where the two rows are tied, (m,) or (1,).
    before : list of ndarray
        By cut-off, the rows in the top k when all that moves stands below all that stays.
    bounds : ndarray
        Where clusters begin, and last the number of crossings, (clusters + 1,). A cluster is a run of crossings that
        cannot be told apart; between clusters everything is certain.
    first, last : ndarray
        The numbers of the first and the last crossing of each cluster, (clusters,).
    reach, depth : ndarray
        Beyond these all crossings of a cluster have, and below these none has happened, (clusters,).
    certain : ndarray
        Whether all crossings of a cluster happen at one number, as ties, (clusters,).
    """

    sides: tuple[Side, Side]
    comes: NDArray[np.int64]
    goes: NDArray[np.int64]
    curve: NDArray[np.int64]
    part: NDArray[np.float64]
    before: list[NDArray[np.int64]]
    bounds: NDArray[np.int64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    reach: NDArray[np.float64]
    depth: NDArray[np.float64]
    certain: NDArray[np.bool_]

    @classmethod
    def of(cls, top: TopRows, moving: NDArray[np.bool_], offsets: NDArray[np.float64]) -> Crossings:
        """Find the crossings of some groups, (groups,), beginning at some offsets, (groups,)."""
        moves = np.append(moving, False)[top.group]
        mover, stayer = Side(top, moves, offsets), Side(top, ~moves, offsets)
        found = [_meetings(mover, stayer, k) for k in top.ks]
        row, partner = (np.concatenate([each[part] for each in found]) for part in (0, 1))
        curve = np.repeat(np.arange(len(found)), [len(each[0]) for each in found])
        with np.errstate(over="ignore"):
            at = np.clip(stayer.score[partner] - mover.score[row], -FLOATS, FLOATS)
        order = np.argsort(at)
        at, row, partner, curve = at[order], row[order], partner[order], curve[order]
        met, comes, goes = stayer.score[partner], mover.rows[row], stayer.rows[partner]
        blur = BLUR * np.abs(at)
        blur += BLUR * np.abs(top.score[comes])
        blur += BLUR * np.abs(top.score[goes])
        blur += BLUR * float(np.abs(offsets).max(initial=0))
        high, low = np.maximum.accumulate(at + blur), np.minimum.accumulate((at - blur)[::-1])[::-1]
        splits = np.flatnonzero(low[1:] > high[:-1]) + 1
        bounds: NDArray[np.int64] = np.concatenate([[0], splits, [len(at)] if len(at) else []]).astype(np.int64)
        starts, ends = bounds[:-1], bounds[1:] - 1
        certain = at[starts] == at[ends]
        if len(at):
            with np.errstate(over="ignore"):
                exact = np.abs(mover.score[row] + at - met) <= 2 * np.spacing(np.abs(met))
            certain &= np.logical_and.reduceat(exact, starts)
        return cls(
            sides=(mover, stayer),
            comes=comes,
            goes=goes,
            curve=curve,
            part=_parts(mover, stayer, row, partner, np.array(top.ks)[curve]),
            before=[each[2] for each in found],
            bounds=bounds,
            first=at[starts],
            last=at[ends],
            reach=high[ends],
            depth=low[starts],
            certain=certain,
        )


def _meetings(mover: Side, stayer: Side, k: int) -> tuple[NDArray[np.int64], ...]:
    """Who passes whom at cut-off k, as places on the two sides; and the rows that are in the top k before."""
    rivals = np.repeat(stayer.count, mover.count)
    partner_rank = k - 1 - mover.rank
    row = np.flatnonzero((partner_rank >= 0) & (partner_rank < rivals))
    partner = stayer.start[mover.query[row]] + partner_rank[row]
    before = [stayer.rows[stayer.rank < k], mover.rows[mover.rank < k - rivals]]
    return row, partner, np.concatenate(before)


def _parts(
    mover: Side, stayer: Side, row: NDArray[np.int64], partner: NDArray[np.int64], k: NDArray[np.int64]
) -> NDArray[np.float64]:
    """At the crossing both blocks are one, whose rows share the places that are left: what part of the change it is."""
    if mover.starts is None and stayer.starts is None:
        return np.full(1, 0.5)
    x = np.broadcast_to(mover.block_size, mover.rank.shape)[row]
    y = np.broadcast_to(stayer.block_size, stayer.rank.shape)[partner]
    places = k - mover.block_first[row] - stayer.block_first[partner]
    least = np.maximum(0, places - y)
    return np.asarray((places * x / (x + y) - least) / (np.minimum(places, x) - least))


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
    with np.errstate(over="ignore"):
        steps = np.minimum(ordered[:-1] - ordered[1:], FLOATS)
    sizes = np.maximum(np.abs(ordered[:-1]), np.abs(ordered[1:]))
    inside = (query[1:] == query[:-1]) & (steps > 0)
    visible = inside & (steps > 2.0**-40 * sizes)
    steps = steps[visible] if visible.any() else steps[inside]
    return float(np.median(steps)) if len(steps) else 1.0
