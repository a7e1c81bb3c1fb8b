"""The formulas of the measures, one value per query; exact expectations under random tie-breaking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.measures.evaluation import Evaluation, divide
from evenrank.notions import NotionLike


def ndcg(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Definition 2 of the paper, with expected discounts for ties; NaN for a query with nothing relevant."""
    gained = ev.per_query_sum(ev.as_column(ev.gains) * ev.exposure(k))
    return divide(gained, ev.as_column(ev.ideal(k)))


def precision(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Definition 1: relevant items in the top k, over k even where the list is shorter."""
    assert k is not None
    return ev.per_query_sum(ev.as_column(ev.data.relevant) * ev.top(k)) / k


def recall(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Relevant items in the top k, over all relevant items of the list; NaN where it has none."""
    assert k is not None
    hits = ev.per_query_sum(ev.as_column(ev.data.relevant) * ev.top(k))
    return divide(hits, ev.as_column(ev.relevant_per_query))


def mrr(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Expected 1/rank of the first relevant item (0 below rank k or where there is none), exact under ties.

    The first relevant item is in the first tie block that has one. With m items there, R of them relevant and f items
    above, it is at rank f + j with probability (m−j choose R−1) / (m choose R).
    """
    first, size = ev.ranking.first, ev.ranking.size
    relevant = ev.as_column(ev.data.relevant)
    ptr = ev.data.query_ptr[:-1]
    nowhere = np.int32(np.iinfo(np.int32).max)
    best = np.minimum.reduceat(np.where(relevant, first, nowhere), ptr, axis=0)
    in_block = relevant & (first == np.repeat(best, ev.data.lengths, axis=0))
    hits = ev.per_query_sum(in_block.astype(float))
    members = np.maximum.reduceat(np.where(in_block, size, 0), ptr, axis=0).astype(float)
    ahead = np.where(best == nowhere, 0, best).astype(float)
    value = np.zeros(best.shape)
    not_yet = (best != nowhere).astype(float)
    for j in range(int(members.max(initial=0))):
        left = members - j
        here = np.divide(hits, left, out=np.ones_like(hits), where=left > 0)
        rank = ahead + j + 1
        value += np.where((left > 0) & (rank <= (np.inf if k is None else k)), not_yet * here / rank, 0)
        not_yet = not_yet * (1 - np.minimum(here, 1))
        if not not_yet.any():
            break
    return ev.averaged(value, slice(None))


def gap_per_query(ev: Evaluation, notion: NotionLike, values: NDArray[Any]) -> NDArray[Any]:
    """Γ of each query alone; NaN where one of its strata lacks a group."""
    return gap_by_unit(ev.contrast(notion, "per_query"), values)


def gap_by_unit(contrast: Contrast, values: NDArray[Any]) -> NDArray[Any]:
    """Γ of each unit of a contrast alone, (units,) or (units, models); NaN where one of its strata lacks a group."""
    strata, units, _ = contrast.cell_weight.shape
    pairs = contrast.pairs
    size = np.abs(contrast.gaps(values))
    blocks = np.full((strata * units, *size.shape[1:]), np.nan)
    starts = np.flatnonzero(np.diff(pairs.block, prepend=-1))
    if len(starts):
        combined = np.maximum.reduceat(size, starts) if pairs.across == "max" else np.add.reduceat(size, starts)
        count = 1 if pairs.across == "max" else np.diff(np.append(starts, len(pairs.block)))
        blocks[pairs.block[starts]] = (combined.T / count).T
    return np.asarray(blocks.reshape(strata, units, *size.shape[1:]).mean(axis=0))


def ratio(rates: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
    """Lowest over highest rate along the first axis, over the groups present; NaN with fewer than two, or all 0."""
    lowest = np.where(present, rates, np.inf).min(axis=0)
    highest = np.where(present, rates, -np.inf).max(axis=0)
    return np.where(present.sum(axis=0) > 1, divide(lowest, highest), np.nan)


def rates_of(ev: Evaluation, k: int | None, scope: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Selection rates (groups, units, …) under demographic parity, and which cells exist."""
    assert k is not None
    contrast = ev.contrast("demographic_parity", scope)
    _, units, groups = contrast.cell_weight.shape
    means = contrast.means(ev.top(k))
    rates = np.moveaxis(means.reshape(units, groups, *means.shape[1:]), 1, 0)
    present = np.moveaxis(contrast.cell_weight[0] > 0, 1, 0)
    return rates, present.reshape(present.shape + (1,) * (rates.ndim - 2))
