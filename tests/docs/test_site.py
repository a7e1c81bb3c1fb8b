"""The built site as files: links, anchors and assets are there, nothing comes from elsewhere, three clicks do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from doc_blocks import ROOT

pytestmark = pytest.mark.site
SITE = ROOT / "docs" / "_build" / "site"
# What somebody new looks for, and a sentence of the page that has it.
SOUGHT = {
    "how to audit a CSV": ("howto/audit-a-csv.html", "evenrank audit log.csv"),
    "how to make LightGBM fair": ("howto/fair-lightgbm.html", "FairLGBMRanker"),
    "what γ and Γ are": ("explanation/gamma.html", "γ is a rate. Γ is the gap between rates."),
    "how to export to OpenSearch": ("howto/opensearch.html", "--to opensearch"),
    "how to cite": ("cite.html", "2102.05996"),
}


@dataclass
class Page(HTMLParser):
    path: Path
    links: list[str] = field(default_factory=list)
    assets: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag in ("img", "script", "source") and given.get("src"):
            self.assets.append(str(given["src"]))
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.assets.append(str(given["href"]))

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def page(path: Path) -> Page:
    return Page(path)


def _there(path: Path, target: str) -> Path:
    return (path.parent / unquote(urlsplit(target).path)).resolve() if urlsplit(target).path else path


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built; run `make docs`")


def test_every_link_anchor_and_asset_is_there() -> None:
    wrong = []
    files = [path for path in SITE.rglob("*.html") if "demo" not in path.parts]
    assert len(files) > 100
    for path in files:
        for target in page(path).links + page(path).assets:
            if urlsplit(target).scheme:
                continue
            there, anchor = _there(path, target), unquote(urlsplit(target).fragment)
            known = not anchor or there.suffix != ".html" or "demo" in there.parts or anchor in page(there).ids
            if not there.exists() or not known:
                wrong.append(f"{path.relative_to(SITE)}: {target}")
    assert not wrong, wrong[:20]


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in SITE.rglob("*.html"):
        assert not [asset for asset in page(path).assets if urlsplit(asset).scheme in ("http", "https")], path
    for path in SITE.rglob("*.css"):
        assert "url(http" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("what", SOUGHT)
def test_three_clicks_from_the_front_page(what: str) -> None:
    name, sentence = SOUGHT[what]
    goal, clicks, front = (SITE / name).resolve(), {SITE / "index.html": 0}, deque([SITE / "index.html"])
    while front and goal not in clicks:
        here = front.popleft()
        for target in page(here).links:
            there = _there(here, target)
            if not urlsplit(target).scheme and there.suffix == ".html" and there.exists() and there not in clicks:
                clicks[there] = clicks[here] + 1
                front.append(there)
    assert clicks[goal] <= 3
    assert sentence in " ".join(page(goal).text.split())


def test_the_live_pages_are_linked_from_the_front() -> None:
    links = page(SITE / "index.html").links
    for name in ("demo/report.html", "demo/audit.html"):
        assert name in links
        assert (SITE / name).stat().st_size > 40_000


def test_the_notebooks_ran() -> None:
    engineer, auditor = (page(SITE / "notebooks" / f"{name}.html").text for name in ("engineer", "auditor"))
    assert "top-10 lists that would differ: {10: 0}" in engineer
    assert "changed" in engineer
    assert "{'pooled': 'uneven', 'within_query': 'uneven'}" in auditor


def test_the_reference_has_signatures_and_types() -> None:
    text = " ".join(page(SITE / "generated" / "api" / "FairLinearRanker.html").text.split())
    assert "alpha: float" in text
    assert "max_violation" in text
    assert "sensitive_features" in text
    assert "--fail-over" in page(SITE / "generated" / "cli" / "audit.html").text


def test_benchmarks_have_dates_and_commits() -> None:
    text = page(SITE / "generated" / "benchmarks.html").text
    assert "commit" in text
    assert "2026-" in text
