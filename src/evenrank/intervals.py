"""Intervals that respect queries: rows of a query are dependent, queries are not.

Every measure here is a function of sums over queries (a ratio of two, or differences of such ratios), so the sums of
each query are taken once. The bootstrap draws queries with replacement, which is a matrix product of counts with those
sums; the analytic interval uses each query's influence on the estimate. Both are widened for few or unequal queries: by
the jackknife's standard error, which leaves each query out in turn, and by Student's t for the effective number of
queries in the rarest cell.

**Violations are absolute values**, and the usual intervals fail near 0: a resampled gap is almost never 0. But Γ is a
seminorm of the signed gaps g, so |Γ(ĝ) − Γ(g)| ≤ Γ(ĝ − g) for any number of groups and strata. The interval is
Γ(ĝ) ± c, cut at 0, with c the quantile of Γ(g* − ĝ) over resamples g*: honest at 0, and for one gap the interval of the
signed gap folded at 0. The four-fifths ratio is the same on the scale of logarithms, where it is minus the largest gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.query_sums import TINY, Statistic, by_id, resampled_sums, stacked, statistics, unstacked

METHODS = ("bootstrap", "analytic")
REPLICATES = 2000
NORMALS = 20_000
FEW = 20
LEAST_FREEDOM = 1e-6  # a cell that stands in one query says nothing about others
CONSTANT = 1e-24  # a variance of rounding errors


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; ``queries`` is how many bear on it (those of its rarest cell)."""

    measure: str
    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    queries: int

    def __iter__(self) -> Any:
        return iter((self.estimate, self.low, self.high))


def interval(
    scores: ArrayLike,
    data: RankingData,
    measure: str,
    confidence: float = 0.95,
    method: str = "bootstrap",
    signed: bool = False,
    *,
    across: str = "mean",
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """A measure of given scores with its confidence interval over queries.

    Parameters
    ----------
    measure : any of `er.measure`'s, as "eop@3"
    method : "bootstrap" over queries, or "analytic" (each query's influence, Student's t)
    signed : for a violation with two groups, the first group's rate minus the second's, in ``data.group_names`` order

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores = er.FairLinearRanker(alpha=0.0).fit(data).predict(data)
    >>> found = interval(scores, data, "dp@5", signed=True)
    >>> bool(found.low < found.estimate < found.high < 0)     # the first group, the younger, is picked less often
    True
    """
    return intervals(
        scores,
        data,
        [measure],
        confidence=confidence,
        method=method,
        signed=signed,
        across=across,
        replicates=replicates,
        seed=seed,
    )[0]


def intervals(
    scores: ArrayLike,
    data: RankingData,
    measures: Sequence[str],
    *,
    confidence: float = 0.95,
    method: str = "bootstrap",
    signed: bool = False,
    across: str = "mean",
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Interval]:
    """`interval` of several measures, which share one set of resamples."""
    check_confidence(confidence)
    check_replicates(replicates)
    choose(method, METHODS, what="method")
    stats = statistics(scores, data, measures, across=across)
    if data.n_queries < 2:
        raise DataError(f"an interval over queries needs at least two; the data has {data.n_queries}.")
    for stat in stats:
        if signed and (stat.kind != "gap" or data.n_groups != 2):
            raise ConfigError(
                f"signed=True is for violations with two groups; got {stat.name!r} with {data.n_groups} groups."
            )
        if 0 < stat.queries < FEW:
            which = "bear on it" if stat.pairs is None else "have an item of the rarest cell"
            warnings.warn(
                f"{stat.name}: queries that {which}: only {stat.queries}; its interval is rough",
                DataWarning,
                stacklevel=3,
            )
    drawn: Sequence[NDArray[np.float64] | None] = [None] * len(stats)
    if method == "bootstrap":
        table = by_id(stacked(stats), data)
        drawn = unstacked(stats, resampled_sums(table, replicates=replicates, seed=seed))
    return [
        interval_of(stat, sample, confidence=confidence, signed=signed, seed=seed)
        for stat, sample in zip(stats, drawn, strict=True)
    ]


def interval_of(
    stat: Statistic,
    sample: NDArray[np.float64] | None,
    *,
    confidence: float = 0.95,
    signed: bool = False,
    seed: int = 0,
) -> Interval:
    """The interval of one statistic: by bootstrap from resampled gaps (replicates, J), else analytic."""
    method = METHODS[0] if sample is not None else METHODS[1]
    if stat.queries == 0 or not np.isfinite(stat.estimates).all():
        return Interval(stat.name, np.nan, np.nan, np.nan, confidence, method, stat.queries)
    absolute = stat.pairs is not None and not signed
    estimate = float(stat.value(stat.estimates) if absolute else stat.estimates.mean())
    floor = -1.0 if signed else 0.0
    if stat.freedom < LEAST_FREEDOM:
        low, high = floor, 1.0
    elif stat.kind == "ratio" and estimate == 0:
        # A group never selected: resampling cannot select it either.
        highest = np.nanmax(stat.ratios(stat.top.sum(axis=0), stat.bottom.sum(axis=0)))
        low, high = 0.0, unseen(stat.queries, confidence) / highest
    elif not np.diag(stat.covariance).max() > CONSTANT:
        reach = unseen(stat.queries, confidence)
        low, high = estimate - reach, estimate + reach
    elif stat.kind == "ratio":
        factor = np.exp(min(_reach(stat, sample, confidence, seed), -np.log(TINY)))
        low, high = estimate / factor, estimate * factor
    elif absolute:
        reach = _reach(stat, sample, confidence, seed)
        low, high = estimate - reach, estimate + reach
    elif sample is None:
        reach = float(np.sqrt(stat.covariance.mean())) * student(stat.freedom, confidence)
        low, high = estimate - reach, estimate + reach
    else:
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        low, high = estimate + np.nanquantile(_widened(stat, sample, confidence).mean(axis=1), ends)
    return Interval(
        stat.name, estimate, float(max(floor, low)), float(min(1.0, high)), confidence, method, stat.queries
    )


def _reach(stat: Statistic, sample: NDArray[np.float64] | None, confidence: float, seed: int) -> float:
    """The quantile of Γ(deviations of the gaps)."""
    assert stat.pairs is not None
    if sample is not None:
        deviations = _widened(stat, sample, confidence)
    else:
        covariance = stat.covariance
        if len(covariance) == 1:
            return float(np.sqrt(covariance[0, 0]) * stat.pairs.weight[0]) * student(stat.freedom, confidence)
        values, vectors = np.linalg.eigh(covariance)
        # The symmetric root, without directions that only rounding fills, is the same however eigh turns its vectors.
        kept = np.sqrt(np.where(values > 1e-12 * values[-1], values, 0.0))
        root = vectors * kept @ vectors.T
        deviations = _normals(len(root), seed) @ root * t_over_normal(stat.freedom, confidence)
    return float(np.nanquantile(stat.pairs.value(deviations.T), confidence))


@lru_cache(maxsize=8)
def _normals(columns: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((NORMALS, columns))


def unseen(queries: int, confidence: float) -> float:
    """How large a share of all queries can differ from those seen, if all of these were alike.

    With a larger share, so many queries without one that differs would have a chance below (1 − confidence) / 2.

    >>> round(unseen(100, 0.95), 3)
    0.036
    """
    return float(1 - ((1 - confidence) / 2) ** (1 / queries))


def _widened(stat: Statistic, sample: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Deviations of resampled gaps from the estimate, widened to the jackknife's error and Student's t, (draws, J)."""
    plain = (stat.influence() ** 2).sum(axis=0)
    ratio = np.diag(stat.covariance) / np.where(plain > 0, plain, 1.0)
    scale = np.where(plain > 0, np.sqrt(ratio), 1.0)
    return np.asarray((sample - stat.estimates) * (scale * t_over_normal(stat.freedom, confidence)))


def student(freedom: float, confidence: float) -> float:
    """The two-sided limit of Student's t.

    >>> round(student(10, 0.95), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def t_over_normal(freedom: float, confidence: float = 0.95) -> float:
    """How much wider Student's t is than the normal."""
    return student(freedom, confidence) / student(np.inf, confidence)


def check_confidence(confidence: float) -> None:
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, ends excluded; got {confidence!r}.")


def check_replicates(replicates: object) -> None:
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 1:
        raise ConfigError(f"replicates must be a whole number ≥ 1; got {replicates!r}.")
