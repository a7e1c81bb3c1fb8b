"""XGBoost's JSON model, checked and written anew, as XGBoost follows the numbers in it without looking.

Each object has the keys XGBoost writes and no other, each array the length that goes with it, each tree is whole. What
goes to XGBoost is written from the values that were checked, so that both readers see one model.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.json_values import INT32, LARGEST, fields, floats, wholes
from evenrank.boosting.trees import BY_DEFAULT, Stored, Tree, need, reached
from evenrank.boosting.xgboost_categories import checked_categories, checked_splits
from evenrank.rankers.content import parse_json, short

ROOT, DELETED = 2**31 - 1, 2**31 - 1  # the parent of the root; the feature of a node that pruning took away
NUMBER = re.compile(r"[+-]?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?")
WHOLE = re.compile(r"[0-9]{1,10}")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
SETTING = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
OBJECTIVES = ("rank:ndcg", "rank:map", "rank:pairwise")
TYPES = ("q", "i", "int", "float", "c")
FLOATS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
WHOLES = {
    "left_children": INT32,
    "right_children": INT32,
    "parents": INT32,
    "split_indices": (0, DELETED),
    "default_left": (0, 1),
    "split_type": (0, 1),
}
SPLITS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def checked_model(text: str, n_features: int) -> str:
    """Give XGBoost's model, written from what was checked; `Damaged` where XGBoost might stumble over it."""
    learner, version = _learner(text)
    booster, rounds = _booster(learner["gradient_booster"], n_features)
    names, types = (_texts(learner[key], key, n_features) for key in ("feature_names", "feature_types"))
    need(len(set(names)) == len(names), "feature_names has a name twice")
    need(all(kind in TYPES for kind in types), f"feature_types must be of {', '.join(TYPES)}")
    rebuilt = {
        "attributes": _attributes(learner["attributes"], rounds),
        "feature_names": names,
        "feature_types": types,
        "gradient_booster": booster,
        "learner_model_param": _model_param(learner["learner_model_param"], n_features),
        "objective": _objective(learner["objective"]),
    }
    # XGBoost knows no escapes but those of quotes, backslashes, tabs and ends of lines.
    return json.dumps({"learner": rebuilt, "version": version.tolist()}, ensure_ascii=False, separators=(",", ":"))


def read_model(text: str) -> Stored:
    """Read the trees or weights of XGBoost's JSON model, all that decides scores checked as in `checked_model`.

    Parameters
    ----------
    text : str
        The JSON.

    Returns
    -------
    Stored
        The trees of the rounds that count, or the weights of gblinear.
    """
    learner, _ = _learner(text)
    param = learner["learner_model_param"]
    n_features = _small(param.get("num_feature") if isinstance(param, dict) else None, "num_feature")
    param = _model_param(param, n_features)
    booster, rounds = _booster(learner["gradient_booster"], n_features)
    best = _attributes(learner["attributes"], rounds).get("best_iteration")
    objective = learner["objective"]
    name = objective.get("name") if isinstance(objective, dict) else None
    need(isinstance(name, str), "objective must have a name")
    names = tuple(_texts(learner["feature_names"], "feature_names", n_features))
    base = float(np.float32(param["base_score"].strip("[]")))
    if booster["name"] == "gblinear":
        return Stored(n_features, names, str(name), (), base=base, weights=np.array(booster["model"]["weights"]))
    forest = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    used = forest["iteration_indptr"][rounds if best is None else int(best) + 1]
    trees = tuple(_as_tree(tree) for tree in forest["trees"][:used])
    return Stored(
        n_features, names, str(name), trees, len(forest["trees"]) - used, base, drop=booster["name"] == "dart"
    )


def _as_tree(tree: dict[str, Any]) -> Tree:
    """A checked tree; a leaf's value stands where a node has its threshold."""
    left, right = (np.array(tree[key], np.int64) for key in ("left_children", "right_children"))
    numbers = np.array(tree["split_conditions"], np.float64)
    return Tree(
        np.where(left < 0, -1, tree["split_indices"]),
        np.where(left < 0, 0.0, numbers),
        left,
        right,
        np.where(left < 0, numbers, 0.0),
        np.array(tree["default_left"], bool),
        np.full(len(left), BY_DEFAULT),
        np.array(tree["split_type"], bool),
    )


def is_linear(text: str) -> bool:
    """Tell whether a text of `checked_model` has weights, not trees. (Within names the quotes would be escaped.)"""
    return '"gradient_booster":{"name":"gblinear"' in text


# ---------------------------------------------------------------------- around the trees


def _learner(text: str) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """The parts of the model, and the version of XGBoost that wrote it."""
    model = fields(parse_json(text), "the model", "learner", "version")
    version = wholes(model["version"], "version", 3, (0, 10_000))
    need(version[0] >= 3, f"it was written by XGBoost {version[0]}; 3 or later is needed")
    parts = ("attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param", "objective")
    return fields(model["learner"], "learner", *parts), version


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and CONTROL.search(value) is None


def _texts(value: Any, what: str, count: int) -> list[str]:
    """Texts, as many as there are features or none."""
    good = isinstance(value, list) and len(value) in (0, count) and all(map(_is_text, value))
    need(good, f"{what} must be {count} texts or none")
    return list(value)


def _attributes(value: Any, rounds: int) -> dict[str, str]:
    """Texts under any name; how many rounds are used, where it is said, must be among those there are."""
    good = isinstance(value, dict) and all(map(_is_text, [*value, *value.values()]))
    need(good, "attributes must be texts")
    best = value.get("best_iteration")
    need(best is None or (WHOLE.fullmatch(best) and int(best) < rounds), f"best_iteration must be below {rounds}")
    return dict(value)


def _model_param(value: Any, n_features: int) -> dict[str, str]:
    expected = {"num_class": "0", "num_target": "1", "num_feature": str(n_features)}
    param = fields(value, "learner_model_param", "base_score", "boost_from_average", *expected)
    for key, text in expected.items():
        need(param[key] == text, f"{key} must be {text!r}; got {short(param[key])}")
    need(param["boost_from_average"] in ("0", "1"), "boost_from_average must be '0' or '1'")
    score = param["base_score"]
    bare = score[1:-1] if isinstance(score, str) and score[:1] == "[" and score[-1:] == "]" else score
    good = isinstance(bare, str) and NUMBER.fullmatch(bare) and abs(float(bare)) <= LARGEST
    need(good, f"base_score must be a finite number; got {short(score)}")
    return dict(param)


def _objective(value: Any) -> dict[str, Any]:
    """A ranking objective with its settings; with position bias its two lists as well."""
    objective = fields(value, "objective", "name", "lambdarank_param", optional=("ti+", "tj-"))
    need(objective["name"] in OBJECTIVES, f"the objective must be one of {', '.join(OBJECTIVES)}")
    settings = objective["lambdarank_param"]
    good = isinstance(settings, dict) and all(
        SETTING.fullmatch(key) and isinstance(text, str) and SETTING.fullmatch(text) for key, text in settings.items()
    )
    need(good, "lambdarank_param must be settings in one word each")
    need(("ti+" in objective) == ("tj-" in objective), "ti+ and tj- go together")
    biases = {key: floats(objective[key], key, None).tolist() for key in ("ti+", "tj-") if key in objective}
    need(len({len(bias) for bias in biases.values()}) < 2, "ti+ and tj- must be of one length")
    need(biases or settings.get("lambdarank_unbiased") in (None, "0"), "ti+ and tj- are missing")
    return {"name": objective["name"], "lambdarank_param": dict(settings)} | biases


def _booster(value: Any, n_features: int) -> tuple[dict[str, Any], int]:
    """The booster and the number of its rounds."""
    name = value.get("name") if isinstance(value, dict) else None
    if name == "gblinear":
        model = fields(fields(value, name, "name", "model")["model"], name, "weights", "boosted_rounds")
        rounds = int(wholes([model["boosted_rounds"]], "boosted_rounds", 1, (0, INT32[1]))[0])
        weights = floats(model["weights"], "weights", n_features + 1).tolist()
        return {"name": name, "model": {"weights": weights, "boosted_rounds": rounds}}, rounds
    if name == "dart":
        dart = fields(value, name, "name", "gbtree", "weight_drop")
        gbtree, rounds = _booster(dart["gbtree"], n_features)
        need(gbtree["name"] == "gbtree", "the booster inside dart must be gbtree")
        count = len(gbtree["model"]["trees"])
        weights = floats(dart["weight_drop"], "weight_drop", count).tolist()
        return {"name": name, "gbtree": gbtree, "weight_drop": weights}, rounds
    need(name == "gbtree", f"the booster must be gbtree, dart or gblinear; got {short(name)}")
    model, rounds = _forest(fields(value, "gbtree", "name", "model")["model"], n_features)
    return {"name": name, "model": model}, rounds


def _forest(value: Any, n_features: int) -> tuple[dict[str, Any], int]:
    parts = ("gbtree_model_param", "iteration_indptr", "tree_info", "trees")
    model = fields(value, "gbtree", *parts, optional=("cats",))
    trees = model["trees"]
    need(isinstance(trees, list), "trees must be a list")
    param = fields(model["gbtree_model_param"], "gbtree_model_param", "num_parallel_tree", "num_trees")
    need(param["num_trees"] == str(len(trees)), f"num_trees must be {len(trees)}; got {short(param['num_trees'])}")
    together = _small(param["num_parallel_tree"], "num_parallel_tree")
    need(1 <= together <= max(1, len(trees)), "num_parallel_tree must be from 1 to the number of trees")
    wholes(model["tree_info"], "tree_info", len(trees), (0, 0))
    bounds = wholes(model["iteration_indptr"], "iteration_indptr", None, (0, len(trees)))
    ascending = len(bounds) and bounds[0] == 0 and bounds[-1] == len(trees) and (np.diff(bounds) > 0).all()
    need(ascending, f"iteration_indptr must ascend from 0 to {len(trees)}")
    budget = [0]
    rebuilt = {
        "gbtree_model_param": dict(param),
        "iteration_indptr": bounds.tolist(),
        "tree_info": [0] * len(trees),
        "trees": [_tree(tree, number, n_features, budget) for number, tree in enumerate(trees)],
    }
    if "cats" in model:
        rebuilt["cats"] = checked_categories(model["cats"], n_features)
    return rebuilt, len(bounds) - 1


# ---------------------------------------------------------------------- one tree


def _tree(value: Any, number: int, n_features: int, budget: list[int]) -> dict[str, Any]:
    where = f"tree {number}"
    tree = fields(value, where, "id", "tree_param", *FLOATS, *WHOLES, *SPLITS)
    need(tree["id"] == number and not isinstance(tree["id"], bool), f"{where} has the id {short(tree['id'])}")
    param = fields(tree["tree_param"], where, "num_deleted", "num_feature", "num_nodes", "size_leaf_vector")
    left = tree["left_children"]
    n = len(left) if isinstance(left, list) else 0
    need(n > 0 and param["num_nodes"] == str(n), f"{where} must have {n} nodes; got {short(param['num_nodes'])}")
    need(param["num_feature"] == str(n_features), f"{where} must have {n_features} features")
    need(param["size_leaf_vector"] in ("0", "1"), f"{where} must have one value per leaf")
    arrays = {key: wholes(tree[key], f"{key} of {where}", n, bounds) for key, bounds in WHOLES.items()}
    numbers = {key: floats(tree[key], f"{key} of {where}", n) for key in FLOATS}
    alive = _check_nodes(arrays, n_features, where)
    deleted = _small(param["num_deleted"], "num_deleted")
    need(deleted == (~alive).sum(), f"{where} has {(~alive).sum()} nodes that nothing leads to; it says {deleted}")
    inner = arrays["left_children"] >= 0
    splits = {key: wholes(tree[key], f"{key} of {where}", None, (0, INT32[1])) for key in SPLITS}
    checked_splits(splits, np.flatnonzero(arrays["split_type"] == 1), inner, where, budget)
    rebuilt = {key: array.tolist() for key, array in (arrays | numbers | splits).items()}
    return {"id": number, "tree_param": dict(param)} | rebuilt


def _check_nodes(arrays: dict[str, NDArray[np.int64]], n_features: int, where: str) -> NDArray[np.bool_]:
    """Which nodes the root leads to; the others must be marked as deleted."""
    left, right, parents = (arrays[key] for key in ("left_children", "right_children", "parents"))
    alive = reached(left, right, where)
    gone = ~alive
    marked = (arrays["split_indices"] == DELETED) & (arrays["default_left"] == 1) & (left == -1)
    need((marked == gone).all(), f"{where} has nodes that nothing leads to")
    need((arrays["split_indices"][alive] < n_features).all(), f"{where} splits a feature outside the {n_features}")
    need(parents[0] == ROOT, f"{where} has a root with a parent")
    need(((parents[1:] >= 0) & (parents[1:] < len(left))).all(), f"{where} has a parent outside its nodes")
    inner = np.flatnonzero(left >= 0)
    # XGBoost takes the node after the left child for the right one.
    need((right[inner] == left[inner] + 1).all(), f"{where} has children that do not stand side by side")
    agree = all((parents[children[inner]] == inner).all() for children in (left, right))
    need(agree, f"{where} has a node whose parent is another")
    return alive


def _small(value: Any, what: str) -> int:
    need(isinstance(value, str) and WHOLE.fullmatch(value), f"{what} must be a whole number; got {short(value)}")
    return int(value)
