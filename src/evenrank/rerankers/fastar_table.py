"""FA*IR's tables: how many protected items every prefix must hold, with the exact failure probability of the whole."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Two numbers this close are one: sums of k products of probabilities carry that much rounding.
ROUNDING = 1e-12


@lru_cache(maxsize=4096)
def solve(share: float, significance: float, adjust: bool, reference: bool, k: int) -> tuple[float, NDArray[np.int64]]:
    """Find the significance to use and its table, (k,).

    Parameters
    ----------
    share, significance : float
        As FA*IR's p and significance.
    adjust, reference : bool
        As in `FAStar`.
    k : int
        The length of the table.

    Returns
    -------
    tuple
        The significance and the table.
    """
    if reference:
        used = _published_significance(share, significance, k) if adjust else significance
        table = _published_table(share, used, k)
    else:
        masses = masses_of(share, k)
        below = np.cumsum(masses[1:], axis=1)
        used = _adjusted(below, masses, significance) if adjust else significance
        table = _quantiles(below, used)
    table.flags.writeable = False
    return used, table


@lru_cache(maxsize=8)
def masses_of(share: float, k: int) -> NDArray[np.float64]:
    """Compute P(Binomial(i, share) = x) for i = 0…k (rows) and x = 0…k, by adding positive terms only."""
    masses = np.zeros((k + 1, k + 1))
    masses[0, 0] = 1
    for i in range(1, k + 1):
        masses[i, 0] = masses[i - 1, 0] * (1 - share)
        masses[i, 1 : i + 1] = masses[i - 1, 1 : i + 1] * (1 - share) + masses[i - 1, :i] * share
    masses.flags.writeable = False
    return masses


def _quantiles(below: NDArray[np.float64], level: float) -> NDArray[np.int64]:
    """Smallest x with P(X ≤ x) ≥ level for each row of cumulative probabilities; a difference of rounding is none."""
    return np.asarray((below < level * (1 - ROUNDING)).sum(axis=1))


def failure_probability(table: NDArray[np.int64], masses: NDArray[np.float64]) -> float:
    """Compute the probability that some prefix of a list has fewer protected items than the table asks for.

    Only positions where the table rises can fail, and only by one item too few. Between two such positions the number
    of protected items grows by a binomial number. Numbers above the table's last entry cannot fail any more and are
    dropped.

    Parameters
    ----------
    table : ndarray
        The least numbers, (k,).
    masses : ndarray
        Binomial probabilities, as `masses_of` gives them.

    Returns
    -------
    float
        The probability.
    """
    if len(table) == 0:
        return 0.0
    most = int(table[-1])
    alive, failed, last = np.ones(1), 0.0, 0
    for position in (np.flatnonzero(np.diff(table, prepend=0)) + 1).tolist():
        length = position - last
        alive = np.convolve(alive, masses[length, : length + 1])[: most + 1]
        short = int(table[position - 1])
        failed += float(alive[:short].sum())
        alive[:short] = 0
        last = position
    return failed


def _adjusted(below: NDArray[np.float64], masses: NDArray[np.float64], significance: float) -> float:
    """Find the largest significance, at most the one given, whose table fails with at most that probability.

    A table changes only where the significance passes one of the binomial probabilities, and its failure probability
    never falls as it grows, so a search among those probabilities finds it, by interpolation and halving in turn.
    """
    below = below[:, : int((below[-1] < significance).sum()) + 1]
    steps = np.unique(below[below < significance])
    steps = np.append(steps[np.diff(steps, append=np.inf) > ROUNDING * steps], significance)

    def excess(number: int) -> float:
        """How far the failure probability is above the asked one."""
        return failure_probability(_quantiles(below, float(steps[number])), masses) - significance * (1 + ROUNDING)

    low, high = -1, len(steps) - 1
    over = excess(high)
    if over <= 0:
        return float(significance)
    under, halve = -significance, False
    while high - low > 1:
        share = 0.5 if halve else under / (under - over)
        probe = min(max(low + round((high - low) * share), low + 1), high - 1)
        beyond = excess(probe)
        if beyond <= 0:
            low, under = probe, min(beyond, -1e-300)
        else:
            high, over = probe, beyond
        halve = not halve
    return float(steps[low]) if low >= 0 else float(np.nextafter(steps[0], 0))


def _published_table(share: float, significance: float, k: int) -> NDArray[np.int64]:
    from scipy.stats import binom

    return np.asarray(np.maximum(binom.ppf(significance, np.arange(1, k + 1), share), 0), dtype=np.int64)


def _published_significance(share: float, significance: float, k: int) -> float:
    """The published bisection: on the table's sum, with a failure probability that leaves out position k.

    It ends when the sums of the two ends differ by one (or the middle differs by one from both) and takes the end whose
    failure probability is nearest to the asked one, which may be above it.
    """

    def at(level: float) -> tuple[float, int, float]:
        table = _published_table(share, level, k)
        failure = failure_probability(table[:-1], masses_of(share, k))
        return level, int(table.sum()), 0.0 if failure >= 1 else failure

    low, high, middle = at(0.0), at(significance), at(significance / 2)

    def nearest(*ends: tuple[float, int, float]) -> float:
        return min(ends, key=lambda end: abs(end[2] - significance))[0]

    while low[1] < high[1] and middle[2] != significance:
        if middle[2] < significance:
            low = middle
        else:
            high = middle
        middle = at((low[0] + high[0]) / 2)
        if high[1] - low[1] == 1 or high[0] - low[0] <= 1e-16:
            return nearest(low, high)
        if high[1] - middle[1] == 1 and middle[1] - low[1] == 1:
            return nearest(middle, low, high)
    return middle[0]


def filled(flags: list[bool], table: list[int]) -> list[int]:
    """Fill one list by a table: the next protected item where one is due, else the next item.

    Parameters
    ----------
    flags : list of bool
        Which items are protected, from the best down.
    table : list of int
        The least number of protected items in the first 1, 2, … places.

    Returns
    -------
    list of int
        The items' places in ``flags``, in their new order.
    """
    waiting = [place for place, flag in enumerate(flags) if flag]
    others = [place for place, flag in enumerate(flags) if not flag]
    waiting.append(len(flags))  # behind all others, which an empty list thus leaves the place to
    others.append(len(flags))
    out: list[int] = []
    a = b = 0
    for least in table[: len(flags)]:
        if waiting[a] < others[b] or (a < least and a < len(waiting) - 1):
            out.append(waiting[a])
            a += 1
        else:
            out.append(others[b])
            b += 1
    return out + sorted([*waiting[a:-1], *others[b:-1]])
