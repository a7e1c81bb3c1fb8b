"""The change of a measure of all lists together, by the jackknife over lists or over clusters of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError
from evenrank.jackknife import parts_of, recomputed, spread_of, without_each
from evenrank.measures import Asked
from evenrank.statistic import RankedQueries

Change = tuple[float, float, float, float, float]


def changed(
    first: RankedQueries,
    second: RankedQueries,
    name: str,
    asked: Asked,
    codes: Sequence[NDArray[np.int64]],
    alpha: float,
    across: str,
) -> Change:
    """Compare two rankings by a measure that is no mean over queries and no gap of a notion.

    Near a boundary (two values close to fair) the interval is wider than it need be, not narrower: the size of a gap
    moves less than the gap.

    Parameters
    ----------
    first, second : RankedQueries
        The rankings.
    name : str
        What the measure is called.
    asked : Asked
        The measure.
    codes : sequence of ndarray
        The cluster of each row, (n,), per clustering; where there are several, the less certain answer counts.
    alpha : float
        1 − confidence.
    across : str
        How more than two groups are combined.

    Returns
    -------
    tuple of float
        The two values, the ends of the interval of their difference, and the p-value; NaN where there is none.
    """
    data = first.data
    parts = [_of_queries(code, first, name) for code in codes]
    if asked.measure.sums is not None:
        stats = [ranked.statistics([(name, asked)], across=across)[0] for ranked in (first, second)]
        before, after = (float(stat.value(stat.estimates)) for stat in stats)
        by_id = [part[data.sorted_queries] for part in parts]
        moves = [without_each(stats[1], part) - without_each(stats[0], part) for part in by_id]
    else:
        if asked.measure.no_interval:
            values = (ranked.evaluation for ranked in (first, second))
            options = asked.measure.chosen(asked.options)
            before, after = (float(asked.measure.value(ev.with_options(options), asked.k)) for ev in values)
            return before, after, np.nan, np.nan, np.nan
        dealt = [_dealt(part, parts_of(data)) for part in parts]
        whole: Any = ()
        moves = []
        for part in dealt:
            whole, without = recomputed(first.evaluation, asked, part, second.evaluation)
            moves.append(without[:, 1] - without[:, 0])
        before, after = whole.tolist()
    return _test(before, after, moves, alpha)


def _test(before: float, after: float, moves: Sequence[NDArray[np.float64]], alpha: float) -> Change:
    from scipy.special import stdtr, stdtrit

    difference = after - before
    low = high = difference
    p_value = 0.0
    for move in moves:
        error, count = spread_of(move)
        if not np.isfinite(error) or not np.isfinite(difference):
            return before, after, np.nan, np.nan, np.nan
        if error == 0:
            p_value = max(p_value, 1.0 if difference == 0 else 0.0)
            continue
        reach = float(stdtrit(count - 1, 1 - alpha / 2)) * error
        low, high = min(low, difference - reach), max(high, difference + reach)
        p_value = max(p_value, float(2 * stdtr(count - 1, -abs(difference) / error)))
    return before, after, low, high, p_value


def _of_queries(code: NDArray[np.int64], ranked: RankedQueries, name: str) -> NDArray[np.int64]:
    """The cluster of each query, numbered from 0, (q,)."""
    starts = ranked.data.query_ptr[:-1]
    if (np.minimum.reduceat(code, starts) != np.maximum.reduceat(code, starts)).any():
        raise ConfigError(f"{name!r} is compared list by list; cluster must hold whole queries. Leave it out here.")
    return np.unique(code[starts], return_inverse=True)[1]


def _dealt(cluster: NDArray[np.int64], part: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parts that hold whole clusters: that of a cluster's first query, numbered from 0, (q,)."""
    _, first = np.unique(cluster, return_index=True)
    return np.unique(part[first][cluster], return_inverse=True)[1]
