"""For your own training code with XGBoost: the fair objective, and metrics that know groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.group_chances import BINS, LEAF_ROWS, LEAVES, RATE, RIDGE, TREES
from evenrank.boosting.metrics import ConstrainedNDCG, metric_name
from evenrank.boosting.objective import ObjectiveOnRows, fairness
from evenrank.boosting.own_rows import refuse_other_rows
from evenrank.boosting.rows import as_rows
from evenrank.boosting.rules import xgboost_rule
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.quiet import first_line
from evenrank.rankers.top_violation import TopViolation

# What XGBoost's metrics say of labels that they do not take, and how we say it.
LABELS = {
    "binary labels": "MAP needs relevance 0 or 1. Make it binary",
    "positive integer": "NDCG needs relevance in whole numbers. Round it, set ndcg_exp_gain=False",
    "lesser than or equal to": "NDCG needs relevance of at most 31. Set ndcg_exp_gain=False",
}


def small_classifier(**options: Any) -> Any:
    """Make the untrained classifier that tells what features say of the group; see `group_chances`.

    Its curvature is p(1 − p) ≤ 1/4 per row, so that a child's weight of a sixth of ``LEAF_ROWS`` is about so many rows.
    """
    return require("xgboost").XGBClassifier(
        **{
            "n_estimators": TREES,
            "max_depth": 3,
            "max_leaves": LEAVES,
            "min_child_weight": LEAF_ROWS / 6,
            "learning_rate": RATE,
            "reg_lambda": RIDGE,
            "max_bin": BINS,
            "n_jobs": 1,
            **options,
        }
    )


def understood(error: Exception) -> Exception:
    """Give an error of the data in words, where XGBoost names its source and stack.

    They are labels that one of its metrics does not take, and a category of a frame that training had not.
    """
    message = first_line(error)
    needed = next((words for part, words in LABELS.items() if part in message), None)
    if needed is not None:
        return DataError(f"XGBoost's {needed}, or name other metrics in eval_metric.")
    if "category not in the training set" not in message:
        return error
    found = message[message.index("Found") :] if "Found" in message else message
    return DataError(f"{found}. Make it missing, or train the model again: then such a category counts as missing.")


class fair_objective(ObjectiveOnRows):
    """The fair objective for your own training code: ``obj`` of xgboost.train. Set ``base_score=0`` beside it.

    Parameters
    ----------
    data, **options
        See `evenrank.lightgbm.fair_objective`.
    objective : str
        "rank:ndcg" (the same as "lambdarank"), "rank:pairwise", "rank:map", "logistic" or "squared".
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
    classifier = staticmethod(small_classifier)

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give first and second derivatives, (n,) each, for scores (n,); ``rows`` is XGBoost's DMatrix."""
        refuse_other_rows(self.objective.data, rows.get_label(), "xgboost")
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
        self.name = metric_name(self.name)

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[str, float]:
        """Give the metric's name and the gap for scores (n,); ``rows`` is XGBoost's DMatrix."""
        return self.name, self.value_if_own(rows.get_label(), scores)


class fair_ndcg(ConstrainedNDCG):
    """NDCG@k subject to a limit on the gap of the top k, as a ``custom_metric`` of xgboost.train.

    Its name begins with ndcg, so XGBoost's early stopping takes a higher one as better.

    Parameters
    ----------
    data, max_violation, **options
        See `evenrank.lightgbm.fair_ndcg`.
    """

    def __init__(self, data: Any, max_violation: float, **options: Any) -> None:
        super().__init__(as_rows(data), fairness(**options), max_violation)

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[str, float]:
        """Give the name and the metric for scores (n,); ``rows`` is XGBoost's DMatrix."""
        return self.name, self.value_if_own(rows.get_label(), scores)
