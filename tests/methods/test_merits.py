"""Chances of relevance that many scores share: the scores order their items, not the rows."""

from __future__ import annotations

import numpy as np

from evenrank.data import RankingData
from evenrank.linear.path import fairness_path
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS


def rows(seed: int, *, sorted_by_label: bool) -> RankingData:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(20), 8)
    X = rng.normal(size=(160, 2))
    relevance = (X[:, 0] + 3 * rng.normal(size=160) > 0).astype(int)
    if sorted_by_label:
        order = np.lexsort([-relevance, query])
        X, relevance = X[order], relevance[order]
    return RankingData.from_arrays(X, relevance, rng.choice(["a", "b"], 160), query)


def test_the_order_of_rows_says_nothing_of_equal_chances() -> None:
    """Items of which each stands in one list are owed their relevance alone, so that their order is that of scores."""
    train, test = rows(0, sorted_by_label=False), rows(1, sorted_by_label=True)
    task = Task((train,), (test,), ("demographic_parity",), np.array([1.0]), (3,))
    method = METHODS["equity_of_attention"]
    (part,) = method.run(method, task)
    plain = fairness_path(train, "dp", [0.0]).scores(test)[:, 0].reshape(20, 8)
    assert np.array_equal(np.argsort(-part.scores[:, 0].reshape(20, 8)), np.argsort(-plain))
