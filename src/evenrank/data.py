"""`RankingData`: rows grouped by query, checked once, never changed.

Every array on a `RankingData` is in *stored* order: the rows of a query stand together, bounded by
``query_ptr``. Values that cross the public functions (scores in, scores out) are in the *caller's*
order; `RankingData.to_stored` and `RankingData.to_caller` go between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import (
    feature_matrix,
    frame_labels,
    frame_numbers,
    item_column,
    note_ids,
    note_left_out,
    usual_features,
)
from evenrank.row_checks import (
    UNKNOWN,
    Locate,
    MappedPages,
    as_array,
    block_rows,
    checked_features,
    checked_ids,
    checked_names,
    checked_numbers,
    freeze,
    gather,
    group_codes,
    group_rows,
    listed,
    number_array,
    refuse_duplicates,
)


@dataclass(frozen=True, eq=False, repr=False)
class RankingData:
    """Query–item rows with features, relevance and group, grouped by query.

    Build one with `from_arrays`, `from_frame` or `evenrank.read`; the constructor trusts its arguments.

    Attributes
    ----------
    features : (n, d) array or memmap, floating
    relevance : (n,) float64, at least 0
    group : (n,) int32 codes into ``group_names``; -1 is an unknown group
    query_ptr : (q + 1,) int64; the rows of query i are ``query_ptr[i]:query_ptr[i + 1]``
    query_ids : (q,)
    item_ids : (n,) or None
    feature_names : tuple of d names
    group_names : tuple of the sorted group labels
    row_order : (n,) int64 or None; stored row i is the caller's row ``row_order[i]`` (None: the same order)
    relevance_threshold : relevance at or above it is *relevant* for notions, precision, recall and MRR
    sample_weight : (n,) or None; weighs a row in the loss and in its group's mean
    membership : (n, G) or None; probabilities of the groups where labels are not known, see `with_membership`
    parent : the data this was taken from, whose statistics ``scale="dataset"`` uses

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1], ["a", "b", "a"], ["q2", "q1", "q2"])
    >>> data.n_queries, data.group_names, data.query_ptr.tolist(), data.features.ravel().tolist()
    (2, ('a', 'b'), [0, 2, 3], [1.0, 3.0, 2.0])
    """

    features: NDArray[Any]
    relevance: NDArray[np.float64]
    group: NDArray[np.int32]
    query_ptr: NDArray[np.int64]
    query_ids: NDArray[Any]
    item_ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    group_names: tuple[Any, ...]
    row_order: NDArray[np.int64] | None = None
    relevance_threshold: float = 1.0
    sample_weight: NDArray[np.float64] | None = None
    parent: RankingData | None = None
    membership: NDArray[np.float64] | None = None

    # ------------------------------------------------------------------ building

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        relevance: ArrayLike,
        group: ArrayLike | None,
        qid: ArrayLike,
        item_ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        group_names: Sequence[Any] | None = None,
        *,
        relevance_threshold: float = 1.0,
        sample_weight: ArrayLike | None = None,
        locate: Locate | None = None,
    ) -> RankingData:
        """Check arrays given row by row in any order and group them by query.

        ``group`` holds labels of any type (None, NaN and "" are unknown), or, with ``group_names``, codes
        into those names. ``locate`` turns a row number into the place an error message names.
        """
        at = locate or (lambda row: f"row {row}")
        features = checked_features(X, feature_names, at)
        n, d = features.shape
        names = checked_names(X, feature_names, d)
        if n == 0:
            raise DataError("The data has no rows; at least one is needed.")
        relevance = checked_numbers(relevance, n, "relevance", at)
        query = checked_ids(qid, n, "qid", at)
        items = None if item_ids is None else checked_ids(item_ids, n, "item_ids", at)
        codes, labels = group_codes(group, group_names, n)
        weight = None if sample_weight is None else checked_numbers(sample_weight, n, "sample_weight", at)
        if weight is not None and not weight.sum() > 0:
            raise DataError("sample_weight must have a positive sum; every weight is 0.")
        if not isinstance(relevance_threshold, int | float | np.number) or not np.isfinite(relevance_threshold):
            raise ConfigError(f"relevance_threshold must be a finite number; got {relevance_threshold!r}.")

        order, ptr, query_ids = group_rows(query)
        if order is not None:
            features = gather(features, order)
            relevance, codes = relevance[order], codes[order]
            items = None if items is None else items[order]
            weight = None if weight is None else weight[order]
        if items is not None:
            refuse_duplicates(items, ptr, query_ids, order, at)
        return cls(
            features=freeze(features),
            relevance=freeze(relevance),
            group=freeze(codes),
            query_ptr=freeze(ptr),
            query_ids=freeze(query_ids),
            item_ids=freeze(items),
            feature_names=names,
            group_names=labels,
            row_order=freeze(order),
            relevance_threshold=float(relevance_threshold),
            sample_weight=freeze(weight),
        )

    @classmethod
    def from_frame(
        cls,
        df: Any,
        query: str = "qid",
        relevance: str | None = "relevance",
        group: str | None = "group",
        item: str | None = None,
        features: Sequence[str] | None = None,
        *,
        relevance_threshold: float = 1.0,
        sample_weight: str | None = None,
        ignore: Sequence[str] = (),
        locate: Locate | None = None,
    ) -> RankingData:
        """Read the named columns of a pandas, polars or pyarrow frame; other numeric columns are the features.

        ``relevance=None`` is a log without labels (relevance 0 everywhere); ``item=None`` takes the column ``item`` if
        there is one. Columns that are neither named nor numeric, or that are called score, item or rank, are left out
        with a `DataWarning`; those in ``ignore`` silently, item ids too.
        """
        import narwhals as nw

        try:
            frame = nw.from_native(df, eager_only=True)
        except TypeError:
            raise DataError(
                f"df must be a pandas, polars or pyarrow table; got {type(df).__name__}. Use from_arrays for arrays."
            ) from None
        named = {"query": query, "relevance": relevance, "group": group, "item": item, "sample_weight": sample_weight}
        for role, column in named.items():
            if column is not None and column not in frame.columns:
                raise DataError(f"{role} column {column!r} is not in the data; it has {listed(frame.columns)}.")
        item = item_column(item, frame.columns, [*named.values(), *(features or ()), *ignore])
        taken = {*named.values(), item, *ignore}
        if features is None:
            rest, by_name = usual_features([column for column in frame.columns if column not in taken])
            chosen = [c for c in rest if frame[c].dtype.is_numeric() or frame[c].dtype == nw.Boolean]
            note_left_out(by_name, [column for column in rest if column not in chosen], stacklevel=2)
        else:
            chosen = list(features)
            for column in chosen:
                if column not in frame.columns:
                    raise DataError(f"feature column {column!r} is not in the data; it has {listed(frame.columns)}.")
        at = locate or (lambda row: f"row {row}")
        matrix = feature_matrix(frame, chosen, at)
        if features is None:
            note_ids(matrix, chosen, stacklevel=2)
        return cls.from_arrays(
            matrix,
            np.zeros(len(frame)) if relevance is None else frame_numbers(frame[relevance], relevance, at),
            None if group is None else frame_labels(frame[group]),
            frame_labels(frame[query]),
            item_ids=None if item is None else frame_labels(frame[item]),
            feature_names=chosen,
            relevance_threshold=relevance_threshold,
            sample_weight=None if sample_weight is None else frame_numbers(frame[sample_weight], sample_weight, at),
            locate=at,
        )

    # ------------------------------------------------------------------ looking

    @property
    def n_rows(self) -> int:
        return len(self.relevance)

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_groups(self) -> int:
        return len(self.group_names)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Rows of each query, (q,)."""
        return np.diff(self.query_ptr)

    @cached_property
    def query_of_row(self) -> NDArray[np.int64]:
        """Each row's query number, (n,)."""
        return np.repeat(np.arange(self.n_queries), self.lengths)

    @cached_property
    def sorted_queries(self) -> NDArray[np.int64]:
        """Query numbers in the order of their ids, (q,): what seeded choices go by, so that row order never matters."""
        try:
            return np.argsort(self.query_ids, kind="stable")
        except TypeError:
            keys = [(type(value).__name__, str(value)) for value in self.query_ids.tolist()]
            return np.array(sorted(range(self.n_queries), key=keys.__getitem__))

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Relevance at or above the threshold, (n,)."""
        return self.relevance >= self.relevance_threshold

    def column(self, name: str) -> NDArray[Any]:
        """One feature by name, (n,), in stored order."""
        if name not in self.feature_names:
            raise DataError(f"feature {name!r} is not in the data; its features are {listed(self.feature_names)}.")
        return np.asarray(self.features[:, self.feature_names.index(name)])

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Row slices small enough to convert to float64 whatever the number of rows, and their features."""
        step = block_rows(self.n_features)
        pages = MappedPages(self.features)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            block = np.asarray(self.features[rows])
            yield rows, block
            pages.read(block.nbytes)

    def __repr__(self) -> str:
        groups = ", ".join(
            f"{name!r} {np.count_nonzero(self.group == code) / self.n_rows:.0%}"
            for code, name in enumerate(self.group_names[:6])
        ) + (f", … ({self.n_groups} in all)" if self.n_groups > 6 else "")
        return (
            f"RankingData({self.n_rows} rows, {self.n_queries} queries, {self.n_features} features; "
            f"relevant {self.relevant.mean():.0%}; groups: {groups or 'none'})"
        )

    # ------------------------------------------------------------------ the two orders

    def to_stored(self, values: ArrayLike, *, what: str = "scores") -> NDArray[Any]:
        """Check values given in the caller's row order, (n,) or (n, models), and bring them to stored order.

        Their type stays: ties are decided in the precision the scores were given in, and between integers exactly.
        """
        array = number_array(values, what)
        if array.ndim not in (1, 2) or len(array) != self.n_rows or array.size == 0:
            raise DataError(
                f"{what} must have shape ({self.n_rows},) or ({self.n_rows}, models), a value a row; got {array.shape}."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            model = f" of model {place[1]}" if array.ndim == 2 else ""
            raise DataError(f"{what} must be finite; row {place[0]}{model} has {float(array[place])}.")
        return array if self.row_order is None else array[self.row_order]

    def to_caller(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values in stored order, (n,) or (n, models), back to the caller's row order."""
        if self.row_order is None:
            return values
        out = np.empty_like(values)
        out[self.row_order] = values
        return out

    # ------------------------------------------------------------------ deriving

    def take(self, queries: ArrayLike) -> RankingData:
        """The given queries, by number (in that order) or as a (q,) mask; its caller's order is its stored order."""
        chosen = as_array(queries, "queries")
        if chosen.dtype == bool:
            if chosen.shape != (self.n_queries,):
                raise DataError(f"a query mask must have shape ({self.n_queries},); got {chosen.shape}.")
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.kind not in "iu":
            found = "none" if chosen.size == 0 else f"{chosen.dtype} values of shape {chosen.shape}"
            raise DataError(f"queries must be a non-empty list of query numbers or a mask; got {found}.")
        if chosen.min() < 0 or chosen.max() >= self.n_queries:
            raise DataError(f"query numbers must be in 0…{self.n_queries - 1}; got {chosen.min()}…{chosen.max()}.")
        ptr = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        rows = np.arange(ptr[-1]) + np.repeat(self.query_ptr[chosen] - ptr[:-1], self.lengths[chosen])
        return replace(
            self,
            features=freeze(gather(self.features, rows)),
            relevance=freeze(self.relevance[rows]),
            group=freeze(self.group[rows]),
            query_ptr=freeze(ptr),
            query_ids=freeze(self.query_ids[chosen]),
            item_ids=None if self.item_ids is None else freeze(self.item_ids[rows]),
            row_order=None,
            sample_weight=None if self.sample_weight is None else freeze(self.sample_weight[rows]),
            parent=self.parent or self,
            membership=None if self.membership is None else freeze(self.membership[rows]),
        )

    def folds(self, number: int, seed: int = 0) -> NDArray[np.int64]:
        """A seeded fold number for each query, (q,), balanced to within one; the same whatever the order of rows."""
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 2 <= number <= self.n_queries:
            raise ConfigError(f"folds must be a whole number from 2 to the {self.n_queries} queries; got {number!r}.")
        fold = np.empty(self.n_queries, np.int64)
        fold[self.sorted_queries[np.random.default_rng(seed).permutation(self.n_queries)]] = (
            np.arange(self.n_queries) % number
        )
        return fold

    def with_group(self, group: ArrayLike | None, group_names: Sequence[Any] | None = None) -> RankingData:
        """The same rows under another grouping; labels in the caller's row order."""
        codes, names = group_codes(group, group_names, self.n_rows)
        stored = codes if self.row_order is None else codes[self.row_order]
        return replace(self, group=freeze(stored), group_names=names, membership=None)

    def with_membership(self, probabilities: ArrayLike, group_names: Sequence[Any]) -> RankingData:
        """The same rows with each group's probability instead of a label, (n, G), in the caller's row order.

        Measures and intervals weigh a row by its probabilities; what is missing to 1 is unknown. ``group`` becomes the
        likeliest group. Training and re-ranking take labels only. See docs/soft-groups.md on what this can tell.
        """
        table = np.asarray(as_array(probabilities, "membership"), dtype=np.float64)
        names = tuple(group_names)
        if table.shape != (self.n_rows, len(names)) or len(set(names)) < 2:
            raise DataError(
                f"membership must have a row for each of the {self.n_rows} rows and a column for each of two or more "
                f"groups; got shape {table.shape} for {len(names)} groups."
            )
        bad = ~(np.isfinite(table).all(axis=1) & (table >= 0).all(axis=1) & (table.sum(axis=1) <= 1 + 1e-9))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"row {row}: membership must be probabilities ≥ 0 of sum ≤ 1; got {table[row].tolist()}.")
        order = sorted(range(len(names)), key=lambda j: (type(names[j]).__name__, names[j]))
        table = table[:, order] if self.row_order is None else table[self.row_order][:, order]
        likeliest = np.where(table.sum(axis=1) > 0, table.argmax(axis=1), UNKNOWN).astype(np.int32)
        return replace(
            self,
            group=freeze(likeliest),
            group_names=tuple(names[j] for j in order),
            membership=freeze(np.ascontiguousarray(table)),
        )

    def need_labels(self, what: str) -> None:
        """Refuse groups known by probability only, for what cannot use them."""
        if self.membership is not None:
            raise ConfigError(f"{what} needs group labels; the data has membership probabilities. Use with_group.")
