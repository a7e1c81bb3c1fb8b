"""From a monitor's state to charts: each window's value and interval, and the looks at changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenrank.audits.summary import QUALITY
from evenrank.checks import check_number, choose
from evenrank.confidence import check_confidence
from evenrank.errors import ConfigError
from evenrank.inference.student import quantile
from evenrank.monitoring.estimates import (
    MEAN,
    POOLED,
    QUESTIONS,
    RATIO,
    WITHIN,
    Array,
    Estimate,
    matched,
    reference_ratio,
)
from evenrank.monitoring.looks import FEWEST, Looks, corrected, looks_of
from evenrank.monitoring.monitor import RATIO as FOUR_FIFTHS
from evenrank.monitoring.monitor import Monitor
from evenrank.monitoring.result import BEFORE, LOOK, REFERENCE, Chart, Monitored, Point
from evenrank.monitoring.series import COLUMNS, ITEMS, N_A, N_B, X_A, X_B, Series
from evenrank.monitoring.windows import in_order

LOOKS = 52
FIRST = 4  # windows of the reference, unless others are named


def judged(
    state: Monitor,
    *,
    reference: Any = FIRST,
    questions: Sequence[str] = (WITHIN,),
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
    roles, base = _roles(state, reference)
    charts, tested = [], []
    for asked in _asked(state, base, questions):
        chart, result = _chart(state, base, roles, asked, confidence)
        charts.append(chart)
        tested.append(result.p)
    watched = [j for j, role in enumerate(roles) if role == LOOK]
    adjusted = corrected(np.array(tested).reshape(len(charts), len(watched)), looks)
    charts = [
        replace(chart, points=_with_alerts(chart.points, watched, row, 1 - confidence))
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


def _asked(state: Monitor, base: Monitor, questions: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Each kind of question with its measure and its groups."""
    asked = []
    for measure in state.measures:
        if measure in QUALITY:
            asked.append((MEAN, measure, "", ""))
            continue
        kinds = [RATIO] if measure == FOUR_FIFTHS else list(questions)
        groups = sorted({series.a for part in (state, base) for series in part.table.series if series.a})
        pairs = [(a, b) for j, a in enumerate(groups) for b in groups[j + 1 :]]
        asked += [(kind, measure, a, b) for a, b in pairs for kind in kinds]
    return asked


def _sums(state: Monitor, measure: str, a: str, b: str, kinds: Sequence[int]) -> list[Array]:
    """The sums of what a chart shows, (windows, bins, 4 + 3 per kind of list) per clustering, lists first."""
    k = state.k or 0
    source = _source(measure)
    clusterings = list(state.cluster_names or ("lists",))
    if not a:
        dense = [state.table.dense(Series(measure, k, clusters=name)) for name in clusterings]
        return [np.pad(sums, ((0, 0), (0, 0), (0, 7 - COLUMNS))) for sums in dense]
    if any(series.clusters == ITEMS for series in state.table.series):
        clusterings.append(ITEMS)
    return [state.table.of_pair(source, k, a, b, name, kinds) for name in clusterings]


def _source(measure: str) -> str:
    return "demographic_parity" if measure == FOUR_FIFTHS else measure


def _chart(
    state: Monitor, base: Monitor, roles: list[str], asked: tuple[str, str, str, str], confidence: float
) -> tuple[Chart, Looks]:
    kind, measure, a, b = asked
    found = state.table.kinds(_source(measure), a, b) | base.table.kinds(_source(measure), a, b)
    kinds = sorted(found)[:1] if kind != WITHIN else sorted(found)  # pooled rates are of all lists together
    dense = _sums(state, measure, a, b, kinds or [0])
    if base is state:
        ours = [j for j, role in enumerate(roles) if role == REFERENCE]
        references = [sums[ours] for sums in dense]
    else:
        references = _sums(base, measure, a, b, kinds or [0])
    ratio = 1.0
    if kind == RATIO:
        ratio = reference_ratio(references[0])
        if ratio > 1:  # the group behind in the reference over the one ahead
            a, b = b, a
            dense, references = (
                [sums[..., [N_B, X_B, N_A, X_A, 4, 5, 6]] for sums in each] for each in (dense, references)
            )
            ratio = 1 / ratio
    labels = [window.label for window in state.windows]
    watched = [j for j, role in enumerate(roles) if role == LOOK]
    finite = ratio if ratio == ratio else 1.0
    result = looks_of(kind, references, [sums[watched] for sums in dense], finite)
    if ratio != ratio:
        result.p[:] = np.nan
    whole = Estimate(kind, references[0].sum(0, keepdims=True), finite)
    windows = Estimate(kind, dense[0], finite)
    low, high = _interval([Estimate(kind, sums, finite) for sums in dense], confidence)
    own, base_of = matched(windows, whole)
    expected = windows.shown - (own.value - base_of.value) * windows.scale
    if kind == RATIO:
        expected = np.full(len(labels), ratio)
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
    ends = _interval([Estimate(kind, sums.sum(0, keepdims=True), finite) for sums in references], confidence)
    over_reference = float(whole.shown[0]), float(ends[0][0]), float(ends[1][0])
    return Chart(measure, state.k or 0, kind, a, b, *over_reference, tuple(points)), result


def _interval(clusterings: list[Estimate], confidence: float) -> tuple[Array, Array]:
    """The interval of each window by itself, by the least certain clustering; none where too few bins bear on it."""
    lows, highs = [], []
    for windows in clusterings:
        shown, number = windows.shown, windows.number
        if windows.kind == RATIO:  # around each window's own ratio
            least = 0.5 / np.maximum(windows.counts[:, 0], 1) * np.nan_to_num(windows.scale)  # 0 of n may be few of n
            own = [Estimate(RATIO, windows.sums[[j]], max(float(shown[j]), least[j])) for j in range(len(shown))]
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
    if clusterings[0].kind in (WITHIN, POOLED):
        return np.maximum(low, -1.0), np.minimum(high, 1.0)
    return np.maximum(low, 0.0), high if clusterings[0].kind == RATIO else np.minimum(high, 1.0)


def _with_alerts(points: Sequence[Point], watched: list[int], adjusted: Array, level: float) -> tuple[Point, ...]:
    out = list(points)
    for j, value in zip(watched, adjusted.tolist(), strict=True):
        out[j] = replace(out[j], adjusted=value, alert=value <= level)
    return tuple(out)
