"""Networks that see the group: one trained by the loss alone, and a part of the exact offsets on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.aware import OF_THESE_ROWS, has_exact_offsets, offsets_by_strength, scores_by_others
from evenrank.boosting.held_out import Judged
from evenrank.boosting.within_limit import keep_within_limit
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.progress import Progress
from evenrank.rankers.spec import FairnessSpec
from evenrank.torch.limits import LONGER


def check_aware(spec: FairnessSpec, data: RankingData) -> None:
    """Refuse a gap that offsets per group do not close exactly.

    Parameters
    ----------
    spec : FairnessSpec
        What the ranker is asked for.
    data : RankingData
        The rows.
    """
    if not has_exact_offsets(spec, data):
        groups = "" if data.membership is None else ", groups known by probability"
        raise ConfigError(
            "group_aware adds one number per group for the gap of the top k over all queries, of known groups; got "
            f"target={spec.target!r}, scope={spec.scope!r}{groups}. Set target='topk' and scope='amortized' and give "
            "labels, or leave group_aware out."
        )


def trained_with_offsets(
    ranker: Any, data: RankingData, spec: FairnessSpec, progress: Progress | None = None
) -> tuple[NDArray[np.float64], Callable[[float], NDArray[np.float64]]]:
    """Train the network by the loss alone, and learn the offsets on scores by networks of other queries.

    Parameters
    ----------
    ranker : FairNeuralRanker
        The ranker, which is given the network.
    data : RankingData
        The training rows.
    spec : FairnessSpec
        The notion and k.
    progress : Callable, optional
        Called with the fraction done of each training.

    Returns
    -------
    tuple
        The network's scores of the training rows, (n,), in stored order; and what makes of a strength the number of
        each group, (groups,).
    """
    ranker.networks_, ranker.n_iter_ = ranker._trained(data, np.zeros(1), progress)

    def train(_: Any, some: RankingData, rows: NDArray[np.int64]) -> Callable[[Any], NDArray[Any]]:
        networks, _ = ranker._trained(some, np.zeros(1), progress)
        return lambda features: networks.score_rows(np.asarray(features))[:, 0]

    trained = ranker.networks_.score_data(data)[:, 0]
    others = scores_by_others(data.features, data, train) if data.n_queries > 1 else trained
    return trained, offsets_by_strength(others, trained, data, spec)


def fit_with_offsets(
    ranker: Any, spec: FairnessSpec, data: RankingData, judged: Judged, progress: Progress | None
) -> None:
    """Train a ranker that sees the group, at its strength or at the one that ``max_violation`` takes.

    Parameters
    ----------
    ranker : FairNeuralRanker
        The ranker.
    spec : FairnessSpec
        Its spec.
    data : RankingData
        The training rows.
    judged : Judged
        The rows on which ``max_violation`` must hold.
    progress : Callable, optional
        Called with the fraction done of each training.
    """
    if spec.bounded:
        judged.need_gap(spec)
    trained, offsets_at = trained_with_offsets(ranker, data, spec, progress)

    def at(alpha: float) -> NDArray[np.float64]:
        ranker.alpha_, ranker.group_offset_ = alpha, offsets_at(alpha)
        return trained

    if not spec.bounded:
        at(float(ranker.alpha))
        return
    last = () if judged.held_out else [(OF_THESE_ROWS, at)]
    keep_within_limit(ranker, spec, judged, at, last, longer=LONGER)
