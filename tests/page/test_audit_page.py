"""`audit_page`: the same frame for rankings without a model."""

from __future__ import annotations

import re

import numpy as np
import pytest

import evenrank as er
from evenrank.page.audit_forests import decomposition
from evenrank.page.forest import Mark, Scale
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
    sentences = page.texts("li")
    assert [sentence for sentence in rest if "`" not in sentence and sentence not in sentences] == []
    assert page.texts("h1") == page.texts("title") == ["Mine"]
    assert "script" not in page.tags


def test_verdicts_stand_under_the_answer(audit):
    page = Page(er.audit_page([("Mine", audit)]))
    figures = [text for _, attributes, text in page.text if attributes.get("class") == "figure"]
    assert figures[:2] == [audit.verdict[name].capitalize() for name in ("within_query", "pooled")]
    assert figures[2] == audit.four_fifths()[audit.main_k].capitalize()


def test_every_interval_is_drawn_beside_its_numbers(audit):
    page = Page(er.audit_page([("Mine", audit)]))
    cells = page.texts("td")
    for pair in audit.pairs:
        if pair.within_query.decidable:
            ends = sorted((abs(round(pair.within_query.low, 3)), abs(round(pair.within_query.high, 3))))
            assert any(
                sorted(abs(float(end)) for end in cell.split(" to ")) == ends
                for cell in cells
                if re.fullmatch(r"-?[0-9.]+ to -?[0-9.]+", cell)
            )
    for rate in audit.rates:
        if rate.stratum == "all rows":
            assert f"{rate.interval.low:.3f} to {rate.interval.high:.3f}" in cells
    places = [
        float(number)
        for _, attributes in page.elements
        if "band" in (attributes.get("class") or "")
        for number in re.findall(r"([0-9.]+)%", attributes["style"])
    ]
    assert places
    assert all(0 <= place <= 100 for place in places)


def test_the_parts_of_a_gap_are_drawn_where_they_end(audit):
    scale = Scale.around([-0.1, 0.3])
    (pair,) = [pair for pair in audit.pairs if (pair.measure, pair.k) == ("demographic_parity", audit.main_k)]
    bar = Mark.bar(scale, 0.2, -0.1, "mix")
    assert bar.left == pytest.approx(scale.place(-0.1))
    assert bar.left + bar.width == pytest.approx(scale.place(0.2))
    line = decomposition(audit).blocks[0].lines[0]
    ranker, mix, pooled = line.marks
    zero = decomposition(audit).rule
    assert min(abs(ranker.left - zero), abs(ranker.left + ranker.width - zero)) < 1e-9
    assert min(abs(mix.left - pooled.dot), abs(mix.left + mix.width - pooled.dot)) < 1e-9
    assert pair.ranker_part + pair.mix_part == pytest.approx(pair.pooled.difference, abs=1e-12)


def test_what_has_no_answer_is_listed_with_its_counts():
    group = ["a"] * 30 + ["b"] * 90
    qid = np.repeat(np.arange(20), [3] * 10 + [9] * 10)
    data = er.RankingData.from_arrays(np.zeros((120, 0)), np.zeros(120), group, qid)
    report = er.audit(-np.arange(120.0), data, [2], labelled=False)
    page = Page(er.audit_page([("Mine", report)]))
    assert "What cannot be told" in page.texts("h2")
    assert "Within queries: each list by itself" not in page.texts("h2")
    assert "30 and 90" in page.texts("td")
    assert "No list holds rows of both groups." in page.texts("td")


def test_names_are_text_wherever_they_stand():
    """Six groups with hostile names, so that every table and picture has some."""
    rng = np.random.default_rng(0)
    names = [f"{HOSTILE}{number}" for number in range(6)] + ["=1+1"]
    group = rng.permuted(np.tile(np.array(names, object), (60, 1)), axis=1).ravel()
    data = er.RankingData.from_arrays(np.zeros((420, 0)), np.zeros(420), group, np.repeat(np.arange(60), 7))
    report = er.audit(np.tile(-np.arange(7.0), 60), data, [1, 3], labelled=False)
    made = {"files": [{"name": HOSTILE, "sha256": "ab"}], "command": HOSTILE}
    page = Page(er.audit_page([(HOSTILE, report)], made=made))
    assert not {"script", "img"} & set(page.tags)
    assert "=1+1" not in page.texts("th")
    assert "'=1+1" in page.texts("th")


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
