"""Columns of tables turned into numbers, ids and labels, with errors that quote the value and its place."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.checks import text_array
from evenrank.errors import DataError, DataWarning
from evenrank.frame_columns import frame_labels, is_categorical, python_values
from evenrank.labels import LABELS, WHOLE_FLOAT
from evenrank.rounding import EXACT, NEAR, rounded_scores
from evenrank.row_checks import Locate

SHOWN = 40
FRACTION = r"^-?[0-9]+\.[0-9]*[1-9][0-9]*$"
FINITE = "a finite number", "Fill or drop it."
# user → read → a format's reader → assemble: a warning names the user's line.
STACK = 4


def _note_rounded(series: pl.Series, values: NDArray[np.floating]) -> None:
    """Warn of exact scores so large that the rule of ties, for floats, ties some that differ."""
    if np.abs(values).max(initial=0) < EXACT:
        return
    kind = series.dtype
    whole = kind == pl.String and series.str.contains(r"^\s*[+-]?\d+\s*$").all()
    if whole or kind.is_integer() or kind.is_decimal():
        floats = np.unique(values)
        near = np.diff(floats) <= NEAR * np.maximum(np.abs(floats[1:]), np.abs(floats[:-1]))
        number = series.n_unique() - len(floats) + int(near.sum())
        if number > 0:
            warnings.warn(
                rounded_scores(series.name, number), DataWarning, stacklevel=STACK + 2
            )  # two calls further in


def score_numbers(series: pl.Series, at: Locate) -> NDArray[Any]:
    """Convert a column of scores to numbers, (n,); each must be finite."""
    subject = "score" if series.name == "score" else f"score {series.name!r}"
    values = numbers(series, subject, at, FINITE)
    _note_rounded(series, values)
    return values


def feature_numbers(series: pl.Series, at: Locate, parsed: pl.Series | None = None) -> NDArray[Any]:
    """Convert a feature to numbers, (n,), NaN where nothing is written; see `numbers`."""
    subject = "feature" if series.name == "feature" else f"feature {series.name!r}"
    return numbers(series, subject, at, FINITE, parsed, missing=True)


def numbers(
    series: pl.Series,
    subject: str,
    at: Locate,
    rule: tuple[str, str],
    parsed: pl.Series | None = None,
    *,
    missing: bool = False,
) -> NDArray[Any]:
    """Convert a column to numbers, (n,); a DataError names the first value that is not finite.

    Parameters
    ----------
    series : polars.Series
        The column.
    subject : str
        What the error calls it.
    at : callable
        From a row to its place in the files.
    rule : tuple of str
        What a value must be, and the remedy.
    parsed : polars.Series, optional
        The values, if they were converted before.
    missing : bool
        Whether a value may be missing; it then is NaN.
    """
    values = to_numbers(series) if parsed is None else parsed
    good = values.is_finite().fill_null(False)
    if missing and not good.all():
        good = good | values.is_nan().fill_null(False) | series.is_null()
        values = values.fill_null(float("nan"))
    if not good.all():
        row = int(good.arg_min() or 0)
        raise DataError(
            f"{at(row)}: {subject} must be {rule[0]}; got {shown(python_values(series[row : row + 1])[0])}. {rule[1]}"
        )
    return values.to_numpy()


def to_numbers(series: pl.Series) -> pl.Series:
    """Convert a column to floats, with null where a value is missing or is not a number."""
    if series.dtype == pl.Float32:
        return series
    if series.dtype == pl.String:
        parsed = series.cast(pl.Float64, strict=False)
        if parsed.null_count() > series.null_count():
            text = series.str.strip_chars()
            parsed = text.cast(pl.Float64, strict=False)
            low = text.str.to_lowercase()
            if (low.is_in(["true", "false"]) | series.is_null()).all():
                parsed = (low == "true").cast(pl.Float64)
        return parsed
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return series.cast(pl.Float64)
    values = series.to_list() if series.dtype == pl.Object else [None] * len(series)  # lists among numbers
    return pl.Series(series.name, [_plain_number(value) for value in values], dtype=pl.Float64)


def _plain_number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:  # an integer of 400 digits
        return None


def looks_like_feature(series: pl.Series, converted: dict[str, pl.Series]) -> bool:
    """Tell whether a column holds numbers, or categories by its type.

    Text is a numeric column with mistakes in it, not a text column, if most of what is written are numbers.
    """
    if series.dtype != pl.String:
        return series.dtype.is_numeric() or series.dtype == pl.Boolean or is_categorical(series.dtype)
    parsed = to_numbers(series)
    numeric = 2 * (len(parsed) - parsed.null_count()) > len(series) - series.null_count()
    if numeric:
        converted[series.name] = parsed
    return numeric


def whole_ids(series: pl.Series) -> pl.Series:
    """Convert ids to ints if each is written as an int would be; else keep the text as it stands ("007", 30 digits)."""
    whole = series.cast(pl.Int64, strict=False)
    same = (whole.cast(pl.String) == series).fill_null(False) | series.is_null()
    return whole if same.all() else series


def whole_labels(series: pl.Series) -> pl.Series:
    """Convert group labels that are text only for want of types, as `whole_ids`; whole numbers may be written as 1.0.

    Beside 1.5 they are numbers like it, and keep their point.
    """
    if series.str.contains(FRACTION).any():
        return series
    return whole_ids(series.str.replace(f"^{WHOLE_FLOAT.pattern}$", "$1"))


def labels(series: pl.Series) -> NDArray[Any]:
    """Convert ids or group labels to an array, (n,): integers, text, or Python values where some are missing."""
    if series.dtype == pl.Int128:  # numpy has no such integers; as in CSV, ids beyond 64 bits are text
        series = series.cast(pl.String)
    if series.dtype == pl.String and not series.null_count():
        return text_array(series.to_list())
    if series.dtype == pl.String:
        return _shared_texts(series)
    return frame_labels(series)


def _shared_texts(series: pl.Series) -> NDArray[Any]:
    """Text and None as Python objects, (n,); rows that have the same text have the same object."""
    known: dict[str | None, str | None] = {}
    parts = (part.to_series().to_list() for part in series.to_frame().iter_slices(LABELS))
    return np.fromiter((known.setdefault(text, text) for part in parts for text in part), object, len(series))


def shown(value: object) -> str:
    """Write a value as an error message quotes it: on one line, and short."""
    if value is None:
        return "no value"
    text = repr(value.to_list() if isinstance(value, pl.Series) else value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…" + (text[-1] if text[0] == text[-1] else "")
