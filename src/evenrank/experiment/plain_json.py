"""Values as a run folder writes them: JSON with null for NaN."""

from __future__ import annotations

import json
import math
from typing import Any

from evenrank.errors import ConfigError


def plain(value: Any) -> Any:
    """What a value is after a round through JSON."""
    return json.loads(dump(value))


def dump(value: Any, indent: int | None = None) -> str:
    """Write a value as JSON."""
    return json.dumps(_without_nan(value), ensure_ascii=True, allow_nan=False, indent=indent, default=_listed)


def _listed(value: Any) -> Any:
    """Arrays and their elements as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ConfigError(f"a run folder holds numbers, texts and lists of them; got {value!r}. Give such a setting.")


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null stands for it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return value
