"""`audit`: what given rankings show, every number with its uncertainty, from sums per list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from evenrank.audits.pair import Pair
from evenrank.audits.parts import Finding, Influence, Rate
from evenrank.audits.ranked import Ranked
from evenrank.audits.run import GAPS, RATIO, UNLABELLED, Run
from evenrank.audits.summary import QUALITY, Summary
from evenrank.audits.verdicts import Category, Verdict, four_fifths_of, overall, verdicts_of
from evenrank.bounds import Certificate
from evenrank.checks import check_k, check_number, choose
from evenrank.comparisons import Comparison, compare
from evenrank.confidence import METHODS, REPLICATES, Interval, check_confidence, intervals
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.measures import MeasureLike
from evenrank.planning import Noticeable
from evenrank.threads import one_thread

__all__ = ["GAPS", "QUALITY", "RATIO", "UNLABELLED", "Audit", "audit"]
HELD = 3 << 26  # bytes of sums that are worked on at a time


@dataclass(frozen=True, eq=False)
class Audit:
    """What `audit` found. ``text()``, ``markdown()`` and ``html()`` say it in words; ``frame()`` has the numbers.

    Attributes
    ----------
    facts : dict
        The data in numbers.
    ks : tuple of int
        The cut-offs.
    main_k : int
        The cut-off nearest to half of a usual list, where a gap can show best.
    confidence : float
        The confidence of the intervals.
    method : str
        "bootstrap" or "analytic".
    labelled : bool
        Whether the rows have relevance labels.
    findings : tuple of Finding
        Each measure at each cut-off.
    rates : tuple of Rate
        How often items of each group are in the top k.
    certificates : tuple of Certificate
        A limit for each gap on new queries.
    influences : tuple of Influence
        The queries that weigh most.
    comparison : tuple of Comparison
        The comparison with another ranking, if there is one.
    pairs : tuple of Pair
        Each pair of groups in each stratum at each cut-off: counts, the pooled gap and the gap within queries.
    categories : tuple of Category
        Each group's number and rate at each cut-off, groups that were set aside included.
    plans : tuple of Noticeable
        How large a gap within queries these data would show at the main cut-off, pair by pair.
    notes : tuple of str
        What was done to the data: groups set aside, clusters, items that recur.
    shares : tuple of Finding
        AWRF and skew at each cut-off, means over lists; none if rows have weights.
    measures : tuple of Interval
        Further measures that were asked for.
    """

    facts: dict[str, Any]
    ks: tuple[int, ...]
    main_k: int
    confidence: float
    method: str
    labelled: bool
    findings: tuple[Finding, ...]
    rates: tuple[Rate, ...]
    certificates: tuple[Certificate, ...]
    influences: tuple[Influence, ...]
    comparison: tuple[Comparison, ...] = ()
    pairs: tuple[Pair, ...] = ()
    categories: tuple[Category, ...] = ()
    plans: tuple[Noticeable, ...] = ()
    notes: tuple[str, ...] = ()
    shares: tuple[Finding, ...] = ()
    measures: tuple[Interval, ...] = ()

    page: ClassVar[Callable[..., str]]  # the page layer, which comes later, puts it here

    def find(self, measure: str, across: str | None = None) -> list[Finding]:
        """Look up the findings of a measure, one per k.

        Parameters
        ----------
        measure : str
            Its full name without a cut-off, such as "demographic_parity".
        across : str, optional
            "mean" over all pairs of groups or "max"; by default the largest pair, if there are more than two groups.

        Returns
        -------
        list of Finding
            In the order of the cut-offs; empty if the measure was not computed.
        """
        wanted = across or ("max" if measure in GAPS and len(self.facts["groups"]) > 2 else "mean")
        every = (*self.findings, *self.shares)
        return [finding for finding in every if finding.measure == measure and finding.across == wanted]

    @property
    def verdict(self) -> dict[str, str]:
        """The verdict on the pooled gaps and on those within queries, over all pairs, notions and cut-offs.

        "uneven": some gap is shown, corrected for the number of gaps; "hints": only when looked at one by one; "none
        shown"; "cannot tell". That the ranker is uneven follows from ``"within_query"`` only.
        """
        return overall(self.pairs, 1 - self.confidence)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each pair of groups, notion, cut-off and question, with its reason."""
        return verdicts_of(self.pairs, 1 - self.confidence)

    def four_fifths(self) -> dict[int, str]:
        """Judge the four-fifths rule at each k: "met", "not met" or "cannot be told".

        It is not met if one pair of groups shows that, corrected for the number of pairs, and met if all of them do.
        """
        return four_fifths_of(self.pairs, self.ks, 1 - self.confidence)

    def impact_ratios(self, k: int | None = None) -> list[dict[str, Any]]:
        """List each group's number, rate of being in the top k, and that rate's ratio to the highest one.

        Parameters
        ----------
        k : int, optional
            One of the cut-offs; by default all of them.

        Returns
        -------
        list of dict
            One row per group (an intersection is a group of an audit by intersections) and cut-off: "k", "category",
            "number", "selected", "rate", "ratio" and "set_aside". A group set aside has no ratio.
        """
        return [asdict(category) for category in self.categories if k is None or category.k == k]

    def conclusions(self) -> list[str]:
        """Write in plain words what can be concluded and what cannot."""
        from evenrank.audits.words import conclusions

        return conclusions(self)

    def frame(self) -> Any:
        """Give the findings as a polars table, one row per measure, k and way of combining pairs."""
        import polars as pl

        rows = [
            {
                "measure": finding.measure,
                "k": finding.k,
                "across": finding.across,
                "estimate": finding.interval.estimate,
                "low": finding.interval.low,
                "high": finding.interval.high,
                "favoured": finding.favoured,
                "other": finding.other,
                "shown": finding.shown if finding.leads else None,
                "random_order": finding.chance if finding.leads else None,
                "queries": finding.interval.queries,
            }
            for finding in self.findings
        ]
        types = {"favoured": pl.String, "other": pl.String, "shown": pl.Boolean, "random_order": pl.Float64}
        return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values; a vacuous bound is None, and what is not defined is NaN."""
        named: dict[str, dict[str, float]] = {"mean": {}, "max": {}}
        for finding in self.findings:
            named[finding.across][f"{finding.measure}@{finding.k}"] = finding.interval.estimate
        rates: dict[int, dict[str, float]] = {k: {} for k in self.ks}
        for rate in self.rates:
            if rate.stratum == "all rows":
                rates[rate.k][rate.group] = rate.interval.estimate
        return {
            "data": self.facts,
            "k": list(self.ks),
            "confidence": self.confidence,
            "method": self.method,
            "verdict": self.verdict,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "conclusions": self.conclusions(),
            "notes": list(self.notes),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "impact_ratios": self.impact_ratios(),
            "plans": [asdict(plan) for plan in self.plans],
            "measures": named["mean"],
            "largest_pair": named["max"],
            "selection_rates": rates,
            "findings": [
                {**row, "strata": [asdict(lead) for lead in finding.leads]}
                for row, finding in zip(self.frame().to_dicts(), self.findings, strict=True)
            ],
            "shares": [asdict(share.interval) for share in self.shares],
            "rates": [rate.flat() for rate in self.rates],
            "further_measures": [asdict(interval) for interval in self.measures],
            "four_fifths": self.four_fifths(),
            "certified": [
                {**asdict(limit), "vacuous": limit.vacuous, "bound": None if limit.vacuous else limit.bound}
                for limit in self.certificates
            ],
            "queries": [asdict(influence) for influence in self.influences],
            "comparison": [comparison.to_dict() for comparison in self.comparison],
        }

    def table(self) -> Any:
        """Give the tests as one tidy polars table: a row per question, measure, stratum, k and pair of groups."""
        from evenrank.audits.tables import tidy_table

        return tidy_table({"": self}).drop("attribute")

    def without_examples(self) -> Audit:
        """Give the same audit without the names of queries."""
        return replace(self, influences=tuple(replace(influence, query="hidden") for influence in self.influences))

    def text(self, title: str = "Audit") -> str:
        """Write plain text, 80 columns wide."""
        from evenrank.audits.layout import as_text

        return as_text(self, title)

    def markdown(self, title: str = "Audit") -> str:
        """Write Markdown."""
        from evenrank.audits.layout import as_markdown

        return as_markdown(self, title)

    def html(self, title: str = "Audit") -> str:
        """Write an HTML page that needs no network."""
        return self.page([(title, self)])

    def _repr_html_(self) -> str:
        return self.page([("Audit", self)], whole=False)

    def __str__(self) -> str:
        return self.text()


@one_thread()
def audit(
    scores: ArrayLike | Summary,
    data: RankingData | None = None,
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    confidence: float = 0.95,
    method: str = "analytic",
    labelled: bool = True,
    measures: Sequence[MeasureLike] = (),
    against: ArrayLike | None = None,
    cluster: Any = None,
    items: bool = True,
    min_share: float = 0.0,
    min_count: float = 0,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Audit:
    """Audit rankings given by scores in the caller's row order: how even, in whose favour, how sure.

    Parameters
    ----------
    scores : array-like or Summary
        (n,), in the caller's row order; or the summary of the lists, which holds its own cut-offs and clusters.
    data : RankingData
        The rows that the scores are of, with at least two groups; None with a summary.
    ks : sequence of int
        The cut-offs.
    confidence : float
        Of the intervals, between 0 and 1.
    method : str
        "analytic": intervals and tests of each pair of groups by its own data, exact where they are few. "bootstrap":
        intervals of gaps, rates and quality from resampled queries; tests and verdicts stay analytic.
    labelled : bool
        False for logs without relevance labels: demographic parity, exposure, AWRF and skew.
    measures : sequence of str, Notion or callable
        Further measures, as in `measure`: with intervals over queries, not the exact tests that pairs of groups have.
    against : array-like, optional
        Other scores of the same rows, (n,), to be compared with these query by query.
    cluster : str, array-like, or a tuple of two of them, optional
        What lists share that makes them depend on each other, as in `Summary.of`.
    items : bool
        Whether items that recur in several lists are noticed and taken into account.
    min_share, min_count : float
        Groups with a smaller share of the labelled items, or with fewer of them, are set aside: reported, not compared.
    replicates : int
        The number of resamples.
    seed : int
        Seeds them.

    Returns
    -------
    Audit
        The findings, with methods that write them in words.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> result = audit(er.FairLinearRanker(alpha=0.0).fit(data).predict(data), data, ks=[5])
    >>> result.verdict["within_query"], result.four_fifths(), result.find("demographic_parity")[0].favoured
    ('uneven', {5: 'not met'}, 'over 25')
    """
    check_confidence(confidence)
    choose(method, METHODS, what="method")
    check_number(min_share, "min_share", least=0, below=1)
    check_number(min_count, "min_count", least=0)
    run = Run(confidence, method, items, min_share, min_count, replicates, seed)
    if isinstance(scores, Summary):
        if against is not None or measures:
            raise ConfigError("against= and measures= need rows; a summary has none. Give scores and data.")
        _need_groups(scores.n_groups)
        return Audit(**run.over([scores], scores.ks))
    if data is None:
        raise ConfigError("an audit needs scores and data, or a summary; got scores alone.")
    _need_groups(data.n_groups)
    cuts = tuple(sorted({check_k(k) for k in ks}))
    ranked = Ranked(scores, data, cluster=cluster, labelled=labelled, items=items)
    at_once = max(1, HELD // (64 * max(1, ranked.n_cells)))
    batches = (cuts[j : j + at_once] for j in range(0, len(cuts), at_once))
    result = Audit(**run.over((ranked.summary(batch) for batch in batches), cuts))
    if measures:
        more = intervals(scores, data, measures, confidence=confidence, method=method, replicates=replicates, seed=seed)
        result = replace(result, measures=tuple(more))
    if against is None:
        return result
    defined = [
        f"{finding.measure}@{finding.k}"
        for finding in result.findings
        if finding.across == "mean" and finding.interval.estimate >= 0
    ]
    clusters = tuple(map(data.to_caller, ranked.clusters)) or None
    compared = compare(scores, against, data, defined, confidence=confidence, cluster=clusters)
    return replace(result, comparison=tuple(compared))


def _need_groups(number: int) -> None:
    if number < 2:
        raise DataError(f"an audit compares groups and needs at least two; the data has {number}.")
