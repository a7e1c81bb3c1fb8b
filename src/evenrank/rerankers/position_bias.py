"""How much less an item is clicked because it stands lower, estimated from clicks and scores (Nandy et al., 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError

# A density is made of at most so many points, evenly spaced among the ordered scores.
MOST_POINTS = 2000


def position_bias(
    score: NDArray[np.float64], position: NDArray[np.int64], clicked: NDArray[np.bool_], cap: float
) -> NDArray[np.float64]:
    """Estimate the bias of each position relative to the first.

    The items shown at position j are weighted to look like those at j − 1, by the ratio of the densities of their
    scores (at most ``cap``). Their share of clicks then, over that at j − 1, is the bias between the two, and the
    product of these ratios is the bias of a position.

    Parameters
    ----------
    score : ndarray
        (n,).
    position : ndarray
        Where each row was shown, from 1, (n,).
    clicked : ndarray
        (n,).
    cap : float
        The most that the ratio of densities may be.

    Returns
    -------
    ndarray
        (positions,); the first is 1.
    """
    last = int(position.max())
    bias = np.ones(last)
    shown = [score[position == place] for place in range(1, last + 1)]
    clicks = [score[(position == place) & clicked] for place in range(1, last + 1)]
    for place in range(2, last + 1):
        empty = next((number for number in (place - 1, place) if not len(clicks[number - 1])), None)
        if empty is not None:
            raise DataError(
                f"position {empty} has no click, so its bias is not known. Leave out the rows from there on."
            )
        here, above = shown[place - 1], shown[place - 2]
        at = clicks[place - 1]
        ratio = _density(above, at) / np.maximum(_density(here, at), np.finfo(float).tiny)
        share = np.minimum(ratio, cap).sum() / len(here)
        bias[place - 1] = bias[place - 2] * share / (len(clicks[place - 2]) / len(above))
    return bias


def _density(sample: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """A Gaussian kernel density with bandwidth 1.06 · sd · n^−0.2."""
    n = len(sample)
    width = max(1.06 * float(np.std(sample, ddof=1 if n > 1 else 0)) * n**-0.2, np.finfo(float).tiny)
    if n > MOST_POINTS:
        sample = np.sort(sample)[np.linspace(0, n - 1, MOST_POINTS).astype(np.int64)]
    out = np.empty(len(at))
    for begin in range(0, len(at), 1000):
        chunk = at[begin : begin + 1000, None]
        out[begin : begin + 1000] = np.exp(-0.5 * ((chunk - sample) / width) ** 2).mean(axis=1)
    return np.asarray(out / (width * np.sqrt(2 * np.pi)))
