"""Measures: against every tie-breaking, against real peers, and what must not change them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log2, nan
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.measures import (
    MEASURE_ALIASES,
    MEASURES,
    Options,
    measure,
    measure_names,
    parse_measure,
    registry,
    selection_rates,
)
from evenrank.measures import compute as module
from evenrank.notions import violation
from evenrank.ranking import Ranking
from oracles import Query, as_data, pooled
from strategies import queries

# Random data often lacks a group; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")

KS = st.integers(1, 6)
QUALITY: dict[str, Callable[..., float]] = {
    "ndcg": oracles.ndcg,
    "precision": oracles.precision,
    "recall": oracles.recall,
    "mrr": oracles.mrr,
}
BASIC = [measure.name for measure in (*registry.QUALITY, *registry.GAPS)]
EVERY = [f"{name}@{k}" for name in BASIC for k in (1, 2, 4)] + ["ndcg", "mrr", "exposure_gap"]


def random_lists(seed: int, *, q: int = 30, ties: bool = False, groups: str = "ab", grades: int = 2) -> list[Query]:
    """Lists of 2 to 12 items, each with every group among its rows in a random share."""
    rng = np.random.default_rng(seed)
    made = []
    for length in rng.integers(2, 13, q):
        scores = rng.integers(0, 4, length) if ties else rng.permutation(length)
        relevance = rng.integers(0, grades, length)
        made.append(Query(scores.tolist(), relevance.tolist(), rng.choice(list(groups), length).tolist()))
    return made


# ---------------------------------------------------------------------- against the definitions


@given(queries(), KS)
def test_quality_is_the_average_over_all_tie_breakings(some: list[Query], k: int) -> None:
    data, scores = as_data(some), pooled(some, "scores")
    names = [f"{name}@{k}" for name in QUALITY] + ["ndcg", "mrr"]
    each = measure(scores, data, names, per_query=True)
    whole = measure(scores, data, names)
    for name in names:
        twin = QUALITY[name.partition("@")[0]]
        expected = [twin(query, k) if "@" in name else twin(query) for query in some]
        assert each[name].tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)
        assert whole[name] == pytest.approx(oracles.over_queries(expected), rel=1e-12, nan_ok=True)


@given(queries(), KS)
def test_exponential_gain(some: list[Query], k: int) -> None:
    found = measure(pooled(some, "scores"), as_data(some), f"ndcg@{k}", gain="exponential")[f"ndcg@{k}"]
    expected = oracles.over_queries([oracles.ndcg(query, k, "exponential") for query in some])
    assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


@given(st.integers(2, 4).flatmap(lambda g: queries(groups=g, weights=(1.0, 2.5))), KS, st.sampled_from(["mean", "max"]))
def test_fairness_is_of_the_expected_selection(some: list[Query], k: int, across: str) -> None:
    data, scores = as_data(some), pooled(some, "scores")
    values = {
        **{f"{notion}@{k}": (notion, [oracles.top(query.scores, k) for query in some]) for notion in oracles.STRATA},
        f"exposure_gap@{k}": ("dp", [oracles.exposure(query.scores, k) for query in some]),
        "exposure_gap": ("dp", [oracles.exposure(query.scores) for query in some]),
    }
    whole = measure(scores, data, values, across=across)
    each = measure(scores, data, values, across=across, per_query=True)
    for name, (notion, chosen) in values.items():
        expected = oracles.violation(some, chosen, notion, across=across)
        assert whole[name] == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)
        alone = [
            oracles.violation([query], [mine], notion, across=across) for query, mine in zip(some, chosen, strict=True)
        ]
        assert each[name].tolist() == pytest.approx(alone, rel=1e-12, abs=1e-15, nan_ok=True)


@given(st.integers(2, 4).flatmap(lambda g: queries(groups=g, weights=(1.0, 2.5))), KS)
def test_four_fifths_is_the_lowest_rate_over_the_highest(some: list[Query], k: int) -> None:
    data, scores = as_data(some), pooled(some, "scores")
    found = measure(scores, data, f"four_fifths@{k}")[f"four_fifths@{k}"]
    assert found == pytest.approx(oracles.four_fifths(some, k), rel=1e-12, nan_ok=True)
    each = measure(scores, data, f"ratio@{k}", per_query=True)[f"ratio@{k}"]
    assert each.tolist() == pytest.approx([oracles.four_fifths([query], k) for query in some], rel=1e-12, nan_ok=True)


@given(st.integers(2, 3).flatmap(lambda g: queries(groups=g, weights=(1.0, 2.5))), KS)
def test_selection_rates(some: list[Query], k: int) -> None:
    rows = [row for query in some for row in oracles.rows(query, oracles.top(query.scores, k))]
    for among, inside in [
        ("all", rows),
        ("relevant", [row for row in rows if row[1]]),
        ("irrelevant", [row for row in rows if not row[1]]),
    ]:
        found = selection_rates(pooled(some, "scores"), as_data(some), k, among=among)
        expected = {name: oracles.group_means(inside).get(name, nan) for name in found}
        assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_values_by_hand() -> None:
    """One list of four: 3 is first, the relevant 1 and 2 share the ranks 2 and 3, 0 is last."""
    data = RankingData.from_arrays(np.zeros((4, 1)), [1, 1, 0, 0], list("abab"), [1, 1, 1, 1])
    found = measure(
        [1.0, 2.0, 2.0, 3.0],
        data,
        ["ndcg@2", "precision@2", "recall@2", "mrr", "mrr@1", "dp@2", "eop@2", "eod@2", "four_fifths@2"],
    )
    # Selection: item 3 surely, items 1 and 2 half of the time.
    assert found == pytest.approx(
        {
            "ndcg@2": (1 / 2) / log2(1 + 2) / (1 / log2(1 + 1) + 1 / log2(1 + 2)),
            "precision@2": (1 / 2) / 2,
            "recall@2": (1 / 2) / 2,
            "mrr": (1 / 2 + 1 / 3) / 2,
            "mrr@1": 0,
            "dp@2": abs((0 + 1 / 2) / 2 - (1 / 2 + 1) / 2),
            "eop@2": abs(0 - 1 / 2),
            "eod@2": (abs(0 - 1 / 2) + abs(1 / 2 - 1)) / 2,
            "four_fifths@2": ((0 + 1 / 2) / 2) / ((1 / 2 + 1) / 2),
        },
        rel=1e-14,
    )


def test_short_lists_and_lists_with_nothing_relevant() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), [1, 0, 0], None, ["one", "two", "two"])
    names = ["precision@5", "ndcg@5", "recall@5", "mrr"]
    found = measure([1.0, 1.0, 2.0], data, names, per_query=True)
    np.testing.assert_array_equal(found["precision@5"], [1 / 5, 0])
    np.testing.assert_array_equal(found["ndcg@5"], [1, nan])
    np.testing.assert_array_equal(found["recall@5"], [1, nan])
    np.testing.assert_array_equal(found["mrr"], [1, 0])
    whole = measure([1.0, 1.0, 2.0], data, names)
    assert whole == {"precision@5": (1 / 5) / 2, "ndcg@5": 1, "recall@5": 1, "mrr": 1 / 2}


def test_graded_relevance_counts_from_the_threshold() -> None:
    arguments = (np.zeros((3, 1)), [3, 1, 0], None, [1, 1, 1])
    scores, names = [1.0, 2.0, 3.0], ["precision@2", "recall@2", "mrr", "ndcg@3"]
    ideal = 3 + 1 / log2(1 + 2)
    gain = {"ndcg@3": pytest.approx((1 / log2(1 + 2) + 3 / log2(1 + 3)) / ideal)}
    one, three = (RankingData.from_arrays(*arguments, relevance_threshold=t) for t in (1, 3))
    assert measure(scores, one, names) == gain | {"precision@2": 1 / 2, "recall@2": 1 / 2, "mrr": 1 / 2}
    assert measure(scores, three, names) == gain | {"precision@2": 0, "recall@2": 0, "mrr": 1 / 3}


# ---------------------------------------------------------------------- many models, both kinds of ties


@pytest.mark.parametrize("chunk", [1, 700, module.MODEL_CHUNK])
@pytest.mark.parametrize("per_query", [False, True])
def test_many_models_are_each_model_alone(chunk: int, per_query: bool) -> None:
    some = random_lists(0, ties=True, groups="abc", grades=3)
    data = as_data(some)
    scores = np.random.default_rng(0).integers(0, 5, (data.n_rows, 7)) / 4
    with mock.patch.multiple(module, MODEL_CHUNK=chunk, TOGETHER=1):
        together = measure(scores, data, EVERY, per_query=per_query)
    for model in range(7):
        alone = measure(scores[:, model], data, EVERY, per_query=per_query)
        for name in EVERY:
            np.testing.assert_allclose(together[name][..., model], alone[name], rtol=1e-12, atol=1e-15)
            assert together[name].shape == ((data.n_queries, 7) if per_query else (7,))


def test_one_model_gives_floats_and_a_column_gives_arrays() -> None:
    data = as_data(random_lists(1))
    scores = np.arange(data.n_rows)
    assert all(type(value) is float for value in measure(scores, data, EVERY).values())
    assert all(value.shape == (1,) for value in measure(scores[:, None], data, EVERY).values())
    assert all(type(rate) is float for rate in selection_rates(scores, data, 2).values())
    assert all(rate.shape == (1,) for rate in selection_rates(scores[:, None], data, 2).values())


def test_violation_measures_are_violations_of_the_selection() -> None:
    data = as_data(random_lists(2, ties=True, groups="abc"))
    scores = np.random.default_rng(2).integers(0, 5, data.n_rows)
    top = Ranking(scores.astype(float), data.query_ptr).top(3)
    for notion in ("demographic_parity", "equal_opportunity", "equalized_odds"):
        assert measure(scores, data, f"{notion}@3")[f"{notion}@3"] == violation(top, data, notion)


def test_ties_in_input_order() -> None:
    data = RankingData.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], list("abab"), [2, 1, 2, 1])
    same = np.zeros(4)  # lists in input order: (0, 2) and (1, 3)
    assert measure(same, data, ["dp@1", "precision@1"], ties="input") == {"dp@1": 0, "precision@1": 1 / 2}
    first = measure([0.0, 1.0, 0.0, 0.0], data, ["dp@1"], ties="input")
    assert first == measure([2.0, 2.0, 1.0, 1.0], data, ["dp@1"])


# ---------------------------------------------------------------------- what changes nothing


@given(queries(groups=3, most=5), st.randoms(use_true_random=False), st.sampled_from([-3.0, 64.0]), st.floats(0.01, 99))
def test_invariances(some: list[Query], random: Any, shift: float, scale: float) -> None:
    scores = np.array(pooled(some, "scores"))
    expected = measure(scores, as_data(some), EVERY)
    order = list(range(len(scores)))
    random.shuffle(order)
    names = {"a": "zebra", "b": "yak", "c": "ant", None: ""}
    renamed = [replace(query, group=[names[label] for label in query.group]) for query in some]
    for found in (
        measure(scores[order], as_data(some, order), EVERY),
        measure(scores, as_data(renamed), EVERY),
        measure(scores[::-1], as_data([replace_reversed(query) for query in some[::-1]]), EVERY),
        measure(scores + shift, as_data(some), EVERY),
        measure(scores * scale, as_data(some), EVERY),
    ):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-14, nan_ok=True)


def replace_reversed(query: Query) -> Query:
    return Query(query.scores[::-1], query.relevance[::-1], query.group[::-1], query.weight[::-1])


def test_names_of_queries_do_not_matter() -> None:
    some = random_lists(4, ties=True)
    scores, data = pooled(some, "scores"), as_data(some)
    renamed = replace(data, query_ids=np.array([f"q{-i}" for i in range(data.n_queries)]))
    assert measure(scores, renamed, EVERY) == measure(scores, data, EVERY)


# ---------------------------------------------------------------------- peers


@pytest.mark.parametrize("grades", [2, 5])
def test_quality_equals_pytrec_eval(grades: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    some = random_lists(7, q=50, grades=grades)
    asked = {"ndcg_cut.1,3,5,20", "P.1,3,5,20", "recall.1,3,5,20", "recip_rank"}
    qrel = {str(i): {str(j): int(r) for j, r in enumerate(query.relevance)} for i, query in enumerate(some)}
    run = {str(i): {str(j): float(s) for j, s in enumerate(query.scores)} for i, query in enumerate(some)}
    theirs = pytrec_eval.RelevanceEvaluator(qrel, asked).evaluate(run)
    for name, peer in [("mrr", "recip_rank")] + [
        (f"{ours}@{k}", f"{peer}_{k}")
        for ours, peer in (("ndcg", "ndcg_cut"), ("precision", "P"), ("recall", "recall"))
        for k in (1, 3, 5, 20)
    ]:
        # trec_eval scores a query with nothing relevant 0; we leave it out.
        mine = np.nan_to_num(measure(pooled(some, "scores"), as_data(some), name, per_query=True)[name])
        np.testing.assert_allclose(mine, [theirs[str(i)][peer] for i in range(len(some))], rtol=1e-12)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("k", [1, 3, 20, None])
def test_ties_averaged_ndcg_equals_scikit_learn(gain: str, k: int | None) -> None:
    from sklearn.metrics import ndcg_score

    some = random_lists(8, ties=True, grades=4)
    name = "ndcg" if k is None else f"ndcg@{k}"
    found = measure(pooled(some, "scores"), as_data(some), name, gain=gain, per_query=True)[name]
    expected = [ndcg_score([oracles.gains(query, gain)], [query.scores], k=k, ignore_ties=False) for query in some]
    np.testing.assert_allclose(np.nan_to_num(found), expected, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("groups", ["ab", "abcd"])
def test_fairness_equals_fairlearn_on_the_selection(k: int, groups: str) -> None:
    from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio, equalized_odds_difference

    some = random_lists(9, groups=groups)
    data, scores = as_data(some), np.array(pooled(some, "scores"), float)
    chosen = Ranking(scores, data.query_ptr).top(k)
    assert set(chosen) == {0, 1}
    rows = {"y_true": pooled(some, "relevant"), "y_pred": chosen, "sensitive_features": pooled(some, "group")}
    # With several groups fairlearn compares the highest with the lowest.
    found = measure(scores, data, [f"dp@{k}", f"eod@{k}", f"four_fifths@{k}"], across="max")
    assert found == pytest.approx(
        {
            f"dp@{k}": demographic_parity_difference(**rows),
            f"eod@{k}": equalized_odds_difference(**rows, agg="mean"),
            f"four_fifths@{k}": demographic_parity_ratio(**rows),
        },
        rel=1e-12,
    )
    if len(groups) == 2:
        assert found == measure(scores, data, list(found))


# ---------------------------------------------------------------------- warnings and mistakes


def test_nothing_relevant_anywhere_is_said() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [0, 0], None, [1, 1])
    for name in ("ndcg@3", "recall@3"):
        with pytest.warns(DataWarning, match=r"is NaN: no query has a relevant item$"):
            assert np.isnan(measure([1.0, 2.0], data, name)[name])


def test_empty_group_is_said_once_and_measured_as_nan() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), [1, 0, 1], list("aba"), [1, 1, 1])
    with pytest.warns(DataWarning, match="relevant rows have no item of group 'b'; the violation is NaN") as seen:
        found = measure([1.0, 2.0, 3.0], data, ["eop@1", "eop@2", "dp@1"])
    assert len(seen) == 1
    assert found == pytest.approx({"eop@1": nan, "eop@2": nan, "dp@1": 1 / 2}, nan_ok=True)


def test_quality_needs_no_groups() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], None, [1, 1])
    assert measure([1.0, 2.0], data, ["mrr"]) == {"mrr": 1 / 2}
    with pytest.raises(DataError, match="needs at least two; the data has none"):
        measure([1.0, 2.0], data, ["dp@1"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"measures": "fairness@3"},
            ConfigError,
            r"measure must be one of ndcg\[@k\], precision@k, .*; got 'fairness@3'\.",
        ),
        ({"measures": ["dp"]}, ConfigError, r"measure 'dp' needs a cut-off, as in 'dp@5'\."),
        ({"measures": ["ndcg@x"]}, ConfigError, r"k in 'ndcg@x' must be a whole number ≥ 1; got 'x'\."),
        ({"measures": ["ndcg@0"]}, ConfigError, r"k in 'ndcg@0' must be a whole number ≥ 1; got '0'\."),
        ({"measures": ["ndcg@1.5"]}, ConfigError, r"k in 'ndcg@1.5' must be .*; got '1.5'\."),
        ({"measures": ["ndcg@-3"]}, ConfigError, r"k in 'ndcg@-3' must be .*; got '-3'\."),
        ({"measures": ["ndcg@"]}, ConfigError, r"k in 'ndcg@' must be .*; got ''\."),
        ({"gain": "quadratic"}, ConfigError, r"gain must be one of linear, exponential; got 'quadratic'\."),
        ({"ties": "random"}, ConfigError, r"ties must be one of average, input; got 'random'\."),
        ({"across": "sum"}, ConfigError, r"across must be one of mean, max; got 'sum'\."),
        ({"scores": [1.0, 2.0]}, DataError, r"scores must have shape \(3,\), \(3, models\) or .*; got \(2,\)\."),
        ({"scores": np.zeros((3, 1, 1, 1))}, DataError, r"scores must have shape .*; got \(3, 1, 1, 1\)\."),
        ({"scores": np.zeros((3, 0))}, DataError, r"scores must have shape .*; got \(3, 0\)\."),
        ({"scores": 1.0}, DataError, r"scores must have shape .*; got \(\)\."),
        ({"scores": [1.0, 2.0, np.nan]}, DataError, r"scores must be finite; row 2 has nan\."),
        ({"scores": [[1, 2], [1, -np.inf], [1, 2]]}, DataError, r"scores must be finite; row 1 of model 1 has -inf\."),
        ({"scores": ["a", "b", "c"]}, DataError, r"scores must be numbers; got <U1 values\."),
        ({"scores": [[1.0], 2.0, 3.0]}, DataError, r"scores must be a regular array; got rows of different lengths\."),
    ],
)
def test_mistakes_are_said_in_one_line(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), [1, 0, 1], list("aba"), [1, 2, 1])
    with pytest.raises(error, match=f"^{message}$"):
        measure(**{"scores": [1.0, 2.0, 3.0], "data": data, "measures": ["ndcg@3"]} | arguments)


def test_mistakes_of_selection_rates() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], list("ab"), [1, 1])
    with pytest.raises(ConfigError, match=r"^among must be one of all, relevant, irrelevant; got 'some'\.$"):
        selection_rates([1.0, 2.0], data, 1, among="some")
    for k in (0, 1.5, True):
        with pytest.raises(ConfigError, match="k must be a whole number ≥ 1"):
            selection_rates([1.0, 2.0], data, k)


def test_exponential_gain_has_a_limit() -> None:
    data = RankingData.from_arrays(np.zeros((2, 1)), [2000, 1], None, [1, 1])
    with pytest.raises(DataError, match=r"needs relevance ≤ 1000; got 2000"):
        measure([1.0, 2.0], data, "ndcg", gain="exponential")


def test_names() -> None:
    for alias, name in MEASURE_ALIASES.items():
        assert parse_measure(f" {alias.upper()}@12 ") == (MEASURES[name], 12, Options())
    assert parse_measure("mrr") == (MEASURES["mrr"], None, Options())
    assert measure_names([1, 3], ["ndcg", "dp"]) == ["ndcg@1", "ndcg@3", "dp@1", "dp@3"]
    with pytest.raises(ConfigError, match="got 0"):
        measure_names([0])


def test_selection_rates_equal_fairlearn_s_metric_frame() -> None:
    from fairlearn.metrics import MetricFrame, selection_rate

    import evenrank as er

    rng = np.random.default_rng(0)
    n = 300
    data = er.RankingData.from_arrays(
        np.zeros((n, 0)), rng.integers(0, 2, n), rng.choice(list("abc"), n), rng.permutation(np.arange(n) // 6)
    )
    scores = rng.normal(size=n)
    selected = data.to_caller(er.Ranking(data.to_stored(scores), data.query_ptr).top(2)) > 0.5
    relevance, group = data.to_caller(data.relevance), data.to_caller(np.array(data.group_names)[data.group])
    for among, rows in (("all", relevance >= 0), ("relevant", relevance == 1), ("irrelevant", relevance == 0)):
        frame = MetricFrame(
            metrics=selection_rate, y_true=relevance[rows], y_pred=selected[rows], sensitive_features=group[rows]
        )
        assert er.selection_rates(scores, data, 2, among=among) == pytest.approx(frame.by_group.to_dict())


@pytest.mark.parametrize(("kind", "sentinel"), [("f8", -1e13), ("f8", -1e30), ("f4", -1e9), ("f4", -1e30)])
def test_a_sentinel_does_not_tie_the_others(kind: str, sentinel: float) -> None:
    """NDCG@1 was once 1/3 here: the relevant item was thought tied with two others."""
    data = RankingData.from_arrays(np.zeros((4, 0)), [1, 0, 0, 0], ["a", "a", "b", "b"], np.zeros(4))
    scores = np.array([0.9, 0.5, 0.1, sentinel], kind)
    assert measure(scores, data, ["ndcg@1", "dp@1", "mrr"]) == {"ndcg@1": 1.0, "dp@1": 0.5, "mrr": 1.0}
    assert selection_rates(scores, data, 2) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("make", [list, lambda values: np.array(values, object)])
@pytest.mark.parametrize("top", [2**53 + 1, 2**63 - 1, 2**64 - 1, 2**80])
def test_large_integers_are_told_apart(top: int, make: Callable[..., Any]) -> None:
    data = RankingData.from_arrays(np.zeros((3, 0)), [1, 0, 0], ["a", "b", "b"], np.zeros(3))
    assert measure(make([top, top - 1, -5]), data, "ndcg@1") == {"ndcg@1": 1.0}
    both = make([[top, top - 1], [top - 1, top], [-5, -5]])
    assert measure(both, data, "ndcg@1")["ndcg@1"].tolist() == [1.0, 0.0]


def test_yes_and_no_are_scores() -> None:
    data = RankingData.from_arrays(np.zeros((3, 0)), [1, 0, 0], ["a", "b", "b"], np.zeros(3))
    assert measure(np.array([True, False, False]), data, "ndcg@1") == {"ndcg@1": 1.0}
    assert violation(np.array([True, False, True]), data, "dp") == 0.5
    assert violation(np.array([1, 0, 1], np.float16), data, "dp") == 0.5


@pytest.mark.parametrize("models", [(), (3,)])
def test_columns_stand_for_data(models: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    n = 60
    relevance, group, qid = rng.integers(0, 3, n), rng.choice(["a", "b"], n), rng.integers(0, 6, n)
    scores = rng.normal(size=(n, *models))
    data = RankingData.from_arrays(np.zeros((n, 0)), relevance, group, qid, relevance_threshold=2)
    names = ["ndcg@3", "precision@3", "eop@3"]
    columns: dict[str, Any] = {"relevance": relevance.tolist(), "group": group.tolist(), "qid": qid}
    found = measure(scores, measures=names, **columns, relevance_threshold=2)
    for name, value in measure(scores, data, names).items():
        np.testing.assert_array_equal(found[name], value)
    one_list = measure(scores, measures=["dp@3"], group=group)
    alone = RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), group, np.zeros(n))
    np.testing.assert_array_equal(one_list["dp@3"], measure(scores, alone, ["dp@3"])["dp@3"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, 2.0],), {}, "measure needs data, or relevance=, group= and qid="),
        (([1.0, 2.0], [1, 0]), {}, "data must be a RankingData; got list"),
        (([1.0, 2.0],), {"relevance": [1, 0, 1]}, "relevance must have one value for each of the 2 rows"),
        ((1.0,), {"relevance": [1, 0]}, "no rows|one value for each of the 0 rows"),
        (
            ([1.0, 2.0], RankingData.from_arrays(np.zeros((2, 0)), [1, 0], None, [1, 1])),
            {"qid": [1, 1]},
            "takes relevance, group and qid from the data; leave them out",
        ),
    ],
)
def test_columns_and_data_are_told_apart(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        measure(*arguments, **options)
