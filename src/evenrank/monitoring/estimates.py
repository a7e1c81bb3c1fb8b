"""What is compared between spans of windows: an estimate, how far each bin moves it, and its variance by chance.

Within queries a ranker that leans moves a list's D about in proportion to V, the variance that chance gives it, and not
to its weight W (which grows with the length of the list, although its top k does not). So the lean ΣD/ΣV, a log odds
ratio to first order (Peto's), is compared, kind of list by kind (see `series.kinds_of`), so that it is no change if the
lists become longer or their groups' shares differ. Charts show the difference of rates ΣD/ΣW.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.monitoring.series import EXCESS, N_A, N_B, VARIANCE, WEIGHT, X_A, X_B

Array = NDArray[np.float64]
WITHIN, POOLED, RATIO = "within_query", "pooled", "ratio"
QUESTIONS = (WITHIN, POOLED)
ENOUGH = 25.0  # variance by chance, or successes and failures, from which spread below chance is believed


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate for each of s spans of windows; see also `rates.Rates`.

    Attributes
    ----------
    kind : str
        "within_query", "pooled" or "ratio".
    sums : ndarray
        (s, bins, 7), or for "within_query" with 3 more columns per further kind of list.
    weights : ndarray, optional
        (s, kinds): of each kind's lean in the estimate; by default those that make it ΣD/ΣV.
    ratio : float
        For "ratio": the first group's rate over the second's in the reference; what is compared is r_a − ratio · r_b.
    """

    kind: str
    sums: Array
    ratio: Any = 1.0
    weights: Array | None = None

    @cached_property
    def total(self) -> Array:
        """The sums over all bins, (s, columns)."""
        return np.asarray(self.sums.sum(1))

    @cached_property
    def _parts(self) -> list[tuple[Any, Array, Array]]:
        """The mean values that the estimate is a sum of: factor, sums of the value and sizes, (s, bins)."""
        if self.kind == WITHIN:
            excess, variance = self.sums[..., EXCESS::3], self.sums[..., VARIANCE::3]
            if self.weights is None:
                return [(1.0, excess.sum(-1), variance.sum(-1))]
            return [(self.weights[:, j], excess[..., j], variance[..., j]) for j in range(excess.shape[-1])]
        factor = self.ratio if self.kind == RATIO else 1.0
        return [(1.0, self.sums[..., X_A], self.sums[..., N_A]), (-factor, self.sums[..., X_B], self.sums[..., N_B])]

    @property
    def value(self) -> Array:
        """The estimate, (s,); NaN where there is none."""
        out = np.zeros(len(self.sums))
        for factor, top, size in self._parts:
            part = factor * over(top.sum(-1), size.sum(-1))
            out = out + np.where(np.asarray(factor) == 0, 0.0, part)
        return out

    def moves(self, power: float) -> Array:
        """How far each bin moved the estimate, (s, bins), over (1 − its share) to a power, 1 or ½.

        1 gives the variance of leaving out bins in turn, ½ one that is right on average.
        """
        out = np.zeros(self.sums.shape[:2])
        for factor, top, size in self._parts:
            total = np.maximum(size.sum(-1, keepdims=True), 1e-300)
            rate = top.sum(-1, keepdims=True) / total
            left = np.maximum(1 - size / total, 1e-3)
            scale = np.reshape(factor, (-1, 1)) / (total * (np.sqrt(left) if power == 0.5 else left))
            out += (top - rate * size) * scale
        return out

    @property
    def number(self) -> Array:
        """How many equal bins would bear as much on the rarer side, (s,)."""
        if self.kind == WITHIN:
            bears = np.zeros(self.sums.shape[:2])
            for factor, _, size in self._parts:
                total = np.maximum(size.sum(-1, keepdims=True), 1e-300)
                bears += np.reshape(factor, (-1, 1)) ** 2 * (size / total) / total
            return np.asarray(np.nan_to_num(over(bears.sum(-1) ** 2, (bears**2).sum(-1))))
        each = [over(size.sum(-1) ** 2, (size**2).sum(-1)) for _, _, size in self._parts]
        return np.asarray(np.nan_to_num(np.min(each, axis=0)))

    @property
    def means(self) -> Array:
        """How many means the spread of the bins is about, (s,)."""
        return np.ones(len(self.sums))

    def by_chance(self, among: Estimate | None = None, *, seen: bool = False) -> Array:
        """The variance by chance, (s,), up to how much more bins vary; ``among`` lends its rate to small spans.

        ``seen`` asks for that of the kinds of list whose spread can be seen: here, of all.
        """
        sums = self.total
        if self.kind == WITHIN:
            total = np.zeros(len(sums))
            for factor, _, size in self._parts:
                part = over(np.broadcast_to(np.square(factor), len(sums)), size.sum(-1))
                total = total + np.where(np.asarray(factor) == 0, 0.0, part)
            return total
        n_a, n_b = sums[:, N_A], sums[:, N_B]
        got, rows = sums[:, X_A] + sums[:, X_B], self.ratio * n_a + n_b
        if among is not None:  # as if one more row had the reference's rate
            lent = among.sums.sum((0, 1))
            got = got + (lent[X_A] + lent[X_B]) / max(1.0, self.ratio * lent[N_A] + lent[N_B])
            rows = rows + 1
        rate = np.clip(got / np.maximum(rows, 1e-300), 1e-9, 1 - 1e-9)
        of_a = np.clip(self.ratio * rate, 1e-9, 1 - 1e-9)
        return np.asarray(over(of_a * (1 - of_a), n_a) + self.ratio**2 * over(rate * (1 - rate), n_b))

    @property
    def few(self) -> NDArray[np.bool_]:
        """Where so little is selected that bins are not believed to vary less than chance, (s,)."""
        sums = self.total
        if self.kind == WITHIN:
            return np.asarray(sums[:, VARIANCE::3].sum(-1) < ENOUGH)
        cells = [sums[:, X_A], sums[:, X_B], sums[:, N_A] - sums[:, X_A], sums[:, N_B] - sums[:, X_B]]
        return np.asarray(np.min(cells, axis=0) < ENOUGH)

    # ------------------------------------------------------------------ showing

    @property
    def shown(self) -> Array:
        """The estimate as charts show it, (s,): a difference of rates, or a ratio of rates."""
        sums = self.total
        if self.kind == WITHIN:
            return over(sums[:, EXCESS::3].sum(-1), sums[:, WEIGHT::3].sum(-1))
        if self.kind == RATIO:
            return over(over(sums[:, X_A], sums[:, N_A]), over(sums[:, X_B], sums[:, N_B]))
        return self.value

    @property
    def scale(self) -> Array:
        """What a difference of estimates is multiplied with to be shown, (s,)."""
        sums = self.total
        if self.kind == WITHIN:
            return over(sums[:, VARIANCE::3].sum(-1), sums[:, WEIGHT::3].sum(-1))
        if self.kind == RATIO:
            return over(np.ones(len(sums)), over(sums[:, X_B], sums[:, N_B]))
        return np.ones(len(sums))

    @property
    def counts(self) -> Array:
        """The rows of the two groups, (s, 2)."""
        return self.total[:, [N_A, N_B]]

    def at_one_mix(self, reference: Estimate) -> tuple[Estimate, Estimate]:
        """Weigh the kinds of list alike on both sides, as each bears on both: V·V′/(V + V′), of sum 1.

        Parameters
        ----------
        reference : Estimate
            The reference, (1, bins, …).

        Returns
        -------
        tuple of Estimate
            Both with weights, the reference once per span. Where they share no kind there is no estimate. What is
            pooled stays as it is: the mix is part of it.
        """
        if self.kind != WITHIN:
            return self, reference
        own, base = (estimate.total[:, VARIANCE::3] for estimate in (self, reference))
        weights = over(own * base, own + base)
        weights = np.nan_to_num(weights)
        weights = weights / np.where(weights.sum(-1, keepdims=True) > 0, weights.sum(-1, keepdims=True), np.nan)
        repeated = np.broadcast_to(reference.sums, self.sums.shape)
        return Estimate(WITHIN, self.sums, 1.0, weights), Estimate(WITHIN, repeated, 1.0, weights)


def over(top: Array, bottom: Array) -> Array:
    """Divide, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(top, bottom, out=np.full(np.broadcast(top, bottom).shape, np.nan), where=bottom > 0))


def reference_ratio(sums: Array) -> float:
    """The first group's rate over the second's, from sums (s, bins, 7); NaN if it is not known."""
    total = sums.sum((0, 1))
    if not min(total[N_A], total[N_B], total[X_B]) > 0:
        return float("nan")
    return float(total[X_A] / total[N_A] / (total[X_B] / total[N_B]))
