"""Γ of scores less their query's mean, and the loss of differences within a query: exact paths and what they ignore."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
import evenrank.row_checks
import linear_oracles as oracle
from evenrank.centering import centered
from evenrank.design_columns import contrast_rows
from evenrank.errors import ConfigError, DataError
from evenrank.moments import Moments
from evenrank.notions import bind
from linear_oracles import CONIC, STRATA, Gaps, Rows, random_data, row_weights

pytestmark = pytest.mark.numeric

DATA: dict[str, Any] = {
    "plain": {},
    "weighted, some unknown": {"weighted": True, "unknown": True},
    "four groups": {"groups": 4, "n": 160},
    "float32": {"dtype": np.float32},
}
data_cases = pytest.mark.parametrize("options", DATA.values(), ids=DATA)


def with_query_shift(data: er.RankingData, seed: int = 0, size: float = 8.0) -> er.RankingData:
    """The same rows with one vector per query added to the features."""
    shift = np.random.default_rng(seed).integers(-4, 5, (data.n_queries, data.n_features)) * size / 4
    stored = np.array(data.features, float) + shift[data.query_of_row]
    return er.RankingData.from_arrays(
        data.to_caller(stored),
        data.to_caller(data.relevance),
        data.to_caller(np.array([*data.group_names, None], object)[data.group]),
        data.to_caller(data.query_of_row),
        sample_weight=None if data.sample_weight is None else data.to_caller(data.sample_weight),
    )


# ---------------------------------------------------------------------- centring itself


@given(
    lists=st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=5), min_size=1, max_size=5),
    shift=st.integers(-1000, 1000),
)
def test_values_less_their_list_s_mean(lists: list[list[int]], shift: int) -> None:
    ptr = np.cumsum([0, *map(len, lists)])
    expected = [value - sum(one) / len(one) for one in lists for value in one]
    flat = np.array([value for one in lists for value in one], float)
    np.testing.assert_allclose(centered(flat, ptr), expected, rtol=0, atol=1e-13)
    moved = flat + shift * np.repeat(np.arange(len(lists)), np.diff(ptr))
    assert (centered(moved, ptr) == centered(flat, ptr)).all()
    np.testing.assert_allclose(centered(np.stack([flat, -flat], axis=1), ptr)[:, 1], np.negative(expected), atol=1e-13)


def test_weights_count_in_the_mean_and_a_list_without_any_has_the_plain_one() -> None:
    ptr, values = np.array([0, 2, 4]), np.array([1.0, 5.0, 2.0, 4.0])
    weighted = centered(values, ptr, np.array([3.0, 1.0, 0.0, 0.0]))
    assert weighted.tolist() == [-1.0, 3.0, -1.0, 1.0]
    assert centered(np.full(4, 0.1), ptr).tolist() == [0, 0, 0, 0]


# ---------------------------------------------------------------------- moments


@data_cases
@pytest.mark.parametrize("block_bytes", [1 << 23, 8 * 3 * 7])
def test_sums_are_those_over_the_rows(options: Any, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", block_bytes)
    data = random_data(3, **options)
    moments = Moments.of(data, target="centered", within=True)
    X, weight, query = np.array(data.features, float), row_weights(data), data.query_of_row
    strata = [lambda r: True, lambda r: r >= 1, lambda r: r < 1, lambda r: r >= 1]
    cells = np.zeros_like(moments.cell_sum)
    inner = np.zeros((3, 4))
    for row in range(data.n_rows):
        mates = np.flatnonzero(query == query[row])
        for number, inside in enumerate(strata):
            if data.group[row] >= 0 and inside(data.relevance[row]):
                cells[number, data.group[row]] += weight[row] * (X[row] - X[mates].mean(axis=0))
        own = X[row] - np.average(X[mates], axis=0, weights=weight[mates])
        inner += weight[row] * np.outer(own, np.append(own, data.relevance[row]))
    for each in (moments, moments.about(np.array([1.0, -2.0, 30.0]))):
        np.testing.assert_allclose(each.cell_sum, cells, rtol=1e-11, atol=1e-10)
        np.testing.assert_allclose(each.within, inner, rtol=1e-11, atol=1e-10)
    plain = Moments.of(data)
    for name in ("x", "xx", "xr", "cell_weight"):
        np.testing.assert_allclose(
            getattr(moments.about(plain.origin), name), getattr(plain, name), rtol=1e-11, atol=1e-9
        )


@given(seed=st.integers(0, 5), fold=st.integers(0, 3), options=st.sampled_from(list(DATA.values())))
def test_parts_of_whole_queries_add_up_and_come_apart(seed: int, fold: int, options: Any) -> None:
    data = random_data(seed, **options)
    folds = data.folds(4, seed)
    whole, part, rest = (
        Moments.of(data.take(some), target="centered", within=True)
        for some in (folds >= 0, folds == fold, folds != fold)
    )
    for total, expected in ((part + rest, whole), (whole - part, rest)):
        for name in ("cell_sum", "cell_weight", "within"):
            np.testing.assert_allclose(getattr(total, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
        for notion in STRATA:
            rows, pairs = total.contrasts(notion)
            np.testing.assert_allclose(rows, expected.contrasts(notion)[0], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(pairs.weight, expected.contrasts(notion)[1].weight)


def test_moments_of_different_kinds_are_not_combined() -> None:
    data = random_data(0)
    with pytest.raises(DataError, match="must share their target; got 'centered' and 'score'"):
        Moments.of(data, target="centered") + Moments.of(data)
    with pytest.raises(DataError, match="must share their sums; got 'within queries' and none"):
        Moments.of(data, within=True) + Moments.of(data)
    with pytest.raises(ConfigError, match="target of moments must be one of score, centered; got 'topk'"):
        Moments.of(data, target="topk")
    with pytest.raises(ConfigError, match="no sums within queries"):
        Moments.of(data).quadratic(np.zeros(3), np.ones(3), within=True)


# ---------------------------------------------------------------------- contrasts


@data_cases
@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("group_aware", [False, True])
def test_contrasts_are_the_definition_and_ignore_what_differs_between_queries(
    options: Any, notion: str, group_aware: bool
) -> None:
    data = random_data(2, **options)
    X = Rows.of(data, scaled=False, intercept=False, group_aware=group_aware).Z
    expected = Gaps.of(data, notion, target="centered").C @ X
    for rows in (data, with_query_shift(data)):
        for found in (
            Moments.of(rows, [notion], group_aware=group_aware, target="centered").contrasts(notion)[0],
            contrast_rows(bind(notion, rows), rows, group_aware=group_aware, target="centered"),
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 if "dtype" in options else 1e-11)


def test_a_feature_of_the_query_alone_has_no_gap() -> None:
    data = random_data(0, d=2)
    of_query = 0.1 + data.query_of_row / 7
    rows = er.RankingData.from_arrays(
        np.column_stack([data.features, of_query]),
        data.relevance,
        np.array(data.group_names)[data.group],
        data.query_of_row,
    )
    for notion in STRATA:
        assert (Moments.of(rows, target="centered").contrasts(notion)[0][:, 2] == 0).all()
        assert (Moments.of(rows).contrasts(notion)[0][:, 2] != 0).all()


# ---------------------------------------------------------------------- the exact path


@data_cases
@pytest.mark.parametrize(("target", "loss"), list(product(["score", "centered"], ["squared", "pairwise"]))[1:])
@pytest.mark.parametrize("notion", ["dp", "eod"])
def test_scores_are_those_of_a_conic_solver(options: Any, target: str, loss: str, notion: str) -> None:
    data = random_data(5, **options | {"n": 80})
    alphas = [0.0, 0.03, 0.2, 3.0]
    path = er.fairness_path(data, notion, alphas, target=target, loss=loss)
    assert path.residual.max() <= 1e-10
    rows, gaps = Rows.of(data), Gaps.of(data, notion, target=target)
    # Pairs say nothing of an intercept, which the conic solver would let grow without end.
    expected = oracle.convex(data, notion, alphas, target=target, loss=loss, intercept=loss != "pairwise")
    for alpha, ours, theirs in zip(alphas, data.to_stored(path.scores(data)).T, expected.T, strict=True):
        values = [oracle.objective(rows, gaps, rows.weights(each), alpha, loss=loss) for each in (ours, theirs)]
        above = values[1] - values[0]
        assert -1e-12 <= above <= 2 * CONIC
        # Strongly convex in the scores, or in those less their query's mean.
        off = ours - theirs
        if loss == "pairwise":
            off = off - np.array(
                [np.average(off[rows.query == q], weights=rows.weight[rows.query == q]) for q in rows.query]
            )
        assert rows.weight @ off**2 <= above + 1e-12


@pytest.mark.parametrize("loss", ["squared", "pairwise"])
def test_the_centred_gap_vanishes_at_alpha_star(loss: str) -> None:
    data = random_data(0)
    path = er.fairness_path(data, "eop", [0.0, 0.5, 1.0, 2.0], relative=True, target="centered", loss=loss)
    values = centered(data.to_stored(path.scores(data)), data.query_ptr)
    gaps = er.violation(data.to_caller(values), data, "eop")
    assert gaps[0] > gaps[1] > 1e-3
    assert gaps[2:].max() < 1e-12
    np.testing.assert_allclose(path.coef[3], path.coef[2], rtol=0, atol=1e-12)
    assert path.alphas[2] == pytest.approx(path.alpha_star[0])


@pytest.mark.parametrize("solver", ["exact", "gd", "sgd"])
def test_per_query_both_targets_are_the_same(solver: str) -> None:
    data = random_data(1, unknown=True, weighted=True)
    one, two = (
        er.fairness_path(data, "eod", [0.0, 0.2], solver, "per_query", target=target)
        for target in ("score", "centered")
    )
    np.testing.assert_allclose(one.coef, two.coef, rtol=0, atol=1e-12)


def test_pairwise_scores_ignore_what_differs_between_queries() -> None:
    data = random_data(4, weighted=True, unknown=True)
    options: dict[str, Any] = {"loss": "pairwise", "target": "centered", "scale": None, "alphas": [0.0, 0.02, 0.5]}
    one, two = (er.fairness_path(rows, "dp", **options) for rows in (data, with_query_shift(data)))
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-8, atol=1e-9)
    plain = [er.fairness_path(rows, "dp", [0.0], scale=None).coef for rows in (data, with_query_shift(data))]
    assert np.abs(plain[0] - plain[1]).max() > 1e-2


@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("batch_items", [None, 3])
def test_batches_are_the_loop_over_their_rows(notion: str, batch_items: int | None) -> None:
    data = random_data(0, n=80, queries=15, groups=3, unknown=True, weighted=True)
    ours: dict[str, Any] = {"epochs": 3, "batch_queries": 4, "seed": 5, "batch_items": batch_items}
    path = er.fairness_path(data, notion, [0.1, 2.0], "sgd", target="centered", learning_rate=0.02, **ours)
    for alpha, scores in zip([0.1, 2.0], data.to_stored(path.scores(data)).T, strict=True):
        expected = oracle.sgd(data, notion, alpha, target="centered", rate=0.02, **ours)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore:sgd diverged")
def test_steps_that_diverge_are_shortened() -> None:
    path = er.fairness_path(random_data(0), "dp", [1e6], "sgd", target="centered", learning_rate=0.1, batch_items=None)
    assert np.isfinite(path.coef).all()


# ---------------------------------------------------------------------- rankers, files, sweeps


def test_the_ranker_and_its_file_keep_target_and_loss(tmp_path: Path) -> None:
    data = random_data(0, n=300, queries=30)
    ranker = er.FairLinearRanker("dp", 0.1, target="centered", loss="pairwise").fit(data)
    path = er.fairness_path(data, "dp", [0.1], target="centered", loss="pairwise")
    np.testing.assert_allclose(ranker.coef_, path.coef[0])
    ranker.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    assert (again.target, again.loss) == ("centered", "pairwise")
    assert (again.predict(data) == ranker.predict(data)).all()


def test_max_violation_searches_up_to_the_centred_alpha_star() -> None:
    data = random_data(0, n=400, queries=40)
    plain = er.FairLinearRanker("dp", 0.0, k=3).fit(data).violation_
    ranker = er.FairLinearRanker("dp", k=3, max_violation=0.7 * plain, target="centered", loss="pairwise").fit(data)
    assert ranker.alpha_ > 0
    assert ranker.violation_ <= 0.7 * plain


def test_a_sweep_has_it_as_a_method() -> None:
    data = random_data(0, n=300, queries=30)
    result = er.sweep(data, methods=["amortized", "centered"], notions=["dp"], ks=[3], folds=2, strengths=[0.0, 0.1])
    one, two = (result.curve("demographic_parity", 3, method=name) for name in ("amortized", "centered"))
    assert one.violation[0] == two.violation[0]
    assert one.violation[1] != two.violation[1]


def test_beyond_the_path_scores_go_on_in_the_same_direction():
    data = er.datasets.german_credit("age", lists=20, items=10)
    folds = np.arange(data.n_queries) % 2
    lengths = [0.0, 0.5, 1.0, 1.25]
    result = er.sweep(data, ["centered_beyond"], ["dp"], ks=[3], folds=folds, strengths=lengths)
    train, test = data.take(folds != 0), data.take(folds == 0)
    path = er.fairness_path(train, "dp", [0.0, 1e6], target="centered", loss="pairwise").scores(test)
    for trial in result.trials():
        if trial.fold == 0:
            scores = path[:, 0] + trial.strength * (path[:, 1] - path[:, 0])
            assert trial.values["demographic_parity@3"] == pytest.approx(er.measure(scores, test, ["dp@3"])["dp@3"])
            assert trial.values["ndcg@3"] == pytest.approx(er.measure(scores, test, ["ndcg@3"])["ndcg@3"])
