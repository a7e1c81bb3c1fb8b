"""LETOR rows: the parser of whole blocks against the plain one and against scikit-learn."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from evenrank.errors import DataError, DataWarning
from evenrank.io import letor, read
from evenrank.io.files import Text
from evenrank.io.letor_rows import parse_at_once, parse_by_line


@pytest.fixture
def write(tmp_path: Path):
    def _write(content: str, name: str = "rows.letor") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return _write


def test_sparse_rows_comments_and_blank_lines(write):
    data = read(write("# made by hand\n2 qid:1 1:3 3:0.5 # docid = 7\r\n\n0\tqid:1  2:-1e-3 \n  1 qid:0\n"))
    assert data.query_ids.tolist() == [1, 0]
    assert data.feature_names == ("1", "2", "3")
    assert data.relevance.tolist() == [2, 0, 1]
    assert data.features.tolist() == [[3, 0, 0.5], [0, -0.001, 0], [0, 0, 0]]
    assert data.group_names == ()


def test_group_items_weight_and_score(write):
    path = write("1 qid:a 1:5 2:0 3:1.5 #docid = GX-1 inc = 1\n0 qid:a 1:6 2:1 3:2 #docid = GX-2 inc = 0\n")
    data = read(path, group="2", item="docid", sample_weight="3")
    assert data.group_names == (0, 1)
    assert data.feature_names == ("1",)
    assert data.item_ids is not None
    assert data.item_ids.tolist() == ["GX-1", "GX-2"]
    assert data.sample_weight is not None
    assert data.sample_weight.tolist() == [1.5, 2]
    assert read(path, score="3").features.tolist() == [[1.5], [2]]
    assert read(path, features=["3", "1"]).features.tolist() == [[1.5, 5], [2, 6]]
    with pytest.raises(DataError, match=r"rows\.letor: feature '4' is not in the data; it has 1 to 3\."):
        read(path, group="4")
    with pytest.raises(DataError, match=r"rows\.letor:1: item 'id' must be in the comment"):
        read(path, item="id")


BAD = {
    "no qid": ("1 1:2", r"a query id, as in 'qid:7', must follow the relevance; got '1:2'\. Add it\."),
    "only a label": ("1", "a query id, as in 'qid:7', must follow the relevance; got nothing"),
    "empty qid": ("1 qid: 1:2", "a query id, .* got 'qid:'"),
    "text relevance": ("x qid:1 1:2", "relevance, first on the row, must be a finite number ≥ 0; got 'x'"),
    "nan relevance": ("nan qid:1 1:2", "relevance, first on the row, must be .* got 'nan'"),
    "negative relevance": ("-1 qid:1 1:2", "relevance must be a finite number ≥ 0; got -1"),
    "a table": ("qid,relevance,x", "relevance, first .* If the file is a comma-separated table, pass format='csv'"),
    "text feature": ("1 qid:1 1:2 2:z", "feature '2' must be a finite number; got 'z'"),
    "endless feature": ("1 qid:1 1:Inf", "feature '1' must be a finite number; got 'Inf'"),
    "infinite feature": ("1 qid:1 1:inf", "feature '1' must be a finite number; got 'inf'"),
    "underscored feature": ("1 qid:1 1:1_0", "feature '1' must be a finite number; got '1_0'"),
    "empty feature": ("1 qid:1 1: 2:3", "feature '1' must be a finite number; got no value"),
    "no colon": ("1 qid:1 1 2:3", "features must be written number:value, as in '3:0.5'; got '1'"),
    "no number": ("1 qid:1 a:2", "features must be written number:value, .* got 'a:2'"),
    "negative number": ("1 qid:1 -1:2", "features must be written number:value, .* got '-1:2'"),
    "a number with a point": ("1 qid:1 3.:2", "features must be written number:value, .* got '3.:2'"),
    "a number with zeros": ("1 qid:1 3.0000:2", "features must be written number:value, .* got '3.0000:2'"),
    "a number with an exponent": ("1 qid:1 3e0:2", "features must be written number:value, .* got '3e0:2'"),
    "a number with a sign": ("1 qid:1 +3:2", r"features must be written number:value, .* got '\+3:2'"),
    "two colons": ("1 qid:1 1:2:3", "feature '1' must be a finite number; got '2:3'"),
    "decreasing": ("1 qid:1 2:2 1:3", "feature numbers must increase along the row; got 1 after 2"),
    "twice": ("1 qid:1 2:2 2:3", "feature numbers must increase along the row; got 2 after 2"),
    "beyond any number": ("1 qid:1 99999999999999999999:3", "features must be written number:value"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows(write, case):
    row, message = BAD[case]
    with pytest.raises(DataError, match=r"rows\.letor:3: " + message) as caught:
        read(write(f"\n1 qid:1 1:2 2:3\n{row}\n"))
    assert "\n" not in str(caught.value)


def test_a_feature_number_is_a_name_and_not_a_size(write):
    data = read(write("1 qid:1 10000000:1\n0 qid:1 2:3 999999999:5\n"))
    assert data.feature_names == ("2", "10000000", "999999999")
    assert data.features.tolist() == [[0, 1, 0], [3, 0, 5]]
    with pytest.raises(DataError, match=r"feature '4' is not in the data; it has '2', '10000000', '999999999'\."):
        read(write("1 qid:1 2:1 10000000:1\n0 qid:1 2:3 999999999:5\n"), group="4")


def test_features_of_a_model_that_no_row_has_are_zero(write):
    path = write("1 qid:1 1:2 3:4\n0 qid:1 3:1\n")
    with pytest.warns(DataWarning, match="features '2', '7' do not occur and are 0 in all rows") as caught:
        data = read(path, features=["7", "3", "2"])
    assert caught[0].filename == __file__
    assert data.features.tolist() == [[0, 4, 0], [0, 1, 0]]
    for features in (["7"], ["3", "x"], ["3", "07"]):
        with pytest.raises(DataError, match="is not in the data; it has '1', '3'"):
            read(path, features=features)


def test_a_table_that_cannot_fit_is_refused_before_it_is_made(write, monkeypatch):
    path = write("".join(f"1 qid:1 {j * j}:1\n" for j in range(1, 101)))
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "50K")
    with pytest.raises(DataError, match=r"rows\.letor: 100 rows × 100 features need 78\.1 KB; at most 50 KB are"):
        read(path)
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "80k")
    assert read(path).features.sum() == 100


def test_empty_file(write):
    for content in ("", "\n # nothing\n"):
        with pytest.raises(DataError, match=r"rows\.letor: the file has no rows"):
            read(write(content))


def test_blocks_and_parts(write, monkeypatch):
    rows = [f"{i % 3} qid:{i // 4} 1:{i} {'3:0.5' if i % 2 else ''}\n" for i in range(20)]
    whole = read(write("".join(rows)))
    monkeypatch.setattr(letor, "BLOCK_BYTES", 30)
    parts = [write("".join(rows[:7]), "one.svm"), write("\n" + "".join(rows[7:]), "two.txt")]
    split = read(parts)
    assert np.array_equal(whole.features, split.features)
    assert np.array_equal(whole.query_ids, split.query_ids)
    parts[1].write_text("\n" + "".join(rows[7:]) + "0 qid:1 1:?\n")
    with pytest.raises(DataError, match=r"two\.txt:15: feature '1' must be a finite number; got '\?'"):
        read(parts)


number = st.floats(-1e6, 1e6).map(repr) | st.integers(0, 9).map(str)
space = st.sampled_from([" ", "  ", "\t"])
row = st.tuples(st.integers(0, 4), st.integers(1, 99), st.dictionaries(st.integers(0, 9), number, max_size=5))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(row, space, st.sampled_from(["\n", " \r\n", "\n\n", " # c: 1\n", "\n \n"])), min_size=1))
def test_whole_blocks_agree_with_single_lines(rows):
    written = "".join(
        gap.join([str(label), f"qid:{query}", *(f"{j}:{values[j]}" for j in sorted(values))]) + end
        for (label, query, values), gap, end in rows
    )
    data = written.encode()
    fast, slow = parse_at_once(data, 5), parse_by_line(data, Text(data, (Path("t"),), (0,)), 5)
    assert fast is not None
    for name in vars(slow):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def test_scikit_learn_writes_what_we_read(write):
    rng = np.random.default_rng(1)
    X, y, query = rng.normal(size=(30, 4)).round(3), rng.integers(0, 3, 30), np.repeat([5, 3, 9], 10)
    for zero_based, names in ((True, ("0", "1", "2", "3")), (False, ("1", "2", "3", "4"))):
        out = BytesIO()
        dump_svmlight_file(X, y, out, query_id=query, zero_based=zero_based)
        data = read(write(out.getvalue().decode()))
        assert data.feature_names == names
        np.testing.assert_array_equal(data.features, X)
        assert data.query_ids.tolist() == [5, 3, 9]


def test_real_sample_agrees_with_scikit_learn(shared_data):
    path = shared_data("mslr_web_5k") / "msn1.fold1.train.5k.txt"
    data = read(path)
    X, y, query = load_svmlight_file(str(path), query_id=True)
    assert data.features.shape == (5000, 136)
    np.testing.assert_array_equal(data.to_caller(data.features), X.toarray())
    np.testing.assert_array_equal(data.to_caller(data.relevance), y)
    np.testing.assert_array_equal(data.to_caller(data.query_ids[data.query_of_row]), query)


def test_ignored_features_are_left_out(write):
    data = read(write("1 qid:1 1:2 2:3 3:0\n0 qid:1 1:1 2:1 3:1\n"), group="3", ignore=["2", "3"])
    assert (data.feature_names, data.group_names) == (("1",), (0, 1))


@pytest.mark.parametrize(("name", "good"), [("2", True), ("4", False), ("price", False), ("-1", False), ("02", False)])
def test_ignored_features_must_be_there_or_0_everywhere(write, name, good):
    file = write("1 qid:1 1:2 3:0\n0 qid:1 1:1 3:1\n")
    if good:
        assert read(file, ignore=["1", name]).feature_names == ("3",)
        return
    with pytest.raises(DataError, match=f"feature '{name}' is not in the data; it has '1', '3'"):
        read(file, ignore=["1", name])


def test_a_byte_order_mark_after_a_blank_is_no_number(write):
    with pytest.raises(DataError, match=r"rows\.letor:1: "):
        read(write(" \ufeff0 qid:1 1:2\n1 qid:1 1:3\n"))


@pytest.mark.parametrize(
    ("comments", "options", "items"),
    [
        (["# docid = GX1", "#docid = GX2 inc = 1 prob = 0.2", "# docid: GX1"], {}, ["GX1", "GX2", "GX1"]),
        (["#GX1", "# GX2 ", "#GX1"], {"item": "docid"}, ["GX1", "GX2", "GX1"]),
        (["#GX1", "# GX2 ", "#GX1"], {}, None),
        (["# docid = 7", "# no id", "# docid = 9"], {}, None),
        (["# docid = 7", "# docid = 7", "# docid = 9"], {}, None),  # twice in one query: not the items
        (["# docid = 7", "# docid = 8", "# docid = 9"], {}, [7, 8, 9]),
    ],
)
def test_ids_in_comments(tmp_path, comments, options, items):
    path = tmp_path / "rows.letor"
    rows = zip(("1 qid:1 1:2", "0 qid:1 1:3", "0 qid:2 1:4"), comments, strict=True)
    path.write_text("".join(f"{row} {comment}\n" for row, comment in rows))
    found = read(path, **options).item_ids
    assert (None if found is None else found.tolist()) == items
