"""Linear scores in which a row's digits depend on the row alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_products(rows: NDArray[Any], weights: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Multiply every row with every model's weights, (n, models).

    A matrix product by BLAS adds up a row in an order that depends on where the row stands and on how many others there
    are, so that identical rows get scores that differ in the last digits, and rank by their position. Here each product
    is one sum of its own, always in the same order: identical rows get identical scores, shuffled rows keep theirs, and
    a model's scores are the same alone and among others.

    Parameters
    ----------
    rows : array (n, d)
    weights : array (models, d)
        Of the type of the sums; the rows are converted to it.
    out : array (n, models), optional
        Where the products go.
    """
    # einsum sums along both operands' last axis, which is contiguous in memory, product by product.
    rows = np.ascontiguousarray(rows, dtype=weights.dtype)
    return np.asarray(np.einsum("rj,mj->rm", rows, np.ascontiguousarray(weights), out=out))
