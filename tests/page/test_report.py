"""`render`: one HTML file that needs nothing else, says what the sweep says, and takes no orders from its text."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import DataWarning
from evenrank.experiment.trials import Sweep
from evenrank.page.report import answer, percent, render, with_error

HOSTILE = "</script ></script><!--<script><img src=x onerror=alert(1)> & \"double\" 'single' $title ${made} $ é"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=8000",
]
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """The page's elements, its text by element, and whether its tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.text.append((self.open[-1] if self.open else "", data))

    def texts(self, tag: str) -> list[str]:
        return [text for element, text in self.text if element == tag]

    @property
    def charts(self):
        return json.loads(max((text for text in self.texts("script") if text.startswith("{")), key=len))


def points(described: dict) -> list[dict]:
    """The rows that a chart, or all charts of a column of them, are drawn from."""
    found = [chart["data"]["values"] for chart in (described, *described.get("vconcat", [])) if "data" in chart]
    assert all(rows == found[0] for rows in found)
    return found[0]


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    data = er.datasets.german_credit("age", lists=25)
    return er.sweep(data, strengths=[0.02, 0.1, 1], ks=[1, 5], folds=er.datasets.german_credit_folds(data))


@pytest.fixture(scope="module")
def html(sweep) -> str:
    return render(sweep, title="How even?", subtitle="Some lists.", made="By a test.")


def test_one_file_that_loads_nothing(html):
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert len(html.encode()) < 2_000_000
    assert {tag for tag, _ in page.elements} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "ul", "li", "div", "script"),
        *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    }
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "data"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"@import|url\(", " ".join(page.texts("style")))
    assert [tag for tag, _ in page.elements].count("script") == 3


def test_text_is_in_its_place(html):
    page = Page(html)
    assert page.texts("title") == page.texts("h1") == ["How even?"]
    assert page.texts("p")[0] == "Some lists."
    assert page.texts("p")[-1] == "By a test."


def test_hostile_text_stays_text(sweep):
    names = dict(sweep.columns)
    names["method"] = [HOSTILE] * len(sweep)
    strange = Sweep(names, sweep.ks, sweep.about | {"groups": {HOSTILE: 1.0}})
    page = Page(render(strange, title=HOSTILE, subtitle=HOSTILE, made=HOSTILE))
    assert page.texts("title") == page.texts("h1") == [HOSTILE]
    assert HOSTILE in page.texts("p")
    assert any(HOSTILE in text for text in page.texts("summary"))
    assert "img" not in {tag for tag, _ in page.elements}
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert set(page.charts) == {"tradeoff", "strength"}


def test_hostile_labels_do_not_end_the_script_of_the_charts(sweep):
    columns = {name: [*values, *values] for name, values in sweep.columns.items()}
    columns["method"] = ["amortized"] * len(sweep) + [HOSTILE] * len(sweep)
    html = render(Sweep(columns, sweep.ks, sweep.about), title="t", subtitle="s", made="m")
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.elements}
    curves = {row["curve"] for row in points(page.charts["tradeoff"])}
    assert f"demographic parity ({HOSTILE})" in curves
    assert len(curves) == 6
    assert any(HOSTILE in text for text in page.texts("td"))
    # Whatever a parser makes of half a tag: there is none.
    assert "<" not in html.split('id="charts">')[1].split("</script>")[0]


def test_the_charts_have_the_numbers_of_the_sweep(html, sweep):
    charts = Page(html).charts
    for described in charts.values():
        rows = points(described)
        assert len(rows) == 3 * 2 * 4
        for notion in sweep.notions:
            for k in sweep.ks:
                curve = sweep.curve(notion, k)
                own = [row for row in rows if (row["curve"], row["k"]) == (notion.replace("_", " "), f"k = {k}")]
                assert [row["strength"] for row in own] == curve.strengths.tolist()
                assert [row["quality"] for row in own] == curve.quality.tolist()
                assert [row["violation"] for row in own] == curve.violation.tolist()
                low = curve.quality - curve.quality_error
                assert [row["quality low"] for row in own] == low.tolist()
                marked = [i for i, row in enumerate(own) if row["mark"] == "best"]
                assert marked == ([curve.best] if curve.best else [])


def test_the_tables_have_the_numbers_of_the_sweep(html, sweep):
    cells = Page(html).texts("td")
    for notion in sweep.notions:
        for k in sweep.ks:
            curve = sweep.curve(notion, k)
            for i in range(4):
                assert f"{curve.quality[i]:.3f} ± {curve.quality_error[i]:.3f}" in cells
                assert f"{curve.violation[i]:.3f} ± {curve.violation_error[i]:.3f}" in cells
    assert len(cells) == 6 * 9 + 6 * 4 * 5 - sum(  # an empty cell has no text
        int((~sweep.curve(notion, k).worse).sum()) for notion in sweep.notions for k in sweep.ks
    )


def test_the_answer_is_the_curve_in_words(html, sweep):
    items = Page(html).texts("li")
    assert items == [answer(sweep.curve(notion, 5)) for notion in sweep.notions]
    curve = sweep.curve("dp", 5)
    assert curve.max_reduction > 0
    assert f"can fall {curve.max_reduction:.0%} ({curve.violation[0]:.3f} → " in items[0]


def test_what_is_not_defined_is_left_out():
    data = er.datasets.german_credit("age", lists=10, items=10)
    # Every query has one group only, so that no fold can compare them.
    data = data.with_group(np.where(data.query_of_row % 2, "odd", "even"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = er.sweep(data, strengths=[0.1], ks=[3], folds=np.arange(10) % 2)
    html = render(result, title="t", subtitle="s", made="m")
    page = Page(html)
    assert not re.search(r"\bnan\b", " ".join(page.texts("td") + page.texts("li")), re.IGNORECASE)
    assert page.texts("li")[0] == "Demographic parity: the gap at 3 is not defined; every fold lacks items of a group."
    assert {row["violation"] for row in points(page.charts["tradeoff"])} == {None}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (with_error(0.12345, 0.01), "0.123 ± 0.010"),
        (with_error(0.5, math.nan), "0.500"),
        (with_error(math.nan, math.nan), "–"),
        (percent(0.256), "26%"),
        (percent(-0.001), "0%"),
        (percent(-0.001, "+"), "+0%"),
        (percent(-0.25, "+"), "-25%"),
        (percent(math.nan), "–"),
    ],
)
def test_numbers_as_written(shown, expected):
    assert shown == expected


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_draws_the_charts_whatever_the_text(sweep, tmp_path: Path):
    path = tmp_path / "report.html"
    path.write_text(render(sweep, title=HOSTILE, subtitle=HOSTILE, made=HOSTILE), encoding="utf-8")
    try:
        done = subprocess.run(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()],
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("chromium did not start within 60 s here")
    if "<h1>" not in done.stdout:
        pytest.skip(f"chromium did not open the page here: {done.stderr[-200:]!r}")
    drawn = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    assert drawn.count("<svg") == 2
    assert drawn.count('class="mark-line role-mark') >= 3 * 2  # a line a curve in every panel
    assert "<img" not in drawn
