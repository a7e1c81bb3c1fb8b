"""Each pair of groups by its own data: the pooled gap and the gap within lists, with intervals and tests.

The *pooled* gap is what the groups' items experience: the difference of their rates over all lists. The gap *within
queries* is what the ranker does with the lists it got. Pooled = ranker's part + query mix, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.cells import PairLists, SummaryStatistics, pairs_of
from evenrank.audits.pair import QUESTIONS, Gap, Pair
from evenrank.audits.recurring import Recurring
from evenrank.audits.summary import VALUES, Summary
from evenrank.comparison_totals import holm
from evenrank.confidence import student
from evenrank.inference import Lists, PairScore, Pooled, Residuals, adjusted, pooled, ratio_rule, within
from evenrank.inference import Rate as GroupRate
from evenrank.planning import Noticeable, noticed
from evenrank.precision import Precision

MOST_PAIRS = 300  # with more groups, each is compared with the largest one only
MOST_CORRELATED = 400  # hypotheses whose correlations are used
BINS = 2048  # clusters are put together into so many before their residuals are correlated
NOTICEABLE, POWER = 0.05, 0.8  # the gap that plans are for, and with which probability it should be noticed
RECURRING = 1.1  # lists that the item of a row stands in, averaged over a group; below, items add little variance
# What is tested: measure, stratum and value; equalized odds adds the irrelevant rows to equal opportunity.
TESTED = (
    ("demographic_parity", "all rows", "top"),
    ("equal_opportunity", "relevant rows", "top"),
    ("equalized_odds", "irrelevant rows", "top"),
    ("exposure_gap", "all rows", "exposure"),
)
Ends = tuple[float, float, float, float]


@dataclass
class Tests:
    """Pairs tested so far, with what correcting them for their number needs."""

    pairs: list[Pair] = field(default_factory=list)
    z: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in QUESTIONS})
    residuals: dict[str, list[Residuals]] = field(default_factory=lambda: {name: [] for name in QUESTIONS})
    by_measure: dict[tuple[str, int | None], list[Pair]] = field(default_factory=dict)
    rates: dict[tuple[str, int, str], GroupRate] = field(default_factory=dict)
    wider: dict[tuple[str, int, str, str], Ends] = field(default_factory=dict)
    plans: list[Noticeable] = field(default_factory=list)
    unsettled: list[tuple[str, int]] = field(default_factory=list)

    def add(self, pair: Pair, answers: dict[str, Any], wider: Ends | None, *, settled: bool = True) -> None:
        """Add a pair, the results of both questions, and the pooled one at the confidence of all pairs at once.

        Residuals that are not settled are those of kinds of lists; see `settle`.
        """
        self.pairs.append(pair)
        self.by_measure.setdefault((pair.measure, pair.k), []).append(pair)
        for name, rate in ((pair.a, answers["pooled"].a), (pair.b, answers["pooled"].b)):
            self.rates.setdefault((pair.measure, pair.k, name), rate)
        if wider is not None:
            self.wider[pair.measure, pair.k, pair.a, pair.b] = wider
        for question, answer in answers.items():
            self.z[question].append(answer.z if getattr(pair, question).decidable else np.nan)
            kept = self.residuals[question]
            if len(self.pairs) <= MOST_CORRELATED:
                kept.append(binned(answer.residuals) if settled else answer.residuals)
                if not settled:
                    self.unsettled.append((question, len(kept) - 1))
            else:
                kept.clear()

    def settle(self, over_lists: Callable[[list[Residuals]], list[Residuals]]) -> None:
        """Replace residuals of kinds of lists by those of the lists; ``over_lists`` knows which list is of which."""
        if len(self.pairs) <= MOST_CORRELATED and self.unsettled:
            found = over_lists([self.residuals[question][place] for question, place in self.unsettled])
            for (question, place), each in zip(self.unsettled, found, strict=True):
                self.residuals[question][place] = each
        self.unsettled.clear()

    def ends(self, pair: Pair) -> Ends:
        """Give the ends of the pooled difference and of the ratio, at the confidence of all pairs at once."""
        return self.wider.get((pair.measure, pair.k, pair.a, pair.b)) or _ends(pair.pooled)

    def corrected(self) -> list[Pair]:
        """Give the pairs with p-values corrected for all that can be decided, question by question.

        Their order does not depend on which cut-offs were tested together.
        """
        seen: dict[Any, int] = {}
        measures, strata = ([*dict.fromkeys(row[j] for row in TESTED)] for j in (0, 1))
        keys = [
            (strata.index(one.stratum), seen.setdefault((one.a, one.b), len(seen)), measures.index(one.measure), one.k)
            for one in self.pairs
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        pairs = [self.pairs[j] for j in order]
        for question in QUESTIONS:
            z = np.array(self.z[question])[order]
            known = np.flatnonzero(~np.isnan(z))
            values = np.full(len(z), np.nan)
            if len(known):
                kept = self.residuals[question]
                values[known] = _corrected(z[known], [kept[order[j]] for j in known] if kept else None)
            pairs = [
                replace(pair, **{question: replace(getattr(pair, question), adjusted=float(value))})
                for pair, value in zip(pairs, values, strict=True)
            ]
        return pairs


def _ends(gap: Gap | Pooled) -> Ends:
    return gap.low, gap.high, gap.ratio_low, gap.ratio_high


def _wider(gap: Pooled, confidence: float, wider: float) -> Ends:
    """The ends at a higher confidence: further from the estimate as Student's t is; ratios on their logarithms."""
    if not gap.decidable or not gap.freedom > 0:
        return _ends(gap)
    times = student(gap.freedom, wider) / student(gap.freedom, confidence)
    low, high = (gap.difference + (end - gap.difference) * times for end in (gap.low, gap.high))
    ratio_low, ratio_high = gap.ratio_low, gap.ratio_high
    if gap.ratio == 0:
        ratio_high *= times**2  # 0 of n is told apart from a rate by the square of t over n
    elif np.isinf(gap.ratio):
        ratio_low /= times**2
    else:
        ratio_low, ratio_high = (gap.ratio * _power(end / gap.ratio, times) for end in (ratio_low, ratio_high))
    return max(-1.0, low), min(1.0, high), ratio_low, ratio_high


def _power(base: float, exponent: float) -> float:
    """A power; one beyond all numbers is endless, as with two clusters, where Student's t grows by hundreds."""
    try:
        return float(base**exponent)
    except OverflowError:
        return float("inf")


def _corrected(z: NDArray[np.float64], residuals: list[Residuals] | None) -> NDArray[np.float64]:
    """Correct for many tests by their correlations, or, where these would take much room, by Holm's method."""
    if residuals is not None:
        return adjusted(z, residuals)
    from scipy.special import ndtr

    return holm(2 * ndtr(-np.abs(z)))


def binned(residuals: Residuals) -> Residuals:
    """Put clusters together, so that what is held does not grow with their number."""
    if not len(residuals.codes) or residuals.codes[-1] < BINS:
        return residuals
    sums = np.bincount(residuals.codes % BINS, residuals.values, minlength=BINS)
    moved = np.flatnonzero(sums)
    length = float(np.sqrt(sums @ sums)) or 1.0
    return Residuals(moved, sums[moved] / length)


class Tester:
    """Tests all pairs of groups of a summary.

    Parameters
    ----------
    summary : Summary
        The sums.
    statistics : SummaryStatistics
        Its strata.
    confidence : float
        Of the intervals.
    items : bool
        Whether items that recur are clustered.
    """

    def __init__(self, summary: Summary, statistics: SummaryStatistics, confidence: float, *, items: bool) -> None:
        self.summary, self.statistics, self.confidence = summary, statistics, confidence
        self.ids = recurring_ids(summary) if items else None
        self.recurring = self.ids if self.ids is not None and self.ids.of_one_group else None
        self.clusters = cluster_codes(summary)
        self.names = [str(name) for name in summary.group_names]

    def run(self, tests: Tests, *, wider: float, main_k: int) -> None:
        """Test every pair at every cut-off and add the results, and a plan at the main one.

        Parameters
        ----------
        tests : Tests
            Where the results go.
        wider : float
            The confidence of all pairs at once.
        main_k : int
            The cut-off that plans are for.
        """
        held = [row for row in TESTED if row[2] in self.summary.values]
        tested = [row for row in held if self.summary.labelled or row[1] == "all rows"]
        for stratum in dict.fromkeys(row[1] for row in tested):
            for a, b in pairs_of(self.summary, MOST_PAIRS):
                place = self.statistics.stratum(stratum).pair(a, b)
                for measure, _, value in (row for row in tested if row[1] == stratum):
                    self._over_cuts(tests, place, measure, VALUES.index(value), wider, main_k)
            self.statistics.stratum(stratum).forget()
        if self.summary.binned is not None:
            tests.settle(self.summary.binned)

    def _over_cuts(self, tests: Tests, place: PairLists, measure: str, value: int, wider: float, main_k: int) -> None:
        longest = int(self.summary.lengths.max())
        results: Any = None
        for cut, k in enumerate(self.summary.ks):
            if cut == 0 or self.summary.ks[cut - 1] < longest:  # beyond the longest list a cut-off cuts nothing
                lists = place.lists(value, cut, self.clusters)
                results = self._test(place, lists, measure, value, cut, wider)
            pair, answers, more = results
            tests.add(replace(pair, k=k), answers, more, settled=self.summary.binned is None)
            if k == main_k and value == 0 and not self._by_items(pair):
                tests.plans.append(self._plan(place, place.lists(value, cut, self.clusters), measure, k))

    def _by_items(self, pair: Pair) -> bool:
        """Whether items that recur make a gap unsure; more queries of the same items would not settle it."""
        return self.recurring is not None and pair.within_query.method in ("item t", "exact, overdispersed")

    def _plan(self, place: PairLists, lists: Lists, measure: str, k: int) -> Noticeable:
        """Say how large a gap within queries would be noticed, and how many queries `NOTICEABLE` takes."""
        queries = self.summary.n_queries
        sums = (lists.a, lists.b, lists.x_a, lists.x_b)
        precision = Precision.of(
            *sums, lists.clusters, scope="within", queries=queries, times=lists.times, apart=lists.apart
        )
        plan = noticed(precision, NOTICEABLE, power=POWER, confidence=self.confidence, tests=1)
        a, b = (self.names[code] for code in place.groups)
        now, needed, smallest = plan
        return Noticeable(
            f"{measure}@{k}",
            "within",
            place.stratum.name,
            a,
            b,
            queries,
            NOTICEABLE,
            POWER,
            now,
            needed,
            smallest,
            self.confidence,
            1,
        )

    def _test(
        self, place: PairLists, lists: Lists, measure: str, value: int, cut: int, wider: float
    ) -> tuple[Pair, dict[str, Any], Ends | None]:
        items = None
        if self.recurring is not None:
            items = place.items(lists, self.recurring.values[value, cut], self.recurring)
        inside = within(lists, confidence=self.confidence, items=items)
        scores = PairScore(lists, items)
        outside = pooled(lists, confidence=self.confidence, scores=scores)
        a, b = (self.names[code] for code in place.groups)
        size = place.unit / self.summary.unit  # weights are told in one unit for all pairs
        n_a, n_b, x_a, x_b = (each * size for each in (*scores.n, *scores.x))
        pair = Pair(
            measure=measure,
            stratum=place.stratum.name,
            k=self.summary.ks[cut],
            a=a,
            b=b,
            count_a=n_a,
            count_b=n_b,
            selected_a=x_a,
            selected_b=x_b,
            rate_a=x_a / n_a if n_a else np.nan,
            rate_b=x_b / n_b if n_b else np.nan,
            observed=inside.observed * size,
            expected=inside.expected * size,
            together=lists.total(lists.selected * (lists.weight > 0)) * size,
            lists=inside.lists,
            clusters=inside.clusters,
            pooled=_gap(outside),
            within_query=_gap(inside),
            ranker_part=inside.ranker_part,
            mix_part=outside.mix_part,
            rule=ratio_rule(lists, confidence=self.confidence, scores=scores) if value == 0 else None,
        )
        more = None if wider == self.confidence else _wider(outside, self.confidence, wider)
        return pair, {"pooled": outside, "within_query": inside}, more


def _gap(answer: Any) -> Gap:
    return Gap(
        difference=answer.difference,
        low=answer.low,
        high=answer.high,
        ratio=answer.ratio,
        ratio_low=answer.ratio_low,
        ratio_high=answer.ratio_high,
        ratio_kind=getattr(answer, "ratio_kind", "rate ratio"),
        p=answer.p,
        adjusted=np.nan,
        method=answer.method,
        reason=answer.reason,
        decidable=answer.decidable,
    )


def cluster_codes(summary: Summary) -> tuple[NDArray[np.int64], ...]:
    """Number the clusters of each clustering; without any, every list is its own."""
    if not summary.clusters:
        return (np.arange(summary.held),)
    return tuple(np.unique(ids, return_inverse=True)[1] for ids in summary.clusters)


def recurring_ids(summary: Summary) -> Recurring | None:
    """Give the items if their ids recur in several lists; else None."""
    if summary.items is None:
        return None
    recurring = Recurring(summary)
    return recurring if recurring.most_recurring >= RECURRING else None
