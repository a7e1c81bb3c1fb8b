"""`report_page`: one HTML file that needs nothing else, says what the sweep says, and takes no orders from its text."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import evenrank as er
from evenrank import bounds
from evenrank.errors import DataWarning
from evenrank.experiment.about import Blocks
from evenrank.experiment.trials import Sweep
from evenrank.page.payload import payload, start
from evenrank.page.report import report_page
from evenrank.page.words import answer
from evenrank.wording import percent, with_error
from pages import HOSTILE, Page, wide_sweep


@pytest.fixture(scope="module")
def html(sweep) -> str:
    return report_page(sweep, title="How even?", subtitle="Some lists.", made="By a test.")


@pytest.fixture(scope="module")
def wide_html(wide) -> str:
    return report_page(wide)


def test_one_file_that_loads_nothing(html):
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert len(html.encode()) < 2_000_000
    assert not {"img", "link", "iframe", "object", "embed", "form", "base", "a"} & set(page.tags)
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "data", "style"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert page.tags.count("script") == 4


def test_the_page_carries_the_licences_of_the_code_in_it(html):
    library = Page(html).texts("script")[2]
    assert "vegaEmbed" in library
    notices = library.split("*/")[0]
    assert "University of Washington Interactive Data Lab" in notices
    assert "Redistributions in binary form must reproduce the above copyright notice" in notices


def test_text_is_in_its_place(html):
    page = Page(html)
    assert page.texts("title") == page.texts("h1") == ["How even?"]
    assert page.texts("p")[0] == "Some lists."
    assert "By a test." in page.texts("td")


def test_the_answer_stands_without_the_script(html, sweep):
    page = Page(html)
    first = start(sweep)
    story = payload(sweep)["settings"][0][0][first["notion"]][first["k"]]["story"][0]
    ids = ["answer", "uneven-figure", "uneven", "no-loss-figure", "no-loss", "further-figure", "further"]
    assert [page.by_id(name) for name in ids] == story
    assert '"25 or younger"' in page.by_id("answer")


def test_the_summary_has_the_numbers_of_the_sweep(wide_html, wide):
    cells = Page(wide_html).texts("td")
    for curve in [*wide.curves(), *wide.curves("precision")]:
        for i in (0, curve.best):
            assert with_error(curve.quality[i], curve.quality_error[i]) in cells
            assert with_error(curve.violation[i], curve.violation_error[i]) in cells
        assert percent(curve.max_reduction) in cells
        assert percent(curve.mean_reduction) in cells
    rows = [a for tag, a in Page(wide_html).elements if tag == "tr" and "data-notion" in a]
    assert len(rows) == 2 * 2 * (3 * 3 * 2)  # groupings, qualities, settings
    shown = [a for tag, a in Page(wide_html).elements if tag == "div" and "data-quality" in a and "hidden" not in a]
    assert shown == [{"data-grouping": "0", "data-quality": "0"}]


def test_hostile_text_stays_text():
    strange = wide_sweep(names=(HOSTILE, f"z {HOSTILE}"), title=f"{{}} {HOSTILE.replace('{', '').replace('}', '')}")
    page = Page(report_page(strange, title=HOSTILE, subtitle=HOSTILE, made=HOSTILE))
    assert page.texts("title") == page.texts("h1") == [HOSTILE]
    assert HOSTILE in page.texts("p")
    assert HOSTILE in page.texts("td")
    assert HOSTILE in page.json("data")["groups"][0]
    assert page.json("data")["examples"][0]["title"].startswith("list ")
    assert "</script" in page.json("data")["examples"][0]["items"][0][1]
    assert "img" not in page.tags
    assert page.tags.count("script") == 4


def test_hostile_methods_stay_text(sweep):
    columns = {name: [*values, *values] for name, values in sweep.columns.items()}
    columns["method"] = ["amortized"] * len(sweep) + [HOSTILE] * len(sweep)
    html = report_page(Sweep(columns, sweep.ks, sweep.about))
    page = Page(html)
    assert "img" not in page.tags
    assert [method["name"] for method in page.json("data")["methods"]] == ["amortized", HOSTILE.replace("_", " ")]
    assert any(HOSTILE in text for text in page.texts("td"))
    # Whatever a parser makes of half a tag: there is none.
    assert "<" not in html.split('id="data">')[1].split("</script>")[0]


def test_what_is_not_defined_is_left_out():
    data = er.datasets.german_credit("age", lists=10, items=10)
    # Every query has one group only, so that no fold can compare them.
    data = data.with_group(np.where(data.query_of_row % 2, "odd", "even"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = er.sweep(data, strengths=[0.1], ks=[3], folds=np.arange(10) % 2)
    page = Page(report_page(result))
    assert not re.search(r"\bnan\b", " ".join(text for tag, _, text in page.text if tag != "script"), re.IGNORECASE)
    assert "cannot be weighed" in page.by_id("answer")
    assert page.json("data")["settings"][0][0][0][0]["violation"] == [None, None]


def test_a_run_that_is_not_finished_says_so(sweep):
    part = Sweep(sweep.columns, sweep.ks, replace(sweep.about, blocks=Blocks(3, 5)))
    assert any("not finished: 3 of 5 parts" in text for text in Page(report_page(part)).texts("p"))
    assert not any("not finished" in text for text in Page(report_page(sweep)).texts("p"))


def test_how_it_was_made(html, sweep):
    assert {"Data", "Groups", "Fingerprint", "Command", "Versions", "Training"} <= set(Page(html).texts("th"))
    cells = Page(html).texts("td")
    assert sweep.about.fingerprint in cells
    assert any(f"numpy {np.__version__}" in cell for cell in cells)


def test_bounds_are_those_of_the_library(html, sweep):
    notes = sweep.about.shares["group"]["equal_opportunity"]
    data = er.datasets.german_credit("age", lists=25)
    assert notes["theorem"] == bounds.min_share(data, "eop").estimate
    rarest = min(int(((data.group == code) & data.relevant).sum()) for code in range(2))
    assert notes["longest"] == pytest.approx(rarest / (25 * data.lengths.max()))
    told = " ".join(Page(html).texts("li"))
    needed = bounds.queries_needed("eop", 0.1, min_share=notes["longest"], groups=2)
    assert f"{needed:,} fresh queries" in told
    assert "says nothing here: with 25 queries its margin exceeds 1" in told


def test_queries_that_each_model_was_tested_on():
    data = er.datasets.german_credit("age", lists=30)
    options = {"notions": ["dp"], "strengths": [0.1], "ks": [5]}
    for repeats, number, between in (
        ({"folds": 3}, 10, "over 3 folds"),
        ({"seeds": 2, "test_share": 0.3}, 9, "between random splits of the queries"),
        ({"seeds": 2, "test": data}, 30, "between repeated trainings with different seeds"),
    ):
        result = er.sweep(data, **options, **repeats)
        assert result.about.tested_each == number
        page = Page(report_page(result))
        assert f"the {number} queries each model was tested on" in " ".join(page.texts("li"))
        assert between in " ".join(page.texts("p"))


def test_a_single_repeat_says_that_errors_are_not_known(sweep):
    data = er.datasets.german_credit("age", lists=30)
    once = er.sweep(data, notions=["dp"], strengths=[0.1], ks=[5], test=data)
    assert any("tested once only, so errors are not known" in text for text in Page(report_page(once)).texts("p"))
    assert not any("tested once only" in text for text in Page(report_page(sweep)).texts("p"))


def test_a_useful_bound_is_a_number(sweep):
    shares = {"group": {notion: {"theorem": 0.2, "longest": 0.2} for notion in sweep.notions}}
    own = 10**7 // 5
    about = replace(sweep.about, queries=10**9, tested=10**7, tested_each=own, shares=shares)
    told = " ".join(Page(report_page(Sweep(sweep.columns, sweep.ks, about))).texts("li"))
    certified = float(bounds.planned("eop", n_queries=own, min_share=0.2))
    assert f"the {own:,} queries each model was tested on certify the gap seen plus {certified:.3f}" in told
    length, vc = about.lists.longest, about.features + 1
    theorem = float(bounds.uniform("eop", n_queries=10**9, list_length=length, vc=vc, min_share=0.2))
    assert theorem < 1
    assert f"adds {theorem:.3f} to the gap seen in training" in told


def test_an_older_run_without_those_notes_still_has_a_page(sweep):
    kept = ("rows", "queries", "groups", "models", "seconds", "notions")
    about = {name: value for name, value in sweep.about.to_dict().items() if name in kept}
    page = Page(report_page(Sweep(sweep.columns, sweep.ks, about)))
    assert "No bound can be stated" in " ".join(page.texts("li"))


def test_a_sweep_shows_itself_in_a_notebook(sweep, wide):
    shown = Page(sweep._repr_html_())
    assert shown.texts("li") == [answer(sweep.curve(notion, 5)) for notion in sweep.notions]
    assert "script" not in shown.tags
    assert "svg" in shown.tags
    assert ("details", {"open": None}) in shown.elements
    assert ("details", {}) in Page(wide._repr_html_()).elements


def test_a_notebook_takes_no_orders_either(sweep):
    columns = dict(sweep.columns)
    columns["method"] = [HOSTILE] * len(sweep)
    other = {name: [*values, *sweep.columns[name]] for name, values in columns.items()}
    found = Page(Sweep(other, sweep.ks, sweep.about)._repr_html_())
    assert not {"img", "script"} & set(found.tags)


def test_a_sweep_as_a_page(sweep):
    assert Page(sweep.html()).texts("title") == ["How evenly can these items be ranked?"]
    assert Page(sweep.html("Mine", "Ours")).texts("title") == ["Mine"]


def test_names_of_groups_hold_no_codes_of_terminals():
    rng = np.random.default_rng(0)
    labels = np.array(["\x1b[31mred\x07", "blue"])[rng.integers(0, 2, 120)]
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    data = er.RankingData.from_arrays(X, y, labels, np.repeat(np.arange(12), 10))
    run = er.sweep(data, strengths=[0, 1], folds=2, ks=[3])
    page = report_page(run)
    assert "red" in page
    assert "\x1b" not in page
    assert "\x07" not in page


def test_names_that_begin_like_formulas_are_none_in_the_page_s_tables():
    """Tables are copied from the page into spreadsheets."""
    rng = np.random.default_rng(0)
    group, qid = np.tile(["=1+1", "@b", "-2"], 20), np.repeat(np.arange(10), 6)
    data = er.RankingData.from_arrays(rng.normal(size=(60, 2)), rng.integers(0, 2, 60), group, qid)
    grouped = {"+SUM(A1)": data, "plain": data.with_group(data.group % 2, ("x=y", "z"))}
    sweep = er.sweep(grouped, notions=["dp"], strengths=[0, 1], ks=[3], folds=2)
    held = payload(sweep)
    assert held["groupings"] == ["'+SUM(A1)", "plain"]
    assert sorted(held["groups"][0]) == ["'=1+1", "'@b", "-2"]
    assert held["groups"][1] == ["x=y", "z"]
    page = Page(report_page(sweep))
    cells = [text for tag in ("td", "th", "option") for text in page.texts(tag)]
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "@"))]


def test_further_measures_are_shown_where_they_were_asked_for(html):
    assert "Further measures" not in html
    data = er.datasets.german_credit("age", lists=30)

    def width(scores, rows):
        return float(np.ptp(scores))

    names = ["awrf@3", "ndkl@5(target=equal)", width]
    sweep = er.sweep(data, notions=["dp"], strengths=[0, 1.0], ks=[3, 5], folds=3, measures=names, examples=0)
    text = report_page(sweep)
    table = text[text.index('id="h-further-measures"') :].partition("</section>")[0]
    for name, k in (("awrf@3", 3), ("ndkl@5(target=equal)", 5), ("width", 5)):
        _, means, errors = sweep.along(name, "dp", method="amortized", grouping="group")
        best = sweep.curve("dp", k).best
        row = table[table.index(f'<th scope="row">{name}</th>') :].partition("</tr>")[0]
        assert [with_error(means[at], errors[at]) for at in (0, best)] == re.findall(r"<td>([^<]*)</td>", row)[-2:]
    assert "awrf@3: high is better; 1: the groups&#39; shares of exposure are the target&#39;s." in table
    assert "width:" not in table
