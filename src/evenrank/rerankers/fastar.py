"""FA*IR: re-rank each list so that every prefix has enough protected items (Zehlike et al., CIKM 2017).

A prefix of i items should hold at least m(i) protected ones, the significance-quantile of Binomial(i, p). Testing every
prefix of a list of k makes the whole table fail a fair list too often, so the significance is adjusted: the largest for
which the exact failure probability of the whole table stays at or below the one asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, floats_or_none, found
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.labels import is_missing, label_places
from evenrank.rankers.matching import protected_code
from evenrank.ranking import strict_places
from evenrank.rerankers import fastar_table
from evenrank.row_checks import as_array, is_number, shown, unmasked

LONGEST = 5000


class FAStar:
    """A re-ranker: scores in, scores of a new order out.

    Parameters
    ----------
    p : float or array-like
        The share of protected items that a fair list is drawn with, or several shares.
    significance : float
        The probability with which a list drawn with that share may fail the table.
    adjust : bool
        Adjust the significance for testing every prefix.
    protected : label, optional
        The label of the protected group; None is the smaller group of the first data that is checked or re-ranked, and
        stays that group from then on (``protected_``).
    reference : bool
        Behave as the published package does (see docs/decisions/0008): its bisection, its failure probability, which
        leaves out position k, and ties given to the protected item.

    Examples
    --------
    >>> FAStar(p=0.5, significance=0.1).table(10).tolist()
    [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    >>> data = RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["a", "a", "b", "b"], [1] * 4)
    >>> FAStar(p=0.9, significance=0.2, protected="b").rerank([4.0, 3.0, 2.0, 1.0], data)
    array([-3., -4., -1., -2.])
    """

    def __init__(
        self,
        p: float | ArrayLike = 0.5,
        significance: float = 0.1,
        adjust: bool = True,
        *,
        protected: Any = None,
        reference: bool = False,
    ) -> None:
        self.p, self.significance, self.adjust = p, significance, adjust
        self.protected, self.reference = protected, reference
        if isinstance(p, Mapping):
            raise ConfigError(f"p must be one share, that of the protected group; got {p!r}. See MultinomialFAStar.")
        self.protected_ = protected
        self._known: dict[int, list[int]] = {}
        self._shares = np.atleast_1d(floats_or_none(unmasked(p, "p")))
        for name, values in (("p", self._shares), ("significance", floats_or_none(significance))):
            if values.size == 0 or not ((values > 0) & (values < 1)).all():
                raise ConfigError(f"{name} must be between 0 and 1, ends excluded; got {found(getattr(self, name))}.")

    def __repr__(self) -> str:
        return f"FAStar(p={self.p!r}, significance={self.significance!r}, adjust={self.adjust!r})"

    # ------------------------------------------------------------------ tables

    def table(self, k: int) -> NDArray[np.int64]:
        """Compute the least number of protected items in the first 1, …, k.

        Parameters
        ----------
        k : int
            The length of the table.

        Returns
        -------
        ndarray
            (k,), or (shares, k) for several p.
        """
        tables: NDArray[np.int64] = self._each(self._tables(check_k(k)))
        return tables

    def adjusted_significance(self, k: int) -> Any:
        """Compute the significance that the table is built with.

        Parameters
        ----------
        k
            As for `table`.

        Returns
        -------
        float or ndarray
            At most ``significance``; (shares,) for several p.
        """
        self._tables(check_k(k))
        return self._each(np.array([self._solved(share, k)[0] for share in self._shares]))

    def failure_probability(self, k: int) -> Any:
        """Compute the exact probability that a list drawn with share p breaks the table at some position.

        Parameters
        ----------
        k : int
            The length of the list and of its table.

        Returns
        -------
        float or ndarray
            The probability; (shares,) for several p.
        """
        tables = self._tables(check_k(k))
        known = tables[:, :-1] if self.reference else tables
        parts = zip(known, self._shares.tolist(), strict=True)
        return self._each(
            np.array([fastar_table.failure_probability(t, fastar_table.masses_of(p, k)) for t, p in parts])
        )

    def _tables(self, k: int) -> NDArray[np.int64]:
        if k > LONGEST:
            raise ConfigError(f"k must be at most {LONGEST:,}, as a table takes k² numbers to make; got {k:,}.")
        return np.array([self._solved(share, k)[1] for share in self._shares])

    def _solved(self, share: float, k: int) -> tuple[float, NDArray[np.int64]]:
        return fastar_table.solve(float(share), float(self.significance), bool(self.adjust), bool(self.reference), k)

    def _each(self, values: Any) -> Any:
        if np.ndim(self.p):
            return values
        return values[0] if np.ndim(values[0]) else float(values[0])

    # ------------------------------------------------------------------ rankings

    def is_fair(self, ranking: ArrayLike, data: RankingData | None = None, k: int | None = None) -> Any:
        """Check whether every prefix holds enough protected items.

        Parameters
        ----------
        ranking : array-like
            The flags of one list (protected or not) from the top; or, with ``data``, scores (n,) in the caller's row
            order.
        data : RankingData, optional
            The rows that the scores are of.
        k : int, optional
            Look at the first k places only.

        Returns
        -------
        bool or ndarray
            Of one list a bool; with ``data`` one per query, (q,). Several p add a last axis.
        """
        if data is None:
            flags = np.asarray(as_array(ranking, "ranking"), dtype=bool)
            if flags.ndim != 1 or len(flags) == 0:
                raise DataError(f"ranking must be a list of flags, protected or not; got shape {flags.shape}.")
            depth = len(flags) if k is None else min(check_k(k), len(flags))
            enough = np.cumsum(flags)[:depth] >= self._tables(depth if k is None else k)[:, :depth]
            passed = np.asarray(enough.all(axis=1))
            return passed if np.ndim(self.p) else bool(passed[0])
        lists = _Lists(data.to_stored(ranking), data, self._protected(data))
        fair = np.ones((data.n_queries, len(self._shares)), bool)
        flags = lists.is_protected[lists.by_rank]
        count = np.cumsum(flags) - np.repeat((np.cumsum(flags) - flags)[data.query_ptr[:-1]], data.lengths)
        place = np.arange(data.n_rows) - data.query_ptr[data.query_of_row]
        for length, queries, tables in self._by_length(data, k):
            rows = (data.query_ptr[queries, None] + np.arange(length)).ravel()
            rows = rows[place[rows] < length]
            enough = count[rows].reshape(-1, length)[:, :, None] >= tables.T[None, :length]
            fair[queries] = enough.all(axis=1)
        return fair if np.ndim(self.p) else fair[:, 0]

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> NDArray[np.float64]:
        """Reorder each list by the table.

        The first k places of each list are filled from the top: with the best protected item where one is due, else
        with the best item. Below k the rest follow by score. A list shorter than k uses the first entries of the table;
        one that runs out of protected items goes on without. Items of unknown group are not protected. Ties go by item
        id (by row, without ids). Lists of one group keep their order.

        Parameters
        ----------
        scores, data
            As in `evenrank.interval`.
        k : int, optional
            The length of the table; None uses for each list the table of the list's length.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank) in the caller's row order: (n,), or (n, shares) for several p.
        """
        stored = data.to_stored(scores)
        if stored.ndim != 1:
            raise DataError(f"scores to re-rank must be one column, ({data.n_rows},); got shape {stored.shape}.")
        lists = _Lists(stored, data, self._protected(data))
        place = np.empty((data.n_rows, len(self._shares)), np.int64)
        for _, queries, tables in self._by_length(data, k):
            lists.fill(place, queries, tables, ties_to_protected=self.reference)
        result = data.to_caller(-1.0 - place)
        return result if np.ndim(self.p) else result[:, 0]

    def rerank_list(self, scores: ArrayLike, groups: Sequence[Any], k: int | None = None) -> NDArray[np.int64]:
        """Order one list, in microseconds once its table is known.

        Parameters
        ----------
        scores : array-like
            (n,); ties keep the order of the list.
        groups : sequence
            The group label of each item, (n,), of which some, all or none are protected. As in `rerank`, where no label
            is ``protected`` itself, the one that is written the same is: 1 for "1".
        k : int, optional
            As in `rerank`.

        Returns
        -------
        ndarray
            Places of the items in ``scores`` from the top, (n,).
        """
        if self.protected_ is None:
            raise ConfigError("one list does not say which group is the smaller. Name it: FAStar(protected=…).")
        if np.ndim(self.p) or self.reference:
            got = "reference=True" if self.reference else f"{len(self._shares)} shares"
            raise ConfigError(f"one list is re-ranked for one p, without reference; got {got}. Use rerank.")
        values = as_array(scores, "scores")
        n = len(groups)
        if values.shape != (n,) or n == 0:
            raise DataError(f"scores and groups must have one value per item; got shape {values.shape} and {n} groups.")
        if values.dtype.kind not in "biuf":
            strange = next((value for value in values.tolist() if not is_number(value)), values[0])
            raise DataError(f"scores must be finite numbers; got {shown(strange)}.")
        if not np.isfinite(values).all():
            raise DataError(f"scores must be finite; got {values[~np.isfinite(values)][0]}.")
        flags = np.fromiter((label == self.protected_ for label in groups), bool, n)
        if not flags.any():
            flags = self._written_alike(groups, n)
        numbers = values if values.dtype.kind == "f" else values.astype(np.float64)
        order = np.argsort(-numbers, kind="stable")
        if not flags.any():
            return order
        table = self._table_of(n if k is None else check_k(k))
        return order[fastar_table.filled(flags[order].tolist(), table)]

    def _written_alike(self, groups: Sequence[Any], n: int) -> NDArray[np.bool_]:
        """Flags of the only label that is written as the protected one, as `label_places` finds it; (n,)."""
        written = str(self.protected_)
        alike = {label for label in groups if str(label) == written and not is_missing(label)}
        if len(alike) != 1:
            return np.zeros(n, bool)
        (protected,) = alike
        return np.fromiter((label == protected for label in groups), bool, n)

    def _table_of(self, k: int) -> list[int]:
        if k not in self._known:
            self._known[k] = self._tables(k)[0].tolist()
        return self._known[k]

    def _protected(self, data: RankingData) -> int:
        """The code of the protected group, -2 if these lists have no such items."""
        if self.protected_ is None:
            self.protected_ = data.group_names[protected_code(data, None)]
        data.need_labels("a protected group")
        if data.n_groups < 2 and self.protected_ not in data.group_names:
            return -2
        (code,) = label_places([self.protected_], data.group_names)
        return protected_code(data, self.protected_) if code < 0 else code

    def _by_length(self, data: RankingData, k: int | None) -> Any:
        """(depth, queries, tables): all queries of a kind and the tables (shares, depth) they are held to."""
        if k is not None:
            check_k(k)
            tables = self._tables(k)
            for depth in np.unique(np.minimum(data.lengths, k)).tolist():
                yield depth, np.flatnonzero(np.minimum(data.lengths, k) == depth), tables[:, :depth]
        else:
            for depth in np.unique(data.lengths).tolist():
                yield depth, np.flatnonzero(data.lengths == depth), self._tables(depth)


class _Lists:
    """Each query's rows in score order, and its protected and other rows in that order."""

    def __init__(self, stored: NDArray[Any], data: RankingData, protected: int) -> None:
        self.data, self.stored = data, stored
        self.is_protected = data.group == protected
        rank = strict_places(stored, data)
        self.rank = rank
        self.by_rank = np.empty(data.n_rows, np.int64)
        self.by_rank[data.query_ptr[data.query_of_row] + rank] = np.arange(data.n_rows)
        flags = self.is_protected[self.by_rank]
        self.rows = [self.by_rank[~flags], self.by_rank[flags]]
        of_protected = np.add.reduceat(flags.astype(np.int64), data.query_ptr[:-1])
        self.counts = [data.lengths - of_protected, of_protected]
        self.starts = [np.cumsum(count) - count for count in self.counts]

    def fill(
        self,
        place: NDArray[np.int64],
        queries: NDArray[np.int64],
        tables: NDArray[np.int64],
        *,
        ties_to_protected: bool,
    ) -> None:
        """Write the new place (from 0) of every row of ``queries`` into ``place`` (n, shares)."""
        shares, depth = tables.shape
        shape = (len(queries), shares)
        taken = [np.zeros(shape, np.int64), np.zeros(shape, np.int64)]
        column = np.broadcast_to(np.arange(shares), shape)
        query_rows = _ranges(self.data.query_ptr[queries], self.data.lengths[queries])
        place[query_rows] = -1
        for i in range(depth):
            head, left = [], []
            for kind in (0, 1):
                left.append(taken[kind] < self.counts[kind][queries, None])
                at = np.minimum(self.starts[kind][queries, None] + taken[kind], max(len(self.rows[kind]) - 1, 0))
                head.append(self.rows[kind][at] if len(self.rows[kind]) else np.zeros(shape, np.int64))
            better = self.rank[head[1]] < self.rank[head[0]]
            if ties_to_protected:
                better = self.stored[head[1]] >= self.stored[head[0]]
            choose_protected = left[1] & (~left[0] | (taken[1] < tables[None, :, i]) | better)
            place[np.where(choose_protected, head[1], head[0]), column] = i
            taken[1] += choose_protected
            taken[0] += ~choose_protected
        # Rows without a place follow in score order.
        ordered = self.by_rank[query_rows]
        rest = place[ordered] < 0
        before: NDArray[np.int64] = np.cumsum(rest, axis=0) - rest
        first = np.cumsum(self.data.lengths[queries]) - self.data.lengths[queries]
        follow = depth + before - np.repeat(before[first], self.data.lengths[queries], axis=0)
        place[ordered] = np.where(rest, follow, place[ordered])


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
