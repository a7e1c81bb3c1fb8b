"""What a method must be: plain protocols, no base class needed."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData


@runtime_checkable
class Ranker(Protocol):
    """In-processing: learns from rows and gives scores, (n,), in the caller's row order."""

    def fit(self, X: Any, /) -> Any:
        """Train on rows."""
        ...

    def predict(self, X: Any, /) -> NDArray[np.float64]:
        """Score rows."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Post-processing: scores in, scores of a new order out, both in the caller's row order.

    One strength gives (n,), several give (n, strengths).
    """

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> NDArray[np.float64]:
        """Order the top k places of each list anew; the rest of the list follows."""
        ...
