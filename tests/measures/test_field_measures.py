"""The field's measures by name: against plain twins, every tie-breaking, and what must not change them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, log, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
import field_oracles as twins
import oracles
from evenrank.errors import ConfigError, DataError
from evenrank.measures import MEASURES, cut_points, pairs, prefixes
from evenrank.measures.exposure_measures import EXPOSURE_MEASURES
from evenrank.measures.item_measures import ITEM_MEASURES
from evenrank.measures.lists import one_hot
from evenrank.measures.rank_measures import PAIR_MEASURES, PREFIX_MEASURES
from evenrank.ranking import Ranking
from oracles import Query, as_data, pooled
from strategies import LEVELS, queries

# Random data often lacks a group; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")

FIELD = (*EXPOSURE_MEASURES, *PREFIX_MEASURES, *PAIR_MEASURES, *ITEM_MEASURES)
NAMES = [measure.name + ("@2" if measure.k == "needed" else "") for measure in FIELD]
NAMES += [f"{measure.name}@3" for measure in FIELD if measure.k == "optional"]
CUTS = st.none() | st.integers(1, 6)
DISCOUNTS = st.sampled_from(["log2", "log2_clipped", "rbp", "geometric", "err", "none"])
GROUPS = st.integers(2, 3)
LISTS = GROUPS.flatmap(lambda number: queries(groups=number, most=3))


def at(name: str, k: int | None, **options: Any) -> str:
    inside = ",".join(f"{option}={value}" for option, value in options.items() if value is not None)
    return name + ("" if k is None else f"@{k}") + (f"({inside})" if inside else "")


def with_items(some: list[Query], **options: Any) -> tuple[er.RankingData, list[int]]:
    """Rows whose items recur: item j of every list is one item."""
    items = [place for query in some for place in range(len(query))]
    return as_data(some, item_ids=items, **options), items


def holds(name: str, some: list[Query], each: list[float], whole: float | None = None) -> None:
    """The values of the queries, and over all of them: the mean of those that exist, unless one is given."""
    data, scores = with_items(some)[0], pooled(some, "scores")
    per_query = er.measure(scores, data, name, per_query=True)[name]
    assert per_query.tolist() == pytest.approx(each, rel=1e-9, abs=1e-12, nan_ok=True), name
    value = er.measure(scores, data, name)[name]
    expected = oracles.over_queries(each) if whole is None else whole
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), name


# ---------------------------------------------------------------------- against the definitions


@given(LISTS, CUTS, DISCOUNTS, st.sampled_from(["data", "relevant", "equal"]))
def test_awrf(some: list[Query], k: int | None, discount: str, target: str) -> None:
    names = twins.labels(some)
    each = [twins.awrf(query, names, k, discount, target) for query in some]
    holds(at("awrf", k, discount=discount, target=target), some, each)


@given(LISTS, CUTS, st.sampled_from(["log2", "log2_clipped", "none"]), st.sampled_from(["data", "relevant", "equal"]))
def test_the_score_of_the_track(some: list[Query], k: int | None, discount: str, target: str) -> None:
    names = twins.labels(some)
    each = [twins.awrf(query, names, k, discount, target) * twins.track_ndcg(query, k, discount) for query in some]
    holds(at("awrf_ndcg", k, discount=discount, target=target), some, each)


@given(
    LISTS, CUTS, DISCOUNTS, st.sampled_from([None, "data", "relevant", "equal"]), st.sampled_from(["relevant", "all"])
)
def test_expected_exposure(some: list[Query], k: int | None, discount: str, target: str | None, among: str) -> None:
    names = twins.labels(some)
    if discount == "err" and target is not None:
        discount = "rbp"
    each = [twins.ee(query, names, k, discount, target, among) for query in some]
    for number, name in enumerate(("ee_l", "ee_d", "ee_r")):
        values = [value[number] for value in each]
        holds(at(name, k, discount=discount, target=target, among=among), some, values)
    items = [twins.ee(query, None, k, discount, None, among) for query in some]
    for number, name in enumerate(("item_ee_l", "item_ee_d", "item_ee_r")):
        holds(at(name, k, discount=discount, among=among), some, [value[number] for value in items])


@given(GROUPS.flatmap(lambda number: queries(groups=number, most=3, weights=(1.0, 2.5))), CUTS)
def test_ratios_of_exposure(some: list[Query], k: int | None) -> None:
    for name, kind in (("exposure_ratio", "items"), ("dtr", "merit"), ("dir", "impact")):
        each = [twins.exposure_ratio([query], k, kind) for query in some]
        holds(at(name, k), some, each, twins.exposure_ratio(some, k, kind))


@given(LISTS, st.integers(1, 6), st.sampled_from(["data", "relevant", "equal"]), st.sampled_from([0.0, 1.0, 0.5]))
def test_skew(some: list[Query], k: int, target: str, smoothing: float) -> None:
    names = twins.labels(some)
    each = [twins.skews(query, names, k, target, smoothing) for query in some]
    options = {"target": target, "smoothing": smoothing}
    holds(at("min_skew", k, **options), some, [min(values, default=nan) for values in each])
    holds(at("max_skew", k, **options), some, [max(values, default=nan) for values in each])


@given(LISTS, CUTS, st.sampled_from(["data", "relevant", "equal"]))
def test_first_ranks(some: list[Query], k: int | None, target: str) -> None:
    names = twins.labels(some)
    holds(at("ndkl", k, target=target), some, [twins.ndkl(query, names, k, target) for query in some])
    short = [twins.infeasible(query, names, k, target) for query in some]
    holds(at("infeasible_index", k, target=target), some, [index for index, _ in short])
    holds(at("infeasible_count", k, target=target), some, [count for _, count in short])


@given(queries(groups=2, most=3), CUTS, st.integers(1, 3), st.sampled_from("ab"))
def test_cut_points(some: list[Query], k: int | None, step: int, protected: str) -> None:
    for name in ("rnd", "rkl", "rrd"):
        each = [twins.at_cut_points(query, protected, name, step, k) for query in some]
        holds(at(name, k, step=step, protected=protected), some, each)


@given(st.integers(1, 9), st.integers(1, 4), CUTS, st.sampled_from(sorted(cut_points.DIFFERENCES)))
def test_the_largest_sum_is_the_best_of_all_orders(length: int, step: int, k: int | None, name: str) -> None:
    numbers = np.arange(length + 1)
    largest = cut_points.largest_sum(name, numbers, length, step=step, k=k)
    expected = [twins.largest_sum(name, number, length, step, k) for number in numbers.tolist()]
    assert largest.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(
    queries(groups=2, unknown=False, most=3, scores=st.floats(-8, 8)),
    st.sampled_from("ab"),
    st.sampled_from(["data", "relevant", "equal"]),
)
def test_fair_prefix(some: list[Query], protected: str, target: str) -> None:
    for query in some:
        query.scores = [float(place) for place in np.argsort(np.argsort(query.scores, kind="stable"))]
    names = twins.labels(some)
    each = [twins.fair_prefix(query, names, names.index(protected), target) for query in some]
    holds(at("fair_prefix", None, protected=protected, target=target), some, each)


@given(GROUPS.flatmap(lambda number: queries(groups=number, most=3, longest=8)))
def test_pairs(some: list[Query]) -> None:
    names = twins.labels(some)
    kinds = {name: name.removeprefix("pairwise_").removesuffix("_gap") for name in MEASURES if "pairwise_" in name}
    for name, which in (kinds | {"pairwise_gap": "gap"}).items():
        each = [twins.pairwise([query], names, which) for query in some]
        holds(name, some, each, twins.pairwise(some, names, which))


@given(LISTS, CUTS, DISCOUNTS)
def test_items(some: list[Query], k: int | None, discount: str) -> None:
    items = with_items(some)[1]
    exposure = [twins.exposure(query, k, discount) for query in some]
    totals = twins.totals([value for values in exposure for value in values], items)
    formulas: dict[str, Callable[..., float]] = {
        "gini": twins.gini,
        "gini_corrected": lambda values: twins.gini(values, corrected=True),
        "entropy": twins.entropy,
    }
    for name, formula in formulas.items():
        holds(at(name, k, discount=discount), some, list(map(formula, exposure)), formula(totals))


@given(LISTS, CUTS)
def test_inequity_of_attention(some: list[Query], k: int | None) -> None:
    items, names = with_items(some)[1], twins.labels(some)
    gaps = [twins.attention_gaps(query, k) for query in some]
    counted = sum(gap is not None for gap in gaps)
    zeros = [gap or [0.0] * len(query) for gap, query in zip(gaps, some, strict=True)]
    total = twins.totals([value for values in zeros for value in values], items)
    whole = twins.divided(sum(map(abs, total)), counted)
    holds(at("iaa", k), some, [nan if gap is None else sum(map(abs, gap)) for gap in gaps], whole)
    by_group = [twins.by_group(query, gap, names) for query, gap in zip(some, zeros, strict=True)]
    each = [nan if gap is None else sum(map(abs, mine)) for gap, mine in zip(gaps, by_group, strict=True)]
    whole = twins.divided(sum(abs(sum(column)) for column in zip(*by_group, strict=True)), counted)
    holds(at("group_iaa", k), some, each, whole)


@given(queries(most=3, longest=3), st.integers(1, 3))
def test_appearances_are_expected_over_all_orders_of_all_lists(some: list[Query], k: int) -> None:
    """Every combination of tie-breakings of the lists, one by one."""
    ways: list[list[list[int]]] = [[]]
    for query in some:
        ways = [[*way, list(order[:k])] for way in ways for order in oracles.orders(tuple(query.scores))]
    n_items = max(map(len, some))
    diversity = oracles.mean([len({item for shown in way for item in shown}) / n_items for way in ways])
    holds(f"aggregate_diversity@{k}", some, [min(k, len(query)) / len(query) for query in some], diversity)

    def popularity(way: list[list[int]], number: int) -> float:
        return oracles.mean([sum(item in shown for shown in way) for item in way[number]])

    each = [oracles.mean([popularity(way, number) for way in ways]) for number in range(len(some))]
    holds(f"average_popularity@{k}", some, each)


# ---------------------------------------------------------------------- what is linear is an expectation


@given(queries(groups=2, most=1), CUTS)
def test_linear_measures_are_means_over_all_tie_breakings(some: list[Query], k: int | None) -> None:
    (query,) = some
    values = []
    for order in oracles.orders(tuple(query.scores)):
        strict = [0.0] * len(query)
        for place, item in enumerate(order):
            strict[item] = float(-place)
        one = Query(strict, query.relevance, query.group)
        values.append([twins.ee([one][0], twins.labels(some), k, "rbp", None, "relevant")[2]])
        values[-1].append(twins.pairwise([one], twins.labels(some), "accuracy"))
    for number, name in enumerate((at("ee_r", k), "pairwise_accuracy")):
        value = er.measure(query.scores, as_data(some), name)[name]
        mean = oracles.mean([value[number] for value in values])
        assert value == pytest.approx(mean, rel=1e-9, abs=1e-12, nan_ok=True)


# ---------------------------------------------------------------------- what must not change them


def lists_of(seed: int, *, q: int = 12, groups: str = "abc", ties: bool = True) -> list[Query]:
    rng = np.random.default_rng(seed)
    made = []
    for length in rng.integers(1, 9, q).tolist():
        scores = rng.choice(LEVELS, length) if ties else rng.permutation(length).astype(float)
        made.append(
            Query(scores.tolist(), rng.integers(0, 4, length).tolist(), rng.choice(list(groups), length).tolist())
        )
    return made


def equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
def test_invariances(seed: int) -> None:
    some = lists_of(seed)
    data, items = with_items(some)
    scores = np.array(pooled(some, "scores"))
    expected = er.measure(scores, data, NAMES)
    order = np.random.default_rng(seed).permutation(len(scores))
    equal(er.measure(scores[order], as_data(some, order, item_ids=np.array(items)[order]), NAMES), expected)
    equal(er.measure(scores + 0.5, data, NAMES), expected)
    equal(er.measure(scores * 4, data, NAMES), expected)
    other = {"a": "z", "b": "x", "c": "y"}
    renamed = [Query(query.scores, query.relevance, [other[group] for group in query.group]) for query in some]
    equal(er.measure(scores, with_items(renamed)[0], NAMES), expected)
    # Two of every list: means stay, and so do ratios of sums, and shares of the items' exposure.
    twice = er.measure(np.tile(scores, 2), as_data(some + some, item_ids=items * 2), NAMES)
    changed = {"aggregate_diversity@2", "average_popularity@2"}
    equal(twice, {name: value for name, value in expected.items() if name not in changed})


@pytest.mark.parametrize("per_query", [False, True])
def test_many_models_and_samples(per_query: bool) -> None:
    some = lists_of(5)
    data = with_items(some)[0]
    rng = np.random.default_rng(0)
    scores = rng.choice(LEVELS, (data.n_rows, 3))
    together = er.measure(scores, data, NAMES, per_query=per_query)
    for model in range(3):
        alone = er.measure(scores[:, model], data, NAMES, per_query=per_query)
        equal({name: value[..., model] for name, value in together.items()}, alone)
    # Equal samples are one ranking; for a linear measure, samples are averaged.
    same = er.measure(np.repeat(scores[:, :, None], 2, axis=2), data, NAMES, per_query=per_query)
    equal(same, together)
    pair = er.measure(scores[:, None, :2], data, ["ee_r", "pairwise_accuracy"], per_query=True)
    for name, value in pair.items():
        both = er.measure(scores[:, :2], data, name, per_query=True)[name]
        np.testing.assert_allclose(value[:, 0], both.mean(axis=1), rtol=1e-12)


def test_samples_are_averaged_before_a_formula() -> None:
    """Two opposite orders of two items have the exposure of a tie, and its counts."""
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [1, 0], ["a", "b"], [1, 1], item_ids=[1, 2])
    both = np.array([[2.0, 1.0], [1.0, 2.0]])
    for name, value in {
        "awrf": 1.0,
        "ndkl": 0.0,
        "gini": 0.0,
        "min_skew@1": 0.0,
        "rnd(step=1,protected=a)": 0.0,
        "item_ee_d": 2 * 0.75**2,
        "pairwise_accuracy": 0.5,
    }.items():
        assert er.measure(both[:, None], data, name)[name][0] == pytest.approx(value, abs=1e-12), name
        assert er.measure([1.0, 1.0], data, name)[name] == pytest.approx(value, abs=1e-12), name
        if name not in ("awrf", "pairwise_accuracy"):
            assert er.measure(both, data, name)[name].mean() != pytest.approx(value, abs=1e-3), name


def test_soft_groups_of_ones_and_zeros_are_labels() -> None:
    some = lists_of(7)
    data = with_items(some)[0]
    soft = data.with_membership(np.eye(3)[np.array([["a", "b", "c"].index(g) for g in pooled(some, "group")])], "abc")
    names = [name for name in NAMES if name.partition("@")[0] not in ("rnd", "rkl", "rrd")]
    scores = pooled(some, "scores")
    equal(er.measure(scores, soft, names), er.measure(scores, data, names))
    with pytest.raises(ConfigError, match="'rnd' needs group labels"):
        er.measure(scores, soft, "rnd")


def test_several_dimensions_are_one_membership() -> None:
    rng = np.random.default_rng(3)
    sex, age = rng.dirichlet([1, 1], 12), np.eye(3)[rng.integers(0, 3, 12)]
    age[4] = 0  # unknown in one dimension
    table, names = er.joint_groups([sex, age], [["f", "m"], [1, 2, 3]])
    assert names == ["f & 1", "f & 2", "f & 3", "m & 1", "m & 2", "m & 3"]
    assert table.tolist() == [[a * b for a in one for b in two] for one, two in zip(sex, age, strict=True)]
    data = er.RankingData.from_arrays(np.zeros((12, 0)), [1, 0] * 6, ["x"] * 12, [1] * 12).with_membership(table, names)
    weights = 1 / np.log2(np.maximum(np.arange(1, 13), 2))
    share = weights @ table / (weights @ table).sum()
    target = table.sum(axis=0) / table.sum()
    middle = (share + target) / 2
    divergence = sum(p * log(p / m) for parts in (share, target) for p, m in zip(parts, middle, strict=True) if p) / 2
    assert er.measure(-np.arange(12.0), data, "awrf")["awrf"] == pytest.approx(1 - divergence, abs=1e-12)
    with pytest.raises(DataError, match=r"got shapes \[\(12, 2\), \(12, 3\)\] for \[2, 2\] categories"):
        er.joint_groups([sex, age], [["f", "m"], [1, 2]])
    with pytest.raises(DataError, match="all of the same rows"):
        er.joint_groups([sex[:3], age], [["f", "m"], [1, 2, 3]])


def test_soft_groups_share_their_rows() -> None:
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [1, 0], None, [1, 1]).with_membership(
        [[0.5, 0.5], [0, 1]], "ab"
    )
    value = er.measure([2.0, 1.0], data, "awrf(target=equal,discount=rbp)")["awrf(target=equal,discount=rbp)"]
    share = 0.5 / 1.5
    middle = (share + 0.5) / 2
    jsd = (
        share * log(share / middle)
        + (1 - share) * log((1 - share) / (1 - middle))
        + 0.5 * log(0.5 / middle)
        + 0.5 * log(0.5 / (1 - middle))
    ) / 2
    assert value == pytest.approx(1 - jsd, rel=1e-12)


# ---------------------------------------------------------------------- edge cases


def test_long_lists_with_many_grades_count_pairs_as_all_pairs_do() -> None:
    rng = np.random.default_rng(3)
    n = 300
    score, relevance, group = rng.integers(0, 40, n), rng.normal(size=n).round(1), rng.integers(-1, 3, n)
    ptr = np.array([0, 200, 201, n])
    ranking = Ranking(score.astype(float), ptr)
    counts = pairs.relevance_pairs(ranking.first, ranking.size, relevance, one_hot(group, 3), ptr)
    for number in range(3):
        rows = slice(ptr[number], ptr[number + 1])
        s, r, g = score[rows], relevance[rows], group[rows]
        ahead = r[:, None] > r[None, :]
        for i in range(3):
            for j in range(3):
                some = ahead & (g[:, None] == i) & (g[None, :] == j)
                assert counts.pairs[number, i, j] == some.sum()
                assert counts.wins[number, i, j] == (some & (s[:, None] > s[None, :])).sum()
                assert counts.ties[number, i, j] == (some & (s[:, None] == s[None, :])).sum()


def whole(
    values: list[float], groups: list[Any], name: str, relevance: list[float] | None = None, **more: Any
) -> float:
    n = len(values)
    rows = np.zeros((n, 0))
    data = er.RankingData.from_arrays(
        rows, relevance or [1] * n, groups, more.pop("qid", [1] * n), item_ids=range(n), **more
    )
    return float(er.measure(values, data, name)[name])


def test_one_item_lists_empty_groups_and_unknown_groups() -> None:
    # A list of one item has the list's own shares, whatever its group.
    for name, value in {
        "awrf": 1.0,
        "ndkl": 0.0,
        "infeasible_index": 0.0,
        "min_skew@5": 0.0,
        "max_skew@5": 0.0,
    }.items():
        assert whole([1.0, 2.0], ["a", "b"], name, qid=[1, 2]) == value
    # A group that has no item in the data: no share of "equal" can be reached.
    assert whole([2.0, 1.0], ["a", "a"], "min_skew@1(target=equal)", group_names=["a", "b"]) == -inf
    assert whole([2.0, 1.0], ["a", "a"], "ndkl(target=equal)", group_names=["a", "b"]) == pytest.approx(log(2))
    assert isnan(whole([2.0, 1.0], ["a", "a"], "exposure_ratio", group_names=["a", "b"]))
    assert isnan(whole([2.0, 1.0], ["a", "a"], "pairwise_gap", [1, 0], group_names=["a", "b"]))
    # Nobody of known group in one list: it is left out of the mean.
    known = ["a", "b", None, None]
    assert whole([2.0, 1.0, 2.0, 1.0], known, "ndkl", qid=[1, 1, 2, 2]) == whole([2.0, 1.0], ["a", "b"], "ndkl")
    # An unknown item takes a rank and counts for no group.
    assert whole([3.0, 2.0, 1.0], [None, "a", "b"], "max_skew@2(target=equal)") == pytest.approx(0.0)
    assert whole([3.0, 2.0, 1.0], [None, "a", "b"], "min_skew@2(target=equal)") == -inf


def test_targets_with_a_zero_share() -> None:
    shares = "(target=a:1/b:0)"
    assert whole([2.0, 1.0], ["a", "b"], f"ndkl{shares}") == inf
    assert whole([2.0, 1.0], ["a", "b"], f"ndkl@1{shares}") == 0.0
    assert whole([2.0, 1.0], ["a", "b"], f"max_skew@2{shares}") == inf
    assert whole([2.0, 1.0], ["a", "b"], f"max_skew@1{shares}") == 0.0  # b has neither share nor target: no skew
    assert whole([1.0, 2.0], ["a", "b"], f"awrf@1{shares}") == pytest.approx(1 - log(2))
    assert whole([2.0, 1.0], ["a", "b"], f"awrf@1{shares}") == 1.0


def test_nothing_relevant_is_left_out_and_never_in_a_mean() -> None:
    relevance = [1.0, 0.0, 0.0, 0.0]
    query = [1, 1, 2, 2]
    for name in ("ee_l", "item_ee_d", "iaa", "group_iaa", "awrf(target=relevant)", "pairwise_accuracy"):
        both = whole([2.0, 1.0, 2.0, 1.0], list("abab"), name, relevance, qid=query)
        assert both == pytest.approx(whole([2.0, 1.0], list("ab"), name, relevance[:2])), name
    for name in ("ee_l", "iaa", "dtr", "dir", "pairwise_gap"):
        with pytest.warns(er.DataWarning) if name == "ee_l" else pytest.MonkeyPatch.context():
            assert isnan(whole([2.0, 1.0], list("ab"), name, [0.0, 0.0])), name


def test_everything_tied_is_fair_where_groups_are_alike() -> None:
    groups, tied = list("abab"), [1.0] * 4
    for name, value in {
        "awrf": 1.0,
        "exposure_ratio": 1.0,
        "ndkl": 0.0,
        "min_skew@2": 0.0,
        "max_skew@2": 0.0,
        "rnd(step=2)": 0.0,
        "rkl(step=2)": 0.0,
        "rrd(step=2)": 0.0,
        "pairwise_gap": 0.0,
        "pairwise_parity": 0.0,
        "pairwise_accuracy": 0.5,
        "gini": 0.0,
        "gini_corrected": 0.0,
        "entropy": log(4),
    }.items():
        assert whole(tied, groups, name, [1, 1, 0, 0]) == pytest.approx(value, abs=1e-12), name


def test_the_worst_order_is_1_and_short_lists_have_no_value() -> None:
    groups = ["a"] * 10 + ["b"] * 10
    assert whole([-float(i) for i in range(20)], groups, "rnd") == pytest.approx(1.0)
    with pytest.warns(er.DataWarning, match="rnd is NaN"):
        assert isnan(whole([2.0, 1.0], ["a", "b"], "rnd"))
    with pytest.warns(er.DataWarning, match="rkl is NaN"):
        assert isnan(whole([-float(i) for i in range(20)], ["a"] * 20, "rkl", group_names=["a", "b"]))


def test_cut_offs_beyond_the_list_are_the_whole_list() -> None:
    some = lists_of(11)
    data, scores = with_items(some)[0], pooled(some, "scores")
    for measure in FIELD:
        if measure.k == "optional":
            names = [measure.name, f"{measure.name}@99"]
            one, two = er.measure(scores, data, names).values()
            assert one == pytest.approx(two, nan_ok=True), measure.name


def test_lists_shorter_than_the_target_lose_against_it() -> None:
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [1, 1], ["a", "b"], [1, 1])
    short, whole = "ee_l@4(target=equal,discount=none)", "ee_l(target=equal,discount=none)"
    values = er.measure([2.0, 1.0], data, [short, whole])
    assert values == {short: 2 * (1 - 4 / 2) ** 2, whole: 0.0}
    # Far more ranks than there are items take no memory.
    most = er.measure([2.0, 1.0], data, "ee_r@5000000(target=equal,discount=none)")
    assert list(most.values()) == [2 * 5_000_000 / 2]


def test_a_list_that_shows_nothing_relevant_has_no_exposure_against_a_target() -> None:
    """So the track has it, also where all items count; lists without any label are as they are."""
    name = "ee_d@1(target=equal,among=all,discount=none)"
    for relevance, value in (([0, 1], 0.0), ([1, 0], 1.0), ([0, 0], 1.0)):
        data = er.RankingData.from_arrays(np.zeros((2, 0)), relevance, ["a", "b"], [1, 1])
        assert er.measure([2.0, 1.0], data, name) == {name: value}


def test_measures_of_whole_lists_refuse_a_cut_off() -> None:
    with pytest.raises(
        ConfigError, match=r"'pairwise_gap' is one of whole lists and has no cut-off; got 'pairwise_gap@3'"
    ):
        er.measure([1.0, 2.0], relevance=[1, 0], group=["a", "b"], measures="pairwise_gap@3")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(DataError, match="item id"):
        er.measure([1.0, 2.0], relevance=[1, 0], group=["a", "b"], measures="gini")
    with pytest.raises(DataError, match="group of each row"):
        er.measure([1.0, 2.0], relevance=[1, 0], measures="awrf")
    with pytest.raises(ConfigError, match="'err' is none of the rank alone"):
        er.measure([1.0, 2.0], relevance=[1, 0], group=["a", "b"], measures="ndkl", discount="err")
    with pytest.raises(ConfigError, match="among must be one of relevant, all; got 'some'"):
        er.measure([1.0, 2.0], relevance=[1, 0], group=["a", "b"], measures="ee_l(among=some)")
    with pytest.raises(ConfigError, match=r"smoothing must be a finite number ≥ 0; got -1"):
        er.measure([1.0, 2.0], relevance=[1, 0], group=["a", "b"], measures="min_skew@1(smoothing=-1)")


def test_values_stay_in_their_range() -> None:
    bounds = {"awrf": (1 - log(2), 1), "rnd(step=2)": (0, 1), "rkl(step=2)": (0, 1), "iaa": (0, 2), "group_iaa": (0, 2)}
    bounds |= {
        name: (0.0, 1.0) for name in MEASURES if name.startswith(("pairwise", "gini", "exposure_r", "dtr", "dir"))
    }
    for seed in range(5):
        some = lists_of(seed, q=30)
        data, scores = with_items(some)[0], pooled(some, "scores")
        for name, (low, high) in bounds.items():
            values = er.measure(scores, data, name, per_query=True)[name]
            values = values[~np.isnan(values)]
            assert len(values)
            assert values.min() >= low - 1e-12, name
            assert values.max() <= high + 1e-12, name


def test_rrd_of_expected_counts_may_exceed_the_worst_order() -> None:
    """Of 4 protected and 1 other tied item, 3.2 of the first four are protected: odds of 4. An order has odds of 3."""
    groups = list("aaaabbbb")
    name = "rrd(step=4,protected=a)"
    assert whole([1.0] * 5 + [0.0] * 3, groups, name) == pytest.approx((3.2 / 0.8 - 4 / 4) / (3 / 1 - 4 / 4))
    assert whole([8.0, 7.0, 6.0, 4.0, 5.0, 3.0, 2.0, 1.0], groups, name) == pytest.approx(1.0)


def test_decimal_shares_are_meant_as_written() -> None:
    counts = prefixes.counts_of([0] * 71 + [1] * 28 + [0], 2)
    assert 0.29 * 100 < 29
    index, _ = prefixes.infeasible(counts, np.array([0.71, 0.29]))
    assert index == sum(min(max(j - 71, 0), 28) < j * 29 // 100 or min(j, 71) < j * 71 // 100 for j in range(1, 101))
