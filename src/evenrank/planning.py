"""`noticeable`: how large a gap the queries at hand would show, and how many queries a given gap takes.

Power is that of the audit's test by clusters: the gap over its standard error is Student's t, around 0 where there is
no gap and around gap/error (the noncentral t) where there is one. Error and degrees of freedom come from the data at
hand: with N times as many queries like these, the error is √N times smaller and the degrees of freedom N times as many.
A gap also changes the rates themselves, and with them the error, as r(1 − r) does.

Nothing is drawn at random; `benchmarks/planning_study.py` checks the answers by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenrank.cell_rows import CellRows
from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures import MeasureLike, ask
from evenrank.precision import Precision
from evenrank.spread import cluster_codes
from evenrank.statistic import RankedQueries
from evenrank.threads import one_thread
from evenrank.wording import quoted

SCOPES = ("within", "pooled")
MOST = 1 << 50  # queries; more are none that anybody has


@dataclass(frozen=True)
class Noticeable:
    """What the queries at hand can show about a gap, and how many are needed.

    Attributes
    ----------
    measure, scope, stratum : str
        The gap; "within" queries or "pooled"; which rows it is over.
    group, other : str
        The two groups.
    queries : int
        The number of queries at hand.
    gap, power : float
        The gap in question and the probability with which it should be noticed.
    power_now : float
        The probability with which the queries at hand show it.
    queries_needed : int or None
        So many queries like these show it with probability ``power``; None where no number does.
    smallest_gap : float
        The smallest gap that the queries at hand show with probability ``power``; NaN where they show none.
    confidence : float
        Of the test; corrected for ``tests`` tests.
    tests : int
        The number of tests read together.
    """

    measure: str
    scope: str
    stratum: str
    group: str
    other: str
    queries: int
    gap: float
    power: float
    power_now: float
    queries_needed: int | None
    smallest_gap: float
    confidence: float
    tests: int

    def __str__(self) -> str:
        between = f"between {quoted(self.group)} and {quoted(self.other)}"
        if self.queries_needed is None:
            return f"No number of queries like these shows a gap of {self.gap:g} {between} with {self.power:.0%} power."
        return (
            f"With {self.queries_needed:,} queries like these a gap of {self.gap:g} {between} is noticed with "
            f"{self.power:.0%} probability; with the {self.queries:,} at hand, with {self.power_now:.0%}."
        )


def noticed(
    precision: Precision, gap: float = 0.05, *, power: float = 0.8, confidence: float = 0.95, tests: int = 1
) -> tuple[float, int | None, float]:
    """Compute the power at hand, the queries needed, and the smallest gap noticed, as in `Noticeable`.

    Parameters
    ----------
    precision : Precision
        Of the gap in the data at hand.
    gap, power, confidence, tests
        As in `noticeable`.

    Returns
    -------
    tuple
        ``power_now``, ``queries_needed``, ``smallest_gap``.
    """
    alpha = (1 - confidence) / tests
    now = precision.power(gap, precision.queries, alpha=alpha)

    def shows(queries: int) -> bool:
        return precision.power(gap, queries, alpha=alpha) >= power

    if not precision.freedom > 0 or not shows(MOST):
        return now, None, _smallest(precision, power, alpha)
    return now, _least(shows), _smallest(precision, power, alpha)


def _least(enough: Callable[[int], bool]) -> int:
    high = 2
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _smallest(precision: Precision, power: float, alpha: float) -> float:
    low, high = 0.0, 1.0
    if not precision.power(high, precision.queries, alpha=alpha) >= power:
        return math.nan
    for _ in range(40):
        middle = (low + high) / 2
        enough = precision.power(middle, precision.queries, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


@one_thread()
def noticeable(
    scores: ArrayLike,
    data: RankingData,
    measure: MeasureLike,
    gap: float = 0.05,
    *,
    power: float = 0.8,
    scope: str = "within",
    confidence: float = 0.95,
    tests: int = 1,
    cluster: Any = None,
) -> list[Noticeable]:
    """Say how large a gap the queries at hand would show, and how many queries show a given one.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measure : str, Notion or callable
        A gap such as "eop@3" or "exposure_gap@3".
    gap : float
        The gap that should be noticed, between 0 and 1.
    power : float
        The probability with which it should be.
    scope : str
        "within" queries (what the ranker does with the lists it got), or "pooled" (what people experience).
    confidence : float
        Of the test, between 0 and 1.
    tests : int
        The number of tests that are read together; each is then held to 1 − (1 − confidence)/tests.
    cluster : array-like or sequence of two array-likes, optional
        As in `evenrank.compare`; labels that cut across queries are not for plans.

    Returns
    -------
    list of Noticeable
        One per stratum and pair of groups.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> plan = noticeable(er.FairLinearRanker(alpha=0.0).fit(data).predict(data), data, "dp@5")[0]
    >>> plan.queries_needed < data.n_queries and plan.smallest_gap < 0.05
    True
    """
    check_number(gap, "gap", above=0, below=1)
    check_number(power, "power", above=0, below=1)
    check_number(confidence, "confidence", above=0, below=1)
    check_number(tests, "tests", least=1, whole=True)
    choose(scope, SCOPES, what="scope")
    name, asked = ask(measure)
    if asked.measure.kind != "gap" or asked.measure.notion is None:
        raise ConfigError(f"a plan is for violations and exposure gaps; got {name!r}.")
    ranked = RankedQueries(scores, data)
    codes = [code[data.query_ptr[:-1]][data.sorted_queries] for code in cluster_codes(cluster, data, cross=False)]
    notion = asked.measure.notion
    cells = CellRows.of(notion, data)
    top = cells.sums(ranked.row_values(asked))
    weights, groups, names = cells.weights, cells.n_groups, [str(name) for name in data.group_names]
    query = np.repeat(np.arange(weights.n_queries), np.diff(weights.ptr))
    inside = [np.flatnonzero(weights.column == column) for column in range(weights.width)]
    pairs = cells.pairs("mean")
    plans = []
    for i, j in zip(pairs.a.tolist(), pairs.b.tolist(), strict=True):
        lists = np.union1d(query[inside[i]], query[inside[j]])
        table = np.zeros((4, len(lists)))  # rows of both groups, and their sums
        for number, (values, column) in enumerate(product((weights.weight, top), (i, j))):
            table[number, np.searchsorted(lists, query[inside[column]])] = values[inside[column]]
        a, b, x_a, x_b = table
        clusters = [code[lists] for code in codes]
        precision = Precision.of(a, b, x_a, x_b, clusters, scope=scope, queries=data.n_queries)
        now, needed, smallest = noticed(precision, gap, power=power, confidence=confidence, tests=tests)
        stratum = notion.stratum(i // groups)
        between = (names[i % groups], names[j % groups])
        plans.append(
            Noticeable(
                name, scope, stratum, *between, data.n_queries, gap, power, now, needed, smallest, confidence, tests
            )
        )
    return plans
