"""The rows of a batch: padded lists as rows, and the contrast of rows that are used once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast, PooledContrast
from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.notions import NOTIONS, Cells, Notion
from evenrank.torch.losses import Tensor

torch: Any = require("torch")


@dataclass
class BatchRows:
    """What the named notions look at, of a batch; a `RankingData` holds more, and takes longer to make."""

    relevance: NDArray[Any]
    group: NDArray[Any]
    n_groups: int
    relevance_threshold: float
    sample_weight: NDArray[np.float64] | None = None
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
    known = data.group >= 0 if weight is None else (data.group >= 0) & (weight > 0)
    cell: Any = nowhere
    for number in reversed(range(len(strata))):
        inside = strata[number] & known
        if len(strata) == 1 and bool(np.logical_and.reduce(inside)):
            cell = data.group
        else:
            cell = np.where(inside, data.group + number * groups if number else data.group, cell)
    return PooledContrast(cell, weight, (len(strata), groups), across=across)


def unpadded(
    scores: Tensor, relevance: Tensor, group: Tensor, qid: Any, sample_weight: Any, strata: Any, mask: Any
) -> tuple[Tensor, ...]:
    """Give the rows of padded lists.

    Parameters
    ----------
    scores, relevance, group, sample_weight, mask : Tensor or None
        (B, L).
    qid, strata : None
        They are for rows; lists are queries.

    Returns
    -------
    tuple
        Scores, relevance, groups, queries and weights of the items, (n,).
    """
    if qid is not None or strata is not None:
        raise DataError("lists (B, L) are queries themselves and take neither qid nor strata; leave them out.")
    shape = tuple(scores.shape)
    columns = {"relevance": relevance, "group": group, "sample_weight": sample_weight, "mask": mask}
    for name, values in columns.items():
        if values is not None and (tuple(values.shape) != shape or len(shape) != 2):
            given = tuple(values.shape)
            raise DataError(f"{name} must have the shape of the scores' lists, (B, L); got {given} for {shape}.")
    if mask is None:
        real = torch.ones(shape, dtype=torch.bool, device=scores.device)
    else:
        real = mask.to(scores.device, torch.bool)
    qid = torch.arange(shape[0], device=scores.device)[:, None].expand(shape)[real]
    parts = (None if values is None else values.to(scores.device)[real] for values in (relevance, group, sample_weight))
    of_relevance, of_group, of_weight = parts
    return scores[real], of_relevance, of_group, qid, of_weight
