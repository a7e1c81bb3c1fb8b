"""How often the base ranker is trained under a re-ranker."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import evenrank as er
from evenrank.methods.reranked import RerankedRanker


class CountedBase(er.FairLinearRanker):
    fits: ClassVar[list[int]] = []

    def fit(self, X, y=None, qid=None, sensitive_features=None):
        self.fits.append(1)
        return super().fit(X, y, qid=qid, sensitive_features=sensitive_features)


@pytest.mark.parametrize(
    ("reranker", "fits"),
    [
        (er.DetRanker("greedy"), 1),
        (er.DetRanker("const_sort"), 1),
        (er.MultinomialFAStar(), 1),
        (
            er.GroupOffset("dp", k=3),
            6,
        ),  # learns from scores, so these are of models of other queries: five folds and one
    ],
)
def test_the_base_is_trained_again_only_for_what_learns_from_scores(reranker, fits) -> None:
    rng = np.random.default_rng(0)
    n = 200
    data = er.RankingData.from_arrays(
        rng.standard_normal((n, 3)), rng.integers(0, 2, n), rng.choice(["a", "b"], n), np.repeat(np.arange(20), 10)
    )
    CountedBase.fits.clear()
    RerankedRanker(CountedBase(alpha=0.0), reranker).fit(data)
    assert len(CountedBase.fits) == fits
