"""`audit`: what given rankings show, every number with its uncertainty, from one set of resampled queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenrank.audits.parts import Finding, Influence, Parts, Rate, facts_of, parts_of
from evenrank.bounds import Certificate
from evenrank.checks import check_k, choose
from evenrank.comparisons import Comparison, compare
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.intervals import METHODS, REPLICATES, check_confidence
from evenrank.measures import measure_names
from evenrank.notions import NOTIONS
from evenrank.statistic import RankedQueries
from evenrank.wording import FOUR_FIFTHS

QUALITY = ("ndcg", "precision", "recall")
GAPS = (*NOTIONS, "exposure_gap")
UNLABELLED = ("demographic_parity", "exposure_gap")
RATIO = "four_fifths"


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
        return [finding for finding in self.findings if finding.measure == measure and finding.across == wanted]

    def verdicts(self) -> dict[int, str]:
        """Judge the four-fifths rule at each k from the ratio's interval: "met", "not met" or "cannot be told"."""
        ratios = {finding.k: finding.interval for finding in self.find(RATIO)}
        return {
            k: "not met" if ratio.high < FOUR_FIFTHS else "met" if ratio.low >= FOUR_FIFTHS else "cannot be told"
            for k, ratio in ratios.items()
        }

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
        named = {
            f"{finding.measure}@{finding.k}": finding.interval.estimate
            for finding in self.findings
            if finding.across == "mean"
        }
        largest = {
            f"{finding.measure}@{finding.k}": finding.interval.estimate
            for finding in self.findings
            if finding.across == "max"
        }
        rates: dict[int, dict[str, float]] = {k: {} for k in self.ks}
        for rate in self.rates:
            if rate.stratum == "all rows":
                rates[rate.k][rate.group] = rate.interval.estimate
        return {
            "data": self.facts,
            "k": list(self.ks),
            "confidence": self.confidence,
            "method": self.method,
            "conclusions": self.conclusions(),
            "measures": named,
            "largest_pair": largest,
            "selection_rates": rates,
            "findings": [
                {**row, "strata": [asdict(lead) for lead in finding.leads]}
                for row, finding in zip(self.frame().to_dicts(), self.findings, strict=True)
            ],
            "rates": [_flat(asdict(rate)) for rate in self.rates],
            "four_fifths": self.verdicts(),
            "certified": [
                {**asdict(limit), "vacuous": limit.vacuous, "bound": None if limit.vacuous else limit.bound}
                for limit in self.certificates
            ],
            "queries": [asdict(influence) for influence in self.influences],
            "comparison": [asdict(comparison) for comparison in self.comparison],
        }

    def text(self, title: str = "Audit") -> str:
        """Write plain text, 80 columns wide."""
        from evenrank.audits.sections import as_text

        return as_text(self, title)

    def markdown(self, title: str = "Audit") -> str:
        """Write Markdown."""
        from evenrank.audits.sections import as_markdown

        return as_markdown(self, title)

    def html(self, title: str = "Audit") -> str:
        """Write an HTML page that needs no network."""
        return self.page([(title, self)])

    def _repr_html_(self) -> str:
        return self.page([("Audit", self)], whole=False)

    def __str__(self) -> str:
        return self.text()


def audit(
    scores: ArrayLike,
    data: RankingData,
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    confidence: float = 0.95,
    method: str = "bootstrap",
    labelled: bool = True,
    against: ArrayLike | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Audit:
    """Audit rankings given by scores in the caller's row order: how even, in whose favour, how sure.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of, with at least two groups.
    ks : sequence of int
        The cut-offs.
    confidence : float
        Of the intervals, between 0 and 1.
    method : str
        "bootstrap" over queries, or "analytic".
    labelled : bool
        False for logs without relevance labels: demographic parity and exposure only.
    against : array-like, optional
        Other scores of the same rows, (n,), to be compared with these query by query.
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
    >>> result.verdicts(), result.find("demographic_parity")[0].favoured
    ({5: 'not met'}, 'over 25')
    """
    check_confidence(confidence)
    choose(method, METHODS, what="method")
    if data.n_groups < 2:
        raise DataError(f"an audit compares groups and needs at least two; the data has {data.n_groups}.")
    cuts = tuple(sorted({check_k(k) for k in ks}))
    gaps = GAPS if labelled else UNLABELLED
    facts = facts_of(data, cuts, labelled)
    main_k = min(cuts, key=lambda k: (abs(2 * k - facts["median_list"]), k))
    measures = [*(QUALITY if labelled else ()), *gaps, RATIO]
    ranked = RankedQueries(scores, data)
    # Tied scores are random orders, exactly.
    shuffled = ranked.ranked_by(np.zeros(data.n_rows))
    parts = Parts()
    for batch in ranked.batches([measure_names([k], measures) for k in cuts], replicates=replicates):
        parts += parts_of(
            ranked,
            shuffled,
            measure_names([cuts[i] for i in batch], measures),
            main_k=main_k,
            confidence=confidence,
            method=method,
            replicates=replicates,
            seed=seed,
        )
    findings = parts.findings
    defined = [
        f"{finding.measure}@{finding.k}"
        for finding in findings
        if finding.across == "mean" and finding.interval.estimate >= 0
    ]
    comparison: list[Comparison] = []
    if against is not None:
        comparison = compare(scores, against, data, defined, confidence=confidence)
    return Audit(
        facts=facts,
        ks=cuts,
        main_k=main_k,
        confidence=confidence,
        method=method,
        labelled=labelled,
        findings=tuple(findings),
        rates=tuple(parts.rates),
        certificates=tuple(parts.certificates),
        influences=tuple(parts.influences),
        comparison=tuple(comparison),
    )


def _flat(rate: dict[str, Any]) -> dict[str, Any]:
    inside = rate.pop("interval")
    return rate | {name: inside[name] for name in ("estimate", "low", "high", "queries")}
