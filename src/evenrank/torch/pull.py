"""`BatchPull`: what the fairness term adds to the slope of a network's loss, batch after batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.group_chances import BINS, LEAF_ROWS, LEAVES, RATE, RIDGE, TREES, group_chances
from evenrank.contrasts import TINY
from evenrank.data import RankingData
from evenrank.extras import require
from evenrank.notions import Cells, NotionLike
from evenrank.targets import LossScale, bind_target, made_up
from evenrank.torch.losses import Tensor
from evenrank.torch.seen import QueryGaps, SeenGaps

torch: Any = require("torch")
# How strongly a strength of 1 pulls in the two ways, beside the loss; see `evenrank.boosting.pull`.
KNOWN, OWN = 0.4, 0.5
# A gap that was carried beyond 0 has half of its strength left, which is let go slowly: Adam goes on for some ten
# batches in a direction once taken, so swings are twenty apart, and in that time the strength must not double again.
# Gaps within this share of the smoothing at a strength of 1 are noise, not a swing.
HALVED, RELEASE, SWING = 0.5, 1.02, 0.13
# The gap of the top k itself differs from that of the soft one. The difference, a running mean over batches, moves the
# gap that is aimed at by no more than this share of the smoothing at a strength of 1: where the top k does not follow,
# the soft one would run away and take the ranking with it.
BIAS_MEMORY, MOST_BIAS = 0.95, 0.67
# The first batches belong to the loss. Adam's sizes remember a thousand: what swings here shortens all later steps.
WARM_UP = 10


class Way:
    """One way in which rows are pulled: along some gaps, by the size of these gaps.

    Parameters
    ----------
    gaps : SeenGaps or QueryGaps
        Of all rows, or within queries.
    times : float
        How strongly, at a strength of 1, beside the loss.
    cut : SeenGaps, optional
        Of all rows, for the top k itself, where ``gaps`` are those of the soft one.

    Attributes
    ----------
    scale : LossScale
        c so far.
    full, slope : ndarray
        In this batch, in the values, (b, models): the slope of the gaps' size, and that of its smooth form.
    """

    def __init__(self, gaps: SeenGaps | QueryGaps, times: float, cut: SeenGaps | None = None) -> None:
        self.gaps, self.times, self.cut, self.scale = gaps, times, cut, LossScale()
        self._share: Any = 1.0
        self._last: NDArray[Any] | None = None
        self._bias: NDArray[Any] | None = None

    def go_to(
        self,
        batch: tuple[Any, ...],
        unit: NDArray[Any],
        alphas: NDArray[Any],
        cut_batch: tuple[Any, ...] | None = None,
    ) -> None:
        """Take in a batch.

        Parameters
        ----------
        batch : tuple
            What `SeenGaps.take` takes.
        unit, alphas : ndarray
            The smoothing at a strength of 1, and the strengths, (models,).
        cut_batch : tuple, optional
            The same batch with the values of the top k itself, for ``cut``.
        """
        gaps = self.gaps.take(*batch)
        if self.cut is not None and cut_batch is not None:
            gaps = gaps + self._bias_to(self.cut.take(*cut_batch) - gaps, MOST_BIAS * unit)
        if isinstance(self.gaps, SeenGaps):
            self._steady(gaps, unit)
        size, slope = np.abs(gaps), self.gaps.pairs.slope(gaps)
        self.full = self.gaps.pull_back(slope)
        self.slope = self.gaps.pull_back(slope * self._share * size / np.maximum(np.hypot(gaps, alphas * unit), TINY))

    def _bias_to(self, difference: NDArray[Any], most: NDArray[Any]) -> NDArray[Any]:
        """By how much the gap of the top k is larger than that of the soft one: a running mean, within bounds."""
        before = difference if self._bias is None else self._bias
        self._bias = BIAS_MEMORY * before + (1 - BIAS_MEMORY) * difference
        return np.clip(self._bias, -most, most)

    def _steady(self, gaps: NDArray[Any], unit: NDArray[Any]) -> None:
        """Less of the strength where a gap went to the other side of 0, more of it elsewhere."""
        if self._last is not None:
            swung = (gaps * self._last < 0) & (np.abs(gaps) > SWING * unit)
            self._share = np.where(swung, HALVED * self._share, np.minimum(1.0, RELEASE * self._share))
        self._last = gaps


@dataclass(frozen=True)
class Term:
    """What a network's fairness term evens out: the parameters of `FairNeuralRanker` of these names."""

    notion: NotionLike = "equal_opportunity"
    scope: str = "amortized"
    target: str = "topk"
    k: int = 5
    smoothing: float = 0.3
    momentum: float | None = None


class BatchPull:
    """The slope of c·α·Γ in the scores over α, with c the loss's pull over the term's (see `LossScale`).

    Parameters
    ----------
    term : Term
        What is evened out.
    data : RankingData
        All training rows.
    alphas : ndarray
        The strengths, (models,), for the smoothing.
    chances : ndarray, optional
        What features tell of the groups on other queries, (n, groups). Rows are pulled along these above all, so that
        the network learns what holds on other queries too, and a little along the groups themselves.
    """

    def __init__(
        self, term: Term, data: RankingData, alphas: NDArray[np.float64], chances: NDArray[Any] | None = None
    ) -> None:
        own = Cells.of(term.notion, data)
        cells = [own] if chances is None else [own, replace(own, membership=chances)]
        times = [1.0] if chances is None else [OWN, KNOWN]
        self.term, self.alphas, self.batches = term, alphas, 0
        self._query = data.query_of_row
        cut = term.target == "topk" and term.scope != "per_query"
        # The values of each row when it was last seen (soft, and of the top k itself), and whether it was.
        self._last = [np.zeros((data.n_rows, len(alphas)), np.float32) for _ in range(1 + cut)]
        self._seen = np.zeros(data.n_rows, bool)
        gaps: list[SeenGaps | QueryGaps]
        cuts: list[SeenGaps | None] = [None] * len(cells)
        if term.scope == "per_query":
            gaps = [QueryGaps(each, self._query) for each in cells]
        else:
            contrasts = [each.contrast() for each in cells]
            for contrast in contrasts[1:]:
                contrast.pairs = contrasts[0].pairs
            gaps = [SeenGaps(contrast, len(alphas), term.momentum) for contrast in contrasts]
            if cut:
                cuts = [SeenGaps(contrast, len(alphas), term.momentum) for contrast in contrasts]
        self.ways = [Way(*each) for each in zip(gaps, times, cuts, strict=True)]

    def __call__(self, loss_slope: Tensor, scores: Tensor, rows: Any) -> Tensor:
        """Give the slope of a batch.

        Parameters
        ----------
        loss_slope : Tensor
            The loss's own, (b, models).
        scores : Tensor
            (b, models).
        rows : array-like
            The numbers of the batch's rows, in which those of a query follow each other.

        Returns
        -------
        Tensor
            (b, models).
        """
        rows, numbers = np.asarray(rows), scores.detach().cpu().numpy().astype(np.float64)
        if not np.isfinite(numbers).all():
            return torch.full_like(scores, torch.nan)  # a step that overflowed: the loss is NaN too
        query = self._query[rows]
        bounds = np.concatenate([[0], np.flatnonzero(np.diff(query)) + 1, [len(query)]])
        value, pull_back = bind_target(self.term.target, bounds, k=self.term.k).at(numbers)
        unit = self.term.smoothing * value.std(axis=0)
        # The soft top k is 1/2 midway between the last item inside and the first one outside.
        kinds = [value, (1 + np.sign(value - 0.5)) / 2][: len(self._last)]
        batches = [self._taken(rows, *each) for each in zip(kinds, self._last, strict=True)]
        self._seen[rows] = True
        loss, own, total = _size(loss_slope.cpu().numpy()), None, np.zeros_like(numbers)
        for way in self.ways:
            way.go_to(batches[0], unit, self.alphas, *batches[1:])
            size = _size(pull_back(way.full))
            own = size if own is None else own
            c = way.scale.update_sums(loss, made_up(own, size))
            total += way.times * c * pull_back(way.slope)
        self.batches += 1
        return torch.as_tensor(min(1.0, self.batches / WARM_UP) * total).to(scores)

    def _taken(self, rows: NDArray[Any], value: NDArray[Any], last: NDArray[np.float32]) -> tuple[Any, ...]:
        """What `SeenGaps.take` takes of these values, which are kept as the last ones."""
        kept = value.astype(np.float32)  # sums of differences stay sums of values
        before, last[rows] = last[rows], kept
        return rows, kept.astype(np.float64), before, ~self._seen[rows]


def slope_of(values: Tensor, leaf: Tensor) -> Tensor:
    """Give the slope in the scores of the sum over models, each of which has its own scores."""
    return torch.autograd.grad(values.sum(), leaf)[0]


def _size(slope: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.abs(slope).sum(axis=0, dtype=np.float64))


def told_groups(data: RankingData, notion: NotionLike) -> NDArray[np.float64]:
    """Give what features tell of each row's group, (n, groups), learned on other queries; see `group_chances`."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def small() -> Any:
        return HistGradientBoostingClassifier(
            learning_rate=RATE,
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            min_samples_leaf=LEAF_ROWS,
            l2_regularization=RIDGE,
            max_bins=BINS,
            early_stopping=False,
            random_state=0,
        )

    return group_chances(small, np.asarray(data.features), data, Cells.of(notion, data).strata)
