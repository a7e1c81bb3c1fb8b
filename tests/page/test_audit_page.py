"""`audit_page`: the same frame for rankings without a model."""

from __future__ import annotations

import pytest

import evenrank as er
from pages import HOSTILE, Page


@pytest.fixture(scope="module")
def audit():
    data = er.datasets.german_credit("age", lists=25)
    return er.audit(data.to_caller(data.features[:, 0]), data, [1, 5], replicates=50)


def test_the_answer_comes_first_and_nothing_is_lost(audit):
    page = Page(er.audit_page([("Mine", audit)]))
    lead = next(text for _, attributes, text in page.text if attributes.get("class") == "lead")
    first, *rest = audit.conclusions()
    assert lead.lower() == first.removeprefix("In short: ").lower()
    assert lead[0].isupper()
    assert page.texts("li") == rest
    assert page.texts("h1") == page.texts("title") == ["Mine"]
    assert "script" not in page.tags


def test_several_audits_on_one_page(audit):
    page = Page(er.audit_page([("By age", audit), (HOSTILE, audit)]))
    assert page.texts("h1") == ["By age", HOSTILE]
    assert page.texts("h2").count("Words used here") == 1
    assert "img" not in page.tags


def test_in_a_notebook(audit):
    page = Page(audit._repr_html_())
    assert "body" not in page.tags
    assert "script" not in page.tags
    assert page.texts("h1") == ["Audit"]
