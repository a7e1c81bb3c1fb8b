"""Definitions as engines read them: JSON whose numbers keep the width in which they were written."""

from __future__ import annotations

import json
import math
from typing import Any

from evenrank.export.errors import accept


def parsed(definition: Any) -> Any:
    """Parse a definition that is a text; anything else is taken as parsed already."""
    if not isinstance(definition, str | bytes):
        return definition
    try:
        return json.loads(definition)
    except (ValueError, RecursionError):
        accept(False, "it is not JSON")


def is_number(value: Any) -> bool:
    """Tell whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any, what: str, *, as_text: bool = False) -> float:
    """Take a JSON number, or with ``as_text`` also a text that is one, as some readers do."""
    if as_text and isinstance(value, str):
        value = from_text(value)
    accept(is_number(value) and not math.isnan(value), f"{what} must be a number")
    return float(value)


def from_text(text: str) -> float | None:
    """Read a number as Java's Float.parseFloat does; None if it is none."""
    plain = text.strip()
    if plain.lstrip("+-") in ("Infinity", "NaN"):
        return float(plain)
    good = plain and plain.lower().lstrip("+-")[:1] in tuple("0123456789.") and "_" not in plain
    try:
        return float(plain.rstrip("fFdD")) if good else None
    except ValueError:
        return None


def fields(value: Any, what: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Take an object with these keys and no others."""
    accept(isinstance(value, dict), f"{what} must be an object")
    absent = next((key for key in required if key not in value), None)
    accept(absent is None, f"{what} has no {absent!r}")
    strange = next((key for key in value if key not in (*required, *optional)), None)
    accept(strange is None, f"{what} has {strange!r}, which it does not know")
    return dict(value)
