"""`certified`: a limit for the gap on new queries that rests on independent queries alone.

With a_i the selected and b_i all items of query i in a cell, over the longest list, Z_i = a_i − γ b_i are independent
with mean 0 and range at most 1. So an inequality for ΣZ_i, divided by the observed Σb_i, bounds the cell's rate, for
any selection rule and for lists of any lengths up to the longest. Where rows have weights, a list is as long as its
weights sum to.

Two statements, not to be confused: the gap of the *population* (all queries there will ever be), and the gap that will
be seen in the *next N* queries, which strays from the population's as the one at hand does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures import MeasureLike, ask
from evenrank.query_sums import Sums
from evenrank.statistic import Statistic, statistics

METHODS = ("bernstein", "hoeffding")
GRID = 2001  # rates that are tried, from 0 to 1


@dataclass(frozen=True)
class Certificate:
    """With probability 1 − δ over the queries, the gap of the population, or of the next N, is at most ``bound``.

    Each certificate holds with this probability; several at once only with 1 − δ times their number.

    Attributes
    ----------
    measure : str
        The gap's name.
    estimate : float
        The gap in the data.
    bound : float
        The limit; 1 or more says nothing.
    delta : float
        The probability with which it may fail.
    method : str
        "bernstein" or "hoeffding".
    queries : int
        The number of queries it rests on.
    longest : float
        The longest list that it allows, in items; in weight where rows have weights.
    assumed : bool
        Whether that is only the longest list in the data: the bound then holds on condition that none is longer.
    next_queries : int or None
        The number of further queries whose gap it limits; None for the gap of the population.
    """

    measure: str
    estimate: float
    bound: float
    delta: float
    method: str
    queries: int
    longest: float
    assumed: bool = False
    next_queries: int | None = None

    @property
    def vacuous(self) -> bool:
        """Whether the bound is 1 or more and says nothing."""
        return not self.bound < 1

    @property
    def condition(self) -> str:
        """What it needs, in words."""
        longer = f"no list is longer than {self.longest:g}" + (", the longest seen" if self.assumed else "")
        return f"queries are independent, none was used to train the ranker, and {longer}"

    def __str__(self) -> str:
        where = "" if self.next_queries is None else f" in the next {self.next_queries:,} queries"
        limit = f"at most {self.bound:.3f}{where} with confidence {1 - self.delta:.0%}"
        return f"{self.measure}: {self.estimate:.3f} seen, {limit}" + (" (says nothing)" if self.vacuous else "")


def certified(
    scores: ArrayLike,
    data: RankingData,
    measure: MeasureLike,
    delta: float = 0.05,
    *,
    method: str = "bernstein",
    longest: float | None = None,
    next_queries: int | None = None,
    across: str = "mean",
) -> Certificate:
    """Compute an upper limit for the gap on new queries, from queries that played no part in training.

    The limit holds with probability 1 − δ for this measure alone. For m measures at once, give δ/m.

    Parameters
    ----------
    scores, data, across
        As in `evenrank.interval`.
    measure : str or Notion
        A gap such as "eop@3" or "exposure_gap@3".
    delta : float
        The limit may fail with this probability.
    method : str
        "bernstein" (uses the observed variance; better with many queries) or "hoeffding".
    longest : float, optional
        The longest list there can be: in items, or in the sum of its weights where rows have a sample weight. None
        takes the longest in the data; the bound then holds on condition that none is longer.
    next_queries : int, optional
        Bound the gap that will be seen in so many further queries; None bounds the gap of the population.

    Returns
    -------
    Certificate
        The gap in the data and the limit.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> pool = er.datasets.german_credit_folds(data)
    >>> ranker, unseen = er.FairLinearRanker("dp", alpha=0.1).fit(data.take(pool < 3)), data.take(pool >= 3)
    >>> print(certified(ranker.predict(unseen), unseen, "dp@5"))
    dp@5: 0.047 seen, at most 0.377 with confidence 95%
    """
    check_number(delta, "delta", above=0, below=1)
    choose(method, METHODS, what="method")
    name, asked = ask(measure)
    if asked.measure.kind != "gap" or asked.measure.notion is None:
        raise ConfigError(f"a certified bound is for violations and exposure gaps; got {name!r}.")
    seen = longest_list(data)
    if longest is not None:
        check_number(longest, "longest", above=0)
        if longest < seen * (1 - 1e-12):
            raise ConfigError(f"longest must be at least the longest list, {seen:g}; got {longest:g}.")
    if next_queries is not None:
        check_number(next_queries, "next_queries", least=1, whole=True)
    (stat,) = statistics(scores, data, [measure], across=across)
    return certify(
        stat, delta, method=method, longest=longest or seen, assumed=longest is None, next_queries=next_queries
    )


def longest_list(data: RankingData) -> float:
    """Give the length of the longest list: its items, or the sum of their weights where rows have weights.

    Parameters
    ----------
    data : RankingData
        The rows.

    Returns
    -------
    float
        The length.
    """
    if data.sample_weight is None:
        return float(data.lengths.max())
    return float(np.add.reduceat(data.sample_weight, data.query_ptr[:-1]).max())


def certify(
    stat: Statistic,
    delta: float,
    *,
    method: str = "bernstein",
    longest: float,
    assumed: bool = False,
    next_queries: int | None = None,
) -> Certificate:
    """Compute `certified` from sums that were taken before.

    Parameters
    ----------
    stat : Statistic
        The gap, of queries that played no part in training.
    delta, method, next_queries
        As in `certified`.
    longest : float
        The longest list there can be; see `longest_list`.
    assumed : bool
        Whether that is only the longest list in the data.

    Returns
    -------
    Certificate
        The gap and its limit.
    """
    assert stat.pairs is not None
    if next_queries is None:
        low, high = cell_limits(stat, delta, method, longest)
    else:
        low, high = next_limits(stat, delta, method, longest, next_queries)
    estimate = float(stat.value(stat.estimates))
    bound = math.nan if stat.pairs.missing else _largest(stat.pairs, low, high)
    queries = stat.sums.weights.n_queries
    return Certificate(stat.name, estimate, bound, delta, method, queries, longest, assumed, next_queries)


def cell_limits(
    stat: Statistic, delta: float, method: str, length: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute limits that hold for all compared cells' rates at once with probability 1 − δ.

    Parameters
    ----------
    stat, delta, method
        As for `certify`.
    length : float
        The longest list there can be.

    Returns
    -------
    tuple of ndarray
        Lower and upper limits, (cells,) each; 0 and 1 for cells that are not compared.
    """
    low, high = np.zeros(stat.sums.weights.width), np.ones(stat.sums.weights.width)
    rates = np.linspace(0, 1, GRID)
    keeps = _plausible(stat, rates, delta / max(1, len(stat.used)), method, length)
    some = keeps.any(axis=1)
    first, last = keeps.argmax(axis=1)[some], GRID - 1 - keeps[:, ::-1].argmax(axis=1)[some]
    # One step of the grid outwards keeps the limits valid between its points.
    low[stat.used[some]] = rates[np.maximum(first - 1, 0)]
    high[stat.used[some]] = rates[np.minimum(last + 1, GRID - 1)]
    return low, high


def next_limits(
    stat: Statistic, delta: float, method: str, length: float, next_queries: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute limits for the rates that all compared cells will have in the next queries, with probability 1 − δ.

    Half of δ is for the population's rates γ, half for how far the next queries stray: by their own ΣZ over their own
    Σb. Of Σb only its mean's lower limit is known, and how far below that the next queries may be.

    Parameters
    ----------
    stat, delta, method, length
        As for `cell_limits`.
    next_queries : int
        The number of further queries.

    Returns
    -------
    tuple of ndarray
        Lower and upper limits, (cells,) each.
    """
    low, high = cell_limits(stat, delta / 2, method, length)
    n, cells = stat.sums.weights.n_queries, max(1, len(stat.used))
    b = _moments(stat.sums, length)[1][stat.used]
    # Per cell: the mean of b (one tail), the next queries' b (one tail) and their Z (two), an equal part of δ/2 each.
    tail = math.log(4 / (delta / 2 / cells))
    least = b - math.sqrt(tail / (2 * n)) - math.sqrt(tail / (2 * next_queries))
    reach = math.sqrt(tail / (2 * next_queries)) / np.where(least > 0, least, np.nan)
    reach = np.where(least > 0, reach, 1.0)
    low[stat.used] = np.maximum(low[stat.used] - reach, 0)
    high[stat.used] = np.minimum(high[stat.used] + reach, 1)
    return low, high


def _plausible(
    stat: Statistic, rates: NDArray[np.float64], delta: float, method: str, length: float
) -> NDArray[np.bool_]:
    """Which rates γ the data do not refute: |mean of a − γ b| within its inequality's reach, (used cells, rates)."""
    n = stat.sums.weights.n_queries
    a, b, spread_a, together, spread_b = (values[stat.used, None] for values in _moments(stat.sums, length))
    distance = np.abs(a - rates * b)
    if method == "hoeffding":
        return np.asarray(distance <= math.sqrt(math.log(2 / delta) / (2 * n)))
    # Maurer and Pontil's empirical Bernstein inequality for range 1, both tails.
    variance = np.maximum(spread_a - 2 * rates * together + rates**2 * spread_b, 0)
    tail = math.log(4 / delta)
    return np.asarray(distance <= np.sqrt(2 * variance * tail / n) + 7 * tail / (3 * max(1, n - 1)))


def _moments(sums: Sums, length: float) -> tuple[NDArray[np.float64], ...]:
    """Means over the queries of a cell's selected and all items, over the list length, and their (co)variances."""
    weights = sums.weights
    n = weights.n_queries
    a, b = sums.top / length, weights.weight / length
    means = weights.by_column(a) / n, weights.by_column(b) / n
    # The queries without an item in the cell are as far from the means as these are from 0.
    rest = n - weights.queries
    from_means = a - means[0][weights.column], b - means[1][weights.column]
    spreads = [
        (weights.by_column(from_means[i] * from_means[j]) + rest * means[i] * means[j]) / max(1, n - 1)
        for i, j in ((0, 0), (0, 1), (1, 1))
    ]
    return (*means, *spreads)


def _largest(pairs: Pairs, low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """Γ at its largest when every cell's rate is anywhere within its limits: a limit for the true Γ."""
    gaps = np.maximum(high[pairs.a] - low[pairs.b], high[pairs.b] - low[pairs.a])
    return float(pairs.value(gaps))
