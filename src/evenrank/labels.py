"""Ids and group labels of any type: checked, and rows brought together by them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import text_array
from evenrank.errors import DataError
from evenrank.row_checks import Locate, listed, shown

LABELS = 1 << 16  # rows whose labels are Python objects at a time
UNKNOWN = -1
EXACT = 2**53  # from here on floats are whole numbers without meaning them
# A whole number as pandas writes it once another is missing; "01", "1.50" and "1e3" are texts of their own.
WHOLE_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0")


def is_missing(value: Any) -> bool:
    """Tell whether a value is one of those by which tables write 'no value': None, NaN, NA, NaT or empty text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value == "" or bool(value != value)


def checked_ids(values: ArrayLike, n: int, what: str, at: Locate) -> NDArray[Any]:
    """Check that n rows have one id each and that none is missing.

    Parameters
    ----------
    values : array-like
        The ids, (n,).
    n : int
        The number of rows.
    what : str
        What an error calls them.
    at : callable
        From a row to its place, for errors.

    Returns
    -------
    ndarray
        A copy, (n,).
    """
    array = label_array(values, n, what)
    if array.dtype == object:
        array = tidy_labels(array.tolist())
    if array.dtype == object:
        missing: NDArray[np.bool_] = np.fromiter(map(is_missing, array), bool, n)
    elif array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype.kind in "Mm":
        missing = np.isnat(array)
    elif array.dtype.kind in "US":
        missing = array == np.array("", array.dtype)
    else:
        missing = np.zeros(n, bool)
    if missing.any():
        raise DataError(f"{at(int(np.argmax(missing)))}: {what} must not be empty. Fill it or drop the row.")
    for start in range(0, n if array.dtype.kind in "UO" else 0, LABELS):
        _refuse_halves(array[start : start + LABELS], start, what, at)
    return array.copy()


def _refuse_halves(part: NDArray[Any], start: int, what: str, at: Locate) -> None:
    """Refuse ids that hold half of a pair of surrogates, as names of groups and features are refused."""
    if part.dtype.kind == "U":
        text = np.ascontiguousarray(part, part.dtype.newbyteorder("="))
        wrong = (text.view(np.uint32).reshape(len(text), -1) >> 11 == 0x1B).any(axis=1)
    else:
        wrong = np.fromiter((isinstance(label, str) and _has_half(label) for label in part), bool, len(part))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{at(start + row)}: {what} must be Unicode text; {shown(part[row])} holds one half of a pair. Rename it."
        )


def _has_half(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= mark <= "\udfff" for mark in text)


def label_array(values: Any, n: int, what: str) -> NDArray[Any]:
    """Take one label of any type per row: arrays and columns as they are, other sequences label by label.

    Parameters
    ----------
    values : array-like
        The labels, (n,). A masked label is a missing one.
    n : int
        The number of rows.
    what : str
        What an error calls them.
    """
    if isinstance(values, np.ma.MaskedArray):
        plain = values.data
        hidden = np.ma.getmaskarray(values)
        if hidden.any():
            plain = (plain.astype("M8[us]") if plain.dtype.kind == "M" else plain).astype(object)
            plain[hidden] = None
        values = plain
    if hasattr(values, "__array__") or isinstance(values, str) or not isinstance(values, Iterable):
        array = np.asarray(values)
    else:
        array = tidy_labels([None if value is np.ma.masked else value for value in values])
    if array.shape != (n,):
        raise DataError(f"{what} must have one value for each of the {n} rows; got shape {array.shape}.")
    if array.dtype == object:
        try:
            for some in _few_at_a_time(array):
                set(some)
        except TypeError:
            strange = next((value for value in array if not isinstance(value, Hashable)), array[0])
            raise DataError(f"{what} must be plain values such as text or numbers; got {strange!r}.") from None
    return array


def tidy_labels(labels: list[Any]) -> NDArray[Any]:
    """Make an array, without numpy turning [1, 'a'] into text, huge integers into floats or tuples into lines."""
    types = set(map(type, labels))
    if len(types) == 1 and issubclass(only := types.pop(), int | float | str | bytes | np.generic):
        plain = text_array(labels) if issubclass(only, str | bytes) else np.asarray(labels)
        if plain.dtype.kind != "f" or not issubclass(only, int):
            return plain
    return np.fromiter(labels, object, len(labels))


def group_codes(
    group: ArrayLike | None, names: Sequence[Any] | None, n: int
) -> tuple[NDArray[np.int32], tuple[Any, ...]]:
    """Number the groups in the order of their sorted labels.

    Parameters
    ----------
    group : array-like or None
        One label per row, (n,), or codes into ``names``.
    names : sequence or None
        All labels, if some may not occur.
    n : int
        The number of rows.

    Returns
    -------
    codes : ndarray of int32
        (n,); -1 where the label is missing.
    labels : tuple
        The sorted labels.
    """
    if group is None:
        return np.full(n, UNKNOWN, np.int32), ()
    array = label_array(group, n, "group")
    if array.dtype.kind == "M":
        array = array.astype("M8[us]")  # finer times become plain integers in a list
    label_of: dict[Any, Any] = {}
    for some in _few_at_a_time(array):
        label_of |= {value: value for value in dict.fromkeys(some.tolist()) if not is_missing(value)}
    present = whole_labels(list(label_of))
    label_of = dict(zip(label_of, present, strict=True))
    if names is not None:
        known = list(names)
        if len(set(known)) < len(known):
            raise DataError(f"group_names must differ; got {listed(known)}.")
        if not set(present) <= set(known):
            is_code = {value: isinstance(value, int) and UNKNOWN <= value < len(known) for value in present}
            if not all(is_code.values()):
                strange = min((value for value in present if value not in known), key=is_code.__getitem__)
                raise DataError(f"group {strange!r} is neither in group_names ({listed(known)}) nor a code into them.")
            label_of = {value: known[value] for value in present if value != UNKNOWN}
    labels = tuple(_sorted_labels(present if names is None else known))
    code_of_label = {label: code for code, label in enumerate(labels)}
    code_of = {value: code_of_label[label] for value, label in label_of.items()}
    codes = (map(code_of.get, some.tolist(), repeat(UNKNOWN)) for some in _few_at_a_time(array))
    return np.fromiter(chain.from_iterable(codes), np.int32, n), labels


def whole_labels(labels: Sequence[Any]) -> list[Any]:
    """Give labels that are floats as ints, if they all are whole: a column holds floats as soon as a label is missing.

    Parameters
    ----------
    labels : sequence
        The labels, each once.

    Returns
    -------
    list
        The labels, which are equal to those given.
    """
    whole = all(map(_is_whole, (label for label in labels if isinstance(label, float))))
    return [int(label) if whole and isinstance(label, float) else label for label in labels]


def _is_whole(number: float) -> bool:
    return number.is_integer() and abs(number) < EXACT


def as_written(label: Any) -> str:
    """Write a label as it is compared with those of other tables: a whole number without a point.

    Parameters
    ----------
    label : Any
        The label.

    Returns
    -------
    str
        Its text.

    Examples
    --------
    >>> [as_written(label) for label in (1, 1.0, "1.0", "1.50", "01")]
    ['1', '1', '1', '1.50', '01']
    """
    text = str(int(label) if isinstance(label, float) and _is_whole(label) else label)
    whole = WHOLE_FLOAT.fullmatch(text)
    return whole[1] if whole else text


def label_places(labels: Sequence[Any], known: Sequence[Any]) -> list[int]:
    """Find labels among known ones: the same label, or else the only one that is written the same.

    A file's column is text as soon as one label is, so that 1 in one file is '1' in another, and floats as soon as one
    is missing, so that it is '1.0' in a third.

    Parameters
    ----------
    labels, known : sequence
        Labels, each once.

    Returns
    -------
    list of int
        The place of each label among the known ones; -1 if it is not there.
    """
    place = {label: code for code, label in enumerate(known)}
    written: dict[str, int] = {}
    for code, label in enumerate(known):
        text = as_written(label)
        written[text] = -1 if text in written else code
    return [place[label] if label in place else written.get(as_written(label), -1) for label in labels]


def _few_at_a_time(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of an array, so that labels are Python objects for some rows at a time."""
    return (array[start : start + LABELS] for start in range(0, len(array), LABELS))


def _sorted_labels(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def group_rows(query: NDArray[Any]) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Bring each query's rows together.

    Parameters
    ----------
    query : ndarray
        One query id per row, (n,).

    Returns
    -------
    order : ndarray of int or None
        The permutation, (n,); None if the rows already are together.
    ptr : ndarray of int
        Where each query begins and, last, n, (q + 1,).
    ids : ndarray
        The queries' ids, (q,).
    """
    changes = (query[1:] != query[:-1]).nonzero()[0]
    bounds = np.empty(len(changes) + 2, np.int64)
    bounds[0], bounds[-1] = 0, len(query)
    np.add(changes, 1, out=bounds[1:-1])
    run_ids = query[bounds[:-1]]
    numbers = run_ids.dtype.kind in "iu"
    if numbers and bool(np.logical_and.reduce(run_ids[1:] > run_ids[:-1])):
        return None, bounds, run_ids
    different = len(np.unique(run_ids) if numbers else set(run_ids.tolist()))
    if different == len(run_ids):
        return None, bounds, run_ids
    first: dict[Any, int] = {}
    run_code = np.fromiter((first.setdefault(value, len(first)) for value in run_ids.tolist()), np.int64, len(run_ids))
    codes = np.repeat(run_code, np.diff(bounds))
    order = np.argsort(codes, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    return order, ptr, query[order[ptr[:-1]]]


def refuse_duplicates(
    items: NDArray[Any],
    ptr: NDArray[np.int64],
    query_ids: NDArray[Any],
    order: NDArray[np.int64] | None,
    at: Locate,
) -> None:
    """Raise a DataError at the first item that occurs twice in a query.

    Parameters
    ----------
    items : ndarray
        Item ids in stored order, (n,).
    ptr : ndarray of int
        Where each query begins, (q + 1,).
    query_ids : ndarray
        (q,).
    order : ndarray of int or None
        From stored to the caller's rows, (n,).
    at : callable
        From a caller's row to its place, for the error.
    """
    start = 0
    while start < len(ptr) - 1:
        stop = max(start + 1, int(np.searchsorted(ptr, ptr[start] + LABELS, side="right")) - 1)
        rows = slice(ptr[start], ptr[stop])
        query = np.repeat(np.arange(start, stop), np.diff(ptr[start : stop + 1]))
        codes = item_codes(items[rows])
        key = query * len(codes) + codes
        by_key = np.argsort(key, kind="stable")
        again = np.flatnonzero(key[by_key[1:]] == key[by_key[:-1]])
        if len(again):
            stored = by_key[again[0] : again[0] + 2] + ptr[start]
            first, second = (int(i) if order is None else int(order[i]) for i in stored)
            raise DataError(
                f"{at(second)}: item {shown(items[stored[0]])} occurs twice in query "
                f"{shown(query_ids[query[stored[0] - ptr[start]]])} (first at {at(first)}). Keep one row per item."
            )
        start = stop


def item_codes(items: NDArray[Any]) -> NDArray[np.int64]:
    """Give the same number to the same item, (n,), below n."""
    if items.dtype.kind in "iu" and len(items):
        low, high = int(items.min()), int(items.max())
        if high - low >= 4 * len(items):
            return np.unique(items, return_inverse=True)[1]
        small = items.dtype.kind == "i"  # unsigned ones may be above what int64 holds
        place = items.astype(np.int64) - low if small else (items - items.dtype.type(low)).astype(np.int64)
        there = np.zeros(high - low + 1, bool)
        there[place] = True
        return np.asarray((np.cumsum(there) - 1)[place])
    code_of: dict[Any, int] = {}
    return np.fromiter((code_of.setdefault(value, len(code_of)) for value in items.tolist()), np.int64, len(items))
