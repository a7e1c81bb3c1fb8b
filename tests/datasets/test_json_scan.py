import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.datasets.json_scan import JsonScanner
from evenrank.errors import DataError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def entries(path, chunk):
    with JsonScanner(path, chunk=chunk) as scanner:
        found = {key: scanner.value() for key in scanner.keys()}  # noqa: SIM118
        assert scanner.peek() == ""
    return found


@given(
    table=st.dictionaries(st.text(max_size=5), VALUES, max_size=6),
    chunk=st.integers(1, 40),
    escaped=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_entries_are_those_of_the_standard_parser_whatever_the_chunk(tmp_path_factory, table, chunk, escaped, indent):
    path = tmp_path_factory.mktemp("scan") / "table.json"
    path.write_text(json.dumps(table, ensure_ascii=escaped, indent=indent), encoding="utf-8")
    assert entries(path, chunk) == table
    with JsonScanner(path, chunk=chunk) as scanner:
        assert {key: json.loads(scanner.source()) for key in scanner.keys()} == table  # noqa: SIM118


@pytest.mark.parametrize("chunk", range(1, 30))
@pytest.mark.parametrize("number", ["0.0", "-0.5", "12e5", "1E+20", "1.25e-10", "-1e+3", "-Infinity", "NaN", "1234567"])
def test_a_number_cut_by_a_chunk_is_read_whole(tmp_path, number, chunk):
    path = tmp_path / "a.json"
    path.write_text(f'{{"a": {number}, "b":{number}}}')
    written = repr(json.loads(number))
    assert {key: repr(value) for key, value in entries(path, chunk).items()} == {"a": written, "b": written}
    path.write_text(number)
    with JsonScanner(path, chunk=chunk) as scanner:
        assert scanner.source() == number
        assert scanner.peek() == ""


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
@pytest.mark.parametrize(("text", "left"), [("1.", "."), ("1e+", "e"), ("12 ", ""), ("1 2", "2")])
def test_what_follows_the_last_number_is_next(tmp_path, text, left, chunk):
    path = tmp_path / "a.json"
    path.write_text(text)
    with JsonScanner(path, chunk=chunk) as scanner:
        assert scanner.value() == int(text[:2].strip(".e "))
        assert scanner.peek() == left


@given(
    table=st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4), chunk=st.integers(1, 40), data=st.data()
)
def test_a_cut_anywhere_is_told(tmp_path_factory, table, chunk, data):
    text = json.dumps(table, ensure_ascii=False).encode()
    path = tmp_path_factory.mktemp("cut") / "table.json"
    path.write_bytes(text[: data.draw(st.integers(1, len(text) - 1))])
    with pytest.raises(DataError, match=r"table\.json.*(cut short|not valid JSON)"):
        entries(path, chunk)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "b": 2 3}', ":2: is not valid JSON at character 18 ('}' is needed; got '3')"),
        ('{"a": 1,\n\n "b": [1, x, 2, 3, 4, 5, 6, 7, 8]}', ":3: is not valid JSON at character 21 (expecting value)"),
        (
            '{"a": "one\ntwo, three, four, five"}',
            ":1: is not valid JSON at character 11 (invalid control character at)",
        ),
        ("{1: 2}", ":1: is not valid JSON at character 2 (a key in double quotes is needed; got '1')"),
    ],
)
def test_what_is_wrong_is_placed(tmp_path, text, place, chunk):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        entries(path, chunk)
    assert str(error.value).startswith(f"{path}{place}")


def test_gzip_is_read_and_a_damaged_one_told(tmp_path):
    path = tmp_path / "a.json"
    whole = gzip.compress(json.dumps({"a": list(range(5000))}).encode())
    path.write_bytes(whole)
    assert entries(path, 100) == {"a": list(range(5000))}
    for damaged in (whole[:-9], whole[:200] + b"\xff" * 50 + whole[250:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="gzip file is damaged or cut short"):
            entries(path, 100)


def test_other_encodings_are_refused_with_the_byte(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes('["cafés"]'.encode("latin-1"))
    with pytest.raises(DataError, match="must be UTF-8; byte 6 is 0xe9"), JsonScanner(path, chunk=2) as scanner:
        scanner.value()
    path.write_text('["a"]', encoding="utf-16")
    with pytest.raises(DataError, match="the file is UTF-16"), JsonScanner(path) as scanner:
        scanner.peek()
    path.write_bytes('["é'.encode()[:-1])
    with pytest.raises(DataError, match="cut short after 2 bytes"), JsonScanner(path, chunk=1) as scanner:
        scanner.value()


def test_a_byte_order_mark_is_stepped_over(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1]", encoding="utf-8-sig")
    with JsonScanner(path) as scanner:
        assert scanner.value() == [1]


def test_archives_and_deep_nesting_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(DataError, match="zip archive"):
        JsonScanner(path)
    path.write_text("[" * 200_000)
    with JsonScanner(path) as scanner, pytest.raises(DataError, match="nested too deeply"):
        scanner.value()


@pytest.mark.parametrize("chunk", [1, 7, 100, 10_000])
def test_lines_are_counted_once(tmp_path, chunk):
    """A record asks for its line; to count from the buffer's start each time took most of a large file's minutes."""

    class Counted(str):
        looked_at = 0

        def count(self, text, start, end):
            Counted.looked_at += end - start
            return super().count(text, start, end)

    path = tmp_path / "a.json"
    text = "[\n" + ",\n".join(f'{{"a":\n{i}}}' for i in range(300)) + "]"
    path.write_text(text)
    with JsonScanner(path, chunk=chunk) as scanner:
        scanner.take("[")
        for number in range(300):
            scanner.peek()
            scanner._text = Counted(scanner._text)
            assert (scanner.line, scanner.value()) == (2 + 2 * number, {"a": number})
            scanner.taken(",")
    # In smaller chunks the standard decoder counts as well, for the message of each attempt that the chunk cut short.
    assert chunk < len(text) or Counted.looked_at <= len(text)
