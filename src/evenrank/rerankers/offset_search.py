"""The search for the offsets of several groups: sets of groups are moved in turn, each by its best move."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenrank.rerankers.moving import SAME, TopLists

PASSES = 20
# With more groups than this, pairs of groups are no longer tried.
PAIRED = 8


def search(lists: TopLists, start: NDArray[np.float64], movable: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Find offsets of a small gap.

    With one movable group the smallest gap is found. With several, each group alone and all together are moved in turn
    until nothing is gained, then pairs of groups, from two starts; the best result is taken, and of equals the nearest
    to the start.

    Parameters
    ----------
    lists : TopLists
        The rows.
    start : ndarray
        The offsets to start from, (groups,).
    movable : ndarray
        Which groups may move, (groups,).

    Returns
    -------
    ndarray
        The offsets, (groups,).
    """
    singles = [np.arange(len(start)) == code for code in _by_size(lists, movable)]
    if len(singles) == 1:
        return start + np.where(singles[0], lists.best_move(singles[0], start).by, 0.0)
    pairs = [a | b for a, b in combinations(singles, 2)] if len(singles) <= PAIRED else []
    ends = [_descend(lists, begin, [*singles, movable], pairs) for begin in (start, _aligned(lists, start, movable))]
    gammas = [lists.gamma(end) for end in ends]
    changes = [float(np.abs(end - start).sum()) for end in ends]
    best = min(gammas)
    chosen = min((change, number) for number, change in enumerate(changes) if gammas[number] <= best + SAME)[1]
    if lists.rows.on_grid:
        return ends[chosen]
    return _last_move(lists, ends[chosen], [*singles, movable, *pairs])


def _last_move(lists: TopLists, offsets: NDArray[np.float64], moves: list[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """The best single move that may end in a tie, which no further move carries along."""
    found = [lists.best_move(moving, offsets, ties=True) for moving in moves]
    least = min(move.gamma for move in found)
    near = [(abs(move.by), number) for number, move in enumerate(found) if move.gamma <= least + SAME]
    chosen = min(near)[1]
    return offsets + np.where(moves[chosen], found[chosen].by, 0.0)


def _descend(
    lists: TopLists, offsets: NDArray[np.float64], moves: list[NDArray[np.bool_]], others: list[NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Moves in turn until none gains anything; then the others, and if one does, all over again."""
    for _ in range(PASSES):
        before = offsets
        offsets = _pass(lists, offsets, moves)
        if offsets is before:
            offsets = _pass(lists, offsets, others)
        if offsets is before:
            break
    return offsets


def _pass(lists: TopLists, offsets: NDArray[np.float64], moves: list[NDArray[np.bool_]]) -> NDArray[np.float64]:
    for moving in moves:
        by = lists.best_move(moving, offsets).by
        if by:
            offsets = offsets + np.where(moving, by, 0.0)
    return offsets


def _by_size(lists: TopLists, movable: NDArray[np.bool_]) -> list[int]:
    """The groups that may move, from the largest weight to the smallest."""
    weight = lists.total.sum(axis=0)
    return sorted(np.flatnonzero(movable).tolist(), key=lambda code: -weight[code])


def _aligned(lists: TopLists, start: NDArray[np.float64], movable: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Offsets that give all groups the median score of those that stay, among the rows that can reach the top."""
    rows = lists.rows
    held = 2 * np.median(rows.adjusted(start)[~np.append(movable, False)[rows.group]] / 2)
    offsets = start.copy()
    for code in np.flatnonzero(movable):
        mine = rows.score[rows.group == code]
        offsets[code] = held - 2 * np.median(mine / 2) if len(mine) else start[code]
        if len(mine) and not rows.on_grid:
            offsets[code] += rows.step / (np.pi + code)  # the two medians themselves are not to tie
    return offsets
