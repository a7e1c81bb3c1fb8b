"""Scores of linear models, many at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.rankers.matching import match_features, match_groups
from evenrank.rankers.row_products import row_products
from evenrank.rounding import to_resolution
from evenrank.rows import TO_SCORE


class Linear(Protocol):
    """What `linear_scores` needs to know of trained models."""

    @property
    def coef(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> NDArray[np.float64]: ...
    @property
    def feature_names(self) -> tuple[str, ...]: ...
    @property
    def group_names(self) -> tuple[Any, ...]: ...
    @property
    def group_offset(self) -> NDArray[np.float64] | None: ...
    @property
    def shares(self) -> NDArray[np.float64] | None: ...
    @property
    def resolution(self) -> NDArray[np.float64] | None: ...


def linear_products(model: Linear, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Score rows whose columns are the model's features, without offsets of groups.

    Parameters
    ----------
    model : Linear
        The trained models.
    rows : ndarray
        (n, d).

    Returns
    -------
    ndarray
        (n, models).
    """
    out = row_products(rows, model.coef)
    out += model.intercept
    return out if model.resolution is None else to_resolution(out, model.resolution)


def linear_scores(model: Linear, data: RankingData) -> NDArray[np.float64]:
    """Score rows, after matching the data's features with those of training.

    Parameters
    ----------
    model : Linear
        The trained models.
    data : RankingData
        The rows.

    Returns
    -------
    ndarray
        (n, models), in stored order.
    """
    columns = match_features(data, model.feature_names)
    data.need_numbers("a linear ranker", np.array(data.feature_names, object)[columns], TO_SCORE)
    out = np.empty((data.n_rows, len(model.coef)))
    for rows, block in data.blocks():
        row_products(block[:, columns], model.coef, out=out[rows])
    out += model.intercept
    if model.group_offset is not None:
        assert model.shares is not None
        unknown = (model.shares * model.group_offset).sum(axis=1)
        out += np.vstack([model.group_offset.T, unknown])[match_groups(data, model.group_names)]
    return out if model.resolution is None else to_resolution(out, model.resolution)
