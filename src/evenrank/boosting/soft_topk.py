"""The soft top k as boosting takes it, of every row in every round, and its pull at whole lists.

Import it only where it is used: numba compiles (and caches) the kernels when they are first called.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from evenrank.targets.compiled import CompiledTopK


class FastTopK(CompiledTopK):
    """The compiled form of ``bind_target("topk", …)``, for float64 scores (n,) and a floor above 0.

    The parameters are those of `CompiledTopK`.
    """

    def __init__(self, query_ptr: NDArray[np.int64], k: int, temperature: float, floor: float) -> None:
        if not floor > 0:
            raise ValueError("the soft top k of boosting needs a floor under the spread")
        super().__init__(np.asarray(query_ptr, np.int64), k, temperature, floor)
        self._counted = np.empty(int(query_ptr[-1]))

    def counted(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Compute the top k itself, (n,): 1 above the cut, and tied scores at it share the places that are left."""
        self._go_to(scores)
        _top(scores, self.ptr, self.k, self._places, self._counted)
        return self._counted

    def pull_lists(
        self,
        scores: NDArray[Any],
        slope: NDArray[Any],
        hold: NDArray[Any],
        longest: float = np.inf,
        least: NDArray[Any] | float = 0.0,
    ) -> NDArray[Any]:
        """Share out the pull at a list's cut over all its rows, by how firmly the loss holds them.

        A row's weight is w = Σd · h/Σh, sums over its list, where d is the slope of its share of the top k and h its
        ``hold``; its pull is w (slope − the mean slope of the list, by w). With w = d it would be that of a cut that
        moves with the scores. So a step of Newton's, pull / h, is the same for rows of one slope, near the cut or far
        from it: there is nothing to learn about single rows. A list that the loss does not hold is left alone, as that
        of a query without a relevant item: a step there has no bound, and other lists would have to follow it.
        """
        self._go_to(scores)
        out, hold = np.empty_like(scores), np.asarray(hold, np.float64)
        bound = np.maximum(longest * self._places[:, 1], least) if np.isfinite(longest) else longest
        most = np.broadcast_to(np.float64(bound), len(self._places))
        _pull_lists(self.ptr, self.k, self._places, self._first, slope, hold, most, out)
        return out


@numba.njit(cache=True, error_model="numpy")  # type: ignore[misc, untyped-decorator, unused-ignore]
def _top(scores: Any, ptr: Any, k: int, places: Any, out: Any) -> None:
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        mean, cut = places[q, 0], places[q, 2]
        if end - begin <= k:
            out[begin:end] = 1
            continue
        above, tied = 0, 0
        for i in range(begin, end):
            above += scores[i] - mean > cut
            tied += scores[i] - mean == cut
        share = (k - above) / tied
        for i in range(begin, end):
            score = scores[i] - mean
            out[i] = (score > cut) + share * (score == cut)


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _pull_lists(ptr: Any, k: int, places: Any, first: Any, slope: Any, hold: Any, most: Any, out: Any) -> None:
    for q in range(len(ptr) - 1):
        begin, end = ptr[q], ptr[q + 1]
        steep = held = drawn = 0.0
        lowest, highest = np.inf, -np.inf
        for i in range(begin, end):
            steep += first[i]
            held += hold[i]
            drawn += hold[i] * slope[i]
            lowest, highest = min(lowest, slope[i]), max(highest, slope[i])
        if end - begin <= k or not held > 0:
            out[begin:end] = 0
            continue
        mean = drawn / held
        step, farthest = steep / held, max(highest - mean, mean - lowest)
        if step * farthest > most[q]:
            step = most[q] / farthest
        for i in range(begin, end):
            out[i] = step * hold[i] * (slope[i] - mean)
