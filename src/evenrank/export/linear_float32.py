"""A linear model for engines that know no intercept and add in 32 bits."""

from __future__ import annotations

import numpy as np

from evenrank.errors import ConfigError
from evenrank.export.float32 import Floats, cast
from evenrank.export.model import Linear

FARTHEST = 2.0**100


def folded(linear: Linear) -> tuple[Floats, dict[str, tuple[float, float]]]:
    """Bring the intercept into a standard normalizer of one feature: w·(x − m)/s with m = −b·s/w.

    Parameters
    ----------
    linear : Linear
        The model.

    Returns
    -------
    tuple
        The 32-bit weights, (d,), and feature → (mean, deviation) of the normalizers that are needed.
    """
    weights = cast(linear.coef)
    if not np.isfinite(weights).all():
        feature = linear.features[int(np.argmin(np.isfinite(weights)))]
        raise ConfigError(f"the weight of {feature!r} is too large for 32-bit numbers. Scale the feature down.")
    if not linear.intercept:
        return weights, {}
    at = int(np.argmax(np.abs(weights)))
    mean = -linear.intercept / float(weights[at]) if weights[at] else np.inf
    if abs(mean) < FARTHEST:
        return weights, {linear.features[at]: (float(np.float32(mean)), 1.0)}
    # All weights are next to nothing beside the intercept: a feature far from its mean is a constant.
    at = int(np.argmin(np.abs(weights)))
    weights[at] = np.float32(linear.intercept)
    return weights, {linear.features[at]: (-FARTHEST, FARTHEST)}
