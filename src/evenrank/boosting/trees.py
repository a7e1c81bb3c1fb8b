"""What a stored tree must be before a library sees it: the libraries follow child numbers without looking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# What a node does with a missing value: LightGBM's numbers.
AS_ZERO, ZERO_IS_MISSING, BY_DEFAULT = 0, 1, 2
# Libraries walk some trees by recursion. Grown trees are far shallower: this many levels would take as many splits.
DEEPEST = 5000


class Damaged(ValueError):
    """A library's model that breaks a rule; the message says which."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree as its library stores it. Node 0 is the root; all arrays are (nodes,).

    Attributes
    ----------
    feature, threshold : ndarray
        The column a node looks at and the number it compares with; of a leaf they mean nothing.
    left, right : ndarray
        The children; a leaf has -1 for both.
    value : ndarray
        The value of a leaf.
    default_left : ndarray
        Whether a missing value goes left, where ``missing`` is `BY_DEFAULT`.
    missing : ndarray
        `AS_ZERO`, `ZERO_IS_MISSING` or `BY_DEFAULT`.
    categorical : ndarray
        Whether a node splits by a set of categories.
    linear : bool
        Whether the leaves hold linear models, which ``value`` leaves out.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    default_left: NDArray[np.bool_]
    missing: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    linear: bool = False


@dataclass(frozen=True, eq=False)
class Stored:
    """What decides the scores of a library's model.

    Attributes
    ----------
    n_features : int
        The number of features.
    names : tuple of str
        The library's names of the features; empty if it has none.
    objective : str
        The name of the objective with its settings; empty if there is none.
    trees : tuple of Tree
        All trees that count.
    left_out : int
        How many more trees the file has, which early stopping leaves out.
    base : float
        The score that trees are added to.
    average : bool
        The score is the mean of the trees, not their sum.
    weights : ndarray, optional
        Of a linear booster: one weight per feature and then the intercept, (d + 1,).
    drop : bool
        Trees are weighted (DART).
    """

    n_features: int
    names: tuple[str, ...]
    objective: str
    trees: tuple[Tree, ...]
    left_out: int = 0
    base: float = 0.0
    average: bool = False
    weights: NDArray[np.float64] | None = None
    drop: bool = False


def need(holds: object, reason: str) -> None:
    """Raise `Damaged` with the reason unless it holds."""
    if not holds:
        raise Damaged(reason)


def reached(left: NDArray[np.int64], right: NDArray[np.int64], where: str) -> NDArray[np.bool_]:
    """Tell which nodes the root leads to, (n,); `Damaged` unless each of them has one parent and the tree ends.

    Parameters
    ----------
    left, right : (n,) array
        Each node's children; a leaf has -1 for both. Node 0 is the root.
    where : str
        What messages call the tree.
    """
    n = len(left)
    need(((left == -1) == (right == -1)).all(), f"{where} has a node with one child")
    for children in (left, right):
        need(((children >= -1) & (children < n)).all(), f"{where} has a child outside its {n} nodes")
    is_reached = np.zeros(n, bool)
    is_reached[0] = True
    level = np.zeros(1, np.int64)
    for _ in range(DEEPEST):
        inner = level[left[level] >= 0]
        if not len(inner):
            return is_reached
        level = np.concatenate([left[inner], right[inner]])
        twice = is_reached[level].any() or len(np.unique(level)) < len(level)
        need(not twice, f"{where} reaches a node twice")
        is_reached[level] = True
    raise Damaged(f"{where} is deeper than {DEEPEST} levels")
