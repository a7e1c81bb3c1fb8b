"""What transforms of scores share: a rising map of scores for each group, kept as points."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rankers import model_file
from evenrank.rerankers.base import ScoreReranker, Settled, one_column
from evenrank.rerankers.scored_lists import ScoredLists

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
# A map is kept by at most so many points.
LIFT = 2.0**512
MOST_POINTS = 10_000


class MapReranker(ScoreReranker):
    """Base of re-rankers that put each score through its group's map; subclasses make ``maps_``."""

    maps_: dict[Any, Points]
    strength: float
    # Whether scores beyond the ends of a map keep their distance from the end, or all get its value.
    keeps_distance = True

    def rerank(self, scores: ArrayLike, data: RankingData) -> NDArray[np.float64]:
        """Put each score through the map of its group.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows; labels are not needed. A row of unknown group keeps its score, and so does a sentinel.

        Returns
        -------
        ndarray
            Scores, (n,), in the caller's row order.

        Raises
        ------
        DataError
            If a group was not in `fit`.
        """
        group = self._groups(data)
        score = Settled.of(one_column(scores, data), data).score
        near = np.abs(score - self._centre) <= self._reach
        out = score.copy()
        for code, name in enumerate(self.group_names_):
            if name in self.maps_:
                mine = (group == code) & near
                out[mine] = self._blended(name, score[mine])
        return data.to_caller(out)

    def at(self, strength: float) -> Self:
        """Give the same maps at another strength, without fitting again.

        Parameters
        ----------
        strength : float
            From 0 to 1.

        Returns
        -------
        MapReranker
            A new one.
        """
        self._check_fitted("at")
        check_number(strength, "strength", least=0, most=1)
        return self._with(**{self.strength_name: strength})

    # ------------------------------------------------------------------ for subclasses

    strength_name = "strength"

    def _part(self, name: Any) -> float:
        """The part of the way that a group's scores go."""
        return float(self.strength)

    def _blended(self, name: Any, score: NDArray[np.float64]) -> NDArray[np.float64]:
        part = self._part(name)
        return np.asarray((1 - part) * score + part * apply_map(self.maps_[name], score, self.keeps_distance))

    def _start_fit(self, scores: ArrayLike, data: RankingData) -> tuple[dict[Any, NDArray[np.float64]], ScoredLists]:
        """The scores of each group, (rows,), without sentinels."""
        self._need_groups(data, 2)
        lists = ScoredLists.of(scores, data)
        near = np.abs(lists.score - lists.centre) <= lists.reach
        by_group = {name: lists.score[(data.group == code) & near] for code, name in enumerate(data.group_names)}
        empty = next((name for name, values in by_group.items() if not len(values)), None)
        if empty is not None:
            raise DataError(f"group {empty!r} has no rows to learn its scores from. Fit on rows that have it.")
        self._centre, self._reach = lists.centre, lists.reach
        return by_group, lists

    def content(self) -> dict[str, Any]:
        """Give what the model file holds, in plain values."""
        self._check_fitted("save")
        header = model_file.header(self)
        maps = [
            None if name not in self.maps_ else [part.tolist() for part in self.maps_[name]]
            for name in self.group_names_
        ]
        return header | {"maps": maps, "sentinels": [self._centre, self._reach]}

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> Self:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = cls()
        model_file.set_parameters(reranker, content, name)
        groups = model_file.names(content, "groups", name=name)
        sentinels = model_file.numbers("sentinels", content.get("sentinels"), 2, name=name)
        reranker._centre, reranker._reach = sentinels.tolist()
        maps = model_file.need(content, "maps", list, name=name)
        if len(maps) != len(groups):
            raise DataError(f"{name}: 'maps' must have one entry per group; got {len(maps)} for {len(groups)}.")
        reranker.maps_ = {}
        for label, points in zip(groups, maps, strict=True):
            if points is None:
                continue
            reranker.maps_[label] = model_file.rising_points(points, "maps", name=name)
        reranker.group_names_ = groups
        return reranker


def apply_map(points: Points, score: NDArray[np.float64], keeps_distance: bool) -> NDArray[np.float64]:
    """Interpolate between the points.

    Parameters
    ----------
    points : tuple of ndarray
        Scores, ascending, and their values.
    score : ndarray
        (n,).
    keeps_distance : bool
        Whether a score beyond the ends keeps its distance from the end, so that order is kept there too.

    Returns
    -------
    ndarray
        (n,).
    """
    x, y = points
    lift = LIFT if max(abs(x[0]), abs(x[-1])) < 1 / LIFT else 1.0  # slopes between points so near would overflow
    with np.errstate(over="ignore"):
        inside = np.interp(score * lift, x * lift, y)
    if keeps_distance:
        inside += np.minimum(score - x[0], 0) + np.maximum(score - x[-1], 0)
    return np.asarray(inside)


def thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> Points:
    """Keep at most `MOST_POINTS` points, both ends among them."""
    if len(x) <= MOST_POINTS:
        return x, y
    some = np.linspace(0, len(x) - 1, MOST_POINTS).astype(np.int64)
    return x[some], y[some]
