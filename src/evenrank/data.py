"""`RankingData`: rows grouped by query, checked once, never changed.

Every array on a `RankingData` is in *stored* order: the rows of a query stand together, bounded by
``query_ptr``. Values that cross the public functions (scores in, scores out) are in the *caller's*
order; `RankingData.to_stored` and `RankingData.to_caller` go between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.categories import checked_categories
from evenrank.checks import check_number
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import feature_matrix, frame_labels, frame_numbers, frame_parts, note_ids
from evenrank.labels import UNKNOWN, checked_ids, group_codes, group_rows, refuse_duplicates
from evenrank.row_checks import (
    Locate,
    as_array,
    checked_features,
    checked_names,
    checked_numbers,
    freeze,
    gather,
)
from evenrank.rows import Rows


@dataclass(frozen=True, eq=False, repr=False)
class RankingData(Rows):
    """Query–item rows with features, relevance and group, grouped by query.

    Build one with `from_arrays`, `from_frame` or `evenrank.read`; the constructor trusts its arguments.

    Attributes
    ----------
    features : ndarray or memmap
        (n, d), floating.
    relevance : ndarray
        (n,), at least 0.
    group : ndarray
        Codes into ``group_names``, (n,); -1 is an unknown group.
    query_ptr : ndarray
        (q + 1,); the rows of query i are ``query_ptr[i]:query_ptr[i + 1]``.
    query_ids : ndarray
        (q,).
    item_ids : ndarray or None
        (n,).
    feature_names, group_names : tuple
        The d features' names, and the sorted group labels.
    row_order : ndarray or None
        (n,); stored row i is the caller's row ``row_order[i]``. None is the same order.
    relevance_threshold : float
        Relevance at or above it is *relevant* for notions, precision, recall and MRR.
    sample_weight : ndarray or None
        (n,); weighs a row in the loss and in its group's mean.
    membership : ndarray or None
        (n, G); probabilities of the groups where labels are not known, see `with_membership`.
    categories : mapping of str to tuple
        The sorted labels of each feature that holds categories; its values are numbers of labels, from 0.
    has_missing : bool
        Whether features may be NaN: a missing value or category.
    parent : RankingData or None
        The data this was taken from, whose statistics ``scale="dataset"`` uses.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1], ["a", "b", "a"], ["q2", "q1", "q2"])
    >>> data.n_queries, data.group_names, data.query_ptr.tolist(), data.features.ravel().tolist()
    (2, ('a', 'b'), [0, 2, 3], [1.0, 3.0, 2.0])
    """

    parent: RankingData | None = None

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
        categories: Mapping[str, Sequence[Any]] | None = None,
        locate: Locate | None = None,
    ) -> RankingData:
        """Check arrays given row by row in any order and group them by query.

        Parameters
        ----------
        X : array-like
            Features, (n, d). NaN is a missing value; LightGBM and XGBoost take it, other rankers with ``impute``.
        relevance : array-like
            (n,), at least 0.
        group : array-like, optional
            One label of any type per row, (n,); None, NaN and "" are unknown. With ``group_names``, labels or codes.
        qid : array-like
            One query id per row, (n,).
        item_ids : array-like, optional
            One item id per row, (n,), each once in a query.
        feature_names, group_names : sequence, optional
            The names of the features and of all groups.
        relevance_threshold : float
            Relevance at or above it is relevant.
        sample_weight : array-like, optional
            One weight per row, (n,), at least 0.
        categories : mapping of str to sequence, optional
            The labels of each feature of ``X`` that holds categories, as numbers from 0.
        locate : Callable, optional
            Turns a row number into the place that an error message names.

        Returns
        -------
        RankingData
            The rows.
        """
        at = locate or (lambda row: f"row {row}")
        features, has_missing = checked_features(X, feature_names, at)
        n, d = features.shape
        names = checked_names(X, feature_names, d)
        if n == 0:
            raise DataError("The data has no rows; at least one is needed.")
        labels_of = checked_categories(categories or {}, features, names, at)
        relevance = checked_numbers(relevance, n, "relevance", at)
        query = checked_ids(qid, n, "qid", at)
        items = None if item_ids is None else checked_ids(item_ids, n, "item_ids", at)
        codes, labels = group_codes(group, group_names, n)
        weight = None if sample_weight is None else checked_numbers(sample_weight, n, "sample_weight", at)
        if weight is not None and not weight.sum() > 0:
            raise DataError("sample_weight must have a positive sum; every weight is 0.")
        check_number(relevance_threshold, "relevance_threshold")

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
            categories=labels_of,
            has_missing=has_missing,
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
        categorical: Sequence[str] = (),
        locate: Locate | None = None,
    ) -> RankingData:
        """Read the named columns of a pandas, polars or pyarrow frame; others, of numbers or categories, are features.

        Parameters
        ----------
        df : frame
            The table.
        query, relevance, group, item, sample_weight : str or None
            The column of each. ``relevance=None`` is a log without labels (relevance 0 everywhere); ``item=None`` takes
            the column ``item`` if there is one.
        features : sequence of str, optional
            The feature columns. By default columns that hold neither numbers nor categories, or that are called score,
            item, rank, qid, relevance or group, are left out with a `DataWarning`. An empty value is a missing one.
        relevance_threshold, locate
            See `from_arrays`.
        ignore, categorical : sequence of str
            Columns to leave out silently, item ids too; and features to read as categories whatever their type.

        Returns
        -------
        RankingData
            The rows.
        """
        frame, item, chosen = frame_parts(
            df,
            {"query": query, "relevance": relevance, "group": group, "item": item, "sample_weight": sample_weight},
            features=features,
            ignore=ignore,
            categorical=categorical,
            stacklevel=3,
        )
        at, column = locate or (lambda row: f"row {row}"), frame.get_column
        matrix, labels_of = feature_matrix(frame, chosen, at, categorical)
        if features is None:
            note_ids(matrix, chosen, stacklevel=2)
        return cls.from_arrays(
            matrix,
            np.zeros(len(frame)) if relevance is None else frame_numbers(column(relevance), relevance, at),
            None if group is None else frame_labels(column(group)),
            frame_labels(column(query)),
            item_ids=None if item is None else frame_labels(column(item)),
            feature_names=chosen,
            relevance_threshold=relevance_threshold,
            sample_weight=None if sample_weight is None else frame_numbers(column(sample_weight), sample_weight, at),
            categories=labels_of,
            locate=at,
        )

    # ------------------------------------------------------------------ deriving

    def take(self, queries: ArrayLike) -> RankingData:
        """Take some queries; the caller's order of the result is its stored order.

        Parameters
        ----------
        queries : array-like
            Query numbers, taken in that order, or a mask, (q,).

        Returns
        -------
        RankingData
            Their rows.
        """
        chosen = as_array(queries, "queries")
        if chosen.dtype == bool:
            if chosen.shape != (self.n_queries,):
                raise DataError(f"a query mask must have shape ({self.n_queries},); got {chosen.shape}.")
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.kind not in "iu":
            given = "none" if chosen.size == 0 else f"{chosen.dtype} values of shape {chosen.shape}"
            raise DataError(f"queries must be a non-empty list of query numbers or a mask; got {given}.")
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
        """Draw a fold for each query; the sizes of folds differ by one at most.

        Parameters
        ----------
        number : int
            The number of folds.
        seed : int
            The seed; the order of rows changes nothing.

        Returns
        -------
        ndarray
            Fold numbers from 0, (q,).
        """
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 2 <= number <= self.n_queries:
            raise ConfigError(f"folds must be a whole number from 2 to the {self.n_queries} queries; got {number!r}.")
        fold = np.empty(self.n_queries, np.int64)
        fold[self.sorted_queries[np.random.default_rng(seed).permutation(self.n_queries)]] = (
            np.arange(self.n_queries) % number
        )
        return fold

    def with_group(self, group: ArrayLike | None, group_names: Sequence[Any] | None = None) -> RankingData:
        """Give the same rows under another grouping.

        Parameters
        ----------
        group, group_names
            See `from_arrays`; labels in the caller's row order.

        Returns
        -------
        RankingData
            The rows, with all other arrays shared.
        """
        codes, names = group_codes(group, group_names, self.n_rows)
        stored = codes if self.row_order is None else codes[self.row_order]
        return replace(self, group=freeze(stored), group_names=names, membership=None)

    def with_membership(self, probabilities: ArrayLike, group_names: Sequence[Any]) -> RankingData:
        """Give the same rows with each group's probability instead of a label.

        Measures and intervals weigh a row by its probabilities; what is missing to 1 is unknown. ``group`` becomes the
        likeliest group. Training and re-ranking take labels only. See docs/soft-groups.md on what this can tell.

        Parameters
        ----------
        probabilities : array-like
            (n, G), in the caller's row order.
        group_names : sequence
            The groups of the columns.

        Returns
        -------
        RankingData
            The rows.
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
