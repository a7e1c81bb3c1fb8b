"""FA*IR against enumeration, a plain re-ranker, and the published package's reference outputs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import evenrank as er
from evenrank.errors import ConfigError, DataError
from evenrank.rerankers.fastar import FAStar
from golden import golden


def enumerated_failure(table, p):
    """Over all 2^k lists."""
    k = len(table)
    lists = np.array(list(product([0, 1], repeat=k)))
    chance = np.where(lists, p, 1 - p).prod(axis=1)
    return chance[(np.cumsum(lists, axis=1) < table).any(axis=1)].sum()


def plain_rerank(rows, table, k):
    """(score, id, protected) rows, one list, one place at a time."""
    rows = sorted(rows, key=lambda row: (-row[0], row[1]))
    queues = {flag: [row for row in rows if row[2] == flag] for flag in (True, False)}
    done, count = [], 0
    for place in range(min(k, len(rows))):
        heads = [queue[0] for queue in queues.values() if queue]
        due = count < table[place] and queues[True]
        best = queues[True][0] if due else min(heads, key=rows.index)
        queues[best[2]].remove(best)
        count += best[2]
        done.append(best)
    left = [row for row in rows if row in queues[row[2]]]
    return [row[1] for row in done + left]


@pytest.mark.parametrize("p", [0.02, 0.1, 0.25, 0.5, 0.7, 0.9, 0.98])
@pytest.mark.parametrize("significance", [0.01, 0.05, 0.1, 0.15])
@pytest.mark.parametrize("k", [1, 2, 5, 10, 12])
def test_adjusted_table_is_the_strictest_that_keeps_its_promise(p, significance, k):
    test = FAStar(p, significance)
    table, used = test.table(k), test.adjusted_significance(k)
    assert used <= significance
    assert test.failure_probability(k) == pytest.approx(enumerated_failure(table, p), abs=1e-12)
    assert test.failure_probability(k) <= significance * (1 + 1e-12)
    # Any larger significance gives the same table, or one that fails too often.
    for larger in used + (significance - used) * np.array([1e-6, 0.01, 0.1, 0.5, 1.0]):
        other = FAStar(p, larger, adjust=False).table(k)
        assert (other == table).all() or enumerated_failure(other, p) > significance


@pytest.mark.parametrize("k", [1, 7, 40])
def test_unadjusted_table_is_the_binomial_quantile(k):
    table = FAStar(0.37, 0.08, adjust=False).table(k)
    cumulative = [[binom.cdf(x, i, 0.37) for x in range(i + 1)] for i in range(1, k + 1)]
    assert table.tolist() == [next(x for x, chance in enumerate(row) if chance >= 0.08) for row in cumulative]


def test_large_table_keeps_its_promise_in_simulation():
    test = FAStar(0.3, 0.1)
    table = test.table(300)
    draws = np.random.default_rng(0).random((20_000, 300)) < 0.3
    failed = (np.cumsum(draws, axis=1) < table).any(axis=1).mean()
    assert failed == pytest.approx(test.failure_probability(300), abs=4 * np.sqrt(0.1 * 0.9 / 20_000))
    assert test.failure_probability(300) <= 0.1


def test_thousand_places():
    test = FAStar(0.5, 0.1)
    assert len(test.table(1000)) == 1000
    assert 0.09 < test.failure_probability(1000) <= 0.1


@golden("fastar", "mtables")
def test_published_tables(case):
    k = case["k"]
    adjusted = FAStar(case["p"], case["alpha"], reference=True)
    plain = FAStar(case["p"], case["alpha"], adjust=False, reference=True)
    assert FAStar(case["p"], case["alpha"]).failure_probability(k) <= case["alpha"] * (1 + 1e-12)
    if case["error"]:  # the published package gave up
        return
    assert adjusted.table(k).tolist() == case["adjusted"]
    assert plain.table(k).tolist() == case["unadjusted"]
    assert adjusted.adjusted_significance(k) == pytest.approx(case["alpha_adjusted"], rel=1e-12)
    assert adjusted.failure_probability(k) == pytest.approx(case["fail_prob_adjusted"], abs=1e-12)


@golden("fastar", "rerank")
def test_published_rerankings(case):
    rows = case["input"]
    data = er.RankingData.from_arrays(
        np.zeros((len(rows), 0)), [0] * len(rows), [row["is_protected"] for row in rows], [0] * len(rows)
    )
    for kind in ("adjusted", "unadjusted"):
        test = FAStar(case["p"], case["alpha"], kind == "adjusted", protected=True, reference=True)
        assert test.table(case["k"]).tolist() == case[f"mtable_{kind}"]
        scores = test.rerank([row["score"] for row in rows], data, k=case["k"])
        ids = [rows[i]["id"] for i in np.argsort(-scores)[: case["k"]]]
        assert ids == case[f"re_rank_{kind}"]["ids"]


@st.composite
def lists(draw):
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    n = sum(lengths)
    score = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    flag = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda flags: len(set(flags)) == 2))
    order = draw(st.permutations(range(n)))
    return lengths, score, flag, list(order)


@given(lists(), st.sampled_from([0.2, 0.5, 0.9]), st.integers(1, 9))
def test_rerank_equals_a_plain_reranker(drawn, p, k):
    lengths, score, flag, order = drawn
    query = np.repeat(np.arange(len(lengths)), lengths)
    item = np.arange(len(score))
    shuffled = np.array(order)
    data = er.RankingData.from_arrays(
        np.zeros((len(score), 0)), [0] * len(score), np.array(flag)[shuffled], query[shuffled], item[shuffled]
    )
    test = FAStar(p, 0.2, protected=True)
    new = test.rerank(np.array(score, float)[shuffled], data, k=k)
    for number in range(len(lengths)):
        mine = np.flatnonzero(query[shuffled] == number)
        got = item[shuffled][mine[np.argsort(-new[mine])]].tolist()
        rows = [(score[i], i, flag[i]) for i in np.flatnonzero(query == number)]
        assert got == plain_rerank(rows, test.table(k), k)


def test_reranked_lists_are_fair_where_they_can_be():
    rng = np.random.default_rng(1)
    n = 600
    data = er.RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), rng.random(n) < 0.5, np.repeat(np.arange(60), 10))
    scores = rng.normal(size=n) - 2 * data.to_caller(data.group)
    shares = np.array([0.1, 0.3, 0.5])
    test = FAStar(shares, 0.1, protected=True)
    before, after = test.is_fair(scores, data, k=5), test.rerank(scores, data, k=5)
    assert after.shape == (n, 3)
    enough = np.add.reduceat(data.group == 1, data.query_ptr[:-1])[:, None] >= test.table(5)[:, -1]
    fair = np.stack([FAStar(p, 0.1, protected=True).is_fair(after[:, i], data, k=5) for i, p in enumerate(shares)], 1)
    assert fair[enough].all()
    assert not before.all()
    for i, p in enumerate(shares):
        np.testing.assert_array_equal(after[:, i], FAStar(p, 0.1, protected=True).rerank(scores, data, k=5))


def test_fair_lists_are_left_alone_and_one_group_keeps_its_order():
    data = er.RankingData.from_arrays(
        np.zeros((6, 0)), [0] * 6, ["a", "b", "a", "a", "a", "a"], ["x"] * 3 + ["y"] * 3, list("pqrstu")
    )
    scores = [3.0, 2.0, 1.0, 1.0, 3.0, 2.0]
    new = FAStar(0.5, 0.1, protected="b").rerank(scores, data)
    assert new.tolist() == [-1, -2, -3, -3, -1, -2]


def test_is_fair_of_flags():
    test = FAStar(0.5, 0.1)
    table = test.table(10)
    assert test.is_fair([False] * 4, k=10) == (table[3] == 0)
    assert test.is_fair([True] * 10) is True
    assert test.is_fair([False] * 10) is False


def test_unknown_group_is_not_protected_and_smaller_group_is():
    data = er.RankingData.from_arrays(np.zeros((5, 0)), [0] * 5, ["a", "a", None, None, "b"], [0] * 5)
    new = FAStar(0.9, 0.3).rerank([5.0, 4, 3, 2, 1], data)
    assert new.argmax() == 4
    assert new[:4].tolist() == [-2, -3, -4, -5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda data: FAStar(p=1.0), "p must be between 0 and 1"),
        (lambda data: FAStar(significance=0), "significance must be between 0 and 1"),
        (lambda data: FAStar().table(0), "k must be a whole number"),
        (lambda data: FAStar().rerank([1.0, 2.0], data, k=10**6), "k must be at most 5,000"),
        (lambda data: FAStar(protected="z").rerank([1.0, 2.0], data), "protected must be one of"),
        (lambda data: FAStar().rerank(np.zeros((2, 2)), data), "one column"),
        (lambda data: FAStar().rerank([1.0, 2.0], data.with_group(None)), "at least two groups"),
    ],
)
def test_bad_input(make, message):
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [0, 1], ["a", "b"], [0, 0])
    with pytest.raises(er.EvenrankError, match=message):
        make(data)


@given(lists(), st.sampled_from([0.2, 0.5, 0.9]), st.one_of(st.none(), st.integers(1, 9)))
def test_one_list_is_ordered_as_among_others(drawn, p, k):
    lengths, score, flag, _ = drawn
    n = lengths[0]
    scores, groups = np.array(score[:n], float), ["b" if flagged else "a" for flagged in flag[:n]]
    data = er.RankingData.from_arrays(np.zeros((n, 0)), [0] * n, groups, [0] * n, range(n), group_names=["a", "b"])
    test = FAStar(p, 0.2, protected="b")
    expected = np.argsort(-test.rerank(scores, data, k))
    assert test.rerank_list(scores, groups, k).tolist() == expected.tolist()
    assert test.rerank_list(scores.tolist(), np.array(groups), k).tolist() == expected.tolist()


def test_lists_without_protected_items_keep_their_order():
    test = FAStar(0.9, 0.3, protected="b")
    assert test.rerank_list([1, 3, 2], ["a", "a", "c"]).tolist() == [1, 2, 0]
    data = er.RankingData.from_arrays(np.zeros((3, 0)), [0] * 3, ["a"] * 3, [0] * 3)
    assert test.rerank([1.0, 3.0, 2.0], data).tolist() == [-3, -1, -2]
    assert test.is_fair([1.0, 3.0, 2.0], data, k=1).tolist() == [test.table(1)[0] == 0]
    only = er.RankingData.from_arrays(np.zeros((3, 0)), [0] * 3, ["b"] * 3, [0] * 3)
    assert test.rerank([1.0, 3.0, 2.0], only).tolist() == [-3, -1, -2]


WRITTEN = [
    ("1", [0, 0, 1, 1]),
    (1, ["0", "0", "1", "1"]),
    ("1", [None, 0, 1, 1]),
    (1, [0, 0, 1, 1]),
    ("1.0", [0.0, 0.0, 1.0, 1.0]),
]


@pytest.mark.parametrize(("protected", "groups"), [*WRITTEN, ("1", [0, 1, "1", "1"]), (1, ["0", 0, 1, 1])])
@pytest.mark.parametrize("form", [list, lambda labels: np.array(labels, object)])
def test_labels_of_one_list_are_matched_as_those_of_data(protected, groups, form):
    scores, test = np.array([5.0, 4, 3, 2]), FAStar(0.95, 0.3, protected=protected)
    data = er.RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, form(groups), [0] * 4)
    order = test.rerank_list(scores, form(groups), 4)
    assert order.tolist() == np.argsort(-test.rerank(scores, data, 4)).tolist() == [2, 3, 0, 1]


@pytest.mark.parametrize(
    "groups", [[0, 0, 2], ["a", None, "c"], [None, None, None], [1.0, 1.5, 2.0], [["1"], ["2"], {}]]
)
def test_labels_that_are_not_written_as_the_protected_one_are_others(groups):
    for protected in ("1", "None", 3):
        assert FAStar(0.95, 0.3, protected=protected).rerank_list([1.0, 3.0, 2.0], groups).tolist() == [1, 2, 0]


def test_the_protected_group_does_not_flip_between_calls():
    few_b = er.RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["a", "a", "a", "b"], [0] * 4)
    few_a = er.RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["b", "b", "b", "a"], [0] * 4)
    test, scores = FAStar(0.9, 0.3), [4.0, 3.0, 2.0, 1.0]
    named = FAStar(0.9, 0.3, protected="b")
    with pytest.raises(ConfigError, match="one list does not say which group is the smaller"):
        test.rerank_list(scores, ["a", "a", "a", "b"])
    for data in (few_b, few_a, few_b):
        assert test.rerank(scores, data).tolist() == named.rerank(scores, data).tolist()
    assert test.protected_ == "b"
    orders = [each.rerank_list(scores, ["a", "a", "a", "b"]).tolist() for each in (test, named)]
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("scores", "groups", "message"),
    [
        ([1.0, np.nan], ["a", "b"], "scores must be finite; got nan"),
        ([1.0], ["a", "b"], "scores and groups must have one value per item"),
        ([], [], "scores and groups must have one value per item"),
        ([[1.0]], ["a"], "scores and groups must have one value per item"),
    ],
)
def test_one_list_is_checked(scores, groups, message):
    with pytest.raises(DataError, match=message):
        FAStar(protected="b").rerank_list(scores, groups)
    with pytest.raises(ConfigError, match="one list is re-ranked for one p, without reference; got 2 shares"):
        FAStar([0.1, 0.2], protected="b").rerank_list([1.0], ["b"])


@pytest.mark.parametrize(("scores", "strange"), [(["a", "b"], "'a'"), ([None, 1.0], "None")])
def test_scores_of_one_list_are_numbers(scores, strange):
    with pytest.raises(DataError, match=f"scores must be finite numbers; got {strange}"):
        er.FAStar(0.5, protected="b").rerank_list(scores, ["a", "b"])
