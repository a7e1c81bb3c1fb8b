"""Boosted rankers in the model file: the library's own trees within the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenrank.boosting.parameters import kept, refuse_prediction_parameters
from evenrank.boosting.trees import Damaged
from evenrank.errors import ConfigError, DataError
from evenrank.rankers.base import NotFittedError
from evenrank.rankers.content import short
from evenrank.rankers.imputing import read_categories
from evenrank.rankers.model_file import checked_parameters, header, names, need, numbers, plain_value
from evenrank.rankers.parameters import is_number, is_plain

Check = Callable[[str, int], str]


def saved(
    ranker: Any, library: str, text: Callable[[], str], check: Check, parameters: frozenset[str]
) -> dict[str, Any]:
    """Make the content of the model file; parameters that are code (callbacks, a random generator) stay out of it.

    ``check`` gives the part of the library's text that decides scores, or finds it `Damaged`; what it does not know
    is not written, as it could not be read again.
    """
    if not hasattr(ranker, "group_names_"):
        raise NotFittedError(f"this {type(ranker).__name__} is not fitted yet. Call fit before save.")
    content = header(ranker)
    refuse_prediction_parameters(content["parameters"])
    plain = {key: plain_value(value) for key, value in content["parameters"].items()}
    content["parameters"] = kept(
        {key: value for key, value in plain.items() if is_plain(value)}, parameters, ranker.OURS
    )
    try:
        model = check(text(), len(ranker.feature_names_))
    except ValueError as error:
        raise ConfigError(f"this {library} model has no model file: {error}. Save it as {library} does.") from None
    return content | {
        "features": list(ranker.feature_names_),
        "categories": {name: list(labels) for name, labels in ranker.categories_.items()},
        "alpha": ranker.alpha_,
        "violation": None if np.isnan(ranker.violation_) else ranker.violation_,
        "group_offset": None if ranker.group_offset_ is None else ranker.group_offset_.tolist(),
        "model": model,
    }


def loaded(
    kind: type, content: dict[str, Any], name: str, library: str, check: Check, parameters: frozenset[str]
) -> tuple[Any, str]:
    """Make the ranker with its parameters, still without trees, and the library's model text as ``check`` has it."""
    given = kept(need(content, "parameters", dict, name=name), parameters, kind.OURS)  # type: ignore[attr-defined]
    groups, features = names(content, "groups", name=name), names(content, "features", name=name)
    alpha, violation, model = (content.get(key) for key in ("alpha", "violation", "model"))
    for key, good in (
        ("alpha", is_number(alpha, 0)),
        ("violation", violation is None or is_number(violation, 0)),
        ("model", isinstance(model, str)),
    ):
        if not good:
            raise DataError(f"{name}: {key!r} is missing or damaged; got {short(content.get(key))}.")
    try:
        ranker = kind(**checked_parameters(given, name))
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: the parameters are damaged: {short(str(error))}.") from None
    try:
        text = check(str(model), len(features))
    except (Damaged, ValueError, RecursionError) as error:
        raise DataError(f"{name}: the {library} model in it is damaged: {error}.") from None
    if content.get("group_offset") is not None:
        ranker.group_offset_ = numbers("group_offset", content["group_offset"], len(groups), name=name)
    ranker.feature_names_, ranker.group_names_ = features, groups
    ranker.categories_ = read_categories(content, features, name)
    ranker.alpha_ = float(alpha or 0)
    ranker.violation_ = float("nan") if violation is None else float(violation)
    return ranker, text
