"""Audits on Spark: those in memory, to 1e-9 and word for word, whatever the partitions, and whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest

import evenrank as er
from engine_cases import CASES, assert_same, differences, in_memory, make, write

pytestmark = pytest.mark.filterwarnings("ignore")
# Those whose statements differ; DuckDB, which runs the same text in a tenth of the time, tries all.
DIFFERENT = [
    "ties",
    "users and days",
    "no labels",
    "weights",
    "six groups, one set aside",
    "beyond the longest list",
    "single precision",
    "recurring items",
    "huge scores",
    "unwanted items far down",
]


@pytest.mark.parametrize("case", DIFFERENT)
def test_the_audit_is_the_one_in_memory(case, spark, tmp_path):
    rows, options = CASES[case]
    options = {"ks": (1, 5)} | options
    frame = make(len(case), **rows)
    df = spark.read.parquet(str(write(frame, tmp_path / "parts", 3)))
    assert_same(in_memory(frame, tmp_path, **options), er.spark.audit(df, **options))


@pytest.mark.parametrize("partitions", [13, "score"])
def test_partitions_do_not_matter(partitions, spark, tmp_path):
    frame = make(7, skew=500, digits=2, near=True)
    df = spark.read.parquet(str(write(frame, tmp_path / "parts", 2)))
    df = df.repartition(partitions) if isinstance(partitions, int) else df.repartitionByRange(5, partitions)
    assert_same(in_memory(frame, tmp_path, ks=[3]), er.spark.audit(df, [3]))


def test_measures_are_those_in_memory_and_nothing_stays_behind(spark, tmp_path):
    frame = make(1, groups="abc", grades=4)
    names = ["ndcg@5", "precision@1", "recall@20", "dp@3", "eop@3", "eod@3", "exposure_gap@3", "four_fifths@5"]
    data = er.RankingData.from_frame(frame, features=["score"])
    df = spark.read.parquet(str(write(frame, tmp_path, 2)))
    expected = er.measure(frame["score"].to_numpy(), data, names)
    assert er.spark.measure(df, names) == pytest.approx(expected, abs=1e-9)
    assert spark.catalog.listTables() == []
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_what_is_no_spark_frame_is_refused():
    with pytest.raises(er.DataError, match="df must be a Spark DataFrame; got DataFrame"):
        er.spark.audit(make())


def test_a_damaged_row_group_and_a_file_that_vanishes(spark, tmp_path):
    folder = write(make(0, queries=3000), tmp_path, 2)
    df = spark.read.parquet(str(folder))
    path = folder / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[200 : len(content) // 2] = bytes(len(content) // 2 - 200)
    path.write_bytes(content)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    with pytest.raises(er.DataError, match="Spark cannot go on") as refused:
        er.spark.audit(df)
    assert "\n" not in str(refused.value)
    path.unlink()
    with pytest.raises(er.DataError, match="Spark cannot go on") as refused:
        er.spark.audit(df)
    assert "\n" not in str(refused.value)
    assert spark.catalog.listTables() == []


def test_rows_that_are_drawn_anew_at_each_pass_are_refused(spark, tmp_path):
    from pyspark.sql import functions

    frame = make(0, queries=400)
    df = spark.read.parquet(str(write(frame, tmp_path, 2)))
    drawn = df.where(functions.udf(lambda _: __import__("random").random() < 0.5, "boolean")("score"))
    with pytest.raises(er.DataError, match="Did the data change meanwhile"):
        er.spark.audit(drawn, [3])
    with pytest.raises(er.ConfigError, match="Groups as probabilities need the rows in memory"):
        er.spark.audit(df, [3], group=["pa", "pb"])


@pytest.mark.small
def test_the_standalone_cluster_says_the_same(cluster_spark, tmp_path):
    frame = make(4, groups="xyz", digits=2, near=True)
    df = cluster_spark.read.parquet(str(write(frame, tmp_path / "parts", 4)))
    assert_same(in_memory(frame, tmp_path, ks=[1, 5]), er.spark.audit(df, [1, 5]))


def test_a_worker_that_is_killed_changes_no_number(cluster, cluster_spark, tmp_path):
    frame = make(9, queries=20_000)
    df = cluster_spark.read.parquet(str(write(frame, tmp_path / "parts", 8))).repartition(24)
    expected = er.duckdb.audit(tmp_path / "parts", [5])
    tracker = cluster_spark.sparkContext.statusTracker()
    seen: list[int] = []

    def kill_one() -> None:
        until = time.monotonic() + 120
        while not seen and time.monotonic() < until:
            running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage is not None and 0 < stage.numCompletedTasks < stage.numTasks for stage in running):
                cluster.workers[0].kill()
                seen.append(cluster.workers[0].wait())
            time.sleep(0.005)

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = er.spark.audit(df, [5])
    killer.join()
    assert seen == [-9]
    assert_same(expected, found)
    cluster.workers[0] = cluster.add_worker()


def test_the_command_on_the_cluster(cluster, tmp_path):
    frame = make(5)
    folder = write(frame, tmp_path / "rows", 3)
    command = [sys.executable, "-m", "evenrank", "audit", str(folder), "--k", "3", "--json", "--engine"]
    found = []
    for options in (["duckdb"], ["spark", "--master", cluster.master]):
        done = subprocess.run([*command, *options], capture_output=True, text=True, env=dict(os.environ), check=False)
        assert done.returncode == 0, done.stderr
        found.append({name: value for name, value in json.loads(done.stdout).items() if name != "provenance"})
    assert list(differences(*found)) == []
