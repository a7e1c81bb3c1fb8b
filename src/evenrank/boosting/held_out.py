"""Rows that a ranker is judged by: those of training, queries kept aside, or an evaluation set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.rows import in_order, query_ids, stored_rows
from evenrank.checks import check_number
from evenrank.confidence import interval
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.measures import measure
from evenrank.notions import Notion
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation

CONFIDENCE = 0.9  # of the interval whose upper end must be within ``max_violation`` on held-out queries: 95 % one-sided
FEWEST_QUERIES = 2  # that an interval needs
OWN_ROWS = "the training rows is"
TREES = "Train more trees"


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with their features, in stored order.

    Attributes
    ----------
    X : array, frame or sparse matrix
        The features, (n, d).
    data : RankingData
        The rows.
    held_out : bool
        Whether they took no part in training.
    start : ndarray, optional
        The scores that rows start from, (n,), to which those of the trees are added.
    """

    X: Any
    data: RankingData
    held_out: bool = False
    start: NDArray[Any] | None = None

    def some(self, queries: NDArray[np.bool_], rows: NDArray[np.int64], *, held_out: bool = False) -> Judged:
        """Give those of some queries, (queries,), whose rows have these numbers."""
        return Judged(in_order(self.X, rows), self.data.take(queries), held_out, in_order(self.start, rows))

    def started(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Add what the rows start from to the scores of the trees, (n,)."""
        precise = np.asarray(scores, np.float64)
        return precise if self.start is None else precise + np.asarray(self.start, np.float64)

    def gap(self, scores: NDArray[Any], spec: FairnessSpec) -> float:
        """Give the gap of the top k; of held-out queries, the upper end of its interval.

        Parameters
        ----------
        scores : ndarray
            (n,), in stored order.
        spec : FairnessSpec
            The notion and k.

        Returns
        -------
        float
            The gap to be compared with ``max_violation``.
        """
        if not self.held_out:
            return TopViolation(self.data, spec).value(scores)
        found = interval(self.data.to_caller(scores), self.data, spec.gap, CONFIDENCE, "analytic").high
        return found if np.isfinite(found) else float("inf")

    def quality(self, scores: NDArray[Any], k: int) -> float:
        """Give NDCG@k.

        Parameters
        ----------
        scores : ndarray
            (n,), in stored order.
        k : int
            The cut-off.

        Returns
        -------
        float
            The mean over queries.
        """
        found = float(measure(self.data.to_caller(scores), self.data, [f"ndcg@{k}"])[f"ndcg@{k}"])
        return found if np.isfinite(found) else 0.0

    def need_gap(self, spec: FairnessSpec) -> None:
        """Refuse a limit on a gap that these rows do not have."""
        if TopViolation(self.data, spec).contrast.pairs.missing:
            rows = "the queries kept aside or evaluated" if self.held_out else "these rows"
            raise ConfigError(f"max_violation needs {spec.gap_name}, which {rows} do not define. Set alpha instead.")

    def in_words(self, tried: int) -> str:
        """Say what a gap is of that was judged by these rows at so many strengths; the number follows."""
        return f"held-out queries may be as large as ({tried} strengths were tried)" if self.held_out else OWN_ROWS


def kept_aside(data: RankingData, fraction: float) -> NDArray[np.bool_]:
    """Choose the queries that take no part in training.

    Parameters
    ----------
    data : RankingData
        The rows.
    fraction : float
        Their share, between 0 and 1.

    Returns
    -------
    ndarray
        (queries,).
    """
    if fraction >= 1 or data.n_queries <= FEWEST_QUERIES:
        raise ConfigError(
            f"validation_fraction must be below 1, of at least {FEWEST_QUERIES + 1} queries; got {fraction:g} of "
            f"{data.n_queries}."
        )
    number = min(max(FEWEST_QUERIES, round(fraction * data.n_queries)), data.n_queries - 1)
    aside = np.zeros(data.n_queries, bool)
    aside[np.random.default_rng(0).permutation(data.sorted_queries)[:number]] = True
    return aside


def judged_sets(
    sets: list[Any] | None,
    groups: Any,
    pairs: Any,
    sizes: Any,
    orders: list[Any],
    starts: Any,
    relevance_threshold: float,
) -> list[Judged]:
    """Make the evaluation sets whose groups are known.

    Parameters
    ----------
    sets : list or None
        What `as_sets` gives.
    groups : list or None
        ``eval_sensitive_features``: the group labels of each set, in the caller's order; `RankingData` has its own.
    pairs, sizes, orders
        Of `eval_rows`, whose rows are in stored order.
    starts : list or None
        What the rows of each set start from, in stored order.
    relevance_threshold : float
        Relevance at or above it counts as relevant.

    Returns
    -------
    list of Judged
        One per set; empty without groups.
    """
    own = [each for each in sets or () if isinstance(each, RankingData)]
    if groups is None and not (own and all(data.n_groups > 1 for data in own)):
        return []
    if sets is None or (groups is not None and len(groups) != len(sets)):
        given = "none" if sets is None else len(sets)
        raise ConfigError(f"eval_sensitive_features must have the groups of each eval_set ({given}); got {len(groups)}")
    judged = []
    for number, (X, y) in enumerate(pairs):
        labels, n = None if groups is None else groups[number], len(y)
        if own:
            data = own[number] if labels is None else own[number].with_group(labels)
        else:
            data = RankingData.from_arrays(
                np.zeros((n, 0)),
                y,
                stored_rows(labels, orders[number], n, "eval_sensitive_features"),
                query_ids(None, sizes[number], n),
                relevance_threshold=relevance_threshold,
            )
        judged.append(Judged(X, data, held_out=True, start=None if starts is None else starts[number]))
    return judged


def check_limits(fraction: Any, limit: Any, sets: Sequence[Any], spec: FairnessSpec) -> None:
    """Refuse limits that would have no effect, as on held-out queries where there are none, and two where one counts.

    Parameters
    ----------
    fraction : float or None
        ``validation_fraction``.
    limit : float or None
        ``eval_max_violation``.
    sets : sequence
        The evaluation sets whose groups are known.
    spec : FairnessSpec
        What the ranker is asked for.
    """
    if fraction is not None:
        if len(sets):
            raise ConfigError(
                f"max_violation is judged by an eval_set or by queries kept aside; got an eval_set and "
                f"validation_fraction={fraction:g}. Leave out one of them."
            )
        check_number(fraction, "validation_fraction", above=0)
        if not spec.bounded:
            raise ConfigError(
                f"validation_fraction={fraction:g} is for max_violation, which is not set: no query would be kept "
                "aside. Set max_violation, or leave it out."
            )
    if limit is not None:
        check_number(limit, "eval_max_violation", least=0)
        if not sets:
            raise ConfigError(
                f"eval_max_violation={limit:g} needs eval_sensitive_features, the groups of each eval_set; got none."
            )


def check_held_out(spec: FairnessSpec) -> None:
    """Refuse what has no interval over held-out queries: gaps within queries, and between masks of other rows."""
    if not isinstance(spec.notion, str | Notion) and not callable(spec.notion):
        raise ConfigError(
            "max_violation on held-out queries needs a notion that other rows have too; got masks of these rows. Pass "
            "a Notion, or a function of the data that gives its masks."
        )
    if spec.scope != "amortized":
        raise ConfigError(
            f"max_violation on held-out queries is for gaps over all queries; got scope={spec.scope!r}. Leave out "
            "validation_fraction and eval_sensitive_features."
        )


def warn_if_above(
    violation: float,
    spec: FairnessSpec,
    alpha: float,
    rows: str = OWN_ROWS,
    *,
    group_aware: bool = False,
    longer: str = TREES,
) -> None:
    """Warn that ``max_violation`` was not reached, if it was not.

    Parameters
    ----------
    violation : float
        The gap of the top k on the rows that are judged.
    spec : FairnessSpec
        The spec of the ranker.
    alpha : float
        The strength that is kept.
    rows : str
        What the gap is of, in words.
    group_aware : bool
        Whether the ranker sees the group already.
    longer : str
        What to do first, in words.
    """
    if spec.max_violation is not None and violation > spec.max_violation:
        warnings.warn(
            f"max_violation={spec.max_violation:g} was not reached: {spec.as_notion.name}@{spec.k} on {rows} "
            f"{violation:.4f} at alpha={alpha:.3g}, the lowest found. {longer}, "
            f"{'' if group_aware else 'let the ranker see the group (group_aware=True), '}or allow a larger violation.",
            DataWarning,
            stacklevel=4,
        )
