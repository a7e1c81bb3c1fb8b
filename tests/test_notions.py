"""Contrasts: against loops over pairs of groups, finite differences, and what an empty group does."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import evenrank as er
import oracles
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.notions import ALIASES, NOTIONS, Notion, as_notion, bind, gamma_of, violation
from oracles import Query, as_data, pooled
from strategies import queries

pytestmark = pytest.mark.numeric

SCOPES = ("amortized", "per_query")
notions = st.sampled_from(sorted(oracles.STRATA))
scopes = st.sampled_from(SCOPES)
acrosses = st.sampled_from(["mean", "max"])
real = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))


def random_data(seed: int, groups: int, *, n: int = 60, weighted: bool = True) -> RankingData:
    """Rows in mixed order, some of unknown group, in queries that may lack groups."""
    rng = np.random.default_rng(seed)
    labels = np.append(np.array(list("abcd")[:groups], object), None)
    return RankingData.from_arrays(
        rng.normal(size=(n, 2)),
        rng.integers(0, 2, n),
        rng.choice(labels, n),
        rng.integers(0, 9, n),
        sample_weight=rng.uniform(0.2, 3, n) if weighted else None,
    )


def quietly(function: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return function(*args, **options)


# ---------------------------------------------------------------------- Γ is the definition


@given(st.integers(2, 4).flatmap(lambda g: queries(groups=g, scores=real, weights=(0.0, 1.0, 2.5))), notions, scopes)
def test_violation_is_the_loop_over_pairs(some: list[Query], notion: str, scope: str) -> None:
    assume(sum(pooled(some, "weight")) > 0)
    data, values = as_data(some), [query.scores for query in some]
    for across in ("mean", "max"):
        found = quietly(violation, pooled(some, "scores"), data, notion, scope, across=across)
        assert isinstance(found, float)
        expected = oracles.violation(some, values, notion, scope, across=across)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
        trained = quietly(bind, notion, data, scope=scope, across=across, training=True)
        expected = oracles.violation(some, values, notion, scope, across=across, training=True)
        assert trained.violation(data.to_stored(pooled(some, "scores"))) == pytest.approx(expected, abs=1e-12)


@given(st.integers(2, 4).flatmap(lambda g: queries(groups=g)), notions)
def test_share_is_of_the_queries_that_can_be_compared(some: list[Query], notion: str) -> None:
    pairs = quietly(bind, notion, as_data(some), scope="per_query").pairs
    assert pairs.share == pytest.approx(oracles.share(some, notion))


@given(queries(groups=3, scores=real), notions, scopes, acrosses, st.randoms(use_true_random=False))
def test_shuffling_rows_and_renaming_groups_change_nothing(
    some: list[Query], notion: str, scope: str, across: str, random: Any
) -> None:
    values = np.array(pooled(some, "scores"))
    expected = quietly(violation, values, as_data(some), notion, scope, across=across)
    order = list(range(len(values)))
    random.shuffle(order)
    found = quietly(violation, values[order], as_data(some, order), notion, scope, across=across)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)
    names = {"a": 7, "b": -3, "c": 0, None: None}  # sorts the other way, and is of another type
    renamed = [replace(query, group=[names[label] for label in query.group]) for query in some]
    found = quietly(violation, values, as_data(renamed), notion, scope, across=across)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


@given(st.integers(0, 10**6), notions, scopes, acrosses, st.floats(-5, 5), st.floats(0, 5))
def test_violation_is_a_seminorm(seed: int, notion: str, scope: str, across: str, shift: float, scale: float) -> None:
    data = random_data(seed, 3)
    one, two = np.random.default_rng(seed).normal(size=(2, data.n_rows))
    gamma = quietly(bind, notion, data, scope=scope, across=across).violation
    assert gamma(one + shift) == pytest.approx(gamma(one), abs=1e-12)
    assert gamma(-scale * one) == pytest.approx(scale * gamma(one), abs=1e-12)
    assert gamma(one + two) <= gamma(one) + gamma(two) + 1e-12


@given(st.integers(0, 10**6), notions, scopes)
def test_weight_two_is_the_row_twice(seed: int, notion: str, scope: str) -> None:
    data = random_data(seed, 3, weighted=False)
    rng = np.random.default_rng(seed)
    times, values = rng.integers(1, 4, data.n_rows), rng.normal(size=data.n_rows)
    again = np.repeat(np.arange(data.n_rows), times)
    group = np.array([*data.group_names, None], object)[data.group]
    columns = (data.features, data.relevance, group, data.query_of_row)
    weighted = RankingData.from_arrays(*columns, sample_weight=times)
    repeated = RankingData.from_arrays(*(column[again] for column in columns))
    found = quietly(violation, values, weighted, notion, scope)
    assert found == pytest.approx(quietly(violation, values[again], repeated, notion, scope), rel=1e-12)


def test_paper_values_by_hand() -> None:
    """Γ of definition 5 on six rows: group a first, relevant rows first."""
    data = RankingData.from_arrays(np.zeros((6, 1)), [1, 1, 0, 1, 0, 0], list("aaabbb"), [1, 2, 1, 1, 2, 2])
    v = [1.0, 0.5, 0.0, 0.25, 0.5, 0.0]
    assert violation(v, data, "dp") == abs((1 + 0.5 + 0) / 3 - (0.25 + 0.5 + 0) / 3)
    assert violation(v, data, "eop") == abs((1 + 0.5) / 2 - 0.25)
    assert violation(v, data, "eod") == (abs((1 + 0.5) / 2 - 0.25) + abs(0 - (0.5 + 0) / 2)) / 2
    assert violation(v, data, "dp", "per_query") == (abs((1 + 0) / 2 - 0.25) + abs(0.5 - (0.5 + 0) / 2)) / 2
    assert violation(v, data, "eop", "per_query") == abs(1 - 0.25)  # query 2 has no relevant b


def test_more_than_two_groups_by_hand() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), [1, 1, 1], list("abc"), [1, 1, 1])
    assert violation([0.0, 1.0, 4.0], data, "dp") == (1 + 4 + 3) / 3
    assert violation([0.0, 1.0, 4.0], data, "dp", across="max") == 4


# ---------------------------------------------------------------------- gradients


@pytest.mark.parametrize("across", ["mean", "max"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("notion", sorted(oracles.STRATA))
@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("training", [True, False])
def test_gradient_meets_finite_differences(notion: str, scope: str, groups: int, across: str, training: bool) -> None:
    data = random_data(groups, groups)
    contrast = quietly(bind, notion, data, scope=scope, across=across, training=training)
    values, step = np.random.default_rng(0).normal(size=(data.n_rows, 3)), 1e-6
    assert np.abs(contrast.gaps(values)).min() > 10 * step
    found = contrast.gradient(values)
    assert found.shape == values.shape
    assert np.abs(found).max() > 1e-3
    for row in range(data.n_rows):
        nudge = step * (np.arange(data.n_rows) == row)[:, None]
        slope = (contrast.violation(values + nudge) - contrast.violation(values - nudge)) / (2 * step)
        np.testing.assert_allclose(found[row], slope, atol=1e-9)
    for model in range(3):
        np.testing.assert_allclose(found[:, model], contrast.gradient(values[:, model].copy()), atol=1e-15)
    assert (found * values).sum(axis=0) == pytest.approx(contrast.violation(values), rel=1e-12)


def test_gradient_at_zero_is_zero() -> None:
    """sign(0) = 0: where groups are level, nothing pushes."""
    data = RankingData.from_arrays(np.zeros((4, 1)), np.ones(4), list("aabb"), np.ones(4))
    assert bind("dp", data).gradient(np.array([1.0, 0.0, 0.5, 0.5])).tolist() == [0, 0, 0, 0]


def test_gradient_of_a_tied_maximum_is_shared() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), np.ones(3), list("abc"), np.ones(3))
    contrast = bind("dp", data, across="max")
    # Both |a − b| and |a − c| are the largest gap: each has half the weight.
    assert contrast.gradient(np.array([2.0, 0.0, 0.0])).tolist() == [1, -1 / 2, -1 / 2]


def test_float32_values_are_accepted() -> None:
    data = random_data(0, 2)
    values = np.random.default_rng(0).normal(size=data.n_rows).astype(np.float32)
    assert violation(values, data, "dp") == pytest.approx(violation(values.astype(float), data, "dp"), rel=1e-6)


# ---------------------------------------------------------------------- notions of one's own


def test_notion_of_ones_own_equals_the_built_in() -> None:
    rng = np.random.default_rng(3)
    n, relevance = 40, rng.integers(0, 2, 40)
    data = RankingData.from_arrays(rng.normal(size=(n, 1)), relevance, rng.choice(["a", "b"], n), rng.integers(0, 5, n))
    assert data.row_order is not None
    values = rng.normal(size=(n, 2))

    def odds(data: RankingData) -> list[np.ndarray]:
        return [data.relevance < 1, data.relevance >= 1]

    masks = [relevance == 0, relevance == 1]  # in the caller's order
    for scope in SCOPES:
        expected = violation(values, data, "equalized_odds", scope)
        assert expected.shape == (2,)
        for own in (odds, Notion("odds", odds), masks, tuple(masks), np.array(masks), [list(mask) for mask in masks]):
            np.testing.assert_array_equal(violation(values, data, own, scope), expected)
    assert as_notion(odds).name == "odds"


def test_strata_may_overlap() -> None:
    data = random_data(5, 3, weighted=False)
    values = np.random.default_rng(5).normal(size=data.n_rows)
    everything, relevant = np.ones(data.n_rows, bool), data.to_caller(data.relevant)
    found = violation(values, data, [everything, relevant])
    assert found == pytest.approx((violation(values, data, "dp") + violation(values, data, "eop")) / 2, rel=1e-14)


def test_rows_of_unknown_group_are_in_no_contrast() -> None:
    data = random_data(1, 2)
    values = np.random.default_rng(1).normal(size=data.n_rows)
    unknown = data.to_caller(data.group) < 0
    assert unknown.any()
    for notion in NOTIONS:
        for scope in SCOPES:
            moved = np.where(unknown, 1e9, values)
            assert violation(moved, data, notion, scope) == violation(values, data, notion, scope)
            assert (bind(notion, data, scope=scope).gradient(values)[data.group < 0] == 0).all()


def test_threshold_decides_what_is_relevant() -> None:
    arguments = (np.zeros((4, 1)), [1, 2, 1, 2], list("aabb"), [1, 1, 1, 1])
    v = [1.0, 0.5, 0.0, 0.25]
    assert violation(v, RankingData.from_arrays(*arguments), "eop") == abs((1 + 0.5) / 2 - (0 + 0.25) / 2)
    assert violation(v, RankingData.from_arrays(*arguments, relevance_threshold=2), "eop") == abs(0.5 - 0.25)


# ---------------------------------------------------------------------- empty cells

NO_RELEVANT_B = {"relevance": [1, 1, 0, 0, 0], "group": list("aabab"), "qid": [1, 1, 1, 1, 1]}
V = [1.0, 0.5, 0.0, 0.25, 0.5]


def small(**columns: Any) -> RankingData:
    return RankingData.from_arrays(np.zeros((5, 1)), **(NO_RELEVANT_B | columns))


@pytest.mark.parametrize("notion", ["equal_opportunity", "equalized_odds"])
def test_empty_cell_is_nan_and_named(notion: str) -> None:
    message = rf"^{notion}: relevant rows have no item of group 'b'; the violation is NaN$"
    with pytest.warns(DataWarning, match=message):
        assert np.isnan(violation(V, small(), notion))
    with pytest.warns(DataWarning, match=message):
        assert np.isnan(violation(np.column_stack([V, V]), small(), notion)).all()


@pytest.mark.parametrize("notion", ["equal_opportunity", "equalized_odds"])
def test_no_query_with_two_groups_is_nan_and_named(notion: str) -> None:
    apart = small(relevance=[1, 0, 1, 0, 0], qid=[1, 1, 2, 1, 1])
    message = rf"^{notion}: relevant rows have two groups in no query; the violation is NaN$"
    with pytest.warns(DataWarning, match=message):
        assert np.isnan(violation(V, apart, notion, "per_query"))
    with pytest.warns(DataWarning, match=r"this term is dropped$"):
        bind(notion, apart, scope="per_query", training=True)


def test_training_drops_the_term_and_keeps_the_half() -> None:
    with pytest.warns(DataWarning, match=r"relevant rows have no item of group 'b'; this term is dropped$"):
        contrast = bind("equalized_odds", small(), training=True)
    assert contrast.violation(np.array(V)) == abs(0.25 - (0 + 0.5) / 2) / 2
    with pytest.warns(DataWarning, match="this term is dropped"):
        contrast = bind("equal_opportunity", small(), training=True)
    assert contrast.violation(np.array(V)) == 0
    assert contrast.violation(np.column_stack([V, V])).tolist() == [0, 0]
    assert contrast.gradient(np.array(V)).tolist() == [0] * 5


def test_training_averages_over_all_queries_and_the_measure_over_those_that_compare() -> None:
    data = small(group=list("abbaa"), qid=[1, 1, 1, 2, 2])
    gap = abs(1 - (0.5 + 0) / 2)
    assert bind("dp", data, scope="per_query", training=True).violation(np.array(V)) == gap / 2
    measured = bind("dp", data, scope="per_query")
    assert measured.violation(np.array(V)) == gap
    assert measured.pairs.share == 1 / 2


def test_pairs_with_an_empty_cell_are_left_out() -> None:
    data = small(relevance=[1, 1, 0, 1, 0], group=list("abcaa"))
    message = r"^equal_opportunity: relevant rows have no item of group 'c'; pairs with it are left out$"
    with pytest.warns(DataWarning, match=message):
        assert violation(V, data, "eop") == abs((1 + 0.25) / 2 - 0.5)


def test_names_of_own_strata_are_in_the_warning() -> None:
    def bands(data: RankingData) -> list[np.ndarray]:
        return [data.relevance < 1, data.relevance >= 1]

    with pytest.warns(DataWarning, match=r"^parity: dear have no item of group 'b'"):
        violation(V, small(), Notion("parity", bands, ("cheap", "dear")))
    with pytest.warns(DataWarning, match=r"^bands: stratum 1 have no item of group 'b'"):
        violation(V, small(), bands)


def test_weight_zero_empties_a_cell() -> None:
    with pytest.warns(DataWarning, match="all rows have no item of group 'b'"):
        assert np.isnan(violation(V, small(sample_weight=[1, 1, 0, 1, 0]), "dp"))


def test_gamma_of_a_training_contrast_is_still_nan_where_a_stratum_is_missing() -> None:
    contrast = quietly(bind, "eod", small(), training=True)
    assert contrast.pairs.missing == (1,)
    assert np.isnan(gamma_of(contrast, np.array(V)))


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("group", "found"), [(None, "none"), (["a"] * 5, r"1 \('a'\)"), ([None] * 4 + ["b"], r"1 \('b'\)")]
)
def test_fewer_than_two_groups(group: Any, found: str) -> None:
    with pytest.raises(DataError, match=rf"^demographic_parity .* needs at least two; the data has {found}\.$"):
        violation(V, small(group=group), "dp")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"notion": "fair"}, ConfigError, r"notion must be one of demographic_parity \(dp\), .*; got 'fair'\."),
        ({"notion": 5}, ConfigError, r"notion must be a name, .*; got 5\."),
        ({"notion": []}, ConfigError, r"notion must be a name, .*; got \[\]\."),
        ({"scope": "query"}, ConfigError, r"scope must be one of amortized, per_query; got 'query'\."),
        ({"across": "sum"}, ConfigError, r"across must be one of mean, max; got 'sum'\."),
        ({"notion": [[True] * 4]}, DataError, r"a notion's mask must have shape \(5,\).*; got \(4,\)\."),
        ({"notion": [True] * 5}, DataError, r"a notion's mask must have shape \(5,\).*; got \(\)\."),
        ({"notion": lambda data: []}, DataError, r"notion '<lambda>' must give masks of shape \(5,\); got none\."),
        (
            {"notion": lambda data: [np.ones(5, bool), np.ones(4, bool)]},
            DataError,
            r"notion '<lambda>' must give masks of shape \(5,\); got \(4,\)\.",
        ),
        ({"values": V[:4]}, DataError, r"values must have shape \(5,\) or \(5, models\), .*; got \(4,\)\."),
        ({"values": [np.nan, *V[1:]]}, DataError, r"values must be finite; row 0 has nan\."),
    ],
)
def test_mistakes_are_said_in_one_line(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        violation(**{"values": V, "data": small(), "notion": "dp"} | arguments)


def test_aliases_are_the_same_notion() -> None:
    assert ALIASES == {"dp": "demographic_parity", "eop": "equal_opportunity", "eod": "equalized_odds"}
    for alias, name in ALIASES.items():
        assert as_notion(alias) is as_notion(name) is NOTIONS[name]


class TestMembership:
    """Groups known by probability."""

    @staticmethod
    def rows(seed=0, n=400):
        rng = np.random.default_rng(seed)
        query = np.sort(rng.integers(0, 50, n))
        order = rng.permutation(n)
        group = rng.integers(0, 3, n)
        data = er.RankingData.from_arrays(np.zeros((n, 0)), rng.integers(0, 2, n), group[order], query[order])
        return rng, data, group[order], rng.normal(size=n)

    @pytest.mark.parametrize("scope", ["amortized", "per_query"])
    @pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
    def test_certain_probabilities_are_labels(self, notion, scope):
        _, data, group, scores = self.rows()
        soft = data.with_membership(np.eye(3)[group], [0, 1, 2])
        np.testing.assert_array_equal(soft.group, data.group)
        assert er.violation(scores, soft, notion, scope) == pytest.approx(er.violation(scores, data, notion, scope))
        measures = ["dp@2", "eod@2", "four_fifths@2", "exposure_gap"]
        assert er.measure(scores, soft, measures) == pytest.approx(er.measure(scores, data, measures), nan_ok=True)
        assert er.selection_rates(scores, soft, 2) == pytest.approx(er.selection_rates(scores, data, 2))

    def test_rates_are_weighted_by_probability(self):
        rng, data, _, scores = self.rows(1)
        chance = rng.dirichlet([1, 1, 1], data.n_rows)[:, :2]
        soft = data.with_membership(chance, ["b", "a"])
        assert soft.group_names == ("a", "b")
        top = data.to_caller(er.Ranking(data.to_stored(scores), data.query_ptr).top(2))
        rates = {name: (chance[:, j] * top).sum() / chance[:, j].sum() for j, name in enumerate("ba")}
        assert er.selection_rates(scores, soft, 2) == pytest.approx(rates)
        assert er.measure(scores, soft, "dp@2")["dp@2"] == pytest.approx(abs(rates["a"] - rates["b"]))
        assert er.interval(scores, soft, "dp@2").estimate == pytest.approx(abs(rates["a"] - rates["b"]))
        part = soft.take([0, 3])
        assert part.membership.shape == (part.n_rows, 2)

    @pytest.mark.parametrize(
        ("table", "says"),
        [
            (np.ones((400, 2)), "sum ≤ 1"),
            (np.full((400, 2), -0.1), "sum ≤ 1"),
            (np.full((400, 2), np.nan), "sum ≤ 1"),
            (np.ones((399, 2)), "a row for each of the 400 rows"),
        ],
    )
    def test_bad_probabilities(self, table, says):
        _, data, _, _ = self.rows()
        with pytest.raises(er.DataError, match=says):
            data.with_membership(table, ["a", "b"])

    def test_training_needs_labels(self):
        rng = np.random.default_rng(0)
        data = er.RankingData.from_arrays(rng.normal(size=(6, 2)), [0, 1] * 3, None, [0] * 6)
        soft = data.with_membership(np.full((6, 2), 0.5), ["a", "b"])
        for work in (
            lambda: er.fairness_path(soft, alphas=[1.0]),
            lambda: er.DELTR().fit(soft),
            lambda: er.FAStar().rerank(np.zeros(6), soft),
        ):
            with pytest.raises(er.ConfigError, match="needs group labels"):
                work()
        assert er.fairness_path(soft, alphas=[0.0]).coef.shape == (1, 2)


@pytest.mark.parametrize("name", ["dp", "eop", "eod"])
def test_a_notion_of_ours_is_pickled_by_name(name):
    notion = as_notion(name)
    assert pickle.loads(pickle.dumps(notion)) is notion
