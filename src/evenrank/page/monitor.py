"""The monitor as one self-contained page; run charts are plain SVG.

The public names `monitor` and `Monitored` are taken from here, so that what a monitor found knows its page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenrank.audits.method_words import made_facts
from evenrank.monitoring.estimates import POOLED, RATIO, WITHIN
from evenrank.monitoring.rates import DIFFERENCE, MEAN, QUOTIENT
from evenrank.monitoring.result import LOOK, REFERENCE, Chart, Monitored, Point
from evenrank.monitoring.run import monitor
from evenrank.monitoring.words import HEAD, alert_sentence, cells, conclusions, notes, title, value_text
from evenrank.page.skeleton import Row, Table, page
from evenrank.wording import name_cell, tidy

__all__ = ["Monitored", "monitor", "monitor_page"]
MOST_NAMES = 6  # along the axis of time
EVEN = {WITHIN: 0.0, POOLED: 0.0, RATIO: 1.0, DIFFERENCE: 0.0, QUOTIENT: 1.0}
SAME_MIX = "The dashed line is what the reference would give with the mix of lists of each window."
READ = {
    WITHIN: "The dashed line is what the reference's lean would give in the lists of each window.",
    POOLED: "The dashed line is the reference's gap. Pooled gaps move with the mix of lists, and with the ranker.",
    RATIO: "The dashed line is the reference's ratio. Rates are pooled over lists, so their mix moves it too.",
    MEAN: SAME_MIX,
    DIFFERENCE: SAME_MIX,
    QUOTIENT: SAME_MIX,
}
SILENT = " This chart gives no alert: queries of other kinds move it too."


@dataclass(frozen=True)
class Drawing:
    """A run chart in a box of 100 × 100.

    Attributes
    ----------
    band, line, expected, dots, alerts : str
        SVG paths: intervals, values, what the reference gives, and values again, those of alerts apart.
    even : float or None
        Where an even ranking would be.
    shade : list of (float, float)
        Where the reference is: left and width.
    ticks, names : sequence of str
        Along the axes.
    """

    band: str
    line: str
    expected: str
    dots: str
    alerts: str
    even: float | None
    shade: list[tuple[float, float]]
    ticks: Sequence[str]
    names: Sequence[str]


def monitor_page(result: Monitored, heading: str = "Monitor", *, made: Mapping[str, Any] | None = None) -> str:
    """Write what a monitor found as one self-contained page.

    Parameters
    ----------
    result : Monitored
        What was found.
    heading : str
        The page's title.
    made : mapping, optional
        How the numbers were made: "files", "command", "date" and so on, as in the JSON.

    Returns
    -------
    str
        HTML.
    """
    said = conclusions(result)
    lists = {window.label: f"{window.lists:,}" for window in result.state.windows}
    facts = [
        *made_facts(made or {}),
        ("Windows", f"{result.state.window}, {result.state.timezone}"),
        ("Confidence", f"{result.confidence:.0%}, for all charts in {result.looks} looks; of each interval by itself"),
    ]
    return page(
        "monitor.html",
        tidy(heading),
        verdict=result.verdict,
        kind={"changed": "uneven", "no change shown": "none-shown"}.get(result.verdict, "cannot-tell"),
        last=result.windows[-1] if result.windows else "",
        looks=len({point.window for chart in result.charts for point in chart.points if point.role == LOOK}),
        reference=len(result.reference),
        changed=len({point.window for _, point in result.alerts()}),
        said=said,
        notes=notes(result),
        charts=[
            _parts(chart, lists)
            for chart in sorted(result.charts, key=lambda chart: (not chart.alerts, not chart.alerting))
        ],
        provenance=facts,
    )


def _parts(chart: Chart, lists: dict[str, str]) -> dict[str, Any]:
    name = title(chart)
    rows = [
        Row(cells(chart, point, lists), {"class": "here" if point.alert else "of"}) for point in reversed(chart.points)
    ]
    heading = name[:1].upper() + name[1:]
    return {
        "title": heading,
        "alerts": [alert_sentence(chart, point) for point in chart.alerts[-1:]],
        "number": len(chart.alerts),
        "drawing": _drawing(chart),
        "read": READ[chart.question] + ("" if chart.alerting else SILENT),
        "table": Table(heading, [*HEAD[:-1], "note"], rows),
    }


def _drawing(chart: Chart) -> Drawing | None:
    points = chart.points
    even = EVEN.get(chart.question)
    numbers = [x for point in points for x in (point.value, point.low, point.high, point.expected) if math.isfinite(x)]
    if not numbers:
        return None
    numbers += [] if even is None else [even]
    low, high = min(numbers), max(numbers)
    room = 0.05 * (high - low) or 0.05
    low, high = low - room, high + room

    def x(place: float) -> float:
        return (place + 0.5) / len(points) * 100

    def y(value: float) -> float:
        return (high - value) / (high - low) * 100

    drawn = [(x(j), y(point.value), point) for j, point in enumerate(points) if math.isfinite(point.value)]
    return Drawing(
        band="".join(_band(x(j), 40 / len(points), y, point) for j, point in enumerate(points)),
        line=_line([(left, top) for left, top, _ in drawn]),
        expected=_line([(x(j), y(point.expected)) for j, point in enumerate(points) if math.isfinite(point.expected)]),
        dots="".join(f"M{left:.2f} {top:.2f}h0" for left, top, point in drawn if not point.alert),
        alerts="".join(f"M{left:.2f} {top:.2f}h0" for left, top, point in drawn if point.alert),
        even=None if even is None else y(even),
        shade=[(j / len(points) * 100, 100 / len(points)) for j, point in enumerate(points) if point.role == REFERENCE],
        ticks=[value_text(chart, value) for value in (high, (low + high) / 2, low)],
        names=_names([point.window for point in points]),
    )


def _band(x: float, half: float, y: Any, point: Point) -> str:
    """A bar from one end of the interval to the other."""
    if not (math.isfinite(point.low) and math.isfinite(point.high)):
        return ""
    return f"M{x - half:.2f} {y(point.low):.2f}H{x + half:.2f}V{y(point.high):.2f}H{x - half:.2f}Z"


def _line(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points) if points else ""


def _names(windows: list[str]) -> list[str]:
    """The first, the last and some windows between."""
    number = min(MOST_NAMES, len(windows))
    places = [round(j * (len(windows) - 1) / max(1, number - 1)) for j in range(number)]
    return [name_cell(windows[place], 12) for place in places]


Monitored.page = staticmethod(monitor_page)
