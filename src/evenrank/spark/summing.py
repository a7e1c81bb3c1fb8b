"""`moments` and `fit`: linear training on Spark, from sums that the workers make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import polars as pl
from numpy.typing import ArrayLike

from evenrank.errors import ConfigError, DataError
from evenrank.io.columns import Columns
from evenrank.io.stream_moments import Summing, asked, plain_labels, sorted_groups
from evenrank.io.values import labels
from evenrank.labels import is_missing
from evenrank.linear.asked import several_notions
from evenrank.linear.moment_design import refuse_rows
from evenrank.linear.path import FairnessPath, fairness_path
from evenrank.losses import LOSSES
from evenrank.moments import Moments
from evenrank.notions import NotionLike, as_notion
from evenrank.spark.parts import (
    collected,
    column,
    frames,
    query_frames,
    row_of_batch,
    settled,
    summarised,
    together,
)

# More groups than this are ids that were named as the group.
MOST_GROUPS = 10_000


def moments(
    df: Any,
    notions: Sequence[NotionLike] | None = None,
    *,
    query: str = "qid",
    relevance: str = "relevance",
    group: str | None = "group",
    item: str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    relevance_threshold: float = 1.0,
    ignore: Sequence[str] = (),
    group_aware: bool = False,
    target: str = "score",
    within: bool = False,
) -> Moments:
    """Sum what linear training needs on the workers of the DataFrame's own session.

    Each partition becomes sums of d² numbers, which are merged on the workers until eight are left for the driver. Rows
    move between workers only where sums are of whole queries (target "centered", ``within``, or a notion of your own).

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows.
    notions : sequence, optional
        By default the three named ones, or none where there are fewer than two groups.
    query, relevance, group, item, features, sample_weight, relevance_threshold, ignore
        The columns, as in `evenrank.read`; features are by default all other columns of numbers.
    group_aware, target, within
        See `evenrank.Moments.of`.

    Returns
    -------
    Moments
        Equal to those of the rows in memory, up to the rounding of sums.
    """
    columns = Columns(
        query=query,
        relevance=relevance,
        group=group,
        item=item,
        features=None if features is None else tuple(features),
        sample_weight=sample_weight,
        relevance_threshold=relevance_threshold,
        ignore=tuple(ignore),
    )
    columns, plan = settled(df, columns)
    names: tuple[Any, ...] = ()
    rows: tuple[int, ...] = ()
    if group is not None and (notions is None or notions or group_aware):
        names, rows = sorted_groups(group_counts(df, group))
    summing = asked(columns, tuple(plan.features or ()), notions, group_aware, target, within, names, rows)
    chosen = df.select(*map(column, summing.names))
    if summing.whole_queries:
        chosen = together(chosen, query)
    total = summarised(chosen, partial(_sums, summing), _added)
    if total is None:
        raise DataError("the DataFrame has no rows; at least one is needed.")
    return _with_notions(total, summing)


def group_counts(df: Any, group: str) -> Counter[Any]:
    """Count the rows of each group label on the workers, missing ones aside."""
    table = collected(df.groupBy(column(group).alias("label")).count().limit(MOST_GROUPS + 1))
    if table.num_rows > MOST_GROUPS:
        raise ConfigError(f"group column {group!r} has more than {MOST_GROUPS} labels. Is it an id?")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    counts: Counter[Any] = Counter()
    if not frame.height:
        return counts
    for label, number in zip(labels(plain_labels(frame["label"])).tolist(), frame["count"].to_list(), strict=True):
        if not is_missing(label):
            counts[label] += number
    return counts


def _sums(summing: Summing, batches: Iterator[Any]) -> dict[str, Any] | None:
    """A partition's sums; notions stay on the driver, where they came from."""
    parts = query_frames(batches, summing.columns.query) if summing.whole_queries else frames(batches)
    total = summing.moments((row_of_batch, frame) for frame in parts)
    if total is None:
        return None
    return {field.name: getattr(total, field.name) for field in fields(total) if field.name != "notions"}


def _added(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    total = Moments(notions=(), **first) + Moments(notions=(), **second)
    return {field.name: getattr(total, field.name) for field in fields(total) if field.name != "notions"}


def _with_notions(sums: dict[str, Any], summing: Summing) -> Moments:
    return replace(Moments(notions=(), **sums), notions=tuple(as_notion(notion) for notion in summing.notions))


def fit(
    df: Any,
    notion: NotionLike | Sequence[str] = "equal_opportunity",
    alphas: ArrayLike | None = None,
    *,
    query: str = "qid",
    relevance: str = "relevance",
    group: str | None = "group",
    item: str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    relevance_threshold: float = 1.0,
    ignore: Sequence[str] = (),
    solver: str = "exact",
    target: str = "score",
    loss: str = "squared",
    group_aware: bool = False,
    **options: Any,
) -> FairnessPath:
    """Train linear rankers for every strength, from one pass over the rows on the workers.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows.
    notion, alphas, solver, target, loss, group_aware, **options
        See `evenrank.fairness_path`; what goes through rows again (sgd, logistic loss, per-query gaps) is refused.
    query, relevance, group, item, features, sample_weight, relevance_threshold, ignore
        The columns, as in `evenrank.read`; features are by default all other columns of numbers.

    Returns
    -------
    FairnessPath
        One model per strength; ``path.ranker(alpha)`` gives one that can be saved, and that `rank` takes.
    """
    for name, value in (("solver", solver), ("target", target), ("loss", loss)):
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be a name; got {value!r}.")
    refuse_rows(solver=solver, scope=options.get("scope", "amortized"), target=target, loss=loss)
    several = several_notions(notion) or [notion]
    summed = moments(
        df,
        several if group is not None else [],
        query=query,
        relevance=relevance,
        group=group,
        item=item,
        features=features,
        sample_weight=sample_weight,
        relevance_threshold=relevance_threshold,
        ignore=ignore,
        group_aware=group_aware,
        target=target,
        within=LOSSES[loss].within,
    )
    return fairness_path(
        summed,
        notion,
        alphas,
        solver,
        target=target,
        loss=loss,
        group_aware=group_aware,
        **options,
    )
