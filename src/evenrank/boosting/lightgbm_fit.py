"""The arguments of LGBMRanker's ``fit``, in the forms that it takes."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from evenrank.errors import ConfigError
from evenrank.extras import require

# Other names of ``n_estimators``.
TREES = {"num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds", "nrounds"}
TREES |= {"num_boost_round", "max_iter"}
BOOSTING = ("boosting_type", "boosting", "boost")


def listed(metrics: Any) -> list[Any]:
    """Give metrics, none, one or several, as a list."""
    return [] if metrics is None else list(metrics) if isinstance(metrics, list | tuple) else [metrics]


def without_evaluation(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``fit`` that decide the trees alone; of the callbacks, those that set parameters."""
    kept = {name: value for name, value in given.items() if not name.startswith("eval_")}
    if kept.get("callbacks"):
        kept["callbacks"] = [each for each in kept["callbacks"] if getattr(each, "before_iteration", False)]
    return kept


def evaluated(sets: Any) -> dict[str, Any]:
    """Evaluation sets in the form this LightGBM likes: from 4.7 on, tuples of X and y."""
    if sets is None:
        return {}
    if "eval_X" not in signature(require("lightgbm").LGBMRanker.fit).parameters:
        return {"eval_set": sets}
    return {"eval_X": tuple(X for X, _ in sets), "eval_y": tuple(y for _, y in sets)}


def taken_objective(derivatives: Callable[..., Any], params: dict[str, Any], asked: dict[str, Any]) -> tuple[Any, Any]:
    """Give an objective in Python, and the arguments of ``fit``, as this LightGBM needs them.

    Parameters
    ----------
    derivatives : Callable
        The objective as LGBMRanker takes it.
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
    if "dart" not in map(params.get, BOOSTING):
        return derivatives, asked
    derivatives, remember = steady_drops(derivatives)
    return derivatives, asked | {"callbacks": [*(asked.get("callbacks") or []), remember]}


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
