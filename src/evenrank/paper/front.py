"""The strongest front that the package reaches: of every method's models, those that no other beats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import Curve, pareto_front
from evenrank.experiment.trials import Sweep
from evenrank.paper import summary


def best_columns(result: Sweep, front: Sweep | None, quality: str = "ndcg") -> NDArray[np.float64]:
    """Compute the max and mean reduction of the strongest front, averaged over k.

    Parameters
    ----------
    result : Sweep
        The experiment's sweep.
    front : Sweep or None
        A finer sweep of the same folds, if there is one.
    quality : str
        The measure of quality that must not fall significantly.

    Returns
    -------
    ndarray
        (settings, 2), settings in the order of `summary.settings_of`.
    """
    curves = [
        [best_front(result, front, notion, grouping, k, quality) for k in result.ks]
        for notion, grouping in summary.settings_of(result)
    ]
    per_k = np.array([[(curve.max_reduction, curve.mean_reduction) for curve in row] for row in curves])
    return summary.average(per_k, axis=1)


def best_front(result: Sweep, front: Sweep | None, notion: str, grouping: str, k: int, quality: str = "ndcg") -> Curve:
    """Join every method's points into one curve against the group-blind model of strength 0.

    Parameters
    ----------
    result, front, quality
        As in `best_columns`.
    notion, grouping : str
        The setting.
    k : int
        The cut-off.

    Returns
    -------
    Curve
        The group-blind model first. Then the points that are neither significantly worse nor less fair than it, and
        that no other point beats in both quality and gap. The ``strengths`` only number the points.
    """
    base = result.curve(notion, k, method="amortized", quality=quality, grouping=grouping)
    parts = [
        sweep.curve(notion, k, method=method, quality=quality, grouping=grouping)
        for sweep in ([result] if front is None else [result, front])
        for method in sweep.methods
    ]
    points: dict[str, Any] = {
        name: np.concatenate([getattr(base, name)[:1], *(getattr(part, name) for part in parts)])
        for name in ("quality", "quality_error", "violation", "violation_error")
    }
    whole = replace(base, method="best", strengths=np.arange(len(points["quality"]), dtype=float), **points)
    eligible = np.where(whole.worse | (whole.violation > whole.violation[0]), np.nan, whole.violation)
    keep = pareto_front(whole.quality, eligible)
    keep[0] = True
    kept: dict[str, Any] = {name: values[keep] for name, values in points.items()}
    return replace(whole, strengths=np.arange(keep.sum(), dtype=float), **kept)
