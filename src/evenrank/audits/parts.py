"""The parts of an audit, from each measure's sums over queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.cells import SummaryStatistics
from evenrank.audits.summary import Summary
from evenrank.audits.tested import TestedGaps
from evenrank.bounds import Certificate, certify
from evenrank.confidence import Interval, interval_of
from evenrank.measures import MeasureAt
from evenrank.notions import NOTIONS
from evenrank.query_sums import resampled_ratios
from evenrank.statistic import Statistic
from evenrank.wording import ROUNDING

TOP_QUERIES = 5


@dataclass(frozen=True)
class Lead:
    """Which group is ahead in a stratum and which behind.

    They are those of the pair whose gap is shown to be the largest; if none is shown, those of the highest and the
    lowest mean.

    Attributes
    ----------
    stratum : str
        Which rows: "all rows", "relevant rows" or "irrelevant rows".
    favoured, other : str
        The group ahead and the one behind.
    highest, lowest : float
        Their means.
    chance : float
        The difference of the two that a random order of each list would leave: a group whose lists are shorter is in
        the top k more often, whatever the ranker does.
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

    Attributes
    ----------
    measure : str
        The measure's full name.
    k : int
        The cut-off.
    across : str
        "max" for the largest pair of more than two groups, else "mean".
    interval : Interval
        The estimate and its interval.
    leads : tuple of Lead
        Who leads, stratum by stratum; empty for a measure that is no gap.
    """

    measure: str
    k: int
    across: str
    interval: Interval
    leads: tuple[Lead, ...] = ()

    @property
    def shown(self) -> bool:
        """Whether the data show a gap: its interval excludes 0."""
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
        """The group behind in every stratum, or None, as for `favoured`."""
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

    def flat(self) -> dict[str, Any]:
        """Give plain values, the estimate and the ends of its interval beside the rest."""
        inside = {name: getattr(self.interval, name) for name in ("estimate", "low", "high", "queries")}
        return {"stratum": self.stratum, "group": self.group, "k": self.k, **inside}


@dataclass(frozen=True)
class Influence:
    """A query and what the gap would be without it."""

    measure: str
    query: str
    gap: float
    without: float


@dataclass(frozen=True)
class Parts:
    """What an audit says at some cut-offs, measure by measure."""

    findings: list[Finding] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    influences: list[Influence] = field(default_factory=list)

    def __add__(self, other: Parts) -> Parts:
        """Join them with the parts at larger cut-offs."""
        return Parts(
            _by(self.findings + other.findings, lambda part: (part.across, part.measure)),
            _by(self.rates + other.rates, lambda part: part.stratum),
            _by(self.certificates + other.certificates, lambda part: MeasureAt.of(part.measure).name),
            self.influences + other.influences,
        )


def _by(items: list[Any], kind: Callable[[Any], Any]) -> list[Any]:
    """Put items of one kind together, kinds in the order in which they first occur."""
    together: dict[Any, list[Any]] = {}
    for item in items:
        together.setdefault(kind(item), []).append(item)
    return [item for same in together.values() for item in same]


def parts_of(
    statistics: SummaryStatistics,
    names: list[str],
    tested: TestedGaps,
    *,
    resampled: bool,
    main_k: int,
    confidence: float,
    replicates: int,
    seed: int,
) -> Parts:
    """Compute the parts for the measures named.

    Parameters
    ----------
    statistics : SummaryStatistics
        The sums of the lists.
    names : list of str
        The measures, with their cut-offs.
    tested : TestedGaps
        The intervals of the pairs of groups.
    resampled : bool
        Whether all intervals are computed from resampled queries instead.
    main_k : int
        The cut-off whose most influential queries are listed.
    confidence, replicates, seed
        As in `evenrank.interval`.

    Returns
    -------
    Parts
        Findings, rates, certificates and influences.
    """
    summary = statistics.summary
    groups = [str(name) for name in summary.group_names]
    plain = statistics.statistics(names)
    gaps = [stat.name for stat in plain if stat.kind == "gap"]
    largest = statistics.statistics(gaps, across="max") if len(groups) > 2 else []
    first = largest or [stat for stat in plain if stat.kind == "gap"]
    cells = cell_rates([stat for stat in first if name_and_k(stat)[0] in NOTIONS], groups)
    stats = [*plain, *largest, *cells.values()]
    if summary.n_queries < 2:
        estimates = [interval_of(stat, None, confidence=confidence) for stat in stats]
        intervals = [replace(interval, low=np.nan, high=np.nan) for interval in estimates]
    elif resampled:
        intervals = resampled_intervals(stats, confidence=confidence, replicates=replicates, seed=seed)
    else:
        intervals = [
            tested.interval(stat, largest=number >= len(plain) or len(groups) == 2, seed=seed)
            for number, stat in enumerate([*plain, *largest])
        ]
        intervals += [tested.rate(stat, *cell) for cell, stat in cells.items()]
    chances = {name: statistics.chances(name) for name in gaps}
    findings = [
        Finding(
            *name_and_k(stat),
            "max" if number >= len(plain) else "mean",
            intervals[number],
            leads_of(stat, chances[stat.name], groups, tested) if stat.kind == "gap" else (),
        )
        for number, stat in enumerate([*plain, *largest])
    ]
    rates = [Rate(*cell, rate) for cell, rate in zip(cells, intervals[len(findings) :], strict=True)]
    longest = longest_list(summary)
    return Parts(
        findings,
        rates,
        [certify(stat, 1 - confidence, longest=longest, assumed=True) for stat in first],
        [influence for stat in first if name_and_k(stat)[1] == main_k for influence in influences_of(stat, summary)],
    )


def name_and_k(stat: Statistic) -> tuple[str, int]:
    """Split a statistic's name into the measure and its k."""
    name, k = MeasureAt.of(stat.name)
    assert k is not None
    return name, k


def facts_of(summary: Summary) -> dict[str, Any]:
    """Describe the data in numbers; ``whole_lists`` is the share of lists that a cut-off does not cut."""
    rows = round(summary.total(summary.lengths))
    counts = dict(zip(map(str, summary.group_names), summary.group_counts.tolist(), strict=True))
    return {
        "rows": rows,
        "queries": summary.n_queries,
        "longest_list": int(summary.lengths.max()),
        "median_list": _median(summary),
        "whole_lists": {k: summary.total(summary.lengths <= k) / summary.n_queries for k in summary.ks},
        "relevant_share": summary.total(summary.relevant) / rows if summary.labelled else None,
        "groups": {name: count / rows for name, count in counts.items()},
        "counts": {name: _whole(count) for name, count in counts.items()},
        "unknown_group_share": max(0.0, float(rows - summary.group_counts.sum()) / rows),
    }


def _median(summary: Summary) -> float:
    """The median length of a list: of an even number, the mean of the two in the middle."""
    if summary.times is None:
        return float(np.median(summary.lengths))
    order = np.argsort(summary.lengths)
    up_to = np.cumsum(summary.times[order])
    middle = [(summary.n_queries - 1) // 2, summary.n_queries // 2]
    return float(summary.lengths[order][np.searchsorted(up_to, middle, side="right")].mean())


def longest_list(summary: Summary) -> float:
    """Give the length of the longest list: its items, or the sum of the weights of those of known group."""
    if not summary.weighted:
        return float(summary.lengths.max())
    return float(np.bincount(summary.query, summary.weight).max())


def _whole(count: float) -> float:
    return int(count) if count == int(count) else count


def _strata(stat: Statistic, groups: list[str]) -> list[tuple[str, list[int]]]:
    """The strata of a gap's notion and the columns that hold their groups."""
    name = name_and_k(stat)[0]
    notion = NOTIONS.get(name, NOTIONS["demographic_parity"])
    count = stat.sums.weights.width // len(groups)
    return [(notion.stratum(s), list(range(s * len(groups), (s + 1) * len(groups)))) for s in range(count)]


def leads_of(stat: Statistic, chance: NDArray[np.float64], groups: list[str], tested: TestedGaps) -> tuple[Lead, ...]:
    """Find who leads in each stratum where a group does; ``chance`` holds the same means for random orders."""
    means = stat.sums.ratios
    measure, k = name_and_k(stat)
    leads = []
    for stratum, columns in _strata(stat, groups):
        inside = means[columns]
        known = np.flatnonzero(~np.isnan(inside))
        if len(known) < 2:
            continue
        best, worst = known[np.argmax(inside[known])], known[np.argmin(inside[known])]
        shown = tested.shown(measure, stratum, k)
        if shown is not None:
            best, worst = (groups.index(name) for name in shown)
        if inside[best] > inside[worst] + ROUNDING:
            random = float(chance[columns][best] - chance[columns][worst])
            leads.append(Lead(stratum, groups[best], groups[worst], float(inside[best]), float(inside[worst]), random))
    return tuple(leads)


def cell_rates(stats: list[Statistic], groups: list[str]) -> dict[tuple[str, str, int], Statistic]:
    """Give each cell's selection rate as a separate statistic; a stratum that two notions share comes once."""
    cells: dict[tuple[str, str, int], Statistic] = {}
    for stat in stats:
        k = name_and_k(stat)[1]
        for stratum, columns in _strata(stat, groups):
            for group, column in zip(groups, columns, strict=True):
                rate = Statistic(f"selection_rate@{k}", stat.sums, "mean", column=column)
                cells.setdefault((stratum, group, k), rate)
    return cells


def resampled_intervals(stats: list[Statistic], *, confidence: float, replicates: int, seed: int) -> list[Interval]:
    """Compute the intervals of all statistics from one set of resamples."""
    distinct = {id(stat.sums): stat.sums for stat in stats}
    drawn = resampled_ratios(list(distinct.values()), replicates=replicates, seed=seed)
    ratios = dict(zip(distinct, drawn, strict=True))
    return [interval_of(stat, ratios[id(stat.sums)], confidence=confidence, seed=seed) for stat in stats]


def influences_of(stat: Statistic, summary: Summary) -> list[Influence]:
    """Find the queries without which the gap would be smallest."""
    gap = float(stat.value(stat.estimates))
    if summary.n_queries < 2 or not gap > ROUNDING:
        return []
    without = np.empty(summary.held)
    for start, influence in stat.influence(left_out=True):
        without[start : start + influence.shape[1]] = stat.value(stat.estimates[:, None] - influence)
    order = np.argsort(without, kind="stable")
    if summary.times is not None:  # as many kinds of lists as hold so many, and those that come to the same
        last = min(int(np.searchsorted(np.cumsum(summary.times[order]), TOP_QUERIES)), len(order) - 1)
        order = order[: np.searchsorted(without[order], without[order[last]], side="right")]
        named = [(without[place], name) for place in order.tolist() for name in summary.query_ids[place]]
        named = sorted(named)[:TOP_QUERIES]
    else:
        named = [(without[place], summary.query_ids[place]) for place in order[:TOP_QUERIES].tolist()]
    return [Influence(stat.name, str(name), gap, float(value)) for value, name in named if value < gap]
