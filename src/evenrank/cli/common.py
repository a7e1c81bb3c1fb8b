"""What several commands do: read rows, refuse what cannot be compared, print JSON."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

import evenrank as er
from evenrank.cli import show
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.io.columns import MissingColumn
from evenrank.io.registry import read, read_with_labels

# What JSON leaves as it is: the second block of control characters, marks of direction, halves of pairs.
OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def read_rows(file: list[Path], advice: Mapping[str, str] = MappingProxyType({}), **settings: Any) -> RankingData:
    """Read rows as `er.read` does, with advice on a missing column in the command line's own terms.

    Parameters
    ----------
    file : list of Path
        The files.
    advice : mapping of str to str
        Role of a column → what to do if it is missing; by default, name it with its option.
    **settings
        As in `er.read`.
    """
    try:
        return read(file, **settings)
    except MissingColumn as error:
        raise with_advice(error, advice) from None


def read_labelled_rows(
    file: list[Path],
    labels: Sequence[tuple[str, str]],
    advice: Mapping[str, str] = MappingProxyType({}),
    **settings: Any,
) -> tuple[RankingData, dict[str, NDArray[Any]]]:
    """Read rows as `read_with_labels` does, with advice as in `read_rows`."""
    try:
        return read_with_labels(file, labels, **settings)
    except MissingColumn as error:
        raise with_advice(error, advice) from None


def with_advice(error: MissingColumn, advice: Mapping[str, str]) -> MissingColumn:
    """Make the error for a missing column, with advice in the command line's own terms."""
    option = error.role.replace("_", "-")
    told = advice.get(error.role, f"Name the right column with --{option}.")
    return MissingColumn(error.role, error.fact, told, error.name)


def read_ranked_rows(
    file: list[Path], advice: Mapping[str, str], *, optional: list[str], **settings: Any
) -> tuple[RankingData, bool]:
    """Read rows to be ranked.

    Parameters
    ----------
    file : list of Path
        The files.
    advice : mapping of str to str
        As in `read_rows`.
    optional : list of str
        Roles of columns that are taken if the file has them.
    **settings
        As in `er.read`.

    Returns
    -------
    data : RankingData
        The rows.
    has_relevance : bool
        Whether the file has relevance.
    """
    while True:
        try:
            return read(file, **settings), settings["relevance"] is not None
        except MissingColumn as error:
            if error.role not in optional or settings[error.role] is None:
                raise with_advice(error, advice) from None
            settings[error.role] = None


def need_groups(data: RankingData, file: list[Path], advice: str, least: int = 2) -> None:
    """Raise a DataError, with the advice, if there are fewer groups than ``least``, which is one or two."""
    if data.n_groups < least:
        present = f"only {data.group_names[0]!r}" if data.n_groups else "no group labels"
        needed = "two groups are needed, to compare them" if least > 1 else "one group is needed"
        raise DataError(f"{file[0]}: at least {needed}; found {present}. {advice}")


def warn_if_tied(scores: NDArray[Any], data: RankingData) -> None:
    """Warn if every item of every query has its query's one score."""
    tied = er.Ranking(data.to_stored(scores), data.query_ptr).size == data.lengths[data.query_of_row]
    if tied.all() and data.lengths.max() > 1:
        warnings.warn("all items of a query have the same score: the ranking is arbitrary", DataWarning, stacklevel=2)


def as_json(value: Any) -> str:
    """Write JSON in which characters that a terminal obeys, and halves of pairs, are escapes."""
    ascii_only = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    text = json.dumps(show.plain(value), ensure_ascii=ascii_only, indent=1, allow_nan=False)
    return OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(value: Any) -> None:
    """Print what `as_json` writes."""
    print(as_json(value))
