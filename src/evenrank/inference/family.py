"""Many hypotheses at once: p-values corrected for their number, less where they say the same.

Each p-value is taken as a normal deviate; the deviates correlate as the residuals of the clusters do. The adjusted
p-value is P(max |Z| ≥ |z|), which is H · p · E[1/N]: draw one hypothesis at random, make it exceed |z|, draw the others
given it, and count the N that exceed |z|. That estimate has a bounded relative error however small p is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.inference.lists import Array, Residuals

DRAWS = 8_192  # of all hypotheses, for what is likely
TAIL_DRAWS = 4_096  # for what is not
LEVELS = np.concatenate([np.arange(1.0, 6.0, 0.25), [6.0, 7.0, 8.0, 10.0, 14.0, 20.0, 38.0]])
BLOCK = 1 << 14  # clusters whose residuals are held for all hypotheses at a time
LIKELY = 0.1  # from here on plain draws are exact enough
NOISE = 1e-9  # an eigenvalue of this size is rounding error


def adjusted(z: ArrayLike, residuals: Sequence[Residuals], *, seed: int = 0) -> Array:
    """Correct p-values, given as normal deviates, for their number.

    Parameters
    ----------
    z : array-like
        (H,): the deviates, of decidable hypotheses only.
    residuals : sequence of Residuals
        H of them, by the same clusters.
    seed : int
        Of the draws.

    Returns
    -------
    ndarray
        (H,): the adjusted p-values, by steps from the largest deviate down: never below the p-value itself, never above
        Holm's.
    """
    from scipy.special import ndtr

    size = np.abs(np.asarray(z, dtype=np.float64))
    if not len(size):
        return size
    order = np.argsort(-size, kind="stable")
    size = size[order]
    plain = 2 * ndtr(-size)
    count = len(size)
    left = count - np.arange(count)
    if count > 1:
        # Drawn in the order given: that of the deviates hangs on last digits where two are equal.
        matrix = correlation(residuals)
        draws = _draws(matrix, seed)[:, order]
        matrix = matrix[np.ix_(order, order)]
        highest = np.maximum.accumulate(np.abs(draws[:, ::-1]), axis=1)[:, ::-1]
        steps = (highest >= size).mean(axis=0)  # how likely any of this and the smaller ones is as large
        rare = np.flatnonzero(steps < LIKELY)
        if len(rare):
            steps[rare] = np.minimum(plain[rare] * count * _share(size[rare], matrix, draws, seed), LIKELY)
        steps = np.minimum(np.maximum(steps, plain), left * plain)
    else:
        steps = plain
    result = np.empty(count)
    result[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return result


def correlation(residuals: Sequence[Residuals]) -> Array:
    """Correlate hypotheses by their clusters' residuals, (H, H)."""
    count = len(residuals)
    matrix = np.zeros((count, count))
    ends = max((int(r.codes[-1]) + 1 for r in residuals if len(r.codes)), default=0)
    for start in range(0, ends, BLOCK):
        block = np.zeros((count, min(BLOCK, ends - start)))
        for row, each in zip(block, residuals, strict=True):
            first, last = np.searchsorted(each.codes, (start, start + BLOCK))
            row[each.codes[first:last] - start] = each.values[first:last]
        matrix += block @ block.T
    np.fill_diagonal(matrix, 1.0)
    return np.clip(matrix, -1.0, 1.0)


def _draws(matrix: Array, seed: int) -> Array:
    """Draw deviates, (DRAWS, H), by the symmetric root: it does not depend on the signs that eigenvectors come with."""
    values, vectors = np.linalg.eigh(matrix)
    root = (vectors * np.sqrt(np.where(values > NOISE * len(matrix), values, 0.0))) @ vectors.T
    normals = np.random.default_rng(seed).standard_normal((DRAWS, len(matrix)))
    return np.asarray(normals @ root)


def _share(size: Array, matrix: Array, draws: Array, seed: int) -> NDArray[np.float64]:
    """Give E[1/N] at each deviate: 1 where no two hypotheses exceed it together, 1/H where all do."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng((seed, 1))
    draws = draws[:TAIL_DRAWS]
    chosen = rng.integers(len(matrix), size=len(draws))
    uniform = 1 - rng.random(len(draws))
    sign = np.where(rng.random(len(draws)) < 0.5, -1.0, 1.0)
    rows = np.arange(len(draws))
    towards = matrix[chosen]
    rest = draws - towards * draws[rows, chosen][:, None]
    first, last = np.searchsorted(LEVELS, size.min(), "right") - 1, np.searchsorted(LEVELS, size.max())
    levels = LEVELS[max(first, 0) : last + 1]
    shares = np.empty(len(levels))
    for i, level in enumerate(levels):
        high = -ndtri(ndtr(-level) * uniform)
        high = np.where(np.isfinite(high), np.maximum(high, level), level)
        exceeding = np.abs(rest + towards * (sign * high)[:, None]) >= level * (1 - 1e-9)
        shares[i] = (1 / np.maximum(exceeding.sum(axis=1), 1)).mean()
    return np.interp(size, levels, np.maximum.accumulate(shares))
