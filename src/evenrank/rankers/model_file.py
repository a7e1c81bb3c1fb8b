"""The model file: JSON a person can read, with a version, from which nothing is ever executed.

Each kind of ranker writes its own content after a common header, and reads it again in ``from_content``.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evenrank
from evenrank.errors import ConfigError, DataError
from evenrank.notions import as_notion
from evenrank.rankers.content import FORMAT, VERSION, read_content, short, write_content
from evenrank.rankers.parameters import broken_rule, is_label, is_number

read = read_content
# Parameters of the machine at hand, not of the model: not written, and passed over in older files.
MACHINE = ("verbose", "device")
RENAMED = {"seed": "random_state"}  # parameters of older files


def header(ranker: Any) -> dict[str, Any]:
    """Make what every model file begins with: its format, the kind of ranker, its parameters and the groups."""
    parameters = {name: value for name, value in ranker.get_params().items() if name not in MACHINE}
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
    """Write a model file's content, sealed with its digest.

    Parameters
    ----------
    content : dict
        The header and the model.
    path : str or path
        The file to write.

    Raises
    ------
    ConfigError
        If it could not be loaded again; then nothing is written.
    """
    plain = json.loads(json.dumps(content, default=_plain))
    wrong = broken_rule(plain["parameters"])
    if wrong:
        raise ConfigError(f"the model cannot be written: {wrong}.")
    write_content(plain, path)


def plain_value(value: Any) -> Any:
    """Return a number of numpy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return plain_value(value)
    raise ConfigError(f"a parameter of type {type(value).__name__} cannot be written to a model file.")


# ---------------------------------------------------------------------- for from_content


def need(content: dict[str, Any], key: str, *types: type, name: str) -> Any:
    """Take an entry of the content, which must be of one of the types.

    Parameters
    ----------
    content : dict
        The content of the file.
    key : str
        The name of the entry.
    *types : type
        What it may be.
    name : str
        The name that an error gives the file.

    Returns
    -------
    value
        The entry.

    Raises
    ------
    DataError
        If it is missing or of another type.
    """
    value = content.get(key)
    if not isinstance(value, types) or isinstance(value, bool):
        raise DataError(f"{name}: {key!r} is missing or damaged; got {short(value)}.")
    return value


def names(content: dict[str, Any], key: str, *, name: str) -> tuple[Any, ...]:
    """Return the names of groups (texts, numbers, truth values) or of features (texts), each of them once."""
    values = need(content, key, list, name=name)
    if not all(is_label(label) and (key == "groups" or isinstance(label, str)) for label in values):
        raise DataError(f"{name}: {key!r} must hold names; got {short(values)}.")
    if len(set(values)) < len(values):
        raise DataError(f"{name}: {key!r} has a name twice.")
    return tuple(values)


def numbers(key: str, values: Any, length: int, *, name: str) -> NDArray[np.float64]:
    """Take finite numbers as an array.

    Parameters
    ----------
    key, name : str
        What an error calls the entry and the file.
    values : Any
        The entry.
    length : int
        How many numbers there must be.

    Returns
    -------
    ndarray
        (length,).

    Raises
    ------
    DataError
        If they are not finite numbers, or not as many.
    """
    if not isinstance(values, list) or len(values) != length or not all(map(is_number, values)):
        raise DataError(f"{name}: {key!r} must hold {length} finite numbers.")
    return np.asarray(values, float)


def rising_points(values: Any, key: str, *, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Take the points of a rising function: two lists, of which the first rises strictly.

    Parameters
    ----------
    values : Any
        The entry.
    key, name : str
        As for `numbers`.

    Returns
    -------
    tuple of ndarray
        (points,) each.
    """
    if not isinstance(values, list) or len(values) != 2 or not isinstance(values[0], list) or not values[0]:
        raise DataError(f"{name}: {key!r} must hold two lists of numbers; got {short(values)}.")
    x, y = (numbers(key, part, len(values[0]), name=name) for part in values)
    if (np.diff(x) <= 0).any() or (np.diff(y) < 0).any():
        raise DataError(f"{name}: the points of {key!r} must rise. Was the file edited?")
    return x, y


def checked_parameters(parameters: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the parameters if each is what it must be."""
    wrong = broken_rule(parameters)
    if wrong:
        raise DataError(f"{name}: {wrong}. Was the file edited?")
    return parameters


def set_parameters(ranker: Any, content: dict[str, Any], name: str) -> None:
    """Give a ranker the parameters of its file, which must be ones it has.

    Parameters
    ----------
    ranker : estimator
        The ranker to set.
    content, name
        As for `need`.

    Raises
    ------
    DataError
        For a parameter that the ranker does not have or that breaks its rule.
    """
    stored = checked_parameters(need(content, "parameters", dict, name=name), name)
    parameters = {RENAMED.get(key, key): value for key, value in stored.items() if key not in MACHINE}
    unknown = [key for key in parameters if key not in ranker.get_params()]
    if unknown:
        fact = f"{name}: {type(ranker).__name__} has no parameter {short(unknown[0])}."
        raise DataError(f"{fact} Was the file edited?")
    ranker.set_params(**parameters)
