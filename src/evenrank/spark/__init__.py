"""Audits, measures and linear training on a Spark session that is given, never one made here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Where each public name lives; modules are not named like functions, which an import of the module would hide.
_NAMES = {
    "audit": "auditing",
    "measure": "measuring",
    "moments": "summing",
    "fit": "summing",
    "rank": "ranking",
    "offset": "offsetting",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'evenrank.spark' has no attribute {name!r}")
    value = getattr(import_module(f"evenrank.spark.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
