"""What scikit-learn rankers here share: rows in, scores out, and a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.exceptions
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, EvenrankError
from evenrank.frame_columns import feature_matrix, frame_numbers
from evenrank.measures import measure
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.formulas import ndcg
from evenrank.rankers.imputing import Imputer
from evenrank.rankers.matching import category_frame, own_columns, unnamed
from evenrank.ranking import Ranking
from evenrank.row_checks import unmasked

# Missing values are refused with a line of ours, which names what takes them.
NUMBERS: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


class NotFittedError(EvenrankError, sklearn.exceptions.NotFittedError):  # type: ignore[misc]
    """The ranker was asked for scores before `fit`."""


def seed_of(random_state: Any) -> int:
    """Give the seed that scikit-learn's ``random_state`` stands for.

    Parameters
    ----------
    random_state : int, RandomState or None
        An int is the seed itself; otherwise one is drawn.

    Returns
    -------
    int
        The seed.
    """
    if isinstance(random_state, int | np.integer | float | str):
        check_number(random_state, "random_state", least=0, whole=True)
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _not_numeric(X: Any, reason: str) -> DataError:
    """Make the error for text among features, which names its column where X is a frame."""
    advice = "Leave it out, or give it a type of categories, which impute='median' makes columns of 0 and 1 of."
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    for name in frame.columns if isinstance(frame, nw.DataFrame) else ():
        try:
            frame_numbers(frame.get_column(name), str(name), "row {}".format, missing=np.nan)
        except DataError as error:
            return DataError(f"{str(error).partition(' If it holds')[0]} {advice}")
    return DataError(f"X must be numeric: {reason}. Encode text columns first.")


class BaseRanker(BaseEstimator):  # type: ignore[misc]
    """Base of our own rankers: rows in, scores out; subclasses fit, predict, save and read themselves."""

    feature_names_: tuple[str, ...]
    group_names_: tuple[Any, ...]
    relevance_threshold: float
    imputer_: Imputer | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = getattr(self, "impute", None) is not None
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X: Any, sensitive_features: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows; see `FairLinearRanker.predict`."""
        raise NotImplementedError

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Give the NDCG of the ranking (no cut-off), the mean over queries with something relevant.

        With weights of rows, given or in the `RankingData`, a query counts with the mean weight of its rows.

        Parameters
        ----------
        X, y, qid, sensitive_features, sample_weight
            The rows and their weights, as ``fit`` takes them.

        Returns
        -------
        float
            The mean.
        """
        scores = self.predict(X, sensitive_features)
        if not isinstance(X, RankingData):
            X = self._rows(np.zeros((len(scores), 0)), y, qid, weight=sample_weight)
        elif sample_weight is not None:
            raise ConfigError("score(data) takes weights from the RankingData; leave sample_weight out.")
        if X.sample_weight is None:
            return float(measure(scores, X, ["ndcg"])["ndcg"])
        each = ndcg(Evaluation(X, Ranking(X.to_stored(scores), X.query_ptr)), None)
        weight = np.add.reduceat(X.sample_weight, X.query_ptr[:-1]) / X.lengths
        counted = np.isfinite(each) & (weight > 0)
        return float(np.average(each[counted], weights=weight[counted])) if counted.any() else np.nan

    # ------------------------------------------------------------------ for subclasses

    def _check_fitted(self, before: str) -> None:
        """Refuse to go on where `fit` was not called; ``before`` names what needs it."""
        try:
            check_is_fitted(self)
        except sklearn.exceptions.NotFittedError as error:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit before {before}.") from error

    def _rows_to_score(self, X: Any, sensitive_features: Any = None, *, reorder: bool = False) -> RankingData:
        """The rows of `predict`, checked against those of training as scikit-learn does.

        Columns of a frame that the ranker was not trained on are left aside.
        """
        self._check_fitted("predict")
        if isinstance(X, RankingData):
            return self._filled(X if sensitive_features is None else X.with_group(sensitive_features))
        names = getattr(self, "feature_names_in_", None)
        X = own_columns(unmasked(X, "X"), names, reorder=reorder)
        frame = category_frame(X)
        if frame is None:
            X, categories = self._validated(X, reset=False), None
        else:
            names = frame.columns
            X, categories = feature_matrix(frame, names, "row {}".format)
        qid = np.zeros(len(X), np.int64)
        rows: dict[str, Any] = {"feature_names": names, "categories": categories}
        return self._filled(RankingData.from_arrays(X, np.zeros(len(X)), sensitive_features, qid, **rows))

    def _validated(self, *arrays: Any, **options: Any) -> Any:
        """What scikit-learn makes of features and labels; it takes dates for numbers, and fails on huge integers."""
        for dtype in getattr(arrays[0], "dtypes", [getattr(arrays[0], "dtype", None)]):
            if getattr(dtype, "kind", "") in ("m", "M"):
                raise DataError(f"X must be numeric; got {dtype} values. Encode times as numbers first.")
        try:
            return validate_data(self, *arrays, **options, **NUMBERS)
        except ValueError as error:
            if "could not convert string to float" not in str(error):
                raise
            raise _not_numeric(arrays[0], str(error)) from None
        except OverflowError:
            raise DataError("X and y must be numbers below 1.8e308 in magnitude; got a larger integer.") from None

    def _checked_rows(self, X: Any, y: Any, qid: Any, sensitive_features: Any, sample_weight: Any) -> RankingData:
        """The rows of `fit`, in scikit-learn's or our own form, filled, and the attributes scikit-learn expects."""
        return self._imputed(self._raw_rows(X, y, qid, sensitive_features, sample_weight))

    def _imputed(self, data: RankingData) -> RankingData:
        """Training rows, filled by what is learned on them."""
        rule = getattr(self, "impute", None)
        self.imputer_ = None if rule is None else Imputer.fit(data, rule)
        return self._filled(data, with_parent=True)

    def _filled(self, data: RankingData, *, with_parent: bool = False) -> RankingData:
        return data if self.imputer_ is None else self.imputer_.transform(data, with_parent=with_parent)

    def _raw_rows(self, X: Any, y: Any, qid: Any, sensitive_features: Any, sample_weight: Any) -> RankingData:
        if isinstance(X, RankingData):
            if y is not None or qid is not None or sample_weight is not None:
                raise ConfigError(
                    "fit(data) takes relevance, queries and weights from the RankingData; leave y, qid and "
                    "sample_weight out."
                )
            data = X if sensitive_features is None else X.with_group(sensitive_features)
            self._remember_features(data.feature_names)
            return data
        X, y, sample_weight = unmasked(X, "X"), unmasked(y, "y"), unmasked(sample_weight, "sample_weight")
        frame = category_frame(X)
        if frame is not None:
            matrix, categories = feature_matrix(frame, frame.columns, "row {}".format)
            self._remember_features(tuple(map(str, frame.columns)))
            return self._rows(matrix, y, qid, sensitive_features, sample_weight, frame.columns, categories)
        unchecked = X
        X, y = self._validated(X, y, y_numeric=True)
        if isinstance(unchecked, np.memmap) and np.may_share_memory(unchecked, X):
            X = unchecked  # scikit-learn forgets that it is one, and rows that must be sorted would go to memory
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        return self._rows(X, y, qid, sensitive_features, weight, getattr(self, "feature_names_in_", None))

    def _take_imputer(self, content: dict[str, Any], name: str) -> None:
        """Set the imputer of a model file, if it has one, and the features of training."""
        features = self.feature_names_
        if content.get("imputer") is not None:
            self.imputer_ = Imputer.from_content(content["imputer"], name)
            if self.imputer_.columns != features:
                raise DataError(f"{name}: 'imputer' must give the columns of the model. Was the file edited?")
            features = self.imputer_.features
        self._remember_features(features)

    def _remember_features(self, names: tuple[str, ...]) -> None:
        """As scikit-learn does, so that frames are matched by name; names made up for an array are not remembered."""
        self.n_features_in_ = len(names)
        if names != unnamed(len(names)):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _rows(
        self,
        X: Any,
        y: Any,
        qid: Any,
        sensitive_features: Any = None,
        weight: Any = None,
        names: Any = None,
        categories: Any = None,
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
            categories=categories,
        )
