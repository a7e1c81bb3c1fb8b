"""From a monitor's state to charts: each window's value and interval, and the looks at changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenrank.checks import check_number, choose
from evenrank.confidence import check_confidence
from evenrank.errors import ConfigError
from evenrank.inference.student import quantile
from evenrank.monitoring.estimates import QUESTIONS, RATIO, WITHIN, Array, Estimate
from evenrank.monitoring.looks import FEWEST, Looks, compared, corrected, estimate_of, looks_of
from evenrank.monitoring.monitor import Monitor
from evenrank.monitoring.rates import QUOTIENT
from evenrank.monitoring.result import BEFORE, LOOK, REFERENCE, Chart, Monitored, Point
from evenrank.monitoring.watches import Watch, charts_of
from evenrank.monitoring.windows import in_order

ALERT_ON = ("within", "all")
LOOKS = 52
FIRST = 4  # windows of the reference, unless others are named


def judged(
    state: Monitor,
    *,
    reference: Any = FIRST,
    questions: Sequence[str] = (WITHIN,),
    alert_on: str | None = None,
    looks: int = LOOKS,
    confidence: float = 0.95,
) -> Monitored:
    """Judge every window after the reference.

    Parameters
    ----------
    state : Monitor
        The sums.
    reference : int, (str, str) or Monitor
        The first so many windows; or the names of its first and last window; or the state of a reference of its own,
        and then every window is looked at.
    questions : sequence of str
        What gaps are asked: "within_query", "pooled" or both.
    alert_on : str, optional
        Which charts give alerts: "within", gaps within queries; or "all". The others are shown, and tested by
        themselves. By default "within" where such gaps are watched, and else "all".
    looks : int
        The number of looks in which the chance of any false alarm is at most 1 − confidence.
    confidence : float
        See ``looks``; also of each interval.

    Returns
    -------
    Monitored
        Charts and alerts.
    """
    check_confidence(confidence)
    check_number(looks, "looks", least=1, whole=True)
    for question in questions:
        choose(question, QUESTIONS, what="question")
    if alert_on is not None:
        choose(alert_on, ALERT_ON, what="alert_on")
    roles, base = _roles(state, reference)
    asked = charts_of(state, base, questions)
    within = any(each.kind == WITHIN for each in asked)
    if alert_on == "within" and asked and not within:
        raise ConfigError(
            "alert_on='within' needs a gap within queries, and none is watched. Watch one, such as "
            "demographic_parity, or say alert_on='all' (--alert-on all)."
        )
    charts, tested = [], []
    for each in asked:
        chart, result = _chart(state, base, roles, each, confidence)
        alerting = each.kind == WITHIN or alert_on == "all" or not within
        charts.append(replace(chart, alerting=alerting))
        tested.append(result.p)
    watched = [j for j, role in enumerate(roles) if role == LOOK]
    p = np.array(tested).reshape(len(charts), len(watched))
    alerting_charts = np.array([chart.alerting for chart in charts], bool)
    adjusted = np.empty_like(p)
    for some in (alerting_charts, ~alerting_charts):  # charts that give no alert do not share the alerts' level
        adjusted[some] = corrected(p[some], looks)
    charts = [
        replace(chart, points=_with_alerts(chart, watched, row, 1 - confidence))
        for chart, row in zip(charts, adjusted, strict=True)
    ]
    named = [window.label for window, role in zip(state.windows, roles, strict=True) if role == REFERENCE]
    if base is not state:
        named = [window.label for window in base.windows]
    return Monitored(state, tuple(charts), tuple(named), looks, confidence)


def _roles(state: Monitor, reference: Any) -> tuple[list[str], Monitor]:
    """What each window is for, and the state that has the reference."""
    labels = [window.label for window in state.windows]
    if isinstance(reference, Monitor):
        for name in ("k", "labelled", "items", "cluster_names"):
            mine, theirs = getattr(state, name), getattr(reference, name)
            if mine != theirs and state.windows:
                raise ConfigError(f"the reference must agree with the monitor in its {name}; got {theirs!r}, {mine!r}.")
        if not reference.windows:
            raise ConfigError("the reference must have windows; its state is empty.")
        return [LOOK] * len(labels), reference
    if isinstance(reference, tuple | list):
        ends = [_end(state, labels, end) for end in reference]
        order = in_order([*(window.key for window in state.windows), *ends])
        low, high = (order.index(end) for end in ends)
        places = [order.index(window.key) for window in state.windows]
        if not any(low <= place <= high for place in places):
            raise ConfigError(f"the reference must hold a window; none is from {reference[0]} to {reference[1]}.")
        return [BEFORE if place < low else REFERENCE if place <= high else LOOK for place in places], state
    check_number(reference, "reference", least=1, whole=True)
    return [REFERENCE if j < reference else LOOK for j in range(len(labels))], state


def _end(state: Monitor, labels: list[str], end: Any) -> Any:
    """The key of the window that a reference begins or ends with, by its name or by a time in it."""
    if end in labels:
        return state.windows[labels.index(end)].key
    try:
        return state.rule.key(end)
    except (ValueError, TypeError, OverflowError):
        raise ConfigError(f"the reference must begin and end with windows or times; got {end!r}.") from None


def _chart(state: Monitor, base: Monitor, roles: list[str], asked: Watch, confidence: float) -> tuple[Chart, Looks]:
    kind, a, b = asked.kind, asked.a, asked.b
    strata = asked.strata(state, base)
    dense = asked.sums(state, strata)
    if base is state:
        ours = [j for j, role in enumerate(roles) if role == REFERENCE]
        references = [sums[ours] for sums in dense]
    else:
        references = asked.sums(base, strata)
    ratio = 1.0
    if kind in (RATIO, QUOTIENT):
        ratio = asked.reference_ratio(references[0])
        if ratio > 1:  # the group behind in the reference over the one ahead
            a, b = b, a
            dense, references = ([asked.turned(sums) for sums in each] for each in (dense, references))
            ratio = 1 / ratio
    labels = [window.label for window in state.windows]
    watched = [j for j, role in enumerate(roles) if role == LOOK]
    finite = ratio if ratio == ratio else 1.0
    result = looks_of(kind, references, [sums[watched] for sums in dense], finite)
    if ratio != ratio:
        result.p[:] = np.nan
    whole = estimate_of(kind, references[0].sum(0, keepdims=True), finite)
    windows = estimate_of(kind, dense[0], finite)
    low, high = _interval([estimate_of(kind, sums, finite) for sums in dense], asked.limits, confidence)
    expected = compared(windows, whole).expected(windows)
    counts = windows.counts
    points = []
    for j, label in enumerate(labels):
        point = Point(
            label,
            roles[j],
            float(windows.shown[j]),
            float(low[j]),
            float(high[j]),
            float(expected[j]),
            round(counts[j, 0]),
            round(counts[j, 1]),
        )
        if roles[j] == LOOK:
            t = watched.index(j)
            span = int(result.span[t])
            point = replace(
                point,
                p=float(result.p[t]),
                span_from=labels[watched[t - span + 1]] if span else "",
                span_value=float(result.shown[t]),
                span_expected=float(result.expected[t]),
            )
        points.append(point)
    totals = [estimate_of(kind, sums.sum(0, keepdims=True), finite) for sums in references]
    ends = _interval(totals, asked.limits, confidence)
    over_reference = float(whole.shown[0]), float(ends[0][0]), float(ends[1][0])
    return Chart(asked.measure, asked.k, kind, a, b, *over_reference, tuple(points)), result


def _interval(clusterings: list[Estimate], limits: tuple[float, float], confidence: float) -> tuple[Array, Array]:
    """The interval of each window by itself, by the least certain clustering; none where too few bins bear on it."""
    lows, highs = [], []
    for windows in clusterings:
        shown, number = windows.shown, windows.number
        if windows.kind in (RATIO, QUOTIENT):  # around each window's own ratio
            least = 0.5 / np.maximum(windows.counts[:, 0], 1) * np.nan_to_num(windows.scale)  # 0 of n may be few of n
            ratios = np.fmax(shown, least if windows.kind == RATIO else 0.0)
            own = [estimate_of(windows.kind, windows.sums[[j]], float(ratio)) for j, ratio in enumerate(ratios)]
            robust = np.array([float((one.moves(1.0) ** 2).sum()) for one in own])
            nominal = np.array([float(one.by_chance(one)[0]) for one in own])
        else:
            robust, nominal = (windows.moves(1.0) ** 2).sum(-1), windows.by_chance(windows)
        variance = np.where(windows.few, np.fmax(robust, nominal), robust)
        reach = np.array([quantile(confidence, max(one - 1, 1.0)) for one in number])
        half = np.where(number >= FEWEST, reach * np.sqrt(variance) * windows.scale, np.nan)
        lows.append(shown - half)
        highs.append(shown + half)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return np.maximum(low, limits[0]), np.minimum(high, limits[1])


def _with_alerts(chart: Chart, watched: list[int], adjusted: Array, level: float) -> tuple[Point, ...]:
    out = list(chart.points)
    for j, value in zip(watched, adjusted.tolist(), strict=True):
        shown = value <= level
        out[j] = replace(out[j], adjusted=value, alert=shown and chart.alerting, moved=shown and not chart.alerting)
    return tuple(out)
