"""Features that hold categories: labels and their numbers, and the numbers of one table in terms of another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.labels import group_codes, label_places
from evenrank.row_checks import Locate, listed

Categories = Mapping[str, tuple[Any, ...]]
PLAIN = (str, int, float, bool)  # labels that a model file can hold


def numbered(values: NDArray[Any]) -> tuple[NDArray[np.float64], tuple[Any, ...]]:
    """Number the categories of a column in the order of their sorted labels.

    Parameters
    ----------
    values : ndarray
        Labels, (n,); None, NaN and "" are missing.

    Returns
    -------
    numbers : ndarray
        (n,); NaN where the label is missing.
    labels : tuple
        The sorted labels; a label that is neither text, a number nor a truth value is its text.
    """
    if values.dtype == object:
        values = np.fromiter(plain_labels(values), object, len(values))
    codes, labels = group_codes(values, None, len(values))
    return np.where(codes < 0, np.nan, codes), labels


def plain_labels(values: Iterable[Any]) -> tuple[Any, ...]:
    """Give labels, or None, as a model file can hold them: what is neither text, a number nor a truth value as text."""
    return tuple(value if value is None or isinstance(value, PLAIN) else str(value) for value in values)


def checked_categories(
    categories: Mapping[str, Sequence[Any]], features: NDArray[Any], names: Sequence[str], at: Locate
) -> dict[str, tuple[Any, ...]]:
    """Check that features of categories hold numbers of their labels.

    Parameters
    ----------
    categories : mapping of str to sequence
        Feature → its labels.
    features : ndarray
        (n, d).
    names : sequence of str
        The features' names.
    at : callable
        From a row to its place, for errors.

    Returns
    -------
    dict
        The labels as tuples.
    """
    for name, labels in categories.items():
        if name not in names:
            raise DataError(f"categories must be of features; {name!r} is not one of {listed(names)}.")
        if len(set(labels)) < len(labels):
            raise DataError(f"the categories of {name!r} must differ; got {listed(labels)}.")
        values = np.asarray(features[:, list(names).index(name)])
        strange = ~(np.isnan(values) | ((values >= 0) & (values < len(labels)) & (values == np.trunc(values))))
        if strange.any():
            row = int(np.argmax(strange))
            raise DataError(
                f"{at(row)}: feature {name!r} must hold numbers of its {len(labels)} categories, from 0, or NaN; "
                f"got {float(values[row]):g}."
            )
    return {name: tuple(labels) for name, labels in categories.items()}


def renumbered(features: NDArray[Any], names: Sequence[str], own: Categories, known: Categories) -> NDArray[Any]:
    """Give the features of one table with the categories' numbers of another; categories it lacks become missing.

    Parameters
    ----------
    features : ndarray
        (n, d).
    names : sequence of str
        The features, as the other table calls them.
    own, known : mapping of str to tuple
        The labels of this table, and of the other.

    Returns
    -------
    ndarray
        (n, d); a copy if any number changes.
    """
    for name in names:
        if (name in own) != (name in known):
            one, other = ("categories", "numbers") if name in known else ("numbers", "categories")
            advice = "Read it with categorical=." if name in known else "Read it as numbers."
            raise DataError(f"feature {name!r} held {one} in training and holds {other} here. {advice}")
    changed = [j for j, name in enumerate(names) if name in own and own[name] != known[name]]
    if not changed:
        return features
    out = np.array(features)
    for j in changed:
        places = label_places(own[names[j]], known[names[j]])
        number_of = np.array([*(np.nan if place < 0 else place for place in places), np.nan])
        out[:, j] = number_of[np.where(np.isnan(out[:, j]), -1, out[:, j]).astype(np.int64)]
    return out
