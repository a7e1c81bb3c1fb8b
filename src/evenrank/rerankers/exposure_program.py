"""The best mixture of rankings whose groups get exposure in given proportions.

A group's value is Σ cᵢ·eᵢ over its items, with eᵢ an item's expected exposure, and the values of all groups lie within
``slack`` of each other. For given prices of the groups' values the best ranking is a sort, so rankings are made one by
one: prices come from the best mixture of those made so far, and a ranking that would improve it joins them. Two groups
have one price, and many lists are solved at once: see `evenrank.rerankers.exposure_lists`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.rerankers.permutohedron import project

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRECISION = 1e-9  # of the utility: what does not improve it by more does not improve it
EXCESS = 1e-10  # of the groups' values, likewise, of what they are apart too much
SAME = 1e-9  # of the groups' values: those that are apart by less are not apart
MOST_ROUNDS = 2000
CHARGES = (0.3, 0.03, 0.003, 0.0003)  # on the square of exposure, in units of the utilities' range
APPROACH = 2  # steps per group at each charge


@dataclass(frozen=True, eq=False)
class Program:
    """What is asked of one list.

    Attributes
    ----------
    utility : ndarray
        What exposure of each item is worth, (n,).
    value : ndarray
        What it adds to the value of the item's group, (n,), ≥ 0.
    group : ndarray
        Each item's group, (n,), from 0; -1 counts for none.
    weights : ndarray
        The places' weights, (n,), falling.
    """

    utility: Floats
    value: Floats
    group: Ints
    weights: Floats

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1

    def best(self, prices: Floats, *, utility: float = 1.0) -> Ints:
        """Sort by utility and the price of the item's value; equal ones by utility, then as they stand."""
        return np.lexsort([-self.utility, -self.priced(prices, utility=utility)])

    def priced(self, prices: Floats, *, utility: float = 1.0) -> Floats:
        """Compute what an item's exposure is worth at these prices, (n,)."""
        return utility * self.utility + np.where(self.group >= 0, prices[self.group] * self.value, 0.0)

    def scaled(self) -> tuple[Program, float]:
        """Give the program with utilities and values around 1, as solvers want them, and the unit of its values."""
        largest = float(np.abs(self.utility).max())
        unit = float(self.value[self.group >= 0].mean())
        return replace(self, utility=self.utility / (largest or 1.0), value=self.value / unit), unit

    def result(self, ranking: Ints) -> tuple[float, Floats]:
        """Compute a ranking's utility, and its groups' values, (groups,)."""
        exposure = np.empty(len(ranking))
        exposure[ranking] = self.weights
        known = self.group >= 0
        values = np.bincount(self.group[known], (self.value * exposure)[known], minlength=self.n_groups)
        return float(self.utility @ exposure), values.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Rankings drawn with probabilities.

    Attributes
    ----------
    rankings : ndarray
        Items from the top, (rankings, n).
    probabilities : ndarray
        (rankings,).
    slack : float
        How far the groups' values are apart at most: as asked, or more where that cannot be had.
    feasible : bool
        Whether it is as asked.
    """

    rankings: Ints
    probabilities: Floats
    slack: float
    feasible: bool


def solve(program: Program, slack: float) -> Mixture:
    """Find the mixture of most utility.

    Parameters
    ----------
    program : Program
        The list.
    slack : float
        How far the groups' values may be apart.

    Returns
    -------
    Mixture
        The best one. Where no mixture is as asked, the best of those whose values are least apart.
    """
    plain = program.best(np.zeros(program.n_groups))
    if np.ptp(program.result(plain)[1]) <= slack:
        return Mixture(plain[None], np.ones(1), slack, feasible=True)
    scaled, unit = program.scaled()
    mixture = _Rounds(scaled, slack / unit).mixture()
    return replace(mixture, slack=slack if mixture.feasible else mixture.slack * unit)


class _Rounds:
    """The rankings made so far, with the best mixture of them as a small linear program."""

    def __init__(self, program: Program, slack: float) -> None:
        self.program, self.slack = program, slack
        self.rankings: list[Ints] = []
        self.results: list[tuple[float, Floats]] = []
        self._seen: set[bytes] = set()
        groups = np.eye(program.n_groups)
        for prices, utility in [(groups[0] * 0, 1.0), *((s * row, 0.0) for row in groups for s in (1.0, -1.0))]:
            self._add(program.best(prices, utility=utility))
        self._approach()

    def _approach(self) -> None:
        """Find prices near the best ones with many sorts and no program; rankings at prices met begin the mixture.

        With a small charge on the square of exposures, the best mixture at given prices is one projection, and what it
        leaves unequal is the gradient of a smooth function of the prices.
        """
        from scipy.optimize import minimize

        program = self.program
        centre = np.eye(program.n_groups) - 1 / program.n_groups
        size = float(np.ptp(program.utility) or np.abs(program.utility).max() or 1.0)
        scale = size / float(program.value.mean() or 1.0)
        prices = np.zeros(program.n_groups)
        known = program.group >= 0

        def smoothed(point: Floats, charge: float) -> tuple[float, Floats]:
            priced = program.priced(scale * (centre @ point))
            exposure = project(priced / charge, program.weights)
            gains = np.bincount(program.group[known], (program.value * exposure)[known], minlength=len(point))
            return float(priced @ exposure - charge / 2 * exposure @ exposure) / size, centre @ gains * scale / size

        around = np.vstack([np.zeros_like(prices), centre, -centre]) * (scale / size)
        for charge in size * np.array(CHARGES):
            prices = minimize(
                smoothed, prices, charge, jac=True, method="L-BFGS-B", options={"maxiter": APPROACH * program.n_groups}
            ).x
            for change in charge * around:
                self._add(program.best(scale * (centre @ prices) + change))

    def _add(self, ranking: Ints) -> bool:
        key = ranking.tobytes()
        if key in self._seen:
            return False
        self._seen.add(key)
        self.rankings.append(ranking)
        self.results.append(self.program.result(ranking))
        return True

    def mixture(self) -> Mixture:
        """The best mixture; first how far apart the values must be, then the most utility at that."""
        apart = self._run(utility=False)[1]
        feasible = apart <= SAME * max(1.0, float(np.abs(self.results[0][1]).max()))
        slack = self.slack if feasible else self.slack + apart
        share, _ = self._run(utility=True, slack=slack if feasible else slack * (1 + 1e-9))
        used = np.flatnonzero(share > 1e-12)
        return Mixture(np.stack(self.rankings)[used], share[used] / share[used].sum(), slack, feasible=bool(feasible))

    def _run(self, *, utility: bool, slack: float | None = None) -> tuple[Floats, float]:
        """Add rankings until none improves; without utility the objective is by how much ``slack`` is exceeded."""
        from scipy.optimize import linprog

        slack, groups = self.slack if slack is None else slack, self.program.n_groups
        exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        around: Floats | None = None
        for _ in range(MOST_ROUNDS):
            worth = np.array([result[0] for result in self.results])
            values = np.array([result[1] for result in self.results]).T
            scale = max(float(np.abs(worth).max()), 1e-300) if utility else 1.0
            number = len(worth)
            # Variables: the rankings' shares, the lowest value, and what the slack is exceeded by.
            exceeds = 0.0 if utility else 1.0
            cost = np.r_[-worth / scale if utility else np.zeros(number), 0.0, exceeds]
            ones = np.ones((groups, 1))
            above = np.hstack([values, -ones, -exceeds * ones])
            below = np.hstack([-values, ones, 0 * ones])
            bounds = [*[(0, None)] * number, (None, None), (0, 0 if utility else None)]
            found = linprog(
                cost,
                np.vstack([above, below]),
                np.r_[np.full(groups, slack), np.zeros(groups)],
                np.r_[np.ones(number), 0.0, 0.0][None],
                [1.0],
                bounds,
                method="highs",
                options=exact,
            )
            if found.x is None:
                raise ArithmeticError(f"the exposure program was not solved: {found.message}")
            prices = found.ineqlin.marginals[:groups] - found.ineqlin.marginals[groups:]
            ranking = self.program.best(prices * scale, utility=1.0 if utility else 0.0)
            gain, value = self.program.result(ranking)
            improves = (gain / scale if utility else 0.0) + float(prices @ value) + float(found.eqlin.marginals[0])
            if improves <= (PRECISION if utility else EXCESS) or not self._add(ranking):
                return found.x[:number], float(found.x[-1])
            # The prices jump about before they settle; rankings at those they settle around save many rounds.
            around = prices if around is None else (around + prices) / 2
            for way in (0.0, 0.5):
                self._add(
                    self.program.best((way * prices + (1 - way) * around) * scale, utility=1.0 if utility else 0.0)
                )
        return found.x[:number], float(found.x[-1])
