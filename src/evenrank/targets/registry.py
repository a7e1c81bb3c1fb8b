"""The targets, as data, and how one is bound to lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.losses import sigmoid
from evenrank.targets.bound import BoundTarget, Centered, Rowwise, sigmoid_and_slope, sigmoid_slope
from evenrank.targets.lists import SoftExposure, SoftTopK


@dataclass(frozen=True)
class Target:
    """A value of each row that can be evened out between groups.

    Attributes
    ----------
    name : str
        How parameters call it.
    title : str
        What it is, in a few words.
    bind : callable
        (query_ptr, k, temperature, floor) → `BoundTarget`.
    uses_k : bool
        Whether it depends on the cut-off.
    temperature : float or None
        The default softness, in units of a list's spread; None for a target that has none.
    listwise : bool
        Whether it depends on the whole list.
    linear : bool
        Whether it is linear in the scores, so that Γ of a linear score stays convex and exactly solvable.
    """

    name: str
    title: str
    bind: Callable[..., BoundTarget]
    uses_k: bool = False
    temperature: float | None = None
    listwise: bool = False
    linear: bool = False


def _probability_bend(scores: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(sigmoid_slope(scores) * (1 - 2 * sigmoid(scores)))


TARGETS = {
    target.name: target
    for target in (
        Target(
            "score",
            "the score itself, as in the paper",
            lambda *_: Rowwise(lambda s: s, np.ones_like, np.zeros_like, lambda s: (s, 1)),
            linear=True,
        ),
        Target(
            "centered",
            "the score less its query's mean",
            lambda query_ptr, *_: Centered(query_ptr),
            listwise=True,
            linear=True,
        ),
        Target(
            "probability",
            "sigmoid of the score",
            lambda *_: Rowwise(sigmoid, sigmoid_slope, _probability_bend, sigmoid_and_slope),
        ),
        Target(
            "topk",
            "soft indicator of the query's top k, whatever the scale of the scores",
            SoftTopK,
            uses_k=True,
            temperature=0.5,
            listwise=True,
        ),
        Target(
            "exposure",
            "position discount of the soft rank, whatever the scale of the scores",
            SoftExposure,
            temperature=0.5,
            listwise=True,
        ),
    )
}


def bind_target(
    name: str, query_ptr: NDArray[np.int64], *, k: int = 5, temperature: float | None = None, floor: float = 0.0
) -> BoundTarget:
    """Bind a target to the lists of some data.

    Parameters
    ----------
    name : str
        One of `TARGETS`: "score", "centered", "probability", "topk" or "exposure".
    query_ptr : ndarray
        (q + 1,): the rows of query i are ``query_ptr[i]:query_ptr[i + 1]``.
    k : int
        The cut-off of "topk".
    temperature : float, optional
        The softness of "topk" and "exposure", in units of a list's spread (the standard deviation of its scores), so
        that the scale of the scores does not matter.
    floor : float
        The least spread, in units of the scores. Boosting starts from equal scores, where without a floor the value
        has no slope or a huge one.

    Returns
    -------
    BoundTarget
        The value of each row as a function of the scores, with its derivatives.

    Examples
    --------
    >>> bind_target("topk", np.array([0, 3, 4]), k=1).value(np.array([2.0, 1.0, 0.0, 7.0])).round(2).tolist()
    [0.77, 0.23, 0.02, 1.0]
    """
    target = TARGETS[choose(name, TARGETS, what="target")]
    given = target.temperature or 1.0 if temperature is None else temperature
    check_number(given, "temperature", above=0)
    check_number(floor, "floor", least=0)
    return target.bind(np.asarray(query_ptr, np.int64), check_k(k), float(given), float(floor))
