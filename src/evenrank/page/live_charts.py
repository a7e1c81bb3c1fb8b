"""The page's charts as Vega-Lite descriptions whose data sets the page's script fills.

Their colours come from the page's style sheet, so that they follow the reader's theme.
"""

from __future__ import annotations

from typing import Any

import altair as alt


def live_charts() -> dict[str, Any]:
    """Describe the page's charts.

    Field names are fixed, and colours and shapes are values: no text of the data becomes a formula.

    Returns
    -------
    dict
        The id of each chart's element → its Vega-Lite description.
    """
    return {"tradeoff": _tradeoff(), "rates": _rates(line=True), "relevant": _rates(line=False)}


def _of(name: str) -> Any:
    return alt.Chart(alt.NamedData(name=name))


def _tradeoff() -> dict[str, Any]:
    """Data sets: points, errors (of the shown method), front, marks (labelled points), chosen."""
    x = alt.X("x:Q", title="gap (0 is even)", scale=alt.Scale(zero=True, nice=True)).axis(tickCount=8, labelFlush=False)
    y = alt.Y("y:Q", title=None, scale=alt.Scale(zero=False, nice=True)).axis(tickCount=8)
    colour = alt.Color("c:N", scale=None)
    tip = [
        alt.Tooltip("name:N", title="method"),
        alt.Tooltip("strength:Q", format=".3~g"),
        alt.Tooltip("x:Q", title="gap", format=".3f"),
        alt.Tooltip("y:Q", title="quality", format=".3f"),
    ]

    layers = alt.layer(
        _of("front")
        .mark_line(strokeWidth=9, opacity=0.9, color="var(--front)", strokeCap="round", strokeJoin="round")
        .encode(x=x, y=y, order="x:Q"),
        _of("errors").mark_rule(opacity=0.3).encode(x=alt.X("xl:Q"), x2="xh:Q", y=y, color=colour),
        _of("errors").mark_rule(opacity=0.3).encode(x=x, y=alt.Y("yl:Q"), y2="yh:Q", color=colour),
        _of("points")
        .mark_line()
        .encode(x=x, y=y, color=colour, detail="m:N", order="i:Q", opacity=alt.Opacity("o:Q", scale=None)),
        _of("points")
        .mark_point(filled=True, size=34, cursor="pointer")
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=alt.Shape("s:N", scale=None),
            opacity=alt.Opacity("o:Q", scale=None),
            tooltip=tip,
        ),
        _of("marks")
        .mark_point(size=150, strokeWidth=2, fill="var(--card)", opacity=1)
        .encode(x=x, y=y, color=colour, shape=alt.Shape("s:N", scale=None)),
        _of("chosen")
        .mark_point(filled=True, size=240, opacity=1, stroke="var(--card)", strokeWidth=2)
        .encode(x=x, y=y, color=colour, tooltip=tip),
        *(
            _of("marks")
            .mark_text(dy=alt.ExprRef("datum.below ? 26 : -20"), fontSize=13, **paint)
            .encode(x=x, y=y, text="text:N")
            for paint in ({"stroke": "var(--card)", "strokeWidth": 4}, {"color": "var(--ink)"})
        ),
    )
    return _finish(layers, height=380)


def _rates(*, line: bool) -> dict[str, Any]:
    """Data sets: rates (one line per group), fourfifths, now; x is the strength's number, as on the slider."""
    label = "grid[datum.value] == null ? '' : format(grid[datum.value], '.2~r')"
    x = alt.X("i:Q", title="strength", scale=alt.Scale(nice=False)).axis(
        labelExpr=label, grid=False, values=alt.ExprRef("ticks")
    )
    y = alt.Y("v:Q", title=None, scale=alt.Scale(zero=True)).axis(format=".0%", tickCount=5)
    tip = [
        alt.Tooltip("name:N", title="group"),
        alt.Tooltip("strength:Q", format=".3~g"),
        alt.Tooltip("v:Q", title="in the top k", format=".1%"),
    ]

    colour, shape = alt.Color("c:N", scale=None), alt.Shape("s:N", scale=None)
    dashed = _of("fourfifths").mark_line(color="var(--soft)", strokeDash=[5, 4], strokeWidth=1.5).encode(x=x, y=y)
    layers = alt.layer(
        _of("now").mark_rule(color="var(--soft)", strokeWidth=2).encode(x=x),
        *([dashed] if line else []),
        _of("rates").mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour, detail="g:N"),
        _of("rates")
        .mark_point(filled=True, size=34, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tip),
    ).add_params(alt.param(name="grid", value=[]), alt.param(name="ticks", value=[]))
    return _finish(layers, height=240)


def _finish(chart: Any, *, height: int) -> dict[str, Any]:
    described: dict[str, Any] = (
        chart.properties(
            width="container", height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
        )
        .configure(font="system-ui, sans-serif", background="transparent", padding=6, aria=False)
        .configure_axis(
            gridColor="var(--grid)",
            domainColor="var(--line)",
            tickColor="var(--line)",
            labelColor="var(--soft)",
            titleColor="var(--soft)",
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="normal",
        )
        .configure_view(stroke=None)
        .to_dict()
    )
    return described
