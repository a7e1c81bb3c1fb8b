"""LightGBM's ranker made fair: LambdaRank, logistic or squared loss plus α·Γ, through its custom objective."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting import lightgbm_fit as fitting
from evenrank.boosting.eval_sets import as_sets, each_in_order, eval_rows, own_weights
from evenrank.boosting.file import loaded, saved
from evenrank.boosting.frames import matched_by_name
from evenrank.boosting.held_out import judged_sets
from evenrank.boosting.lightgbm_callables import (
    fair_metric,
    fair_ndcg,
    fair_objective,
    of_labels,
    small_classifier,
    understood,
)
from evenrank.boosting.lightgbm_text import checked_text
from evenrank.boosting.objective import BASES, FairObjective
from evenrank.boosting.parameters import LIGHTGBM
from evenrank.boosting.ranker import FairBoosted
from evenrank.boosting.rows import in_order, stored_rows
from evenrank.boosting.rules import POINTWISE, check_labels, lightgbm_rule
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.notions import NotionLike
from evenrank.quiet import first_line
from evenrank.rankers import model_file

lightgbm = require("lightgbm")
require("numba")
__all__ = ["FairLGBMRanker", "fair_metric", "fair_ndcg", "fair_objective", "train_scores"]


class FairLGBMRanker(FairBoosted, lightgbm.LGBMRanker):  # type: ignore[misc, name-defined, unused-ignore]
    """`lightgbm.LGBMRanker` trained to rank well and to treat groups evenly.

    Everything of LGBMRanker stays: its parameters, ``eval_set``, callbacks, early stopping, feature importances, and
    ``booster_.save_model``. With ``alpha=0`` it is LGBMRanker.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness, as in `FairLinearRanker`.
    alpha : float
        The strength of the fairness term: at 1 it pulls at the scores about as strongly as the loss does, whatever the
        data and the loss. From 0.01 to 10 is useful; above, it pulls as at 10. (LightGBM's own ``alpha`` is for
        objectives that do not rank.)
    target : str
        The value that is evened out: "topk", "exposure", "score", "centered" or "probability"; see `evenrank.targets`.
    max_violation : float, optional
        Instead of ``alpha``: the largest gap of the top k on the training rows. Mostly six models are trained, at most
        11, and of those within it the one with the highest NDCG@k is kept: strength 0, if that is within it. Where no
        strength is, the model may have fewer trees than asked for.
    scope : str
        "amortized" over all queries, or "per_query".
    k : int
        The cut-off of target "topk" and of ``max_violation``.
    temperature : float, optional
        Softness of the targets "topk" and "exposure".
    relevance_threshold : float
        Notions count relevance at or above it as relevant.
    group_aware : bool
        Whether the ranker may see the group, at training and at serving: the score is that of LightGBM's own trees plus
        a part alpha/(1 + alpha) of a `GroupOffset` learned on other queries, for which two more models of half the
        queries are trained. `predict` then needs ``sensitive_features``; LightGBM's own model text has the trees only.
    validation_fraction : float, optional
        With ``max_violation``: the share of queries that are kept out of training, and on which the upper end of the
        gap's interval (95 %, one-sided) must be within it. ``eval_sensitive_features`` of `fit` does the same with
        the first of its sets.
    objective : str
        "lambdarank", "rank_xendcg", "logistic" or "squared".
    **kwargs : Any
        The parameters of LGBMRanker.

    Attributes
    ----------
    alpha_ : float
        The strength, which ``max_violation`` chooses.
    group_offset_ : ndarray or None
        With ``group_aware``, what is added to the scores of each group, (groups,); an unknown group has 0.
    tried_ : list of tuple
        With ``max_violation``, the strengths that were trained, each with its gap and NDCG@k on the rows that count.
    violation_ : float
        The gap of the top k on the training rows, by their ``init_score`` plus the trees' scores; NaN without groups.
    feature_names_, group_names_ : tuple
        The names of the features and groups in training.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> plain, fair = (er.lightgbm.FairLGBMRanker(notion="dp", alpha=a, num_leaves=4, n_jobs=1, verbose=-1).fit(data)
    ...                for a in (0.0, 1.0))
    >>> fair.violation_ < plain.violation_ / 2
    True
    """

    _Booster: Any
    _objective: Any  # LGBMModel's: the parameter, or what stands in for it

    def set_params(self, **params: Any) -> FairLGBMRanker:
        """Set parameters by name.

        Parameters
        ----------
        **params : Any
            This ranker's parameters, or LGBMRanker's.

        Returns
        -------
        FairLGBMRanker
            The ranker itself.
        """
        super().set_params(**params)
        # LGBMModel keeps what it is given for the library as well, which knows none of ours.
        for name in self.OURS:
            self._other_params.pop(name, None)
        return self

    def _process_params(self, stage: str) -> dict[str, Any]:
        params = super()._process_params(stage)
        if stage == "predict":
            # Parameters of training say nothing about prediction, and those of a file must not reach the library.
            return fitting.of_prediction(params)
        # LGBMModel adds NDCG to whatever metric there is, and early stopping would follow it.
        silent = {"metric": "None"} if self._silent and "metric" not in self._other_params else {}
        left_out = {*self.OURS, *(fitting.PATIENCE if self._patient else ())}
        return {name: value for name, value in params.items() if name not in left_out} | silent

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sensitive_features: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        init_score: ArrayLike | None = None,
        eval_set: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_sample_weight: Any = None,
        eval_init_score: Any = None,
        eval_sensitive_features: Any = None,
        eval_max_violation: float | None = None,
        **kwargs: Any,
    ) -> FairLGBMRanker:
        """Train on rows (X, relevance y) with their query and group label, or on a `RankingData`.

        Parameters
        ----------
        X : array, frame, sparse matrix or RankingData
            The rows, (n, d). A `RankingData` brings y, the queries and the weights with it.
        y, qid, sensitive_features, sample_weight : array-like, optional
            As in `FairLinearRanker.fit`, except that rows of an array need ``qid`` or ``group``.
        group : array-like, optional
            Instead of ``qid``: LightGBM's sizes of the queries, (queries,), whose rows stand together.
        init_score : array-like, optional
            The score that each row starts from, (n,).
        eval_set, eval_X, eval_y, eval_sample_weight, eval_init_score : optional
            Evaluation sets, in LGBMRanker's forms; a set may be a `RankingData`, which brings its queries, groups and
            weights.
        eval_qid, eval_group : list of array-like, optional
            The queries of each evaluation set: ids in any order, or sizes.
        eval_sensitive_features : list of array-like, optional
            The group labels of each evaluation set. Then the sets are also measured by NDCG@k subject to a gap of the
            top k of at most ``eval_max_violation`` (minus the gap where it is larger), which early stopping follows
            unless ``eval_metric`` names other metrics; without a limit, by the gap. With ``max_violation`` the first
            set is where it must hold; see ``validation_fraction``.
        eval_max_violation : float, optional
            That limit; ``max_violation`` unless given.
        **kwargs : Any
            The remaining arguments of LGBMRanker's ``fit``.

        Returns
        -------
        FairLGBMRanker
            The trained ranker itself.
        """
        given_sets = as_sets(fitting.pairs(eval_set, eval_X, eval_y))
        is_training = fitting.training_among(given_sets, X, y)
        X, data, names = self._fit_rows(X, y, qid, group, sensitive_features, sample_weight)
        check_labels(lightgbm_rule, self.get_params(), self._objective or BASES[0], data.relevance)
        sets, sizes, orders = eval_rows(given_sets, eval_qid, eval_group, names, self.categories_, like=X)
        starts = each_in_order(eval_init_score, sets, orders, "eval_init_score")
        weights = each_in_order(eval_sample_weight, sets, orders, "eval_sample_weight") or own_weights(given_sets)
        judged = judged_sets(given_sets, eval_sensitive_features, sets, sizes, orders, starts, self.relevance_threshold)
        start = stored_rows(init_score, data.row_order, data.n_rows, "init_score")
        given = {"eval_group": sizes, "eval_sample_weight": weights, "eval_init_score": starts}
        given |= fitting.categorical_features(data) | kwargs
        library: Any = super()

        def fit_once(
            X: Any,
            rows: RankingData,
            numbers: Any,
            objective: FairObjective | None,
            metric: Any,
            trees: int | None = None,
        ) -> None:
            chosen, self._patient = self._objective, trees is not None
            marked = is_training if numbers is None is metric else []
            asked = given | fitting.evaluated(fitting.with_training(sets, marked, X, rows.relevance))
            if trees is not None:
                asked = fitting.without_evaluation(given)
                self.set_params(n_estimators=trees, **dict.fromkeys(fitting.TREES & set(self._other_params), trees))
            self._silent = metric is not None and metric.higher_is_better and given.get("eval_metric") is None
            if objective is not None:
                self._patient = self._patient or objective.pull is not None
                self._objective, asked = fitting.taken_objective(objective, self.get_params(), asked)
            if metric is not None:
                asked = asked | {"eval_metric": [*fitting.listed(given.get("eval_metric")), of_labels(metric)]}
            options = {"sample_weight": rows.sample_weight, "init_score": in_order(start, numbers), **asked}
            try:
                library.fit(X, rows.relevance, group=np.diff(rows.query_ptr), **options)
            except lightgbm.basic.LightGBMError as error:
                raise understood(error) from None
            finally:
                self._objective = chosen or BASES[0]
            if objective is not None:
                self._Booster = fitting.named(self._Booster, self._objective)

        self._train(X, data, names, judged, eval_max_violation, fit_once, start)
        return self

    def _raw_scores(self, X: Any) -> NDArray[Any]:
        return np.asarray(super().predict(X))

    def _trained_scores(self, X: Any, objective: FairObjective) -> NDArray[Any] | None:
        # One tree instead of all of them. Where trees change after their round, are left out, or come on top of other
        # scores, what the objective has seen is not a part of the prediction.
        trees = self._trees_grown()
        grown = objective.from_zero and objective.rounds == trees == self._trees_kept()
        if not grown or objective.scores is None or not self._can_be_cut():
            return None
        return np.asarray(objective.scores + super().predict(X, start_iteration=trees - 1, num_iteration=1))

    def _base(self, data: RankingData) -> tuple[str, Any]:
        name = self._objective or BASES[0]
        return name, None if name in POINTWISE else lightgbm_rule(self.get_params(), name)

    def _is_native(self, data: RankingData) -> bool:
        return self._objective not in POINTWISE

    def _classifier(self) -> Any:
        return small_classifier(self.n_jobs)

    def _trees_kept(self) -> int:
        return int(self._best_iteration or self._trees_grown())

    def _trees_grown(self) -> int:
        return int(self._Booster.current_iteration())

    def _can_be_cut(self) -> bool:
        return fitting.is_plain(self.get_params())

    def _cut(self, before: int, trees: int) -> None:
        self._Booster = fitting.named(self._Booster, self._objective, before + trees)
        self._Booster.best_score = fitting.evaluated_at(self._evals_result, trees)
        self._best_iteration, self._best_score = self._Booster.best_iteration, self._Booster.best_score

    def predict(self, X: Any, *args: Any, sensitive_features: ArrayLike | None = None, **kwargs: Any) -> NDArray[Any]:
        """Score rows, as LGBMRanker does.

        Parameters
        ----------
        X : array, frame, sparse matrix or RankingData
            The rows, (n, d).
        *args : Any
            The remaining arguments of LGBMRanker's ``predict``.
        sensitive_features : array-like, optional
            The group label of each row, (n,), which a ``group_aware`` ranker scores by; a `RankingData` has them.
        **kwargs : Any
            The remaining arguments of LGBMRanker's ``predict``.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        known = self._serving_groups(X, sensitive_features)
        stored = isinstance(X, RankingData)
        with matched_by_name(stored or hasattr(X, "columns")):
            scores = super().predict(self._columns(X), *args, **kwargs)
        if known is not None and np.ndim(scores) == 1:
            scores = self._shifted(scores, known)
        return X.to_caller(scores) if stored else scores  # type: ignore[no-any-return, unused-ignore]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file that holds LightGBM's own model text and that `evenrank.load` reads.

        Parameters
        ----------
        path
            As in `FairLinearRanker.save`.
        """
        text = lambda: self.booster_.model_to_string()  # noqa: E731
        model_file.write(saved(self, "LightGBM", text, checked_text, LIGHTGBM), path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> FairLGBMRanker:
        """Make the ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        ranker, text = loaded(cls, content, name, "LightGBM", checked_text, LIGHTGBM)
        try:
            booster = lightgbm.Booster(model_str=text)
        except lightgbm.basic.LightGBMError as error:
            raise DataError(f"{name}: the LightGBM model in it is damaged: {first_line(error)}") from None
        ranker._Booster, ranker._n_features = booster, booster.num_feature()
        ranker._n_features_in = booster.num_feature()
        ranker._best_iteration = booster.best_iteration
        ranker._fitted_with_feature_names = False
        ranker.fitted_ = True
        return ranker  # type: ignore[no-any-return]


def train_scores(
    train: RankingData, test: RankingData, notion: NotionLike, alpha: float, **settings: Any
) -> NDArray[np.float64]:
    """Train a ranker for a sweep, on one thread and silently, and score the test rows.

    Parameters
    ----------
    train, test : RankingData
        The rows to train on and to score.
    notion : str, Notion, callable or row masks
        The notion of fairness.
    alpha : float
        The strength.
    **settings : Any
        More parameters of `FairLGBMRanker`.

    Returns
    -------
    ndarray
        Scores of the test rows, (n,), in the caller's order.
    """
    ranker = FairLGBMRanker(notion=notion, alpha=alpha, **{"n_jobs": 1, "verbose": -1, **settings})
    return np.asarray(ranker.fit(train).predict(test), np.float64)
