"""TREC Fair Ranking 2019: papers found for the queries of an academic search engine, grouped by their authors."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning

if TYPE_CHECKING:
    from evenrank.datasets.trec_fair_files import Query, Source

UNKNOWN_GROUPS = ("drop", "keep")


def trec_fair_2019(folder: str | os.PathLike[str], threshold: float = 3, *, unknown: str = "drop") -> RankingData:
    """Read the judged papers of the TREC 2019 Fair Ranking track's training sample, with nine features [1]_.

    The data may not be redistributed; the folder is yours. If it holds papers of the Semantic Scholar open corpus, the
    features are computed from them; else they are read from a file of features that others computed. See
    docs/trec-fair-2019.md for the files and where to get them.

    Parameters
    ----------
    folder : path
        The folder with the track's files.
    threshold : float
        A paper is in the group "above 3" if the mean gid of its authors (of those who have one) is above 3, else in
        "up to 3". The gid, 1 to 7, is the track's example grouping of authors.
    unknown : {"drop", "keep"}
        What becomes of papers none of whose authors has a gid: dropped, or kept with an unknown group.

    Returns
    -------
    RankingData
        ``query_ids`` are the qids, ``item_ids`` the papers' ids; rows are in the order of the training sample.
        Judged papers without features, and lists of fewer than two papers, are left out. A year that is not known
        is the median of the known years.

    References
    ----------
    .. [1] M. Bonart. Fair Ranking in Academic Search. TREC 2019.
    """
    return trec_fair_2019_groupings(folder, (threshold,), unknown=unknown)[f"t={_written(threshold)}"]


def trec_fair_2019_groupings(
    folder: str | os.PathLike[str], thresholds: Iterable[float] = (3, 4, 5), unknown: str = "drop"
) -> dict[str, RankingData]:
    """Read the same rows under several thresholds; all share one array of features.

    Parameters
    ----------
    thresholds : iterable of float
        The thresholds.
    folder, unknown
        As in `trec_fair_2019`.

    Returns
    -------
    dict
        "t=3", "t=4" … → the `RankingData`.
    """
    from evenrank.datasets import trec_fair_corpus as corpus
    from evenrank.datasets import trec_fair_files as files

    names = _names(thresholds)
    choose(unknown, UNKNOWN_GROUPS, what="unknown")
    place = Path(folder)
    queries, levels = files.read_queries(place), files.read_levels(place)
    papers = corpus.corpus_files(place)
    if papers:
        source = corpus.read_corpus(papers, queries)
        _warn_of_missing(queries, source)
    else:
        source = files.read_feature_file(place, queries)

    mean_level = {paper: _mean_level(authors, levels) for paper, authors in source.authors.items()}
    rows = []
    for query in queries:
        pairs = [(str(query.qid), paper) for paper in query.relevance]
        kept = [p for p in pairs if p in source.features and (unknown == "keep" or mean_level[p[1]] is not None)]
        rows += [(query, pair) for pair in kept if len(kept) > 1]
    if not rows:
        raise DataError(f"{place}: no list has two papers with features and a known group. Check the author ids.")
    level = [mean_level[paper] for _, (_, paper) in rows]
    data = RankingData.from_arrays(
        _features(source, files.YEAR, [pair for _, pair in rows]),
        [query.relevance[paper] for query, (_, paper) in rows],
        None,
        [query.qid for query, _ in rows],
        item_ids=[paper for _, (_, paper) in rows],
        feature_names=files.FEATURE_NAMES,
    )
    return {name: data.with_group(*_grouping(level, threshold)) for name, threshold in names.items()}


def trec_fair_2019_titles(folder: str | os.PathLike[str]) -> tuple[dict[Any, str], dict[str, str]]:
    """Read what to show for queries and papers.

    Titles come from the table of papers, or, where there is none, from the corpus. Papers in neither have no entry.

    Parameters
    ----------
    folder : path
        As in `trec_fair_2019`.

    Returns
    -------
    tuple of dict
        Query id → its text, and item id → the title of the judged paper.
    """
    from evenrank.datasets import trec_fair_corpus as corpus
    from evenrank.datasets import trec_fair_files as files

    place = Path(folder)
    queries = files.read_queries(place)
    judged = {paper for query in queries for paper in query.relevance}
    table, papers = files.find_file(place, files.PAPERS), corpus.corpus_files(place)
    if table is None and not papers:
        raise DataError(f"{place}: titles need {files.PAPERS} or the papers (*.jsonl …); neither is there.")
    pairs = files.read_titles(table) if table else ((paper.id, paper.texts[0]) for _, paper in corpus.stream(papers))
    titles = {paper: title for paper, title in pairs if paper in judged}
    return {query.qid: query.text for query in queries}, titles


def _mean_level(authors: list[tuple[str, ...]], levels: dict[str, float]) -> float | None:
    """The mean gid of the authors that have one, each counted once, by the first of their ids that is known."""
    first = (next((name for name in ids if name in levels), None) for ids in authors)
    known = {name for name in first if name is not None}
    return math.fsum(levels[name] for name in known) / len(known) if known else None


def _features(source: Source, year: int, pairs: list[tuple[str, str]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Features of the pairs, (n, 9); the median year is over all pairs that have features, whatever is kept."""
    years = np.array([values[year] for values in source.features.values()])
    known = years[np.isfinite(years)]
    table = np.array([source.features[pair] for pair in pairs])
    missing = np.isnan(table[:, year])
    table[missing, year] = np.median(known) if len(known) else 0.0
    return table


def _grouping(levels: list[float | None], threshold: float) -> tuple[list[Any], tuple[str, str]]:
    above, up_to = f"above {_written(threshold)}", f"up to {_written(threshold)}"
    return [None if level is None else above if level > threshold else up_to for level in levels], (above, up_to)


def _names(thresholds: Iterable[float]) -> dict[str, float]:
    values = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    if not values:
        raise ConfigError("thresholds must be one or more numbers; got none.")
    names = {f"t={_written(value)}": float(value) for value in values}
    if len(names) < len(values):
        raise ConfigError(f"thresholds must differ; got {values!r}.")
    return names


def _written(threshold: object) -> str:
    """3 for 3 and for 3.0, 3.5 for 3.5."""
    number = isinstance(threshold, int | float | np.integer | np.floating) and not isinstance(threshold, bool)
    try:
        value = float(threshold) if number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ConfigError(f"threshold must be a finite number; got {threshold!r}.")
    return str(int(value)) if value.is_integer() else repr(value)


def _warn_of_missing(queries: list[Query], source: Source) -> None:
    judged = sum(len(query.relevance) for query in queries)
    missing = judged - len(source.features)
    if missing:
        warnings.warn(
            f"{missing} of {judged} judged (query, paper) pairs are of papers that are not in the corpus and are "
            "left out",
            DataWarning,
            stacklevel=3,
        )
