"""`Moments`: all that training a linear score with squared loss needs to know of the rows, whatever their number.

Moments of disjoint rows add up, and subtracting a part's leaves the rest's, so one pass serves full-batch descent, the
exact path, cross-validation and partitions on other machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.design_columns import feature_gaps, spread_of
from evenrank.errors import ConfigError, DataError
from evenrank.labels import group_codes
from evenrank.moment_sums import moment_sums
from evenrank.notions import NOTIONS, Cells, Notion, NotionLike, as_notion, warn_empty
from evenrank.rounding import rounding
from evenrank.row_checks import listed

SUMS = ("weight", "x", "xx", "xr", "r", "rr", "cell_weight", "cell_sum", "group_rows", "within_rr")


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over rows, taken about an origin near the mean so that large offsets cost no digits.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    weight : float
        The sum of the row weights (the number of rows without weights).
    origin : ndarray
        The point the features are measured from, (d,).
    x, xx, xr : ndarray
        Sums of x, x xᵀ and x r with x measured from the origin, (d,), (d, d) and (d,).
    r, rr : float
        Sums of the relevance and its square.
    feature_names : tuple of str
        The d features, the group's indicator columns included.
    notions : tuple of Notion
        The notions whose strata are summed, of different names; their strata are stacked in this order.
    strata_of : tuple of int
        The number of strata of each notion.
    group_names : tuple
        The labels of the group axis.
    cell_weight, cell_sum : ndarray
        Weight and sum of x in each cell, (strata, groups) and (strata, groups, d); with target "centered" the sum of x
        less its query's mean.
    cell_size : ndarray
        The sizes of all that was added to or taken from ``cell_sum``, summed, (strata, groups, d); rounding errors of
        ``cell_sum`` are in proportion to it.
    group_rows : ndarray
        The number of rows of each group, (G,), whatever their weights.
    target : str
        What the cells sum: the "score"'s features or, "centered", those less their query's mean.
    group_aware : bool
        Whether the last G − 1 features are the groups' indicator columns.
    within : ndarray or None
        Sums of x xᵀ and, last, of x r, with x less its query's weighted mean, (d, d + 1); None unless asked for.
    within_rr : float
        The sum of squares of the relevance less its query's weighted mean; 0 unless asked for.

    Examples
    --------
    >>> data = RankingData.from_arrays([[1.0], [2.0], [4.0]], [0, 1, 1], ["a", "b", "b"], [1, 1, 2])
    >>> whole, part = Moments.of(data), Moments.of(data.take([0]))
    >>> (whole - part).mean.tolist(), (whole - part).n_rows
    ([4.0], 1)
    """

    n_rows: int
    weight: float
    origin: NDArray[np.float64]
    x: NDArray[np.float64]
    xx: NDArray[np.float64]
    xr: NDArray[np.float64]
    r: float
    rr: float
    feature_names: tuple[str, ...]
    notions: tuple[Notion, ...]
    strata_of: tuple[int, ...]
    group_names: tuple[Any, ...]
    cell_weight: NDArray[np.float64]
    cell_sum: NDArray[np.float64]
    cell_size: NDArray[np.float64]
    group_rows: NDArray[np.int64]
    target: str = "score"
    group_aware: bool = False
    within: NDArray[np.float64] | None = None
    within_rr: float = 0.0

    @classmethod
    def of(
        cls,
        data: RankingData,
        notions: Sequence[NotionLike] | None = None,
        *,
        group_aware: bool = False,
        shares: NDArray[np.float64] | None = None,
        origin: NDArray[np.float64] | None = None,
        target: str = "score",
        within: bool = False,
    ) -> Moments:
        """Sum in one pass over the rows in blocks, so that a memmap may be larger than memory.

        Parameters
        ----------
        data : RankingData
            The rows.
        notions : sequence, optional
            By default the three named ones, or none for data with fewer than two groups.
        group_aware : bool
            Append an indicator column for every group but the first. A row of unknown group gets the groups' shares of
            this data, so the moments of parts that have such rows are not quite those of the whole, unless ``shares``
            gives those of the whole.
        shares : ndarray, optional
            The groups' shares for rows of unknown group, (G,).
        origin : ndarray, optional
            The point to measure from, (d,); None is the mean of the first block.
        target : str
            What the cells sum: "score" or "centered", whose parts must be of whole queries to add up.
        within : bool
            Whether to sum products within (whole) queries too, for the pairwise loss.

        Returns
        -------
        Moments
            The sums.
        """
        if notions is None:
            notions = list(NOTIONS) if data.n_groups > 1 else []
        if data.membership is not None and (notions or group_aware):
            raise ConfigError("moments need group labels; the data has membership probabilities. Use with_group.")
        cells = [Cells.of(notion, data) for notion in notions]
        names = [item.notion.name for item in cells]
        if len(set(names)) < len(names):
            raise ConfigError(f"notions that are summed together must differ in name; got {listed(names)}.")
        centers = choose(target, ("score", "centered"), what="target of moments") == "centered"
        sums = moment_sums(
            data, cells, group_aware=group_aware, shares=shares, origin=origin, centers=centers, within=within
        )
        return cls(
            n_rows=data.n_rows,
            feature_names=data.feature_names + tuple(f"group {name!r}" for name in data.group_names[1:] if group_aware),
            notions=tuple(item.notion for item in cells),
            strata_of=tuple(len(item.strata) for item in cells),
            group_names=data.group_names,
            target=target,
            group_aware=group_aware,
            **sums,
        )

    # ------------------------------------------------------------------ merging

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, 1)

    def __sub__(self, other: Moments) -> Moments:
        if isinstance(other, Moments) and other.n_rows > self.n_rows:
            raise DataError(f"cannot subtract the moments of {other.n_rows} rows from those of {self.n_rows}.")
        return self._combine(other, -1)

    def _combine(self, other: Moments, sign: int) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        pairs = {
            "features": (self.feature_names, other.feature_names),
            "notions": tuple([notion.name for notion in each.notions] for each in (self, other)),
            "target": ([self.target], [other.target]),
            "sums": tuple(["within queries"] * (each.within is not None) for each in (self, other)),
        }
        for what, (mine, yours) in pairs.items():
            if mine != yours:
                raise DataError(
                    f"moments to combine must share their {what}; got {listed(mine) or 'none'} and "
                    f"{listed(yours) or 'none'}."
                )
        labels = [*self.group_names, *other.group_names]
        names = group_codes(labels, None, len(labels))[1]
        first = self._with_groups(names)
        second = other._with_groups(names).about(self.origin)
        sums = {name: getattr(first, name) + sign * getattr(second, name) for name in SUMS}
        sums["cell_size"] = first.cell_size + second.cell_size
        if first.within is not None and second.within is not None:
            sums["within"] = first.within + sign * second.within
            flat = np.flatnonzero(np.diag(sums["within"]) <= 1e-12 * np.diag(first.within))
            sums["within"][flat] = sums["within"][:, flat] = 0
        # What rounding leaves of a cell that was subtracted away is not a member.
        gone = sums["cell_weight"] <= 1e-12 * first.cell_weight
        sums["cell_weight"][gone] = 0
        sums["cell_sum"][gone] = sums["cell_size"][gone] = 0
        result = replace(first, n_rows=first.n_rows + sign * second.n_rows, **sums)
        return result._without_residue(np.diag(first.xx)) if sign < 0 and result.n_rows else result

    def _without_residue(self, before: NDArray[np.float64]) -> Moments:
        """Clear what rounding leaves of features that vary no more, given Σx² before the subtraction."""
        rest = self.about(self.mean)
        flat = np.diag(rest.xx) <= 1e-12 * before
        rest.x[flat] = rest.xr[flat] = rest.xx[flat] = rest.xx[:, flat] = rest.cell_sum[:, :, flat] = 0
        return rest

    def about(self, origin: NDArray[np.float64]) -> Moments:
        """Measure the same rows from another origin.

        Parameters
        ----------
        origin : ndarray
            (d,), in the features' units.

        Returns
        -------
        Moments
            The moments about it.
        """
        shift = self.origin - origin
        on_cells = shift if self.target == "score" else np.zeros_like(shift)
        cross = np.outer(self.x, shift)
        return replace(
            self,
            origin=origin,
            x=self.x + self.weight * shift,
            xx=self.xx + cross + cross.T + self.weight * np.outer(shift, shift),
            xr=self.xr + self.r * shift,
            cell_sum=self.cell_sum + self.cell_weight[:, :, None] * on_cells,
            cell_size=self.cell_size + self.cell_weight[:, :, None] * np.abs(on_cells),
        )

    def _with_groups(self, names: tuple[Any, ...]) -> Moments:
        if names == self.group_names:
            return self
        place = [names.index(name) for name in self.group_names]
        weight = np.zeros((len(self.cell_weight), len(names)))
        total = np.zeros((len(self.cell_sum), len(names), len(self.x)))
        size = np.zeros_like(total)
        weight[:, place], total[:, place], size[:, place] = self.cell_weight, self.cell_sum, self.cell_size
        rows = np.zeros(len(names), np.int64)
        rows[place] = self.group_rows
        return replace(self, group_names=names, cell_weight=weight, cell_sum=total, cell_size=size, group_rows=rows)

    # ------------------------------------------------------------------ reading

    @property
    def mean(self) -> NDArray[np.float64]:
        """Feature means, (d,)."""
        return self.origin + self.x / self.weight

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Feature standard deviations (ddof 0), (d,); 1 for a constant feature, so that scaling by it is harmless."""
        offset = self.x / self.weight
        return spread_of(np.diag(self.xx) / self.weight - offset**2, self.mean)

    def quadratic(
        self, center: NDArray[np.float64], scale: NDArray[np.float64], *, within: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the means of z zᵀ and of z r, for z = ((x − center) / scale, 1).

        Parameters
        ----------
        center, scale : ndarray
            (d,) each.
        within : bool
            Take z less its query's mean, which is 0 in its last place.

        Returns
        -------
        tuple of ndarray
            (d + 1, d + 1) and (d + 1,).
        """
        moved = self.about(center)
        d = len(self.x)
        second = np.zeros((d + 1, d + 1))
        if within:
            if self.within is None:
                raise ConfigError("these moments hold no sums within queries. Make them with Moments.of(within=True).")
            second[:d, :d] = self.within[:, :d] / np.outer(scale, scale)
            return second / self.weight, np.append(self.within[:, d] / scale, 0.0) / self.weight
        second[:d, :d] = moved.xx / np.outer(scale, scale)
        second[:d, d] = second[d, :d] = moved.x / scale
        second[d, d] = self.weight
        return second / self.weight, np.append(moved.xr / scale, self.r) / self.weight

    def contrasts(self, notion: NotionLike, *, across: str = "mean") -> tuple[NDArray[np.float64], Pairs]:
        """Give c_j = C_j X of a notion's pooled contrasts; one that is no larger than rounding is 0.

        Parameters
        ----------
        notion : str or Notion
            One of ``notions``.
        across : str
            "mean" or "max" over the pairs of a stratum.

        Returns
        -------
        tuple of ndarray and Pairs
            (J, d) in the features' units, and the pairs they compare.
        """
        wanted = as_notion(notion)
        try:
            number = [item.name for item in self.notions].index(wanted.name)
        except ValueError:
            raise ConfigError(
                f"these moments hold {', '.join(n.name for n in self.notions) or 'no notion'}; got {wanted.name!r}."
            ) from None
        start = sum(self.strata_of[:number])
        part = slice(start, start + self.strata_of[number])
        warn_empty(self.notions[number], self.cell_weight[part], self.group_names, training=True)
        weight = self.cell_weight[part]
        pairs = Pairs.of(weight[:, None, :], across=across)
        divisor = np.where(weight > 0, weight, 1).reshape(-1, 1)
        means, sizes = (
            part_sum[part].reshape(-1, len(self.x)) / divisor for part_sum in (self.cell_sum, self.cell_size)
        )
        return feature_gaps(means, sizes, rounding(self.n_rows), pairs, self.mean), pairs
