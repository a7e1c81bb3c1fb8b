"""The paper's claims for new queries (`uniform`, `fixed`), and the plan for a certified bound (`planned`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenrank.bounds.certificate import longest_list
from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.notions import NotionLike, as_notion, bind

KINDS = ("uniform", "fixed", "hoeffding")


class Bound(float):
    """A number C with Γ ≤ Γ_S + C (with probability 1 − δ), and on what condition: a float with attributes.

    Attributes
    ----------
    claim : str
        Whose claim it is.
    condition : str
        What it needs.
    holds : bool
        Whether the condition is met.
    """

    claim: str
    condition: str
    holds: bool

    def __new__(cls, value: float, *, claim: str, condition: str = "", holds: bool = True) -> Bound:
        bound = super().__new__(cls, value)
        bound.claim, bound.condition, bound.holds = claim, condition, holds
        return bound

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: its condition fails, or it is 1 or more, which no gap exceeds."""
        return not self.holds or not self < 1

    def __str__(self) -> str:
        if not self.holds:
            return f"does not apply ({self.condition})"
        return f"{float(self):.3f}" + (" (says nothing)" if self.vacuous else "")


def vc_dimension(n_features: int) -> int:
    """Compute the VC dimension of linear scores with a free threshold: d + 1.

    Parameters
    ----------
    n_features : int
        d, at least 1.

    Returns
    -------
    int
        The dimension.
    """
    return _whole(n_features, "n_features") + 1


def uniform(
    notion: NotionLike, *, n_queries: int, list_length: int, vc: int, min_share: float, delta: float = 0.05
) -> Bound:
    """Compute the theorem's C, claimed for all selection functions of a class at once.

    8 √(2 (v ln(2eNm/v) + ln(K/δ)) / (N s²)) with K = 24 (demographic parity, equal opportunity) or 48 (equalized odds),
    and s the least share of a group (demographic parity) or of a group and relevance (the others); needs 2Nm > v ≥ 1.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    n_queries, list_length : int
        N queries with lists of m items each.
    vc : int
        v, the VC dimension of the class; see `vc_dimension`.
    min_share : float
        s, above 0 and at most 1; see `min_share`.
    delta : float
        The bound may fail with this probability.

    Returns
    -------
    Bound
        C; infinite if its condition is not met.

    Examples
    --------
    >>> bound = uniform("eop", n_queries=652, list_length=7, vc=10, min_share=0.2)
    >>> round(float(bound), 2), bound.vacuous, str(bound)
    (20.35, True, '20.345 (says nothing)')
    """
    N, m, v = _whole(n_queries, "n_queries"), _whole(list_length, "list_length"), _whole(vc, "vc")
    share, delta = _share(min_share), _probability(delta, "delta")
    constant = 48 if _name(notion) == "equalized_odds" else 24
    inside = v * math.log(2 * math.e * N * m / v) + math.log(constant / delta)
    holds = 2 * N * m > v
    value = 8 * math.sqrt(2 * inside / (N * share**2)) if holds else math.inf
    return Bound(value, claim="the paper's theorem", condition=f"2·N·m > v; {2 * N * m} and {v}", holds=holds)


def fixed(notion: NotionLike, *, n_queries: int, min_share: float, delta: float = 0.05) -> Bound:
    """Compute the lemmas' bound, claimed for one selection function fixed beforehand.

    2 √(ln(K/δ) / (N s)) with K = 8, or 16 for equalized odds; needs N > 8 ln(8/δ) / s².

    Parameters
    ----------
    notion, n_queries, min_share, delta
        As in `uniform`: N queries and the least share s.

    Returns
    -------
    Bound
        The bound, which tells whether its condition is met.

    Examples
    --------
    >>> fixed("dp", n_queries=652, min_share=0.2).holds, round(float(fixed("dp", n_queries=5000, min_share=0.2)), 4)
    (False, 0.1425)
    """
    N = _whole(n_queries, "n_queries")
    share, delta = _share(min_share), _probability(delta, "delta")
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
    """Find the fewest queries for which a bound is at most ``epsilon``.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    epsilon : float
        The bound wanted, between 0 and 1.
    bound : str
        "uniform" or "fixed" (the paper's claims), or "hoeffding" (the certified bound, see `planned`).
    min_share : float
        The least share: of a cell among the rows (the paper's claims), or of the longest list ("hoeffding").
    delta : float
        The bound may fail with this probability.
    list_length : int
        The items of a list, for "uniform".
    vc : int, optional
        The VC dimension of the class; "uniform" needs it.
    groups : int
        The number of groups, for "hoeffding".

    Returns
    -------
    int
        The number of queries.

    Examples
    --------
    >>> queries_needed("dp", 0.1, bound="fixed", min_share=0.2), queries_needed("dp", 0.1, min_share=0.2)
    (10151, 21911)
    """
    choose(bound, KINDS, what="bound")
    epsilon, share = _probability(epsilon, "epsilon"), _share(min_share)
    name = _name(notion)
    if bound == "uniform" and vc is None:
        raise ConfigError("the uniform bound needs vc, the class's VC dimension; for linear scores n_features + 1.")

    def enough(n: int) -> bool:
        if bound == "uniform":
            assert vc is not None
            claim = uniform(name, n_queries=n, list_length=list_length, vc=vc, min_share=share, delta=delta)
            return claim.holds and claim <= epsilon
        if bound == "fixed":
            claim = fixed(name, n_queries=n, min_share=share, delta=delta)
            return claim.holds and claim <= epsilon
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
    """Compute what Hoeffding's certified bound will add to the measured gap.

    2 √(ln(2c/δ) / (2N)) / s with c cells: the groups, twice for equalized odds.

    Parameters
    ----------
    notion, n_queries, delta
        As in `uniform`.
    min_share : float
        s, a cell's mean number of items in a list over the length of the longest list; where cells differ, their
        harmonic mean as `certified_share` gives it, or the rarest cell's, for a plan that is on the safe side.
    groups : int
        The number of groups.

    Returns
    -------
    Bound
        The number to add.
    """
    N, share, delta = _whole(n_queries, "n_queries"), _share(min_share), _probability(delta, "delta")
    cells = _whole(groups, "groups") * (2 if _name(notion) == "equalized_odds" else 1)
    return Bound(2 * math.sqrt(math.log(2 * cells / delta) / (2 * N)) / share, claim="certified (Hoeffding), planned")


def certified_share(data: RankingData, notion: NotionLike, *, longest: float | None = None) -> float:
    """Compute the share s with which `planned` is what Hoeffding's certified bound adds, for queries like these.

    A cell counts with its items per query over the longest list, not over the list at hand: where most lists are much
    shorter than the longest, shares are small and plans large. Cells enter by the harmonic mean over compared pairs.

    Parameters
    ----------
    data : RankingData
        The rows.
    notion : str, Notion, callable or row masks
        The notion of fairness.
    longest : float, optional
        The longest list there can be, as in `certified`; None takes the longest in the data.

    Returns
    -------
    float
        The share; 0 where a stratum has no pair of groups.
    """
    contrast = bind(notion, data, scope="amortized", training=False)
    if contrast.pairs.missing:
        return 0.0
    shares = contrast.cell_weight.reshape(-1) / data.n_queries / (longest or longest_list(data))
    pairs = contrast.pairs
    return float(2 / (pairs.weight @ (1 / shares[pairs.a] + 1 / shares[pairs.b])))


@dataclass(frozen=True)
class Share:
    """The rarest cell's share of a list, and a lower confidence limit for it.

    Attributes
    ----------
    estimate, lower : float
        The share in the data, and the limit.
    delta : float
        The probability with which the limit may fail.
    """

    estimate: float
    lower: float
    delta: float


def min_share(data: RankingData, notion: NotionLike, delta: float = 0.05) -> Share:
    """Estimate the paper's P (Q for demographic parity), with a limit that holds with probability 1 − δ.

    Queries are independent and a cell's share of a list is in [0, 1], so Hoeffding's inequality gives the limit, for
    all cells at once. Lists of different lengths count alike.

    Parameters
    ----------
    data : RankingData
        The rows.
    notion : str, Notion, callable or row masks
        The notion of fairness.
    delta : float
        The limit may fail with this probability.

    Returns
    -------
    Share
        The estimate and its limit.
    """
    delta = _probability(delta, "delta")
    # The paper's P is over relevance and group for equal opportunity too.
    name = "equalized_odds" if _name(notion) == "equal_opportunity" else notion
    weight = bind(name, data, scope="per_query", training=True).cell_weight
    shares = (weight / data.lengths[None, :, None]).mean(axis=1)
    slack = math.sqrt(math.log(shares.size / delta) / (2 * data.n_queries))
    return Share(float(shares.min()), max(0.0, float(shares.min()) - slack), delta)


def _name(notion: NotionLike) -> str:
    return as_notion(notion).name


def _whole(value: Any, name: str) -> int:
    check_number(value, name, least=1, whole=True)
    return int(value)


def _share(value: Any) -> float:
    check_number(value, "min_share", above=0, most=1)
    return float(value)


def _probability(value: Any, name: str) -> float:
    check_number(value, name, above=0, below=1)
    return float(value)
