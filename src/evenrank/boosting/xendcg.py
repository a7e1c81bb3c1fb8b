"""LightGBM's cross entropy for NDCG (``rank_xendcg``), compiled: a softmax against labels with noise of their own.

As for LambdaRank, a custom objective cannot call the library's gradient. Import this only where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CrossEntropyNDCG:
    """XE-NDCG-MART: φ = 2^label − u over a list, with a new u from [0, 1) for each item and round, against the softmax.

    Attributes
    ----------
    seed : int
        LightGBM's ``objective_seed``, which decides u as it does there.
    """

    seed: int = 5

    def bind(self, relevance: NDArray[Any], query_ptr: NDArray[np.int64]) -> BoundCrossEntropy:
        """Apply the loss to lists; see `LambdaRank.bind`."""
        return BoundCrossEntropy(self.seed, relevance, query_ptr)


class BoundCrossEntropy:
    """`CrossEntropyNDCG` on the lists of some data: each call of ``gradient(scores)`` is a round, with new noise."""

    def __init__(self, seed: int, relevance: NDArray[Any], query_ptr: NDArray[np.int64]) -> None:
        self.power = 2.0 ** np.floor(np.asarray(relevance, np.float64))
        self.ptr = np.asarray(query_ptr, np.int64)
        self.state = (seed + np.arange(len(self.ptr) - 1)).astype(np.uint32)

    def gradient(self, scores: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give first and second derivatives of the loss, float32, (n,) each, for scores (n,) in stored order."""
        first, second = np.zeros(len(self.power), np.float32), np.zeros(len(self.power), np.float32)
        _cross_entropy(np.ascontiguousarray(scores, np.float64), self.power, self.ptr, self.state, first, second)
        return first, second


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _cross_entropy(scores: Any, power: Any, ptr: Any, state: Any, first: Any, second: Any) -> None:
    for q in range(len(ptr) - 1):
        begin, n = ptr[q], ptr[q + 1] - ptr[q]
        if n <= 1:
            continue
        share = np.exp(scores[begin : begin + n] - scores[begin : begin + n].max())
        share /= share.sum()
        aim = np.empty(n)
        draw = np.uint64(state[q])
        for i in range(n):
            draw = (np.uint64(214013) * draw + np.uint64(2531011)) & np.uint64(0xFFFFFFFF)
            aim[i] = power[begin + i] - np.float32((draw >> np.uint64(16)) & np.uint64(0x7FFF)) / np.float32(32768)
        state[q] = np.uint32(draw)
        # The slope and two corrections to it, each from what the one before leaves.
        left = share - aim / max(1e-15, aim.sum())
        for _ in range(3):
            for i in range(n):
                first[begin + i] += np.float32(left[i])
            ratio = left / (1 - share)
            left = share * (ratio.sum() - ratio)
        for i in range(n):
            second[begin + i] = np.float32(share[i] * (1 - share[i]))
