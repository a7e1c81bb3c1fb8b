"""XGBoost's ranker made fair: LambdaRank, logistic or squared loss plus α·Γ, through ``xgboost.train(obj=…)``."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.file import columns, loaded, saved
from evenrank.boosting.objective import BASES, FairBoosted, FairObjective, ObjectiveOnRows, fairness
from evenrank.boosting.parameters import XGBOOST
from evenrank.boosting.rows import as_rows, each_in_order, eval_rows, in_order
from evenrank.boosting.rules import xgboost_rule
from evenrank.boosting.xgboost_json import checked_model, is_linear
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.notions import NotionLike
from evenrank.quiet import first_line
from evenrank.rankers import model_file
from evenrank.rankers.top_violation import TopViolation
from evenrank.row_checks import as_array

xgboost = require("xgboost")
require("numba")

NATIVE = "rank:ndcg"


class FairXGBRanker(FairBoosted, xgboost.XGBRanker):  # type: ignore[misc, name-defined, unused-ignore]
    """`xgboost.XGBRanker` trained to rank well and to treat groups evenly.

    Everything of XGBRanker stays: its parameters, ``eval_set``, callbacks, early stopping, feature importances, and
    ``save_model``, whose files XGBoost reads as those of a rank:ndcg model. With ``alpha=0`` it is XGBRanker.

    Parameters
    ----------
    alpha : float
        The strength of the fairness term, which is added to the mean loss of a row. (XGBoost's own ``alpha``, the L1
        penalty, is ``reg_alpha`` here as in XGBRanker.)
    notion, target, max_violation, scope, k, temperature, relevance_threshold
        See `evenrank.lightgbm.FairLGBMRanker`.
    objective : str
        "rank:ndcg" (the same as "lambdarank"), "logistic" or "squared".
    **kwargs : Any
        The parameters of XGBRanker.

    Attributes
    ----------
    alpha_, violation_, feature_names_, group_names_
        See `evenrank.lightgbm.FairLGBMRanker`.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> plain, fair = (er.xgboost.FairXGBRanker(notion="dp", alpha=a, max_depth=2, n_jobs=1).fit(data)
    ...                for a in (0.0, 1.0))
    >>> fair.violation_ < plain.violation_ / 2
    True
    """

    def _init_library(self, *, objective: str = NATIVE, **options: Any) -> None:
        super()._init_library(objective=NATIVE if objective in BASES else objective, **options)
        self.objective = objective

    def _wrapper_params(self) -> set[str]:
        return {*super()._wrapper_params(), *self.OURS}

    def get_xgb_params(self) -> dict[str, Any]:
        """Give the parameters for XGBoost itself, which knows our objectives as rank:ndcg.

        Returns
        -------
        dict
            The parameters by name.
        """
        params: dict[str, Any] = super().get_xgb_params()
        if params.get("objective") in BASES:
            params["objective"] = NATIVE
        return params

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sensitive_features: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        base_margin: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        sample_weight_eval_set: Any = None,
        base_margin_eval_set: Any = None,
        verbose: bool | int = False,
        xgb_model: Any = None,
    ) -> FairXGBRanker:
        """Train on rows (X, relevance y) with their query and group label, or on a `RankingData`.

        Parameters
        ----------
        X, y, qid, sensitive_features, group
            The rows, as in `evenrank.lightgbm.FairLGBMRanker.fit`.
        sample_weight : array-like, optional
            As in XGBRanker, the weight of each query, (queries,), in the order in which they first appear.
        base_margin : array-like, optional
            The score that each row starts from, (n,).
        eval_set, sample_weight_eval_set, base_margin_eval_set : list, optional
            Evaluation sets, their weights and first scores, in XGBRanker's forms.
        eval_qid, eval_group : list of array-like, optional
            The queries of each evaluation set: ids in any order, or sizes.
        verbose : bool or int
            Whether, or after how many rounds, the evaluation is printed.
        xgb_model : str, Booster or XGBModel, optional
            A model to continue from.

        Returns
        -------
        FairXGBRanker
            The trained ranker itself.
        """
        X, data, names = self._fit_rows(X, y, qid, group, sensitive_features)
        self._types = ["c" if name in self.categories_ else "float" for name in names] if self.categories_ else None
        weight = None if sample_weight is None else np.asarray(as_array(sample_weight, "sample_weight"), np.float64)
        sets, sizes, orders = eval_rows(eval_set, eval_qid, eval_group)
        margins = each_in_order(base_margin_eval_set, orders)
        rows = self._matrix(
            None, X, data.relevance, np.diff(data.query_ptr), weight, in_order(base_margin, data.row_order)
        )
        evals = []
        for number, (features, relevance) in enumerate(sets or []):
            if sizes is None:
                raise ConfigError("pass eval_qid or eval_group, the queries of each eval_set.")
            parts = (None if each is None else each[number] for each in (sample_weight_eval_set, margins))
            evals.append((self._matrix(rows, features, relevance, sizes[number], *parts), f"validation_{number}"))
        objective = self._fair_objective(data, weight)
        history: dict[str, Any] = {}
        with xgboost.config_context(verbosity=1 if self.verbosity is None else self.verbosity):
            model, metric, params, _ = self._configure_fit(xgb_model, self.get_xgb_params(), None)
            if objective is not None and params.get("base_score") is None:
                params["base_score"] = 0.0  # where rank:ndcg starts; with an objective of one's own it would be 0.5
            self._Booster = xgboost.train(
                params,
                rows,
                num_boost_round=self.get_num_boosting_rounds(),
                early_stopping_rounds=self.early_stopping_rounds,
                evals=evals,
                evals_result=history,
                custom_metric=metric,
                verbose_eval=verbose,
                xgb_model=model,
                callbacks=self.callbacks,
                obj=objective and (lambda scores, _: objective(scores)),
            )
        self._set_evaluation_result(history)
        self._conclude(X, data, names, objective, self._keep if xgb_model is None else None)
        return self

    def _keep(self, trees: int) -> None:
        self._Booster.best_iteration = trees - 1

    def predict(self, X: Any, **kwargs: Any) -> NDArray[Any]:
        """Score rows, as XGBRanker does.

        Parameters
        ----------
        X : array, frame, sparse matrix or RankingData
            The rows, (n, d).
        **kwargs : Any
            The remaining arguments of XGBRanker's ``predict``.

        Returns
        -------
        ndarray
            One score per row, (n,), in the order of the rows.
        """
        if isinstance(X, RankingData):
            return X.to_caller(super().predict(columns(X, self), **kwargs))
        return super().predict(columns(X, self), **kwargs)  # type: ignore[no-any-return, unused-ignore]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file that holds XGBoost's own model and that `evenrank.load` reads.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        text = lambda: self.get_booster().save_raw("json").decode()  # noqa: E731
        model_file.write(saved(self, "XGBoost", text, checked_model, XGBOOST), path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> FairXGBRanker:
        """Make the ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        ranker, text = loaded(cls, content, name, "XGBoost", checked_model, XGBOOST)
        types = ranker.feature_types
        if (ranker.booster == "gblinear") != is_linear(text) or len(types or ranker.feature_names_) != len(
            ranker.feature_names_
        ):
            raise DataError(f"{name}: the parameters are not those of the model in it. Was the file edited?")
        ranker._Booster = xgboost.Booster()
        try:
            ranker._Booster.load_model(bytearray(text.encode()))
        except xgboost.core.XGBoostError as error:
            raise DataError(f"{name}: the XGBoost model in it is damaged: {first_line(error)}") from None
        return ranker  # type: ignore[no-any-return]

    def _matrix(self, ref: Any, X: Any, relevance: Any, sizes: Any, weight: Any, margin: Any) -> Any:
        return self._create_ltr_dmatrix(
            ref=ref,
            data=X,
            label=relevance,
            group=sizes,
            qid=None,
            weight=weight,
            base_margin=margin,
            feature_weights=self.feature_weights if ref is None else None,
            missing=self.missing,
            enable_categorical=self.enable_categorical,
            feature_types=self._types or self.feature_types,
        )

    def _fair_objective(self, data: RankingData, weight: NDArray[Any] | None) -> FairObjective | None:
        """None where XGBoost's objective is enough: no fairness term, a loss of XGBoost's, no weighted rows."""
        plain = self.alpha == 0 and self.max_violation is None
        if plain and self.objective not in BASES[1:] and data.sample_weight is None:
            return None
        name = "lambdarank" if self.objective == NATIVE else self.objective
        rule = xgboost_rule(self.get_params()) if name == "lambdarank" else None
        if weight is not None:
            by_row = np.repeat(weight * len(weight) / weight.sum(), np.diff(data.query_ptr))
            data = replace(data, sample_weight=by_row)
        return self._objective_on(data, name, rule)


# ---------------------------------------------------------------------- for your own training code


class fair_objective(ObjectiveOnRows):
    """The fair objective for your own training code: ``obj`` of xgboost.train. Set ``base_score=0`` beside it.

    Parameters
    ----------
    data, objective, **options
        See `evenrank.lightgbm.fair_objective`.
    params : dict, optional
        XGBoost's; those of LambdaRank are used.

    Examples
    --------
    >>> import evenrank as er, xgboost
    >>> data = er.datasets.german_credit("age")
    >>> rows = xgboost.DMatrix(data.features, data.relevance, group=np.diff(data.query_ptr))
    >>> params = {"objective": "rank:ndcg", "base_score": 0.0, "nthread": 1}
    >>> booster = xgboost.train(params, rows, 5, obj=fair_objective(data, notion="dp", alpha=0.5))
    """

    lambdarank_rule = staticmethod(xgboost_rule)

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give first and second derivatives, (n,) each, for scores (n,); ``rows`` is XGBoost's DMatrix."""
        return self.objective(scores)


class fair_metric(TopViolation):
    """The gap of the top k on given rows, as a ``custom_metric`` of xgboost.train.

    For rows other than its own the metric is NaN.

    Parameters
    ----------
    data, **options
        See `evenrank.lightgbm.fair_metric`.
    """

    def __init__(self, data: Any, **options: Any) -> None:
        super().__init__(as_rows(data), fairness(**options))

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[str, float]:
        """Give the metric's name and the gap for scores (n,); ``rows`` is XGBoost's DMatrix."""
        return self.name, self.value_if_own(rows.get_label(), scores)


def train_scores(
    train: RankingData, test: RankingData, notion: NotionLike, alpha: float, **settings: Any
) -> NDArray[np.float64]:
    """Train a ranker for a sweep, on one thread, and score the test rows; see `evenrank.lightgbm.train_scores`."""
    ranker = FairXGBRanker(notion=notion, alpha=alpha, **{"n_jobs": 1, **settings})
    return np.asarray(ranker.fit(train).predict(test), np.float64)
