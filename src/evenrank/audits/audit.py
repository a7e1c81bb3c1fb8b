"""`audit`: what can be said of given rankings, every number with its uncertainty, from one set of resampled queries."""

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

    ``main_k`` is the cut-off nearest to half of a usual list, where a gap can show best.
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
        """The findings of a measure by its full name, one a k; the largest pair if there are more than two groups."""
        wanted = across or ("max" if measure in GAPS and len(self.facts["groups"]) > 2 else "mean")
        return [one for one in self.findings if one.measure == measure and one.across == wanted]

    def verdicts(self) -> dict[int, str]:
        """The four-fifths rule at each k: "met", "not met" or "cannot be told", from the ratio's interval."""
        found = {one.k: one.interval for one in self.find(RATIO)}
        return {
            k: "not met" if ratio.high < FOUR_FIFTHS else "met" if ratio.low >= FOUR_FIFTHS else "cannot be told"
            for k, ratio in found.items()
        }

    def conclusions(self) -> list[str]:
        """In plain words, what can be concluded and what cannot."""
        from evenrank.audits.words import conclusions

        return conclusions(self)

    def frame(self) -> Any:
        """The findings as a polars table, one row a measure, k and way of combining pairs."""
        import polars as pl

        rows = [
            {
                "measure": one.measure,
                "k": one.k,
                "across": one.across,
                "estimate": one.interval.estimate,
                "low": one.interval.low,
                "high": one.interval.high,
                "favoured": one.favoured,
                "other": one.other,
                "shown": one.shown if one.leads else None,
                "random_order": one.chance if one.leads else None,
                "queries": one.interval.queries,
            }
            for one in self.findings
        ]
        types = {"favoured": pl.String, "other": pl.String, "shown": pl.Boolean, "random_order": pl.Float64}
        return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a vacuous bound is None, so that nobody takes it for one, and what is not defined is NaN."""
        named = {f"{one.measure}@{one.k}": one.interval.estimate for one in self.findings if one.across == "mean"}
        largest = {f"{one.measure}@{one.k}": one.interval.estimate for one in self.findings if one.across == "max"}
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
                {**row, "strata": [asdict(lead) for lead in one.leads]}
                for row, one in zip(self.frame().to_dicts(), self.findings, strict=True)
            ],
            "rates": [_flat(asdict(rate)) for rate in self.rates],
            "four_fifths": self.verdicts(),
            "certified": [
                {**asdict(one), "vacuous": one.vacuous, "bound": None if one.vacuous else one.bound}
                for one in self.certificates
            ],
            "queries": [asdict(one) for one in self.influences],
            "comparison": [asdict(one) for one in self.comparison],
        }

    def text(self, title: str = "Audit") -> str:
        """Plain text, 80 columns wide."""
        from evenrank.audits.sections import as_text

        return as_text(self, title)

    def markdown(self, title: str = "Audit") -> str:
        from evenrank.audits.sections import as_markdown

        return as_markdown(self, title)

    def html(self, title: str = "Audit") -> str:
        """A page of its own that needs no network."""
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
    labelled : False for logs without relevance labels: demographic parity and exposure only
    against : other scores of the same rows, to be compared with these query by query

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> found = audit(er.FairLinearRanker(alpha=0.0).fit(data).predict(data), data, ks=[5])
    >>> found.verdicts(), found.find("demographic_parity")[0].favoured
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
    made = Parts()
    for batch in ranked.batches([measure_names([k], measures) for k in cuts], replicates=replicates):
        made += parts_of(
            ranked,
            shuffled,
            measure_names([cuts[i] for i in batch], measures),
            main_k=main_k,
            confidence=confidence,
            method=method,
            replicates=replicates,
            seed=seed,
        )
    findings = made.findings
    defined = [f"{one.measure}@{one.k}" for one in findings if one.across == "mean" and one.interval.estimate >= 0]
    others: list[Comparison] = []
    if against is not None:
        others = compare(scores, against, data, defined, confidence=confidence, replicates=replicates, seed=seed)
    return Audit(
        facts=facts,
        ks=cuts,
        main_k=main_k,
        confidence=confidence,
        method=method,
        labelled=labelled,
        findings=tuple(findings),
        rates=tuple(made.rates),
        certificates=tuple(made.certificates),
        influences=tuple(made.influences),
        comparison=tuple(others),
    )


def _flat(rate: dict[str, Any]) -> dict[str, Any]:
    inside = rate.pop("interval")
    return rate | {name: inside[name] for name in ("estimate", "low", "high", "queries")}
