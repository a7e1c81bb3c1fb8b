"""The fair XGBoost ranker: XGBoost itself at strength 0, fairer above it, and still XGBoost in every other way."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.boosting.pull import SETTLED

pytestmark = pytest.mark.extras
xgboost = pytest.importorskip("xgboost", reason="installed by make test-extras")
pytest.importorskip("numba", reason="installed by make test-extras")

from sklearn.base import clone  # noqa: E402

from model_mutations import written  # noqa: E402

TINY = 1e-12  # a strength that changes nothing but takes our objective instead of XGBoost's


def made(queries: int = 60, seed: int = 0, grades: int = 5) -> er.RankingData:
    """Graded lists of 3 to 29 items; group b is disfavoured by an informative feature and shown by another."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(3, 30, queries))
    n = len(qid)
    b = rng.random(n) < 0.4
    X = rng.normal(size=(n, 6))
    X[:, 0] -= 0.5 * b
    X[:, 1] += 1.0 * b
    relevance = np.clip(np.floor(X[:, 0] + 0.5 * X[:, 2] * X[:, 3] + rng.normal(size=n)), 0, grades - 1)
    return er.RankingData.from_arrays(X, relevance, np.where(b, "b", "a"), qid)


def sizes(data: er.RankingData) -> np.ndarray:
    return np.diff(data.query_ptr)


def ranker(**options: Any) -> er.xgboost.FairXGBRanker:
    return er.xgboost.FairXGBRanker(**{"notion": "dp", "n_estimators": 5, "n_jobs": 1, "max_depth": 3, **options})


PARAMETERS = [
    {},
    {"lambdarank_num_pair_per_sample": 4},
    {"ndcg_exp_gain": False},
    {"lambdarank_normalization": False},
    {"lambdarank_score_normalization": False},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["delegated", "own objective"])
def test_strength_0_is_xgboost(parameters: dict[str, Any], own: bool) -> None:
    data = made(200)
    options = {"n_estimators": 4, "n_jobs": 1, "max_depth": 3, **parameters}
    native = xgboost.XGBRanker(**options).fit(data.features, data.relevance, group=sizes(data))
    if own:
        objective = er.xgboost.fair_objective(data, alpha=0.0, params=parameters)
        params = {"objective": "rank:ndcg", "base_score": 0.0, "nthread": 1, "max_depth": 3, **parameters}
        rows = xgboost.QuantileDMatrix(data.features, data.relevance, group=sizes(data))
        found = xgboost.train(params, rows, 4, obj=objective).predict(rows)
    else:
        found = ranker(alpha=0.0, **options).fit(data).predict(data)
    np.testing.assert_allclose(found, native.predict(data.features), atol=1e-6)
    assert np.ptp(found) > 0.1


@pytest.mark.parametrize("alpha", [0.0, TINY])
def test_weights_are_of_queries(alpha: float) -> None:
    data = made(200)
    weight = np.random.default_rng(0).uniform(0.5, 2, data.n_queries)
    options = {"n_estimators": 2, "n_jobs": 1, "max_depth": 3}
    native = xgboost.XGBRanker(**options)
    native.fit(data.features, data.relevance, group=sizes(data), sample_weight=weight)
    ours = ranker(alpha=alpha, **options).fit(data, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(data), native.predict(data.features), atol=1e-6)
    plain = ranker(alpha=alpha, **options).fit(data)
    assert np.abs(plain.predict(data) - ours.predict(data)).max() > 1e-3


def test_ndcg_after_100_trees_is_xgboosts() -> None:
    data = made(2000)
    train, test = data.take(np.arange(1500)), data.take(np.arange(1500, 2000))
    options = {"n_estimators": 100, "n_jobs": 1, "max_depth": 4, "learning_rate": 0.1}
    native = xgboost.XGBRanker(**options).fit(train.features, train.relevance, group=sizes(train))
    ours = ranker(alpha=TINY, **options).fit(train)
    found = [er.measure(model.predict(test.features), test, "ndcg@5")["ndcg@5"] for model in (native, ours)]
    assert found[0] == pytest.approx(found[1], abs=0.005)
    assert found[0] > 0.6


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
def test_a_strength_lowers_the_violation_on_other_queries(notion: str) -> None:
    data = made(700, grades=3)
    train, test = data.take(np.arange(500)), data.take(np.arange(500, 700))
    options = {"notion": notion, "n_estimators": 40, "learning_rate": 0.1, "min_child_weight": 10}
    plain, fair = (ranker(alpha=alpha, **options).fit(train).predict(test) for alpha in (0.0, 1.0))
    before, after = (er.measure(scores, test, [f"{notion}@5", "ndcg@5"]) for scores in (plain, fair))
    assert after[f"{notion}@5"] < 0.75 * before[f"{notion}@5"]
    chance = er.measure(np.random.default_rng(0).normal(size=test.n_rows), test, "ndcg@5")["ndcg@5"]
    assert after["ndcg@5"] > (before["ndcg@5"] + chance) / 2


@pytest.mark.parametrize("objective", ["rank:ndcg", "lambdarank", "logistic", "squared"])
def test_every_objective_can_be_fair(objective: str) -> None:
    data = made(300, grades=2)
    options = {"objective": objective, "n_estimators": 40, "learning_rate": 0.1}
    plain, fair = (ranker(alpha=alpha, **options).fit(data) for alpha in (0.0, 2.0))
    assert fair.violation_ < plain.violation_ / 2
    assert er.measure(plain.predict(data), data, "ndcg@5")["ndcg@5"] > 0.6


def test_a_violation_can_be_asked_for() -> None:
    data = made(150)
    options = {"n_estimators": 30, "learning_rate": 0.1}
    assert ranker(alpha=0.0, **options).fit(data).violation_ > 0.1
    for asked in (0.08, 0.02):
        found = ranker(max_violation=asked, **options).fit(data)
        assert found.violation_ <= asked
        assert found.violation_ == er.measure(found.predict(data), data, "dp@5")["dp@5"]
    with pytest.warns(er.DataWarning, match=r"max_violation=0 was not reached: demographic_parity@5 on the training"):
        ranker(max_violation=0.0, n_estimators=2).fit(data)


# ------------------------------------------------------------------ still XGBoost


def test_rows_queries_and_frames_in_any_order() -> None:
    import pandas as pd

    data = made()
    sorted_fit = ranker(alpha=0.2).fit(data)
    order = np.argsort(np.arange(data.n_rows) - data.query_ptr[data.query_of_row], kind="stable")
    frame = pd.DataFrame(data.features[order], columns=[f"f{j}" for j in range(6)])
    qid = np.array([f"q{number:03d}" for number in data.query_of_row])[order]
    shuffled = ranker(alpha=0.2).fit(frame, data.relevance[order], qid=qid, sensitive_features=data.group[order])
    np.testing.assert_allclose(shuffled.predict(frame), sorted_fit.predict(data.features)[order], rtol=1e-5)
    assert shuffled.get_booster().feature_names == [f"f{j}" for j in range(6)]


def test_early_stopping_callbacks_and_evaluation() -> None:
    train, test = made(80), made(40, seed=1)
    seen: list[int] = []

    class Watch(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            seen.append(epoch)
            return False

    model = ranker(
        alpha=0.1,
        n_estimators=200,
        learning_rate=0.5,
        early_stopping_rounds=5,
        eval_metric="ndcg@5",
        callbacks=[Watch()],
    )
    shuffle = np.random.default_rng(0).permutation(test.n_rows)
    model.fit(
        train,
        eval_set=[(test.features[shuffle], test.relevance[shuffle])],
        eval_qid=[test.query_of_row[shuffle]],
    )
    assert 0 <= model.best_iteration < len(seen) < 200
    assert max(model.evals_result()["validation_0"]["ndcg@5"][SETTLED:]) == pytest.approx(model.best_score)
    assert model.feature_importances_.sum() == pytest.approx(1, abs=1e-5)


def test_native_model_files_predict_the_same(tmp_path: Path) -> None:
    data = made()
    model = ranker(alpha=0.2).fit(data)
    model.save_model(tmp_path / "model.json")
    again = xgboost.Booster(model_file=tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(xgboost.DMatrix(data.features)), model.predict(data))
    native = xgboost.XGBRanker()
    native.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(native.predict(data.features), model.predict(data))
    assert pickle.loads(pickle.dumps(model)).predict(data) == pytest.approx(model.predict(data))


def test_own_model_files(tmp_path: Path) -> None:
    data = made()
    model = ranker(alpha=0.2, target="score", objective="squared").fit(data)
    model.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    assert (again.alpha, again.target, again.n_estimators, again.objective) == (0.2, "score", 5, "squared")
    assert (again.alpha_, again.violation_, again.group_names_) == (0.2, model.violation_, ("a", "b"))
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    content["model"] = "no trees"
    (tmp_path / "cut.json").write_bytes(written(content))
    with pytest.raises(er.DataError, match="XGBoost model in it is damaged"):
        er.load(tmp_path / "cut.json")
    with pytest.raises(er.NotFittedError, match="not fitted yet"):
        ranker().save(tmp_path / "none.json")


def test_parameters_are_scikit_learns() -> None:
    model = ranker(alpha=0.3, reg_alpha=0.5, lambdarank_num_pair_per_sample=7, objective="logistic")
    copied = clone(model)
    before, after = ({k: v for k, v in m.get_params().items() if v == v} for m in (model, copied))
    assert before == after
    assert (after["objective"], after["alpha"], after["reg_alpha"]) == ("logistic", 0.3, 0.5)
    copied.set_params(alpha=0.7, max_violation=0.1, max_depth=2)
    found = copied.get_params()
    assert (found["alpha"], found["max_violation"], found["max_depth"]) == (0.7, 0.1, 2)
    sent = copied.get_xgb_params()
    assert not {"notion", "alpha", "target", "max_violation", "scope", "k"} & set(sent)
    assert sent["objective"] == "rank:ndcg"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "rank:err"}, "objective must be one of rank:ndcg, lambdarank, rank:pairwise, rank:map, squared"),
        ({"lambdarank_pair_method": "mean"}, "lambdarank_pair_method='topk'"),
        ({"lambdarank_unbiased": True}, "lambdarank_unbiased=False; got"),
        ({"notion": "fair"}, "notion must be one of"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(er.ConfigError, match=message):
        ranker(alpha=0.1, **options).fit(made())


@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"max_violation": 0.02}, {"alpha": 9.0, "group_aware": True}])
def test_the_violation_is_that_of_margins_and_trees_together(options: dict[str, Any]) -> None:
    data = made()
    start = np.linspace(0, 2, data.n_rows) + 1.5 * (data.group == 0)
    arguments: dict[str, Any] = {"qid": data.query_of_row, "sensitive_features": data.group}
    model = ranker(**{"n_estimators": 20, "notion": "dp", **options})
    model.fit(data.features, data.relevance, base_margin=start, **arguments)
    served = {"sensitive_features": data.group} if "group_aware" in options else {}
    together = start + model.predict(data.features, **served)
    assert model.violation_ == pytest.approx(er.measure(together, data, "dp@5")["dp@5"], abs=1e-12)
    assert model.violation_ < er.measure(start, data, "dp@5")["dp@5"]


def test_queries_of_an_evaluation_set_are_needed() -> None:
    data = made()
    with pytest.raises(er.ConfigError, match="pass eval_qid or eval_group"):
        ranker(alpha=0.1).fit(data, eval_set=[(data.features, data.relevance)])


def test_callables_for_training_code_of_ones_own() -> None:
    data = made()
    objective = er.xgboost.fair_objective(data, notion="dp", alpha=0.2)
    metric = er.xgboost.fair_metric(data, notion="dp", k=5)
    params = {
        "objective": "rank:ndcg",
        "base_score": 0.0,
        "nthread": 1,
        "max_depth": 3,
        "disable_default_eval_metric": 1,
    }
    rows = xgboost.QuantileDMatrix(data.features, data.relevance, group=sizes(data))
    history: dict[str, Any] = {}
    booster = xgboost.train(
        params,
        rows,
        5,
        obj=objective,
        custom_metric=metric,
        evals=[(rows, "train")],
        evals_result=history,
        verbose_eval=False,
    )
    expected = ranker(alpha=0.2).fit(data)
    np.testing.assert_allclose(booster.predict(rows), expected.predict(data), atol=1e-6)
    assert history["train"]["dp@5"][-1] == pytest.approx(expected.violation_, abs=1e-4)


def test_train_scores_for_a_sweep() -> None:
    train, test = made(), made(20, seed=3)
    scores = er.xgboost.train_scores(train, test, "dp", 0.2, n_estimators=5, max_depth=3)
    np.testing.assert_allclose(scores, ranker(alpha=0.2).fit(train).predict(test))
