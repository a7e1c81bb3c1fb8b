"""LightGBM's ranker made fair: LambdaRank, logistic or squared loss plus α·Γ, through its custom objective."""

from __future__ import annotations

from inspect import signature
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.file import columns, loaded, saved
from evenrank.boosting.lightgbm_text import checked_text
from evenrank.boosting.objective import BASES, TARGET, FairBoosted, FairObjective, base_gradients, fairness
from evenrank.boosting.parameters import LIGHTGBM, changes_prediction
from evenrank.boosting.rows import as_rows, each_in_order, eval_rows, fit_rows, in_order, library_features
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.notions import NotionLike
from evenrank.quiet import first_line
from evenrank.rankers import model_file
from evenrank.rankers.spec import FairnessSpec
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
    notion : "demographic_parity", "equal_opportunity", "equalized_odds", their short names dp, eop, eod, or a `Notion`
    alpha : the strength of the fairness term beside the mean loss of a row. (LightGBM's own ``alpha`` is for objectives
        that do not rank.)
    target : what is equalised: "topk", "exposure", "score" or "probability"; see `evenrank.targets`
    max_violation : instead of ``alpha``, the violation of the top k to reach on the training rows
    scope : "amortized" over all queries, or "per_query"
    k : the cut-off of "topk" and of ``max_violation``
    temperature : softness of "topk" and "exposure"
    relevance_threshold : relevance at or above it counts as relevant in notions
    objective : "lambdarank", "logistic" or "squared"
    **kwargs : LGBMRanker's own

    Attributes
    ----------
    alpha_ : the strength at the end; found in training with ``max_violation``
    violation_ : the violation of the top k on the training rows (NaN without groups)

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

    def __init__(
        self,
        *,
        notion: Any = "equal_opportunity",
        alpha: float = 1.0,
        target: str = TARGET,
        max_violation: float | None = None,
        scope: str = "amortized",
        k: int = 5,
        temperature: float | None = None,
        relevance_threshold: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notion = notion
        self.alpha = alpha
        self.target = target
        self.max_violation = max_violation
        self.scope = scope
        self.k = k
        self.temperature = temperature
        self.relevance_threshold = relevance_threshold

    def set_params(self, **params: Any) -> FairLGBMRanker:
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

        Queries are ids a row in any order (``qid``, ``eval_qid``) or LightGBM's sizes (``group``, ``eval_group``).
        The remaining arguments are LGBMRanker's.
        """
        X, data, names = fit_rows(
            X,
            y,
            qid,
            group,
            sensitive_features,
            sample_weight,
            notion=self.notion,
            relevance_threshold=self.relevance_threshold,
        )
        FairnessSpec.of(self).check_groups(data)
        if eval_X is not None:
            eval_set = [(eval_X, eval_y)] if not isinstance(eval_X, tuple) else list(zip(eval_X, eval_y, strict=True))
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
        """LGBMRanker's, which gives the scores of X in the order of its rows; X may be a `RankingData`."""
        if isinstance(X, RankingData):
            return X.to_caller(super().predict(columns(X, self.feature_names_), *args, **kwargs))
        return super().predict(library_features(X, getattr(self, "feature_names_", None)), *args, **kwargs)  # type: ignore[no-any-return, unused-ignore]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, which `evenrank.load` reads; LightGBM's own model text is in it."""
        text = lambda: self.booster_.model_to_string()  # noqa: E731
        model_file.write(saved(self, "LightGBM", text, checked_text, LIGHTGBM), path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> FairLGBMRanker:
        """The ranker of a model file's content; ``name`` is the file's."""
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
        rule = lambdarank_rule(self.get_params()) if name == "lambdarank" else None
        return self._objective_on(data, name, rule)


def _evaluated(sets: Any) -> dict[str, Any]:
    """Evaluation sets in the form this LightGBM likes: from 4.7 on, tuples of X and y."""
    if sets is None:
        return {}
    if "eval_X" not in signature(lightgbm.LGBMRanker.fit).parameters:
        return {"eval_set": sets}
    return {"eval_X": tuple(X for X, _ in sets), "eval_y": tuple(y for _, y in sets)}


def lambdarank_rule(params: dict[str, Any]) -> Any:
    """LightGBM's LambdaRank for its parameters sigmoid, lambdarank_truncation_level, lambdarank_norm and label_gain."""
    from evenrank.boosting.lambdarank import LambdaRank

    gains = params.get("label_gain") or ()
    if isinstance(gains, str):
        gains = [float(part) for part in gains.split(",")]
    norm = str(params.get("lambdarank_norm", True)).lower() not in ("false", "0")
    return LambdaRank(
        truncation=int(params.get("lambdarank_truncation_level", 30)),
        sigma=float(params.get("sigmoid", 1.0)),
        by_difference=norm,
        by_sum=norm,
        gains=tuple(gains),
    )


# ---------------------------------------------------------------------- for training code of one's own


class fair_objective:
    """The fair objective for training code of one's own: ``params["objective"]`` of lightgbm.train, or LGBMRanker's.

    Parameters
    ----------
    data : a `RankingData`, or (relevance, sensitive_features, qid); rows as LightGBM has them: query after query
    objective : "lambdarank", "logistic" or "squared"
    params : LightGBM's, for sigmoid, lambdarank_truncation_level, lambdarank_norm and label_gain
    **options : notion, alpha, target, scope, k, temperature, max_violation, as in `FairLGBMRanker`

    Examples
    --------
    >>> import evenrank as er, lightgbm
    >>> data = er.datasets.german_credit("age")
    >>> sizes = [int(size) for size in np.diff(data.query_ptr)]
    >>> rows = lightgbm.Dataset(data.features, data.relevance, group=sizes)
    >>> objective = fair_objective(data, notion="dp", alpha=0.5)
    >>> booster = lightgbm.train({"objective": objective, "verbose": -1, "num_threads": 1}, rows, 5)
    """

    def __init__(
        self, data: Any, *, objective: str = "lambdarank", params: dict[str, Any] | None = None, **options: Any
    ) -> None:
        rows = as_rows(data)
        rule = lambdarank_rule(params or {}) if objective == "lambdarank" else None
        self.objective = FairObjective(rows, base_gradients(objective, rows, rule), fairness(**options))

    def __call__(self, one: Any, two: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(scores, Dataset), as lightgbm.train calls it, or (relevance, scores), as LGBMRanker does."""
        return self.objective(two if isinstance(two, np.ndarray) else one)


class fair_metric(TopViolation):
    """The violation of the top k on given rows, as a ``feval`` of lightgbm.train or ``eval_metric`` of the rankers.

    A metric is called for every evaluation set and knows its own rows only; of other sets it says NaN.

    Parameters
    ----------
    data : a `RankingData`, or (relevance, sensitive_features, qid); rows as LightGBM has them: query after query
    notion, k, scope : as in `FairLGBMRanker`
    """

    def __init__(self, data: Any, **options: Any) -> None:
        super().__init__(as_rows(data), fairness(**options))

    def __call__(self, one: Any, two: Any) -> tuple[str, float, bool]:
        """(scores, Dataset), as lightgbm.train calls it, or (relevance, scores), as LGBMRanker does."""
        relevance, scores = (one, two) if isinstance(two, np.ndarray) else (two.get_label(), one)
        return self.name, self.value_if_own(relevance, scores), False


def train_scores(
    train: RankingData, test: RankingData, notion: NotionLike, alpha: float, **settings: Any
) -> NDArray[np.float64]:
    """Scores of the test rows, in the caller's order, by a ranker trained for a sweep (one thread, silent)."""
    ranker = FairLGBMRanker(notion=notion, alpha=alpha, **{"n_jobs": 1, "verbose": -1, **settings})
    return np.asarray(ranker.fit(train).predict(test), np.float64)
