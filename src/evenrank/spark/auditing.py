"""`audit`: the audit of a Spark DataFrame, computed where its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenrank.engines.audits import audit_table
from evenrank.engines.engine import Roles
from evenrank.page.audit import Audit
from evenrank.spark.engine import SparkEngine


def audit(
    df: Any,
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str = "group",
    score: str = "score",
    rank: str | None = None,
    item: str | None = None,
    sample_weight: str | None = None,
    cluster: str | Sequence[str] = (),
    relevance_threshold: float = 1.0,
    confidence: float = 0.95,
    items: bool = True,
    min_share: float = 0.0,
    min_count: float = 0,
) -> Audit:
    """Audit the rows of a Spark DataFrame on its own session; the workers need nothing but Spark.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows, in any partitions: a query may be spread over them.
    ks, query, relevance, group, score, rank, item, sample_weight, cluster, relevance_threshold
        As in `evenrank.duckdb.audit`.
    confidence, items, min_share, min_count
        As in `evenrank.audit`.

    Returns
    -------
    Audit
        The same as `evenrank.audit` gives of the same rows in memory.
    """
    clusters = (cluster,) if isinstance(cluster, str) else tuple(cluster)
    roles = Roles(query, relevance, group, score, rank, item, sample_weight, clusters, relevance_threshold)
    with SparkEngine(df) as engine:
        return audit_table(
            engine,
            roles,
            ks,
            confidence=confidence,
            labelled=relevance is not None,
            items=items,
            min_share=min_share,
            min_count=min_count,
        )
