"""The objective that boosted rankers share, and how they take their rows; what needs numba is in tests/extras."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenrank.boosting.eval_sets import as_sets, each_in_order, eval_rows
from evenrank.boosting.held_out import warn_if_above
from evenrank.boosting.objective import FIRST_ALPHA, FLOOR, FairObjective, base_gradients
from evenrank.boosting.pull import WARM_UP, FairPull
from evenrank.boosting.rows import as_rows, fit_rows, query_ids
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.losses import LOSSES
from evenrank.measures import measure
from evenrank.notions import Notion, bind
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation
from evenrank.targets import bind_target


def rows(seed: int = 0, weighted: bool = False) -> RankingData:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(12), 6)
    weight = rng.uniform(0.5, 2, 72) if weighted else None
    return RankingData.from_arrays(
        np.zeros((72, 0)), rng.integers(0, 3, 72), rng.integers(0, 2, 72), qid, sample_weight=weight
    )


def scores_of(data: RankingData, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=data.n_rows)


def objective(data: RankingData, base: str = "squared", **options: Any) -> FairObjective:
    return FairObjective(data, base_gradients(base, data), FairnessSpec(**{"target": "score", **options}))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_adds_the_pull_to_the_losss_derivatives(weighted: bool) -> None:
    data, alpha = rows(weighted=weighted), 0.7
    scores = scores_of(data)
    loss, weight = LOSSES["squared"], np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    own, fair = weight * loss.gradient(scores, data.relevance), objective(data, notion="dp", alpha=alpha)
    pull = FairPull(bind("dp", data, training=True), bind_target("score", data.query_ptr, floor=FLOOR))
    for _ in range(WARM_UP + 1):
        first, second = fair(scores)
        expected = own + pull(scores, own, alpha)
    assert first.dtype == second.dtype == np.float32
    np.testing.assert_allclose(first, expected, rtol=1e-5)
    np.testing.assert_allclose(second, weight * loss.curvature(scores, data.relevance), rtol=1e-6)
    assert np.abs(first - own).sum() > 0.01 * np.abs(own).sum()


def test_without_strength_it_is_the_loss_and_needs_no_groups() -> None:
    data = rows().with_group(None)
    first, second = objective(data, "logistic", alpha=0.0)(scores_of(data))
    np.testing.assert_allclose(first, LOSSES["logistic"].gradient(scores_of(data), data.relevant), rtol=1e-6)
    assert (second > 0).all()


def test_the_multiplier_rises_above_what_is_asked_and_falls_below() -> None:
    data = rows()
    unfair = np.where(data.group == 0, 1.0, 0.0) + 1e-3 * scores_of(data)
    fair = objective(data, notion="dp", k=2, max_violation=0.01)
    assert fair.alpha == FIRST_ALPHA
    fair(unfair)
    raised = fair.alpha
    assert raised > FIRST_ALPHA
    fair(np.zeros(data.n_rows))
    assert fair.alpha < raised
    fair(unfair)
    now = fair.alpha
    fair(unfair)
    overshot = fair.alpha
    fair(-unfair)
    assert now < overshot > fair.alpha


def test_with_groups_seen_the_term_moves_one_number_per_group_and_trees_have_the_loss() -> None:
    data = rows()
    scores = np.where(data.group == 0, 0.5, 0.0) + 0.1 * scores_of(data)
    spec = FairnessSpec("dp", target="score", alpha=3.0)
    fair = FairObjective(data, base_gradients("squared", data), spec, group_aware=True)
    for _ in range(50):
        before = fair.offsets[-1] if fair.offsets else np.zeros(2)
        first, _ = fair(scores)
        np.testing.assert_allclose(
            first, LOSSES["squared"].gradient(scores + before[data.group], data.relevance), rtol=1e-5
        )
    offsets = fair.offsets[-1]
    moved = scores + offsets[data.group]
    gaps = [abs(part[data.group == 0].mean() - part[data.group == 1].mean()) for part in (scores, moved)]
    assert gaps[1] < 0.3 * gaps[0]
    assert np.bincount(data.group) @ offsets == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
def test_violation_is_what_measure_says(notion: str) -> None:
    data = rows()
    measured = TopViolation(data, FairnessSpec(notion, k=2))
    assert measured.name == f"{notion}@2"
    assert measured.value(scores_of(data)) == pytest.approx(
        measure(scores_of(data), data, measured.name)[measured.name]
    )
    assert measured.value_if_own(data.relevance, scores_of(data)) == measured.value(scores_of(data))
    assert np.isnan(measured.value_if_own(data.relevance[:-6], scores_of(data)[:-6]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha must be"),
        ({"max_violation": -0.1}, "max_violation must be"),
        ({"k": 0}, "k must be a whole number ≥ 1; got 0"),
        ({"target": "rank"}, "target must be one of"),
        ({"scope": "all"}, "scope must be one of"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        objective(rows(), **options)


def test_an_unknown_loss_is_named() -> None:
    with pytest.raises(ConfigError, match="objective must be one of squared, logistic; got 'hinge'"):
        base_gradients("hinge", rows())


def test_groups_are_needed_for_a_strength() -> None:
    with pytest.raises(ConfigError, match=r"alpha=0\.5 needs groups"):
        FairnessSpec(alpha=0.5).check_groups(rows().with_group(None))
    with pytest.raises(ConfigError, match=r"max_violation=0\.1 needs groups"):
        FairnessSpec(alpha=0.0, max_violation=0.1).check_groups(rows().with_group(None))
    FairnessSpec(alpha=0.0).check_groups(rows().with_group(None))


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.warns(DataWarning, match=r"max_violation=0\.01 was not reached: demographic_parity@5 .* is 0\.0200"):
        warn_if_above(0.02, FairnessSpec("dp", max_violation=0.01), 30.0)
    warn_if_above(0.01, FairnessSpec("dp", max_violation=0.01), 30.0)
    warn_if_above(0.5, FairnessSpec("dp"), 30.0)


# ------------------------------------------------------------------ rows


def taken(X: Any, *others: Any, notion: Any = "dp") -> Any:
    return fit_rows(X, *others, notion=notion, relevance_threshold=1.0)


def test_rows_in_any_order_are_brought_together() -> None:
    X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    features, data, names = taken(X, [0, 1, 0, 1], ["q", "p", "q", "p"], None, ["a", "b", "a", "b"], [1, 2, 3, 4])
    np.testing.assert_array_equal(features.ravel(), [0, 2, 1, np.nan])
    assert (data.relevance.tolist(), data.group.tolist(), names) == ([0, 0, 1, 1], [0, 0, 1, 1], ("x0",))
    assert data.sample_weight is not None
    assert data.sample_weight.tolist() == [1, 3, 2, 4]


def test_frames_and_sparse_matrices_stay_what_they_are() -> None:
    import pandas as pd
    from scipy.sparse import csr_array, issparse

    frame = pd.DataFrame({"price": [1.0, 2.0, 3.0], "kind": ["x", "y", "x"]})
    features, _, names = taken(frame, [0, 1, 0], [1, 2, 1], None, None, None)
    assert (features["price"].tolist(), names) == ([1.0, 3.0, 2.0], ("price", "kind"))
    features, _, _ = taken(csr_array(np.eye(3)), [0, 1, 0], [1, 2, 1], None, None, None)
    assert issparse(features)
    np.testing.assert_array_equal(features.toarray(), np.eye(3)[[0, 2, 1]])


def test_a_notion_of_ones_own_sees_the_features() -> None:
    cheap = Notion("cheap", lambda data: [data.column("x0") < 2])
    _, data, _ = taken(np.array([[1.0], [3.0]]), [0, 1], None, [2], ["a", "b"], None, notion=cheap)
    assert cheap.masks(data)[0].tolist() == [True, False]
    _, data, _ = taken(np.array([[1.0], [3.0]]), [0, 1], None, [2], ["a", "b"], None)
    assert data.n_features == 0


def test_queries_are_ids_or_sizes() -> None:
    assert np.asarray(query_ids(None, [2, 1], 3)).tolist() == [0, 0, 1]
    assert query_ids(["a", "b"], None, 2) == ["a", "b"]
    with pytest.raises(ConfigError, match="got both"):
        query_ids([1, 1], [2], 2)
    with pytest.raises(ConfigError, match="got neither"):
        query_ids(None, None, 2)
    with pytest.raises(ConfigError, match="add up to the 4 rows; got 2 that add up to 3"):
        query_ids(None, [2, 1], 4)


@pytest.mark.parametrize(
    "labels", [["a", "b", "a"], [0, 1, 0], [True, False, True], [1.5, 1.5], [-1, 4], [[1, 2]], [None, 3], [np.nan, 3]]
)
def test_labels_given_as_sizes_are_sent_to_sensitive_features(labels: Any) -> None:
    with pytest.raises(ConfigError, match=r"group must be the sizes of the queries.*go to sensitive_features"):
        query_ids(None, labels, 3)


def test_sizes_may_be_floats() -> None:
    assert np.asarray(query_ids(None, [2.0, 1.0], 3)).tolist() == [0, 0, 1]


def test_a_ranking_data_brings_all_its_columns() -> None:
    data = rows()
    assert taken(data, None, None, None, None, None)[1] is data
    with pytest.raises(ConfigError, match="leave them out"):
        taken(data, data.relevance, None, None, None, None)
    with pytest.raises(ConfigError, match="y, the relevance of each row, is needed"):
        taken(np.zeros((2, 1)), None, [1, 1], None, None, None)


def test_evaluation_sets_are_brought_together_too() -> None:
    X, y = np.arange(3.0)[:, None], np.array([5, 6, 7])
    sets, sizes, orders = eval_rows([(X, y)], [[1, 2, 1]], None)
    assert sets[0][0].ravel().tolist() == [0, 2, 1]
    assert sets[0][1].tolist() == [5, 7, 6]
    assert (sizes[0].tolist(), orders[0].tolist()) == ([2, 1], [0, 2, 1])
    assert eval_rows(None, None, None) == (None, None, [])
    with pytest.raises(ConfigError, match="each of the 1 eval_set; got 2"):
        eval_rows([(X, y)], [[1], [2]], None)
    assert each_in_order([[1, 2, 3]], sets, orders, "weight") == [[1, 3, 2]]
    with pytest.raises(DataError, match="weight must have one value for each of the 3 rows; got 4"):
        each_in_order([[1, 2, 3, 4]], sets, orders, "weight")
    assert as_sets((X, y)) == [(X, y)]


def test_bare_callables_take_rows_that_stand_together_only() -> None:
    assert as_rows(([1, 0], ["a", "b"], [7, 7])).n_rows == 2
    for given, kind in (("ab", "str"), (["a", "b"], "list of 2"), (np.zeros(3), "ndarray"), ([1, 2, 3], "list of 3")):
        with pytest.raises(ConfigError, match=rf"\(relevance, sensitive_features, qid\).*; got {kind}"):
            as_rows(given)
    with pytest.raises(DataError, match="must stand together"):
        as_rows(([1, 0, 1], ["a", "b", "a"], [7, 8, 7]))


@pytest.mark.parametrize("alpha", [-1, float("nan"), float("inf"), "x", None])
def test_a_strength_that_is_no_number_from_0_is_refused(alpha):
    with pytest.raises(ConfigError, match="alpha must be a finite number"):
        FairnessSpec(alpha=alpha).check_groups(rows())


def test_a_violation_that_the_rows_do_not_define_cannot_be_asked_for():
    data = RankingData.from_arrays(np.zeros((4, 0)), [1, 0, 1, 1], ["a", "a", "b", "b"], [1, 1, 1, 1])
    base = base_gradients("squared", data)
    with pytest.warns(DataWarning), pytest.raises(ConfigError, match="max_violation needs eod@5"):
        FairObjective(data, base, FairnessSpec("eod", target="score", max_violation=0.1))
