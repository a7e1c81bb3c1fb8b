"""`compare`: two rankings of the same queries, paired by query, with several measures corrected together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.intervals import (
    REPLICATES,
    check_confidence,
    resampled_sums,
    stacked,
    statistics,
    swapped_sums,
    t_over_normal,
    unstacked,
)


@dataclass(frozen=True)
class Comparison:
    """A measure of two rankings of the same queries; ``difference`` is b's minus a's.

    ``p_value`` is from swapping the two rankings query by query at random; ``adjusted`` is corrected (Holm) for all the
    measures compared together.
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
    """Two rankings of the same queries (before and after, A and B), paired by query.

    Intervals of the differences come from resampling queries, both rankings together; p-values from a randomisation
    test, which swaps the two rankings of each query with probability ½ and is valid for any measure if, under the null
    hypothesis, it does not matter which ranking a query got.

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
    names = [measures] if isinstance(measures, str) else list(measures)
    one, two = (statistics(scores, data, names, across=across) for scores in (a, b))
    if data.n_queries < 2:
        raise DataError(f"a comparison over queries needs at least two; the data has {data.n_queries}.")
    tables = stacked(one), stacked(two)
    first, second = (
        [stat.value(gaps) for stat, gaps in zip(one, unstacked(one, table.sum(axis=0)), strict=True)]
        for table in tables
    )
    drawn = resampled_sums(np.hstack(tables), replicates=replicates, seed=seed)
    half = tables[0].shape[1]
    swapped = swapped_sums(*tables, replicates=replicates, seed=seed)

    def differences(left: NDArray[Any], right: NDArray[Any]) -> list[NDArray[np.float64]]:
        pairs = zip(one, unstacked(one, left), unstacked(one, right), strict=True)
        return [stat.value(after) - stat.value(before) for stat, before, after in pairs]

    p_values, found = [], []
    for stat, before, after, resampled, null in zip(
        one, first, second, differences(drawn[:, :half], drawn[:, half:]), differences(*swapped), strict=True
    ):
        difference = float(after - before)
        reach = float(np.nanquantile(np.abs(resampled - difference), confidence)) * t_over_normal(
            max(stat.queries - 1, 1)
        )
        extreme = np.abs(null) >= abs(difference) * (1 - 1e-12) - 1e-15
        p_values.append((1 + int(extreme.sum())) / (1 + replicates) if np.isfinite(difference) else np.nan)
        found.append((stat.name, float(before), float(after), difference, difference - reach, difference + reach))
    adjusted = holm(np.array(p_values))
    return [
        Comparison(*entry, p_value=p, adjusted=float(corrected), confidence=confidence)
        for entry, p, corrected in zip(found, p_values, adjusted, strict=True)
    ]


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's correction: no more than the chosen share of false alarms among all the tests; NaN stays.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    out = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = len(order) - np.arange(len(order))
    out[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors)) if len(order) else 0
    return out
