"""Options of measures: how they are written and checked, the discounts under ties, targets, and the samples axis."""

from __future__ import annotations

import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.confidence import intervals
from evenrank.errors import ConfigError, DataError
from evenrank.measures import MEASURES, Evaluation, MeasureAt, Options, measures_table, parse_measure

DISCOUNTS = {
    "log2": lambda j, p, u, b: 1 / math.log2(1 + j),
    "log2_clipped": lambda j, p, u, b: 1 / math.log2(max(j, 2)),
    "rbp": lambda j, p, u, b: p ** (j - 1),
    "geometric": lambda j, p, u, b: p * (1 - p) ** (j - 1),
    "err": lambda j, p, u, b: p ** (j - 1) * (1 - u) ** b,
}


def one_list(relevance: list[int], group: list[Any] | None = None, **more: Any) -> er.RankingData:
    n = len(relevance)
    group = ["ab"[i % 2] for i in range(n)] if group is None else group
    return er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.zeros(n), **more)


def evaluated(scores: Any, data: er.RankingData, **options: Any) -> Evaluation:
    return Evaluation.of(data.to_stored(scores, samples=True), data).with_options(Options(**options))


def mean_over_orders(scores: list[int], relevance: list[int], discount: str, k: int | None) -> list[float]:
    """Each item's weight, averaged over all orders that sort the scores."""
    n = len(scores)
    orders = [o for o in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(o))]
    total = [0.0] * n
    for order in orders:
        above = 0
        for j, item in enumerate(order, 1):
            if k is None or j <= k:
                total[item] += DISCOUNTS[discount](j, 0.7, 0.3, above)
            above += relevance[item]
    return [value / len(orders) for value in total]


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("k", [None, 1, 3, 9])
@pytest.mark.parametrize(
    ("scores", "relevance"),
    [
        ([3, 2, 1, 0], [1, 0, 1, 0]),
        ([1, 1, 1, 1, 1], [1, 0, 1, 0, 1]),
        ([2, 2, 1, 1, 1, 0], [0, 1, 1, 0, 1, 1]),
        ([5], [1]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([0, 0, 0, 4], [0, 0, 0, 0]),
    ],
)
def test_exposure_is_the_mean_over_all_orders_of_ties(
    discount: str, k: int | None, scores: list[int], relevance: list[int]
) -> None:
    ev = evaluated(scores, one_list(relevance), discount=discount, patience=0.7, stop=0.3)
    expected = mean_over_orders(scores, relevance, discount, k)
    np.testing.assert_allclose(ev.exposure(k), expected, rtol=1e-12, atol=1e-14)


def test_err_exposure_of_several_lists_and_models() -> None:
    rng = np.random.default_rng(0)
    lengths = [1, 4, 6, 5]
    qid = np.repeat(np.arange(4), lengths)
    relevance, scores = rng.integers(0, 2, 16), rng.integers(0, 3, (16, 3))
    data = er.RankingData.from_arrays(np.zeros((16, 0)), relevance, None, qid)
    got = evaluated(scores, data, discount="err", patience=0.7, stop=0.3).exposure(3)
    for q in range(4):
        rows = np.flatnonzero(qid == q)
        for m in range(3):
            slow = mean_over_orders(scores[rows, m].tolist(), relevance[rows].tolist(), "err", 3)
            np.testing.assert_allclose(got[rows, m], slow, rtol=1e-12)


def test_a_long_tied_list_is_exact() -> None:
    """500 tied items: the rank is uniform, and with no stop ERR is RBP."""
    data = one_list([1, 0] * 250)
    rbp = evaluated(np.zeros(500), data, discount="rbp", patience=0.9).exposure()
    err = evaluated(np.zeros(500), data, discount="err", patience=0.9, stop=0.0).exposure()
    np.testing.assert_allclose(err, rbp, rtol=1e-10)
    np.testing.assert_allclose(rbp, (1 - 0.9**500) / (1 - 0.9) / 500, rtol=1e-12)


@pytest.mark.parametrize("name", ["ndcg@2", "precision@2", "recall@2", "mrr", "dp@2", "exposure_gap@3(discount=err)"])
def test_samples_are_averaged(name: str) -> None:
    """Several rankings per model: their exposure and selection are averaged, in the order models, samples."""
    rng = np.random.default_rng(1)
    data = er.RankingData.from_arrays(
        np.zeros((12, 0)), rng.integers(0, 2, 12) | (np.arange(12) % 6 == 0), list("abcabcbacabc"), np.arange(12) // 6
    )
    scores = rng.integers(0, 4, (12, 2, 3))
    together = er.measure(scores, data, name)[name]
    assert together.shape == (2,)
    one = er.measure(scores[:, :, :1], data, name)[name]
    np.testing.assert_allclose(one, er.measure(scores[:, :, 0], data, name)[name])
    np.testing.assert_allclose(er.measure(np.repeat(scores[:, :, :1], 4, axis=2), data, name)[name], one)
    if name.startswith(("dp", "exposure")):  # at expected exposure, which is not the mean of the gaps
        value = np.zeros((12, 2))
        for s in range(3):
            ev = evaluated(scores[:, :, s], data, discount="err" if "err" in name else None)
            value += (ev.exposure(3) if "err" in name else ev.top(2)) / 3
        expected = er.violation(value, data, "dp")
    else:
        expected = np.mean([er.measure(scores[:, :, s], data, name)[name] for s in range(3)], axis=0)
    np.testing.assert_allclose(together, expected, rtol=1e-12)


def test_samples_cut_into_blocks_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(2).normal(size=(6, 5, 4))
    data = one_list([1, 0, 1, 0, 0, 1])
    whole = er.measure(scores, data, ["ndcg@3", "dp@3"])
    monkeypatch.setattr("evenrank.measures.compute.MODEL_CHUNK", 50)
    monkeypatch.setattr("evenrank.measures.compute.TOGETHER", 1)
    for name, values in er.measure(scores, data, ["ndcg@3", "dp@3"]).items():
        np.testing.assert_array_equal(values, whole[name])


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("data", [[0.5, 0.5], [0, 1], [np.nan, np.nan]]),
        ("relevant", [[1, 0], [0, 1], [np.nan, np.nan]]),
        ("all", [[0.25, 0.75]] * 3),
        ("equal", [[0.5, 0.5]] * 3),
        ({"b": 0.9, "a": 0.1}, [[0.1, 0.9]] * 3),
        ([0.2, 0.8], [[0.2, 0.8]] * 3),
        ([[1, 0], [0.5, 0.5], [0, 1]], [[1, 0], [0.5, 0.5], [0, 1]]),
    ],
)
def test_targets(target: Any, expected: list[list[float]]) -> None:
    data = er.RankingData.from_arrays(
        np.zeros((6, 0)), [1, 0, 1, 0, 1, 0], ["a", "b", "b", "b", None, None], [0, 0, 1, 1, 2, 2]
    )
    np.testing.assert_allclose(evaluated(np.arange(6.0), data, target=target).target_shares(), expected)


def test_soft_groups_items_and_the_protected_group() -> None:
    data = one_list([1, 0, 1], ["x", "x", "y"], item_ids=[2**70, "a", 7])
    ev = evaluated([1.0, 2.0, 3.0], data)
    assert ev.membership.tolist() == [[1, 0], [1, 0], [0, 1]]
    codes, count = ev.items
    assert (codes.tolist(), count) == ([0, 1, 2], 3)
    assert ev.protected == 1
    assert ev.with_options(Options(protected="x")).protected == 0
    with pytest.raises(ConfigError, match=r"protected must be one of the groups 'x', 'y'; got 'z'\."):
        _ = ev.with_options(Options(protected="z")).protected
    soft = data.with_membership([[0.5, 0.25], [1, 0], [0, 0]], ["x", "y"])
    np.testing.assert_allclose(evaluated([1.0, 2.0, 3.0], soft).target_shares(), [[1.5 / 1.75, 0.25 / 1.75]])
    with pytest.raises(DataError, match="needs an item id"):
        _ = evaluated([1.0], one_list([1])).items
    with pytest.raises(DataError, match="needs the group of each row"):
        _ = evaluated([1.0], er.RankingData.from_arrays([[0.0]], [1], None, [0])).membership


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"a": 0.5, "c": 0.5}, r"target must give a share for each of the groups 'a', 'b'; got 'a', 'c'\."),
        ({"a": 1.0}, r"target must give a share for each"),
        ([0.5, 0.25, 0.25], r"target must have shape \(2,\) or \(1, 2\), .*; got \(3,\)\."),
    ],
)
def test_a_target_that_does_not_fit_the_data(target: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        evaluated([1.0, 2.0], one_list([1, 0]), target=target).target_shares()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"discount": "dcg"}, "discount must be one of log2, log2_clipped, rbp, geometric, none, err; got 'dcg'."),
        ({"patience": 1.0}, "patience must be between 0 and 1, ends excluded; got 1.0."),
        ({"stop": 1.5}, "stop must be a finite number ≥ 0 and ≤ 1; got 1.5."),
        ({"step": 0}, "step must be a whole number ≥ 1; got 0."),
        ({"step": True}, "step must be a whole number ≥ 1; got True."),
        ({"target": "own"}, "target must be one of data, all, relevant, equal; got 'own'."),
        ({"target": [0.5, 0.6]}, "shares ≥ 0 of sum 1 by group; got [0.5, 0.6]."),
        ({"target": [np.nan, 1.0]}, "shares ≥ 0 of sum 1 by group"),
        ({"target": {"a": -0.5, "b": 1.5}}, "shares ≥ 0 of sum 1 by group"),
        ({"target": []}, "shares ≥ 0 of sum 1 by group"),
        ({"target": {"a": "x"}}, "target must be numbers"),
    ],
)
def test_wrong_options_are_said_in_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(er.EvenrankError) as caught:
        Options(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exposure_gap@3(patience=2)", "patience must be between 0 and 1"),
        ("exposure_gap@3(patience=x)", "got 'x'"),
        ("exposure_gap@3(speed=2)", "options of a measure are name=value"),
        ("exposure_gap@3(discount)", "options of a measure are name=value"),
        ("exposure_gap@3(discount=rbp,discount=err)", "each once"),
        ("exposure_gap@3(target=equal)", "measure 'exposure_gap' has no option 'target'; it takes discount, patience"),
        ("ndcg@3(step=2)", "measure 'ndcg' has no option 'step'; it takes none."),
        ("ndcg@3(", "measure must be one of"),
        ("ndcg(k=3)@3", "measure must be one of"),
        ("dp(discount=rbp)", "has no option"),
        ("ndcg@(discount=rbp)", "has no option"),
        ("exposure_gap@(discount=rbp)", "must be a whole number ≥ 1; got ''"),
        ("precision()", "needs a cut-off, as in 'precision@5()'"),
    ],
)
def test_wrong_names_are_said_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_measure(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_the_call_and_of_the_name() -> None:
    data, scores = one_list([1, 0, 1, 0], list("abba")), [4.0, 3.0, 2.0, 1.0]
    names = ["exposure_gap", "exposure_gap(discount=geometric)", "ndcg@2", "exposure_gap(patience=0.25)"]
    values = er.measure(scores, data, names, discount="rbp", patience=0.5)

    def gap(p: float, size: float) -> float:
        return size * abs(1 + p**3 - p - p**2) / 2

    assert values["exposure_gap"] == pytest.approx(gap(0.5, 1))
    assert values["exposure_gap(discount=geometric)"] == pytest.approx(gap(0.5, 0.5))
    assert values["exposure_gap(patience=0.25)"] == pytest.approx(gap(0.25, 1))
    assert values["ndcg@2"] == er.measure(scores, data, "ndcg@2")["ndcg@2"]
    with pytest.raises(ConfigError, match=r"step= is an option of none of the measures ndcg, equal_opportunity"):
        er.measure(scores, data, ["ndcg@2", "eop@2"], step=2)


def test_intervals_and_comparisons_take_options_in_names() -> None:
    rng = np.random.default_rng(5)
    data = er.RankingData.from_arrays(
        np.zeros((400, 0)), rng.integers(0, 2, 400), rng.choice(["a", "b"], 400), np.arange(400) // 10
    )
    a, b = rng.normal(size=(2, 400))
    name = "exposure_gap@5(discount=rbp,patience=0.8)"
    value = er.measure(a, data, name)[name]
    assert value != pytest.approx(er.measure(a, data, "exposure_gap@5")["exposure_gap@5"])
    both = intervals(a, data, ["exposure_gap@5", name])
    assert both[1].estimate == pytest.approx(value)
    assert both[0].estimate != both[1].estimate
    (line,) = er.compare(a, b, data, [name])
    assert (line.a, line.b) == pytest.approx((value, er.measure(b, data, name)[name]))
    assert er.noticeable(a, data, name)[0].measure == name


def test_options_are_written_as_they_are_read() -> None:
    text = "discount=rbp,target=a:0.25/b:0.75,patience=0.8,step=5,protected=a"
    assert str(Options.of(text)) == text
    assert Options.of(str(Options.of(text))) == Options.of(text)
    assert hash(Options(target=np.array([[0.5, 0.5]]))) == hash(Options(target=[[0.5, 0.5]]))
    assert str(Options(target=np.eye(2))) == "target=array(2,2)"
    assert str(MeasureAt.of(f"awrf@10({text})")) == f"awrf@10({text})"
    assert MeasureAt.of("awrf(step=2)") == ("awrf(step=2)", None)


def test_the_table_describes_every_measure() -> None:
    rows = measures_table()
    assert [row["name"] for row in rows] == list(MEASURES)
    for row in rows:
        assert row["best"] in ("high", "low")
        assert row["formula"]
        assert row["range"]
        assert row["ties"]
        assert set(row["needs"]) <= {"relevance", "groups", "items", "protected"}
        assert row["fair"] or not {"groups", "items", "protected"} & set(row["needs"]), row["name"]
        Options(**row["options"])


def test_chances_weigh_the_samples() -> None:
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(7), 6)
    data = er.RankingData.from_arrays(
        np.zeros((42, 0)), rng.integers(0, 3, 42), rng.choice(["a", "b", "c"], 42), query, item_ids=np.arange(42) % 11
    )
    scores = rng.integers(0, 4, (42, 2, 3)).astype(float)
    names = [
        "ndcg@3",
        "mrr",
        "dp@2",
        "awrf@4",
        "ndkl",
        "min_skew@3",
        "pairwise_gap",
        "gini",
        "exposure_gap(discount=err)",
    ]
    # A ranking that stands twice is one of twice the chance.
    twice = er.measure(np.concatenate([scores, scores[:, :, :1]], axis=2), data, names)
    weighed = er.measure(scores, data, names, chances=[0.5, 0.25, 0.25])
    by_list = er.measure(scores, data, names, chances=np.tile([0.5, 0.25, 0.25], (7, 1)))
    for name in names:
        np.testing.assert_allclose(weighed[name], twice[name], rtol=1e-12)
        np.testing.assert_array_equal(weighed[name], by_list[name])


@pytest.mark.parametrize(
    "chances", [[0.5, 0.5], [0.5, 0.6, 0.1], [-0.5, 1.0, 0.5], np.full((3, 3), 1 / 3), [np.nan, 0, 1]]
)
def test_chances_that_are_none(chances) -> None:
    data = er.RankingData.from_arrays(np.zeros((4, 0)), [0, 1, 0, 1], ["a", "b"] * 2, [0, 0, 1, 1])
    with pytest.raises(er.DataError, match="chances"):
        er.measure(np.arange(12.0).reshape(4, 1, 3), data, "dp@1", chances=chances)
    with pytest.raises(er.ConfigError, match="several rankings"):
        er.measure(np.arange(4.0), data, "dp@1", chances=[1.0])
