"""`BatchPull`: what the fairness term adds to the slope of a network's loss, batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.group_chances import BINS, LEAF_ROWS, LEAVES, RATE, RIDGE, TREES, group_chances
from evenrank.data import RankingData
from evenrank.extras import require
from evenrank.targets import LossScale, made_up
from evenrank.torch.losses import Tensor

torch: Any = require("torch")
# How strongly a strength of 1 pulls in the two ways, beside the loss; see `evenrank.boosting.pull`.
KNOWN, OWN = 0.4, 0.5


class BatchPull:
    """The slope of c·α·Γ in the scores for α = 1, with c the loss's pull over the term's (see `LossScale`).

    Parameters
    ----------
    make : Callable
        Makes a `FairnessLoss` and the same without smoothing, whose gradient is the pull at full slope.
    group : ndarray
        The groups of all rows, (n,), -1 for an unknown one.
    chances : ndarray, optional
        What features tell of the groups on other queries, (n, groups). Rows are pulled along these above all, so that
        the network learns what holds on other queries too, and a little along the groups themselves.
    strata : ndarray, optional
        (strata, n): the rows' masks of a notion of the user's own.
    """

    def __init__(
        self,
        make: Callable[[], tuple[Any, Any]],
        group: NDArray[Any],
        chances: NDArray[Any] | None = None,
        strata: NDArray[np.bool_] | None = None,
    ) -> None:
        along = [group.astype(np.int64)] if chances is None else [group.astype(np.int64), chances]
        times = [1.0] if chances is None else [OWN, KNOWN]
        self.strata = strata
        self.ways = [(torch.tensor(g), *make(), t, LossScale()) for g, t in zip(along, times, strict=True)]

    def __call__(self, loss_slope: Tensor, leaf: Tensor, rows: Any, **columns: Any) -> Tensor:
        """Give the slope of a batch.

        Parameters
        ----------
        loss_slope : Tensor
            The loss's own, (n, models).
        leaf : Tensor
            The scores, (n, models), of which slopes can be taken.
        rows : ndarray
            The numbers of the batch's rows.
        **columns : Any
            Relevance, queries and weights of the batch, by the names that `FairnessLoss` has for them.

        Returns
        -------
        Tensor
            (n, models).
        """
        masks = None if self.strata is None else self.strata[:, rows]
        loss, own = _size(loss_slope), None
        total = torch.zeros_like(leaf)
        for group, smooth, sharp, times, scale in self.ways:
            pull, full = (
                slope_of(term(leaf, group=group[rows], strata=masks, **columns), leaf) for term in (smooth, sharp)
            )
            size = _size(full)
            own = size if own is None else own
            c = scale.update_sums(loss, made_up(own, size))
            total += torch.as_tensor(times * c).to(pull) * pull
        return total


def slope_of(values: Tensor, leaf: Tensor) -> Tensor:
    """Give the slope in the scores of the sum over models, each of which has its own scores."""
    return torch.autograd.grad(values.sum(), leaf)[0]


def _size(slope: Tensor) -> NDArray[np.float64]:
    return np.asarray(np.abs(slope.cpu().numpy()).sum(axis=0, dtype=np.float64))


def told_groups(data: RankingData) -> NDArray[np.float64]:
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

    return group_chances(small, np.asarray(data.features), data)
