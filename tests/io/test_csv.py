"""Tables of text: what is read, and the one line that says what is wrong and where."""

from __future__ import annotations

import gzip
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.io import read, records
from evenrank.io.files import Text

HEAD = "qid,item,relevance,group,x\n"


@pytest.fixture
def write(tmp_path: Path):
    def _write(content: str | bytes, name: str = "rows.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def by_row(data: RankingData) -> dict:
    """(query, item) → everything known of the row, whatever the order of rows."""
    assert data.item_ids is not None
    group = [None if code < 0 else data.group_names[code] for code in data.group]
    query = data.query_ids[data.query_of_row].tolist()
    rows = zip(query, data.item_ids.tolist(), data.relevance.tolist(), group, data.features.tolist(), strict=True)
    return {(q, item): rest for q, item, *rest in rows}


def test_roles_features_and_unknown_groups(write):
    data = read(write(HEAD + "1,a,1,new,0.5\n1,b,0,,1e3\n2,a,2,old, 7 \n"))
    assert data.query_ids.tolist() == [1, 2]
    assert data.item_ids.tolist() == ["a", "b", "a"]
    assert data.relevance.tolist() == [1, 0, 2]
    assert data.group.tolist() == [0, -1, 1]
    assert data.group_names == ("new", "old")
    assert data.feature_names == ("x",)
    assert data.features.ravel().tolist() == [0.5, 1000, 7]


@pytest.mark.parametrize(
    ("written", "read_back"),
    [
        (["1", "-2", "30"], [1, -2, 30]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["1", "+2", "3"], ["1", "+2", "3"]),
        (["1", "-0", "3"], ["1", "-0", "3"]),
        (["9223372036854775807", "1", "2"], [9223372036854775807, 1, 2]),
        (["9223372036854775808", "1", "2"], ["9223372036854775808", "1", "2"]),
        (["1" * 30, "1" * 29 + "2", "x"], ["1" * 30, "1" * 29 + "2", "x"]),
    ],
)
def test_ids_are_whole_numbers_or_text_as_written(write, written, read_back):
    data = read(write("qid,relevance,x\n" + "".join(f"{qid},0,1\n" for qid in written)), group=None)
    assert data.query_ids.tolist() == read_back


def test_options_choose_columns(write):
    path = write("q,label,sex,x,y,w,score\n1,1,f,1,2,0.5,9\n1,0,m,3,4,1,8\n")
    data = read(
        path, query="q", relevance="label", group="sex", features=["y"], sample_weight="w", relevance_threshold=0.5
    )
    assert data.feature_names == ("y",)
    assert data.sample_weight is not None
    assert data.sample_weight.tolist() == [0.5, 1]
    assert data.relevance_threshold == 0.5
    logged = read(path, query="q", relevance=None, group="sex", score="score")
    assert logged.feature_names == ("score",)
    assert logged.relevance.tolist() == [0, 0]


def test_item_column_may_be_asked_for_as_a_feature(write):
    data = read(write("qid,item,relevance,x\n1,5,0,1\n"), group=None, features=["item", "x"])
    assert data.item_ids is None
    assert data.feature_names == ("item", "x")


def test_text_column_is_left_out_with_a_warning_at_the_callers_line(write):
    path = write("qid,relevance,title,empty,x\n1,0,chair,,1\n1,1,5,,2\n")
    with pytest.warns(DataWarning, match="columns 'title', 'empty' are not numeric and are left out") as caught:
        data = read(path, group=None)
    assert data.feature_names == ("x",)
    assert caught[0].filename == __file__


def test_nameless_index_column_is_left_out_with_a_warning(write):
    with pytest.warns(DataWarning, match="column 1 has no name and is left out") as caught:
        data = read(write(",qid,relevance,x\n0,1,0,1\n1,1,1,2\n"), group=None)
    assert data.feature_names == ("x",)
    assert caught[0].filename == __file__


def test_booleans_are_numbers(write):
    data = read(write("qid,relevance,x\n1,True,false\n1,False,true\n"), group=None)
    assert data.relevance.tolist() == [1, 0]
    assert data.features.ravel().tolist() == [0, 1]


@pytest.mark.parametrize(
    "content",
    [
        HEAD.encode() + b"1,a,1,u,2\n1,b,0,v,3\n",
        HEAD.encode() + b"1,a,1,u,2\n1,b,0,v,3",
        (HEAD + "1,a,1,u,2\n1,b,0,v,3\n").replace("\n", "\r\n").encode(),
        (HEAD + "1,a,1,u,2\n1,b,0,v,3\n").replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + HEAD.encode() + b"1,a,1,u,2\n1,b,0,v,3\n",
        b"\n\r\n" + HEAD.encode() + b"\n1,a,1,u,2\n\r\n\n1,b,0,v,3\n\n",
        b'"qid",item,"relevance",group,x\n"1","a",1,u,2\n1,b,"0",v,"3"\n',
    ],
    ids=["plain", "no last newline", "crlf", "cr", "bom", "blank lines", "quotes"],
)
def test_ways_to_write_the_same_table(write, content):
    data = read(write(content))
    assert by_row(data) == {(1, "a"): [1.0, "u", [2.0]], (1, "b"): [0.0, "v", [3.0]]}


def test_quoted_fields_hold_separators_quotes_and_newlines(write):
    data = read(write('qid,item,relevance,x\n1,"a, ""b""\nc",1,2\n1,é,0,3\n'), group=None)
    assert data.item_ids is not None
    assert data.item_ids.tolist() == ['a, "b"\nc', "é"]


def test_tabs_and_gzip(tmp_path):
    path = tmp_path / "rows.tsv.gz"
    path.write_bytes(gzip.compress(b"qid\trelevance\tx\n1\t0\t5\n"))
    assert read(path, group=None).features.tolist() == [[5.0]]
    path.write_bytes(gzip.compress(b"qid\trelevance\tx\n1\t0\t5\n")[:-9])
    with pytest.raises(DataError, match=r"rows\.tsv\.gz: the gzip file is damaged or cut short\."):
        read(path)


ROW = "1,a,1,u,2\n"
BAD = {
    "text relevance": (HEAD + ROW + "1,b,n/a,u,2\n", ":3: relevance must be a finite number ≥ 0; got 'n/a'. Drop"),
    "empty relevance": (HEAD + ROW + "1,b,,u,2\n", ":3: relevance must be a finite number ≥ 0; got no value. Drop"),
    "nan relevance": (HEAD + "1,b,NaN,u,2\n", ":2: relevance must be a finite number ≥ 0; got 'NaN'."),
    "negative relevance": (HEAD + ROW + "1,b,-1,u,2\n", ":3: relevance must be a finite number ≥ 0; got -1."),
    "empty query": (HEAD + ROW + ",b,0,u,2\n", ":3: qid must not be empty."),
    "item twice": (HEAD + ROW + ROW, r":3: item .*a.* occurs twice in query"),
    "mostly numeric column": (
        HEAD + ROW + "1,b,0,u,3\n1,c,0,u,?\n",
        r":4: feature 'x' must be a finite number; got '\?'.",
    ),
    "endless feature": (HEAD + ROW + "1,b,0,u,-inf\n", ":3: feature 'x' must be a finite number; got '-inf'. Fill"),
    "infinite feature": (HEAD + ROW + "1,b,0,u,-inf\n", ":3: feature 'x' must be a finite number; got '-inf'."),
    "too large a number": (HEAD + ROW + "1,b,0,u,1e999\n", ":3: feature 'x' must be a finite number; got '1e999'."),
    "long value": (HEAD + ROW + "1,b,0,u,2\n1,c," + "z" * 99 + ",u,2\n", ":4: .*got 'z{38}…'. Drop"),
    "short row": (HEAD + ROW + "1,b,0\n", ":3: a row must have 5 fields, as the header has; got 3."),
    "long row": (HEAD + ROW + "\n1,b,0,u,2,9\n", ":4: a row must have 5 fields, as the header has; got 6."),
    "after a quoted newline": (HEAD + '1,"a\n\nb",1,u,2\n\n1,c,x,u,2\n', ":6: relevance must be .* got 'x'."),
    "short after quoted separators": (HEAD + '1,"a,,\n,",1,u,2\n1,c\n', ":4: a row must have 5 fields.* got 2."),
    "quote inside a field": (HEAD + '1,5"6,0,u,2\n', ":2: a quote must enclose a whole field"),
    "text after a quote": (HEAD + ROW + '1,"b"c,0,u,2\n', ":3: a quote must enclose a whole field"),
    "quote never closed": (HEAD + ROW + '1,"b,0,u,2\n1,c,0,u,2\n', ":3: a quoted field is never closed."),
    "empty file": ("", ": the file is empty; a header and at least one row are needed."),
    "blank file": ("\n\n", ": the file is empty; a header and at least one row are needed."),
    "header only": (HEAD, ": the file has a header but no rows; at least one is needed."),
    "column twice": ("qid,relevance,x,x\n1,0,1,2\n", ":1: column names must differ; 'x' occurs twice. Rename one."),
    "no group column": ("qid,relevance,x\n1,0,1\n", ": group column 'group' is not in the data; it has 'qid', 'rel"),
    "header never closed": ('"qid,relevance\n' + "1,2\n" * 50_000, ":1: "),
    "lone return": (HEAD + ROW + "1,b\rc,0,u,2\n", ":3: lines must end alike; found a carriage return without a line"),
    "mixed ends": (HEAD + ROW + "1,b,0,u,2\r1,c,0,u,2\n", ":3: lines must end alike"),
    "NUL": (HEAD + ROW + "1,b\0,0,u,2\n", ":3: text must not hold NUL bytes"),
    "latin-1": ((HEAD + ROW + "1,é,0,u,2\n").encode("latin-1"), ":3: text must be UTF-8; found the byte 0xe9. Save"),
    "utf-16": ((HEAD + ROW).encode("utf-16"), ": the file is UTF-16; UTF-8 is needed."),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(write, case):
    content, message = BAD[case]
    with pytest.raises(DataError, match=r"rows\.csv" + message) as caught:
        read(write(content))
    assert "\n" not in str(caught.value)


def test_named_feature_must_be_numeric_even_if_mostly_text(write):
    path = write(HEAD + "1,a,0,u,2\n1,b,0,u,red\n1,c,0,u,blue\n")
    with pytest.raises(DataError, match=r"rows\.csv:3: feature 'x' must be a finite number; got 'red'\."):
        read(path, features=["x"])


def test_absent_columns_and_useless_options(write):
    path = write(HEAD + ROW)
    for role in ("query", "relevance", "group", "item", "sample_weight", "score"):
        with pytest.raises(
            DataError, match=rf"rows\.csv: {role} column 'z' is not in the data; it has 'qid', .*{role}="
        ):
            read(path, **{role: "z"})
    with pytest.raises(DataError, match="features column 'z' is not in the data"):
        read(path, features=["x", "z"])
    with pytest.raises(ConfigError, match="features must be a list of names; got the text 'x'"):
        read(path, features="x")
    with pytest.raises(ConfigError, match="features must differ"):
        read(path, features=["x", "x"])
    with pytest.raises(ConfigError, match="qrels is for TREC runs only"):
        read(path, qrels=path)


def test_parts_read_like_the_whole_and_errors_name_the_part(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("qid,item,relevance,x\n1,a,0,1\n")
    two.write_text("item,x,qid,relevance\nb,2,1,1\n\nc,3,q,1\n")
    data = read([one, two], group=None)
    assert data.query_ids.tolist() == ["1", "q"]
    assert by_row(data)["1", "b"] == [1.0, None, [2.0]]
    two.write_text("qid,item,relevance,x\n1,b,0,1\n\n1,c,bad,1\n")
    with pytest.raises(DataError, match=r"two\.csv:4: relevance must be .* got 'bad'"):
        read([one, two], group=None)
    two.write_text("qid,item,relevance,y\n1,b,0,1\n")
    with pytest.raises(DataError, match=r"two\.csv: parts of one table must have the same columns; got .*'y' where"):
        read([one, two], group=None)


field = st.text(st.sampled_from('ab1 ,"\n\ré'), max_size=5)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(field, field), min_size=1, max_size=8), block=st.integers(1, 40))
def test_scan_agrees_with_the_standard_csv_module(rows, block):
    """Line and field count of each record, whatever the size of the blocks that are scanned."""
    quoted = [",".join('"' + value.replace('"', '""') + '"' for value in row) for row in rows]
    lines = np.cumsum([1] + [record.count("\n") + 1 for record in quoted])[:-1]
    text = Text(("\n".join(quoted) + "\n").encode(), (Path("t.csv"),), (0,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SCAN_BYTES", block)
        found = records.scan(text, b",")
    assert found.lines.tolist() == lines.tolist()
    assert found.fields.tolist() == [2] * len(rows)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_shuffled_and_split_files_read_the_same(data):
    n = data.draw(st.integers(2, 12))
    rows = [f"q{i % 3},{i},{i % 2},{'ab'[i % 2]},{i / 7}\n" for i in range(n)]
    cut = data.draw(st.integers(0, n))
    shuffled = data.draw(st.permutations(rows))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.chdir(folder)
        Path("whole.csv").write_text(HEAD + "".join(rows))
        Path("one.csv").write_text(HEAD + "".join(shuffled[:cut]))
        Path("two.csv").write_text(HEAD + "".join(shuffled[cut:]))
        assert by_row(read("whole.csv")) == by_row(read(["one.csv", "two.csv"]))


def test_formats_agree(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "qid": rng.permutation(np.repeat(np.arange(10), 5)),
            "item": [f"d{i}" for i in range(50)],
            "relevance": rng.integers(0, 3, 50),
            "group": [None, "u", "v", "w", "u"] * 10,
            "x": rng.normal(size=50),
            "y": rng.integers(-5, 5, 50),
        }
    )
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_csv(tmp_path / "rows.tsv", separator="\t", quote_style="always")
    frame.write_ndjson(tmp_path / "rows.jsonl")
    frame.write_parquet(tmp_path / "rows.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, *others = [read(tmp_path / f"rows.{suffix}") for suffix in ("csv", "tsv", "jsonl", "parquet")]
    direct = RankingData.from_frame(frame, item="item")
    for other in (*others, direct):
        for name in ("features", "relevance", "group", "query_ptr", "query_ids", "item_ids", "row_order"):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
        assert (first.feature_names, first.group_names) == (other.feature_names, other.group_names)


def test_unknown_suffix_and_format(write):
    path = write(HEAD, "rows.xls")
    with pytest.raises(ConfigError, match=re.escape("rows.xls: the suffix must be one of .csv, .tsv, .jsonl, .ndjson")):
        read(path)
    with pytest.raises(ConfigError, match="format must be one of csv, tsv, jsonl, parquet, letor, trec; got 'xls'"):
        read(path, format="xls")
    with pytest.raises(ConfigError, match="path must name files of one format"):
        read(["a.csv", "b.jsonl"])
    with pytest.raises(ConfigError, match="path must name at least one file"):
        read([])


def test_ignored_columns_are_neither_features_nor_warned_of(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("qid,relevance,group,other,title,x\n1,1,a,5,one,2\n1,0,b,6,two,3\n")
    assert read(path, ignore=["other", "title"]).feature_names == ("x",)
    assert read(path, group="other", ignore=["other", "title", "group"]).group_names == (5, 6)


def test_line_feeds_with_and_without_returns_may_be_mixed(write):
    data = read(write(HEAD.replace("\n", "\r\n") + '1,"a\rb",1,u,2\n1,c,0,v,3\r\n'))
    assert data.item_ids.tolist() == ["a\rb", "c"]


def test_one_long_id_does_not_take_its_room_for_every_row(write):
    """numpy gives each text the room of the longest: 20,000 rows × 100,000 letters would be 8 GB."""
    rows = "".join(f"{i // 4},{i},0,u,2\n" for i in range(20_000))
    data = read(write(HEAD + rows + "0," + "z" * 100_000 + ",1,v,2\n"))
    assert data.item_ids.dtype == object
    assert data.item_ids[data.row_order == 20_000].tolist() == ["z" * 100_000]
