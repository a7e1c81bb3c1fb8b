"""The report in a real browser: it opens from disk, moves with the slider, and takes no orders from its text."""

from __future__ import annotations

import math

import pytest

import evenrank as er
from pages import HOSTILE, small_sweep

pytestmark = pytest.mark.browser
TEXT = HOSTILE.replace("{", "").replace("}", "")


def three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def chosen(data, *, grouping=0, method=0, notion=1, k=1, quality=0):
    own = data["settings"][grouping][method][notion][k]
    return own, data["shared"][own["shared"]], own["best"][quality]


def test_it_opens_from_disk_at_the_best_free_strength(visit, demo):
    page = visit(demo).ready()
    data = page.data
    assert demo.stat().st_size < 2_000_000
    k = data["start"]["k"]
    own, _, best = chosen(data, k=k)
    assert page.text("h1") == "How evenly can credit applicants be ranked?"
    assert page.text("#answer") == own["story"][0][0]
    assert page.page.input_value("#strength") == str(best)
    assert page.text("#strength-value") == f"{data['methods'][0]['grid'][best]:.3g}"
    for chart in ("tradeoff", "rates", "relevant"):
        assert page.page.locator(f"#{chart} svg").count() == 1
        assert page.page.locator(f"#{chart} svg path").count() > 5
    assert page.page.is_visible("#method-label")  # the demo compares three
    assert page.page.is_visible("#notion-label")


def test_one_method_leaves_nothing_to_choose(visit, tmp_path):
    (tmp_path / "one.html").write_text(er.report_page(small_sweep()), encoding="utf-8")
    page = visit(tmp_path / "one.html").ready()
    assert page.page.is_hidden("#method-label")


def test_the_slider_moves_every_number_to_those_in_the_data(visit, small):
    page = visit(small).ready()
    data = page.data
    groups = data["groups"][0]
    k = data["ks"][data["start"]["k"]]
    own, shared, _ = chosen(data)
    for place in range(4):
        page.slide(place)
        gap, error = own["violation"][place], own["error"][place]
        now = page.text("#now")
        assert f"Gap {three(gap)} ± {three(error)}" in now
        assert f"NDCG@{k} {three(shared['quality'][0][place])} ± {three(shared['error'][0][place])}" in now
        worse = own["worse"][0][place] == "1"
        verdict = "significantly worse" if worse else "no mitigation" if place == 0 else "not significantly worse"
        assert now.endswith(f"· {verdict}")
        table = {row[0]: row[1:] for row in page.rows("#numbers")}
        assert table["gap"][:2] == [three(own["violation"][0]), three(gap)]
        assert table[f"P@{k}"][:2] == [three(shared["quality"][1][0]), three(shared["quality"][1][place])]
        for code, group in enumerate(groups):
            rates = shared["rates"][code]
            assert table[f"{group} in top {k}"][:2] == [f"{100 * rates[0]:.1f}%", f"{100 * rates[place]:.1f}%"]
        ratio = min(rates[place] for rates in shared["rates"]) / max(rates[place] for rates in shared["rates"])
        assert table["four-fifths ratio"][1] == f"{ratio:.2f}"
        assert three(gap) in page.text("#interval")
        strength = f"{data['methods'][0]['grid'][place]:.3g}"
        assert page.page.get_attribute("#strength", "aria-valuetext") == f"strength {strength}"
        assert three(gap) in (page.page.get_attribute("#tradeoff", "aria-label") or "")
        marked = page.page.locator("#every tbody tr.here th").all_text_contents()
        assert marked == [strength]


def drawn_at(page) -> tuple[float, float]:
    """Where the chosen point of the trade-off stands on the screen."""
    box = page.page.locator("#tradeoff svg .mark-symbol.role-mark").last.locator("path").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_chosen_point_moves_in_the_chart(visit, small):
    page = visit(small).ready()
    own, shared, _ = chosen(page.data)
    places = []
    for place in (0, 3):
        page.slide(place)
        page.page.wait_for_timeout(100)
        places.append(drawn_at(page))
    right = own["violation"][3] - own["violation"][0]
    up = shared["quality"][0][3] - shared["quality"][0][0]
    assert (places[1][0] - places[0][0]) * right > 0
    assert (places[1][1] - places[0][1]) * up < 0  # screens count downwards


def test_a_click_on_a_point_chooses_it(visit, small):
    page = visit(small).ready()
    data = page.data
    page.page.locator("#tradeoff").scroll_into_view_if_needed()
    dots = page.page.locator("#tradeoff svg .mark-symbol.role-mark").first.locator("path").all()
    # The points' layer has the other methods first.
    points = [(method, i) for method in (1, 2, 0) for i in range(len(data["methods"][method]["grid"]))]
    boxes = [dot.bounding_box() for dot in dots]
    at = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    assert len(at) == len(points)

    def alone(number: int) -> float:
        return min(math.dist(at[number], other) for place, other in enumerate(at) if place != number)

    number = max(range(len(at)), key=alone)
    page.page.mouse.click(*at[number])
    method, i = points[number]
    assert page.page.input_value("#method") == str(method)
    assert page.page.input_value("#strength") == str(i)


def test_the_selectors_change_what_is_shown(visit, small):
    page = visit(small).ready()
    data = page.data
    for grouping in range(2):
        for method in range(3):
            for notion in range(3):
                for k in range(2):
                    for quality in range(2):
                        page.choose(grouping=grouping, method=method, notion=notion, k=k, quality=quality)
                        where = {"grouping": grouping, "method": method, "notion": notion, "k": k, "quality": quality}
                        own, shared, _ = chosen(data, **where)
                        assert page.text("#answer") == own["story"][quality][0]
                        assert page.text("#further") == own["story"][quality][6]
                        place = int(page.page.input_value("#strength"))
                        assert f"Gap {three(own['violation'][place])}" in page.text("#now")
                        name = f"{['NDCG', 'P'][quality]}@{data['ks'][k]}"
                        assert f"{name} {three(shared['quality'][quality][place])}" in page.text("#now")
                        lines = page.rows("#every")
                        assert [row[2].split(" ")[0] for row in lines] == [three(v) for v in own["violation"]]
                        here = page.page.locator(".summary [data-quality]:not([hidden]) tr.here").all_text_contents()
                        assert len(here) == 1
                        assert data["notions"][notion]["name"] in here[0]
                        assert data["methods"][method]["name"] in here[0]


def test_a_change_of_method_goes_to_its_best_free_strength(visit, small):
    page = visit(small).ready()
    data = page.data
    page.slide(0)
    page.choose(method=2)
    _, _, best = chosen(data, method=2)
    assert page.page.input_value("#strength") == str(best)
    assert page.page.get_attribute("#strength", "max") == str(len(data["methods"][2]["grid"]) - 1)
    other = next(i for i in range(len(data["methods"][2]["grid"])) if i != best)
    page.slide(other)
    page.choose(notion=0)  # whoever left the best strength stays where they are
    assert page.page.input_value("#strength") == str(other)


def test_the_buttons_go_to_none_and_to_the_best_free_strength(visit, demo):
    page = visit(demo).ready()
    best = chosen(page.data, k=page.data["start"]["k"])[2]
    assert best > 0
    assert page.page.is_disabled("#to-best")
    page.page.click("#to-none")
    assert page.text("#strength-value") == "0"
    assert page.page.is_disabled("#to-none")
    page.page.click("#to-best")
    assert page.page.input_value("#strength") == str(best)


def test_the_examples_are_the_lists_of_the_data(visit, small):
    page = visit(small).ready()
    data = page.data
    k = data["ks"][1]
    page.slide(3)
    own, _, _ = chosen(data)
    queries = {query["title"]: number for number, query in enumerate(data["examples"])}
    seen = []
    while True:
        for card in page.page.locator(".query").all():
            title = card.locator("h3").inner_text()
            seen.append(title)
            number = queries[title]
            names = {item[0]: item[1] for item in data["examples"][number]["items"]}
            changes = [run.split(":") for run in data["tops"][own["tops"]][number].split(";")]
            before = changes[0][1]
            after = [items for start, items in changes if int(start) <= 3][-1]
            before, after = ([names[int(item)] for item in items.split(",")][:k] for items in (before, after))
            lists = card.locator("ol").all()
            assert lists[0].locator(".title").all_text_contents() == before
            assert lists[1].locator(".title").all_text_contents() == after
            assert lists[0].locator("li.out .title").all_text_contents() == [one for one in before if one not in after]
            assert lists[1].locator("li.in .title").all_text_contents() == [one for one in after if one not in before]
        if page.page.is_disabled("#following"):
            break
        page.page.click("#following")
    assert sorted(seen) == sorted(queries)


@pytest.mark.parametrize("order", ["lost", "gained"])
def test_worst_and_best_examples_come_first(visit, small, order):
    page = visit(small).ready()
    page.slide(3)
    page.page.select_option("#order", order)
    gains = []
    while True:
        for text in page.page.locator(".query > p").all_text_contents():
            before, after = text.rsplit(": ", 1)[1].rstrip(".").split(" → ")
            gains.append(int(after) - int(before))
        if page.page.is_disabled("#following"):
            break
        page.page.click("#following")
    assert gains == sorted(gains, reverse=order == "gained")
    assert len(set(gains)) > 1


def test_text_from_data_stays_text(visit, hostile):
    page = visit(hostile).ready()
    for place in (0, 3):
        page.slide(place)
    page.choose(grouping=0, method=2, notion=0)
    page.page.click("#following")
    assert page.page.title() == " ".join(TEXT.split())
    assert page.text("h1") == " ".join(TEXT.split())
    assert page.page.locator("img").count() == 0
    assert page.page.locator("script").count() == 4
    assert TEXT in page.page.locator("#rates-legend li").first.text_content()
    assert "<img src=x onerror=" in page.page.locator(".query h3").first.text_content()
    assert page.page.locator(".lists .title").first.text_content().count("<img") == 1
    # The tooltip is made by the chart library: it has to keep text as text, too.
    page.page.locator("#rates").scroll_into_view_if_needed()
    dot = page.page.locator("#rates svg .mark-symbol path").first.bounding_box()
    page.page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    page.page.wait_for_selector("#vg-tooltip-element.visible")
    assert "<img" in page.text("#vg-tooltip-element")
    assert page.page.locator("img").count() == 0


def test_injected_markup_could_do_nothing(visit, small):
    """The last line of defence: an inline handler or script that got in would not run, and nothing is fetched."""
    page = visit(small).ready()
    page.page.evaluate(
        """() => {
            const made = document.createElement('div');
            made.innerHTML = "<img src='data:,' onerror=\\"document.title='owned'\\">";
            document.body.append(made);
            const script = document.createElement('script');
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
        }"""
    )
    page.page.wait_for_timeout(200)
    assert page.page.title() == "Small"
    assert page.said
    assert all("Content Security Policy" in text for text in page.said)
    page.said.clear()


def focused(page) -> str:
    return str(page.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))


def test_the_keyboard_reaches_everything(visit, small):
    page = visit(small).ready()
    order = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        name = focused(page)
        if order and (name == order[0] or page.page.evaluate("document.activeElement === document.body")):
            break
        order.append(name)
        ring = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none"
    wanted = ["grouping", "notion", "k", "method", "quality", "strength", "to-none", "order", "following"]
    assert [name for name in order if name in wanted] == wanted
    assert {"Every strength, in numbers", "The rates, in numbers"} <= set(order)


def test_the_keyboard_moves_the_slider_and_opens_the_tables(visit, small):
    page = visit(small).ready()
    own, _, _ = chosen(page.data)
    page.page.focus("#strength")
    page.page.keyboard.press("Home")
    assert page.text("#strength-value") == "0"
    page.page.keyboard.press("ArrowRight")
    assert f"Gap {three(own['violation'][1])}" in page.text("#now")
    page.page.keyboard.press("End")
    assert f"Gap {three(own['violation'][3])}" in page.text("#now")
    assert page.page.is_hidden("#every")
    page.page.locator("summary").first.focus()
    page.page.keyboard.press("Enter")
    assert page.page.is_visible("#every")


def test_without_scripts_the_answer_and_the_tables_are_there(browser, demo):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(demo.as_uri())
    assert "can fall" in page.inner_text("#answer")
    assert page.locator(".summary tbody tr:visible").count() == 27
    assert "Scripts are switched off" in page.inner_text("header")
    context.close()
