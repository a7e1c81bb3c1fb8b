"""Scores of training rows as a ranker would score new ones: by models that were not trained on their queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData

FOLDS = 5


def crossfit_scores(
    data: RankingData, train_scores: Callable[[RankingData, RankingData], NDArray[np.float64]], seed: int = 0
) -> NDArray[np.float64]:
    """Score each fold of the queries by a model of the others.

    A re-ranker that learns from scores must not learn from those of the model's own training rows: they fit their
    labels too well, and a gap among them is not the gap of new lists.

    Parameters
    ----------
    data : RankingData
        The rows.
    train_scores : Callable
        Trains on the first data and gives scores of the second, (n,), in the caller's row order.
    seed : int
        Seeds the folds.

    Returns
    -------
    ndarray
        Scores, (n,), in the caller's row order. Of one query alone, those of the model trained on it.
    """
    if data.n_queries < 2:
        return train_scores(data, data)
    fold = data.folds(min(FOLDS, data.n_queries), seed)
    out = np.empty(data.n_rows)
    for number in range(fold.max() + 1):
        rest, part = data.take(fold != number), data.take(fold == number)
        out[fold[data.query_of_row] == number] = part.to_stored(train_scores(rest, part))
    return data.to_caller(out)
