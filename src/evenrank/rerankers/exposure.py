"""`ExposureRanker`: random rankings of most quality among those of fair exposure (Singh and Joachims, 2018)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.ranking import strict_places
from evenrank.rerankers.base import one_column
from evenrank.rerankers.exposure_lists import ListDraws, TwoGroupLists, in_proportion
from evenrank.rerankers.exposure_program import Mixture, Program, solve
from evenrank.rerankers.permutohedron import decompose, place_weights, snapped
from evenrank.row_checks import LARGEST, as_array, as_floats

Floats = NDArray[np.float64]
CONSTRAINTS = ("parity", "disparate_treatment", "disparate_impact", "individual")
LEAST = 1e-12  # a chance below this is rounding
OTHER_NAMES = {"demographic_parity": "parity"}


@dataclass(frozen=True, eq=False)
class StochasticRanking(Mixture):
    """Rankings of one list, drawn with probabilities; if no mixture meets the constraint, this is the nearest to it.

    Attributes
    ----------
    rankings, probabilities, slack, feasible
        Those of a `Mixture`.
    exposure : ndarray
        Each item's expected exposure, (n,).
    quality : float
        Σ merit·exposure, expected: DCG of the merits.
    """

    exposure: Floats
    quality: float

    def sample(self, seed: int | np.random.Generator | None = None) -> NDArray[np.int64]:
        """Draw one ranking, as for one request.

        Parameters
        ----------
        seed : int or Generator, optional
            The source of chance.

        Returns
        -------
        ndarray
            Items from the top, (n,).
        """
        drawn = np.random.default_rng(seed).choice(len(self.probabilities), p=self.probabilities)
        return np.asarray(self.rankings[drawn])

    def selection(self, k: int) -> Floats:
        """Compute each item's probability of being among the first k.

        Parameters
        ----------
        k : int
            The cut-off.

        Returns
        -------
        ndarray
            (n,).
        """
        out = np.zeros(self.rankings.shape[1])
        for ranking, probability in zip(self.rankings, self.probabilities, strict=True):
            out[ranking[: check_k(k)]] += probability
        return out


class ExposureRanker:
    """A re-ranker whose lists are drawn at random, with exposure that is fair on average in every single list.

    Parameters
    ----------
    constraint : str
        "parity": groups have the same mean exposure of an item. "disparate_treatment": the same exposure per merit.
        "disparate_impact": the same Σ merit·exposure per merit, as clicks would be. "individual": every item's exposure
        is proportional to its merit, as nearly as rankings allow.
    slack : float
        How far the groups' values may be apart; not for "individual".
    k : int, optional
        Only the first k places have exposure, 1/log2(1 + place) each; None: all.
    strength : float
        The part of the way from the order by merit, which 0 leaves alone, to the constraint.

    Examples
    --------
    >>> mixture = ExposureRanker("parity").solve([0.9, 0.8, 0.3, 0.2], ["a", "a", "b", "b"])
    >>> mixture.rankings.tolist(), mixture.probabilities.round(3).tolist()
    ([[0, 2, 1, 3], [2, 0, 3, 1]], [0.5, 0.5])
    """

    def __init__(
        self, constraint: str = "parity", slack: float = 0.0, k: int | None = None, strength: float = 1.0
    ) -> None:
        self.constraint, self.slack, self.k, self.strength = constraint, slack, k, strength
        check_number(strength, "strength", least=0, most=1)
        choose(OTHER_NAMES.get(constraint, constraint), CONSTRAINTS, what="constraint")
        check_number(slack, "slack", least=0)
        if k is not None:
            check_k(k)

    def __repr__(self) -> str:
        own = {name: getattr(self, name) for name in ("constraint", "slack", "k", "strength")}
        return f"ExposureRanker({', '.join(f'{name}={value!r}' for name, value in own.items())})"

    def solve(self, merit: ArrayLike, groups: ArrayLike) -> StochasticRanking:
        """Find the rankings of one list.

        Parameters
        ----------
        merit : array-like
            What exposure of each item is worth, (n,), for instance its probability of being relevant. At least 0 unless
            the constraint is parity.
        groups : array-like
            Labels, (n,); None or "" is unknown, which counts for no group. Not looked at for "individual".

        Returns
        -------
        StochasticRanking
            The best mixture of rankings.
        """
        worth = as_floats(as_array(merit, "merit"), "merit")
        labels = np.asarray(as_array(groups, "groups")).tolist()
        if worth.ndim != 1 or not len(worth) or len(labels) != len(worth):
            raise DataError(
                f"merit and groups must be two lists of one length, one item at least; got {worth.shape} and "
                f"{len(labels)}."
            )
        sound = np.abs(worth) <= LARGEST
        if not sound.all():
            place = int(np.argmin(sound))
            rule = f"at most {LARGEST:g}" if np.isfinite(worth[place]) else "finite"
            raise DataError(f"merits must be {rule}; item {place} has {worth[place]}. Leave the item out of the list.")
        known = {label: code for code, label in enumerate(dict.fromkeys(x for x in labels if not _unknown(x)))}
        codes = np.array([known.get(label, -1) if not _unknown(label) else -1 for label in labels])
        return self._mixture(self._solve(worth, codes, np.array([0, len(worth)])), 0, worth)

    def mixtures(self, scores: ArrayLike, data: RankingData) -> list[StochasticRanking]:
        """Find the rankings of every list.

        Parameters
        ----------
        scores : array-like
            The merits, (n,), in the caller's row order.
        data : RankingData
            The rows; labels are not looked at.

        Returns
        -------
        list of StochasticRanking
            One per query, in the order of ``data.query_ids``; items are numbered by their row within the stored list.
        """
        draws = self._draws(scores, data)
        stored = data.to_stored(scores)
        bounds = zip(data.query_ptr[:-1].tolist(), data.query_ptr[1:].tolist(), strict=True)
        return [self._mixture(draws, number, stored[begin:end]) for number, (begin, end) in enumerate(bounds)]

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None, *, seed: int = 0) -> Floats:
        """Draw one ranking of each list.

        Parameters
        ----------
        scores, data
            As for `mixtures`.
        k : int, optional
            Instead of the re-ranker's own.
        seed : int
            The source of chance; another seed is another request.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank), (n,), in the caller's row order.
        """
        check_number(seed, "seed", least=0, whole=True)
        ranker = self if k is None else ExposureRanker(self.constraint, self.slack, k, self.strength)
        # Lists draw in the order of their ids, so that rows in another order get the same.
        turn = np.argsort(data.sorted_queries)
        return data.to_caller(-1.0 - ranker._draws(scores, data).drawn(seed, turn))

    def rankings(self, scores: ArrayLike, data: RankingData) -> tuple[Floats, Floats]:
        """Give all rankings that may be drawn, as `evenrank.measure` takes them.

        Parameters
        ----------
        scores, data
            As for `mixtures`.

        Returns
        -------
        scores : ndarray
            Scores of each ranking (minus the rank), (n, 1, rankings), in the caller's row order.
        chances : ndarray
            How likely each is in each list, (q, rankings); 0 beyond those that a list has.

        Examples
        --------
        >>> data = RankingData.from_arrays(np.zeros((4, 0)), [1, 0, 1, 0], ["a", "a", "b", "b"], [1] * 4)
        >>> rankings, chances = ExposureRanker("parity").rankings([0.9, 0.8, 0.3, 0.2], data)
        >>> import evenrank as er
        >>> er.measure(rankings, data, ["exposure_gap", "dp@2"], chances=chances)
        {'exposure_gap': array([0.]), 'dp@2': array([0.])}
        """
        draws = self._draws(scores, data)
        return data.to_caller(-1.0 - draws.place)[:, None], draws.chance

    def exposure(self, scores: ArrayLike, data: RankingData) -> Floats:
        """Compute each row's expected exposure.

        Parameters
        ----------
        scores, data
            As for `mixtures`.

        Returns
        -------
        ndarray
            (n,), in the caller's row order.
        """
        weights = place_weights(int(data.lengths.max()), self.k)
        return data.to_caller(self._draws(scores, data).expected(weights))

    def selection(self, scores: ArrayLike, data: RankingData, k: int) -> Floats:
        """Compute each row's probability of being among the first k of its list.

        Parameters
        ----------
        scores, data
            As for `mixtures`.
        k : int
            The cut-off.

        Returns
        -------
        ndarray
            (n,), in the caller's row order.
        """
        inside = (np.arange(int(data.lengths.max())) < check_k(k)).astype(float)
        return data.to_caller(self._draws(scores, data).expected(inside))

    # ------------------------------------------------------------------ all lists

    @property
    def _needs_groups(self) -> bool:
        return self.constraint != "individual"

    def _draws(self, scores: ArrayLike, data: RankingData) -> ListDraws:
        """The draws of all lists, with the rows as they are stored."""
        stored = as_floats(one_column(scores, data), "scores")
        if self._needs_groups and data.n_groups < 1:
            raise DataError("ExposureRanker needs group labels; the data has none. Name the column of the group.")
        # Items go in by rank, so that ties are broken as everywhere.
        order = np.empty(data.n_rows, np.int64)
        order[np.repeat(data.query_ptr[:-1], data.lengths) + strict_places(stored, data)] = np.arange(data.n_rows)
        draws = self._solve(stored[order], data.group[order].astype(np.int64), data.query_ptr)
        place = np.empty_like(draws.place)
        place[order] = draws.place
        draws.place = place
        short = int((~draws.feasible).sum())
        if short and self._needs_groups:
            warnings.warn(
                f"in {short} of {data.n_queries} lists no mixture of rankings meets {self.constraint}; the nearest was "
                "taken. A larger slack can be met",
                DataWarning,
                stacklevel=3,
            )
        return draws

    def _solve(self, merit: Floats, group: NDArray[np.int64], ptr: NDArray[np.int64]) -> ListDraws:
        name = OTHER_NAMES.get(self.constraint, self.constraint)
        if name != "parity" and (merit < 0).any():
            raise DataError(
                f"merits must be at least 0 for {name}; got {merit.min():g}. Give chances of relevance, not scores."
            )
        weights = place_weights(int(np.diff(ptr).max()), self.k)
        if name == "individual":
            return in_proportion(merit, weights, ptr, float(self.strength))
        groups = int(group.max(initial=-1)) + 1
        list_of_row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        cell = np.where(group >= 0, list_of_row * groups + group, -1)
        total = np.bincount(cell[cell >= 0], None if name == "parity" else merit[cell >= 0], (len(ptr) - 1) * groups)
        counts = total.reshape(len(ptr) - 1, -1) > 0  # a group without merit has no exposure per merit
        code = np.where(counts, np.cumsum(counts, axis=1) - 1, -1).ravel()
        code = np.where(cell >= 0, np.append(code, -1)[cell], -1)
        worth = merit if name == "disparate_impact" else np.ones(len(merit))
        value = np.where(code >= 0, worth / np.where(code >= 0, np.append(total, 1.0)[cell], 1.0), 0.0)
        return self._with_groups(merit, value, code, counts.sum(axis=1), weights, ptr)

    def _with_groups(
        self,
        merit: Floats,
        value: Floats,
        code: NDArray[np.int64],
        number: NDArray[np.int64],
        weights: Floats,
        ptr: NDArray[np.int64],
    ) -> ListDraws:
        """The draws of lists whose items have these values for groups numbered from 0 in each list."""
        of_two = np.repeat(number == 2, np.diff(ptr)) & (code >= 0)
        pairs = TwoGroupLists(merit, np.where(of_two, value * (2 * code - 1), 0.0), weights, ptr)
        plain, _, apart = pairs.plain()
        slack = self._slack(np.abs(apart))
        draws = pairs.solve(np.flatnonzero(np.abs(apart) > slack), slack)
        same = np.abs(apart) <= slack
        chosen = same[draws.list_of_row]
        draws.place[chosen] = plain[chosen][:, None]
        draws.slack[same] = slack[same]
        for at in np.flatnonzero(number > 2).tolist():
            rows = slice(ptr[at], ptr[at + 1])
            program = Program(merit[rows], value[rows], code[rows], weights[: ptr[at + 1] - ptr[at]])
            by_merit = program.best(np.zeros(program.n_groups))
            mixture = solve(program, float(self._slack(np.ptp(program.result(by_merit)[1]))))
            # The exposures are unique, the rankings that give them are not: these hang on the exposures alone.
            exposure = program.weights[np.argsort(mixture.rankings, axis=1)].T @ mixture.probabilities
            place, chance = decompose(snapped(exposure)[None], program.weights)
            used = chance[:, 0] > LEAST
            result = (chance[used].T / chance[used].sum(), np.array([mixture.slack]), np.array([mixture.feasible]))
            draws.put(np.array([at]), place[used, 0].T, *result)
        return draws

    def _slack(self, apart: Any) -> Any:
        """How far groups may be apart whose values are ``apart`` in the order by merit."""
        own = float(self.slack)
        return np.maximum(own, self.strength * own + (1 - self.strength) * apart)

    def _mixture(self, draws: ListDraws, number: int, merit: Floats) -> StochasticRanking:
        rankings, chances = draws.rankings(number)
        exposure = np.zeros(len(merit))
        weights = place_weights(len(merit), self.k)
        for ranking, chance in zip(rankings, chances, strict=True):
            exposure[ranking] += chance * weights
        slack, feasible = float(draws.slack[number]), bool(draws.feasible[number])
        return StochasticRanking(rankings, chances, slack, feasible, exposure, float(merit @ exposure))


def _unknown(label: Any) -> bool:
    return label is None or label == "" or label != label
