"""Forest plots: estimates with their intervals, drawn beside their numbers as places in percent of a scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KINDS = {"uneven": "uneven", "hints": "hint", "none shown": "none", "cannot tell": "none"}


@dataclass(frozen=True)
class Scale:
    """A part of the line of numbers, drawn from its left end (0 %) to its right one (100 %)."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], *, least: float = 1e-9) -> Scale:
        """Hold 0 and all the values that are numbers, with a little room."""
        known = [value for value in values if math.isfinite(value)]
        low, high = min([0.0, *known]), max([least, *known])
        room = (high - low) * 0.03
        return cls(low - room if low < 0 else 0.0, high + room)

    def place(self, value: float) -> float:
        """Give the place of a value in percent; what lies outside is at the end."""
        return min(100.0, max(0.0, (value - self.low) / (self.high - self.low) * 100))


@dataclass(frozen=True)
class Mark:
    """An estimate with its interval, in percent of the scale.

    Attributes
    ----------
    left, width, dot : float
        Where the interval begins, how wide it is, and where the estimate stands.
    kind : str
        "uneven", "hint" or "none"; or what part a bar is.
    """

    left: float
    width: float
    dot: float | None
    kind: str

    @classmethod
    def of(cls, scale: Scale, estimate: float, low: float, high: float, kind: str) -> Mark | None:
        """Place an interval; None if it is not known."""
        if any(map(math.isnan, (estimate, low, high))):
            return None
        left, right = scale.place(low), scale.place(high)
        return cls(left, right - left, scale.place(estimate), kind)

    @classmethod
    def bar(cls, scale: Scale, start: float, end: float, kind: str) -> Mark:
        """Place a bar between two values."""
        left, right = sorted((scale.place(start), scale.place(end)))
        return cls(left, right - left, None, kind)


@dataclass(frozen=True)
class Line:
    """A row of a forest plot: its label, its marks and its numbers."""

    label: str
    marks: Sequence[Mark | None]
    cells: Sequence[str]


@dataclass(frozen=True)
class Block:
    """Rows under one heading."""

    heading: str
    lines: Sequence[Line]
    rest: str = ""


@dataclass(frozen=True)
class Forest:
    """A table with a drawn column.

    Attributes
    ----------
    label : str
        For screen readers.
    head : sequence of str
        The columns: label, drawn, numbers.
    blocks : sequence of Block
        The rows.
    rule : float
        Where the reference line stands, in percent.
    ends : (str, str)
        The values at both ends of the scale.
    note : str
        How to read it.
    """

    label: str
    head: Sequence[str]
    blocks: Sequence[Block]
    rule: float
    ends: tuple[str, str]
    note: str = ""
