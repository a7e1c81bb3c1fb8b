"""Notions of fairness as linear contrasts: Γ(v) = Σ_j w_j |C_j · v|.

A *notion* says which rows are conditioned on (its strata: row masks). Bound to data it becomes a `Contrast`.
v = scores trains, v = top-k selection is the reported gap, v = exposure the exposure gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import choose
from evenrank.contrasts import Contrast
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.row_checks import as_array, as_floats, listed

SCOPES = ("amortized", "per_query")


@dataclass(frozen=True)
class Notion:
    """A name, and the strata within which groups should have equal means.

    Attributes
    ----------
    name : str
        The notion's name.
    masks : Callable
        From a `RankingData` to boolean row masks, one per stratum, each (n,) in stored order.
    strata : tuple of str
        The names of the strata, for messages.
    alias : str
        A short name.

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
        built_in = NOTIONS.get(self.name) is self
        return (as_notion, (self.name,)) if built_in else (Notion, (self.name, self.masks, self.strata, self.alias))

    def stratum(self, number: int) -> str:
        """Give the name of a stratum by its number.

        Parameters
        ----------
        number : int
            Counted from 0.

        Returns
        -------
        str
            Its name, or "stratum" and the number if it has none.
        """
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
    """Make a `Notion`.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        A name or alias, a `Notion`, a function of the data, or row masks in the caller's order, (n,) each.

    Returns
    -------
    Notion
        The notion.
    """
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
        """Take the cells of a notion on all rows.

        Parameters
        ----------
        notion : str, Notion, callable or row masks
            The notion of fairness.
        data : RankingData
            The rows.

        Returns
        -------
        Cells
            The cells.

        Raises
        ------
        DataError
            If there are fewer than two groups, or a mask has a wrong shape.
        """
        notion = as_notion(notion)
        if data.n_groups < 2:
            groups = f"{data.n_groups} ({listed(data.group_names)})" if data.n_groups else "none"
            raise DataError(f"{notion.name} compares groups and needs at least two; the data has {groups}.")
        masks = [np.asarray(as_array(mask, f"a mask of {notion.name}"), bool) for mask in notion.masks(data)]
        wrong = [mask.shape for mask in masks if mask.shape != (data.n_rows,)]
        if wrong or not masks:
            shape = str(wrong[0]) if wrong else "none"
            raise DataError(f"notion {notion.name!r} must give masks of shape ({data.n_rows},); got {shape}.")
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
        """Make the contrast over some rows.

        Parameters
        ----------
        rows : slice or ndarray
            The rows.
        unit : ndarray, optional
            The number of each row's query, in the per-query scope.
        n_units : int
            The number of queries, in the per-query scope.
        across, training
            See `Pairs.of`.
        dtype : dtype
            The type of the sums.

        Returns
        -------
        Contrast
            The contrast.
        """
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
    """Make the contrast of a notion on all rows of ``data``.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion.
    data : RankingData
        The rows.
    scope : str
        "amortized" over all queries, or "per_query".
    across : str
        How more than two groups are combined in a stratum: the "mean" over all pairs, or the "max".
    training : bool
        Whether a stratum that lacks groups is dropped, instead of making the gap NaN.

    Returns
    -------
    Contrast
        The contrast.
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
    """Warn of groups that a pooled stratum lacks.

    Parameters
    ----------
    notion : Notion
        The notion.
    cell_weight : ndarray
        (strata, groups).
    group_names : tuple
        The groups.
    training : bool
        See `bind`.
    """
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
    """Give Γ of any values (the paper's definition 5).

    Parameters
    ----------
    values : array-like
        (n,) or (n, models), in the caller's row order.
    data, notion, scope, across
        See `bind`.

    Returns
    -------
    float or ndarray
        Γ; (models,) for (n, models).

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
    """Give Γ as a measure: NaN if a stratum lacks a group, where training would drop the term.

    Parameters
    ----------
    contrast : Contrast
        The notion, bound to the rows.
    values
        As for `Contrast.means`.

    Returns
    -------
    ndarray
        A 0-d array, or (models,).
    """
    gamma = contrast.violation(values)
    return np.full_like(gamma, np.nan) if contrast.pairs.missing else gamma
