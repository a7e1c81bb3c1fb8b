"""Further label columns, read in the same pass as the rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError
from evenrank.io.columns import MissingColumn
from evenrank.io.registry import read_with_labels

FRAME = pl.DataFrame(
    {
        "qid": [2, 1, 2, 1],
        "item": ["d", "a", "c", "b"],
        "relevance": [1, 0, 0, 1],
        "group": ["x", "y", None, "x"],
        "band": [10, 20, 10, 30],
        "title": ["Queue", None, "Two", "One"],
        "price": [3.0, 1.0, 2.5, 4.0],
    }
)


@pytest.fixture(params=["csv", "tsv", "jsonl", "parquet"])
def path(request, tmp_path):
    file = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        FRAME.write_parquet(file)
    elif request.param == "jsonl":
        FRAME.write_ndjson(file)
    else:
        FRAME.write_csv(file, separator="\t" if request.param == "tsv" else ",")
    return file


def test_labels_come_in_the_order_of_the_file(path):
    data, labels = read_with_labels(path, [("group", "band"), ("item-title", "title")])
    assert data.feature_names == ("price",)
    assert labels["band"].tolist() == [10, 20, 10, 30]
    assert labels["title"].tolist() == ["Queue", None, "Two", "One"]
    assert data.to_caller(data.features)[:, 0].tolist() == [3.0, 1.0, 2.5, 4.0]


def test_they_are_the_groups_that_a_reading_of_their_own_gives(path):
    data, labels = read_with_labels(path, [("group", "band"), ("title", "title")])
    for column in ("band", "title"):
        alone = er.read(path, group=column, features=["price"])
        together = data.with_group(labels[column])
        assert together.group_names == alone.group_names
        np.testing.assert_array_equal(together.group, alone.group)
        np.testing.assert_array_equal(together.item_ids, alone.item_ids)


def test_a_label_column_may_be_a_feature_if_named_and_the_items_too(path):
    data, labels = read_with_labels(path, [("group", "band"), ("title", "item")], features=["price", "band"])
    assert data.feature_names == ("price", "band")
    assert labels["item"].tolist() == ["d", "a", "c", "b"]
    assert data.to_caller(data.item_ids).tolist() == ["d", "a", "c", "b"]


def test_a_missing_one_is_named_by_its_part(path):
    with pytest.raises(MissingColumn, match="item-title column 'hair' is not in the data"):
        read_with_labels(path, [("group", "band"), ("item-title", "hair")])
    with pytest.raises(ConfigError, match="the query column must have no other part; 'qid' is also the query-title"):
        read_with_labels(path, [("query-title", "qid")])


def test_features_of_a_letor_file_are_labels(tmp_path):
    file = tmp_path / "rows.letor"
    file.write_text("1 qid:1 1:0 2:5 3:0.5\n0 qid:1 1:1 2:6 3:1.5\n")
    data, labels = read_with_labels(file, [("group", "2")], group="1", ignore=["1", "2"])
    assert labels["2"].tolist() == [5, 6]
    assert data.feature_names == ("3",)
    with pytest.raises(MissingColumn, match="feature '9' is not in the data"):
        read_with_labels(file, [("group", "9")], group="1")


def test_a_format_without_columns_says_so(tmp_path):
    file = tmp_path / "rows.run"
    file.write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n")
    with pytest.raises(DataError, match=r"rows.run: the format has no column 'band'"):
        read_with_labels(file, [("group", "band")], group=None, relevance=None)


# ---------------------------------------------------------------------- whole numbers written as floats


def test_a_group_that_is_a_whole_number_is_the_same_in_every_format(tmp_path):
    """A column of whole numbers is one of floats as soon as one of them is missing, and pandas writes 1.0."""
    whole = FRAME.drop("title").with_columns(group=pl.Series([2, 1, None, 2]))
    floats = FRAME.drop("title").with_columns(group=pl.Series([2.0, 1.0, None, 2.0]))
    for number, frame in enumerate((whole, floats)):
        files = [tmp_path / f"{number}.{suffix}" for suffix in ("csv", "jsonl", "parquet")]
        for file, write in zip(files, (frame.write_csv, frame.write_ndjson, frame.write_parquet), strict=True):
            write(file)
        for data in [er.RankingData.from_frame(frame), *map(er.read, files)]:
            assert repr(data.group_names) == "(1, 2)"
            assert data.to_caller(data.group).tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (["1.0", "2.0"], "(1, 2)"),
        (["1", "2.0"], "(1, 2)"),
        (["-3.0", "0.0"], "(-3, 0)"),
        (["1.0", "other"], "('1', 'other')"),
        (["01", "1.0"], "('01', '1')"),
        (["1.50", "1e3"], "('1.50', '1e3')"),
        (["1.00", "2.0"], "('1.00', '2')"),
        (["1.0", "1.5"], "('1.0', '1.5')"),
        (["v1.0", "1.0.0"], "('1.0.0', 'v1.0')"),
    ],
)
def test_texts_that_are_no_whole_numbers_stay_what_they_are(tmp_path, written, names):
    file = tmp_path / "rows.csv"
    file.write_text("qid,relevance,group,price\n" + "".join(f"1.0,0,{label},2\n" for label in written))
    data = er.read(file)
    assert repr(data.group_names) == names
    assert data.query_ids.tolist() == ["1.0"]  # ids stay as they stand
