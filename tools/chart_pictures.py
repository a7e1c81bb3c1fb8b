"""The charts of the documentation, each from a run on the bundled German Credit lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert

import evenrank as er
from evenrank.page.charts import tradeoff

INK = {"light": "#1a1c1e", "dark": "#e6e9ec"}
SOFT = {"light": "#c3ccd3", "dark": "#46525b"}
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
ON_DARK = {BLUE: "#56B4E9", ORANGE: "#F0883E", GREEN: "#3CC79B", "white": "#131416"}
Made = tuple[dict[str, Any], str]
K = 5


def drawn(description: dict[str, Any], theme: str) -> bytes:
    """A Vega-Lite description as SVG on a transparent ground, in the colours of the theme."""
    ink, soft = INK[theme], SOFT[theme]
    axis = {
        "labelColor": ink,
        "titleColor": ink,
        "gridColor": soft,
        "gridOpacity": 0.4,
        "domainColor": soft,
        "tickColor": soft,
    }
    look = {
        "aria": False,
        "background": "transparent",
        "padding": {
            "left": 24,
            "right": 32,
            "top": 8,
            "bottom": 8,
        },  # browsers' letters are wider than those counted with
        "font": "system-ui, sans-serif",
        "view": {"stroke": soft},
        "axis": axis | {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "labelLimit": 0,
            "orient": "top",
            "columnPadding": 42,
        },
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 13},
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 14, "fontWeight": "normal"},
        "text": {"color": ink, "fontSize": 12},
    }
    text = str(vl_convert.vegalite_to_svg({**description, "config": description.get("config", {}) | look}))
    if theme == "dark":
        for light, dark in ON_DARK.items():
            text = text.replace(light, dark).replace(light.lower(), dark)
    return text.encode()


def _data() -> tuple[er.RankingData, Any]:
    data = er.datasets.german_credit("age")
    return data, er.FairLinearRanker(alpha=0.0).fit(data).predict(data)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows)


def trade_off() -> Made:
    """What `evenrank demo` sweeps, for equal opportunity."""
    data = er.datasets.german_credit("age")
    methods = ("amortized", "fastar", "offset")
    folds = er.datasets.german_credit_folds(data)
    strengths = {"fastar": np.arange(25) / 50}
    swept = er.sweep(data, methods, ["eop"], strengths=strengths, ks=[1, 3, K], folds=folds)
    return tradeoff(
        swept
    ), f"er.sweep of {', '.join(methods)} on German Credit by age, five folds, NDCG against the gap"


def contrast() -> Made:
    """The rates behind each notion's gap."""
    data, scores = _data()
    rates = er.Ranking(scores, data.query_ptr).top(K)
    strata = {"all rows": np.ones(data.n_rows, bool), "relevant": data.relevance >= 1, "irrelevant": data.relevance < 1}
    rows = [
        {"rows": name, "group": group, "rate": float(rates[kept & (data.group == code)].mean())}
        for name, kept in strata.items()
        for code, group in enumerate(data.group_names)
    ]
    colour = alt.Color("group:N", scale=alt.Scale(range=[ORANGE, BLUE]), title=None)
    base = alt.Chart(_frame(rows))
    y = alt.Y("rows:N", sort=list(strata), title=None)
    x = alt.X(
        "rate:Q",
        axis=alt.Axis(format="%", tickCount=7),
        title=f"rate of being in the top {K}",
        scale=alt.Scale(domainMin=0),
    )
    gaps = base.transform_aggregate(low="min(rate)", high="max(rate)", groupby=["rows"]).transform_calculate(
        middle="(datum.low + datum.high) / 2", gap="'gap ' + format(datum.high - datum.low, '.3f')"
    )
    chart = alt.layer(
        gaps.mark_rule(strokeWidth=3, opacity=0.5, color=GREEN).encode(x=alt.X("low:Q"), x2="high:Q", y=y),
        gaps.mark_text(dy=-12).encode(x="middle:Q", y=y, text="gap:N"),
        base.mark_point(size=140, filled=True, opacity=1).encode(x=x, y=y, color=colour),
    ).properties(width=520, height=170)
    return chart.to_dict(), "FairLinearRanker(alpha=0) on German Credit by age: rates of the top 5 by group"


def path() -> Made:
    """The exact path, from no fairness term to α*."""
    data, _ = _data()
    swept = er.fairness_path(data, "eop", alphas=np.linspace(0, 0.4, 81))
    scores = swept.scores(data)
    measured = er.measure(scores, data, [f"ndcg@{K}", f"eop@{K}"])
    training = er.violation(scores, data, "eop")
    names = {
        "gap of the scores: trained on": training,
        f"gap of the top {K}: reported": measured[f"eop@{K}"],
        f"NDCG@{K}": measured[f"ndcg@{K}"],
    }
    panels = []
    for (name, values), colour in zip(names.items(), (ORANGE, BLUE, GREEN), strict=True):
        rows = [{"alpha": float(a), "value": float(v)} for a, v in zip(swept.alphas, values, strict=True)]
        x, y = alt.X("alpha:Q", title="strength α"), alt.Y("value:Q", title=None, scale=alt.Scale(zero="gap" in name))
        line = alt.Chart(_frame(rows), title=name).mark_line(strokeWidth=2.5, color=colour).encode(x=x, y=y)
        panels.append(line.properties(width=200, height=190))
    chart = alt.hconcat(*panels)
    return chart.to_dict(), "er.fairness_path of equal opportunity at 81 strengths, measured on the training rows"


def _signed_gaps(rates: Any, data: er.RankingData) -> tuple[Any, float]:
    """The gap of each list that has both groups, and that of all rows together."""
    first = data.group == 0
    count = np.bincount(data.query_of_row, minlength=data.n_queries)
    here = np.bincount(data.query_of_row, weights=first, minlength=data.n_queries)
    got = np.bincount(data.query_of_row, weights=rates * first, minlength=data.n_queries)
    rest = np.bincount(data.query_of_row, weights=rates * ~first, minlength=data.n_queries)
    both = (here > 0) & (here < count)
    gaps = got[both] / here[both] - rest[both] / (count - here)[both]
    return gaps, float(rates[first].mean() - rates[~first].mean())


def amortised() -> Made:
    """Gaps list by list, in random order and as ranked."""
    data, scores = _data()
    orders = {"in random order": np.random.default_rng(0).random(data.n_rows), "as the ranker ranks": scores}
    rows, pooled = [], []
    for name, values in orders.items():
        gaps, whole = _signed_gaps(er.Ranking(values, data.query_ptr).top(K), data)
        rows += [{"order": name, "gap": float(gap)} for gap in gaps]
        text = f"pooled {round(whole, 3) + 0.0:+.3f}; mean of |gap| per list {np.abs(gaps).mean():.3f}"
        pooled.append({"order": name, "pooled": whole, "text": text})
    facet = alt.Facet("order:N", title=None, sort=list(orders))
    bars = (
        alt.Chart()
        .mark_bar(color=BLUE, opacity=0.75)
        .encode(
            x=alt.X(
                "gap:Q",
                bin=alt.Bin(step=0.1),
                axis=alt.Axis(format=".1f", values=[-0.4, 0, 0.4, 0.8]),
                title="25 or younger less over 25, list by list",
            ),
            y=alt.Y("count():Q", title="lists"),
        )
    )
    rule = alt.Chart().mark_rule(color=ORANGE, strokeWidth=3).encode(x="mean(pooled):Q")
    told = alt.Chart().mark_text(align="left", y=-8, x=2).encode(text="min(text):N")
    joined = _frame([row | next(one for one in pooled if one["order"] == row["order"]) for row in rows])
    chart = alt.layer(bars, rule, told, data=joined).properties(width=300, height=190).facet(facet)
    return (
        chart.to_dict(),
        "gaps of demographic parity at 5, list by list, of German Credit by age; the line is the pooled gap",
    )


def noise() -> Made:
    """The gap of lists in random order: what chance alone shows."""
    data, scores = _data()
    random = np.random.default_rng(1)
    rows = []
    for lists in (20, 100, 500):
        part = data.take(np.arange(lists))
        values = er.measure(random.random((part.n_rows, 1000)), part, f"dp@{K}")[f"dp@{K}"]
        rows += [{"lists": f"{lists} lists", "gap": float(value)} for value in values]
    measured = er.measure(scores, data, f"dp@{K}")[f"dp@{K}"]
    bars = (
        alt.Chart()
        .mark_bar(color=BLUE, opacity=0.75)
        .encode(
            x=alt.X("gap:Q", bin=alt.Bin(step=0.01), title="gap in random order", axis=alt.Axis(values=[0, 0.1, 0.2])),
            y=alt.Y("count():Q", title="of 1,000 random orders"),
        )
    )
    rule = alt.Chart().mark_rule(color=ORANGE, strokeWidth=3).encode(x=alt.datum(measured))
    facet = alt.Facet("lists:N", title=None, sort=["20 lists", "100 lists", "500 lists"])
    chart = alt.layer(bars, rule, data=_frame(rows)).properties(width=200, height=170).facet(facet)
    return chart.to_dict(), f"dp@5 of 1,000 random orders; the line is the ranker's gap on 500 lists, {measured:.3f}"


def promises() -> Made:
    """How far the gap on new queries may be: interval and certificate as lists grow."""
    data, scores = _data()
    rows = []
    for lists in (50, 100, 200, 350, 500):
        part = data.take(np.arange(lists))
        values = scores[data.query_of_row < lists]
        interval = er.interval(values, part, f"dp@{K}")
        certified = er.bounds.certified(values, part, f"dp@{K}", delta=0.05)
        rows += [
            {"lists": lists, "what": "measured gap", "value": interval.estimate},
            {"lists": lists, "what": "upper end of the 95 % interval", "value": interval.high},
            {"lists": lists, "what": "certified: at most", "value": min(1.0, certified.bound)},
        ]
    order = ["certified: at most", "upper end of the 95 % interval", "measured gap"]
    chart = (
        alt.Chart(_frame(rows))
        .mark_line(point={"size": 60}, strokeWidth=2.5)
        .encode(
            x=alt.X("lists:Q", title="lists"),
            y=alt.Y("value:Q", title=f"gap of the top {K}", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("what:N", sort=order, scale=alt.Scale(range=[ORANGE, BLUE, GREEN]), title=None),
        )
        .properties(width=480, height=230)
    )
    return chart.to_dict(), "er.interval and er.bounds.certified of dp@5 on the first lists of German Credit by age"


CHARTS: dict[str, Callable[[], Made]] = {
    "tradeoff": trade_off,
    "contrast": contrast,
    "path": path,
    "amortised": amortised,
    "noise": noise,
    "promises": promises,
}
