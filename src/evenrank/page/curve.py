"""The curve of who stands where: each group's share of the places, beside its share in random order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenrank.audits.notable import Bracket, brackets
from evenrank.page.skeleton import Row, Table
from evenrank.wording import name_cell

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit

MOST_LINES = 6  # as many as there are colours


@dataclass(frozen=True)
class Drawn:
    """A group's line: points as an SVG path in a box of 100 × 100, and its name."""

    name: str
    colour: int
    path: str
    expected: str
    dots: str


def curve(audit: Audit) -> dict[str, Any] | None:
    """Describe the curve; None if there are no two parts of the lists to compare."""
    parts = brackets(audit)
    if len(parts) < 2:
        return None
    names = [row.category for row in audit.categories if row.k == audit.main_k]
    odd = sorted(names, key=lambda name: -_distance(parts, name))[:MOST_LINES]
    shown = [name for name in names if name in odd]
    top = max(max(part.shares[name], part.expected[name]) for part in parts for name in shown)
    high = next(limit for limit in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if top <= limit + 1e-9)
    lines = [
        Drawn(
            name_cell(name, 60),
            number,
            _path([part.shares[name] / high for part in parts]),
            _path([part.expected[name] / high for part in parts]),
            _dots([part.shares[name] / high for part in parts]),
        )
        for number, name in enumerate(shown)
    ]
    counts = audit.facts["counts"]
    total = sum(row.number for row in audit.categories if row.k == audit.main_k)
    rows = [
        Row(
            (
                name_cell(row.category, 40),
                f"{row.number / total:.1%}",
                *(f"{part.shares[row.category]:.1%} ({part.expected[row.category]:.1%})" for part in parts),
            ),
            {"class": "of"},
        )
        for row in audit.categories
        if row.k == audit.main_k
    ]
    items = Row(("items", f"{total:,.8g}", *(f"{part.items:,.6g}" for part in parts)), {"class": "of"})
    return {
        "lines": lines,
        "places": [part.places for part in parts],
        "ticks": [f"{share * high:.0%}" for share in (1, 0.5, 0)],
        "left_out": len(counts) - len(shown) if len(counts) > len(shown) else 0,
        "table": Table(
            "Shares of places by group",
            ("group", "of the items", *(f"places {p.places}" for p in parts)),
            [*rows, items],
        ),
    }


def _distance(parts: list[Bracket], name: str) -> float:
    """How far a group's shares are from those in random order."""
    return max(abs(part.shares[name] - part.expected[name]) for part in parts)


def _points(values: list[float]) -> list[tuple[float, float]]:
    return [((place + 0.5) / len(values) * 100, 100 - 100 * value) for place, value in enumerate(values)]


def _path(values: list[float]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in _points(values))


def _dots(values: list[float]) -> str:
    """Lines of no length, which the pen's round end makes dots."""
    return "".join(f"M{x:.2f} {y:.2f}h0" for x, y in _points(values))
