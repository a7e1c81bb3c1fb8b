"""JSON lines: the fast parser, the careful one, and the errors between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.errors import DataError, DataWarning
from evenrank.io import jsonl, read


@pytest.fixture
def write(tmp_path: Path):
    def _write(*lines: str) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(lines))
        return path

    return _write


GOOD = '{"qid": 1, "item": "a", "relevance": 1, "group": "u", "x": 2}'


def test_types_are_those_of_the_json(write):
    data = read(write(GOOD, "", '{"x": 0.5, "relevance": 0, "item": "b", "qid": 1}'))
    assert data.query_ids.tolist() == [1]
    assert data.item_ids is not None
    assert data.item_ids.tolist() == ["a", "b"]
    assert data.features.ravel().tolist() == [2, 0.5]
    assert data.group.tolist() == [0, -1]
    assert read(write(GOOD.replace('"qid": 1', '"qid": "7"'))).query_ids.tolist() == ["7"]


def test_nested_values_are_left_out_with_a_warning(write):
    for mixed in ("[1, 2]", "3"):
        second = GOOD.replace('"a"', '"b"').replace('"x"', f'"tags": {mixed}, "x"')
        with pytest.warns(DataWarning, match="column 'tags' is not numeric and is left out") as caught:
            assert read(write(GOOD.replace('"x"', '"tags": [1], "x"'), second)).feature_names == ("x",)
        assert caught[0].filename == __file__
    with pytest.raises(DataError, match=r"rows\.jsonl:1: column 'tags' must hold plain values; got \[1\]"):
        read(write(GOOD.replace('"x"', '"tags": [1], "x"')), query="tags", features=["x"])


def test_ids_beyond_64_bits_are_text(write):
    data = read(write(GOOD.replace('"qid": 1', f'"qid": {2**70}'), GOOD))
    assert data.query_ids.tolist() == [str(2**70), "1"]


def test_careful_parser_keeps_large_ids_and_columns_of_nulls(write):
    big = 2**70
    first = GOOD.replace('"qid": 1', f'"qid": {big}').replace('"x"', '"none": null, "y": true, "x"')
    second = GOOD.replace('"a"', '"b"').replace('"x"', '"none": null, "y": 2, "x"')
    with pytest.warns(DataWarning, match="column 'none' is not numeric"):
        data = read(write(first, second))
    assert data.query_ids.tolist() == [str(big), "1"]
    assert data.column("y").tolist() == [1, 2]


def test_numbers_and_booleans_mixed_in_a_column(write):
    data = read(write(GOOD, GOOD.replace('"x": 2', '"x": true').replace('"a"', '"b"')))
    assert data.features.ravel().tolist() == [2, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"qid": 1, "item": "b"', r":3: each line must be one JSON object \(Expecting ',' delimiter\); got '{"),
        ("[1, 2]", r":3: each line must be a JSON object {…}; got \[1, 2\]\."),
        (GOOD.replace('"a"', '"b"').replace('"relevance": 1, ', ""), ":3: relevance must be .*; got no value."),
        (
            GOOD.replace('"a"', '"b"').replace('"relevance": 1', '"relevance": "n/a"'),
            ":3: relevance must be .*; got 'n/a'.",
        ),
        (GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": Infinity'), ":3: feature 'x' must be .*; got inf."),
        (GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": 1e999'), ":3: feature 'x' must be .*; got inf."),
        (GOOD.replace('"a"', '"b"').replace('"qid": 1', '"qid": null'), ":3: qid must not be empty."),
        (GOOD, ":3: item .* occurs twice in query"),
        ("", None),
    ],
)
def test_bad_lines(write, line, message):
    path = write(GOOD, "", line)
    if message is None:
        assert read(path).n_rows == 1
        return
    with pytest.raises(DataError, match=r"rows\.jsonl" + message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_empty_file_and_absent_column(write):
    with pytest.raises(DataError, match=r"rows\.jsonl: the file is empty; at least one JSON object is needed\."):
        read(write("", ""))
    with pytest.raises(DataError, match="relevance column 'label' is not in the data; it has 'qid', 'item'"):
        read(write(GOOD), relevance="label")


def test_parts_share_types_and_name_their_lines(tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(GOOD)
    two.write_text("\n" + GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": 2.5'))
    assert read([one, two]).features.ravel().tolist() == [2, 2.5]
    two.write_text("\n" + GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": 1e999'))
    with pytest.raises(DataError, match=r"two\.jsonl:2: feature 'x' must be a finite number; got inf"):
        read([one, two])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            GOOD.replace('"x": 2', '"x": 2, "x": 3'),
            r":3: each line must be one JSON object \(the key 'x' occurs twice\)",
        ),
        (GOOD.replace('"x": 2', '"x": 2, "\\u0078": 3'), ":3: .*the key 'x' occurs twice"),
        (GOOD.replace('"x": 2', '"t": {"a": 1, "a": 2}, "x": 2'), ":3: .*the key 'a' occurs twice"),
        (GOOD.replace('"a"', '"\\ud800"'), r":3: text must be Unicode; found \\ud800, one half of a pair\."),
        (GOOD.replace('"x"', '"\\udfff"'), r":3: text must be Unicode; found \\udfff, one half of a pair\."),
        (GOOD.replace('"x": 2', '"x": ' + "9" * 400), ":3: feature 'x' must be a finite number; got "),
        (GOOD.replace('"x": 2', '"x": -' + "9" * 5000), ":3: each line must be one JSON object "),
        (
            GOOD.replace('"x": 2', '"t": ' + "[" * 10**5 + "]" * 10**5 + ', "x": 2'),
            ":3: each line must be one JSON object",
        ),
        (GOOD.replace('"x": 2', '"x": Infinity'), ":3: feature 'x' must be a finite number; got inf"),
        (GOOD.replace('"x": 2', '"x": [2]'), ":3: feature 'x' must be a finite number; got \\[2\\]"),
        (GOOD.replace('"x": 2', '"x": [' + "9" * 400 + "]"), ":3: feature 'x' must be a finite number; got \\[9"),
        (GOOD.replace('"qid": 1', '"qid": {"a": 1}'), ":3: column 'qid' must hold plain values; got {'a': 1}"),
    ],
    ids=range(12),
)
def test_hostile_lines(write, line, message):
    with pytest.raises(DataError, match=r"rows\.jsonl" + message) as caught:
        read(write(GOOD.replace('"a"', '"z"'), "", line), features=["x"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_integers_of_400_digits_are_ids_as_written(write):
    digits = "9" * 400
    data = read(write(GOOD.replace('"qid": 1', f'"qid": {digits}'), GOOD))
    assert data.query_ids.tolist() == [digits, "1"]


def test_ids_that_differ_in_a_nul_only_stay_apart(write):
    data = read(write(GOOD, GOOD.replace('"a"', '"a\\u0000"')))
    assert data.item_ids.tolist() == ["a", "a\0"]


def test_pairs_of_surrogates_and_escaped_backslashes_are_text(write):
    data = read(write(GOOD.replace('"a"', '"\\ud83d\\ude00"'), GOOD.replace('"a"', '"\\\\ud800"')))
    assert data.item_ids.tolist() == ["😀", "\\ud800"]


def test_each_part_may_have_a_byte_order_mark(tmp_path):
    for name, item in (("one", "a"), ("two", "b")):
        line = GOOD.replace('"a"', f'"{item}"')
        (tmp_path / f"{name}.jsonl").write_bytes(b"\xef\xbb\xbf" + line.encode())
    assert read([tmp_path / "one.jsonl", tmp_path / "two.jsonl"]).n_rows == 2


def test_kinds_of_a_column_are_settled_over_all_blocks(write, monkeypatch):
    """A type that shows up late is the type of the whole column, whatever the size of the blocks."""
    values = ["1", "2", "2.5", "true", "null", "3", "4", "5"]
    lines = [f'{{"qid": {i}, "relevance": {i % 2}, "x": {value}}}' for i, value in enumerate(values) if value != "null"]
    late = [*lines, '{"qid": "q", "relevance": 1, "x": 7, "group": "late"}']
    read_whole = read(write(*late))
    monkeypatch.setattr(jsonl, "BLOCK_LINES", 2)
    in_blocks = read(write(*late))
    assert in_blocks.query_ids.tolist() == read_whole.query_ids.tolist() == ["0", "1", "2", "3", "5", "6", "7", "q"]
    assert in_blocks.features.ravel().tolist() == read_whole.features.ravel().tolist() == [1, 2, 2.5, 1, 3, 4, 5, 7]
    assert in_blocks.group.tolist() == [-1] * 7 + [0]


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_400_digits_among_floats_are_no_finite_features(write, sign):
    lines = [
        f'{{"qid": {i}, "relevance": 1, "group": "a", "x": {x}}}' for i, x in enumerate(["0.5", f"{sign}1{'0' * 400}"])
    ]
    with pytest.raises(DataError, match=rf":2: .*x.*{sign}inf") as caught:
        read(write(*lines))
    assert "\n" not in str(caught.value)
