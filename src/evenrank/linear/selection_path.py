"""Linear rankers whose top-k selection, not their score, has its gap closed, as far as a straight line tells it.

In a list of n items with scores of one spread σ, an item is among the first k with chance p = k/n, and a score above
the list's mean by d raises that by about φ·d/σ, where φ is the density of the normal distribution at the point that p
of it lies above. So the gap of the top k is about the gap of p, which lists in random order have because groups stand
in lists of different length, and that of φ·d/σ. Where k items are all there are, φ is 0: such rows cannot change.

The second is linear in the weights, and is held at minus some part of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenrank.centering import centered
from evenrank.checks import check_k, check_number
from evenrank.data import RankingData
from evenrank.linear.design import Design
from evenrank.linear.exact import Whitened
from evenrank.linear.path import FairnessPath
from evenrank.notions import Notion, as_notion, bind

Floats = NDArray[np.float64]
MADE_UP = 0.2  # of the gap of random order; see docs/decisions/0014
RANK = 1e-10  # of the largest: gaps smaller than that are combinations of others


def selection_path(
    train: RankingData,
    notion: str | Notion,
    k: int,
    parts: Sequence[float] | Floats,
    *,
    makes_up: float = MADE_UP,
    ridge: float = 0.0,
    scale: str | None = "train",
    fit_intercept: bool = True,
) -> FairnessPath:
    """Train a model for every part of the way from the pairwise loss' minimum to where the gap is closed.

    Parameters
    ----------
    train : RankingData
        The rows.
    notion : str or Notion
        What is compared.
    k : int
        The cut-off.
    parts : sequence of float
        0 leaves the model alone, 1 closes the gap, (models,).
    makes_up : float
        The part of the gap of random order that the scores make up for, from 0 to 1. It costs quality.
    ridge, scale, fit_intercept
        As in `fairness_path`.

    Returns
    -------
    FairnessPath
        Its ``alphas`` are the parts.
    """
    train.need_numbers("a linear ranker")
    check_number(makes_up, "makes_up", least=0, most=1)
    named, along = as_notion(notion), np.atleast_1d(np.asarray(parts, float))
    design = Design(
        [train],
        [],
        scope="amortized",
        across="mean",
        scale=scale,
        ridge=ridge,
        fit_intercept=fit_intercept,
        group_aware=False,
        any_units=True,
        target="centered",
        within=True,
    )
    second, cross = design.quadratic()
    columns = len(design.spread)
    chance, density = chances_and_densities(train.lengths, check_k(k))
    contrast = bind(named, train, scope="amortized", across="mean", training=True)
    rows = centered((np.asarray(train.features, float) - design.center) / design.spread, train.query_ptr)
    of_weights = np.zeros((len(contrast.pairs.a), design.width))
    of_weights[:, :columns] = contrast.gaps(rows * density[train.query_of_row][:, None])
    by_chance = contrast.gaps(chance[train.query_of_row])
    white = Whitened.of(second + np.diag(design.ridge), cross, of_weights)
    plain = white.L @ white.y
    spread = float(np.sqrt(np.mean((rows @ plain[:columns]) ** 2)))
    # The nearest point, where the loss is a distance, that has the gaps asked for.
    way = np.linalg.pinv(white.F, rcond=RANK) @ (white.F @ white.y + makes_up * spread * by_chance)
    theta = plain - along[:, None] * (white.L @ way)
    coef, intercept, _ = design.in_own_units(theta)
    return FairnessPath(
        coef=coef,
        intercept=intercept,
        alphas=along,
        notions=(named.name,) * len(along),
        feature_names=train.feature_names,
        group_names=train.group_names,
        residual=np.full(len(along), np.nan),
    )


def chances_and_densities(lengths: NDArray[np.int64], k: int) -> tuple[Floats, Floats]:
    """Give the chance of an item of each list to be among the first k, and how fast it rises with the score.

    Parameters
    ----------
    lengths : ndarray
        The lists' numbers of items, (q,).
    k : int
        The cut-off.

    Returns
    -------
    chance, density : ndarray
        (q,) each.
    """
    from scipy.special import ndtri

    chance = np.minimum(k / lengths, 1.0)
    density = np.where(chance < 1, np.exp(-(ndtri(chance) ** 2) / 2) / np.sqrt(2 * np.pi), 0.0)
    return chance, np.asarray(density)
