"""Measures of the groups' exposure, by name: AWRF, expected exposure, and ratios of exposure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.discounts import PATIENCE, STOP
from evenrank.measures.entry import AT_EXPECTED, Measure
from evenrank.measures.evaluation import Evaluation, divide
from evenrank.measures.exposure_shares import PARTS, along_groups, awrf, ideal_exposure
from evenrank.measures.group_values import lowest_over_highest
from evenrank.measures.lists import group_sums, query_sums
from evenrank.notions import NOTIONS

TRACK = {"discount": "log2_clipped", "patience": PATIENCE, "stop": STOP, "target": "data"}
BROWSING = {"discount": "rbp", "patience": PATIENCE, "stop": STOP}
DIAZ = "Diaz et al. 2020"


def group_exposure(ev: Evaluation, k: int | None, among: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Sum the exposure of each group of each query, (q, G) or (q, G, models); of some rows only with ``among``."""
    return group_sums(ev.exposure(k), ev.membership, ev.data.query_ptr, among)


def awrf_of(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """AWRF of each query; NaN where no item of known group has exposure, or where there is no target."""
    return awrf(group_exposure(ev, k), ev.target_shares())


def awrf_ndcg(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """AWRF times NDCG of 0/1 gains with the same discount; NaN where either is."""
    data = ev.data
    relevant = data.relevant
    gained = ev.per_query_sum(ev.as_column(relevant) * ev.exposure(k))
    number = np.minimum(ev.relevant_per_query.astype(np.int64), data.lengths if k is None else k)
    best = np.concatenate([[0.0], np.cumsum(ev.weights(k))])[number]
    return np.asarray(awrf_of(ev, k) * divide(gained, ev.as_column(best)))


def expected_exposure(ev: Evaluation, k: int | None, part: str) -> NDArray[Any]:
    """A part of the expected exposure of the groups of each query; NaN where nothing is relevant, if relevance counts.

    Without a target it is the exposure that groups have if lists stand by relevance (the browsing models of expeval).
    With one it is task 2 of the TREC track: the target is its share of the exposure of k ranks, also where the list is
    shorter, and a list that shows none of its relevant items has no exposure.
    """
    data, options = ev.data, ev.options
    relevant_only = options.among != "all"
    exposure = group_exposure(ev, k, data.relevant if relevant_only else None)
    if options.target is None:
        wanted = group_sums(_ideal(ev, k), ev.membership, data.query_ptr)
    else:
        wanted = ev.target_shares() * ev.whole_exposure(k)[:, None]
        if not relevant_only:
            missed = query_sums(ev.exposure(k) * ev.as_column(data.relevant), data.query_ptr) == 0
            missed &= ev.as_column(ev.relevant_per_query > 0)
            exposure = np.where(missed[:, None], 0.0, exposure)
    value = np.asarray(PARTS[part](exposure, along_groups(wanted, exposure)).sum(axis=1))
    return _where_relevant(ev, value) if relevant_only or options.target is None else value


def item_exposure(ev: Evaluation, k: int | None, part: str) -> NDArray[Any]:
    """A part of the expected exposure of the items of each query; NaN where nothing is relevant.

    The exposure of all items counts. Items that are not relevant have a target with ``among="all"`` only.
    """
    wanted = ev.as_column(_ideal(ev, k))
    return _where_relevant(ev, ev.per_query_sum(PARTS[part](ev.exposure(k), wanted)))


def _ideal(ev: Evaluation, k: int | None) -> NDArray[np.float64]:
    options, data = ev.options, ev.data
    discount = options.discount or "rbp"
    patience = PATIENCE if options.patience is None else options.patience
    stop = STOP if options.stop is None else options.stop
    settings: dict[str, Any] = {
        "discount": discount,
        "patience": patience,
        "stop": stop,
        "k": k,
        "among": options.among or "relevant",
    }
    key = ("ideal exposure", *settings.values())
    if key not in ev.shared:
        threshold = data.relevance_threshold
        ev.shared[key] = ideal_exposure(data.relevance, data.query_ptr, threshold=threshold, **settings)
    ideal: NDArray[np.float64] = ev.shared[key]
    return ideal


def _where_relevant(ev: Evaluation, values: NDArray[Any]) -> NDArray[Any]:
    return np.where(ev.as_column(ev.relevant_per_query > 0), values, np.nan)


def exposure_rates(ev: Evaluation, k: int | None, kind: str, *, pooled: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sums and units of the groups' rates, (q, G, models) and (q, G, 1), or without q.

    Kinds: "items", exposure per item; "merit", exposure per relevance; "impact", exposure × relevance per relevance.
    """
    data, ptr = ev.data, ev.data.query_ptr
    merit = data.relevance if data.sample_weight is None else data.relevance * data.sample_weight
    exposure = ev.exposure(k).reshape(data.n_rows, -1)
    sums = group_sums(exposure, ev.membership, ptr, merit if kind == "impact" else data.sample_weight)
    key = ("units", kind == "items")
    if key not in ev.shared:
        unit = np.ones((data.n_rows, 1))
        ev.shared[key] = group_sums(unit, ev.membership, ptr, data.sample_weight if kind == "items" else merit)
    units = ev.shared[key]
    return (sums.sum(axis=0), units.sum(axis=0)) if pooled else (sums, units)


_RATES = {
    "items": "Σ w / number of items",
    "merit": "Σ w / Σ relevance",
    "impact": "Σ w · relevance / Σ relevance",
}


def _ratio(kind: str, name: str, alias: str, fair: str, reference: str) -> Measure:
    def pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
        value = lowest_over_highest(*exposure_rates(ev, k, kind, pooled=True))
        return value if ev.ranking.first.ndim > 1 else value[0]

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        value = lowest_over_highest(*exposure_rates(ev, k, kind, pooled=False))
        return value if ev.ranking.first.ndim > 1 else value[:, 0]

    def sums(ev: Evaluation, k: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
        exposure, units = exposure_rates(ev, k, kind, pooled=False)
        return exposure[:, :, 0], units[:, :, 0]

    return Measure(
        name,
        "optional",
        "high",
        per_query,
        pooled,
        alias,
        options={"discount": "log2", "patience": PATIENCE, "stop": STOP},
        formula=f"lowest / highest over groups of {_RATES[kind]}",
        range="0 to 1",
        fair=fair,
        ties="of expected exposure",
        needs=("groups",) if kind == "items" else ("groups", "relevance"),
        reference=reference,
        notion=NOTIONS["demographic_parity"] if kind == "items" else None,
        kind="ratio",
        value_of="exposure",
        sums=None if kind == "items" else sums,
    )


_PART_FORMULAS = {
    "loss": "Σ (E − T)² over each {0}: E_{1} is its exposure, T_{1} its target",
    "disparity": "Σ E² over each {0}: E_{1} is its exposure",
    "relevance": "Σ E·T over each {0}: E_{1} is its exposure, T_{1} its target",
}


def _expected(name: str, part: str, best: str, fair: str, *, of_items: bool) -> Measure:
    compute = item_exposure if of_items else expected_exposure
    return Measure(
        name,
        "optional",
        best,
        lambda ev, k: compute(ev, k, part),
        alias="" if of_items else name.replace("_", ""),
        formula=_PART_FORMULAS[part].format("item i" if of_items else "group g", "i" if of_items else "g"),
        options={**BROWSING, "among": "relevant", **({} if of_items else {"target": None})},
        range="0 and above",
        fair=fair,
        ties=AT_EXPECTED if part != "relevance" else "exact expectation",
        needs=("relevance",) if of_items else ("groups", "relevance"),
        reference=DIAZ if of_items else f"{DIAZ}; TREC Fair Ranking 2021/22, task 2",
    )


EXPOSURE_MEASURES = (
    Measure(
        "awrf",
        "optional",
        "high",
        awrf_of,
        options=TRACK,
        formula="1 − JSD(A, T), natural logarithm: A_g = Σ w of group g / Σ w of known groups, T the target shares",
        range="1 − ln 2 (0.307) to 1",
        fair="1: the groups' shares of exposure are the target's",
        ties=AT_EXPECTED,
        needs=("groups",),
        reference="TREC Fair Ranking 2021/22, task 1",
    ),
    Measure(
        "awrf_ndcg",
        "optional",
        "high",
        awrf_ndcg,
        options=TRACK,
        formula="AWRF · NDCG of each list; gain 1 for a relevant item, and AWRF's discount in both",
        range="0 to 1",
        fair="1: the groups' shares of exposure are the target's, and the order is the best",
        ties=AT_EXPECTED,
        needs=("groups", "relevance"),
        reference="TREC Fair Ranking 2021/22, score of task 1",
    ),
    *(
        _expected(prefix + name, part, best, fair, of_items=bool(prefix))
        for prefix in ("", "item_")
        for name, part, best, fair in (
            ("ee_l", "loss", "low", "0: everybody has the target's exposure"),
            ("ee_d", "disparity", "low", "no fair value; the lower, the more even"),
            ("ee_r", "relevance", "high", "no fair value; the higher, the more exposure goes where it is due"),
        )
    ),
    _ratio(
        "items",
        "exposure_ratio",
        "",
        "1: an item of each group gets the same exposure on average (lowest group over highest)",
        "Singh and Joachims 2018; FairRankTune EXP",
    ),
    _ratio(
        "merit",
        "dtr",
        "treatment_ratio",
        "1: the groups get the same exposure per relevance (lowest over highest)",
        "Singh and Joachims 2018, disparate treatment ratio; FairRankTune EXPU",
    ),
    _ratio(
        "impact",
        "dir",
        "impact_ratio",
        "1: the groups get the same exposure of relevant items per relevance (lowest over highest)",
        "Singh and Joachims 2018, disparate impact ratio; FairRankTune EXPRU",
    ),
)
