"""The pages' frame and templates: escaped text, scripts that alone may run, tables, licence notices."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest
from jinja2 import Environment, StrictUndefined, UndefinedError

from evenrank.page.notices import NOTICES, with_notices
from evenrank.page.skeleton import Row, Table, environment, page, piece, text_of
from pages import HOSTILE, Page

PACKAGE = files("evenrank.page")
TEMPLATES = sorted(file.name for file in PACKAGE.joinpath("templates").iterdir())
CODE = sorted(file.name for file in PACKAGE.iterdir() if file.name.endswith(".py"))


@pytest.fixture
def templates(monkeypatch):
    """Adds a template that exists for one test only."""
    from jinja2 import ChoiceLoader, DictLoader

    own: dict[str, str] = {}
    monkeypatch.setattr(environment(), "loader", ChoiceLoader([DictLoader(own), environment().loader]))
    return own


def policy(html: str) -> str:
    return next(a["content"] for tag, a in Page(html).elements if tag == "meta" and "http-equiv" in a)


def test_only_the_given_scripts_may_run():
    html = page("page.html", "t", scripts=["let a = 'é' < 1 && 2;", "let b;"], data={"x": {}})
    scripts = ("let a = 'é' < 1 && 2;", "let b;")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert re.findall("'sha256-([^']*)'", policy(html)) == digests
    assert "default-src 'none'" in policy(html)
    assert "'unsafe-inline'" not in policy(html).split("script-src")[1].split(";")[0]
    assert Page(html).texts("script") == ["{}", *scripts]


def test_pages_hold_nothing_that_a_terminal_obeys(templates):
    templates["own.html"] = (
        '{% extends "page.html" %}{% block body %}<p title="{{ text }}">{{ text }}</p>{% endblock %}'
    )
    html = page("own.html", "a\x1b[31m", text="b\x9b2J\u202e\x07<i>")
    assert {mark for mark in html if not mark.isprintable()} <= {"\n"}
    assert Page(html).texts("p")[0] == r"b\x9b2J\u202e\x07<i>"


def test_a_page_without_scripts_may_run_none():
    assert "script-src 'none'" in policy(page("page.html", "t"))


def test_titles_and_cells_are_text(templates):
    templates["own.html"] = (
        '{% extends "page.html" %}{% import "parts.html" as parts %}{% block body %}{{ parts.table(of) }}{% endblock %}'
    )
    rows = [Row([HOSTILE, HOSTILE], {"class": HOSTILE})]
    found = Page(page("own.html", HOSTILE, of=Table(HOSTILE, [HOSTILE], rows)))
    assert found.texts("title") == [HOSTILE]
    assert found.texts("th") == [HOSTILE, HOSTILE]
    assert found.texts("td") == [HOSTILE]
    attributes = [a for _, a in found.elements]
    assert {"aria-label": HOSTILE, "class": "scroll", "tabindex": "0", "role": "group"} in attributes
    assert {"class": HOSTILE} in attributes
    assert "img" not in found.tags


def test_data_cannot_end_the_script():
    data = {"a": HOSTILE, "b": None, "c": [1.5], HOSTILE: "<!--<script>"}
    html = page("page.html", "t", data={"x": data})
    assert not set("<>&'") & set(html.split('id="x">')[1].split("</script>")[0])
    assert Page(html).json("x") == json.loads(json.dumps(data))
    with pytest.raises(ValueError, match="JSON"):
        page("page.html", "t", data={"x": float("nan")})


def test_a_value_that_is_missing_is_an_error(templates):
    templates["own.html"] = "{{ nothing }}"
    with pytest.raises(UndefinedError, match="'nothing' is undefined"):
        piece("own.html")


def test_there_is_one_environment_and_it_escapes():
    assert environment() is environment()
    assert environment().autoescape is True
    assert environment().undefined is StrictUndefined


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_switches_escaping_off(name):
    text = text_of(f"templates/{name}")
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", text)
    Environment().parse(text)


@pytest.mark.parametrize("name", CODE)
def test_no_module_escapes_or_writes_markup_by_hand(name):
    tree = ast.parse(text_of(name))
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "escape" not in named
    assert name == "skeleton.py" or "Markup" not in named
    docs = {id(node.body[0].value) for node in ast.walk(tree) if _documented(node)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    assert not [node.value for node in constants if re.search(r"</?[a-z][^>]*>", str(node.value))]


def _documented(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return isinstance(node, kinds) and bool(node.body) and isinstance(node.body[0], ast.Expr)


def test_styles_fetch_nothing_and_a_piece_styles_nothing_else():
    for name in ("look.css", "page.css"):
        assert not re.search(r"@import|url\(", text_of(name))
    selectors = re.findall(r"(?m)^\s*([^@{}/\n]+?)\s*\{", text_of("look.css"))
    assert selectors
    assert all(part.strip().startswith(".evenrank") for one in selectors for part in one.split(","))
    shown = piece("piece.html")
    assert text_of("look.css") in shown
    assert text_of("page.css") not in shown


# ---------------------------------------------------------------------- notices


def test_the_charts_library_comes_with_its_notices():
    script = with_notices("let vega;")
    comment, code = script.split("*/")
    assert comment.startswith("/*!")  # tools that shorten scripts keep such a comment
    assert code.strip() == "let vega;"
    assert not re.search(r"</?script|<!--", comment, re.IGNORECASE)


def test_the_notices_name_the_packages_and_hold_their_licences():
    text = text_of(NOTICES)
    for name in ("vega-lite", "vega-embed", "vega-tooltip", "d3-geo-projection", "topojson-client", "lodash.debounce"):
        assert re.search(rf"^  (.*, )?{re.escape(name)}\b", text, re.MULTILINE)
    for sentence in (
        "Redistributions of source code must retain the above copyright notice",
        "Neither the name of the copyright holder nor the names of its contributors may be used",
        'THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"',
        "Redistributions in binary form must reproduce the above copyright notice",
        "Permission to use, copy, modify, and/or distribute this software",
        "Permission is hereby granted, free of charge",
        "Licensed under the Apache License, Version 2.0",
        "This is free and unencumbered software",
    ):
        assert sentence in " ".join(text.split())


def test_every_package_in_the_notices_has_its_copyright():
    listed = text_of(NOTICES).partition("1. BSD 3-Clause licence")[2]
    packages = re.findall(r"((?:^  \w.*\n)+)((?:^      .*\n)*)", listed, re.MULTILINE)
    holders = {names.split()[0].strip(","): lines for names, lines in packages if "Copyright" in lines}
    for name in ("vega", "vega-lite", "vega-embed", "vega-themes"):
        assert "University of Washington Interactive Data Lab" in holders[name]
    assert "Mike Bostock" in holders["d3-array"]
    assert len(holders) >= 20
