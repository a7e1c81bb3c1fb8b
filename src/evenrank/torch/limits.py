"""Networks judged by ``max_violation``: by the rows of training, by queries kept aside, or by an evaluation set."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.eval_sets import as_sets
from evenrank.boosting.held_out import Judged, check_held_out, check_limits, kept_aside, warn_if_above
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.linear.strengths import strength_grid
from evenrank.measures import measure
from evenrank.progress import Progress
from evenrank.rankers.search import least_loss_of
from evenrank.rankers.spec import FairnessSpec
from evenrank.row_checks import listed
from evenrank.torch.pull import told_groups

LONGER = "Train longer"


def parted(
    rows: RankingData, spec: FairnessSpec, fraction: float | None, eval_set: Any
) -> tuple[RankingData, RankingData | None]:
    """Keep queries aside, if that is asked for.

    Parameters
    ----------
    rows : RankingData
        The rows of `fit`.
    spec : FairnessSpec
        What the ranker is asked for.
    fraction : float or None
        ``validation_fraction``.
    eval_set : Any
        That of `fit`, which is judged by instead.

    Returns
    -------
    tuple of RankingData
        The rows to train on, and those kept aside or None.
    """
    check_limits(fraction, None, [] if eval_set is None else [eval_set], spec)
    if eval_set is not None and not spec.bounded:
        raise ConfigError(
            "eval_set is for max_violation, which is not set: a network does not stop early. Set max_violation, or "
            "leave eval_set out."
        )
    if eval_set is not None or fraction is not None:
        check_held_out(spec)
    if fraction is None:
        return rows, None
    aside = kept_aside(rows, fraction)
    return rows.take(~aside), rows.take(aside)


def evaluation_rows(ranker: Any, eval_set: Any, eval_qid: Any, eval_sensitive_features: Any) -> RankingData | None:
    """Give the rows of an evaluation set, checked and filled as those of `predict`.

    Parameters
    ----------
    ranker : FairNeuralRanker
        The ranker, which knows its features already.
    eval_set, eval_qid, eval_sensitive_features
        See `FairNeuralRanker.fit`.

    Returns
    -------
    RankingData or None
        The rows, with groups.
    """
    sets, parts = as_sets(eval_set), {"eval_qid": eval_qid, "eval_sensitive_features": eval_sensitive_features}
    if sets is None:
        for name, given in parts.items():
            if given is not None:
                raise ConfigError(f"{name} is for the rows of an eval_set; got none. Leave it out.")
        return None
    if len(sets) != 1:
        raise ConfigError(f"eval_set must be one set of rows, by which max_violation is judged; got {len(sets)}.")
    qid, labels = (_of_the_one(name, given) for name, given in parts.items())
    if isinstance(sets[0], RankingData):
        if qid is not None:
            raise ConfigError("an eval_set of RankingData has its queries; leave out eval_qid.")
        rows: RankingData = ranker._rows_to_score(sets[0], labels)
    else:
        if qid is None:
            raise ConfigError("pass eval_qid=[…], the query ids of the eval_set.")
        features = ranker._rows_to_score(sets[0][0], reorder=True)
        rows = RankingData.from_arrays(
            features.features,
            sets[0][1],
            labels,
            qid,
            feature_names=features.feature_names,
            relevance_threshold=ranker.relevance_threshold,
        )
    if rows.n_groups < 2:
        raise ConfigError(
            "max_violation on an eval_set needs its groups, at least two: pass eval_sensitive_features=[…]; got "
            f"{listed(rows.group_names)}."
        )
    return rows


def _of_the_one(name: str, given: Any) -> ArrayLike | None:
    """What a list that has one part for each evaluation set holds for the only one."""
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != 1 or np.ndim(given[0]) != 1:
        form = f"{type(given).__name__} of {len(given)}" if hasattr(given, "__len__") else type(given).__name__
        raise ConfigError(f"{name} must be a list that holds one array, for the one eval_set; got a {form}.")
    return given[0]  # type: ignore[no-any-return]


def fit_within_limit(
    ranker: Any, spec: FairnessSpec, data: RankingData, judged: Judged, progress: Progress | None
) -> None:
    """Train networks at several strengths, and leave the ranker with the one that ``max_violation`` takes.

    Parameters
    ----------
    ranker : FairNeuralRanker
        The ranker.
    spec : FairnessSpec
        Its spec, with ``max_violation``.
    data : RankingData
        The training rows.
    judged : Judged
        The rows on which the limit must hold.
    progress : Callable, optional
        Called with the fraction done of each training.
    """
    assert spec.max_violation is not None
    data.need_numbers("a network")
    judged.need_gap(pooled := replace(spec, scope="amortized"))  # which is what the limit is on at any scope
    chances = told_groups(data, spec.notion)

    def tried(strengths: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
        networks, taken = ranker._trained(data, strengths, progress, chances)
        scores = ranker._network_scores(judged.data, networks)
        with warnings.catch_warnings():
            if strengths.any():  # what the rows lack was said at strength 0
                warnings.simplefilter("ignore", DataWarning)
            gaps, quality = _values(judged, scores, pooled)
        return (networks, taken, strengths), gaps, quality

    (networks, taken, strengths), chosen, models = least_loss_of(
        spec.max_violation, strength_grid(), tried, all_of_them=not judged.held_out
    )
    ranker.networks_, ranker.n_iter_, ranker.alpha_ = networks.one(chosen), taken, float(strengths[chosen])
    ranker.tried_ = models
    gap = next(gap for alpha, gap, _ in models if alpha == ranker.alpha_)
    warn_if_above(gap, spec, ranker.alpha_, judged.in_words(len(models)), longer=LONGER)


def _values(
    judged: Judged, scores: NDArray[Any], spec: FairnessSpec
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The gap that counts and NDCG of every model, (models,) each; scores are (n, models), in stored order."""
    quality = f"ndcg@{spec.k}"
    if judged.held_out:
        gaps = np.array([judged.gap(column, spec) for column in scores.T])
        ndcg = np.asarray(measure(judged.data.to_caller(scores), judged.data, [quality])[quality])
    else:
        found = measure(judged.data.to_caller(scores), judged.data, [spec.gap, quality])
        gaps, ndcg = (np.asarray(each) for each in found.values())
    return np.nan_to_num(gaps, nan=np.inf), np.nan_to_num(ndcg)
