"""rND, rKL and rRD: how far the shares of the first step, 2·step, … ranks are from those of the list.

Definitions of Yang and Stoyanovich (2017), as in their code. Each is divided by its largest value over all orders of
the list, found exactly by a dynamic programme over the number of protected items at the cut points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number, choose
from evenrank.measures.evaluation import divide
from evenrank.measures.exposure_shares import kl_terms

STEP = 10
BITS = float(np.log(2))

# Protected items s among the first i, and S of N: arrays that broadcast → the difference at the cut point.
Difference = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]


def _share_gap(s: NDArray[Any], i: NDArray[Any], S: NDArray[Any], N: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.abs(s / i - S / N))


def _divergence(s: NDArray[Any], i: NDArray[Any], S: NDArray[Any], N: NDArray[Any]) -> NDArray[Any]:
    return (kl_terms(s / i, S / N) + kl_terms(1 - s / i, 1 - S / N)) / BITS


def _odds(part: NDArray[Any], rest: NDArray[Any]) -> NDArray[Any]:
    """part / rest, with 0 for a fraction that has 0 above or below."""
    part, rest = np.broadcast_arrays(part, rest)
    return np.asarray(np.divide(part, rest, out=np.zeros(part.shape), where=rest > 0))


def _odds_gap(s: NDArray[Any], i: NDArray[Any], S: NDArray[Any], N: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.abs(_odds(s, i - s) - _odds(S, N - S)))


def _odds_shortfall(s: NDArray[Any], i: NDArray[Any], S: NDArray[Any], N: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.maximum(_odds(S, N - S) - _odds(s, i - s), 0))


DIFFERENCES: dict[str, Difference] = {
    "rnd": _share_gap,
    "rkl": _divergence,
    "rrd": _odds_gap,
    "rrd_shortfall": _odds_shortfall,
}
LOGS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "log2_i_plus_1": lambda i: np.log2(i + 1),
    "log2_i": np.log2,
}


def cut_point_sum(
    name: str, protected: NDArray[Any], *, step: int = STEP, log: str = "log2_i_plus_1", k: int | None = None
) -> NDArray[np.float64]:
    """Sum the discounted differences at the cut points step, 2·step, … of lists of one length.

    Parameters
    ----------
    name : str
        "rnd": |s/i − S/N|; "rkl": KL of the two shares from the list's, in bits; "rrd": |s/(i − s) − S/(N − S)|, where
        a fraction with 0 above or below is 0; "rrd_shortfall": the same where the first ratio is the smaller, else 0.
    protected : ndarray
        Protected items among the first 1, 2, … ranks, (N, …).
    step : int
        The distance of the cut points.
    log : str
        What divides a difference: "log2_i_plus_1", as in the published code, or "log2_i".
    k : int, optional
        The last rank at which there may be a cut point.

    Returns
    -------
    ndarray
        (…); 0 for lists shorter than ``step``.

    Examples
    --------
    >>> bool(cut_point_sum("rnd", np.array([1.0, 2.0, 2.0, 2.0]), step=2) == 0.5 / np.log2(3))
    True
    """
    cuts = cut_points(len(protected), step, log, k)
    return sum_at_cuts(name, protected[cuts - 1], cuts, protected[-1], len(protected), log=log)


def sum_at_cuts(
    name: str,
    at_cuts: NDArray[Any],
    cuts: NDArray[np.int64],
    protected: NDArray[Any],
    length: int,
    *,
    log: str = "log2_i_plus_1",
) -> NDArray[np.float64]:
    """Compute `cut_point_sum` from the protected items among the first ranks up to each cut point.

    Parameters
    ----------
    name, log
        As in `cut_point_sum`.
    at_cuts : ndarray
        Protected items among the first ranks, (cuts, …).
    cuts : ndarray
        The ranks, (cuts,).
    protected : ndarray
        Protected items of the list, (…).
    length : int
        Items of the list, N.

    Returns
    -------
    ndarray
        (…).
    """
    choose(name, DIFFERENCES, what="name")
    i = cuts.reshape(-1, *(1,) * (at_cuts.ndim - 1))
    terms = DIFFERENCES[name](at_cuts, i, protected, np.asarray(float(length)))
    return np.asarray(np.tensordot(1 / LOGS[log](cuts), terms, axes=1))


def group_divergence_sum(counts: NDArray[Any], *, step: int = STEP, log: str = "log2_i_plus_1") -> NDArray[np.float64]:
    """Compute rKL over several groups, in bits, before it is divided by its largest value.

    Parameters
    ----------
    counts : ndarray
        Each group's items among the first 1, 2, … ranks, (N, G, …).
    step, log
        As in `cut_point_sum`.

    Returns
    -------
    ndarray
        (…).
    """
    cuts = cut_points(len(counts), step, log)
    i = cuts.reshape(-1, *(1,) * (counts.ndim - 1))
    terms = kl_terms(counts[cuts - 1] / i, counts[-1] / len(counts)).sum(axis=1) / BITS
    return np.asarray(np.tensordot(1 / LOGS[log](cuts), terms, axes=1))


def largest_sum(
    name: str,
    protected: NDArray[Any],
    length: int,
    *,
    step: int = STEP,
    log: str = "log2_i_plus_1",
    k: int | None = None,
) -> NDArray[np.float64]:
    """Find the largest `cut_point_sum` over all orders of lists.

    Parameters
    ----------
    name, step, log, k
        As in `cut_point_sum`.
    protected : ndarray
        Numbers of protected items, (c,), each from 0 to ``length``.
    length : int
        The number of items of the lists, N.

    Returns
    -------
    ndarray
        (c,).

    Examples
    --------
    >>> bool(largest_sum("rnd", np.array([2]), 4, step=2)[0] == 0.5 / np.log2(3))
    True
    """
    choose(name, DIFFERENCES, what="name")
    total = np.asarray(protected, np.int64)[:, None]
    most = int(total.max(initial=0))
    s = np.arange(most + 1)[None, :]
    best = np.where(s == 0, 0.0, -np.inf) * np.ones((len(total), 1))
    N = np.asarray(float(length))
    for cut in cut_points(length, step, log, k).tolist():
        reached = best.copy()
        for more in range(1, min(step, most) + 1):
            np.maximum(reached[:, more:], best[:, :-more], out=reached[:, more:])
        possible = (s <= total) & (cut - s <= length - total) & (s <= cut)
        i = np.asarray(float(cut))
        gain = DIFFERENCES[name](np.minimum(s, cut), i, np.asarray(total, float), N) / LOGS[log](i)
        best = np.add(reached, gain, out=np.full(best.shape, -np.inf), where=possible)
    return np.asarray(best.max(axis=1))


def normalised(raw: NDArray[Any], largest: NDArray[Any]) -> NDArray[np.float64]:
    """Divide sums by their largest value: 0 is fair, 1 the worst order; NaN where every order gives 0."""
    return divide(raw, largest)


def cut_points(length: int, step: int, log: str = "log2_i_plus_1", k: int | None = None) -> NDArray[np.int64]:
    """Give the ranks step, 2·step, … up to k or the length."""
    check_number(step, "step", least=1, whole=True)
    choose(log, LOGS, what="log")
    cuts = np.arange(step, min(length, k or length) + 1, step)
    return cuts[cuts > 1] if log == "log2_i" else cuts
