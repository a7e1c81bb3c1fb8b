"""`compare`: two rankings of the same queries, paired by query, with several measures corrected together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.intervals import LEAST_FREEDOM, REPLICATES, check_confidence, check_replicates, t_over_normal
from evenrank.query_sums import resampled_ratios, swapped_ratios
from evenrank.statistic import RankedQueries, Statistic

CLEAR = 3.0  # standard errors from 0 at which a gap's sign is taken as known
ROUNDING = 1e-12  # a swap of all queries, or of those that do not differ, is as extreme as none


@dataclass(frozen=True)
class Comparison:
    """A measure of two rankings of the same queries.

    Attributes
    ----------
    measure : str
        The measure.
    a, b : float
        Its value for each ranking.
    difference : float
        b's value minus a's.
    low, high : float
        The confidence interval of the difference.
    p_value : float
        From swapping the two rankings query by query at random.
    adjusted : float
        The p-value corrected (Holm) for all the measures compared together.
    confidence : float
        The confidence of the interval.
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float
    confidence: float


def compare(
    a: ArrayLike,
    b: ArrayLike,
    data: RankingData,
    measures: Sequence[str],
    *,
    confidence: float = 0.95,
    across: str = "mean",
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Comparison]:
    """Compare two rankings of the same queries (before and after, A and B), paired by query.

    Intervals of the differences come from resampling queries, both rankings together; where the sign of a gap is not
    clear they allow for either. P-values come from a randomisation test, which swaps the rankings of each query with
    probability ½ and is valid for any measure if, under the null hypothesis, it does not matter which ranking a query
    got.

    Parameters
    ----------
    a, b : array-like
        The scores of each ranking, (n,), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measures : sequence of str
        The measures, such as ["eop@3", "ndcg@3"].
    confidence : float
        Between 0 and 1, ends excluded.
    across : str
        How more than two groups are combined: "mean" over all pairs, or "max".
    replicates : int
        The number of resamples, and of random swaps.
    seed : int
        Seeds both.

    Returns
    -------
    list of Comparison
        One per measure, in the order given.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> before, after = (er.FairLinearRanker("dp", alpha).fit(data).predict(data) for alpha in (0.0, 0.2))
    >>> change = compare(before, after, data, ["dp@5", "ndcg@5"])
    >>> bool(change[0].high < 0 and change[0].adjusted < 0.01)     # the gap has fallen
    True
    """
    check_confidence(confidence)
    check_replicates(replicates)
    names = [measures] if isinstance(measures, str) else list(measures)
    first = RankedQueries(a, data)
    second = first.ranked_by(b)
    entries, p_values = [], []
    for batch in first.batches([[name, name] for name in names], replicates=2 * replicates):
        of_a, of_b = (ranked.statistics([names[i] for i in batch], across=across) for ranked in (first, second))
        if data.n_queries < 2:
            raise DataError(f"a comparison over queries needs at least two; the data has {data.n_queries}.")
        sums = [[stat.sums for stat in stats] for stats in (of_a, of_b)]
        drawn = resampled_ratios([*sums[0], *sums[1]], replicates=replicates, seed=seed)
        swapped = swapped_ratios(*sums, replicates=replicates, seed=seed)
        for stat, other, *resampled, turned in zip(
            of_a, of_b, drawn[: len(of_a)], drawn[len(of_a) :], swapped, strict=True
        ):
            before, after = float(stat.value(stat.estimates)), float(stat.value(other.estimates))
            difference = after - before
            reach, p = np.nan, np.nan
            if np.isfinite(difference):
                reach = _reach(stat, other, resampled[0], resampled[1], confidence)
                p = _p_value(stat, *turned, difference)
            low, high = np.clip([difference - reach, difference + reach], -1, 1).tolist()
            p_values.append(p)
            entries.append((stat.name, before, after, difference, low, high))
    adjusted = holm(np.array(p_values))
    return [
        Comparison(*entry, p_value=p, adjusted=float(corrected), confidence=confidence)
        for entry, p, corrected in zip(entries, p_values, adjusted, strict=True)
    ]


def _p_value(stat: Statistic, left: NDArray[np.float64], right: NDArray[np.float64], difference: float) -> float:
    """The share of random swaps, from their ratios (r, replicates), that differ no less than the two rankings."""
    replicates = int(left.shape[1])
    milder = 0
    for part in stat.few_at_a_time(replicates):
        swapped = stat.value(stat.gaps(right[:, part])) - stat.value(stat.gaps(left[:, part]))
        milder += int((np.abs(swapped) < abs(difference) - ROUNDING).sum())
    return (1 + replicates - milder) / (1 + replicates)


def _reach(
    a: Statistic, b: Statistic, drawn_a: NDArray[np.float64], drawn_b: NDArray[np.float64], confidence: float
) -> float:
    """How far the difference of two measures may be from the truth, from their resampled ratios (r, replicates)."""
    if a.freedom < LEAST_FREEDOM:
        return np.inf
    widen = t_over_normal(a.freedom, confidence) * np.sqrt(1 + 1 / a.freedom)
    if a.pairs is None:
        moves = [stat.gaps(drawn)[0] - stat.estimates[0] for stat, drawn in ((a, drawn_a), (b, drawn_b))]
        sizes = np.abs(moves[1] - moves[0]) * widen
    else:
        sizes = _moves_of_differences([a, b], [drawn_a, drawn_b], float(widen))
    return float(np.nanquantile(sizes, confidence))


def _moves_of_differences(
    stats: list[Statistic], drawn: list[NDArray[np.float64]], widen: float
) -> NDArray[np.float64]:
    """The largest size of the move of Γ(b) − Γ(a) that resampled ratios (r, replicates) of both make, (replicates,).

    A gap far from 0 moves its absolute value by its own move, with the gap's sign. Near 0 the sign is unknown, and the
    absolute value moves by at most the size of the gap's move either way. If that is so in both rankings, then also
    | |g_b| − |g_a| | ≤ |g_b − g_a|, which is small for similar rankings.
    """
    pairs = stats[0].pairs
    assert pairs is not None
    levels = [stat.levels(ratios) for stat, ratios in zip(stats, drawn, strict=True)]
    # A ratio is exp(−L), L the largest gap of logarithms: its moves are those of L times the ratio.
    scales = [float(s.value(s.estimates)) if s.kind == "ratio" else 1.0 for s in stats]
    low = high = np.zeros(drawn[0].shape[1])
    for members, weight in _blocks(pairs):
        gaps = [stat.estimates[members] for stat in stats]
        moves = [
            (level[pairs.a[members]] - level[pairs.b[members]] - gap[:, None]) * widen
            for level, gap in zip(levels, gaps, strict=True)
        ]
        signed = [_signed_move(g, m) for g, m in zip(gaps, moves, strict=True)]
        either = [scale * np.abs(m).max(axis=0) for scale, m in zip(scales, moves, strict=True)]
        if signed[0] is None and signed[1] is None:
            sizes = [scale * np.abs(g).max() for scale, g in zip(scales, gaps, strict=True)]
            shared = np.abs(gaps[1] - gaps[0]).max() + np.abs(moves[1] - moves[0]).max(axis=0)
            most = np.minimum(either[0] + either[1], abs(sizes[1] - sizes[0]) + max(scales) * shared)
            low, high = low - weight * most, high + weight * most
            continue
        for sign, scale, move, size in zip((-1, 1), scales, signed, either, strict=True):
            low = low + weight * (-size if move is None else sign * scale * move)
            high = high + weight * (size if move is None else sign * scale * move)
    return np.asarray(np.maximum(np.abs(low), np.abs(high)))


def _blocks(pairs: Pairs) -> list[tuple[NDArray[np.int64], float]]:
    """The gaps of which the largest counts, and its weight: each alone, or the pairs of a stratum."""
    if pairs.across == "mean":
        return [(np.array([j]), float(weight)) for j, weight in enumerate(pairs.weight)]
    return [
        (np.flatnonzero(pairs.block == b), float(pairs.weight[pairs.block == b][0])) for b in np.unique(pairs.block)
    ]


def _signed_move(gaps: NDArray[np.float64], moves: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Moves, of (J, replicates), of the largest absolute gap; None if its sign, or which it is, is not clear."""
    turned = moves * np.sign(gaps)[:, None]
    lead = int(np.argmax(np.abs(gaps)))
    margin = np.abs(gaps[lead]) - np.abs(gaps)
    spread = np.nanstd(turned[lead] - turned, axis=1)
    margin[lead], spread[lead] = np.abs(gaps[lead]), np.nanstd(turned[lead])
    return turned[lead] if (margin > CLEAR * spread).all() else None


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct p-values by Holm's method, for the chance of any false alarm among all the tests.

    Parameters
    ----------
    p_values : ndarray
        (tests,); NaN where there is no test, which stays NaN and does not count.

    Returns
    -------
    ndarray
        The corrected p-values, (tests,).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    out = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = len(order) - np.arange(len(order))
    out[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors)) if len(order) else 0
    return out
