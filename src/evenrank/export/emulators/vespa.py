"""What Vespa makes of a LightGBM or XGBoost model in its models folder, or of a linear ranking expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError
from evenrank.export.errors import accept
from evenrank.export.json_text import fields, number, parsed
from evenrank.export.walk import Growing, Nodes, leaves, running_sum

LIGHTGBM, XGBOOST, EXPRESSION = "lightgbm", "xgboost", "expression"
DEFAULT, LARGE, FAST_FOREST = "default", "large", "fast_forest"
EVALUATORS = (DEFAULT, LARGE, FAST_FOREST)
# Of forests beyond these the thresholds and leaves become 32-bit numbers.
MOST_LEAVES, SMALL_TREE, MOST_STEPS = 25_000, 12, 2_500
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(\([A-Za-z0-9_., ]*\))?(\.[A-Za-z0-9_.]+)?")
KEYWORDS = ("if", "in")
NUMBER = r"-?[0-9.]+(?:[eE][+-]?[0-9]+)?"
TERM = re.compile(rf"({NUMBER}) \* if \(isNan\((.+)\), 0\.0, (.+)\)")


def kind_of(definition: Any) -> str:
    """Tell which form a definition has."""
    if isinstance(definition, str) and definition.lstrip()[:1] not in ("{", "["):
        return EXPRESSION
    return LIGHTGBM if isinstance(parsed(definition), dict) else XGBOOST


def emulate(
    definition: Any,
    rows: NDArray[np.float64],
    *,
    features: Sequence[str] | None = None,
    evaluator: str | None = None,
    kind: str | None = None,
) -> NDArray[np.float64]:
    """Score rows as Vespa's content nodes do.

    Parameters
    ----------
    definition : str or JSON value
        The model's file, or the expression.
    rows : ndarray
        Features, (n, d), 64-bit; NaN is missing.
    features : sequence of str, optional
        The names of the columns; needed unless the model is LightGBM's.
    evaluator : str, optional
        "default", "large" or "fast_forest" (the rank property ``vespa.eval.use_fast_forest``); by default what Vespa
        takes for the size of the model.
    kind : str, optional
        "lightgbm", "xgboost" or "expression".

    Returns
    -------
    ndarray
        (n,), 64-bit.
    """
    kind = kind or kind_of(definition)
    if kind == EXPRESSION:
        return _expression(str(definition), rows, _need(features))
    content = parsed(definition)
    growing, constant, function = (
        _lightgbm(content, features) if kind == LIGHTGBM else _xgboost(content, _need(features))
    )
    nodes = growing.grown(np.float64)
    chosen = evaluator or (LARGE if _is_large(nodes) else DEFAULT)
    if chosen == FAST_FOREST and constant:
        chosen = LARGE if _is_large(nodes) else DEFAULT
    with np.errstate(over="ignore"):
        if chosen != DEFAULT:
            for numbers in (nodes.threshold, nodes.value):
                numbers[:] = numbers.astype(np.float32)
        if chosen == FAST_FOREST:
            rows = rows.astype(np.float32).astype(np.float64)
    total = running_sum(leaves(nodes, rows, strict=True))
    return np.asarray(function(total))


def _need(features: Sequence[str] | None) -> Sequence[str]:
    if features is None:
        raise ConfigError("the definition does not say which column is which. Name the columns with features=.")
    return features


def _parse_name(name: str) -> None:
    whole = NAME.fullmatch(name)
    accept(
        whole is not None and name not in KEYWORDS,
        f"the expression parser cannot read the feature {name!r}",
    )


def _is_large(nodes: Nodes) -> bool:
    depth = np.zeros(len(nodes.left), np.int64)
    inner = nodes.left != np.arange(len(nodes.left))
    ends = ~inner[:-1]  # the last node is the one that leads nowhere
    level = nodes.roots
    while len(level):
        level = level[inner[level]]
        for children in (nodes.left, nodes.right):
            depth[children[level]] = depth[level] + 1
        level = np.concatenate([nodes.left[level], nodes.right[level]])
    tree = np.searchsorted(nodes.roots, np.arange(len(ends)), side="right") - 1
    count = np.bincount(tree[ends], minlength=len(nodes.roots))
    steps = np.bincount(tree[ends], weights=depth[:-1][ends], minlength=len(nodes.roots))
    return bool(count.sum() > MOST_LEAVES or steps[count > SMALL_TREE].sum() > MOST_STEPS)


# ---------------------------------------------------------------------- LightGBM


def _lightgbm(content: Any, features: Sequence[str] | None) -> tuple[Growing, bool, Any]:
    for key in ("objective", "feature_names", "pandas_categorical", "tree_info"):
        accept(key in content, f"the importer finds no {key!r}")
    objective, names = content["objective"], content["feature_names"]
    accept(isinstance(objective, str), "objective must be a text")
    given = list(names) if features is None else list(features)
    growing = Growing()
    used: set[str] = set()
    accept(isinstance(content["tree_info"], list) and content["tree_info"], "there must be at least one tree")

    def read(node: Any) -> tuple[int, tuple[Any, Any] | None]:
        accept(isinstance(node, dict), "a node must be an object")
        if "leaf_value" in node:
            return growing.leaf(number(node["leaf_value"], "leaf_value")), None
        for key in ("split_feature", "threshold", "left_child", "right_child"):
            accept(key in node, f"a split has no {key!r}")
        accept(node.get("decision_type", "<=") == "<=", "only numbers can be compared here")
        name = names[node["split_feature"]]
        used.add(name)
        accept(name in given, f"there is no feature {name!r}")
        left = bool(node.get("default_left", False))
        at = growing.split(given.index(name), number(node["threshold"], "threshold"), missing_left=left)
        return at, (node["left_child"], node["right_child"])

    for tree in content["tree_info"]:
        accept(isinstance(tree, dict) and "tree_structure" in tree, "a tree must have a tree_structure")
        growing.tree(tree["tree_structure"], read)
    for name in used:
        _parse_name(name)
    first = objective.partition(" ")[0]
    function: Any = lambda total: total  # noqa: E731
    if first.startswith("binary") or first == "cross_entropy":
        function = lambda total: 1 / (1 + np.exp(-total))  # noqa: E731
    elif first in ("poisson", "gamma", "tweedie"):
        function = np.exp
    return growing, _has_constant(growing), function


def _has_constant(growing: Growing) -> bool:
    """A tree of one leaf is a constant in the sum."""
    return any(growing.children[root] == [root, root] for root in growing.roots)


# ---------------------------------------------------------------------- XGBoost


def _xgboost(content: Any, features: Sequence[str]) -> tuple[Growing, bool, Any]:
    accept(isinstance(content, list) and content, "the importer wants a list of trees")
    place = {name: column for column, name in enumerate(features)}
    growing = Growing()

    def read(node: Any) -> tuple[int, tuple[Any, Any] | None]:
        if isinstance(node, dict) and "leaf" in node:
            return growing.leaf(number(fields(node, "a leaf", ("leaf",), ("nodeid", "depth"))["leaf"], "leaf")), None
        keys = ("split", "split_condition", "yes", "no", "children")
        given = fields(node, "a split", keys, ("nodeid", "depth", "missing"))
        name = str(given["split"])
        name = f"xgboost_input_{name}" if name.isdecimal() else name
        _parse_name(name)
        accept(name in place, f"there is no feature {name!r}")
        children = given["children"]
        accept(isinstance(children, list) and len(children) == 2, "a split must have two children")
        by_id = {child.get("nodeid"): child for child in children if isinstance(child, dict)}
        accept(set(by_id) == {given["yes"], given["no"]}, "yes and no must be the children")
        threshold = number(given["split_condition"], "split_condition")
        at = growing.split(place[name], threshold, missing_left=given.get("missing", 0) == given["yes"])
        return at, (by_id[given["yes"]], by_id[given["no"]])

    for tree in content:
        growing.tree(tree, read)
    return growing, _has_constant(growing), lambda total: total


# ---------------------------------------------------------------------- expressions


def _expression(text: str, rows: NDArray[np.float64], features: Sequence[str]) -> NDArray[np.float64]:
    """A sum of weighted features and a number, as `to_vespa` writes it, from left to right."""
    place = {name: column for column, name in enumerate(features)}
    total: NDArray[np.float64] | None = None
    for part in text.strip().split(" + "):
        term = TERM.fullmatch(part)
        if term is not None:
            weight, name, again = term.groups()
            _parse_name(name)
            accept(name == again and name in place, f"there is no feature {name!r}")
            x = rows[:, place[name]]
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(weight) * np.where(np.isnan(x), 0.0, x)
        else:
            accept(re.fullmatch(NUMBER, part), f"this emulator reads weighted sums of features only; got {part[:40]!r}")
            value = np.full(len(rows), float(part))
        with np.errstate(over="ignore", invalid="ignore"):
            total = value if total is None else total + value
    assert total is not None
    return total
