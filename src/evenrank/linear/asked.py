"""What `fairness_path` is asked for: groupings of the same rows, and one notion or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.notions import Notion


def several_notions(notion: Any) -> list[Any]:
    """Give the notions of a list of them; [] if it is one notion (which may itself be a list of row masks)."""
    several = isinstance(notion, list | tuple) and len(notion) and isinstance(notion[0], str | Notion)
    return list(notion) if several else []


def same_rows(train: RankingData | Sequence[RankingData]) -> list[RankingData]:
    """Give the groupings of the rows, which they must share."""
    groupings = [train] if isinstance(train, RankingData) else list(train)
    if not groupings or not all(isinstance(item, RankingData) for item in groupings):
        raise DataError(
            "train must be a RankingData or a list of groupings of one; build it with RankingData.from_arrays."
        )
    if any(item.features is not groupings[0].features for item in groupings):
        raise DataError("groupings that train together must share their rows; make them with RankingData.with_group.")
    return groupings
