"""`fairness_path`: what must change nothing, what is matched by name, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from linear_oracles import STRATA, Gaps, random_data

SOLVERS = ("exact", "gd")


def columns(data: er.RankingData) -> dict[str, Any]:
    """The caller's columns, in stored order."""
    names = np.array([*data.group_names, None], object)
    return {
        "X": np.array(data.features),
        "relevance": np.array(data.relevance),
        "group": names[data.group],
        "qid": data.query_ids[data.query_of_row],
        "sample_weight": data.sample_weight,
    }


# ---------------------------------------------------------------------- invariances


@settings(max_examples=25)
@given(
    seed=st.integers(0, 9),
    solver=st.sampled_from(SOLVERS),
    notion=st.sampled_from(sorted(STRATA)),
    scope=st.sampled_from(["amortized", "per_query"]),
    groups=st.integers(2, 4),
    random=st.randoms(use_true_random=False),
)
def test_order_and_names_change_no_score(
    seed: int, solver: str, notion: str, scope: str, groups: int, random: Any
) -> None:
    options: dict[str, Any] = {"notion": notion, "alphas": [0.0, 0.04, 0.4, 5], "solver": solver, "scope": scope}
    own = columns(random_data(seed, groups=groups, unknown=True, weighted=True))
    data = er.RankingData.from_arrays(**own)
    expected = er.fairness_path(data, **options).scores(data)
    order = list(range(data.n_rows))
    random.shuffle(order)
    labels = list(range(groups))
    random.shuffle(labels)
    rename = dict(zip("abcd", labels, strict=False)) | {None: None}
    changed = er.RankingData.from_arrays(
        own["X"][order],
        own["relevance"][order],
        [rename[label] for label in own["group"][order]],
        [f"query {(7 * number) % 101}" for number in own["qid"][order]],
        sample_weight=own["sample_weight"][order],
    )
    found = er.fairness_path(changed, **options).scores(changed)
    np.testing.assert_allclose(found, expected[order], rtol=0, atol=1e-9)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 9),
    solver=st.sampled_from(SOLVERS),
    size=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    shift=st.lists(st.floats(-100, 100), min_size=3, max_size=3),
    ridge=st.sampled_from([0.0, 0.1]),
)
def test_the_units_of_features_change_no_score(
    seed: int, solver: str, size: list[float], shift: list[float], ridge: float
) -> None:
    own = columns(random_data(seed))
    data = er.RankingData.from_arrays(**own)
    other = er.RankingData.from_arrays(**own | {"X": own["X"] * 10.0 ** np.array(size) + shift})
    options: dict[str, Any] = {"notion": "eod", "alphas": [0.0, 0.04, 5], "solver": solver, "ridge": ridge}
    one, two = (er.fairness_path(each, **options).scores(each) for each in (data, other))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_weight_is_so_many_copies_of_the_row(solver: str) -> None:
    own = columns(random_data(0, unknown=True))
    weight = np.random.default_rng(1).integers(0, 4, len(own["X"]))
    weighted = er.RankingData.from_arrays(**own | {"sample_weight": weight})
    repeated = er.RankingData.from_arrays(
        **{name: None if value is None else np.repeat(value, weight, axis=0) for name, value in own.items()}
    )
    for options in ({"notion": "eod"}, {"notion": "dp", "scope": "per_query"}, {"notion": "dp", "loss": "logistic"}):
        settings_ = {"alphas": [0.0, 0.1], "solver": solver, "ridge": 0.01} | options
        one, two = (er.fairness_path(each, **settings_).scores(weighted) for each in (weighted, repeated))
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-9)


def test_weights_all_alike_are_no_weights() -> None:
    own = columns(random_data(0))
    one, two = (er.RankingData.from_arrays(**own | {"sample_weight": w}) for w in (None, np.full(120, 0.3)))
    for solver in ("exact", "gd", "sgd"):
        a, b = (er.fairness_path(each, "eop", [0.0, 0.1], solver).scores(one) for each in (one, two))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


# ---------------------------------------------------------------------- the grid, several notions, scales


def test_the_default_strengths_are_the_paper_s() -> None:
    path = er.fairness_path(random_data(0))
    assert len(path) == 26
    np.testing.assert_allclose(path.alphas, [0, *10 ** (-2 + 3 * np.arange(25) / 24)])
    assert path.notions == ("equal_opportunity",) * 26
    np.testing.assert_allclose(er.strength_grid(15)[1:], 10 ** (-2 + 3 * np.arange(15) / 14))


@pytest.mark.parametrize("solver", ["exact", "gd", "sgd"])
def test_strength_zero_serves_every_notion_and_grouping(solver: str) -> None:
    data = random_data(1)
    groupings = [data, data.with_group(np.arange(data.n_rows) % 3)]
    together = er.fairness_path(groupings, ["dp", "eop"], [0.0, 0.0], solver)
    assert together.coef.shape == (8, 3)
    assert together.alphas.tolist() == [0.0] * 8
    assert len(together.residual) == len(together.notions) == 8
    alone = er.fairness_path(data.with_group(None), "dp", [0.0], solver)
    np.testing.assert_allclose(together.coef, np.tile(alone.coef, (8, 1)), rtol=0, atol=1e-14)


def test_scale_dataset_uses_the_whole_data() -> None:
    data = random_data(2)
    train = data.take(data.folds(3) != 0)
    by = {scale: er.fairness_path(train, "dp", [0.1], ridge=0.5, scale=scale) for scale in ("train", "dataset")}
    assert np.abs(by["train"].coef - by["dataset"].coef).max() > 1e-4
    whole = np.array(data.features)
    moved = (np.array(train.features) - whole.mean(axis=0)) / whole.std(axis=0)
    own = columns(train) | {"X": moved}
    unscaled = er.fairness_path(er.RankingData.from_arrays(**own), "dp", [0.1], ridge=0.5, scale=None)
    np.testing.assert_allclose(unscaled.coef / whole.std(axis=0), by["dataset"].coef, rtol=1e-9)


def test_custom_notions_train() -> None:
    data = random_data(3)
    high = er.Notion("high", lambda data: [data.column("x0") > 0])
    inside = data.to_caller(data.features[:, 0] > 0)
    by_notion = er.fairness_path(data, high, [0.1])
    by_mask = er.fairness_path(data, [inside], [0.1])
    by_function = er.fairness_path(data, high.masks, [0.1])
    assert by_notion.notions == ("high",)
    assert by_mask.notions == ("custom",)
    assert np.abs(by_notion.coef - er.fairness_path(data, "dp", [0.1]).coef).max() > 1e-4
    for other in (by_mask, by_function):
        np.testing.assert_allclose(other.coef, by_notion.coef, rtol=0, atol=1e-14)
    both = er.fairness_path(data, [high, "dp"], [0.1])
    assert both.notions == ("high", "demographic_parity")
    np.testing.assert_allclose(both.coef[0], by_notion.coef[0], rtol=0, atol=1e-14)


def test_a_term_without_two_groups_is_dropped_with_a_warning() -> None:
    own = columns(random_data(4))
    own["group"] = np.where(own["relevance"] >= 1, "a", own["group"])
    data = er.RankingData.from_arrays(**own)
    with pytest.warns(DataWarning, match="relevant rows have no item of group 'b'; this term is dropped"):
        path = er.fairness_path(data, "eod", [0.1])
    # Equalized odds keeps its ½ for the stratum that is left.
    irrelevant = er.Notion("irrelevant", lambda data: [~data.relevant])
    np.testing.assert_allclose(path.coef, er.fairness_path(data, irrelevant, [0.05]).coef, rtol=0, atol=1e-12)
    with pytest.warns(DataWarning, match="this term is dropped"):
        nothing = er.fairness_path(data, "eop", [0.0, 0.1])
    np.testing.assert_allclose(nothing.coef[0], nothing.coef[1], rtol=0, atol=1e-14)


# ---------------------------------------------------------------------- scores


def test_features_are_matched_by_name() -> None:
    own = columns(random_data(5))
    named = er.RankingData.from_arrays(**own, feature_names=["u", "v", "w"])
    path = er.fairness_path(named, "dp", [0.0, 0.1])
    expected = path.scores(named)
    turned = er.RankingData.from_arrays(**own | {"X": own["X"][:, [2, 0, 1]]}, feature_names=["w", "u", "v"])
    np.testing.assert_allclose(path.scores(turned), expected, rtol=0, atol=1e-13)
    unnamed = er.RankingData.from_arrays(**own)
    np.testing.assert_allclose(path.scores(unnamed), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(er.fairness_path(unnamed, "dp", [0.0, 0.1]).scores(named), expected, rtol=0, atol=1e-13)
    other = er.RankingData.from_arrays(**own, feature_names=["u", "v", "z"])
    with pytest.raises(DataError, match=r"trained on 3 features \('u', 'v', 'w'\); the data lacks 'w'"):
        path.scores(other)


@pytest.mark.parametrize("solver", ["exact", "gd", "sgd"])
def test_group_aware_scores_add_the_group_s_offset(solver: str) -> None:
    data = random_data(6, groups=3, unknown=True)
    path = er.fairness_path(data, "dp", [0.0, 0.1], solver, group_aware=True)
    assert path.group_offset is not None
    plain = np.array(data.features) @ path.coef.T + path.intercept
    known = data.group[data.group >= 0]
    share = np.bincount(known) / len(known)
    offsets = np.vstack([path.group_offset.T, share @ path.group_offset.T])
    found = data.to_stored(path.scores(data))
    np.testing.assert_allclose(found, plain + offsets[data.group], rtol=0, atol=1e-12)
    assert np.ptp(path.group_offset, axis=1).min() > (1e-6 if solver == "sgd" else 1e-2)
    other = data.with_group(np.where(np.arange(data.n_rows) % 2, "c", "b"))
    codes = np.where(other.group == 1, 2, 1)
    np.testing.assert_allclose(other.to_stored(path.scores(other)), plain + offsets[codes], rtol=0, atol=1e-12)
    with pytest.raises(
        DataError, match=r"row 0: group 'z' was not in training, whose groups are 'a', 'b', 'c'. Train with"
    ):
        path.scores(data.with_group(["z"] * data.n_rows))


def test_group_awareness_reaches_parity_at_least_cost() -> None:
    data = random_data(7)
    aware, blind = (er.fairness_path(data, "dp", [1.0], group_aware=flag, relative=True) for flag in (True, False))
    loss = [np.mean((data.to_stored(path.scores(data))[:, 0] - data.relevance) ** 2) for path in (aware, blind)]
    gap = [Gaps.of(data, "dp").gamma(data.to_stored(path.scores(data))[:, 0]) for path in (aware, blind)]
    assert max(gap) < 1e-12
    assert loss[0] < loss[1] - 1e-4


def test_scores_come_back_in_the_caller_s_order() -> None:
    data = random_data(8)
    assert data.row_order is not None
    path = er.fairness_path(data, "dp", [0.1])
    X = np.empty((data.n_rows, 3))
    X[data.row_order] = data.features
    np.testing.assert_allclose(path.scores(data)[:, 0], X @ path.coef[0] + path.intercept[0], rtol=0, atol=1e-13)


# ---------------------------------------------------------------------- refusals


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "solver": ({"solver": "adam"}, "solver must be one of exact, gd, sgd; got 'adam'"),
    "scope": ({"scope": "global"}, "scope must be one of amortized, per_query; got 'global'"),
    "loss": ({"loss": "hinge"}, "loss must be one of squared, pairwise, logistic; got 'hinge'"),
    "scale": ({"scale": "minmax"}, "scale must be 'train', 'dataset' or None; got 'minmax'"),
    "notion": ({"notion": "fairness"}, "notion must be one of"),
    "notion in a list": ({"notion": ["dp", "fairness"]}, "notion must be one of"),
    "across": ({"across": "max"}, "the exact solver takes across='mean'"),
    "unknown across": ({"across": "median", "solver": "gd"}, "across must be one of mean, max; got 'median'"),
    "negative strength": ({"alphas": [0.1, -1]}, "alphas must be a list of finite numbers ≥ 0"),
    "NaN strength": ({"alphas": [float("nan")]}, "alphas must be a list of finite numbers ≥ 0"),
    "no strength": ({"alphas": []}, "alphas must be a list of finite numbers ≥ 0"),
    "text strength": ({"alphas": ["lots"]}, "alphas must be a list of finite numbers ≥ 0; got"),
    "table of strengths": ({"alphas": [[0.1]]}, "alphas must be a list"),
    "ridge": ({"ridge": -0.1}, "ridge must be a finite number ≥ 0; got -0.1"),
    "learning rate": ({"solver": "gd", "learning_rate": 0}, "learning_rate must be a finite number > 0; got 0"),
    "steps": ({"max_iter": 0}, "max_iter must be a whole number ≥ 1; got 0"),
    "epochs": ({"epochs": 1.5}, "epochs must be a whole number ≥ 1; got 1.5"),
    "batch": ({"batch_queries": True}, "batch_queries must be a whole number ≥ 1; got True"),
    "items": ({"batch_items": -1}, "batch_items must be a whole number ≥ 1; got -1"),
    "relative gd": ({"relative": True, "solver": "gd"}, "relative strengths need solver='exact'"),
    "relative logistic": ({"relative": True, "loss": "logistic"}, "relative strengths need solver='exact'"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        er.fairness_path(random_data(0), **{"alphas": [0.1]} | options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_data_is_refused() -> None:
    data = random_data(0)
    with pytest.raises(DataError, match="train must be a RankingData"):
        er.fairness_path(np.zeros((3, 2)))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="train must be a RankingData"):
        er.fairness_path([])
    with pytest.raises(DataError, match="must share their rows"):
        er.fairness_path([data, random_data(1)], "dp")
    with pytest.raises(DataError, match="training needs at least one feature"):
        er.fairness_path(er.RankingData.from_arrays(np.zeros((3, 0)), [0, 1, 1], ["a", "b", "a"], [1, 1, 1]))
    for solver in ("exact", "gd", "sgd"):
        with pytest.raises(DataError, match="demographic_parity compares groups and needs at least two"):
            er.fairness_path(data.with_group(["a"] * data.n_rows), "dp", [0.1], solver)
        for several in ([data, data.with_group(["a", "b"] * 60)], data.with_group(None)):
            with pytest.raises(ConfigError, match=r"group_aware needs data with one grouping; got (2|none)"):
                er.fairness_path(several, "dp", [0.0], solver, group_aware=True)
