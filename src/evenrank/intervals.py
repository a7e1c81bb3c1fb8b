"""Intervals that respect queries: rows of a query are dependent, queries are not.

Every measure here is a function of sums over queries (a ratio of two, or differences of such ratios), so the sums of
each query are taken once. The bootstrap draws queries with replacement, which is a matrix product of counts with those
sums; the analytic interval uses each query's influence on the estimate. Both are widened for few or unequal queries: by
the jackknife's standard error, which leaves each query out in turn, and by Student's t for the effective number of
queries in the rarest cell.

**Violations are absolute values**, and the usual intervals fail near 0: a resampled gap is almost never 0. But Γ is a
seminorm of the signed gaps g, so |Γ(ĝ) − Γ(g)| ≤ Γ(ĝ − g) for any number of groups and strata. The interval is
Γ(ĝ) ± c, cut at 0, with c the quantile of Γ(g* − ĝ) over resamples g*: honest at 0, and for one gap the interval of the
signed gap folded at 0. The four-fifths ratio is the same on the scale of logarithms, where it is minus the largest gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning, choose
from evenrank.measures import Evaluation, parse_measure
from evenrank.notions import NOTIONS, Cells, Contrast, Pairs, bind
from evenrank.ranking import Ranking

METHODS = ("bootstrap", "analytic")
REPLICATES = 2000
CELLS = 1 << 20
NORMALS = 20_000
FEW = 20
LEAST_FREEDOM = 1e-6  # a cell that stands in one query says nothing about others
CONSTANT = 1e-24  # a variance of rounding errors
TINY = 1e-200  # stands for a rate of 0 where logarithms are taken


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; ``queries`` is how many bear on it (those of its rarest cell)."""

    measure: str
    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    queries: int

    def __iter__(self) -> Any:
        return iter((self.estimate, self.low, self.high))


@dataclass(frozen=True, eq=False)
class Statistic:
    """A measure as ratios of sums over queries.

    Attributes
    ----------
    name : the measure's
    top, bottom : (q, r) each query's part of the numerators and denominators of r ratios
    kind : "mean", "gap" (Γ of the ratios) or "ratio" (lowest over highest)
    pairs : which ratios are compared; None for a plain mean
    """

    name: str
    top: NDArray[np.float64]
    bottom: NDArray[np.float64]
    kind: str
    pairs: Pairs | None = None

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The ratios that are compared."""
        return np.arange(self.top.shape[1]) if self.pairs is None else np.union1d(self.pairs.a, self.pairs.b)

    @property
    def queries(self) -> int:
        """Queries that bear on the ratio with the fewest."""
        if self.pairs is not None and self.pairs.missing:
            return 0
        return int((self.bottom[:, self.used] > 0).sum(axis=0).min(initial=len(self.bottom)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom: (Σb)² / Σb² − 1 over the queries of the ratio where that is least.

        Queries of equal weight b count in full; one with most of a cell's items leaves next to none.
        """
        bottom = self.bottom[:, self.used]
        squares = (bottom**2).sum(axis=0)
        return float((bottom.sum(axis=0) ** 2 / np.where(squares > 0, squares, np.inf)).min(initial=np.inf)) - 1

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """The gaps on all queries, (J,)."""
        return self.gaps(self.ratios(self.top.sum(axis=0), self.bottom.sum(axis=0)))

    def ratios(self, top: NDArray[Any], bottom: NDArray[Any]) -> NDArray[np.float64]:
        """Of sums (…, r)."""
        out = np.full(np.shape(top), np.nan)
        np.divide(top, bottom, out=out, where=np.asarray(bottom) > 0)
        return out

    def gaps(self, ratios: NDArray[Any]) -> NDArray[np.float64]:
        """Signed differences (…, J), of logarithms for kind "ratio"; a mean is its own only 'gap'."""
        if self.pairs is None:
            return np.asarray(ratios)
        if self.kind == "ratio":
            some = ratios[..., self.used].max(axis=-1, keepdims=True, initial=0) > 0
            ratios = np.log(np.maximum(np.where(some, ratios, np.nan), TINY))
        return np.asarray(ratios[..., self.pairs.a] - ratios[..., self.pairs.b])

    def value(self, gaps: NDArray[Any]) -> NDArray[np.float64]:
        """The measure from its gaps (…, J)."""
        if self.pairs is None:
            return np.asarray(gaps[..., 0])
        value = self.pairs.value(np.moveaxis(gaps, -1, 0))
        if self.pairs.missing:
            return np.full_like(value, np.nan)
        if self.kind == "ratio":
            return np.where(value > -np.log(TINY) / 2, 0.0, np.exp(-value))
        return value

    def influence(self, *, left_out: bool = False) -> NDArray[np.float64]:
        """Each query's influence on the gaps, (q, J): its first-order share in the deviation from the truth.

        With ``left_out``, what leaving the query out does to the gaps, sign reversed (for kind "ratio" to first order).
        """
        total = self.bottom.sum(axis=0)
        ratios = self.ratios(self.top.sum(axis=0), total)
        rest = total - self.bottom if left_out else total
        each = np.full(self.top.shape, np.nan)
        np.divide(self.top - ratios * self.bottom, rest, out=each, where=np.broadcast_to(rest > 0, each.shape))
        if self.kind == "ratio":
            each /= np.where(ratios > 0, ratios, np.nan)
        if self.pairs is None:
            return each
        return np.asarray(each[:, self.pairs.a] - each[:, self.pairs.b])

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """The jackknife's, of the gaps, (J, J)."""
        number = int((self.bottom[:, self.used] > 0).any(axis=1).sum())
        left_out = self.influence(left_out=True)
        return np.asarray(left_out.T @ left_out * ((number - 1) / max(number, 1)))


def statistics(
    scores: ArrayLike, data: RankingData, measures: Iterable[str], *, across: str = "mean", ties: str = "average"
) -> list[Statistic]:
    """The sums of each measure, once; ``scores`` (n,) in the caller's row order."""
    stored = data.to_stored(scores)
    if stored.ndim != 1:
        raise DataError(f"intervals take one score a row, ({data.n_rows},); got shape {stored.shape}.")
    ev = Evaluation(data, Ranking(stored, data.query_ptr, ties=ties), across=across)
    contrasts: dict[str, tuple[Contrast, Pairs]] = {}
    out = []
    for name in measures:
        item, k = parse_measure(name)
        if item.pooled is None:
            values = item.per_query(ev, k)
            exists = ~np.isnan(values)
            known = np.where(exists, values, 0.0)
            out.append(Statistic(name, known[:, None], exists[:, None].astype(np.float64), "mean"))
            continue
        notion = item.name if item.name in NOTIONS else "demographic_parity"
        if notion not in contrasts:
            pooled = bind(notion, data, across=across)
            # Not bound per query, which would warn of strata whose groups meet in no query; pooled, they need not.
            each = Cells.of(notion, data).contrast(unit=data.query_of_row, n_units=data.n_queries, across=across)
            contrasts[notion] = (each, pooled.pairs)
        cells, pairs = contrasts[notion]
        rows = ev.ranking.exposure(k) if item.name == "exposure_gap" else ev.ranking.top(k or 1)
        # (strata, queries, groups) → (queries, strata · groups), the order in which pooled cells are numbered.
        weight = cells.cell_weight.astype(np.float64)
        means = cells.means(rows).reshape(weight.shape)
        bottom = weight.transpose(1, 0, 2).reshape(data.n_queries, -1)
        top = (means * weight).transpose(1, 0, 2).reshape(data.n_queries, -1)
        if item.name == "four_fifths":
            present = Pairs.of(bottom.sum(axis=0)[None, None], across="max", training=False)
            out.append(Statistic(name, top, bottom, "ratio", present))
        else:
            out.append(Statistic(name, top, bottom, "gap", pairs))
    return out


def resampled_sums(columns: NDArray[np.float64], *, replicates: int, seed: int) -> NDArray[np.float64]:
    """Sums of the columns (q, c) over queries drawn with replacement, (replicates, c).

    Queries go in chunks: how many of a replicate's draws fall in one is multinomial, and within it they are uniform, so
    that a chunk's counts are a small dense matrix. Columns that several measures share are summed once.
    """
    columns, place = distinct(columns)
    queries = len(columns)
    rng = np.random.default_rng(seed)
    sums = np.zeros((replicates, columns.shape[1]))
    chunk = max(1, CELLS // replicates)
    starts = np.arange(0, queries, chunk)
    sizes = np.minimum(chunk, queries - starts)
    hits = rng.multinomial(queries, sizes / queries, replicates)
    for start, size, hit in zip(starts.tolist(), sizes.tolist(), hits.T, strict=True):
        cell = np.repeat(np.arange(replicates) * size, hit)
        cell += rng.integers(0, size, len(cell), dtype=np.uint16 if size <= 1 << 16 else np.int64)
        counts = np.bincount(cell, minlength=replicates * size).reshape(replicates, size)
        sums += counts.astype(np.float64) @ columns[start : start + size]
    return sums[:, place]


def distinct(columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[int]]:
    """The columns (q, c) without repetitions, and where each of the given ones is among them."""
    first: dict[bytes, int] = {}
    place = [first.setdefault(blake2b(column.tobytes()).digest(), len(first)) for column in columns.T]
    chosen = [place.index(number) for number in range(len(first))]
    return np.ascontiguousarray(columns[:, chosen]), place


def swapped_sums(
    one: NDArray[np.float64], two: NDArray[np.float64], *, replicates: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of two tables (q, c) with each query's lines swapped between them at random, (replicates, c) each."""
    rng = np.random.default_rng(seed)
    difference = two - one
    moved = np.zeros((replicates, one.shape[1]))
    chunk = max(1, CELLS // replicates)
    for start in range(0, len(one), chunk):
        part = difference[start : start + chunk]
        moved += rng.integers(0, 2, (replicates, len(part)), dtype=np.int8).astype(np.float64) @ part
    return one.sum(axis=0) + moved, two.sum(axis=0) - moved


def stacked(stats: Sequence[Statistic]) -> NDArray[np.float64]:
    """All sums side by side, (q, columns); `unstacked` takes them apart."""
    return np.hstack([part for stat in stats for part in (stat.top, stat.bottom)])


def by_id(table: NDArray[np.float64], data: RankingData) -> NDArray[np.float64]:
    """A table of queries (q, …) in the order of their ids, so that seeded draws do not depend on the order of rows."""
    order = data.sorted_queries
    return table if bool((np.diff(order) == 1).all()) else table[order]


def unstacked(stats: Sequence[Statistic], sums: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The gaps of each statistic from stacked sums (…, columns): (…, J) each."""
    out, at = [], 0
    for stat in stats:
        width = stat.top.shape[1]
        out.append(stat.gaps(stat.ratios(sums[..., at : at + width], sums[..., at + width : at + 2 * width])))
        at += 2 * width
    return out


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
    """A measure of given scores with its confidence interval over queries.

    Parameters
    ----------
    measure : any of `er.measure`'s, as "eop@3"
    method : "bootstrap" over queries, or "analytic" (each query's influence, Student's t)
    signed : for a violation with two groups, the first group's rate minus the second's, in ``data.group_names`` order

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores = er.FairLinearRanker(alpha=0.0).fit(data).predict(data)
    >>> found = interval(scores, data, "dp@5", signed=True)
    >>> bool(found.low < found.estimate < found.high < 0)     # the first group, the younger, is picked less often
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
    """`interval` of several measures, which share one set of resamples."""
    check_confidence(confidence)
    check_replicates(replicates)
    choose(method, METHODS, what="method")
    stats = statistics(scores, data, measures, across=across)
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
        table = by_id(stacked(stats), data)
        drawn = unstacked(stats, resampled_sums(table, replicates=replicates, seed=seed))
    return [
        interval_of(stat, sample, confidence=confidence, signed=signed, seed=seed)
        for stat, sample in zip(stats, drawn, strict=True)
    ]


def interval_of(
    stat: Statistic,
    sample: NDArray[np.float64] | None,
    *,
    confidence: float = 0.95,
    signed: bool = False,
    seed: int = 0,
) -> Interval:
    """The interval of one statistic: by bootstrap from resampled gaps (replicates, J), else analytic."""
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
        highest = np.nanmax(stat.ratios(stat.top.sum(axis=0), stat.bottom.sum(axis=0)))
        low, high = 0.0, unseen(stat.queries, confidence) / highest
    elif not np.diag(stat.covariance).max() > CONSTANT:
        reach = unseen(stat.queries, confidence)
        low, high = estimate - reach, estimate + reach
    elif stat.kind == "ratio":
        factor = np.exp(min(_reach(stat, sample, confidence, seed), -np.log(TINY)))
        low, high = estimate / factor, estimate * factor
    elif absolute:
        reach = _reach(stat, sample, confidence, seed)
        low, high = estimate - reach, estimate + reach
    elif sample is None:
        reach = float(np.sqrt(stat.covariance.mean())) * student(stat.freedom, confidence)
        low, high = estimate - reach, estimate + reach
    else:
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        low, high = estimate + np.nanquantile(_widened(stat, sample, confidence).mean(axis=1), ends)
    return Interval(
        stat.name, estimate, float(max(floor, low)), float(min(1.0, high)), confidence, method, stat.queries
    )


def _reach(stat: Statistic, sample: NDArray[np.float64] | None, confidence: float, seed: int) -> float:
    """The quantile of Γ(deviations of the gaps)."""
    assert stat.pairs is not None
    if sample is not None:
        deviations = _widened(stat, sample, confidence)
    else:
        covariance = stat.covariance
        if len(covariance) == 1:
            return float(np.sqrt(covariance[0, 0]) * stat.pairs.weight[0]) * student(stat.freedom, confidence)
        values, vectors = np.linalg.eigh(covariance)
        # The symmetric root, without directions that only rounding fills, is the same however eigh turns its vectors.
        kept = np.sqrt(np.where(values > 1e-12 * values[-1], values, 0.0))
        root = vectors * kept @ vectors.T
        deviations = _normals(len(root), seed) @ root * t_over_normal(stat.freedom, confidence)
    return float(np.nanquantile(stat.pairs.value(deviations.T), confidence))


@lru_cache(maxsize=8)
def _normals(columns: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((NORMALS, columns))


def unseen(queries: int, confidence: float) -> float:
    """How large a share of all queries can differ from those seen, if all of these were alike.

    With a larger share, so many queries without one that differs would have a chance below (1 − confidence) / 2.

    >>> round(unseen(100, 0.95), 3)
    0.036
    """
    return float(1 - ((1 - confidence) / 2) ** (1 / queries))


def _widened(stat: Statistic, sample: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Deviations of resampled gaps from the estimate, widened to the jackknife's error and Student's t, (draws, J)."""
    plain = (stat.influence() ** 2).sum(axis=0)
    ratio = np.diag(stat.covariance) / np.where(plain > 0, plain, 1.0)
    scale = np.where(plain > 0, np.sqrt(ratio), 1.0)
    return np.asarray((sample - stat.estimates) * (scale * t_over_normal(stat.freedom, confidence)))


def student(freedom: float, confidence: float) -> float:
    """The two-sided limit of Student's t.

    >>> round(student(10, 0.95), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def t_over_normal(freedom: float, confidence: float = 0.95) -> float:
    """How much wider Student's t is than the normal."""
    return student(freedom, confidence) / student(np.inf, confidence)


def check_confidence(confidence: float) -> None:
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, ends excluded; got {confidence!r}.")


def check_replicates(replicates: object) -> None:
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 1:
        raise ConfigError(f"replicates must be a whole number ≥ 1; got {replicates!r}.")
