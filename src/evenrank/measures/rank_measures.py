"""Measures of the first ranks and of pairs, by name: skew, NDKL, infeasible index, rND, rKL, rRD, pairwise gaps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.discounts import PATIENCE
from evenrank.measures.cut_points import STEP, cut_points, largest_sum, normalised, sum_at_cuts
from evenrank.measures.entry import Measure
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.exposure_shares import along_groups
from evenrank.measures.lists import Places, group_sums, list_blocks, prefix_counts
from evenrank.measures.pairs import (
    PairCounts,
    accuracies,
    all_pairs,
    between_groups,
    marginal_spread,
    overall_accuracy,
    relevance_pairs,
    spread,
)
from evenrank.measures.prefixes import binomial_chance, extremes, fair_prefix, infeasible, ndkl, skew, smoothed_skew

MOST_CHANCES = 1 << 22  # of a table of the binomial distribution
AT_COUNTS = "at expected counts of the first ranks"
GEYIK = "Geyik et al. 2019"
YANG = "Yang and Stoyanovich 2017"

# Counts (length, G, lists, models) and target (G, lists, 1) of lists of one length → (lists, models).
OfCounts = Callable[[Evaluation, int | None, NDArray[Any], NDArray[Any]], NDArray[Any]]


def over_blocks(ev: Evaluation, k: int | None, formula: OfCounts, only: int | None = None) -> NDArray[Any]:
    """Apply a formula of counts, of all groups or of one, to every list: (q,) or (q, models)."""
    ranking, target = ev.ranking, ev.target_shares()
    member, codes = ev.membership, ev.codes
    if only is not None:
        member, codes = member[:, [only]], None if codes is None else (codes == only).astype(np.int8) - np.int8(1)
    first, size = ev.places
    out = np.full((ev.data.n_queries, first.shape[1] // ev.samples), np.nan)
    for queries, counts in prefix_counts(first, size, member, ev.data.query_ptr, codes):
        out[queries] = formula(ev, k, ev.averaged(counts, queries, axis=2), target[queries].T[:, :, None])
    return out if ranking.first.ndim > 1 else out[:, 0]


def _skew_measure(name: str, best: str, end: int, range: str, fair: str) -> Measure:
    """The lowest (end 0) or the highest skew (end 1) over groups."""

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        data, smoothing = ev.data, ev.options.smoothing
        top = np.moveaxis(group_sums(ev.top(k), ev.membership, data.query_ptr), 1, 0)
        target = np.moveaxis(along_groups(ev.target_shares(), np.moveaxis(top, 0, 1)), 1, 0)
        if not smoothing:
            return extremes(skew(top, ev.as_column(np.minimum(k, data.lengths)), target))[end]
        known = ev.as_column(ev.per_query_sum(ev.membership.sum(axis=1)))
        return extremes(smoothed_skew(top, known, target, smoothing))[end]

    options = {"target": "data", "smoothing": 0.0}
    formula = "{} over groups of ln(share of the top k / target share)".format("lowest" if end == 0 else "highest")
    about: Any = {
        "formula": formula,
        "range": range,
        "fair": fair,
        "ties": AT_COUNTS,
        "reference": f"{GEYIK}; smoothing: LiFT",
    }
    return Measure(name, "needed", best, per_query, options=options, needs=("groups",), **about)


def _ndkl(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    return ndkl(counts[:k], target, ev.weights(k))


def _fair_prefix(ev: Evaluation, k: int | None) -> NDArray[Any]:
    code = ev.protected

    def formula(ev: Evaluation, k: int | None, counts: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
        protected, share = counts[:k, 0], np.broadcast_to(target[code], counts.shape[2:])
        whole = np.rint(protected).astype(np.int64)
        chances = _chances(ev, code, len(counts))
        if chances is None:
            return fair_prefix(protected, share)
        shares, table = chances
        at_rank = (np.searchsorted(shares, share) * len(counts) + np.arange(len(protected))[:, None, None]) * (
            len(counts) + 1
        )
        value = np.asarray(table.ravel()[at_rank + whole].mean(axis=0))
        between = (whole != protected).any(axis=0)  # ties: no line of the table
        value[between] = fair_prefix(protected[:, between], share[between])
        return value

    return over_blocks(ev, k, formula, code)


def _chances(ev: Evaluation, code: int, length: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Chances of all counts at all ranks, for the target shares of lists of one length; None if these are too many."""
    key = ("binomial", length, code, ev.options.target)
    if key not in ev.shared:
        shares = np.unique(ev.target_shares()[ev.data.lengths == length, code])
        count, ranks = np.arange(length + 1), np.arange(1, length + 1)[:, None]
        if len(shares) * length**2 <= min(MOST_CHANCES, len(ev.ranking.first)):
            ev.shared[key] = shares, binomial_chance(np.minimum(count, ranks), ranks, shares[:, None, None])
        else:
            ev.shared[key] = None
    chances: tuple[NDArray[Any], NDArray[Any]] | None = ev.shared[key]
    return chances


def _largest(
    name: str, protected: NDArray[np.int64], lengths: NDArray[np.int64], step: int, k: int | None
) -> NDArray[np.float64]:
    """The largest sum of each list, found once for lists that are alike, (q,)."""
    largest = np.empty(len(protected))
    for length in np.unique(lengths).tolist():
        alike = lengths == length
        number, which = np.unique(protected[alike], return_inverse=True)
        largest[alike] = largest_sum(name, number, length, step=step, k=k)[which.reshape(-1)]
    return largest


_AT_CUT = {
    "rnd": "|s/i − S/N|",
    "rkl": "KL of (s/i, 1 − s/i) from (S/N, 1 − S/N), in bits,",
    "rrd": "|s/(i − s) − S/(N − S)|, a fraction with 0 above or below being 0,",
}


def _cut_point_measure(name: str, fair: str) -> Measure:
    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        ev.data.need_labels(f"measure {name!r}")
        code, step = ev.protected, ev.options.step or STEP
        if ("protected", code) not in ev.shared:
            rows = ev.data.group == code
            ev.shared["protected", code] = rows, ev.per_query_sum(rows.astype(np.int64))
        member, total = ev.shared["protected", code]
        first, size = ev.places
        raw = np.zeros((len(total), first.shape[1] // ev.samples))
        for block in list_blocks(ev.data.query_ptr, first.shape[1]):
            cuts = cut_points(block.length, step, k=k)
            if not len(cuts):
                continue
            at_cuts = Places.of(first, size, block).counts_at_cuts(member[block.rows], step, len(cuts))
            at_cuts = ev.averaged(at_cuts.reshape(len(cuts), len(block.queries), -1))
            raw[block.queries] = sum_at_cuts(name, at_cuts, cuts, total[block.queries, None], block.length)
        key = (name, code, step, k)
        if key not in ev.shared:
            ev.shared[key] = _largest(name, total, ev.data.lengths, step, k)
        value = normalised(raw, ev.shared[key][:, None])
        return value if ev.ranking.first.ndim > 1 else value[:, 0]

    return Measure(
        name,
        "optional",
        "low",
        per_query,
        options={"step": STEP, "protected": None},
        formula=f"Σ over i = step, 2·step, … of {_AT_CUT[name]} / log2(i + 1), over its largest value of all orders",
        range="0 to 1" + ("; above 1 possible with ties" if name == "rrd" else ""),
        fair=f"0: {fair}; 1 is the worst order of the list",
        ties=AT_COUNTS,
        needs=("groups", "protected"),
        reference=YANG,
    )


def _prefix_measure(name: str, best: str, of_counts: OfCounts, **about: Any) -> Measure:
    options = {"target": "data", **about.pop("options", {})}
    about = {"needs": ("groups",), "ties": AT_COUNTS, "reference": GEYIK, **about}
    return Measure(name, "optional", best, lambda ev, k: over_blocks(ev, k, of_counts), options=options, **about)


PREFIX_MEASURES = (
    _skew_measure(
        "min_skew",
        "high",
        0,
        "−∞ to 0",
        "0: no group has less than its target share of the top k; −∞: a group has none of it",
    ),
    _skew_measure(
        "max_skew",
        "low",
        1,
        "0 and above; below 0 possible with unknown groups",
        "0: no group has more than its target share of the top k",
    ),
    _prefix_measure(
        "ndkl",
        "low",
        _ndkl,
        options={"discount": "log2", "patience": PATIENCE},
        formula="Σ_j w_j KL(shares of the first j ranks ‖ target) / Σ_j w_j, natural logarithm",
        range="0 and above; below 0 possible with unknown groups",
        fair="0: every prefix has the target's shares",
    ),
    _prefix_measure(
        "infeasible_index",
        "low",
        lambda ev, k, counts, target: infeasible(counts, target, k)[0],
        formula="ranks j at which some group has fewer than ⌊j · target⌋ items among the first j",
        range="0 to the length of the list",
        fair="0: at no rank does a group fall short of its target",
    ),
    _prefix_measure(
        "infeasible_count",
        "low",
        lambda ev, k, counts, target: infeasible(counts, target, k)[1],
        formula="(rank j, group) pairs with fewer than ⌊j · target⌋ items of the group among the first j",
        range="0 to length times groups",
        fair="0: at no rank does a group fall short of its target",
    ),
    Measure(
        "fair_prefix",
        "optional",
        "high",
        _fair_prefix,
        options={"target": "data", "protected": None},
        formula="mean over ranks j of P(Binomial(j, target share) ≤ protected items among the first j)",
        needs=("groups", "protected"),
        range="0 to 1",
        fair="no fair value; low: the protected group comes too late",
        ties=AT_COUNTS,
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
        if "grades" not in ev.shared:
            ev.shared["grades"] = np.unique(data.relevance, return_inverse=True)[1].reshape(-1).astype(np.int32)
        counts = relevance_pairs(*places, ev.shared["grades"], ev.membership, data.query_ptr)
    else:
        counts = all_pairs(*places, ev.membership, data.query_ptr)
    wins, ties = (ev.averaged(part, slice(None)) for part in (counts.wins, counts.ties))
    return PairCounts(counts.pairs, wins, ties)


_RIGHT = "share of pairs of a list whose more relevant item stands higher, a tie ½"
_PAIR_FORMULAS = {
    "pairwise_accuracy": _RIGHT,
    "pairwise_gap": f"largest − smallest {_RIGHT}, over ordered pairs of different groups",
    "pairwise_intra_gap": f"largest − smallest {_RIGHT}, over groups; both items of the group",
    "pairwise_inter_gap": f"largest − smallest {_RIGHT}, over groups; the other item of another group",
    "pairwise_marginal_gap": f"largest − smallest {_RIGHT}, over groups; the other item of any group",
    "pairwise_parity": "largest − smallest share of pairs of two groups in which the first group's item is higher",
}


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

    counted = partial(pair_counts, by_relevance=by_relevance)

    def sums(ev: Evaluation, k: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
        counts = counted(ev)
        return entries(counts.half_ties), entries(counts.pairs)

    return Measure(
        name,
        "none",
        best,
        lambda ev, k: value(counted(ev)),
        lambda ev, k: value(counted(ev).pooled())[0],
        formula=_PAIR_FORMULAS[name],
        range="0 to 1",
        fair=fair,
        ties="of exact expectations (a tie is half a pair)",
        needs=("groups", "relevance") if by_relevance else ("groups",),
        reference="Beutel et al. 2019; Narasimhan et al. 2020",
        kind="mean" if name == "pairwise_accuracy" else "gap",
        of_pairs=entries is _different,
        sums=sums,
    )


def _different(table: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(table[:, ~np.eye(table.shape[1], dtype=bool)])


_ENTRIES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "intra": lambda table: np.diagonal(table, axis1=1, axis2=2),
    "inter": lambda table: table.sum(axis=2) - np.diagonal(table, axis1=1, axis2=2),
    "marginal": lambda table: table.sum(axis=2),
}


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
            partial(marginal_spread, kind=kind),
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
