"""Stochastic descent over batches of queries, every model sharing each pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered
from evenrank.contrasts import Contrast
from evenrank.data import RankingData
from evenrank.design_columns import contrast_rows, group_indicators, group_shares
from evenrank.linear.descent import LAST, beyond, capped_step, diverged, still_diverged, warn_diverged
from evenrank.linear.design import Design
from evenrank.losses import Loss
from evenrank.notions import Cells
from evenrank.progress import Progress, warn_interrupted
from evenrank.ranking import Ranking
from evenrank.row_checks import MappedPages

PAPERS = 1e-4 * 10  # its learning rate times its largest strength


@dataclass(frozen=True)
class Schedule:
    """How the queries are gone through: batches of ``batch_queries`` with at most ``batch_items`` items each.

    A longer list gives a fresh random draw every epoch.
    """

    learning_rate: float
    epochs: int
    batch_queries: int
    batch_items: int | None
    seed: int


def train(
    design: Design,
    settings: Sequence[Cells],
    alphas: NDArray[np.float64],
    loss: Loss,
    schedule: Schedule,
    *,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], int]:
    """Train by batches; gives Θ (settings · strengths, width) and the number of batches taken.

    The gap is the batch's own, so the penalty is a biased estimate of the whole's. Strengths that diverge are trained
    again in the longest steps that are stable.
    """
    rate = schedule.learning_rate
    last, rise, taken = _passes(design, settings, alphas, loss, schedule, progress=progress)
    theta = last[-1]
    strengths = np.tile(alphas, len(theta) // len(alphas))
    if rise is not None:
        at_0 = design.start(loss)
        # Small batches are worse than scores of 0 by chance, but not by as much again.
        lost = diverged(at_0, rise - at_0)
        strong = beyond(PAPERS, rate, strengths)
        if strong.any():
            with np.errstate(over="ignore", invalid="ignore"):
                # What jumps to and fro passes 0 now and then.
                gamma = np.max([_whole_gamma(design, settings, at) for at in last], axis=0)
                lost |= strong & diverged(at_0, rise, strengths * gamma)
        if lost.any():
            warn_diverged("sgd", lost, strengths, rate)
            some = lost.reshape(-1, len(alphas)).any(axis=0)
            stable, _, _ = _passes(design, settings, alphas[some], loss, schedule, capped=True)
            theta[lost] = stable[-1][lost.reshape(-1, len(alphas))[:, some].ravel()]
    if not np.isfinite(theta).all():
        raise still_diverged("sgd", rate)
    return theta, taken


@np.errstate(over="ignore", invalid="ignore")  # weights that diverge are told of once, at the end
def _passes(
    design: Design,
    settings: Sequence[Cells],
    alphas: NDArray[np.float64],
    loss: Loss,
    schedule: Schedule,
    *,
    capped: bool = False,
    progress: Progress | None = None,
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64] | None, int]:
    """The last few Θ, the number of batches, and between them how far the loss of the last epoch's is above scores 0's.

    That is None where training was interrupted.
    """
    data, rate = design.data, schedule.learning_rate
    dtype: Any = np.float64 if data.features.dtype == np.float64 else np.float32
    columns = len(design.center)
    weights = np.zeros((columns, max(1, len(settings)) * len(alphas)), dtype)
    intercept = np.zeros(weights.shape[1], dtype)
    center, spread = design.center.astype(dtype), design.spread.astype(dtype)
    scaled = bool(center.any() or (spread != 1).any())
    ridge = 2 * design.ridge[:columns, None].astype(dtype)
    target = (data.relevant if loss.binary else data.relevance).astype(dtype)
    indicators = group_indicators(data.group, group_shares(data)).astype(dtype) if design.group_aware else None
    penalty = BatchPenalty(settings, np.ones_like(alphas) if capped else alphas, design, dtype) if settings else None
    limits = np.tile(alphas, max(1, len(settings)))
    pages = MappedPages(data.features)
    rng = np.random.default_rng(schedule.seed)
    batches = -(-data.n_queries // schedule.batch_queries)
    rise = np.zeros(weights.shape[1])
    taken = 0
    last: list[NDArray[Any]] = []
    try:
        for epoch in range(schedule.epochs):
            shuffled = data.sorted_queries[rng.permutation(data.n_queries)]
            for start in range(0, data.n_queries, schedule.batch_queries):
                queries = shuffled[start : start + schedule.batch_queries]
                rows, unit, n_units = _batch_rows(data, queries, schedule.batch_items, rng)
                X = np.asarray(data.features[rows]).astype(dtype, copy=False)
                pages.read(len(rows) * data.n_features * data.features.itemsize)
                if indicators is not None:
                    X = np.hstack([X, indicators[rows]])
                if scaled:
                    X = (X - center) / spread
                scores = X @ weights + intercept
                share = np.full(len(rows), 1 / len(rows)) if data.sample_weight is None else data.sample_weight[rows]
                share = (share / max(share.sum(), np.finfo(float).tiny)).astype(dtype)
                judged = target[rows][:, None]
                ptr = np.append(np.flatnonzero(np.diff(unit, prepend=-1)), len(unit))
                outputs = scores
                if loss.within:
                    outputs, judged = centered(scores, ptr, share), centered(judged, ptr, share)
                slope = loss.gradient(outputs, judged) * share[:, None]
                if epoch == schedule.epochs - 1:
                    rise += share @ (loss.value(outputs, judged) - loss.value(np.zeros_like(judged), judged)) / batches
                step = rate
                if capped:
                    square = (share @ (X.astype(np.float64) ** 2)).sum() + 1
                    step = min(rate, 1 / (loss.steepest * float(square) + 2 * design.ridge.max(initial=0)))
                if penalty is not None:
                    values = centered(scores, ptr) if design.target == "centered" else scores
                    gamma, down = penalty.subgradient(values, rows, unit, n_units)
                    down = centered(down, ptr) if design.target == "centered" else down
                    if capped:
                        weights_down = (X.T @ down).astype(np.float64)
                        length = capped_step(gamma, (weights_down**2).sum(axis=0), rate * limits)
                        weights -= (length * weights_down).astype(dtype)
                    else:
                        slope += down
                weights -= dtype(step) * (X.T @ slope + ridge * weights)
                if design.width > columns:
                    intercept -= dtype(step) * slope.sum(axis=0)
                taken += 1
                if taken > batches * schedule.epochs - LAST:
                    last.append(np.vstack([weights, intercept]))
                if progress is not None:
                    progress(taken / (batches * schedule.epochs))
    except KeyboardInterrupt:
        warn_interrupted(taken, batches * schedule.epochs, "batches")
    whole = taken == batches * schedule.epochs
    each = last if whole else [np.vstack([weights, intercept])]
    return [at.T[:, : design.width].astype(np.float64) for at in each], rise if whole else None, taken


def _whole_gamma(design: Design, settings: Sequence[Cells], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Γ on all rows, (models,)."""
    data, out = design.data, []
    for cells, part in zip(settings, np.split(theta, max(1, len(settings))), strict=True):
        units = (data.query_of_row, data.n_queries) if design.scope == "per_query" else (None, 1)
        contrast = cells.contrast(slice(None), *units, across=design.across)
        rows = contrast_rows(contrast, data, group_aware=design.group_aware, target=design.target) / design.spread
        out.append(contrast.pairs.value(rows @ part[:, : rows.shape[1]].T))
    return np.concatenate(out)


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
        per_setting = np.diag(strata.sum() / strata)[np.repeat(np.arange(len(settings)), strata)]
        self.strength = np.kron(per_setting, alphas).astype(dtype)

    def subgradient(
        self, scores: NDArray[Any], rows: NDArray[np.int64], unit: NDArray[np.int64], n_units: int
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Compute Γ times the strength, (models,), and its slope in the scores, (rows, models)."""
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
        gaps = contrast.gaps(scores)
        slope = contrast.pairs.slope(gaps) * self.strength[contrast.pairs.block // n_units]
        return (slope * gaps).sum(axis=0, dtype=np.float64), contrast.pull_back(slope)


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
