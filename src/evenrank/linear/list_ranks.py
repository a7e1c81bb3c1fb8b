"""`with_list_ranks`: beside each feature, where in its list it stands.

A number that is large in one list may be small in another: what orders a list is how its items differ. A linear score
of ranks sees that, whatever the feature's distribution. It needs the list that is ranked, and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenrank.data import RankingData
from evenrank.ranking import Ranking
from evenrank.row_checks import freeze


def with_list_ranks(data: RankingData) -> RankingData:
    """Give the same rows with as many features more.

    Parameters
    ----------
    data : RankingData
        The rows; the data they were taken from, if any, gets the same columns.

    Returns
    -------
    RankingData
        The further features are in (0, 1): the part of the list that lies below the item, with half of what is equal.
    """
    values = np.asarray(data.features, float)
    ranking = Ranking(values, data.query_ptr)
    below = 1 - (ranking.rank - 0.5) / np.repeat(data.lengths, data.lengths)[:, None]
    return replace(
        data,
        features=freeze(np.hstack([values, below])),
        feature_names=(*data.feature_names, *(f"rank of {name} in its list" for name in data.feature_names)),
        parent=None if data.parent is None else with_list_ranks(data.parent),
    )


def groupings_with_list_ranks(groupings: Sequence[RankingData]) -> tuple[RankingData, ...]:
    """Give the same rows under several groupings, which go on sharing their features; see `with_list_ranks`."""
    first = with_list_ranks(groupings[0])
    shared: dict[str, Any] = {
        "features": first.features,
        "feature_names": first.feature_names,
        "parent": first.parent,
    }
    return first, *(replace(other, **shared) for other in groupings[1:])
