"""Pairwise measures: how often the more relevant of two items stands higher, by the groups of the two.

Definitions of Beutel et al. (2019) and Narasimhan et al. (2020); ties count one half. Pairs are counted per list by
sorting: with many grades of relevance a pair is found at the highest binary digit in which its grades differ, so that
every digit is a problem with two grades, and n rows cost n log n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenrank.measures.evaluation import divide
from evenrank.measures.lists import Places, group_codes, list_blocks
from evenrank.ranking import Ranking


class PairCounts(NamedTuple):
    """Pairs of items of one list by the groups of the two, the first of which should stand higher.

    Attributes
    ----------
    pairs : ndarray
        Pairs of an item of group i and one of group j, (q, G, G).
    wins, ties : ndarray
        Those whose first item has the higher score, and those tied, (q, G, G) or (q, G, G, models).
    """

    pairs: NDArray[np.float64]
    wins: NDArray[np.float64]
    ties: NDArray[np.float64]

    def pooled(self) -> PairCounts:
        """Add up all lists: (1, G, G, …)."""
        return PairCounts(*(part.sum(axis=0, keepdims=True) for part in self))

    @property
    def half_ties(self) -> NDArray[np.float64]:
        """Wins, with ties counted one half, in the shape of ``wins``."""
        return np.asarray(self.wins + self.ties / 2)

    def over_models(self) -> NDArray[np.float64]:
        """Give ``pairs`` in a shape that broadcasts with ``wins``."""
        return self.pairs.reshape(*self.pairs.shape, *(1,) * (self.wins.ndim - 3))


def relevance_pairs(
    first: NDArray[Any], size: NDArray[Any], relevance: NDArray[Any], membership: NDArray[Any], ptr: NDArray[np.int64]
) -> PairCounts:
    """Count the pairs of items of unequal relevance; the first item is the more relevant.

    Parameters
    ----------
    first, size : ndarray
        The places of `evenrank.ranking.Ranking`, (n,) or (n, models).
    relevance : ndarray
        (n,); whole numbers ≥ 0 are quickest.
    membership : ndarray
        (n, G); a row of unknown group takes no part.
    ptr : ndarray
        The bounds of the lists, (q + 1,).

    Returns
    -------
    PairCounts
        Counts of each list.

    Examples
    --------
    >>> ranking = Ranking(np.array([3.0, 2.0, 1.0]), np.array([0, 3]))
    >>> member = np.array([[1, 0], [0, 1], [0, 1]])
    >>> counts = relevance_pairs(ranking.first, ranking.size, np.array([1, 0, 2]), member, ranking.query_ptr)
    >>> counts.pairs[0].tolist(), counts.wins[0].tolist()
    ([[0.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]])
    """
    plain = relevance.dtype.kind in "iu" and relevance.min(initial=0) >= 0
    grade = relevance if plain else np.unique(relevance, return_inverse=True)[1].reshape(-1)
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    groups = membership.shape[1]
    total = PairCounts(
        np.zeros((len(ptr) - 1, groups, groups)),
        *(np.zeros((len(ptr) - 1, groups, groups, *first.shape[1:])) for _ in range(2)),
    )
    for digit in range(int(grade.max(initial=0)).bit_length()):
        higher, one = grade >> (digit + 1), (grade >> digit) & 1
        if not higher.any():
            return _added(total, _count(first, size, membership, ptr, one == 1), slice(None))
        order = np.lexsort([higher, query])
        starts = np.flatnonzero(np.diff(query[order], prepend=-1) | np.diff(higher[order], prepend=-1))
        lists = np.append(starts, len(order))
        # Lists with one grade only have no pair; most are such where grades are few.
        mixed = np.logical_or.reduceat(one[order], starts) & np.logical_or.reduceat(1 - one[order], starts)
        rows = order[np.repeat(mixed, np.diff(lists))]
        if not len(rows):
            continue
        bounds = np.concatenate([[0], np.cumsum(np.diff(lists)[mixed])])
        ranking = Ranking(-first[rows], bounds)
        part = _count(ranking.first, ranking.size, membership[rows], bounds, one[rows] == 1)
        _added(total, part, query[order][starts[mixed]])
    return total


def all_pairs(first: NDArray[Any], size: NDArray[Any], membership: NDArray[Any], ptr: NDArray[np.int64]) -> PairCounts:
    """Count all ordered pairs of two items of one list; relevance plays no part.

    Parameters
    ----------
    first, size, membership, ptr
        As in `relevance_pairs`.

    Returns
    -------
    PairCounts
        Counts of each list.
    """
    return _count(first, size, membership, ptr)


def _added(total: PairCounts, part: PairCounts, where: Any) -> PairCounts:
    for whole, more in zip(total, part, strict=True):
        np.add.at(whole, where, more) if isinstance(where, np.ndarray) else np.add(whole, more, out=whole)
    return total


def _count(
    first: NDArray[Any],
    size: NDArray[Any],
    membership: NDArray[Any],
    ptr: NDArray[np.int64],
    upper: NDArray[np.bool_] | None = None,
) -> PairCounts:
    """Pairs of an upper row with one that is not upper, by list; without ``upper``, of any row with any other."""
    n, groups = membership.shape
    flat = (first.reshape(n, -1), size.reshape(n, -1))
    models = flat[0].shape[1]
    pairs = np.zeros((len(ptr) - 1, groups, groups))
    wins, ties = (np.zeros((len(pairs), models, groups, groups)) for _ in range(2))
    for block in list_blocks(ptr, models * groups):
        places, member = Places.of(*flat, block), membership[block.rows]
        left = np.ones(len(member), bool) if upper is None else upper[block.rows]
        right = left if upper is None else ~left
        sides = [(member * side[:, None]).astype(float).reshape(-1, block.length, groups) for side in (left, right)]
        pairs[block.queries] = sides[0].sum(axis=1)[:, :, None] * sides[1].sum(axis=1)[:, None, :]
        own = np.einsum("cli,clj->cij", *sides)[:, None] if upper is None else np.zeros((1, 1, 1, 1))
        pairs[block.queries] -= own[:, 0]
        codes = group_codes(member) if places.untied else None
        if codes is None:
            won, tied = _tied_wins(places, *sides)
            ties[block.queries] = tied - own  # a row is tied with itself, which is no pair
        else:
            won = _untied_wins(places, np.where(left, codes, -1), np.where(right, codes, -1), groups)
        wins[block.queries] = won
    shape = (len(pairs), groups, groups, *first.shape[1:])
    return PairCounts(pairs, *(np.moveaxis(part, 1, 3).reshape(shape) for part in (wins, ties)))


def _untied_wins(places: Places, left: Any, right: Any, groups: int) -> NDArray[np.float64]:
    """Wins in lists without ties, of rows with one group each, (c, models, G, G)."""
    (count, length, models), number = places.first.shape, np.arange(groups)
    above, below = (np.empty((length, places.lists, groups)) for _ in range(2))
    np.equal(places.codes_at_rank(left)[:, :, None], number, out=above)
    lower = places.codes_at_rank(right)[:0:-1, :, None]  # from the last rank up to the second
    below[-1] = 0
    np.equal(lower, number, out=below[-2::-1])
    np.cumsum(below[::-1], axis=0, out=below[::-1])
    return (above.transpose(1, 2, 0) @ below.transpose(1, 0, 2)).reshape(count, models, groups, groups)


def _tied_wins(places: Places, left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wins and ties of lists with tied items or soft groups, (c, models, G, G); the sides are (c, length, G)."""
    length, groups = left.shape[1:]
    until = np.zeros((length + 1, places.lists, groups))
    np.cumsum(places.sums_at_start(right.reshape(-1, groups)), axis=0, out=until[1:])
    until = until.reshape(-1, groups)
    through = until[places.cells(places.first + places.size)]
    below = right.sum(axis=1)[:, None, None] - through
    tied = through - until[places.cells(places.first)]
    weight = left.transpose(0, 2, 1)[:, None]
    won, drawn = (weight @ part.transpose(0, 2, 1, 3) for part in (below, tied))
    return won, drawn


def accuracies(counts: PairCounts) -> NDArray[np.float64]:
    """Compute the share of pairs that stand the right way round, ties one half, (q, G, G, …); NaN without a pair."""
    return divide(counts.half_ties, counts.over_models())


def marginal_accuracies(counts: PairCounts, which: str = "marginal") -> NDArray[np.float64]:
    """Compute each group's accuracy over the pairs in which its item should stand higher.

    Parameters
    ----------
    counts : PairCounts
        Of each list, or pooled.
    which : str
        The other item's group: "marginal", any; "intra", the same; "inter", any other.

    Returns
    -------
    ndarray
        (q, G, …); NaN without a pair.
    """
    groups = counts.pairs.shape[1]
    same = np.eye(groups, dtype=bool)
    kept = {"marginal": np.ones_like(same), "intra": same, "inter": ~same}[which]
    mask = kept.reshape(1, groups, groups, *(1,) * (counts.wins.ndim - 3))
    return divide((counts.half_ties * mask).sum(axis=2), (counts.over_models() * mask).sum(axis=2))


def spread(values: NDArray[Any], least: int = 1) -> NDArray[np.float64]:
    """Give the largest less the smallest of each list's values, (q, g, …) → (q, …), over those that exist.

    Parameters
    ----------
    values : ndarray
        (q, g, …); NaN does not exist.
    least : int
        With fewer values than this the spread is NaN.

    Returns
    -------
    ndarray
        (q, …).

    Examples
    --------
    >>> spread(np.array([[0.25, np.nan, 1.0], [0.5, np.nan, np.nan]]), 2).tolist()
    [0.75, nan]
    """
    missing = np.isnan(values)
    highest = np.where(missing, -np.inf, values).max(axis=1, initial=-np.inf)
    lowest = np.where(missing, np.inf, values).min(axis=1, initial=np.inf)
    enough = (~missing).sum(axis=1) >= least
    return np.asarray(np.subtract(highest, lowest, out=np.full(highest.shape, np.nan), where=enough))


def between_groups(table: NDArray[Any]) -> NDArray[Any]:
    """List the entries of a table (q, G, G, …) off its diagonal: (q, G(G − 1), …)."""
    rows, columns = np.nonzero(~np.eye(table.shape[1], dtype=bool))
    return np.asarray(table[:, rows, columns])


def overall_accuracy(counts: PairCounts) -> NDArray[np.float64]:
    """Compute the accuracy over the pairs of all groups, (q, …); NaN without a pair."""
    return divide(counts.half_ties.sum(axis=(1, 2)), counts.over_models().sum(axis=(1, 2)))


def rank_equality(counts: PairCounts) -> NDArray[np.float64]:
    """Compute FARE's rank equality error: pairs of two groups whose item of the group should stand higher and does not.

    Parameters
    ----------
    counts : PairCounts
        From `relevance_pairs`.

    Returns
    -------
    ndarray
        Share of all pairs of two groups, (q, G, …); 0 is best.
    """
    groups = counts.pairs.shape[1]
    mixed = (~np.eye(groups, dtype=bool)).reshape(1, groups, groups, *(1,) * (counts.wins.ndim - 3))
    lost = ((counts.over_models() - counts.half_ties) * mixed).sum(axis=2)
    return divide(lost, (counts.over_models() * mixed).sum(axis=(1, 2))[:, None])


def rank_calibration(counts: PairCounts) -> NDArray[np.float64]:
    """Compute FARE's rank calibration error: pairs with an item of the group that stand the wrong way round.

    Parameters
    ----------
    counts : PairCounts
        From `relevance_pairs`.

    Returns
    -------
    ndarray
        Share of the pairs with an item of the group, (q, G, …); 0 is best.
    """

    def with_group(table: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(table.sum(axis=2) + table.sum(axis=1) - np.einsum("qgg...->qg...", table))

    pairs = np.broadcast_to(counts.over_models(), counts.wins.shape)
    return divide(with_group(pairs - counts.half_ties), with_group(pairs))


def marginal_spread(counts: PairCounts, kind: str) -> NDArray[np.float64]:
    """Compute the largest less the smallest of the groups' `marginal_accuracies`, (q, …)."""
    return spread(marginal_accuracies(counts, kind), 2)
