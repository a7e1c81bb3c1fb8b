"""The rules that features and numbers of rows must keep, and the messages when they do not."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import DataError

BLOCK_BYTES = 1 << 23
LARGEST = 1e100  # sums of squares of such numbers are finite
NUMERIC = "fiub"
READABLE = NUMERIC + "OUST"  # objects and text that may read as numbers; times, records and complex numbers do not

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
        """Note that ``size`` bytes were read; pages are given back when they are many."""
        self._read += size
        if self._map is not None and self._read >= self.KEEP:
            self._read = 0
            if hasattr(self._map, "madvise"):  # not on every system
                self._map.madvise(mmap.MADV_DONTNEED)


def block_rows(n_columns: int) -> int:
    """Count the rows whose float64 copy stays within `BLOCK_BYTES`."""
    return max(1, BLOCK_BYTES // (8 * max(1, n_columns)))


def unmasked(values: Any, what: str) -> Any:
    """Give the values themselves; a masked array becomes a plain one, if nothing in it is masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    hidden = np.ma.getmaskarray(values)
    if hidden.any():
        row = int(np.argwhere(hidden)[0][0]) if hidden.ndim else 0
        raise DataError(f"row {row}: {what} must not be masked; got a masked value. Fill it or drop the row.")
    return values.data


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Make an array of ``values``; an array stays as it is.

    Raises
    ------
    DataError
        Rows have different lengths, or a value is masked; ``what`` is what the error calls the values.
    """
    values = unmasked(values, what)
    if isinstance(values, np.ndarray) and not isinstance(values, np.matrix):  # columns of a matrix are matrices
        return values
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{what} must be a regular array; got rows of different lengths.") from None


def number_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Take numbers in the type they are given in, so that integers stay exact; those beyond 64 bits stay Python's."""
    array = as_array(values, what)
    if isinstance(values, list | tuple) and array.dtype.kind == "f" and np.abs(array).max(initial=0) >= 2**53:
        array = np.array(values, dtype=object)  # numpy makes floats of integers of which some need a sign, some 64 bits
    if array.dtype.kind in NUMERIC:
        return array
    if array.dtype == object and all(isinstance(value, int | np.integer | np.bool_) for value in array.flat):
        exact = np.array([int(value) for value in array.flat], object).reshape(array.shape)
        least, most = (min(exact.flat), max(exact.flat)) if exact.size else (0, 0)
        fitting = (kind for kind in (np.int64, np.uint64) if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
        kind = next(fitting, object)
        if kind is object:
            as_floats(exact, what)  # refuses those beyond every float
        return exact.astype(kind)
    return as_floats(array, what)


def as_floats(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Convert numbers of any type, or text that reads as numbers, to float64."""
    try:
        if array.dtype.kind not in READABLE:
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers; got {array.dtype} values.") from None
    except OverflowError:
        raise DataError(f"{what} must be numbers below 1.8e308 in magnitude; got a larger integer.") from None


def shown(value: Any) -> str:
    """Write the value as the user wrote it: 'n/a', not np.str_('n/a')."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def checked_features(X: ArrayLike, names: Sequence[str] | None, at: Locate) -> tuple[NDArray[Any], bool]:
    """Check that features are numbers in a table, none of them infinite; NaN is a missing value.

    Parameters
    ----------
    X : array-like
        (n, d).
    names : sequence of str or None
        The features' names, for errors; by default those of a frame.
    at : callable
        From a row to its place, for errors.

    Returns
    -------
    features : ndarray
        Floats, (n, d), without a copy where they are floats already.
    has_missing : bool
        Whether any is missing.
    """
    names = frame_names(X) if names is None else names
    array = as_array(X, "X")
    if array.ndim != 2:
        raise DataError(f"X must be two-dimensional (rows, features); got shape {array.shape}.")
    if array.dtype.kind != "f":
        try:
            array = as_floats(array, "X")
        except DataError as error:
            if isinstance(error.__context__, OverflowError):
                raise
            raise DataError(f"X must be numeric; got {array.dtype} values. Encode text columns first.") from None
    step = block_rows(array.shape[1])
    pages = MappedPages(array)
    has_missing = False
    for start in range(0, len(array), step):
        block = np.asarray(array[start : start + step])
        pages.read(block.nbytes)
        # A finite sum proves every value finite at a fraction of the cost of testing each.
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if np.isfinite(total):
            continue
        bad = np.argwhere(np.isinf(block))
        if len(bad):
            row, column = start + int(bad[0][0]), int(bad[0][1])
            name = repr(names[column]) if names is not None and column < len(names) else str(column)
            value = float(array[row, column])
            raise DataError(f"{at(row)}: feature {name} must be a finite number; got {value}. Fill or drop it.")
        has_missing = has_missing or bool(np.isnan(block).any())
    return array, has_missing


def frame_names(X: Any) -> Any:
    """Give the names of a frame's columns; None if it is none."""
    return getattr(X, "column_names", getattr(X, "columns", None))  # the first are Arrow's, whose columns are arrays


def checked_names(X: Any, names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """Settle the names of d features: those given, those of a frame, or x0, x1 …; they must differ."""
    if names is None:
        columns = frame_names(X)
        names = list(columns) if columns is not None and len(columns) == d else [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise DataError(f"feature_names must have a name for each of the {d} features; got {len(names)}.")
    texts = tuple(map(str, names))
    if len(set(texts)) < d:
        twice = next(name for j, name in enumerate(texts) if name in texts[:j])
        raise DataError(f"feature_names must differ; {twice!r} occurs twice.")
    return texts


def refuse_halves(names: Sequence[Any], what: str) -> None:
    """Refuse names that hold half of a pair of surrogates: no file and no other library takes such text."""
    texts = [name for name in names if isinstance(name, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        wrong = next(name for name in texts if half in name)
        raise DataError(f"{what} {wrong!r} must be Unicode text; it holds one half of a pair. Rename it.") from None


def checked_numbers(values: ArrayLike, n: int, what: str, at: Locate) -> NDArray[np.float64]:
    """Check that n rows have one finite number ≥ 0 each, of a size that can be summed.

    Parameters
    ----------
    values : array-like
        (n,).
    n : int
        The number of rows.
    what : str
        What an error calls the values.
    at : callable
        From a row to its place, for errors.

    Returns
    -------
    ndarray of float64
        A copy, (n,).
    """
    array = as_array(values, what)
    if array.shape != (n,):
        raise DataError(f"{what} must have one value for each of the {n} rows; got shape {array.shape}.")
    if array.dtype.kind not in NUMERIC:
        try:
            array = as_floats(array, what)
        except DataError:
            cells = array if array.dtype.kind in READABLE else ()
            row = next((i for i, value in enumerate(cells) if not is_number(value)), None)
            if row is None:
                raise
            raise DataError(
                f"{at(row)}: {what} must be a finite number ≥ 0; got {shown(array[row])}. "
                "Drop the row or fill the value."
            ) from None
    numbers = array.astype(np.float64)
    bad = ~((numbers >= 0) & (numbers <= LARGEST))
    if bad.any():
        row = int(np.argmax(bad))
        rule = f"at most {LARGEST:g}" if LARGEST < numbers[row] < np.inf else "a finite number ≥ 0"
        raise DataError(f"{at(row)}: {what} must be {rule}; got {numbers[row]:g}. Drop the row or fill the value.")
    return numbers


def is_number(value: Any) -> bool:
    """Tell whether Python's float takes such a value, large integers too."""
    try:
        float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return True


def gather(features: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Take rows of the features, (n, d).

    Parameters
    ----------
    features : ndarray
        A memmap's rows go to a temporary memmap, so that memory stays flat.
    rows : ndarray of int
        The rows to take; consecutive ones are a view.
    """
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (len(rows) == 1 or (np.diff(rows) == 1).all()):
        return features[rows[0] : rows[-1] + 1]
    if not isinstance(features, np.memmap):
        return features[rows]
    out = blank_like(features, (len(rows), features.shape[1]))
    step = block_rows(features.shape[1])
    for start in range(0, len(rows), step):
        out[start : start + step] = features[rows[start : start + step]]
    return out


def blank_like(features: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Make an array for other features of the same kind: a temporary memmap for a memmap, so that memory stays flat."""
    if not isinstance(features, np.memmap):
        return np.empty(shape, features.dtype)
    with tempfile.NamedTemporaryFile(prefix="evenrank-") as file:
        return np.memmap(file, features.dtype, "w+", shape=shape)


def freeze(array: Any) -> Any:
    """Make a read-only view, so that the caller's own array stays as it was."""
    if isinstance(array, np.ndarray):
        view = array.view()
        view.flags.writeable = False
        return view
    return array


def listed(names: Any) -> str:
    """Write names for an error message: the first twelve, and how many there are in all."""
    texts = [repr(name) for name in names]
    return ", ".join(texts[:12]) + (f", … ({len(texts)} in all)" if len(texts) > 12 else "") or "none"
