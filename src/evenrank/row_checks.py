"""The rules rows must keep, and the messages when they do not; `RankingData` is their only user."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import text_array
from evenrank.errors import DataError

BLOCK_BYTES = 1 << 23
LABELS = 1 << 16  # rows whose labels are Python objects at a time
UNKNOWN = -1

Locate = Callable[[int], str]


class MappedPages:
    """Gives the pages of a large read-only memmap back to the system now and then, so that they don't pile up.

    They stay in the system's file cache; what is given back is this process's hold on them. A row read here and there
    brings in its neighbourhood, so that little reading can take hold of much.
    """

    LARGE, KEEP = 1 << 31, 1 << 24

    def __init__(self, features: NDArray[Any]) -> None:
        large = isinstance(features, np.memmap) and features.mode == "r" and features.nbytes > self.LARGE
        self._map: Any = features._mmap if large else None  # type: ignore[attr-defined]
        self._read = 0

    def read(self, size: int) -> None:
        """So many bytes were read."""
        self._read += size
        if self._map is not None and self._read >= self.KEEP:
            self._read = 0
            if hasattr(self._map, "madvise"):  # not on every system
                self._map.madvise(mmap.MADV_DONTNEED)


def block_rows(n_columns: int) -> int:
    """Rows whose float64 copy stays within `BLOCK_BYTES`."""
    return max(1, BLOCK_BYTES // (8 * max(1, n_columns)))


def unmasked(values: Any, what: str) -> Any:
    """The values themselves; a masked array becomes a plain one, if nothing in it is masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    hidden = np.ma.getmaskarray(values)
    if hidden.any():
        row = int(np.argwhere(hidden)[0][0]) if hidden.ndim else 0
        raise DataError(f"row {row}: {what} must not be masked; got a masked value. Fill it or drop the row.")
    return values.data


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """numpy's array of ``values`` (an array as it is), or a DataError where lengths differ or values are masked."""
    values = unmasked(values, what)
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{what} must be a regular array; got rows of different lengths.") from None


def number_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Numbers in the type they are given in, so that integers stay exact; integers beyond 64 bits stay Python's."""
    array = as_array(values, what)
    if isinstance(values, list | tuple) and array.dtype.kind == "f" and np.abs(array).max(initial=0) >= 2**53:
        array = np.array(values, dtype=object)  # numpy makes floats of integers of which some need a sign, some 64 bits
    if array.dtype.kind in "fiub":
        return array
    if array.dtype == object and all(isinstance(value, int | np.integer | np.bool_) for value in array.flat):
        exact = np.array([int(value) for value in array.flat], object).reshape(array.shape)
        least, most = (min(exact.flat), max(exact.flat)) if exact.size else (0, 0)
        fitting = (kind for kind in (np.int64, np.uint64) if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
        return exact.astype(next(fitting, object))
    return as_floats(array, what)


def as_floats(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Numbers of any type, or text that reads as numbers, as float64."""
    try:
        return array.astype(np.float64, casting="unsafe" if array.dtype.kind != "c" else "safe")
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers; got {array.dtype} values.") from None
    except OverflowError:
        raise DataError(f"{what} must be numbers below 1.8e308 in magnitude; got a larger integer.") from None


def shown(value: Any) -> str:
    """The value as the user wrote it: 'n/a', not np.str_('n/a')."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def checked_features(X: ArrayLike, names: Sequence[str] | None, at: Locate) -> NDArray[Any]:
    names = getattr(X, "columns", None) if names is None else names
    array = as_array(X, "X")
    if array.ndim != 2:
        raise DataError(f"X must be two-dimensional (rows, features); got shape {array.shape}.")
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    elif array.dtype.kind != "f":
        try:
            array = array.astype(np.float64, casting="unsafe" if array.dtype.kind in "OUS" else "safe")
        except (TypeError, ValueError):
            raise DataError(f"X must be numeric; got {array.dtype} values. Encode text columns first.") from None
    step = block_rows(array.shape[1])
    pages = MappedPages(array)
    for start in range(0, len(array), step):
        block = np.asarray(array[start : start + step])
        pages.read(block.nbytes)
        # A finite sum proves every value finite at a fraction of the cost of testing each.
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if np.isfinite(total):
            continue
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            row, column = start + int(bad[0][0]), int(bad[0][1])
            name = repr(names[column]) if names is not None and column < len(names) else str(column)
            value = float(array[row, column])
            raise DataError(f"{at(row)}: feature {name} must be a finite number; got {value}. Fill or drop it.")
    return array


def checked_names(X: Any, names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    if names is None:
        columns = getattr(X, "columns", None)
        names = list(columns) if columns is not None and len(columns) == d else [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise DataError(f"feature_names must have a name for each of the {d} features; got {len(names)}.")
    texts = tuple(map(str, names))
    if len(set(texts)) < d:
        twice = next(name for j, name in enumerate(texts) if name in texts[:j])
        raise DataError(f"feature_names must differ; {twice!r} occurs twice.")
    return texts


def checked_numbers(values: ArrayLike, n: int, what: str, at: Locate) -> NDArray[np.float64]:
    array = as_array(values, what)
    if array.shape != (n,):
        raise DataError(f"{what} must have one value for each of the {n} rows; got shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            row = next(i for i, value in enumerate(array) if not is_number(value))
            found = shown(array[row])
            raise DataError(
                f"{at(row)}: {what} must be a finite number ≥ 0; got {found}. Drop the row or fill the value."
            ) from None
    numbers = array.astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{at(row)}: {what} must be a finite number ≥ 0; got {numbers[row]:g}. Drop the row or fill the value."
        )
    return numbers


def is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: Any) -> bool:
    """None, NaN, NA, NaT and empty text are how tables write 'no value'."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value == "" or bool(value != value)


def checked_ids(values: ArrayLike, n: int, what: str, at: Locate) -> NDArray[Any]:
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
    return array.copy()


def label_array(values: Any, n: int, what: str) -> NDArray[Any]:
    """One label of any type for each of the n rows: arrays and columns as they are, other sequences label by label.

    A masked label is a missing one.
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
    """Labels as an array, without numpy turning [1, 'a'] into text, huge integers into floats or tuples into lines."""
    types = set(map(type, labels))
    if len(types) == 1 and issubclass(only := types.pop(), int | float | str | bytes | np.generic):
        plain = text_array(labels) if issubclass(only, str | bytes) else np.asarray(labels)
        if plain.dtype.kind != "f" or not issubclass(only, int):
            return plain
    return np.fromiter(labels, object, len(labels))


def group_codes(
    group: ArrayLike | None, names: Sequence[Any] | None, n: int
) -> tuple[NDArray[np.int32], tuple[Any, ...]]:
    """Codes into the sorted labels; -1 where the label is missing."""
    if group is None:
        return np.full(n, UNKNOWN, np.int32), ()
    array = label_array(group, n, "group")
    if array.dtype.kind == "M":
        array = array.astype("M8[us]")  # finer times become plain integers in a list
    label_of: dict[Any, Any] = {}
    for some in _few_at_a_time(array):
        label_of |= {value: value for value in dict.fromkeys(some.tolist()) if not is_missing(value)}
    seen = list(label_of)
    if names is not None:
        known = list(names)
        if len(set(known)) < len(known):
            raise DataError(f"group_names must differ; got {listed(known)}.")
        if not set(seen) <= set(known):
            is_code = {value: isinstance(value, int) and UNKNOWN <= value < len(known) for value in seen}
            if not all(is_code.values()):
                strange = min((value for value in seen if value not in known), key=is_code.__getitem__)
                raise DataError(f"group {strange!r} is neither in group_names ({listed(known)}) nor a code into them.")
            label_of = {value: known[value] for value in seen if value != UNKNOWN}
        seen = known
    labels = tuple(_sorted_labels(seen))
    code_of_label = {label: code for code, label in enumerate(labels)}
    code_of = {value: code_of_label[label] for value, label in label_of.items()}
    codes = (map(code_of.get, some.tolist(), repeat(UNKNOWN)) for some in _few_at_a_time(array))
    return np.fromiter(chain.from_iterable(codes), np.int32, n), labels


def _few_at_a_time(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of an array, so that labels are Python objects for some rows at a time."""
    return (array[start : start + LABELS] for start in range(0, len(array), LABELS))


def _sorted_labels(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def group_rows(query: NDArray[Any]) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """The permutation that brings each query's rows together (None if they already are), pointers and ids."""
    n = len(query)
    starts = np.flatnonzero(np.concatenate([[True], query[1:] != query[:-1]]))
    run_ids = query[starts]
    different = len(np.unique(run_ids) if run_ids.dtype.kind in "iu" else set(run_ids.tolist()))
    if different == len(run_ids):
        return None, np.append(starts, n).astype(np.int64), run_ids
    first: dict[Any, int] = {}
    run_code = np.fromiter((first.setdefault(value, len(first)) for value in run_ids.tolist()), np.int64, len(run_ids))
    codes = np.repeat(run_code, np.diff(np.append(starts, n)))
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
    start = 0
    while start < len(ptr) - 1:
        stop = max(start + 1, int(np.searchsorted(ptr, ptr[start] + LABELS, side="right")) - 1)
        rows = slice(ptr[start], ptr[stop])
        query = np.repeat(np.arange(start, stop), np.diff(ptr[start : stop + 1]))
        codes = _item_codes(items[rows])
        key = query * len(codes) + codes
        by_key = np.argsort(key, kind="stable")
        again = np.flatnonzero(key[by_key[1:]] == key[by_key[:-1]])
        if len(again):
            stored = by_key[again[0] : again[0] + 2] + ptr[start]
            one, two = (int(i) if order is None else int(order[i]) for i in stored)
            raise DataError(
                f"{at(two)}: item {shown(items[stored[0]])} occurs twice in query "
                f"{shown(query_ids[query[stored[0] - ptr[start]]])} (first at {at(one)}). Keep one row an item."
            )
        start = stop


def _item_codes(items: NDArray[Any]) -> NDArray[np.int64]:
    """The same number for the same item, (n,), below n."""
    if items.dtype.kind in "iu":
        return np.unique(items, return_inverse=True)[1]
    code_of: dict[Any, int] = {}
    return np.fromiter((code_of.setdefault(value, len(code_of)) for value in items.tolist()), np.int64, len(items))


def gather(features: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """The given rows; a memmap's go to a temporary memmap, so memory stays flat, and a run of rows is a view."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (len(rows) == 1 or (np.diff(rows) == 1).all()):
        return features[rows[0] : rows[-1] + 1]
    if not isinstance(features, np.memmap):
        return features[rows]
    with tempfile.NamedTemporaryFile(prefix="evenrank-") as file:
        out = np.memmap(file, features.dtype, "w+", shape=(len(rows), features.shape[1]))
    step = block_rows(features.shape[1])
    for start in range(0, len(rows), step):
        out[start : start + step] = features[rows[start : start + step]]
    return out


def freeze(array: Any) -> Any:
    """A read-only view, so the caller's own array stays as it was."""
    if isinstance(array, np.ndarray):
        view = array.view()
        view.flags.writeable = False
        return view
    return array


def listed(names: Any) -> str:
    texts = [repr(name) for name in names]
    return ", ".join(texts[:12]) + (f", … ({len(texts)} in all)" if len(texts) > 12 else "") or "none"
