"""The controller: FairCo's published steps, a twin that recounts every list, convergence, restarts and bad input."""

from __future__ import annotations

import json
import runpy
from itertools import pairwise
from math import exp, log2, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import ConfigError, DataError
from golden import golden
from linear_oracles import random_data

Served = list[tuple[list[float], list[Any], list[float]]]


# ---------------------------------------------------------------------- FairCo as published


@golden("rerankers/fairco", "cases")
def test_fairco_step_by_step(case: dict[str, Any]) -> None:
    controller = er.FairController(value=case["kind"], gain=case["gain"])
    got = np.zeros(len(case["group"]))
    for step, expected in enumerate(case["rankings"]):
        relevance = case["relevance"][step] if isinstance(case["relevance"][0], list) else case["relevance"]
        order = controller.rank(relevance, case["group"])
        assert order.tolist() == expected
        gives = 1 / np.log2(np.arange(2, len(order) + 2))
        got[order] += gives * (np.array(relevance)[order] if case["kind"] == "impact" else 1)
    np.testing.assert_allclose(got, case["expected"]["cumulative"], rtol=1e-9)
    group = np.array(case["group"])
    tallies = dict(zip(controller.state()["groups"], controller.state()["got"][0][1:], strict=True))
    assert tallies == pytest.approx({label: got[group == label].sum() for label in set(case["group"])}, rel=1e-12)


# ---------------------------------------------------------------------- the twin


def spread(scores: list[float]) -> float:
    """From quartile to quartile, as a standard deviation of a normal distribution."""
    ordered = sorted(scores)
    n = len(ordered)
    quartiles = (ordered[n - 1 - n // 4] - ordered[n - 1 - 3 * n // 4]) / 1.349
    middle = ordered[n - 1 - n // 2]
    return quartiles or min((abs(score - middle) for score in scores if score != middle), default=1.0)


class Twin:
    """Keeps the lists and recounts all of them for each new one."""

    def __init__(self, notion: str, k: int, gain: float, value: str, memory: float | None, offsets: Any = None) -> None:
        self.notion, self.k, self.gain, self.value, self.memory = notion, k, gain, value, memory
        self.offsets = offsets or {}
        self.served: list[list[tuple[Any, float, int]]] = []

    def masses(self, chance: float) -> list[float]:
        return {"dp": [1.0], "eop": [chance], "eod": [1 - chance, chance]}[self.notion]

    def shift(self, label: Any) -> float:
        """In spreads: a tenth of the gain for each whole list that a group is short of, at most 3, over the strata.

        The tenth is of a threshold in the middle of the list, where a shift moves most items past it.
        """
        if label is None:
            return 0.0
        total = 0.0
        strata = len(self.masses(0.5))
        for stratum in range(strata):
            got: dict[Any, float] = {}
            size: dict[Any, float] = {}
            lists: dict[Any, float] = {}
            for age, one in enumerate(reversed(self.served)):
                counts = 1.0 if self.memory is None else exp(-age / self.memory)
                seen = set()
                for group, chance, place in one:
                    mass = self.masses(chance)[stratum]
                    gives = (1 if self.value == "topk" else 1 / log2(2 + place)) if place < self.k else 0
                    got[group] = got.get(group, 0) + counts * mass * gives
                    size[group] = size.get(group, 0) + counts * mass
                    seen |= {group} if mass > 0 else set()
                for group in seen:
                    lists[group] = lists.get(group, 0) + counts
            known = [group for group in size if group is not None]
            whole = sum(size[group] for group in known)
            if size.get(label, 0) > 0:
                mean = sum(got[group] for group in known) / whole
                push = (
                    0.1
                    * self.gain
                    / max(0.01, 4 * mean * (1 - mean))
                    * lists[label]
                    * (mean - got[label] / size[label])
                )
                total += max(-3.0, min(3.0, push)) / strata
        return total

    def rank(self, scores: list[float], groups: list[Any], chances: list[float]) -> list[int]:
        width = spread(scores)
        by_score = sorted(range(len(scores)), key=lambda i: -scores[i])
        value = [
            score + width * self.shift(label) + self.offsets.get(label, 0.0)
            for score, label in zip(scores, groups, strict=True)
        ]
        order = sorted(by_score, key=lambda i: -value[i])
        self.served.append([(groups[i], chances[i], place) for place, i in enumerate(order)])
        return order


def lists(seed: int, count: int = 30, labels: str = "abc", unknown: bool = True) -> Served:
    """Lists of 1 to 12 items, whose groups differ in their scores; not every list has every group."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        n = int(rng.integers(1, 13))
        code = rng.integers(0, len(labels), n)
        scores = (rng.normal(size=n) + 0.8 * code).tolist()
        groups = [None if unknown and rng.random() < 0.1 else labels[c] for c in code]
        out.append((scores, groups, rng.random(n).tolist()))
    return out


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
@pytest.mark.parametrize("value", ["topk", "exposure"])
@pytest.mark.parametrize(("memory", "offsets"), [(None, None), (7.0, {"a": 0.25})])
def test_orders_are_those_of_a_recount(notion: str, value: str, memory: float | None, offsets: Any) -> None:
    controller = er.FairController(notion, 3, 4.0, value, offsets, memory=memory)
    twin = Twin(notion, 3, 4.0, value, memory, offsets)
    moved = 0
    for scores, groups, chances in lists(1):
        order = controller.rank(scores, groups, None if notion == "dp" else chances).tolist()
        assert order == twin.rank(scores, groups, chances)
        moved += order != sorted(range(len(scores)), key=lambda i: -scores[i])
    assert moved > 5
    assert controller.served == 30


def test_impact_counts_relevance() -> None:
    controller = er.FairController("dp", 2, 0.0, "impact")
    controller.rank([3.0, 2.0, 1.0], ["a", "b", "b"], [0.5, 1.0, 0.2])
    state = controller.state()
    assert state["groups"] == ["a", "b"]
    assert state["got"][0] == pytest.approx([0, 0.5 / log2(2), 1.0 / log2(3)])
    assert state["mass"][0] == [0, 1, 2]


@given(seed=st.integers(0, 50), scale=st.sampled_from([2.0**-40, 0.5, 1.0, 2.0**60]), shift=st.sampled_from([0.0, 8.0]))
def test_no_order_depends_on_the_scale_of_the_scores(seed: int, scale: float, shift: float) -> None:
    one, two = er.FairController("dp", 3, 5.0), er.FairController("dp", 3, 5.0)
    for scores, groups, _ in lists(seed, 12):
        exact = [round(score * 64) / 64 for score in scores]
        order = one.rank(exact, groups)
        assert two.rank([scale * (score + shift) for score in exact], groups).tolist() == order.tolist()


@given(seed=st.integers(0, 50), gain=st.sampled_from([0.5, 3.0, 1000.0]))
def test_within_a_group_the_order_is_that_of_the_scores(seed: int, gain: float) -> None:
    controller = er.FairController("dp", 2, gain)
    for scores, groups, _ in lists(seed, 10):
        order = controller.rank(scores, groups).tolist()
        assert sorted(order) == list(range(len(scores)))
        for label in "abc":
            own = [scores[i] for i in order if groups[i] == label]
            assert all(better >= worse for better, worse in pairwise(own))


def test_a_sentinel_does_not_stretch_the_shift() -> None:
    controller = er.FairController("dp", 1, 10.0)
    for _ in range(20):
        order = controller.rank([1.0, 0.9, 0.8, 0.7, 0.6, -1e30], ["a", "b", "a", "b", "a", "b"])
        assert order[-1] == 5


# ---------------------------------------------------------------------- what it is for


def gap_of(orders: Any, k: int) -> float:
    """The gap of the top k over all lists, groups a and b."""
    got, size = {"a": 0, "b": 0}, {"a": 0, "b": 0}
    for order, groups in orders:
        for place, item in enumerate(order):
            size[groups[item]] += 1
            got[groups[item]] += place < k
    return abs(got["a"] / size["a"] - got["b"] / size["b"])


@pytest.mark.parametrize(
    ("length", "share", "count", "k"), [(5, 0.5, 400, 2), (50, 0.5, 200, 5), (1000, 0.5, 60, 5), (50, 0.02, 600, 5)]
)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_default_gain_holds_on_any_lists(length: int, share: float, count: int, k: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    controller, plain = er.FairController("dp", k), er.FairController("dp", k, 0.0)
    ours, before = [], []
    for _ in range(count):
        small = rng.random(length) < share
        scores = scale * (rng.normal(size=length) - 0.7 * small)
        groups = np.where(small, "b", "a").tolist()
        ours.append((controller.rank(scores, groups).tolist(), groups))
        before.append((plain.rank(scores, groups).tolist(), groups))
    assert gap_of(before, k) > 0.003
    assert gap_of(ours, k) < 0.25 * gap_of(before, k)


def test_a_start_that_was_fitted_closes_the_gap_from_the_first_list() -> None:
    data = random_data(0, n=1200, queries=120)
    first, later = data.take(np.arange(60)), data.take(np.arange(60, 120))
    own = [each.to_caller(np.asarray(each.features, float) @ [1.0, 1.0, 1.0] + each.group) for each in (first, later)]
    fitted = er.FairController("dp", 3).fit(own[0], first)
    assert set(fitted.start_) == {"a", "b"}
    assert fitted.start_["a"] > 0.1 > -0.1 > fitted.start_["b"]
    still = er.FairController("dp", 3, 1e-9, warm=fitted)  # no feedback to speak of
    plain = er.measure(own[1], later, "dp@3")["dp@3"]
    assert er.measure(still.rerank(own[1], later), later, "dp@3")["dp@3"] < 0.6 * plain
    eop = er.FairController("eop", 3).fit(own[0], first)
    order = eop.rerank(own[1], later)  # relevance from the scores
    assert er.measure(order, later, "eop@3")["eop@3"] < er.measure(own[1], later, "eop@3")["eop@3"]


def test_rerank_serves_the_lists_in_turn_and_never_sees_labels() -> None:
    data = random_data(1, n=200, queries=20, unknown=True)
    scores = data.to_caller(np.asarray(data.features, float).sum(axis=1))
    found = er.FairController("dp", 2).rerank(scores, data)
    controller = er.FairController("dp", 2)
    stored, labels = data.to_stored(scores), [*data.group_names, None]
    expected = np.empty(data.n_rows)
    for start, end in pairwise(data.query_ptr.tolist()):
        order = controller.rank(stored[start:end], [labels[code] for code in data.group[start:end]])
        expected[start + order] = -1.0 - np.arange(end - start)
    assert (data.to_stored(found) == expected).all()
    other = er.RankingData.from_arrays(
        np.zeros((data.n_rows, 0)),
        1 - data.to_caller(data.relevance),
        data.to_caller(np.array(labels, object)[data.group]),
        data.to_caller(data.query_of_row),
    )
    assert (er.FairController("dp").rerank(scores, other, 2) == found).all()


# ---------------------------------------------------------------------- restarts and several servers


@pytest.mark.parametrize(
    "options",
    [
        {"notion": "dp", "k": 3},
        {"notion": "eod", "k": 2, "gain": 5.0, "memory": 9.0, "value": "exposure"},
        {"value": "exposure", "gain": 0.05},
        {"notion": "dp", "k": 2, "warm": {"a": 0.5, "c": -1.0}},
    ],
)
def test_a_restart_changes_no_order(options: dict[str, Any]) -> None:
    whole = er.FairController(**options)
    needs = options.get("notion") == "eod" or "notion" not in options
    orders = [whole.rank(s, g, r if needs else None).tolist() for s, g, r in lists(3, 40)]
    one = er.FairController(**options)
    first = [one.rank(s, g, r if needs else None).tolist() for s, g, r in lists(3, 40)[:17]]
    two = er.FairController.from_state(json.loads(json.dumps(one.state())))
    second = [two.rank(s, g, r if needs else None).tolist() for s, g, r in lists(3, 40)[17:]]
    assert first + second == orders
    assert json.dumps(two.state()) == json.dumps(whole.state())


def test_a_fitted_controller_keeps_its_start_and_its_chances() -> None:
    data = random_data(0, n=300, queries=30)
    scores = data.to_caller(np.asarray(data.features, float).sum(axis=1))
    fitted = er.FairController("eop", 3).fit(scores, data)
    again = er.FairController.from_state(json.loads(json.dumps(fitted.state())))
    assert (again.rerank(scores, data) == fitted.rerank(scores, data)).all()


@given(seed=st.integers(0, 30), cuts=st.lists(st.integers(0, 12), min_size=2, max_size=2))
def test_servers_add_up_in_any_order(seed: int, cuts: list[int]) -> None:
    served = lists(seed, 12)
    low, high = sorted(cuts)
    parts = []
    for some in (served[:low], served[low:high], served[high:]):
        parts.append(er.FairController("dp", 3))
        for scores, groups, _ in some:
            parts[-1].rank(scores, groups)
    one, two, three = parts
    merged = [one.merge(two, three), one.merge(two).merge(three), three.merge(one.merge(two)), two.merge(three, one)]
    assert {each.served for each in merged} == {12}
    tables = []
    for each in merged:
        state = each.state()
        tables.append(
            {
                label: [state[name][0][i + 1] for name in ("got", "mass", "lists")]
                for i, label in enumerate(state["groups"])
            }
        )
        assert tables[-1] == {label: pytest.approx(line, rel=1e-12) for label, line in tables[0].items()}
    assert one.served == low


def test_only_the_same_controllers_are_merged() -> None:
    with pytest.raises(ConfigError, match=r"must share their gain; got 3\.0 and 1\.0"):
        er.FairController("dp").merge(er.FairController("dp", gain=1.0))
    with pytest.raises(ConfigError, match="controllers merge with controllers; got dict"):
        er.FairController("dp").merge({})  # type: ignore[arg-type]


# ---------------------------------------------------------------------- bad input


def test_what_cannot_be_ranked_is_said_and_not_counted() -> None:
    controller = er.FairController("dp", 2)
    controller.rank([1.0, 2.0], ["a", "b"])
    before = json.dumps(controller.state())
    for scores, groups, message in (
        ([1.0, nan], ["a", "b"], "scores must be finite; item 1 has nan"),
        ([np.inf, 1.0], ["a", "b"], "scores must be finite; item 0 has inf"),
        ([1.0], ["a", "b"], "one score and one group per item"),
        ([[1.0]], ["a"], "one score and one group per item"),
        (["x", "y"], ["a", "b"], r"scores must be numbers; got <U1 values"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), ["a", "b"], "row 1: scores must not be masked"),
        (np.array([1.0, 2.0j]), ["a", "b"], "scores must be numbers; got complex128 values"),
        (np.array(["NaT", "2026-01-01"], "M8[D]"), ["a", "b"], "scores must be numbers; got datetime64"),
        ({1.0, 2.0}, ["a", "b"], "scores must be numbers; got object values"),
        ([1.0, 2.0], None, "one score and one group per item; got list and NoneType"),
        ([1.0], [("a",)], "a group must be a text or a number"),
    ):
        with pytest.raises(DataError, match=message):
            controller.rank(scores, groups)
        assert json.dumps(controller.state()) == before


def test_empty_lists_one_group_and_unknown_groups_follow_the_stated_rules() -> None:
    controller = er.FairController("dp", 1, 30.0)
    assert controller.rank([], []).tolist() == []
    assert controller.served == 0
    for _ in range(3):
        assert controller.rank([1.0, 2.0], ["a", "a"]).tolist() == [1, 0]
    assert controller.rank([1.0, 2.0, 3.0], [None, nan, ""]).tolist() == [2, 1, 0]
    assert controller.state()["groups"] == ["a"]
    assert controller.served == 4
    assert controller.rank([2.0, 1.0], ["a", "new"]).tolist() == [0, 1]  # begins without a shift
    assert controller.rank([2.0, 1.0], ["a", "new"]).tolist() == [1, 0]
    assert controller.rank(np.array([2.0, 1.0]), np.array(["a", "a"])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"notion": "fair"}, "notion of a controller must be one of dp, eop, eod, merit"),
        ({"notion": lambda data: []}, "notion of a controller must be one of"),
        ({"value": "clicks"}, "value must be one of topk, exposure, impact; got 'clicks'"),
        ({"notion": "eop", "value": "impact"}, "value='impact' counts relevance already"),
        ({"gain": -1.0}, "gain must be a finite number ≥ 0; got -1"),
        ({"gain": nan}, "gain must be a finite number ≥ 0; got nan"),
        ({"k": 0}, "k must be a whole number ≥ 1; got 0"),
        ({"limit": 0.0}, "limit must be a finite number > 0; got 0"),
        ({"memory": -3}, "memory must be a finite number > 0; got -3"),
        ({"warm": 3.0}, "warm must be a fitted GroupOffset, a fitted FairController or a dict"),
        ({"warm": {"a": nan}}, "the offset of group 'a' must be a finite number"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        er.FairController(**options)


def test_relevance_is_asked_for_and_checked() -> None:
    with pytest.raises(
        ConfigError, match="a controller of equal_opportunity needs the chance that an item is relevant"
    ):
        er.FairController("eop").rank([1.0, 2.0], ["a", "b"])
    for given_, message in (([0.5], "one number per item"), ([0.5, 2.0], "from 0 to 1"), ([nan, 0.5], "from 0 to 1")):
        with pytest.raises(DataError, match=message):
            er.FairController("eop").rank([1.0, 2.0], ["a", "b"], given_)
    with pytest.raises(DataError, match="finite and ≥ 0"):
        er.FairController(value="exposure").rank([1.0, 2.0], ["a", "b"], [-1.0, 0.0])
    with pytest.raises(ConfigError, match="has no start to fit"):
        er.FairController(value="exposure").fit([0.0] * 120, random_data(0))


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("groups"),
        lambda state: state.update(controller=3),
        lambda state: state.update(got=[[0.0]]),
        lambda state: state.update(mass=[[0.0, nan, 1.0]]),
        lambda state: state.update(served=-1),
        lambda state: state.update(start=3),
        lambda state: state.update(gain="much"),
        lambda state: state.update(groups=[[[]] * 1000, "b"]),
        lambda state: state.update(start=[["a" * 10000, nan]]),
    ],
)
def test_a_damaged_state_is_refused_in_one_line(damage: Any) -> None:
    controller = er.FairController("dp", 2)
    controller.rank([1.0, 2.0], ["a", "b"])
    state = controller.state()
    damage(state)
    with pytest.raises((DataError, ConfigError)) as caught:
        er.FairController.from_state(state)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_controller_that_has_served_keeps_its_cut_off() -> None:
    data = random_data(0)
    controller = er.FairController("dp", 3)
    controller.rank([1.0, 2.0], ["a", "b"])
    with pytest.raises(ConfigError, match="this controller counts the top 3; got k=5"):
        controller.rerank(np.zeros(data.n_rows), data, 5)


# ---------------------------------------------------------------------- in a sweep


def test_a_sweep_has_it_as_a_method() -> None:
    data = random_data(0, n=300, queries=30)
    options: dict[str, Any] = {"notions": ["dp", "eop"], "ks": [2, 3], "folds": 2, "seed": 1}
    result = er.sweep(
        data, methods=["amortized", "controller"], strengths={"amortized": [0.0], "controller": [0.0, 3.0]}, **options
    )
    for notion in ("demographic_parity", "equal_opportunity"):
        plain, ours = (result.curve(notion, 3, method=name) for name in ("amortized", "controller"))
        assert ours.violation[0] == pytest.approx(plain.violation[0])
        assert ours.violation[1] != ours.violation[0]


def test_the_example_shows_convergence_and_a_bad_gain(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "controller.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()[1:]
    none, small, default, warm, large = ([float(word.rstrip("%")) for word in line.split()[-6:]] for line in lines)
    for gaps in (default, warm):
        assert gaps[3] < 0.15 * none[3]  # converges
    assert warm[0] < default[0]  # from the first lists on
    assert small[3] > 0.5 * none[3]  # too late
    assert large[3] < 0.1 * none[3]
    assert large[4] < default[4] - 0.02  # at a cost


# ---------------------------------------------------------------------- chances by group


def offset_lists(seed: int) -> tuple[np.ndarray, er.RankingData]:
    rng = np.random.default_rng(seed)
    n = 3000
    group = rng.choice(["a", "b"], n)
    # At equal scores, items of b are relevant more often.
    score = rng.normal(size=n)
    relevance = (rng.random(n) < 1 / (1 + np.exp(-score - 1.5 * (group == "b")))).astype(float)
    return score, er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.arange(n) // 10)


@pytest.mark.parametrize("notion", ["eop", "eod"])
def test_a_real_group_offset_starts_it_and_brings_the_chances_of_each_group(notion: str) -> None:
    scores, data = offset_lists(0)
    offset = er.GroupOffset(notion, 3).fit(scores, data)
    controller = er.FairController(notion, 3, warm=offset)
    twin = er.FairController(notion, 3, warm=dict(offset.offsets_))
    new_scores, new = offset_lists(1)
    labels = np.array(new.group_names, object)[new.to_caller(new.group)]
    labels[::17] = None
    labels[5::40] = "c"  # never seen in fit
    fits = dict(zip(offset.group_names_, offset.chances_, strict=True))
    for start in range(0, 500, 10):
        rows = slice(start, start + 10)
        given_ = []
        for score, label in zip(new_scores[rows], labels[rows], strict=True):
            known = [fits[label]] if label in fits else list(fits.values())
            given_.append(np.mean([np.interp(score, fit.score, fit.chance) for fit in known]))
        order = controller.rank(new_scores[rows], labels[rows].tolist())
        assert order.tolist() == twin.rank(new_scores[rows], labels[rows].tolist(), given_).tolist()
        if start == 200:
            controller = er.FairController.from_state(json.loads(json.dumps(controller.state())))
    for ours, theirs in zip(controller.state()["mass"], twin.state()["mass"], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_state_of_version_1_has_one_fit_for_all_groups() -> None:
    controller = er.FairController("eop", 2)
    state = {**controller.state(), "controller": 1, "chances": [[0.0, 2.0], [0.0, 1.0]]}
    old = er.FairController.from_state(json.loads(json.dumps(state)))
    old.rank([1.0, 3.0, -1.0], ["a", "b", None])
    assert dict(zip(old.state()["groups"], old.state()["mass"][0][1:], strict=True)) == {"a": 0.5, "b": 1.0}
    assert er.FairController.from_state({**controller.state(), "controller": 1, "chances": None}).chances_ == {}
    for chances in ([["a", [0.0, 0.0], [0.1, 0.2]]], [["a", [0.0, 1.0], [0.2, 1.2]]], [["a", [], []]]):
        with pytest.raises(DataError, match="chances must rise"):
            er.FairController.from_state({**controller.state(), "chances": chances})


def test_the_relevance_given_counts_even_if_it_is_the_scores() -> None:
    scores, data = offset_lists(0)
    controller = er.FairController("eop", 2, warm=er.GroupOffset("eop", 2).fit(scores, data))
    own = np.array([0.25, 0.5])
    controller.rank(own, ["a", "b"], own)
    assert controller.state()["mass"][0] == [0.0, 0.25, 0.5]


def test_a_list_that_is_refused_leaves_no_new_group() -> None:
    controller = er.FairController("dp", 2)
    for label in (("x",), ["x"]):
        with pytest.raises(DataError, match="a group must be a text or a number"):
            controller.rank([1.0, 2.0], ["new", label])
    assert controller.state()["groups"] == []


def test_offsets_of_groups_that_were_never_served_are_no_trouble() -> None:
    state = er.FairController(k=2).state() | {"offsets": [["elsewhere", 0.5]]}
    controller = er.FairController.from_state(state)
    assert sorted(controller.rank([0.9, 0.5, 0.4], ["a", "b", "a"]).tolist()) == [0, 1, 2]


def test_what_a_state_holds_is_quoted_in_short() -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    controller, equity = er.FairController(k=2).state(), er.EquityOfAttention().state()
    for kind, state in (
        (er.FairController, controller | {"memory": deep}),
        (er.FairController, controller | {"controller": deep}),
        (er.EquityOfAttention, equity | {"items": [["i", 0.0, deep]]}),
        (er.EquityOfAttention, equity | {"equity_of_attention": deep}),
    ):
        with pytest.raises(DataError) as caught:
            kind.from_state(state)
        assert len(str(caught.value)) < 500
