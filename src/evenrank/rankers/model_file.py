"""The model file: JSON a person can read, with a version, from which nothing is ever executed."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import evenrank
from evenrank.errors import ConfigError, DataError
from evenrank.io.files import write_whole
from evenrank.linear.deltr import DELTR
from evenrank.linear.ranker import FairLinearRanker
from evenrank.notions import as_notion
from evenrank.rankers.base import LinearRanker, NotFittedError

FORMAT, VERSION = "evenrank-model", 1
KINDS: dict[str, type[LinearRanker]] = {kind.__name__: kind for kind in (FairLinearRanker, DELTR)}
# Kinds that bring their own reader, and the module that has them.
ADAPTED = {
    "FairNeuralRanker": "evenrank.torch",
    "FairLGBMRanker": "evenrank.lightgbm",
    "FairXGBRanker": "evenrank.xgboost",
}


def save(ranker: LinearRanker, path: str | PathLike[str]) -> None:
    """Write a fitted ranker; a notion of the user's own is kept by name only, as code is never stored."""
    if not hasattr(ranker, "coef_"):
        raise NotFittedError(f"this {type(ranker).__name__} is not fitted yet. Call fit before save.")
    if isinstance(ranker, DELTR) and ranker.scaling_ is not None:
        raise ConfigError("a DELTR with reference=True and standardize=True is for comparison and has no model file.")
    offset, shares = ranker.group_offset_, ranker.group_shares_
    content = {
        "intercept": float(ranker.intercept_),
        "weights": dict(zip(ranker.feature_names_, np.asarray(ranker.coef_).tolist(), strict=True)),
        "group_offset": None if offset is None else offset.tolist(),
        "group_shares": None if shares is None else shares.tolist(),
    }
    write(header(ranker) | content, path)


def header(ranker: LinearRanker) -> dict[str, Any]:
    """What every model file begins with: its format, the kind of ranker, its parameters and the groups."""
    parameters = {name: value for name, value in ranker.get_params().items() if name != "verbose"}
    if "notion" in parameters:
        parameters["notion"] = as_notion(parameters["notion"]).name
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": type(ranker).__name__,
        "evenrank": evenrank.__version__,
        "parameters": parameters,
        "groups": [name if isinstance(name, str | int | float | bool) else str(name) for name in ranker.group_names_],
    }


def write(content: dict[str, Any], path: str | PathLike[str]) -> None:
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigError(f"a parameter of type {type(value).__name__} cannot be written to a model file.")


def load(path: str | PathLike[str]) -> Any:
    """Read a model file written by ``save``; it loads a ranker ready to predict.

    Examples
    --------
    >>> import evenrank as er, tempfile, os
    >>> data = er.datasets.german_credit("age")
    >>> ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(os.path.join(folder, "model.json"))
    ...     again = er.load(os.path.join(folder, "model.json"))
    >>> bool((again.predict(data) == ranker.predict(data)).all())
    True
    """
    name = Path(path).name
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read the model file {path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{name} is not an evenrank model: it is not JSON{place}. Was it cut short?") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f'{name} is not an evenrank model: it has no "format": "{FORMAT}".')
    version = content.get("version")
    if version != VERSION:
        raise DataError(
            f"{name} has model version {version!r}; this evenrank reads version {VERSION}. Upgrade evenrank."
        )
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in (*KINDS, *ADAPTED):
        raise DataError(f"{name} holds a {kind!r}; this evenrank knows {', '.join((*KINDS, *ADAPTED))}.")
    if kind in ADAPTED:
        return getattr(import_module(ADAPTED[kind]), kind).from_content(content, name)
    return _ranker(content, KINDS[kind], name)


def _ranker(content: dict[str, Any], kind: type[LinearRanker], name: str) -> LinearRanker:
    def need(key: str, *types: type) -> Any:
        if not isinstance(content.get(key), types) or isinstance(content.get(key), bool):
            raise DataError(f"{name}: {key!r} is missing or damaged; got {str(content.get(key))[:40]!r}.")
        return content[key]

    def numbers(key: str, values: Any, length: int) -> Any:
        good = len(values) == length and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if not good or not all(abs(v) <= sys.float_info.max for v in values):
            raise DataError(f"{name}: {key!r} must hold {length} finite numbers.")
        return np.asarray(values, float)

    parameters = need("parameters", dict)
    ranker = kind()
    unknown = [key for key in parameters if key not in ranker.get_params()]
    if unknown:
        raise DataError(f"{name}: {kind.__name__} has no parameter {unknown[0]!r}. Was the file edited?")
    ranker.set_params(**parameters)
    weights = need("weights", dict)
    groups = need("groups", list)
    ranker.feature_names_ = tuple(weights)
    ranker.coef_ = numbers("weights", list(weights.values()), len(weights))
    ranker.intercept_ = float(numbers("intercept", [need("intercept", int, float)], 1)[0])
    ranker.group_names_ = tuple(groups)
    ranker._remember_features(ranker.feature_names_)
    if content.get("group_offset") is not None or getattr(ranker, "group_aware", False):
        ranker.group_offset_ = numbers("group_offset", need("group_offset", list), len(groups))
        ranker.group_shares_ = numbers("group_shares", need("group_shares", list), len(groups))
    return ranker
