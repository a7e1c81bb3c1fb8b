"""What the statistics of an audit are computed from: counts and sums per list for one pair of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenrank.inference.clusters import Clustering

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lists:
    """One pair of groups (a, b), one stratum and one value x: an entry per list where either group has a row at stake.

    Attributes
    ----------
    a, b : ndarray
        (L,): the number of rows of each group.
    x_a, x_b : ndarray
        (L,): the sum of x, from 0 to 1 per row, over each group: the top-k selection, or an exposure.
    squares : ndarray
        (L,): the sum of x² over both groups.
    clusters : tuple of ndarray
        One or two clusterings, an integer code of at least 0 per list: lists of one code may depend on each other.
        The codes mean the same in every hypothesis of a family; not all of them need be there.
    whole : bool
        Whether every x is 0 or 1.
    number : ndarray, optional
        (L,): the rows of both groups where a and b are sums of weights.
    times : ndarray, optional
        (L,): for how many lists, all alike, each of the L stands.
    apart : bool
        Whether these are clusters by themselves; otherwise they are in the cluster that the code says.
    """

    a: Array
    b: Array
    x_a: Array
    x_b: Array
    squares: Array
    clusters: tuple[NDArray[np.intp], ...]
    whole: bool
    number: Array | None = None
    times: Array | None = None
    apart: bool = True

    @property
    def swapped(self) -> Lists:
        """The same lists with the two groups in the other order."""
        return replace(self, a=self.b, b=self.a, x_a=self.x_b, x_b=self.x_a)

    def total(self, values: Array) -> float:
        """Sum one value per list, (L,), over all lists."""
        return float(values.sum() if self.times is None else values @ self.times)

    def taken(self, which: NDArray[np.intp]) -> Lists:
        """Some of the lists."""
        a, b, x_a, x_b, squares = (x[which] for x in (self.a, self.b, self.x_a, self.x_b, self.squares))
        number, times = (None if each is None else each[which] for each in (self.number, self.times))
        clusters = tuple(codes[which] for codes in self.clusters)
        return Lists(a, b, x_a, x_b, squares, clusters, self.whole, number, times, self.apart)

    @cached_property
    def clusterings(self) -> tuple[Clustering, ...]:
        """The clusterings by themselves and, where there are two, the one of lists that share both."""
        own = tuple(Clustering.of(codes, self.times, apart=self.apart) for codes in self.clusters)
        if len(own) < 2:
            return own
        first, second = (np.asarray(codes, dtype=np.int64) for codes in self.clusters)
        both = first * (second.max(initial=0) + 1) + second
        return (*own, Clustering.of(both, self.times, apart=self.apart))

    @cached_property
    def rows(self) -> Array:
        """The rows of both groups, (L,)."""
        return self.a + self.b

    @cached_property
    def _divisor(self) -> Array:
        """The rows, or 1 where there are none; with weights they may sum to less than 1."""
        return np.where(self.rows > 0, self.rows, 1.0)

    @cached_property
    def selected(self) -> Array:
        """The sum of x over both groups, (L,)."""
        return self.x_a + self.x_b

    @cached_property
    def excess(self) -> Array:
        """What group a got beyond its share of the list's sum, (L,): D = Σx over a − a/(a + b) · Σx."""
        return (self.x_a * self.b - self.x_b * self.a) / self._divisor

    @cached_property
    def weight(self) -> Array:
        """The weight of Mantel and Haenszel, (L,): W = ab/(a + b)."""
        return self.a * self.b / self._divisor

    @cached_property
    def variance(self) -> Array:
        """The variance of D if the list's values were handed out at random, (L,)."""
        n = self.rows
        number = n if self.number is None else self.number
        spread = self.squares - self.selected**2 / self._divisor
        # a sum of squares that cancels to rounding error is a list of equal values
        spread = np.where(spread > 1e-9 * np.maximum(self.squares, 1e-300), spread, 0.0)
        return np.where(number > 1, self.weight * spread / self._divisor * number / np.maximum(number - 1, 1), 0.0)


@dataclass(frozen=True, eq=False)
class ItemSums:
    """Items that recur in several lists, for one pair of groups: an entry per item at stake.

    Attributes
    ----------
    is_a : ndarray
        (I,) of bool: whether the item is of group a.
    value_deviation : ndarray
        (I,): the sum over the item's lists of x − its mean in the list.
    group_deviation : ndarray
        (I,): the sum over the item's lists of g − its mean in the list, with g = 1 for group a, 0 for b.
    rows, sums : ndarray, optional
        (I,): the item's number of rows at stake and their sum of x; what is pooled needs them.
    shared : ndarray, optional
        (I,): the item's number of rows in lists with both groups; by default all its rows are.
    """

    is_a: NDArray[np.bool_]
    value_deviation: Array
    group_deviation: Array
    rows: Array | None = None
    sums: Array | None = None
    shared: Array | None = None


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far each cluster moved an estimate, scaled to a sum of squares of 1: two estimates correlate as these do.

    Attributes
    ----------
    codes : ndarray
        (C,): the clusters, increasing.
    values : ndarray
        (C,): their standardised residuals.
    """

    codes: NDArray[np.int64]
    values: Array

    @classmethod
    def of(cls, clustering: Clustering, values: Array) -> Residuals:
        """Scale one number per cluster; clusters that did not move the estimate are left out."""
        length = float(np.sqrt(clustering.dot(values, values)))
        moved = np.flatnonzero(values)
        return cls(clustering.codes[moved], values[moved] / (length or 1.0))
