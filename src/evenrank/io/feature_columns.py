"""The features of a table that is read part by part, without one more copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.frame_columns import is_categorical
from evenrank.row_checks import listed


class FeatureColumns:
    """The features of a frame, (n, d), each of which stays where it is until some rows are asked for.

    A table of all rows would be one more copy of them; sums go through rows in blocks, which stay in the cache.
    """

    def __init__(self, columns: Sequence[NDArray[Any]], n_rows: int, dtype: Any) -> None:
        self._columns = columns
        self.shape = n_rows, len(columns)
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if not isinstance(key, slice):
            return np.asarray(self[:][key])
        table = np.empty((len(range(*key.indices(len(self)))), len(self._columns)), self.dtype, order="F")
        for j, column in enumerate(self._columns):
            table[:, j] = column[key]
        return table


def feature_table(frame: pl.DataFrame, features: Sequence[str]) -> FeatureColumns:
    """Give the features of a frame; float32 where all are, as `evenrank.read` does."""
    part = frame.select(features)
    strange = [name for name, kind in part.schema.items() if not kind.is_numeric() and kind != pl.Boolean]
    if strange:
        kind = "categories" if is_categorical(part.schema[strange[0]]) else "no numbers"
        raise DataError(
            f"training from files takes numbers only; {listed(strange)} hold{'s' * (len(strange) == 1)} {kind}. Leave "
            "it out with ignore= (--ignore), or train LightGBM or XGBoost in memory."
        )
    single = bool(features) and all(kind == pl.Float32 for kind in part.schema.values())
    if not single:
        part = part.cast(pl.Float64)
    return FeatureColumns([part[name].to_numpy() for name in features], part.height, np.float32 if single else float)
