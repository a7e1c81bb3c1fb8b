"""Differences of two answers: numbers by their size, all else exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-9


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where the answers differ, a line each. Whole numbers, texts, lengths and names must be equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                yield f"{place}/{key}: only in {'the second' if key in other else 'the first'}"
            else:
                yield from differences(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield f"{place}: {len(one)} entries, {len(other)}"
        for number, parts in enumerate(zip(one, other, strict=False)):
            yield from differences(*parts, f"{place}/{number}")
    elif not _same(one, other):
        yield f"{place}: {one!r:.200}, {other!r:.200}"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return _same_text(one, other)
    if isinstance(one, float) and isinstance(other, float):
        both_missing = math.isnan(one) and math.isnan(other)
        return both_missing or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(one) is type(other) and bool(one == other)


def _same_text(one: str, other: str) -> bool:
    """Whether texts are equal, but for last digits of numbers written out in full."""
    if one == other:
        return True
    pattern = r"-?\d+\.\d{9,}(?:e-?\d+)?|-?\d\.\d*e-\d+"
    numbers = [list(map(float, re.findall(pattern, text))) for text in (one, other)]
    same = len(numbers[0]) == len(numbers[1]) and re.sub(pattern, "", one) == re.sub(pattern, "", other)
    return same and all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(*numbers, strict=True))
