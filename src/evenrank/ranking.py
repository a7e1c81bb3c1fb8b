"""`Ranking`: where each row stands in its query, for one score vector or a matrix of models at once.

A row's place is two integers: how many items of its query stand strictly above it (``first``) and how many
share its score, itself included (``size``). Every expectation under random tie-breaking follows from these:
the block of a row occupies the ranks first + 1 … first + size, and the row is equally likely at each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_k, choose
from evenrank.discounts import discount_sums
from evenrank.row_checks import as_array

if TYPE_CHECKING:
    from evenrank.data import RankingData

CHUNK = 1 << 17
# Counting pairs is faster than sorting up to this length, and only for many lists: it takes a pass over all lists per
# pair of places, which costs about as much for one list as for a thousand.
SHORT, MANY = 24, 8  # lists, in squares of their length
TIES = ("average", "input")
ULPS = 4  # scores no further apart than this many units in the last place are tied


class Ranking:
    """Ranks within queries, ties averaged exactly.

    Parameters
    ----------
    scores : ndarray
        (n,) or (n, models), in stored order; finite numbers or integers, of which higher is better.
    query_ptr : ndarray
        The bounds of the queries, (q + 1,).
    ties : str
        "average" takes expectations over random tie-breaking; "input" keeps the order of the rows.
        Scores of a query are tied if equal or within 4 ulps, in their own precision, of the larger of the two in
        magnitude; integers if equal. Blocks are made from the largest score down: a score joins the block above it if
        it is tied with that block's first score, and starts a new one otherwise. No other score of the list counts.

    Attributes
    ----------
    first, size : ndarray
        The number of items above each row, and of those that share its score, in the shape of ``scores``.

    Examples
    --------
    >>> ranking = Ranking(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4]))
    >>> ranking.top(2).tolist(), ranking.rank.tolist()
    ([1.0, 0.5, 0.5, 1.0], [1.0, 2.5, 2.5, 1.0])
    """

    def __init__(self, scores: NDArray[Any], query_ptr: NDArray[np.int64], *, ties: str = "average") -> None:
        choose(ties, TIES, what="ties")
        scores = as_array(scores, "scores")
        table = scores[:, None] if scores.ndim == 1 else scores
        first, size = _places(table, query_ptr, by_input=ties == "input")
        self.query_ptr = query_ptr
        self.first: NDArray[np.int32] = first.reshape(scores.shape)
        self.size: NDArray[np.int32] = size.reshape(scores.shape)
        self.untied = bool(size.max(initial=1) == 1)

    @property
    def rank(self) -> NDArray[np.float64]:
        """Expected rank from 1, the shape of the scores."""
        return np.asarray(self.first + (self.size + 1) / 2)

    def top(self, k: int) -> NDArray[np.float64]:
        """Give each row's probability of being among its query's first k.

        Parameters
        ----------
        k : int
            The cut-off.

        Returns
        -------
        ndarray
            The shape of the scores; 1 in a query of at most k items.
        """
        k = min(check_k(k), len(self.first))
        if self.untied:
            return (self.first < k).astype(np.float64)
        return np.asarray(np.clip(k - self.first, 0, self.size) / self.size)

    def exposure(self, k: int | None = None) -> NDArray[np.float64]:
        """Give each row's expected position discount 1/log2(1 + rank).

        Parameters
        ----------
        k : int, optional
            The discount is 0 below this rank.

        Returns
        -------
        ndarray
            The shape of the scores.
        """
        if k is not None:
            check_k(k)
        return self.expected(discount_sums(int(np.diff(self.query_ptr).max()), k))

    def expected(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each row's expected value of a function of the rank.

        Parameters
        ----------
        sums : ndarray
            Its sums over the first 0, 1, 2, … ranks, (longest list + 1,).

        Returns
        -------
        ndarray
            The shape of the scores.
        """
        if self.untied:
            return np.asarray(np.diff(sums)[self.first])
        return np.asarray((sums[self.first + self.size] - sums[self.first]) / self.size)


def descending(values: NDArray[Any], ptr: NDArray[np.int64]) -> NDArray[Any]:
    """Sort the values of each query from the largest to the smallest.

    Parameters
    ----------
    values : ndarray
        (n,), in stored order.
    ptr : ndarray
        The bounds of the queries, (q + 1,).

    Returns
    -------
    ndarray
        (n,).

    Examples
    --------
    >>> descending(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 3])).tolist()
    [3.0, 1.0, 2.0]
    """
    out = values.copy()
    lengths = np.diff(ptr)
    for length in np.unique(lengths[lengths > 1]).tolist():
        rows = ptr[:-1][lengths == length][:, None] + np.arange(length)
        out[rows] = -np.sort(-values[rows], axis=1)
    return out


def strict_places(stored: NDArray[Any], data: RankingData) -> NDArray[np.int64]:
    """Give places within the query, with ties broken by item id, or by row where there is none.

    Everything that must give one order breaks ties so: re-rankers and ``evenrank rank``.

    Parameters
    ----------
    stored : ndarray
        Scores, (n,), in stored order.
    data : RankingData
        The rows.

    Returns
    -------
    ndarray
        Places from 0, (n,).
    """
    ranking = Ranking(stored, data.query_ptr)
    if ranking.untied:
        return ranking.first.astype(np.int64)
    if data.item_ids is None:
        return Ranking(stored, data.query_ptr, ties="input").first.astype(np.int64)
    try:
        by_item = np.lexsort([data.item_ids, data.query_of_row])
    except TypeError:
        by_item = np.lexsort([np.array([str(item) for item in data.item_ids.tolist()]), data.query_of_row])
    place = np.empty(data.n_rows, np.int64)
    place[by_item] = Ranking(stored[by_item], data.query_ptr, ties="input").first
    return place


def _places(
    scores: NDArray[Any], ptr: NDArray[np.int64], *, by_input: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``first`` and ``size`` of an (n, models) table.

    Queries of one length are a dense block, so ragged lists cost no padding and no loop over queries.
    """
    n, models = scores.shape
    first = np.zeros((n, models), np.int32)
    size = np.ones((n, models), np.int32)
    lengths = np.diff(ptr)
    for length in np.unique(lengths[lengths > 1]).tolist():
        starts = ptr[:-1][lengths == length]
        step = max(1, CHUNK // (length * models))
        for begin in range(0, len(starts), step):
            chunk = starts[begin : begin + step]
            rows: Any = (chunk[:, None] + np.arange(length)).ravel()
            if rows[-1] - rows[0] == len(rows) - 1:
                rows = slice(rows[0], rows[-1] + 1)
            lists = scores[rows].reshape(-1, length, models).transpose(0, 2, 1).reshape(-1, length)
            with np.errstate(over="ignore", invalid="ignore"):  # infinities compare as they should
                above, sizes = _list_places(lists, by_input=by_input)
            first[rows] = above.reshape(-1, models, length).transpose(0, 2, 1).reshape(-1, models)
            if sizes is not None:
                size[rows] = sizes.reshape(-1, models, length).transpose(0, 2, 1).reshape(-1, models)
    return first, size


def _list_places(lists: NDArray[Any], *, by_input: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Places in each line of a dense (lists, length) table; no sizes if nothing is tied."""
    length = lists.shape[1]
    if length > SHORT or len(lists) < MANY * length**2:
        return _places_by_sorting(lists, by_input=by_input)
    columns = np.ascontiguousarray(lists.T)
    above, below = _count_pairs(columns, _upper(columns))
    tied = np.flatnonzero((above + below).min(axis=0) < length - 1)
    if len(tied) == 0:
        return above.T, None
    first, size = np.ascontiguousarray(above.T), np.ascontiguousarray((length - above - below).T)
    # Equal scores are tied for good; where unequal ones come near each other, the blocks are made in order.
    scores = columns[:, tied]
    equal = _count_pairs(scores, scores)
    hard = tied if by_input else tied[((equal[0] != above[:, tied]) | (equal[1] != below[:, tied])).any(axis=0)]
    if len(hard):
        first[hard], sizes = _places_by_sorting(lists[hard], by_input=by_input)
        size[hard] = 1 if sizes is None else sizes
    return first, size


def _upper(scores: NDArray[Any]) -> NDArray[Any]:
    """What no score tied with this one exceeds: for integers the score itself, else a bound that is cheap and wide."""
    if scores.dtype.kind != "f":
        return scores
    limits = np.finfo(scores.dtype)
    # A score tied with s is at most 2 · ULPS ulps of s above it, since an ulp doubles at a power of two.
    upper: NDArray[Any] = np.abs(scores)
    upper *= 4 * ULPS * limits.eps
    upper += limits.tiny
    upper += scores
    return upper


def _count_pairs(columns: NDArray[Any], upper: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """How many scores of a list exceed the upper bound of each one, and how many have theirs exceeded by it."""
    above = np.zeros(columns.shape, np.int8)
    below = np.zeros(columns.shape, np.int8)
    for i in range(len(columns)):
        for j in range(i):
            wins = (columns[i] > upper[j]).view(np.int8)
            loses = (columns[j] > upper[i]).view(np.int8)
            above[j] += wins
            below[i] += wins
            above[i] += loses
            below[j] += loses
    return above, below


def _places_by_sorting(lists: NDArray[Any], *, by_input: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """The same for lists of any length."""
    count, length = lists.shape
    order = np.argsort(-lists if lists.dtype.kind == "f" else ~lists, axis=1)  # integers may have no negative
    flat = order + (np.arange(count) * length)[:, None]
    ordered = lists.ravel()[flat]
    near = ~(ordered[:, :-1] > _upper(ordered[:, 1:]))
    first = np.empty(lists.size, np.int32)
    first[flat] = np.arange(length, dtype=np.int32)
    some = near.any(axis=1)
    if not some.any():
        return first.reshape(count, length), None

    ordered = ordered[some]
    same = ordered[:, :-1] == ordered[:, 1:]
    hard = (near[some] != same).any(axis=1)
    if hard.any():
        same[hard] = ~_block_starts(ordered[hard])[:, 1:]
    # Positions run down the columns here: numpy accumulates down columns, many lists at a time, far faster.
    position = np.arange(length, dtype=np.int32)[:, None]
    joins = np.ascontiguousarray(same.T)
    start = np.where(np.vstack([np.zeros_like(joins[:1]), joins]), np.int32(0), position)
    np.maximum.accumulate(start, axis=0, out=start)
    if by_input:
        # Within a block the lower row number goes first; block and row make one sortable key.
        rows = np.sort(start.T.astype(np.int64) * length + order[some], axis=1) % length
        first[rows + (np.flatnonzero(some) * length)[:, None]] = position.T
        return first.reshape(count, length), None
    end = np.where(np.vstack([joins, np.zeros_like(joins[:1])]), np.int32(length), position + np.int32(1))
    end = np.minimum.accumulate(end[::-1], axis=0)[::-1]
    size = np.ones(lists.size, np.int32)
    first[flat[some]] = start.T
    size[flat[some]] = (end - start).T
    return first.reshape(count, length), size.reshape(count, length)


def _block_starts(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Where blocks start in lists, (lists, length), that stand from the largest score to the smallest.

    Each distinct score first gets the block it would make if it started one; few scores fit into a block, so a few
    looks ahead settle that for all at once. A score that no earlier one could take in does start one, and from there
    the true starts are those that the ends of blocks lead to; followed in leaps of 1, 2, 4, … blocks.
    """
    count, length = ordered.shape
    new = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    at = np.flatnonzero(new)
    score, line = ordered.ravel()[at], at // length
    n = len(at)
    end = np.arange(1, n + 1)
    taken = np.zeros(n + 1, bool)
    growing = np.arange(n - 1)
    while len(growing):
        candidate = end[growing]
        fits = (line[growing] == line[candidate]) & _tied(score[growing], score[candidate])
        growing, candidate = growing[fits], candidate[fits]
        taken[candidate] = True
        end[growing] = candidate + 1
        growing = growing[candidate + 1 < n]
    starts, leap = ~taken, np.append(end, n)
    while not starts[ahead := leap[starts]].all():
        starts[ahead] = True
        leap = leap[leap]
    out = np.zeros(count * length, bool)
    out[at[starts[:n]]] = True
    return out.reshape(count, length)


def _tied(larger: NDArray[Any], smaller: NDArray[Any]) -> NDArray[np.bool_]:
    """The rule for unequal scores: within `ULPS` units in the last place of the one of larger magnitude."""
    magnitude = np.maximum(np.abs(larger), np.abs(smaller))
    limits = np.finfo(magnitude.dtype)
    # By the exponent: numpy's spacing is NaN for the largest number, and for long doubles just below a power of two.
    ulp = np.ldexp(limits.eps, np.frexp(magnitude)[1] - 1)
    return np.asarray(larger - smaller <= ULPS * np.maximum(ulp, np.nextafter(limits.dtype.type(0), limits.eps)))
