"""Rows from files: `read` picks the format by the suffix, `scan` reads in parts, `write_whole` leaves no half file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenrank.io.files import write_whole

if TYPE_CHECKING:
    from evenrank.io.registry import read
    from evenrank.io.row_files import RankingFiles, scan

__all__ = ["RankingFiles", "read", "scan", "write_whole"]

_HOMES = {"read": "registry", "scan": "row_files", "RankingFiles": "row_files"}


def __getattr__(name: str) -> Any:
    """Import what reads tables when it is first used: models are loaded and saved without it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'evenrank.io' has no attribute {name!r}")
    return getattr(import_module(f"evenrank.io.{_HOMES[name]}"), name)
