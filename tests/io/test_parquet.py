"""Parquet tables: types kept, rows counted from 0 in each file."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.errors import DataError, DataWarning
from evenrank.io import parquet_trial, read
from evenrank.io.parquet_footer import BadFooter, read_footer


def table(**changed: object) -> pl.DataFrame:
    columns = {"qid": [1, 1], "relevance": [0, 1], "group": ["u", None], "x": [0.5, 1.5], **changed}
    return pl.DataFrame(columns, strict=False)


def test_types_are_kept(tmp_path):
    path = tmp_path / "rows.parquet"
    table(qid=["007", "007"]).with_columns(pl.col("x").cast(pl.Float32)).write_parquet(path)
    data = read(path)
    assert data.query_ids.tolist() == ["007"]
    assert data.features.dtype == np.float32
    table(flag=[True, False]).with_columns(pl.col("x").cast(pl.Float32)).write_parquet(path)
    data = read(path)
    assert data.features.dtype == np.float64
    assert data.features[:, 1].tolist() == [1, 0]


def test_text_and_dates_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "rows.parquet"
    table(title=["a", "b"], day=[datetime.date(2020, 1, 1)] * 2).write_parquet(path)
    with pytest.warns(DataWarning, match="columns 'title', 'day' are not numeric"):
        assert read(path).feature_names == ("x",)
    with pytest.raises(DataError, match=r"rows\.parquet: row 0: feature 'day' must be a finite number; got datetime"):
        read(path, features=["day"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": [1.0, None]}, r"rows\.parquet: row 1: feature 'x' must be a finite number; got no value\."),
        ({"x": [1.0, float("nan")]}, r"rows\.parquet: row 1: feature 'x' must be a finite number; got nan\."),
        ({"relevance": [1, -2]}, r"rows\.parquet: row 1: relevance must be a finite number ≥ 0; got -2\."),
        ({"relevance": ["1", "n/a"]}, r"rows\.parquet: row 1: relevance must be .*; got 'n/a'\."),
        ({"qid": [1, None]}, r"rows\.parquet: row 1: qid must not be empty\."),
        ({"item": ["a", "a"]}, r"rows\.parquet: row 1: item .* occurs twice"),
    ],
)
def test_bad_rows(tmp_path, changed, message):
    table(**changed).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=message):
        read(tmp_path / "rows.parquet")


def test_damaged_and_empty_files(tmp_path):
    path = tmp_path / "rows.parquet"
    table().write_parquet(path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-1], b"not parquet at all"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"rows\.parquet: is not a Parquet file, or is damaged") as caught:
            read(path)
        assert "\n" not in str(caught.value)
    table().clear().write_parquet(path)
    with pytest.raises(DataError, match=r"rows\.parquet: the file has no rows"):
        read(path)


def test_parts_and_names_with_wildcards(tmp_path: Path):
    one, two = tmp_path / "part[1].parquet", tmp_path / "two.parquet"
    table().write_parquet(one)
    table(qid=[2, 2], x=[1, 2]).write_parquet(two)
    assert read([one, two]).features.ravel().tolist() == [0.5, 1.5, 1, 2]
    table(qid=[2, 2], x=[1.0, None]).write_parquet(two)
    with pytest.raises(DataError, match=r"two\.parquet: row 1: feature 'x'"):
        read([one, two])
    table().drop("x").write_parquet(two)
    with pytest.raises(DataError, match=r"two\.parquet: parts of one table must have the same columns; 'x' is missing"):
        read([one, two])
    table(x=["a", "b"]).write_parquet(two)
    with pytest.raises(
        DataError, match=r"two\.parquet: parts of one table must have the same types; column 'x' is String here"
    ):
        read([one, two])


def test_a_small_file_of_many_equal_rows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    frame = pl.select(pl.repeat(1, 2_000_000).alias("qid"), relevance=pl.lit(0), group=pl.lit("u"), x=pl.lit(0.5))
    frame.write_parquet(path)
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "60M")
    with pytest.raises(
        DataError, match=r"rows\.parquet: 2000000 rows × 4 columns need 61 MB; at most 60 MB are allowed"
    ):
        read(path)
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "45M")
    with pytest.raises(DataError, match=r"2000000 rows × 3 columns need 45\.8 MB"):
        read(path, group=None, features=["x"])


def test_strange_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    base = {"qid": [1, 1], "relevance": [0, 1], "group": ["u", None], "x": [0.5, 1.5]}

    def write(**changed: object) -> Path:
        pq.write_table(pa.table(base | changed), path)
        return path

    decimal = pa.array([Decimal("0.25"), Decimal("7.00")], pa.decimal128(10, 2))
    assert read(write(x=decimal)).features.ravel().tolist() == [0.25, 7]
    assert read(write(qid=decimal)).query_ids.tolist() == [Decimal("0.25"), Decimal("7.00")]
    assert read(write(qid=pa.array([2**64 - 1, 1], pa.uint64()))).query_ids.tolist() == [2**64 - 1, 1]
    assert read(write(item=["a", "a\0"])).item_ids.tolist() == ["a", "a\0"]
    assert read(write(group=pa.array(["u", None]).dictionary_encode())).group_names == ("u",)
    for nested in ([[1], [2]], [{"a": 1}, None]):
        with pytest.raises(DataError, match=r"row 0: column 'qid' must hold plain values; got "):
            read(write(qid=pa.array(nested)))
    with pytest.raises(DataError, match=r"rows\.parquet: .*types that cannot be read \("):
        read(write(x=pa.array([Decimal(1), Decimal(2)], pa.decimal256(60, 2))))
    pq.write_table(pa.Table.from_arrays([*map(pa.array, base.values()), pa.array([1, 2])], names=[*base, "x"]), path)
    with pytest.raises(DataError, match=r"rows\.parquet: column names must differ; 'x' occurs twice\. Rename one\."):
        read(path)
    pq.write_table(pa.table({}), path)
    with pytest.raises(DataError, match="query column 'qid' is not in the data; it has none"):
        read(path)


def test_a_file_that_ends_its_reader_is_refused_in_one_line(tmp_path, monkeypatch):
    """Damaged pages can make the library end its process; here the child ends itself where the file says so."""
    path = tmp_path / "rows.parquet"
    table().write_parquet(path)
    assert read(path).n_rows == 2
    ends = parquet_trial.CHILD.replace("    try:", "    if 'bad' in path: __import__('os').abort()\n    try:", 1)
    assert ends != parquet_trial.CHILD
    monkeypatch.setattr(parquet_trial, "CHILD", ends)
    parquet_trial._end()
    bad = path.rename(tmp_path / "bad.parquet")
    table().write_parquet(path)
    with parquet_trial.keeping():
        for file in (path, bad, path):
            if file == path:
                assert read(file).n_rows == 2
                continue
            with pytest.raises(
                DataError, match=r"bad\.parquet: .* \(it ended the process that tried .*again\.$"
            ) as caught:
                read(file)
            assert "\n" not in str(caught.value)
    parquet_trial._end()


@pytest.mark.parametrize("executable", ["", "/nowhere/python"])
def test_where_no_process_can_be_started_the_file_is_read_at_once(tmp_path, monkeypatch, executable):
    path = tmp_path / "rows.parquet"
    table().write_parquet(path)
    monkeypatch.setattr(parquet_trial.sys, "executable", executable)
    parquet_trial._end()
    assert read(path).n_rows == 2
    assert not parquet_trial._kept


def test_long_texts_count_against_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    table(group=["u" * 3_000_000, "v" * 3_000_000]).write_parquet(path, compression="zstd")
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "5M")
    with pytest.raises(DataError, match=r"rows\.parquet: 2 rows unpack to 5\.72 MB; at most 5 MB are allowed"):
        read(path)
    assert read(path, group=None, features=["x"]).n_rows == 2


def test_footers_agree_with_pyarrow_and_damaged_ones_end_in_one_error(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    columns = {
        "é": ["a", None, "b"],
        "deep": [{"a": [{"b": 1}], "c": 2}, None, None],
        "list": [[1], [], [2, 3]],
        "flag": [True, False, True],
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    footer, meta = read_footer(path), pq.read_metadata(path)
    assert footer.names == tuple(columns)
    assert footer.n_rows == meta.num_rows
    chunks = [meta.row_group(i).column(j) for i in range(meta.num_row_groups) for j in range(meta.num_columns)]
    for name in columns:
        expected = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] == name)
        assert footer.sizes[name] == expected
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    for at in range(len(whole) - 8 - size, len(whole), 13):
        for byte in (0, 0x1C, 0xFF):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            with contextlib.suppress(BadFooter):
                read_footer(path)


def test_dates_beyond_the_calendar_are_refused_in_one_line(tmp_path):
    path = tmp_path / "rows.parquet"
    beyond = pl.Series("qid", [2**31 - 1, 0], dtype=pl.Int32).cast(pl.Date)
    table().with_columns(beyond).write_parquet(path)
    with pytest.raises(DataError, match=r"column 'qid' holds a value that cannot be read \(") as caught:
        read(path)
    assert "\n" not in str(caught.value)
