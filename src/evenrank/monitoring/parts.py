"""Rows that come together, as lists that each are in one window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.ids import checked_clusters
from evenrank.data import RankingData
from evenrank.labels import refuse_duplicates

FILLER = "\0"  # begins the names of groups that are not there


@dataclass(frozen=True, eq=False)
class Part:
    """Lists that each are in one window: scores and data in one order, windows and names by list."""

    scores: NDArray[Any]
    data: RankingData
    window: NDArray[np.int64]
    names: NDArray[Any]
    cluster: Any

    def taken(self, which: NDArray[np.bool_]) -> Part:
        """Take some of the lists."""
        rows = which[self.data.query_of_row]
        cluster = None if self.cluster is None else {name: labels[rows] for name, labels in self.cluster.items()}
        return Part(self.scores[rows], self.data.take(which), self.window[which], self.names[which], cluster)


def lists_by_window(scores: NDArray[Any], data: RankingData, number: NDArray[np.int64], cluster: Any) -> Part:
    """Number lists anew, by query and window; scores and windows come by stored row."""
    width = int(number.max()) + 1
    lists, of_row = np.unique(data.query_of_row * width + number, return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    caller = order if data.row_order is None else data.row_order[order]
    query, window = np.divmod(lists, width)
    names = data.query_ids[query]
    whole = replace(
        data,
        features=data.features[order],
        relevance=data.relevance[order],
        group=data.group[order],
        # a summary needs two groups; those without rows are watched by nobody
        group_names=(*data.group_names, *(f"{FILLER}{j}" for j in range(data.n_groups, 2))),
        item_ids=None if data.item_ids is None else data.item_ids[order],
        query_ptr=np.concatenate([[0], np.cumsum(np.bincount(of_row))]),
        query_ids=np.arange(len(lists)),
        row_order=caller,
        parent=None,
    )
    if whole.item_ids is not None:
        refuse_duplicates(whole.item_ids, whole.query_ptr, names, caller, lambda row: f"row {row}")
    labels, clusterings = checked_clusters(cluster, whole)
    by_name = dict(zip(clusterings, labels, strict=True)) or None
    return Part(scores[order], replace(whole, row_order=None), window, names, by_name)
