"""AWRF and skew of each list, from the sums of a summary: what a list's groups got beside their shares of the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.summary import Summary
from evenrank.confidence import Interval, student
from evenrank.inference import Clustering
from evenrank.measures import MeasureAt
from evenrank.measures.evaluation import divide
from evenrank.measures.exposure_shares import awrf
from evenrank.measures.prefixes import extremes, skew

# By their names in the registry. A summary holds exposure with the discount 1/log2(1 + rank).
# Each with the ends of its range.
RANGES = {
    "awrf(discount=log2)": (1 - np.log(2), 1.0),
    "max_skew": (0.0, np.inf),
    "min_skew": (-np.inf, 0.0),
}
SHARES = tuple(RANGES)
VALUE_OF = dict.fromkeys(SHARES, "top") | {SHARES[0]: "exposure"}
CHUNK = 1 << 20  # lists times groups that are worked on at a time
CONSTANT = 1e-12  # variance of what does not vary but for rounding


def share_intervals(
    summary: Summary, clusters: Sequence[NDArray[np.int64]], confidence: float
) -> dict[tuple[str, int], Interval]:
    """Average AWRF and skew over lists, with intervals.

    Parameters
    ----------
    summary : Summary
        The lists.
    clusters : sequence of ndarray
        The cluster of each list, (q,), by one clustering or two, of which the less certain answer counts; empty if
        there are to be no intervals.
    confidence : float
        Of the intervals.

    Returns
    -------
    dict
        (measure, k) → its interval, NaN if there is none; empty if rows have weights, which these measures do not know.
    """
    if summary.weighted and not (summary.count == summary.weight).all():
        return {}
    ranges = dict(RANGES)
    if summary.group_counts.sum() < summary.total(summary.lengths):  # items of unknown group take places of the top k
        ranges["max_skew"] = (-np.inf, np.inf)
    found = {}
    for cut, k in enumerate(summary.ks):
        for name, values in list_shares(summary, cut).items():
            interval = _interval(str(MeasureAt(name, k)), values, clusters, confidence, ranges[name], summary)
            found[name, k] = interval
    return found


def list_shares(summary: Summary, cut: int) -> dict[str, NDArray[np.float64]]:
    """Compute AWRF, the highest and the lowest skew of each list, (q,), at one of the summary's cut-offs.

    The target of a list is its own shares of items of known group; NaN where there are none.
    """
    groups, lists = summary.n_groups, summary.held
    places = np.minimum(summary.ks[cut], summary.lengths)
    out = {name: np.full(lists, np.nan) for name in SHARES if VALUE_OF[name] in summary.values}
    step = max(1, CHUNK // groups)
    for start in range(0, lists, step):
        stop = min(lists, start + step)
        cells = slice(*np.searchsorted(summary.key, [start * 2 * groups, stop * 2 * groups]))
        cell = (summary.query[cells] - start) * groups + summary.group[cells]

        def table(values: NDArray[Any], cell: NDArray[np.int64] = cell, n: int = stop - start) -> NDArray[np.float64]:
            return np.asarray(np.bincount(cell, values, minlength=n * groups), float).reshape(n, groups)

        items = table(summary.count[cells])
        top, exposure = (table(summary.sums[value, cut, cells]) for value in (0, 1))
        target = divide(items, items.sum(axis=1, keepdims=True))
        lowest, highest = extremes(skew(top.T, places[start:stop], target.T))
        for name, values in zip(SHARES, (awrf(exposure, target), highest, lowest), strict=True):
            if name in out:
                out[name][start:stop] = values
    return out


def _interval(
    name: str,
    values: NDArray[np.float64],
    clusters: Sequence[NDArray[np.int64]],
    confidence: float,
    limits: tuple[float, float],
    summary: Summary,
) -> Interval:
    """Give the mean of the lists that have a value, with Student's t over clusters, within the measure's range."""
    exists = np.flatnonzero(~np.isnan(values))
    values = values[exists]
    times = None if summary.times is None else summary.times[exists]
    number = len(values) if times is None else round(float(times.sum()))
    mean = float(values.sum() if times is None else values @ times) / number if number else np.nan
    reaches = []
    for codes in clusters if np.isfinite(mean) else ():
        clustering = Clustering.of(codes[exists], times, apart=not summary.clusters)
        moved = clustering.sums(values - mean) / number
        count = clustering.number
        variance = clustering.dot(moved, moved) * count / max(1, count - 1)
        if count > 1 and variance > CONSTANT:
            reaches.append(student(count - 1, confidence) * np.sqrt(variance))
    if reaches:
        least, most = limits
        low, high = float(max(least, mean - max(reaches))), float(min(most, mean + max(reaches)))
        return Interval(name, mean, low, high, confidence, "analytic", number)
    reason = "all lists have the same value, or there is one only"
    if not number:
        reason = "no list has a value"
    elif not np.isfinite(mean):
        reason = "the value of some lists is infinite"
    elif not clusters:
        reason = "items recur, so that lists are not independent"
    return Interval(name, mean, np.nan, np.nan, confidence, "none", number, reason)
