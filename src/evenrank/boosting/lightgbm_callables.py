"""For your own training code with LightGBM: the fair objective, and metrics that know groups."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.group_chances import BINNED_ROWS, BINS, LEAF_ROWS, LEAVES, RATE, RIDGE, TREES
from evenrank.boosting.metrics import ConstrainedNDCG, EvaluationMetric, metric_name
from evenrank.boosting.objective import FairObjective, ObjectiveOnRows, fairness
from evenrank.boosting.own_rows import refuse_other_rows
from evenrank.boosting.rows import as_rows
from evenrank.boosting.rules import lightgbm_rule
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.quiet import first_line
from evenrank.rankers.top_violation import TopViolation


def small_classifier(n_jobs: int | None = 1) -> Any:
    """Make the untrained classifier that tells what features say of the group; see `group_chances`."""
    return require("lightgbm").LGBMClassifier(
        n_estimators=TREES,
        num_leaves=LEAVES,
        min_child_samples=LEAF_ROWS,
        learning_rate=RATE,
        reg_lambda=RIDGE,
        max_bin=BINS,
        subsample_for_bin=BINNED_ROWS,
        n_jobs=n_jobs,
        verbose=-1,
    )


def of_scores(objective: FairObjective) -> Any:
    """Make the function of labels and scores that LGBMRanker takes for an objective."""

    def derivatives(relevance: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return objective(scores)

    derivatives.__signature__ = signature(derivatives)  # type: ignore[attr-defined]  # LGBMModel asks in every round
    return derivatives


def of_labels(metric: EvaluationMetric) -> Any:
    """Make the function of labels and scores that LGBMRanker takes for a metric."""

    def evaluated(relevance: NDArray[Any], scores: NDArray[Any]) -> tuple[str, float, bool]:
        return metric.name, metric.value(relevance, scores), metric.higher_is_better

    return evaluated


def understood(error: Exception) -> Exception:
    """Give an error in words where LightGBM names a line of its source, or labels that its NDCG does not take."""
    if any(part in str(error) for part in ("for ranking task", "number of label mappings")):
        return DataError(
            f"LightGBM's NDCG needs relevance in whole numbers, one label_gain for each (31 by default): "
            f"{first_line(error).rstrip(',.')}. Round it, pass label_gain, or set metric='None'."
        )
    if "num_features()" not in str(error):
        return error
    return DataError(
        "LightGBM found no feature to split by: all are constant, or there are fewer rows than two leaves take. "
        "Give it more rows, or a smaller min_child_samples."
    )


class fair_objective(ObjectiveOnRows):
    """The fair objective for your own training code: ``params["objective"]`` of lightgbm.train, or LGBMRanker's.

    Parameters
    ----------
    data : RankingData or tuple
        The training rows, or their (relevance, sensitive_features, qid), (n,) each. The rows of a query stand together.
    objective : str
        "lambdarank", "rank_xendcg", "logistic" or "squared".
    params : dict, optional
        LightGBM's; sigmoid, lambdarank_truncation_level, lambdarank_norm, label_gain and objective_seed are used.
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
    classifier = staticmethod(small_classifier)

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
        relevance, scores = (first, second) if isinstance(second, np.ndarray) else (second.get_label(), first)
        refuse_other_rows(self.objective.data, relevance, "lightgbm")
        return self.objective(scores)


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
        self.name = metric_name(self.name)

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


class fair_ndcg(ConstrainedNDCG):
    """NDCG@k subject to a limit on the gap of the top k: a ``feval`` of lightgbm.train, or ``eval_metric``.

    It is minus the gap where that is above the limit, so early stopping prefers every model within it to every other.
    NDCG is that of `er.measure`, with gains linear in the relevance. For rows other than its own the metric is NaN.

    Parameters
    ----------
    data : RankingData or tuple
        The rows, as in `fair_objective`.
    max_violation : float
        The limit.
    **options : Any
        notion, k and scope, as in `FairLGBMRanker`.
    """

    def __init__(self, data: Any, max_violation: float, **options: Any) -> None:
        super().__init__(as_rows(data), fairness(**options), max_violation)

    def __call__(self, first: Any, second: Any) -> tuple[str, float, bool]:
        """Give the name, the metric and True, for the arguments of `fair_metric`: a higher one is better."""
        relevance, scores = (first, second) if isinstance(second, np.ndarray) else (second.get_label(), first)
        return self.name, self.value_if_own(relevance, scores), True
