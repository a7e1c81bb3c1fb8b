"""Groups' score distributions made alike: by one group's percentiles, or by their common barycentre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.rankers import model_file
from evenrank.rankers.matching import protected_code
from evenrank.rerankers.maps import MapReranker, thinned
from evenrank.row_checks import listed


class QuantileMatch(MapReranker):
    """Gives each protected item the non-protected score of the same percentile.

    The percentile of a score s among the n of its group is 100·(#{< s} + #{≤ s} + 1)/(2n), at most 100; the value at
    a percentile is interpolated linearly. A score that `fit` did not see is interpolated between those that it did, and
    beyond them keeps its distance. It may see the group at training and at serving; it needs no labels.

    Parameters
    ----------
    protected : label, optional
        The group whose scores are replaced; None is the smaller one. All other groups together are its measure.
    strength : float
        The part of the way, from 0 (nothing changes) to 1.

    Examples
    --------
    >>> data = RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["a", "a", "a", "b"], [1] * 4)
    >>> QuantileMatch().fit([3.0, 2.0, 1.0, 0.5], data).rerank([3.0, 2.0, 1.0, 0.5], data)
    array([3., 2., 1., 3.])
    """

    def __init__(self, *, protected: Any = None, strength: float = 1.0) -> None:
        self.protected, self.strength = protected, strength

    def fit(self, scores: ArrayLike, data: RankingData) -> Self:
        """Learn the scores of both sides.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows, with two groups or more; labels are not used, and each row counts once.

        Returns
        -------
        QuantileMatch
            The re-ranker itself.
        """
        check_number(self.strength, "strength", least=0, most=1)
        by_group, _ = self._start_fit(scores, data)
        name = data.group_names[protected_code(data, self.protected)]
        own = np.sort(by_group.pop(name))
        value, count = np.unique(own, return_counts=True)
        upto = np.cumsum(count)
        share = np.minimum((2 * upto - count + 1) / (2 * len(own)), 1.0)
        others = np.quantile(np.concatenate(list(by_group.values())), share)
        self.maps_ = {name: thinned(value, np.maximum.accumulate(others))}
        self.group_names_ = data.group_names
        return self


class QuantileBarycentre(MapReranker):
    """Moves every group's scores a part of the way to their common distribution (CFA-θ; Zehlike et al., 2020).

    The common distribution is the barycentre of the groups' by optimal transport, weighted by their sizes: its quantile
    function is the mean of theirs. The item of rank q (ascending) among the n of its group gets its mean between the
    (q − 1)/n and q/n quantiles; equal scores share the mean of their places. Order inside a group is kept. Scores that
    `fit` did not see are interpolated, and beyond the ends keep their distance. It may see the group at training and at
    serving; it needs no labels.

    Parameters
    ----------
    theta : float or mapping
        The part of the way, from 0 (nothing changes) to 1 (one distribution); for all groups, or for each by its label.

    Examples
    --------
    >>> data = RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["a", "a", "b", "b"], [1] * 4)
    >>> QuantileBarycentre(theta=1.0).fit([4.0, 2.0, 3.0, 1.0], data).rerank([4.0, 2.0, 3.0, 1.0], data)
    array([3.5, 1.5, 3.5, 1.5])
    """

    strength_name = "theta"

    def __init__(self, theta: float | Mapping[Any, float] = 1.0) -> None:
        self.theta = theta

    def fit(self, scores: ArrayLike, data: RankingData) -> Self:
        """Learn the groups' scores.

        Parameters
        ----------
        scores, data
            As for `QuantileMatch.fit`.

        Returns
        -------
        QuantileBarycentre
            The re-ranker itself.
        """
        self._need_groups(data, 2)
        self._check_theta(data.group_names)
        by_group, lists = self._start_fit(scores, data)
        # Sums of the scores' distances from the median lose fewer digits than sums of the scores.
        ordered = {name: np.sort(values) - lists.centre for name, values in by_group.items()}
        n = sum(map(len, ordered.values()))
        self.maps_ = {}
        for name, values in ordered.items():
            ends = np.arange(len(values) + 1) / len(values)
            area = np.zeros(len(ends))
            for other in ordered.values():
                area += len(other) / n * _area(other, ends)
            common = np.diff(area) * len(values)
            score, place, count = np.unique(values, return_inverse=True, return_counts=True)
            mean = np.bincount(place, common) / count
            self.maps_[name] = thinned(score + lists.centre, np.maximum.accumulate(mean) + lists.centre)
        self.group_names_ = data.group_names
        return self

    def content(self) -> dict[str, Any]:
        """Give what the model file holds; a theta per group is a list in the order of the groups."""
        content = super().content()
        if isinstance(self.theta, Mapping):
            del content["parameters"]["theta"]
            content["thetas"] = [self._part(name) for name in self.group_names_]
        return content

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> Self:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = super().from_content(content, name)
        if "thetas" in content:
            parts = model_file.numbers("thetas", content["thetas"], len(reranker.group_names_), name=name)
            if (parts < 0).any() or (parts > 1).any():
                raise DataError(f"{name}: 'thetas' must be from 0 to 1. Was the file edited?")
            reranker.theta = dict(zip(reranker.group_names_, parts.tolist(), strict=True))
        return reranker

    def _check_theta(self, groups: tuple[Any, ...]) -> None:
        parts = self.theta if isinstance(self.theta, Mapping) else dict.fromkeys(groups, self.theta)
        missing = [name for name in groups if name not in parts]
        if missing:
            raise ConfigError(f"theta must have a value for each group; it lacks {listed(missing)}.")
        for part in parts.values():
            check_number(part, "theta", least=0, most=1)

    def _part(self, name: Any) -> float:
        return float(self.theta[name] if isinstance(self.theta, Mapping) else self.theta)


def _area(ordered: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral from 0 to each end of the step quantile function of ascending values."""
    n = len(ordered)
    total = np.concatenate([[0.0], np.cumsum(ordered)]) / n
    return np.interp(ends, np.arange(n + 1) / n, total)
