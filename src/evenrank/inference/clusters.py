"""Sums over clusters of lists, and variances that two clusterings give together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

KINDS = 1024  # sizes of clusters that are counted instead of listed
ALIKE = 20  # items of a group below which they may all happen to be alike
FEW_ITEMS = 4  # items of a group that recur, below which nothing is told
ROWS_EACH = 1.5  # rows per item from which a group's items recur
ENOUGH_CLUSTERS = 40  # of several lists each, that few successes may come from


@dataclass(frozen=True, eq=False)
class Clustering:
    """Which lists belong together.

    Attributes
    ----------
    codes : ndarray
        (C,): the codes that are there, increasing.
    index : ndarray or None
        (L,): the position of each list's code; None where every list is its own cluster, in the order of the codes.
    times : ndarray or None
        For how many clusters each of these stands, (C,), where that is not one.
    lists : ndarray or None
        For how many lists, all in one cluster, each of the L stands, where that is not one.
    """

    codes: NDArray[np.int64]
    index: NDArray[np.int64] | None
    times: NDArray[np.float64] | None = None
    lists: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, codes: ArrayLike, times: NDArray[np.float64] | None = None, *, apart: bool = True) -> Clustering:
        """Take one code per list; ``times`` and ``apart`` as in `Lists`."""
        codes = np.asarray(codes, dtype=np.int64)
        if times is not None and apart:
            return cls(codes, None, times)
        if times is None and (len(codes) < 2 or bool((codes[1:] > codes[:-1]).all())):
            return cls(codes, None)
        if int(codes.max(initial=0)) > 8 * len(codes) + 1024 or not len(codes):
            present, index = np.unique(codes, return_inverse=True)
            return cls(present, index, lists=times)
        present = np.flatnonzero(np.bincount(codes))
        place = np.empty(int(present[-1]) + 1, np.int64)
        place[present] = np.arange(len(present))
        return cls(present, place[codes], lists=times)

    def __len__(self) -> int:
        """The number of clusters that are held, C."""
        return len(self.codes)

    @property
    def number(self) -> int:
        """The number of clusters, as often as each of those held stands for one."""
        return len(self) if self.times is None else round(float(self.times.sum()))

    def count(self, which: NDArray[np.bool_]) -> int:
        """Count clusters by a condition on those that are held, (C,)."""
        return int(which.sum()) if self.times is None else round(float(self.times[which].sum()))

    def total(self, values: NDArray[np.float64]) -> float:
        """Sum one value per cluster, (C,)."""
        return float(values.sum() if self.times is None else values @ self.times)

    def dot(self, values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
        """Sum products of two values per cluster, (C,) each."""
        return float(values @ others if self.times is None else (values * self.times) @ others)

    def products(self, a: NDArray[np.float64], b: NDArray[np.float64], scale: float) -> tuple[float, float, float]:
        """Sum a·a, a·b and b·b over the clusters, times ``scale``."""
        return scale * self.dot(a, a), scale * self.dot(a, b), scale * self.dot(b, b)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum one value per list, (L,), over each cluster, (C,)."""
        if self.index is None:
            return values
        if self.lists is not None:
            values = values * self.lists
        return np.bincount(self.index, values, minlength=len(self)).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance matrix of two estimates, as each clustering sees it.

    With two clusterings the variance of a difference is that of Cameron, Gelbach and Miller, V1 + V2 − V12, and never
    below the larger of V1 and V2.

    Attributes
    ----------
    parts : sequence of (float, float, float)
        Var(A), Cov(A, B), Var(B), by one clustering, or by the first, the second and both together.
    """

    parts: Sequence[tuple[float, float, float]]

    def of_difference(self, ratio: float = 1.0) -> float:
        """Give the variance of A − ratio · B."""
        each = [max(0.0, aa - 2 * ratio * ab + ratio * ratio * bb) for aa, ab, bb in self.parts]
        return two_way(each)

    def at_one(self) -> tuple[float, float, float]:
        """Give the one matrix that the variance of A − B is taken from."""
        if len(self.parts) == 1:
            return self.parts[0]
        first, second, both = (np.array(part) for part in self.parts)
        of_difference = np.array([1.0, -2.0, 1.0])
        choices = [first, second, first + second - both]
        aa, ab, bb = max(choices, key=lambda part: float(of_difference @ part))
        return float(aa), float(ab), float(bb)


def two_way(each: Sequence[float]) -> float:
    """Join the variances by the first clustering, the second and both together."""
    if len(each) == 1:
        return each[0]
    first, second, both = each
    return max(first, second, first + second - both)


def few_leaning(clusterings: Sequence[Clustering], carried: NDArray[np.float64]) -> int:
    """Count the clusters that carry what matters where they are few and mostly of several lists; else 0.

    Then how much the clusters lean by themselves cannot be told from few successes.

    Parameters
    ----------
    clusterings : sequence of Clustering
        The clusterings.
    carried : ndarray
        (L,): how much of it each list carries.
    """
    for clustering in clusterings[:2]:
        carrying = clustering.sums((carried > 0).astype(np.float64))
        each = clustering.sums(carried)
        several = clustering.total(each * (carrying > 1))
        count = clustering.count(carrying > 0)
        if count < ENOUGH_CLUSTERS and several > clustering.total(each) / 2:
            return count
    return 0


def few_items(sizes: NDArray[np.float64], rows: float) -> int:
    """Count a group's items where they recur and are so few that they may all differ from others by themselves; else 0.

    Parameters
    ----------
    sizes : ndarray
        (I,): how much each item of the group weighs.
    rows : float
        The group's rows.
    """
    number = effective_number(sizes)
    return int((sizes > 0).sum()) if number < FEW_ITEMS and rows > ROWS_EACH * number else 0


def item_variances(
    residual: NDArray[np.float64],
    weight: NDArray[np.float64],
    left: NDArray[np.float64],
    rows: NDArray[np.float64],
    is_a: NDArray[np.bool_],
) -> list[tuple[float, float]]:
    """Give the sum of squares of what recurring items of each group moved, and its degrees of freedom.

    Few items of a group may happen to be alike, all of them poor, say. So where a group has few, those of both groups
    together are taken besides each group's own squares (as Student and as Welch have it: an even ranker treats groups
    alike), and the larger variance counts. With as many items in both groups the two are the same.

    Parameters
    ----------
    residual, rows : ndarray
        (I,): the sum over the item's rows of x less what is expected, and the number of its rows.
    weight : ndarray
        (I,): how much its residual moves the estimate.
    left : ndarray
        (I,): the share that it leaves to the others.
    is_a : ndarray
        (I,): whether it is of the first group.
    """
    each = np.divide(residual, rows, out=np.zeros(len(rows)), where=rows > 0)
    usual = float(rows @ (each * each)) / max(float(rows.sum()), 1e-300)
    moved, sizes = (weight * residual / left) ** 2, (weight * rows) ** 2
    together = max(effective_number(rows) - 1, 0.01)
    welch, student = [], []
    for own in (is_a, ~is_a):
        welch.append((float(moved[own].sum()), max(effective_number(sizes[own]) - 1, 0.01)))
        student.append((usual * float(sizes[own].sum()), together))
    if min(effective_number(rows[own]) for own in (is_a, ~is_a)) >= ALIKE:
        return welch
    return max(welch, student, key=lambda parts: sum(part for part, _ in parts))


def cluster_freedom(
    by_chance: NDArray[np.float64], sizes: NDArray[np.float64], times: NDArray[np.float64] | float | None = None
) -> float:
    """Give the degrees of freedom of the jackknife's variance over clusters, as Bell and McCaffrey do.

    They are those of the quadratic form Σ r², r = (D − h ΣD)/(1 − h) with h a cluster's share of all sizes, if the D of
    clusters are independent.

    Parameters
    ----------
    by_chance, sizes : ndarray
        (C,): the variance of D, and the size, per cluster or per kind of cluster.
    times : ndarray or float, optional
        (C,): how many clusters are of each kind.
    """
    times = 1.0 if times is None else times
    u, h = by_chance, sizes / max(float((times * sizes).sum()), 1e-300)
    if not u.any() or h.max() > 1 - 1e-9:
        return 0.0
    # the form's matrix is diagonal but for a part of rank 2: its trace and its norm need sums only
    s2 = (1 - h) ** -2.0
    whole, t2 = float((times * u).sum()), times * s2
    diagonal = u * (1 - 2 * h) + whole * h * h
    trace = float(t2 @ diagonal)
    uu, hh, uh = float(t2 @ (u * u)), float(t2 @ (h * h)), float(t2 @ (u * h))
    norm = 2 * uu * hh + 2 * uh * uh + (whole * hh) ** 2 - 4 * whole * uh * hh
    norm += float((t2 * s2) @ (u * (2 * diagonal - u)))
    return trace * trace / norm if norm > 0 else 0.0


def lean_of(
    sizes: NDArray[np.float64],
    moved: NDArray[np.float64],
    by_chance: NDArray[np.float64],
    times: NDArray[np.float64] | None = None,
) -> float:
    """Give the variance per square of a cluster's size that chance does not explain, as if each had a lean of its own.

    Parameters
    ----------
    sizes, moved, by_chance : ndarray
        (C,): the size of each cluster, its D less what is expected, and the variance of D by chance.
    times : ndarray, optional
        (C,): for how many clusters each of these stands.
    """
    of_each = np.ones(len(sizes)) if times is None else times
    return max(0.0, float(of_each @ (moved * moved - by_chance))) / max(float(of_each @ (sizes * sizes)), 1e-300)


def leaning_freedom(
    by_chance: NDArray[np.float64],
    sizes: NDArray[np.float64],
    moved: NDArray[np.float64],
    times: NDArray[np.float64] | None = None,
) -> float:
    """Give the mean of `cluster_freedom` without and with a lean of each cluster's own.

    Where clusters of unequal size lean, those by chance alone are too many; those with the lean that the same residuals
    suggest are too few, since a large variance comes with few degrees of freedom.

    Parameters
    ----------
    by_chance, sizes, moved, times
        As for `lean_of`.
    """
    lean = lean_of(sizes, moved, by_chance, times)
    leaning = by_chance + lean * sizes * sizes
    return (cluster_freedom(by_chance, sizes, times) + cluster_freedom(leaning, sizes, times)) / 2


def size_freedom(
    sizes: NDArray[np.float64],
    moved: NDArray[np.float64],
    by_chance: float,
    times: NDArray[np.float64] | None = None,
) -> float:
    """Give `cluster_freedom` where chance alone gives D a variance of ``by_chance`` per unit of size.

    Where clusters vary more than that, there is also a part that grows with the square of the size.

    Parameters
    ----------
    sizes, moved, times
        As for `lean_of`.
    by_chance : float
        The variance of D per unit of size.
    """
    lean = lean_of(sizes, moved, by_chance * sizes, times)
    if len(sizes) > KINDS and sizes.max() < KINDS:  # many clusters are of few sizes
        whole = sizes.astype(np.int64)
        if (whole == sizes).all():
            counts = np.bincount(whole, times)
            there = np.flatnonzero(counts)
            sizes, times = there.astype(np.float64), counts[there].astype(np.float64)
    return cluster_freedom(by_chance * sizes + lean * sizes * sizes, sizes, times)


def effective_number(sizes: NDArray[np.float64]) -> float:
    """How many equal clusters would be as uneven as these: (Σv)²/Σv²; 0 of nothing."""
    squares = float(sizes @ sizes)
    return float(sizes.sum()) ** 2 / squares if squares > 0 else 0.0
