"""How far the violation on new queries can be from the one seen.

Two kinds, never to be confused:

- **The paper's claims** (`uniform`, `fixed`): its theorem and lemmas, as the appendix derives them. They are for
  decisions taken item by item on lists of one length, not for top-k selections, and a step of the lemmas' proof fails
  for dependent lists (docs/bounds.md has the counterexample).
- **Certified** (`certified`): rests on queries being independent and on no list being longer than stated. With a_i the
  selected and b_i all items of query i in a cell, over the largest list length, Z_i = a_i − γ b_i are independent with
  mean 0 and range at most 1, so an inequality for ΣZ_i divided by the observed Σb_i bounds the cell's rate, for any
  selection rule and ragged lists.

A bound of 1 or more says nothing and is called vacuous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import choose
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures import parse_measure
from evenrank.notions import NOTIONS, NotionLike, as_notion, bind
from evenrank.query_sums import Sums
from evenrank.statistic import Statistic, statistics

METHODS = ("bernstein", "hoeffding")
KINDS = ("uniform", "fixed", "hoeffding")
GRID = 2001


class Bound(float):
    """A number C with Γ ≤ Γ_S + C (with probability 1 − δ), and under what it is claimed.

    It is an ordinary float; ``claim`` says whose it is, ``condition`` what it needs and ``holds`` whether that is so.
    """

    claim: str
    condition: str
    holds: bool

    def __new__(cls, value: float, *, claim: str, condition: str = "", holds: bool = True) -> Bound:
        made = super().__new__(cls, value)
        made.claim, made.condition, made.holds = claim, condition, holds
        return made

    @property
    def vacuous(self) -> bool:
        """A gap is never above 1, so a bound of 1 or more says nothing; nor does one whose condition fails."""
        return not self.holds or not self < 1

    def __str__(self) -> str:
        if not self.holds:
            return f"does not apply ({self.condition})"
        return "vacuous" if self.vacuous else f"{float(self):.3f}"


def vc_dimension(n_features: int) -> int:
    """Of linear scores with a free threshold: d + 1."""
    return _whole(n_features, "n_features") + 1


def uniform(
    notion: NotionLike, *, n_queries: int, list_length: int, vc: int, min_share: float, delta: float = 0.05
) -> Bound:
    """The theorem's C, claimed for all selection functions of a class at once.

    8 √(2 (v ln(2eNm/v) + ln(K/δ)) / (N s²)) with K = 24 (demographic parity, equal opportunity) or 48 (equalized odds),
    and s the least share of a group (demographic parity) or of a group and relevance (the others); needs 2Nm > v ≥ 1.

    Examples
    --------
    >>> bound = uniform("eop", n_queries=652, list_length=7, vc=10, min_share=0.2)
    >>> round(float(bound), 2), bound.vacuous, str(bound)
    (20.35, True, 'vacuous')
    """
    N, m, v = _whole(n_queries, "n_queries"), _whole(list_length, "list_length"), _whole(vc, "vc")
    share, delta = _open(min_share, "min_share", closed=True), _open(delta, "delta")
    constant = 48 if _name(notion) == "equalized_odds" else 24
    inside = v * math.log(2 * math.e * N * m / v) + math.log(constant / delta)
    holds = 2 * N * m > v
    value = 8 * math.sqrt(2 * inside / (N * share**2)) if holds else math.inf
    return Bound(value, claim="the paper's theorem", condition=f"2·N·m > v; {2 * N * m} and {v}", holds=holds)


def fixed(notion: NotionLike, *, n_queries: int, min_share: float, delta: float = 0.05) -> Bound:
    """The lemmas' bound, claimed for one selection function fixed beforehand.

    2 √(ln(K/δ) / (N s)) with K = 8, or 16 for equalized odds; needs N > 8 ln(8/δ) / s².

    Examples
    --------
    >>> fixed("dp", n_queries=652, min_share=0.2).holds, round(float(fixed("dp", n_queries=5000, min_share=0.2)), 4)
    (False, 0.1425)
    """
    N = _whole(n_queries, "n_queries")
    share, delta = _open(min_share, "min_share", closed=True), _open(delta, "delta")
    constant = 16 if _name(notion) == "equalized_odds" else 8
    needed = 8 * math.log(8 / delta) / share**2
    return Bound(
        2 * math.sqrt(math.log(constant / delta) / (N * share)),
        claim="the paper's lemma",
        condition=f"N > 8 ln(8/δ)/s² = {needed:.0f}; N = {N}",
        holds=needed < N,
    )


def queries_needed(
    notion: NotionLike,
    epsilon: float,
    *,
    bound: str = "hoeffding",
    min_share: float,
    delta: float = 0.05,
    list_length: int = 10,
    vc: int | None = None,
    groups: int = 2,
) -> int:
    """The fewest queries for which a bound is at most ``epsilon``.

    ``bound`` is "uniform" or "fixed" (the paper's claims; the first needs ``vc``), or "hoeffding", the certified one
    for a fixed ranking, in whose plan ``min_share`` is the rarest cell's share of a longest list.

    Examples
    --------
    >>> queries_needed("dp", 0.1, bound="fixed", min_share=0.2), queries_needed("dp", 0.1, min_share=0.2)
    (10151, 21911)
    """
    choose(bound, KINDS, what="bound")
    epsilon, share = _open(epsilon, "epsilon"), _open(min_share, "min_share", closed=True)
    name = _name(notion)
    if bound == "uniform" and vc is None:
        raise ConfigError("the uniform bound needs vc, the class's VC dimension; for linear scores n_features + 1.")

    def enough(n: int) -> bool:
        if bound == "uniform":
            assert vc is not None
            found = uniform(name, n_queries=n, list_length=list_length, vc=vc, min_share=share, delta=delta)
            return found.holds and found <= epsilon
        if bound == "fixed":
            found = fixed(name, n_queries=n, min_share=share, delta=delta)
            return found.holds and found <= epsilon
        return planned(name, n_queries=n, min_share=share, delta=delta, groups=groups) <= epsilon

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def planned(notion: NotionLike, *, n_queries: int, min_share: float, delta: float = 0.05, groups: int = 2) -> Bound:
    """What Hoeffding's certified bound will add to the gap seen, if the rarest cell has that share of a longest list.

    2 √(ln(2c/δ) / (2N)) / s with c cells: the groups, twice for equalized odds.
    """
    N, share, delta = _whole(n_queries, "n_queries"), _open(min_share, "min_share", closed=True), _open(delta, "delta")
    cells = _whole(groups, "groups") * (2 if _name(notion) == "equalized_odds" else 1)
    return Bound(2 * math.sqrt(math.log(2 * cells / delta) / (2 * N)) / share, claim="certified (Hoeffding), planned")


@dataclass(frozen=True)
class Share:
    """The rarest cell's share of the rows, and a lower confidence limit for it."""

    estimate: float
    lower: float
    delta: float


def min_share(data: RankingData, notion: NotionLike, delta: float = 0.05) -> Share:
    """The paper's P (or Q, for demographic parity): estimated, with a limit that holds with probability 1 − δ.

    Queries are independent and a cell's share of a list is in [0, 1], so Hoeffding's inequality gives the limit, for
    all cells at once. Lists of different lengths count alike.
    """
    delta = _open(delta, "delta")
    # The paper's P is over relevance and group for equal opportunity too.
    name = "equalized_odds" if _name(notion) == "equal_opportunity" else notion
    weight = bind(name, data, scope="per_query", training=True).cell_weight
    shares = (weight / data.lengths[None, :, None]).mean(axis=1)
    slack = math.sqrt(math.log(shares.size / delta) / (2 * data.n_queries))
    return Share(float(shares.min()), max(0.0, float(shares.min()) - slack), delta)


@dataclass(frozen=True)
class Certificate:
    """With probability 1 − δ over queries, the violation on new ones is at most ``bound``."""

    measure: str
    estimate: float
    bound: float
    delta: float
    method: str
    queries: int
    list_length: int

    @property
    def vacuous(self) -> bool:
        return not self.bound < 1

    def __str__(self) -> str:
        told = "vacuous" if self.vacuous else f"{self.bound:.3f}"
        return f"{self.measure}: {self.estimate:.3f} seen, at most {told} with confidence {1 - self.delta:.0%}"


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
    """An upper limit for a violation on new queries, from rankings of queries that played no part in training.

    Parameters
    ----------
    measure : a violation such as "eop@3", or "exposure_gap@3"
    method : "bernstein" (uses the observed variance; better with many queries) or "hoeffding"
    list_length : the longest list there can be; None takes the longest seen, which assumes that none is longer

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> pool = er.datasets.german_credit_folds(data)
    >>> ranker, unseen = er.FairLinearRanker("dp", alpha=0.1).fit(data.take(pool < 3)), data.take(pool >= 3)
    >>> print(certified(ranker.predict(unseen), unseen, "dp@5"))
    dp@5: 0.047 seen, at most 0.377 with confidence 95%
    """
    delta = _open(delta, "delta")
    choose(method, METHODS, what="method")
    item, _ = parse_measure(measure)
    if item.name not in (*NOTIONS, "exposure_gap"):
        raise ConfigError(f"a certified bound is for violations and exposure gaps; got {measure!r}.")
    longest = int(data.lengths.max())
    if list_length is not None and _whole(list_length, "list_length") < longest:
        raise ConfigError(f"list_length must be at least the longest list, {longest}; got {list_length}.")
    length = list_length or longest
    (stat,) = statistics(scores, data, [measure], across=across)
    return certify(stat, delta, method=method, list_length=length)


def certify(stat: Statistic, delta: float, *, method: str = "bernstein", list_length: int) -> Certificate:
    """`certified` of a violation whose sums were taken already."""
    assert stat.pairs is not None
    low, high = cell_limits(stat, delta, method, list_length)
    estimate = float(stat.value(stat.estimates))
    bound = math.nan if stat.pairs.missing else _largest(stat.pairs, low, high)
    return Certificate(stat.name, estimate, bound, delta, method, stat.sums.weights.n_queries, list_length)


def cell_limits(
    stat: Statistic, delta: float, method: str, length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits that hold for all the compared cells' rates at once with probability 1 − δ, (cells,) each."""
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


def _name(notion: NotionLike) -> str:
    return as_notion(notion).name


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} must be a whole number ≥ 1; got {value!r}.")
    return int(value)


def _open(value: Any, name: str, *, closed: bool = False) -> float:
    good = (isinstance(value, int | float | np.floating) and 0 < value < 1) or (closed and value == 1)
    if not good:
        raise ConfigError(f"{name} must be above 0 and {'at most' if closed else 'below'} 1; got {value!r}.")
    return float(value)
