"""Rows from files: `read` picks the format by the file's suffix, `write_whole` never leaves half a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenrank.io.files import write_whole

if TYPE_CHECKING:
    from evenrank.io.registry import read

__all__ = ["read", "write_whole"]


def __getattr__(name: str) -> Any:
    """Import what reads tables when it is first used: models are loaded and saved without it."""
    if name != "read":
        raise AttributeError(f"module 'evenrank.io' has no attribute {name!r}")
    from evenrank.io.registry import read

    return read
