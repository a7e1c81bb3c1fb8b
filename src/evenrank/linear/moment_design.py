"""`MomentDesign`: the standardised problem made of `Moments` alone, where rows are in files or on other machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.linear.descent import TargetPenalty
from evenrank.linear.design import Block, Design
from evenrank.losses import LOSSES, Loss
from evenrank.moments import Moments
from evenrank.notions import Notion
from evenrank.targets import TARGETS, BoundTarget

if TYPE_CHECKING:
    from evenrank.io.row_files import RankingFiles

# What each refusal of `refuse_rows` ends with.
READ = "Read the rows into memory with er.read to use it."


def is_summed(train: Any) -> TypeGuard[Moments | RankingFiles]:
    """Tell whether rows come as moments, or as files that are summed; what reads files is not imported for it."""
    files = sys.modules.get("evenrank.io.row_files")
    return isinstance(train, Moments) or (files is not None and isinstance(train, files.RankingFiles))


def refuse_rows(*, solver: str, scope: str, target: str, loss: str) -> None:
    """Refuse what training from moments cannot do, because it goes through the rows again.

    Parameters
    ----------
    solver, scope, target, loss : str
        See `fairness_path`.

    Raises
    ------
    ConfigError
        One line that names what works instead.
    """
    if solver == "sgd":
        raise ConfigError(f"solver='sgd' goes through the rows; files and moments take 'exact' or 'gd'. {READ}")
    if scope != "amortized":
        raise ConfigError(f"scope={scope!r} has one gap per query; files and moments take 'amortized'. {READ}")
    if not TARGETS[target].linear:
        raise ConfigError(
            f"target={target!r} goes through the rows; files and moments take 'score' or 'centered'. {READ}"
        )
    if not LOSSES[loss].quadratic:
        raise ConfigError(
            f"loss={loss!r} goes through the rows; files and moments take 'squared' or 'pairwise'. {READ}"
        )


class MomentDesign(Design):
    """A `Design` without rows; for the solvers exact and gd, the losses squared and pairwise, and the pooled scope.

    Parameters
    ----------
    moments : Moments
        The sums.
    notions : sequence of Notion
        The notions; empty where nothing is penalised.
    across, scale, ridge, fit_intercept, any_units, target, within
        As for `Design`.
    """

    def __init__(
        self,
        moments: Moments,
        notions: Sequence[Notion],
        *,
        across: str,
        scale: str | None,
        ridge: float,
        fit_intercept: bool,
        any_units: bool,
        target: str,
        within: bool,
    ) -> None:
        if notions and moments.target != target:
            raise ConfigError(
                f"these moments are of target {moments.target!r}; got target={target!r}. Make them with that target."
            )
        if not moments.weight > 0:
            raise DataError(f"moments to train from must have weight; got {moments.n_rows} rows of weight 0.")
        self.groupings, self.notions, self.within, self.target = [], notions, within, target
        self.scope, self.across, self.group_aware = "amortized", across, moments.group_aware
        self.moments = [moments]
        self.n_features = n_features(moments)
        if not all(np.isfinite(sums).all() for sums in (moments.x, moments.xx, moments.xr)):
            bad = ~(np.isfinite(np.diag(moments.xx)) & np.isfinite(moments.x))
            name = moments.feature_names[int(np.argmax(bad))]
            raise DataError(f"feature {name!r} has values too large to square in double precision. Rescale it.")
        self._scale(moments.mean, moments.deviation, scale, ridge, fit_intercept=fit_intercept, any_units=any_units)

    def target_penalty(self, target: BoundTarget, alphas: NDArray[np.float64], loss: Loss) -> TargetPenalty:
        """Not to be had without rows; `refuse_rows` comes before."""
        raise NotImplementedError

    def blocks(self, loss: Loss) -> Callable[[], Iterator[Block]]:
        """Not to be had without rows; `refuse_rows` comes before."""
        raise NotImplementedError

    def start(self, loss: Loss) -> float:
        """Compute the mean loss of scores that are all 0: the mean square of the relevance, within queries or not."""
        moments = self.moments[0]
        return float(loss.value(np.zeros(1), np.sqrt([self._square(moments) / moments.weight]))[0])

    def _square(self, moments: Moments) -> Any:
        return moments.within_rr if self.within else moments.rr


def n_features(moments: Moments) -> int:
    """Count the features without the groups' indicator columns."""
    return len(moments.feature_names) - (max(len(moments.group_names) - 1, 0) if moments.group_aware else 0)


def summed_rows(
    train: Moments | RankingFiles,
    notions: Sequence[Notion],
    *,
    group_aware: bool,
    target: str,
    within: bool,
    **_: Any,
) -> Moments:
    """Give moments as they are, after checks, or those of files, which are read for them.

    Parameters
    ----------
    train : Moments or RankingFiles
        The sums, or the rows.
    notions : sequence of Notion
        The notions; empty where nothing is penalised.
    group_aware, target, within
        See `Moments.of`.

    Returns
    -------
    Moments
        The sums.
    """
    if not isinstance(train, Moments):
        from evenrank.io.stream_moments import stream_moments

        if not train.feature_names:
            raise DataError("training needs at least one feature; the data has none.")
        return stream_moments(train, notions, group_aware=group_aware, target=target, within=within)
    if train.group_aware != group_aware:
        made = "with" if train.group_aware else "without"
        raise ConfigError(
            f"these moments were made {made} the groups' columns; got group_aware={group_aware}. Make them anew."
        )
    return train
