"""Linear training, ranking and offsets on Spark, locally and on a cluster: the numbers of memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.methods.reranked import RerankedRanker
from file_layouts import FEATURES, skewed_rows, written

# What PySpark says of pandas 3 where the tests themselves collect rows.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")


def frame_of(session: Any, folder: Path, rows: pl.DataFrame, partitions: int | str) -> Any:
    """Rows as a DataFrame: cut at random, or by a column, which puts skewed queries together."""
    df = session.read.parquet(str(written(folder, rows, "many files")))
    return df.repartition(partitions) if isinstance(partitions, int) else df.repartition(3, partitions)


def assert_same_path(one: Any, two: Any) -> None:
    scale = np.abs(one.coef).max(axis=0)
    np.testing.assert_allclose(two.coef / scale, one.coef / scale, atol=1e-9, rtol=0)
    np.testing.assert_allclose(two.intercept, one.intercept, atol=1e-9, rtol=1e-9)


OPTIONS: list[dict[str, Any]] = [{}, {"target": "centered"}, {"loss": "pairwise", "group_aware": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("partitions", [1, 7, "qid"])
def test_fits_are_those_in_memory(spark: Any, options: Any, partitions: Any, tmp_path: Path) -> None:
    rows = skewed_rows(1, groups=3)
    data = er.RankingData.from_frame(rows, features=FEATURES, sample_weight="weight")
    df = frame_of(spark, tmp_path / "rows", rows, partitions)
    path = er.spark.fit(df, ["dp", "eop"], features=FEATURES, sample_weight="weight", **options)
    assert_same_path(er.fairness_path(data, ["dp", "eop"], **options), path)
    assert path.group_names == ("a", "b", "c")


def test_features_are_columns_of_numbers_and_moments_those_of_memory(spark: Any, tmp_path: Path) -> None:
    rows = skewed_rows(2).with_columns(note=pl.lit("text"))
    df = frame_of(spark, tmp_path / "rows", rows, 4)
    with pytest.warns(DataWarning, match="'note' is not numeric"):
        moments = er.spark.moments(df, ignore=["weight"])
    whole = er.Moments.of(er.RankingData.from_frame(rows, features=FEATURES)).about(moments.origin)
    assert moments.feature_names == tuple(FEATURES)
    for name in ("weight", "r", "rr", "x", "xx", "xr", "cell_weight", "cell_sum", "group_rows"):
        one, two = np.asarray(getattr(whole, name)), np.asarray(getattr(moments, name))
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9 * np.abs(one).max(initial=1), err_msg=name)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", ["linear", "offset"])
def test_lists_are_those_in_memory(spark: Any, kind: str, ties: bool, tmp_path: Path) -> None:
    from evenrank.ranking import strict_places

    rows = skewed_rows(3, ties=ties)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    model: Any = er.FairLinearRanker("dp", alpha=0.05).fit(data)
    if kind == "offset":
        model = RerankedRanker(model, er.GroupOffset("dp", shrink=False).fit(model.predict(data), data))
    ranked = pl.from_arrow(er.spark.rank(frame_of(spark, tmp_path / "rows", rows, 5), model, top=4).toArrow())
    assert isinstance(ranked, pl.DataFrame)
    assert ranked.columns == ["qid", "item", "rank", "score", "relevance", "group"]
    scores = model.predict(data)
    places = data.to_caller(strict_places(data.to_stored(scores), data)) + 1
    expected = rows.with_columns(rank=pl.Series(places), score=pl.Series(scores)).filter(pl.col("rank") <= 4)
    order = ["qid", "rank"]
    assert ranked.sort(order).equals(expected.select(ranked.columns).sort(order))


@pytest.mark.parametrize(("notion", "k"), [("dp", 5), ("eod", [2, 4])])
@pytest.mark.parametrize("groups", [2, 3])
def test_offsets_are_those_in_memory(spark: Any, groups: int, notion: str, k: Any, tmp_path: Path) -> None:
    rows = skewed_rows(4, groups=groups, ties=True).with_columns(score=pl.col("f0") + pl.col("f1") / 100)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    one = er.GroupOffset(notion, k, shrink=False).fit(rows["score"].to_numpy(), data)
    df = frame_of(spark, tmp_path / "rows", rows, 6)
    two = er.spark.offset(df, notion, k, shrink=False)
    assert any(one.offsets_.values())
    for name, value in one.offsets_.items():
        assert two.offsets_[name] == pytest.approx(value, abs=1e-9)
    assert two.gap_before_ == pytest.approx(one.gap_before_, abs=1e-9)
    assert two.gap_after_ == pytest.approx(one.gap_after_, abs=1e-9)
    np.testing.assert_allclose(two.rerank(rows["score"].to_numpy(), data), one.rerank(rows["score"].to_numpy(), data))


def test_too_many_rows_for_the_driver_are_drawn_and_the_gaps_are_of_all(spark: Any, tmp_path: Path) -> None:
    rows = skewed_rows(5, n=4000).with_columns(score=pl.col("f0") + pl.col("f1") / 100)
    df = frame_of(spark, tmp_path / "rows", rows, 3)
    with pytest.warns(DataWarning, match="offsets were chosen on .* lists, drawn by their ids"):
        offset = er.spark.offset(df, "dp", 3, shrink=False, most_rows=500)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    scores = rows["score"].to_numpy()
    assert offset.gap_before_ == pytest.approx(er.measure(scores, data, ["dp@3"])["dp@3"], abs=1e-9)
    assert offset.gap_after_ == pytest.approx(er.measure(offset.rerank(scores, data), data, ["dp@3"])["dp@3"], abs=1e-9)


def test_bad_rows_are_one_line(spark: Any, tmp_path: Path) -> None:
    rows = skewed_rows(6).with_columns(f1=pl.when(pl.col("item") == 5).then(None).otherwise(pl.col("f1")))
    df = frame_of(spark, tmp_path / "rows", rows, 3)
    with pytest.raises(DataError, match="feature 'f1' is missing") as caught:
        er.spark.fit(df, "dp", features=FEATURES)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="must be a Spark DataFrame; got DataFrame"):
        er.spark.fit(rows, "dp")
    with pytest.raises(ConfigError, match="solver='sgd' goes through the rows"):
        er.spark.fit(df, "dp", solver="sgd")
    with pytest.raises(DataError, match="group column 'nope' is not in the data"):
        er.spark.fit(df, "dp", group="nope")
    with pytest.raises(ConfigError, match="model must give scores"):
        er.spark.rank(df, er.GroupOffset("dp"))


@pytest.mark.parametrize("fault", ["damaged", "gone"])
def test_faults_are_errors_and_leave_no_rows(spark: Any, fault: str, tmp_path: Path) -> None:
    """A file is spoilt after it was listed: no sums, no offsets, and no ranked rows that look whole."""
    rows = skewed_rows(9).with_columns(score=pl.col("f0"))
    model = er.FairLinearRanker("dp", alpha=0.05).fit(er.RankingData.from_frame(rows, features=FEATURES))
    folder = written(tmp_path / "rows", rows, "many files", compression="zstd")
    df = spark.read.parquet(str(folder))
    ranked = er.spark.rank(df, model)
    victim = folder / "part-3.parquet"
    if fault == "gone":
        victim.unlink()
    else:
        content = bytearray(victim.read_bytes())
        content[100:-2000] = bytes(len(content) - 2100)
        victim.write_bytes(content)
    for work in (lambda: er.spark.fit(df, "dp", features=FEATURES), lambda: er.spark.offset(df, "dp", shrink=False)):
        with pytest.raises(DataError, match="Spark cannot go on") as caught:
            work()
        assert "\n" not in str(caught.value)
    with pytest.raises(Exception, match=r"part-3\.parquet|[Pp]arquet|FAILED_READ_FILE"):
        ranked.write.parquet(str(tmp_path / "out"))
    assert not (tmp_path / "out" / "_SUCCESS").exists()


class TestCluster:
    """On a standalone cluster of two workers, each a process of its own."""

    def test_fits_ranks_and_offsets(self, cluster_spark: Any, tmp_path: Path) -> None:
        rows = skewed_rows(7).with_columns(score=pl.col("f0") + pl.col("f1") / 100)
        data = er.RankingData.from_frame(rows, features=FEATURES)
        df = frame_of(cluster_spark, tmp_path / "rows", rows, 4)
        assert_same_path(er.fairness_path(data, "eop"), er.spark.fit(df, "eop", features=FEATURES))
        options: dict[str, Any] = {"target": "centered", "loss": "pairwise"}
        path = er.spark.fit(df, "eop", features=FEATURES, **options)
        assert_same_path(er.fairness_path(data, "eop", **options), path)
        ranked = pl.from_arrow(er.spark.rank(df, path.ranker(path.alphas[0])).toArrow())
        assert isinstance(ranked, pl.DataFrame)
        assert ranked.height == rows.height
        one = er.GroupOffset("dp", shrink=False).fit(rows["score"].to_numpy(), data)
        assert er.spark.offset(df, "dp", shrink=False).offsets_ == pytest.approx(one.offsets_, abs=1e-9)

    def test_a_worker_killed_in_the_middle_changes_nothing(
        self, cluster: Any, cluster_spark: Any, tmp_path: Path
    ) -> None:
        rows = skewed_rows(8)
        data = er.RankingData.from_frame(rows, features=FEATURES)
        df = frame_of(cluster_spark, tmp_path / "rows", rows, 12)

        def slowly(batches: Any) -> Any:  # a local function travels to the workers whole
            import time

            for batch in batches:
                time.sleep(1.0)
                yield batch

        slow = df.mapInArrow(slowly, df.schema)
        victim = cluster.workers[-1]
        cluster.add_worker()
        killer = threading.Timer(3.0, _kill, [victim])
        killer.start()
        path = er.spark.fit(slow, "eop", features=FEATURES)
        killer.join()
        assert victim.poll() is not None
        assert_same_path(er.fairness_path(data, "eop"), path)


def _kill(worker: Any) -> None:
    worker.kill()
    worker.wait()
