"""Example queries of a sweep: what stood in their top places at each strength, kept small enough for a page."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.ranking import Ranking

PLACES = 10  # the most places kept of a list


@dataclass(frozen=True)
class Titles:
    """Texts to show instead of ids; an id without a text is shown itself.

    Attributes
    ----------
    query : mapping
        Query id → text.
    item : mapping
        Item id → text.
    """

    query: Mapping[Any, str]
    item: Mapping[Any, str]


@dataclass(frozen=True, eq=False)
class Examples:
    """Queries with their items, and the top places under each method, grouping, notion (and k, where it matters).

    Attributes
    ----------
    queries : list of dict
        One per query: id, title, and items with id, title, relevance, relevant and one group per grouping.
    tops : dict
        (method, grouping, notion, k) → item numbers, (queries, places, strengths); -1 where a list is shorter or the
        query was never tested.
    """

    queries: list[dict[str, Any]]
    tops: dict[tuple[str, str, str, int | None], NDArray[np.int16]]


def choose_queries(groupings: Mapping[str, RankingData], number: int, least: int, seed: int) -> NDArray[np.int64]:
    """Draw queries with lists longer than ``least`` and two groups of a grouping; if there are none, any queries.

    Parameters
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.
    number : int
        The most queries to draw.
    least : int
        Lists must be longer than this.
    seed : int
        The choice depends on it and on the ids alone.

    Returns
    -------
    ndarray of int
        The queries' numbers, ascending.
    """
    data = next(iter(groupings.values()))
    mixed = np.zeros(data.n_queries, bool)
    for grouping in groupings.values():
        lowest = np.minimum.reduceat(
            np.where(grouping.group < 0, np.iinfo(np.int32).max, grouping.group), data.query_ptr[:-1]
        )
        mixed |= np.maximum.reduceat(grouping.group, data.query_ptr[:-1]) > lowest
    fitting = mixed & (data.lengths > least) & (data.lengths < np.iinfo(np.int16).max)
    candidates = data.sorted_queries[(fitting if fitting.any() else data.lengths > 0)[data.sorted_queries]]
    drawn = np.random.default_rng(seed).permutation(len(candidates))[:number]
    return np.sort(candidates[drawn])


def group_texts(data: RankingData) -> list[str]:
    """Write the groups' names as texts that differ as the names do: 1 and "1" are two groups."""
    texts = [str(name) for name in data.group_names]
    return texts if len(set(texts)) == len(texts) else [repr(name) for name in data.group_names]


def describe(
    groupings: Mapping[str, RankingData], queries: NDArray[np.int64], titles: Titles | None
) -> list[dict[str, Any]]:
    """Describe the queries and their items in plain values, items in stored order.

    Parameters
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.
    queries : ndarray of int
        The queries' numbers.
    titles : Titles or None
        Texts to show instead of ids.

    Returns
    -------
    list of dict
        As in `Examples.queries`.
    """
    data = next(iter(groupings.values()))
    known_titles = titles or Titles({}, {})
    labels = {name: group_texts(grouping) for name, grouping in groupings.items()}
    out = []
    for query in queries.tolist():
        rows = range(data.query_ptr[query], data.query_ptr[query + 1])
        key = data.query_ids[query].item() if isinstance(data.query_ids[query], np.generic) else data.query_ids[query]
        items = []
        for place, row in enumerate(rows):
            item = place if data.item_ids is None else data.item_ids[row]
            item = item.item() if isinstance(item, np.generic) else item
            groups = {
                name: labels[name][grouping.group[row]] if grouping.group[row] >= 0 else None
                for name, grouping in groupings.items()
            }
            items.append(
                {
                    "id": str(item),
                    "title": str(
                        known_titles.item.get(item, item if data.item_ids is not None else f"item {place + 1}")
                    ),
                    "relevance": float(data.relevance[row]),
                    "relevant": bool(data.relevant[row]),
                    "groups": groups,
                }
            )
        out.append({"id": str(key), "title": str(known_titles.query.get(key, key)), "items": items})
    return out


def top_places(scores: NDArray[Any], data: RankingData, queries: NDArray[np.int64], places: int) -> NDArray[np.int16]:
    """Find which items stand in the top places of some queries.

    Parameters
    ----------
    scores : ndarray
        (n, models), in stored order.
    data : RankingData
        The rows.
    queries : ndarray of int
        The queries' numbers.
    places : int
        The number of places.

    Returns
    -------
    ndarray of int16
        Item numbers within the query, (queries, places, models); -1 where a list is shorter.
    """
    out = np.full((len(queries), places, scores.shape[1]), -1, np.int16)
    for number, query in enumerate(queries.tolist()):
        rows = slice(data.query_ptr[query], data.query_ptr[query + 1])
        places_from_0 = Ranking(scores[rows], np.array([0, data.lengths[query]]), ties="input").first
        order = np.argsort(places_from_0, axis=0)[:places]
        out[number, : len(order)] = order
    return out


def pack(top: NDArray[np.int16]) -> dict[str, Any]:
    """Compress an array into plain text that fits into a line of JSON."""
    return {"shape": list(top.shape), "zlib": base64.b64encode(zlib.compress(top.astype("<i2").tobytes(), 6)).decode()}


def unpack(packed: Mapping[str, Any]) -> NDArray[np.int16]:
    """Give back what `pack` compressed, taking no more memory than its shape needs.

    Raises
    ------
    ValueError
        The content is damaged or does not fill its shape.
    """
    size = 2 * math.prod(packed["shape"])
    try:
        stream = zlib.decompressobj()
        raw = stream.decompress(base64.b64decode(packed["zlib"], validate=True), size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(raw) != size or not stream.eof:
        raise ValueError(f"{size} bytes are needed; got {len(raw)}.")
    return np.frombuffer(raw, "<i2").reshape(packed["shape"]).astype(np.int16)
