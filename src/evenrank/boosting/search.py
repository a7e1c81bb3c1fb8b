"""`least_loss_within`: of strengths that keep a gap within a limit, the one that keeps most quality."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from evenrank.linear.strengths import strength_grid

_GRID = strength_grid()[1:]
# Tried from the middle outwards; where none is within the limit, all of them are, so that what the grid can reach is
# reached. Then between the weakest one that is and the strongest below it that is not.
COARSE = tuple(_GRID[::4].tolist())
REFINED = 2
# Where a gap is asked for on the training rows that no strength reaches, these are tried: a strength, and how strongly
# rows are pulled along the groups themselves (see `FairPull`). Trees can always learn who is in which group, though not
# for other queries. Their gap moves about 0 from round to round: the model is cut where it was last within the limit,
# or nearest to it.
LAST = ((1.0, 3.0), (10**-0.5, 10.0), (10**0.5, 10.0))
# They are tried as well where the strength that reaches it costs more than this much NDCG: along what features tell, a
# group that is behind for good reasons is dear to carry up, and a limit on these rows asks for these rows alone.
DEAR = 0.02
# A model that is cut keeps at least this part of its trees.
LEAST_KEPT = 0.5
# Where nothing is within the limit yet, the strengths of `strength_grid` between them follow, the strong ones first,
# until one is within it: gaps jump from one to the next, and what the grid reaches is not to be called out of reach.
BETWEEN = tuple(alpha for alpha in reversed(_GRID.tolist()) if alpha not in COARSE)


@dataclass(frozen=True)
class Tried:
    """A trained model: its strength, its gap and quality on the rows that are checked, and what it takes to keep it."""

    alpha: float
    gap: float
    quality: float
    state: Any


def least_loss_within(
    limit: float,
    train: Callable[[float], Tried],
    strengths: tuple[float, ...] = COARSE,
    refined: int = REFINED,
    last: Iterable[Callable[[], Tried]] = (),
    finally_: Iterable[float] = (),
) -> tuple[Tried, list[Tried]]:
    """Find a strength whose gap is at most ``limit`` at the least loss of quality.

    Strength 0 is kept if it is within the limit. At most 1 + 7 models are trained, then 2 between two of them, and what
    is tried last, unless told otherwise. Where only the strongest is within it, which costs most quality, the other
    strong ones are tried beside it.

    Parameters
    ----------
    limit : float
        The largest gap.
    train : Callable
        Trains and checks a model at a strength.
    strengths : tuple of float
        What is tried, in rising order.
    refined : int
        How many more are tried between two of them.
    last : iterable of Callable
        Models of other kinds, which are trained one after the other if no strength is within the limit, or none that
        costs at most `DEAR`, until one is that is no dearer than the dearest strength.
    finally_ : iterable of float
        Strengths that are tried if nothing is within the limit, until one is.

    Returns
    -------
    tuple
        The model to keep, which has the smallest gap if none is within the limit, and all that were tried.
    """
    tried: dict[float, Tried] = {}

    def within(alpha: float) -> bool:
        if alpha not in tried:
            tried[alpha] = train(alpha)
        return tried[alpha].gap <= limit

    if within(0.0):
        return tried[0.0], list(tried.values())
    low, high = -1, len(strengths)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(strengths[middle]) else (middle, high)
    if high == len(strengths):
        high = next((at for at in reversed(range(high)) if within(strengths[at])), high)
    if high < len(strengths):
        weakest = strengths[high]
        strongest = max((alpha for alpha in tried if 0 < alpha < weakest and not within(alpha)), default=weakest / 10)
        for _ in range(refined):
            middle_alpha = (strongest * weakest) ** 0.5
            strongest, weakest = (strongest, middle_alpha) if within(middle_alpha) else (middle_alpha, weakest)
    if high == len(strengths) - 1:
        for alpha in strengths[len(strengths) // 2 :]:
            within(alpha)
    models = list(tried.values())
    least, dearest = tried[0.0].quality - DEAR, min(model.quality for model in models)
    if not any(model.gap <= limit and model.quality >= least for model in models):
        for make in last:
            models.append(make())
            if models[-1].gap <= limit and models[-1].quality >= dearest:
                break
    for alpha in finally_:
        if any(model.gap <= limit for model in models):
            break
        models.append(train(alpha))
    good = [model for model in models if model.gap <= limit]
    best = max(good, key=lambda model: (model.quality, -model.alpha)) if good else min(models, key=lambda m: m.gap)
    return best, models


def best_cut(limit: float, gaps: Sequence[float], rounds: int, gap: float) -> int | None:
    """Give the largest number of trees with which a model is within a limit, or else has its smallest gap.

    Parameters
    ----------
    limit : float
        The largest gap.
    gaps : sequence of float
        The gap before each tree.
    rounds : int
        The number of trees that the model has now.
    gap : float
        The gap that it has now.

    Returns
    -------
    int or None
        Fewer than now, but at least `LEAST_KEPT` of them; None if no such model is nearer to the limit than this one.

    Examples
    --------
    >>> best_cut(0.1, [0.5, 0.0, 0.2, 0.1, 0.3, 0.4], 6, 0.2), best_cut(0.1, [0.5, 0.0, 0.2, 0.3], 4, 0.4)
    (3, 2)
    >>> best_cut(0.1, [0.5, 0.0, 0.2, 0.3], 4, 0.2) is None
    True
    """
    fewest = max(1, ceil(LEAST_KEPT * rounds))
    nearest, best = None, gap
    for trees in reversed(range(fewest, min(rounds, len(gaps)))):
        if gaps[trees] <= limit:
            return trees
        if gaps[trees] < best:
            nearest, best = trees, gaps[trees]
    return nearest
