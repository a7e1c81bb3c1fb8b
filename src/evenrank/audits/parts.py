"""The parts of an audit, from each measure's sums over queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from evenrank.data import RankingData
from evenrank.intervals import Interval, interval_of
from evenrank.measures import MeasureAt
from evenrank.notions import NOTIONS
from evenrank.query_sums import Statistic, by_id, resampled_sums, stacked, unstacked
from evenrank.wording import ROUNDING

TOP_QUERIES = 5


@dataclass(frozen=True)
class Lead:
    """Which group has the highest mean in a stratum and which the lowest.

    ``chance`` is the difference of the two that a random order of each list would leave: a group that stands in shorter
    lists is in the top k more often whatever the ranker does.
    """

    stratum: str
    favoured: str
    other: str
    highest: float
    lowest: float
    chance: float


@dataclass(frozen=True)
class Finding:
    """A measure at one k with its interval; for a gap also who leads in each stratum.

    ``across`` is "max" for the largest pair of more than two groups, else "mean".
    """

    measure: str
    k: int
    across: str
    interval: Interval
    leads: tuple[Lead, ...] = ()

    @property
    def shown(self) -> bool:
        """The data show a gap: its interval excludes 0."""
        return bool(self.leads) and self.interval.low > ROUNDING

    @property
    def favoured(self) -> str | None:
        """The group ahead in every stratum, or None if the strata disagree or nobody is ahead."""
        return _only({lead.favoured for lead in self.leads})

    @property
    def chance(self) -> float:
        """The gap in the same direction that random orders would leave, averaged over the strata."""
        return float(np.mean([lead.chance for lead in self.leads])) if self.leads else 0.0

    @property
    def other(self) -> str | None:
        """The group behind in every stratum, as `favoured`."""
        return _only({lead.other for lead in self.leads})


def _only(names: set[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


@dataclass(frozen=True)
class Rate:
    """A group's share of items in the top k, among the rows of a stratum."""

    stratum: str
    group: str
    k: int
    interval: Interval


@dataclass(frozen=True)
class Influence:
    """A query and what the gap would be without it."""

    measure: str
    query: str
    gap: float
    without: float


def parts(stat: Statistic) -> tuple[str, int]:
    """The measure and its k."""
    name, k = MeasureAt.of(stat.name)
    assert k is not None
    return name, k


def facts_of(data: RankingData, ks: tuple[int, ...], labelled: bool) -> dict[str, Any]:
    """The data in numbers; ``whole_lists`` is the share of lists that a cut-off does not cut."""
    return {
        "rows": data.n_rows,
        "queries": data.n_queries,
        "longest_list": int(data.lengths.max()),
        "median_list": float(np.median(data.lengths)),
        "whole_lists": {k: float((data.lengths <= k).mean()) for k in ks},
        "relevant_share": float(data.relevant.mean()) if labelled else None,
        "groups": {str(name): float((data.group == code).mean()) for code, name in enumerate(data.group_names)},
        "unknown_group_share": float((data.group < 0).mean()),
    }


def _strata(stat: Statistic, groups: list[str]) -> list[tuple[str, list[int]]]:
    """The strata of a gap's notion and the columns that hold their groups."""
    name = parts(stat)[0]
    notion = NOTIONS.get(name, NOTIONS["demographic_parity"])
    count = stat.top.shape[1] // len(groups)
    return [(notion.stratum(s), list(range(s * len(groups), (s + 1) * len(groups)))) for s in range(count)]


def leads_of(stat: Statistic, shuffled: Statistic, groups: list[str]) -> tuple[Lead, ...]:
    """Who leads in each stratum where anybody does; ``shuffled`` is the same measure of random orders."""
    means, chance = (one.ratios(one.top.sum(axis=0), one.bottom.sum(axis=0)) for one in (stat, shuffled))
    leads = []
    for stratum, columns in _strata(stat, groups):
        inside = means[columns]
        known = np.flatnonzero(~np.isnan(inside))
        if len(known) < 2:
            continue
        best, worst = known[np.argmax(inside[known])], known[np.argmin(inside[known])]
        if inside[best] > inside[worst] + ROUNDING:
            random = float(chance[columns][best] - chance[columns][worst])
            leads.append(Lead(stratum, groups[best], groups[worst], float(inside[best]), float(inside[worst]), random))
    return tuple(leads)


def cell_rates(stats: list[Statistic], groups: list[str]) -> list[tuple[tuple[str, str, int], Statistic]]:
    """Each cell's selection rate as a statistic of its own; a stratum that two notions share comes once."""
    cells: dict[tuple[str, str, int], Statistic] = {}
    for stat in stats:
        k = parts(stat)[1]
        for stratum, columns in _strata(stat, groups):
            for group, column in zip(groups, columns, strict=True):
                own = Statistic(f"selection_rate@{k}", stat.top[:, [column]], stat.bottom[:, [column]], "mean")
                cells.setdefault((stratum, group, k), own)
    return list(cells.items())


def shared_intervals(
    stats: list[Statistic], data: RankingData, *, confidence: float, method: str, replicates: int, seed: int
) -> list[Interval]:
    """Of all statistics from one set of resamples; one query alone gives estimates without an interval."""
    if data.n_queries < 2:
        bare = [interval_of(stat, None, confidence=confidence) for stat in stats]
        return [replace(one, low=np.nan, high=np.nan) for one in bare]
    if method == "analytic":
        return [interval_of(stat, None, confidence=confidence, seed=seed) for stat in stats]
    # Measures share many of their sums (every k has the same denominators), so each is resampled once.
    table = by_id(stacked(stats), data)
    columns: dict[bytes, int] = {}
    place = [columns.setdefault(blake2b(column.tobytes()).digest(), len(columns)) for column in table.T]
    once = table[:, np.unique(place, return_index=True)[1]]
    drawn = resampled_sums(once, replicates=replicates, seed=seed)
    samples = unstacked(stats, drawn[:, place])
    return [
        interval_of(stat, sample, confidence=confidence, seed=seed) for stat, sample in zip(stats, samples, strict=True)
    ]


def influences_of(stat: Statistic, data: RankingData) -> list[Influence]:
    """The queries without which the gap would be smallest."""
    gap = float(stat.value(stat.estimates))
    if data.n_queries < 2 or not gap > ROUNDING:
        return []
    without = stat.value(stat.estimates - stat.influence(left_out=True))
    order = data.sorted_queries[np.argsort(without[data.sorted_queries], kind="stable")][:TOP_QUERIES]
    return [
        Influence(stat.name, str(data.query_ids[query]), gap, float(without[query]))
        for query in order.tolist()
        if without[query] < gap
    ]
