"""Charts as Vega-Lite descriptions that hold their numbers, made with Altair from a sweep's curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import Curve
from evenrank.experiment.trials import Sweep
from evenrank.methods.registry import METHODS
from evenrank.wording import SHORT_TITLES, spoken

# Okabe and Ito's colours: distinct for colour-blind readers too.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
VIOLATION = "violation"
MEASURED = ("violation", "quality")
WIDTH, HEIGHT = 220, 180
# How axes call the strengths of methods.
KNOBS = {"alpha": "strength α", "gamma": "strength γ", "p": "share p", "gain": "gain", "theta": "strength θ"}

Panel = tuple[str, bool, str]  # its title, whether its strengths are shares, and what its axis is called
Reach = tuple[tuple[float, float], tuple[float, float]]  # the ends of the axes of violation and quality


def curves(
    sweep: Sweep,
    *,
    notion: str | None = None,
    grouping: str | None = None,
    methods: Sequence[str] | None = None,
    quality: str = "ndcg",
) -> list[Curve]:
    """Collect the curves of one grouping.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    notion : str, optional
        One notion; all by default.
    grouping : str, optional
        The first by default.
    methods : sequence of str, optional
        All by default.
    quality : str
        The quality measure, without its cut-off.

    Returns
    -------
    list of Curve
        By notion, then method, then k.
    """
    notions = sweep.notions if notion is None else [sweep.notion_name(notion)]
    return [
        sweep.curve(name, k, method=method, quality=quality, grouping=grouping)
        for name in notions
        for method in (sweep.methods if methods is None else methods)
        for k in sweep.ks
    ]


def rows(drawn: Sequence[Curve]) -> list[dict[str, Any]]:
    """Make one flat record per point of every curve.

    Parameters
    ----------
    drawn : sequence of Curve
        The curves.

    Returns
    -------
    list of dict
        Names, strength, values and the ends of their error bars.
    """
    out = []
    for curve in drawn:
        front = curve.front
        for i, strength in enumerate(curve.strengths.tolist()):
            out.append(
                {
                    "notion": spoken(curve.notion),
                    "method": label_of(curve.method),
                    "k": f"k = {curve.k}",
                    "order": i,
                    "strength": strength,
                    **_bar("quality", curve.quality[i], curve.quality_error[i]),
                    **_bar("violation", curve.violation[i], curve.violation_error[i]),
                    "mark": "baseline" if i == 0 else "best" if i == curve.best else "other",
                    "front": bool(front[i]),
                }
            )
    return out


def label_of(method: str) -> str:
    """Give a method's name as tables and figures have it."""
    return METHODS[method].label if method in METHODS else spoken(method)


def _bar(name: str, value: float, error: float) -> dict[str, float | None]:
    """A value and the ends of its error bar; without an error the bar has no length."""
    reach = np.nan_to_num(error)
    return {name: _number(value), f"{name} low": _number(value - reach), f"{name} high": _number(value + reach)}


def _number(value: float) -> float | None:
    """JSON has no NaN; a chart leaves out what is null."""
    return float(value) if np.isfinite(value) else None


def tradeoff(sweep: Sweep, *, quality: str = "ndcg", **selection: Any) -> dict[str, Any]:
    """Describe the chart of quality against violation, one panel per k.

    Colours are methods, or notions where there is one method. Several notions of several methods have one row of panels
    per notion.

    Parameters
    ----------
    sweep, quality
        As for `curves`.
    **selection : Any
        notion, grouping and methods, as for `curves`.

    Returns
    -------
    dict
        A Vega-Lite description that holds its numbers.
    """
    drawn = curves(sweep, quality=quality, **selection)
    several = len({curve.method for curve in drawn}) > 1
    names = dict.fromkeys(label_of(curve.method) if several else spoken(curve.notion) for curve in drawn)
    by_notion = several and len({curve.notion for curve in drawn}) > 1
    layout = _tradeoff_layout("method" if several else "notion", tuple(names), by_notion, quality)
    return {**layout, "datasets": {"points": rows(drawn)}}


@lru_cache(maxsize=64)
def _tradeoff_layout(series: str, names: tuple[str, ...], by_notion: bool, quality: str) -> dict[str, Any]:
    """The trade-off without its points; kept, because Altair takes long to make it."""
    x = alt.X("violation:Q", title="violation (0 is even)", scale=alt.Scale(zero=True))
    y = alt.Y("quality:Q", title=SHORT_TITLES[quality], scale=alt.Scale(zero=False))
    base = alt.Chart().encode(color=_series(series, names))
    line = base.mark_line(opacity=0.35).encode(x=x, y=y, order="order:Q")
    front = base.transform_filter("datum.front").mark_line(strokeWidth=2.5).encode(x=x, y=y, order="violation:Q")
    marked = base.transform_filter("datum.mark != 'other'")
    across = marked.mark_rule(opacity=0.6).encode(x=alt.X("violation low:Q"), x2="violation high:Q", y=y)
    down = marked.mark_rule(opacity=0.6).encode(x=x, y=alt.Y("quality low:Q"), y2="quality high:Q")
    dots = base.mark_point(size=18, filled=True, opacity=0.6).encode(x=x, y=y)
    start = base.transform_filter("datum.mark == 'baseline'").mark_point(size=110, shape="circle", fill="white")
    best = base.transform_filter("datum.mark == 'best'").mark_point(size=120, shape="diamond", filled=True)
    layers = alt.layer(line, front, across, down, dots, start.encode(x=x, y=y), best.encode(x=x, y=y))
    facets: dict[str, Any] = {"column": alt.Column("k:N", title=None, sort=None)}
    if by_notion:
        facets["row"] = alt.Row("notion:N", title=None, sort=None)
    sized = layers.properties(width=WIDTH, height=HEIGHT)
    return _finish(
        sized.facet(**facets, data=alt.NamedData(name="points")).resolve_scale(x="independent", y="independent")
    )


def against_strength(sweep: Sweep, *, quality: str = "ndcg", **selection: Any) -> dict[str, Any]:
    """Describe the chart of violation (left axis) and quality (right axis) against strength.

    There is one column per k and one row per notion and method, because methods have strengths on different scales.

    Parameters
    ----------
    sweep, quality, **selection
        As for `tradeoff`.

    Returns
    -------
    dict
        A Vega-Lite description, as of `tradeoff`.
    """
    drawn = curves(sweep, quality=quality, **selection)
    several_notions = len({curve.notion for curve in drawn}) > 1
    several_methods = len({curve.method for curve in drawn}) > 1
    lines: dict[tuple[str, str], list[Panel]] = {}
    for curve in drawn:
        names = [
            *([spoken(curve.notion)] if several_notions else []),
            *([label_of(curve.method)] if several_methods else []),
        ]
        panel = _panel_of(curve, ", ".join([*names, f"k = {curve.k}"]))
        lines.setdefault((curve.notion, curve.method), []).append(panel)
    return _in_lines(drawn, list(lines.values()), quality)


def methods_by_notion(
    sweep: Sweep, k: int, *, methods: Sequence[str], notion: str | None = None, grouping: str, quality: str = "ndcg"
) -> dict[str, Any]:
    """Describe the paper's figure: violation and quality at one k against strength, one column per method.

    Parameters
    ----------
    sweep, methods, grouping, quality
        As for `curves`.
    k : int
        The cut-off.
    notion : str, optional
        One notion gives the paper's Figure 1; by default there is one row per notion.

    Returns
    -------
    dict
        A Vega-Lite description, as of `tradeoff`.
    """
    selected = curves(sweep, notion=notion, grouping=grouping, methods=methods, quality=quality)
    drawn = [curve for curve in selected if curve.k == k]
    several = len({curve.notion for curve in drawn}) > 1
    lines: dict[str, list[Panel]] = {}
    for curve in drawn:
        names = [label_of(curve.method), *([spoken(curve.notion)] if several else [])]
        lines.setdefault(curve.notion, []).append(_panel_of(curve, ": ".join(names)))
    # Panels that stand side by side are compared, so they share their axes.
    ends = [_ends(getattr(curve, name), getattr(curve, f"{name}_error")) for name in MEASURED for curve in drawn]
    reaches = [np.concatenate(ends[: len(drawn)]), np.concatenate(ends[len(drawn) :])]
    reach = None
    if all(len(values) for values in reaches):
        reach = (0.0, float(reaches[0].max())), (float(reaches[1].min()), float(reaches[1].max()))
    return _in_lines(drawn, list(lines.values()), f"{quality}@{k}", reach)


def _ends(value: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ends of all error bars that there are."""
    ends = np.concatenate([value - np.nan_to_num(error), value + np.nan_to_num(error)])
    return np.asarray(ends[np.isfinite(ends)])


def _panel_of(curve: Curve, title: str) -> Panel:
    strength = METHODS[curve.method].strength.name if curve.method in METHODS else ""
    return title, bool(curve.strengths[-1] <= 1), KNOBS.get(strength, "strength")


def _in_lines(
    drawn: Sequence[Curve], lines: Sequence[list[Panel]], quality: str, reach: Reach | None = None
) -> dict[str, Any]:
    layout = _strength_layout(tuple(map(tuple, lines)), quality, reach)
    return {**layout, "datasets": {f"panel{number}": rows([curve]) for number, curve in enumerate(drawn)}}


@lru_cache(maxsize=64)
def _strength_layout(lines: tuple[tuple[Panel, ...], ...], quality: str, reach: Reach | None) -> dict[str, Any]:
    """Rows of panels; kept, because Altair takes long."""
    number = 0
    drawn = []
    for line in lines:
        panels = []
        for place, panel in enumerate(line):
            outer = (place == 0, place == len(line) - 1)
            panels.append(_strength_panel(f"panel{number}", panel, quality, reach, outer=outer))
            number += 1
        drawn.append(alt.hconcat(*panels, spacing=14))
    return _finish(alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0])


def _strength_panel(data: str, panel: Panel, quality: str, reach: Reach | None, *, outer: tuple[bool, bool]) -> Any:
    """One panel; only the outer panels of a row (left, right) name the axes."""
    title, shares, knob = panel
    base = alt.Chart(alt.NamedData(name=data)).encode(x=_strength_axis(shares, knob))
    measure, _, k = quality.partition("@")
    quality_name = SHORT_TITLES[measure] + (f"@{k}" if k else "")
    named_lines = [f"{VIOLATION} (left axis; 0 is even)", f"{quality_name} (right axis)"]
    scale_of_lines = alt.Scale(domain=named_lines, range=PALETTE[:2])
    parts = []
    for number, (value, name, shape, side, named) in enumerate(
        (("violation", VIOLATION, "circle", "left", outer[0]), ("quality", quality_name, "square", "right", outer[1]))
    ):
        colour = PALETTE[number]
        axis: Any = {"orient": side, "titleColor": colour, "labelColor": colour, "tickCount": 3, "grid": side == "left"}
        scale, shown = alt.Scale(zero=value == "violation"), name if named else None
        if reach is not None:
            scale.domain = list(reach[number])
        low = alt.Y(f"{value} low:Q", title=shown, scale=scale).axis(**axis)
        y = alt.Y(f"{value}:Q", title=shown, scale=scale).axis(**axis)
        bars = base.mark_rule(color=colour, opacity=0.6).encode(y=low, y2=f"{value} high:Q")
        named_base = base.transform_calculate(line=repr(named_lines[number]))
        marks = named_base.mark_line(point={"size": 18, "shape": shape})
        line = marks.encode(y=y, color=alt.Color("line:N", scale=scale_of_lines, title=None))
        parts.append(alt.layer(bars, line))
    layers = alt.layer(*parts).resolve_scale(y="independent")
    return layers.properties(width=WIDTH, height=HEIGHT, title=title)


def _strength_axis(shares: bool, knob: str) -> Any:
    """Logarithmic but for 0, or plain for shares, which end at 1."""
    if shares:
        return alt.X("strength:Q", title=knob).axis(tickCount=5, format=".2~r")
    scale = alt.Scale(type="symlog", constant=0.01)
    return alt.X("strength:Q", title=knob, scale=scale).axis(values=[0, 0.1, 1, 10, 100], format=".2~r")


def _series(field: str, names: Sequence[str]) -> Any:
    """Colours for the values of a field, in their order."""
    ring = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    scale = alt.Scale(domain=list(names), range=ring)
    return alt.Color(f"{field}:N", scale=scale, title=None).legend(orient="top", labelLimit=400, symbolOpacity=1)


def _finish(chart: Any) -> dict[str, Any]:
    described: dict[str, Any] = (
        chart.configure_axis(gridColor="#eceff3", labelFontSize=11, titleFontSize=12)
        .configure_legend(labelFontSize=12, labelLimit=400, orient="top")
        .configure_header(labelFontSize=12)
        .configure_view(stroke=None)
        .to_dict()
    )
    return described
