"""Which column plays which part, and text columns turned into numbers and ids."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.checks import text_array
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.frame_columns import frame_labels, item_column, note_ids, note_left_out, python_values, usual_features
from evenrank.labels import LABELS
from evenrank.row_checks import Locate, listed

SHOWN = 40
# user → read → a format's reader → assemble: a warning names the user's line.
STACK = 4


@dataclass(frozen=True)
class Labels:
    """Columns to read in the same pass as the rows, each as group labels are read.

    ``wanted`` are pairs of a part, as errors call it, and a column. A reader puts into ``values`` the labels of each
    column, (n,), in the order of the file.
    """

    wanted: tuple[tuple[str, str], ...] = ()
    values: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """The caller's choice of columns; the arguments of `evenrank.read`."""

    query: str = "qid"
    relevance: str | None = "relevance"
    group: str | None = "group"
    item: str | None = None
    features: tuple[str, ...] | None = None
    relevance_threshold: float = 1.0
    sample_weight: str | None = None
    score: str | None = None
    qrels: str | os.PathLike[str] | None = None
    groups: str | os.PathLike[str] | Mapping[Any, Any] | None = None
    ignore: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)

    def refuse_trec(self, what: str) -> None:
        """Raise a ConfigError if an option of TREC runs was given; ``what`` is what the error calls the file."""
        for option in ("qrels", "groups"):
            if getattr(self, option) is not None:
                raise ConfigError(f"{option} is for TREC runs only; {what} has relevance and group in its own columns.")


class MissingColumn(DataError):
    """A named column is not in the data; ``fact`` is the message without its advice, which depends on the caller."""

    def __init__(self, role: str, fact: str, advice: str) -> None:
        super().__init__(f"{fact} {advice}")
        self.role, self.fact, self.advice = role, fact, advice

    def __reduce__(self) -> Any:
        return MissingColumn, (self.role, self.fact, self.advice)


@dataclass(frozen=True)
class Plan:
    """Roles settled against the columns a table has.

    ``features`` None means every numeric column of ``rest``; ``by_name`` are never features unless named.
    """

    item: str | None
    features: tuple[str, ...] | None
    rest: tuple[str, ...]
    by_name: tuple[str, ...]
    needed: tuple[str, ...]


def plan(names: Sequence[str], columns: Columns, source: str) -> Plan:
    """Settle which column has which part.

    Parameters
    ----------
    names : sequence of str
        The columns of the file.
    columns : Columns
        The caller's choice.
    source : str
        What an error calls the file.

    Raises
    ------
    MissingColumn
        A named column is absent; the message has those that are there.
    ConfigError
        The choice contradicts itself.
    """
    features = (columns.score,) if columns.score is not None else columns.features
    if features is not None and len(set(features)) < len(features):
        twice = next(name for j, name in enumerate(features) if name in features[:j])
        raise ConfigError(f"features must differ; {twice!r} is named twice. Name it once.")
    if columns.score is None and columns.relevance is not None and columns.relevance in (features or ()):
        raise ConfigError(f"features must not hold the relevance column {columns.relevance!r}, which is to be learnt.")
    named = {
        "query": columns.query,
        "relevance": columns.relevance,
        "group": columns.group,
        "item": columns.item,
        "sample_weight": columns.sample_weight,
    }
    wanted = [(role, name) for role, name in named.items() if name is not None]
    wanted += [("score" if columns.score is not None else "features", name) for name in features or ()]
    labelled = list(columns.labels.wanted)
    for role, name in wanted + labelled:
        if name not in names:
            none = f" or pass {role}=None" if role in ("relevance", "group") else ""
            raise MissingColumn(
                role,
                f"{source}: {role} column {name!r} is not in the data; it has {listed(names)}.",
                f"Name the right column with {role}={none}.",
            )
    for role, name in wanted[1:] + labelled:
        if name == columns.query:
            raise ConfigError(
                f"{source}: the query column must have no other part; {name!r} is also the {role} column. "
                f"Name another column for one of the two."
            )
    item = item_column(columns.item, names, [*(name for _, name in wanted), *columns.ignore])
    taken = {name for _, name in wanted + labelled} | {item}
    free = [name for name in names if name and name not in taken and name not in columns.ignore]
    rest, by_name = usual_features(free if features is None else ())
    needed = tuple(name for name in names if name in taken or name in rest)
    return Plan(item, features, tuple(rest), tuple(by_name), needed)


def assemble(frame: pl.DataFrame, chosen: Plan, columns: Columns, at: Locate, *, typed: bool = True) -> RankingData:
    """Turn a table into `RankingData`.

    Parameters
    ----------
    frame : polars.DataFrame
        The needed columns.
    chosen : Plan
        The parts of the columns.
    columns : Columns
        The caller's choice.
    at : callable
        From a row to its place in the files, for errors.
    typed : bool
        False if all columns are text; ids written as whole numbers then become ints.
    """
    features = chosen.features
    converted: dict[str, pl.Series] = {}
    if features is None:
        numeric = [name for name in chosen.rest if _looks_numeric(frame[name], converted)]
        note_left_out(chosen.by_name, [name for name in chosen.rest if name not in numeric], stacklevel=STACK)
        features = tuple(numeric)

    def column_labels(name: str) -> NDArray[Any]:
        if frame.schema[name].is_nested() or frame.schema[name] == pl.Object:
            values = python_values(frame[name])
            row = next((row for row, value in enumerate(values) if isinstance(value, list | dict)), 0)
            raise DataError(f"{at(row)}: column {name!r} must hold plain values; got {shown(values[row])}.")
        return labels(frame[name] if typed else whole_ids(frame[name]))

    def positive(name: str | None, role: str) -> NDArray[Any] | None:
        if name is None:
            return None
        rule = "a finite number ≥ 0", "Drop the row or fill the value."
        return numbers(frame[name], role if name == role else f"{role} {name!r}", at, rule)

    columns.labels.values.update({name: column_labels(name) for _, name in columns.labels.wanted})
    relevance = positive(columns.relevance, "relevance")
    matrix = _matrix(frame, features, converted, at, "feature" if columns.score is None else "score")
    if chosen.features is None:
        note_ids(matrix, features, stacklevel=STACK)
    return RankingData.from_arrays(
        matrix,
        np.zeros(frame.height) if relevance is None else relevance,
        None if columns.group is None else column_labels(columns.group),
        column_labels(columns.query),
        item_ids=None if chosen.item is None else column_labels(chosen.item),
        feature_names=features,
        relevance_threshold=columns.relevance_threshold,
        sample_weight=positive(columns.sample_weight, "sample_weight"),
        locate=at,
    )


def _matrix(
    frame: pl.DataFrame, names: Sequence[str], converted: dict[str, pl.Series], at: Locate, role: str
) -> NDArray[np.floating]:
    single = bool(names) and all(frame.schema[name] == pl.Float32 for name in names)
    out = np.empty((frame.height, len(names)), np.float32 if single else np.float64)
    for j, name in enumerate(names):
        subject = role if name == role else f"{role} {name!r}"
        rule = "a finite number", "Fill or drop it."
        out[:, j] = numbers(frame[name], subject, at, rule, converted.pop(name, None))
        if role == "score":
            _note_rounded(frame[name], out[:, j])
    return out


def _note_rounded(series: pl.Series, values: NDArray[np.floating]) -> None:
    """Warn of whole-number scores too large for a float, which ties some that differ."""
    if np.abs(values).max(initial=0) <= 2**53:
        return
    if series.dtype.is_integer() or (series.dtype == pl.String and series.str.contains(r"^\s*[+-]?\d+\s*$").all()):
        merged = series.n_unique() - len(np.unique(values))
        if merged > 0:
            warnings.warn(
                f"scores of column {series.name!r} beyond 2^53 are rounded, which ties {merged} that differ; subtract "
                "the smallest score first",
                DataWarning,
                stacklevel=STACK + 2,  # two calls further in
            )


def numbers(
    series: pl.Series, subject: str, at: Locate, rule: tuple[str, str], parsed: pl.Series | None = None
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
    """
    values = to_numbers(series) if parsed is None else parsed
    good = values.is_finite().fill_null(False)
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


def _looks_numeric(series: pl.Series, converted: dict[str, pl.Series]) -> bool:
    """Text is a numeric column with mistakes in it, not a text column, if most of what is written are numbers."""
    if series.dtype != pl.String:
        return series.dtype.is_numeric() or series.dtype == pl.Boolean
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
