"""How training with XGBoost stops early."""

from __future__ import annotations

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
    """

    def __init__(self, stopping: Any) -> None:
        super().__init__()
        self.stopping = stopping

    def before_training(self, model: Any) -> Any:
        """Begin; see XGBoost's ``TrainingCallback``."""
        return self.stopping.before_training(model)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Take in a round, and say whether to stop."""
        return epoch >= SETTLED and bool(self.stopping.after_iteration(model, epoch, evals_log))

    def after_training(self, model: Any) -> Any:
        """End, with the best model alone if that was asked for."""
        return self.stopping.after_training(model)


def settled(callbacks: list[Any] | None, patience: int | None) -> list[Any]:
    """Give callbacks whose early stopping is `Settled`, ``early_stopping_rounds`` among them."""
    more = [] if patience is None else [callback.EarlyStopping(rounds=patience)]
    every = [*(callbacks or []), *more]
    return [Settled(each) if isinstance(each, callback.EarlyStopping) else each for each in every]
