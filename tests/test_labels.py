"""Numbers for the items of rows."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.labels import group_codes, item_codes, label_places


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


@pytest.mark.parametrize(
    ("labels", "known", "places"),
    [
        (["1.0", "2.0"], (1, 2), [0, 1]),
        ((1, 2), ("1.0", "2.0"), [0, 1]),
        ((1.0, 2.5), ("1", "2.5"), [0, 1]),
        (("1",), (1.0,), [0]),
        (("01", "1.50", "1e3", "1.00"), (1, 1.5, 1000), [-1, -1, -1, -1]),
        (("1.0",), ("1", 1), [-1]),  # which of the two cannot be told
        (("1.0", "1"), ("1", "1.0"), [1, 0]),
    ],
)
def test_labels_are_found_by_what_is_written(labels, known, places) -> None:
    assert label_places(labels, known) == places


def test_whole_numbers_are_named_without_a_point_whatever_the_column_holds() -> None:
    codes, names = group_codes(np.array([2.0, np.nan, 1.0]), None, 3)
    assert repr(names) == "(1, 2)"
    assert codes.tolist() == [1, -1, 0]
    assert repr(group_codes(np.array([2.0, 1.5]), None, 2)[1]) == "(1.5, 2.0)"  # labels of one type
