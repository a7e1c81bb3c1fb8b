"""Items that recur: noticed where one group's do, where a label is wrong and where rows have weights."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank as er

NOTE = "Items recur: "


def logged(rng, *, lists, length, recurring, places, swap=0, weight=None):
    """Lists whose first places are taken from ``recurring`` items of group b; all other items stand in one list."""
    item = 1000 + np.arange(lists * length)
    at = np.arange(lists * length) % length
    chosen = np.concatenate([rng.permutation(recurring)[:places] for _ in range(lists)])
    item[at < places] = chosen
    group = np.where(at < places, "b", "a")
    group[:swap] = "a"
    scores = rng.normal(size=len(item))
    scores[at < places] = 0.5 * scores[at < places] + rng.normal(size=recurring)[chosen]
    data = er.RankingData.from_arrays(
        np.zeros((len(item), 0)), np.zeros(len(item)), group, np.arange(len(item)) // length, item, sample_weight=weight
    )
    return scores, data


def notes(audit):
    return " ".join(audit.notes)


def test_three_items_of_one_group_among_thousands_are_noticed_and_tell_nothing():
    """Averaged over all items they hardly recur; a fair ranker was called uneven in 84 % of such data."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        audit = er.audit(*logged(rng, lists=100, length=60, recurring=3, places=3), [3, 5], labelled=False)
        assert NOTE in notes(audit)
        assert audit.verdict == {"pooled": "cannot tell", "within_query": "cannot tell"}
        assert audit.four_fifths() == {3: "cannot be told", 5: "cannot be told"}
        reasons = {one.reason.split(",")[0] for one in audit.verdicts if one.question == "within_query"}
        assert reasons == {"One group has only 3 items that recur"}


@pytest.mark.parametrize("swap", [0, 1], ids=["clean", "a label is wrong"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
def test_a_wrong_label_and_weights_do_not_hide_them(swap, weighted):
    rng = np.random.default_rng(1)
    weight = np.exp(rng.normal(size=60 * 12)) if weighted else None
    uneven = 0
    for _ in range(12):
        scores, data = logged(rng, lists=60, length=12, recurring=30, places=6, swap=swap, weight=weight)
        audit = er.audit(scores, data, [4], labelled=False)
        assert NOTE in notes(audit)
        uneven += audit.verdict["within_query"] == "uneven"
        methods = {pair.within_query.method for pair in audit.pairs}
        assert methods <= {"item t", "cluster t"}
    assert uneven <= 2


def test_ids_whose_group_changes_are_said_not_to_name_items():
    rng = np.random.default_rng(2)
    group = rng.permutation(np.array(["a", "b"] * 300))
    data = er.RankingData.from_arrays(
        np.zeros((600, 0)), np.zeros(600), group, np.arange(600) // 10, np.arange(600) % 10
    )
    audit = er.audit(rng.normal(size=600), data, [3], labelled=False)
    assert NOTE not in notes(audit)
    assert "of the rows have another group than their id mostly has" in notes(audit)


def test_a_pair_of_light_groups_is_tested_as_if_it_were_alone():
    """Weights of 1 for other groups made this pair's rows too few to count: "all rows are treated alike"."""
    rng = np.random.default_rng(3)
    group = np.tile(list("aaabbbcccddd"), 80)
    qid = np.arange(len(group)) // 12
    scores = rng.normal(size=len(group)) - (group == "c")
    results = []
    for weight in (np.ones(len(group)), np.where(np.isin(group, ["c", "d"]), 0.01, 1.0)):
        weight[0] *= 1 + 1e-9  # weights, all alike
        zeros = np.zeros((len(group), 0))
        data = er.RankingData.from_arrays(zeros, zeros.sum(axis=1), group, qid, sample_weight=weight)
        results.append([p for p in er.audit(scores, data, [3], labelled=False).pairs if (p.a, p.b) == ("c", "d")])
    for plain, light in zip(*results, strict=True):
        assert light.lists == plain.lists
        assert light.pooled.p == pytest.approx(plain.pooled.p, rel=1e-6)
        assert light.within_query.p == pytest.approx(plain.within_query.p, rel=1e-6)
        assert plain.within_query.p < 1e-3
        assert light.rate_a == pytest.approx(plain.rate_a)


def test_one_row_in_twenty_with_a_wrong_group_does_not_hide_that_items_recur():
    """Ids with some wrong labels were not taken to name items: fair rankers were called uneven in 13 %."""
    rng = np.random.default_rng(4)
    item = np.concatenate([rng.permutation(80)[:10] for _ in range(100)])
    group = np.where((rng.random(80) < 0.35)[item] ^ (rng.random(1000) < 0.05), "b", "a")
    zeros = np.zeros((1000, 0))
    data = er.RankingData.from_arrays(zeros, np.zeros(1000), group, np.arange(1000) // 10, item)
    assert NOTE in notes(er.audit(rng.normal(size=80)[item] + 0.5 * rng.normal(size=1000), data, [3], labelled=False))


def test_places_under_a_strong_lean_are_not_taken_for_items():
    """The first places are mostly those of one group; as items they would explain the lean away."""
    rng = np.random.default_rng(5)
    lists = []
    for _ in range(60):
        group = np.array(list("aaaaabbbbb"))
        lists.append(group[np.argsort((group == "b") - rng.normal(size=10))])
    data = er.RankingData.from_arrays(
        np.zeros((600, 0)), np.zeros(600), np.concatenate(lists), np.arange(600) // 10, np.arange(600) % 10
    )
    audit = er.audit(-(np.arange(600.0) % 10), data, [3], labelled=False)
    assert NOTE not in notes(audit)
    assert audit.verdict["within_query"] == "uneven"
