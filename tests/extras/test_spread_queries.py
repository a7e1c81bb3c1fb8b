"""Queries whose rows are spread over files: DuckDB sorts them, and every number is that of memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.io import row_files
from evenrank.io.whole_queries import ROW, query_frames, stand_together
from evenrank.methods.ranked_frames import rank_files
from evenrank.methods.reranked import RerankedRanker
from file_layouts import FEATURES, LAYOUTS, skewed_rows, written

pytestmark = pytest.mark.extras


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "PART_BYTES", 8 * 5 * 1024)
    monkeypatch.setattr("evenrank.io.whole_queries.PART_BYTES", 8 * 5 * 1024)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("query", ["number", "text"])
def test_rows_come_query_by_query(layout: str, query: str, tmp_path: Path) -> None:
    rows = skewed_rows(1)
    if query == "text":
        rows = rows.with_columns(pl.format("q'{}\"", "qid").alias("qid"))
    files = er.scan(written(tmp_path / "rows", rows, layout), features=FEATURES)
    assert not stand_together(files)
    frames = list(query_frames(files, ["qid", "f0"]))
    assert len(frames) > 1
    order = pl.concat(frames)[ROW].to_list()
    first: dict[Any, int] = {}
    for row, name in enumerate(rows["qid"]):
        first.setdefault(name, row)
    assert order == sorted(range(rows.height), key=lambda row: (first[rows["qid"][row]], row))
    assert sum(frame["qid"].n_unique() for frame in frames) == rows["qid"].n_unique()


@pytest.mark.parametrize(
    "options", [{"target": "centered"}, {"loss": "pairwise"}, {"loss": "pairwise", "solver": "gd", "max_iter": 60}]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_within_queries(options: dict[str, Any], layout: str, tmp_path: Path) -> None:
    rows = skewed_rows(2, groups=3)
    data = er.RankingData.from_frame(rows, features=FEATURES, sample_weight="weight")
    files = er.scan(written(tmp_path / "rows", rows, layout), features=FEATURES, sample_weight="weight")
    one, two = er.fairness_path(data, "eop", **options), er.fairness_path(files, "eop", **options)
    scale = np.abs(one.coef).max(axis=0)
    np.testing.assert_allclose(two.coef / scale, one.coef / scale, atol=1e-9, rtol=0)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "kind", ["linear", "offset", "quantiles", "greedy", "cons", "relaxed", "const_sort", "transform", "group-aware"]
)
def test_spread_lists_are_ranked_as_in_memory(kind: str, ties: bool, tmp_path: Path) -> None:
    from evenrank.ranking import strict_places

    rows = skewed_rows(3, ties=ties)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    model: Any = er.FairLinearRanker("dp", alpha=0.05, group_aware=kind == "group-aware").fit(data)
    rerankers = {
        "offset": lambda: er.GroupOffset("dp", shrink=False),
        "quantiles": er.QuantileMatch,
        "transform": er.EqualOpportunityTransform,
        **{rule: partial(er.DetRanker, rule=rule) for rule in ("greedy", "cons", "relaxed", "const_sort")},
    }
    if kind in rerankers:
        model = RerankedRanker(model, rerankers[kind]().fit(model.predict(data), data))
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
    ranked = pl.concat(list(rank_files(files, model)))
    places = data.to_caller(strict_places(data.to_stored(model.predict(data)), data)) + 1
    np.testing.assert_array_equal(ranked["rank"].to_numpy(), places[ranked["row"].to_numpy()])
    np.testing.assert_array_equal(ranked["score"].to_numpy(), model.predict(data)[ranked["row"].to_numpy()])


def test_a_model_that_looks_at_the_longest_list_is_refused(tmp_path: Path) -> None:
    rows = skewed_rows(3)
    data = er.RankingData.from_frame(rows, features=FEATURES)
    base = er.FairLinearRanker("dp", alpha=0.0).fit(data)
    model = RerankedRanker(base, er.MultinomialFAStar().fit(base.predict(data), data))
    files = er.scan(written(tmp_path / "rows", rows, "one file"), features=FEATURES)
    with pytest.raises(er.ConfigError, match="the longest of all lists"):
        next(rank_files(files, model))


def test_boosted_trees_with_missing_values_and_categories(tmp_path: Path) -> None:
    rows = skewed_rows(4).with_columns(
        f0=pl.when(pl.col("item") % 7 == 0).then(None).otherwise(pl.col("f0")),
        kind=pl.Series(["x", "y", "z"] * 1000).cast(pl.Categorical),
    )
    names = [*FEATURES, "kind"]
    data = er.RankingData.from_frame(rows, features=names)
    model = er.xgboost.FairXGBRanker(notion="dp", n_estimators=5, n_jobs=1, enable_categorical=True).fit(data)
    files = er.scan(written(tmp_path / "rows", rows, "many files"), features=names, categorical=["kind"])
    ranked = pl.concat(list(rank_files(files, model)))
    np.testing.assert_array_equal(ranked["score"].to_numpy(), model.predict(data)[ranked["row"].to_numpy()])
