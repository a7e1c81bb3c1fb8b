"""`measure`: measures of a Spark DataFrame, computed where its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenrank.engines.engine import Roles
from evenrank.engines.measures import measure_table
from evenrank.spark.engine import SparkEngine


def measure(
    df: Any,
    measures: str | Sequence[str],
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str = "group",
    score: str = "score",
    rank: str | None = None,
    sample_weight: str | None = None,
    relevance_threshold: float = 1.0,
) -> dict[str, float]:
    """Measure the rankings of a Spark DataFrame on its own session; the workers need nothing but Spark.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows, in any partitions.
    measures : str or sequence of str
        Such as "ndcg@10", "dp@5" or "four_fifths@5": NDCG, precision, recall, gaps and the four-fifths ratio.
    query, relevance, group, score, rank, sample_weight, relevance_threshold
        As in `evenrank.duckdb.audit`.

    Returns
    -------
    dict
        Measure → value, the same as `evenrank.measure` gives of the same rows in memory.
    """
    roles = Roles(query, relevance, group, score, rank, None, sample_weight, (), relevance_threshold)
    with SparkEngine(df) as engine:
        return measure_table(engine, roles, measures)
