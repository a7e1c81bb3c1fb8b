"""Stochastic descent over batches of queries, every model sharing each pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.linear.design import Design
from evenrank.losses import Loss
from evenrank.moments import group_indicators, group_shares
from evenrank.notions import Cells, Contrast
from evenrank.progress import Progress, warn_interrupted
from evenrank.ranking import Ranking
from evenrank.row_checks import MappedPages


@np.errstate(over="ignore", invalid="ignore")  # weights that diverge are told of once, at the end
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
    center, spread = design.center.astype(dtype), design.spread.astype(dtype)
    scaled = bool(center.any() or (spread != 1).any())
    ridge = 2 * design.ridge[:columns, None].astype(dtype)
    target = (data.relevant if loss.binary else data.relevance).astype(dtype)
    indicators = group_indicators(data.group, group_shares(data)).astype(dtype) if design.group_aware else None
    penalty = BatchPenalty(settings, alphas, design, dtype) if settings else None
    pages = MappedPages(data.features)
    rng = np.random.default_rng(seed)
    batches = -(-data.n_queries // batch_queries)
    taken = 0
    try:
        for _ in range(epochs):
            shuffled = data.sorted_queries[rng.permutation(data.n_queries)]
            for start in range(0, data.n_queries, batch_queries):
                rows, unit, n_units = _batch_rows(data, shuffled[start : start + batch_queries], batch_items, rng)
                X = np.asarray(data.features[rows]).astype(dtype, copy=False)
                pages.read(len(rows) * data.n_features * data.features.itemsize)
                if indicators is not None:
                    X = np.hstack([X, indicators[rows]])
                if scaled:
                    X = (X - center) / spread
                scores = X @ weights + intercept
                share = np.full(len(rows), 1 / len(rows)) if data.sample_weight is None else data.sample_weight[rows]
                share = (share / max(share.sum(), np.finfo(float).tiny)).astype(dtype)
                slope = loss.gradient(scores, target[rows][:, None]) * share[:, None]
                if penalty is not None:
                    slope += penalty.subgradient(scores, rows, unit, n_units)
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


class BatchPenalty:
    """α·Γ of every setting on a batch of rows.

    The strata of all settings stand in one stack, so that one sparse contrast serves every model.
    """

    def __init__(self, settings: Sequence[Cells], alphas: NDArray[np.float64], design: Design, dtype: Any) -> None:
        self.settings, self.across, self.dtype = settings, design.across, dtype
        self.per_query = design.scope == "per_query"
        self.n_groups = max(cells.n_groups for cells in settings)
        strata = np.array([len(cells.strata) for cells in settings])
        # A contrast averages over its whole stack, a setting over its own strata.
        own = np.diag(strata.sum() / strata)[np.repeat(np.arange(len(settings)), strata)]
        self.strength = np.kron(own, alphas).astype(dtype)

    def subgradient(
        self, scores: NDArray[Any], rows: NDArray[np.int64], unit: NDArray[np.int64], n_units: int
    ) -> NDArray[Any]:
        """In the scores, (rows, models)."""
        codes = np.concatenate([np.where(cells.strata[:, rows], cells.group[rows], -1) for cells in self.settings])
        stratum, row = np.nonzero(codes >= 0)
        n_units = n_units if self.per_query else 1
        block = stratum * n_units + (unit[row] if self.per_query else 0)
        contrast = Contrast(
            row,
            block * self.n_groups + codes[stratum, row],
            self.settings[0].weight[rows][row],
            len(rows),
            (len(codes), n_units, self.n_groups),
            across=self.across,
            dtype=self.dtype,
        )
        pairs = contrast.pairs
        return contrast.pull_back(pairs.slope(contrast.gaps(scores)) * self.strength[pairs.block // n_units])


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
