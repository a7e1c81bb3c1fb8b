"""The pages' frame: escaped text, scripts that alone may run, tables."""

from __future__ import annotations

import base64
import hashlib
import re

from evenrank.page.skeleton import page, piece, scrolled, table, text_of
from pages import HOSTILE, Page


def policy(html: str) -> str:
    return next(a["content"] for tag, a in Page(html).elements if tag == "meta" and "http-equiv" in a)


def test_only_the_given_scripts_may_run():
    html = page("t", "<main></main>", scripts=["let a = 'é';", "let b;"], data={"x": "{}"})
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in ("let a = 'é';", "let b;")]
    assert re.findall("'sha256-([^']*)'", policy(html)) == digests
    assert "default-src 'none'" in policy(html)
    assert "'unsafe-inline'" not in policy(html).split("script-src")[1].split(";")[0]
    assert Page(html).tags.count("script") == 3


def test_a_page_without_scripts_may_run_none():
    assert "script-src 'none'" in policy(page("t", ""))


def test_titles_and_cells_are_text():
    html = page(HOSTILE, scrolled(table([HOSTILE], [([HOSTILE, HOSTILE], " class='x'")]), HOSTILE))
    found = Page(html)
    assert found.texts("title") == [HOSTILE]
    assert found.texts("th") == [HOSTILE, HOSTILE]
    assert found.texts("td") == [HOSTILE]
    assert {"aria-label": HOSTILE, "class": "scroll", "tabindex": "0", "role": "group"} in [
        a for _, a in found.elements
    ]
    assert "img" not in found.tags


def test_styles_fetch_nothing_and_a_piece_styles_nothing_else():
    for name in ("look.css", "page.css"):
        assert not re.search(r"@import|url\(", text_of(name))
    selectors = re.findall(r"(?m)^\s*([^@{}/\n]+?)\s*\{", text_of("look.css"))
    assert selectors
    assert all(part.strip().startswith(".evenrank") for one in selectors for part in one.split(","))
    assert text_of("page.css") not in piece("<p>x</p>")
