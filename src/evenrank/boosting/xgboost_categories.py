"""Categories in XGBoost's JSON model: sets of them in splits, and the labels of a data frame's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.json_values import INT32, fields, floats, wholes
from evenrank.boosting.trees import need

LARGEST_CATEGORY = 2**24 - 1  # XGBoost's own limit
# XGBoost keeps a set as bits up to its largest category, so few words of a file can ask for much memory.
MOST_BITS = 2**30
WHOLE_TYPES = {9: "int8", 10: "uint8", 11: "int16", 12: "uint16", 13: "int32", 14: "uint32", 15: "int64", 16: "int64"}
FLOAT_TYPES = (7, 8)


def checked_splits(
    splits: dict[str, NDArray[np.int64]],
    nodes: NDArray[np.int64],
    inner: NDArray[np.bool_],
    where: str,
    budget: list[int],
) -> None:
    """Read the sets of categories: one per node that splits by them, one after the other, none empty.

    ``budget`` holds the bits that the sets of all trees so far take.
    """
    need(inner[nodes].all(), f"{where} has a leaf that splits by categories")
    need(np.array_equal(splits["categories_nodes"], nodes), f"categories_nodes of {where} must be those of split_type")
    sizes, categories = splits["categories_sizes"], splits["categories"]
    need(len(sizes) == len(nodes) and (sizes > 0).all(), f"categories_sizes of {where} must be one per node")
    ends = np.cumsum(sizes)
    need(np.array_equal(splits["categories_segments"], ends - sizes), f"categories_segments of {where} do not follow")
    need(len(categories) == (ends[-1] if len(ends) else 0), f"categories of {where} must be as many as their sizes say")
    need((categories <= LARGEST_CATEGORY).all(), f"{where} has a category above {LARGEST_CATEGORY}")
    if len(nodes):
        budget[0] += int(np.maximum.reduceat(categories, ends - sizes).sum()) + len(nodes)
        need(budget[0] <= MOST_BITS, f"the categories up to {where} take more than {MOST_BITS} bits")


def checked_categories(value: Any, n_features: int) -> dict[str, Any]:
    """Read the labels of the columns that held categories in training, one entry per feature."""
    cats = fields(value, "cats", "enc", "feature_segments", "sorted_idx")
    columns = cats["enc"]
    need(isinstance(columns, list) and len(columns) in (0, n_features), f"cats must be of {n_features} columns")
    rebuilt, counts = [], []
    for number, column in enumerate(columns):
        entry, count = _column(column, f"cats of feature {number}")
        rebuilt.append(entry)
        counts.append(count)
    ends = np.cumsum([0, *counts])
    segments = wholes(cats["feature_segments"], "feature_segments", None, (0, INT32[1]))
    need(np.array_equal(segments, ends if columns else []), "feature_segments must add up the columns' categories")
    order = wholes(cats["sorted_idx"], "sorted_idx", int(ends[-1]), (0, INT32[1]))
    for first, count in zip(ends[:-1].tolist(), counts, strict=True):
        part = np.sort(order[first : first + count])
        need(np.array_equal(part, np.arange(count)), "sorted_idx must be an order of each column's categories")
    return {"enc": rebuilt, "feature_segments": segments.tolist(), "sorted_idx": order.tolist()}


def _column(value: Any, what: str) -> tuple[dict[str, Any], int]:
    """One column's labels, and how many: texts as bytes with offsets, or numbers of a type."""
    if isinstance(value, dict) and "offsets" in value:
        column = fields(value, what, "offsets", "values")
        text = wholes(column["values"], what, None, (-128, 127))
        offsets = wholes(column["offsets"], what, None, (0, INT32[1]))
        ascending = len(offsets) == 0 or (offsets[0] == 0 and (np.diff(offsets) >= 0).all())
        whole = (offsets[-1] if len(offsets) else 0) == len(text)
        need(ascending and whole, f"{what} has offsets that do not fit")
        return {"offsets": offsets.tolist(), "values": text.tolist()}, max(0, len(offsets) - 1)
    column = fields(value, what, "type", "values")
    kind = column["type"]
    need(isinstance(kind, int) and kind in (*WHOLE_TYPES, *FLOAT_TYPES), f"{what} has an unknown type")
    if kind in FLOAT_TYPES:
        numbers: NDArray[Any] = floats(column["values"], what, None)
    else:
        limits = np.iinfo(np.dtype(WHOLE_TYPES[kind]))
        numbers = wholes(column["values"], what, None, (int(limits.min), int(limits.max)))
    return {"type": int(kind), "values": numbers.tolist()}, len(numbers)
