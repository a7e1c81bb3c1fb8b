"""Which columns of a table are features, and what `item` is: one rule for every format and every kind of frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import DataWarning

ROWS: dict[str, list[Any]] = {
    "qid": [1, 1, 2, 2],
    "item": [11, 12, 11, 12],
    "relevance": [1, 0, 0, 1],
    "group": ["a", "b", "b", "a"],
    "price": [3.5, 2.0, 2.0, 1.0],
    "score": [0.9, 0.1, 0.2, 0.7],
    "rank": [1, 2, 2, 1],
}
Load = Callable[..., er.RankingData]
BY_NAME = (
    "columns {} are left out of the features by their names; to use them, name them with features= "
    "(on the command line --features)"
)

ONE_BY_NAME = (
    "column {} is left out of the features by its name; to use it, name it with features= "
    "(on the command line --features)"
)

NOT_NUMERIC = (
    "column {} is not numeric and is left out of the features; to use it as categories, name it with categorical= "
    "(--categorical)"
)


@pytest.fixture(params=[".csv", ".tsv", ".jsonl", ".parquet", "pandas", "polars", "pyarrow"])
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Load:
    """Read the columns of a table, as a file of some format or as a frame of some library."""

    def of(columns: dict[str, list[Any]], **options: Any) -> er.RankingData:
        frame = pl.DataFrame(columns)
        path = tmp_path / f"rows{request.param}"
        writers = {
            ".csv": lambda: frame.write_csv(path),
            ".tsv": lambda: frame.write_csv(path, separator="\t"),
            ".jsonl": lambda: frame.write_ndjson(path),
            ".parquet": lambda: frame.write_parquet(path),
        }
        if request.param in writers:
            writers[request.param]()
            return er.read(path, **options)
        frames = {"pandas": pd.DataFrame(columns), "polars": frame, "pyarrow": frame.to_arrow()}
        return er.RankingData.from_frame(frames[request.param], **options)

    return of


def noted(load: Load, columns: dict[str, list[Any]], **options: Any) -> tuple[er.RankingData, list[str]]:
    """The data, and the warnings that came with it, which name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = load(columns, **options)
    assert all(item.category is DataWarning and item.filename == __file__ for item in caught)
    return data, [str(item.message) for item in caught]


def without(*names: str) -> dict[str, list[Any]]:
    return {name: values for name, values in ROWS.items() if name not in names}


def test_score_and_rank_are_left_out_by_name_and_item_is_the_id(load: Load) -> None:
    data, notes = noted(load, ROWS)
    assert data.feature_names == ("price",)
    assert data.item_ids is not None
    assert data.item_ids.tolist() == ROWS["item"]
    assert notes == [BY_NAME.format("'score', 'rank'")]


def test_named_ones_are_features(load: Load) -> None:
    data, notes = noted(load, ROWS, features=["rank", "price", "score", "item"])
    assert data.feature_names == ("rank", "price", "score", "item")
    assert data.features[:, 2].tolist() == ROWS["score"]
    assert data.item_ids is None  # the column is a feature
    assert notes == []


def test_ignored_ones_are_left_out_silently(load: Load) -> None:
    data, notes = noted(load, ROWS, ignore=["score", "rank", "item"])
    assert (data.feature_names, data.item_ids, notes) == (("price",), None, [])


def test_ignored_ones_must_be_there(load: Load) -> None:
    """A misspelt one would be learnt from."""
    with pytest.raises(er.DataError) as caught:
        noted(load, ROWS, ignore=["rank", "Prise"])
    assert "ignore column 'Prise' is not in the data (did you mean 'price'?); it has 'qid', " in str(caught.value)
    assert str(caught.value).endswith(". Name the right column with ignore=.")
    with pytest.raises(er.DataError, match=r"ignore column 'zzz' is not in the data; it has 'qid', "):
        noted(load, ROWS, ignore=["zzz"])


def test_a_table_without_an_item_column_has_no_ids(load: Load) -> None:
    data, notes = noted(load, without("item", "rank"))
    assert data.item_ids is None
    assert notes == [ONE_BY_NAME.format("'score'")]


def test_names_in_capitals_or_with_blanks_are_left_out_too(load: Load) -> None:
    columns = without("score", "rank") | {"Score": [1.0, 2.0, 3.0, 4.0], "RANK": [1, 2, 1, 2], "item ": [7, 7, 8, 9]}
    data, notes = noted(load, columns)
    assert not {"Score", "RANK", "item "} & {*data.feature_names}
    assert BY_NAME.format("'Score', 'RANK', 'item '") in notes
    assert "Score" in load(columns, features=["Score"]).feature_names


def test_another_item_column_leaves_item_out_by_name(load: Load) -> None:
    data, notes = noted(load, without("score", "rank") | {"docid": ["p", "q", "p", "q"]}, item="docid")
    assert data.item_ids is not None
    assert data.item_ids.tolist() == ["p", "q", "p", "q"]
    assert data.feature_names == ("price",)
    assert notes == [ONE_BY_NAME.format("'item'")]


def test_an_item_column_that_is_named_and_absent_is_an_error(load: Load) -> None:
    with pytest.raises(er.DataError, match="item column 'docid' is not in the data"):
        load(without("score", "rank"), item="docid")


def test_columns_with_a_part_are_not_noted(load: Load) -> None:
    """The relevance may be called rank, and the weight score."""
    data, notes = noted(load, without("relevance", "group"), relevance="rank", group=None, sample_weight="score")
    assert data.relevance.tolist() == ROWS["rank"]
    assert (data.feature_names, notes) == (("price",), [])


def test_text_in_a_column_left_out_by_name_is_noted_once(load: Load) -> None:
    data, notes = noted(load, ROWS | {"score": ["high", "low", "low", "high"], "rank": list("abab")})
    assert data.feature_names == ("price",)
    assert notes == [BY_NAME.format("'score', 'rank'")]


def test_other_text_is_noted_apart(load: Load) -> None:
    _, notes = noted(load, without("rank") | {"brand": list("abab")})
    assert notes == [ONE_BY_NAME.format("'score'"), NOT_NUMERIC.format("'brand'")]


MANY = {
    "qid": [i // 10 for i in range(30)],
    "relevance": [i % 2 for i in range(30)],
    "group": ["a", "b", "b"] * 10,
    "doc_id": [10_000 + 7 * i for i in range(30)],
    "position": [i % 10 for i in range(30)],
    "price": [i + 0.5 for i in range(30)],
}


def test_numeric_ids_are_warned_of_and_kept(load: Load) -> None:
    data, notes = noted(load, MANY)
    assert data.feature_names == ("doc_id", "position", "price")
    assert notes == [
        "feature 'doc_id' holds a different whole number in every row, as ids do; if it is an id, leave it out with "
        "ignore= (--ignore)"
    ]


def test_numeric_ids_that_are_named_are_not_warned_of(load: Load) -> None:
    assert noted(load, MANY, features=["doc_id", "price"])[1] == []
    assert noted(load, MANY, ignore=["doc_id"])[1] == []


def test_a_few_different_numbers_are_no_ids(load: Load) -> None:
    few = {name: values[:9] for name, values in MANY.items()}
    assert noted(load, few)[1] == []


def test_a_number_that_recurs_late_is_no_id(load: Load) -> None:
    n = 1200
    columns = {name: (values * 40)[:n] for name, values in MANY.items()} | {"doc_id": [*range(n - 1), 3]}
    assert noted(load, columns)[1] == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_scores_of_a_file_that_a_float_cannot_tell_apart_are_warned_of(suffix: str, tmp_path: Path) -> None:
    frame, path = pl.DataFrame(ROWS | {"score": [2**60, 2**60 + 1, 2**60 + 2, 5]}), tmp_path / f"rows{suffix}"
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}[suffix](path)
    message = (
        "scores of column 'score' beyond 2^50 are rounded, which may tie 2 that differ; subtract the smallest score"
    )
    with pytest.warns(DataWarning, match=message.replace("^", r"\^")) as caught:
        er.read(path, score="score")
    assert caught[0].filename == __file__
    frame.with_columns(score=pl.Series([2**60, 2**61, 2**62, 5])).write_csv(path.with_suffix(".csv"))
    assert er.read(path.with_suffix(".csv"), score="score").features[0, 0] == 2**60


@pytest.mark.parametrize(("power", "tied"), [(49, 0), (50, 2), (52, 2)])
@pytest.mark.parametrize("kind", [pl.Int64, pl.Decimal(38, 0), pl.String])
def test_whole_scores_that_floats_tie_are_warned_of(power: int, tied: int, kind: Any, tmp_path: Path) -> None:
    """They are still different floats there, but no further apart than the rule of ties reaches."""
    scores = pl.Series([2**power, 2**power + 1, 2**power + 2, 5]).cast(kind)
    pl.DataFrame(ROWS | {"score": scores}).write_parquet(tmp_path / "rows.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        er.read(tmp_path / "rows.parquet", score="score")
    told = [str(warning.message) for warning in caught if "rounded" in str(warning.message)]
    assert [f"which may tie {tied} that differ" in text for text in told] == [True] * (tied > 0)


def test_another_score_column_is_the_score_and_no_feature(tmp_path: Path) -> None:
    pl.DataFrame(without("rank") | {"s": [1.0, 2.0, 3.0, 4.0]}).write_csv(tmp_path / "rows.csv")
    data = er.read(tmp_path / "rows.csv", score="s")
    assert data.feature_names == ("s",)
    np.testing.assert_array_equal(data.features[:, 0], [1, 2, 3, 4])


def test_usual_names_whose_part_another_column_has_are_no_features(load: Load) -> None:
    columns = {**ROWS, "q2": [7, 7, 8, 8], "label": [0, 1, 1, 0], "sex": [0, 1, 0, 1], "group": [5, 6, 6, 5]}
    del columns["score"], columns["rank"]
    data, notes = noted(load, columns, query="q2", relevance="label", group="sex")
    assert data.feature_names == ("price",)
    assert notes == [BY_NAME.format("'qid', 'relevance', 'group'")]
    data, notes = noted(load, columns, query="q2", relevance="label", group="sex", features=["price", "qid"])
    assert (data.feature_names, notes) == (("price", "qid"), [])


def test_columns_may_be_called_by_numbers() -> None:
    table = pd.DataFrame({"qid": ROWS["qid"], "relevance": ROWS["relevance"], 3: ROWS["group"], 0: ROWS["price"]})
    data = er.RankingData.from_frame(table.assign(kind=pd.Categorical(["x", "y", "x", "y"])), group=3)  # type: ignore[arg-type]
    assert data.feature_names == ("0", "kind")
    assert data.to_caller(data.features)[:, 0].tolist() == ROWS["price"]
    assert data.group_names == ("a", "b")


@pytest.mark.parametrize("make", [pd.concat, lambda parts, axis: pd.concat(parts, axis=axis).astype(object)])
def test_columns_of_one_name_are_refused(make: Any) -> None:
    table = pd.DataFrame({name: ROWS[name] for name in ("qid", "relevance", "group", "price")})
    with pytest.raises(er.DataError, match="columns must have different names; twice there: 'price'"):
        er.RankingData.from_frame(make([table, table[["price"]]], axis=1))


def test_integers_of_128_bits_are_ids_and_features() -> None:
    table = pl.DataFrame({name: ROWS[name] for name in ("qid", "item", "relevance", "group", "price")})
    wide = table.with_columns(
        pl.col("qid", "item", "relevance").cast(pl.Int128), price=pl.Series([7, 8, 2, 1], dtype=pl.Int128)
    )
    data = er.RankingData.from_frame(wide.with_columns(item=pl.col("item") + 2**100))
    assert data.query_ids.tolist() == [1, 2]
    assert data.item_ids is not None
    assert data.item_ids[0] == 11 + 2**100
    assert data.features.ravel().tolist() == [7, 8, 2, 1]
