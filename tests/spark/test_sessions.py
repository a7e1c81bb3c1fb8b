"""The sessions that the tests of Spark run on really are what they say."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.small
def test_the_cluster_runs_work_on_both_workers(cluster_spark: Any) -> None:
    hosts = cluster_spark.range(0, 1000, 1, 8).selectExpr("spark_partition_id() % 2 AS part", "id").groupBy("part")
    assert sorted(row["count"] for row in hosts.count().collect()) == [500, 500]
    executors = cluster_spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    assert executors == 2
