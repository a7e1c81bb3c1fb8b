"""XGBoost's ranker made fair: LambdaRank, logistic or squared loss plus α·Γ, through ``xgboost.train(obj=…)``."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.eval_sets import as_sets, each_in_order, eval_rows
from evenrank.boosting.file import loaded, saved
from evenrank.boosting.held_out import judged_sets
from evenrank.boosting.objective import BASES, FairObjective
from evenrank.boosting.parameters import XGBOOST
from evenrank.boosting.ranker import FairBoosted
from evenrank.boosting.rows import in_order, query_weights, refuse_two_ids, stored_rows
from evenrank.boosting.rules import POINTWISE, XGBOOST_OBJECTIVES, check_labels, xgboost_rule
from evenrank.boosting.xgboost_callables import fair_metric, fair_ndcg, fair_objective, small_classifier, understood
from evenrank.boosting.xgboost_dask import dask_fit, dask_objective
from evenrank.boosting.xgboost_fit import Counting, best_score, own_stopping, settled
from evenrank.boosting.xgboost_json import checked_model, is_linear
from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.notions import NotionLike
from evenrank.quiet import first_line
from evenrank.rankers import model_file

xgboost = require("xgboost")
require("numba")

__all__ = ["FairXGBRanker", "dask_fit", "dask_objective", "fair_metric", "fair_ndcg", "fair_objective", "train_scores"]

NATIVE = "rank:ndcg"


class FairXGBRanker(FairBoosted, xgboost.XGBRanker):  # type: ignore[misc, name-defined, unused-ignore]
    """`xgboost.XGBRanker` trained to rank well and to treat groups evenly.

    Everything of XGBRanker stays: its parameters, ``eval_set``, callbacks, early stopping, feature importances, and
    ``save_model``, whose files XGBoost reads as those of a rank:ndcg model. With ``alpha=0`` it is XGBRanker.

    Parameters
    ----------
    alpha : float
        The strength of the fairness term, as in `evenrank.lightgbm.FairLGBMRanker`. (XGBoost's own ``alpha``, the L1
        penalty, is ``reg_alpha`` here as in XGBRanker.)
    notion, target, max_violation, scope, k, temperature, relevance_threshold, group_aware, validation_fraction
        See `evenrank.lightgbm.FairLGBMRanker`.
    objective : str
        "rank:ndcg" (the same as "lambdarank"), "rank:pairwise", "rank:map", "logistic" or "squared".
    **kwargs : Any
        The parameters of XGBRanker.

    Attributes
    ----------
    alpha_, violation_, group_offset_, tried_, feature_names_, group_names_
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
        if not str(objective).startswith("rank:"):  # XGBRanker's own message names itself
            choose(objective, XGBOOST_OBJECTIVES, what="objective")
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
        eval_sensitive_features: Any = None,
        eval_max_violation: float | None = None,
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
            Evaluation sets, their weights and first scores, in XGBRanker's forms; a set may be a `RankingData`, which
            brings its queries and groups.
        eval_qid, eval_group : list of array-like, optional
            The queries of each evaluation set: ids in any order, or sizes.
        eval_sensitive_features, eval_max_violation
            As in `evenrank.lightgbm.FairLGBMRanker.fit`.
        verbose : bool or int
            Whether, or after how many rounds, the evaluation is printed.
        xgb_model : str, Booster or XGBModel, optional
            A model to continue from.

        Returns
        -------
        FairXGBRanker
            The trained ranker itself.
        """
        given_sets = as_sets(eval_set)
        refuse_two_ids(X, given_sets, qid=qid, group=group, eval_qid=eval_qid, eval_group=eval_group)
        X, data, names = self._fit_rows(X, y, qid, group, sensitive_features)
        check_labels(xgboost_rule, self.get_params(), self.objective, data.relevance)
        self._types = ["c" if name in data.categories else "float" for name in names] if data.categories else None
        weight = None if sample_weight is None else query_weights(sample_weight, data.n_queries)
        sets, sizes, orders = eval_rows(given_sets, eval_qid, eval_group, names, self.categories_, like=X)
        margins = each_in_order(base_margin_eval_set, sets, orders, "base_margin_eval_set")
        judged = judged_sets(
            given_sets, eval_sensitive_features, sets, sizes, orders, margins, self.relevance_threshold
        )
        start = stored_rows(base_margin, data.row_order, data.n_rows, "base_margin")
        if weight is not None:
            by_row = np.repeat(weight * len(weight) / weight.sum(), np.diff(data.query_ptr))
            data = replace(data, sample_weight=by_row)
        self._query_weight = weight

        def fit_once(
            X: Any,
            part: RankingData,
            numbers: Any,
            objective: FairObjective | None,
            metric: Any,
            trees: int | None = None,
        ) -> None:
            chosen = weight
            if weight is not None and numbers is not None:
                chosen = weight[np.unique(data.query_of_row[numbers])]
            rows = self._matrix(None, X, part.relevance, np.diff(part.query_ptr), chosen, in_order(start, numbers))
            evals = []
            for number, (features, relevance) in enumerate(sets or [] if trees is None else []):
                parts = (None if each is None else each[number] for each in (sample_weight_eval_set, margins))
                evals.append((self._matrix(rows, features, relevance, sizes[number], *parts), f"validation_{number}"))
            try:
                self._boost(rows, evals, objective, metric, verbose, xgb_model, trees)
            except xgboost.core.XGBoostError as error:
                raise understood(error) from None

        self._train(X, data, names, judged, eval_max_violation, fit_once, start)
        return self

    def _boost(
        self,
        rows: Any,
        evals: list[Any],
        objective: FairObjective | None,
        metric: Any,
        verbose: Any,
        xgb_model: Any,
        trees: int | None = None,
    ) -> None:
        """Train as XGBRanker does, with an objective and a metric of ours where there is one."""
        history: dict[str, Any] = {}
        callbacks = own_stopping(self.callbacks, several=self.max_violation is not None)
        if trees is not None and callbacks:
            callbacks = [each for each in callbacks if isinstance(each, xgboost.callback.LearningRateScheduler)]
        patience = self.early_stopping_rounds if trees is None else None
        if objective is not None and objective.pull is not None:
            callbacks, patience = settled(callbacks, patience, self.get_num_boosting_rounds()), None
        if objective is not None:
            callbacks = [*(callbacks or []), Counting(objective)]
        with xgboost.config_context(verbosity=1 if self.verbosity is None else self.verbosity):
            model, own_metric, params, _ = self._configure_fit(xgb_model, self.get_xgb_params(), None)
            if objective is not None and params.get("base_score") is None:
                params["base_score"] = 0.0  # where rank:ndcg starts; with an objective of one's own it would be 0.5
            self._Booster = xgboost.train(
                params,
                rows,
                num_boost_round=self.get_num_boosting_rounds() if trees is None else trees,
                early_stopping_rounds=patience,
                evals=evals,
                evals_result=history,
                custom_metric=_joined(own_metric, metric),
                verbose_eval=verbose,
                xgb_model=model,
                callbacks=callbacks,
                obj=objective and (lambda scores, _: objective(scores)),
            )
        self._set_evaluation_result(history)

    def _raw_scores(self, X: Any) -> NDArray[Any]:
        return np.asarray(super().predict(X))

    def _base(self, data: RankingData) -> tuple[str, Any]:
        name = self.objective
        return name, None if name in POINTWISE else xgboost_rule(self.get_params(), name)

    def _is_native(self, data: RankingData) -> bool:
        """Whether XGBoost has the loss, and weighs rows as asked: it has weights of queries only."""
        return self.objective not in POINTWISE and (data.sample_weight is None or self._query_weight is not None)

    def _classifier(self) -> Any:
        options = {
            "missing": self.missing,
            "n_jobs": self.n_jobs,
            "enable_categorical": bool(self.enable_categorical or self.categories_),
        }
        return small_classifier(feature_types=self._types or self.feature_types, **options)

    def _trees_kept(self) -> int:
        best = getattr(self._Booster, "best_iteration", None)
        return int(self._trees_grown() if best is None else best + 1)

    def _trees_grown(self) -> int:
        return int(self._Booster.num_boosted_rounds())

    def _can_be_cut(self) -> bool:
        given = self.get_xgb_params()
        return given.get("booster") in (None, "gbtree") and given.get("process_type") in (None, "default")

    def _cut(self, before: int, trees: int) -> None:
        stopped = self._Booster.attr("best_iteration") is not None
        self._Booster = self._Booster[: before + trees]
        if stopped:
            score = best_score(self.evals_result(), self.callbacks, trees)
            self._Booster.set_attr(best_iteration=str(before + trees - 1), best_score=str(score))

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None, **kwargs: Any) -> NDArray[Any]:
        """Score rows, as XGBRanker does.

        Parameters
        ----------
        X : array, frame, sparse matrix or RankingData
            The rows, (n, d).
        sensitive_features : array-like, optional
            As in `evenrank.lightgbm.FairLGBMRanker.predict`.
        **kwargs : Any
            The remaining arguments of XGBRanker's ``predict``.

        Returns
        -------
        ndarray
            One score per row, (n,), in the order of the rows.
        """
        known = self._serving_groups(X, sensitive_features)
        stored = isinstance(X, RankingData)
        try:
            scores = super().predict(self._columns(X), **kwargs)
        except xgboost.core.XGBoostError as error:
            raise understood(error) from None
        if known is not None:
            scores = self._shifted(scores, known)
        return X.to_caller(scores) if stored else scores  # type: ignore[no-any-return, unused-ignore]

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
            enable_categorical=bool(self.enable_categorical or self.categories_),
            feature_types=self._types or self.feature_types,
        )


def _joined(own: Any, metric: Any) -> Any:
    """The user's metric, if any, and then ours: XGBoost's early stopping follows the last one."""
    if metric is None:
        return own

    def evaluated(scores: NDArray[Any], rows: Any) -> list[tuple[str, float]]:
        before = [] if own is None else own(scores, rows)
        ours = metric.name, metric.value(rows.get_label(), scores)
        return [*(before if isinstance(before, list) else [before]), ours]

    return evaluated


def train_scores(
    train: RankingData, test: RankingData, notion: NotionLike, alpha: float, **settings: Any
) -> NDArray[np.float64]:
    """Train a ranker for a sweep, on one thread, and score the test rows; see `evenrank.lightgbm.train_scores`."""
    ranker = FairXGBRanker(notion=notion, alpha=alpha, **{"n_jobs": 1, **settings})
    return np.asarray(ranker.fit(train).predict(test), np.float64)
