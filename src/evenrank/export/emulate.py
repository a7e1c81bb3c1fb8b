"""`emulate`: any engine's arithmetic on the user's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.export import onnx_model
from evenrank.export.emulators import plugins, ranklib, solr, vespa
from evenrank.export.float32 import cast
from evenrank.rankers.matching import match_features

ENGINES = ("opensearch", "elasticsearch", "solr", "vespa", "ranklib", "onnx")


def emulate(
    engine: str,
    definition: Any,
    rows: Any,
    version: str | None = None,
    *,
    features: Sequence[str] | None = None,
    normalizers: Mapping[str, Any] | None = None,
    model_type: str | None = None,
    evaluator: str | None = None,
) -> NDArray[Any]:
    """Score rows as an engine does: with its comparison, the width of its numbers and its rule for missing values.

    Parameters
    ----------
    engine : str
        "opensearch", "elasticsearch", "solr", "vespa", "ranklib" or "onnx" (which onnxruntime itself computes).
    definition : str, bytes or JSON value
        The model's definition, as it is uploaded.
    rows : array-like, frame or RankingData
        Features, (n, d); NaN or None is missing.
    version : str, optional
        The engine's version, by default the newest.
    features : sequence of str, optional
        The names of the columns of an array, in the order of the feature set; of a frame or a `RankingData` they are
        known.
    normalizers : mapping, optional
        The ``feature_normalizers`` of Elasticsearch and OpenSearch.
    model_type : str, optional
        Such as "model/linear"; by default what the definition looks like.
    evaluator : str, optional
        Vespa's: "default", "large" or "fast_forest"; by default what Vespa takes.

    Returns
    -------
    ndarray
        Scores, (n,), in the order of the rows: 64-bit from Vespa and ONNX, 32-bit from the others.

    Raises
    ------
    DataError
        If the engine would refuse the definition; the message says why.

    Examples
    --------
    >>> emulate("opensearch", '{"age": 0.5, "price": -2}', [[10.0, 1.0], [None, 3.0]], features=["age", "price"])
    array([ 3., -6.], dtype=float32)
    """
    choose(engine, ENGINES, what="engine")
    values, names = matrix(rows, features)
    if engine == "vespa":
        if evaluator is not None:
            choose(evaluator, vespa.EVALUATORS, what="evaluator")
        return _caller(vespa.emulate(definition, values, features=names, evaluator=evaluator, kind=model_type), rows)
    if engine == "onnx":
        return _caller(onnx_model.run(definition, values), rows)
    small = cast(values)
    if engine == "solr":
        return _caller(solr.emulate(definition, small, features=names, version=version), rows)
    if engine == "ranklib":
        return _caller(ranklib.emulate(definition, np.where(np.isnan(small), np.float32(0), small)), rows)
    if names is None:
        if (model_type or plugins.kind_of(definition)) != plugins.RANKLIB:
            raise ConfigError("the definition does not say which column is which. Name the columns with features=.")
        names = []
    return _caller(
        plugins.emulate(
            engine,
            definition,
            small,
            features=names,
            version=version,
            model_type=model_type,
            normalizers=normalizers,
        ),
        rows,
    )


def _caller(scores: NDArray[Any], rows: Any) -> NDArray[Any]:
    return np.asarray(rows.to_caller(scores)) if isinstance(rows, RankingData) else scores


def matrix(rows: Any, features: Sequence[str] | None) -> tuple[NDArray[np.float64], list[str] | None]:
    """Take rows as numbers, (n, d), and the names of their columns.

    Parameters
    ----------
    rows : array-like, frame or RankingData
        The rows; those of a `RankingData` come in stored order.
    features : sequence of str, optional
        The names; of a frame or a `RankingData`, the columns to take.

    Returns
    -------
    tuple
        The numbers, with NaN where a value is missing, and the names, None if there are none.
    """
    if isinstance(rows, RankingData):
        names = list(rows.feature_names if features is None else features)
        return np.asarray(rows.features[:, match_features(rows, tuple(names))], np.float64), names
    if hasattr(rows, "columns"):
        import narwhals as nw

        frame = nw.from_native(rows, eager_only=True)
        names = list(map(str, frame.columns if features is None else features))
        absent = next((name for name in names if name not in frame.columns), None)
        if absent is not None:
            raise DataError(
                f"the rows have no column {absent!r}. Give rows that have the model's {len(names)} features."
            )
        return _numbers([frame[name].to_list() for name in names]).T, names
    values = _numbers(rows)
    if values.ndim != 2:
        raise DataError(f"rows must be a table, (n, d); got shape {values.shape}.")
    if features is not None and values.shape[1] != len(features):
        raise DataError(f"rows must have {len(features)} columns, one per feature; got {values.shape[1]}.")
    return values, None if features is None else list(features)


def _numbers(values: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("rows must be numbers, (n, d), with NaN or None where a value is missing.") from None
