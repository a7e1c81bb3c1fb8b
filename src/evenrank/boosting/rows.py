"""How boosted rankers take their rows: ids or sizes of queries, in any order, features as the library likes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import frame_labels
from evenrank.notions import Notion
from evenrank.rankers.matching import named_columns, unnamed
from evenrank.row_checks import as_array, checked_numbers, frame_names, unmasked


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
    """Check the rows of `fit`.

    Features are left to the library, which takes frames, sparse matrices and missing values; only a notion of the
    user's own sees them.

    Parameters
    ----------
    X, y, qid, group, sensitive_features, sample_weight
        See `evenrank.lightgbm.FairLGBMRanker.fit`.
    notion : str, Notion, callable or row masks
        The notion of fairness.
    relevance_threshold : float
        Relevance at or above it counts as relevant.

    Returns
    -------
    tuple
        The features in stored order, in the form they came; the rows without features; and the features' names.
    """
    if isinstance(X, RankingData):
        if any(part is not None for part in (y, qid, group, sample_weight)):
            raise ConfigError("fit(data) takes relevance, queries and weights from the RankingData; leave them out.")
        data = X if sensitive_features is None else X.with_group(sensitive_features)
        return data.features, data, data.feature_names
    if y is None:
        raise ConfigError("y, the relevance of each row, is needed.")
    reads_features = not isinstance(notion, str) and (isinstance(notion, Notion) or callable(notion))
    X = library_features(X)
    X, qid = without_query(X, qid, group)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if np.shape(X)[1:] == (0,):
        raise DataError("training needs at least one feature; the data has none.")
    data = RankingData.from_arrays(
        X if reads_features else np.zeros((n, 0)),
        y,
        sensitive_features,
        query_ids(qid, group, n),
        relevance_threshold=relevance_threshold,
        sample_weight=sample_weight,
    )
    columns = frame_names(X)
    names = unnamed(np.shape(X)[1]) if columns is None else tuple(map(str, columns))
    return in_order(X, data.row_order), data, names


def without_query(X: Any, qid: Any, group: Any) -> tuple[Any, Any]:
    """Take query ids from a frame's column ``qid``, as XGBoost does, where they are given in no other way.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The features.
    qid, group : array-like or None
        Query ids or sizes of queries, if they are given.

    Returns
    -------
    tuple
        The features without that column, and the ids.
    """
    columns = frame_names(X)
    if qid is not None or group is not None or columns is None or "qid" not in list(columns):
        return X, qid
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    return frame.drop("qid").to_native(), frame_labels(frame["qid"])


def refuse_two_ids(X: Any, sets: Sequence[Any] | None, **given: Any) -> None:
    """Refuse query ids beside a frame's column ``qid``, which XGBoost takes for them whatever else is given.

    Parameters
    ----------
    X, sets
        The features, and the evaluation sets as `as_sets` gives them.
    **given : array-like or None
        Ids and sizes of queries by the name of their parameter; those of evaluation sets begin with "eval".
    """
    of_sets = [each[0] for each in sets or () if not isinstance(each, RankingData)]
    for part, frames, of_eval in (("X", [X], False), ("an eval_set", of_sets, True)):
        also = [name for name, ids in given.items() if ids is not None and name.startswith("eval") == of_eval]
        columns = [frame_names(frame) for frame in frames if also]
        if any(names is not None and "qid" in list(names) for names in columns):
            raise ConfigError(
                f"{part} has a column 'qid', which XGBoost takes for the query ids, and {also[0]}= is given too. "
                "Leave out one of them."
            )


def query_ids(qid: Any, group: Any, n: int) -> ArrayLike:
    """Give one query id per row.

    Parameters
    ----------
    qid : array-like or None
        The ids, (n,).
    group : array-like or None
        Or the sizes of the queries, (queries,), whose rows stand together.
    n : int
        The number of rows.

    Returns
    -------
    array-like
        The ids, (n,).
    """
    if (qid is None) == (group is None):
        given = "both" if qid is not None else "neither"
        raise ConfigError(f"pass qid, one query id per row, or group, the size of each query; got {given}.")
    if qid is not None:
        return qid  # type: ignore[no-any-return]
    sizes = as_array(group, "group")
    whole = sizes.ndim == 1 and sizes.dtype.kind in "iuf" and bool((np.isfinite(sizes) & (sizes == sizes // 1)).all())
    if not whole or (sizes < 0).any() or sizes.sum() != n:
        got = f"{len(sizes)} that add up to {sizes.sum():g}" if whole else f"{sizes.dtype} values, {sizes[:3]!s} …"
        raise ConfigError(
            f"group must be the sizes of the queries, whole numbers that add up to the {n} rows; got {got}. "
            "Labels of groups go to sensitive_features, query ids to qid."
        )
    return np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))


def query_weights(weight: Any, n_queries: int) -> NDArray[np.float64]:
    """Check XGBoost's weights, one per query.

    Parameters
    ----------
    weight : array-like
        The weights.
    n_queries : int
        The number of queries.

    Returns
    -------
    ndarray
        (queries,).

    Raises
    ------
    DataError
        If they are not one finite number ≥ 0 per query, or all 0.
    """
    weight = as_array(weight, "sample_weight")
    if weight.shape != (n_queries,):
        raise DataError(
            f"sample_weight must have one value for each of the {n_queries} queries, in the order in which they first "
            f"appear, as XGBRanker's; got shape {weight.shape}. Give weights of rows in a RankingData."
        )
    weight = checked_numbers(weight, n_queries, "sample_weight", "query {}".format)
    if not weight.any():
        raise DataError("sample_weight must have a positive sum; every weight is 0.")
    return np.asarray(weight, np.float64)


def library_features(X: Any, names: Sequence[str] | None = None) -> Any:
    """Give features in a form for the library: masked values as missing, and a frame's columns in training's order.

    Parameters
    ----------
    X : array, frame or sparse matrix
        The features, (n, d).
    names : sequence of str, optional
        The features in training.

    Returns
    -------
    array, frame or sparse matrix
        The features.
    """
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X if X.dtype.kind == "f" else X.astype(np.float64), np.nan)
    if issparse(X) and X.format not in ("csr", "csc"):
        return X.tocsr()  # rows of other forms cannot be selected
    return X if names is None else named_columns(X, names)


def in_order(values: Any, order: NDArray[np.int64] | None) -> Any:
    """Bring rows to stored order.

    Parameters
    ----------
    values : array, frame, sparse matrix, list or None
        The rows, (n,) or (n, d).
    order : ndarray or None
        The `RankingData.row_order`.

    Returns
    -------
    array, frame, sparse matrix, list or None
        The same kind.
    """
    values = unmasked(values, "a value for each row")
    return values if order is None or values is None else _safe_indexing(values, order)


def stored_rows(values: Any, order: NDArray[np.int64] | None, n: int, what: str) -> Any:
    """Bring rows to stored order, of which there must be so many.

    Parameters
    ----------
    values, order
        As in `in_order`.
    n : int
        The number of rows.
    what : str
        What an error calls the values.

    Returns
    -------
    array, frame, sparse matrix, list or None
        The same kind.
    """
    if values is None:
        return None
    found = values.shape[0] if getattr(values, "shape", ()) else len(values)
    if found != n:
        raise DataError(f"{what} must have one value for each of the {n} rows; got {found}.")
    return in_order(values, order)


def as_rows(data: Any) -> RankingData:
    """Make a `RankingData` of the rows that a library trains on.

    Parameters
    ----------
    data : RankingData or tuple
        The rows, or their (relevance, sensitive_features, qid).

    Returns
    -------
    RankingData
        The rows, without features if they came as a tuple.

    Raises
    ------
    ConfigError
        If they are neither.
    DataError
        If the rows of a query do not stand together.
    """
    if isinstance(data, RankingData):
        rows = data
    elif not isinstance(data, tuple | list) or len(data) != 3 or any(np.ndim(part) != 1 for part in data):
        shape = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        raise ConfigError(
            "the rows must be a RankingData, or (relevance, sensitive_features, qid) with one value per row each; got "
            f"{type(data).__name__}{shape}."
        )
    else:
        relevance, group, qid = data
        rows = RankingData.from_arrays(np.zeros((len(relevance), 0)), relevance, group, qid)
    if rows.row_order is not None:
        raise DataError("the rows of a query must stand together, as LightGBM and XGBoost need them. Sort by qid.")
    return rows
