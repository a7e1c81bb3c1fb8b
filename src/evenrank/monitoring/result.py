"""`Monitored`: what a monitor's state shows, window by window, and the changes against its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from evenrank.monitoring.monitor import Monitor

REFERENCE, LOOK, BEFORE = "reference", "look", "before"


@dataclass(frozen=True)
class Point:
    """One window of a chart.

    Attributes
    ----------
    window : str
        Its name.
    role : str
        "reference", "look", or "before" (not in the reference and not after it).
    value, low, high : float
        What is measured and its interval, of this window by itself; NaN where there is none.
    expected : float
        What the reference would give in the lists of this window.
    count_a, count_b : int
        Rows of the two groups; of means and rates the lists that bear on each side.
    p, adjusted : float
        Of no change at this look: corrected for the spans that end here, and also for all that is watched and all
        looks. NaN where nothing could be tested.
    span_from : str
        The first window of the span, which ends here, that shows most.
    span_value, span_expected : float
        The value over that span, and what the reference would give there.
    alert : bool
        Whether the change is shown, by a chart that gives alerts.
    moved : bool
        Whether the change is shown, by a chart that gives none.
    """

    window: str
    role: str
    value: float
    low: float
    high: float
    expected: float
    count_a: int
    count_b: int
    p: float = float("nan")
    adjusted: float = float("nan")
    span_from: str = ""
    span_value: float = float("nan")
    span_expected: float = float("nan")
    alert: bool = False
    moved: bool = False


@dataclass(frozen=True)
class Chart:
    """A measure over time, of one pair of groups or of all lists.

    Attributes
    ----------
    measure : str
        Its full name, with its options.
    k : int
        The cut-off; 0 for whole lists.
    question : str
        "within_query", "pooled", "ratio" (of pooled rates); or, compared at one mix of lists, "mean" (over lists),
        "difference" or "quotient" (of rates).
    a, b : str
        The groups: differences are a's rate less b's, ratios a's over b's. Empty for what has one value per list.
    reference, reference_low, reference_high : float
        Its value over the whole reference, and its interval.
    points : tuple of Point
        One per window.
    alerting : bool
        Whether its changes are alerts.
    """

    measure: str
    k: int
    question: str
    a: str
    b: str
    reference: float
    reference_low: float
    reference_high: float
    points: tuple[Point, ...]
    alerting: bool = True

    @property
    def alerts(self) -> list[Point]:
        """The windows whose look is an alert."""
        return [point for point in self.points if point.alert]

    @property
    def moves(self) -> list[Point]:
        """The windows whose look shows a change that is no alert."""
        return [point for point in self.points if point.moved]

    def first_shown(self, point: Point) -> str:
        """Name the first of the looks up to this one that show a change without a break."""
        first = point.window
        for earlier in reversed(self.points[: self.points.index(point)]):
            if not (earlier.alert or earlier.moved):
                break
            first = earlier.window
        return first


@dataclass(frozen=True, eq=False)
class Monitored:
    """What `monitor` found. ``text()`` and ``html()`` say it in words; ``to_dict()`` has the numbers.

    Attributes
    ----------
    state : Monitor
        The sums that it was made from.
    charts : tuple of Chart
        What is watched.
    reference : tuple of str
        The windows that others are compared with.
    looks : int
        The number of looks that share the level.
    confidence : float
        1 − the level; also of each interval.
    """

    state: Monitor
    charts: tuple[Chart, ...]
    reference: tuple[str, ...]
    looks: int
    confidence: float

    page: ClassVar[Callable[..., str]]  # the page layer, which comes later, puts it here

    @property
    def windows(self) -> list[str]:
        """The names of the windows, in order."""
        return [window.label for window in self.state.windows]

    def alerts(self, windows: Sequence[str] | None = None) -> list[tuple[Chart, Point]]:
        """List the looks that are alerts.

        Parameters
        ----------
        windows : sequence of str, optional
            Those of interest; by default all.

        Returns
        -------
        list of (Chart, Point)
            In the order of the windows.
        """
        return self._listed([(chart, point) for chart in self.charts for point in chart.alerts], windows)

    def moves(self, windows: Sequence[str] | None = None) -> list[tuple[Chart, Point]]:
        """List the looks at which a chart shows a change that is no alert, since the mix of queries is part of it.

        Parameters
        ----------
        windows : sequence of str, optional
            Those of interest; by default all.

        Returns
        -------
        list of (Chart, Point)
            In the order of the windows.
        """
        return self._listed([(chart, point) for chart in self.charts for point in chart.moves], windows)

    def _listed(self, looks: list[tuple[Chart, Point]], windows: Sequence[str] | None) -> list[tuple[Chart, Point]]:
        wanted = set(self.windows if windows is None else windows)
        order = {name: j for j, name in enumerate(self.windows)}
        return sorted((look for look in looks if look[1].window in wanted), key=lambda look: order[look[1].window])

    @property
    def verdict(self) -> str:
        """Judge the last look by the charts that give alerts: "changed", "no change shown", or "cannot tell"."""
        last = [chart.points[-1] for chart in self.charts if chart.points and chart.alerting]
        if any(point.alert for point in last):
            return "changed"
        return "no change shown" if any(point.p == point.p for point in last) else "cannot tell"

    def notes(self) -> list[str]:
        """Say what was done to the data, and what is missing."""
        from evenrank.monitoring.words import notes

        return notes(self)

    def conclusions(self) -> list[str]:
        """Write in plain words what the last look and the earlier ones show."""
        from evenrank.monitoring.words import conclusions

        return conclusions(self)

    def text(self, title: str = "Monitor") -> str:
        """Write plain text."""
        from evenrank.monitoring.words import as_text

        return as_text(self, title)

    def html(self, title: str = "Monitor") -> str:
        """Write an HTML page that needs no network."""
        return self.page(self, title)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values; what is not defined is NaN."""
        state = self.state
        return {
            "verdict": self.verdict,
            "conclusions": self.conclusions(),
            "notes": self.notes(),
            "window": state.window,
            "timezone": state.timezone,
            "k": state.k,
            "confidence": self.confidence,
            "looks": self.looks,
            "correction": "alpha spending: equal shares for looks and spans, Holm's method for what is watched",
            "reference": list(self.reference),
            "windows": [
                {"window": one.label, "lists": one.lists, "rows": one.rows, "late_lists": one.late}
                for one in state.windows
            ],
            "alerts": [_look(*look) for look in self.alerts()],
            "moves": [_look(*look) for look in self.moves()],
            "charts": [asdict(chart) for chart in self.charts],
        }

    def __str__(self) -> str:
        return self.text()


def _look(chart: Chart, point: Point) -> dict[str, Any]:
    """A look as plain values."""
    named = {name: getattr(chart, name) for name in ("measure", "k", "question", "a", "b")}
    return named | asdict(point)
