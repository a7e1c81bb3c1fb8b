"""Intervals that respect queries: rows of a query are dependent, queries are not.

Every measure here is a function of sums over queries (a ratio of two, or differences of such ratios), so the sums of
each query are taken once. The bootstrap draws queries with replacement, which is a matrix product of counts with those
sums; the analytic interval uses each query's influence on the estimate. Both are widened for few or unequal queries: by
the jackknife's standard error, which leaves out one query after the other, and by Student's t for the effective number
of queries in the rarest cell.

**Violations are absolute values**, and the usual intervals fail near 0: a resampled gap is almost never 0. But Γ is a
seminorm of the signed gaps g, so |Γ(ĝ) − Γ(g)| ≤ Γ(ĝ − g) for any number of groups and strata. The interval is
Γ(ĝ) ± c, cut at 0, with c the quantile of Γ(g* − ĝ) over resamples g*: honest at 0, and for one gap the interval of the
signed gap folded at 0. The four-fifths ratio is the same on the scale of logarithms, where it is minus the largest gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.interval_ends import METHODS, Interval, interval_of, student, t_over_normal, unseen
from evenrank.jackknife import parts_of, recomputed, spread_of
from evenrank.measures import Asked, MeasureLike, ask
from evenrank.query_sums import resampled_ratios
from evenrank.statistic import RankedQueries
from evenrank.threads import one_thread

__all__ = [
    "FEW",
    "METHODS",
    "REPLICATES",
    "Interval",
    "check_confidence",
    "check_replicates",
    "interval",
    "interval_of",
    "intervals",
    "student",
    "t_over_normal",
    "unseen",
]
REPLICATES = 2000
FEW = 20


def interval(
    scores: ArrayLike,
    data: RankingData,
    measure: MeasureLike,
    confidence: float = 0.95,
    method: str = "bootstrap",
    signed: bool = False,
    *,
    across: str = "mean",
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Measure scores, with a confidence interval over queries.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measure : str, Notion or callable
        Any measure of `er.measure`, such as "eop@3", or one of your own.
    confidence : float
        Between 0 and 1, ends excluded.
    method : str
        "bootstrap" over queries, or "analytic" (each query's influence, Student's t). A function of your own that gives
        one number is computed again without one of up to 100 parts of the queries at a time, whatever the method.
    signed : bool
        For a gap between two groups: the first group's rate minus the second's, in the order of ``data.group_names``.
    across : str
        How more than two groups are combined: "mean" over all pairs, or "max".
    replicates : int
        The number of resamples of the bootstrap.
    seed : int
        Seeds the resamples.

    Returns
    -------
    Interval
        The estimate and its interval.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores = er.FairLinearRanker(alpha=0.0).fit(data).predict(data)
    >>> gap = interval(scores, data, "dp@5", signed=True)
    >>> bool(gap.low < gap.estimate < gap.high < 0)     # the first group, the younger, is picked less often
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


@one_thread()
def intervals(
    scores: ArrayLike,
    data: RankingData,
    measures: Sequence[MeasureLike],
    *,
    confidence: float = 0.95,
    method: str = "bootstrap",
    signed: bool = False,
    across: str = "mean",
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Interval]:
    """Measure scores by several measures, whose intervals share one set of resamples.

    Parameters
    ----------
    scores, data, confidence, method, signed, across, replicates, seed
        As in `interval`.
    measures : sequence of str, Notion or callable
        The measures.

    Returns
    -------
    list of Interval
        One per measure, in the order given.
    """
    check_confidence(confidence)
    check_replicates(replicates)
    choose(method, METHODS, what="method")
    ranked = RankedQueries(scores, data)
    asked = [ask(measure) for measure in measures]
    if data.n_queries < 2:
        raise DataError(f"an interval over queries needs at least two; the data has {data.n_queries}.")
    for name, item in asked:
        if signed and (item.measure.kind != "gap" or item.measure.notion is None or data.n_groups != 2):
            raise ConfigError(
                f"signed=True is for violations with two groups; got {name!r} with {data.n_groups} groups."
            )
    results: dict[int, Interval] = {
        number: _alone(ranked, *each, confidence, seed) for number, each in enumerate(asked) if _stands_alone(each[1])
    }
    by_sums = [number for number in range(len(asked)) if number not in results]
    for batch in ranked.batches([[asked[number]] for number in by_sums], replicates=replicates):
        numbers = [by_sums[place] for place in batch]
        stats = ranked.statistics([asked[number] for number in numbers], across=across)
        for stat in stats:
            if 0 < stat.queries < FEW:
                which = "bear on it" if stat.pairs is None else "have an item of the rarest cell"
                warnings.warn(
                    f"{stat.name}: queries that {which}: only {stat.queries}; its interval is rough",
                    DataWarning,
                    stacklevel=3,
                )
        drawn: Sequence[NDArray[np.float64] | None] = [None] * len(stats)
        if method == "bootstrap":
            finite = [number for number, stat in enumerate(stats) if np.isfinite(stat.sums.top).all()]
            sums = [stats[number].sums for number in finite]
            samples = resampled_ratios(sums, replicates=replicates, seed=seed) if sums else []
            drawn = [samples[finite.index(number)] if number in finite else None for number in range(len(stats))]
        for number, stat, sample in zip(numbers, stats, drawn, strict=True):
            results[number] = interval_of(stat, sample, confidence=confidence, signed=signed, seed=seed)
    return [results[number] for number in range(len(asked))]


def _stands_alone(asked: Asked) -> bool:
    """Whether a measure is neither a mean over queries nor made of ratios of sums."""
    return bool(asked.measure.no_interval) or asked.measure.kind == "pooled"


def _alone(ranked: RankedQueries, name: str, asked: Asked, confidence: float, seed: int) -> Interval:
    """The interval of a function of the user's own, by the jackknife; ours of this kind have none."""
    measure, data = asked.measure, ranked.data
    if measure.no_interval:
        ev = ranked.evaluation.with_options(measure.chosen(asked.options))
        value = float(measure.value(ev, asked.k))
        return Interval(name, value, np.nan, np.nan, confidence, "none", data.n_queries, measure.no_interval)
    (value,), without = recomputed(ranked.evaluation, asked, parts_of(data, seed))
    error, parts = spread_of(without[:, 0])
    reason = ""
    if np.isfinite(value) and not error > 0:
        reason = "it is not defined without some queries" if np.isnan(error) else "it does not change with the queries"
    reach = student(parts - 1, confidence) * error if error > 0 and np.isfinite(value) else np.nan
    return Interval(name, float(value), value - reach, value + reach, confidence, "jackknife", data.n_queries, reason)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    check_number(confidence, "confidence", above=0, below=1)


def check_replicates(replicates: object) -> None:
    """Refuse a number of resamples that is not a whole number ≥ 1."""
    check_number(replicates, "replicates", least=1, whole=True)
