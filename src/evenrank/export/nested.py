"""A forest as nested objects, children inside their parents, as every engine wants it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from evenrank.errors import ConfigError
from evenrank.export.float32 import LARGEST, above, cast
from evenrank.export.model import Forest

DEEPEST = 400  # splits; each takes two levels of JSON, of which readers allow 1,000
BEYOND = 1e39  # reads as an infinite 32-bit number


def nest(
    forest: Forest,
    leaf: Callable[[int], Any],
    split: Callable[[int, Any, Any], Any],
) -> list[Any]:
    """Build one object per tree.

    Parameters
    ----------
    forest : Forest
        The trees.
    leaf : Callable
        Number of a leaf → its object.
    split : Callable
        Number of a node, and the objects of its left and right child → its object.

    Returns
    -------
    list
        The roots.
    """
    deepest = int(forest.depth().max())
    if deepest > DEEPEST:
        raise ConfigError(
            f"a tree is {deepest} splits deep, and engines read JSON of {DEEPEST} at most. Train with max_depth, or "
            "export to onnx."
        )
    # Parents stand before their children.
    made: list[Any] = [None] * len(forest.left)
    for node in range(len(made) - 1, -1, -1):
        left, right = int(forest.left[node]), int(forest.right[node])
        made[node] = leaf(node) if left < 0 else split(node, made[left], made[right])
        if left >= 0:
            made[left] = made[right] = None
    return [made[root] for root in forest.roots]


def xgboost_trees(forest: Forest, *, beyond: float = BEYOND) -> list[Any]:
    """Build trees in the form of XGBoost's dump, which the plugins and Vespa read: left is x < split_condition.

    Parameters
    ----------
    forest : Forest
        The trees.
    beyond : float
        What stands for a threshold above all 32-bit numbers.

    Returns
    -------
    list
        The trees, after one of a single leaf for the score that trees are added to.
    """
    tree = np.searchsorted(forest.roots, np.arange(len(forest.left)), side="right") - 1
    number = np.arange(len(forest.left)) - forest.roots[tree]
    depth = forest.depth()
    thresholds, values = above(forest.at_most), cast(forest.value)

    def leaf(node: int) -> Any:
        return {"nodeid": int(number[node]), "leaf": float(values[node])}

    def split(node: int, left: Any, right: Any) -> Any:
        threshold = float(thresholds[node]) if thresholds[node] <= LARGEST else beyond
        return {
            "nodeid": int(number[node]),
            "depth": int(depth[node]),
            "split": forest.features[forest.feature[node]],
            "split_condition": threshold,
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if forest.missing_left[node] else right)["nodeid"],
            "children": [left, right],
        }

    first = [{"nodeid": 0, "leaf": float(np.float32(forest.base))}] if forest.base else []
    return first + nest(forest, leaf, split)


def compact(value: Any) -> str:
    """Write JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pretty(value: Any) -> str:
    """Write JSON for people, with the end of the last line."""
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
