"""LambdaRank's gradient, as LightGBM and XGBoost define it, compiled.

A custom objective cannot call the libraries' gradient, so it is computed again here: the same pairs, the same
normalisations and, because boosted trees turn rounding into different splits, the same precision at each step. Import
this only where it is used: numba compiles (and caches) the kernel when it is first called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError

TABLE_SIZE = 1 << 20
TABLE_REACH = 25.0  # the sigmoid of LightGBM is a table over ±25 / sigma
MAX_LABEL = 31
RUN = 32  # so many are sorted by insertion
MEASURES = ("ndcg", "pairs", "map")


@dataclass(frozen=True)
class LambdaRank:
    """The pairs' weights and the normalisations of a library's LambdaRank.

    Attributes
    ----------
    truncation : int
        At least one item of each pair is above this rank.
    sigma : float
        Steepness of the pair's sigmoid.
    by_difference, by_sum : bool
        Divide a pair's weight by its score difference; damp lists with a large gradient.
    gains : tuple of float or None
        The gain of each whole label; empty is 2^label − 1; None is the label itself.
    library : str
        Whose arithmetic: "lightgbm" (double scores, sigmoid from a table) or "xgboost" (single, twice the curvature).
    measure : str
        A pair's weight: what swapping its items changes in "ndcg" or "map", or 1 in "pairs".
    """

    truncation: int = 30
    sigma: float = 1.0
    by_difference: bool = True
    by_sum: bool = True
    gains: tuple[float, ...] | None = ()
    library: str = "lightgbm"
    measure: str = "ndcg"

    def bind(self, relevance: NDArray[Any], query_ptr: NDArray[np.int64]) -> BoundLambdaRank:
        """Apply the rule to lists.

        Parameters
        ----------
        relevance, query_ptr : ndarray
            Labels in stored order, (n,), and the bounds of the lists, (q + 1,).

        Returns
        -------
        BoundLambdaRank
            The rule on these lists.
        """
        return BoundLambdaRank(self, relevance, query_ptr)

    def gain(self, relevance: NDArray[Any]) -> NDArray[np.float64]:
        """Give the gain of each row; labels must be whole numbers unless the gain is the label itself.

        Parameters
        ----------
        relevance : ndarray
            The labels, (n,).

        Returns
        -------
        ndarray
            (n,).
        """
        if self.gains is None:
            return relevance.astype(np.float64)
        label = relevance.astype(np.int64)
        of_xgboost = self.library == "xgboost"
        table = np.asarray(self.gains or 2.0 ** np.arange(MAX_LABEL + of_xgboost) - 1)
        wrong = (label != relevance) | (label < 0) | (label >= len(table))
        if wrong.any():
            name = "rank:ndcg" if of_xgboost else "lambdarank"
            way = "set ndcg_exp_gain=False" if of_xgboost else "pass one label_gain per grade"
            raise DataError(
                f"{name} needs relevance in whole numbers from 0 to {len(table) - 1}; got {relevance[wrong][0]:g}. "
                f"Round it, or {way}."
            )
        return np.asarray(table[label], np.float64)


class BoundLambdaRank:
    """`LambdaRank` on the lists of some data: ``gradient(scores)`` gives first and second derivatives, float32."""

    def __init__(self, rule: LambdaRank, relevance: NDArray[Any], query_ptr: NDArray[np.int64]) -> None:
        from evenrank.ranking import descending

        self.rule = rule
        self.label = np.ascontiguousarray(relevance, np.float32)
        self.ptr = np.asarray(query_ptr, np.int64)
        self.gain = rule.gain(self.label)
        if rule.measure == "map" and (graded := self.label[(self.label != 0) & (self.label != 1)]).size:
            raise DataError(f"rank:map needs relevance 0 or 1; got {graded[0]:g}. Use rank:ndcg, or make it binary.")
        length = np.diff(self.ptr)
        self.discount = 1 / np.log2(2.0 + np.arange(length.max(initial=1)))
        place = np.arange(len(self.label)) - np.repeat(self.ptr[:-1], length)
        best = descending(self.gain, self.ptr) * np.where(place < rule.truncation, self.discount[place], 0)
        ideal = np.add.reduceat(best, self.ptr[:-1])
        self.inverse_ideal = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        self._order = place.astype(np.int32)  # of each list, from the top down, at the scores of the last call
        self.single = rule.library == "xgboost"
        if self.single:
            self.table = np.zeros(0)
        else:
            reach = TABLE_REACH / rule.sigma
            point = np.arange(TABLE_SIZE) / (TABLE_SIZE / (2 * reach)) - reach
            self.table = 1 / (1 + np.exp(point * rule.sigma))

    def gradient(self, scores: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give first and second derivatives of the loss.

        Parameters
        ----------
        scores : ndarray
            Of the rows in stored order, (n,).

        Returns
        -------
        tuple of ndarray
            float32, (n,) each.
        """
        first, second = np.empty(len(self.label), np.float32), np.empty(len(self.label), np.float32)
        rule = self.rule
        _lambdas(
            np.ascontiguousarray(scores, np.float32 if self.single else np.float64),
            self.label,
            self.gain,
            self.ptr,
            self.inverse_ideal,
            self.discount,
            self.table,
            TABLE_REACH / rule.sigma,
            rule.sigma,
            rule.truncation,
            rule.by_difference,
            rule.by_sum,
            self.single,
            MEASURES.index(rule.measure),
            self._order,
            first,
            second,
        )
        return first, second


@numba.njit(cache=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _sort(order: Any, keys: Any, spare: Any) -> None:
    """Order by falling keys, equal ones as they stand: short runs by insertion, then merged.

    ``order`` holds any order, best one that is almost right: a tree changes few places.
    """
    n = len(keys)
    for begin in range(0, n, RUN):
        end = min(begin + RUN, n)
        for i in range(begin + 1, end):
            item, j = order[i], i
            key = keys[item]
            while j > begin and (keys[order[j - 1]] < key or (keys[order[j - 1]] == key and order[j - 1] > item)):
                order[j] = order[j - 1]
                j -= 1
            order[j] = item
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if i < middle and j < end:
                    one, other = order[i], order[j]
                    first = keys[one] > keys[other] or (keys[one] == keys[other] and one < other)
                else:
                    first = i < middle
                if first:
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order[:n] = spare[:n]
        width *= 2


@numba.njit(cache=True, error_model="numpy")  # type: ignore[misc, untyped-decorator, unused-ignore]
def _lambdas(
    scores: Any,
    label: Any,
    gain: Any,
    ptr: Any,
    inverse_ideal: Any,
    discount: Any,
    table: Any,
    reach: float,
    sigma: float,
    truncation: int,
    by_difference: bool,
    by_sum: bool,
    single: bool,
    measure: int,
    orders: Any,
    first: Any,
    second: Any,
) -> None:
    longest = len(discount)
    spare, differing = np.empty(longest, np.int32), np.empty(longest, np.int32)
    # The list from the top down, so that the pairs run through memory in order.
    s, y, g = np.empty(longest, scores.dtype), np.empty(longest, np.float32), np.empty(longest, np.float64)
    slope, bend = np.empty(longest, np.float32), np.empty(longest, np.float32)
    relevant, precision = np.empty(longest), np.empty(longest)
    bins = len(table)
    per_unit = bins / (2 * reach)
    one = np.float32(1)
    least = 0.01 if single else np.float64(np.float32(0.01))
    for q in range(len(ptr) - 1):
        begin, n = ptr[q], ptr[q + 1] - ptr[q]
        order = orders[begin : begin + n]
        _sort(order, scores[begin : begin + n], spare)
        for i in range(n):
            row = begin + order[i]
            s[i], y[i], g[i] = scores[row], label[row], gain[row]
            slope[i] = bend[i] = 0
            if measure == 2:
                relevant[i] = y[i] + (relevant[i - 1] if i else 0)
                precision[i] = y[i] / (i + 1) + (precision[i - 1] if i else 0)
        total, scale = 0.0, inverse_ideal[q]
        spread = by_difference and s[0] != s[n - 1]
        for i in range(min(n - 1, truncation)):
            others = 0  # found without a branch: which labels differ cannot be foreseen
            for j in range(i + 1, n):
                differing[others] = j
                others += y[i] != y[j]
            for m in range(others):
                j = differing[m]
                sign = one if y[i] > y[j] else -one  # no branch: which item is the better one cannot be foreseen
                lead = sign * (s[i] - s[j])
                if measure == 0:
                    weight = abs(g[i] - g[j]) * (discount[i] - discount[j]) * scale
                elif measure == 1:
                    weight = 1.0
                else:
                    above, below = relevant[i] / (i + 1), relevant[j] / (j + 1)
                    between = precision[j - 1] - precision[i]
                    change = above - below + between if y[i] > y[j] else below - above - 1 / (i + 1) - between
                    weight = abs(change) / relevant[n - 1]
                if spread:
                    weight /= least + abs(np.float64(lead))
                if single:
                    chance = np.float64(one / (one + np.exp(-np.float32(lead))))
                    push = np.float32((1 - chance) * weight)
                    pull = np.float32(max(chance * (1 - chance), 1e-16) * weight * 2)
                    total += 2 * np.float64(push)
                else:
                    if lead <= -reach:
                        wrong = table[0]
                    elif lead >= reach:
                        wrong = table[bins - 1]
                    else:
                        wrong = table[int((lead + reach) * per_unit)]
                    strength = wrong * sigma * weight
                    push = np.float32(strength)
                    pull = np.float32(wrong * (1 - wrong) * sigma * sigma * weight)
                    total += 2 * strength
                slope[i] -= sign * push
                slope[j] += sign * push
                bend[i] += pull
                bend[j] += pull
        damp = np.log2(1 + total) / total if by_sum and total > 0 else 1.0
        for i in range(n):
            row = begin + order[i]
            if single:
                first[row], second[row] = slope[i] * np.float32(damp), bend[i] * np.float32(damp)
            else:
                first[row], second[row] = np.float32(slope[i] * damp), np.float32(bend[i] * damp)
