"""Measures of the first ranks and of pairs, by name: skew, NDKL, infeasible index, rND, rKL, rRD, pairwise gaps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.discounts import PATIENCE
from evenrank.measures.cut_points import STEP, cut_point_sum, largest_sum, normalised
from evenrank.measures.entry import Measure
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.lists import prefix_counts
from evenrank.measures.pairs import (
    PairCounts,
    accuracies,
    all_pairs,
    between_groups,
    marginal_accuracies,
    overall_accuracy,
    relevance_pairs,
    spread,
)
from evenrank.measures.prefixes import extremes, fair_prefix, infeasible, ndkl, skew, smoothed_skew

AT_COUNTS = "at expected counts of the first ranks"
GEYIK = "Geyik et al. 2019"
YANG = "Yang and Stoyanovich 2017"

# Counts (length, G, lists, models) and target (G, lists, 1) of lists of one length → (lists, models).
OfCounts = Callable[[Evaluation, int | None, NDArray[Any], NDArray[Any]], NDArray[Any]]


def over_blocks(ev: Evaluation, k: int | None, formula: OfCounts, member: NDArray[Any] | None = None) -> NDArray[Any]:
    """Apply a formula of counts to every list: (q,) or (q, models)."""
    ranking, target = ev.ranking, ev.target_shares()
    member = ev.membership if member is None else member
    first, size = (part.reshape(len(part), -1) for part in (ranking.first, ranking.size))
    out = np.full((ev.data.n_queries, first.shape[1] // ev.samples), np.nan)
    for queries, counts in prefix_counts(first, size, member, ev.data.query_ptr):
        out[queries] = formula(ev, k, ev.averaged(counts, queries, axis=2), target[queries].T[:, :, None])
    return out if ranking.first.ndim > 1 else out[:, 0]


def _skews(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> Any:
    assert k is not None
    smoothing = ev.options.smoothing or 0.0
    if smoothing:
        return extremes(smoothed_skew(counts, target, k, smoothing))
    return extremes(skew(counts, target, k))


def _ndkl(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    return ndkl(counts[:k], target, ev.weights(k))


def _fair_prefix(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    return fair_prefix(counts[:k, ev.protected], target[ev.protected])


def _cut_points(name: str) -> OfCounts:
    def formula(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
        protected, step = counts[:, 0], ev.options.step or STEP
        number, which = np.unique(np.rint(protected[-1, :, 0]).astype(int), return_inverse=True)
        largest = largest_sum(name, number, len(protected), step=step, k=k)[which.reshape(-1)]
        return normalised(cut_point_sum(name, protected, step=step, k=k), largest[:, None])

    return formula


def _cut_point_measure(name: str, fair: str) -> Measure:
    formula = _cut_points(name)

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        ev.data.need_labels(f"measure {name!r}")
        return over_blocks(ev, k, formula, ev.membership[:, [ev.protected]])

    return Measure(
        name,
        "optional",
        "low",
        per_query,
        options={"step": STEP, "protected": None},
        range="0 to 1" + ("; above 1 possible with ties" if name == "rrd" else ""),
        fair=f"0: {fair}; 1 is the worst order of the list",
        ties=AT_COUNTS,
        needs=("groups", "protected"),
        reference=YANG,
    )


def _prefix_measure(name: str, best: str, formula: OfCounts, k: str = "optional", **about: Any) -> Measure:
    options = {"target": "data", **about.pop("options", {})}
    needs = about.pop("needs", ("groups",))
    about = {"ties": AT_COUNTS, "reference": GEYIK, **about}
    return Measure(name, k, best, lambda ev, at: over_blocks(ev, at, formula), options=options, needs=needs, **about)


PREFIX_MEASURES = (
    _prefix_measure(
        "min_skew",
        "high",
        lambda ev, k, counts, target: _skews(ev, k, counts, target)[0],
        k="needed",
        options={"smoothing": 0.0},
        range="−∞ to 0",
        fair="0: no group has less than its target share of the top k; −∞: a group has none of it",
    ),
    _prefix_measure(
        "max_skew",
        "low",
        lambda ev, k, counts, target: _skews(ev, k, counts, target)[1],
        k="needed",
        options={"smoothing": 0.0},
        range="0 and above",
        fair="0: no group has more than its target share of the top k",
    ),
    _prefix_measure(
        "ndkl",
        "low",
        _ndkl,
        options={"discount": "log2", "patience": PATIENCE},
        range="0 and above; below 0 possible with unknown groups",
        fair="0: every prefix has the target's shares",
    ),
    _prefix_measure(
        "infeasible_index",
        "low",
        lambda ev, k, counts, target: infeasible(counts, target, k)[0],
        range="0 to the length of the list",
        fair="0: at no rank does a group fall short of its target",
    ),
    _prefix_measure(
        "infeasible_count",
        "low",
        lambda ev, k, counts, target: infeasible(counts, target, k)[1],
        range="0 to length times groups",
        fair="0: at no rank does a group fall short of its target",
    ),
    _prefix_measure(
        "fair_prefix",
        "high",
        _fair_prefix,
        options={"protected": None},
        needs=("groups", "protected"),
        range="0 to 1",
        fair="no fair value; low: the protected group comes too late",
        reference="Zehlike et al. 2017; SIGIR 2022 comparison",
    ),
    _cut_point_measure("rnd", "the first step, 2·step, … ranks have the list's share of the protected group"),
    _cut_point_measure("rkl", "the shares of the first step, 2·step, … ranks are the list's"),
    _cut_point_measure("rrd", "the ratio of protected to other items there is the list's"),
)


# ---------------------------------------------------------------------- pairs


def pair_counts(ev: Evaluation, *, by_relevance: bool) -> PairCounts:
    """Pairs of each list by group, averaged over samples."""
    ranking, data = ev.ranking, ev.data
    places = (ranking.first, ranking.size)
    if by_relevance:
        counts = relevance_pairs(*places, data.relevance, ev.membership, data.query_ptr)
    else:
        counts = all_pairs(*places, ev.membership, data.query_ptr)
    wins, ties = (ev.averaged(part, slice(None)) for part in (counts.wins, counts.ties))
    return PairCounts(counts.pairs, wins, ties)


def _pair_measure(
    name: str,
    value: Callable[[PairCounts], NDArray[Any]],
    best: str,
    fair: str,
    entries: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    by_relevance: bool = True,
) -> Measure:
    """``entries``: the sums over pairs of groups, (q, G, G), whose ratios are compared, (q, r)."""

    def sums(ev: Evaluation, k: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
        counts = pair_counts(ev, by_relevance=by_relevance)
        return entries(counts.half_ties), entries(counts.pairs)

    return Measure(
        name,
        "none",
        best,
        lambda ev, k: value(pair_counts(ev, by_relevance=by_relevance)),
        lambda ev, k: value(pair_counts(ev, by_relevance=by_relevance).pooled())[0],
        range="0 to 1",
        fair=fair,
        ties="of exact expectations (a tie is half a pair)",
        needs=("groups", "relevance") if by_relevance else ("groups",),
        reference="Beutel et al. 2019; Narasimhan et al. 2020",
        kind="mean" if name == "pairwise_accuracy" else "gap",
        sums=sums,
    )


def _different(table: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(table[:, ~np.eye(table.shape[1], dtype=bool)])


_ENTRIES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "intra": lambda table: np.diagonal(table, axis1=1, axis2=2),
    "inter": lambda table: table.sum(axis=2) - np.diagonal(table, axis1=1, axis2=2),
    "marginal": lambda table: table.sum(axis=2),
}


def _spread_of(counts: PairCounts, kind: str) -> NDArray[Any]:
    return spread(marginal_accuracies(counts, kind), 2)


PAIR_MEASURES = (
    _pair_measure(
        "pairwise_accuracy",
        overall_accuracy,
        "high",
        "½ is chance; 1: the more relevant item always stands higher",
        lambda table: table.sum(axis=(1, 2))[:, None],
    ),
    _pair_measure(
        "pairwise_gap",
        lambda counts: spread(between_groups(accuracies(counts)), 2),
        "low",
        "0: pairs of any two different groups are ordered equally well",
        _different,
    ),
    *(
        _pair_measure(
            f"pairwise_{kind}_gap",
            partial(_spread_of, kind=kind),
            "low",
            f"0: each group's more relevant items are ordered equally well against {others}",
            _ENTRIES[kind],
        )
        for kind, others in (
            ("intra", "less relevant ones of the same group"),
            ("inter", "less relevant ones of other groups"),
            ("marginal", "all less relevant ones"),
        )
    ),
    _pair_measure(
        "pairwise_parity",
        lambda counts: spread(between_groups(accuracies(counts)), 2),
        "low",
        "0: of two items of different groups, either is as often the higher",
        _different,
        by_relevance=False,
    ),
)
