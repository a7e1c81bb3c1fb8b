"""How boosted rankers take their rows: ids or sizes of queries, in any order, features as the library likes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.notions import Notion
from evenrank.rankers.matching import own_columns, unnamed
from evenrank.row_checks import as_array, unmasked


def fit_rows(
    X: Any,
    y: Any,
    qid: Any,
    group: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    notion: Any,
    relevance_threshold: float,
) -> tuple[Any, RankingData, tuple[str, ...]]:
    """The features in stored order, in the form they came; the rows without them; and the features' names.

    Features are left to the library, which takes frames, sparse matrices and missing values; only a notion of the
    user's own gets to see them.
    """
    if isinstance(X, RankingData):
        if any(part is not None for part in (y, qid, group, sample_weight)):
            raise ConfigError("fit(data) takes relevance, queries and weights from the RankingData; leave them out.")
        data = X if sensitive_features is None else X.with_group(sensitive_features)
        return data.features, data, data.feature_names
    if y is None:
        raise ConfigError("y, the relevance of each row, is needed.")
    own = not isinstance(notion, str) and (isinstance(notion, Notion) or callable(notion))
    X = library_features(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    data = RankingData.from_arrays(
        X if own else np.zeros((n, 0)),
        y,
        sensitive_features,
        query_ids(qid, group, n),
        relevance_threshold=relevance_threshold,
        sample_weight=sample_weight,
    )
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else unnamed(np.shape(X)[1])
    return in_order(X, data.row_order), data, names


def query_ids(qid: Any, group: Any, n: int) -> ArrayLike:
    """A query id a row, from the ids themselves or from the sizes of the queries one after another."""
    if (qid is None) == (group is None):
        given = "both" if qid is not None else "neither"
        raise ConfigError(f"pass qid, a query id a row, or group, the size of each query; got {given}.")
    if qid is not None:
        return qid  # type: ignore[no-any-return]
    sizes = as_array(group, "group").astype(np.int64)
    if sizes.sum() != n:
        raise ConfigError(f"group, the sizes of the queries, must add up to the {n} rows; got {sizes.sum()}.")
    return np.repeat(np.arange(len(sizes)), sizes)


def library_features(X: Any, names: Sequence[str] | None = None) -> Any:
    """Features as the library is to see them: masked values as missing, of a frame the columns of training."""
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X if X.dtype.kind == "f" else X.astype(np.float64), np.nan)
    return own_columns(X, names)


def in_order(values: Any, order: NDArray[np.int64] | None) -> Any:
    """An array, frame, sparse matrix or list in stored order."""
    values = unmasked(values, "a value for each row")
    return values if order is None or values is None else _safe_indexing(values, order)


def eval_rows(eval_set: Any, eval_qid: Any, eval_group: Any) -> tuple[Any, Any, list[Any]]:
    """Evaluation sets with the rows of a query together, the sizes of their queries, and the new orders."""
    if eval_set is None:
        return None, eval_group, []
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    if eval_qid is None:
        return [(library_features(X), unmasked(y, "y")) for X, y in sets], eval_group, [None] * len(sets)
    if len(eval_qid) != len(sets):
        raise ConfigError(f"eval_qid must have the query ids of each of the {len(sets)} eval_set; got {len(eval_qid)}.")
    out, sizes, orders = [], [], []
    for (X, y), ids in zip(sets, eval_qid, strict=True):
        rows = RankingData.from_arrays(np.zeros((len(ids), 0)), np.zeros(len(ids)), None, ids)
        out.append((in_order(library_features(X), rows.row_order), in_order(y, rows.row_order)))
        sizes.append(np.diff(rows.query_ptr))
        orders.append(rows.row_order)
    return out, sizes, orders


def each_in_order(parts: Any, orders: list[Any]) -> Any:
    """Something of each evaluation set, in its new order."""
    if parts is None:
        return None
    return [in_order(part, order) for part, order in zip(parts, orders, strict=True)]


def as_rows(data: Any) -> RankingData:
    """A `RankingData`, or one of (relevance, sensitive_features, qid), whose queries stand one after another."""
    if isinstance(data, RankingData):
        rows = data
    else:
        relevance, group, qid = data
        rows = RankingData.from_arrays(np.zeros((len(relevance), 0)), relevance, group, qid)
    if rows.row_order is not None:
        raise DataError("the rows of a query must stand together, as LightGBM and XGBoost need them. Sort by qid.")
    return rows
