"""Parsing LETOR lines: all tokens at once when they are regular, line by line to say what is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.io.files import Text
from evenrank.io.values import shown

SPACE, COLON, NEWLINE, ZERO = b" :\n0"
MOST_INDEX = 10**9 - 1
_SPACES = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")


@dataclass(frozen=True)
class LetorRows:
    """n parsed rows with m feature values in all; ``index`` increases within each row."""

    relevance: NDArray[np.float64]
    queries: list[str]
    counts: NDArray[np.int64]  # (n,) values of each row
    index: NDArray[np.int64]  # (m,)
    values: NDArray[np.float64]  # (m,)
    lines: NDArray[np.int64]  # (n,) line of each row in the whole text, from 1


def parse_rows(data: bytes, text: Text, line: int) -> LetorRows:
    """Parse a block of whole lines.

    Parameters
    ----------
    data : bytes
        The block.
    text : Text
        The text it is a part of, for errors.
    line : int
        The number of lines before it.
    """
    rows = parse_at_once(data, line)
    return parse_by_line(data, text, line) if rows is None else rows


def parse_at_once(data: bytes, line: int) -> LetorRows | None:
    """Parse a block with array operations, or return None where a row is in any way unusual.

    Delimiters must come as ``label␣qid:id␣index:value␣index:value…⏎``. The query's token is overwritten with
    zeros and every delimiter with a newline, which leaves one long column of numbers for the CSV parser.
    """
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    # The commonest repeat, a space before each newline, is much cheaper to drop here than below.
    data = data.translate(_SPACES).replace(b"  \n", b"\n").replace(b" \n", b"\n")
    array = np.frombuffer(bytearray(data), np.uint8)
    at = np.flatnonzero((array == SPACE) | (array == COLON) | (array == NEWLINE))
    if len(array) < 2**31:
        at = at.astype(np.int32)
    kind = array[at]
    line_of = line + np.cumsum(kind == NEWLINE, dtype=at.dtype)
    array, at, kind, line_of = _without_repeats(array, at, kind, line_of)
    before = np.concatenate([np.array([NEWLINE], np.uint8), kind[:-1]])
    regular = (kind == SPACE) & (before != SPACE) | (kind == COLON) & (before == SPACE)
    regular |= (kind == NEWLINE) & (before == COLON)
    if not len(at) or not regular.all():
        return None
    ends = np.flatnonzero(kind == NEWLINE)
    first = np.concatenate([[0], ends[:-1] + 1])  # each row's first delimiter, the space before qid
    opens, colon, closes = at[first], at[first + 1], at[first + 2]
    if not ((colon - opens == 4) & (closes - colon > 1)).all():
        return None
    if not all((array[opens + 1 + j] == letter).all() for j, letter in enumerate(b"qid")):
        return None
    # A feature's number has digits only (3. and 3e0 are numbers, but none of a feature), so the letters of qid are all
    # other marks before colons. Their count may wrap around: 256 marks in a row are no number anyway.
    marks = np.zeros(len(array) + 1, np.uint8)
    np.cumsum((array < ZERO) | (array > ZERO + 9), dtype=np.uint8, out=marks[1:])
    colons = np.flatnonzero(kind == COLON)
    if (marks[at[colons]] - marks[at[colons - 1] + 1]).sum(dtype=np.int64) != 3 * len(first):
        return None
    content = array.tobytes()
    queries = [content[a + 1 : b].decode() for a, b in zip(colon.tolist(), closes.tolist(), strict=True)]
    array[at] = NEWLINE
    width = closes - opens - 1
    array[np.arange(width.sum()) + np.repeat(opens + 1 - (np.cumsum(width) - width), width)] = ZERO
    tokens = _numbers(array)
    if tokens is None or len(tokens) != len(at) - len(first):
        return None
    starts = first - np.arange(len(first))  # "qid" and the id became one token
    in_pairs = np.ones(len(tokens), bool)
    in_pairs[starts] = in_pairs[starts + 1] = False
    pairs = tokens[in_pairs]
    counts = (ends - first - 2) // 2
    if (pairs[::2] > MOST_INDEX).any() or np.isnan(tokens[starts]).any():
        return None
    index = pairs[::2].astype(np.int64)
    increases = np.diff(index, prepend=-1) > 0
    row_starts = np.cumsum(counts) - counts
    increases[row_starts[counts > 0]] = True
    if not (increases & (index >= 0) & (index == pairs[::2])).all():
        return None
    return LetorRows(tokens[starts], queries, counts, index, pairs[1::2], line_of[ends])


def _without_repeats(
    array: NDArray[np.uint8], at: NDArray[np.int64], kind: NDArray[np.uint8], line_of: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Drop spaces beside another delimiter and newlines of blank lines, as long as there are any."""
    while True:
        touches = np.concatenate([at[:1] == 0, at[1:] - at[:-1] == 1])
        after = np.concatenate([[True], kind[:-1] == NEWLINE])
        drop = touches & after & (kind != COLON)
        drop[:-1] |= touches[1:] & (kind[:-1] == SPACE) & (kind[1:] != COLON)
        if not drop.any():
            return array, at, kind, line_of
        keep = np.ones(len(array), bool)
        keep[at[drop]] = False
        shift = np.cumsum(drop)
        array = array[keep]
        at, kind, line_of = (at - shift)[~drop], kind[~drop], line_of[~drop]


def _numbers(array: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """One number a line, (m,), or None if any is missing, not a number or infinite."""
    try:
        # A line before the first: a byte order mark is dropped at the very beginning only.
        plain = b"0\n" + array.tobytes()
        frame = pl.read_csv(plain, has_header=False, schema={"token": pl.Float64()}, quote_char=None)[1:]
    except pl.exceptions.PolarsError:
        return None
    tokens = frame["token"]
    if tokens.null_count() or tokens.is_infinite().any():
        return None
    return tokens.to_numpy()


def parse_by_line(data: bytes, text: Text, line: int) -> LetorRows:
    """Parse a block line by line; raises the error of the first line that breaks a rule."""
    relevance, queries, counts, index, values, lines = [], [], [], [], [], []
    for number, written in enumerate(data.split(b"\n"), line + 1):
        tokens = written.partition(b"#")[0].split()
        if not tokens:
            continue
        problem = _problem(tokens)
        if problem:
            raise DataError(f"{text.place(number)}: {problem}")
        pairs = [token.split(b":") for token in tokens[2:]]
        relevance.append(float(tokens[0]))
        queries.append(tokens[1][4:].decode())
        counts.append(len(pairs))
        index += [int(pair[0]) for pair in pairs]
        values += [float(pair[1]) for pair in pairs]
        lines.append(number)
    counts_and_index = np.array(counts, np.int64), np.array(index, np.int64)
    return LetorRows(np.array(relevance), queries, *counts_and_index, np.array(values), np.array(lines, np.int64))


def _problem(tokens: list[bytes]) -> str:
    """Say what is wrong with a row, or give ""."""
    if not _is_number(tokens[0]):
        hint = (
            " If the file is a comma-separated table, pass format='csv' (--input-format csv)."
            if b"," in tokens[0]
            else ""
        )
        return (
            f"relevance, first on the row, must be a finite number ≥ 0; got {_shown(tokens[0])}. "
            f"Drop the row or fill the value.{hint}"
        )
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:") or tokens[1] == b"qid:":
        second = _shown(tokens[1]) if len(tokens) > 1 else "nothing"
        return f"a query id, as in 'qid:7', must follow the relevance; got {second}. Add it."
    last = -1
    for token in tokens[2:]:
        name, colon, value = token.partition(b":")
        if not colon or not name.isdigit() or int(name) > MOST_INDEX:
            return f"features must be written number:value, as in '3:0.5'; got {_shown(token)}. Correct the row."
        if not _is_number(value) and value.lower() != b"nan":
            return f"feature {name.decode()!r} must be a finite number; got {_shown(value)}. Fill or drop it."
        if int(name) <= last:
            return f"feature numbers must increase along the row; got {int(name)} after {last}. Sort the row."
        last = int(name)
    return ""


def _is_number(token: bytes) -> bool:
    try:
        return b"_" not in token and np.isfinite(float(token)).item()
    except ValueError:
        return False


def _shown(token: bytes) -> str:
    return shown(token.decode()) if token else "no value"
