"""Trees at random, in the libraries' own files, and the scores that plain Python gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from model_mutations import with_sizes

LIGHTGBM_ZERO = 1.0000000180025095e-35
LARGEST = float(np.finfo(np.float32).max)
# Thresholds that engines, libraries or 32-bit numbers treat in a way of their own.
HARD = [
    0.0,
    -0.0,
    1e-36,
    -1e-36,
    LIGHTGBM_ZERO,
    -LIGHTGBM_ZERO,
    1e-45,
    -1e-45,
    1e-6,
    -1e-6,
    1e-7,
    0.1,
    0.5,
    1.0,
    31.99999,
]
HARD += [1.0000001, 2.0, 32.0, 33.0, -64.0, 1e10, -1e30, LARGEST]
NONE, NAN = "None", "NaN"


class Split(NamedTuple):
    feature: int
    threshold: float
    default_left: bool
    missing: str
    left: Any
    right: Any


@st.composite
def trees(draw: st.DrawFn, d: int, *, library: str) -> list[Any]:
    """Up to five trees; a leaf is its value."""
    leaf = st.floats(-100, 100, width=32 if library == "xgboost" else 64).filter(lambda x: x == 0 or abs(x) > 1e-30)
    numbers = st.sampled_from(HARD) | st.floats(-1e6, 1e6)
    if library == "xgboost":
        numbers = numbers.map(lambda x: float(np.float32(x)))
    else:
        numbers = numbers | st.sampled_from([1.7976931348623157e308, np.inf])
    missing = st.just(NAN) if library == "xgboost" else st.sampled_from([NONE, NAN])
    node = st.recursive(
        leaf,
        lambda below: st.builds(Split, st.integers(0, d - 1), numbers, st.booleans(), missing, below, below),
        max_leaves=8,
    )
    return draw(st.lists(node, min_size=1, max_size=5))


def thresholds(node: Any) -> Iterator[tuple[int, float]]:
    if isinstance(node, Split):
        yield node.feature, node.threshold
        yield from thresholds(node.left)
        yield from thresholds(node.right)


@st.composite
def rows(draw: st.DrawFn, forest: list[Any], d: int) -> np.ndarray:
    """Rows of 32-bit values at thresholds, one step above and below them, and other hard ones."""
    pools: list[list[float]] = [[0.0, -0.0, 1e-36, -1e-36, 1e-45, 3e38, -3e38, np.nan, 1.0] for _ in range(d)]
    for tree in forest:
        for feature, threshold in thresholds(tree):
            near = np.float32(np.clip(threshold, -LARGEST, LARGEST))
            with np.errstate(over="ignore"):
                around = (near, *(np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf)))
            pools[feature] += [float(value) for value in around if np.isfinite(value)]
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    return np.array(draw(st.lists(row, min_size=1, max_size=12))).astype(np.float32).astype(np.float64)


def reached(node: Any, row: np.ndarray, library: str) -> float:
    """The leaf that the library itself leads a row to."""
    while isinstance(node, Split):
        x = float(row[node.feature])
        if library == "xgboost":
            left = node.default_left if np.isnan(x) else bool(np.float32(x) < np.float32(node.threshold))
        elif np.isnan(x) and node.missing == NAN:
            left = node.default_left
        else:
            x = 0.0 if np.isnan(x) or abs(x) <= LIGHTGBM_ZERO else x
            left = x <= node.threshold
        node = node.left if left else node.right
    return float(node)


def scores(
    forest: list[Any], table: np.ndarray, library: str, *, base: float = 0.0, width: Any = np.float64
) -> np.ndarray:
    """The sum of the leaves in the given width, one after the other."""
    out = []
    for row in table:
        total = width(base)
        for tree in forest:
            total = width(total + width(reached(tree, row, library)))
        out.append(total)
    return np.array(out)


# ---------------------------------------------------------------------- the libraries' files


def _flat(node: Any) -> tuple[list[Split], list[float], list[tuple[int, int]]]:
    """Splits from the root down, leaves, and each split's children: a leaf's number as its complement."""
    splits: list[Split] = []
    leaves: list[float] = []
    children: list[list[int]] = []
    pending = [(node, -1, 0)]
    while pending:
        part, parent, side = pending.pop(0)
        if isinstance(part, Split):
            at = len(splits)
            splits.append(part)
            children.append([0, 0])
            pending += [(part.left, at, 0), (part.right, at, 1)]
        else:
            at = ~len(leaves)
            leaves.append(part)
        if parent >= 0:
            children[parent][side] = at
    return splits, leaves, [(left, right) for left, right in children]


def lightgbm_text(forest: list[Any], d: int) -> str:
    """LightGBM's model text of the trees."""

    def line(key: str, values: Any) -> str:
        return f"{key}={' '.join(map(str, values))}"

    names = [f"f{j}" for j in range(d)]
    blocks = []
    for number, tree in enumerate(forest):
        splits, leaves, children = _flat(tree)
        decisions = [2 * s.default_left + (8 if s.missing == NAN else 0) for s in splits]
        blocks.append(
            "\n".join(
                [
                    f"Tree={number}",
                    f"num_leaves={len(leaves)}",
                    "num_cat=0",
                    line("split_feature", [s.feature for s in splits]),
                    line("split_gain", [1] * len(splits)),
                    line("threshold", [repr(float(s.threshold)) for s in splits]),
                    line("decision_type", decisions),
                    line("left_child", [left for left, _ in children]),
                    line("right_child", [right for _, right in children]),
                    line("leaf_value", [repr(float(leaf)) for leaf in leaves]),
                    line("leaf_weight", [1] * len(leaves)),
                    line("leaf_count", [1] * len(leaves)),
                    line("internal_value", [0] * len(splits)),
                    line("internal_weight", [0] * len(splits)),
                    line("internal_count", [1] * len(splits)),
                    "is_linear=0",
                    "shrinkage=1",
                    "",
                    "",
                ]
            )
        )
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={d - 1}",
    ]
    head += ["objective=lambdarank", line("feature_names", names), line("feature_infos", ["[0:1]"] * d)]
    head += [line("tree_sizes", [0] * len(forest)), ""]
    return with_sizes("\n".join([*head, "\n".join(blocks), "end of trees", "", "pandas_categorical:null", ""]))


def xgboost_json(forest: list[Any], d: int, *, base: float = 0.0, best: int | None = None) -> str:
    """XGBoost's JSON of the trees."""
    made = []
    for number, tree in enumerate(forest):
        # Level by level: XGBoost takes the node after the left child for the right one.
        nodes, left, parents = [tree], [], [2**31 - 1]
        for at, node in enumerate(nodes):
            left.append(len(nodes) if isinstance(node, Split) else -1)
            if isinstance(node, Split):
                nodes += [node.left, node.right]
                parents += [at, at]
        n = len(nodes)
        numbers = [float(node.threshold if isinstance(node, Split) else node) for node in nodes]
        made.append(
            {
                "base_weights": numbers,
                "categories": [],
                "categories_nodes": [],
                "categories_segments": [],
                "categories_sizes": [],
                "default_left": [int(isinstance(node, Split) and node.default_left) for node in nodes],
                "id": number,
                "left_children": left,
                "loss_changes": [0.0] * n,
                "parents": parents,
                "right_children": [-1 if child < 0 else child + 1 for child in left],
                "split_conditions": numbers,
                "split_indices": [node.feature if isinstance(node, Split) else 0 for node in nodes],
                "split_type": [0] * n,
                "sum_hessian": [1.0] * n,
                "tree_param": {
                    "num_deleted": "0",
                    "num_feature": str(d),
                    "num_nodes": str(n),
                    "size_leaf_vector": "1",
                },
            }
        )
    count = len(forest)
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(count)},
        "iteration_indptr": list(range(count + 1)),
        "tree_info": [0] * count,
        "trees": made,
    }
    learner = {
        "attributes": {} if best is None else {"best_iteration": str(best)},
        "feature_names": [f"f{j}" for j in range(d)],
        "feature_types": ["float"] * d,
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": f"[{base!r}]",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(d),
            "num_target": "1",
        },
        "objective": {"name": "rank:ndcg", "lambdarank_param": {}},
    }
    return json.dumps({"learner": learner, "version": [3, 2, 0]})
