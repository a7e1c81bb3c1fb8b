"""A real browser, pages to open in it, and what must hold of every visit: no error said, nothing fetched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.experiment.examples import Titles
from pages import HOSTILE, wide_sweep
from weekly import rows, taken

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing; run `make test-browser`")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed; run `make test-browser`, which says how to get one")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class Visit:
    """A page opened from disk, and what the browser said and fetched meanwhile."""

    def __init__(self, browser: Any, path: Path, width: int, theme: str) -> None:
        self.path = path
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.fetched: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.page.goto(path.as_uri())

    def ready(self) -> Visit:
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        return self

    @property
    def data(self) -> dict[str, Any]:
        """The numbers that the page holds."""
        found: dict[str, Any] = self.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
        return found

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def choose(self, **choices: int) -> None:
        for name, value in choices.items():
            self.page.select_option(f"#{name}", str(value))

    def slide(self, place: int) -> None:
        """As a hand does: the input event follows the value."""
        self.page.eval_on_selector(
            "#strength",
            "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true})) }",
            str(place),
        )

    def rows(self, table: str) -> list[list[str]]:
        """The cells of a table's body."""
        found: list[list[str]] = self.page.eval_on_selector_all(
            f"{table} tbody tr", "lines => lines.map(line => [...line.cells].map(cell => cell.textContent))"
        )
        return found


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def go(path: Path, width: int = 1200, theme: str = "light") -> Visit:
        visits.append(Visit(browser, path, width, theme))
        return visits[-1]

    yield go
    for one in visits:
        assert one.said == []
        assert one.fetched == [one.path.as_uri()]
        one.context.close()


def _written(folder: Path, name: str, html: str) -> Path:
    path = folder / f"{name}.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def demo(folder: Path) -> Path:
    """What `evenrank demo` writes."""
    from evenrank.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["demo", "--out", str(folder / "demo.html"), "--json"])
    assert ended.value.code == 0
    return folder / "demo.html"


@pytest.fixture(scope="session")
def small(folder: Path) -> Path:
    """Two groupings, three methods, few strengths."""
    return _written(folder, "small", er.report_page(wide_sweep(), title="Small"))


@pytest.fixture(scope="session")
def hostile(folder: Path) -> Path:
    """Markup wherever the data has text."""
    text = HOSTILE.replace("{", "").replace("}", "")
    made = wide_sweep(names=(text, f"z{text}"), title=f"{{}} {text}")
    return _written(folder, "hostile", er.report_page(made, title=text, subtitle=text, made=text))


@pytest.fixture(scope="session")
def large(folder: Path) -> Path:
    """3 notions × 5 k × 4 methods × 26 strengths (50 of FA*IR) × 3 groupings, with 100 example queries."""
    data = er.datasets.german_credit("age", lists=150, items=12)
    groupings = {"age": data}
    for name in ("sex", "sex+age"):
        other = er.datasets.german_credit(name, lists=150, items=12)
        groupings[name] = data.with_group(data.to_caller(np.array(other.group_names, object)[other.group]))
    long = "a title of ordinary length, as papers and job advertisements have, number {}"
    titles = Titles({}, {item: long.format(item) for item in data.item_ids.tolist()})
    made = er.sweep(
        groupings,
        methods=["amortized", "per_query", "deltr", "fastar"],
        ks=[1, 2, 3, 4, 5],
        solver="gd",
        folds=er.datasets.german_credit_folds(data),
        titles=titles,
        settings={name: {"max_iter": 200} for name in ("amortized", "per_query", "deltr", "fastar")},
    )
    return _written(folder, "large", er.report_page(made, title="Large"))


@pytest.fixture(scope="session")
def monitor(folder: Path) -> Path:
    """A gap that changes in the tenth week; names as hostile as they come."""
    frame = rows(14, 40, lean=[0.0] * 9 + [-2.0] * 5, groups=(HOSTILE, "women"))
    scores, data, times = taken(frame)
    return _written(folder, "monitor", er.monitor(scores, data, times, k=3).html("Watched rankings"))


@pytest.fixture(scope="session")
def audit(folder: Path) -> Path:
    data = er.datasets.german_credit("sex+age", lists=100)
    scores = er.FairLinearRanker(alpha=0.0).fit(data).predict(data)
    return _written(folder, "audit", er.audit(scores, data, [1, 5]).html("Audit of a credit ranking"))
