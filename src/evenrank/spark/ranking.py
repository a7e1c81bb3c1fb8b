"""`rank`: rows scored by any of our models and put in order on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from evenrank.errors import ConfigError
from evenrank.io.columns import Columns, MissingColumn
from evenrank.methods.ranked_frames import SCORE, ListRanking
from evenrank.rankers.matching import model_columns
from evenrank.spark.parts import (
    check_frame,
    collected,
    column,
    frames,
    mapped,
    query_frames,
    row_of_batch,
    settled,
    together,
)


def rank(
    df: Any,
    model: Any,
    *,
    query: str = "qid",
    item: str | None = None,
    relevance: str | None = None,
    group: str | None = None,
    top: int | None = None,
) -> Any:
    """Score rows with a model and put each query's in order, as ``evenrank rank`` does.

    Rows are scored where they are; then ids and scores alone, without the features, are brought together by query.
    Workers need evenrank and the model's library.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows.
    model : ranker
        Any of ours, trained or from `evenrank.load`; one re-ranked with a fitted offset too. One that is fitted anew to
        all lists (``offset_adaptive``) is refused.
    query, item : str
        Their columns; ``item=None`` takes the column ``item`` if there is one. Without item ids, rows of equal score
        come in no particular order.
    relevance, group : str, optional
        Columns that are carried along; ``relevance`` and ``group`` if there are columns of these names.
    top : int, optional
        The number of places to keep per query.

    Returns
    -------
    pyspark.sql.DataFrame
        Query, item, rank, score, relevance and group, as far as they are there. Nothing runs before it is used.
    """
    check_frame(df)
    if not hasattr(model, "predict"):
        raise ConfigError(f"model must give scores; got {type(model).__name__}. Pass a ranker, or use er.spark.offset.")
    wanted, categorical = model_columns(model)
    aware = getattr(model, "group_offset_", None) is not None or getattr(model, "needs_groups", False)
    names: dict[str, Any] = {"relevance": relevance or "relevance", "group": group or "group"}
    optional = {"relevance": relevance is None, "group": group is None and not aware}
    while True:
        chosen = Columns(query=query, item=item, features=tuple(wanted), categorical=tuple(categorical), **names)
        try:
            columns, plan = settled(df, chosen)
            break
        except MissingColumn as error:
            if not optional.get(error.role) or names[error.role] is None:
                raise
            names[error.role] = None
    ranking = ListRanking(model, columns, plan, top)
    rows = df.select(*map(column, plan.needed))
    scores_type = _type_of_scores(rows, ranking)
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    carried = {name: kinds[name] for name in ranking.carried}
    scored = mapped(rows, partial(_scored, ranking), _schema(carried | {SCORE: scores_type}))
    out = {query: kinds[query]} | ({} if plan.item is None else {plan.item: kinds[plan.item]})
    out |= {"rank": "bigint", "score": scores_type if getattr(model, "reranker", None) is None else "double"}
    out |= {} if columns.relevance is None else {columns.relevance: "double"}
    out |= {} if columns.group is None else {columns.group: kinds[columns.group]}
    return mapped(together(scored, query), partial(_ordered, ranking, tuple(out.items())), _schema(out))


def _schema(kinds: dict[str, str]) -> str:
    return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in kinds.items())


def _type_of_scores(rows: Any, ranking: ListRanking) -> str:
    """Ties are decided in the precision that a model gives its scores in; one row tells it."""
    first = pl.from_arrow(collected(rows.limit(1)))
    assert isinstance(first, pl.DataFrame)
    if not first.height:
        return "double"
    return "float" if ranking.scored(first, row_of_batch)[SCORE].dtype == pl.Float32 else "double"


def _scored(ranking: ListRanking, batches: Iterator[Any]) -> Iterator[Any]:
    for frame in frames(batches):
        yield from ranking.scored(frame, row_of_batch).to_arrow().to_batches()


def _ordered(ranking: ListRanking, kinds: tuple[tuple[str, str], ...], batches: Iterator[Any]) -> Iterator[Any]:
    single = dict(kinds)["score"] == "float"
    for frame in query_frames(batches, ranking.columns.query):
        ordered = ranking.ordered(frame, row_of_batch)
        score = ordered["score"].to_numpy().astype(np.float32 if single else np.float64)
        yield from ordered.with_columns(pl.Series("score", score)).to_arrow().to_batches()
