"""`noticeable`: how large a gap the queries at hand would show, and how many queries a given gap takes.

Power is that of the audit's test by clusters: the gap over its standard error is Student's t, around 0 where there is
no gap and around gap/error (the noncentral t) where there is one. Error and degrees of freedom come from the data at
hand: with N times as many queries like these, the error is √N times smaller and the degrees of freedom N times as many.
A gap also changes the rates themselves, and with them the error, as r(1 − r) does.

Nothing is drawn at random; `benchmarks/planning_study.py` checks the answers by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.cell_rows import CellRows
from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.inference.students_t import beyond
from evenrank.measures import MeasureLike, ask
from evenrank.spread import Array, cluster_codes
from evenrank.statistic import RankedQueries
from evenrank.threads import one_thread
from evenrank.wording import quoted

SCOPES = ("within", "pooled")
MOST = 1 << 50  # queries; more are none that anybody has
FEW = 5.0  # selections, or rows not selected, below which a group's spread is taken from its rate alone


@dataclass(frozen=True)
class Precision:
    """How precise a gap is in the data at hand.

    Attributes
    ----------
    queries : int
        The number of queries at hand.
    freedom : float
        Degrees of freedom of the gap's standard error.
    rates : tuple of float
        Both groups' rates.
    rows : tuple of float
        Both groups' rows.
    weights : tuple of float
        What each group's r(1 − r) counts for in the gap's variance, if rows were independent.
    excess : float
        How many times larger the variance is than that.
    """

    queries: int
    freedom: float
    rates: tuple[float, float]
    rows: tuple[float, float]
    weights: tuple[float, float]
    excess: float

    @classmethod
    def of(
        cls,
        a: Array,
        b: Array,
        x_a: Array,
        x_b: Array,
        clusters: Sequence[NDArray[Any]],
        *,
        scope: str,
        queries: int,
        times: Array | None = None,
        apart: bool = True,
    ) -> Precision:
        """Take it from sums per list.

        Parameters
        ----------
        a, b : ndarray
            (L,): rows of each group in each list.
        x_a, x_b : ndarray
            (L,): the sum of their values, between 0 and 1 each.
        clusters : sequence of ndarray
            (L,) codes: lists with the same code may depend on each other. Of several clusterings the least precise
            counts.
        scope : str
            "within" lists, or "pooled".
        queries : int
            The number of queries at hand, those without the groups included.
        times : ndarray, optional
            (L,): for how many lists, all alike, each of the L stands.
        apart : bool
            Whether these are clusters by themselves.

        Returns
        -------
        Precision
            Not precise at all (no degrees of freedom) where a gap cannot be measured.
        """
        times = np.ones(len(a)) if times is None else times
        if scope == "within":
            kept = (a > 0) & (b > 0)
            a, b, x_a, x_b, times = a[kept], b[kept], x_a[kept], x_b[kept], times[kept]
            clusters = [code[kept] for code in clusters]
        rows = float(a @ times), float(b @ times)
        if not min(rows) > 0:
            return cls(queries, 0.0, (np.nan, np.nan), rows, (np.nan, np.nan), np.nan)
        if scope == "within":
            each = a * b / (a + b)
            parts, size = (each * x_a / a, each * x_b / b), each
            total = float(each @ times)
            weights = float((each**2 / a) @ times) / total**2, float((each**2 / b) @ times) / total**2
            rates = float(parts[0] @ times) / total, float(parts[1] @ times) / total
            sizes = (size, size)
        else:
            parts, sizes = (x_a, x_b), (a, b)
            weights = 1 / rows[0], 1 / rows[1]
            rates = float(x_a @ times) / rows[0], float(x_b @ times) / rows[1]
        spreads = [_by_cluster(parts, sizes, rates, code, times, apart=apart) for code in clusters]
        variance = max(spread[0] for spread in spreads)
        freedom = min(spread[1] for spread in spreads)
        plain = sum(weight * rate * (1 - rate) for weight, rate in zip(weights, rates, strict=True))
        seen = [min(rate, 1 - rate) * n for rate, n in zip(rates, rows, strict=True)]
        excess = variance / plain if plain > 0 else 1.0
        return cls(queries, freedom, rates, rows, weights, max(excess, 1.0) if min(seen) < FEW else excess)

    def error(self, gap: float) -> float:
        """Give the standard error when the first group's rate is ahead by ``gap``; NaN where that cannot be."""
        total = self.rows[0] + self.rows[1]
        level = (self.rates[0] * self.rows[0] + self.rates[1] * self.rows[1]) / total
        rates = level + gap * self.rows[1] / total, level - gap * self.rows[0] / total
        if min(rates) < 0:
            rates = (max(gap, 0.0), max(-gap, 0.0))
        elif max(rates) > 1:
            rates = (1 - max(-gap, 0.0), 1 - max(gap, 0.0))
        spread = sum(weight * rate * (1 - rate) for weight, rate in zip(self.weights, rates, strict=True))
        return math.sqrt(max(self.excess * spread, 0.0))

    def power(self, gap: float, queries: float, *, alpha: float = 0.05) -> float:
        """Give the probability that a gap of this size shows in so many queries, in the less favourable direction."""
        return min(self._power(gap, queries, alpha), self._power(-gap, queries, alpha))

    def _power(self, gap: float, queries: float, alpha: float) -> float:
        from scipy.special import stdtrit

        times = queries / self.queries
        freedom = (self.freedom + 1) * times - 1
        if not freedom > 0.5:
            return 0.0
        error = self.error(gap) / math.sqrt(times)
        if not error > 0:
            return 1.0
        limit, shift = float(-stdtrit(freedom, alpha / 2)), abs(gap) / error
        return beyond(freedom, shift, limit)


def _by_cluster(
    parts: tuple[Array, ...],
    sizes: tuple[Array, ...],
    rates: tuple[float, ...],
    code: NDArray[Any],
    times: Array,
    *,
    apart: bool,
) -> tuple[float, float]:
    """The variance of the difference of two rates over clusters, each left out in turn, and its degrees of freedom."""
    index = np.unique(code, return_inverse=True)[1]
    count = index.max(initial=-1) + 1
    moved, spread = np.zeros(count), np.zeros(count)
    alike = apart and count == len(code)  # what an entry stands for are clusters; else lists of one cluster
    inside, clusters = (np.ones(count), times) if alike else (times, np.ones(count))
    for part, size, rate, sign in zip(parts, sizes, rates, (1, -1), strict=True):
        own, total = np.bincount(index, size * inside), size @ times
        rest = total - own
        if not (rest > 0).all():
            return np.inf, 0.0
        moved = moved + sign * (np.bincount(index, part * inside) - rate * own) / rest
        spread = spread + own / total**2
    number = float(clusters @ (spread > 0))
    variance = (number - 1) / number * float((clusters * moved) @ moved)
    return variance, float((clusters @ spread) ** 2 / ((clusters * spread) @ spread)) - 1


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
