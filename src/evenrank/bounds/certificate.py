"""`certified`: a limit for the gap on new queries that rests on independent queries alone.

With a_i the selected and b_i all items of query i in a cell, over the largest list length, Z_i = a_i − γ b_i are
independent with mean 0 and range at most 1. So an inequality for ΣZ_i, divided by the observed Σb_i, bounds the cell's
rate, for any selection rule and for lists of any lengths up to the largest.
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
from evenrank.measures import parse_measure
from evenrank.notions import NOTIONS
from evenrank.query_sums import Sums
from evenrank.statistic import Statistic, statistics

METHODS = ("bernstein", "hoeffding")
GRID = 2001  # rates that are tried, from 0 to 1


@dataclass(frozen=True)
class Certificate:
    """With probability 1 − δ over the queries, the gap on new ones is at most ``bound``.

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
    list_length : int
        The longest list that it allows.
    """

    measure: str
    estimate: float
    bound: float
    delta: float
    method: str
    queries: int
    list_length: int

    @property
    def vacuous(self) -> bool:
        """Whether the bound is 1 or more and says nothing."""
        return not self.bound < 1

    def __str__(self) -> str:
        limit = "vacuous" if self.vacuous else f"{self.bound:.3f}"
        return f"{self.measure}: {self.estimate:.3f} seen, at most {limit} with confidence {1 - self.delta:.0%}"


def certified(
    scores: ArrayLike,
    data: RankingData,
    measure: str,
    delta: float = 0.05,
    *,
    method: str = "bernstein",
    list_length: int | None = None,
    across: str = "mean",
) -> Certificate:
    """Compute an upper limit for the gap on new queries, from queries that played no part in training.

    Parameters
    ----------
    scores, data, across
        As in `evenrank.interval`.
    measure : str
        A gap such as "eop@3" or "exposure_gap@3".
    delta : float
        The limit may fail with this probability.
    method : str
        "bernstein" (uses the observed variance; better with many queries) or "hoeffding".
    list_length : int, optional
        The longest list there can be; None takes the longest in the data and assumes that none is longer.

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
    item, _ = parse_measure(measure)
    if item.name not in (*NOTIONS, "exposure_gap"):
        raise ConfigError(f"a certified bound is for violations and exposure gaps; got {measure!r}.")
    longest = int(data.lengths.max())
    if list_length is not None:
        check_number(list_length, "list_length", least=1, whole=True)
        if list_length < longest:
            raise ConfigError(f"list_length must be at least the longest list, {longest}; got {list_length}.")
    length = list_length or longest
    (stat,) = statistics(scores, data, [measure], across=across)
    return certify(stat, delta, method=method, list_length=length)


def certify(stat: Statistic, delta: float, *, method: str = "bernstein", list_length: int) -> Certificate:
    """Compute `certified` from sums that were taken before.

    Parameters
    ----------
    stat : Statistic
        The gap, of queries that played no part in training.
    delta, method
        As in `certified`.
    list_length : int
        The longest list there can be.

    Returns
    -------
    Certificate
        The gap and its limit.
    """
    assert stat.pairs is not None
    low, high = cell_limits(stat, delta, method, list_length)
    estimate = float(stat.value(stat.estimates))
    bound = math.nan if stat.pairs.missing else _largest(stat.pairs, low, high)
    return Certificate(stat.name, estimate, bound, delta, method, stat.sums.weights.n_queries, list_length)


def cell_limits(
    stat: Statistic, delta: float, method: str, length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute limits that hold for all compared cells' rates at once with probability 1 − δ.

    Parameters
    ----------
    stat, delta, method
        As for `certify`.
    length : int
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


def _plausible(
    stat: Statistic, rates: NDArray[np.float64], delta: float, method: str, length: int
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


def _moments(sums: Sums, length: int) -> tuple[NDArray[np.float64], ...]:
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
