"""`interval_of`: the ends of the interval of one statistic, from resamples or from each query's influence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.statistic import TINY, Statistic

METHODS = ("bootstrap", "analytic")
NORMALS = 20_000
MOST_SKEW = 0.5  # a few queries with next to all of the deviation show no skewness that could be trusted
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
        "bootstrap", "analytic", "jackknife" (a function of the user's own), or "none" where ``reason`` says why.
    queries : int
        The number of queries that bear on the estimate: those with an item of the rarest cell.
    reason : str
        Why there is no interval, if there is none although there is an estimate.
    """

    measure: str
    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    queries: int
    reason: str = ""

    def __iter__(self) -> Any:
        return iter((self.estimate, self.low, self.high))


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
        endless = stat.pairs is None and stat.queries > 0 and np.isinf(stat.sums.total).any()
        estimate = float(stat.sums.total[0]) if endless else np.nan
        reason = "a group or a stratum has nothing to compare"
        if stat.queries == 0:
            reason = "no query has a value"
        elif endless:
            reason = "the value of some queries is infinite"
        return Interval(stat.name, estimate, np.nan, np.nan, confidence, method, stat.queries, reason)
    absolute = stat.pairs is not None and not signed
    estimate = float(stat.value(stat.estimates) if absolute else stat.estimates.mean())
    floor, ceiling = (-1.0, 1.0) if signed else stat.limits
    if not np.isfinite([floor, ceiling]).all() and (reason := _without_limits(stat)):
        return Interval(stat.name, estimate, np.nan, np.nan, confidence, method, stat.queries, reason)
    if stat.freedom < LEAST_FREEDOM:
        low, high = floor, ceiling
    elif stat.kind == "ratio" and estimate == 0:
        if np.nanmax(stat.sums.ratios) > 1:
            reason = "a group has nothing at all, and no query shows how much it may have"
            return Interval(stat.name, 0.0, np.nan, np.nan, confidence, method, stat.queries, reason)
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
        reach = float(np.sqrt(root @ root)) * student(stat.freedom, confidence) * _for_skew(stat, confidence)
        low, high = estimate - reach, estimate + reach
    else:
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        widening = _widening(stat, confidence) * _for_skew(stat, confidence)
        moves = (stat.gaps(sample) - stat.estimates[:, None]) * widening[:, None]
        low, high = estimate + np.nanquantile(moves.mean(axis=0), ends)
    return Interval(
        stat.name, estimate, float(max(floor, low)), float(min(ceiling, high)), confidence, method, stat.queries
    )


def _without_limits(stat: Statistic) -> str:
    """Why a measure that may have any value has no interval; empty if it has one."""
    if stat.freedom < LEAST_FREEDOM:
        return "one query has all the weight"
    if not stat.variances.max() > CONSTANT * max(1.0, float(np.abs(stat.estimates).max()) ** 2):
        return "all queries have the same value, which says nothing about how far others may be from it"
    return ""


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


def _for_skew(stat: Statistic, confidence: float) -> float:
    """By how much the interval of a mean is widened where queries' values are skewed; 1 for a gap of groups.

    Student's t covers less than it says by 2 z φ(z) (γ² (z⁴ + 2 z² − 3) / 18 − κ (z² − 3) / 12) / n, where γ is the
    skewness and κ the excess kurtosis of the values (Hall, The Bootstrap and Edgeworth Expansion, 1992, section 2.6).
    """
    if stat.pairs is not None:
        return 1.0
    sums, times = np.zeros(5), stat.sums.weights.times
    sums[0] = stat.sums.weights.queries_with(stat.used)
    for start, table in stat.influence():
        for power in range(1, 5):
            each = table**power
            sums[power] += (each if times is None else each * times[start : start + table.shape[1]]).sum()
    number, spread = max(sums[0], 1.0), sums[2] / max(sums[0], 1.0)
    if number < 3 or not spread > 0:
        return 1.0
    skewness, kurtosis = sums[3] / number / spread**1.5, sums[4] / number / spread**2 - 3
    z = student(np.inf, confidence)
    lacking = skewness**2 * (z**4 + 2 * z**2 - 3) / 18 - kurtosis * (z**2 - 3) / 12
    return 1 + min(max(float(lacking / number), 0.0), MOST_SKEW)


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
