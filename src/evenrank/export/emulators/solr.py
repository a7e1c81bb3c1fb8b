"""What Solr's learning-to-rank module makes of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenrank.export.errors import Refused, accept
from evenrank.export.float32 import Floats, cast
from evenrank.export.json_text import fields, from_text, is_number, parsed
from evenrank.export.versions import parse
from evenrank.export.walk import Growing, leaves, running_sum

SLACK = np.float32(1e-6)  # is added to every threshold
PACKAGE = "org.apache.solr.ltr"
LINEAR, TREES, NETWORK = (
    f"{PACKAGE}.model.{name}" for name in ("LinearModel", "MultipleAdditiveTreesModel", "NeuralNetworkModel")
)
STANDARD, MIN_MAX = (f"{PACKAGE}.norm.{name}" for name in ("StandardNormalizer", "MinMaxNormalizer"))
IDENTITY = f"{PACKAGE}.norm.IdentityNormalizer"
MISSING_SINCE = (9, 2)
ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "leakyrelu": lambda x: np.where(x < 0, np.float32(0.01) * x, x),
    "tanh": lambda x: cast(np.tanh(x.astype(np.float64))),
    "sigmoid": lambda x: cast(1 / (1 + np.exp(-x.astype(np.float64)))),
    "identity": lambda x: x,
}


def emulate(
    definition: Any, rows: Floats, *, features: Sequence[str] | None = None, version: str | None = None
) -> Floats:
    """Score rows as Solr does.

    Parameters
    ----------
    definition : str or dict
        The model as it is put into the model store.
    rows : ndarray
        The values that features give, (n, d); NaN is the value of a feature whose ``defaultValue`` is NaN.
    features : sequence of str, optional
        The names of the columns; by default the features of the model.
    version : str, optional
        Solr's version.

    Returns
    -------
    ndarray
        (n,), 32-bit.
    """
    model = parsed(definition)
    accept(isinstance(model, dict) and isinstance(model.get("class"), str), "a model must name its class")
    accept(isinstance(model.get("name"), str) and model["name"], "a model must have a name")
    params = model.get("params")
    accept(isinstance(params, dict), "a model must have params")
    names, scales = _features(model.get("features"))
    given = names if features is None else list(features)
    strange = next((name for name in names if name not in given), None)
    accept(strange is None, f"the feature {strange!r} is not in the store")
    values = rows[:, [given.index(name) for name in names]]
    if model["class"] == TREES:
        return _forest(params, names, values, scales, version)
    values = _normalized(values, scales, skip_missing=False)
    if model["class"] == LINEAR:
        return _linear(params, names, values)
    accept(model["class"] == NETWORK, f"there is no class {model['class']!r}")
    return _network(params, values)


def _text_number(value: Any, what: str) -> float:
    """A number that its setter takes as a text only."""
    number = from_text(value) if isinstance(value, str) else None
    accept(number is not None, f"{what} must be a number in quotes")
    return float(number or 0.0)


# ---------------------------------------------------------------------- features


def _features(content: Any) -> tuple[list[str], list[tuple[np.float32, np.float32] | None]]:
    """The names, and what is taken away and divided by."""
    accept(isinstance(content, list) and content, "a model must have features")
    names, scales = [], []
    for feature in content:
        accept(isinstance(feature, dict) and isinstance(feature.get("name"), str), "a feature must have a name")
        names.append(feature["name"])
        scales.append(_scale(feature["norm"]) if feature.get("norm") is not None else None)
    accept(len(set(names)) == len(names), "a feature stands there twice")
    return names, scales


def _scale(norm: Any) -> tuple[np.float32, np.float32] | None:
    accept(isinstance(norm, dict), "a norm must be an object")
    params = norm.get("params") or {}
    if norm.get("class") == IDENTITY:
        return None
    if norm.get("class") == STANDARD:
        given = fields(params, "a StandardNormalizer", (), ("avg", "std"))
        mean, deviation = (
            np.float32(_text_number(given.get(key, text), key)) for key, text in (("avg", "0"), ("std", "1"))
        )
        accept(deviation > 0, "std must be above 0")
        return mean, deviation
    accept(norm.get("class") == MIN_MAX, f"there is no class {norm.get('class')!r}")
    given = fields(params, "a MinMaxNormalizer", (), ("min", "max"))
    low, high = (np.float32(_text_number(given.get(key, text), key)) for key, text in (("min", "0"), ("max", "0")))
    accept(high != low, "max must differ from min")
    return low, np.float32(high - low)


def _normalized(values: Floats, scales: Sequence[Any], *, skip_missing: bool) -> Floats:
    out = values.copy()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for column, scale in enumerate(scales):
            if scale is not None:
                scaled = (values[:, column] - scale[0]) / scale[1]
                out[:, column] = (
                    np.where(np.isnan(values[:, column]), values[:, column], scaled) if skip_missing else scaled
                )
    return out


# ---------------------------------------------------------------------- linear models and networks


def _linear(params: dict[str, Any], names: Sequence[str], values: Floats) -> Floats:
    weights = fields(params, "params", ("weights",))["weights"]
    accept(isinstance(weights, dict), "weights must be an object")
    accept(all(map(is_number, weights.values())), "a weight must be a number")
    absent = next((name for name in names if name not in weights), None)
    accept(absent is None, f"{absent!r} has no weight")
    with np.errstate(over="ignore", invalid="ignore"):
        return running_sum(values * cast([weights[name] for name in names]))


def _network(params: dict[str, Any], values: Floats) -> Floats:
    layers = fields(params, "params", ("layers",))["layers"]
    accept(isinstance(layers, list) and layers, "a network must have layers")
    signal = values
    for layer in layers:
        given = fields(layer, "a layer", ("matrix", "bias", "activation"))
        accept(given["activation"] in ACTIVATIONS, f"there is no activation {given['activation']!r}")
        matrix, bias = given["matrix"], given["bias"]
        shaped = isinstance(matrix, list) and matrix and all(isinstance(row, list) for row in matrix)
        accept(shaped and isinstance(bias, list), "matrix and bias must be lists")
        for numbers in (*matrix, bias):
            accept(all(isinstance(x, float) for x in numbers), "numbers of a layer must have a decimal point")
        width = signal.shape[1]
        accept(all(len(row) == width for row in matrix), f"a row of the matrix must have {width} numbers")
        accept(len(bias) == len(matrix), "bias must have one number per row of the matrix")
        start = np.broadcast_to(cast(bias), (len(signal), len(bias)))
        with np.errstate(over="ignore", invalid="ignore"):
            total = start.copy()
            for column, weights in zip(signal.T, cast(matrix).T, strict=True):
                total = total + column[:, None] * weights
            signal = ACTIVATIONS[given["activation"]](total)
    accept(signal.shape[1] == 1, "the last layer must have one unit")
    return np.asarray(signal[:, 0])


# ---------------------------------------------------------------------- trees


def _forest(
    params: dict[str, Any], names: list[str], values: Floats, scales: Sequence[Any], version: str | None
) -> Floats:
    knows_missing = parse(version) >= MISSING_SINCE
    given = fields(params, "params", ("trees",), ("isNullSameAsZero",) if knows_missing else ())
    null_is_zero = given.get("isNullSameAsZero", True)
    accept(isinstance(null_is_zero, bool), "isNullSameAsZero must be true or false, without quotes")
    accept(isinstance(given["trees"], list) and given["trees"], "there must be at least one tree")
    place = {name: column for column, name in enumerate(names)}
    growing, weights = Growing(), []
    for tree in given["trees"]:
        part = fields(tree, "a tree", ("root", "weight"))
        weights.append(_text_number(part["weight"], "weight"))
        growing.tree(part["root"], lambda node: _node(growing, node, place, knows_missing=knows_missing))
    nodes = growing.grown(np.float32)
    nodes.threshold[:] = nodes.threshold + SLACK
    if null_is_zero:
        nodes.missing[:] = nodes.right  # a comparison with NaN fails
    parts = leaves(nodes, _normalized(values, scales, skip_missing=not null_is_zero), strict=False)
    if np.isnan(parts).any():
        raise Refused("the engine fails while it scores: a missing value meets a split without 'missing'.")
    with np.errstate(over="ignore", invalid="ignore"):
        return running_sum(parts * cast(weights))


def _node(
    growing: Growing, node: Any, place: dict[str, int], *, knows_missing: bool
) -> tuple[int, tuple[Any, Any] | None]:
    if isinstance(node, dict) and "value" in node:
        return growing.leaf(_text_number(fields(node, "a leaf", ("value",))["value"], "value")), None
    keys = ("feature", "threshold", "left", "right")
    given = fields(node, "a split", keys, ("missing",) if knows_missing else ())
    threshold, missing = _text_number(given["threshold"], "threshold"), given.get("missing")
    accept(missing is None or isinstance(missing, str), "missing must be a text")
    if given["feature"] not in place:
        return growing.leaf(0.0), None  # the model looks at features that it declares, and scores others 0
    missing_left = None if missing is None else missing == "left"
    at = growing.split(place[given["feature"]], threshold, missing_left=missing_left)
    return at, (given["left"], given["right"])
