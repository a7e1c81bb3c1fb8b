"""FA*IR for several groups: golden cases, brute force over all lists, the adjustment, and a plain loop."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.rerankers.count_tree import CountTree, adjusted_tree
from evenrank.rerankers.fastar import FAStar
from evenrank.rerankers.multinomial import MultinomialFAStar
from golden import golden

P = (0.5, 0.3, 0.2)


def as_data(group: Any, query: Any = None) -> RankingData:
    n = len(group)
    return RankingData.from_arrays(np.zeros((n, 0)), [0] * n, group, [1] * n if query is None else query)


@golden("rerankers/multinomial_fair", "cases")
def test_trees_probabilities_and_rankings_are_the_expected_ones(case: dict[str, Any]) -> None:
    k, significance = case["k"], case["significance"]
    ranker = MultinomialFAStar(case["p"], significance, adjust=False)
    assert [[[j, *node] for node in nodes] for j, nodes in enumerate(ranker.tree(k), 1)] == [
        sorted(level) for level in case["tree"]
    ]
    assert ranker.failure_probability(k) == pytest.approx(case["fail_probability"], abs=1e-9)
    for other, probability in case["fail_probability_by_significance"]:
        at = MultinomialFAStar(case["p"], other, adjust=False)
        assert at.failure_probability(k) == pytest.approx(probability, abs=1e-9)
    adjusted = MultinomialFAStar(case["p"], significance)
    good = [
        other for other, p in case["fail_probability_by_significance"] if p <= significance and other <= significance
    ]
    assert max(good, default=0) <= adjusted.adjusted_significance(k) <= significance
    assert adjusted.failure_probability(k) <= significance
    if not case["tie_between_nodes"]:
        data = as_data(case["group"])
        ranking = np.argsort(-ranker.rerank(case["score"], data, k))[:k].tolist()
        assert ranking == case["expected_ranking"]


def all_lists(p: tuple[float, ...], k: int) -> list[tuple[float, np.ndarray]]:
    """Every list of groups with its probability, and the numbers of protected items in its prefixes."""
    lists = product(range(len(p)), repeat=k)
    return [(prod(p[g] for g in groups), np.cumsum(np.eye(len(p))[list(groups)][:, 1:], axis=0)) for groups in lists]


@pytest.mark.parametrize("p", [(0.7, 0.3), P, (0.4, 0.3, 0.2, 0.1)])
@pytest.mark.parametrize("significance", [0.05, 0.1, 0.3])
def test_probabilities_are_those_of_all_lists(p: tuple[float, ...], significance: float) -> None:
    k = 6
    lists = all_lists(p, k)
    tree = CountTree(p, significance, k)
    nodes, root = {(0,) * (len(p) - 1)}, []
    for j in range(k):

        def at_most(m: tuple[int, ...], j: int = j) -> float:
            return sum(mass for mass, counts in lists if (counts[j] <= m).all())

        grown = set()
        for node in nodes:
            rises = {tuple(np.add(node, step).tolist()) for step in np.eye(len(p) - 1, dtype=int)}
            grown |= (
                {node}
                if at_most(node) > significance + 1e-12
                else {m for m in rises if at_most(m) > significance + 1e-12}
            )
        nodes = grown
        root.append(sorted(nodes))
    assert tree.nodes == root
    fails = sum(
        mass for mass, counts in lists if not all(any((counts[j] >= m).all() for m in root[j]) for j in range(k))
    )
    assert tree.failure_probability == pytest.approx(fails, abs=1e-12)


@pytest.mark.parametrize("p", [(0.6, 0.4), P, (0.25, 0.25, 0.25, 0.25)])
@pytest.mark.parametrize("k", [4, 9])
def test_the_adjusted_significance_is_the_largest_that_keeps_its_word(p: tuple[float, ...], k: int) -> None:
    asked = 0.1
    best = adjusted_tree(p, asked, k)
    tree = CountTree(p, asked, k)
    while tree.failure_probability > asked:  # every tree from the top, none left out
        tree = CountTree(p, tree.next_significance, k)
    assert best.significance >= tree.significance * (1 - 1e-8)
    assert best.nodes == tree.nodes
    for significance in np.linspace(best.significance, asked, 40)[1:]:
        assert CountTree(p, significance, k).failure_probability > asked or best.significance == asked


def test_one_protected_group_is_fa_ir() -> None:
    for significance in (0.05, 0.1, 0.2):
        several, single = MultinomialFAStar({"b": 0.3}, significance), FAStar(0.3, significance)
        assert several.table(40)[:, 0].tolist() == single.table(40).tolist()
        assert several.failure_probability(40) == pytest.approx(single.failure_probability(40), abs=1e-12)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 5)), min_size=1, max_size=14),
    st.integers(1, 16),
)
def test_a_list_is_the_plain_loop_s(items: list[Any], k: int) -> None:
    ranker = MultinomialFAStar({"b": 0.3, "c": 0.3}, 0.2)
    group, score = [label for label, _ in items], [float(value) for _, value in items]
    if not any(group):
        return
    order = sorted(range(len(items)), key=lambda i: (-score[i], i))
    minima = ranker.table(k)
    left, known = [i for i in order if group[i]], []
    for place in range(sum(bool(group[i]) for i in order[:k])):
        below = [g for at, g in enumerate("bc") if sum(group[i] == g for i in known) < minima[place, at]]
        due = [i for i in left if group[i] in below]
        known.append((due or left)[0])
        left.remove(known[-1])
    filled = iter(known + left)
    expected = [next(filled) if group[i] else i for i in order]
    assert np.argsort(-ranker.rerank(score, as_data(group), k)).tolist() == expected


def test_lists_re_ranked_are_fair_where_items_suffice() -> None:
    rng = np.random.default_rng(3)
    group = np.tile(list("aaabbbccc"), 40)
    score = rng.standard_normal(360) + 3 * (group == "a")
    query = np.repeat(range(6), 60)
    ranker = MultinomialFAStar({"b": 0.3, "c": 0.25}, 0.1)
    before = [ranker.is_fair(group[query == q][np.argsort(-score[query == q])][:20]) for q in range(6)]
    out = ranker.rerank(score, as_data(group, query), 20)
    after = [ranker.is_fair(group[query == q][np.argsort(-out[query == q])][:20]) for q in range(6)]
    assert not any(before)
    assert all(after)


def test_shares_of_the_data_leave_the_largest_group_alone_and_are_kept() -> None:
    data = as_data(list("aaabbc"))
    ranker = MultinomialFAStar().fit(None, data)
    assert {label: float(share) for label, share in ranker.p_.items()} == pytest.approx({"b": 1 / 3, "c": 1 / 6})
    assert MultinomialFAStar().rerank(range(6), data).shape == (6,)
    other = as_data(list("abbbbb"))
    assert ranker.at(0).rerank([6, 5, 4, 3, 2, 1], other).tolist() == [-1, -2, -3, -4, -5, -6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": {"a": 0.5, "b": 0.5}}, "shares of protected groups must add up to less than 1; got 1. Leave out"),
        ({"p": [0.5, 0.4]}, "shares of all groups must be two or more and add up to 1; got 0.9"),
        ({"p": {"a": 0}}, "the share of 'a' must be between 0 and 1"),
        ({"p": "data"}, "p must be a share per protected group"),
        ({"significance": 1}, "significance must be between 0 and 1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MultinomialFAStar(**options)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(ConfigError, match=r"k must be at most 309 for 2 protected groups; got 500"):
        MultinomialFAStar({"b": 0.3, "c": 0.2}).table(500)
    with pytest.raises(
        ConfigError, match=r"protects at most 23 groups, as .*; got 24\. Name fewer with p=, or use DetR"
    ):
        MultinomialFAStar(dict.fromkeys(range(24), 0.04)).table(1)
    with pytest.raises(ConfigError, match="call fit, or name them with p="):
        MultinomialFAStar().table(5)
    with pytest.raises(DataError, match="needs two groups; the data has"):
        MultinomialFAStar().rerank([1.0, 2.0], as_data(["a", "a"]))
    with pytest.raises(ConfigError, match="p has 3 shares; the data has 2 groups"):
        MultinomialFAStar(P).rerank([1.0, 2.0], as_data(["a", "b"]))
