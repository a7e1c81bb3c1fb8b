"""`compare`: two rankings of the same queries, paired by query, with several measures corrected together.

Two questions about a gap g between two groups, which can have different answers:

- **the signed difference** δ = g_b − g_a: has anything moved, and in whose favour? A robust t-test.
- **the change of its size** |g_b| − |g_a| = sign(δσ) · min(|δ|, |σ|), with σ = g_b + g_a. It is 0 if δ = 0 or σ = 0
  (equal and opposite), so its p-value is the larger of theirs, and its interval the range of this function over both
  intervals.

Γ of several gaps is a weighted sum of sizes. The size of a gap that is clear of 0 moves with the gap, and all these
moves are summed query by query; the others may move it either way, and count in the worst way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenrank.cell_rows import CellRows
from evenrank.comparison_jackknife import changed
from evenrank.comparison_totals import holm, size_changes, total_change
from evenrank.confidence import check_confidence
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.measures import Asked, MeasureLike, ask, ask_all, listed_measures
from evenrank.notions import Notion
from evenrank.rounding import beyond_rounding, rounding
from evenrank.spread import Clustered, Spread, Tests, cluster_codes, pair_functions
from evenrank.statistic import RankedQueries
from evenrank.threads import one_thread
from evenrank.wording import quoted


@dataclass(frozen=True)
class PairComparison:
    """A gap between two groups in two rankings of the same queries.

    Attributes
    ----------
    stratum : str
        Which rows: "all rows", "relevant rows" or "irrelevant rows".
    group, other : str
        The two groups.
    a, b : float
        The signed gap in each ranking: the group's mean minus the other's.
    difference, low, high : float
        The signed difference, b − a, with its confidence interval.
    p_value, adjusted : float
        Of the signed difference; corrected (Holm) for all signed differences compared together.
    change, change_low, change_high : float
        The change of the gap's size, |b| − |a|, with its confidence interval.
    change_p_value, change_adjusted : float
        Of the change; corrected (Holm) for the changes of all gaps compared together.
    """

    stratum: str
    group: str
    other: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float
    change: float
    change_low: float
    change_high: float
    change_p_value: float
    change_adjusted: float

    @property
    def leads(self) -> tuple[str | None, str | None]:
        """The group ahead in each ranking, or None where neither is."""
        first, second = (self.group if gap > 0 else self.other if gap < 0 else None for gap in (self.a, self.b))
        return first, second

    @property
    def flips(self) -> bool:
        """Whether one group leads in the first ranking and the other in the second."""
        return self.a * self.b < 0

    @property
    def direction(self) -> str:
        """Who leads, in words."""
        first, second = (None if name is None else quoted(name) for name in self.leads)
        if first is None and second is None:
            return "neither group leads"
        if first == second:
            return f"{first} leads in both"
        if first is not None and second is not None:
            return f"the lead flips from {first} to {second}"
        return f"{first} leads in the first only" if second is None else f"{second} leads in the second only"


@dataclass(frozen=True)
class Comparison:
    """A measure of two rankings of the same queries.

    Attributes
    ----------
    measure : str
        The measure.
    a, b : float
        Its value for each ranking.
    difference : float
        b's value minus a's; of a gap, the change of its size.
    low, high : float
        The confidence interval of the difference.
    p_value : float
        Of the difference; at most 1 − ``confidence`` exactly when the interval excludes 0.
    adjusted : float
        The p-value corrected (Holm) for all the measures compared together.
    confidence : float
        The confidence of the intervals.
    pairs : tuple of PairComparison
        For a gap, every pair of groups with signed gaps and directions; empty for other measures.
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float
    confidence: float
    pairs: tuple[PairComparison, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, with who leads in words for each pair."""
        pairs = [asdict(pair) | {"direction": pair.direction} for pair in self.pairs]
        return asdict(self) | {"pairs": pairs}


@one_thread()
def compare(
    a: ArrayLike,
    b: ArrayLike,
    data: RankingData,
    measures: Iterable[MeasureLike] | MeasureLike,
    *,
    confidence: float = 0.95,
    across: str = "mean",
    cluster: Any = None,
) -> list[Comparison]:
    """Compare two rankings of the same queries (before and after, A and B), paired by query.

    Intervals and p-values are analytic (Student's t of the differences by query, or by cluster), and say the same: a
    p-value is at most 1 − ``confidence`` exactly when its interval excludes 0. Each pair of groups is judged by its own
    rows. Quality is compared by the paired t-test.

    Parameters
    ----------
    a, b : array-like
        The scores of each ranking, (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measures : sequence of str, Notion or callable
        The measures, such as ["eop@3", "ndcg@3"], and ones of your own, as in `measure`.
    confidence : float
        Between 0 and 1, ends excluded.
    across : str
        How more than two groups are combined: "mean" over all pairs, or "max".
    cluster : array-like or sequence of two array-likes, optional
        A label per row, (n,), in the caller's order, such as the user: rows with the same label may depend on each
        other. With two, or with one that cuts across queries, the less certain answer counts. None: the queries.

    Returns
    -------
    list of Comparison
        One per measure, in the order given.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> before, after = (er.FairLinearRanker("dp", alpha).fit(data).predict(data) for alpha in (0.0, 0.2))
    >>> change = compare(before, after, data, ["dp@5", "ndcg@5"])
    >>> bool(change[0].high < 0 and change[0].adjusted < 0.01)     # the gap has fallen
    True
    >>> change[0].pairs[0].leads
    ('over 25', 'over 25')
    """
    check_confidence(confidence)
    ask_all(measures)
    asked = [ask(measure) for measure in listed_measures(measures)]
    pair = _Pair(a, b, data, across, cluster, 1 - confidence)
    if data.n_queries < 2:
        raise DataError(f"a comparison over queries needs at least two; the data has {data.n_queries}.")
    lines = [pair.compared(*each) for each in asked]
    adjusted = holm(np.array([line.p_value for line in lines]))
    every = [gap for line in lines for gap in line.pairs]
    moved = iter(holm(np.array([gap.p_value for gap in every])).tolist())
    changed = iter(holm(np.array([gap.change_p_value for gap in every])).tolist())
    return [
        replace(
            line,
            adjusted=float(corrected),
            pairs=tuple(replace(gap, adjusted=next(moved), change_adjusted=next(changed)) for gap in line.pairs),
        )
        for line, corrected in zip(lines, adjusted, strict=True)
    ]


class _Pair:
    """Two rankings of the same rows, with the clusters of the rows."""

    def __init__(self, a: ArrayLike, b: ArrayLike, data: RankingData, across: str, cluster: Any, alpha: float) -> None:
        self.data, self.across, self.alpha = data, across, alpha
        self.first = RankedQueries(a, data)
        self.second = self.first.ranked_by(b)
        one, two = self.first.evaluation.ranking, self.second.evaluation.ranking
        self.same = bool(np.array_equal(one.first, two.first) and np.array_equal(one.size, two.size))
        self.codes = cluster_codes(cluster, data)
        self._cells: dict[Notion, tuple[CellRows, list[Clustered]]] = {}

    def compared(self, name: str, asked: Asked) -> Comparison:
        measure = asked.measure
        if measure.sums is not None or measure.no_interval or measure.kind == "pooled":
            change = changed(self.first, self.second, name, asked, self.codes, self.alpha, self.across)
            line = self._line(name, *change, limits=measure.limits)
        elif measure.notion is None:
            line = self._quality(name, asked)
        else:
            line = self._gap(name, asked, measure.notion)
        return line

    def _quality(self, name: str, asked: Asked) -> Comparison:
        """The paired t-test of per-query values."""
        values = [ranked.query_values(asked) for ranked in (self.first, self.second)]
        exists = np.flatnonzero(~np.isnan(values[0]) & ~np.isnan(values[1]))
        if not len(exists):
            return self._line(name, np.nan, np.nan, np.nan, np.nan, np.nan)
        limits = asked.measure.limits
        if not all(np.isfinite(side[exists]).all() for side in values):  # the mean is infinite
            one, two = (float(side[exists].mean()) for side in values)
            return self._line(name, one, two, np.nan, np.nan, np.nan)
        starts = self.data.query_ptr[:-1]
        spreads = []
        for code in self.codes:
            rows = Clustered.of(exists, np.zeros(len(exists), np.int64), None, code[starts], 1)
            spreads.append(Spread(rows, np.nan_to_num(values[0]), np.nan_to_num(values[1]), single=True))
        tests = Tests.of(spreads, np.array([[-1.0, 1.0]])).rounded(1e-13)
        reach = 0.0 if self.same else float(tests.reach(self.alpha)[0])
        before, after = spreads[0].means.tolist()
        difference = 0.0 if self.same else float(tests.value[0])
        p = 1.0 if self.same else float(tests.p_value[0])
        return self._line(name, before, after, difference - reach, difference + reach, p, limits=limits)

    def _gap(self, name: str, asked: Asked, notion: Notion) -> Comparison:
        cells, clustered = self._cells_of(notion)
        one, two = (ranked.row_values(asked) for ranked in (self.first, self.second))
        spreads = [Spread(rows, one, two) for rows in clustered]
        ratio = asked.measure.kind == "ratio"
        pairs = cells.pairs("max" if ratio else self.across)
        width = cells.weights.width
        size = np.nan_to_num(spreads[0].means[:width]).max(initial=0)
        error = rounding(self.data.n_rows) * max(size, 1e-300) * 4
        tests = {
            kind: Tests.of(spreads, pair_functions(pairs, width, *signs)).rounded(error)
            for kind, signs in {"a": (1, 0), "b": (0, 1), "difference": (-1, 1), "sum": (1, 1)}.items()
        }
        gaps = self._pairs(pairs, tests, cells.n_groups, notion)
        if ratio or pairs.missing or len(gaps) != 1:
            before, after, reach, p = total_change(spreads, pairs, tests, alpha=self.alpha, ratio=ratio)
            if pairs.missing:
                before = after = reach = p = np.nan
            elif self.same:
                reach, p = 0.0, 1.0
            low, high = after - before - reach, after - before + reach
        else:
            (gap,) = gaps
            before, after, low, high, p = abs(gap.a), abs(gap.b), gap.change_low, gap.change_high, gap.change_p_value
        return self._line(name, before, after, low, high, p, () if ratio else gaps)

    def _line(
        self,
        name: str,
        before: float,
        after: float,
        low: float,
        high: float,
        p: float,
        pairs: tuple[PairComparison, ...] = (),
        *,
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> Comparison:
        most = limits[1] - limits[0]
        low, high = np.clip([low, high], -most, most).tolist()
        return Comparison(
            name,
            float(before),
            float(after),
            float(after - before),
            low,
            high,
            float(p),
            float(p),
            1 - self.alpha,
            pairs,
        )

    def _pairs(self, pairs: Pairs, tests: dict[str, Tests], groups: int, notion: Notion) -> tuple[PairComparison, ...]:
        names = [str(name) for name in self.data.group_names]
        a, b = tests["a"].value, tests["b"].value
        difference = beyond_rounding(b - a, 0.0)
        reach, p = tests["difference"].reach(self.alpha), tests["difference"].p_value
        low, high, change_p = size_changes(tests["difference"], tests["sum"], self.alpha)
        if self.same:
            reach, low, high, p, change_p = (np.full(len(a), value) for value in (0.0, 0.0, 0.0, 1.0, 1.0))
        change = np.abs(b) - np.abs(a)
        signed = np.maximum(difference - reach, -2), np.minimum(difference + reach, 2)
        return tuple(
            PairComparison(
                stratum=notion.stratum(int(pairs.a[j]) // groups),
                group=names[pairs.a[j] % groups],
                other=names[pairs.b[j] % groups],
                a=float(a[j]),
                b=float(b[j]),
                difference=float(difference[j]),
                low=float(signed[0][j]),
                high=float(signed[1][j]),
                p_value=float(p[j]),
                adjusted=float(p[j]),
                change=float(change[j]),
                change_low=float(low[j]),
                change_high=float(high[j]),
                change_p_value=float(change_p[j]),
                change_adjusted=float(change_p[j]),
            )
            for j in range(len(a))
        )

    def _cells_of(self, notion: Notion) -> tuple[CellRows, list[Clustered]]:
        if notion not in self._cells:
            cells = CellRows.of(notion, self.data)
            column = cells.weights.column[cells.entry]
            width = cells.weights.width
            self._cells[notion] = (
                cells,
                [Clustered.of(cells.row, column, cells.share, code, width) for code in self.codes],
            )
        return self._cells[notion]
