"""LightGBM's ranker made fair: LambdaRank, logistic or squared loss plus α·Γ, through its custom objective."""

from __future__ import annotations

from inspect import signature
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.file import columns, loaded, saved
from evenrank.boosting.lightgbm_text import checked_text
from evenrank.boosting.objective import BASES, FairBoosted, FairObjective, ObjectiveOnRows, fairness
from evenrank.boosting.parameters import LIGHTGBM, changes_prediction
from evenrank.boosting.rows import as_rows, each_in_order, eval_rows, in_order
from evenrank.boosting.rules import lightgbm_rule
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.notions import NotionLike
from evenrank.quiet import first_line
from evenrank.rankers import model_file
from evenrank.rankers.top_violation import TopViolation

lightgbm = require("lightgbm")
require("numba")

MACHINE = ("n_jobs", "num_threads", "num_thread", "nthread", "nthreads", "verbose", "verbosity")


class FairLGBMRanker(FairBoosted, lightgbm.LGBMRanker):  # type: ignore[misc, name-defined, unused-ignore]
    """`lightgbm.LGBMRanker` trained to rank well and to treat groups evenly.

    Everything of LGBMRanker stays: its parameters, ``eval_set``, callbacks, early stopping, feature importances, and
    ``booster_.save_model``. With ``alpha=0`` it is LGBMRanker.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness, as in `FairLinearRanker`.
    alpha : float
        The strength of the fairness term, which is added to the mean loss of a row. (LightGBM's own ``alpha`` is for
        objectives that do not rank.)
    target : str
        The value that is evened out: "topk", "exposure", "score", "centered" or "probability"; see `evenrank.targets`.
    max_violation : float, optional
        Instead of ``alpha``: the gap of the top k to reach on the training rows.
    scope : str
        "amortized" over all queries, or "per_query".
    k : int
        The cut-off of target "topk" and of ``max_violation``.
    temperature : float, optional
        Softness of the targets "topk" and "exposure".
    relevance_threshold : float
        Notions count relevance at or above it as relevant.
    objective : str
        "lambdarank", "logistic" or "squared".
    **kwargs : Any
        The parameters of LGBMRanker.

    Attributes
    ----------
    alpha_ : float
        The strength at the end of training, which ``max_violation`` moves.
    violation_ : float
        The gap of the top k on the training rows; NaN without groups.
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
            return {name: value for name, value in params.items() if name in MACHINE or changes_prediction(name)}
        return {name: value for name, value in params.items() if name not in self.OURS}

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
            Evaluation sets, in LGBMRanker's forms.
        eval_qid, eval_group : list of array-like, optional
            The queries of each evaluation set: ids in any order, or sizes.
        **kwargs : Any
            The remaining arguments of LGBMRanker's ``fit``.

        Returns
        -------
        FairLGBMRanker
            The trained ranker itself.
        """
        X, data, names = self._fit_rows(X, y, qid, group, sensitive_features, sample_weight)
        if eval_X is not None:
            eval_set = [(eval_X, eval_y)] if not isinstance(eval_X, tuple) else list(zip(eval_X, eval_y, strict=True))
        if self.categories_:
            kwargs.setdefault("categorical_feature", [names.index(name) for name in self.categories_])
        sets, sizes, orders = eval_rows(eval_set, eval_qid, eval_group)
        chosen, objective = self._objective, None
        if self.alpha > 0 or self.max_violation is not None or chosen in BASES[1:]:
            objective = self._fair_objective(data, chosen)
            self._objective = lambda relevance, scores: objective(scores)
        try:
            super().fit(
                X,
                data.relevance,
                group=np.diff(data.query_ptr),
                sample_weight=data.sample_weight,
                init_score=in_order(init_score, data.row_order),
                **_evaluated(sets),
                eval_group=sizes,
                eval_sample_weight=each_in_order(eval_sample_weight, orders),
                eval_init_score=each_in_order(eval_init_score, orders),
                **kwargs,
            )
        finally:
            self._objective = chosen or BASES[0]
        self._conclude(X, data, names, objective, None if "init_model" in kwargs else self._keep)
        return self

    def _keep(self, trees: int) -> None:
        self._Booster.best_iteration = self._best_iteration = trees

    def predict(self, X: Any, *args: Any, **kwargs: Any) -> NDArray[Any]:
        """Score rows, as LGBMRanker does.

        Parameters
        ----------
        X : array, frame, sparse matrix or RankingData
            The rows, (n, d).
        *args, **kwargs : Any
            The remaining arguments of LGBMRanker's ``predict``.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        if isinstance(X, RankingData):
            return X.to_caller(super().predict(columns(X, self), *args, **kwargs))
        return super().predict(columns(X, self), *args, **kwargs)  # type: ignore[no-any-return, unused-ignore]

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

    def _fair_objective(self, data: RankingData, chosen: Any) -> FairObjective:
        name = "lambdarank" if chosen is None else chosen
        rule = lightgbm_rule(self.get_params()) if name == "lambdarank" else None
        return self._objective_on(data, name, rule)


def _evaluated(sets: Any) -> dict[str, Any]:
    """Evaluation sets in the form this LightGBM likes: from 4.7 on, tuples of X and y."""
    if sets is None:
        return {}
    if "eval_X" not in signature(lightgbm.LGBMRanker.fit).parameters:
        return {"eval_set": sets}
    return {"eval_X": tuple(X for X, _ in sets), "eval_y": tuple(y for _, y in sets)}


# ---------------------------------------------------------------------- for your own training code


class fair_objective(ObjectiveOnRows):
    """The fair objective for your own training code: ``params["objective"]`` of lightgbm.train, or LGBMRanker's.

    Parameters
    ----------
    data : RankingData or tuple
        The training rows, or their (relevance, sensitive_features, qid), (n,) each. The rows of a query stand together.
    objective : str
        "lambdarank", "logistic" or "squared".
    params : dict, optional
        LightGBM's; sigmoid, lambdarank_truncation_level, lambdarank_norm and label_gain are used.
    **options : Any
        notion, alpha, target, scope, k, temperature and max_violation, as in `FairLGBMRanker`.

    Examples
    --------
    >>> import evenrank as er, lightgbm
    >>> data = er.datasets.german_credit("age")
    >>> sizes = [int(size) for size in np.diff(data.query_ptr)]
    >>> rows = lightgbm.Dataset(data.features, data.relevance, group=sizes)
    >>> objective = fair_objective(data, notion="dp", alpha=0.5)
    >>> booster = lightgbm.train({"objective": objective, "verbose": -1, "num_threads": 1}, rows, 5)
    """

    lambdarank_rule = staticmethod(lightgbm_rule)

    def __call__(self, first: Any, second: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give the derivatives for the scores of a round.

        Parameters
        ----------
        first, second : ndarray or Dataset
            (scores, Dataset), as lightgbm.train calls it, or (relevance, scores), as LGBMRanker does; (n,) each.

        Returns
        -------
        tuple of ndarray
            First and second derivatives, (n,) each.
        """
        return self.objective(second if isinstance(second, np.ndarray) else first)


class fair_metric(TopViolation):
    """The gap of the top k on given rows, as a ``feval`` of lightgbm.train or ``eval_metric`` of the rankers.

    The library calls a metric for every evaluation set; for rows other than its own the metric is NaN.

    Parameters
    ----------
    data : RankingData or tuple
        The rows, as in `fair_objective`.
    **options : Any
        notion, k and scope, as in `FairLGBMRanker`.
    """

    def __init__(self, data: Any, **options: Any) -> None:
        super().__init__(as_rows(data), fairness(**options))

    def __call__(self, first: Any, second: Any) -> tuple[str, float, bool]:
        """Give the metric for the arguments of `fair_objective`.

        Parameters
        ----------
        first, second : ndarray or Dataset
            (scores, Dataset) or (relevance, scores).

        Returns
        -------
        tuple
            The name, the gap, and False: a lower gap is better.
        """
        relevance, scores = (first, second) if isinstance(second, np.ndarray) else (second.get_label(), first)
        return self.name, self.value_if_own(relevance, scores), False


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
