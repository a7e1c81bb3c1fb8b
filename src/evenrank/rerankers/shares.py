"""Target shares of groups as exact fractions, and how many items of each group they ask for in every prefix.

A share counts as it is written: 0.29 of 100 places are 29, while 0.29 * 100 in floating point is a little less.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.row_checks import listed

Ints = NDArray[np.int64]
Target = Mapping[Any, float] | Sequence[float] | str
ROUNDING = Fraction(1, 10**9)  # by as much shares may add up to more than 1
EQUAL, DATA = "equal", "data"


def check_target(target: Any) -> None:
    """Refuse a target that no data could make right.

    Parameters
    ----------
    target : object
        "data", "equal", or the share of each group, by its label or in the order of the data's groups.

    Raises
    ------
    ConfigError
        If it is none of these.
    """
    if isinstance(target, str) and target in (EQUAL, DATA):
        return
    if isinstance(target, str) or not isinstance(target, Mapping | Sequence | np.ndarray) or not len(target):
        raise ConfigError(f'target must be "data", "equal" or a share per group, as {{"a": 0.5}}; got {target!r}.')
    by_group = target if isinstance(target, Mapping) else dict(enumerate(target))
    for label, share in by_group.items():
        check_number(share, f"the target share of {label!r}", least=0, most=1)
    total = sum(map(as_written, by_group.values()))
    if total > 1 + ROUNDING:
        raise ConfigError(f"target shares must add up to at most 1; they add up to {float(total):.6g}.")


def target_shares(target: Target, data: RankingData) -> dict[Any, Fraction]:
    """Give the share of each group of the data.

    Parameters
    ----------
    target
        As `check_target` takes it.
    data : RankingData
        The rows.

    Returns
    -------
    dict
        Label and share; a group that the target does not name has 0.

    Raises
    ------
    DataError
        If the data has no groups.
    ConfigError
        If shares without labels are not as many as the groups.
    """
    names = data.group_names
    if not names:
        raise DataError("target shares need groups; the data has none. Name the column of the group.")
    if isinstance(target, Mapping):
        strange = [label for label in target if label not in names]
        if strange:
            warnings.warn(
                f"the target names {strange[0]!r}, of which the data has no item; its groups are {listed(names)}",
                DataWarning,
                stacklevel=3,
            )
        return {name: as_written(target.get(name, 0)) for name in names}
    if not isinstance(target, str):
        if len(target) != len(names):
            raise ConfigError(f"target has {len(target)} shares; the data has {len(names)} groups, {listed(names)}.")
        return {name: as_written(share) for name, share in zip(names, target, strict=True)}
    if target == EQUAL:
        return {name: Fraction(1, len(names)) for name in names}
    members = np.bincount(data.group[data.group >= 0], minlength=len(names)).tolist()
    return {name: Fraction(number, sum(members)) for name, number in zip(names, members, strict=True)}


def as_written(share: Any) -> Fraction:
    """Give a number as the fraction that its shortest decimal form is."""
    return share if isinstance(share, Fraction) else Fraction(repr(float(share)))


def least(shares: list[Fraction], k: int) -> Ints:
    """Round k·share down for the first 1, …, k places, (k, groups)."""
    table = [[place * share.numerator // share.denominator for share in shares] for place in range(1, k + 1)]
    return np.array(table, np.int64).reshape(k, len(shares))


def most(shares: list[Fraction], k: int) -> Ints:
    """Round k·share up for the first 1, …, k places, (k, groups)."""
    table = [[-(-place * share.numerator // share.denominator) for share in shares] for place in range(1, k + 1)]
    return np.array(table, np.int64).reshape(k, len(shares))


def order_due(shares: list[Fraction], k: int, *, whole: bool) -> Ints:
    """Order groups by the place at which their next item falls due: ⌈k·share⌉/share.

    Parameters
    ----------
    shares : list of Fraction
        The groups' shares.
    k : int
        The number of places.
    whole : bool
        Round that place up.

    Returns
    -------
    ndarray
        (k, groups): 0 for the group that is due first, equal numbers for those due together.
    """
    out = np.zeros((k, len(shares)), np.int64)
    for row, maxima in zip(out, most(shares, k).tolist(), strict=True):
        pairs = zip(maxima, shares, strict=True)
        places = [Fraction(number) / share if share else Fraction(0) for number, share in pairs]
        if whole:
            places = [Fraction(-(-place.numerator // place.denominator)) for place in places]
        levels = {place: level for level, place in enumerate(sorted(set(places)))}
        row[:] = [levels[place] for place in places]
    return out
