"""Padded lists as rows: the form (B, L) that losses take beside rows with their queries."""

from __future__ import annotations

from typing import Any

from evenrank.errors import DataError
from evenrank.extras import require

torch: Any = require("torch")
Tensor = Any  # torch.Tensor, which is known only where torch is installed


def are_lists(relevance: Tensor, mask: Tensor | None) -> bool:
    """Tell whether a batch comes as lists (B, L), of which scores (n, models) are no sign."""
    return mask is not None or relevance.ndim == 2


def unpadded(
    scores: Tensor, relevance: Tensor, group: Tensor | None, qid: Any, sample_weight: Any, mask: Any, strata: Any = None
) -> tuple[Tensor, ...]:
    """Give the rows of padded lists.

    Parameters
    ----------
    scores, relevance, group, sample_weight, mask : Tensor or None
        (B, L); probabilities of groups are (B, L, groups).
    qid, strata : None
        They are for rows; lists are queries.

    Returns
    -------
    tuple
        Scores, relevance, groups, queries and weights of the items, (n,) each, or groups (n, groups).
    """
    if qid is not None or strata is not None:
        raise DataError("lists (B, L) are queries themselves and take neither qid nor strata; leave them out.")
    shape = tuple(scores.shape)
    columns = {"relevance": relevance, "group": group, "sample_weight": sample_weight, "mask": mask}
    for name, values in columns.items():
        given = None if values is None else tuple(values.shape)
        lists = given[:2] if name == "group" and given is not None and len(given) == 3 else given
        if given is not None and (lists != shape or len(shape) != 2):
            soft = ", or (B, L, groups) for probabilities" if name == "group" else ""
            raise DataError(f"{name} must have the shape of the scores' lists, (B, L){soft}; got {given} for {shape}.")
    values = [
        None if part is None else part.to(scores.device).reshape(-1, *part.shape[2:])
        for part in (relevance, group, sample_weight)
    ]
    at = None if mask is None else mask.to(scores.device, torch.bool).reshape(-1).nonzero()[:, 0]
    if at is None or len(at) == scores.numel():
        return scores.reshape(-1), *values[:2], _list_numbers(shape, scores.device), values[2]
    relevance, group, sample_weight = (None if part is None else part[at] for part in values)
    return scores.reshape(-1)[at], relevance, group, at // shape[1], sample_weight


def _list_numbers(shape: tuple[int, ...], device: Any) -> Tensor:
    """The list of each place of lists without padding, (B · L,)."""
    return torch.arange(shape[0], device=device).repeat_interleave(shape[1])
