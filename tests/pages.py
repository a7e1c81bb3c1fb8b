"""Reading a page as a browser would, and the sweeps that the pages' tests are made of."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np

import evenrank as er
from evenrank.experiment.examples import Titles
from evenrank.experiment.trials import Sweep

HOSTILE = (
    "</script ></script><!--<script><img src=x onerror=\"document.title='owned'\"> & \"double\" 'single' {{ title }} "
    "{% include 'page.html' %} {# é"
)
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """The page's elements, its text by element, and whether its tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if data.strip():
            tag, attributes = self.open[-1] if self.open else ("", {})
            self.text.append((tag, attributes, data))

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def texts(self, tag: str) -> list[str]:
        return [text for element, _, text in self.text if element == tag]

    def by_id(self, name: str) -> str:
        return "".join(text for _, attributes, text in self.text if attributes.get("id") == name)

    def json(self, name: str) -> Any:
        return json.loads(self.by_id(name))


def small_sweep(**options: Any) -> Sweep:
    """One grouping and method of the bundled data."""
    data = er.datasets.german_credit("age", lists=25)
    asked = {"strengths": [0.02, 0.1, 1], "ks": [1, 5], "folds": er.datasets.german_credit_folds(data)}
    return er.sweep(data, **(asked | options))


def wide_sweep(names: tuple[str, ...] = ("young & new", "older"), title: str = "{}", **options: Any) -> Sweep:
    """Two groupings, three methods (one run for each k, on a grid of its own) and texts for queries and items."""
    data = er.datasets.german_credit("age", lists=25)
    sex = er.datasets.german_credit("sex", lists=25)
    age = data.with_group(data.to_caller(np.array(names, object)[data.group]))
    both = {"age": age, "sex": age.with_group(data.to_caller(np.array(sex.group_names, object)[sex.group]))}
    titles = Titles(
        {query: title.format(f"list {query}") for query in data.query_ids.tolist()},
        {item: title.format(f"applicant {item}") for item in data.item_ids.tolist()},
    )
    asked = {
        "methods": ["amortized", "deltr", "fastar"],
        "strengths": {"amortized": [0.02, 0.1, 1], "deltr": [0.1, 10], "fastar": [0.2, 0.4, 0.6, 0.8]},
        "ks": [2, 5],
        "folds": er.datasets.german_credit_folds(data),
        "examples": 10,
        "titles": titles,
    }
    return er.sweep(both, **(asked | options))
