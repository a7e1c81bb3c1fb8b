"""Parquet tables: types kept, rows counted from 0 in each file."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import DataError, DataWarning
from evenrank.io import read
from evenrank.io.parquet_footer import BadParquet, read_footer
from evenrank.io.parquet_pages import refuse_odd_pages


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
        ({"x": [1.0, float("inf")]}, r"rows\.parquet: row 1: feature 'x' must be a finite number; got inf\."),
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
    table(qid=[2, 2], x=[1.0, float("inf")]).write_parquet(two)
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


def test_pages_of_every_kind_are_let_through(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    columns = {"list": [[1], [], None, [2, 3]] * 50, "text": ["a" * 500, None, "é", ""] * 50, "x": [0.5] * 200}
    rows = pa.table(columns | {"deep": [{"a": [{"b": 1}]}, None, {"a": None}, {"a": []}] * 50})
    for compression in ("none", "snappy", "zstd", "gzip"):
        for version, dictionary in (("1.0", True), ("2.0", True), ("1.0", False), ("2.0", False)):
            pq.write_table(
                rows,
                path,
                compression=compression,
                data_page_version=version,
                use_dictionary=dictionary,
                data_page_size=64,
                row_group_size=70,
            )
            refuse_odd_pages(path, read_footer(path).chunks)
    pl.from_arrow(rows).write_parquet(path, row_group_size=70, data_page_size=64)
    refuse_odd_pages(path, read_footer(path).chunks)


def test_sizes_of_pages_that_cannot_be_are_refused_in_one_line(tmp_path):
    """The first page of a column is given another head; the library would take its sizes on trust."""
    path = tmp_path / "rows.parquet"
    table(x=[0.25, 1.5]).write_parquet(path, compression="zstd", statistics=False)
    whole = path.read_bytes()
    start = next(chunk.start for chunk in read_footer(path).chunks if chunk.column == "x")
    good, rest = page_head(whole, start)
    assert thrift_head(*good) == whole[start:rest]
    kind, unpacked, packed, values = good
    huge = 2**31 - 1
    for bad in (
        (kind, huge, packed, values),
        (kind, -1, packed, values),
        (kind, unpacked, huge, values),
        (kind, unpacked, -1, values),
        (kind, unpacked, packed, huge),
        (kind, unpacked, packed, -1),
    ):
        path.write_bytes(whole[:start] + thrift_head(*bad) + whole[rest:])
        with pytest.raises(DataError, match=r"rows\.parquet: .*\(a page of column 'x' is damaged: ") as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert read(path, features=[]).n_features == 0  # what is not needed is not looked at


def page_head(content: bytes, at: int) -> tuple[tuple[int, int, int, int], int]:
    """Kind, sizes and number of values of a data page of version 1 without more fields, and where its head ends."""

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value >> 1 ^ -(value & 1)

    fields = []
    for mark in (0x15, 0x15, 0x15, 0x2C, 0x15):
        assert content[at] == mark
        at += 1
        if mark == 0x15:
            fields.append(number())
    for _ in range(3):
        assert content[at] == 0x15
        at += 1
        fields.append(number())
    assert content[at : at + 2] == b"\0\0"
    ENCODINGS[:] = fields[4:]
    return (fields[0], fields[1], fields[2], fields[3]), at + 2


ENCODINGS: list[int] = []


def thrift_head(*numbers: int) -> bytes:
    def field(value: int) -> bytes:
        value = value << 1 ^ value >> 31
        out = b"\x15"
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    kind, unpacked, packed, values = numbers
    inner = b"".join(map(field, (values, *ENCODINGS)))
    return field(kind) + field(unpacked) + field(packed) + b"\x2c" + inner + b"\0\0"


def test_long_texts_count_against_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    # Statistics hold the largest and smallest text as they are, in some versions of the writer.
    table(group=["u" * 3_000_000, "v" * 3_000_000]).write_parquet(path, compression="zstd", statistics=False)
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
            with contextlib.suppress(BadParquet):
                read_footer(path)


@pytest.mark.parametrize("name", ["qid", "group", "relevance", "x"])
@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("us"), pl.Datetime("us", "UTC"), pl.List(pl.Date)])
def test_dates_beyond_the_calendar_are_refused_in_one_line(tmp_path, name, kind):
    path = tmp_path / "rows.parquet"
    date = pl.Date if kind == pl.List(pl.Date) else kind
    beyond = pl.Series(name, [2**31 - 1 if date == pl.Date else 2**62, 0]).cast(
        pl.Int32 if date == pl.Date else pl.Int64
    )
    rows = table().with_columns(beyond.cast(date))
    rows = rows.with_columns(pl.concat_list(name)) if kind == pl.List(pl.Date) else rows
    rows.write_parquet(path)
    for source in (lambda: read(path, features=["x"]), lambda: er.RankingData.from_frame(rows, features=["x"])):
        with pytest.raises(DataError, match=rf"column '{name}' holds a .* that cannot be read \(") as caught:
            source()
        assert "\n" not in str(caught.value)
