"""Rows matched with what a ranker was trained on: features by name, groups by label, and which group is protected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.row_checks import listed


def match_features(data: RankingData, names: tuple[str, ...]) -> Any:
    """Which feature of training each of the data's is: by name, or by place where either side has no names."""
    made_up = unnamed(len(names))
    if data.feature_names == names or (data.n_features == len(names) and made_up in (data.feature_names, names)):
        return slice(None)
    missing = [name for name in names if name not in data.feature_names]
    strange = [name for name in data.feature_names if name not in names]
    if missing or strange:
        lacking = f"lacks {listed(missing)}" if missing else f"has {listed(strange)} besides"
        raise DataError(f"the model was trained on {len(names)} features ({listed(names)}); the data {lacking}.")
    return [names.index(name) for name in data.feature_names]


def unnamed(d: int) -> tuple[str, ...]:
    """The names that features of an array without names are given."""
    return tuple(f"x{j}" for j in range(d))


def match_groups(data: RankingData, names: tuple[Any, ...]) -> NDArray[np.int64]:
    """The data's groups as codes into another list of names; unknown stays -1, a strange group is an error."""
    if data.group_names == names or not data.n_groups:
        return data.group.astype(np.int64)
    strange = [name for name in data.group_names if name not in names]
    if strange:
        raise DataError(f"group {strange[0]!r} was not in training, whose groups are {listed(names)}.")
    return np.array([*(names.index(name) for name in data.group_names), -1])[data.group]


def protected_code(data: RankingData, protected: Any) -> int:
    """The code of the protected group: the given label's, or the smaller group's."""
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
