"""Files larger than memory: the same models as in memory, whatever the files, and one clear line for what cannot be."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError
from evenrank.io import row_files
from evenrank.io.row_files import parquet_parts
from evenrank.io.stream_moments import stream_moments
from evenrank.io.whole_queries import joined, stand_together
from evenrank.methods.ranked_frames import rank_files
from file_layouts import FEATURES, LAYOUTS, skewed_rows, written

pytestmark = pytest.mark.numeric


def assert_same_path(one: Any, two: Any) -> None:
    scale = np.abs(one.coef).max(axis=0)
    np.testing.assert_allclose(two.coef / scale, one.coef / scale, atol=1e-9, rtol=0)
    np.testing.assert_allclose(two.intercept, one.intercept, atol=1e-9, rtol=1e-9)
    assert two.group_names == one.group_names


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "PART_BYTES", 8 * 5 * 1024)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [2, 4])
def test_fits_from_files_are_those_in_memory(layout: str, groups: int, tmp_path: Path) -> None:
    rows = skewed_rows(1, groups=groups)
    folder = written(tmp_path / "rows", rows, layout)
    data = er.RankingData.from_frame(rows, features=FEATURES, sample_weight="weight")
    files = er.scan(folder, features=FEATURES, sample_weight="weight")
    assert files.n_rows == rows.height
    for options in ({}, {"group_aware": True}, {"solver": "gd", "max_iter": 50}, {"scale": None, "ridge": 0.1}):
        for notion in ("dp", ["eop", "eod"]):
            assert_same_path(er.fairness_path(data, notion, **options), er.fairness_path(files, notion, **options))


@pytest.mark.parametrize(
    "options",
    [{"target": "centered"}, {"loss": "pairwise"}, {"target": "centered", "loss": "pairwise", "group_aware": True}],
)
def test_whole_queries_across_files(options: dict[str, Any], tmp_path: Path) -> None:
    rows = skewed_rows(2).sort("qid", maintain_order=True)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
    assert stand_together(files)
    assert_same_path(er.fairness_path(data, "eop", **options), er.fairness_path(files, "eop", **options))


def test_the_gap_of_a_slow_twin_vanishes(tmp_path: Path) -> None:
    """Beyond α* the model from files has no gap, by sums over rows that know nothing of moments."""
    rows = skewed_rows(3).drop_nulls("group")
    ranker = er.FairLinearRanker("dp", alpha=1e6).fit(
        er.scan(written(tmp_path / "r", rows, "folders"), features=FEATURES)
    )
    score = rows.select(FEATURES).to_numpy() @ ranker.coef_
    means = [score[(rows["group"] == name).to_numpy()].mean() for name in ("a", "b")]
    assert abs(means[0] - means[1]) < 1e-9
    assert np.isnan(ranker.violation_)


def test_a_ranker_of_files_saves_and_scores_as_one_of_memory(tmp_path: Path) -> None:
    rows = skewed_rows(4)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
    ranker = er.FairLinearRanker("eop", alpha=0.1).fit(files)
    ranker.save(tmp_path / "model.json")
    np.testing.assert_allclose(
        er.load(tmp_path / "model.json").predict(data),
        er.FairLinearRanker("eop", alpha=0.1).fit(data).predict(data),
        atol=1e-9,
    )
    path = er.fairness_path(files, "eop", [0.0, 0.1])
    np.testing.assert_allclose(path.ranker(0.1).coef_, ranker.coef_, rtol=1e-12)
    assert path.ranker(0.1).get_params()["notion"] == "equal_opportunity"
    with pytest.raises(ConfigError, match="names 2 of 2 models"):
        path.ranker()
    with pytest.raises(ConfigError, match="names 0 of 2 models"):
        path.ranker(0.3)


def test_moments_train_as_rows_do() -> None:
    rows = skewed_rows(5)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    moments = er.Moments.of(data.take(np.arange(20)), ["dp"]) + er.Moments.of(
        data.take(np.arange(20, data.n_queries)), ["dp"]
    )
    assert_same_path(er.fairness_path(data, "dp"), er.fairness_path(moments, "dp"))
    np.testing.assert_array_equal(moments.group_rows, np.bincount(data.group[data.group >= 0]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"solver": "sgd"}, "solver='sgd' goes through the rows; files and moments take 'exact' or 'gd'"),
        ({"loss": "logistic"}, "loss='logistic' goes through the rows; files and moments take 'squared'"),
        ({"scope": "per_query"}, "scope='per_query' has one gap per query"),
        ({"target": "topk", "solver": "gd"}, "target='topk' goes through the rows"),
    ],
)
def test_what_needs_rows_is_refused_in_one_line(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    files = er.scan(written(tmp_path / "rows", skewed_rows(6), "one file"), features=FEATURES)
    with pytest.raises(ConfigError, match=told) as caught:
        er.fairness_path(files, "dp", **options)
    assert "\n" not in str(caught.value)
    assert "er.read" in str(caught.value)


def test_a_ranker_refuses_what_moments_do_not_hold() -> None:
    moments = er.Moments.of(er.RankingData.from_frame(skewed_rows(6), features=FEATURES), ["dp"])
    with pytest.raises(ConfigError, match="max_violation ranks the training rows"):
        er.FairLinearRanker("dp", max_violation=0.1).fit(moments)
    with pytest.raises(ConfigError, match="impute needs the rows"):
        er.FairLinearRanker("dp", impute="mean").fit(moments)
    with pytest.raises(ConfigError, match="leave them out"):
        er.FairLinearRanker("dp").fit(moments, [1, 2])
    with pytest.raises(ConfigError, match="of target 'score'; got target='centered'"):
        er.FairLinearRanker("dp", target="centered").fit(moments)
    with pytest.raises(ConfigError, match="without the groups' columns"):
        er.FairLinearRanker("dp", group_aware=True).fit(moments)
    with pytest.raises(ConfigError, match="hold no sums within queries"):
        er.FairLinearRanker("dp", loss="pairwise").fit(moments)
    with pytest.raises(ConfigError, match="hold demographic_parity; got 'equal_opportunity'"):
        er.FairLinearRanker("eop").fit(moments)


def test_own_notions_are_of_rows_or_queries(tmp_path: Path) -> None:
    rows = skewed_rows(7).sort("qid", maintain_order=True)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)

    def cheap(some: Any) -> Any:
        return [some.column("f0") < 0, some.column("f0") >= 0]

    assert_same_path(er.fairness_path(data, cheap), er.fairness_path(files, cheap))

    def below_median(some: Any) -> Any:
        return [some.column("f0") < np.median(some.column("f0"))]

    with pytest.raises(ConfigError, match="another stratum when other queries are left out"):
        er.fairness_path(files, below_median)
    with pytest.raises(ConfigError, match="row masks is for rows in memory"):
        stream_moments(files, [[np.ones(rows.height, bool)]])


# ---------------------------------------------------------------------- bad files


def test_bad_values_are_named_with_file_and_row(tmp_path: Path) -> None:
    rows = skewed_rows(8)
    cases = {
        "missing": (pl.when(pl.col("item") == 5).then(None).otherwise(pl.col("f1")).alias("f1"), "'f1' is missing"),
        "infinite": (
            pl.when(pl.col("item") == 5).then(np.inf).otherwise(pl.col("f1")).alias("f1"),
            "finite number; got inf",
        ),
        "label": (
            pl.when(pl.col("item") == 5).then(-1.0).otherwise(pl.col("relevance")).alias("relevance"),
            "≥ 0; got -1",
        ),
        "huge": (pl.lit(1e200).alias("f2"), "too large to square"),
    }
    row = rows["item"].to_list().index(5)
    for name, (change, told) in cases.items():
        folder = written(tmp_path / name, rows.with_columns(change), "many files")
        with pytest.raises(DataError, match=told) as caught:
            er.fairness_path(er.scan(folder, features=FEATURES), "dp")
        if name != "huge":
            bounds = np.linspace(0, rows.height, 8).astype(int)
            part = int(np.searchsorted(bounds, row, side="right")) - 1
            assert f"part-{part}.parquet: row {row - bounds[part]}: " in str(caught.value)


def test_an_empty_query_is_named(tmp_path: Path) -> None:
    rows = skewed_rows(8).with_columns(qid=pl.when(pl.col("item") == 5).then(None).otherwise(pl.col("qid")))
    files = er.scan(written(tmp_path / "rows", rows, "one file"), features=FEATURES)
    row = rows["item"].to_list().index(5)
    with pytest.raises(DataError, match=f"row {row}: qid must not be empty"):
        er.fairness_path(files, "dp", target="centered")


def test_a_corrupt_row_group_is_one_line(tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", skewed_rows(9), "small row groups", compression="uncompressed")
    file = next(folder.glob("*.parquet"))
    files = er.scan(folder, features=FEATURES)
    content = bytearray(file.read_bytes())
    chunk = [c for c in files.footers[0].chunks if c.column == "f1"][10]
    content[chunk.start : chunk.start + 40] = b"\xff" * 40  # the head of a page
    file.write_bytes(content)
    with pytest.raises(DataError, match="is damaged or cut short") as caught:
        er.fairness_path(er.scan(folder, features=FEATURES), "dp")
    assert "\n" not in str(caught.value)


def test_compressed_pages_that_do_not_unpack_are_one_line(tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", skewed_rows(9), "small row groups", compression="zstd")
    file = next(folder.glob("*.parquet"))
    files = er.scan(folder, features=FEATURES)
    content = bytearray(file.read_bytes())
    chunk = [c for c in files.footers[0].chunks if c.column == "f1"][10]
    content[chunk.start + 30 : chunk.stop] = np.random.default_rng(0).bytes(chunk.stop - chunk.start - 30)
    file.write_bytes(content)
    with pytest.raises(DataError, match="damaged or cut short"):
        er.fairness_path(er.scan(folder, features=FEATURES), "dp")


def test_a_file_that_vanishes_or_changes_is_one_line(tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", skewed_rows(10), "many files")
    files = er.scan(folder, features=FEATURES)
    (folder / "part-3.parquet").rename(tmp_path / "away")
    with pytest.raises(DataError, match=r"part-3\.parquet: there is no such file"):
        er.fairness_path(files, "dp")
    skewed_rows(11, n=50).write_parquet(folder / "part-3.parquet")
    with pytest.raises(DataError, match=r"part-3\.parquet: the file has changed since it was scanned"):
        er.fairness_path(files, "dp")


def test_parts_must_agree(tmp_path: Path) -> None:
    rows = skewed_rows(12)
    folder = written(tmp_path / "rows", rows, "many files")
    rows.drop("f1").write_parquet(folder / "zz.parquet")
    with pytest.raises(DataError, match="'f1' is missing here"):
        er.scan(folder, features=FEATURES)
    rows.with_columns(pl.col("group").is_null().alias("group")).write_parquet(folder / "zz.parquet")
    with pytest.raises(DataError, match="must have the same types; column 'group' is Boolean here"):
        er.fairness_path(er.scan(folder, features=FEATURES), "dp")


@pytest.mark.parametrize(("most", "words"), [(10**6, "every row"), (50, "each of the first 50 rows")])
def test_whole_numbers_that_look_like_ids_are_warned_of(
    most: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features are chosen before rows are read: ids were once trained on without a word."""
    monkeypatch.setattr("evenrank.io.row_files.FIRST_ROWS", most)
    rows = skewed_rows(12).with_row_index("document").with_columns(age=pl.int_range(pl.len()) % 40, score=0.5)
    for part in range(3):
        rows[part::3].write_parquet(tmp_path / f"{part}.parquet")
    told = f"feature 'document' holds a different whole number in {words}, as ids do"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        er.scan(tmp_path)
    assert [told in str(warning.message) for warning in caught] == [False, True]  # the first is of the score
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        er.scan(tmp_path, features=[*FEATURES, "document", "score"])


@pytest.mark.parametrize(("kind", "words"), [(pl.Float64, "float64"), (pl.Float32, "float32"), (pl.String, "text")])
def test_query_ids_of_other_types_are_refused(kind: Any, words: str, tmp_path: Path) -> None:
    """Whole numbers beyond 2^53 would become equal as fractions, and 5 and 5.0 might be taken for two queries."""
    rows = skewed_rows(12)
    folder = tmp_path / "rows"
    folder.mkdir()
    rows[:1000].with_columns(pl.col("qid").cast(kind)).write_parquet(folder / "a.parquet")
    rows[1000:].write_parquet(folder / "b.parquet")
    told = rf"b\.parquet: the query ids of all parts must have one type; 'qid' holds whole numbers here and {words}"
    for read in (lambda: er.scan(folder, features=FEATURES), lambda: er.read(sorted(folder.iterdir()))):
        with pytest.raises(DataError, match=told) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_query_ids_of_any_width_are_the_same(tmp_path: Path) -> None:
    rows = skewed_rows(12).sort("qid", maintain_order=True)
    folder = tmp_path / "rows"
    folder.mkdir()
    for number, kind in enumerate((pl.Int16, pl.Int64, pl.UInt32)):
        part = rows[number * 1000 : (number + 1) * 1000]
        part.with_columns(pl.col("qid").cast(kind)).write_parquet(folder / f"{number}.parquet")
    rows[:0].with_columns(pl.col("qid").cast(pl.Float64)).write_parquet(folder / "empty.parquet")
    data = er.RankingData.from_frame(rows, features=FEATURES)
    files = er.scan(folder, features=FEATURES)
    for options in ({}, {"target": "centered"}):
        assert_same_path(er.fairness_path(data, "eop", **options), er.fairness_path(files, "eop", **options))


def test_moments_of_probabilities_are_refused() -> None:
    data = er.RankingData.from_frame(skewed_rows(6), features=FEATURES)
    soft = data.with_membership(np.full((data.n_rows, 2), 0.5), ["a", "b"])
    with pytest.raises(ConfigError, match="moments need group labels"):
        er.Moments.of(soft, ["dp"])
    assert er.Moments.of(soft, []).n_rows == data.n_rows


def test_paths_stand_for_files(tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", skewed_rows(13), "folders")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "x.parquet").write_bytes(b"")
    files = parquet_parts(folder)
    assert [file.name for file in files] == [f"part-{number}.parquet" for number in range(4)]
    assert parquet_parts(str(folder / "*" / "part*.parquet")) == files
    with pytest.raises(DataError, match="no file is like that"):
        parquet_parts(folder / "*.csv")
    with pytest.raises(DataError, match=r"the folder has no \.parquet files"):
        parquet_parts(written_empty(tmp_path))
    with pytest.raises(ConfigError, match="is named twice"):
        parquet_parts([files[0], files[0]])


def written_empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


@pytest.mark.parametrize("sizes", [[1], [3, 1, 4], [2, 2, 2, 2], [8]])
def test_frames_are_cut_between_queries(sizes: list[int]) -> None:
    rows = pl.DataFrame({"qid": [1, 1, 1, 2, 3, 3, 4, 4], "n": range(8)})
    bounds = np.cumsum([0, *sizes])
    cut = list(joined((rows[int(a) : int(b)] for a, b in itertools.pairwise(bounds)), "qid"))
    assert pl.concat(cut).equals(rows[: int(bounds[-1])])
    seen = [set(frame["qid"]) for frame in cut]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert all(frame.height for frame in cut)


# ---------------------------------------------------------------------- ranking


def ranked_in_memory(rows: pl.DataFrame, scores: Any, top: int | None) -> list[tuple[Any, ...]]:
    """Lists by plain Python: queries in the order of their first rows, scores down, ties by item."""
    by_query: dict[Any, list[tuple[float, Any, int]]] = {}
    for row, (query, item) in enumerate(rows.select("qid", "item").iter_rows()):
        by_query.setdefault(query, []).append((-float(scores[row]), item, row))
    out = []
    for query, items in by_query.items():
        for place, (score, item, row) in enumerate(sorted(items)[:top], start=1):
            out.append((query, item, place, -score, row))
    return out


@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("ties", [False, True])
def test_files_are_ranked_as_a_plain_sort_ranks(top: int | None, ties: bool, tmp_path: Path) -> None:
    rows = skewed_rows(14, ties=ties).sort("qid", maintain_order=True)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
    ranked = pl.concat(list(rank_files(files, ranker, top=top)))
    assert ranked.columns == ["qid", "item", "rank", "score", "relevance", "group", "row"]
    expected = ranked_in_memory(rows, ranker.predict(data), top)
    assert list(ranked.select("qid", "item", "rank", "score", "row").iter_rows()) == expected
    assert ranked["group"].to_list() == rows["group"].gather(ranked["row"]).to_list()


def test_an_item_twice_in_a_query_is_found_across_files(tmp_path: Path) -> None:
    rows = skewed_rows(15).with_columns(
        qid=pl.lit(1), item=pl.when(pl.col("item") > 5).then(pl.col("item")).otherwise(7)
    )
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
    ranker = er.FairLinearRanker("dp", alpha=0.0).fit(files)
    with pytest.raises(DataError, match="item 7 occurs twice in query 1"):
        list(rank_files(files, ranker))


def test_an_adaptive_model_is_refused(tmp_path: Path) -> None:
    from evenrank.methods.reranked import RerankedRanker

    files = er.scan(written(tmp_path / "rows", skewed_rows(16), "one file"), features=FEATURES)
    model = RerankedRanker(er.FairLinearRanker("dp", alpha=0.0).fit(files), er.GroupOffset("dp"), adapt=True)
    with pytest.raises(ConfigError, match="fitted anew to all lists"):
        next(rank_files(files, model))
