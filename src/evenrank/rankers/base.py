"""What scikit-learn rankers here share: rows in, scores out, and a model file."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import sklearn.exceptions
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evenrank.data import RankingData
from evenrank.errors import ConfigError, EvenrankError
from evenrank.linear.path import linear_scores, unnamed
from evenrank.measures import measure


class NotFittedError(EvenrankError, sklearn.exceptions.NotFittedError):  # type: ignore[misc]
    """The ranker was asked for scores before `fit`."""


class LinearRanker(BaseEstimator):  # type: ignore[misc]
    """Base of rankers whose score is linear; subclasses fit ``coef_``, ``intercept_`` and the names of training."""

    coef_: NDArray[np.float64]
    intercept_: float
    feature_names_: tuple[str, ...]
    group_names_: tuple[Any, ...]
    group_offset_: NDArray[np.float64] | None = None
    group_shares_: NDArray[np.float64] | None = None
    relevance_threshold: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X: Any, sensitive_features: ArrayLike | None = None) -> NDArray[np.float64]:
        """Scores, (n,), in the order of the rows; X is an array, a frame or a `RankingData`.

        ``sensitive_features`` is needed by a group-aware ranker only.
        """
        try:
            check_is_fitted(self)
        except sklearn.exceptions.NotFittedError as error:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit first.") from error
        if isinstance(X, RankingData):
            data = X if sensitive_features is None else X.with_group(sensitive_features)
        else:
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
            names = getattr(self, "feature_names_in_", None)
            qid = np.zeros(len(X), np.int64)
            data = RankingData.from_arrays(X, np.zeros(len(X)), sensitive_features, qid, feature_names=names)
        if self.group_offset_ is not None and sensitive_features is None and not data.n_groups:
            raise ConfigError("this ranker is group-aware and needs sensitive_features, a group label a row.")
        return data.to_caller(linear_scores(_Fitted(self), data)[:, 0])

    def score(
        self, X: Any, y: ArrayLike | None = None, qid: ArrayLike | None = None, sensitive_features: Any = None
    ) -> float:
        """NDCG of the ranking (no cut-off), the mean over queries with something relevant."""
        scores = self.predict(X, sensitive_features)
        if not isinstance(X, RankingData):
            X = self._rows(np.zeros((len(scores), 0)), y, qid)
        return float(measure(scores, X, ["ndcg"])["ndcg"])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, which `evenrank.load` reads."""
        from evenrank.rankers.model_file import save

        save(self, path)

    # ------------------------------------------------------------------ for subclasses

    def _checked_rows(self, X: Any, y: Any, qid: Any, sensitive_features: Any, sample_weight: Any) -> RankingData:
        """The rows of `fit`, in scikit-learn's or our own form, and the attributes scikit-learn expects of them."""
        if isinstance(X, RankingData):
            if y is not None or qid is not None or sample_weight is not None:
                raise ConfigError(
                    "fit(data) takes relevance, queries and weights from the RankingData; leave y, qid and "
                    "sample_weight out."
                )
            data = X if sensitive_features is None else X.with_group(sensitive_features)
            self._remember_features(data.feature_names)
            return data
        given = X
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        if isinstance(given, np.memmap) and np.may_share_memory(given, X):
            X = given  # scikit-learn forgets that it is one, and rows that must be sorted would go to memory
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        return self._rows(X, y, qid, sensitive_features, weight, getattr(self, "feature_names_in_", None))

    def _remember_features(self, names: tuple[str, ...]) -> None:
        """As scikit-learn does, so that frames are matched by name; names made up for an array are not remembered."""
        self.n_features_in_ = len(names)
        if names != unnamed(len(names)):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _rows(
        self, X: Any, y: Any, qid: Any, sensitive_features: Any = None, weight: Any = None, names: Any = None
    ) -> RankingData:
        if y is None:
            raise ConfigError("y, the relevance of each row, is needed.")
        return RankingData.from_arrays(
            X,
            y,
            sensitive_features,
            np.zeros(len(X), np.int64) if qid is None else qid,
            feature_names=names,
            relevance_threshold=self.relevance_threshold,
            sample_weight=weight,
        )

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
