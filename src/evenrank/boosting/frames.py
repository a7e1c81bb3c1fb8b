"""Frames with categories, as the libraries take them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenrank.categories import plain_labels
from evenrank.extras import require
from evenrank.rankers.matching import category_frame


def with_pandas_categories(X: Any, like: Any = None) -> Any:
    """Give a frame with categories as pandas has it: LightGBM ends the process over those of Arrow and polars.

    A category of empty text is a missing one, as everywhere.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The features.
    like : array, frame or sparse matrix, optional
        The features of training, in this form: ``X`` gets its categories, and what it lacks becomes missing.

    Returns
    -------
    array, frame or sparse matrix
        The features.
    """
    frame = category_frame(X)
    if frame is None:
        return X
    require("pandas")
    table = X if frame.implementation.is_pandas() else frame.to_pandas()
    known = {} if like is None else _category_types(like)
    changed: dict[Any, Any] = {}
    for name, dtype in _category_types(table).items():
        column = table[name]
        if name in known and known[name] != dtype:
            column = column.cat.set_categories(known[name].categories, ordered=known[name].ordered)
        empty = column == ""
        changed[name] = column.mask(empty) if empty.any() else column
    if all(table[name] is column for name, column in changed.items()):
        return table
    table = table.copy(deep=False)
    for name, column in changed.items():
        table[name] = column
    return table


def _category_types(table: Any) -> dict[Any, Any]:
    """The type of each column of pandas' categories."""
    if category_frame(table) is None:
        return {}
    return {name: dtype for name, dtype in table.dtypes.items() if dtype.name == "category"}


def frame_categories(table: Any) -> dict[str, tuple[Any, ...]]:
    """Name the categories of pandas' columns, in the order of the numbers that the libraries see.

    Parameters
    ----------
    table : array, frame or sparse matrix
        What `with_pandas_categories` gives.

    Returns
    -------
    dict
        The labels of each feature that holds categories, as `numbered` has them.
    """
    return {str(name): plain_labels(dtype.categories) for name, dtype in _category_types(table).items()}


@contextmanager
def matched_by_name(matched: bool) -> Iterator[None]:
    """Leave out scikit-learn's warning of an array without names, where its columns were found by their names."""
    with warnings.catch_warnings():
        if matched:
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
