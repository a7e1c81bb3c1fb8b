"""Measures of how exposure is spread over items, by name: Gini, entropy, diversity, inequity of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.discounts import PATIENCE, STOP
from evenrank.measures.entry import AT_EXPECTED, Measure
from evenrank.measures.evaluation import Evaluation, divide
from evenrank.measures.item_exposure import (
    aggregate_diversity,
    attention_difference,
    attention_shares,
    average_popularity,
    entropy,
    gini,
    item_totals,
)
from evenrank.measures.lists import column, group_sums, list_blocks, query_sums

LENSKIT = "LensKit 2025, ExposureGini"
HOLISTIC = "holisticai"
BIEGA = "Biega et al. 2018"
SHARED = "it is of items, which lists share: lists drawn anew share them less than lists drawn again"


_SPREADS = {
    "gini": "Σ_{i<j} |x_i − x_j| / (n Σ x), x_i the exposure of item i over all lists",
    "gini_corrected": "Σ_{i<j} |x_i − x_j| / ((n − 1) Σ x), x_i the exposure of item i over all lists",
    "entropy": "−Σ p_i ln p_i, p_i the share of item i in the exposure of all lists",
}


def _spread_measure(
    name: str, best: str, formula: Callable[[NDArray[Any]], NDArray[Any]], range: str, fair: str, reference: str
) -> Measure:
    def pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
        return formula(item_totals(ev.exposure(k), *ev.items))

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        exposure = ev.exposure(k)
        out = np.empty((ev.data.n_queries, *exposure.shape[1:]))
        for block in list_blocks(ev.data.query_ptr, exposure[0].size):
            lists = exposure[block.rows].reshape(len(block.queries), block.length, *exposure.shape[1:])
            out[block.queries] = formula(np.moveaxis(lists, 1, 0))
        return out

    return Measure(
        name,
        "optional",
        best,
        per_query,
        pooled,
        options={"discount": "log2", "patience": PATIENCE, "stop": STOP},
        formula=_SPREADS[name],
        range=range,
        fair=fair,
        ties=AT_EXPECTED,
        needs=("items",),
        reference=reference,
        no_interval=SHARED,
    )


def iaa_per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Inequity of attention of each query alone; NaN where nothing is relevant."""
    difference, exist = _difference(ev, k)
    return np.where(exist, ev.per_query_sum(np.abs(difference)), np.nan)


def iaa_pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Inequity of attention amortised over the queries in which something is relevant, per such query."""
    given, seen = attention_shares(ev.exposure(k), ev.data.query_ptr)
    due, merited = attention_shares(ev.data.relevance, ev.data.query_ptr)
    exist = seen & column(merited, seen)
    if exist.all():
        wanted = item_totals(due, *ev.items)
        difference = item_totals(given, *ev.items) - column(wanted, given)
    else:
        difference = item_totals(_difference(ev, k)[0], *ev.items)
    return divide(np.abs(difference).sum(axis=0), exist.sum(axis=0))


def group_iaa_per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Inequity of the groups' attention in each query alone; NaN where nothing is relevant."""
    difference, exist = _difference(ev, k)
    sums = group_sums(difference, ev.membership, ev.data.query_ptr)
    return np.where(exist, np.abs(sums).sum(axis=1), np.nan)


def group_iaa_pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Inequity of the groups' attention amortised over queries, per query in which something is relevant."""
    difference, exist = _difference(ev, k)
    return divide(np.abs(ev.membership.T @ difference).sum(axis=0), exist.sum(axis=0))


def _difference(ev: Evaluation, k: int | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return attention_difference(ev.exposure(k), ev.data.relevance, ev.data.query_ptr)


def group_attention_sums(ev: Evaluation, k: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Each list's shares of attention and of relevance by group, (q, 2 G), and 1 where something is relevant."""
    data, ptr = ev.data, ev.data.query_ptr
    halves = []
    for values in (ev.exposure(k), data.relevance):
        sums = group_sums(values, ev.membership, ptr)
        halves.append(divide(sums, query_sums(values, ptr)[:, None]))
    counted = query_sums(data.relevance, ptr) > 0
    table = np.where(counted[:, None], np.hstack(halves), 0.0)
    return np.nan_to_num(table), np.repeat(counted[:, None], table.shape[1], axis=1).astype(float)


def _attention_measure(
    name: str, per_query: Any, pooled: Any, needs: tuple[str, ...], fair: str, **interval: Any
) -> Measure:
    return Measure(
        name,
        "optional",
        "low",
        per_query,
        pooled,
        options={"discount": "geometric", "patience": PATIENCE, "stop": STOP},
        formula=(
            f"Σ over {'groups' if 'groups' in needs else 'items'} of |Σ over lists (share of the list's attention "
            "− share of its relevance)| / lists"
        ),
        range="0 to 2",
        fair=fair,
        ties=AT_EXPECTED,
        needs=needs,
        reference=BIEGA,
        **interval,
    )


def _top_k(ev: Evaluation, k: int | None) -> NDArray[np.float64]:
    assert k is not None
    return ev.top(k)


def _shown(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """The share of each list's items that are in its top k."""
    return np.asarray(query_sums(_top_k(ev, k), ev.data.query_ptr) / ev.as_column(ev.data.lengths))


ITEM_MEASURES = (
    _spread_measure("gini", "low", gini, "0 to (n − 1)/n, n items", "0: all items have the same exposure", LENSKIT),
    _spread_measure(
        "gini_corrected",
        "low",
        lambda totals: gini(totals, corrected=True),
        "0 to 1",
        "0: all items have the same exposure; 1: one has it all",
        HOLISTIC,
    ),
    _spread_measure(
        "entropy", "high", entropy, "0 to ln n, n items", "ln n: all items have the same exposure", HOLISTIC
    ),
    Measure(
        "aggregate_diversity",
        "needed",
        "high",
        _shown,
        lambda ev, k: aggregate_diversity(_top_k(ev, k), *ev.items),
        formula="items that are in some list's top k / items",
        range="0 to 1",
        fair="1: every item is in some top k",
        ties="exact expectation, if lists break ties independently",
        needs=("items",),
        reference=HOLISTIC,
        no_interval=SHARED,
    ),
    Measure(
        "average_popularity",
        "needed",
        "low",
        lambda ev, k: average_popularity(_top_k(ev, k), *ev.items, ev.data.query_ptr),
        formula="mean over a list's top k of the number of lists that have the item in their top k",
        range="1 to the number of lists",
        fair="no fair value; low: lists show items that others do not",
        ties="exact expectation, if lists break ties independently",
        needs=("items",),
        reference=f"{HOLISTIC}, average recommendation popularity",
        no_interval=SHARED,
        kind="pooled",
    ),
    _attention_measure(
        "iaa",
        iaa_per_query,
        iaa_pooled,
        ("items", "relevance"),
        "0: over all lists, every item's share of attention is its share of relevance",
        no_interval=SHARED,
    ),
    _attention_measure(
        "group_iaa",
        group_iaa_per_query,
        group_iaa_pooled,
        ("groups", "relevance"),
        "0: over all lists, every group's share of attention is its share of relevance",
        kind="shares",
        sums=group_attention_sums,
    ),
)
