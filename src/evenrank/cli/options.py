"""Options that several commands share, defined once."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.errors import ConfigError, DataWarning
from evenrank.io.registry import FORMATS
from evenrank.labels import label_places
from evenrank.measures import parse_measure
from evenrank.row_checks import is_number

COLUMNS = "Columns of the file"
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number(text: str) -> float:
    """Parse a number; typer's error quotes what was written."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number; got {text!r}.") from None


def whole(least: int) -> Callable[[str], int]:
    """Make a parser of whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise typer.BadParameter(f"must be a whole number ≥ {least}; got {text!r}.")
        return value

    return parse


def numeric(*names: str, parser: Callable[[str], Any] = number, **settings: Any) -> Any:
    """Make an option that holds a number, whose error quotes what was written."""
    metavar = "<float>" if parser is number else "<int>"
    return typer.Option(*names, parser=parser, metavar=metavar, **settings)


File = Annotated[
    list[Path],
    typer.Argument(help="The rows: .csv .tsv .jsonl .parquet .letor/.txt/.svm; several files are read as one."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="memory, or stream: Parquet files, folders or patterns read part by part.  [default: stream what is too "
        "large for memory]"
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option("--input-format", help=f"Format of the file, if its name does not say: {', '.join(FORMATS)}."),
]
Header = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV's first line holds the names of columns; if not, they are 1, 2, 3 …",
    ),
]
Query = Annotated[str, typer.Option("--query", help="Column of the query id.", rich_help_panel=COLUMNS)]
Item = Annotated[
    str | None,
    typer.Option("--item", help="Column of the item id.  [default: item, if there is one]", rich_help_panel=COLUMNS),
]
Relevance = Annotated[str, typer.Option("--relevance", help="Column of the relevance.", rich_help_panel=COLUMNS)]
Group = Annotated[
    str, typer.Option("--group", help="Column of the group; empty means unknown.", rich_help_panel=COLUMNS)
]
Groupings = Annotated[
    str,
    typer.Option(
        "--group",
        help="Column of the group; name several, comma-separated, to group the same rows in several ways.",
        rich_help_panel=COLUMNS,
    ),
]
Score = Annotated[
    str, typer.Option("--score", help="Column of the score; higher ranks first.", rich_help_panel=COLUMNS)
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Feature columns, comma-separated.  [default: every other numeric column except score, item, rank]",
        rich_help_panel=COLUMNS,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", help="Columns to leave out of the features, comma-separated; repeatable.", rich_help_panel=COLUMNS
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        help="Features to read as categories, comma-separated; repeatable. Parquet's own types count too.",
        rich_help_panel=COLUMNS,
    ),
]
SampleWeight = Annotated[
    str | None, typer.Option("--sample-weight", help="Column of the row's weight.", rich_help_panel=COLUMNS)
]
Impute = Annotated[
    str | None,
    typer.Option(
        help="For models that take only numbers: fill missing values with the mean or median of the training rows, and "
        "make 0/1 columns of categories.  [default: refuse them]"
    ),
]
Threshold = Annotated[
    float, numeric("--threshold", help="Relevance at or above it counts as relevant.", rich_help_panel=COLUMNS)
]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable results instead of tables.")]
Ks = Annotated[str, typer.Option("--k", help="Cut-offs k, comma-separated: look at the top k of each list.")]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measures",
        help="Further measures, comma-separated, such as awrf@10,ndkl@10(target=equal); see `evenrank measures`.",
    ),
]


def cut_offs(text: str) -> list[int]:
    """Parse whole numbers from "1,3,5"; they come ascending and once each."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--k must be whole numbers ≥ 1, comma-separated; got {text!r}.")
    return sorted({int(part) for part in parts})


def measures(text: str | None) -> list[str]:
    """Parse measures from "awrf@10(target=equal,discount=log2),ndkl@10": commas within brackets do not part them."""
    found = split_measures(text or "")
    for name in found:
        parse_measure(name)
    return found


def split_measures(text: str) -> list[str]:
    """Take apart "a,b(c=1,d=2)" at the commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def names(text: str | None) -> list[str] | None:
    """Parse column names from "a,b,c"."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def shares(text: str, option: str, groups: Sequence[Any], words: Sequence[str] = ()) -> Any:
    """Read one share, a share per group as ``a=0.5,b=0.3``, or one of some words.

    Parameters
    ----------
    text : str
        What the user wrote.
    option : str
        The option, for the message.
    groups : sequence
        The data's groups.
    words : sequence of str
        What may stand instead.

    Returns
    -------
    float, dict or str
        The share, the shares by label, or the word.
    """
    if text in words or is_number(text):
        return text if text in words else float(text)
    out = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        if not name or not is_number(share):
            instead = "".join(f"{word}, " for word in words) or "a number, "
            raise ConfigError(f"{option} must be {instead}or shares of groups as a=0.5,b=0.3; got {part!r}.")
        group = label(name.strip(), groups)
        if group in out:
            raise ConfigError(f"{option} must give each group one share; got {group!r} twice.")
        out[group] = float(share)
    return out


def several(texts: Sequence[str] | None) -> list[str]:
    """Parse column names of an option that may be given several times, each time as "a,b,c"."""
    return [name for text in texts or () for name in names(text) or []]


def ignored(
    texts: Sequence[str] | None,
    *,
    categorical: Sequence[str] | None,
    features: str | None,
    roles: Mapping[str, str | None],
) -> list[str]:
    """Parse --ignore, which must not contradict the other options.

    Parameters
    ----------
    texts : sequence of str, optional
        What was given to --ignore.
    categorical, features
        What was given to --categorical and --features.
    roles : mapping of str to str
        Part of a column → the column that has it; to ignore one that is no feature anyway is noted.

    Returns
    -------
    list of str
        The columns.
    """
    columns = several(texts)
    for column in columns:
        for option, chosen in (("--categorical", several(categorical)), ("--features", names(features) or [])):
            if column in chosen:
                raise ConfigError(f"--ignore {column} contradicts {option} {column}; leave one of them out.")
        role = next((role for role, name in roles.items() if name == column), None)
        if role is not None:
            told = f"--ignore {column} changes nothing: the column has the {role} and is no feature"
            warnings.warn(f"{told}; name another with --{role.replace(' ', '-')}", DataWarning, stacklevel=3)
    return columns


def label(text: str | None, known: Sequence[Any]) -> Any:
    """Find the group label that was typed: labels may be numbers."""
    place = -1 if text is None else label_places([text], known)[0]
    return text if place < 0 else known[place]


def settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parse options from name=value; a value is a number, true, false, null or a list as JSON has them, else text.

    Numbers may be written as shells and people write them: .5, 5., +1.
    """
    out: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set must be written as option=value; got {text!r}.")
        try:
            out[name.strip()] = json.loads(value)
        except ValueError:
            out[name.strip()] = _number_or_text(value)
    return out


def _number_or_text(text: str) -> Any:
    written = text.strip()
    if WHOLE.fullmatch(written):
        return int(written)
    return float(written) if NUMBER.fullmatch(written) else text
