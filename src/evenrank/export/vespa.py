"""Models for Vespa: LightGBM's or XGBoost's JSON in the application's models folder, or a ranking expression."""

from __future__ import annotations

import re
from typing import Any, Unpack

import numpy as np

from evenrank.errors import ConfigError
from evenrank.export import readme
from evenrank.export.emulators.vespa import EXPRESSION, KEYWORDS, LIGHTGBM, NAME, XGBOOST
from evenrank.export.exported import Exported
from evenrank.export.float32 import LARGEST, above
from evenrank.export.model import Forest, Linear, Network
from evenrank.export.nested import compact, nest, xgboost_trees
from evenrank.export.prepare import Options, Prepared, prepare

BEYOND = float(np.finfo(np.float64).max)
# Functions of the expression language; a feature of that name would be read as one.
FUNCTIONS = re.compile(
    "true|false|isNan|abs|acos|asin|atan|ceil|cos|cosh|elu|erf|exp|fabs|floor|log|log10|relu|round|sigmoid|sign|sin|sinh|"
    "square|sqrt|tan|tanh|atan2|fmod|ldexp|max|min|pow|bit|hamming|map|reduce|join|merge|rename|concat|tensor|range|"
    "diag|random|matmul|softmax|argmax|argmin|avg|count|prod|sum"
)


def to_vespa(model: Any, **options: Unpack[Options]) -> Exported:
    """Write a ranker for Vespa; see `to_opensearch`.

    A feature's name goes into the ranking expression as it is: a plain name becomes a function of the rank profile
    that gives the attribute of that name; ``attribute(price)`` or ``query(age)`` stand for themselves.

    Parameters
    ----------
    model, **options
        As in `to_opensearch`; the version is not looked at.

    Returns
    -------
    Exported
        The model's file or expression, and a rank profile.
    """
    prepared = prepare(
        model,
        "Vespa",
        group_feature=lambda field, label, number: f"{field}_is_{number}",
        check_name=_wrong_name,
        **options,
    )
    scorer = prepared.scorer
    if isinstance(scorer, Network):
        raise ConfigError("Vespa takes networks as ONNX models. Export it to onnx, and name the file in an onnx-model.")
    if isinstance(scorer, Linear):
        kind, definition = EXPRESSION, _expression(scorer)
    elif scorer.wide:
        kind, definition = LIGHTGBM, _lightgbm(scorer)
    else:
        kind, definition = XGBOOST, compact(xgboost_trees(scorer, beyond=BEYOND))
    ranked_by = definition if kind == EXPRESSION else f'{kind}("{prepared.name}.json")'
    files: dict[str, str | bytes] = {
        ("definition.txt" if kind == EXPRESSION else "model.json"): definition + "\n",
        "rank-profile.txt": _profile(prepared, ranked_by),
    }
    files["README.md"] = readme.vespa(prepared, kind, files)
    return Exported("vespa", options.get("version"), kind, definition, prepared.features, {}, files, prepared)


def _wrong_name(name: str) -> str | None:
    if NAME.fullmatch(name) is None:
        return "a name must be letters, digits and '_', or a rank feature such as attribute(price)"
    if name in KEYWORDS or FUNCTIONS.fullmatch(name):
        return "the expression language has a word of that name"
    return None


def _expression(linear: Linear) -> str:
    terms = [
        f"{float(weight)!r} * if (isNan({name}), 0.0, {name})"
        for name, weight in zip(linear.features, linear.coef, strict=True)
    ]
    return " + ".join([*terms, repr(float(linear.intercept))])


def _lightgbm(forest: Forest) -> str:
    thresholds = above(forest.at_most)

    def leaf(node: int) -> Any:
        return {"leaf_value": float(forest.value[node])}

    def split(node: int, left: Any, right: Any) -> Any:
        return {
            "split_feature": int(forest.feature[node]),
            "threshold": float(thresholds[node]) if thresholds[node] <= LARGEST else BEYOND,
            "decision_type": "<=",
            "default_left": bool(forest.missing_left[node]),
            "left_child": left,
            "right_child": right,
        }

    first = [{"leaf_value": float(forest.base)}] if forest.base else []
    return compact(
        {
            "name": "tree",
            "version": "v4",
            "objective": "lambdarank",
            "feature_names": list(forest.features),
            "feature_infos": {},
            "pandas_categorical": [],
            "tree_info": [{"tree_structure": root} for root in [*first, *nest(forest, leaf, split)]],
        }
    )


def _profile(prepared: Prepared, ranked_by: str) -> str:
    """A rank profile with a function for each plain name."""
    functions = [
        f"    function {name}() {{ expression: attribute({name}) }}" for name in prepared.own if name.isidentifier()
    ]
    for name, label in zip(prepared.features[len(prepared.own) :], prepared.groups, strict=True):
        value = (
            compact(label) if isinstance(label, int | float) and not isinstance(label, bool) else compact(str(label))
        )
        functions.append(
            f"    function {name}() {{ expression: if (attribute({prepared.group_field}) == {value}, 1, 0) }}"
        )
    lines = [
        f"rank-profile {prepared.name.replace('-', '_').replace('.', '_')} inherits default {{",
        *functions,
        "    second-phase {",
        "        rerank-count: 100",
        f"        expression: {ranked_by}",
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"
