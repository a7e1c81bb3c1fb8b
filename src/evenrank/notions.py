"""Notions of fairness as linear contrasts: Γ(v) = Σ_j w_j |C_j · v|.

A *notion* says which rows are conditioned on (its strata: row masks). Bound to data it becomes a `Contrast`:
the means of any value v over the (stratum, group) cells, their differences between groups, and the mean of the
absolute differences. v = scores trains, v = top-k selection is the reported violation, v = exposure the exposure gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.rounding import beyond_rounding, rounding
from evenrank.row_checks import as_array, as_floats, listed

SCOPES = ("amortized", "per_query")
ACROSS = ("mean", "max")


@dataclass(frozen=True)
class Notion:
    """What is equalised: a name and the strata within which groups should have equal means.

    ``masks`` maps a `RankingData` to boolean row masks, one a stratum, each (n,) in stored order.

    Examples
    --------
    Parity within each price band:

    >>> def price_bands(data):
    ...     return [data.column("price") < 10, data.column("price") >= 10]
    >>> parity_by_price = Notion("parity_by_price", price_bands, ("cheap", "dear"))
    """

    name: str
    masks: Callable[[RankingData], Sequence[NDArray[np.bool_]]]
    strata: tuple[str, ...] = ()
    alias: str = ""

    def __reduce__(self) -> Any:
        # One of ours is pickled by its name: its masks are no function of a module.
        own = NOTIONS.get(self.name) is self
        return (as_notion, (self.name,)) if own else (Notion, (self.name, self.masks, self.strata, self.alias))

    def stratum(self, number: int) -> str:
        return self.strata[number] if number < len(self.strata) else f"stratum {number}"


NOTIONS = {
    notion.name: notion
    for notion in (
        Notion("demographic_parity", lambda data: [np.ones(data.n_rows, bool)], ("all rows",), "dp"),
        Notion("equal_opportunity", lambda data: [data.relevant], ("relevant rows",), "eop"),
        Notion(
            "equalized_odds",
            lambda data: [~data.relevant, data.relevant],
            ("irrelevant rows", "relevant rows"),
            "eod",
        ),
    )
}
ALIASES = {notion.alias: notion.name for notion in NOTIONS.values()}

NotionLike = str | Notion | Callable[[RankingData], Sequence[NDArray[np.bool_]]] | Sequence[ArrayLike]


def as_notion(notion: NotionLike) -> Notion:
    """A notion from its name or alias, a `Notion`, a function of the data, or row masks in the caller's order."""
    if isinstance(notion, Notion):
        return notion
    if isinstance(notion, str):
        name = ALIASES.get(notion, notion)
        if name not in NOTIONS:
            known = ", ".join(f"{item.name} ({item.alias})" for item in NOTIONS.values())
            raise ConfigError(f"notion must be one of {known}, or a Notion; got {notion!r}.")
        return NOTIONS[name]
    if callable(notion):
        return Notion(getattr(notion, "__name__", "custom"), notion)
    if isinstance(notion, list | tuple | np.ndarray) and len(notion):
        return Notion("custom", lambda data: [data.to_stored(mask, what="a notion's mask") != 0 for mask in notion])
    raise ConfigError(f"notion must be a name, a Notion, a function of the data or row masks; got {notion!r}.")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which cells are compared, and with what weight.

    Cells are numbered block · G + group; a block is a stratum (of a query, in the per-query scope).
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    weight: NDArray[np.float64]
    block: NDArray[np.int64]
    across: str
    missing: tuple[int, ...]
    share: float

    @classmethod
    def of(cls, cell_weight: NDArray[Any], *, across: str = "mean", training: bool = True) -> Pairs:
        """Compare all groups present in each block of a (strata, units, groups) table of cell weights.

        Units are the queries in the per-query scope, and one otherwise. Pairs with an empty cell are dropped and the
        block's weight is spread over the rest. Training averages over all units; a measure over those that have a pair.
        """
        choose(across, ACROSS, what="across")
        strata, units, groups = cell_weight.shape
        one, two = np.triu_indices(groups, 1)
        present = cell_weight.reshape(-1, groups) > 0
        exists = present[:, one] & present[:, two]
        block, pair = np.nonzero(exists)
        usable = exists.any(axis=1).reshape(strata, units)
        denominator = np.full(strata, units) if training else np.maximum(usable.sum(axis=1), 1)
        block_weight = np.repeat(1 / (strata * denominator), units)
        weight = block_weight[block] / (exists.sum(axis=1)[block] if across == "mean" else 1)
        missing = np.flatnonzero(~usable.any(axis=1))
        return cls(
            a=block * groups + one[pair],
            b=block * groups + two[pair],
            weight=weight,
            block=block,
            across=across,
            missing=tuple(missing.tolist()),
            share=float(usable.mean()),
        )

    def value(self, gaps: NDArray[Any]) -> NDArray[Any]:
        """Γ from signed gaps, (J,) or (J, models)."""
        size = np.abs(gaps)
        if self.across == "max" and len(self.block):
            starts = np.flatnonzero(np.diff(self.block, prepend=-1))
            return np.asarray(self.weight[starts] @ np.maximum.reduceat(size, starts, axis=0))
        return np.asarray(self.weight @ size)

    def slope(self, gaps: NDArray[Any]) -> NDArray[Any]:
        """dΓ/dgap, the shape of ``gaps``; sign(0) = 0, and a tied maximum shares its weight."""
        weight = self.weight if gaps.ndim == 1 else self.weight[:, None]
        slope = np.sign(gaps) * weight.astype(gaps.dtype, copy=False)
        if self.across == "max" and len(self.block):
            size = np.abs(gaps)
            starts = np.flatnonzero(np.diff(self.block, prepend=-1))
            number = np.cumsum(np.diff(self.block, prepend=-1) > 0) - 1
            largest = size == np.maximum.reduceat(size, starts, axis=0)[number]
            slope = slope * largest / np.add.reduceat(largest, starts, axis=0, dtype=gaps.dtype)[number]
        return np.asarray(slope)


class Contrast:
    """A notion bound to data, in stored row order.

    Attributes
    ----------
    cells : sparse (cells, n); its product with v is the mean of v in each cell
    cell_weight : (strata, units, groups)
    pairs : the compared cells and their weights
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        cell: NDArray[np.int64],
        row_weight: NDArray[Any],
        n: int,
        shape: tuple[int, int, int],
        *,
        across: str = "mean",
        training: bool = True,
        dtype: Any = np.float64,
    ) -> None:
        from scipy.sparse import csr_array

        n_cells = shape[0] * shape[1] * shape[2]
        total = np.bincount(cell, row_weight, minlength=n_cells)
        # Short numbers are sorted by counting, which is much faster.
        order = np.argsort(cell.astype(np.int16) if n_cells < 1 << 15 else cell, kind="stable")
        counts = np.bincount(cell, minlength=n_cells)
        share = row_weight[order] / np.repeat(total, counts)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        self.cells = csr_array((share.astype(dtype), rows[order], bounds), shape=(n_cells, n))
        self.cell_weight, self.rounding = total.reshape(shape), rounding(counts, dtype).astype(dtype)
        self.pairs = Pairs.of(self.cell_weight, across=across, training=training)

    def means(self, values: NDArray[Any]) -> NDArray[Any]:
        """Cell means of values (n,) or (n, models): (cells,) or (cells, models); 0 in an empty cell."""
        return np.asarray(self.cells @ values)

    def gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        """C v: signed differences between the groups of each pair, (J,) or (J, models); 0 within rounding."""
        means, one, two = self.means(values), self.pairs.a, self.pairs.b
        gaps: NDArray[Any] = means[one] - means[two]
        error = np.maximum(self.rounding[one], self.rounding[two]).reshape(-1, *(1,) * (gaps.ndim - 1))
        if gaps.size and (np.abs(gaps) <= error * np.abs(values).max(axis=0)).any():
            sizes = means if (values >= 0).all() else self.means(np.abs(values))
            gaps = beyond_rounding(gaps, error * np.maximum(sizes[one], sizes[two]))
        return gaps

    def violation(self, values: NDArray[Any]) -> NDArray[Any]:
        """Γ(v): a 0-d array, or (models,)."""
        return self.pairs.value(self.gaps(values))

    def gradient(self, values: NDArray[Any]) -> NDArray[Any]:
        """Cᵀ sign(C v) w, the shape of ``values``: a subgradient of Γ."""
        return self.pull_back(self.pairs.slope(self.gaps(values)))

    def pull_back(self, slope: NDArray[Any]) -> NDArray[Any]:
        """Cᵀ u: a slope in the gaps, (J,) or (J, models), as one in the values."""
        on_cells = np.zeros((self.cells.shape[0], *slope.shape[1:]), slope.dtype)
        np.add.at(on_cells, self.pairs.a, slope)
        np.subtract.at(on_cells, self.pairs.b, slope)
        return np.asarray(self.cells.T @ on_cells)


@dataclass(frozen=True, eq=False)
class Cells:
    """Each (stratum, row) of a notion with its group, from which the contrast of any subset of rows is built."""

    notion: Notion
    strata: NDArray[np.bool_]
    group: NDArray[np.int32]
    weight: NDArray[np.float64]
    n_groups: int
    membership: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, notion: NotionLike, data: RankingData) -> Cells:
        notion = as_notion(notion)
        if data.n_groups < 2:
            found = f"{data.n_groups} ({listed(data.group_names)})" if data.n_groups else "none"
            raise DataError(f"{notion.name} compares groups and needs at least two; the data has {found}.")
        masks = [np.asarray(as_array(mask, f"a mask of {notion.name}"), bool) for mask in notion.masks(data)]
        wrong = [mask.shape for mask in masks if mask.shape != (data.n_rows,)]
        if wrong or not masks:
            found = str(wrong[0]) if wrong else "none"
            raise DataError(f"notion {notion.name!r} must give masks of shape ({data.n_rows},); got {found}.")
        # Without weights one 1 stands for all rows: a column of them for each setting adds up on large data.
        weight = np.broadcast_to(1.0, data.n_rows) if data.sample_weight is None else data.sample_weight
        strata = np.array(masks) & (data.group >= 0) & (weight > 0)
        return cls(notion, strata, data.group, weight, data.n_groups, data.membership)

    def contrast(
        self,
        rows: Any = slice(None),
        unit: NDArray[np.int64] | None = None,
        n_units: int = 1,
        *,
        across: str = "mean",
        training: bool = True,
        dtype: Any = np.float64,
    ) -> Contrast:
        """The contrast over some rows; ``unit`` numbers their queries in the per-query scope."""
        strata, group, weight = self.strata[:, rows], self.group[rows], self.weight[rows]
        stratum, row = np.nonzero(strata)
        code, share = group[row], weight[row]
        if self.membership is not None:
            # A row is in every group, with its probability of being in it.
            chance = self.membership[rows][row]
            entry, code = np.nonzero(chance)
            stratum, row, share = stratum[entry], row[entry], share[entry] * chance[entry, code]
        block = stratum * n_units + (0 if unit is None else unit[row])
        return Contrast(
            row,
            block * self.n_groups + code,
            share,
            len(group),
            (len(strata), n_units, self.n_groups),
            across=across,
            training=training,
            dtype=dtype,
        )


def bind(
    notion: NotionLike,
    data: RankingData,
    *,
    scope: str = "amortized",
    across: str = "mean",
    training: bool = False,
) -> Contrast:
    """The contrasts of a notion on all rows of ``data``.

    ``across`` says how more than two groups are combined in a stratum: the mean over all pairs, or the largest.
    """
    choose(scope, SCOPES, what="scope")
    cells = Cells.of(notion, data)
    if scope == "per_query":
        contrast = cells.contrast(unit=data.query_of_row, n_units=data.n_queries, across=across, training=training)
        for stratum in contrast.pairs.missing:
            result = "this term is dropped" if training else "the violation is NaN"
            warnings.warn(
                f"{cells.notion.name}: {cells.notion.stratum(stratum)} have two groups in no query; {result}",
                DataWarning,
                stacklevel=2,
            )
    else:
        contrast = cells.contrast(across=across, training=training)
        warn_empty(cells.notion, contrast.cell_weight[:, 0], data.group_names, training=training)
    return contrast


def warn_empty(notion: Notion, cell_weight: NDArray[Any], group_names: tuple[Any, ...], *, training: bool) -> None:
    """Name the groups a pooled stratum lacks and say what follows; ``cell_weight`` is (strata, groups)."""
    for stratum, weights in enumerate(cell_weight):
        empty = [name for name, weight in zip(group_names, weights, strict=True) if weight <= 0]
        if not empty:
            continue
        if len(group_names) - len(empty) >= 2:
            result = "pairs with it are left out"
        else:
            result = "this term is dropped" if training else "the violation is NaN"
        warnings.warn(
            f"{notion.name}: {notion.stratum(stratum)} have no item of group {listed(empty)}; {result}",
            DataWarning,
            stacklevel=3,
        )


def violation(
    values: ArrayLike,
    data: RankingData,
    notion: NotionLike = "equal_opportunity",
    scope: str = "amortized",
    *,
    across: str = "mean",
) -> Any:
    """Γ of any values in the caller's row order (the paper's definition 5): a float, or (models,) for (n, models).

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 4, [1, 1, 1, 0], ["a", "a", "b", "b"], [1, 1, 1, 1])
    >>> violation([1.0, 0.0, 0.25, 9.0], data, "equal_opportunity")
    0.25
    """
    stored = data.to_stored(values, what="values")
    if stored.dtype.kind != "f" or stored.dtype == np.float16:  # sums need more digits than such values have
        stored = as_floats(stored, "values")
    gamma = gamma_of(bind(notion, data, scope=scope, across=across), stored)
    return float(gamma) if stored.ndim == 1 else gamma


def gamma_of(contrast: Contrast, values: NDArray[Any]) -> NDArray[Any]:
    """Γ as a measure: NaN if a stratum lacks a group, where training would drop the term."""
    gamma = contrast.violation(values)
    return np.full_like(gamma, np.nan) if contrast.pairs.missing else gamma
