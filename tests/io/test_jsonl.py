"""JSON lines: the fast parser, the careful one, and the errors between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.errors import DataError, DataWarning
from evenrank.io import read


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
        with pytest.warns(DataWarning, match="columns 'tags' are not numeric and are left out") as caught:
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
    with pytest.warns(DataWarning, match="columns 'none' are not numeric"):
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
        ('{"qid": 1, "item": "b", "relevance": 0}', ":3: feature 'x' must be a finite number; got no value."),
        (GOOD.replace('"a"', '"b"').replace('"relevance": 1, ', ""), ":3: relevance must be .*; got no value."),
        (
            GOOD.replace('"a"', '"b"').replace('"relevance": 1', '"relevance": "n/a"'),
            ":3: relevance must be .*; got 'n/a'.",
        ),
        (GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": NaN'), ":3: feature 'x' must be .*; got nan."),
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
    two.write_text("\n" + GOOD.replace('"a"', '"b"').replace('"x": 2', '"x": null'))
    with pytest.raises(DataError, match=r"two\.jsonl:2: feature 'x' must be a finite number; got no value"):
        read([one, two])
