"""`Evaluation`: one ranking of one data set, with what several measures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.data import RankingData
from evenrank.discounts import ERR, PATIENCE, STOP, discount_sums, discount_total, err_exposure
from evenrank.errors import ConfigError, DataError
from evenrank.labels import item_codes, label_places
from evenrank.measures.options import GroupShares, Options
from evenrank.notions import NotionLike, bind
from evenrank.ranking import Ranking, descending
from evenrank.row_checks import listed

MOST_EXPONENTIAL = 1000  # 2^1024 overflows
NO_OPTIONS = Options()
MOST_CODES = 127
KEPT = 2  # row values that are kept for the next measure


@dataclass
class Evaluation:
    """One ranking (or a matrix of them) of one data set, with what several measures share.

    Attributes
    ----------
    data : RankingData
        The rows.
    ranking : Ranking
        Their ranking, by one column of scores or by several. Several rankings per model, the samples, are columns too:
        those of the first model, then those of the next.
    gain : str
        "linear" or "exponential".
    across : str
        How more than two groups are combined: "mean" or "max".
    shared : dict
        Parts that depend on the data alone, computed once and used by every ranking of it.
    options : Options
        The options of the measure that is computed.
    samples : int
        The number of rankings per model; row values such as `exposure` are averaged over them.
    chances : ndarray or None
        How likely each of these is in each list, (q, samples); None if all are alike.
    scores : ndarray, optional
        The scores that made the ranking, in its shape, for measures of the user's own.
    """

    data: RankingData
    ranking: Ranking
    gain: str = "linear"
    across: str = "mean"
    shared: dict[Any, Any] = field(default_factory=dict)
    options: Options = NO_OPTIONS
    samples: int = 1
    chances: NDArray[np.float64] | None = None
    scores: NDArray[Any] | None = None
    _kept: dict[Any, NDArray[Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, stored: NDArray[Any], data: RankingData, *, ties: str = "average", **settings: Any) -> Evaluation:
        """Rank scores given in stored order.

        Parameters
        ----------
        stored : ndarray
            (n,), (n, models) or (n, models, samples).
        data : RankingData
            The rows.
        ties : str
            As in `Ranking`.
        settings : Any
            Other attributes.

        Returns
        -------
        Evaluation
            The evaluation.
        """
        samples = stored.shape[2] if stored.ndim == 3 else 1
        columns = stored.reshape(len(stored), -1) if stored.ndim == 3 else stored
        return cls(data, Ranking(columns, data.query_ptr, ties=ties), samples=samples, scores=columns, **settings)

    def with_options(self, options: Options) -> Evaluation:
        """Evaluate the same ranking under other options, sharing what does not depend on them."""
        return self if options == self.options else replace(self, options=options)

    def per_query_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum row values, (n,) or (n, models), over each query."""
        return np.asarray(np.add.reduceat(values, self.data.query_ptr[:-1], axis=0))

    def as_column(self, row_values: NDArray[Any]) -> NDArray[Any]:
        """Shape one value per row or per query so that it broadcasts over the models, if there are any."""
        return row_values if self.ranking.first.ndim == 1 else row_values[:, None]

    def averaged(self, values: NDArray[Any], query: Any = None, axis: int = 0) -> NDArray[Any]:
        """Average values of the ranking's columns over the samples.

        Parameters
        ----------
        values : ndarray
            (…, models · samples).
        query : ndarray or slice, optional
            The number of the query that each entry along ``axis`` is of; None: that of each row.
        axis : int
            The axis of rows or queries.

        Returns
        -------
        ndarray
            (…, models).
        """
        if self.samples == 1:
            return values
        by_sample = values.reshape(*values.shape[:-1], -1, self.samples)
        if self.chances is None:
            return np.asarray(by_sample.mean(axis=-1))
        of_entry = self.chances[self.data.query_of_row if query is None else query]
        # (entries, samples) → the shape of by_sample, with 1 where it does not vary.
        shape = [1] * by_sample.ndim
        shape[axis], shape[-1] = of_entry.shape
        return np.asarray((by_sample * of_entry.reshape(shape)).sum(axis=-1))

    @property
    def places(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """First and size of `Ranking`, (n, columns) each; no size if nothing is tied."""
        first, size = (part.reshape(len(part), -1) for part in (self.ranking.first, self.ranking.size))
        return first, None if self.ranking.untied else size

    def top(self, k: int) -> NDArray[np.float64]:
        """Give each row's probability of being among its query's first k, (n,) or (n, models)."""
        return self._recent(("top", k), lambda: self.averaged(self.ranking.top(k)))

    def exposure(self, k: int | None = None, discount: str | None = None) -> NDArray[np.float64]:
        """Give each row's expected discount, (n,) or (n, models), averaged over samples; exact for tied rows.

        The discount is that of the options ("log2" if they name none) unless one is given, and 0 below rank k.
        """
        name, patience, stop = self._discount(discount)
        if name != ERR:
            return self._recent((name, patience, k), lambda: self.averaged(self.ranking.expected(self._sums(k, name))))
        ranking, data = self.ranking, self.data

        def expected() -> NDArray[np.float64]:
            places = (ranking.first, ranking.size, data.relevant, data.query_ptr)
            return self.averaged(err_exposure(*places, patience=patience, stop=stop, k=k))

        return self._recent((name, patience, stop, k), expected)

    def weights(self, k: int | None = None, discount: str | None = None) -> NDArray[np.float64]:
        """Give the discount of each rank of the longest list, (longest,), 0 below rank k."""
        name, _, _ = self._discount(discount)
        if name == ERR:
            raise ConfigError("discount 'err' is none of the rank alone, which this measure needs; choose another.")
        return np.diff(self._sums(k, name))

    def whole_exposure(self, k: int | None = None) -> NDArray[np.float64]:
        """Sum the discounts of the first k ranks, or of all ranks of the list, for each query, (q,)."""
        if k is None:
            return np.concatenate([[0.0], np.cumsum(self.weights())])[self.data.lengths]
        self.weights(k)  # refuses a discount that is none of the rank alone
        name, patience, _ = self._discount(None)
        return np.full(self.data.n_queries, discount_total(k, name, patience))

    def _discount(self, discount: str | None) -> tuple[str, float, float]:
        options = self.options
        patience = PATIENCE if options.patience is None else options.patience
        stop = STOP if options.stop is None else options.stop
        return discount or options.discount or "log2", patience, stop

    def _sums(self, k: int | None, discount: str) -> NDArray[np.float64]:
        return discount_sums(int(self.data.lengths.max()), k, discount, self._discount(None)[1])

    @property
    def membership(self) -> NDArray[np.float64]:
        """Each row's share in each group, (n, G): 1 and 0, or probabilities; all 0 for an unknown group."""
        data = self.data

        def table() -> NDArray[np.float64]:
            if data.n_groups == 0:
                raise DataError("a measure of groups needs the group of each row; the data has none.")
            if data.membership is not None:
                return data.membership
            return np.asarray(data.group[:, None] == np.arange(data.n_groups), np.float64)

        member: NDArray[np.float64] = self._once("membership", table)
        return member

    @property
    def codes(self) -> NDArray[np.int8] | None:
        """Each row's group number, (n,), -1 for an unknown group; None for probabilities, or more than 127 groups."""
        data = self.data
        if data.membership is not None or data.n_groups > MOST_CODES:
            return None
        codes: NDArray[np.int8] = self._once("codes", lambda: np.maximum(data.group, -1).astype(np.int8))
        return codes

    @property
    def items(self) -> tuple[NDArray[np.int64], int]:
        """The number of each row's item, (n,), from 0, and how many different items there are."""
        ids = self.data.item_ids
        if ids is None:
            raise DataError("a measure of items needs an item id for each row; the data has none. Give item ids.")
        codes: NDArray[np.int64] = self._once("items", lambda: item_codes(ids))
        return codes, int(self._once("n_items", lambda: int(codes.max()) + 1))

    @property
    def protected(self) -> int:
        """The code of the protected group: the one that the options name, or the smallest group of the data."""
        label, names = self.options.protected, self.data.group_names
        if label is None:
            return int(np.argmin(self._once("group sizes", lambda: self.membership.sum(axis=0))))
        code = label_places([label], names)[0]
        if code < 0:
            raise ConfigError(f"protected must be one of the groups {listed(names)}; got {label!r}.")
        return code

    def target_shares(self) -> NDArray[np.float64]:
        """Give the target of each list, (q, G); NaN for a list that has no known group to take it from."""
        target = self.options.target or "data"
        data, groups = self.data, self.membership.shape[1]

        def shares() -> NDArray[np.float64]:
            if isinstance(target, str) and target in ("data", "relevant"):
                counted = self.membership if target == "data" else self.membership * data.relevant[:, None]
                sums = self.per_query_sum(counted)
                return divide(sums, sums.sum(axis=1, keepdims=True))
            return np.broadcast_to(self.overall_target(), (data.n_queries, groups))

        table: NDArray[np.float64] = self._once(("target", target), shares)
        return table

    def overall_target(self) -> NDArray[np.float64]:
        """Give the target of all lists together, (G,), or (q, G) if one was given per list."""
        target = self.options.target or "data"
        names, member = self.data.group_names, self.membership
        if target == "equal":
            return np.full(len(names), 1 / len(names))
        if isinstance(target, str):
            counted = member[self.data.relevant] if target == "relevant" else member
            sums = counted.sum(axis=0)
            return divide(sums, sums.sum())
        if isinstance(target, GroupShares):
            places = label_places([label for label, _ in target], names)
            if sorted(places) != list(range(len(names))):
                given = listed([label for label, _ in target])
                raise ConfigError(f"target must give a share for each of the groups {listed(names)}; got {given}.")
            return np.array([share for _, share in target])[np.argsort(places)]
        shares = np.array(target)
        if shares.shape not in ((len(names),), (self.data.n_queries, len(names))):
            raise ConfigError(
                f"target must have shape ({len(names)},) or ({self.data.n_queries}, {len(names)}), a share per group "
                f"(and list); got {shares.shape}."
            )
        return shares

    def contrast(self, notion: NotionLike, scope: str = "amortized") -> Contrast:
        """Bind a notion to the rows, once per notion and scope."""
        contrast: Contrast = self._once(
            (notion, scope), lambda: bind(notion, self.data, scope=scope, across=self.across)
        )
        return contrast

    def ideal(self, k: int | None) -> NDArray[np.float64]:
        """Compute the best DCG@k of each query, (q,)."""
        data = self.data

        def best() -> NDArray[np.float64]:
            ordered = self._once("ordered", lambda: descending(self.gains, data.query_ptr))
            place = np.arange(data.n_rows) - np.repeat(data.query_ptr[:-1], data.lengths)
            return self.per_query_sum(ordered * np.diff(discount_sums(int(data.lengths.max()), k))[place])

        ideal: NDArray[np.float64] = self._once(("ideal", k), best)
        return ideal

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """What each row adds to DCG before its discount, (n,)."""
        relevance = self.data.relevance
        if self.gain == "linear":
            return relevance
        if relevance.max() > MOST_EXPONENTIAL:
            raise DataError(
                f"gain 'exponential' needs relevance ≤ {MOST_EXPONENTIAL}; got {relevance.max():g}. Use gain='linear'."
            )
        return np.asarray(np.exp2(relevance) - 1)

    @cached_property
    def relevant_per_query(self) -> NDArray[np.float64]:
        """The number of relevant items of each query, (q,)."""
        return self.per_query_sum(self.data.relevant.astype(float))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    def _recent(self, key: Any, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Row values, of which the newest few are kept: measures that share them stand together."""
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = make()
            self._kept[key].flags.writeable = False
        return self._kept[key]


PerQuery = Callable[[Evaluation, int | None], NDArray[Any]]


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """Divide, with NaN where the denominator is not above 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    out = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=out, where=np.broadcast_to(np.asarray(denominator) > 0, shape))
    return out
