"""Means and rates of lists, compared at one mix of kinds of list.

A measure with an interval is made of ratios of sums over lists. A span and the reference are compared as if both had
the same shares of each kind of list: the sums of a kind are divided by its lists and weighed alike on both sides, and
then the ratio is taken. So seasons with longer lists, other shares of groups or more relevant items are no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.monitoring.estimates import Array, Estimate, over
from evenrank.monitoring.series import LISTS, NUMBER, TOTAL

MEAN, DIFFERENCE, QUOTIENT = "mean", "difference", "quotient"
SIDES = {MEAN: 1, DIFFERENCE: 2, QUOTIENT: 2}  # how many ratios of sums are compared


@dataclass(frozen=True, eq=False)
class Rates(Estimate):
    """A mean over lists ("mean"), or two rates: their "difference", or their "quotient".

    Attributes
    ----------
    sums : ndarray
        (s, bins, 3 per kind of list and side): the numerator, the denominator, and the lists that have one.
    ratio : float or ndarray
        For "quotient": the reference's, (s,) if it depends on the mix; what is compared is r_a − ratio · r_b.
    """

    @cached_property
    def _sides(self) -> list[tuple[Any, Array]]:
        """The factor of each rate, and its sums, (s, bins, kinds, 3)."""
        count = SIDES[self.kind]
        tables = self.sums.reshape(*self.sums.shape[:2], count, self.sums.shape[-1] // (3 * count), 3)
        factors = [1.0, -np.asarray(self.ratio if self.kind == QUOTIENT else 1.0)][:count]
        return [(factor, tables[:, :, j]) for j, factor in enumerate(factors)]

    def _rate(self, table: Array) -> tuple[Array, Array, Array]:
        """The rate of a side, (s,), its denominator, (s,), and the weight of a list of each kind, (s, kinds)."""
        total = table.sum(1)
        lists = total[..., LISTS]
        weights = np.ones(lists.shape) if self.weights is None else np.nan_to_num(over(self.weights, lists))
        size = (weights * total[..., NUMBER]).sum(-1)
        if self.weights is not None:
            size = np.where(np.isfinite(self.weights).all(-1), size, 0.0)
        return over((weights * total[..., TOTAL]).sum(-1), size), size, weights

    @cached_property
    def _each(self) -> list[tuple[Array, Array, Array]]:
        return [self._rate(table) for _, table in self._sides]

    @property
    def rates(self) -> list[Array]:
        """The rate of each side, (s,)."""
        return [rate for rate, _, _ in self._each]

    @cached_property
    def _parts(self) -> list[tuple[Any, Array, Array]]:
        parts: list[tuple[Any, Array, Array]] = []
        for (factor, table), (rate, size, weights) in zip(self._sides, self._each, strict=True):
            if self.weights is None:
                parts.append((factor, table[..., TOTAL].sum(-1), table[..., NUMBER].sum(-1)))
                continue
            off = table[..., TOTAL] - np.nan_to_num(rate)[:, None, None] * table[..., NUMBER]
            lists = table[..., LISTS]
            per_list = factor * np.nan_to_num(over(np.ones(len(size)), size))
            bears = per_list[:, None] * weights * lists.sum(1)
            parts += [(bears[:, j], off[..., j], lists[..., j]) for j in range(off.shape[-1])]
        return parts

    @property
    def value(self) -> Array:
        """The mean, the difference of the rates, or r_a − ratio · r_b, (s,)."""
        return np.asarray(sum(factor * rate for (factor, _), rate in zip(self._sides, self.rates, strict=True)))

    @property
    def number(self) -> Array:
        """How many equal bins would bear as much on the side with the fewest, (s,)."""
        each = []
        for (_, table), (_, _, weights) in zip(self._sides, self._each, strict=True):
            bears = (weights[:, None] * table[..., LISTS]).sum(-1)
            each.append(np.nan_to_num(over(bears.sum(-1) ** 2, (bears**2).sum(-1))))
        return np.asarray(np.min(each, axis=0))

    @property
    def means(self) -> Array:
        """How many kinds of list there are, of the side that has most, (s,)."""
        each = [(table[..., LISTS].sum(1) > 0).sum(-1) for _, table in self._sides]
        return np.asarray(np.maximum(1.0, np.max(each, axis=0)))

    def by_chance(self, among: Estimate | None = None, *, seen: bool = False) -> Array:
        """The variance by chance, (s,), up to what a list varies; ``seen``: of kinds whose spread can be seen.

        A kind of which all lists are in one bin has a mean, and no spread about it.
        """
        total = np.zeros(len(self.sums))
        for factor, _, size in self._parts:
            lists = size.sum(-1)
            part = np.nan_to_num(over(np.broadcast_to(np.square(factor), len(lists)), lists))
            total = total + (np.where(size.max(-1) < lists, part, 0.0) if seen else part)
        return total

    @property
    def few(self) -> NDArray[np.bool_]:
        """Nowhere: how much lists vary by chance is not known beforehand, (s,)."""
        return np.zeros(len(self.sums), bool)

    @property
    def shown(self) -> Array:
        """The mean, the difference or the quotient of the rates, (s,)."""
        return over(*self.rates) if self.kind == QUOTIENT else self.value

    @property
    def scale(self) -> Array:
        """What a difference of estimates is multiplied with to be shown, (s,)."""
        if self.kind != QUOTIENT:
            return np.ones(len(self.sums))
        return over(np.ones(len(self.sums)), self.rates[1])

    @property
    def counts(self) -> Array:
        """The lists that bear on the two sides, or on the mean and 0, (s, 2)."""
        each = [table[..., LISTS].sum((1, 2)) for _, table in self._sides]
        return np.stack([*each, np.zeros(len(self.sums))][:2], axis=1)

    def at_one_mix(self, reference: Estimate) -> tuple[Rates, Rates]:
        """Weigh the kinds of list alike on both sides: the lists of both sides as far as each bears, of sum 1.

        Parameters
        ----------
        reference : Estimate
            The reference, (1, bins, …).

        Returns
        -------
        tuple of Rates
            Both with weights, the reference once per span. Where they share no kind there is no estimate.
        """
        assert isinstance(reference, Rates)
        inverse: Any = 0.0
        for own in (self, reference):
            for _, table in own._sides:
                lists = table[..., LISTS].sum(1)
                inverse = inverse + over(np.ones(lists.shape), lists)
        weights = np.nan_to_num(1 / inverse)
        total = weights.sum(-1, keepdims=True)
        weights = weights / np.where(total > 0, total, np.nan)
        repeated = np.broadcast_to(reference.sums, (len(self.sums), *reference.sums.shape[1:]))
        ratio: Any = 1.0
        if self.kind == QUOTIENT:
            a, b = Rates(QUOTIENT, repeated, 1.0, weights).rates
            ratio = over(a, b)
        return Rates(self.kind, self.sums, ratio, weights), Rates(self.kind, repeated, ratio, weights)


__all__ = ["DIFFERENCE", "MEAN", "QUOTIENT", "SIDES", "Rates"]
