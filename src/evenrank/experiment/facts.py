"""Facts about a sweep's data that its report needs; noted when it runs, because the run folder keeps no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenrank.bounds import min_share
from evenrank.data import RankingData
from evenrank.notions import bind


def data_facts(groupings: Mapping[str, RankingData], notions: Sequence[str]) -> dict[str, Any]:
    """Note the lengths of the lists and the shares that bounds need.

    Parameters
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.
    notions : sequence of str
        The notions of the sweep.

    Returns
    -------
    dict
        "lists", "relevant_share", and "shares" by grouping and notion.
    """
    first = next(iter(groupings.values()))
    longest = int(first.lengths.max())
    return {
        "lists": {"median": float(np.median(first.lengths)), "longest": longest},
        "relevant_share": float(first.relevant.mean()),
        "shares": {
            name: {notion: _shares(data, notion, longest) for notion in notions} for name, data in groupings.items()
        },
    }


def _shares(data: RankingData, notion: str, longest: int) -> dict[str, float]:
    """The paper's least share of a cell (``theorem``), and the rarest compared cell's share of a longest list."""
    cells = bind(notion, data, scope="per_query", training=True).cell_weight.sum(axis=1)
    return {
        "theorem": min_share(data, notion).estimate,
        "longest": float(cells.min() / (data.n_queries * longest)),
    }
