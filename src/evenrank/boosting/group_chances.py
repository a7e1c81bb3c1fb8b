"""What the features tell of a row's group, learned on other queries.

A tree that does not see the group can follow the fairness term in two ways: by features that tell the group on any row,
and by features that single out the training rows of a group. Only the first holds on other queries. So rows are pulled
by the chance of their groups, which a small model of the features, trained on other folds of the queries, gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.rows import in_order
from evenrank.contrasts import Contrast
from evenrank.data import RankingData
from evenrank.notions import Cells
from evenrank.rankers.spec import FairnessSpec

# Of the queries. Where there are rows enough for the small model in one of two folds, two take less time.
FOLDS, FEWEST_FOLDS = 3, 2
# The small model: shallow, few trees, large leaves, and rows of a sample of the queries where there are many. Some of
# these decide LightGBM's bins.
TREES, LEAVES, LEAF_ROWS, RATE, RIDGE, BINS = 10, 8, 50, 0.4, 5.0, 63
MOST_ROWS, BINNED_ROWS = 6_000, 2_000


def group_chances(
    classifier: Any, X: Any, data: RankingData, strata: Iterable[NDArray[np.bool_]] = ()
) -> NDArray[np.float64]:
    """Give each row's chances of the groups, from classifiers that were trained on other queries.

    Parameters
    ----------
    classifier : Callable
        Makes an untrained classifier in scikit-learn's form that takes these features.
    X : array, frame or sparse matrix
        The features, (n, d), in stored order.
    data : RankingData
        The rows, with groups.
    strata : iterable of ndarray
        Rows, (n,), whose gaps count. What tells the group of all rows may mislead among the relevant ones, so
        classifiers of such rows alone are tried, and taken where they tell more.

    Returns
    -------
    ndarray
        (n, groups); all 0 for a row whose group is not known, which no gap counts.
    """
    known = data.group >= 0
    chances = _learned_elsewhere(classifier, X, data, known)
    for stratum in strata:
        rows = stratum & known
        if rows.any() and not rows[known].all():
            apart = _learned_elsewhere(classifier, X, data, rows)
            if _told(apart[rows], data.group[rows]) > _told(chances[rows], data.group[rows]):
                chances[rows] = apart[rows]
    return chances


def _learned_elsewhere(classifier: Any, X: Any, data: RankingData, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The chances of these rows, learned on those of other queries, (n, groups); 0 for all others."""
    chances = np.zeros((data.n_rows, data.n_groups))
    if data.n_queries < 2:
        chances[rows] = np.eye(data.n_groups)[data.group[rows]]  # no other queries to learn from
        return chances
    folds = FEWEST_FOLDS if data.n_rows >= FEWEST_FOLDS * MOST_ROWS else FOLDS
    fold = data.folds(min(folds, data.n_queries), 0)[data.query_of_row]
    sample = np.random.default_rng(0).permutation(data.sorted_queries)
    rank_of_query = np.empty(data.n_queries, np.int64)
    rank_of_query[sample] = np.cumsum(data.lengths[sample])
    drawn = rank_of_query[data.query_of_row] <= max(MOST_ROWS * folds // (folds - 1), data.lengths[sample[0]])
    for number in range(fold.max(initial=0) + 1):
        rest, others = np.flatnonzero((fold == number) & rows), np.flatnonzero((fold != number) & drawn & rows)
        present, codes = np.unique(data.group[others], return_inverse=True)
        if len(present) > 1 and len(rest):
            model = classifier().fit(in_order(X, others), codes)
            chances[rest[:, None], present] = model.predict_proba(in_order(X, rest))
        else:
            chances[rest] = np.eye(data.n_groups)[data.group[rest]]  # nothing to learn from: the groups themselves
    return chances


def _told(chances: NDArray[np.float64], group: NDArray[Any]) -> float:
    """How well chances, (n, groups), tell the groups: their correlation, below 0 where they mislead."""
    actual = np.eye(chances.shape[1])[group]
    actual, chances = actual - actual.mean(axis=0), chances - chances.mean(axis=0)
    size = np.sqrt((chances**2).sum() * (actual**2).sum())
    return float((chances * actual).sum() / size) if size > 0 else 0.0


def known_contrast(contrast: Contrast, data: RankingData, spec: FairnessSpec, chances: NDArray[Any]) -> Contrast:
    """Give the contrast of the same gaps between groups that rows are in by chance.

    Parameters
    ----------
    contrast : Contrast
        Between the groups as they are.
    data : RankingData
        The rows.
    spec : FairnessSpec
        The notion and scope.
    chances : ndarray
        Of `group_chances`, (n, groups).

    Returns
    -------
    Contrast
        Its pairs are those of ``contrast``.
    """
    cells = replace(Cells.of(spec.notion, data), membership=chances)
    by_query: dict[str, Any] = {"unit": data.query_of_row, "n_units": data.n_queries}
    soft = cells.contrast(**(by_query if spec.scope == "per_query" else {}))
    soft.pairs = contrast.pairs
    return soft
