"""`Design`: the standardised problem that every linear solver sees, built from the data in as few passes as it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.design_columns import column_scale, contrast_rows, design_blocks
from evenrank.linear.descent import TargetPenalty, Term
from evenrank.losses import Loss
from evenrank.moments import Moments
from evenrank.notions import Notion, bind
from evenrank.targets import BoundTarget, FairnessTerm

Block = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class Design:
    """Columns z = (x − center) / spread, then 1 for the intercept; Θ is (models, width).

    Parameters
    ----------
    groupings : sequence of RankingData
        The same rows under different groups.
    notions : sequence of Notion
        The notions; empty where nothing is penalised.
    scope, across, scale, ridge, fit_intercept, group_aware
        See `fairness_path`.
    any_units : bool
        Whether the solver gives the same minimiser in any units of the features.
    target : str
        Whether `terms` gives contrasts of the "centered" score, or of the "score" itself, as for any other target.
    within : bool
        Whether the loss is of scores less their query's mean.
    """

    def __init__(
        self,
        groupings: Sequence[RankingData],
        notions: Sequence[Notion],
        *,
        scope: str,
        across: str,
        scale: str | None,
        ridge: float,
        fit_intercept: bool,
        group_aware: bool,
        any_units: bool,
        target: str = "score",
        within: bool = False,
    ) -> None:
        self.groupings, self.notions, self.within = groupings, notions, within
        # Within a query the mean cancels, so that there both targets have the same contrasts.
        self.target = "centered" if target == "centered" and scope == "amortized" else "score"
        self.data = groupings[0]
        self.scope, self.across, self.group_aware = scope, across, group_aware
        self.n_features = self.data.n_features
        columns = self.data.n_features + (self.data.n_groups - 1 if group_aware else 0)
        center, spread = np.zeros(columns), np.ones(columns)
        if scale is not None or any_units:
            source = self.data.parent if scale == "dataset" and self.data.parent is not None else self.data
            center, spread = column_scale(source, group_aware=group_aware)
        self._scale(center, spread, scale, ridge, fit_intercept=fit_intercept, any_units=any_units)

    def _scale(
        self,
        center: NDArray[np.float64],
        spread: NDArray[np.float64],
        scale: str | None,
        ridge: float,
        *,
        fit_intercept: bool,
        any_units: bool,
    ) -> None:
        """Settle what the columns, of this mean and deviation, are measured in, and their ridge."""
        columns = len(center)
        self.center, self.spread, penalised = np.zeros(columns), np.ones(columns), np.full(columns, ridge)
        if scale is not None or any_units:
            self.spread = spread
            self.center = center if scale is not None or fit_intercept else self.center
        if scale is None and any_units:
            # The minimiser does not depend on the units, but its digits do; the ridge keeps the caller's units.
            penalised = ridge / self.spread**2
        self.width = columns + bool(fit_intercept)
        self.ridge = np.append(penalised, 0.0)[: self.width]

    @cached_property
    def moments(self) -> list[Moments]:
        """The moments of each grouping; computed when first used, since sgd needs none."""
        pooled = self.notions if self.scope == "amortized" else []
        options: dict[str, Any] = {"group_aware": self.group_aware, "target": self.target, "within": self.within}
        return [Moments.of(item, pooled, **options) for item in self.groupings]

    def quadratic(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the mean of z zᵀ and of z r: the squared loss is θᵀ(first)θ − 2 (second)ᵀθ + a constant."""
        second, cross = self.moments[0].quadratic(self.center, self.spread, within=self.within)
        return second[: self.width, : self.width], cross[: self.width]

    def terms(self) -> list[Term]:
        """Give the contrasts on weights of each grouping and notion; one empty term each where nothing is penalised."""
        if not self.notions:
            nothing = np.zeros(0, np.int64)
            return [Term(np.zeros((0, self.width)), Pairs(nothing, nothing, np.zeros(0), nothing, "mean", (), 0.0))]
        out = []
        for number, moments in enumerate(self.moments):
            for notion in self.notions:
                if self.scope == "amortized":
                    rows, pairs = moments.contrasts(notion, across=self.across)
                else:
                    grouping = self.groupings[number]
                    contrast = bind(notion, grouping, scope=self.scope, across=self.across, training=True)
                    rows, pairs = contrast_rows(contrast, grouping, group_aware=self.group_aware), contrast.pairs
                padded = np.zeros((len(rows), self.width))
                padded[:, : len(self.spread)] = rows / self.spread
                out.append(Term(padded, pairs))
        return out

    def target_penalty(self, target: BoundTarget, alphas: NDArray[np.float64], loss: Loss) -> TargetPenalty:
        """Make α·Γ of a target, for models laid out as those of `terms`; all standardised rows are in memory for it."""
        Z = np.concatenate([block for block, _, _ in self.blocks(loss)()])
        if loss.within:
            # It leaves open where scores begin: so far out that all probabilities are 0 or 1, no gap would be left.
            Z[:, len(self.spread) :] = 0
        bound = [
            bind(notion, grouping, scope=self.scope, across=self.across, training=True)
            for grouping in self.groupings
            for notion in self.notions
        ]
        return TargetPenalty(Z, [FairnessTerm(contrast, target) for contrast in bound], alphas)

    def blocks(self, loss: Loss) -> Callable[[], Iterator[Block]]:
        """Make a function that yields blocks (Z, relevance, weight); weights sum to 1, and data of one block stays."""
        data = self.data
        target = data.relevant.astype(float) if loss.binary else data.relevance
        weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
        weight = weight / weight.sum()
        kept: list[Block] = []

        def blocks() -> Iterator[Block]:
            if kept:
                yield from kept
                return
            for rows, block in design_blocks(data, group_aware=self.group_aware):
                Z = np.hstack([(block - self.center) / self.spread, np.ones((len(block), 1))])[:, : self.width]
                standardised = (Z, target[rows], weight[rows])
                if len(block) == data.n_rows:
                    kept.append(standardised)
                yield standardised

        return blocks

    def slope(self, loss: Loss) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """Make the mean loss' gradient in the weights, a function of Θ."""
        if loss.quadratic:
            second, cross = self.quadratic()
            return lambda theta: 2 * (theta @ second - cross)
        blocks = self.blocks(loss)

        def slope(theta: NDArray[np.float64]) -> NDArray[np.float64]:
            total = np.zeros_like(theta)
            for Z, relevance, weight in blocks():
                total += (weight[:, None] * loss.gradient(Z @ theta.T, relevance[:, None])).T @ Z
            return total

        return slope

    def start(self, loss: Loss) -> float:
        """Compute the mean loss of scores that are all 0."""
        data = self.data
        target = data.relevant.astype(float) if loss.binary else data.relevance
        target = centered(target, data.query_ptr, data.sample_weight) if loss.within else target
        return float(np.average(loss.value(np.zeros(data.n_rows), target), weights=data.sample_weight))

    def rise(self, loss: Loss, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the mean loss with its ridge at Θ less that at 0, (models,): above 0 where descent went uphill."""
        ridge = np.asarray((self.ridge * theta**2).sum(axis=1))
        if loss.quadratic:
            second, cross = self.quadratic()
            return np.asarray(ridge + ((theta @ second - 2 * cross) * theta).sum(axis=1))
        for Z, relevance, weight in self.blocks(loss)():
            scores = Z @ theta.T
            ridge += weight @ (loss.value(scores, relevance[:, None]) - loss.value(0 * scores, relevance[:, None]))
        return ridge

    def steepest(self, loss: Loss) -> float:
        """Find the largest curvature of the mean loss with its ridge; descent is stable in steps of up to 1 over it."""
        second, _ = self.quadratic()
        if not np.isfinite(second).all():
            return np.inf
        return float(loss.steepest * np.linalg.eigvalsh(second)[-1] + 2 * self.ridge.max(initial=0))

    def in_own_units(self, theta: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Give coefficients (models, d), intercepts (models,) and, if group-aware, the groups' offsets (models, G)."""
        d, columns = self.n_features, len(self.spread)
        coef = theta[:, :columns] / self.spread
        intercept = (theta[:, columns] if self.width > columns else 0.0) - coef @ self.center
        offset = np.hstack([np.zeros((len(theta), 1)), coef[:, d:]]) if self.group_aware else None
        return coef[:, :d], intercept, offset
