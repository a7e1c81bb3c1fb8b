"""Values less their query's mean: what is left of a value that can change the order of a list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def centered(
    values: NDArray[Any], query_ptr: NDArray[np.int64], weight: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """Subtract from every row's values the mean of its query's rows.

    A value that is constant in a query becomes exactly 0 there. Applied twice it is the same as once, and without
    weights it is its own transpose, so that it also turns slopes in the centred values into slopes in the values.

    Parameters
    ----------
    values : ndarray
        (n,) or (n, columns), in stored order.
    query_ptr : ndarray
        (q + 1,): the rows of query i are ``query_ptr[i]:query_ptr[i + 1]``; no query is empty.
    weight : ndarray, optional
        The weight of each row in the mean, (n,); a query without weight has the plain mean.

    Returns
    -------
    ndarray
        A new array of the shape and floating type of ``values``.

    Examples
    --------
    >>> centered(np.array([1.0, 3.0, 7.0]), np.array([0, 2, 3])).tolist()
    [-1.0, 1.0, 0.0]
    """
    starts, lengths = query_ptr[:-1], np.diff(query_ptr)
    # From the first row of the query: its values are then exactly 0 where they are constant, and keep more digits.
    out = values - np.repeat(values[starts], lengths, axis=0)
    if not len(out):
        return np.asarray(out)
    if weight is None:
        share: NDArray[Any] = 1 / np.repeat(lengths, lengths)
    else:
        total = np.repeat(np.add.reduceat(weight, starts), lengths)
        share = np.where(total > 0, weight / np.where(total > 0, total, 1), 1 / np.repeat(lengths, lengths))
    share = share.astype(values.dtype, copy=False).reshape(-1, *(1,) * (values.ndim - 1))
    out -= np.repeat(np.add.reduceat(out * share, starts, axis=0), lengths, axis=0)
    return np.asarray(out)
