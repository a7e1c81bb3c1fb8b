"""The noise floor: what is left of the gaps if one offset per group is tuned on all rows, the tested ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.methods.method import Part
from evenrank.rerankers.offset import GroupOffset


def floor_parts(
    scores: NDArray[np.float64], groupings: Sequence[RankingData], notions: Sequence[str], ks: Sequence[int]
) -> Iterator[Part]:
    """Tune an offset on all rows for each grouping, notion and k.

    Parameters
    ----------
    scores : ndarray
        The baseline's scores of each row by models that did not train on it, (n,), in the caller's order.
    groupings : sequence of RankingData
        The rows under each grouping.
    notions : sequence of str
        The notions.
    ks : sequence of int
        The cut-offs.

    Yields
    ------
    Part
        The moved scores, (n, 1).
    """
    for number, data in enumerate(groupings):
        for notion, k in product(notions, ks):
            moved = GroupOffset(notion, k, shrink=False).fit(scores, data).rerank(scores, data)
            yield Part(number, notion, k, moved[:, None])
