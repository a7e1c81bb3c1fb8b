"""The exact law of how many of group a are selected, given each list's rows and selections, for every odds ratio.

If a list's K selections fall on its a + b rows without regard to the group, their number in group a is hypergeometric.
The law of its sum over lists is their convolution, P(s); with an odds ratio ψ it is P(s)ψ^s, scaled to 1, so that one
convolution serves them all. It is taken at the ψ whose mean is what was observed, where no probability underflows, and
only as far as it is needed: lists and selections may be a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EQUAL = 1e-9  # relative: tails closer than this are as extreme as each other
NOISE = 1e-11  # 1 minus a sum of probabilities, where it should be 0
GRID = 33  # odds ratios tried at once
FAR = 14  # doublings of a step in the logarithm of the odds ratio
LONGEST = 4096  # numbers selected whose probability is held
HELD = 1 << 21  # numbers in one table of tilted laws


@dataclass(frozen=True, eq=False)
class Margins:
    """The lists' hypergeometric laws, one per kind of list, end to end.

    Attributes
    ----------
    times : ndarray
        (U,): how many lists are of each kind.
    kind : ndarray
        (L,): the kind of each list.
    least : ndarray
        (U,): the smallest number that can be selected of group a.
    start : ndarray
        (U,): where each kind's law starts.
    more : ndarray
        (cells,): the number selected, beyond the smallest.
    log_ways : ndarray
        (cells,): the logarithm of the number of ways, less the largest of its kind.
    """

    times: Array
    kind: NDArray[np.int64]
    least: Array
    start: NDArray[np.int64]
    more: Array
    log_ways: Array

    @classmethod
    def of(cls, a: Array, b: Array, selected: Array, times: Array | None = None) -> Margins:
        """Take the rows of each group and the number selected, whole numbers, per list or per ``times`` lists."""
        from scipy.special import gammaln

        table = np.stack([a, b, selected]).round().astype(np.int64)
        order = np.lexsort(table)
        ordered = table[:, order]
        new = np.ones(ordered.shape[1], bool)
        new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        kind = np.empty(len(order), np.int64)
        kind[order] = np.cumsum(new) - 1
        a, b, selected = ordered[:, new].astype(np.float64)
        least, most = np.maximum(0.0, selected - b), np.minimum(a, selected)
        size = (most - least).astype(np.int64) + 1
        start = np.concatenate([[0], np.cumsum(size)[:-1]])
        more = np.arange(size.sum(), dtype=np.float64) - np.repeat(start, size)
        in_a = more + np.repeat(least, size)
        in_b = np.repeat(selected, size) - in_a
        log_ways = -(
            gammaln(in_a + 1)
            + gammaln(np.repeat(a, size) - in_a + 1)
            + gammaln(in_b + 1)
            + gammaln(np.repeat(b, size) - in_b + 1)
        )
        log_ways -= np.repeat(np.maximum.reduceat(log_ways, start), size)
        return cls(np.bincount(kind, times).astype(np.float64), kind, least, start, more, log_ways)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """The number of outcomes of each kind, (U,)."""
        return np.diff(np.append(self.start, len(self.more)))

    @cached_property
    def support(self) -> int:
        """The largest sum over lists, beyond the smallest."""
        return round(float(self.times @ (self.size - 1)))

    @cached_property
    def log_plain(self) -> Array:
        """The logarithm of each kind's sum of ways at an odds ratio of 1, (U,)."""
        return np.log(np.add.reduceat(np.exp(self.log_ways), self.start))

    def tilted(self, log_odds: float) -> tuple[Array, Array, Array]:
        """Give the laws at an odds ratio, (cells,), and each kind's mean (beyond the smallest) and variance, (U,)."""
        exponent = self.log_ways + self.more * log_odds
        exponent -= np.repeat(np.maximum.reduceat(exponent, self.start), self.size)
        law = np.exp(exponent)
        law /= np.repeat(np.add.reduceat(law, self.start), self.size)
        mean = np.add.reduceat(law * self.more, self.start)
        variance = np.add.reduceat(law * (self.more - np.repeat(mean, self.size)) ** 2, self.start)
        return law, mean, variance

    def mean(self, log_odds: float) -> float:
        """Give the mean of the sum, beyond the smallest."""
        return float(self.times @ self.tilted(log_odds)[1])

    def log_total(self, log_odds: Array) -> Array:
        """Give the logarithm of Σ P(s)ψ^s, s counted from the smallest, at each odds ratio, (G,)."""
        at_once = max(1, HELD // len(self.more))
        parts = [self._log_total(log_odds[i : i + at_once]) for i in range(0, len(log_odds), at_once)]
        return np.concatenate(parts)

    def _log_total(self, log_odds: Array) -> Array:
        exponent = self.log_ways + self.more * log_odds[:, None]
        top = np.maximum.reduceat(exponent, self.start, axis=1)
        exponent -= np.repeat(top, self.size, axis=1)
        each = top + np.log(np.add.reduceat(np.exp(exponent), self.start, axis=1)) - self.log_plain
        return np.asarray(each @ self.times)

    def log_odds_of(self, mean: float) -> float:
        """Find the odds ratio with the given mean, strictly between the smallest sum and the largest."""
        low, high, at = -np.inf, np.inf, 0.0
        for _ in range(200):
            _, means, variances = self.tilted(at)
            short = mean - float(self.times @ means)
            low, high = (at, high) if short > 0 else (low, at)
            step = short / max(float(self.times @ variances), 1e-300)
            if abs(step) < 1e-12:
                break
            at += min(max(step, -2.0), 2.0)
            if not low < at < high:  # Newton's step left what is known: halve that
                at = (low + high) / 2
        return at

    def convolved(self, log_odds: float, limit: int) -> Array:
        """Give the law of the sum at an odds ratio, from the smallest up to ``limit`` more."""
        law = self.tilted(log_odds)[0]
        rows = np.zeros((len(self.start), int(self.size.max())))
        rows[np.repeat(np.arange(len(self.start)), self.size), self.more.astype(np.int64)] = law
        times = self.times.astype(np.int64)
        rows = rows[:, : limit + 1]
        while len(rows) > 1 or times[0] > 1:
            odd = np.flatnonzero(times % 2)
            if len(odd) % 2:  # one is left: it is paired with the law of nothing
                rows = np.concatenate([rows, np.eye(1, rows.shape[1])])
                odd, times = np.append(odd, len(rows) - 1), np.append(times, 1)
            squared = np.flatnonzero(times > 1)
            left, right = np.append(odd[::2], squared), np.append(odd[1::2], squared)
            times = np.concatenate([np.ones(len(odd) // 2, np.int64), times[squared] // 2])
            rows = _products(rows[left], rows[right], limit + 1)
        return np.asarray(rows[0, : self.support + 1])


def _products(left: Array, right: Array, longest: int) -> Array:
    """Convolve two tables row by row, (R, m) each, cut at ``longest`` columns."""
    width = min(left.shape[1] + right.shape[1] - 1, longest)
    if len(left) <= 4:
        return np.stack([np.convolve(x, y)[:width] for x, y in zip(left, right, strict=True)])
    out = np.zeros((len(left), width))
    for j in range(left.shape[1]):
        part = right[:, : width - j]
        out[:, j : j + part.shape[1]] += left[:, j : j + 1] * part
    return out


@dataclass(frozen=True, eq=False)
class Law:
    """The law of the number selected of group a for every odds ratio, near what was observed.

    Attributes
    ----------
    margins : Margins
        The lists.
    observed : int
        The number selected, beyond the smallest possible.
    log_odds : float
        The odds ratio at which the law was taken: its mean is what was observed, or half a one from the end.
    log_law : ndarray
        (T,): the logarithms of the probabilities there.
    """

    margins: Margins
    observed: int
    log_odds: float
    log_law: Array

    @classmethod
    def of(cls, margins: Margins, observed: int) -> Law | None:
        """Convolve the lists; None where too much of the law would be needed."""
        mean, centre = margins.mean(0.0), min(max(observed, 0.5), margins.support - 0.5)
        # the null law is needed around its mean unless that is so far that one of its tails decides alone
        reach = observed if mean > observed + 400 else max(observed, mean)
        limit = min(margins.support, int(reach + 20 * np.sqrt(reach + 30) + 300))
        if limit > LONGEST:
            return None
        log_odds = margins.log_odds_of(centre)
        with np.errstate(divide="ignore"):
            return cls(margins, observed, log_odds, np.log(margins.convolved(log_odds, limit)))

    @cached_property
    def _log_total(self) -> float:
        return float(self.margins.log_total(np.array([self.log_odds]))[0])

    def tails(self, log_odds: Array) -> tuple[Array, Array]:
        """Give P(S ≤ s) and P(S ≥ s) for every s that is held, (G, T) each."""
        return self._tails(log_odds)[:2]

    def _tails(self, log_odds: Array) -> tuple[Array, Array, Array]:
        """Give the tails, and the probability of all that is not held, (G,)."""
        more = np.arange(len(self.log_law))
        scale = self.margins.log_total(log_odds) - self._log_total
        law = np.exp(self.log_law + more * (log_odds - self.log_odds)[:, None] - scale[:, None])
        below = np.cumsum(law, axis=1)
        rest = 1 - below[:, -1]
        if len(self.log_law) > self.margins.support:
            rest[:] = 0.0
        rest[rest < NOISE] = 0.0
        return below, np.cumsum(law[:, ::-1], axis=1)[:, ::-1] + rest[:, None], rest

    def p_values(self, log_odds: Array) -> Array:
        """Blaker's p-value at each odds ratio, (G,): the smaller tail, and what is not longer of the other one."""
        below, above, rest = self._tails(log_odds)
        low, high = below[:, self.observed], above[:, self.observed]
        smaller = np.minimum(low, high)
        reached = smaller * (1 + EQUAL)
        beyond = np.minimum(rest, smaller)  # what is not held of the other tail counts at most as long as this one
        other_above = np.max(np.where(above <= reached[:, None], above, 0.0), axis=1)
        other_below = np.max(np.where(below <= reached[:, None], below, 0.0), axis=1)
        other = np.where(low <= high, np.maximum(other_above, beyond), other_below)
        return np.asarray(np.minimum(1.0, smaller + other))

    def limits(self, level: float) -> tuple[float, float]:
        """Give the logarithms of the smallest and the largest odds ratio whose p-value is above ``level``."""
        low = -np.inf if self.observed == 0 else self._limit(-1, level)
        high = np.inf if self.observed == self.margins.support else self._limit(1, level)
        return low, high

    def _limit(self, sign: int, level: float) -> float:
        centre = self.log_odds
        steps: Array = centre + sign * 0.25 * 2.0 ** np.arange(FAR, dtype=np.float64)
        below, above = self.tails(steps)
        tail = (above if sign < 0 else below)[:, self.observed]
        outside = np.flatnonzero(tail <= level / 2)  # from here on each p-value is at most twice this tail
        end = float(steps[outside[0] if len(outside) else -1])
        inner = centre
        for _ in range(4):  # the accepted set may have holes: keep what is farthest out
            grid = np.linspace(inner, end, GRID)
            accepted = np.flatnonzero(self.p_values(grid) > level)
            last = int(accepted[-1]) if len(accepted) else 0
            if last == GRID - 1:
                return end
            inner, end = float(grid[last]), float(grid[last + 1])
        return end
