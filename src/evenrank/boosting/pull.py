"""`FairPull`: what the fairness term adds to a boosted loss's gradient, round after round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.contrasts import Contrast
from evenrank.targets import STRONGEST, BoundTarget, LossScale, made_up

# √(gap² + ε²) stands for |gap|. ε is this share of the spread of the value over rows; of the top k, of twice its
# variance where that is less, since few places in long lists make small gaps of all there are. Along the groups as
# features tell them it is so large that the pull falls with the gap: where evenness is dear a part of the gap stays,
# where it is cheap hardly any. There it is joined with the gap's standard error between groups of that many rows, since
# that pull is to hold on other queries: a gap that chance could have made pulls less. Along the groups themselves,
# where little pull is enough, it is small.
SMOOTHING, OWN_SMOOTHING = 0.4, 0.1
# Rows are pulled in two ways, so many times as strongly as the loss pulls at a strength of 1: along the groups as
# features tell them, by the gap between those and all rows of a list alike, which holds on other queries; and a little
# along the groups themselves, by their own gap and near the cut, which closes what is left on the training rows at
# little cost.
KNOWN, OWN = 1.8, 0.27
# A tree may carry a gap beyond 0. Then the share of the strength that follows that gap at once is halved, and let go
# slowly while there is a gap: a strong α swings no more than a weak one. Gaps within this share of ε are noise, neither
# a swing nor a reason to pull harder: a share that grew in quiet rounds would swing again in the last ones.
HALVED, RELEASE, SWING = 0.5, 1.1, 0.2
# The rest of the strength follows slowly, by this part (times the share) of what is missing in each round. A pull that
# holds a gap near 0 against the loss is then steady, where one that follows the gap at once changes sides with it, and
# the loss takes everything back.
SLOWLY = 0.1
# Where the loss holds a list loosely, since its order is settled, a step along what features tell has no bound of its
# own, and strong α threw lists about. It is at most so many times the spread of the list's scores, before the rate; or,
# as in the first rounds, when scores hardly differ yet, so many times the loss's own mean step in the list.
LONGEST, LOSS_STEPS = 1.5, 3.0
# The first trees belong to the loss: the strength rises to its full size over these rounds.
WARM_UP = 5
# And trees take as many rounds again to follow it. A model of fewer is not one of the strength asked for, and often
# ranks better than the first ones that are: early stopping counts from here on.
SETTLED = 2 * WARM_UP
# Values that vary by less than this share of their size are one value.
FLAT = 2.0**-40
# c, the spread of the values and the loss's mean steps are taken in every one of so many first rounds, and then now and
# then: they move slowly, and cost time.
CLOSELY, SELDOM = 10, 5


class Way:
    """One way in which rows are pulled: along a contrast, by the gaps of that contrast.

    Parameters
    ----------
    contrast : Contrast
        The gaps.
    times : float
        How strongly, at a strength of 1, beside the loss.

    Attributes
    ----------
    scale : LossScale
        c so far.
    share : ndarray
        The share of the strength that follows each gap at once, (J,).
    held : ndarray
        What follows slowly has come to, from −1 to 1, (J,).
    gaps, full, slope : ndarray
        In this round, (J,): the gaps, the slope of their size, and that of its smooth form as it is followed.
    """

    def __init__(self, contrast: Contrast, times: float) -> None:
        self.contrast, self.times, self.scale = contrast, times, LossScale()
        self.share, self.held = np.ones(len(contrast.pairs.a)), np.zeros(len(contrast.pairs.a))
        self._last: NDArray[Any] | None = None

    def go_to(
        self,
        value: NDArray[np.float64],
        smoothing: NDArray[Any],
        *,
        flat: bool,
    ) -> None:
        """Take the gaps of a round; where the value is flat, what sums leave of them is rounding, with no sign.

        Parameters
        ----------
        value : ndarray
            The value that is evened out, (n,).
        smoothing : ndarray
            ε of each gap, (J,).
        flat : bool
            Whether the value is one and the same.
        """
        self.gaps = self.contrast.gaps(value)
        if flat:
            self.gaps = np.zeros_like(self.gaps)
        self._steady(smoothing)
        self.full = self.contrast.pairs.slope(np.ones_like(self.gaps) if flat else self.gaps)
        wanted = self.gaps / np.hypot(self.gaps, smoothing)
        followed = np.clip(self.held + self.share * wanted, -1, 1)
        self.held += SLOWLY * self.share * (wanted - followed)
        self.slope = self.contrast.pairs.weight * followed

    def on_values(self, strength: float) -> NDArray[np.float64]:
        """The slope in the values, (n,)."""
        return self.contrast.pull_back(strength * self.times * float(self.scale.value) * self.slope)

    def _steady(self, smoothing: NDArray[Any]) -> None:
        """Less of the strength where the last tree carried a gap to the other side of 0, more of it elsewhere."""
        if self._last is not None:
            beyond_noise = np.abs(self.gaps) > SWING * smoothing
            factor = np.where(self.gaps * self._last < 0, HALVED, RELEASE)
            self.share = np.where(beyond_noise, np.minimum(1.0, factor * self.share), self.share)
        self._last = self.gaps


class FairPull:
    """The gradient of c·α·Γ by row, with c the loss's pull over the term's (see `LossScale`).

    Parameters
    ----------
    contrast : Contrast
        The gaps, between the groups as they are.
    target : BoundTarget
        The value that is evened out.
    known : Contrast, optional
        The same gaps between the groups as features tell them (see `group_chances`). Rows are pulled along these above
        all, so that trees learn what holds on other queries too.
    total : Callable, optional
        Adds an array up over the processes that train together, each on its own rows.
    own : float
        With ``known``, how strongly rows are pulled along the groups themselves.
    lists : ndarray, optional
        The bounds of the lists, (q + 1,), for a target whose sum over a list no order changes. Lists whose rows are all
        pulled alike, as those with a single group are for demographic parity, are then left to the loss: nothing there
        changes a gap.

    Attributes
    ----------
    ways : list of Way
        Along the groups themselves and, with ``known``, as features tell them.
    rounds : int
        The rounds so far.
    """

    def __init__(
        self,
        contrast: Contrast,
        target: BoundTarget,
        known: Contrast | None = None,
        total: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        own: float = OWN,
        lists: NDArray[np.int64] | None = None,
    ) -> None:
        self.target, self.total, self.rounds, self._width = target, total, 0, 0.0
        self.ways = [Way(contrast, 1.0)] if known is None else [Way(contrast, own), Way(known, KNOWN)]
        errors = _relative_errors(contrast, total)
        own_error = errors if known is None else np.zeros_like(errors)  # these rows' own gap is no estimate
        self._errors = [own_error, errors]
        self._near = [SMOOTHING if known is None else OWN_SMOOTHING, SMOOTHING]
        self._moves = None if lists is None else _movable(contrast, lists)

    def __call__(
        self,
        scores: NDArray[np.float64],
        loss_gradient: NDArray[Any],
        alpha: float,
        hold: NDArray[Any] | None = None,
        steps: NDArray[Any] | float = 0.0,
    ) -> NDArray[np.float64]:
        """Give the gradient of a round.

        Parameters
        ----------
        scores : ndarray
            (n,), in stored order.
        loss_gradient : ndarray
            The loss's own first derivative, (n,).
        alpha : float
            The strength.
        hold : ndarray, optional
            The loss's second derivative, (n,). With it, rows are pulled along the groups as features tell them wherever
            they stand in their list (see `BoundTarget.pull_lists`).
        steps : ndarray, optional
            With ``hold``, the loss's mean step in each list, (q,); see `list_steps`.

        Returns
        -------
        ndarray
            What is to be added to the loss's, (n,).
        """
        value, closely = self.target.counted(scores), looked_at(self.rounds)
        if closely:
            self._width = self._spread(value)
        spread = self._width
        few = min(1.0, 2 * spread) if self.target.shares else 1.0
        for way, near, error in zip(self.ways, self._near, self._errors, strict=False):
            smoothing = np.maximum(spread * np.hypot(near * few, error), np.finfo(np.float64).tiny)
            way.go_to(value, smoothing, flat=spread == 0)
        if closely:
            self._rescale(scores, loss_gradient, hold)
        strength = min(alpha, STRONGEST) * min(1.0, self.rounds / WARM_UP)
        self.rounds += 1
        total = self._on_scores(scores, self.ways[0].on_values(strength))
        for way in self.ways[1:]:
            total += self._on_scores(scores, way.on_values(strength), hold, LONGEST, LOSS_STEPS * steps)
        return total

    def _on_scores(
        self,
        scores: NDArray[np.float64],
        on_values: NDArray[np.float64],
        hold: NDArray[Any] | None = None,
        *bounds: Any,
    ) -> NDArray[np.float64]:
        on_values = on_values if self._moves is None else on_values * self._moves
        if hold is None:
            return self.target.pull_back(scores, on_values)
        return self.target.pull_lists(scores, on_values, hold, *bounds)

    def _rescale(self, scores: NDArray[np.float64], loss_gradient: NDArray[Any], hold: NDArray[Any] | None) -> None:
        """Take in the pulls of a round at full slope: by the groups themselves, less a part of what features miss."""
        full = [way.contrast.pull_back(way.full) for way in self.ways]
        pulls = [self._on_scores(scores, full[0])]
        if len(full) > 1:
            pulls += [self._on_scores(scores, each, hold) for each in full]
        sums = np.array([np.abs(part).sum(dtype=np.float64) for part in (loss_gradient, *pulls)])
        loss, own, *both = sums if self.total is None else self.total(sums)
        self.ways[0].scale.update_sums(loss, own)
        if both:
            self.ways[1].scale.update_sums(loss, made_up(*both))

    def _spread(self, value: NDArray[np.float64]) -> float:
        """The standard deviation of the value over all rows; 0 where it is all rounding."""
        total = np.asarray if self.total is None else self.total
        n, summed, size = total(np.array([float(len(value)), value.sum(), np.abs(value).sum()]))
        square = total(np.array([((value - summed / n) ** 2).sum()]))[0]
        spread = float(np.sqrt(square / n))
        return spread if spread > FLAT * size / n else 0.0


def looked_at(rounds: int) -> bool:
    """Whether what moves slowly is taken anew after so many rounds."""
    return rounds <= CLOSELY or rounds % SELDOM == 0


def list_steps(first: NDArray[Any], second: NDArray[Any], query_ptr: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the loss's mean step in each list, Σ|first derivative| / Σ second derivative.

    Parameters
    ----------
    first, second : ndarray
        The loss's derivatives, (n,).
    query_ptr : ndarray
        The bounds of the lists, (q + 1,), none of them empty.

    Returns
    -------
    ndarray
        (q,); 0 for a list that the loss does not hold.
    """
    slope, hold = (np.add.reduceat(part, query_ptr[:-1], dtype=np.float64) for part in (np.abs(first), second))
    return np.divide(slope, hold, out=np.zeros_like(hold), where=hold > 0)


def _relative_errors(contrast: Contrast, total: Callable[[NDArray[Any]], NDArray[Any]] | None) -> NDArray[np.float64]:
    """The standard error of each gap over the spread of the value, (J,); 0 for gaps within queries, which are many."""
    pairs = contrast.pairs
    if contrast.cell_weight.shape[1] > 1:
        return np.zeros(len(pairs.a))
    # The squares of the shares that rows have in their cell sum to 1 / (effective number of rows), whatever the unit.
    by_cell = np.asarray(contrast.cells.multiply(contrast.cells).sum(axis=1)).reshape(-1)
    by_cell = by_cell if total is None else total(by_cell)
    return np.asarray(np.sqrt(by_cell[pairs.a] + by_cell[pairs.b]), np.float64)


def _movable(contrast: Contrast, lists: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """1 for the rows of lists in which some row is pulled unlike another, else 0, (n,); None where all are 1."""
    slope = np.random.default_rng(0).uniform(1, 2, len(contrast.pairs.a))  # equal pulls are no accident of the slope
    on_values, starts = contrast.pull_back(slope), lists[:-1][np.diff(lists) > 0]
    moves = np.maximum.reduceat(on_values, starts) != np.minimum.reduceat(on_values, starts)
    rows = np.diff(np.append(starts, lists[-1]))
    return None if moves.all() else np.repeat(moves.astype(np.float64), rows)  # a product with booleans takes longer
