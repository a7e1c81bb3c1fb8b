"""What a monitor found, in words."""

from __future__ import annotations

from evenrank.measures import MEASURES
from evenrank.monitoring.estimates import POOLED, RATIO, WITHIN
from evenrank.monitoring.rates import DIFFERENCE, MEAN, QUOTIENT
from evenrank.monitoring.result import LOOK, Chart, Monitored, Point
from evenrank.monitoring.windows import PERIOD
from evenrank.wording import NONE, name_cell, p_value, quoted, signed, spoken, three_digits

MOST_SAID = 5  # alerts that are spelled out
MOST_NAMED = 6  # windows that a note names
STRATA = {"equal_opportunity": " among relevant items", "equalized_odds": " among irrelevant items"}
LETTERS = {name: name.upper() for name in ("ndcg", "awrf", "ndkl", "mrr", "dtr", "dir")} | {"awrf_ndcg": "AWRF · NDCG"}
HEAD = ("window", "lists", "value", "low", "high", "expected", "p", "")


def title(chart: Chart) -> str:
    """Name what a chart shows.

    Parameters
    ----------
    chart : Chart
        The chart.
    """
    groups = f", {quoted(chart.a)} {'over' if chart.question in (RATIO, QUOTIENT) else 'minus'} {quoted(chart.b)}"
    if chart.question in (MEAN, DIFFERENCE, QUOTIENT):
        measure, bracket, chosen = chart.measure.partition("(")
        at = f"@{chart.k}" if chart.k else ""
        own = groups if chart.b else f", {quoted(chart.a)}" if chart.a else ""
        return f"{LETTERS.get(measure) or spoken(measure)}{at}{bracket}{chosen}{own}"
    if chart.question == RATIO:
        return f"ratio of pooled rates at {chart.k}{groups}"
    where = "within queries" if chart.question == WITHIN else "pooled"
    name = {"exposure_gap": "exposure", "equalized_odds": "equalized odds (irrelevant items)"}
    return f"{name.get(chart.measure, spoken(chart.measure))} at {chart.k} {where}{groups}"


def value_text(chart: Chart, value: float) -> str:
    """Write a value of a chart: differences with a sign."""
    if value != value:
        return NONE
    return signed(value) if is_signed(chart) else three_digits(value)


def is_signed(chart: Chart) -> bool:
    """Tell whether a chart is of differences, which may be below 0."""
    return chart.question in (WITHIN, POOLED, DIFFERENCE) or (chart.question == MEAN and bool(chart.a))


def alert_sentence(chart: Chart, point: Point) -> str:
    """Say which change a look shows.

    Parameters
    ----------
    chart : Chart
        What changed.
    point : Point
        The window of the look.
    """
    over = f" over the windows from {point.span_from} to {point.window}" if point.span_from != point.window else ""
    now, before = (value_text(chart, value) for value in (point.span_value, point.span_expected))
    instead = "where the reference's lean gives" if chart.question == WITHIN else "where the reference has"
    if chart.question in (MEAN, DIFFERENCE, QUOTIENT):
        instead = "where the reference, with the same mix of lists, has"
    first = chart.first_shown(point)
    shown = f"; first shown at {first}" if first != point.window else ""
    name = title(chart)
    return (
        f"{name[:1].upper()}{name[1:]}: {now}{over or f' in {point.window}'}, {instead} {before} (corrected p "
        f"{p_value(point.adjusted)}{shown}).{_turned(chart, point)}"
    )


def _turned(chart: Chart, point: Point) -> str:
    """Say that the other group is ahead now, where the reference had shown one to be."""
    even = 1.0 if chart.question in (RATIO, QUOTIENT) else 0.0
    ends = chart.reference_low - even, chart.reference_high - even
    if chart.question == MEAN or not (ends[0] > 0 or ends[1] < 0) or not (point.span_value - even) * ends[0] < 0:
        return ""
    if not (point.high < even if ends[0] > 0 else point.low > even):  # the window by itself must show it
        return ""
    before, now = (chart.a, chart.b) if ends[0] > 0 else (chart.b, chart.a)
    return f" In the reference {quoted(before)} was ahead, and now {quoted(now)} is."


def conclusions(result: Monitored) -> list[str]:
    """Say what the last look shows, which earlier looks showed a change, and what that means.

    Parameters
    ----------
    result : Monitored
        What was found.
    """
    windows = result.windows
    if not windows:
        return ["There are no windows yet."]
    looked = [point for chart in result.charts for point in chart.points if point.role == LOOK]
    if not looked:
        return [
            f"No look yet: all {len(windows)} windows are in the reference. Windows that come after it are compared "
            "with it."
        ]
    last = windows[-1]
    now = result.alerts([last])
    out = []
    if now:
        out.append(f"Changed at the last look, {last}:")
        now.sort(key=lambda alert: alert[1].adjusted)
        out += [alert_sentence(chart, point) for chart, point in now[:MOST_SAID]]
        if len(now) > MOST_SAID:
            out.append(f"{len(now) - MOST_SAID} more changed, see the tables.")
    elif result.verdict == "cannot tell":
        out.append(
            f"Cannot tell at the last look, {last}: it, and the windows before it, have too few lists that can be "
            "compared with the reference."
        )
    else:
        out.append(f"No change is shown at the last look, {last}. Small changes may be there.")
    earlier = [(chart, point) for chart, point in result.alerts() if point.window != last]
    if earlier:
        names = list(dict.fromkeys(point.window for _, point in earlier))
        out.append(f"Earlier looks that showed a change: {_named(names)}.")
    if now:
        out += _whose(result, [chart for chart, _ in now])
    out += moved_sentences(result, last)
    out.append(correction(result))
    return out


def _whose(result: Monitored, changed: list[Chart]) -> list[str]:
    """Say what may be behind the charts that changed at the last look."""
    kinds = {chart.question for chart in changed}
    tested = [chart for chart in result.charts if chart.points[-1].p == chart.points[-1].p]
    if WITHIN in kinds:
        return [
            "Within queries: groups are treated differently than in the reference in lists of the same length and "
            "mix. That is the ranker, what it is fed, or other kinds of queries."
        ]
    unshown = any(chart.question == WITHIN for chart in tested)
    if kinds <= {POOLED, RATIO}:
        return [
            "Only what is pooled over all lists changed"
            + (", and no gap within queries is shown to have: " if unshown else ": ")
            + "other lists than in the reference may be all there is to it."
        ]
    if not any(is_of_groups(chart) for chart in changed):
        start = "Only quality changed." if any(is_of_groups(chart) for chart in tested) else "Quality changed."
        return [f"{start} That may be harder queries or other labels as well as the ranker."]
    out = []
    if kinds & {POOLED, RATIO}:
        out.append(
            "Where rates are pooled over all lists, other lists than in the reference may be all there is to it."
        )
    return [
        *out,
        "Means and rates were compared at one mix of lists, by length, groups' shares and relevant items. What changed "
        "is the ranker, what it is fed, or queries that differ in other ways.",
    ]


def is_of_groups(chart: Chart) -> bool:
    """Tell whether a chart bears on groups, or on quality alone."""
    return "groups" in MEASURES[chart.measure.partition("(")[0]].needs


def moved_sentences(result: Monitored, window: str) -> list[str]:
    """Say what moved at a look without an alert.

    Parameters
    ----------
    result : Monitored
        What was found.
    window : str
        The window of the look.
    """
    moved = sorted(result.moves([window]), key=lambda look: look[1].adjusted)
    if not moved:
        return []
    out = [f"Moved, and no alert: {alert_sentence(chart, point)}" for chart, point in moved[:MOST_SAID]]
    if len(moved) > MOST_SAID:
        out.append(f"{len(moved) - MOST_SAID} more moved, see the tables.")
    return [*out, "What moved without an alert may be other queries than in the reference, and not the ranker."]


def correction(result: Monitored) -> str:
    """Say which correction was made."""
    level = 1 - result.confidence
    alerting = [chart for chart in result.charts if chart.alerting]
    number = "the one chart that gives" if len(alerting) == 1 else f"the {len(alerting)} charts that give"
    return (
        f"Correction for looking repeatedly: an alpha-spending rule. Each of {result.looks} looks spends an equal "
        f"share of {level:.3g}, shared by the spans that end at it and, by Holm's method, by {number} alerts; so any "
        f"false alarm in {result.looks} looks has a chance of at most {level:.3g}."
    )


def notes(result: Monitored) -> list[str]:
    """Say what was done to the data, and what is missing.

    Parameters
    ----------
    result : Monitored
        What was found.
    """
    state = result.state
    out = []
    if result.reference:
        out.append(f"Reference: {_named(list(result.reference))}.")
    if any(not chart.alerting for chart in result.charts):
        out.append(
            "Alerts come from gaps within queries. The other charts are shown and tested, and give no alert, since "
            "queries of other kinds move them too."
        )
    looks = len({point.window for chart in result.charts for point in chart.points if point.role == LOOK})
    if looks > result.looks:
        out.append(f"{looks} looks so far: the stated chance of a false alarm holds for any {result.looks} in a row.")
    late = [f"{window.label} ({window.late:,} lists)" for window in state.windows if window.late]
    if late:
        out.append(f"Lists that came late and were added to their windows: {_named(late)}. Their looks are made anew.")
    missing = _missing(result)
    if missing:
        out.append(f"Windows without any list: {_named(missing)}.")
    for chart in result.charts:
        absent = [point.window for point in chart.points if not point.count_a or not point.count_b]
        if chart.measure == "demographic_parity" and chart.question == WITHIN and absent:
            out.append(f"{quoted(chart.a)} or {quoted(chart.b)} is absent in: {_named(absent)}.")
    closed = [chart for chart in result.charts if looks and not any(point.p == point.p for point in chart.points)]
    if closed:
        named = "; ".join(title(chart) for chart in closed)
        out.append(f"Never tested, for lack of lists that can be compared with the reference: {named}.")
    if state.cluster_names:
        out.append(
            f"Clusters: {', '.join(map(quoted, state.cluster_names))}; lists that share one may depend on each other."
        )
    if state.items and any(series.clusters == "items" for series in state.table.series):
        out.append(
            "Items are known by their ids; tests allow for what an item carries from list to list and over time."
        )
    return out


def _missing(result: Monitored) -> list[str]:
    """Names of windows between the first and the last that have no lists."""
    state = result.state
    if state.window == PERIOD or not state.windows:
        return []
    keys = {int(window.key) for window in state.windows}
    span = range(min(keys), min(max(keys), min(keys) + 100_000))
    return [state.rule.label(key) for key in span if key not in keys]


def _named(names: list[str]) -> str:
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} … {names[-1]} ({len(names)} in all)"


def as_text(result: Monitored, heading: str) -> str:
    """Write conclusions, notes and one table per chart as plain text.

    Parameters
    ----------
    result : Monitored
        What was found.
    heading : str
        The title.
    """
    parts = [heading, "=" * len(heading), "", *conclusions(result), "", *notes(result)]
    lists = {window.label: f"{window.lists:,}" for window in result.state.windows}
    for chart in result.charts:
        rows = [HEAD, *(cells(chart, point, lists) for point in chart.points)]
        widths = [max(len(row[j]) for row in rows) for j in range(len(HEAD))]
        parts += ["", title(chart), "-" * len(title(chart))]
        parts += [
            "  ".join(
                cell.ljust(width) if j in (0, len(HEAD) - 1) else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
    return "\n".join(parts) + "\n"


def cells(chart: Chart, point: Point, lists: dict[str, str]) -> tuple[str, ...]:
    """Write one window of a chart as a table's row."""
    values = [value_text(chart, value) for value in (point.value, point.low, point.high, point.expected)]
    mark = "changed" if point.alert else "moved" if point.moved else "reference" if point.role == "reference" else ""
    tested = p_value(point.adjusted) if point.role == LOOK else ""
    return (name_cell(point.window, 24), lists[point.window], *values, tested, mark)


__all__ = ["HEAD", "alert_sentence", "as_text", "cells", "conclusions", "is_signed", "notes", "title"]
