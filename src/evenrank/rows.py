"""`Rows`: the arrays of a `RankingData`, what can be read off them, and the two orders of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.row_checks import (
    MappedPages,
    block_rows,
    listed,
    number_array,
    refuse_halves,
)

# What to do about missing values and categories.
TO_TRAIN = (
    "Train it with impute='median' (--impute median), leave the features out with ignore= (--ignore), or train "
    "LightGBM or XGBoost, which take both."
)
TO_SUM = (
    "Fill them before, leave the features out with ignore=, or use FairLinearRanker or er.sweep, which fill them with "
    "impute='median'."
)
TO_SCORE = (
    "The model was trained without a rule for them: train it again with impute='median' (--impute median) or without "
    "these features, or fill the rows."
)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Arrays of rows grouped by query, in stored order; `evenrank.RankingData` explains each."""

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
    membership: NDArray[np.float64] | None = None
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    has_missing: bool = False

    def __post_init__(self) -> None:
        refuse_halves(self.group_names, "group label")
        refuse_halves(self.feature_names, "feature name")

    # ------------------------------------------------------------------ looking

    @property
    def n_rows(self) -> int:
        """The number of rows, n."""
        return len(self.relevance)

    @property
    def n_queries(self) -> int:
        """The number of queries, q."""
        return len(self.query_ids)

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return int(self.features.shape[1])

    @property
    def n_groups(self) -> int:
        """The number of groups, G."""
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
        """Query numbers in the order of their ids, (q,); seeded choices use it, so that row order never matters."""
        try:
            return np.argsort(self.query_ids, kind="stable")
        except TypeError:
            keys = [(type(value).__name__, str(value)) for value in self.query_ids.tolist()]
            return np.array(sorted(range(self.n_queries), key=keys.__getitem__))

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Relevance at or above the threshold, (n,)."""
        return self.relevance >= self.relevance_threshold

    @cached_property
    def missing_features(self) -> tuple[str, ...]:
        """The features of which a value is missing, in their order."""
        if not self.has_missing:
            return ()
        missing = np.zeros(self.n_features, bool)
        for _, block in self.blocks():
            missing |= np.isnan(block).any(axis=0)
        return tuple(name for name, some in zip(self.feature_names, missing.tolist(), strict=True) if some)

    def need_labels(self, what: str) -> None:
        """Refuse groups that are known by probability only.

        Parameters
        ----------
        what : str
            What needs labels, for the message.
        """
        if self.membership is not None:
            raise ConfigError(f"{what} needs group labels; the data has membership probabilities. Use with_group.")

    def need_numbers(self, what: str, features: Sequence[str] | None = None, advice: str = TO_TRAIN) -> None:
        """Refuse features with missing values or categories.

        Parameters
        ----------
        what : str
            What needs numbers, for the message.
        features : sequence of str, optional
            The features it uses; by default all.
        advice : str
            What to do about it.
        """
        used = self.feature_names if features is None else features
        missing = [name for name in used if name in self.missing_features]
        categories = [name for name in used if name in self.categories]
        if missing or categories:
            first = f", first in row {self._first_missing(missing[0])}," if missing else ""
            parts = (("missing values (NaN)", missing, first), ("categories", categories, ""))
            has = " and ".join(f"{kind} in {listed(names)}{where}" for kind, names, where in parts if names).rstrip(",")
            raise DataError(f"{what} takes numbers only; the data has {has}. {advice}")

    def _first_missing(self, name: str) -> int:
        """The caller's first row that lacks a feature."""
        rows = np.flatnonzero(np.isnan(self.column(name)))
        return int(rows[0] if self.row_order is None else self.row_order[rows].min())

    def column(self, name: str) -> NDArray[Any]:
        """Look up a feature.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        ndarray
            (n,), in stored order.
        """
        if name not in self.feature_names:
            raise DataError(f"feature {name!r} is not in the data; its features are {listed(self.feature_names)}.")
        return np.asarray(self.features[:, self.feature_names.index(name)])

    def blocks(self, *, whole_queries: bool = False) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Go through the rows in blocks that are small enough to convert to float64.

        Parameters
        ----------
        whole_queries : bool
            End every block where a query ends, which makes blocks larger by at most one query.

        Yields
        ------
        rows : slice
            The rows of the block, in stored order.
        features : ndarray
            Their features, (rows, d).
        """
        step = block_rows(self.n_features)
        ends = np.minimum(np.arange(step, self.n_rows + step, step), self.n_rows)
        if whole_queries:
            ends = np.unique(self.query_ptr[np.searchsorted(self.query_ptr, ends)])
        pages = MappedPages(self.features)
        for start, end in pairwise([0, *ends.tolist()]):
            rows = slice(start, end)
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

    def to_stored(self, values: ArrayLike, *, what: str = "scores", samples: bool = False) -> NDArray[Any]:
        """Check values given in the caller's row order and bring them to stored order.

        Their type stays: ties are decided in the precision the scores were given in, and between integers exactly.

        Parameters
        ----------
        values : array-like
            (n,) or (n, models).
        what : str
            The name that an error gives them.
        samples : bool
            Whether several rankings per model, (n, models, samples), are taken too.

        Returns
        -------
        ndarray
            The shape of ``values``.
        """
        array = number_array(values, what)
        n = self.n_rows
        if array.ndim not in (1, 2, 3)[: 3 if samples else 2] or len(array) != n or array.size == 0:
            shapes = f"({n},), ({n}, models) or ({n}, models, samples)" if samples else f"({n},) or ({n}, models)"
            raise DataError(f"{what} must have shape {shapes}, one value per row; got {array.shape}.")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            model = f" of model {place[1]}" if array.ndim > 1 else ""
            raise DataError(f"{what} must be finite; row {place[0]}{model} has {float(array[place])}.")
        return array if self.row_order is None else array[self.row_order]

    def to_caller(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values in stored order back to the caller's row order.

        Parameters
        ----------
        values : ndarray
            (n,) or (n, models).

        Returns
        -------
        ndarray
            The shape of ``values``.
        """
        if self.row_order is None:
            return values
        out = np.empty_like(values)
        out[self.row_order] = values
        return out
