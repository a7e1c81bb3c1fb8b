"""Which column plays which part, and a table put together from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.categories import numbered
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import (
    is_categorical,
    item_column,
    not_there,
    note_ids,
    note_left_out,
    python_values,
    refuse_contradiction,
    usual_features,
)
from evenrank.io.values import (
    STACK,
    feature_numbers,
    labels,
    looks_like_feature,
    numbers,
    score_numbers,
    shown,
    whole_ids,
    whole_labels,
)
from evenrank.row_checks import Locate, listed


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
    categorical: tuple[str, ...] = ()
    header: bool = True
    labels: Labels = field(default_factory=Labels)

    def refuse_trec(self, what: str) -> None:
        """Raise a ConfigError if an option of TREC runs was given; ``what`` is what the error calls the file."""
        for option in ("qrels", "groups"):
            if getattr(self, option) is not None:
                raise ConfigError(f"{option} is for TREC runs only; {what} has relevance and group in its own columns.")


class MissingColumn(DataError):
    """A named column is not in the data; ``fact`` is the message without its advice, which depends on the caller.

    ``name`` is that of the column, where there may be several of its role.
    """

    def __init__(self, role: str, fact: str, advice: str, name: str | None = None) -> None:
        super().__init__(f"{fact} {advice}")
        self.role, self.fact, self.advice, self.name = role, fact, advice, name

    def __reduce__(self) -> Any:
        return MissingColumn, (self.role, self.fact, self.advice, self.name)


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
    if features is not None and columns.score is None:
        features = (*features, *(name for name in columns.categorical if name not in features))
    if features is not None and len(set(features)) < len(features):
        twice = next(name for j, name in enumerate(features) if name in features[:j])
        raise ConfigError(f"features must differ; {twice!r} is named twice. Name it once.")
    if (
        columns.score is None
        and columns.relevance is not None
        and columns.relevance in (features or columns.categorical)
    ):
        raise ConfigError(f"features must not hold the relevance column {columns.relevance!r}, which is to be learnt.")
    refuse_contradiction(columns.categorical, columns.ignore)
    named = {
        "query": columns.query,
        "relevance": columns.relevance,
        "group": columns.group,
        "item": columns.item,
        "sample_weight": columns.sample_weight,
    }
    wanted = [(role, name) for role, name in named.items() if name is not None]
    wanted += [("score" if columns.score is not None else "features", name) for name in features or ()]
    if features is None:
        wanted += [("categorical", name) for name in columns.categorical]
    labelled = list(columns.labels.wanted)
    for role, name in wanted + labelled:
        if name not in names:
            none = f" or pass {role}=None" if role in ("relevance", "group") else ""
            raise MissingColumn(
                role,
                f"{source}: {role} column {name!r} is not in the data; it has {listed(names)}.",
                f"Name the right column with {role}={none}.",
            )
    absent = next((name for name in columns.ignore if name not in names), None)
    if absent is not None:  # one that is misspelt would be learnt from
        fact = f"{source}: {not_there('ignore', absent, names)}"
        raise MissingColumn("ignore", fact, "Name the right column with ignore=.", absent)
    for role, name in wanted[1:] + labelled:
        if name == columns.query:
            raise ConfigError(
                f"{source}: the query column must have no other part; {name!r} is also the {role} column. "
                f"Name another column for one of the two."
            )
    item = item_column(columns.item, names, [*(name for _, name in wanted), *columns.ignore])
    taken = {name for _, name in wanted + labelled} | {item}
    free = [
        name
        for name in names
        if name in columns.categorical or (name and name not in taken and name not in columns.ignore)
    ]
    rest, by_name = usual_features(free if features is None else (), columns.categorical)
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
        taken = [
            name for name in chosen.rest if name in columns.categorical or looks_like_feature(frame[name], converted)
        ]
        note_left_out(chosen.by_name, [name for name in chosen.rest if name not in taken], stacklevel=STACK)
        features = tuple(taken)

    def column_labels(name: str, of_text: Callable[[pl.Series], pl.Series] = whole_labels) -> NDArray[Any]:
        if frame.schema[name].is_nested() or frame.schema[name] == pl.Object:
            values = python_values(frame[name])
            row = next((row for row, value in enumerate(values) if isinstance(value, list | dict)), 0)
            raise DataError(f"{at(row)}: column {name!r} must hold plain values; got {shown(values[row])}.")
        return labels(frame[name] if typed else of_text(frame[name]))

    def positive(name: str | None, role: str) -> NDArray[Any] | None:
        if name is None:
            return None
        rule = "a finite number ≥ 0", "Drop the row or fill the value."
        return numbers(frame[name], role if name == role else f"{role} {name!r}", at, rule)

    columns.labels.values.update(
        {
            name: column_labels(name, whole_labels if part == "group" else whole_ids)
            for part, name in columns.labels.wanted
        }
    )
    relevance = positive(columns.relevance, "relevance")
    categories: dict[str, tuple[Any, ...]] = {}
    single = bool(features) and all(frame.schema[name] == pl.Float32 for name in features)
    matrix = np.empty((frame.height, len(features)), np.float32 if single else np.float64)
    for j, name in enumerate(features):
        if columns.score is not None:
            matrix[:, j] = score_numbers(frame[name], at)
        elif name in columns.categorical or is_categorical(frame.schema[name]):
            matrix[:, j], categories[name] = numbered(column_labels(name))
        else:
            matrix[:, j] = feature_numbers(frame[name], at, converted.pop(name, None))
    if chosen.features is None:
        note_ids(matrix, features, stacklevel=STACK)
    return RankingData.from_arrays(
        matrix,
        np.zeros(frame.height) if relevance is None else relevance,
        None if columns.group is None else column_labels(columns.group),
        column_labels(columns.query, whole_ids),
        item_ids=None if chosen.item is None else column_labels(chosen.item, whole_ids),
        feature_names=features,
        relevance_threshold=columns.relevance_threshold,
        sample_weight=positive(columns.sample_weight, "sample_weight"),
        categories=categories,
        locate=at,
    )
