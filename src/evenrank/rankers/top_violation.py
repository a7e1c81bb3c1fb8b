"""`TopViolation`: the gap of the top k on some rows, for any notion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataWarning
from evenrank.notions import bind
from evenrank.rankers.spec import FairnessSpec
from evenrank.ranking import Ranking


class TopViolation:
    """Γ of the top k on some rows, as `measure` gives it; scores are in stored order.

    Parameters
    ----------
    data : RankingData
        The rows.
    spec : FairnessSpec
        The notion, scope and k.
    """

    def __init__(self, data: RankingData, spec: FairnessSpec) -> None:
        self.data, self.k = data, spec.k
        self.contrast = bind(spec.notion, data, scope=spec.scope)
        self.name = spec.gap_name

    def value(self, scores: NDArray[Any]) -> float:
        """Give Γ of a ranking.

        Parameters
        ----------
        scores : ndarray
            (n,), one per row in stored order.

        Returns
        -------
        float
            Γ; NaN where the rows lack a group.
        """
        return self.of_gaps(self.gaps(scores))

    def gaps(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Give the signed differences between the groups' shares in the top k.

        Parameters
        ----------
        scores
            As for `value`.

        Returns
        -------
        ndarray
            Signed differences, (J,).
        """
        return self.contrast.gaps(Ranking(scores, self.data.query_ptr).top(self.k))

    def of_gaps(self, gaps: NDArray[Any]) -> float:
        """Give Γ of signed differences.

        Parameters
        ----------
        gaps : ndarray
            Signed differences, (J,), as of `gaps`.

        Returns
        -------
        float
            As for `value`.
        """
        return float("nan") if self.contrast.pairs.missing else float(self.contrast.pairs.value(gaps))

    def value_if_own(self, relevance: NDArray[Any], scores: NDArray[Any]) -> float:
        """Give Γ if the relevance is that of these rows, else NaN: a metric gets other sets as well.

        Parameters
        ----------
        relevance, scores : ndarray
            (n,) each, in stored order.

        Returns
        -------
        float
            Γ, or NaN.
        """
        expected = self.data.relevance.astype(np.float32)
        return self.value(scores) if np.array_equal(np.asarray(relevance, np.float32), expected) else float("nan")


def top_violation(scores: NDArray[Any], data: RankingData, spec: FairnessSpec, *, across: str = "mean") -> float:
    """Give Γ of the top k over all queries.

    Parameters
    ----------
    scores : ndarray
        (n,), in the caller's row order.
    data : RankingData
        The rows.
    spec : FairnessSpec
        The notion and k.
    across : str
        How more than two groups are combined.

    Returns
    -------
    float
        Γ; NaN where the rows lack a group.
    """
    if data.n_groups < 2 or data.membership is not None:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # NaN says it
        contrast = bind(spec.notion, data, across=across)
    if contrast.pairs.missing:
        return float("nan")
    return float(contrast.violation(Ranking(data.to_stored(scores), data.query_ptr).top(spec.k)))
