"""Measures of quality and fairness, named as text: ``"ndcg@3"``, ``"eop@3"``, ``"exposure_gap"``.

Each is a function of two values of a row, its selection probability in the top k and its exposure, so that ties are
exact expectations and many models are measured at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.notions import ACROSS, ALIASES, NOTIONS, Contrast, bind, gamma_of
from evenrank.ranking import Ranking, descending, discount_sums

MODEL_CHUNK = 1 << 22
GAINS = ("linear", "exponential")
MOST_EXPONENTIAL = 1000  # 2^1024 overflows


@dataclass
class Evaluation:
    """One ranking (or a matrix of them) of one data set, with what several measures share."""

    data: RankingData
    ranking: Ranking
    gain: str = "linear"
    across: str = "mean"
    shared: dict[Any, Any] = field(default_factory=dict)

    def per_query_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.add.reduceat(values, self.data.query_ptr[:-1], axis=0))

    def as_column(self, row_values: NDArray[Any]) -> NDArray[Any]:
        """A value a row or a query, shaped to broadcast over the models if there are any."""
        return row_values if self.ranking.first.ndim == 1 else row_values[:, None]

    def contrast(self, notion: str, scope: str = "amortized") -> Contrast:
        made: Contrast = self._once((notion, scope), lambda: bind(notion, self.data, scope=scope, across=self.across))
        return made

    def ideal(self, k: int | None) -> NDArray[np.float64]:
        """The best DCG@k of each query, (q,)."""
        data = self.data

        def best() -> NDArray[np.float64]:
            ordered = self._once("ordered", lambda: descending(self.gains, data.query_ptr))
            place = np.arange(data.n_rows) - np.repeat(data.query_ptr[:-1], data.lengths)
            return self.per_query_sum(ordered * np.diff(discount_sums(int(data.lengths.max()), k))[place])

        found: NDArray[np.float64] = self._once(("ideal", k), best)
        return found

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        relevance = self.data.relevance
        if self.gain == "linear":
            return relevance
        if relevance.max() > MOST_EXPONENTIAL:
            raise DataError(
                f"gain 'exponential' needs relevance ≤ {MOST_EXPONENTIAL}; got {relevance.max():g}. Use gain='linear'."
            )
        return np.asarray(np.exp2(relevance) - 1)

    @cached_property
    def relevant_per_query(self) -> NDArray[np.float64]:
        return self.per_query_sum(self.data.relevant.astype(float))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]


PerQuery = Callable[[Evaluation, int | None], NDArray[Any]]


def ndcg(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Definition 2 of the paper, with expected discounts for ties; NaN for a query with nothing relevant."""
    found = ev.per_query_sum(ev.as_column(ev.gains) * ev.ranking.exposure(k))
    return _divide(found, ev.as_column(ev.ideal(k)))


def precision(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Definition 1: relevant items in the top k, over k even where the list is shorter."""
    assert k is not None
    return ev.per_query_sum(ev.as_column(ev.data.relevant) * ev.ranking.top(k)) / k


def recall(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Relevant items in the top k, over those the list has; NaN where it has none."""
    assert k is not None
    found = ev.per_query_sum(ev.as_column(ev.data.relevant) * ev.ranking.top(k))
    return _divide(found, ev.as_column(ev.relevant_per_query))


def mrr(ev: Evaluation, k: int | None) -> NDArray[Any]:
    """Expected 1/rank of the first relevant item (0 below rank k or where there is none), exact under ties.

    The first relevant item is in the first tie block that has one. With m items there, R of them relevant and f items
    above, it is at rank f + j with probability (m−j choose R−1) / (m choose R).
    """
    first, size = ev.ranking.first, ev.ranking.size
    relevant = ev.as_column(ev.data.relevant)
    ptr = ev.data.query_ptr[:-1]
    nowhere = np.int32(np.iinfo(np.int32).max)
    best = np.minimum.reduceat(np.where(relevant, first, nowhere), ptr, axis=0)
    in_block = relevant & (first == np.repeat(best, ev.data.lengths, axis=0))
    hits = ev.per_query_sum(in_block.astype(float))
    members = np.maximum.reduceat(np.where(in_block, size, 0), ptr, axis=0).astype(float)
    ahead = np.where(best == nowhere, 0, best).astype(float)
    value = np.zeros(best.shape)
    not_yet = (best != nowhere).astype(float)
    for j in range(int(members.max(initial=0))):
        left = members - j
        here = np.divide(hits, left, out=np.ones_like(hits), where=left > 0)
        rank = ahead + j + 1
        value += np.where((left > 0) & (rank <= (np.inf if k is None else k)), not_yet * here / rank, 0)
        not_yet = not_yet * (1 - np.minimum(here, 1))
        if not not_yet.any():
            break
    return value


def _gap_per_query(ev: Evaluation, notion: str, values: NDArray[Any]) -> NDArray[Any]:
    """Γ of each query alone; NaN where one of its strata lacks a group."""
    contrast = ev.contrast(notion, "per_query")
    strata, queries, _ = contrast.cell_weight.shape
    pairs = contrast.pairs
    size = np.abs(contrast.gaps(values))
    blocks = np.full((strata * queries, *size.shape[1:]), np.nan)
    starts = np.flatnonzero(np.diff(pairs.block, prepend=-1))
    if len(starts):
        combined = np.maximum.reduceat(size, starts) if pairs.across == "max" else np.add.reduceat(size, starts)
        count = 1 if pairs.across == "max" else np.diff(np.append(starts, len(pairs.block)))
        blocks[pairs.block[starts]] = (combined.T / count).T
    return np.asarray(blocks.reshape(strata, queries, *size.shape[1:]).mean(axis=0))


def _ratio(rates: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
    """Lowest over highest rate along the first axis, over the groups present; NaN with fewer than two, or all 0."""
    lowest = np.where(present, rates, np.inf).min(axis=0)
    highest = np.where(present, rates, -np.inf).max(axis=0)
    return np.where(present.sum(axis=0) > 1, _divide(lowest, highest), np.nan)


def _rates(ev: Evaluation, k: int | None, scope: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Selection rates (groups, units, …) under demographic parity, and which cells exist."""
    assert k is not None
    contrast = ev.contrast("demographic_parity", scope)
    _, units, groups = contrast.cell_weight.shape
    means = contrast.means(ev.ranking.top(k))
    rates = np.moveaxis(means.reshape(units, groups, *means.shape[1:]), 1, 0)
    present = np.moveaxis(contrast.cell_weight[0] > 0, 1, 0)
    return rates, present.reshape(present.shape + (1,) * (rates.ndim - 2))


@dataclass(frozen=True)
class Measure:
    """How a measure is computed and read; ``k`` is "needed" or "optional", ``best`` the better end."""

    name: str
    k: str
    best: str
    per_query: PerQuery
    pooled: PerQuery | None = None
    alias: str = ""

    def value(self, ev: Evaluation, k: int | None) -> NDArray[Any]:
        """Over all queries, () or (models,): the mean over the queries where it exists, unless pooled."""
        if self.pooled is not None:
            return self.pooled(ev, k)
        values = self.per_query(ev, k)
        counted = ~np.isnan(values)
        number = counted.sum(axis=0)
        if not np.all(number):
            warnings.warn(f"{self.name} is NaN: no query has a relevant item", DataWarning, stacklevel=2)
        return _divide(np.where(counted, values, 0).sum(axis=0), number)


def _violation_measure(notion: str) -> Measure:
    def pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return gamma_of(ev.contrast(notion), ev.ranking.top(k))

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return _gap_per_query(ev, notion, ev.ranking.top(k))

    return Measure(notion, "needed", "low", per_query, pooled, NOTIONS[notion].alias)


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("ndcg", "optional", "high", ndcg),
        Measure("precision", "needed", "high", precision, alias="p"),
        Measure("recall", "needed", "high", recall),
        Measure("mrr", "optional", "high", mrr),
        *map(_violation_measure, NOTIONS),
        Measure(
            "exposure_gap",
            "optional",
            "low",
            lambda ev, k: _gap_per_query(ev, "demographic_parity", ev.ranking.exposure(k)),
            lambda ev, k: gamma_of(ev.contrast("demographic_parity"), ev.ranking.exposure(k)),
        ),
        Measure(
            "four_fifths",
            "needed",
            "high",
            lambda ev, k: _ratio(*_rates(ev, k, "per_query")),
            lambda ev, k: _ratio(*_rates(ev, k, "amortized"))[0],
            "ratio",
        ),
    )
}
MEASURE_ALIASES = {m.alias: m.name for m in MEASURES.values() if m.alias} | ALIASES


def parse_measure(text: str) -> tuple[Measure, int | None]:
    """The measure and k of a name like ``"eop@3"``.

    >>> measure, k = parse_measure("eop@3")
    >>> measure.name, k
    ('equal_opportunity', 3)
    """
    name, at, cut = str(text).strip().partition("@")
    name = MEASURE_ALIASES.get(name.lower(), name.lower())
    if name not in MEASURES:
        known = ", ".join(f"{m.name}{'@k' if m.k == 'needed' else '[@k]'}" for m in MEASURES.values())
        raise ConfigError(f"measure must be one of {known}; got {text!r}.")
    measure = MEASURES[name]
    if not at:
        if measure.k == "needed":
            raise ConfigError(f"measure {text!r} needs a cut-off, as in '{text}@5'.")
        return measure, None
    if not cut.isdecimal() or int(cut) < 1:
        raise ConfigError(f"k in {text!r} must be a whole number ≥ 1; got {cut!r}.")
    return measure, int(cut)


def measure(
    scores: ArrayLike,
    data: RankingData,
    measures: Iterable[str] | str = ("ndcg@5", "precision@5", "dp@5", "eop@5", "eod@5"),
    *,
    per_query: bool = False,
    ties: str = "average",
    gain: str = "linear",
    across: str = "mean",
) -> dict[str, Any]:
    """Measure scores given in the caller's row order.

    Parameters
    ----------
    scores : (n,) or (n, models)
    measures : names such as "ndcg@3", "precision@3", "recall@3", "mrr", "dp@3", "eop@3", "eod@3", "exposure_gap",
        "four_fifths@3"
    per_query : each query's own value, (q,) or (q, models) in the order of ``data.query_ids``; NaN where it has none
    ties : "average" (exact expectation over random tie-breaking) or "input" (order of the rows)
    gain : "linear" or "exponential" (2ʳ − 1), for NDCG
    across : how more than two groups are combined, "mean" over all pairs or "max"

    Returns
    -------
    dict : name → float, or (models,) for a matrix of scores

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
    >>> measure([3.0, 2.0, 1.0], data, ["precision@2", "eop@2"])
    {'precision@2': 0.5, 'eop@2': 1.0}
    """
    choose(gain, GAINS, what="gain")
    choose(across, ACROSS, what="across")
    names = [measures] if isinstance(measures, str) else list(measures)
    parsed = [parse_measure(name) for name in names]
    stored = data.to_stored(scores)
    shared: dict[Any, Any] = {}

    def of(block: NDArray[Any]) -> list[NDArray[Any]]:
        ev = Evaluation(data, Ranking(block, data.query_ptr, ties=ties), gain, across, shared)
        return [item.per_query(ev, k) if per_query else item.value(ev, k) for item, k in parsed]

    if stored.ndim == 1:
        values = of(stored)
        return {name: value if per_query else float(value) for name, value in zip(names, values, strict=True)}
    parts = [of(block) for block in model_blocks(stored)]
    return {name: np.concatenate(part, axis=-1) for name, part in zip(names, zip(*parts, strict=True), strict=True)}


def model_blocks(stored: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Models of an (n, models) table a few at a time, so that what is made of them stays small."""
    step = max(1, MODEL_CHUNK // len(stored))
    for start in range(0, stored.shape[1], step):
        yield stored[:, start : start + step]


def measure_with_rates(
    scores: ArrayLike, data: RankingData, measures: Sequence[str], rates: Mapping[str, tuple[int, str]]
) -> dict[str, NDArray[Any]]:
    """Measures, (models,) each, and groups' selection rates, (groups, models), of (n, models) scores ranked once.

    ``rates`` names the rates wanted: name → (k, among), as in `selection_rates`.
    """
    parsed = [parse_measure(name) for name in measures]
    shared: dict[Any, Any] = {}
    parts = []
    for block in model_blocks(data.to_stored(scores)):
        ranking = Ranking(block, data.query_ptr)
        ev = Evaluation(data, ranking, shared=shared)
        part = [item.value(ev, k) for item, k in parsed]
        parts.append(part + [group_rates(ranking, data, k, among) for k, among in rates.values()])
    names = [*measures, *rates]
    return {name: np.concatenate(part, axis=-1) for name, part in zip(names, zip(*parts, strict=True), strict=True)}


def selection_rates(
    scores: ArrayLike, data: RankingData, k: int, *, among: str = "all", ties: str = "average"
) -> dict[Any, Any]:
    """Each group's share of items selected into the top k, among all, relevant or irrelevant rows.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
    >>> selection_rates([3.0, 2.0, 1.0], data, 1)
    {'a': 0.5, 'b': 0.0}
    """
    check_k(k)
    stored = data.to_stored(scores)
    rates = group_rates(Ranking(stored, data.query_ptr, ties=ties), data, k, among)
    return {name: float(rate) if stored.ndim == 1 else rate for name, rate in zip(data.group_names, rates, strict=True)}


def group_rates(ranking: Ranking, data: RankingData, k: int, among: str = "all") -> NDArray[np.float64]:
    """Selection rates as `selection_rates`, (groups,) or (groups, models); NaN for a group with no row there."""
    strata = {"all": np.ones(data.n_rows, bool), "relevant": data.relevant, "irrelevant": ~data.relevant}
    inside = strata[choose(among, strata, what="among")]
    weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    codes = np.arange(data.n_groups)[:, None]
    member = data.group == codes if data.membership is None else data.membership.T
    share = np.where(inside, member * weight, 0.0)
    total = share.sum(axis=1)
    return _divide(share @ ranking.top(k), total if ranking.first.ndim == 1 else total[:, None])


def measure_names(ks: Sequence[int], names: Sequence[str] = ("ndcg", "precision", "dp", "eop", "eod")) -> list[str]:
    """Every name at every cut-off.

    >>> measure_names([1, 3], ["ndcg", "dp"])
    ['ndcg@1', 'ndcg@3', 'dp@1', 'dp@3']
    """
    return [f"{name}@{check_k(k)}" for name in names for k in ks]


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    out = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=out, where=np.broadcast_to(np.asarray(denominator) > 0, shape))
    return out
