"""A pair of groups and what is asked of it: the pooled gap, and the gap within queries."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from evenrank.inference import RatioRule

QUESTIONS = ("pooled", "within_query")


@dataclass(frozen=True)
class Gap:
    """One question about a pair of groups, answered.

    Attributes
    ----------
    difference, low, high : float
        The first group's rate minus the second's, and its interval.
    ratio, ratio_low, ratio_high : float
        Of the first group's rate to the second's, and its interval.
    ratio_kind : str
        "rate ratio", "risk ratio" or "odds ratio".
    p, adjusted : float
        The p-value of no difference, alone and corrected for all that were asked.
    method, reason : str
        How it was computed, and why so; or why nothing can be told.
    decidable : bool
        Whether the data can answer the question.
    """

    difference: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    ratio_kind: str
    p: float
    adjusted: float
    method: str
    reason: str
    decidable: bool

    def verdict(self, level: float) -> str:
        """Judge it: "uneven", "hints", "none shown" or "cannot tell"."""
        if not self.decidable:
            return "cannot tell"
        return "uneven" if self.adjusted <= level else "hints" if self.p <= level else "none shown"


@dataclass(frozen=True)
class Pair:
    """Two groups in one stratum at one cut-off.

    Attributes
    ----------
    measure : str
        The gap: "demographic_parity", "equal_opportunity", "equalized_odds" (its irrelevant rows) or "exposure_gap".
    stratum : str
        Which rows.
    k : int
        The cut-off.
    a, b : str
        The groups.
    count_a, count_b : float
        Their rows.
    selected_a, selected_b : float
        Of these, in the top k (for exposure, the sum of exposures).
    rate_a, rate_b : float
        Selected over count.
    observed, expected, together : float
        In lists with both groups: what the first group got, what its share of each list would give it, and what both
        got together.
    lists, clusters : int
        The lists that bear on the gap within queries, and their clusters.
    pooled, within_query : Gap
        The two questions, answered.
    ranker_part, mix_part : float
        What the ranker and the query mix add to the pooled difference.
    rule : RatioRule or None
        Whether the lower rate is at least 0.8 of the higher; None for exposure.
    """

    measure: str
    stratum: str
    k: int
    a: str
    b: str
    count_a: float
    count_b: float
    selected_a: float
    selected_b: float
    rate_a: float
    rate_b: float
    observed: float
    expected: float
    together: float
    lists: int
    clusters: int
    pooled: Gap
    within_query: Gap
    ranker_part: float
    mix_part: float
    rule: RatioRule | None = None

    def favoured(self, question: str = "within_query") -> tuple[str, str]:
        """Name the group ahead and the one behind, by the sign of a question's difference."""
        ahead = getattr(self, question).difference >= 0
        return (self.a, self.b) if ahead else (self.b, self.a)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return asdict(self)

    def turned(self) -> Pair:
        """The same pair with the groups in the other order."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            count_a=self.count_b,
            count_b=self.count_a,
            selected_a=self.selected_b,
            selected_b=self.selected_a,
            rate_a=self.rate_b,
            rate_b=self.rate_a,
            observed=self.together - self.observed,
            expected=self.together - self.expected,
            pooled=_turned(self.pooled),
            within_query=_turned(self.within_query),
            ranker_part=-self.ranker_part,
            mix_part=-self.mix_part,
        )


def _turned(gap: Gap) -> Gap:
    def inverse(value: float) -> float:
        return float("inf") if value == 0 else 1 / value

    return replace(
        gap,
        difference=-gap.difference,
        low=-gap.high,
        high=-gap.low,
        ratio=inverse(gap.ratio),
        ratio_low=inverse(gap.ratio_high),
        ratio_high=inverse(gap.ratio_low),
    )
