"""`RankingData`: the same rows however they come, in the order they came, and never changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.notions import violation
from evenrank.row_checks import MappedPages, block_rows

N = 7
COLUMNS: dict[str, list[Any]] = {
    "qid": ["q2", "q1", "q2", "q3", "q1", "q3", "q2"],
    "item": ["d1", "d1", "d2", "d1", "d2", "d9", "d3"],
    "relevance": [0, 1, 2, 0, 1, 0, 3],
    "group": ["m", "f", None, "f", "m", "x", "f"],
    "price": [1.5, 2.5, -3.0, 0.0, 7.0, 8.0, 9.0],
    "stars": [5, 4, 3, 2, 1, 0, 9],
    "new": [True, False, True, True, False, False, True],
    "weight": [1.0, 2.0, 0.0, 0.5, 1.0, 1.0, 1.0],
}
STORED = [0, 2, 6, 1, 4, 3, 5]  # q2, q1, q3 in order of appearance, each in the order of its rows
FEATURES = np.array([COLUMNS["price"], COLUMNS["stars"], COLUMNS["new"]], float).T


def arrays(**changes: Any) -> RankingData:
    given_ = {
        "X": FEATURES,
        "relevance": COLUMNS["relevance"],
        "group": COLUMNS["group"],
        "qid": COLUMNS["qid"],
        "item_ids": COLUMNS["item"],
        "feature_names": ["price", "stars", "new"],
        "sample_weight": COLUMNS["weight"],
    }
    return RankingData.from_arrays(**given_ | changes)


def same(one: RankingData, two: RankingData) -> None:
    for name in ("features", "relevance", "group", "query_ptr", "query_ids", "item_ids", "row_order", "sample_weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert (one.feature_names, one.group_names) == (two.feature_names, two.group_names)
    assert one.relevance_threshold == two.relevance_threshold


# ---------------------------------------------------------------------- building


def test_rows_are_grouped_by_query_in_order_of_appearance() -> None:
    data = arrays()
    assert data.row_order is not None
    assert data.row_order.tolist() == STORED
    assert data.query_ids.tolist() == ["q2", "q1", "q3"]
    assert data.query_ptr.tolist() == [0, 3, 5, 7]
    assert data.lengths.tolist() == [3, 2, 2]
    assert data.query_of_row.tolist() == [0, 0, 0, 1, 1, 2, 2]
    np.testing.assert_array_equal(data.features, FEATURES[STORED])
    assert data.relevance.tolist() == [COLUMNS["relevance"][i] for i in STORED]
    assert data.item_ids.tolist() == [COLUMNS["item"][i] for i in STORED]
    assert data.sample_weight.tolist() == [COLUMNS["weight"][i] for i in STORED]
    assert data.group_names == ("f", "m", "x")
    assert data.group.tolist() == [1, -1, 0, 0, 1, 0, 2]
    assert (data.n_rows, data.n_queries, data.n_features, data.n_groups) == (7, 3, 3, 3)
    assert (data.features.dtype, data.relevance.dtype, data.group.dtype) == (np.float64, np.float64, np.int32)
    assert (data.query_ptr.dtype, data.row_order.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames_equal_arrays(make: Any) -> None:
    data = RankingData.from_frame(make(COLUMNS), item="item", sample_weight="weight")
    same(data, arrays())
    chosen = RankingData.from_frame(make(COLUMNS), item="item", features=["stars", "price"], sample_weight="weight")
    same(chosen, arrays(X=FEATURES[:, [1, 0]], feature_names=["stars", "price"]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frame_without_labels_or_groups(make: Any) -> None:
    data = RankingData.from_frame(
        make(COLUMNS), relevance=None, group=None, ignore=["relevance", "group", "item", "weight"]
    )
    same(data, arrays(relevance=np.zeros(N), group=None, item_ids=None, sample_weight=None))


def test_frame_with_an_index_of_its_own() -> None:
    frame = pd.DataFrame(COLUMNS).set_index(pd.Index([5, 5, 3, 2, 9, 9, 1]))
    same(RankingData.from_frame(frame, item="item", sample_weight="weight"), arrays())


@pytest.mark.parametrize("column", [pd.Series, pl.Series, pa.array, np.array, tuple])
def test_columns_of_any_kind_are_arrays(column: Any) -> None:
    data = arrays(qid=column(COLUMNS["qid"]), item_ids=column(COLUMNS["item"]), relevance=column(COLUMNS["relevance"]))
    same(data, arrays())


def test_frame_as_x_gives_its_names() -> None:
    frame = pd.DataFrame(FEATURES, columns=["price", "stars", "new"])
    same(arrays(X=frame, feature_names=None), arrays())
    assert arrays(feature_names=None).feature_names == ("x0", "x1", "x2")


@given(st.permutations(range(N)))
def test_any_order_of_rows_is_the_same_data(order: list[int]) -> None:
    columns = {name: [values[i] for i in order] for name, values in COLUMNS.items()}
    data = RankingData.from_frame(pl.DataFrame(columns), item="item", sample_weight="weight")
    rows = {
        (query, item): (tuple(x), r, g, w)
        for query, item, x, r, g, w in zip(
            data.query_ids[data.query_of_row],
            data.item_ids,
            data.features.tolist(),
            data.relevance,
            data.group,
            data.sample_weight,
            strict=True,
        )
    }
    codes = {"f": 0, "m": 1, "x": 2, None: -1}
    assert rows == {
        (COLUMNS["qid"][i], COLUMNS["item"][i]): (
            tuple(FEATURES[i]),
            COLUMNS["relevance"][i],
            codes[COLUMNS["group"][i]],
            COLUMNS["weight"][i],
        )
        for i in range(N)
    }
    caller = np.arange(N) * 10.0
    back = data.to_caller(data.to_stored(caller))
    assert back.tolist() == caller.tolist()


def test_rows_already_together_are_left_as_they_are() -> None:
    X = np.arange(8.0).reshape(4, 2)
    data = RankingData.from_arrays(X, [0, 1, 0, 1], None, ["b", "b", "a", "a"])
    assert data.row_order is None
    assert np.shares_memory(data.features, X)
    values = np.arange(4.0)
    assert data.to_stored(values) is values
    assert data.to_caller(values) is values


# ---------------------------------------------------------------------- labels of any type

NA = [None, float("nan"), pd.NA, pd.NaT, ""]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([2, 10, 1], (1, 2, 10)),
        ([True, False, True], (False, True)),
        (["b", "a", "B"], ("B", "a", "b")),
        (["10", "9", "10"], ("10", "9")),
        ([1.5, -1.0, 1.5], (-1.0, 1.5)),
        ([2, "b", 1], (1, 2, "b")),
        ([(1, 2), (1, 1), (1, 2)], ((1, 1), (1, 2))),
        ([dt.date(2021, 1, 1), dt.date(2020, 1, 1), dt.date(2020, 1, 1)], (dt.date(2020, 1, 1), dt.date(2021, 1, 1))),
        ([2**80, -1, 2**70], (-1, 2**70, 2**80)),
    ],
)
@pytest.mark.parametrize("missing", NA, ids=repr)
def test_group_names_are_the_sorted_labels(labels: list[Any], names: tuple[Any, ...], missing: Any) -> None:
    data = RankingData.from_arrays(np.zeros((4, 1)), np.zeros(4), [missing, *labels], [1] * 4)
    assert data.group_names == names
    assert [type(name) for name in data.group_names] == [type(name) for name in names]
    assert data.group.tolist() == [-1] + [names.index(label) for label in labels]


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_times_are_group_labels(unit: str) -> None:
    times = np.array(["2021-01-01", "2020-01-01", "NaT"], f"M8[{unit}]")
    data = RankingData.from_arrays(np.zeros((3, 1)), np.zeros(3), times, [1] * 3)
    assert data.group_names == (dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1))
    assert data.group.tolist() == [1, 0, -1]


def test_categories_are_labels() -> None:
    frame = pd.DataFrame({"qid": [1, 1, 1], "relevance": [0, 0, 0], "group": ["z", "a", None], "x": [1.0, 2.0, 3.0]})
    for typed in (frame, frame.astype({"group": "category"}), frame.astype({"group": "string"})):
        data = RankingData.from_frame(typed)
        assert data.group_names == ("a", "z")
        assert data.group.tolist() == [1, 0, -1]


def test_group_names_with_codes_or_with_labels() -> None:
    def grouped(group: Any, names: Any = ("male", "female", "other")) -> RankingData:
        return RankingData.from_arrays(np.zeros((4, 1)), np.zeros(4), group, [1] * 4, group_names=names)

    for group in ([0, 1, -1, 0], [0, 1, None, 0], np.array([0, 1, -1, 0], np.int8), ["male", "female", "", "male"]):
        data = grouped(group)
        assert data.group_names == ("female", "male", "other")
        assert data.group.tolist() == [1, 0, -1, 1]
    # Labels that happen to be the names are labels, not codes.
    assert grouped([1, 0, 1, 1], (1, 0)).group.tolist() == [1, 0, 1, 1]
    with pytest.raises(DataError, match=r"^group 3 is neither in group_names \('male', .*\) nor a code into them\.$"):
        grouped([0, 1, 3, 0])
    with pytest.raises(DataError, match=r"^group 'mael' is neither in group_names"):
        grouped(["male", "mael", "male", "male"])
    with pytest.raises(DataError, match=r"^group 0 is neither"):
        grouped(["male", 0, "male", 0])
    with pytest.raises(DataError, match=r"^group_names must differ; got 'a', 'a'\.$"):
        grouped([0, 1, 0, 1], ("a", "a"))


@pytest.mark.parametrize(
    "ids",
    [
        [2**80, 1, 2**80, 2**80 + 1],
        [2**63, -1, 2**63, 2**62],
        [2**53, 2**53 + 1, 2**53, 2**53 + 2],
        ["1", "01", "1", "1.0"],
        [1, "1", 1, 1.5],
        [(1, "a"), (1, "b"), (1, "a"), (2, "a")],
        [(1,), (1, 2), (1,), ()],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 3)],
        [np.datetime64("2020", "ns"), np.datetime64("2021", "ns"), np.datetime64("2020", "ns"), np.datetime64(1, "ns")],
        [1.5, 2.5, 1.5, -0.5],
        [False, True, False, False],
        [b"a", b"b", b"a", b"c"],
    ],
    ids=repr,
)
def test_ids_of_any_type(ids: list[Any]) -> None:
    data = RankingData.from_arrays(np.arange(4.0)[:, None], np.zeros(4), None, ids, item_ids=list(range(4)))
    assert list(data.query_ids) == list(dict.fromkeys(ids))
    assert data.features[:2, 0].tolist() == [0, 2]
    items = RankingData.from_arrays(np.zeros((4, 1)), np.zeros(4), None, [1, 1, 2, 3], item_ids=ids)
    assert list(items.item_ids) == ids


def test_threshold_decides_what_is_relevant() -> None:
    assert arrays().relevant.tolist() == [False, True, True, True, True, False, False]
    assert arrays(relevance_threshold=2).relevant.tolist() == [False, True, True, False, False, False, False]
    assert arrays(relevance_threshold=2).take([0]).relevance_threshold == 2


# ---------------------------------------------------------------------- memory


def memmap(folder: Path, qid: list[int], dtype: type = np.float32) -> tuple[np.memmap, RankingData]:
    X = np.memmap(folder / "X", dtype, "w+", shape=(len(qid), 2))
    X[:] = np.arange(X.size).reshape(X.shape)
    return X, RankingData.from_arrays(X, np.zeros(len(qid)), None, qid)


def test_grouped_memmap_stays_the_same_file(tmp_path: Path) -> None:
    X, data = memmap(tmp_path, [3, 3, 1, 1, 2])
    for part in (data.features, data.take([1, 2]).features):
        assert isinstance(part, np.memmap)
        assert part.filename == X.filename
        assert np.shares_memory(part, X)
    assert data.take([1, 2]).features.tolist() == X[2:].tolist()


def test_ungrouped_memmap_stays_a_memmap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.row_checks.BLOCK_BYTES", 2 * 8 * 2)  # blocks of two rows
    assert block_rows(2) == 2
    X, data = memmap(tmp_path, [3, 1, 3, 1, 2])
    assert isinstance(data.features, np.memmap)
    assert not np.shares_memory(data.features, X)
    assert data.features.dtype == np.float32
    assert data.features.tolist() == X[[0, 2, 1, 3, 4]].tolist()
    apart = data.take([2, 0])
    assert isinstance(apart.features, np.memmap)
    assert apart.features.tolist() == X[[4, 0, 2]].tolist()
    assert [rows for rows, _ in data.blocks()] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert np.concatenate([block for _, block in data.blocks()]).tolist() == data.features.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_of_features_stays(dtype: type) -> None:
    assert arrays(X=FEATURES.astype(dtype)).features.dtype == dtype
    frame = pl.DataFrame({"qid": [1, 2], "relevance": [0, 1], "group": ["a", "b"], "x": np.array([1, 2], dtype)})
    assert RankingData.from_frame(frame).features.dtype == dtype
    mixed = frame.with_columns(y=pl.Series([1.0, 2.0]))
    assert RankingData.from_frame(mixed).features.dtype == np.float64


def test_whole_numbers_become_float64() -> None:
    assert arrays(X=FEATURES.astype(np.int16)).features.dtype == np.float64


@pytest.mark.parametrize("qid", [[1, 1, 2, 2], [1, 2, 1, 2]], ids=["grouped", "mixed"])
def test_arrays_are_read_only_and_the_callers_are_not(qid: list[int]) -> None:
    mine = {
        "X": np.zeros((4, 1)),
        "relevance": np.zeros(4),
        "group": np.array([0, 1, 0, 1]),
        "qid": np.array(qid),
        "item_ids": np.arange(4),
        "sample_weight": np.ones(4),
    }
    data = RankingData.from_arrays(**mine)
    held = [data, data.take([1]), data.with_group([1, 1, 0, 0])]
    for name in ("features", "relevance", "group", "query_ptr", "query_ids", "item_ids", "sample_weight"):
        for one in held:
            with pytest.raises(ValueError, match="read-only"):
                getattr(one, name)[0] = 1
    for name, array in mine.items():
        assert array.flags.writeable, name
        array[0] = 3
    # Only the features may be shared with the caller: they can be larger than memory.
    assert data.relevance.tolist() == [0] * 4
    assert data.query_ids.tolist() == [1, 2]
    assert sorted(data.item_ids.tolist()) == [0, 1, 2, 3]
    assert data.sample_weight.tolist() == [1] * 4
    with pytest.raises(AttributeError):
        data.relevance = np.ones(4)  # type: ignore[misc]


# ---------------------------------------------------------------------- deriving


@pytest.mark.parametrize("chosen", [[2, 0], np.array([2, 0]), np.array([2, 0], np.uint8), (2, 0)])
def test_take_by_number_keeps_the_given_order(chosen: Any) -> None:
    data = arrays()
    part = data.take(chosen)
    rows = [5, 6, 0, 1, 2]
    assert part.query_ids.tolist() == ["q3", "q2"]
    assert part.query_ptr.tolist() == [0, 2, 5]
    for name in ("features", "relevance", "group", "item_ids", "sample_weight"):
        np.testing.assert_array_equal(getattr(part, name), getattr(data, name)[rows], err_msg=name)
    assert part.row_order is None
    assert part.group_names == data.group_names
    assert part.lengths.tolist() == [2, 3]
    assert part.parent is data
    assert part.take([0]).parent is data


def test_take_by_mask() -> None:
    data = arrays()
    for mask in ([True, False, True], np.array([True, False, True])):
        same(data.take(mask), data.take([0, 2]))


def test_take_may_repeat_a_query() -> None:
    data = arrays()
    assert data.take([1, 1]).relevance.tolist() == data.relevance[[3, 4, 3, 4]].tolist()


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], r"queries must be a non-empty list of query numbers or a mask; got none\."),
        ([False] * 3, r"queries must be a non-empty list .*; got none\."),
        ([True] * 4, r"a query mask must have shape \(3,\); got \(4,\)\."),
        ([0.0, 1.0], r"queries must be .*; got float64 values of shape \(2,\)\."),
        (["q1"], r"queries must be .*; got <U2 values of shape \(1,\)\."),
        ([[0, 1]], r"queries must be .*; got int64 values of shape \(1, 2\)\."),
        ([0, 3], r"query numbers must be in 0…2; got 0…3\."),
        ([-1], r"query numbers must be in 0…2; got -1…-1\."),
    ],
)
def test_take_mistakes(queries: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        arrays().take(queries)


def test_with_group_is_in_the_callers_order() -> None:
    data = arrays()
    other = data.with_group(["s", "t", "s", "t", "t", None, "s"])
    assert other.group_names == ("s", "t")
    assert other.group.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert other.features is data.features
    assert data.group_names == ("f", "m", "x")
    assert data.with_group(None).n_groups == 0
    assert data.with_group([0] * N, ["one", "two"]).group_names == ("one", "two")
    with pytest.raises(DataError, match=r"^group must have one value for each of the 7 rows; got shape \(2,\)\.$"):
        data.with_group(["s", "t"])


def test_column_by_name() -> None:
    assert arrays().column("stars").tolist() == [COLUMNS["stars"][i] for i in STORED]
    with pytest.raises(DataError, match=r"^feature 'colour' is not in the data; its features are 'price', 'stars'"):
        arrays().column("colour")


def test_scores_of_many_models_go_both_ways() -> None:
    data = arrays()
    scores = np.arange(N * 2.0).reshape(N, 2)
    assert data.to_stored(scores).tolist() == scores[STORED].tolist()
    assert data.to_caller(data.to_stored(scores)).tolist() == scores.tolist()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8", "u8", "i1", "?"])
def test_the_type_of_scores_stays(dtype: str) -> None:
    assert arrays().to_stored(np.ones(N, dtype)).dtype == dtype


@pytest.mark.parametrize(
    "numbers", [[2**53 + 1, 2**53], [2**63, -1], [2**64 - 1, 0], [2**64, 2**64 + 1], [-(2**70), 1]]
)
@pytest.mark.parametrize("make", [list, lambda values: np.array(values, object)])
def test_integers_stay_exact(numbers: list[int], make: Any) -> None:
    scores = make((numbers * N)[:N])
    assert arrays().to_stored(scores).tolist() == [scores[i] for i in STORED]


def test_numbers_that_are_no_integers_are_floats() -> None:
    for scores in ([1e300, *range(N - 1)], np.array([1.5, *range(N - 1)], object), list(map(str, range(N)))):
        assert arrays().to_stored(scores).dtype == np.float64
    with pytest.raises(DataError, match=r"^scores must be numbers; got <U1 values\.$"):
        arrays().to_stored(list("abcdefg"))
    with pytest.raises(DataError, match=r"^scores must be numbers; got complex128 values\.$"):
        arrays().to_stored(np.ones(N) * 1j)
    with pytest.raises(
        DataError, match=r"^scores must be numbers below 1\.8e308 in magnitude; got a larger integer\.$"
    ):
        arrays().to_stored([10**400, 0.5, *range(N - 2)])
    with pytest.raises(DataError, match=r"^values must be numbers below 1\.8e308"):
        violation([10**400, *range(N - 1)], arrays(), "dp")


def test_repr_is_the_size_and_the_shares() -> None:
    assert repr(arrays()) == (
        "RankingData(7 rows, 3 queries, 3 features; relevant 57%; groups: 'f' 43%, 'm' 29%, 'x' 14%)"
    )
    assert repr(arrays(group=None)).endswith("groups: none)")


def test_left_out_columns_are_named_unless_ignored() -> None:
    frame = pd.DataFrame(COLUMNS).rename(columns={"item": "brand"})
    with pytest.warns(DataWarning, match=r"^column 'brand' is not numeric and is left out of the features; "):
        data = RankingData.from_frame(frame)
    assert data.feature_names == ("price", "stars", "new", "weight")
    assert RankingData.from_frame(frame, ignore=["brand", "new", "weight"]).feature_names == ("price", "stars")


def test_a_large_mapped_file_is_given_back_while_it_is_read(tmp_path, monkeypatch):
    """Pages held by this process stay few, and nothing that is read changes."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not tell")

    def held() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("RssFile"))

    monkeypatch.setattr(MappedPages, "LARGE", 1 << 20)
    monkeypatch.setattr(MappedPages, "KEEP", 1 << 22)
    shape = (250_000, 64)
    written = np.memmap(tmp_path / "rows", np.float32, "w+", shape=shape)
    written[:] = np.arange(shape[0])[:, None] % 97
    written.flush()
    del written
    mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=shape)
    before = held()
    data = RankingData.from_arrays(mapped, np.zeros(len(mapped)), None, np.arange(len(mapped)) // 10)
    total = sum(float(block.sum(dtype=np.float64)) for _, block in data.blocks())
    assert total == 64 * float((np.arange(shape[0]) % 97).sum())
    assert held() - before < mapped.nbytes / 1024 / 2


def test_names_with_half_a_character_are_refused():
    """An audit of such a group ended in an error of polars, and its model could not be saved."""
    X, relevance, query = np.ones((4, 2)), [0, 1, 0, 1], [1, 1, 2, 2]
    with pytest.raises(DataError, match=r"group label '\\ud800b' must be Unicode text; it holds one half of a pair"):
        RankingData.from_arrays(X, relevance, ["a", "\ud800b", "a", "a"], query)
    with pytest.raises(DataError, match=r"feature name '\\ude00' must be Unicode text"):
        RankingData.from_arrays(X, relevance, ["a", "b", "a", "b"], query, feature_names=["x", "\ude00"])
    data = RankingData.from_arrays(X, relevance, ["a", "b", "a", "b"], query)
    with pytest.raises(DataError, match="group label"):
        data.with_group(["\ud83d", "\ude00", "a", "b"])
    assert data.with_group(["😀", "a", "😀", "b"]).group_names == ("a", "b", "😀")


@pytest.mark.parametrize("part", ["qid", "item_ids"])
@pytest.mark.parametrize("kind", [list, np.array, lambda ids: np.array(ids, object), lambda ids: np.array(ids, ">U3")])
def test_ids_with_half_of_a_pair_are_refused_as_names_are(part: str, kind: Callable[[list[str]], Any]) -> None:
    """No file takes such text, and an audit's or a ranking's would fail when it is written."""
    ids = {"qid": [*"1122"], "item_ids": [*"abab"]}
    for half in ("\ud800", "x\udfff"):
        given = ids | {part: kind([*ids[part][:2], half, half if part == "qid" else "z"])}
        with pytest.raises(DataError, match=f"row 2: {part} must be Unicode text; .* holds one half of a pair"):
            RankingData.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], [*"abab"], **given)
    given = ids | {part: kind(["é", "😀", "ü", "字"] if part == "item_ids" else ["😀", "😀", "字", "字"])}
    assert RankingData.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], [*"abab"], **given).n_rows == 4
