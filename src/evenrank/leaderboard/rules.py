"""How a bench settles on a strength: not at all, or on inner folds; never on the rows that are reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import mean_and_error
from evenrank.experiment.select_rules import RULES as SELECT_RULES
from evenrank.experiment.select_rules import Means

FULL, NO_LOSS, ALL_DATA = "full", "no_loss", "all_data"
RULES = {
    FULL: "nothing chosen: each method at its full strength",
    NO_LOSS: "the smallest gap at no significant loss of NDCG on the inner folds",
    ALL_DATA: "tuned on all rows, the reported ones included",
}
BASELINE = -1  # stands for the baseline where no strength qualifies


def no_loss(
    quality: NDArray[np.float64],
    gap: NDArray[np.float64],
    base_quality: NDArray[np.float64],
    base_gap: NDArray[np.float64],
) -> int:
    """Choose a strength on inner folds by the rule "no_loss" of `select`, against the baseline.

    Parameters
    ----------
    quality, gap : ndarray
        Of each strength in each inner fold, (strengths, inner folds).
    base_quality, base_gap : ndarray
        Of the baseline, (inner folds,).

    Returns
    -------
    int
        The strength's number; `BASELINE` if none lowers the gap at no significant loss.
    """
    qualities = np.vstack([base_quality, quality])
    mean, error = mean_and_error(qualities)
    violation, _ = mean_and_error(np.vstack([base_gap, gap]))
    unknown = np.full(len(mean), np.nan)
    means = Means(mean, error, violation, unknown, base=0, ends=np.zeros(len(mean), bool))
    picked = SELECT_RULES[NO_LOSS].pick(means, 0.0)
    return BASELINE if picked is None else picked - 1


def chosen_strengths(
    inner: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    base: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> NDArray[np.int64]:
    """Choose a strength for every setting by `no_loss`.

    Parameters
    ----------
    inner, base : sequence of tuple
        Quality and gap in each inner fold, (groupings, notions, ks, strengths) each; the baseline has one strength.

    Returns
    -------
    ndarray of int
        The strengths' numbers, (groupings, notions, ks).
    """
    quality, gap = (np.stack([pair[part] for pair in inner], axis=-1) for part in (0, 1))
    base_quality, base_gap = (np.stack([pair[part][..., 0] for pair in base], axis=-1) for part in (0, 1))
    out = np.empty(quality.shape[:3], np.int64)
    for setting in np.ndindex(out.shape):
        out[setting] = no_loss(quality[setting], gap[setting], base_quality[setting], base_gap[setting])
    return out
