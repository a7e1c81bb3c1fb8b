"""`LinearRanker`: what rankers with a linear score share."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.linear.scores import linear_products, linear_scores
from evenrank.rankers import model_file
from evenrank.rankers.base import BaseRanker

ONE_LIST = 10_000  # rows


class LinearRanker(BaseRanker):
    """Base of rankers whose score is linear; subclasses fit ``coef_`` and ``intercept_``."""

    coef_: NDArray[np.float64]
    intercept_: float
    group_offset_: NDArray[np.float64] | None = None
    group_shares_: NDArray[np.float64] | None = None
    resolution_: float = 0.0

    def predict(self, X: Any, sensitive_features: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows.

        Parameters
        ----------
        X : array, frame or RankingData
            The rows, (n, d).
        sensitive_features : array-like, optional
            The group label of each row, (n,); a group-aware ranker needs it.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        if sensitive_features is None and self._is_plain(X):
            return linear_products(_Fitted(self), X)[:, 0]
        data = self._rows_to_score(X, sensitive_features)
        if self.group_offset_ is not None and sensitive_features is None and not data.n_groups:
            raise ConfigError("this ranker is group-aware and needs sensitive_features, one group label per row.")
        return self._scores(data)

    def _scores(self, data: RankingData) -> NDArray[np.float64]:
        """Scores of rows that are filled, (n,), in the caller's order."""
        return data.to_caller(linear_scores(_Fitted(self), data)[:, 0])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, which `evenrank.load` reads; a notion of your own is kept by name only.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        self._check_fitted("save")
        offset, shares = self.group_offset_, self.group_shares_
        content = {
            "intercept": float(self.intercept_),
            "weights": dict(zip(self.feature_names_, np.asarray(self.coef_).tolist(), strict=True)),
            "group_offset": None if offset is None else offset.tolist(),
            "group_shares": None if shares is None else shares.tolist(),
            "resolution": float(self.resolution_),
            **({} if self.imputer_ is None else {"imputer": self.imputer_.content()}),
        }
        model_file.write(model_file.header(self) | content, path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> LinearRanker:
        """Make the ranker of a model file already read as JSON.

        Parameters
        ----------
        content : dict
            The content of the file.
        name : str
            The name that an error gives the file.

        Returns
        -------
        LinearRanker
            The trained ranker.
        """
        ranker = cls()
        model_file.set_parameters(ranker, content, name)
        weights = model_file.need(content, "weights", dict, name=name)
        groups = model_file.names(content, "groups", name=name)
        ranker.feature_names_ = tuple(weights)
        ranker.coef_ = model_file.numbers("weights", list(weights.values()), len(weights), name=name)
        intercept = model_file.need(content, "intercept", int, float, name=name)
        ranker.intercept_ = float(model_file.numbers("intercept", [intercept], 1, name=name)[0])
        step = content.get("resolution", 0.0)  # older files have none
        ranker.resolution_ = float(model_file.numbers("resolution", [step], 1, name=name)[0])
        if ranker.resolution_ < 0:
            raise DataError(f"{name}: 'resolution' must be at least 0; got {step}.")
        ranker.group_names_ = groups
        ranker._take_imputer(content, name)
        if content.get("group_offset") is not None or getattr(ranker, "group_aware", False):
            for key in ("group_offset", "group_shares"):
                values = model_file.numbers(key, model_file.need(content, key, list, name=name), len(groups), name=name)
                setattr(ranker, f"{key}_", values)
        return ranker

    def _is_plain(self, X: Any) -> bool:
        """Whether rows are one list of numbers as a service has it, which need no more checks than these.

        They take microseconds; those of scikit-learn and of `RankingData` take some hundred.
        """
        plain = (
            type(X) is np.ndarray
            and X.ndim == 2
            and 0 < len(X) <= ONE_LIST
            and X.dtype in (np.float64, np.float32)
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and self.group_offset_ is None
            and self.imputer_ is None
            and bool(np.isfinite(X).all())
        )
        if plain and hasattr(self, "feature_names_in_"):
            kind = type(self).__name__
            # As scikit-learn does.
            warnings.warn(
                f"X does not have valid feature names, but {kind} was fitted with feature names",
                UserWarning,
                stacklevel=3,
            )
        return plain

    def _in_own_units(self) -> tuple[NDArray[np.float64], float]:
        """Weights and intercept for the features as they come."""
        return self.coef_, self.intercept_


class _Fitted:
    """One fitted ranker as `linear_scores` sees it: a path of one model."""

    def __init__(self, ranker: LinearRanker) -> None:
        coef, intercept = ranker._in_own_units()
        self.coef, self.intercept = np.asarray(coef)[None, :], np.array([intercept])
        self.feature_names = ranker.feature_names_
        self.group_names = ranker.group_names_
        self.group_offset = None if ranker.group_offset_ is None else ranker.group_offset_[None, :]
        self.shares = ranker.group_shares_
        self.resolution = np.array([ranker.resolution_])
