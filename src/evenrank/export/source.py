"""Any ranker as a `Described`: ours, LightGBM's and XGBoost's estimators and boosters, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.lightgbm_text import read_text
from evenrank.boosting.trees import AS_ZERO, ZERO_IS_MISSING, Damaged, Stored, Tree
from evenrank.boosting.xgboost_json import read_model
from evenrank.errors import ConfigError, DataError
from evenrank.export.float32 import Floats, below, cast, lightgbm_at_most
from evenrank.export.model import Described, Forest, Linear, Network, Scorer
from evenrank.extras import require
from evenrank.methods.load import load
from evenrank.methods.reranked import RerankedRanker
from evenrank.rankers import model_file
from evenrank.rankers.matching import unnamed
from evenrank.rerankers.offset import GroupOffset

# Objectives of which predict gives the sum of the trees as it is.
LIGHTGBM_PLAIN = ("", "lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair", "quantile", "mape")
XGBOOST_PLAIN = ("rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror", "reg:absoluteerror", "binary:logitraw")
BOOSTED = {"FairLGBMRanker": "lightgbm", "FairXGBRanker": "xgboost"}
IN_A_RANKER = "Export a model of lambdarank or rank:ndcg, or one trained with an objective of your own."


def describe(model: Any) -> Described:
    """Read what decides a model's scores.

    Parameters
    ----------
    model : ranker, booster or path
        A fitted ranker of evenrank, an LGBMRanker or XGBRanker or their Booster, or a file: evenrank's model file,
        LightGBM's model text or XGBoost's JSON.

    Returns
    -------
    Described
        The model.

    Raises
    ------
    ConfigError
        If it is none of these, or has something that no engine can express.
    DataError
        If the file is damaged.
    """
    if isinstance(model, str | PathLike):
        return _of_file(Path(model))
    if isinstance(model, RerankedRanker):
        return _reranked(model)
    libraries = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "lightgbm" in libraries:
        try:
            described = _lightgbm(_text_of(model, "booster_"), getattr(model, "feature_names_", None))
        except Damaged as error:
            raise ConfigError(f"this LightGBM model cannot be exported: {error}.") from None
        return _with_offsets(described, model)
    if "xgboost" in libraries:
        return _with_offsets(_xgboost(model), model)
    if getattr(model, "imputer_", None) is not None:
        raise ConfigError(
            "this ranker fills missing values by itself, which no engine does. Fill them in the index, and "
            "train on such rows without impute."
        )
    if hasattr(model, "networks_"):
        return _with_offsets(Described(_network(model)), model)
    if hasattr(model, "coef_") and hasattr(model, "feature_names_"):
        return _linear(model)
    kind = type(model).__name__
    if hasattr(model, "rerank"):
        raise ConfigError(f"a {kind} alone gives no scores to export. Export a model of evenrank train that holds one.")
    raise ConfigError(
        f"cannot export a {kind}: pass a fitted ranker of evenrank, LightGBM or XGBoost, or the path of its file."
    )


def open_model(path: Path) -> Any:
    """Load a model file with what its `predict` needs.

    Parameters
    ----------
    path : Path
        Evenrank's model file, LightGBM's text or XGBoost's JSON, as `describe` takes it.

    Returns
    -------
    ranker or booster
        The model.
    """
    kind, text = _kind_of(path)
    if kind == "evenrank":
        return load(path)
    _of_text(kind, text, path)  # the libraries do not check what they read
    if kind == "lightgbm":
        return require("lightgbm").Booster(model_str=text)
    ranker = require("xgboost").XGBRanker()
    ranker.load_model(bytearray(text.encode()))
    return ranker


# ---------------------------------------------------------------------- files


def _kind_of(path: Path) -> tuple[str, str]:
    """Which library's file it is, and its text."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read the model file {path}: {error.strerror or error}.") from None
    except ValueError:
        raise DataError(
            f"{path.name} is no model file: it is not text. Save the model as evenrank does, LightGBM's as text, "
            "XGBoost's as .json."
        ) from None
    if text.startswith("tree\n"):
        return "lightgbm", text
    return ("xgboost" if text.lstrip().startswith('{"learner"') else "evenrank"), text


def _of_file(path: Path) -> Described:
    kind, text = _kind_of(path)
    names, offsets = None, {}
    if kind == "evenrank":
        content = model_file.read(path)
        kind = BOOSTED.get(str(content.get("kind")), "")
        if not kind:
            return describe(load(path))
        # The library is not needed to read its trees.
        text = model_file.need(content, "model", str, name=path.name)
        names = model_file.names(content, "features", name=path.name)
        if content.get("group_offset") is not None:
            groups = model_file.names(content, "groups", name=path.name)
            numbers = model_file.numbers("group_offset", content["group_offset"], len(groups), name=path.name)
            offsets = _offsets_of(groups, numbers)
    return replace(_of_text(kind, text, path, names), offsets=offsets)


def _of_text(kind: str, text: str, path: Path, names: Sequence[str] | None = None) -> Described:
    try:
        return _lightgbm(text, names) if kind == "lightgbm" else _trees_or_weights(read_model(text), names)
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path.name}: the {kind} model in it is damaged: {error}.") from None


# ---------------------------------------------------------------------- linear models and networks


def _linear(model: Any) -> Described:
    coef, intercept = model._in_own_units()
    scorer = Linear(tuple(model.feature_names_), np.asarray(coef, np.float64), float(intercept))
    if model.group_offset_ is None:
        return Described(_not_empty(scorer))
    offsets = _offsets_of(model.group_names_, model.group_offset_)
    return Described(_not_empty(scorer), offsets, float((model.group_shares_ * model.group_offset_).sum()))


def _offsets_of(groups: Sequence[Any], offsets: Any) -> dict[Any, float]:
    """The number of each group that a ranker adds which sees the group; empty for any other."""
    return {} if offsets is None else dict(zip(groups, np.asarray(offsets).tolist(), strict=True))


def _with_offsets(described: Described, model: Any) -> Described:
    offsets = _offsets_of(getattr(model, "group_names_", ()), getattr(model, "group_offset_", None))
    return replace(described, offsets=offsets)


def _network(model: Any) -> Network:
    networks = model.networks_
    layers = [tuple(part[0].detach().cpu().numpy() for part in layer) for layer in networks.layers]
    plain = [(weight.astype(np.float32), bias.reshape(-1).astype(np.float32)) for weight, bias in layers]
    scorer = Network(tuple(model.feature_names_), np.asarray(networks.center), np.asarray(networks.spread), plain)
    _not_empty(scorer)
    return scorer


def _reranked(model: RerankedRanker) -> Described:
    kind = type(model.reranker).__name__
    if not isinstance(model.reranker, GroupOffset):
        raise ConfigError(
            f"a {kind} does more than to add a number per group, which no engine here can. "
            "Train with --method offset, or re-rank after the search."
        )
    if model.adapt:
        raise ConfigError(
            "this model fits its offsets anew to the lists it ranks, which no engine can do. Train with --method "
            "offset, or re-rank after the search."
        )
    base = describe(model.base)
    own = base.offsets or dict.fromkeys(model.reranker.offsets_, 0.0)
    offsets = {label: number + own[label] for label, number in model.reranker.offsets_.items()}
    return Described(base.scorer, offsets, base.unknown, base.notes)


# ---------------------------------------------------------------------- boosters


def _text_of(model: Any, attribute: str) -> str:
    booster = getattr(model, attribute, None) if hasattr(type(model), attribute) else model
    if booster is None:
        raise ConfigError(f"this {type(model).__name__} is not fitted yet. Call fit before exporting it.")
    return str(booster.model_to_string())


def _xgboost(model: Any) -> Described:
    missing = getattr(model, "missing", np.nan)
    if missing is not None and not np.isnan(missing):
        raise ConfigError(
            f"this XGBRanker reads {missing:g} as missing, which no engine does. Train it with missing=nan."
        )
    booster = model
    if hasattr(model, "get_booster"):
        try:
            booster = model.get_booster()
        except ValueError:
            raise ConfigError(f"this {type(model).__name__} is not fitted yet. Call fit before exporting it.") from None
    try:
        stored = read_model(bytes(booster.save_raw("json")).decode())
    except Damaged as error:
        raise ConfigError(f"this XGBoost model cannot be exported: {error}.") from None
    return _trees_or_weights(stored, getattr(model, "feature_names_", None))


def _trees_or_weights(stored: Stored, names: Sequence[str] | None) -> Described:
    if stored.objective not in XGBOOST_PLAIN:
        raise ConfigError(
            f"predict puts a function on the sum of this model (objective {stored.objective!r}). {IN_A_RANKER}"
        )
    if stored.drop:
        raise ConfigError("DART weights its trees, which no engine here does. Train with booster='gbtree'.")
    features = _names(names, stored)
    if stored.weights is not None:
        return Described(_not_empty(Linear(features, stored.weights[:-1], float(stored.weights[-1]) + stored.base)))
    thresholds = [below(cast(tree.threshold)) for tree in stored.trees]
    missing = [tree.default_left for tree in stored.trees]
    forest = _forest(stored, features, thresholds, missing, wide=False)
    notes: tuple[str, ...] = ()
    if stored.left_out:
        notes = (f"early stopping: {len(stored.trees)} of {len(stored.trees) + stored.left_out} trees count",)
    return Described(forest, notes=notes)


def _lightgbm(text: str, names: Sequence[str] | None) -> Described:
    stored = read_text(text)
    if stored.objective not in LIGHTGBM_PLAIN:
        raise ConfigError(
            f"predict puts a function on the sum of this model (objective {stored.objective!r}). {IN_A_RANKER}"
        )
    if stored.average:
        raise ConfigError(
            "this LightGBM model averages its trees, which no engine here does. Train with boosting gbdt."
        )
    features = _names(names, stored)
    for number, tree in enumerate(stored.trees):
        if tree.linear:
            raise ConfigError(f"tree {number} has linear leaves, which no engine has. Train with linear_tree=False.")
        strange = (tree.missing == ZERO_IS_MISSING) & (tree.left >= 0)
        if strange.any():
            feature = features[tree.feature[np.argmax(strange)]]
            raise ConfigError(
                f"{feature!r} reads 0 as missing, which no engine does. Train with zero_as_missing=False."
            )
    thresholds = [lightgbm_at_most(tree.threshold) for tree in stored.trees]
    missing = [np.where(tree.missing == AS_ZERO, tree.threshold >= 0, tree.default_left) for tree in stored.trees]
    return Described(_forest(stored, features, thresholds, missing, wide=True))


def _names(ours: Sequence[str] | None, stored: Stored) -> tuple[str, ...]:
    """Our names where there are any: LightGBM changes blanks."""
    return tuple(map(str, ours)) if ours is not None else stored.names or unnamed(stored.n_features)


def _not_empty(scorer: Scorer) -> Any:
    if not scorer.features:
        raise ConfigError("the model has no feature, and a feature set must not be empty. Train it with features.")
    return scorer


def _forest(
    stored: Stored,
    features: tuple[str, ...],
    thresholds: Sequence[Floats],
    missing: Sequence[NDArray[np.bool_]],
    *,
    wide: bool,
) -> Forest:
    """Put the trees one after the other, each from its root down, without what pruning left behind."""
    for tree in stored.trees:
        if (tree.categorical & (tree.left >= 0)).any():
            feature = features[tree.feature[np.argmax(tree.categorical & (tree.left >= 0))]]
            raise ConfigError(
                f"{feature!r} is split by categories, which no engine here can do. Train it as numbers, "
                "one column per category."
            )
    if not stored.trees:
        raise ConfigError("the model has no tree to export. Train it for at least one round.")
    orders = [_from_root(tree) for tree in stored.trees]
    starts = np.cumsum([0, *map(len, orders)])
    parts: dict[str, list[Any]] = {
        name: [] for name in ("feature", "at_most", "left", "right", "missing_left", "value")
    }
    for tree, order, (start, _), at_most, goes_left in zip(
        stored.trees, orders, pairwise(starts), thresholds, missing, strict=True
    ):
        place = np.full(len(tree.left) + 1, -1)
        place[order] = start + np.arange(len(order))
        inner = tree.left[order] >= 0
        parts["feature"].append(np.where(inner, tree.feature[order], 0))
        parts["at_most"].append(at_most[order])
        for name, children in (("left", tree.left), ("right", tree.right)):
            parts[name].append(place[children[order]])
        parts["missing_left"].append(goes_left[order])
        value = tree.value[order]
        parts["value"].append(value if wide else cast(value).astype(np.float64))
    arrays = {name: np.concatenate(part) for name, part in parts.items()}
    return _not_empty(Forest(features, starts[:-1], base=stored.base, wide=wide, **arrays))  # type: ignore[no-any-return]


def _from_root(tree: Tree) -> NDArray[np.int64]:
    """The nodes that the root leads to, level by level, (reached,)."""
    levels = [np.zeros(1, np.int64)]
    while len(levels[-1]):
        inner = levels[-1][tree.left[levels[-1]] >= 0]
        levels.append(np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel())
    return np.concatenate(levels)
