"""The documentation site in a real browser, opened from disk: it fits, searches, has no barrier, fetches nothing."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.site
SITE = Path(__file__).parents[2] / "docs" / "_build" / "site"
ARTEFACTS = Path(__file__).parent / "artefacts"
WIDTHS, THEMES = (360, 1440), ("light", "dark")
PAGES = (
    "index.html",
    "start/engineer.html",
    "start/auditor.html",
    "start/researcher.html",
    "howto/audit-a-csv.html",
    "explanation/gamma.html",
    "explanation/moments.html",
    "notebooks/engineer.html",
    "notebooks/auditor.html",
    "generated/api/index.html",
    "generated/api/FairLinearRanker.html",
    "generated/cli/audit.html",
    "generated/schemas.html",
    "generated/benchmarks.html",
    "generated/architecture.html",
    "comparison.html",
    "search.html",
)
FOUND = {
    "equal opportunity": "explanation/gamma.html",
    "FairLGBMRanker": "generated/api/module-lightgbm.html",
    "max_violation": "howto/fair-lightgbm.html",
}


@pytest.fixture(params=[(width, theme) for width in WIDTHS for theme in THEMES], ids=lambda one: f"{one[0]}-{one[1]}")
def opened(browser, request):
    """A page of the browser in one width and theme, which may read files only and must not complain."""
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built; run `make docs`")
    width, theme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda sent: said.append(sent.url) if not sent.url.startswith(("file:", "data:")) else None)
    page.said = said
    yield page
    context.close()


def test_it_fits_and_is_kept_for_looking_at(opened):
    width = opened.viewport_size["width"]
    theme = "dark" if opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    ARTEFACTS.mkdir(exist_ok=True)
    for name in PAGES:
        opened.goto((SITE / name).as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") <= width, name
        paper = opened.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (sum(paper[:3]) < 3 * 128) == (theme == "dark"), name
        kept = f"site-{name.removesuffix('.html').replace('/', '_')}-{width}-{theme}.png"
        opened.screenshot(path=ARTEFACTS / kept, full_page=True)
    assert opened.said == []


def test_no_serious_barrier(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="run `make test-docs`")
    grave = {}
    for name in PAGES:
        opened.goto((SITE / name).as_uri())
        for one in axe.Axe().run(opened).response["violations"]:
            if one["impact"] in ("serious", "critical"):
                grave[f"{name} {one['id']}"] = [(node["target"], node["failureSummary"]) for node in one["nodes"][:2]]
    assert grave == {}


def test_search_finds(browser):
    context = browser.new_context()
    page = context.new_page()
    for words, wanted in FOUND.items():
        page.goto((SITE / "search.html").as_uri() + f"?q={quote(words)}")
        page.wait_for_selector("#search-results ul.search li", timeout=20_000)
        page.wait_for_timeout(500)
        links = page.eval_on_selector_all("#search-results ul.search li a", "all => all.map(one => one.href)")
        assert any(wanted in link for link in links), (words, links[:10])
    context.close()


def test_the_menu_opens_on_a_phone_and_the_theme_can_be_changed(browser):
    context = browser.new_context(viewport={"width": 360, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.goto((SITE / "index.html").as_uri())
    page.click(".nav-overlay-icon >> visible=true")
    page.wait_for_timeout(400)
    assert page.is_visible(".sidebar-tree a")
    page.keyboard.press("Escape")
    page.goto((SITE / "index.html").as_uri())
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):
        page.click(".theme-toggle >> visible=true")
    assert page.evaluate("document.body.dataset.theme") in ("light", "dark")
    page.click(".theme-toggle >> visible=true")
    colours = {before, page.evaluate("getComputedStyle(document.body).backgroundColor")}
    assert colours
    context.close()
