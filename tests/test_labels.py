"""Numbers for the items of rows."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.labels import item_codes


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8", "uint64"])
def test_items_that_are_numbers_keep_their_order(dtype: str) -> None:
    ends = np.iinfo(dtype)
    near = np.array([7, 3, 7, 5, 3], dtype)
    far = np.array([ends.max, ends.min, ends.max, 5, ends.min], dtype)
    assert item_codes(near).tolist() == [2, 0, 2, 1, 0]
    assert item_codes(far).tolist() == [2, 0, 2, 1, 0]
    assert item_codes(np.zeros(0, dtype)).tolist() == []
    many = np.random.default_rng(0).integers(ends.min, ends.max, 1000, dtype, endpoint=True)
    assert item_codes(many).tolist() == np.unique(many, return_inverse=True)[1].tolist()
