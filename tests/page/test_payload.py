"""What the page's script reads: the numbers of the sweep, the fronts, and the example lists, packed and whole again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import evenrank as er
from evenrank.experiment.about import Lists
from evenrank.experiment.trials import Sweep
from evenrank.methods.method import ANY
from evenrank.page.payload import DIGITS, payload, rates_at, runs, start


@pytest.fixture(scope="module")
def data(wide):
    return payload(wide)


def settings(wide):
    for g, grouping in enumerate(wide.groupings):
        for m, method in enumerate(wide.methods):
            for n, notion in enumerate(wide.notions):
                for j, k in enumerate(wide.ks):
                    yield (g, m, n, j), (grouping, method, notion, k)


def near(values):
    return pytest.approx(list(values), rel=10 ** (1 - DIGITS), nan_ok=True)


def test_every_curve_is_there(data, wide):
    for (g, m, n, j), (grouping, method, notion, k) in settings(wide):
        own = data["settings"][g][m][n][j]
        shared = data["shared"][own["shared"]]
        for q, quality in enumerate(("ndcg", "precision")):
            curve = wide.curve(notion, k, method=method, quality=quality, grouping=grouping)
            assert own["violation"] == near(curve.violation)
            assert own["error"] == near(curve.violation_error)
            assert shared["quality"][q] == near(curve.quality)
            assert shared["error"][q] == near(curve.quality_error)
            assert own["best"][q] == curve.best
            assert [mark == "1" for mark in own["worse"][q]] == curve.worse.tolist()
            assert data["methods"][m]["grid"] == near(curve.strengths)
        for name, column in (("rates", "selection_rate"), ("relevant", "selection_rate_relevant")):
            for code, rates in enumerate(shared[name]):
                expected = wide.along(f"{column}_{code}@{k}", notion, method=method, grouping=grouping)[1]
                assert rates == near(expected)


def test_what_notions_share_is_there_once(data, wide):
    deltr = wide.methods.index("deltr")
    assert len({own[0]["shared"] for own in data["settings"][0][deltr]}) == 1
    amortized = wide.methods.index("amortized")
    assert len({own[0]["shared"] for own in data["settings"][0][amortized]}) == 3
    assert len({json.dumps(one) for one in data["shared"]}) == len(data["shared"])


def test_the_front_is_what_no_point_of_any_method_beats(data, wide):
    for g, grouping in enumerate(wide.groupings):
        for n, notion in enumerate(wide.notions):
            for j, k in enumerate(wide.ks):
                for q, quality in enumerate(("ndcg", "precision")):
                    points = [
                        (m, i, curve.quality[i], curve.violation[i])
                        for m, method in enumerate(wide.methods)
                        for curve in [wide.curve(notion, k, method=method, quality=quality, grouping=grouping)]
                        for i in range(len(curve.strengths))
                    ]
                    kept = [
                        one
                        for place, one in enumerate(points)
                        if not any(
                            (two[2] >= one[2] and two[3] <= one[3] and (two[2] > one[2] or two[3] < one[3]))
                            or (two[2:] == one[2:] and other < place)
                            for other, two in enumerate(points)
                        )
                    ]
                    kept.sort(key=lambda one: one[3])
                    assert data["fronts"][g][n][j][q] == [[m, i] for m, i, _, _ in kept]


def unpacked(text: str, strengths: int) -> list[list[int]]:
    """A list a strength, from the strengths at which it changes."""
    changes = {
        int(run.partition(":")[0]): [int(i) for i in run.partition(":")[2].split(",")] for run in text.split(";")
    }
    out: list[list[int]] = []
    for i in range(strengths):
        out.append(changes[i] if i in changes else out[-1])
    return out


def test_the_lists_are_those_of_the_examples(data, wide):
    seen = 0
    for (g, m, n, j), (grouping, method, notion, k) in settings(wide):
        place = data["settings"][g][m][n][j]["tops"]
        trained = notion if method == "amortized" else ANY
        top = wide.examples.tops[method, grouping, trained, k if method == "fastar" else None]
        for number, text in enumerate(data["tops"][place]):
            lists = unpacked(text, top.shape[2])
            for i, items in enumerate(lists):
                assert items == [item for item in top[number, :, i].tolist() if item >= 0]
                shown = {item[0] for item in data["examples"][number]["items"]}
                assert set(items) <= shown
            seen += len({tuple(items) for items in lists}) > 1
    assert seen > 10


def test_a_query_that_was_never_tested_has_no_list():
    assert runs(np.full((3, 4), -1, np.int16)) == ""


def test_a_sweep_may_have_no_examples(sweep):
    held = payload(Sweep(sweep.columns, sweep.ks, sweep.about))
    assert held["examples"] == held["tops"] == []
    assert held["settings"][0][0][0][0]["tops"] is None


def test_items_and_counts_of_the_examples(data, wide):
    for query, shown in zip(wide.examples.queries, data["examples"], strict=True):
        for g, grouping in enumerate(wide.groupings):
            names = list(wide.about.shares_of(grouping))
            for code, name in enumerate(names):
                members = [item for item in query["items"] if item["groups"][grouping] == name]
                assert shown["counts"][g][0][code] == len(members)
                assert shown["counts"][g][1][code] == sum(item["relevant"] for item in members)
            for place, title, relevant, groups in shown["items"]:
                item = query["items"][place]
                assert title == item["title"]
                assert relevant == item["relevant"]
                assert names[groups[g]] == item["groups"][grouping]


def test_groups_in_the_order_of_their_numbers(wide, sweep):
    assert list(wide.about.shares_of("age")) == ["older", "young & new"]
    assert list(sweep.about.shares_of("group")) == ["25 or younger", "over 25"]
    assert sum(sweep.about.shares_of("group").values()) == pytest.approx(1)


def test_rates_that_were_not_noted_are_not_known(sweep):
    columns = {name: values for name, values in sweep.columns.items() if "relevant" not in name}
    older = Sweep(columns, sweep.ks, sweep.about, sweep.examples)
    found = rates_at(older, "selection_rate_relevant", "group", "amortized", "equal_opportunity", 5)
    assert found.shape == (2, 4)
    assert np.isnan(found).all()
    assert payload(older)["shared"][0]["relevant"] == [[None] * 4] * 2


@pytest.mark.parametrize(("median", "k"), [(25, 5), (4, 2), (7, 2), (8, 5), (None, 5)])
def test_the_page_begins_where_a_gap_shows_best(wide, median, k):
    about = replace(wide.about, lists=None if median is None else Lists(median, 30))
    first = start(Sweep(wide.columns, wide.ks, about))
    assert wide.ks[first["k"]] == k
    assert wide.notions[first["notion"]] == "equal_opportunity"


def test_intervals_need_folds(sweep):
    assert payload(sweep)["factor"] == pytest.approx(2.776, abs=1e-3)  # Student's t of 5 folds
    about = replace(sweep.about, spread="standard deviation")
    assert payload(Sweep(sweep.columns, sweep.ks, about))["factor"] is None


def test_the_page_knows_how_many_places_were_kept():
    data = er.datasets.german_credit("age", lists=10, items=30)
    result = er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3, 20], folds=2, examples=2)
    assert payload(result)["places"] == 10
    assert payload(er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3], folds=2, examples=0))["places"] == 0
