"""The tree of minima that several protected groups must reach, and how often a fair list fails it.

Groups of a fair list are drawn with shares p, so the numbers X of protected items among the first j are multinomial.
Minima m are in order at j if P(X ≤ m), no group having more than its minimum, is above the significance. A node keeps
its minima at the next place while they are in order; else each group's minimum may be the one that rises.

A level of the tree is an array of flags, one axis per protected group: whether those minima are a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

# A significance is bounded to so many binary digits before trees are tried.
BISECTIONS = 30

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@lru_cache(maxsize=8)
def chances(p: tuple[float, ...], k: int) -> Floats:
    """Compute P(X ≤ m) among the first 1, …, k places.

    Parameters
    ----------
    p : tuple of float
        The groups' shares, first that of all items that are not protected.
    k : int
        The number of places.

    Returns
    -------
    ndarray
        (k, k + 1, …, k + 1): an axis for the place, and one per protected group for its minimum.
    """
    size = k + 1
    ways = np.array([[float(comb(s, x)) for x in range(size)] for s in range(size)])
    # Python's own powers: numpy's differ in the last digit from one processor to another, and a probability may equal
    # the significance.
    out = np.array([p[0] ** s for s in range(size)])
    for share in p[1:]:
        # Of s items x are of this group, in any of so many ways, and the others as before.
        terms = np.zeros((size, *out.shape[1:], size))
        for x in range(size):
            weight = ways[x:, x] * share**x
            terms[x:, ..., x] = weight.reshape(-1, *[1] * (out.ndim - 1)) * out[: size - x]
        out = np.cumsum(terms, axis=-1)
    return np.asarray(out[1:])


@dataclass(frozen=True, eq=False)
class CountTree:
    """The minima that are in order at each place.

    Attributes
    ----------
    p : tuple of float
        As for `chances`.
    significance : float
        What P(X ≤ m) must be above.
    k : int
        The number of places.
    """

    p: tuple[float, ...]
    significance: float
    k: int

    @cached_property
    def _grown(self) -> tuple[list[Flags], float]:
        """The levels, and the largest P(X ≤ m) that was not enough, or 0."""
        chance = chances(self.p, self.k)
        level = np.zeros(chance.shape[1:], bool)
        level[(0,) * level.ndim] = True
        levels, refused = [], 0.0
        for enough, values in zip(chance > self.significance, chance, strict=True):
            fails = level & ~enough
            children = np.zeros_like(level)
            for axis in range(level.ndim):
                to, of = [slice(None)] * level.ndim, [slice(None)] * level.ndim
                to[axis], of[axis] = slice(1, None), slice(None, -1)
                children[tuple(to)] |= fails[tuple(of)]
            refused = max(refused, *(values[cells].max(initial=0.0) for cells in (fails, children & ~enough)))
            level = (level | children) & enough
            levels.append(level)
        return levels, float(refused)

    @property
    def nodes(self) -> list[list[tuple[int, ...]]]:
        """The minima of each place, sorted; there may be none."""
        return [list(map(tuple, np.argwhere(level).tolist())) for level in self._grown[0]]

    @property
    def next_significance(self) -> float:
        """The largest significance at which the tree is another one, or 0."""
        return float(np.nextafter(self._grown[1], 0.0))

    @cached_property
    def failure_probability(self) -> float:
        """The probability that a list whose groups are drawn with shares p reaches no node of some level, exactly."""
        return _failure(self._grown[0], self.p)

    def likely_path(self) -> list[tuple[int, ...]]:
        """Walk down: the same minima while they are in order, else the child whose P(X ≤ m) is largest.

        Returns
        -------
        list of tuple
            The minima of each place. Where no child is in order they stay.
        """
        node, out = (0,) * (len(self.p) - 1), []
        for chance in chances(self.p, self.k):
            if chance[node] <= self.significance:
                rises = [(*node[:i], node[i] + 1, *node[i + 1 :]) for i in range(len(node)) if node[i] < self.k]
                children = [child for child in rises if chance[child] > self.significance]
                node = max(children, key=lambda child: chance[child], default=node)
            out.append(node)
        return out


def _failure(levels: list[Flags], p: tuple[float, ...]) -> float:
    """The probability that the numbers of a list drawn with shares p are below all flagged ones at some place."""
    # Numbers above the largest minimum of a group are all alike.
    ever = np.argwhere(np.logical_or.reduce(levels))
    tops = ever.max(axis=0, initial=0)
    window = tuple(slice(top + 1) for top in tops.tolist())
    mass = np.zeros(tops + 1)
    mass[(0,) * mass.ndim] = 1.0
    failed = 0.0
    for level in levels:
        mass = _next_place(mass, p)
        reached = level[window]
        for axis in range(mass.ndim):
            reached = np.logical_or.accumulate(reached, axis=axis)
        failed += float(mass[~reached].sum())
        mass = np.where(reached, mass, 0.0)
    return failed


def _next_place(mass: Floats, p: tuple[float, ...]) -> Floats:
    """The law of the numbers one place further down; the last entry of an axis stands for all numbers from there on."""
    new = p[0] * mass
    for axis, share in enumerate(p[1:]):
        before = np.moveaxis(mass, axis, 0)
        after = np.moveaxis(new, axis, 0)
        after[1:] += share * before[:-1]
        after[-1] += share * before[-1]
    return np.asarray(new)


@lru_cache(maxsize=256)
def adjusted_tree(p: tuple[float, ...], significance: float, k: int) -> CountTree:
    """Find the tree of the largest significance at which a fair list fails no more often than was asked for.

    That probability does not rise with the significance throughout, so every tree is tried from the top down.

    Parameters
    ----------
    p, k
        As for `chances`.
    significance : float
        The probability with which a fair list may fail.

    Returns
    -------
    CountTree
        The tree; its significance is at most the one asked for, and 0 if it asks for nothing.
    """
    tree = CountTree(p, min(significance, _bound(p, significance, k)), k)
    while tree.failure_probability > significance:
        tree = CountTree(p, tree.next_significance, k)
    return tree


def _bound(p: tuple[float, ...], significance: float, k: int) -> float:
    """A significance above which every tree fails too often.

    Every node of a tree has P(X ≤ m) above its significance, and so have the numbers of a list that reaches one. How
    often that is so falls as the significance rises.
    """
    chance = chances(p, k)
    low, high = 0.0, significance
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _failure(list(chance > middle), p) > significance:
            high = middle
        else:
            low = middle
    return high
