"""Charts as Vega-Lite descriptions, made with Altair from a sweep's curves."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from evenrank.experiment.curves import Curve
from evenrank.experiment.trials import Sweep

# Okabe and Ito's colours: distinct for colour-blind readers too.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]


def label(curve: Curve, several_methods: bool) -> str:
    name = curve.notion.replace("_", " ")
    return f"{name} ({curve.method})" if several_methods else name


def rows(sweep: Sweep) -> list[dict[str, Any]]:
    """A flat record for every point of every curve."""
    several = len(sweep.methods) > 1
    out = []
    for method in sweep.methods:
        for notion in sweep.notions:
            for k in sweep.ks:
                curve = sweep.curve(notion, k, method=method)
                for i, strength in enumerate(curve.strengths.tolist()):
                    mark = "baseline" if i == 0 else "best" if i == curve.best else "other"
                    out.append(
                        {
                            "curve": label(curve, several),
                            "k": f"k = {k}",
                            "order": i,
                            "strength": strength,
                            "quality": _number(curve.quality[i]),
                            "quality low": _number(curve.quality[i] - curve.quality_error[i]),
                            "quality high": _number(curve.quality[i] + curve.quality_error[i]),
                            "violation": _number(curve.violation[i]),
                            "violation low": _number(curve.violation[i] - curve.violation_error[i]),
                            "violation high": _number(curve.violation[i] + curve.violation_error[i]),
                            "mark": mark,
                        }
                    )
    return out


def _number(value: float) -> float | None:
    """JSON has no NaN; a chart leaves out what is null."""
    return float(value) if np.isfinite(value) else None


def _color(names: list[str]) -> Any:
    return alt.Color("curve:N", scale=alt.Scale(domain=names, range=PALETTE[: len(names)]), title=None).legend(
        orient="top", labelLimit=400
    )


def tradeoff(sweep: Sweep) -> dict[str, Any]:
    """Quality against violation, a panel a k."""
    data = rows(sweep)
    names = list(dict.fromkeys(row["curve"] for row in data))
    base = alt.Chart().encode(color=_color(names))
    x = alt.X("violation:Q", title="violation (0 is even)", scale=alt.Scale(zero=True))
    y = alt.Y("quality:Q", title="NDCG", scale=alt.Scale(zero=False))
    tip = [
        "curve:N",
        alt.Tooltip("strength:Q", format=".3g"),
        alt.Tooltip("violation:Q", format=".3f"),
        alt.Tooltip("quality:Q", format=".3f"),
    ]
    line = base.mark_line(opacity=0.6).encode(x=x, y=y, order="order:Q", detail="curve:N")
    marked = base.transform_filter("datum.mark != 'other'")
    across = marked.mark_rule(opacity=0.5).encode(x=alt.X("violation low:Q"), x2="violation high:Q", y=y)
    down = marked.mark_rule(opacity=0.5).encode(x=x, y=alt.Y("quality low:Q"), y2="quality high:Q")
    dots = base.mark_point(size=30, filled=True, opacity=0.5).encode(x=x, y=y, tooltip=tip)
    start = base.transform_filter("datum.mark == 'baseline'").mark_point(size=120, shape="circle", fill="white")
    best = base.transform_filter("datum.mark == 'best'").mark_point(size=130, shape="diamond", filled=True)
    layers = alt.layer(
        line, across, down, dots, start.encode(x=x, y=y, tooltip=tip), best.encode(x=x, y=y, tooltip=tip)
    )
    return _finish(layers.properties(width=270, height=250).facet(column=_panel(), data=_values(data)))


def against_strength(sweep: Sweep) -> dict[str, Any]:
    """Violation above, quality below, against strength; a panel a k."""
    data = rows(sweep)
    names = list(dict.fromkeys(row["curve"] for row in data))

    def panel(value: str, title: str, zero: bool) -> Any:
        x = alt.X("strength:Q", scale=alt.Scale(type="symlog", constant=0.01), title="strength").axis(
            values=[0, 0.01, 0.1, 1, 10], format=",.2~f"
        )
        y = alt.Y(f"{value}:Q", title=title, scale=alt.Scale(zero=zero))
        base = alt.Chart().encode(color=_color(names), x=x)
        band = base.mark_area(opacity=0.12).encode(y=alt.Y(f"{value} low:Q", title=title), y2=f"{value} high:Q")
        line = base.mark_line(point={"size": 18}).encode(
            y=y, tooltip=["curve:N", alt.Tooltip("strength:Q", format=".3g"), alt.Tooltip(f"{value}:Q", format=".3f")]
        )
        return alt.layer(line, band).properties(width=270, height=170).facet(column=_panel(), data=_values(data))

    return _finish(alt.vconcat(panel("violation", "violation", True), panel("quality", "NDCG", False)))


def _panel() -> Any:
    return alt.Column("k:N", title=None, sort=None)


def _values(data: list[dict[str, Any]]) -> Any:
    return alt.Data(values=data)  # type: ignore[no-untyped-call]


def _finish(chart: Any) -> dict[str, Any]:
    described: dict[str, Any] = (
        chart.configure_axis(gridColor="#eceff3", labelFontSize=12, titleFontSize=12)
        .configure_legend(labelFontSize=13)
        .configure_header(labelFontSize=13)
        .configure_view(stroke=None)
        .to_dict()
    )
    return described
