"""Losses of ranking quality, row by row: value, gradient and curvature in the score.

A loss is three plain functions of ``(scores, relevance)`` with scores (n,) or (n, models) and relevance (n, 1) or
of the scores' shape. Each returns the scores' shape: the contribution of each row, which the caller averages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rowwise = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Loss:
    """A loss of each row as a function of its score.

    Attributes
    ----------
    name : str
        How parameters call it.
    value, gradient, curvature : callable
        (scores, relevance) → the loss and its first and second derivative in the score, of the scores' shape.
    binary : bool
        Whether it is given relevance as 0 or 1, after the threshold.
    steepest : float
        A bound of the second derivative: it decides how long a step of descent may be.
    quadratic : bool
        Whether it is quadratic in the score, so that moments hold all of it.
    within : bool
        Whether it is given scores and relevance less their query's mean.
    """

    name: str
    value: Rowwise
    gradient: Rowwise
    curvature: Rowwise
    steepest: float
    binary: bool = False
    quadratic: bool = False
    within: bool = False


def squared_value(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute (s − r)², the paper's loss."""
    return np.asarray((scores - relevance) ** 2)


def squared_gradient(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute 2 (s − r)."""
    return np.asarray(2 * (scores - relevance))


def squared_curvature(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute the constant 2."""
    return np.full_like(scores, 2)


def logistic_value(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute log(1 + eˢ) − r s, written so that no exponential overflows."""
    return np.asarray(np.maximum(scores, 0) - relevance * scores + np.log1p(np.exp(-np.abs(scores))))


def sigmoid(scores: NDArray[Any]) -> NDArray[Any]:
    """Compute 1 / (1 + e⁻ˢ) without overflow."""
    small = np.exp(-np.abs(scores))
    return np.asarray(np.maximum(small, scores >= 0) / (1 + small))  # a choice by rows takes five times as long


def logistic_gradient(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute sigmoid(s) − r."""
    return np.asarray(sigmoid(scores) - relevance)


def logistic_curvature(scores: NDArray[Any], relevance: NDArray[Any]) -> NDArray[Any]:
    """Compute the derivative of the sigmoid, without overflow."""
    small = np.exp(-np.abs(scores))
    return np.asarray(small / (1 + small) ** 2)


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared", squared_value, squared_gradient, squared_curvature, 2.0, quadratic=True),
        # ½ the mean over the list's items j of ((s_i − s_j) − (r_i − r_j))², averaged over the rows i, is the mean of
        # the squared loss of scores and relevance less their query's mean.
        Loss("pairwise", squared_value, squared_gradient, squared_curvature, 2.0, quadratic=True, within=True),
        Loss("logistic", logistic_value, logistic_gradient, logistic_curvature, 0.25, binary=True),
    )
}
