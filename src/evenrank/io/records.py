"""Where the records of delimited text start and how many fields each has, found without a loop over rows.

Parsers pad short rows with empty values and lose count of lines inside quotes; this pass over the bytes
is what lets every error name the right line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.io.files import Text

SCAN_BYTES = 1 << 23
NEWLINE, RETURN, QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Records:
    """The records that are not blank: the line each starts on, counted from 1, and its number of fields."""

    data: bytes
    lines: NDArray[np.int64]
    fields: NDArray[np.int64]
    first_stop: int
    blanks: NDArray[np.int64]

    def without_blanks(self) -> bytes:
        """Give the text without its blank lines."""
        if not len(self.blanks):
            return self.data
        return np.delete(np.frombuffer(self.data, np.uint8), self.blanks).tobytes()


def scan(text: Text, separator: bytes, *, quotes: bool = True) -> Records:
    """Find the records of text that ends with a newline.

    Parameters
    ----------
    text : Text
        The files' content.
    separator : bytes
        The byte between fields.
    quotes : bool
        Whether newlines and separators inside "…" belong to the field.
    """
    data = text.data
    array = np.frombuffer(data, np.uint8)
    quoted = quotes and b'"' in data
    returns = quotes and b"\r" in data
    stops, n_separators, n_lines = [], [], []
    separators = lines = odd = 0
    for start in range(0, len(array), SCAN_BYTES):
        block = array[start : start + SCAN_BYTES]
        newline, separates = block == NEWLINE, block == ord(separator)
        ends = every_newline = np.flatnonzero(newline)
        inside = None
        if quoted:
            inside, odd = _inside(block, odd)
            _refuse_stray_quotes(text, array, block, start, inside, separator)
            separates &= ~inside
            ends = np.flatnonzero(newline & ~inside)
        if returns:
            _refuse_lone_returns(text, array, block, start, inside)
        positions = np.flatnonzero(separates)
        stops.append(ends + start)
        n_separators.append(np.searchsorted(positions, ends) + separators)
        n_lines.append(np.searchsorted(every_newline, ends) + lines + 1)
        separators += len(positions)
        lines += len(every_newline)
    if odd:
        line = _line(data, _last_opening(array))
        raise DataError(f'{text.place(line)}: a quoted field is never closed. Add the closing " or double the quote.')
    return _records(data, np.concatenate(stops), np.concatenate(n_separators), np.concatenate(n_lines))


def _records(data: bytes, stops: NDArray[np.int64], separators: NDArray[np.int64], lines: NDArray[np.int64]) -> Records:
    array = np.frombuffer(data, np.uint8)
    starts = np.concatenate([[0], stops[:-1] + 1])
    length = stops - starts
    blank = (length == 0) | ((length == 1) & (array[starts] == RETURN))
    first_lines = np.concatenate([[0], lines[:-1]]) + 1
    fields = np.diff(separators, prepend=0) + 1
    removed = np.union1d(starts[blank], stops[blank])
    first = int(np.argmin(blank))
    first_stop = int(stops[first] + 1 - np.searchsorted(removed, stops[first]))
    return Records(data, first_lines[~blank], fields[~blank], first_stop, removed)


def _inside(block: NDArray[np.uint8], odd: int) -> tuple[NDArray[np.bool_], int]:
    """Bytes inside quotes (an opening quote is, a closing one is not), and the parity after the block."""
    count = np.cumsum(block == QUOTE, dtype=np.int32) + odd
    return (count & 1).astype(bool), int(count[-1] & 1)


def _refuse_stray_quotes(
    text: Text,
    array: NDArray[np.uint8],
    block: NDArray[np.uint8],
    start: int,
    inside: NDArray[np.bool_],
    separator: bytes,
) -> None:
    at = np.flatnonzero(block == QUOTE)
    opening = inside[at]
    at = at + start
    before = np.isin(array[at - 1], [ord(separator), NEWLINE, QUOTE]) | (at == 0)
    after = np.isin(array[at + 1], [ord(separator), NEWLINE, RETURN, QUOTE])
    stray = np.where(opening, ~before, ~after)
    if stray.any():
        line = _line(text.data, int(at[np.argmax(stray)]))
        raise DataError(
            f'{text.place(line)}: a quote must enclose a whole field and be doubled inside it; found a single " '
            'within a field. Write "a ""b"" c" for a "b" c.'
        )


def _refuse_lone_returns(
    text: Text, array: NDArray[np.uint8], block: NDArray[np.uint8], start: int, inside: NDArray[np.bool_] | None
) -> None:
    """Raise a DataError at a carriage return of its own: programs differ in whether it ends a row."""
    at = np.flatnonzero((block == RETURN) if inside is None else (block == RETURN) & ~inside) + start
    lone = at[array[at + 1] != NEWLINE]
    if len(lone):
        raise DataError(
            f"{text.place(_line(text.data, int(lone[0])))}: lines must end alike; found a carriage return without a "
            "line feed in a file that has line feeds. Quote the field, or save the file with one kind of line end."
        )


def _last_opening(array: NDArray[np.uint8]) -> int:
    return int(np.flatnonzero(array == QUOTE)[-1])


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def refuse_ragged(records: Records, text: Text, n_fields: int, why: str) -> None:
    """Raise a DataError at the first record that has not ``n_fields`` fields; ``why`` says where the number is from."""
    ragged = records.fields != n_fields
    if ragged.any():
        first = int(np.argmax(ragged))
        raise DataError(
            f"{text.place(int(records.lines[first]))}: a row must have {n_fields} fields, {why}; "
            f"got {records.fields[first]}. Add the missing values or quote the separator."
        )
