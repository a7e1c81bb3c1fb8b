"""Scores read from a model file's JSON by a slow reader of its own, to hold the loaded models against."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from typing import Any

import numpy as np

ZERO = 1e-35  # LightGBM's "zero as missing"


def scores_of(content: dict[str, Any], rows: np.ndarray, names: list[str], groups: list[Any]) -> np.ndarray | None:
    """(n,) for rows (n, d) whose features have these names; None where this reader has no opinion."""
    kind = content["kind"]
    if kind in ("FairLinearRanker", "DELTR"):
        return linear_scores(content, rows, names, groups)
    if kind == "FairNeuralRanker":
        return neural_scores(content, rows, names, groups)
    if kind == "FairLGBMRanker":
        return lightgbm_scores(content["model"], rows)
    missing = np.float32(content["parameters"].get("missing", "nan"))
    return xgboost_scores(content["model"], np.where(rows.astype(np.float32) == missing, np.nan, rows))


def linear_scores(content: dict[str, Any], rows: np.ndarray, names: list[str], groups: list[Any]) -> np.ndarray:
    out = np.full(len(rows), float(content["intercept"]) if content["kind"] == "FairLinearRanker" else 0.0)
    for name, weight in content["weights"].items():
        out += weight * rows[:, names.index(name)]
    out += offsets_of(content, groups)
    step = float(content.get("resolution", 0.0))
    if step > 0:  # scores are multiples of it, but for those that have no digits below it
        out = np.array([round(value / step) * step if abs(value) < step * 2.0**52 else value for value in out.tolist()])
    return out


def offsets_of(content: dict[str, Any], groups: list[Any]) -> np.ndarray:
    if content.get("group_offset") is None:
        return np.zeros(len(groups))
    offset = dict(zip(content["groups"], content["group_offset"], strict=True))
    return np.array([offset[group] for group in groups], float)


def neural_scores(content: dict[str, Any], rows: np.ndarray, names: list[str], groups: list[Any]) -> np.ndarray:
    rows = rows[:, [names.index(name) for name in content["features"]]]
    signal = (rows - np.array(content["center"])) / np.array(content["spread"])
    for number, layer in enumerate(content["layers"]):
        weight, bias = (np.frombuffer(b64decode(layer[part]), "<f4").astype(float) for part in ("weight", "bias"))
        signal = (np.maximum(signal, 0) if number else signal) @ weight.reshape(layer["shape"]) + bias
    return signal[:, 0] + offsets_of(content, groups)


# ---------------------------------------------------------------------- LightGBM


def lightgbm_scores(text: str, rows: np.ndarray) -> np.ndarray | None:
    head, *trees = text.split("end of trees")[0].split("\nTree=")
    if "objective=" in head and "objective=lambdarank\n" not in head and "objective=rank_xendcg\n" not in head:
        return None
    parts = [dict(line.split("=", 1) for line in tree.split("\n")[1:] if line) for tree in trees]
    total = np.array([sum(lightgbm_leaf(tree, row) for tree in parts) for row in rows], float)
    return total / max(1, len(parts)) if "\naverage_output\n" in head else total


def lightgbm_leaf(tree: dict[str, str], row: np.ndarray) -> float:
    at = 0 if int(tree["num_leaves"]) > 1 else -1
    while at >= 0:
        at = int(tree["left_child" if _goes_left(tree, at, row) else "right_child"].split()[at])
    leaf = ~at
    value = float(tree["leaf_value"].split()[leaf])
    if tree["is_linear"] != "1":
        return value
    counts = [int(count) for count in tree["num_features"].split()]
    used = slice(sum(counts[:leaf]), sum(counts[: leaf + 1]))
    values = [row[int(feature)] for feature in tree["leaf_features"].split()[used]]
    if any(math.isnan(x) for x in values):
        return value
    slopes = [float(slope) for slope in tree["leaf_coeff"].split()[used]]
    return float(tree["leaf_const"].split()[leaf]) + sum(slope * x for slope, x in zip(slopes, values, strict=True))


def _goes_left(tree: dict[str, str], node: int, row: np.ndarray) -> bool:
    decision = int(tree["decision_type"].split()[node])
    x, threshold = float(row[int(tree["split_feature"].split()[node])]), float(tree["threshold"].split()[node])
    if decision & 1:
        if math.isnan(x) or int(x) < 0:
            return False
        first, last = (int(bound) for bound in tree["cat_boundaries"].split()[int(threshold) : int(threshold) + 2])
        words = [int(word) for word in tree["cat_threshold"].split()[first:last]]
        return int(x) // 32 < len(words) and bool(words[int(x) // 32] >> (int(x) % 32) & 1)
    missing = decision >> 2
    if math.isnan(x) and missing != 2:
        x = 0.0
    if (missing == 1 and abs(x) <= ZERO) or (missing == 2 and math.isnan(x)):
        return bool(decision & 2)
    return x <= threshold


# ---------------------------------------------------------------------- XGBoost


def xgboost_scores(text: str, rows: np.ndarray) -> np.ndarray:
    learner = json.loads(text)["learner"]
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    booster = learner["gradient_booster"]
    rows = rows.astype(np.float32)
    if booster["name"] == "gblinear":
        weights = booster["model"]["weights"]
        return base + weights[-1] + np.nansum(rows * np.array(weights[:-1]), axis=1)
    dropped = booster.get("weight_drop")
    model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    rounds = int(learner["attributes"].get("best_iteration", len(model["iteration_indptr"]) - 2)) + 1
    used = model["trees"][: model["iteration_indptr"][rounds]]
    scale = dropped or [1.0] * len(used)
    return np.array(
        [
            base + sum(weight * xgboost_leaf(tree, row) for weight, tree in zip(scale, used, strict=False))
            for row in rows
        ]
    )


def xgboost_leaf(tree: dict[str, Any], row: np.ndarray) -> float:
    at = 0
    while tree["left_children"][at] != -1:
        x, condition = row[tree["split_indices"][at]], np.float32(tree["split_conditions"][at])
        if np.isnan(x):
            left = tree["default_left"][at]
        elif tree["split_type"][at]:
            number = tree["categories_nodes"].index(at)
            first, size = tree["categories_segments"][number], tree["categories_sizes"][number]
            left = x < 0 or int(x) not in tree["categories"][first : first + size]
        else:
            left = x < condition
        at = tree["left_children" if left else "right_children"][at]
    return float(tree["split_conditions"][at])
