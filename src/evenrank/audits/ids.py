"""Ids of lists, clusters and items in a form that parts of a summary share, whatever part they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.labels import checked_ids

CHUNK = 1 << 16
MOST = 2  # clusterings
MIX = np.uint64(0x9E3779B97F4A7C15)


def canonical_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Give ids as an array of numpy's own: as they are, or as text if they are Python objects."""
    if ids.dtype != object:
        return ids
    return np.array([str(value) for value in ids.tolist()])


def joined_ids(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Join ids of two parts; numbers and text together become text."""
    same = a.dtype.kind == b.dtype.kind or {a.dtype.kind, b.dtype.kind} <= set("iu")
    return np.concatenate([a, b] if same else [a.astype(str), b.astype(str)])


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Sort group labels as `RankingData` does: by value, or by type and text where values do not compare."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def checked_clusters(cluster: Any, data: RankingData) -> tuple[tuple[NDArray[Any], ...], tuple[str, ...]]:
    """Take one or two clusterings of the rows.

    Parameters
    ----------
    cluster : None, str, array-like, or a sequence of one or two of these
        As in `Summary.of`; a dict gives them names.
    data : RankingData
        The rows.

    Returns
    -------
    labels : tuple of ndarray
        One label per row, (n,), in stored order.
    names : tuple of str
        What each is called.
    """
    if cluster is None:
        return (), ()
    if isinstance(cluster, dict):
        named = {str(name): labels for name, labels in cluster.items()}
    elif isinstance(cluster, str):
        named = {cluster: cluster}
    elif isinstance(cluster, list | tuple) and len(cluster) <= MOST and all(map(_is_clustering, cluster)):
        named = {labels if isinstance(labels, str) else f"cluster {j + 1}": labels for j, labels in enumerate(cluster)}
    else:
        named = {"cluster": cluster}
    if len(named) > MOST:
        raise DataError(f"at most {MOST} clusterings can be taken into account; got {len(named)}.")
    return tuple(_checked(labels, name, data) for name, labels in named.items()), tuple(named)


def _is_clustering(value: Any) -> bool:
    return isinstance(value, str) or np.ndim(value) == 1


def _checked(labels: Any, name: str, data: RankingData) -> NDArray[Any]:
    if isinstance(labels, str):
        stored = data.column(labels)
    else:
        stored = checked_ids(labels, data.n_rows, name, lambda row: f"row {row}")
        stored = stored if data.row_order is None else stored[data.row_order]
    differs = stored != stored[data.query_ptr[:-1]][data.query_of_row]
    if differs.any():
        row = int(np.argmax(differs))
        query = data.query_of_row[row]
        pair = [stored[data.query_ptr[query]], stored[row]]
        raise DataError(
            f"{name}: a list must be in one cluster; query {data.query_ids[query]} has {pair[0]!s} and {pair[1]!s}. "
            "Choose a column that is the same in all rows of a query."
        )
    return stored


def hashed(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Give 64 bits per id that are the same on every machine; 5 and "5" are one id.

    Letters are multiplied by numbers that differ from place to place, and the sum is stirred.
    """
    out = np.empty(len(ids), np.uint64)
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK]
        if part.dtype.kind == "f" and (part == np.rint(part)).all() and (np.abs(part) < 2**53).all():
            part = part.astype(np.int64)
        text = np.array([str(value) for value in part.tolist()]) if part.dtype == object else part.astype(np.str_)
        letters = text.view(np.uint32).reshape(len(text), -1).astype(np.uint64)
        with np.errstate(over="ignore"):
            places = _stirred(np.arange(1, letters.shape[1] + 1, dtype=np.uint64) * MIX) | np.uint64(1)
            out[start : start + len(part)] = _stirred((letters * places).sum(axis=1, dtype=np.uint64) + MIX)
    return out


def list_marks(scores: NDArray[np.float64], data: RankingData) -> NDArray[np.uint64]:
    """Give each list, (q,), 64 bits that are those of any list with the same scores, labels and groups in its rows.

    Lists of fewer than three rows, and those whose scores are whole numbers (places, say), may be alike by chance: 0.
    """
    names = hashed(np.array([*map(str, data.group_names), ""], dtype=object))
    values = np.ascontiguousarray(scores, dtype=np.float64) + 0.0  # -0 is 0
    starts = data.query_ptr[:-1]
    with np.errstate(over="ignore"):
        rows = _stirred(values.view(np.uint64) + MIX)
        rows = _stirred(rows + (data.relevance.astype(np.float64) + 0.0).view(np.uint64))
        marks = np.add.reduceat(_stirred(rows + names[data.group]), starts)
    broken = np.maximum.reduceat(values != np.rint(values), starts)
    return np.where(broken & (data.lengths > 2), marks, np.uint64(0))


def _stirred(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
