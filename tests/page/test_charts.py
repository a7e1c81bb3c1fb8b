"""The charts' descriptions: static ones hold the sweep's numbers, live ones only name what the page fills."""

from __future__ import annotations

import json
import re

import pytest

from evenrank.page.charts import PALETTE, against_strength, curves, methods_by_notion, rows, tradeoff
from evenrank.page.live_charts import live_charts
from evenrank.page.skeleton import text_of


def records(described):
    """The rows that a chart is drawn from."""
    return [row for rows in described["datasets"].values() for row in rows]


@pytest.mark.parametrize("quality", ["ndcg", "precision"])
@pytest.mark.parametrize("chart", [tradeoff, against_strength])
def test_a_chart_holds_the_numbers_of_the_sweep(sweep, chart, quality):
    held = records(chart(sweep, quality=quality))
    assert len(held) == 3 * 2 * 4
    for notion in sweep.notions:
        for k in sweep.ks:
            curve = sweep.curve(notion, k, quality=quality)
            own = [row for row in held if (row["notion"], row["k"]) == (notion.replace("_", " "), f"k = {k}")]
            assert [row["strength"] for row in own] == curve.strengths.tolist()
            assert [row["quality"] for row in own] == curve.quality.tolist()
            assert [row["violation"] for row in own] == curve.violation.tolist()
            assert [row["quality low"] for row in own] == (curve.quality - curve.quality_error).tolist()
            assert [row["violation high"] for row in own] == (curve.violation + curve.violation_error).tolist()
            assert [row["front"] for row in own] == curve.front.tolist()
            assert [i for i, row in enumerate(own) if row["mark"] == "best"] == ([curve.best] if curve.best else [])


@pytest.mark.parametrize("chart", [tradeoff, against_strength])
def test_a_part_of_a_sweep(wide, chart):
    held = records(chart(wide, notion="eop", grouping="sex", methods=["fastar", "amortized"]))
    assert {row["notion"] for row in held} == {"equal opportunity"}
    assert list(dict.fromkeys(row["method"] for row in held)) == ["FA*IR", "amortized"]
    expected = wide.curve("eop", 5, method="fastar", grouping="sex").violation.tolist()
    assert [row["violation"] for row in held if (row["method"], row["k"]) == ("FA*IR", "k = 5")] == expected


def test_one_method_has_a_colour_a_notion_and_several_have_a_row_a_notion(sweep, wide):
    one, several = tradeoff(sweep), tradeoff(wide)
    assert "row" not in one["facet"]
    assert several["facet"]["row"]["field"] == "notion"
    domains = set(re.findall(r'"domain": (\[[^]]*\]), "range": (\[[^]]*\])', json.dumps(several)))
    assert domains == {('["amortized", "DELTR", "FA*IR"]', json.dumps(PALETTE[:3]))}


def test_strengths_have_an_axis_of_their_own_kind(wide):
    panels = against_strength(wide, notion="dp")["vconcat"]
    kinds = [json.dumps(panel).count('"symlog"') > 0 for panel in panels]
    assert kinds == [False, True, False]  # up to 1, up to 10, shares
    assert len(panels[0]["hconcat"]) == 2


def test_the_papers_figure_has_a_column_per_method_and_a_row_per_notion(wide):
    described = methods_by_notion(wide, 5, methods=["fastar", "amortized"], grouping="sex")
    lines = described["vconcat"]
    titles = [[panel["title"] for panel in line["hconcat"]] for line in lines]
    assert titles == [
        [f"{method}: {notion.replace('_', ' ')}" for method in ("FA*IR", "amortized")] for notion in wide.notions
    ]
    held = described["datasets"]
    assert len(held) == 2 * len(wide.notions)
    for n, notion in enumerate(wide.notions):
        for m, method in enumerate(("fastar", "amortized")):
            curve = wide.curve(notion, 5, method=method, grouping="sex")
            assert [row["violation"] for row in held[f"panel{2 * n + m}"]] == curve.violation.tolist()
    text = json.dumps(described)
    assert all(name in text for name in ("share p", "strength \\u03b1", "violation (left axis", "NDCG@5 (right axis)"))
    highest = max(row["violation high"] for rows in held.values() for row in rows)
    axes = {tuple(map(float, found.split(", "))) for found in re.findall(r'"domain": \[([\d., e-]+)\]', text)}
    assert len(axes) == 2  # all panels have the same two axes
    assert (0.0, highest) in axes


def test_without_an_error_the_bar_has_no_length(sweep):
    curve = curves(sweep, notion="dp")[0]
    bare = type(curve)(**{**curve.__dict__, "quality_error": curve.quality_error * float("nan")})
    row = rows([bare])[0]
    assert row["quality low"] == row["quality"] == row["quality high"]


def test_live_charts_name_what_the_script_fills():
    script = text_of("report.js")
    for name, described in live_charts().items():
        assert f'id="{name}"' in text_of("templates/report.html")
        assert "datasets" not in described
        for data in set(re.findall(r'"data": \{"name": "(\w+)"\}', json.dumps(described))):
            assert re.search(rf"\b{data}:", script)


def test_live_charts_take_their_colours_from_the_style_sheet():
    text = json.dumps(live_charts())
    assert not re.search("#[0-9a-fA-F]{6}", text)
    for name in set(re.findall(r"var\(--(\w+)\)", text)):
        assert text_of("look.css").count(f"--{name}:") == 2  # light and dark
