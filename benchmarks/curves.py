"""What the studies of quality against fairness share: made-up rows, and how a curve is summed up."""

from __future__ import annotations

from typing import Any

import numpy as np

import evenrank as er

K, FOLDS = 5, 5


def synthetic(
    queries: int = 2000, seed: int = 0, length: tuple[int, int] = (8, 25), features: int = 10
) -> er.RankingData:
    """Lists of 8 to 24 graded items; a third is in group b, which two informative features disfavour and one shows."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(*length, queries))
    n = len(qid)
    b = rng.random(n) < 0.35
    X = rng.normal(size=(n, features))
    X[:, 0] -= 0.3 * b
    X[:, 1] -= 0.2 * b
    X[:, 2] += 1.0 * b
    merit = X[:, 0] + 0.6 * X[:, 1] + 0.5 * X[:, 3] * X[:, 4] + 0.4 * np.sin(2 * X[:, 5])
    relevance = np.clip(np.floor(merit + rng.normal(size=n)), 0, 4)
    return er.RankingData.from_arrays(X, relevance, np.where(b, "b", "a"), qid)


def hard_synthetic(queries: int = 2000, bias: float = 0.3, seed: int = 0) -> er.RankingData:
    """Lists of 8 to 24; a third is in group b, whose merit's own features are shifted; no other shows it."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(8, 25, queries))
    n = len(qid)
    b = rng.random(n) < 0.35
    X = rng.normal(size=(n, 10))
    X[:, 0] -= bias * b
    X[:, 1] += 0.6 * bias * b
    X[:, 9] = rng.normal(size=queries)[qid]
    merit = X[:, 0] + 0.5 * np.tanh(2 * X[:, 1]) * X[:, 2] + 0.7 * np.abs(X[:, 3]) + 0.4 * X[:, 4] * (X[:, 5] > 0)
    relevance = merit + rng.normal(size=n) > 1
    return er.RankingData.from_arrays(X, relevance, np.where(b, "b", "a"), qid)


def summary(name: str, alphas: Any, violation: Any, quality: Any, error: Any) -> list[str]:
    free = quality >= quality[0] - (error[0] + error)
    best = np.flatnonzero(free)[np.argmin(violation[free])]
    return [
        name,
        f"{quality[0]:.3f} ± {error[0]:.3f}",
        f"{violation[0]:.3f}",
        f"{1 - violation[best] / violation[0]:.0%}",
        f"{alphas[best]:.2g}",
        f"{quality[best]:.3f}",
        f"{violation[-1]:.3f}",
        f"{quality[-1]:.3f}",
        f"{(violation - np.minimum.accumulate(violation)).max():.3f}",
    ]


COLUMNS = ["", "NDCG at 0", "violation at 0", "free cut", "at α", "NDCG", "violation at 10", "NDCG", "largest rise"]


def random_ranking(data: er.RankingData, notion: str) -> str:
    scores = np.random.default_rng(0).normal(size=(data.n_rows, 50))
    found = er.measure(scores, data, [f"ndcg@{K}", f"{notion}@{K}"])
    return f"random order: NDCG {found[f'ndcg@{K}'].mean():.3f}, violation {found[f'{notion}@{K}'].mean():.3f}"
