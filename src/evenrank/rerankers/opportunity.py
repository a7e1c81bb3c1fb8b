"""`EqualOpportunityTransform`: relevant items of all groups get one distribution of scores."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rerankers.maps import MapReranker, Points, apply_map
from evenrank.rerankers.position_bias import position_bias
from evenrank.row_checks import as_array


class EqualOpportunityTransform(MapReranker):
    """Maps scores so that the relevant items of all groups have one distribution (Nandy et al., 2021).

    For each group the quantiles of its relevant items' scores are mapped to their probabilities, and every score of the
    group goes through that map: linear between the quantiles, flat outside. It may see the group at training and at
    serving, and needs labels at training.

    Parameters
    ----------
    n_quantiles : int
        The number of steps between the quantiles.
    original_scale : bool
        Bring the probabilities back to the scale of the scores, by the quantiles of all transformed and original ones.
    strength : float
        The part of the way, from 0 (nothing changes) to 1; below 1 only on the original scale.
    bias_cap : float
        The most that one click may count for when the bias of positions is estimated; see `fit`.

    Attributes
    ----------
    position_bias_ : ndarray or None
        The estimated bias of each position, (positions,), the first being 1; None without positions.

    Examples
    --------
    >>> group, relevance = ["a"] * 4 + ["b"] * 5, [1, 1, 1, 0, 1, 1, 1, 0, 0]
    >>> scores = [1.0, 3, 5, 4, 2, 2, 8, 1, 5]
    >>> data = RankingData.from_arrays(np.zeros((9, 0)), relevance, group, [0] * 9)
    >>> transform = EqualOpportunityTransform(n_quantiles=2, original_scale=False).fit(scores, data)
    >>> transform.rerank(scores, data)
    array([0.  , 0.5 , 1.  , 0.75, 0.5 , 0.5 , 1.  , 0.5 , 0.75])
    """

    keeps_distance = False
    position_bias_: NDArray[np.float64] | None = None

    def __init__(
        self,
        n_quantiles: int = 1000,
        *,
        original_scale: bool = True,
        strength: float = 1.0,
        bias_cap: float = 10.0,
    ) -> None:
        self.n_quantiles, self.original_scale = n_quantiles, original_scale
        self.strength, self.bias_cap = strength, bias_cap

    def fit(self, scores: ArrayLike, data: RankingData, *, position: ArrayLike | None = None) -> Self:
        """Learn the maps.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows, with relevance and groups; each row counts once.
        position : array-like, optional
            Where each row was shown, from 1, (n,), in the caller's order, if relevance is clicks. Relevant rows then
            count with the inverse of the bias of their position, which is estimated from the rows.

        Returns
        -------
        EqualOpportunityTransform
            The re-ranker itself.

        Raises
        ------
        DataError
            If a group has no relevant row.
        """
        check_number(self.n_quantiles, "n_quantiles", least=1, whole=True)
        check_number(self.strength, "strength", least=0, most=1)
        check_number(self.bias_cap, "bias_cap", above=0)
        by_group, lists = self._start_fit(scores, data)
        near = np.abs(lists.score - lists.centre) <= lists.reach
        weight = np.ones(data.n_rows)
        if position is not None:
            places = _positions(position, data)
            self.position_bias_ = position_bias(lists.score, places, data.relevant, float(self.bias_cap))
            weight = self.position_bias_.min() / self.position_bias_[places - 1]
        steps = int(self.n_quantiles)
        maps: dict[object, Points] = {}
        for code, name in enumerate(data.group_names):
            rows = np.flatnonzero((data.group == code) & data.relevant & near)
            if not len(rows):
                raise DataError(f"group {name!r} has no relevant row to learn from. Fit on rows that have one.")
            maps[name] = _last_of_each(_quantiles(lists.score[rows], weight[rows], steps), np.arange(steps + 1) / steps)
        if self.original_scale:
            moved = np.concatenate([apply_map(maps[name], values, False) for name, values in by_group.items()])
            plain = np.concatenate(list(by_group.values()))
            even = np.ones(len(plain))
            back = _last_of_each(_quantiles(moved, even, steps), _quantiles(plain, even, steps))
            maps = {name: (x, apply_map(back, y, False)) for name, (x, y) in maps.items()}
        self.maps_, self.group_names_ = maps, data.group_names
        return self


def _positions(position: ArrayLike, data: RankingData) -> NDArray[np.int64]:
    places = data.to_stored(as_array(position, "position"), what="position")
    if places.ndim != 1 or (places != np.floor(places)).any() or places.min() < 1:
        raise DataError(f"position must be one whole number from 1 on per row; got {places.min()!r} as the smallest.")
    return places.astype(np.int64)


def _quantiles(values: NDArray[np.float64], weight: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The smallest value with a share of at least p of the weight up to it, for p = 0, 1/steps, …, 1."""
    order = np.argsort(values, kind="stable")
    if (weight == weight[0]).all():  # whole numbers have no rounding
        place = -(-np.arange(steps + 1, dtype=np.int64) * len(values) // steps)
    else:
        upto = np.cumsum(weight[order])
        place = 1 + np.searchsorted(upto, np.arange(steps + 1) / steps * upto[-1] * (1 - 1e-12))
    return values[order[np.clip(place, 1, len(values)) - 1]]


def _last_of_each(x: NDArray[np.float64], y: NDArray[np.float64]) -> Points:
    """Points of a map; where a score occurs twice the later value counts."""
    last = np.append(np.diff(x) > 0, True)
    return x[last], y[last]
