"""Boosted rankers in the model file: the library's own model text within the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rankers.base import NotFittedError
from evenrank.rankers.matching import match_features
from evenrank.rankers.model_file import header

PLAIN = (bool, int, float, str, list, tuple, type(None))


def saved(ranker: Any, text: Callable[[], str]) -> dict[str, Any]:
    """The content of the model file; parameters that are code (callbacks, a random generator) stay out of it."""
    if not hasattr(ranker, "group_names_"):
        raise NotFittedError(f"this {type(ranker).__name__} is not fitted yet. Call fit before save.")
    content = header(ranker)
    content["parameters"] = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in content["parameters"].items()
        if isinstance(value, (*PLAIN, np.generic)) and value is not None and value == value
    }
    return content | {
        "features": list(ranker.feature_names_),
        "alpha": ranker.alpha_,
        "violation": None if np.isnan(ranker.violation_) else ranker.violation_,
        "model": text(),
    }


def loaded(kind: type, content: dict[str, Any], name: str) -> tuple[Any, str]:
    """The ranker with its parameters, still without trees, and the library's model text."""
    wanted: tuple[tuple[str, Any], ...] = (
        ("parameters", dict),
        ("features", list),
        ("groups", list),
        ("alpha", (int, float)),
        ("model", str),
    )
    for key, types in wanted:
        if not isinstance(content.get(key), types):
            raise DataError(f"{name}: {key!r} is missing or damaged; got {str(content.get(key))[:40]!r}.")
    try:
        ranker = kind(**content["parameters"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: the parameters are damaged: {error}.") from None
    ranker.feature_names_, ranker.group_names_ = tuple(content["features"]), tuple(content["groups"])
    violation = content.get("violation")
    ranker.alpha_, ranker.violation_ = float(content["alpha"]), float("nan") if violation is None else float(violation)
    return ranker, content["model"]


def columns(data: RankingData, names: tuple[str, ...]) -> Any:
    """The features in the order of training: by name, or by place where either side has no names."""
    place = match_features(data, names)
    return data.features[:, place]
