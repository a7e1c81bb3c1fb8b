"""`Evaluation`: one ranking of one data set, with what several measures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.notions import bind
from evenrank.ranking import Ranking, descending, discount_sums

MOST_EXPONENTIAL = 1000  # 2^1024 overflows


@dataclass
class Evaluation:
    """One ranking (or a matrix of them) of one data set, with what several measures share.

    Attributes
    ----------
    data : RankingData
        The rows.
    ranking : Ranking
        Their ranking, by one column of scores or by several.
    gain : str
        "linear" or "exponential".
    across : str
        How more than two groups are combined: "mean" or "max".
    shared : dict
        Parts that depend on the data alone, computed once and used by every ranking of it.
    """

    data: RankingData
    ranking: Ranking
    gain: str = "linear"
    across: str = "mean"
    shared: dict[Any, Any] = field(default_factory=dict)

    def per_query_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum row values, (n,) or (n, models), over each query."""
        return np.asarray(np.add.reduceat(values, self.data.query_ptr[:-1], axis=0))

    def as_column(self, row_values: NDArray[Any]) -> NDArray[Any]:
        """Shape one value per row or per query so that it broadcasts over the models, if there are any."""
        return row_values if self.ranking.first.ndim == 1 else row_values[:, None]

    def contrast(self, notion: str, scope: str = "amortized") -> Contrast:
        """Bind a notion to the rows, once per notion and scope."""
        contrast: Contrast = self._once(
            (notion, scope), lambda: bind(notion, self.data, scope=scope, across=self.across)
        )
        return contrast

    def ideal(self, k: int | None) -> NDArray[np.float64]:
        """Compute the best DCG@k of each query, (q,)."""
        data = self.data

        def best() -> NDArray[np.float64]:
            ordered = self._once("ordered", lambda: descending(self.gains, data.query_ptr))
            place = np.arange(data.n_rows) - np.repeat(data.query_ptr[:-1], data.lengths)
            return self.per_query_sum(ordered * np.diff(discount_sums(int(data.lengths.max()), k))[place])

        ideal: NDArray[np.float64] = self._once(("ideal", k), best)
        return ideal

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """What each row adds to DCG before its discount, (n,)."""
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
        """The number of relevant items of each query, (q,)."""
        return self.per_query_sum(self.data.relevant.astype(float))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]


PerQuery = Callable[[Evaluation, int | None], NDArray[Any]]


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """Divide, with NaN where the denominator is not above 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    out = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=out, where=np.broadcast_to(np.asarray(denominator) > 0, shape))
    return out
