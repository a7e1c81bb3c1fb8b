"""What a stored tree must be before a library sees it: the libraries follow child numbers without looking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Libraries walk some trees by recursion. Grown trees are far shallower: this many levels would take as many splits.
DEEPEST = 5000


class Damaged(ValueError):
    """A library's model that breaks a rule; the message says which."""


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
