"""Features of frames and of `RankingData` as the libraries take them, whose categories are known by their labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.rows import library_features
from evenrank.categories import Categories, plain_labels, renumbered
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.frame_columns import feature_matrix
from evenrank.rankers.matching import category_frame, match_features, unnamed
from evenrank.row_checks import frame_names


def with_pandas_categories(X: Any) -> Any:
    """Give a frame with categories as pandas has it: LightGBM ends the process over those of Arrow and polars.

    A category of empty text is a missing one, as everywhere.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The features.

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
    empty = {name: table[name] == "" for name in _category_types(table)}
    if not any(rows.any() for rows in empty.values()):
        return table
    table = table.copy(deep=False)
    for name, rows in empty.items():
        table[name] = table[name].mask(rows)
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


def columns(X: Any, names: tuple[str, ...] | None, categories: Categories) -> Any:
    """Give the features in the order of training: by name, or by place where either side has no names.

    Parameters
    ----------
    X : array, frame, sparse matrix or RankingData
        The rows; categories are found by their labels, and those that training had not are missing.
    names : tuple of str or None
        The features in training.
    categories : mapping
        Of those that hold categories, the labels in training.

    Returns
    -------
    array, frame or sparse matrix
        In the form that the libraries take; of a `RankingData`, in stored order.
    """
    if isinstance(X, RankingData):
        return _data_features(X, names or (), categories)
    features = library_features(X, names)
    if not categories or frame_names(features) is None:
        return with_pandas_categories(features)
    import narwhals as nw

    frame = nw.from_native(features, eager_only=True)
    given, known = frame.columns, tuple(names or ())
    own = dict(zip(map(str, given), given, strict=True))  # pandas may have numbers as names
    if known == unnamed(len(known)):
        if len(given) != len(known):
            raise DataError(f"the model was trained on {len(known)} features; the data has {len(given)}.")
        own = dict(zip(known, given, strict=True))
    categorical = [own[name] for name in categories]
    matrix, of_frame = feature_matrix(frame, [own[name] for name in known], "row {}".format, categorical)
    of_frame = {name: of_frame[str(own[name])] for name in known if str(own[name]) in of_frame}
    return renumbered(matrix, known, of_frame, categories)


def _data_features(data: RankingData, names: tuple[str, ...], categories: Categories) -> NDArray[Any]:
    """The features of training, (n, d), with the numbers that it gave to categories."""
    place = match_features(data, names)
    own = np.array(data.feature_names, object)[place]
    of_data = {name: data.categories[mine] for name, mine in zip(names, own, strict=True) if mine in data.categories}
    return renumbered(data.features[:, place], names, of_data, categories)


def as_training(X: Any, names: tuple[str, ...] | None, categories: Categories, like: Any) -> Any:
    """Give the features of an evaluation set as `columns` does, in the form of the training rows.

    Parameters
    ----------
    X : array, frame, sparse matrix or RankingData
        The rows.
    names, categories
        Of training, as in `columns`.
    like : array, frame or sparse matrix
        The features in training. Where they are a frame, those of a frame or `RankingData` become one too, by whose
        names and categories the libraries know them.

    Returns
    -------
    array, frame or sparse matrix
        The features.
    """
    features = columns(X, names, categories)
    named = isinstance(X, RankingData) or frame_names(X) is not None
    if not named or frame_names(like) is None or frame_names(features) is not None:
        return features
    return _framed(features, like)


def _framed(features: NDArray[Any], like: Any) -> Any:
    """A frame of the kind of another one, with its names and categories."""
    import narwhals as nw

    backend = nw.from_native(like, eager_only=True).implementation
    table = nw.from_numpy(np.asarray(features), list(map(str, frame_names(like))), backend=backend).to_native()
    if backend.is_pandas():
        table.columns = like.columns
    for name, dtype in _category_types(like).items():
        codes = table[name].fillna(-1).astype(int)
        table[name] = require("pandas").Categorical.from_codes(codes, dtype=dtype)
    return table


@contextmanager
def matched_by_name(matched: bool) -> Iterator[None]:
    """Leave out scikit-learn's warning of an array without names, where its columns were found by their names."""
    with warnings.catch_warnings():
        if matched:
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
