"""Boosted rankers that are asked for a gap, that may see the group, and that stop early: LightGBM and XGBoost alike."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.boosting.pull import SETTLED

pytestmark = pytest.mark.extras
lightgbm = pytest.importorskip("lightgbm", reason="installed by make test-extras")
xgboost = pytest.importorskip("xgboost", reason="installed by make test-extras")
pytest.importorskip("numba", reason="installed by make test-extras")

LIBRARIES = ["lightgbm", "xgboost"]
TINY = 1e-12  # a strength that changes nothing but takes our objective instead of the library's


def made(
    queries: int = 60, seed: int = 0, *, length: tuple[int, int] = (6, 20), share: float = 0.4, grades: int = 3
) -> er.RankingData:
    """Lists in which group b is disfavoured by an informative feature and shown by another."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(*length, queries))
    n = len(qid)
    b = rng.random(n) < share
    X = rng.normal(size=(n, 5))
    X[:, 0] -= 0.8 * b
    X[:, 1] += 2.0 * b
    relevance = np.clip(np.floor(X[:, 0] + 0.5 * rng.normal(size=n) + 0.5), 0, grades - 1)
    return er.RankingData.from_arrays(X, relevance, np.where(b, "b", "a"), qid)


def ranker(library: str, **options: Any) -> Any:
    common = {"notion": "dp", "k": 3, "n_estimators": 12, "n_jobs": 1, "learning_rate": 0.2, **options}
    if library == "lightgbm":
        return er.lightgbm.FairLGBMRanker(**{"verbose": -1, "num_leaves": 6, "min_child_samples": 5, **common})
    return er.xgboost.FairXGBRanker(**{"max_depth": 3, **common})


# ------------------------------------------------------------------ max_violation


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_paid_where_strength_0_is_within_the_limit(library: str) -> None:
    data = made()
    plain = ranker(library, alpha=0.0).fit(data)
    asked = ranker(library, max_violation=plain.violation_ + 1e-9).fit(data)
    assert asked.alpha_ == 0
    assert [alpha for alpha, _, _ in asked.tried_] == [0]
    np.testing.assert_array_equal(asked.predict(data), plain.predict(data))


HOSTILE = {
    "tiny group": {"share": 0.02, "queries": 80},
    "half": {"share": 0.5, "length": (4, 7)},
    "long lists": {"queries": 6, "length": (80, 200)},
    "short lists": {"queries": 150, "length": (1, 5)},
    "binary": {"grades": 2},
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_limit_that_some_strength_of_the_grid_keeps_is_kept(library: str, name: str) -> None:
    data = made(**HOSTILE[name])
    plain = ranker(library, alpha=0.0).fit(data)
    limit = plain.violation_ / 3
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ranker(library, max_violation=limit).fit(data)
    measured = er.measure(model.predict(data), data, ["dp@3", "ndcg@3"])
    assert model.violation_ == pytest.approx(measured["dp@3"])
    within = [quality for _, gap, quality in model.tried_ if gap <= limit]
    assert (measured["dp@3"] <= limit) == bool(within) == (not any("was not reached" in str(w.message) for w in said))
    assert not within or measured["ndcg@3"] == pytest.approx(max(within))
    assert len(model.tried_) <= 11


DARTS = {"lightgbm": {"boosting_type": "dart"}, "xgboost": {"booster": "dart", "rate_drop": 0.1}}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "dart", [False, True]
)  # whose rounds change earlier trees: its first trees are no model to cut to
def test_a_limit_on_training_rows_is_given_up_after_all_of_the_grid(library: str, dart: bool) -> None:
    data = made(40, length=(6, 9))
    with pytest.warns(er.DataWarning, match="was not reached"):
        model = ranker(library, max_violation=0.0, n_estimators=3, **(DARTS[library] if dart else {})).fit(data)
    strengths = {alpha for alpha, _, _ in model.tried_}
    assert set(er.strength_grid().tolist()) <= strengths
    assert model.violation_ == min(gap for _, gap, _ in model.tried_)
    # What any of them keeps is kept, whichever strengths are tried first.
    grid = [ranker(library, alpha=alpha, n_estimators=3).fit(data).violation_ for alpha in er.strength_grid()[1:]]
    limit = min(grid)
    assert ranker(library, max_violation=limit, n_estimators=3).fit(data).violation_ <= limit


def rounds_of(model: Any) -> int:
    booster = model.get_booster() if hasattr(model, "get_booster") else model.booster_
    return int(booster.num_boosted_rounds() if hasattr(booster, "num_boosted_rounds") else booster.num_trees())


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("stopped", [False, True])
def test_a_model_that_swings_about_a_limit_is_cut_where_it_was_within_it_last(
    library: str, stopped: bool, tmp_path: Path
) -> None:
    data, test = made(40, seed=0, length=(6, 9)), made(40, seed=19, length=(6, 9))
    limit = 0.01
    options: dict[str, Any] = {"max_violation": limit, "n_estimators": 15}
    given: dict[str, Any] = {}
    if stopped:  # by NDCG alone, the limit being one of the training rows
        given = {"eval_set": [(test.features, test.relevance)], "eval_qid": [test.query_of_row]}
        options |= {"early_stopping_round" if library == "lightgbm" else "early_stopping_rounds": 8}
    model = ranker(library, **options).fit(data, **given)
    assert len(model.tried_) > 8
    assert 6 <= rounds_of(model) < 15
    measured = er.measure(model.predict(data), data, "dp@3")["dp@3"]
    assert model.violation_ == pytest.approx(measured)
    assert measured <= limit
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(er.load(tmp_path / "model.json").predict(data), model.predict(data))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_limit_holds_on_held_out_queries_with_a_margin(library: str) -> None:
    train, test = made(500), made(500, seed=1)
    limit = 0.12
    kept_aside = ranker(library, max_violation=limit, validation_fraction=0.4).fit(train)
    by_set = ranker(library, max_violation=limit).fit(
        train,
        eval_set=[(test.features, test.relevance)],
        eval_qid=[test.query_of_row],
        eval_sensitive_features=[np.array(test.group_names)[test.group]],
    )
    for model in (kept_aside, by_set):
        assert model.alpha_ > 0
        assert min(gap for _, gap, _ in model.tried_) <= limit
    upper = er.interval(by_set.predict(test), test, "dp@3", 0.9, "analytic").high
    assert upper <= limit
    assert upper == pytest.approx(next(gap for alpha, gap, _ in by_set.tried_ if alpha == by_set.alpha_))


@pytest.mark.parametrize("library", LIBRARIES)
def test_training_again_forgets_what_was_tried(library: str) -> None:
    data = made(20)
    model = ranker(library, max_violation=0.3, n_estimators=3).fit(data).set_params(max_violation=None, alpha=0.0)
    assert not hasattr(model.fit(data), "tried_")
    np.testing.assert_array_equal(
        model.predict(data), ranker(library, alpha=0.0, n_estimators=3).fit(data).predict(data)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation_fraction": 1.5, "max_violation": 0.1}, "validation_fraction must be below 1"),
        ({"validation_fraction": 0.5, "max_violation": 0.1, "scope": "per_query"}, "held-out queries is for"),
    ],
)
def test_bad_limits_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(er.ConfigError, match=message):
        ranker("lightgbm", **options).fit(made())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_limit_is_judged_by_one_kind_of_rows(library: str) -> None:
    train, test = made(), made(seed=1)
    with pytest.raises(er.ConfigError, match=r"got an eval_set and validation_fraction=0.3\. Leave out one"):
        ranker(library, max_violation=0.1, validation_fraction=0.3).fit(train, eval_set=[test])


# ------------------------------------------------------------------ seeing the group


@pytest.mark.parametrize("library", LIBRARIES)
def test_seeing_the_group_costs_no_more_than_an_offset(library: str) -> None:
    train, test = made(300), made(200, seed=1)
    plain, aware = (ranker(library, alpha=a, group_aware=a > 0, n_estimators=30).fit(train) for a in (0.0, 3.0))
    offset = er.GroupOffset("dp", 3).fit(plain.predict(train), train)
    before, ours, theirs = (
        er.measure(scores, test, ["dp@3", "ndcg@3"])
        for scores in (plain.predict(test), aware.predict(test), offset.rerank(plain.predict(test), test))
    )
    assert ours["dp@3"] < before["dp@3"] / 3
    assert ours["ndcg@3"] > theirs["ndcg@3"] - 0.02


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_added_is_a_part_of_the_exact_offset_of_scores_by_other_queries(library: str) -> None:
    data = made(80)
    native, own = (
        (lightgbm.LGBMRanker, {"verbose": -1, "num_leaves": 6, "min_child_samples": 5})
        if library == "lightgbm"
        else (xgboost.XGBRanker, {"max_depth": 3, "objective": "rank:ndcg"})
    )

    def trained(rows: er.RankingData) -> Any:
        model = native(n_estimators=12, n_jobs=1, learning_rate=0.2, **own)
        return model.fit(rows.features, rows.relevance, group=np.diff(rows.query_ptr))

    half, others = data.folds(2, 0), np.empty(data.n_rows)
    for number in range(2):
        model = trained(data.take(half != number))
        rest = (half == number)[data.query_of_row]
        others[rest] = model.predict(data.features[rest])
    full = er.GroupOffset("dp", 3, shrink=False).fit(others, data).offsets_
    assert full["a"] == 0 < full["b"]
    for alpha in (0.0, 1.0, 3.0):
        aware = ranker(library, alpha=alpha, group_aware=True).fit(data)
        np.testing.assert_allclose(aware.group_offset_, [0, full["b"] * alpha / (1 + alpha)], rtol=1e-9)
        scores = trained(data).predict(data.features) + aware.group_offset_[data.group]
        np.testing.assert_allclose(aware.predict(data), scores, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_limit_costs_no_more_models_where_the_group_is_seen(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, calls = (lightgbm.LGBMRanker, "fit") if library == "lightgbm" else (er.xgboost.FairXGBRanker, "_boost")
    original, fits = getattr(module, calls), []

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        fits.append(self.n_estimators)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(module, calls, counted)
    data = made(100)
    for limit in (0.05, 0.01):
        fits.clear()
        model = ranker(library, max_violation=limit, group_aware=True).fit(data)
        assert len(fits) == 3
        assert model.violation_ == er.measure(model.predict(data), data, "dp@3")["dp@3"] <= limit
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranker(library, max_violation=0.9, group_aware=True).fit(data).alpha_ == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_strong_pull_does_not_carry_a_small_group_beyond_all_others(library: str) -> None:
    data = made(100, length=(20, 40), share=0.03)
    plain, aware = (ranker(library, alpha=a, group_aware=a > 0, n_estimators=25).fit(data) for a in (0.0, 10.0))
    assert aware.violation_ < plain.violation_
    assert abs(aware.group_offset_[1]) < 5 * plain.predict(data).std()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_ranker_that_sees_the_group_is_saved_with_it_and_asks_for_it(library: str, tmp_path: Path) -> None:
    data = made()
    model = ranker(library, group_aware=True, alpha=2.0).fit(data)
    labels = np.array(data.group_names, dtype=object)[data.group]
    expected = model.predict(data)
    np.testing.assert_array_equal(model.predict(data.features, sensitive_features=labels), expected)
    for rows in (data.features, data.with_group(None)):
        with pytest.raises(er.ConfigError, match="group_aware: pass sensitive_features"):
            model.predict(rows)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(er.load(tmp_path / "model.json").predict(data), expected)
    labels[0] = None
    unknown = model.predict(data.features, sensitive_features=labels)
    assert unknown[0] == pytest.approx(expected[0] - model.group_offset_[data.group[0]])
    np.testing.assert_array_equal(unknown[1:], expected[1:])
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert len(content["group_offset"]) == 2
    content["group_offset"] = [1.0]
    (tmp_path / "model.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(er.DataError):
        er.load(tmp_path / "model.json")


# ------------------------------------------------------------------ evaluation and early stopping


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("aware", [False, True])
def test_early_stopping_follows_ndcg_subject_to_the_gap(library: str, aware: bool) -> None:
    train, test = made(150), made(150, seed=1)
    limit, trees = 0.15, 60
    shuffle = np.random.default_rng(0).permutation(test.n_rows)
    given: dict[str, Any] = {
        "eval_set": [(test.features[shuffle], test.relevance[shuffle])],
        "eval_qid": [test.query_of_row[shuffle]],
        "eval_sensitive_features": [np.array(test.group_names)[test.group[shuffle]]],
        "eval_max_violation": limit,
    }
    options: dict[str, Any] = {"alpha": 1.0, "n_estimators": trees, "group_aware": aware}
    if library == "lightgbm":
        model = ranker(library, **options).fit(train, **given, callbacks=[lightgbm.early_stopping(15, verbose=False)])
        best, (history,) = model.best_iteration_, model.evals_result_.values()
    else:
        model = ranker(library, **options, early_stopping_rounds=15).fit(train, **given)
        best, (history,) = model.best_iteration + 1, model.evals_result_.values()
    values = history["ndcg@3_with_dp@3_up_to_0.15"]
    first = 0 if aware else SETTLED
    assert best == first + int(np.argmax(values[first:])) + 1
    scores = model.predict(test)
    if aware:  # trees are judged by what they are worth with offsets of the set's own
        trees = scores - model.group_offset_[test.group]
        scores = er.GroupOffset("dp", 3, 0.5, shrink=False).fit(trees, test).rerank(trees, test)
    found = er.measure(scores, test, ["ndcg@3", "dp@3"])
    assert found["dp@3"] <= limit
    assert found["ndcg@3"] == pytest.approx(max(values[first:]), abs=1e-6)


@pytest.mark.parametrize("form", ["lightgbm", "lightgbm parameter", "xgboost", "xgboost callback"])
def test_models_that_do_not_yet_follow_the_strength_are_no_candidates(form: str) -> None:
    """The metric falls from round to round, as NDCG may while a strength takes hold; at strength 0 that is a reason."""

    def falling(_: Any, scores: np.ndarray) -> float:
        return -float(np.abs(scores).mean())

    falling.__name__ = "ndcg_falling"
    train, test = made(60), made(30, seed=1)
    given: dict[str, Any] = {"eval_set": [(test.features, test.relevance)], "eval_qid": [test.query_of_row]}
    library, _, kind = form.partition(" ")
    for alpha, best in ((0.0, 0), (1.0, SETTLED)):
        options = {"alpha": alpha, "n_estimators": 60}
        if library == "lightgbm":
            own: dict[str, Any] = {"early_stopping_round": 7} if kind else {}
            more = {} if kind else {"callbacks": [lightgbm.early_stopping(7, verbose=False)]}
            metric = {"eval_metric": lambda relevance, scores: ("falling", falling(relevance, scores), True)}
            model = ranker(library, metric="None", **options, **own).fit(train, **given, **more, **metric)
            found, seen = model.best_iteration_ - 1, len(model.evals_result_["valid_0"]["falling"])
        else:
            stop = xgboost.callback.EarlyStopping(rounds=7, save_best=True)
            own = {"callbacks": [stop]} if kind else {"early_stopping_rounds": 7}
            model = ranker(library, eval_metric=falling, **options, **own).fit(train, **given)
            found, seen = model.best_iteration, len(model.evals_result()["validation_0"]["ndcg_falling"])
        assert (found, seen) == (best, best + 8)


def test_the_metric_prefers_any_model_within_the_limit() -> None:
    data = made(20)
    metric = er.lightgbm.fair_ndcg(data, 0.05, notion="dp", k=3)
    even, uneven = np.zeros(data.n_rows), data.relevance - 5.0 * data.group
    gap = er.measure(uneven, data, "dp@3")["dp@3"]
    assert metric(data.relevance, uneven) == ("ndcg@3_with_dp@3_up_to_0.05", pytest.approx(-gap), True)
    wide = er.xgboost.fair_ndcg(data, 1.0, notion="dp", k=3)
    assert wide.value(even) == pytest.approx(er.measure(even, data, "ndcg@3")["ndcg@3"])
    assert np.isnan(metric(data.relevance[:-1], uneven[:-1])[1])


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_of_metrics_are_those_that_libraries_and_trackers_take(library: str) -> None:
    data = made(30)
    own = er.Notion("parity: by history | <all>", lambda rows: [np.ones(rows.n_rows, bool)])
    for notion, name in (("dp", "dp"), (own, "parity_by_history_all_")):
        module = getattr(er, library)
        given: dict[str, Any] = {"notion": notion, "k": 3}
        wanted = {None: f"{name}@3", 1e-05: f"ndcg@3_with_{name}@3_up_to_1e-05"}
        assert module.fair_metric(data, **given).name == wanted[None]
        assert module.fair_ndcg(data, 1e-5, **given).name == wanted[1e-05]
        for limit, metric in wanted.items():
            model = ranker(library, **given).fit(data, eval_set=[data], eval_max_violation=limit)
            ((_, history),) = model.evals_result_.items()
            assert metric in history
            for each in history:  # as MLflow's autologging of both libraries asks, which writes @ as "_at_"
                assert re.fullmatch(r"[/\w.\- ]*", each.replace("@", "_at_"))


def test_groups_of_evaluation_sets_are_one_per_set() -> None:
    data = made(10)
    with pytest.raises(er.ConfigError, match=r"each eval_set \(1\); got 2"):
        ranker("lightgbm").fit(
            data,
            eval_set=[(data.features, data.relevance)],
            eval_qid=[data.query_of_row],
            eval_sensitive_features=[data.group, data.group],
        )


# ------------------------------------------------------------------ other losses


def test_the_text_of_a_fair_model_names_its_loss() -> None:
    data = made(30)
    for objective, named in (("lambdarank", "lambdarank"), ("rank_xendcg", "rank_xendcg"), ("squared", "regression")):
        model = ranker("lightgbm", objective=objective).fit(data)
        assert f"\nobjective={named}\n" in model.booster_.model_to_string()
        again = lightgbm.Booster(model_str=model.booster_.model_to_string())
        np.testing.assert_array_equal(again.predict(data.features), model.predict(data))
        assert (again.params["objective"], model.booster_.params["objective"]) == (named, named)


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg", "squared"])
def test_a_fair_model_is_refitted_as_a_native_one(objective: str, tmp_path: Path) -> None:
    data, new = made(30), made(20, seed=1)
    sizes = {"group": np.diff(new.query_ptr)}
    options = {"n_estimators": 4, "objective": objective, "alpha": TINY}
    fair = ranker("lightgbm", **options).fit(data)
    fair.booster_.save_model(tmp_path / "fair.txt")
    if objective == "squared":
        options = {"n_jobs": 1, "verbose": -1, "n_estimators": 4, "num_leaves": 6, "min_child_samples": 5}
        options |= {"learning_rate": 0.2, "boost_from_average": False}
        native = lightgbm.LGBMRegressor(**options).fit(data.features, data.relevance).booster_
    else:
        native = ranker("lightgbm", **{**options, "alpha": 0.0}).fit(data).booster_
    native.save_model(tmp_path / "native.txt")
    scores = []
    for booster in (lightgbm.Booster(model_file=tmp_path / "fair.txt"), fair.booster_, native):
        learned = booster.refit(new.features, new.relevance, decay_rate=0.5, **sizes)
        scores.append(learned.predict(new.features))
        assert np.abs(scores[-1] - booster.predict(new.features)).max() > 1e-3
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-6)


def test_a_logistic_model_is_not_refitted_by_another_loss() -> None:
    data = made(20)
    model = ranker("lightgbm", objective="logistic").fit(data)
    with pytest.raises(lightgbm.basic.LightGBMError, match="No objective function"):
        model.booster_.refit(data.features, data.relevance, group=np.diff(data.query_ptr))


def test_rank_xendcg_is_lightgbms() -> None:
    data = made()
    options = {"objective": "rank_xendcg", "n_estimators": 8, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}
    native = lightgbm.LGBMRanker(**options).fit(data.features, data.relevance, group=np.diff(data.query_ptr))
    ours = er.lightgbm.FairLGBMRanker(notion="dp", alpha=TINY, **options).fit(data)
    np.testing.assert_allclose(ours.predict(data), native.predict(data.features), atol=1e-6)


@pytest.mark.parametrize(("objective", "grades"), [("rank:pairwise", 3), ("rank:map", 2)])
def test_other_losses_are_xgboosts(objective: str, grades: int) -> None:
    data = made(grades=grades)
    options = {"objective": objective, "n_estimators": 4, "n_jobs": 1, "max_depth": 3}
    native = xgboost.XGBRanker(**options).fit(data.features, data.relevance, group=np.diff(data.query_ptr))
    ours = er.xgboost.FairXGBRanker(notion="dp", alpha=TINY, **options).fit(data)
    np.testing.assert_allclose(ours.predict(data), native.predict(data.features), atol=1e-5)


@pytest.mark.parametrize(
    ("library", "objective"), [("lightgbm", "rank_xendcg"), ("xgboost", "rank:pairwise"), ("xgboost", "rank:map")]
)
def test_other_losses_can_be_fair(library: str, objective: str) -> None:
    data = made(200, grades=2)
    plain, fair = (ranker(library, objective=objective, alpha=a, n_estimators=30).fit(data) for a in (0.0, 2.0))
    assert fair.violation_ < plain.violation_ / 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_rows_lack_is_said_once_though_many_models_are_trained(library: str) -> None:
    data = made(60)
    relevance = np.where(data.group == 1, 0.0, data.relevance)  # nothing of group b is relevant
    rows = er.RankingData.from_arrays(data.features, relevance, data.group, data.query_of_row)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ranker(library, notion="eod", alpha=1.0).fit(rows)
    once = [str(warning.message) for warning in said if "this term is dropped" in str(warning.message)]
    assert len(once) == 1
    assert np.isnan(model.violation_)
    rare = rows.relevance.copy()
    rare[np.flatnonzero(data.group == 1)[0]] = 1  # one row is
    some = er.RankingData.from_arrays(data.features, rare, data.group, data.query_of_row)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ranker(library, notion="eod", max_violation=0.0, validation_fraction=0.5).fit(some)
    messages = [str(warning.message) for warning in said]
    assert len(messages) == len(set(messages))
