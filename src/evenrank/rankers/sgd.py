"""Stochastic descent over batches of queries, every model sharing each pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.losses import Loss
from evenrank.moments import group_indicators, group_shares
from evenrank.notions import Cells
from evenrank.rankers.descent import Progress, warn_interrupted
from evenrank.rankers.design import Design
from evenrank.ranking import Ranking


def train(
    design: Design,
    settings: Sequence[Cells],
    alphas: NDArray[np.float64],
    loss: Loss,
    *,
    learning_rate: float,
    epochs: int,
    batch_queries: int,
    batch_items: int | None,
    seed: int,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], int]:
    """Θ (settings · strengths, width), and the batches taken.

    A batch is ``batch_queries`` queries with at most ``batch_items`` items each (a longer list gives a fresh random
    draw every epoch). The gap is the batch's own, so the penalty is a biased estimate of the whole's.
    """
    data = design.data
    dtype: Any = np.float64 if data.features.dtype == np.float64 else np.float32
    columns = len(design.center)
    weights = np.zeros((columns, max(1, len(settings)) * len(alphas)), dtype)
    intercept = np.zeros(weights.shape[1], dtype)
    strength = alphas.astype(dtype)
    center, spread = design.center.astype(dtype), design.spread.astype(dtype)
    scaled = bool(center.any() or (spread != 1).any())
    ridge = 2 * design.ridge[:columns, None].astype(dtype)
    target = (data.relevant if loss.binary else data.relevance).astype(dtype)
    indicators = group_indicators(data.group, group_shares(data)).astype(dtype) if design.group_aware else None
    penalised = [(cells, slice(i * len(alphas), (i + 1) * len(alphas))) for i, cells in enumerate(settings)]
    rng = np.random.default_rng(seed)
    batches = -(-data.n_queries // batch_queries)
    taken = 0
    try:
        for _ in range(epochs):
            shuffled = data.sorted_queries[rng.permutation(data.n_queries)]
            for start in range(0, data.n_queries, batch_queries):
                rows, unit, n_units = _batch_rows(data, shuffled[start : start + batch_queries], batch_items, rng)
                X = data.features[rows].astype(dtype, copy=False)
                if indicators is not None:
                    X = np.hstack([X, indicators[rows]])
                if scaled:
                    X = (X - center) / spread
                scores = X @ weights + intercept
                share = np.full(len(rows), 1 / len(rows)) if data.sample_weight is None else data.sample_weight[rows]
                share = (share / max(share.sum(), np.finfo(float).tiny)).astype(dtype)
                slope = loss.gradient(scores, target[rows][:, None]) * share[:, None]
                for cells, models in penalised:
                    contrast = (
                        cells.contrast(rows, unit, n_units, across=design.across, dtype=dtype)
                        if design.scope == "per_query"
                        else cells.contrast(rows, across=design.across, dtype=dtype)
                    )
                    slope[:, models] += strength * contrast.gradient(np.ascontiguousarray(scores[:, models]))
                weights -= dtype(learning_rate) * (X.T @ slope + ridge * weights)
                if design.width > columns:
                    intercept -= dtype(learning_rate) * slope.sum(axis=0)
                taken += 1
                if progress is not None:
                    progress(taken / (batches * epochs))
    except KeyboardInterrupt:
        warn_interrupted(taken, batches * epochs, "batches")
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise ConfigError(f"sgd diverged with learning_rate={learning_rate:g}. Lower it, or keep scale='train'.")
    return np.vstack([weights, intercept]).T[:, : design.width].astype(np.float64), taken


def _batch_rows(
    data: RankingData, queries: NDArray[np.int64], batch_items: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Row numbers of a batch, each row's query within it, and the number of queries."""
    lengths = data.lengths[queries]
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(ptr[-1]) + np.repeat(data.query_ptr[queries] - ptr[:-1], lengths)
    unit = np.repeat(np.arange(len(queries)), lengths)
    if batch_items is not None and lengths.max() > batch_items:
        drawn = Ranking(rng.random(len(rows)), ptr).first < batch_items
        rows, unit = rows[drawn], unit[drawn]
    return rows, unit, len(queries)
