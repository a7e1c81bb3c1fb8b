"""The file formats, in one table, and `read`, which chooses among them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.io.columns import Columns, Labels
from evenrank.io.csv import read_csv
from evenrank.io.jsonl import read_jsonl
from evenrank.io.letor import read_letor
from evenrank.io.parquet import read_parquet
from evenrank.io.trec import read_trec

PathLike = str | os.PathLike[str]


class Reader(Protocol):
    """What a format provides: rows of one or more files, taken as parts of one."""

    def __call__(self, paths: Sequence[Path], columns: Columns, /) -> RankingData: ...


@dataclass(frozen=True)
class Format:
    """A reader and the file suffixes that choose it."""

    read: Reader
    suffixes: tuple[str, ...]


FORMATS: dict[str, Format] = {
    "csv": Format(read_csv, (".csv",)),
    "tsv": Format(partial(read_csv, separator="\t"), (".tsv",)),
    "jsonl": Format(read_jsonl, (".jsonl", ".ndjson")),
    "parquet": Format(read_parquet, (".parquet",)),
    "letor": Format(read_letor, (".letor", ".txt", ".svm", ".svmlight")),
    "trec": Format(read_trec, (".trec", ".run")),
}


def read(
    path: PathLike | Sequence[PathLike],
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str | None = "group",
    item: str | None = None,
    features: Sequence[str] | None = None,
    relevance_threshold: float = 1.0,
    sample_weight: str | None = None,
    score: str | None = None,
    qrels: PathLike | None = None,
    groups: PathLike | Mapping[Any, Any] | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    header: bool = True,
    format: str | None = None,
) -> RankingData:
    """Read query–item rows from a file, or from the parts of one, in any of the `FORMATS`.

    Parameters
    ----------
    path : str, path or sequence of them
        A file, or files of one format, read as if they were one. Text may be gzip-compressed.
    query, relevance, group, item, sample_weight : str or None
        The column of each. ``relevance=None`` and ``group=None`` do without; ``item=None`` takes the column ``item`` if
        there is one. An empty group is an unknown one.
    features : sequence of str, optional
        The feature columns; by default every other column of numbers, or of categories by its type (Parquet). Others,
        and those called score, item or rank, are left out with a `DataWarning`. An empty value is a missing one.
    relevance_threshold : float
        Relevance at or above it counts as relevant.
    score : str, optional
        A column to take as the only feature, for rankings that were logged with their scores.
    qrels : str or path, optional
        For a TREC run: the judgements.
    groups : str, path or Mapping, optional
        For a TREC run: each item's group, as a CSV file with the columns ``item`` and ``group``, or as a mapping.
    ignore : sequence of str
        Columns that are left out silently, unless they are named for a part; each must be there.
    categorical : sequence of str
        Features to read as categories, whatever their type; see docs/files.md.
    header : bool
        False if a CSV or TSV has no line of names; its columns are then called 1, 2, 3 ….
    format : str, optional
        One of `FORMATS`; by default the file's suffix decides.

    Returns
    -------
    RankingData
        The rows.

    Raises
    ------
    DataError
        With the file and line of the first row that breaks a rule.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("qid,item,relevance,group,price\\n1,a,1,new,3.5\\n1,b,0,old,2\\n")
    >>> read(path)
    RankingData(2 rows, 1 queries, 1 features; relevant 50%; groups: 'new' 50%, 'old' 50%)
    """
    if isinstance(features, str):
        raise ConfigError(f"features must be a list of names; got the text {features!r}. Write [{features!r}].")
    if isinstance(categorical, str):
        raise ConfigError(f"categorical must be a list of names; got {categorical!r}. Write [{categorical!r}].")
    columns = Columns(
        query=query,
        relevance=relevance,
        group=group,
        item=item,
        features=None if features is None else tuple(features),
        relevance_threshold=relevance_threshold,
        sample_weight=sample_weight,
        score=score,
        qrels=qrels,
        groups=groups,
        ignore=tuple(ignore),
        categorical=tuple(categorical),
        header=header,
    )
    reader, paths = _reader(path, columns, format)
    return reader(paths, columns)


def read_with_labels(
    path: PathLike | Sequence[PathLike],
    labels: Sequence[tuple[str, str]],
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    format: str | None = None,
    **options: Any,
) -> tuple[RankingData, dict[str, NDArray[Any]]]:
    """Rows as `read` gives them, and the labels of further columns, read in the same pass.

    Parameters
    ----------
    labels : sequence of (str, str)
        A part, as an error about its column calls it, and the column; none of them is a feature unless named.
    path, features, ignore, categorical, format, **options
        As in `read`.

    Returns
    -------
    tuple
        The rows, and column → its labels, (n,), in the order of the file, for `RankingData.with_group`.
    """
    wanted = Labels(tuple(labels))
    names = None if features is None else tuple(features)
    columns = Columns(features=names, ignore=tuple(ignore), categorical=tuple(categorical), labels=wanted, **options)
    reader, paths = _reader(path, columns, format)
    data = reader(paths, columns)
    absent = [column for _, column in wanted.wanted if column not in wanted.values]
    if absent:
        raise DataError(f"{paths[0]}: the format has no column {absent[0]!r}. Write the rows as CSV or Parquet.")
    return data, wanted.values


def _reader(path: PathLike | Sequence[PathLike], columns: Columns, format: str | None) -> tuple[Reader, list[Path]]:
    """The reader of the files' format, and the files, each named once."""
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(part) for part in path]
    if not paths:
        raise ConfigError("path must name at least one file; got an empty list.")
    again = [path for j, path in enumerate(paths) if path in paths[:j] and path.is_file()]
    if again:
        raise ConfigError(f"{again[0]}: is named twice; each part must be named once. Drop one.")
    name = format_of(paths) if format is None else choose(format, FORMATS, what="format")
    if format is None and name == "letor" and columns.qrels is not None:
        name = "trec"  # runs are often called .txt too, and only they come with judgements
    if not columns.header and name not in ("csv", "tsv"):
        raise ConfigError(f"header=False (--no-header) is for CSV and TSV; got the format {name!r}. Leave it out.")
    return FORMATS[name].read, paths


def format_of(paths: Sequence[Path]) -> str:
    """Look up the format that the files' suffixes, which must agree, stand for."""
    by_suffix = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes}
    first_of: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            raise DataError(f"{path}: is a folder; a file is needed. Name the files in it.")
        suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        suffix = suffixes[-1] if suffixes else ""
        if suffix not in by_suffix and not path.exists():
            raise DataError(f"{path}: there is no such file. Check the path.")
        if suffix not in by_suffix:
            raise ConfigError(
                f"{path}: the suffix must be one of {', '.join(by_suffix)}; got {suffix!r}. "
                f"Rename the file or name its format ({', '.join(FORMATS)}) with format= or --input-format."
            )
        first_of.setdefault(by_suffix[suffix], path)
    if len(first_of) > 1:
        first, second = list(first_of.values())[:2]
        raise ConfigError(f"path must name files of one format; got {str(first)!r} and {str(second)!r}.")
    return next(iter(first_of))
