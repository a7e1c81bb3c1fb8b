"""The model file: JSON a person can read, with a version, from which nothing is ever executed.

Each kind of ranker writes its own content after a common header, and reads it again in ``from_content``.
"""

from __future__ import annotations

import json
import sys
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evenrank
from evenrank.errors import ConfigError, DataError
from evenrank.io.files import write_whole
from evenrank.notions import as_notion

FORMAT, VERSION = "evenrank-model", 1
RENAMED = {"seed": "random_state"}  # parameters of older files


def header(ranker: Any) -> dict[str, Any]:
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


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the content of a model file, checked as far as all kinds of ranker have it in common."""
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
    return content


# ---------------------------------------------------------------------- for from_content


def need(content: dict[str, Any], key: str, *types: type, name: str) -> Any:
    """Return an entry of the content, which must be of one of the types; ``name`` is the file's."""
    value = content.get(key)
    if not isinstance(value, types) or isinstance(value, bool):
        raise DataError(f"{name}: {key!r} is missing or damaged; got {str(value)[:40]!r}.")
    return value


def numbers(key: str, values: Any, length: int, *, name: str) -> NDArray[np.float64]:
    """Return so many finite numbers as an array."""
    good = len(values) == length and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not good or not all(abs(v) <= sys.float_info.max for v in values):
        raise DataError(f"{name}: {key!r} must hold {length} finite numbers.")
    return np.asarray(values, float)


def set_parameters(ranker: Any, content: dict[str, Any], name: str) -> None:
    """Give a ranker the parameters of its file, which must be ones it has."""
    parameters = {RENAMED.get(key, key): value for key, value in need(content, "parameters", dict, name=name).items()}
    unknown = [key for key in parameters if key not in ranker.get_params()]
    if unknown:
        raise DataError(f"{name}: {type(ranker).__name__} has no parameter {unknown[0]!r}. Was the file edited?")
    ranker.set_params(**parameters)
