"""How training with XGBoost stops early."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from evenrank.boosting.pull import SETTLED
from evenrank.extras import require

callback: Any = require("xgboost").callback


class Settled(callback.TrainingCallback):  # type: ignore[misc, name-defined, unused-ignore]
    """Early stopping that counts rounds from the one on in which trees follow the strength asked for.

    Parameters
    ----------
    stopping : xgboost.callback.EarlyStopping
        What stops.
    rounds : int
        How many rounds there are at most; the last one counts in any case.
    """

    def __init__(self, stopping: Any, rounds: int) -> None:
        super().__init__()
        self.stopping, self.first = stopping, min(SETTLED, rounds - 1)

    def before_training(self, model: Any) -> Any:
        """Begin; see XGBoost's ``TrainingCallback``."""
        return self.stopping.before_training(model)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Take in a round, and say whether to stop."""
        return epoch >= self.first and bool(self.stopping.after_iteration(model, epoch, evals_log))

    def after_training(self, model: Any) -> Any:
        """End, with the best model alone if that was asked for."""
        return self.stopping.after_training(model)


class Counting(callback.TrainingCallback):  # type: ignore[misc, name-defined, unused-ignore]
    """Tells an objective how many trees a continued model had.

    Parameters
    ----------
    objective : FairObjective
        Whom it tells.
    """

    def __init__(self, objective: Any) -> None:
        super().__init__()
        self.objective = objective

    def before_training(self, model: Any) -> Any:
        """Begin; see XGBoost's ``TrainingCallback``."""
        self.objective.before = model.num_boosted_rounds()
        return model


def own_stopping(callbacks: Any, *, several: bool) -> list[Any] | None:
    """Give callbacks with copies of those that stop early, which remember what they have seen.

    Parameters
    ----------
    callbacks : sequence or None
        The user's.
    several : bool
        Whether several models are trained with them; if not, kinds of the user's own are left as they are.

    Returns
    -------
    list or None
        The callbacks to train with.
    """
    if callbacks is None:
        return None
    kind = callback.EarlyStopping
    return [
        deepcopy(each) if type(each) is kind or (several and isinstance(each, kind)) else each for each in callbacks
    ]


def settled(callbacks: list[Any] | None, patience: int | None, rounds: int) -> list[Any]:
    """Give callbacks whose early stopping is `Settled`, ``early_stopping_rounds`` among them."""
    more = [] if patience is None else [callback.EarlyStopping(rounds=patience)]
    every = [*(callbacks or []), *more]
    return [Settled(each, rounds) if isinstance(each, callback.EarlyStopping) else each for each in every]


def best_score(history: dict[str, Any], callbacks: Any, trees: int) -> float:
    """Give what early stopping followed, with so many trees: the last metric of the last set unless it names others."""
    stopping = next((each for each in callbacks or () if isinstance(each, callback.EarlyStopping)), None)
    metrics = history[getattr(stopping, "data", None) or list(history)[-1]]
    return float(metrics[getattr(stopping, "metric_name", None) or list(metrics)[-1]][trees - 1])
