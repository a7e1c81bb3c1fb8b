"""`LossScale`: how strongly a loss pulls at scores beside the fairness term, so that a strength means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY = 0.9  # of the mean over rounds: the pulls of single rounds and batches vary
# Where features tell little of the group, rows are pulled less than by the groups themselves. This power of the ratio
# of the two pulls is made up for: at 0 nothing, so that such data hardly notice a strength of 1, at 1 all of it.
# Features that have nothing to do with the group still leave a ratio of about the least one.
MADE_UP, LEAST_KNOWN = 0.6, 0.1

# Strengths above this one, the last of the grid, pull no more than it does: trees and networks would follow the term's
# noise alone, or throw a group's only relevant row out of every list. (Linear rankers have no such end.)
STRONGEST = 10.0


def made_up(own: Any, known: Any) -> Any:
    """Give what the pull along groups as features tell them is measured by: part of what they miss is made up for.

    Parameters
    ----------
    own, known : float or ndarray
        Σ|pull| at full slope along the groups themselves, and along those that features tell.

    Returns
    -------
    float or ndarray
        The sum for `LossScale`, between the two.

    Examples
    --------
    >>> float(made_up(1.0, 1.0)), round(float(made_up(1.0, 0.4)), 3)
    (1.0, 0.577)
    """
    ratio = np.divide(known, own, out=np.ones_like(known, dtype=np.float64), where=np.asarray(own) > 0)
    return np.where(np.asarray(own) > 0, own * np.clip(ratio, LEAST_KNOWN, 1) ** MADE_UP, known)


class LossScale:
    """c = Σ|dL/ds| / Σ|Jᵀ Cᵀ (w·sign)|, the sums over rows, a running mean over rounds.

    The lower sum is the term's pull at full slope, before |gap| is smoothed: near a gap of 0 the smoothed pull is
    almost nothing, and dividing by it would amplify noise. With c·α in place of α, a strength of 1 pulls about as
    strongly as the loss does, for lists of any length, any number of rows, and any loss or multiple of it.

    Attributes
    ----------
    value : float, ndarray or None
        c, or one per model, (models,); None before the first round in which the term pulls.
    """

    def __init__(self) -> None:
        self.value: Any = None

    def update(self, loss_gradient: NDArray[Any], pull: NDArray[Any]) -> Any:
        """Take in a round.

        Parameters
        ----------
        loss_gradient, pull : ndarray
            The slope of the loss and the term's pull at full slope, both in the scores, (n,) or (n, models).

        Returns
        -------
        float or ndarray
            c, or (models,); 0 where the term has not pulled yet.
        """
        return self.update_sums(*self.sums(loss_gradient, pull))

    @staticmethod
    def sums(loss_gradient: NDArray[Any], pull: NDArray[Any]) -> NDArray[np.float64]:
        """Give the sums over rows of the sizes of both, (2,) or (2, models); those of parts of the rows add up."""
        return np.stack([np.abs(part).sum(axis=0, dtype=np.float64) for part in (loss_gradient, pull)])

    def update_sums(self, loss: Any, term: Any) -> Any:
        """Take in a round whose `sums` are known.

        Parameters
        ----------
        loss, term : float or ndarray
            The two sums.

        Returns
        -------
        float or ndarray
            As for `update`.
        """
        now = np.divide(loss, term, out=np.zeros_like(term), where=term > 0)
        if self.value is None:
            self.value = np.zeros_like(now)
        mean = np.where(self.value > 0, MEMORY * self.value + (1 - MEMORY) * now, now)
        self.value = np.where(term > 0, mean, self.value)
        return self.value
