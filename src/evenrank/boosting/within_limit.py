"""`keep_within_limit`: the model, of those that are trained one after the other, that ``max_violation`` takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from evenrank.boosting.aware import REFINED, STRENGTHS, has_exact_offsets
from evenrank.boosting.held_out import TREES, Judged, warn_if_above
from evenrank.boosting.search import Tried, least_loss_within
from evenrank.errors import DataWarning
from evenrank.rankers.spec import FairnessSpec

# Trains at a strength; gives the scores of the model on the training rows, (n,), where training knows them.
FitAt = Callable[[float], NDArray[Any] | None]


def keep_within_limit(
    ranker: Any,
    spec: FairnessSpec,
    judged: Judged,
    fit_at: FitAt,
    last: Sequence[tuple[float, FitAt]] = (),
    finally_: Sequence[float] = (),
    longer: str = TREES,
) -> float:
    """Train models at several strengths, and leave the ranker with the one that ``max_violation`` takes.

    Parameters
    ----------
    ranker : FairBoosted or FairNeuralRanker
        The ranker, which ``fit_at`` trains.
    spec : FairnessSpec
        Its spec, with ``max_violation``.
    judged : Judged
        The rows on which the limit must hold.
    fit_at : FitAt
        Trains the ranker at a strength.
    last : sequence of tuple
        Strengths and what trains at them otherwise; see `least_loss_within`.
    finally_ : sequence of float
        See `least_loss_within`.
    longer : str
        See `warn_if_above`.

    Returns
    -------
    float
        The gap that the model was judged by.
    """
    assert spec.max_violation is not None
    judged.need_gap(spec)
    trained_so_far: set[bool] = set()  # whether with strength 0, and whether with one above it

    def tried(alpha: float, fit_at: FitAt = fit_at) -> Tried:
        with warnings.catch_warnings():
            if (alpha > 0) in trained_so_far:  # what the rows lack was said the first time
                warnings.simplefilter("ignore", DataWarning)
            trained = fit_at(alpha)
        trained_so_far.add(alpha > 0)
        scores = ranker._scores_of(judged, None if judged.held_out else trained)
        with warnings.catch_warnings():
            if alpha > 0:  # what the rows lack was said at strength 0
                warnings.simplefilter("ignore", DataWarning)
            gap, quality = judged.gap(scores, spec), judged.quality(scores, spec.k)
        return Tried(alpha, gap, quality, dict(ranker.__dict__))

    costless = ranker.group_aware and has_exact_offsets(spec, judged.data)
    grid: Any = {"strengths": STRENGTHS, "refined": REFINED} if costless else {}
    makers = (partial(tried, *each) for each in last)
    best, models = least_loss_within(spec.max_violation, tried, last=makers, finally_=finally_, **grid)
    ranker.__dict__.clear()
    ranker.__dict__.update(best.state)
    ranker.tried_ = [(model.alpha, model.gap, model.quality) for model in sorted(models, key=lambda m: m.alpha)]
    words = judged.in_words(len(models))
    warn_if_above(best.gap, spec, best.alpha, words, group_aware=ranker.group_aware, longer=longer)
    return best.gap
