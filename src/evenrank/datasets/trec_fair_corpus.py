"""The nine features of TREC Fair Ranking 2019 from the papers themselves, read as a stream.

BM25 needs the whole corpus: the number of papers, their mean length and how many of them have a word. But only words
of the queries are ever looked up. So each field of a paper is kept as a bag of numbers in which all words that no query
has are one number; that changes no score. Equal bags are stored once.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.datasets.trec_fair_files import LARGEST, TRAINING, Query, Source, author_key, json_object
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.io.files import unreadable
from evenrank.io.values import shown

SUFFIXES = (".jsonl", ".jsonl.gz", ".json.gz")
K1, B = 1.5, 0.75
OTHER = ""  # stands for every word that no query has; no token is empty


@dataclass(frozen=True, slots=True)
class Paper:
    """One line of the corpus.

    Attributes
    ----------
    id : str
        The paper's id.
    texts : tuple of str
        Title, abstract, entities, venue and authors.
    year, cited_by, cites : float
        The year (NaN if it is not known), and the numbers of citations to and from it.
    author_ids : list of tuple of str
        The ids of each author; some have several.
    """

    id: str
    texts: tuple[str, str, str, str, str]
    year: float
    cited_by: float
    cites: float
    author_ids: list[tuple[str, ...]]


def corpus_files(folder: Path) -> list[Path]:
    """List the files of papers, by name; a file that is there with and without .gz counts once.

    Parameters
    ----------
    folder : Path
        Where they are; there are none if it is no folder.
    """
    if not folder.is_dir():
        return []
    by_name = {
        path.name: path
        for path in sorted(folder.iterdir())
        if path.name.lower().endswith(SUFFIXES) or path.name.startswith("s2-corpus-")
        if path.is_file() and not path.name.lower().startswith((".", "fair-trec"))
    }
    return [
        path for name, path in by_name.items() if not (name.endswith(".gz") and name.removesuffix(".gz") in by_name)
    ]


def read_corpus(paths: Sequence[Path], queries: Sequence[Query]) -> Source:
    """Read every paper once, and compute the features of those that were judged.

    Parameters
    ----------
    paths : sequence of Path
        The files of papers.
    queries : sequence of Query
        The judged lists.

    Returns
    -------
    Source
        Features and authors of the judged papers.
    """
    bm25s = require("bm25s")
    query_words = [_tokens(bm25s, [query.text])[0] for query in queries]
    vocabulary = {OTHER: 0}
    for token in (token for tokens in query_words for token in tokens):
        vocabulary.setdefault(token, len(vocabulary))
    judged = {paper for query in queries for paper in query.relevance}

    papers: dict[str, Paper] = {}
    place_of: dict[str, tuple[int, str]] = {}  # where a judged paper is in the corpus, and on which line
    bags: list[list[array[int]]] = [[] for _ in range(5)]
    shared: dict[bytes, array[int]] = {}
    for number, (place, paper) in enumerate(stream(paths)):
        for field, tokens in enumerate(_tokens(bm25s, list(paper.texts))):
            bag = array("I", sorted([vocabulary.get(token, 0) for token in tokens]))
            bags[field].append(shared.setdefault(bag.tobytes(), bag))
        if paper.id in judged:
            _, first = place_of.setdefault(paper.id, (number, place))
            if first != place:
                raise DataError(f"{place}: paper {paper.id!r} is also on {first}. Keep one copy of the corpus.")
            papers[paper.id] = paper
    if not papers:
        raise DataError(f"{paths[0].parent}: the corpus has none of the papers that {TRAINING} judges. Check both.")

    pairs = [(i, paper) for i, query in enumerate(queries) for paper in query.relevance if paper in papers]
    at = [place_of[paper][0] for _, paper in pairs]
    scores = [_scores(bm25s, field, vocabulary, query_words, pairs, at) for field in bags]
    features = {}
    for row, (i, name) in enumerate(pairs):
        paper, query = papers[name], queries[i]
        known = [paper.year, paper.cited_by, paper.cites, float(len(query.text))]
        features[str(query.qid), name] = [float(score[row]) for score in scores] + known
    return Source(features, {name: paper.author_ids for name, paper in papers.items()})


def _tokens(bm25s: Any, texts: list[str]) -> list[list[str]]:
    """Lower-case words of two letters or more, without English stop words: the defaults of bm25s."""
    tokens: list[list[str]] = bm25s.tokenize(texts, return_ids=False, show_progress=False)
    return tokens


def _scores(
    bm25s: Any,
    bags: list[array[int]],
    vocabulary: dict[str, int],
    query_words: list[list[str]],
    pairs: list[tuple[int, str]],
    at: list[int],
) -> NDArray[np.float64]:
    """BM25 of one field for each (query number, paper) pair, whose papers stand ``at`` these places of the corpus."""
    scores = np.zeros(len(pairs))
    if not any(bags):  # an empty field has no mean length
        return scores
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64")
    index.index((bags, vocabulary), create_empty_token=False, show_progress=False)
    of_query: dict[int, list[int]] = {}
    for row, (i, _) in enumerate(pairs):
        of_query.setdefault(i, []).append(row)
    for i, rows in of_query.items():
        if query_words[i]:
            scores[rows] = index.get_scores(query_words[i])[[at[row] for row in rows]]
    return scores


# ---------------------------------------------------------------------- papers, line by line


def stream(paths: Sequence[Path]) -> Iterator[tuple[str, Paper]]:
    """Read the papers of JSON lines files one by one, compressed or not.

    Parameters
    ----------
    paths : sequence of Path
        The files.

    Yields
    ------
    place : str
        The paper's file:line.
    paper : Paper
        The paper.
    """
    for path in paths:
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                paper = _paper(json_object(line.decode("utf-8")))
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{place}: text must be UTF-8; found the byte 0x{line[error.start]:02x}. Save the file as UTF-8."
                ) from None
            except ValueError as error:
                raise DataError(f"{place}: {error} Correct or drop the line.") from None
            yield place, paper


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as raw:
            beginning = raw.peek(3)
            packed = beginning.startswith(b"\x1f\x8b")
            if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(f"{path}: the file is UTF-16; UTF-8 is needed. Save it again as UTF-8.")
            with gzip.open(raw) if packed else raw as file:
                for number, line in enumerate(file):
                    yield line if number else line.removeprefix(codecs.BOM_UTF8)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{path}: the gzip file is damaged or cut short. Copy or download it again.") from None
    except OSError as error:
        raise unreadable(path, error) from None


def _paper(fields: dict[str, Any]) -> Paper:
    name = _first(fields, "id", "paperId")
    if not isinstance(name, str) or not name:
        raise ValueError(f"'id' must be the text of a paper's id; got {shown(name)}.")
    authors = _list(fields, "authors")
    return Paper(
        id=name,
        texts=(
            _text(_first(fields, "title"), "title"),
            _text(_first(fields, "paperAbstract", "abstract"), "paperAbstract"),
            " ".join(_text(entity, "entities") for entity in _list(fields, "entities")),
            _text(_first(fields, "venue"), "venue"),
            " ".join(_text(author, "authors") for author in authors),
        ),
        year=_year(fields.get("year")),
        cited_by=_count(fields, "inCitations"),
        cites=_count(fields, "outCitations"),
        author_ids=[ids for author in authors if (ids := _author_ids(author))],
    )


def _first(fields: dict[str, Any], *keys: str) -> Any:
    """The value of the first key that has one: releases of the corpus differ in their names."""
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _text(value: Any, key: str) -> str:
    """A text as it is, the name of an object, and "" for nothing."""
    named = value.get("name") if isinstance(value, dict) else value
    if named is None:
        return ""
    if not isinstance(named, str):
        raise ValueError(f"{key!r} must be text; got {shown(value)}.")
    return named


def _list(fields: dict[str, Any], key: str) -> list[Any]:
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{key!r} must be a list; got {shown(value)}.")
    return value


def _author_ids(author: Any) -> tuple[str, ...]:
    if not isinstance(author, dict):
        return ()
    ids = _first(author, "ids", "authorId")
    ids = ids if isinstance(ids, list) else [ids]
    return tuple(author_key(name) for name in ids if name is not None and name != "")


def _year(value: Any) -> float:
    """A year, or NaN for one that is not known: none, empty or 0."""
    if value is None or value == "":
        return np.nan
    try:
        year = float(value)
    except (TypeError, ValueError, OverflowError):
        year = np.nan
    if isinstance(value, bool) or not np.isfinite(year):
        raise ValueError(f"'year' must be a number; got {shown(value)}.")
    return year or np.nan


def _count(fields: dict[str, Any], key: str) -> float:
    """How many citations are listed; a paper without the key has none. Some releases give the number itself."""
    value = fields.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return float(value)
    return float(len(_list(fields, key)))
