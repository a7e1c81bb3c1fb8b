"""Boosted rankers in the model file: the library's own trees within the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from evenrank.boosting.frames import with_pandas_categories
from evenrank.boosting.parameters import kept, refuse_prediction_parameters
from evenrank.boosting.rows import library_features
from evenrank.boosting.trees import Damaged
from evenrank.categories import renumbered
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import feature_matrix
from evenrank.rankers.base import NotFittedError
from evenrank.rankers.content import short
from evenrank.rankers.imputing import read_categories
from evenrank.rankers.matching import match_features
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


def columns(X: Any, ranker: Any) -> Any:
    """Give the features in the order of training: by name, or by place where either side has no names.

    Parameters
    ----------
    X : array, frame, sparse matrix or RankingData
        The rows; categories are found by their labels, and those that training had not are missing.
    ranker : FairBoosted
        The ranker.

    Returns
    -------
    array, frame or sparse matrix
        In the form that its library takes.
    """
    names = getattr(ranker, "feature_names_", None)
    if isinstance(X, RankingData):
        place = match_features(X, names or ())
        own = np.array(X.feature_names, object)[place]
        of_data = {
            name: X.categories[mine] for name, mine in zip(names or (), own, strict=True) if mine in X.categories
        }
        return renumbered(X.features[:, place], names or (), of_data, ranker.categories_)
    features = library_features(X, names)
    if not ranker.categories_ or not hasattr(features, "columns"):
        return with_pandas_categories(features)
    frame = nw.from_native(features, eager_only=True)
    own = dict(zip(map(str, frame.columns), frame.columns, strict=True))  # pandas may have numbers as names
    categorical = [own[name] for name in ranker.categories_]
    matrix, of_frame = feature_matrix(frame, [own[name] for name in names or ()], "row {}".format, categorical)
    return renumbered(matrix, names or (), of_frame, ranker.categories_)
