"""The small files of TREC Fair Ranking 2019: judged lists, author groups, and the features made by others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.errors import DataError
from evenrank.io.csv import TextTable, header, load_table
from evenrank.io.files import load_text
from evenrank.io.values import shown
from evenrank.row_checks import listed

TRAINING = "fair-TREC-training-sample.json"
AUTHOR_GROUPS = "fair-TREC-sample-author-groups.csv"
FEATURES = "es-features-bonart-training.csv"
PAPER_AUTHORS = "corpus-subset-for-queries.paper_authors.csv"
PAPERS = "corpus-subset-for-queries.papers.csv"
EXPECTED = (
    f"It must hold {TRAINING}, {AUTHOR_GROUPS} and either the papers (*.jsonl, *.jsonl.gz, *.json.gz or s2-corpus-*) "
    f"or {FEATURES} with {PAPER_AUTHORS}."
)

FEATURE_NAMES = (
    "title_score",
    "abstract_score",
    "entities_score",
    "venue_score",
    "authors_score",
    "year",
    "inCitations",
    "outCitations",
    "qlength",
)
YEAR = FEATURE_NAMES.index("year")
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Query:
    """A query of the training sample.

    Attributes
    ----------
    qid : int or str
        Its id.
    text : str
        What was searched for.
    relevance : dict
        Paper → its relevance.
    place : str
        The file and line it was read from.
    """

    qid: Any
    text: str
    relevance: dict[str, Any]
    place: str


@dataclass(frozen=True)
class Source:
    """What is known of the judged pairs and of their papers, whichever files it came from.

    Attributes
    ----------
    features : dict
        (qid, paper) → the values of `FEATURE_NAMES`; a year that is not known is NaN.
    authors : dict
        Paper → the ids of each of its authors (some have several).
    """

    features: dict[tuple[str, str], list[float]]
    authors: dict[str, list[tuple[str, ...]]]


def find_file(folder: Path, name: str) -> Path | None:
    """Find a file, perhaps compressed.

    Parameters
    ----------
    folder : Path
        The folder, which must exist.
    name : str
        The file's name without .gz.

    Returns
    -------
    Path or None
        None if there is none.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. {EXPECTED}")
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def expected_file(folder: Path, name: str) -> Path:
    """Find the file of that name; without it, a DataError says what the folder must hold."""
    path = find_file(folder, name)
    if path is None:
        raise DataError(f"{folder}: {name} is missing. {EXPECTED}")
    return path


def author_key(value: object) -> str:
    """Write an author id as text; tables that once held missing values write 1881484 as 1881484.0."""
    return str(value).strip().removesuffix(".0")


def read_queries(folder: Path) -> list[Query]:
    """Read the judged lists.

    Parameters
    ----------
    folder : Path
        The folder with the track's files.

    Returns
    -------
    list of Query
        In the order of the file.
    """
    text = load_text([expected_file(folder, TRAINING)])
    queries: dict[str, Query] = {}
    for number, line in enumerate(text.data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            query = _query(line, text.place(number))
        except ValueError as error:
            raise DataError(f"{text.place(number)}: {error} Correct or drop the line.") from None
        earlier = queries.setdefault(str(query.qid), query)
        if earlier is not query:
            raise DataError(f"{query.place}: qid {shown(query.qid)} is also on {earlier.place}. Drop one of the lines.")
    if not queries:
        raise DataError(f"{text.name}: the file is empty; at least one query is needed.")
    return list(queries.values())


def json_object(line: bytes | str) -> dict[str, Any]:
    """Read the object on a line; a ValueError says what is there instead."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        written = line if isinstance(line, str) else line.decode()
        raise ValueError(f"each line must be one JSON object ({reason}); got {shown(written.strip())}.") from None
    if not isinstance(content, dict):
        raise ValueError(f"each line must be a JSON object {{…}}; got {shown(content)}.")
    return content


def _query(line: bytes, place: str) -> Query:
    fields = json_object(line)
    qid, text, documents = (fields.get(key) for key in ("qid", "query", "documents"))
    if isinstance(qid, bool) or not isinstance(qid, int | str) or qid == "":
        raise ValueError(f"'qid' must be a number or text; got {shown(qid)}.")
    if not isinstance(text, str):
        raise ValueError(f"'query' must be text; got {shown(text)}.")
    if not isinstance(documents, list):
        raise ValueError(f"'documents' must be a list; got {shown(documents)}.")
    relevance: dict[str, Any] = {}
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("doc_id"), str) or "relevance" not in document:
            raise ValueError(f"each of 'documents' must have 'doc_id' and 'relevance'; got {shown(document)}.")
        paper, value = document["doc_id"], document["relevance"]
        if paper in relevance:
            raise ValueError(f"doc_id {paper!r} is listed twice for qid {shown(qid)}.")
        if not isinstance(value, int | float) or not 0 <= value <= LARGEST:
            raise ValueError(f"'relevance' must be a finite number ≥ 0; got {shown(value)} for doc_id {paper!r}.")
        relevance[paper] = value
    return Query(qid, text, relevance, place)


def read_levels(folder: Path) -> dict[str, float]:
    """Read each author's level.

    Parameters
    ----------
    folder : Path
        The folder with the track's files.

    Returns
    -------
    dict
        Author id → gid, from the file of author groups.
    """
    table = _table(expected_file(folder, AUTHOR_GROUPS), ["author_id", "gid"])
    levels: dict[str, float] = {}
    for row, (author, gid) in enumerate(zip(table.frame["author_id"], _numbers(table, "gid"), strict=True)):
        if author is None:
            raise DataError(f"{_place(table, row)}: author_id must not be empty. Fill it or drop the row.")
        if levels.setdefault(author_key(author), gid) != gid:
            raise DataError(f"{_place(table, row)}: author {author} has two gids. Drop one of the rows.")
    return levels


def read_feature_file(folder: Path, queries: Sequence[Query]) -> Source:
    """Read the features that others computed with the corpus, for when the corpus is not at hand.

    Parameters
    ----------
    folder : Path
        The folder with the track's files.
    queries : sequence of Query
        The judged lists.

    Returns
    -------
    Source
        Features and authors of the judged papers.
    """
    table = _table(expected_file(folder, FEATURES), ["qid", "doc_id", *FEATURE_NAMES])
    values = np.column_stack([_numbers(table, name) for name in FEATURE_NAMES])
    values[values[:, YEAR] == 0, YEAR] = np.nan  # how this file writes a year that is not known
    judged = {(str(query.qid), paper) for query in queries for paper in query.relevance}
    features: dict[tuple[str, str], list[float]] = {}
    for row, pair in enumerate(table.frame.select("qid", "doc_id").iter_rows()):
        if pair in features:
            raise DataError(
                f"{_place(table, row)}: qid {pair[0]}, doc_id {pair[1]} occurs twice. Drop one of the rows."
            )
        if pair in judged:
            features[pair] = values[row].tolist()
    if not features:
        raise DataError(f"{table.text.name}: no row is a (qid, doc_id) pair that {TRAINING} judges. Check both files.")
    papers = {paper for _, paper in features}
    authors: dict[str, list[tuple[str, ...]]] = {paper: [] for paper in papers}
    known = _table(expected_file(folder, PAPER_AUTHORS), ["paper_sha", "corpus_author_id"])
    for paper, author in known.frame.iter_rows():
        if paper in papers and author is not None:
            authors[paper].append((author_key(author),))
    return Source(features, authors)


def read_titles(path: Path) -> Iterator[tuple[str, str]]:
    """Read the papers' titles.

    Parameters
    ----------
    path : Path
        The table of papers.

    Yields
    ------
    paper, title : str
        The id and the title, "" where there is none.
    """
    for paper, title in _table(path, ["paper_sha", "paper_title"]).frame.iter_rows():
        yield paper, title or ""


def _table(path: Path, needed: Sequence[str]) -> TextTable:
    text = load_text([path])
    names = header(text, ",")
    missing = [name for name in needed if name not in names]
    if missing:
        raise DataError(
            f"{path}: columns {listed(needed)} are needed; {listed(missing)} are not among {listed(names)}."
        )
    table = load_table(text, ",", names, needed)
    return TextTable(table.frame.select(needed), table.lines, text)


def _place(table: TextTable, row: int) -> str:
    return table.text.place(int(table.lines[row]))


def _numbers(table: TextTable, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    series = table.frame[name]
    numbers = series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().copy()
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(f"{_place(table, row)}: {name} must be a finite number; got {shown(series[row])}. Correct it.")
    return numbers
