"""The columns of tables: which are features, and their values; one rule for files and frames."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.categories import numbered
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.labels import is_missing
from evenrank.row_checks import Locate, frame_names, is_number, listed

# Columns of these names are features only where they are named as such: results of ranking, and the usual names of what
# is learnt and compared, which stay what they are where another column has their part.
NOT_FEATURES = ("score", "item", "rank", "qid", "relevance", "group")
FEWEST_IDS = 10  # in fewer rows, distinct whole numbers say nothing

# ---------------------------------------------------------------------- which columns are features


def frame_parts(
    df: Any,
    named: Mapping[str, str | None],
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str],
    categorical: Sequence[str] = (),
    stacklevel: int,
) -> tuple[Any, str | None, list[str]]:
    """Find the item ids and the features among the columns of a frame.

    Parameters
    ----------
    df : frame
        A pandas, polars or pyarrow table.
    named : Mapping[str, str | None]
        The column of each part that is not a feature.
    features, ignore, categorical : sequence of str
        See `RankingData.from_frame`.
    stacklevel : int
        How far up the caller is whom warnings name.

    Returns
    -------
    tuple
        The frame, the column of item ids or None, and the feature columns.
    """
    import narwhals as nw

    try:
        frame = nw.from_native(df, eager_only=True)
    except TypeError:
        raise DataError(
            f"df must be a pandas, polars or pyarrow table; got {type(df).__name__}. Use from_arrays for arrays."
        ) from None
    except nw.exceptions.DuplicateError:
        twice = [name for name, number in Counter(frame_names(df)).items() if number > 1]
        raise DataError(
            f"columns must have different names; twice there: {listed(twice)}. Rename or drop one."
        ) from None
    for role, column in named.items():
        if column is not None and column not in frame.columns:
            raise DataError(f"{role} column {column!r} is not in the data; it has {listed(frame.columns)}.")
    refuse_contradiction(categorical, ignore)
    chosen = [*(features or ()), *categorical]
    item = item_column(named["item"], frame.columns, [*named.values(), *chosen, *ignore])
    for column in chosen:
        if column not in frame.columns:
            raise DataError(f"feature column {column!r} is not in the data; it has {listed(frame.columns)}.")
    for column in ignore:
        if column not in frame.columns:
            raise DataError(f"{not_there('ignore', column, frame.columns)} Name the right column with ignore=.")
    if features is not None:
        return frame, item, [*features, *(name for name in categorical if name not in features)]
    taken = {*named.values(), item, *ignore} - {*categorical}
    rest, by_name = usual_features([column for column in frame.columns if column not in taken], categorical)
    chosen = [name for name in rest if name in categorical or _is_feature(frame.get_column(name).dtype)]
    note_left_out(by_name, [name for name in rest if name not in chosen], stacklevel=stacklevel)
    return frame, item, chosen


def refuse_contradiction(categorical: Sequence[str], ignore: Sequence[str]) -> None:
    """Refuse a column that is to be a feature of categories and none."""
    both = next((name for name in categorical if name in ignore), None)
    if both is not None:
        raise ConfigError(f"column {both!r} is in categorical= and in ignore=; leave it out of one of them.")


def not_there(part: str, name: str, names: Sequence[str]) -> str:
    """Say that a column is not there, which of those that are there are spelt much like it, and which there are."""
    alike = {str(other).casefold(): other for other in reversed(names)}
    near = [alike[key] for key in get_close_matches(str(name).casefold(), alike)]
    guess = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    return f"{part} column {name!r} is not in the data{guess}; it has {listed(names)}."


def item_column(item: str | None, names: Sequence[str], taken: Iterable[str | None]) -> str | None:
    """Find the column of item ids: the one named, else ``item`` if there is one that has no other part."""
    return "item" if item is None and "item" in names and "item" not in set(taken) else item


def usual_features(names: Sequence[str], categorical: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Sort columns that have no part into those that may be features and those that never are unless named."""
    by_name = [name for name in names if str(name).strip().lower() in NOT_FEATURES and name not in categorical]
    return [name for name in names if name not in by_name], by_name


def is_categorical(dtype: Any) -> bool:
    """Tell whether narwhals' or polars' type of a column says that it holds categories."""
    return type(dtype).__name__ in ("Categorical", "Enum")


def _is_feature(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or type(dtype).__name__ == "Boolean" or is_categorical(dtype)


def note_left_out(by_name: Sequence[str], not_numeric: Sequence[str], *, stacklevel: int) -> None:
    """Warn of columns that are no features, once per reason.

    Parameters
    ----------
    by_name : sequence of str
        Those left out because of their names.
    not_numeric : sequence of str
        Those left out because of their values.
    stacklevel : int
        The caller's, as in `warnings.warn`.
    """
    if by_name:
        subject, its_name, it = _counted(by_name)
        warnings.warn(
            f"{subject} left out of the features by {its_name}; to use {it}, name {it} with features= (on the command "
            "line --features)",
            DataWarning,
            stacklevel=stacklevel + 1,
        )
    if not_numeric:
        subject, _, it = _counted(not_numeric)
        warnings.warn(
            f"{subject} not numeric and {subject.rsplit(' ', 1)[1]} left out of the features; to use {it} as "
            f"categories, name {it} with categorical= (--categorical)",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def _counted(names: Sequence[str]) -> tuple[str, str, str]:
    """The columns as a subject with its verb, and the words for "its name" and "it"."""
    if len(names) == 1:
        return f"column {listed(names)} is", "its name", "it"
    return f"columns {listed(names)} are", "their names", "them"


def note_ids(features: NDArray[Any], names: Sequence[str], *, stacklevel: int, rows: str = "every row") -> None:
    """Warn of features nobody named that hold a different whole number in every row, as ids do."""
    ids = [name for j, name in enumerate(names) if len(features) >= FEWEST_IDS and _all_ids(features[:, j])]
    if ids:
        subject = f"feature {listed(ids)} holds" if len(ids) == 1 else f"features {listed(ids)} hold"
        they, them = ("it is an id", "it") if len(ids) == 1 else ("they are ids", "them")
        warnings.warn(
            f"{subject} a different whole number in {rows}, as ids do; if {they}, leave {them} out with ignore= "
            "(--ignore)",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def _all_ids(values: NDArray[Any]) -> bool:
    for part in (values[:1000], values):  # most columns are settled by their first rows
        if not (part == np.trunc(part)).all() or len(np.unique(part)) < len(part):
            return False
    return True


# ---------------------------------------------------------------------- their values


def feature_matrix(
    frame: Any, columns: Sequence[str], at: Locate, categorical: Sequence[str] = ()
) -> tuple[NDArray[Any], dict[str, tuple[Any, ...]]]:
    """Copy columns into a matrix, (n, d): float32 if every column is, float64 otherwise.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The table.
    columns : sequence of str
        The features.
    at : callable
        From a row to its place, for errors.
    categorical : sequence of str
        Those that are categories whatever their type.

    Returns
    -------
    features : ndarray
        NaN where a value is missing; numbers of categories.
    categories : dict
        The labels of each feature that holds categories.
    """
    import narwhals as nw

    dtype = np.float32 if columns and all(frame.get_column(c).dtype == nw.Float32 for c in columns) else np.float64
    out = np.empty((len(frame), len(columns)), dtype)
    labels_of: dict[str, tuple[Any, ...]] = {}
    for j, column in enumerate(columns):
        series = frame.get_column(column)
        if column in categorical or is_categorical(series.dtype):
            out[:, j], labels_of[str(column)] = numbered(frame_labels(series))
        else:
            out[:, j] = frame_numbers(series, column, at, missing=np.nan)
    return out, labels_of


def frame_numbers(series: Any, name: str, at: Locate, *, missing: float | None = None) -> NDArray[Any]:
    """Convert a column to floats, (n,); a DataError names the first value that is not a number.

    Parameters
    ----------
    series : narwhals.Series
        The column.
    name : str
        What an error calls it.
    at : callable
        From a row to its place, for errors.
    missing : float, optional
        What stands for an empty value; by default there must be none.
    """
    import narwhals as nw

    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        values = python_values(series)
        if missing is not None:
            values = [missing if is_missing(value) else value for value in values]
        for row, value in enumerate(values):
            if not is_number(value):
                advice = "" if missing is None else " If it holds categories, name it with categorical=."
                raise DataError(f"{at(row)}: column {name!r} must be numeric; got {value!r}.{advice}")
        return np.array([float(value) for value in values])
    null = series.is_null()
    dtype = np.float32 if series.dtype == nw.Float32 else np.float64
    if not null.any():
        return np.asarray((series.cast(nw.Float64) if _is_wide(series.dtype) else series).to_numpy(), dtype=dtype)
    if missing is None:
        row = int(np.argmax(null.to_numpy()))
        raise DataError(f"{at(row)}: column {name!r} must be a finite number; got an empty value. Fill or drop it.")
    return np.where(null.to_numpy(), missing, series.cast(nw.Float64).to_numpy()).astype(dtype)


def _is_wide(dtype: Any) -> bool:
    """Tell whether numbers have 128 bits, which numpy has no type for."""
    return type(dtype).__name__ in ("Int128", "UInt128")


def frame_labels(series: Any) -> NDArray[Any]:
    """Convert a column to labels, (n,): integers without nulls stay integers, all else becomes Python values."""
    if series.dtype.is_integer() and not (_is_wide(series.dtype) or series.is_null().any()):
        return np.asarray(series.to_numpy())
    return np.fromiter(python_values(series), object, len(series))


def python_values(series: Any) -> list[Any]:
    """Convert a column to Python values; a DataError where it has dates that Python cannot write."""
    try:
        return list(series.to_list())
    except BaseException as error:
        # The panics of polars are no Exception; without polars there are none to import.
        if isinstance(error, ValueError | OverflowError) or type(error).__name__ == "PanicException":
            reason = "".join(mark if mark.isprintable() else "?" for mark in str(error))
            raise DataError(
                f"column {series.name!r} holds a {series.dtype} that cannot be read ({reason}). Write it as text."
            ) from None
        raise
