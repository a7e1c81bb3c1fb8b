"""The arguments of LGBMRanker's ``fit``, in the forms that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

from evenrank.boosting.lightgbm_callables import of_scores
from evenrank.boosting.lightgbm_text import with_objective
from evenrank.boosting.objective import FairObjective
from evenrank.boosting.parameters import changes_prediction
from evenrank.boosting.pull import SETTLED
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.extras import require

# Other names of ``n_estimators``.
TREES = {"num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds", "nrounds"}
TREES |= {"num_boost_round", "max_iter"}
BOOSTING = ("boosting_type", "boosting", "boost")
# Parameters, with the values at which no round changes earlier trees, and the scores of training are those of `predict`
# to the last bit.
PLAIN: dict[str, tuple[Any, ...]] = dict.fromkeys(BOOSTING, (None, "gbdt", "gbrt"))
PLAIN |= dict.fromkeys(("linear_tree", "linear_trees"), (None, False))
MACHINE = ("n_jobs", "num_threads", "num_thread", "nthread", "nthreads", "verbose", "verbosity")
# How the text of a model names a loss that is no objective of LightGBM's; its scores are those of the trees. Squared is
# its regression; its logistic loss, "binary", would make probabilities of the scores.
TEXT_OBJECTIVE = {"squared": "regression", "logistic": "regression"}
# Other names of ``early_stopping_round``.
PATIENCE = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


def listed(metrics: Any) -> list[Any]:
    """Give metrics, none, one or several, as a list."""
    return [] if metrics is None else list(metrics) if isinstance(metrics, list | tuple) else [metrics]


def categorical_features(data: Any) -> dict[str, Any]:
    """Name the features that hold categories, as an argument of ``fit``; LightGBM finds those of frames itself."""
    return (
        {"categorical_feature": [data.feature_names.index(name) for name in data.categories]} if data.categories else {}
    )


def is_plain(params: dict[str, Any]) -> bool:
    """Whether the first trees of a ranker with these parameters are a model of their own; see `PLAIN`."""
    return all(params.get(name) in usual for name, usual in PLAIN.items())


def without_evaluation(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``fit`` that decide the trees alone; of the callbacks, those that set parameters."""
    kept = {name: value for name, value in given.items() if not name.startswith("eval_")}
    if kept.get("callbacks"):
        kept["callbacks"] = [each for each in kept["callbacks"] if getattr(each, "before_iteration", False)]
    return kept


def of_prediction(params: dict[str, Any]) -> dict[str, Any]:
    """Give the parameters that say something about prediction."""
    return {name: value for name, value in params.items() if name in MACHINE or changes_prediction(name)}


def pairs(eval_set: Any, eval_X: Any, eval_y: Any) -> Any:
    """Give evaluation sets as pairs of X and y, in whichever form they were given."""
    if eval_X is None:
        return eval_set
    return list(zip(eval_X, eval_y, strict=True)) if isinstance(eval_X, tuple) else [(eval_X, eval_y)]


def training_among(sets: list[Any] | None, X: Any, y: Any) -> list[bool]:
    """Tell which evaluation sets are the training rows themselves."""
    return [each is X if isinstance(each, RankingData) else each[0] is X and each[1] is y for each in sets or ()]


def with_training(sets: Any, marked: list[bool], X: Any, relevance: Any) -> Any:
    """Evaluation sets with the training rows in place of those marked: LightGBM knows them as the same objects."""
    return sets and [
        (X, relevance) if same else each for same, each in zip(marked or [False] * len(sets), sets, strict=True)
    ]


def evaluated(sets: Any) -> dict[str, Any]:
    """Evaluation sets in the form this LightGBM likes: from 4.7 on, tuples of X and y."""
    if sets is None:
        return {}
    if "eval_X" not in signature(require("lightgbm").LGBMRanker.fit).parameters:
        return {"eval_set": sets}
    return {"eval_X": tuple(X for X, _ in sets), "eval_y": tuple(y for _, y in sets)}


class Settled:
    """A callback that stops early, and counts rounds from the one on in which trees follow the strength asked for.

    Parameters
    ----------
    stopping : Callable
        What `lightgbm.early_stopping` gives.
    """

    before_iteration = False

    def __init__(self, stopping: Any) -> None:
        self.stopping, self.order = stopping, stopping.order

    def __call__(self, environment: Any) -> None:
        """Take in a round; see LightGBM's ``CallbackEnv``."""
        first = min(environment.begin_iteration + SETTLED, environment.end_iteration - 1)
        if environment.iteration >= first:
            self.stopping(replace(environment, begin_iteration=first))


def settled(asked: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Give the arguments of ``fit`` with callbacks whose early stopping is `Settled`.

    Parameters
    ----------
    asked : dict
        The arguments of ``fit``.
    params : dict
        The parameters of the ranker; ``early_stopping_round`` or another of its names becomes a callback.

    Returns
    -------
    dict
        The arguments to use instead, without such a parameter.
    """
    lightgbm, callbacks = require("lightgbm"), list(asked.get("callbacks") or [])
    patience = next((params[name] for name in PATIENCE if params.get(name)), 0)
    if patience:
        only, least = (params.get(name) for name in ("first_metric_only", "early_stopping_min_delta"))
        loud = params.get("verbosity", params.get("verbose", 1)) > 0
        callbacks.append(lightgbm.early_stopping(patience, bool(only), loud, least or 0.0))
    kind = type(lightgbm.early_stopping(1, verbose=False))
    return asked | {"callbacks": [Settled(each) if isinstance(each, kind) else each for each in callbacks]}


def taken_objective(objective: FairObjective, params: dict[str, Any], asked: dict[str, Any]) -> tuple[Any, Any]:
    """Give an objective in Python, and the arguments of ``fit``, as this LightGBM needs them.

    Parameters
    ----------
    objective : FairObjective
        The objective.
    params : dict
        The parameters of the ranker.
    asked : dict
        The arguments of ``fit``.

    Returns
    -------
    tuple
        The objective and the arguments to use instead.
    """
    if str(params.get("bagging_by_query", False)).lower() not in ("false", "0", "none"):
        raise ConfigError(
            "bagging_by_query grows no trees with an objective in Python (LightGBM 4.7), which alpha > 0 needs. Leave "
            "it out; bagging_fraction and subsample work."
        )
    if {"rf", "random_forest"} & set(map(params.get, BOOSTING)):
        raise ConfigError(
            "LightGBM's random forests take no objective in Python, which alpha > 0 needs. Use boosting_type='gbdt' or "
            "group_aware=True."
        )
    derivatives, callbacks = of_scores(objective), [*(asked.get("callbacks") or []), counting(objective)]
    if "dart" in map(params.get, BOOSTING):
        derivatives, remember = steady_drops(derivatives)
        callbacks.append(remember)
    asked = asked | {"callbacks": callbacks}
    return derivatives, asked if objective.pull is None else settled(asked, params)


def steady_drops(derivatives: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[Any], None]]:
    """Give an objective and a callback with which DART drops the same trees in every equal fit.

    LightGBM (4.7 at least) does not set the mark by which DART knows that it has dropped trees for a round. With an
    objective in Python the first scores are asked for before the first round sets it, and what stood in memory decides
    whether a number is drawn then; all later draws follow from that. Setting any parameter begins them at their seed.

    Parameters
    ----------
    derivatives : Callable
        An objective as LGBMRanker takes it.

    Returns
    -------
    tuple
        The objective to use instead, and the callback that it needs.
    """
    models: list[Any] = []

    def remember(environment: Any) -> None:
        if environment.iteration == environment.begin_iteration:
            models.append(environment.model)

    def steady(relevance: Any, scores: Any) -> Any:
        if models:
            model = models.pop()
            model.reset_parameter({"learning_rate": model.params.get("learning_rate", 0.1)})
        return derivatives(relevance, scores)

    remember.before_iteration = True  # type: ignore[attr-defined]
    steady.__signature__ = signature(steady)  # type: ignore[attr-defined]  # LGBMModel asks in every round
    return steady, remember


def counting(objective: FairObjective) -> Callable[[Any], None]:
    """Make the callback that tells an objective how many trees a continued model had."""

    def count(environment: Any) -> None:
        objective.before = environment.begin_iteration

    count.before_iteration = True  # type: ignore[attr-defined]
    return count


def evaluated_at(history: dict[str, Any], trees: int) -> dict[str, Any]:
    """Give the value of each set's metrics with so many trees, in the form of ``best_score_``."""
    return {name: {metric: values[trees - 1] for metric, values in each.items()} for name, each in history.items()}


def named(booster: Any, loss: str, trees: int = -1) -> Any:
    """Give the same trees, or the first ones alone, in a booster whose text names the loss, as other tools expect."""
    name, learns = TEXT_OBJECTIVE.get(loss, loss), loss != "logistic"
    text = with_objective(booster.model_to_string(num_iteration=trees), name, learns=learns)
    new = require("lightgbm").Booster(model_str=text)
    new.params = {**booster.params, "objective": name} if learns else booster.params
    new.best_iteration, new.best_score = booster.best_iteration, booster.best_score
    if trees > 0:
        new.best_iteration = min(new.best_iteration, trees)
    return new
