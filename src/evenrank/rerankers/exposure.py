"""`ExposureRanker`: random rankings of most quality among those of fair exposure (Singh and Joachims, 2018)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.ranking import strict_places
from evenrank.rerankers.base import one_column
from evenrank.rerankers.exposure_program import Mixture, Program, solve
from evenrank.rerankers.permutohedron import decompose, place_weights, project
from evenrank.row_checks import as_array, as_floats

Floats = NDArray[np.float64]
CONSTRAINTS = ("parity", "disparate_treatment", "disparate_impact", "individual")
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
            raise DataError(f"merit and groups must be two lists of one length; got {worth.shape} and {len(labels)}.")
        known = {label: code for code, label in enumerate(dict.fromkeys(x for x in labels if not _unknown(x)))}
        return self._solve(worth, np.array([known.get(label, -1) if not _unknown(label) else -1 for label in labels]))

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
        stored = as_floats(one_column(scores, data), "scores")
        if self._needs_groups and data.n_groups < 1:
            raise DataError("ExposureRanker needs group labels; the data has none. Name the column of the group.")
        rank = strict_places(stored, data)
        out, short = [], 0
        for begin, end in zip(data.query_ptr[:-1].tolist(), data.query_ptr[1:].tolist(), strict=True):
            # Items go in by rank, so that ties are broken as everywhere.
            order = np.argsort(rank[begin:end])
            mixture = self._solve(stored[begin:end][order], data.group[begin:end][order].astype(np.int64))
            exposure = np.empty(end - begin)
            exposure[order] = mixture.exposure
            out.append(replace(mixture, rankings=order[mixture.rankings], exposure=exposure))
            short += not mixture.feasible
        if short and self._needs_groups:
            warnings.warn(
                f"in {short} of {data.n_queries} lists no mixture of rankings meets {self.constraint}; the nearest was "
                "taken. A larger slack can be met",
                DataWarning,
                stacklevel=2,
            )
        return out

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
        rng = np.random.default_rng(seed)
        ranker = self if k is None else ExposureRanker(self.constraint, self.slack, k, self.strength)
        place = np.empty(data.n_rows, np.int64)
        for begin, mixture in zip(data.query_ptr[:-1].tolist(), ranker.mixtures(scores, data), strict=True):
            ranking = mixture.sample(rng)
            place[begin + ranking] = np.arange(len(ranking))
        return data.to_caller(-1.0 - place)

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
        mixtures = self.mixtures(scores, data)
        most = max(len(mixture.probabilities) for mixture in mixtures)
        places = np.zeros((data.n_rows, most))
        chances = np.zeros((data.n_queries, most))
        for query, mixture in enumerate(mixtures):
            number, length = mixture.rankings.shape
            chances[query, :number] = mixture.probabilities
            place = np.argsort(mixture.rankings, axis=1).T
            begin = data.query_ptr[query]
            places[begin : begin + length] = place[:, np.minimum(np.arange(most), number - 1)]
        return data.to_caller(-1.0 - places)[:, None], chances

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
        return data.to_caller(np.concatenate([mixture.exposure for mixture in self.mixtures(scores, data)]))

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
        return data.to_caller(np.concatenate([mixture.selection(k) for mixture in self.mixtures(scores, data)]))

    # ------------------------------------------------------------------ one list

    @property
    def _needs_groups(self) -> bool:
        return self.constraint != "individual"

    def _solve(self, merit: Floats, group: NDArray[np.int64]) -> StochasticRanking:
        weights = place_weights(len(merit), self.k)
        name = OTHER_NAMES.get(self.constraint, self.constraint)
        if name != "parity" and (merit < 0).any():
            raise DataError(
                f"merits must be at least 0 for {name}; got {merit.min():g}. Give chances of relevance, not scores."
            )
        if name == "individual":
            return self._individual(merit, weights)
        total = np.bincount(group[group >= 0], merit[group >= 0] if name != "parity" else None)
        counts = np.flatnonzero(total > 0)  # a group without merit has no exposure per merit
        code = np.full(len(total) + 1, -1)  # the last is that of unknown groups
        code[counts] = np.arange(len(counts))
        group = code[group]
        worth = merit if name == "disparate_impact" else np.ones(len(merit))
        value = worth / np.append(total[counts], 1.0)[group]
        program = Program(merit, value, group, weights)
        slack = float(self.slack)
        if self.strength < 1 and len(counts):
            apart = float(np.ptp(program.result(program.best(np.zeros(len(counts))))[1]))
            slack = max(slack, self.strength * slack + (1 - self.strength) * apart)
        return _with_exposure(solve(program, slack), merit, weights)

    def _individual(self, merit: Floats, weights: Floats) -> StochasticRanking:
        by_merit = np.argsort(-merit, kind="stable")
        plain = np.empty(len(merit))
        plain[by_merit] = weights
        if not merit.sum() > 0:  # nothing to be proportional to
            return _with_exposure(Mixture(by_merit[None], np.ones(1), np.nan, feasible=False), merit, weights)
        wanted = self.strength * merit * (weights.sum() / merit.sum()) + (1 - self.strength) * plain
        nearest = project(wanted, weights)
        rankings, probabilities = decompose(nearest, weights)
        apart = float(np.abs(nearest - wanted).max())
        return _with_exposure(Mixture(rankings, probabilities, apart, feasible=apart <= 1e-9), merit, weights)


def _with_exposure(mixture: Mixture, merit: Floats, weights: Floats) -> StochasticRanking:
    exposure = np.zeros(len(merit))
    for ranking, probability in zip(mixture.rankings, mixture.probabilities, strict=True):
        exposure[ranking] += probability * weights
    return StochasticRanking(**vars(mixture), exposure=exposure, quality=float(merit @ exposure))


def _unknown(label: Any) -> bool:
    return label is None or label == "" or label != label
