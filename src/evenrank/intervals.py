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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.query_sums import resampled_ratios
from evenrank.statistic import TINY, RankedQueries, Statistic

METHODS = ("bootstrap", "analytic")
REPLICATES = 2000
NORMALS = 20_000
FEW = 20
LEAST_FREEDOM = 1e-6  # a cell that stands in one query says nothing about others
CONSTANT = 1e-24  # a variance of rounding errors


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    measure : str
        The measure.
    estimate, low, high : float
        Its value and the ends of the interval; NaN where it is not defined.
    confidence : float
        The confidence of the interval.
    method : str
        "bootstrap" or "analytic".
    queries : int
        The number of queries that bear on the estimate: those with an item of the rarest cell.
    """

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
    """Measure scores, with a confidence interval over queries.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measure : str
        Any measure of `er.measure`, such as "eop@3".
    confidence : float
        Between 0 and 1, ends excluded.
    method : str
        "bootstrap" over queries, or "analytic" (each query's influence, Student's t).
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
    """Measure scores by several measures, whose intervals share one set of resamples.

    Parameters
    ----------
    scores, data, confidence, method, signed, across, replicates, seed
        As in `interval`.
    measures : sequence of str
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
    names = list(measures)
    results: list[Interval] = []
    for batch in ranked.batches([[name] for name in names], replicates=replicates):
        stats = ranked.statistics([names[i] for i in batch], across=across)
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
            drawn = resampled_ratios([stat.sums for stat in stats], replicates=replicates, seed=seed)
        results += [
            interval_of(stat, sample, confidence=confidence, signed=signed, seed=seed)
            for stat, sample in zip(stats, drawn, strict=True)
        ]
    return results


def interval_of(
    stat: Statistic,
    sample: NDArray[np.float64] | None,
    *,
    confidence: float = 0.95,
    signed: bool = False,
    seed: int = 0,
) -> Interval:
    """Compute the interval of one statistic.

    Parameters
    ----------
    stat : Statistic
        The statistic.
    sample : ndarray or None
        Resampled ratios, (r, replicates); None computes the interval analytically.
    confidence, signed, seed
        As in `interval`.

    Returns
    -------
    Interval
        NaN throughout where the statistic is not defined.
    """
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
        highest = np.nanmax(stat.sums.ratios)
        low, high = 0.0, unseen(stat.queries, confidence) / highest
    elif not stat.variances.max() > CONSTANT:
        reach = unseen(stat.queries, confidence)
        low, high = estimate - reach, estimate + reach
    elif stat.kind == "ratio":
        factor = np.exp(min(_reach(stat, sample, confidence, seed), -np.log(TINY)))
        low, high = estimate / factor, estimate * factor
    elif absolute:
        reach = _reach(stat, sample, confidence, seed)
        low, high = estimate - reach, estimate + reach
    elif sample is None:
        root = stat.covariance_root().mean(axis=0)
        reach = float(np.sqrt(root @ root)) * student(stat.freedom, confidence)
        low, high = estimate - reach, estimate + reach
    else:
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        moves = (stat.gaps(sample) - stat.estimates[:, None]) * _widening(stat, confidence)[:, None]
        low, high = estimate + np.nanquantile(moves.mean(axis=0), ends)
    return Interval(
        stat.name, estimate, float(max(floor, low)), float(min(1.0, high)), confidence, method, stat.queries
    )


def _reach(stat: Statistic, sample: NDArray[np.float64] | None, confidence: float, seed: int) -> float:
    """The quantile of Γ(deviations of the gaps)."""
    assert stat.pairs is not None
    if sample is None and len(stat.estimates) == 1:
        return float(np.sqrt(stat.variances[0]) * stat.pairs.weight[0]) * student(stat.freedom, confidence)
    sizes = _normal_sizes(stat, confidence, seed) if sample is None else _resampled_sizes(stat, sample, confidence)
    return float(np.nanquantile(sizes, confidence))


def _resampled_sizes(stat: Statistic, sample: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Γ of the deviations of resampled gaps from the estimates, widened, (replicates,)."""
    assert stat.pairs is not None
    widening = _widening(stat, confidence)
    sizes = np.empty(sample.shape[1])
    for part in stat.few_at_a_time(len(sizes)):
        moves = stat.gaps(sample[:, part])
        moves -= stat.estimates[:, None]
        moves *= widening[:, None]
        sizes[part] = stat.pairs.value(moves)
    return sizes


def _normal_sizes(stat: Statistic, confidence: float, seed: int) -> NDArray[np.float64]:
    """Γ of normal deviations that have the jackknife's covariance, widened by Student's t, (`NORMALS`,)."""
    assert stat.pairs is not None
    vectors, lengths, _ = np.linalg.svd(stat.covariance_root(), full_matrices=False)
    # The symmetric root, without directions that only rounding fills, is the same however the vectors turn.
    kept = np.where(lengths**2 > 1e-12 * lengths[0] ** 2, lengths, 0.0) * t_over_normal(stat.freedom, confidence)
    rng = np.random.default_rng(seed)
    sizes = np.empty(NORMALS)
    for part in stat.few_at_a_time(NORMALS):
        normals = rng.standard_normal((len(sizes[part]), len(vectors)))
        sizes[part] = stat.pairs.value((vectors * kept) @ (normals @ vectors).T)
    return sizes


def unseen(queries: int, confidence: float) -> float:
    """Compute how large a share of all queries may differ, although all those in the data were alike.

    Were the share larger, this number of queries, none of which differs, would have a chance below
    (1 − confidence) / 2.

    Parameters
    ----------
    queries : int
        The number of queries in the data.
    confidence : float
        As in `interval`.

    Returns
    -------
    float
        The share.

    Examples
    --------
    >>> round(unseen(100, 0.95), 3)
    0.036
    """
    return float(1 - ((1 - confidence) / 2) ** (1 / queries))


def _widening(stat: Statistic, confidence: float) -> NDArray[np.float64]:
    """By how much resampled deviations of the gaps are widened, to the jackknife's error and Student's t, (J,)."""
    plain = stat.squares(left_out=False)
    ratio = stat.variances / np.where(plain > 0, plain, 1.0)
    return np.asarray(np.where(plain > 0, np.sqrt(ratio), 1.0) * t_over_normal(stat.freedom, confidence))


def student(freedom: float, confidence: float) -> float:
    """Compute the two-sided limit of Student's t.

    Parameters
    ----------
    freedom, confidence : float
        Degrees of freedom, and the probability within the limit.

    Examples
    --------
    >>> round(student(10, 0.95), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def t_over_normal(freedom: float, confidence: float = 0.95) -> float:
    """Compute how many times wider Student's t is than the normal."""
    return student(freedom, confidence) / student(np.inf, confidence)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    check_number(confidence, "confidence", above=0, below=1)


def check_replicates(replicates: object) -> None:
    """Refuse a number of resamples that is not a whole number ≥ 1."""
    check_number(replicates, "replicates", least=1, whole=True)
