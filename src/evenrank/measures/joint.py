"""`joint_groups`: memberships in several dimensions as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import DataError
from evenrank.measures.lists import joint_membership


def joint_groups(
    memberships: Sequence[ArrayLike], group_names: Sequence[Sequence[Any]]
) -> tuple[NDArray[np.float64], list[str]]:
    """Combine memberships in several dimensions into one, whose groups are all combinations.

    A row's share in a combination is the product of its shares; a row that is unknown in one dimension is unknown.

    Parameters
    ----------
    memberships : sequence of array-like
        One table per dimension, (n, C_d): each row's probability of each category.
    group_names : sequence of sequences
        The categories of each dimension.

    Returns
    -------
    probabilities : ndarray
        (n, Π C_d); the last dimension varies fastest.
    names : list of str
        The combinations, as "first & second".

    Examples
    --------
    >>> table, names = joint_groups([[[1, 0]], [[0.25, 0.75]]], [["f", "m"], ["old", "young"]])
    >>> names, table.tolist()
    (['f & old', 'f & young', 'm & old', 'm & young'], [[0.25, 0.75, 0.0, 0.0]])
    """
    tables = [np.asarray(table, np.float64) for table in memberships]
    shapes = [table.shape for table in tables]
    widths = [len(names) for names in group_names]
    if (
        not tables
        or [shape[1:] for shape in shapes] != [(width,) for width in widths]
        or len({s[0] for s in shapes}) > 1
    ):
        raise DataError(
            "memberships must be one table (rows, categories) per dimension, all of the same rows; "
            f"got shapes {shapes} for {widths} categories."
        )
    return joint_membership(tables), [" & ".join(map(str, names)) for names in product(*group_names)]
