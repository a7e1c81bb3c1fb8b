"""How the pages look and feel: fit for every width and theme, for paper, for assistive technology; size and speed."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="run `make test-browser`")
ARTEFACTS = Path(__file__).parent / "artefacts"
WIDTHS, THEMES = (360, 1600), ("light", "dark")
GRAVE = ("serious", "critical")
LATENCY = """async (place) => {
    const slider = document.getElementById("strength");
    slider.value = String(place);
    const began = performance.now();
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    const worked = performance.now() - began;
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    return [worked, performance.now() - began];
}"""


@pytest.fixture(params=["demo", "large", "audit", "monitor"])
def path(request):
    return request.getfixturevalue(request.param)


def opened(visit, path, width, theme):
    page = visit(path, width, theme)
    return page if path.stem in ("audit", "monitor") else page.ready()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_and_is_kept_for_looking_at(visit, path, width, theme):
    page = opened(visit, path, width, theme)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert dark == (theme == "dark")
    assert (sum(paper) < 3 * 128) == dark
    ARTEFACTS.mkdir(exist_ok=True)
    page.page.wait_for_timeout(200)
    page.page.screenshot(path=ARTEFACTS / f"{path.stem}-{width}-{theme}.png", full_page=True)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_serious_barrier(visit, path, width, theme):
    page = opened(visit, path, width, theme)
    page.page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true })")
    found = axe.Axe().run(page.page).response["violations"]
    grave = {
        one["id"]: [(node["target"], node["failureSummary"]) for node in one["nodes"][:3]]
        for one in found
        if one["impact"] in GRAVE
    }
    assert grave == {}
    page.said.clear()  # axe asks for style sheets' text in ways that the page's policy refuses


def test_on_paper_it_is_light_and_without_controls(visit, demo):
    page = visit(demo, 760, "dark").ready()
    page.page.emulate_media(media="print", color_scheme="dark")
    assert page.page.is_hidden("#controls")
    assert "Shown: equal opportunity, top 5" in page.text("#state")
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ARTEFACTS.mkdir(exist_ok=True)
    page.page.screenshot(path=ARTEFACTS / "demo-paper.png", full_page=True)


def test_the_charts_follow_the_theme(visit, demo):
    page = visit(demo, 1200, "light").ready()
    colour = "getComputedStyle(document.querySelector('#tradeoff svg .role-axis-label text')).fill"
    light = page.page.evaluate(colour)
    page.page.emulate_media(color_scheme="dark")
    assert page.page.evaluate(colour) != light


def test_size_and_speed(visit, demo, large, capsys):
    """Figures to read; the limits are wide, for machines are busy."""
    lines = []
    for path, limit in ((demo, 2_000_000), (large, 5_000_000)):
        began = time.perf_counter()
        page = visit(path).ready()
        ready = time.perf_counter() - began
        places = int(page.page.get_attribute("#strength", "max"))
        moves = [page.page.evaluate(LATENCY, (7 * i) % places) for i in range(20)]
        worked, drawn = (statistics.median(column) for column in zip(*moves, strict=True))
        size = path.stat().st_size
        lines.append(
            f"{path.stem}: {size / 1e6:.2f} MB, ready after {ready:.2f} s, "
            f"a move of the slider {worked:.0f} ms of work, drawn after {drawn:.0f} ms (medians of 20)"
        )
        assert size < limit
        assert ready < 20
        assert drawn < 1000
    with capsys.disabled():
        print("\n" + "\n".join(lines))
