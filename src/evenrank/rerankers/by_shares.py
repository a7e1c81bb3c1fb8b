"""What re-rankers share that hold every prefix to a share of each group: those of `fit`, or of the data at hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.rerankers.base import ScoreReranker


class ShareReranker(ScoreReranker):
    """Base of re-rankers that look at groups and their shares alone; subclasses say which shares, and re-rank."""

    learns = False
    shares_: dict[Any, Fraction]

    def fit(self, scores: ArrayLike | None, data: RankingData) -> Self:
        """Keep the shares, so that later data with other ones are held to the same.

        Parameters
        ----------
        scores : array-like, optional
            Not looked at.
        data : RankingData
            The rows whose groups and shares are kept; labels are not looked at.

        Returns
        -------
        ShareReranker
            The re-ranker itself.
        """
        self.shares_ = self._shares_of(data)
        self.group_names_ = tuple(data.group_names)
        return self

    def at(self, strength: float) -> Self:
        """Give the same re-ranker at another strength.

        Parameters
        ----------
        strength : float
            From 0 to 1.

        Returns
        -------
        ShareReranker
            A new one.
        """
        return self._with(strength=strength)

    # ------------------------------------------------------------------ for subclasses

    def _shares_of(self, data: RankingData) -> dict[Any, Fraction]:
        raise NotImplementedError

    def _asked_of(self, data: RankingData) -> tuple[NDArray[np.int64], tuple[Any, ...], dict[Any, Fraction]]:
        """The rows' group codes, the groups these count, and the shares: those of `fit` if it was called."""
        if hasattr(self, "shares_"):
            return self._groups(data), self.group_names_, self.shares_
        return data.group.astype(np.int64), tuple(data.group_names), self._shares_of(data)


def depth_of(data: RankingData, k: int | None) -> int:
    """Give the number of places to fill: k, or all of the longest list."""
    longest = int(data.lengths.max(initial=1))
    return longest if k is None else min(check_k(k), longest)
