"""Trees as an engine holds them, and many rows led through many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 20  # rows × trees led through together


@dataclass(frozen=True, eq=False)
class Nodes:
    """All nodes of an engine's trees, (nodes,) each; a leaf leads to itself.

    Attributes
    ----------
    roots : ndarray
        The first node of each tree, (trees,).
    feature : ndarray
        The column that a node looks at.
    threshold : ndarray
        What the value is compared with, in the engine's width.
    left, right : ndarray
        The nodes that follow.
    missing : ndarray
        The node that follows for a missing value.
    value : ndarray
        The value of a leaf, in the engine's width.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[Any]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing: NDArray[np.int64]
    value: NDArray[Any]


class Growing:
    """Nodes as a reader finds them, each after its parent."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.children: list[list[int]] = []
        self.missing_left: list[bool | None] = []
        self.value: list[float] = []

    def tree(self, root: Any, read: Callable[[Any], tuple[int, tuple[Any, Any] | None]]) -> None:
        """Add a tree.

        Parameters
        ----------
        root : Any
            The definition of its root.
        read : Callable
            Adds the node of a definition; gives its number and the definitions of its two children, None of a leaf.
        """
        self.roots.append(len(self.feature))
        pending: list[tuple[Any, int, int]] = [(root, -1, 0)]
        while pending:
            definition, parent, side = pending.pop()
            at, children = read(definition)
            if parent >= 0:
                self.children[parent][side] = at
            if children is not None:
                pending += [(children[1], at, 1), (children[0], at, 0)]

    def leaf(self, value: float) -> int:
        """Add a leaf and give its number."""
        return self.split(0, 0.0, missing_left=True, value=value)

    def split(self, feature: int, threshold: float, *, missing_left: bool | None, value: float = 0.0) -> int:
        """Add a node that splits and give its number; ``missing_left`` is None if a missing value has no way."""
        number = len(self.feature)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.children.append([number, number])
        self.missing_left.append(missing_left)
        self.value.append(value)
        return number

    def grown(self, width: Any) -> Nodes:
        """Give the nodes, thresholds and leaves in the engine's width; what has no way ends in a leaf of NaN."""
        nowhere = self.leaf(np.nan)
        children = np.array(self.children, np.int64)
        way = [
            nowhere if left is None else pair[not left]
            for left, pair in zip(self.missing_left, self.children, strict=True)
        ]
        with np.errstate(over="ignore"):
            threshold, value = (np.array(part, np.float64).astype(width) for part in (self.threshold, self.value))
        feature = np.array(self.feature, np.int64)
        return Nodes(
            np.array(self.roots, np.int64), feature, threshold, children[:, 0], children[:, 1], np.array(way), value
        )


def leaves(nodes: Nodes, rows: NDArray[Any], *, strict: bool) -> NDArray[Any]:
    """Find the value that each row reaches in each tree.

    Parameters
    ----------
    nodes : Nodes
        The trees.
    rows : ndarray
        Features, (n, d), in the width in which the engine compares; NaN is missing.
    strict : bool
        Left is x < threshold; otherwise x ≤ threshold.

    Returns
    -------
    ndarray
        (n, trees), of the type of ``nodes.value``.
    """
    compare = np.less if strict else np.less_equal
    out = np.empty((len(rows), len(nodes.roots)), nodes.value.dtype)
    # Children as one array, right before left, so that a comparison is an index.
    children = np.stack([nodes.right, nodes.left], axis=1).ravel()
    step = max(1, AT_ONCE // max(1, len(nodes.roots)))
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step])
        has_missing = bool(np.isnan(block).any())
        cells, width = block.ravel(), block.shape[1]
        place = np.broadcast_to(nodes.roots, (len(block), len(nodes.roots)))
        start = np.arange(len(block))[:, None] * width
        while True:
            x = cells[start + nodes.feature[place]]
            following = children[2 * place + compare(x, nodes.threshold[place])]
            if has_missing:
                following = np.where(np.isnan(x), nodes.missing[place], following)
            if (following == place).all():
                break
            place = following
        out[first : first + step] = nodes.value[place]
    return out


def running_sum(parts: NDArray[Any], start: Any = None) -> NDArray[Any]:
    """Add up columns one after the other in their own width, as an engine's loop does, (n,)."""
    total = np.zeros(len(parts), parts.dtype) if start is None else start
    with np.errstate(over="ignore", invalid="ignore"):
        for column in parts.T:
            total = total + column
    return total
