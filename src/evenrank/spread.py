"""How far linear functions of cell means may be from the truth, by clusters of rows.

A cell is a group of a stratum, its mean that of a value over its rows (a selection rate, say). Two rankings of the same
rows give two means per cell. A *function* is a row of coefficients (first means, second means), such as a gap, or the
difference of two gaps. Rows of one cluster (a query, a user, an item) may depend on each other in any way, and clusters
do not: the variance is that of leaving out one cluster after the other.

Degrees of freedom are those of the rarer cell. With w the rows that a cluster has in the cells of a function, weighted
as in it, they are (Σw)²/Σw² − 1. They are fewer where few clusters vary, as when a rare group is hardly ever selected,
or when two rankings hardly differ: with q the variance of a cluster's rows, at most (Σ√q)²/Σq − 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.query_sums import Weights, quotient
from evenrank.rounding import beyond_rounding

Array = NDArray[np.float64]
HELD = 1 << 22  # numbers of a table that are worked on at a time
CONSTANT = 1e-24  # a variance of rounding errors


@dataclass(frozen=True, eq=False)
class Clustered:
    """Rows in cells, and each cluster's weight in each cell.

    Attributes
    ----------
    row, entry : ndarray
        (m,) each: a row, and the entry of ``weights`` that it counts in.
    share : ndarray or None
        (m,), the weight it counts with; None where that is always 1.
    weights : Weights
        The clusters' weights in the cells.
    """

    row: NDArray[Any]
    entry: NDArray[Any]
    share: Array | None
    weights: Weights

    @classmethod
    def of(
        cls, row: NDArray[Any], column: NDArray[Any], share: Array | None, code: NDArray[Any], width: int
    ) -> Clustered:
        """Sum the rows' weights by cluster: ``column`` is the cell of each of the m, ``code`` each row's cluster."""
        key = code[row].astype(np.int64) * width + column
        keys, entry = np.unique(key, return_inverse=True)
        weight = np.bincount(entry, share, minlength=len(keys)).astype(np.float64)
        return cls(row, entry, share, Weights.of(keys, weight, int(code.max(initial=0)) + 1, width))

    def sums(self, values: Array) -> Array:
        """Sum values of the rows, (n,), over each entry, (entries,)."""
        inside = values[self.row]
        if self.share is not None:
            inside = inside * self.share
        return np.bincount(self.entry, inside, minlength=len(self.weights.weight)).astype(np.float64, copy=False)


class Spread:
    """The cell means of two values, and how sure linear functions of them are.

    Parameters
    ----------
    rows : Clustered
        The rows in cells.
    first, second : ndarray
        (n,) each, a value per row under either ranking.
    single : bool
        Each cluster is one observation: degrees of freedom are the clusters whose two values differ, less one.

    Attributes
    ----------
    means : ndarray
        (2 · width,): the cell means of the first value, then of the second; NaN in an empty cell.
    """

    def __init__(self, rows: Clustered, first: Array, second: Array, *, single: bool = False) -> None:
        from scipy.sparse import csr_array, hstack

        weights = rows.weights
        self.width, self.single = weights.width, single
        column, weight, total = weights.column, weights.weight, weights.total
        tops = [rows.sums(values) for values in (first, second)]
        means = [quotient(weights.by_column(top), total) for top in tops]
        self.means = np.concatenate(means)
        rest = total[column] - weight
        at = [mean[column] for mean in means]

        def table(*values: Array) -> Any:
            shape = (weights.n_queries, self.width)
            return hstack([csr_array((part, column, weights.ptr), shape=shape) for part in values], format="csr")

        moves = table(
            *(
                np.where(rest > 0, (top - mean * weight) / np.where(rest > 0, rest, 1), 0.0)
                for top, mean in zip(tops, at, strict=True)
            )
        )
        used = int((np.diff(weights.ptr) > 0).sum())
        self._covariance = (moves.T @ moves).toarray() * (used - 1) / max(used, 1)
        self.clusters = weights.queries  # (width,): those that bear on each cell
        self._total = total
        parts = weight / total[column] ** 2
        sizes = table(parts)
        self._sizes = (sizes.T @ sizes).toarray()
        pairs = [(first, 0, 0), (second, 1, 1), (None, 0, 1)]
        moments = []
        for values, i, j in pairs:
            squares = rows.sums(first * second if values is None else values * values)
            off = at[i] * tops[j] + at[j] * tops[i] - at[i] * at[j] * weight
            centred = squares if single else squares - off
            floor = 1e-12 * (np.abs(squares) + weight * np.abs(at[i] * at[j]))
            moments.append(np.where(np.abs(centred) > floor, centred, 0.0) / total[column] ** 2)
        self._moments = table(*moments)

    def values(self, functions: Any) -> Array:
        """Give the value of each function, (J,), from coefficients (J, 2 · width)."""
        return np.asarray(functions @ np.nan_to_num(self.means))

    def variance(self, functions: Any) -> Array:
        """Give the variance of each function, (J,)."""
        return np.concatenate([_quadratic(part, self._covariance) for part in self._few(functions)])

    def freedom(self, functions: Any) -> Array:
        """Give the degrees of freedom of each function, (J,); 0 where one of its cells stands in one cluster."""
        return np.concatenate([self._freedom(part) for part in self._few(functions)])

    def bearing(self, functions: Any) -> NDArray[np.int64]:
        """Count the clusters that bear on the rarest cell of each function, (J,)."""
        return np.concatenate([self._least(part, self.clusters) for part in self._few(functions)])

    def _few(self, functions: Any) -> Iterator[Any]:
        """Dense parts of the functions, few enough for tables of clusters."""
        step = max(1, HELD // max(self._moments.shape[0], 3 * self.width))
        for start in range(0, max(1, functions.shape[0]), step):
            part = functions[start : start + step]
            yield part.toarray() if hasattr(part, "toarray") else np.asarray(part)

    def _least(self, part: Array, numbers: NDArray[Any]) -> NDArray[Any]:
        touched = (part[:, : self.width] != 0) | (part[:, self.width :] != 0)
        most = np.iinfo(np.int64).max
        return np.asarray(np.where(touched, numbers, most).min(axis=1, initial=most))

    def _freedom(self, part: Array) -> Array:
        one, two = part[:, : self.width], part[:, self.width :]
        weight = one**2 + two**2
        total = (weight / np.where(self._total > 0, self._total, 1)).sum(axis=1)
        equal = quotient(total**2, _quadratic(weight, self._sizes))
        spread = np.maximum(self._moments @ np.hstack([one**2, two**2, 2 * one * two]).T, 0)
        spread[spread < 1e-9 * spread.max(axis=0, initial=0)] = 0
        if self.single:
            vary = (spread > 0).sum(axis=0).astype(np.float64)
        else:
            vary = quotient(np.sqrt(spread).sum(axis=0) ** 2, spread.sum(axis=0))
        freedom = np.fmin(equal, vary) - 1  # nothing varies: NaN, and the clusters alone count
        return np.where(self._least(part, self.clusters) < 2, 0.0, np.maximum(freedom, 0.0))


def _quadratic(rows: Array, matrix: Array) -> Array:
    return np.asarray(np.maximum(np.einsum("ij,ij->i", rows @ matrix, rows), 0.0))


@dataclass(frozen=True, eq=False)
class Tests:
    """Functions tested against 0, each by the least certain of one or more clusterings.

    Attributes
    ----------
    value : ndarray
        (J,): the functions' values.
    error, freedom : ndarray
        (clusterings, J) each: standard errors and degrees of freedom.
    bearing : ndarray
        (clusterings, J): clusters that bear on the rarest cell.
    most : ndarray
        (J,): half of the range that a function can have at all.
    """

    value: Array
    error: Array
    freedom: Array
    bearing: NDArray[np.int64]
    most: Array

    @classmethod
    def of(cls, spreads: Sequence[Spread], functions: Any) -> Tests:
        """Take the functions' values, errors and degrees of freedom by each clustering."""
        value = spreads[0].values(functions)
        error = np.array([np.sqrt(spread.variance(functions)) for spread in spreads])
        freedom = np.array([spread.freedom(functions) for spread in spreads])
        bearing = np.array([spread.bearing(functions) for spread in spreads])
        most = np.asarray(abs(functions).sum(axis=1)).ravel() / 2
        return cls(value, error, freedom, bearing, most)

    def rounded(self, error: float) -> Tests:
        """Give the same with 0 for values that are no more than rounding errors."""
        return replace(self, value=beyond_rounding(self.value, error))

    @cached_property
    def p_value(self) -> Array:
        """The largest p-value of the clusterings, (J,)."""
        from scipy.special import stdtr

        t = np.abs(self.value) / np.where(self.constant, 1.0, self.error)
        student = 2 * stdtr(np.maximum(self.freedom, 1e-6), -t)
        # All clusters alike: a share s of others may differ, (1 − s)^n = p/2, and move it by s · (most + |value|).
        size = np.abs(self.value) / np.maximum(self.most + np.abs(self.value), 1e-300)
        p = np.where(self.constant, 2 * (1 - size) ** self.bearing, student)
        return np.asarray(np.minimum(1.0, np.where(self.freedom > 0, p, 1.0)).max(axis=0))

    def reach(self, alpha: float, number: int = 1) -> Array:
        """How far each value may be from the truth, at level ``alpha`` shared by ``number`` functions, (J,)."""
        from scipy.special import stdtrit

        level = alpha / (2 * number)
        student = -stdtrit(np.maximum(self.freedom, 1e-6), level) * self.error
        alike = (1 - level ** (1 / np.maximum(self.bearing, 1))) * (self.most + np.abs(self.value))
        return np.asarray(np.where(self.freedom > 0, np.where(self.constant, alike, student), np.inf).max(axis=0))

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """Where all clusters are alike, (clusterings, J)."""
        return np.asarray(self.error**2 <= CONSTANT)

    @property
    def clear(self) -> Array:
        """How many standard errors each value is from 0, by the least certain clustering, (J,)."""
        sure = np.where(self.value != 0, np.inf, 0.0)
        ratio = np.abs(self.value) / np.where(self.constant, 1.0, self.error)
        return np.asarray(np.where(self.freedom > 0, np.where(self.constant, sure, ratio), 0.0).min(axis=0))


def pair_functions(pairs: Pairs, width: int, first: float, second: float) -> Any:
    """Write first · (gap of the first ranking) + second · (gap of the second) for each pair, (J, 2 · width), sparse."""
    from scipy.sparse import csr_array

    number = len(pairs.a)
    parts = [
        (cells + at, np.full(number, sign * factor))
        for factor, at in ((first, 0), (second, width))
        if factor
        for cells, sign in ((pairs.a, 1.0), (pairs.b, -1.0))
    ]
    column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    row = np.tile(np.arange(number), len(parts))
    return csr_array((value, (row, column)), shape=(number, 2 * width))


def cluster_codes(cluster: Any, data: RankingData, *, cross: bool = True) -> list[NDArray[np.int64]]:
    """Number the clusters of each row in stored order, per clustering; the first is the queries unless one holds them.

    Parameters
    ----------
    cluster : array-like, sequence of two array-likes, or None
        A label per row, (n,), in the caller's order, or two such; None takes the queries.
    data : RankingData
        The rows.
    cross : bool
        Whether labels may cut across queries; otherwise they are refused.

    Returns
    -------
    list of ndarray
        (n,) each.
    """
    queries = np.empty(data.n_queries, np.int64)
    queries[data.sorted_queries] = np.arange(data.n_queries)
    codes = [_codes(labels, data) for labels in _several(cluster, data.n_rows)]
    starts = data.query_ptr[:-1]
    whole = [bool((np.minimum.reduceat(code, starts) == np.maximum.reduceat(code, starts)).all()) for code in codes]
    if not cross and not all(whole):
        raise DataError("cluster must have one label per query here; a query has several. Cluster whole queries.")
    if any(whole):
        return codes
    return [queries[data.query_of_row], *codes]


def _several(cluster: Any, n: int) -> list[ArrayLike]:
    if cluster is None:
        return []
    if isinstance(cluster, list | tuple) and len(cluster) <= 2 and all(np.shape(labels) == (n,) for labels in cluster):
        return list(cluster)
    return [cluster]


def _codes(labels: ArrayLike, data: RankingData) -> NDArray[np.int64]:
    array = np.asarray(labels)
    if array.shape != (data.n_rows,):
        raise DataError(
            f"cluster must have a label for each of the {data.n_rows} rows (or be two such); got shape {array.shape}."
        )
    unknown = array != array  # NaN
    if array.dtype == object:
        unknown = unknown | np.array([label is None for label in array])
    missing = np.flatnonzero(unknown)
    if len(missing):
        raise DataError(f"row {missing[0]}: cluster has no label. Give rows of unknown clusters labels of their own.")
    if array.dtype == object:
        array = array.astype(str)
    code = np.unique(array, return_inverse=True)[1].astype(np.int64)
    return code if data.row_order is None else code[data.row_order]
