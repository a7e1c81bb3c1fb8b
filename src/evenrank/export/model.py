"""What an exported model is, whatever trained it: trees, weights or a network over named features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.export.float32 import Floats


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees over 32-bit features: a value x goes left if x ≤ ``at_most`` of its node.

    Nodes of all trees stand in one array, tree after tree, parents before children; the arrays are (nodes,).

    Attributes
    ----------
    features : tuple of str
        The features' names.
    roots : ndarray
        The first node of each tree, (trees,).
    feature, at_most : ndarray
        What a node compares; of a leaf they mean nothing.
    left, right : ndarray
        The children; -1 of a leaf.
    missing_left : ndarray
        Whether a missing value goes left.
    value : ndarray
        The value of a leaf, in the width of the library that trained it.
    base : float
        The score that trees are added to.
    wide : bool
        Leaves are added as 64-bit numbers (LightGBM); otherwise as 32-bit ones, after ``base`` (XGBoost).
    """

    features: tuple[str, ...]
    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    at_most: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    base: float = 0.0
    wide: bool = True

    @property
    def inner(self) -> NDArray[np.int64]:
        """The nodes that split, (splits,)."""
        return np.flatnonzero(self.left >= 0)

    @property
    def zero_left(self) -> NDArray[np.bool_]:
        """Whether the value 0 goes left, (nodes,)."""
        return np.asarray(self.at_most >= 0)

    def missing_as_zero(self) -> Forest:
        """The same trees with a missing value going where 0 goes."""
        return replace(self, missing_left=self.zero_left)

    def depth(self) -> NDArray[np.int64]:
        """How many splits lead to each node, (nodes,)."""
        depth = np.zeros(len(self.left), np.int64)
        level = self.roots
        while len(level):
            level = level[self.left[level] >= 0]
            for children in (self.left, self.right):
                depth[children[level]] = depth[level] + 1
            level = np.concatenate([self.left[level], self.right[level]])
        return depth


@dataclass(frozen=True, eq=False)
class Linear:
    """A weighted sum of features.

    Attributes
    ----------
    features : tuple of str
        The features' names.
    coef : ndarray
        Their weights, (d,).
    intercept : float
        What is added.
    """

    features: tuple[str, ...]
    coef: NDArray[np.float64]
    intercept: float = 0.0


@dataclass(frozen=True, eq=False)
class Network:
    """A multilayer perceptron over standardised features, with ReLU between layers.

    Attributes
    ----------
    features : tuple of str
        The features' names.
    center, spread : ndarray
        What each feature is reduced by, then divided by, (d,).
    layers : sequence of tuple
        Weights (in, out) and biases (out,), 32-bit.
    """

    features: tuple[str, ...]
    center: NDArray[np.float64]
    spread: NDArray[np.float64]
    layers: Sequence[tuple[Floats, Floats]]


Scorer = Forest | Linear | Network


@dataclass(frozen=True, eq=False)
class Described:
    """A model to export.

    Attributes
    ----------
    scorer : Forest, Linear or Network
        What gives the score.
    offsets : mapping
        Group → what is added to the score of its items; empty if the group does not count.
    unknown : float
        What is added to the score of an item of unknown group.
    notes : tuple of str
        What the reader of the export should know of the model.
    """

    scorer: Scorer
    offsets: Mapping[Any, float] = field(default_factory=dict)
    unknown: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The features' names."""
        return self.scorer.features
