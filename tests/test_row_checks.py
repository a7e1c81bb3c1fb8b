"""The rules rows must keep: each broken in turn, with the one line the user reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenrank as er
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, EvenrankError
from evenrank.labels import group_rows, is_missing, tidy_labels
from evenrank.measures import measure
from evenrank.row_checks import gather, listed

GOOD = {
    "X": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "relevance": [0, 1, 1],
    "group": ["a", "b", "a"],
    "qid": ["q1", "q2", "q1"],
}
ROW = "Drop the row or fill the value"


def with_value(name: str, value: Any) -> list[Any]:
    """The column with a bad value in row 2, which is not where it is stored."""
    return [*GOOD[name][:2], value]


def length(what: str) -> str:
    return rf"{what} must have one value for each of the 3 rows; got shape \(2,\)\."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # features
        ({"X": with_value("X", [5, np.inf])}, r"row 2: feature 1 must be a finite number; got inf\. Fill or drop it\."),
        ({"X": with_value("X", [-np.inf, 6])}, r"row 2: feature 0 must be a finite number; got -inf\. Fill .*"),
        ({"X": [[np.inf, 1], [-np.inf, 1], [1, 1]]}, r"row 0: feature 0 must be a finite number; got inf\. Fill .*"),
        (
            {"X": with_value("X", [5, np.inf]), "feature_names": ["age", "pay"]},
            r"row 2: feature 'pay' must be a finite number; got inf\. .*",
        ),
        (
            {"X": pd.DataFrame({"age": [1.0, 2.0, np.inf]})},
            r"row 2: feature 'age' must be a finite number; got inf\. .*",
        ),
        ({"X": with_value("X", ["x", 6])}, r"X must be numeric; got <U32 values\. Encode text columns first\."),
        ({"X": np.array([[1j], [1], [1]])}, r"X must be numeric; got complex128 values\. .*"),
        (
            {"X": np.array([["2020"]] * 3, "M8[D]")},
            r"X must be numeric; got datetime64\[D\] values\. .*",
        ),
        ({"X": np.zeros((3, 1), "m8[s]")}, r"X must be numeric; got timedelta64\[s\] values\. .*"),
        ({"X": [[10**400], [1], [1]]}, r"X must be numbers below 1\.8e308 in magnitude; got a larger integer\."),
        ({"X": [1.0, 2.0, 3.0]}, r"X must be two-dimensional \(rows, features\); got shape \(3,\)\."),
        ({"X": [[1.0], [2.0, 3.0], [4.0]]}, r"X must be a regular array; got rows of different lengths\."),
        ({"X": np.zeros((0, 2))}, r"The data has no rows; at least one is needed\."),
        ({"feature_names": ["age", "age"]}, r"feature_names must differ; 'age' occurs twice\."),
        ({"feature_names": ["age"]}, r"feature_names must have a name for each of the 2 features; got 1\."),
        # relevance
        (
            {"relevance": with_value("relevance", -1)},
            rf"row 2: relevance must be a finite number ≥ 0; got -1\. {ROW}\.",
        ),
        ({"relevance": with_value("relevance", np.nan)}, rf"row 2: relevance must be .* ≥ 0; got nan\. {ROW}\."),
        ({"relevance": with_value("relevance", np.inf)}, rf"row 2: relevance must be .* ≥ 0; got inf\. {ROW}\."),
        ({"relevance": with_value("relevance", "n/a")}, rf"row 2: relevance must be .* ≥ 0; got 'n/a'\. {ROW}\."),
        ({"relevance": with_value("relevance", pd.NA)}, rf"row 2: relevance must be .* ≥ 0; got <NA>\. {ROW}\."),
        (
            {"relevance": with_value("relevance", 1e101)},
            rf"row 2: relevance must be at most 1e\+100; got 1e\+101\. {ROW}\.",
        ),
        ({"relevance": np.array([0, 1j, 1])}, r"relevance must be numbers; got complex128 values\."),
        ({"relevance": np.array([0, 1, 2], "M8[D]")}, r"relevance must be numbers; got datetime64\[D\] values\."),
        ({"relevance": np.zeros(3, "m8[s]")}, r"relevance must be numbers; got timedelta64\[s\] values\."),
        ({"relevance": np.zeros(3, [("a", "f8")])}, r"relevance must be numbers; got .* values\."),
        ({"relevance": [0, 10**400, 1]}, r"relevance must be numbers below 1\.8e308 in magnitude; got a larger .*"),
        ({"relevance": [0, [1], 1]}, r"relevance must be a regular array; got rows of different lengths\."),
        ({"relevance": [[0], [1], [1]]}, r"relevance must have one value for each .*; got shape \(3, 1\)\."),
        # lengths
        ({"relevance": [0, 1]}, length("relevance")),
        ({"group": ["a", "b"]}, length("group")),
        ({"qid": [1, 2]}, length("qid")),
        ({"item_ids": [1, 2]}, length("item_ids")),
        ({"sample_weight": [1, 2]}, length("sample_weight")),
        ({"qid": "q1q"}, r"qid must have one value for each of the 3 rows; got shape \(\)\."),
        ({"qid": None}, r"qid must have one value for each of the 3 rows; got shape \(\)\."),
        # ids
        ({"qid": with_value("qid", "")}, r"row 2: qid must not be empty\. Fill it or drop the row\."),
        ({"qid": with_value("qid", None)}, r"row 2: qid must not be empty\. .*"),
        ({"qid": [1.0, 2.0, np.nan]}, r"row 2: qid must not be empty\. .*"),
        ({"qid": np.array(["2020", "2021", "NaT"], "M8[ns]")}, r"row 2: qid must not be empty\. .*"),
        ({"qid": pd.Series([1, 2, None], dtype="Int64")}, r"row 2: qid must not be empty\. .*"),
        ({"item_ids": ["d", "e", None]}, r"row 2: item_ids must not be empty\. .*"),
        ({"qid": [{"a": 1}, {"a": 1}, {"a": 2}]}, r"qid must be plain values .*; got \{'a': 1\}\."),
        ({"group": [["a"], ["b"], ["a"]]}, r"group must be plain values such as text or numbers; got \['a'\]\."),
        (
            {"item_ids": ["d", "d", "d"]},
            r"row 2: item 'd' occurs twice in query 'q1' \(first at row 0\)\. Keep one row per item\.",
        ),
        (
            {"item_ids": [7, 7, 7], "qid": np.array([4, 4, 5])},
            r"row 1: item 7 occurs twice in query 4 \(first at row 0\)\. .*",
        ),
        # weights and threshold
        ({"sample_weight": [0, 0, 0]}, r"sample_weight must have a positive sum; every weight is 0\."),
        ({"sample_weight": [1, 1, -2]}, rf"row 2: sample_weight must be a finite number ≥ 0; got -2\. {ROW}\."),
        ({"relevance_threshold": np.nan}, r"relevance_threshold must be a finite number; got nan\."),
        ({"relevance_threshold": "high"}, r"relevance_threshold must be a finite number; got 'high'\."),
        ({"relevance_threshold": None}, r"relevance_threshold must be a finite number; got None\."),
    ],
)
def test_broken_rule_is_said_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, ConfigError), match=f"^{message}$") as caught:
        RankingData.from_arrays(**GOOD | changes)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, EvenrankError)
    assert isinstance(caught.value, ValueError)
    assert (caught.type is ConfigError) == ("relevance_threshold" in changes)


def test_good_rows_are_accepted() -> None:
    """Each rule above is broken by one change to these."""
    assert RankingData.from_arrays(**GOOD).n_rows == 3
    assert RankingData.from_arrays(**GOOD | {"item_ids": ["d", "d", "e"]}).n_rows == 3
    assert RankingData.from_arrays(**GOOD | {"X": [["1", "2"]] * 3, "relevance": ["0", "1", "2.5"]}).n_features == 2
    assert RankingData.from_arrays(**GOOD | {"X": np.full((3, 2), 1e308)}).features.max() == 1e308
    assert RankingData.from_arrays(**GOOD | {"X": np.zeros((3, 0))}).n_features == 0


def test_row_is_named_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.row_checks.BLOCK_BYTES", 2 * 8 * 2)  # blocks of two rows
    with pytest.raises(DataError, match=r"^row 2: feature 1 must be a finite number"):
        RankingData.from_arrays(**GOOD | {"X": with_value("X", [5, np.inf])})


def test_place_is_named_by_the_reader() -> None:
    with pytest.raises(DataError, match=r"^rows\.csv:4: relevance must be"):
        RankingData.from_arrays(**GOOD | {"relevance": [0, 1, -1]}, locate=lambda row: f"rows.csv:{row + 2}")


FRAME = {"qid": [1, 2, 1], "relevance": [0, 1, 1], "group": ["a", "b", "a"], "age": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {"query": "query"}, r"query column 'query' is not in the data; it has 'qid', 'relevance', .*\."),
        ({}, {"relevance": "label"}, r"relevance column 'label' is not in the data; it has .*"),
        ({}, {"group": "sex"}, r"group column 'sex' is not in the data; it has .*"),
        ({}, {"item": "doc"}, r"item column 'doc' is not in the data; it has .*"),
        ({}, {"sample_weight": "w"}, r"sample_weight column 'w' is not in the data; it has .*"),
        ({}, {"features": ["pay"]}, r"feature column 'pay' is not in the data; it has .*"),
        ({}, {"features": ["age", "age"]}, r"feature_names must differ; 'age' occurs twice\."),
        (
            {"age": ["x", "2", "y"]},
            {"features": ["age"]},
            r"row 0: column 'age' must be numeric; got 'x'\. If .*",
        ),
        ({"age": ["1", "2", "y"]}, {"features": ["age"]}, r"row 2: column 'age' must be numeric; got 'y'\. If .*"),
        ({"age": [1.0, 2.0, np.inf]}, {}, r"row 2: feature 'age' must be a finite number; got inf\. .*"),
        ({"relevance": [0, 1, None]}, {}, r"row 2: column 'relevance' must be .* number; got an empty value\. .*"),
        ({"relevance": ["0", "1", "n/a"]}, {}, r"row 2: column 'relevance' must be numeric; got 'n/a'\."),
        ({"relevance": [0, 1, -1]}, {}, r"row 2: relevance must be a finite number ≥ 0; got -1\. .*"),
        ({"qid": ["a", "b", None]}, {}, r"row 2: qid must not be empty\. .*"),
        ({"qid": [1, 2, None]}, {}, r"row 2: qid must not be empty\. .*"),
    ],
)
def test_broken_rule_of_a_frame(make: Any, columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        RankingData.from_frame(make(FRAME | columns), **options)


@pytest.mark.parametrize("table", [FRAME, [1, 2], None, pl.LazyFrame(FRAME)], ids=["dict", "list", "None", "lazy"])
def test_what_is_not_a_frame(table: Any) -> None:
    with pytest.raises(DataError, match=r"^df must be a pandas, polars or pyarrow table; got \w+\. Use from_arrays"):
        RankingData.from_frame(table)


# ---------------------------------------------------------------------- the small parts


@pytest.mark.parametrize("value", [None, float("nan"), np.nan, pd.NA, pd.NaT, "", np.float32("nan"), np.str_("")])
def test_missing(value: Any) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, 0.0, False, " ", "nan", (), -1])
def test_not_missing(value: Any) -> None:
    assert not is_missing(value)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([1, 2], "i"), ([1.5, 2.5], "f"), (["a", "b"], "U"), ([1, "a"], "O"), ([1, 2.5], "O"), ([2**63, -1], "O")],
)
def test_labels_keep_their_values(labels: list[Any], kind: str) -> None:
    found = tidy_labels(labels)
    assert found.dtype.kind == kind
    assert found.tolist() == labels


def test_group_rows_joins_what_is_apart() -> None:
    order, ptr, ids = group_rows(np.array(["b", "a", "a", "b", "c"]))
    assert order is not None
    assert (order.tolist(), ptr.tolist(), ids.tolist()) == ([0, 3, 1, 2, 4], [0, 2, 4, 5], ["b", "a", "c"])
    order, ptr, ids = group_rows(np.array(["b", "b", "a"]))
    assert order is None
    assert (ptr.tolist(), ids.tolist()) == ([0, 2, 3], ["b", "a"])


def test_gather_of_a_run_is_a_view() -> None:
    X = np.arange(10.0).reshape(5, 2)
    assert np.shares_memory(gather(X, np.array([1, 2, 3])), X)
    for rows in ([3, 2, 1], [0, 2], [1, 1], [0, 2, 1, 3]):
        assert gather(X, np.array(rows)).tolist() == X[rows].tolist()


def test_long_lists_of_names_are_cut() -> None:
    assert listed("abc") == "'a', 'b', 'c'"
    assert listed(range(20)).endswith("10, 11, … (20 in all)")


@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
def test_how_many_rows_are_looked_at_a_time_changes_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.labels.LABELS", rows)
    labels = ["b", None, "a", float("nan"), "b", "", "c", "a"]
    query, items = [1, 1, 1, 2, 2, 2, 3, 3], ["x", "y", "z", "x", "y", "z", "x", "y"]
    data = RankingData.from_arrays(np.zeros((8, 1)), np.zeros(8), labels, query, item_ids=items)
    assert data.group.tolist() == [1, -1, 0, -1, 1, -1, 2, 0]
    assert data.group_names == ("a", "b", "c")
    for twice in (["x", "y", "z", "x", "x", "z", "x", "y"], [1, 2, 3, 1, 1, 3, 1, 2]):
        with pytest.raises(DataError, match=r"row 4: item ('x'|1) occurs twice in query 2 \(first at row 3\)"):
            RankingData.from_arrays(np.zeros((8, 1)), np.zeros(8), labels, query, item_ids=twice)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]", "c16", [("a", "f8")]])
def test_scores_of_other_kinds_are_refused(kind: object) -> None:
    data = RankingData.from_arrays(np.zeros((3, 0)), [0, 1, 1], ["a", "b", "b"], [1, 1, 1])
    with pytest.raises(DataError, match="scores must be numbers; got"):
        measure(np.zeros(3, kind), data, ["ndcg@2"])


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_of_scores_is_an_array() -> None:
    data = RankingData.from_arrays(GOOD["X"], GOOD["relevance"], GOOD["group"], GOOD["qid"])
    column = np.array([[1.0], [2.0], [3.0]])
    assert measure(np.matrix(column), data, ["ndcg@1"])["ndcg@1"] == measure(column, data, ["ndcg@1"])["ndcg@1"]


def test_whole_numbers_beyond_every_float_are_no_scores() -> None:
    data = RankingData.from_arrays(GOOD["X"], GOOD["relevance"], GOOD["group"], GOOD["qid"])
    measure([10**300, 10**300 + 1, 3], data, ["ndcg@1"])
    for scores in ([10**400, 1, 2], np.array([1, -(10**400), 2], object)):
        with pytest.raises(
            DataError, match=r"scores must be numbers below 1\.8e308 in magnitude; got a larger integer"
        ):
            measure(scores, data, ["ndcg@1"])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 2), "M8[s]"), r"X must be numeric; got datetime64\[s\] values"),
        (np.zeros((4, 2), "m8[s]"), r"X must be numeric; got timedelta64\[s\] values"),
        (pd.DataFrame({"a": [1.0] * 4, "b": pd.date_range("2026", periods=4)}), "X must be numeric; got datetime64"),
        (np.full((4, 2), 10**400, object), r"X and y must be numbers below 1\.8e308"),
    ],
    ids=["times", "durations", "frame", "400 digits"],
)
def test_features_that_are_no_numbers_are_refused_by_rankers(X: Any, message: str) -> None:
    y, rest = [0, 1, 1, 0], {"qid": [0, 0, 1, 1], "sensitive_features": [0, 1, 0, 1]}
    with pytest.raises(DataError, match=message):
        er.FairLinearRanker().fit(X, y, **rest)
    ranker = er.FairLinearRanker().fit(np.arange(8.0).reshape(4, 2) % 3, y, **rest)
    if isinstance(X, np.ndarray):
        with pytest.raises(DataError, match=message):
            ranker.predict(X)


def test_an_arrow_table_has_its_own_names() -> None:
    table = pa.table({"age": [1.0, 2.0, 3.0], "pay": [4.0, 5.0, 6.0]})
    data = RankingData.from_arrays(table, [0, 1, 1], ["a", "b", "b"], [1, 1, 1])
    assert data.feature_names == ("age", "pay")
    assert data.features.tolist() == [[1, 4], [2, 5], [3, 6]]
