"""`report.html`: one self-contained file from a sweep. All text from data is escaped."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from evenrank.experiment.curves import Curve
from evenrank.experiment.trials import Sweep


def render(sweep: Sweep, *, title: str, subtitle: str, made: str) -> str:
    """The page as text; it needs no network to open."""
    import vl_convert

    from evenrank.page import charts

    curves = [
        sweep.curve(notion, k, method=method) for method in sweep.methods for notion in sweep.notions for k in sweep.ks
    ]
    template = Template(files("evenrank.page").joinpath("report.html").read_text(encoding="utf-8"))
    described = {"tradeoff": charts.tradeoff(sweep), "strength": charts.against_strength(sweep)}
    return template.substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        made=escape(made),
        answers="\n".join(f"<li>{escape(answer(sweep.curve(notion, sweep.ks[-1])))}</li>" for notion in sweep.notions),
        summary=_summary(curves, several_methods=len(sweep.methods) > 1),
        tables="\n".join(_every_strength(curve) for curve in curves),
        charts=_embedded(described),
        runtime=vl_convert.javascript_bundle(),  # type: ignore[call-arg]
    )


def answer(curve: Curve) -> str:
    """What comes free, in one sentence."""
    name = curve.notion.replace("_", " ").capitalize()
    k = curve.violation_name.rpartition("@")[2]
    if np.isnan(curve.violation[0]):
        return f"{name}: the gap at {k} is not defined; every fold lacks items of a group."
    if curve.best == 0 or not curve.max_reduction > 0:
        return f"{name}: the gap at {k} is {curve.violation[0]:.3f}; no strength lowers it without a significant loss."
    before, after = curve.violation[0], curve.violation[curve.best]
    return (
        f"{name}: the gap at {k} can fall {curve.max_reduction:.0%} ({before:.3f} → {after:.3f}) "
        f"with no significant loss of {curve.quality_name.upper()} "
        f"({curve.quality[0]:.3f} → {curve.quality[curve.best]:.3f}), at strength {curve.strengths[curve.best]:.3g}."
    )


def with_error(value: float, error: float) -> str:
    """A mean and its standard error; what is not defined is left out."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if np.isnan(error) else f"{value:.3f} ± {error:.3f}"


def percent(share: float, sign: str = "") -> str:
    """Without a minus before 0."""
    return "–" if np.isnan(share) else f"{round(share, 2) + 0.0:{sign}.0%}"


def _summary(curves: list[Curve], *, several_methods: bool) -> str:
    head = ["notion", *(["method"] if several_methods else []), "k", "violation at 0", "best", "falls by", "mean fall"]
    head += ["quality at 0", "at best", "strength"]
    body = []
    for curve in curves:
        i = curve.best
        cells = [curve.notion.replace("_", " "), *([curve.method] if several_methods else [])]
        cells += [
            curve.violation_name.rpartition("@")[2],
            with_error(curve.violation[0], curve.violation_error[0]),
            with_error(curve.violation[i], curve.violation_error[i]),
            percent(curve.max_reduction),
            percent(curve.mean_reduction),
            with_error(curve.quality[0], curve.quality_error[0]),
            with_error(curve.quality[i], curve.quality_error[i]),
            f"{curve.strengths[i]:.3g}",
        ]
        body.append((cells, False))
    return _table(head, body)


def _every_strength(curve: Curve) -> str:
    body = [
        (
            [
                f"{curve.strengths[i]:.3g}",
                with_error(curve.quality[i], curve.quality_error[i]),
                with_error(curve.violation[i], curve.violation_error[i]),
                percent(curve.reduction[i], "+"),
                "significantly worse" if curve.worse[i] else "",
            ],
            i == curve.best,
        )
        for i in range(len(curve.strengths))
    ]
    head = ["strength", curve.quality_name.upper(), curve.violation_name.replace("_", " "), "falls by", "quality"]
    name = f"{curve.notion.replace('_', ' ')}, k = {curve.violation_name.rpartition('@')[2]} ({curve.method})"
    return f"<details><summary>{escape(name)}</summary><div class='scroll'>{_table(head, body)}</div></details>"


def _table(head: list[str], body: list[tuple[list[str], bool]]) -> str:
    top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    lines = "".join(
        f"<tr{' class=best' if marked else ''}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells, marked in body
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def _embedded(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
