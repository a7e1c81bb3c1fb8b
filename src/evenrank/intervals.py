"""Intervals that respect queries: rows of a query are dependent, queries are not.

Every measure here is a function of sums over queries (a ratio of two, or differences of such ratios), so the sums of
each query are taken once. The bootstrap draws queries with replacement, which is a matrix product of counts with those
sums; the analytic interval uses each query's influence on the estimate.

**Violations are absolute values**, and the usual intervals fail near 0: a resampled gap is almost never 0. But Γ is a
seminorm of the signed gaps g, so |Γ(ĝ) − Γ(g)| ≤ Γ(ĝ − g) for any number of groups and strata. The interval is
Γ(ĝ) ± c, cut at 0, with c the quantile of Γ(g* − ĝ) over resamples g*: honest at 0, and for one gap the interval of the
signed gap folded at 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning, choose
from evenrank.measures import Evaluation, parse_measure
from evenrank.notions import NOTIONS, Contrast, Pairs, bind
from evenrank.ranking import Ranking

METHODS = ("bootstrap", "analytic")
REPLICATES = 2000
CELLS = 1 << 22
FEW = 10


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
    pairs : which ratios are compared, for a violation; None for a plain mean
    kind : "mean", "gap" (Γ of the ratios) or "ratio" (lowest over highest)
    """

    name: str
    top: NDArray[np.float64]
    bottom: NDArray[np.float64]
    kind: str
    pairs: Pairs | None = None

    @property
    def queries(self) -> int:
        """Queries that bear on the ratio with the fewest."""
        return int((self.bottom > 0).sum(axis=0).min(initial=len(self.bottom)))

    def ratios(self, top: NDArray[Any], bottom: NDArray[Any]) -> NDArray[np.float64]:
        """Of sums (…, r)."""
        out = np.full(np.shape(top), np.nan)
        np.divide(top, bottom, out=out, where=np.asarray(bottom) > 0)
        return out

    def gaps(self, ratios: NDArray[Any]) -> NDArray[np.float64]:
        """Signed differences (…, J); a mean or a lowest-over-highest ratio is its own only 'gap'."""
        if self.kind == "gap":
            assert self.pairs is not None
            return np.asarray(ratios[..., self.pairs.a] - ratios[..., self.pairs.b])
        if self.kind == "ratio":
            return self.ratios(ratios.min(axis=-1, keepdims=True), ratios.max(axis=-1, keepdims=True))
        return np.asarray(ratios)

    def value(self, gaps: NDArray[Any]) -> NDArray[np.float64]:
        """The measure from its gaps (…, J)."""
        if self.kind == "gap":
            assert self.pairs is not None
            value = self.pairs.value(np.moveaxis(gaps, -1, 0))
            return np.full_like(value, np.nan) if self.pairs.missing else value
        return np.asarray(gaps[..., 0])

    def influence(self) -> NDArray[np.float64]:
        """Each query's influence on the gaps, (q, J): its first-order share in the deviation from the truth."""
        total = self.bottom.sum(axis=0)
        ratios = self.ratios(self.top.sum(axis=0), total)
        each = (self.top - ratios * self.bottom) / np.where(total > 0, total, np.nan)
        if self.kind == "gap":
            assert self.pairs is not None
            return np.asarray(each[:, self.pairs.a] - each[:, self.pairs.b])
        if self.kind == "ratio":
            low, high = int(np.argmin(ratios)), int(np.argmax(ratios))
            if not ratios[high] > 0:
                return np.full((len(each), 1), np.nan)
            return np.asarray((each[:, [low]] - ratios[low] / ratios[high] * each[:, [high]]) / ratios[high])
        return np.asarray(each)


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
            contrasts[notion] = (bind(notion, data, scope="per_query", across=across, training=True), pooled.pairs)
        cells, pairs = contrasts[notion]
        rows = ev.ranking.exposure(k) if item.name == "exposure_gap" else ev.ranking.top(k or 1)
        # (strata, queries, groups) → (queries, strata · groups), the order in which pooled cells are numbered.
        weight = cells.cell_weight.astype(np.float64)
        means = cells.means(rows).reshape(weight.shape)
        bottom = weight.transpose(1, 0, 2).reshape(data.n_queries, -1)
        top = (means * weight).transpose(1, 0, 2).reshape(data.n_queries, -1)
        if item.name == "four_fifths":
            present = bottom.sum(axis=0) > 0
            out.append(Statistic(name, top[:, present], bottom[:, present], "ratio"))
        else:
            out.append(Statistic(name, top, bottom, "gap", pairs))
    return out


def resampled_sums(columns: NDArray[np.float64], *, replicates: int, seed: int) -> NDArray[np.float64]:
    """Sums of the columns (q, c) over queries drawn with replacement, (replicates, c).

    Queries go in chunks: how many of a replicate's draws fall in one is multinomial, and within it they are uniform. A
    chunk's counts are a dense matrix that stays in the cache while it is multiplied.
    """
    queries = len(columns)
    rng = np.random.default_rng(seed)
    sums = np.zeros((replicates, columns.shape[1]))
    chunk = max(1, CELLS // replicates)
    starts = np.arange(0, queries, chunk)
    sizes = np.minimum(chunk, queries - starts)
    hits = rng.multinomial(queries, sizes / queries, replicates)
    for start, size, hit in zip(starts.tolist(), sizes.tolist(), hits.T, strict=True):
        drawn = rng.integers(0, size, hit.sum()) + np.repeat(np.arange(replicates) * size, hit)
        counts = np.bincount(drawn, minlength=replicates * size).reshape(replicates, size)
        sums += counts.astype(np.float64) @ columns[start : start + size]
    return sums


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
            warnings.warn(
                f"{stat.name}: only {stat.queries} queries have an item of the rarest cell; its interval is rough",
                DataWarning,
                stacklevel=3,
            )
    drawn: Sequence[NDArray[np.float64] | None] = [None] * len(stats)
    if method == "bootstrap":
        drawn = unstacked(stats, resampled_sums(stacked(stats), replicates=replicates, seed=seed))
    return [
        _interval(stat, sample, confidence, method, signed, seed) for stat, sample in zip(stats, drawn, strict=True)
    ]


def _interval(
    stat: Statistic,
    sample: NDArray[np.float64] | None,
    confidence: float,
    method: str,
    signed: bool,
    seed: int,
) -> Interval:
    gaps = stat.gaps(stat.ratios(stat.top.sum(axis=0), stat.bottom.sum(axis=0)))
    absolute = stat.kind == "gap" and not signed
    if absolute and stat.pairs is not None and stat.pairs.missing:
        return Interval(stat.name, np.nan, np.nan, np.nan, confidence, method, 0)
    deviations = spread(stat, sample, seed)
    if absolute:
        assert stat.pairs is not None
        estimate = float(stat.pairs.value(gaps))
        reach = float(np.nanquantile(stat.pairs.value(deviations.T), confidence))
        return Interval(
            stat.name,
            estimate,
            max(0.0, estimate - reach),
            min(1.0, estimate + reach),
            confidence,
            method,
            stat.queries,
        )
    estimate = float(gaps.mean())
    low, high = np.nanquantile(deviations.mean(axis=1), [(1 - confidence) / 2, (1 + confidence) / 2])
    floor, ceiling = (-1.0, 1.0) if stat.kind == "gap" else (0.0, 1.0)
    return Interval(
        stat.name,
        estimate,
        float(max(floor, estimate + low)),
        float(min(ceiling, estimate + high)),
        confidence,
        method,
        stat.queries,
    )


def spread(stat: Statistic, sample: NDArray[np.float64] | None, seed: int) -> NDArray[np.float64]:
    """Draws of (estimate − truth)'s distribution, (draws, J), widened as Student's t is for few queries.

    From the bootstrap sample where there is one (shifted to the estimate), else normal with the influences' covariance.
    """
    n = max(stat.queries, 2)
    widen = t_over_normal(n - 1) * np.sqrt(n / (n - 1))
    if sample is not None:
        gaps = stat.gaps(stat.ratios(stat.top.sum(axis=0), stat.bottom.sum(axis=0)))
        return np.asarray((sample - gaps) * widen)
    influence = stat.influence()
    q = len(influence)
    covariance = influence.T @ influence * (q / max(1, q - 1))
    values, vectors = np.linalg.eigh(np.nan_to_num(covariance))
    root = vectors * np.sqrt(np.maximum(values, 0))
    count = 20_000
    # Antithetic normal quantiles in one dimension leave no simulation noise in the commonest case.
    if root.shape[0] == 1:
        from scipy.special import ndtri

        normal = ndtri((np.arange(count) + 0.5) / count)[:, None]
    else:
        normal = np.random.default_rng(seed).standard_normal((count, root.shape[0]))
    return np.asarray(normal @ root.T * t_over_normal(n - 1))


def t_over_normal(freedom: int) -> float:
    """How much wider Student's t is than the normal at the 97.5 % point."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(freedom, 0.975) / ndtri(0.975))


def check_confidence(confidence: float) -> None:
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, ends excluded; got {confidence!r}.")
