"""What the learning-to-rank plugins of Elasticsearch and OpenSearch make of a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.export.emulators import ranklib
from evenrank.export.errors import Refused, accept
from evenrank.export.float32 import Floats, cast
from evenrank.export.json_text import fields, is_number, number, parsed
from evenrank.export.versions import FOLLOWED, MISSING_AS_ZERO, NO, ZERO, missing_rule, parse
from evenrank.export.walk import Growing, Nodes, leaves, running_sum

TREES, RAW, LINEAR, RANKLIB = "model/xgboost+json", "model/xgboost+json+raw", "model/linear", "model/ranklib"
PLAIN = ("binary:logitraw", "rank:ndcg", "rank:map", "rank:pairwise", "reg:linear")
SIGMOID = ("binary:logistic", "reg:logistic")
LATER = ("rank:ndcg", "rank:map")  # OpenSearch before 3.2 does not know them
SPLIT = ("nodeid", "depth", "split", "split_condition", "yes", "no", "children")


def kind_of(definition: Any) -> str:
    """Tell which of the plugins' model types a definition is of."""
    if isinstance(definition, str) and definition.lstrip().startswith("##"):
        return RANKLIB
    content = parsed(definition)
    if isinstance(content, dict) and "learner" in content:
        return RAW
    if isinstance(content, list) or (isinstance(content, dict) and isinstance(content.get("splits"), list)):
        return TREES
    return LINEAR


def emulate(
    engine: str,
    definition: Any,
    rows: Floats,
    *,
    features: Sequence[str],
    version: str | None = None,
    model_type: str | None = None,
    normalizers: Mapping[str, Any] | None = None,
) -> Floats:
    """Score rows as a plugin does.

    Parameters
    ----------
    engine : str
        "opensearch" or "elasticsearch".
    definition : str or JSON value
        The model's definition.
    rows : ndarray
        Features in the order of the set, (n, d); NaN is missing.
    features : sequence of str
        The feature set.
    version : str, optional
        The engine's version.
    model_type : str, optional
        By default, what the definition looks like.
    normalizers : mapping, optional
        The ``feature_normalizers``.

    Returns
    -------
    ndarray
        (n,), 32-bit.
    """
    kind = model_type or kind_of(definition)
    # Trees keep missing values; everything else reads them as 0, and so do old versions.
    rule = missing_rule(engine, version) if kind in (TREES, RAW) else ZERO
    if kind == RANKLIB:
        return ranklib.emulate(definition, np.where(np.isnan(rows), np.float32(0), rows))
    content = parsed(definition)
    if kind == LINEAR:
        weights = _weights(content, features)
        with np.errstate(over="ignore", invalid="ignore"):
            return running_sum(_normalized(_zeros(rows), features, normalizers) * weights)
    if kind == TREES:
        nodes, sigmoid, as_zero = _trees(content, features, engine, version)
    elif kind == RAW:
        nodes, sigmoid, as_zero = *_raw(content, features, engine, version), False
    else:
        raise Refused(f"the engine refuses the definition: it knows no model type {kind!r}.")
    if rule == ZERO or as_zero:
        rows = _zeros(rows)
    elif rule == NO:
        nodes.missing[:] = nodes.right
    total = running_sum(leaves(nodes, _normalized(rows, features, normalizers), strict=True))
    return cast(1 / (1 + np.exp(-total.astype(np.float64)))) if sigmoid else total


def _zeros(rows: Floats) -> Floats:
    return np.where(np.isnan(rows), np.float32(0), rows)


# ---------------------------------------------------------------------- linear models and normalizers


def _weights(content: Any, features: Sequence[str]) -> Floats:
    accept(isinstance(content, dict), "a linear model must be an object of weights")
    strange = next((name for name in content if name not in features), None)
    accept(strange is None, f"the feature {strange!r} is not in the set")
    for name, weight in content.items():
        accept(is_number(weight), f"the weight of {name!r} must be a number")
    return cast([content.get(name, 0.0) for name in features])


def _normalized(rows: Floats, features: Sequence[str], normalizers: Mapping[str, Any] | None) -> Floats:
    if not normalizers:
        return rows
    out = rows.copy()
    for name, normalizer in normalizers.items():
        accept(name in features, f"the normalizer's feature {name!r} is not in the set")
        accept(
            isinstance(normalizer, Mapping) and len(normalizer) == 1, f"the normalizer of {name!r} must be of one kind"
        )
        kind, settings = next(iter(normalizer.items()))
        low, width = _scale(kind, settings, name)
        column = list(features).index(name)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out[:, column] = (rows[:, column] - low) / width
    return out


def _scale(kind: str, settings: Any, name: str) -> tuple[np.float32, np.float32]:
    """What is taken away and what is divided by."""
    what = f"the normalizer of {name!r}"
    if kind == "standard":
        given = fields(settings, what, (), ("mean", "standard_deviation"))
        mean = np.float32(number(given.get("mean", 0.0), what))
        deviation = np.float32(number(given.get("standard_deviation", 0.0), what))
        # Left out it is 0, and only one that is written is looked at.
        accept("standard_deviation" not in given or deviation > 0, f"{what} needs a deviation above 0")
        return mean, deviation
    accept(kind == "min_max", f"{what} must be standard or min_max")
    given = fields(settings, what, ("minimum", "maximum"))
    low, high = (np.float32(number(given[key], what)) for key in ("minimum", "maximum"))
    accept(low >= 0 and high >= 0, f"{what} must not have a negative bound")
    accept(high > low, f"{what} must have a maximum above its minimum")
    return low, np.float32(high - low)


# ---------------------------------------------------------------------- trees


def _trees(content: Any, features: Sequence[str], engine: str, version: str | None) -> tuple[Nodes, bool, bool]:
    """The nodes, whether a sigmoid follows, and whether missing values are 0."""
    as_zero = False
    objective = PLAIN[0]
    if isinstance(content, dict):
        newest = engine == "opensearch" and parse(version) >= MISSING_AS_ZERO
        whole = fields(content, "the model", ("splits",), ("objective", *(["missing_as_zero"] if newest else [])))
        objective, content = whole.get("objective", objective), whole["splits"]
        as_zero = whole.get("missing_as_zero", False)
        accept(isinstance(as_zero, bool), "missing_as_zero must be true or false")
    _check_objective(objective, engine, version)
    accept(isinstance(content, list) and content, "there must be at least one tree")
    place = {name: column for column, name in enumerate(features)}
    growing = Growing()
    checks_missing = missing_rule(engine, version) == FOLLOWED

    def read(node: Any) -> tuple[int, tuple[Any, Any] | None]:
        if isinstance(node, dict) and "leaf" in node:
            given = fields(node, "a leaf", ("nodeid", "leaf"), ("depth",))
            return growing.leaf(number(given["leaf"], "leaf", as_text=True)), None
        given = fields(node, "a split", SPLIT, ("missing",))
        accept(given["split"] in place, f"the feature {given['split']!r} is not in the set")
        threshold = number(given["split_condition"], "split_condition", as_text=True)
        children = given["children"]
        accept(isinstance(children, list) and len(children) == 2, "a split must have two children")
        ids = [child.get("nodeid") if isinstance(child, dict) else None for child in children]
        accept(ids == [given["yes"], given["no"]], "the children must stand in the order yes, no")
        missing_left = _missing(given, engine, checks_missing)
        return growing.split(place[given["split"]], threshold, missing_left=missing_left), (children[0], children[1])

    for tree in content:
        growing.tree(tree, read)
    return growing.grown(np.float32), objective in SIGMOID, as_zero


def _check_objective(objective: Any, engine: str, version: str | None) -> None:
    known: tuple[str, ...] = (*PLAIN, *SIGMOID)
    if engine == "opensearch" and parse(version) < (3, 2):
        known = tuple(name for name in known if name not in LATER)
    accept(objective in known, f"it knows no objective {objective!r}")


def _missing(node: dict[str, Any], engine: str, followed: bool) -> bool:
    if "missing" not in node:
        accept(engine != "elasticsearch", "a split has no 'missing'")
        return False
    if followed and engine == "opensearch":
        accept(node["missing"] in (node["yes"], node["no"]), "'missing' must be one of the children")
    return bool(node["missing"] == node["yes"])


def _raw(content: Any, features: Sequence[str], engine: str, version: str | None) -> tuple[Nodes, bool]:
    """XGBoost's own file: leaves are ``base_weights``, and neither base_score nor best_iteration counts."""
    if engine == "opensearch":
        number_of = parse(version)
        accept(number_of >= (3,) or (2, 19, 6) <= number_of < (3,), "it knows no model/xgboost+json+raw")
    try:
        learner = content["learner"]
        names, kinds = list(learner["feature_names"]), list(learner["feature_types"])
        trees = learner["gradient_booster"]["model"]["trees"]
        objective = learner["objective"]["name"]
    except (KeyError, TypeError):
        raise Refused("the engine refuses the definition: it is no XGBoost model.") from None
    _check_objective(objective, engine, version)
    accept(names and len(names) == len(kinds), "feature_names and feature_types must be of one length")
    accept(set(kinds) <= {"float"}, "all feature_types must be float")
    strange = next((name for name in names if name not in features), None)
    accept(strange is None, f"the feature {strange!r} is not in the set")
    accept(trees, "there must be at least one tree")
    columns = np.array([list(features).index(name) for name in names])
    parts: list[list[NDArray[Any]]] = [[] for _ in range(6)]
    roots, start = [], 0
    for tree in trees:
        left, right, split = (np.array(tree[key]) for key in ("left_children", "right_children", "split_indices"))
        own = start + np.arange(len(left))
        leaf = left < 0
        for part, values in zip(
            parts,
            (
                columns[np.where(leaf, 0, split)],
                cast(tree["split_conditions"]),
                np.where(leaf, own, start + left),
                np.where(leaf, own, start + right),
                np.where(leaf, own, start + np.where(tree["default_left"], left, right)),
                cast(tree["base_weights"]),
            ),
            strict=True,
        ):
            part.append(values)
        roots.append(start)
        start += len(left)
    return Nodes(np.array(roots), *(np.concatenate(part) for part in parts)), objective in SIGMOID
