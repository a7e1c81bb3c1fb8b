"""Rows matched with what a ranker was trained on: features by name, groups by label, and which group is protected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import is_categorical
from evenrank.labels import label_places
from evenrank.row_checks import frame_names, listed


def match_features(data: RankingData, names: tuple[str, ...]) -> Any:
    """Find the model's features among the data's: by name, or by place where either side has no names.

    Features that the model does not know are left aside.

    Parameters
    ----------
    data : RankingData
        The rows.
    names : tuple of str
        The model's features.

    Returns
    -------
    slice or list of int
        The column of each of the model's features.
    """
    made_up = unnamed(len(names))
    if data.feature_names == names or (data.n_features == len(names) and made_up in (data.feature_names, names)):
        return slice(None)
    place = {name: j for j, name in enumerate(data.feature_names)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"the model was trained on {len(names)} features ({listed(names)}); the data lacks {listed(missing)}. "
            "Name them with features= if its table has them."
        )
    return [place[name] for name in names]


def own_columns(X: Any, names: Sequence[str] | None, *, reorder: bool = False) -> Any:
    """Select the model's columns of a frame, in the model's order.

    A frame that lacks one of the model's features, or has no others, stays as it is, for the library to check.

    Parameters
    ----------
    X : Any
        A frame; anything else stays as it is.
    names : sequence of str, optional
        The model's features.
    reorder : bool
        Bring the columns of a frame that has no others into the model's order too. scikit-learn's own checks refuse
        such a frame.

    Returns
    -------
    Any
        The frame.
    """
    if names is None or not hasattr(X, "columns"):
        return X
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    known = list(map(str, names))
    if not isinstance(frame, nw.DataFrame) or not set(known) <= set(frame.columns):
        return X
    if len(frame.columns) == len(known) and not reorder:
        return X
    return frame.select(known).to_native()


def named_columns(X: Any, names: Sequence[str]) -> Any:
    """Bring a frame's columns into the model's order, for a library that takes them by place.

    Parameters
    ----------
    X : Any
        A frame; anything else stays as it is.
    names : sequence of str
        The model's features; made-up names are those of an array, whose columns have places only.

    Returns
    -------
    Any
        The frame.

    Raises
    ------
    DataError
        If the frame lacks one of them.
    """
    columns = frame_names(X)
    if columns is None or tuple(names) == unnamed(len(names)):
        return X
    missing = [name for name in names if name not in set(map(str, columns))]
    if missing:
        raise DataError(
            f"the model was trained on {len(names)} features ({listed(names)}); the data lacks {listed(missing)}."
        )
    return own_columns(X, names, reorder=True)


def category_frame(X: Any) -> Any:
    """Give a frame that has a column of categories as narwhals has it; None for anything else.

    Parameters
    ----------
    X : Any
        Features.

    Returns
    -------
    narwhals.DataFrame or None
        The frame.
    """
    if not hasattr(X, "columns"):
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not any(map(is_categorical, frame.schema.values())):
        return None
    return frame


def unnamed(d: int) -> tuple[str, ...]:
    """Name the features of an array without names: x0, x1, ….

    Parameters
    ----------
    d : int
        The number of features.

    Returns
    -------
    tuple of str
        The names.
    """
    return tuple(f"x{j}" for j in range(d))


def match_groups(data: RankingData, names: tuple[Any, ...]) -> NDArray[np.int64]:
    """Give the data's groups as codes into the groups of training.

    Parameters
    ----------
    data : RankingData
        The rows.
    names : tuple
        The groups of training.

    Returns
    -------
    ndarray
        Codes, (n,); an unknown group stays -1.

    Raises
    ------
    DataError
        If a group was not in training.
    """
    if data.group_names == names or not data.n_groups:
        return data.group.astype(np.int64)
    places = label_places(data.group_names, names)
    if -1 in places:
        code = places.index(-1)
        stored = np.flatnonzero(data.group == code)[:1]
        row = stored if data.row_order is None else data.row_order[stored]
        raise DataError(
            f"{''.join(map('row {}: '.format, row))}group {data.group_names[code]!r} was not in training, whose "
            f"groups are {listed(names)}. Train with rows of it, or leave its label empty: the group is then unknown."
        )
    return np.array([*places, -1])[data.group]


def added_by_group(offsets: NDArray[np.float64], data: RankingData, names: tuple[Any, ...]) -> NDArray[np.float64]:
    """Give what a ranker that sees the group adds to each row's score.

    Parameters
    ----------
    offsets : ndarray
        The number of each group of training, (groups,).
    data : RankingData
        The rows.
    names : tuple
        The groups of training.

    Returns
    -------
    ndarray
        (n,), in stored order; 0 for an unknown group.
    """
    added: NDArray[np.float64] = np.append(offsets, 0.0)[match_groups(data, names)]
    return added


def model_columns(ranker: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the columns that a trained ranker needs of a table.

    Parameters
    ----------
    ranker : ranker
        It may be one that re-ranks the scores of another.

    Returns
    -------
    features, categorical : tuple of str
        All columns, and those of them that it knows as categories.
    """
    base = getattr(ranker, "base", ranker)
    imputer = getattr(base, "imputer_", None)
    if imputer is not None:
        return imputer.features, tuple(imputer.categories)
    return tuple(base.feature_names_), tuple(getattr(base, "categories_", ()))


def protected_code(data: RankingData, protected: Any) -> int:
    """Give the code of the protected group.

    Parameters
    ----------
    data : RankingData
        The rows.
    protected : label, optional
        Its label; None is the smallest group.

    Returns
    -------
    int
        The code.
    """
    data.need_labels("a protected group")
    if data.n_groups < 2:
        raise DataError(
            f"a protected group needs at least two groups; the data has {listed(data.group_names) or 'none'}."
        )
    if protected is None:
        return int(np.argmin(np.bincount(data.group[data.group >= 0], minlength=data.n_groups)))
    if protected not in data.group_names:
        raise ConfigError(f"protected must be one of the groups {listed(data.group_names)}; got {protected!r}.")
    return data.group_names.index(protected)
