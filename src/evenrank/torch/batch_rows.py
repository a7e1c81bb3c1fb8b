"""The rows of a batch, and the contrast of rows that are used once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast, PooledContrast
from evenrank.notions import NOTIONS, Cells, Notion


@dataclass
class BatchRows:
    """What the named notions look at, of a batch; a `RankingData` holds more, and takes longer to make."""

    relevance: NDArray[Any]
    group: NDArray[Any]
    n_groups: int
    relevance_threshold: float
    sample_weight: NDArray[np.float64] | None = None
    unknown: bool = True  # whether a group may be -1
    membership: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.relevance)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Relevance at or above the threshold, (n,)."""
        return np.asarray(self.relevance >= self.relevance_threshold)


def is_named(notion: Notion) -> bool:
    """Whether a notion is one of ours, which looks at relevance alone."""
    return NOTIONS.get(notion.name) is notion


@cache
def compiled() -> Any:
    """Give the modules of compiled targets and batches.

    Returns
    -------
    tuple of module, or None
        None where numba is absent or finds no folder to keep what it compiles: the plain forms do without.
    """
    try:
        from evenrank.targets import compiled, compiled_batch
    except (ImportError, RuntimeError):
        return None
    return compiled, compiled_batch


def pooled(notion: Notion, data: Any, across: str) -> Contrast:
    """Make the pooled contrast of a batch; without a table of rows where no row is in two strata.

    Parameters
    ----------
    notion : Notion
        The notion.
    data : RankingData or BatchRows
        The rows; of a notion that is not one of ours, a `RankingData`.
    across : str
        How several pairs of groups are combined.

    Returns
    -------
    Contrast
        The contrast.
    """
    if data.membership is not None:
        return Cells.of(notion, data).contrast(across=across)
    strata = notion.masks(data)
    if not is_named(notion):
        cells = Cells.of(notion, data)  # which checks masks of the user's own
        strata = list(cells.strata)
        if (cells.strata.sum(axis=0) > 1).any():
            return cells.contrast(across=across)
    groups, weight = data.n_groups, data.sample_weight
    nowhere = len(strata) * groups
    known: Any = data.group >= 0 if getattr(data, "unknown", True) else None
    if weight is not None:
        known = weight > 0 if known is None else known & (weight > 0)
    inside = strata if known is None else [stratum & known for stratum in strata]
    if len(inside) == 1 and bool(np.logical_and.reduce(inside[0])):
        return PooledContrast(data.group, weight, (1, groups), across=across)
    group = data.group.astype(np.int64, copy=False)
    cell = np.full(data.n_rows, nowhere)
    for number, rows in enumerate(inside):  # a row is in one of them at most
        cell += (group + (number * groups - nowhere)) * rows  # a choice by np.where takes six times as long
    return PooledContrast(cell, weight, (len(strata), groups), across=across)
