"""Metrics of boosted rankers during training: the gap of the top k, and NDCG subject to a limit on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.held_out import Judged
from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation


def metric_name(name: str) -> str:
    """Give a metric's name as the libraries and trackers take it.

    XGBoost splits what it reports at spaces, and MLflow takes letters, digits and ``_./-`` (it writes @ as "_at_").

    Parameters
    ----------
    name : str
        A name, perhaps of a notion of the user's own.

    Returns
    -------
    str
        The name without other marks.
    """
    return re.sub(r"[^\w@./-]+", "_", name)


class ConstrainedNDCG(TopViolation):
    """NDCG@k where the gap of the top k is within a limit, and minus the gap where it is not: higher is better.

    So every model within the limit is better than any that is not, and among the latter a smaller gap is better.

    Parameters
    ----------
    data : RankingData
        The rows.
    spec : FairnessSpec
        The notion, scope and k.
    max_violation : float
        The limit.
    """

    def __init__(self, data: RankingData, spec: FairnessSpec, max_violation: float) -> None:
        super().__init__(data, spec)
        check_number(max_violation, "max_violation", least=0)
        self.limit = float(max_violation)
        self.name = metric_name(f"ndcg@{spec.k}_with_{spec.gap_name}_up_to_{self.limit:g}")

    def value(self, scores: NDArray[Any]) -> float:
        """Give the metric for scores (n,) in stored order; NaN where the rows lack a group."""
        gap = super().value(scores)
        return -gap if not gap <= self.limit else Judged(None, self.data).quality(scores, self.k)


class EvaluationMetric:
    """The metric of a ranker's own evaluation sets, whose groups it was given.

    Parameters
    ----------
    sets : sequence of Judged
        The sets.
    spec : FairnessSpec
        The notion, scope and k.
    limit : float or None
        The limit of `ConstrainedNDCG`; None is the gap itself.
    shifted : Callable
        Gives scores with what is now added to those of each group.
    """

    def __init__(
        self,
        sets: Sequence[Judged],
        spec: FairnessSpec,
        limit: float | None,
        shifted: Callable[[NDArray[Any], RankingData], NDArray[Any]],
    ) -> None:
        self.higher_is_better, self.shifted = limit is not None, shifted
        self.metrics = [
            TopViolation(each.data, spec) if limit is None else ConstrainedNDCG(each.data, spec, limit) for each in sets
        ]
        self.name = metric_name(self.metrics[0].name)
        self._relevance = [metric.data.relevance.astype(np.float32) for metric in self.metrics]
        self._calls = [0] * len(self.metrics)

    def value(self, relevance: NDArray[Any], scores: NDArray[Any]) -> float:
        """Give the metric of the set that has this relevance.

        Parameters
        ----------
        relevance, scores : ndarray
            (n,) each, in stored order.

        Returns
        -------
        float
            The metric; NaN for rows that are none of the sets.
        """
        given = np.asarray(relevance, np.float32)
        own = [number for number, labels in enumerate(self._relevance) if np.array_equal(labels, given)]
        if not own:
            return float("nan")
        # Sets of the same labels (the same rows by two attributes) come in their order, once per round.
        number = min(own, key=lambda each: self._calls[each])
        self._calls[number] += 1
        metric = self.metrics[number]
        return metric.value(self.shifted(np.asarray(scores, np.float64), metric.data))
