"""The fair LightGBM ranker: LightGBM itself at strength 0, fairer above it, and still LightGBM in every other way."""

from __future__ import annotations

import json
import pickle
import runpy
from dataclasses import replace
from itertools import product
from math import exp, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er

pytestmark = pytest.mark.extras
lightgbm = pytest.importorskip("lightgbm", reason="installed by make test-extras")
pytest.importorskip("numba", reason="installed by make test-extras")

from sklearn.base import clone  # noqa: E402

from evenrank.boosting.lambdarank import LambdaRank  # noqa: E402
from evenrank.boosting.objective import FLOOR, FairObjective, fairness  # noqa: E402
from evenrank.boosting.pull import SETTLED, WARM_UP  # noqa: E402
from evenrank.boosting.soft_topk import FastTopK  # noqa: E402
from evenrank.ranking import Ranking  # noqa: E402
from evenrank.targets import bind_target  # noqa: E402
from model_mutations import written  # noqa: E402

TINY = 1e-12  # a strength that changes nothing but takes our objective instead of LightGBM's
QUIET = {"n_jobs": 1, "verbose": -1, "min_child_samples": 5}


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


def ranker(**options: Any) -> er.lightgbm.FairLGBMRanker:
    return er.lightgbm.FairLGBMRanker(**{"notion": "dp", "n_estimators": 5, **QUIET, **options})


# ------------------------------------------------------------------ LambdaRank


def twin(rule: LambdaRank, scores: list[float], labels: list[float]) -> tuple[list[float], list[float]]:
    """The derivatives of one list, pair by pair."""
    n = len(scores)
    gain = [label if rule.gains is None else 2**label - 1 for label in labels]
    if rule.gains:
        gain = [rule.gains[int(label)] for label in labels]
    ideal = sum(g / log2(2 + i) for i, g in enumerate(sorted(gain, reverse=True)[: rule.truncation]))
    order = sorted(range(n), key=lambda i: -scores[i])
    first, second, total = [0.0] * n, [0.0] * n, 0.0
    for place, i in enumerate(order):
        for other in range(place + 1, n):
            j = order[other]
            if labels[i] == labels[j] or place >= rule.truncation:
                continue
            high, low = (i, j) if labels[i] > labels[j] else (j, i)
            weight = (gain[high] - gain[low]) * (1 / log2(2 + place) - 1 / log2(2 + other)) / ideal
            if rule.by_difference and max(scores) != min(scores):
                weight /= 0.01 + abs(scores[i] - scores[j])
            wrong = 1 / (1 + exp(rule.sigma * (scores[high] - scores[low])))
            push = rule.sigma * wrong * weight
            bend = rule.sigma**2 * wrong * (1 - wrong) * weight * (2 if rule.library == "xgboost" else 1)
            first[high] -= push
            first[low] += push
            second[high] += bend
            second[low] += bend
            total += 2 * push
    damp = log2(1 + total) / total if rule.by_sum and total > 0 else 1.0
    return [damp * value for value in first], [damp * value for value in second]


RULES = [
    LambdaRank(),
    LambdaRank(truncation=3, sigma=0.7),
    LambdaRank(by_difference=False, by_sum=False),
    LambdaRank(gains=(0.0, 1.0, 5.0, 6.0, 10.0)),
    LambdaRank(library="xgboost", truncation=4),
    LambdaRank(library="xgboost", gains=None, by_difference=False),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 0.0, 100.0])
def test_lambdarank_is_its_definition(rule: LambdaRank, spread: float) -> None:
    data = made(25)
    scores = np.round(spread * np.random.default_rng(2).normal(size=data.n_rows), 1)
    first, second = rule.bind(data.relevance, data.query_ptr).gradient(scores)
    expected: list[list[float]] = [[], []]
    for begin, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        for part, values in zip(
            expected, twin(rule, scores[begin:end].tolist(), data.relevance[begin:end].tolist()), strict=True
        ):
            part.extend(values)
    # LightGBM's sigmoid is a table of a million steps over ±25.
    np.testing.assert_allclose(first, expected[0], rtol=2e-4, atol=2e-6)
    np.testing.assert_allclose(second, expected[1], rtol=2e-4, atol=2e-6)


def test_lambdarank_needs_whole_labels() -> None:
    with pytest.raises(er.DataError, match=r"whole numbers from 0 to 30; got 0\.5"):
        LambdaRank().bind(np.array([0.5, 1.0]), np.array([0, 2]))
    with pytest.raises(er.DataError, match="from 0 to 1; got 2"):
        LambdaRank(gains=(0.0, 1.0)).bind(np.array([2.0, 1.0]), np.array([0, 2]))


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("levels", [None, 3, 1])
def test_the_compiled_soft_top_k_is_the_target(k: int, levels: int | None) -> None:
    data, rng = made(40), np.random.default_rng(0)
    scores = rng.normal(size=data.n_rows) if levels is None else rng.integers(0, levels, data.n_rows) / 2
    fast = FastTopK(data.query_ptr, k, 0.2, FLOOR)
    plain = bind_target("topk", data.query_ptr, k=k, temperature=0.2, floor=FLOOR)
    slope = rng.normal(size=data.n_rows)
    np.testing.assert_allclose(fast.value(scores), plain.value(scores), rtol=1e-12)
    np.testing.assert_allclose(fast.pull_back(scores, slope), plain.pull_back(scores, slope), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("levels", [None, 3, 1])
def test_what_is_counted_is_the_top_k_that_is_measured(k: int, levels: int | None) -> None:
    data, rng = made(40), np.random.default_rng(0)
    scores = rng.normal(size=data.n_rows) if levels is None else rng.integers(0, levels, data.n_rows) / 2
    counted = FastTopK(data.query_ptr, k, 0.2, FLOOR).counted(scores)
    np.testing.assert_allclose(counted, Ranking(scores, data.query_ptr).top(k), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 5])
def test_a_pull_at_whole_lists_is_one_step_for_rows_alike_wherever_they_stand(k: int) -> None:
    data, rng = made(40), np.random.default_rng(0)
    scores, slope, hold = rng.normal(size=data.n_rows), rng.normal(size=data.n_rows), rng.random(data.n_rows)
    hold[data.query_of_row == 3] = 0  # a list that the loss does not hold
    fast = FastTopK(data.query_ptr, k, 0.2, FLOOR)
    found = fast.pull_lists(scores, slope, hold)
    plain = bind_target("topk", data.query_ptr, k=k, temperature=0.2, floor=FLOOR)
    steep = plain.value(scores) * (1 - plain.value(scores))  # times 1 / (temperature · spread of the list)
    for query in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == query)
        if len(rows) <= k or query == 3:
            assert not found[rows].any()
            continue
        first = steep[rows] / (0.2 * np.sqrt(scores[rows].var() + FLOOR**2))
        weight = first.sum() * hold[rows] / hold[rows].sum()
        mean = (weight * slope[rows]).sum() / weight.sum()
        np.testing.assert_allclose(found[rows], weight * (slope[rows] - mean), rtol=1e-9, atol=1e-12)
        assert abs(found[rows].sum()) < 1e-12  # a list as a whole goes nowhere


def test_no_step_along_what_features_tell_is_longer_than_so_many_spreads_of_its_list() -> None:
    data, rng = made(40), np.random.default_rng(0)
    scores, slope, hold = rng.normal(size=data.n_rows), rng.normal(size=data.n_rows), rng.random(data.n_rows)
    settled = data.query_of_row % 2 == 0
    hold[settled] *= 1e-6  # the loss is done with the order of these lists
    fast = FastTopK(data.query_ptr, 5, 0.2, FLOOR)
    free, bounded = fast.pull_lists(scores, slope, hold), fast.pull_lists(scores, slope, hold, 10.0)
    np.testing.assert_array_equal(bounded[~settled], free[~settled])
    assert free[settled].any()
    for query in range(0, data.n_queries, 2):
        rows = data.query_of_row == query
        if free[rows].any():
            longest = 10 * np.sqrt(scores[rows].var() + FLOOR**2)
            assert np.abs(bounded[rows] / hold[rows]).max() == pytest.approx(longest)
            np.testing.assert_allclose(bounded[rows] / bounded[rows][0], free[rows] / free[rows][0])
    # A bound in units of the score, where that is more: the spread is small before trees have grown.
    wider = fast.pull_lists(scores, slope, hold, 10.0, np.where(np.arange(data.n_queries) < 20, 1e3, 0.0))
    early = data.query_of_row < 20
    np.testing.assert_array_equal(wider[~early], bounded[~early])
    assert np.abs(wider[early & settled] / hold[early & settled]).max() == pytest.approx(1e3)


def test_an_objective_pulls_whole_lists_along_what_features_tell() -> None:
    data = made(40)
    scores = np.random.default_rng(0).normal(size=data.n_rows) + (data.group == 0)
    chances = np.where(data.group[:, None] == [0, 1], 0.9, 0.1)
    spec, bare = fairness(notion="dp", alpha=1.0, k=3), LambdaRank().bind(data.relevance, data.query_ptr).gradient
    objective = FairObjective(data, bare, spec, chances=chances, own=0.0)
    for _ in range(WARM_UP + 1):
        first, second = objective(scores)
    step = np.divide(first - bare(scores)[0], second, out=np.full(data.n_rows, np.nan), where=second > 1e-3)
    compared = 0
    for query, code in product(range(data.n_queries), (0, 1)):
        steps = step[(data.query_of_row == query) & (data.group == code) & ~np.isnan(step)]
        np.testing.assert_allclose(steps, steps[:1].repeat(len(steps)), rtol=1e-3)
        compared += len(steps) > 1
    assert compared > 20


# ------------------------------------------------------------------ LightGBM at strength 0

PARAMETERS = [
    {},
    {"sigmoid": 0.7, "lambdarank_norm": False},
    {"lambdarank_truncation_level": 4},
    {"label_gain": [0, 1, 2, 4, 9]},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["delegated", "own objective"])
@pytest.mark.parametrize("weighted", [False, True])
def test_strength_0_is_lightgbm(parameters: dict[str, Any], own: bool, weighted: bool) -> None:
    data = made()
    weight = np.random.default_rng(0).uniform(0.5, 2, data.n_rows).astype(np.float32) if weighted else None
    data = replace(data, sample_weight=weight)
    options = {"n_estimators": 8, **QUIET, **parameters}
    given = {"X": data.features, "y": data.relevance, "group": sizes(data), "sample_weight": weight}
    native = lightgbm.LGBMRanker(**options).fit(**given)
    if own:
        objective = er.lightgbm.fair_objective(data, alpha=0.0, params=parameters)
        ours = lightgbm.LGBMRanker(objective=objective, **options).fit(**given)
    else:
        ours = ranker(alpha=0.0, **options).fit(data)
    np.testing.assert_allclose(ours.predict(data.features), native.predict(data.features), atol=1e-6)
    assert np.ptp(native.predict(data.features)) > 0.1


def test_ndcg_after_100_trees_is_lightgbms() -> None:
    data = made(2000)
    train, test = data.take(np.arange(1500)), data.take(np.arange(1500, 2000))
    options = {"n_estimators": 100, "num_leaves": 15, **QUIET}
    native = lightgbm.LGBMRanker(**options).fit(train.features, train.relevance, group=sizes(train))
    ours = ranker(alpha=TINY, **options).fit(train)
    found = [er.measure(model.predict(test.features), test, "ndcg@5")["ndcg@5"] for model in (native, ours)]
    assert found[0] == pytest.approx(found[1], abs=0.005)
    assert found[0] > 0.6


# ------------------------------------------------------------------ fairness


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
@pytest.mark.parametrize("target", ["topk", "exposure"])
def test_a_strength_lowers_the_violation_on_other_queries(notion: str, target: str) -> None:
    data = made(700, grades=3, seed=5)
    train, test = data.take(np.arange(500)), data.take(np.arange(500, 700))
    options = {"notion": notion, "target": target, "n_estimators": 40, "num_leaves": 6, "min_child_samples": 100}
    plain, fair = (ranker(alpha=alpha, **options).fit(train).predict(test) for alpha in (0.0, 1.0))
    before, after = (er.measure(scores, test, [f"{notion}@5", "ndcg@5"]) for scores in (plain, fair))
    assert after[f"{notion}@5"] < (0.7 if target == "topk" else 0.9) * before[f"{notion}@5"]
    chance = er.measure(np.random.default_rng(0).normal(size=test.n_rows), test, "ndcg@5")["ndcg@5"]
    assert after["ndcg@5"] > (before["ndcg@5"] + chance) / 2


@pytest.mark.parametrize("objective", ["lambdarank", "logistic", "squared"])
def test_every_objective_can_be_fair(objective: str) -> None:
    data = made(300, grades=2)
    plain, fair = (ranker(alpha=a, objective=objective, n_estimators=40, num_leaves=6).fit(data) for a in (0.0, 2.0))
    assert fair.violation_ < plain.violation_ / 2
    assert er.measure(plain.predict(data), data, "ndcg@5")["ndcg@5"] > 0.6


def test_a_violation_can_be_asked_for() -> None:
    data = made(150)
    options = {"n_estimators": 30, "num_leaves": 8}
    assert ranker(alpha=0.0, **options).fit(data).violation_ > 0.1
    for asked in (0.08, 0.02):
        found = ranker(max_violation=asked, **options).fit(data)
        assert found.violation_ <= asked
        assert found.violation_ == er.measure(found.predict(data), data, "dp@5")["dp@5"]
        assert found.alpha_ > 0


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({}, True),
        ({"group_aware": True, "target": "exposure"}, True),
        ({"subsample": 0.5, "subsample_freq": 1}, True),
        ({"objective": "rank_xendcg"}, True),
        ({"boosting_type": "dart"}, False),
        ({"linear_tree": True}, False),
        ({"min_split_gain": 1e9}, False),
    ],
    ids=str,
)
def test_the_scores_of_training_are_those_of_a_prediction(
    options: dict[str, Any], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap is taken of the former where they are sure to be the same: a prediction of all trees takes long."""
    data, found = made(), []
    own = er.lightgbm.FairLGBMRanker._trained_scores

    def kept(self: Any, X: Any, objective: Any) -> Any:
        found.append((own(self, X, objective), self._raw_scores(X)))
        return found[-1][0]

    monkeypatch.setattr(er.lightgbm.FairLGBMRanker, "_trained_scores", kept)
    model = ranker(alpha=1.0, notion="dp", **options).fit(data)
    (trained, predicted), *_ = found
    assert (trained is not None) == known
    if known:
        np.testing.assert_array_equal(trained, predicted)
    assert model.violation_ == er.measure(model.predict(data), data, "dp@5")["dp@5"]


def test_equal_fits_with_dart_give_equal_models() -> None:
    """LightGBM's DART with an objective in Python depends on what stood in memory, as after a fit of another kind."""
    data = made()
    options: dict[str, Any] = {"boosting_type": "dart", "drop_rate": 0.5, "notion": "dp", "n_estimators": 20}
    scores = []
    for _ in range(2):
        ranker(alpha=0.0, **options).fit(data)
        scores += [ranker(alpha=1.0, **options).fit(data).predict(data) for _ in range(3)]
    for other in scores[1:]:
        np.testing.assert_array_equal(scores[0], other)


@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"max_violation": 0.02}, {"alpha": 9.0, "group_aware": True}])
def test_the_violation_is_that_of_scores_to_start_from_and_trees_together(options: dict[str, Any]) -> None:
    data = made()
    start = np.linspace(0, 2, data.n_rows) + 1.5 * (data.group == 0)
    arguments: dict[str, Any] = {"qid": data.query_of_row, "sensitive_features": data.group}
    model = ranker(n_estimators=20, **options).fit(data.features, data.relevance, init_score=start, **arguments)
    served = {"sensitive_features": data.group} if "group_aware" in options else {}
    together = start + model.predict(data.features, **served)
    assert model.violation_ == pytest.approx(er.measure(together, data, "dp@5")["dp@5"], abs=1e-12)
    assert model.violation_ < er.measure(start, data, "dp@5")["dp@5"]


def test_an_evaluation_set_starts_from_its_own_scores() -> None:
    data = made(60)
    test = np.arange(data.n_queries) % 2 == 0
    (one, start), (other, own) = ((part, 1.5 * (part.group == 0)) for part in (data.take(~test), data.take(test)))
    model = ranker(max_violation=0.5).fit(
        one.features,
        one.relevance,
        qid=one.query_of_row,
        sensitive_features=one.group,
        init_score=start,
        eval_set=[(other.features, other.relevance)],
        eval_qid=[other.query_of_row],
        eval_sensitive_features=[other.group],
        eval_init_score=[own],
    )
    kept = next(each for each in model.tried_ if each[0] == model.alpha_)
    together = own + model.predict(other.features)
    assert kept[1] == pytest.approx(er.interval(together, other, "dp@5", 0.9, "analytic").high)


def test_weights_are_those_that_lightgbm_keeps() -> None:
    """LightGBM has them as single numbers; with the loss alone our objective grows its trees, to the last bit."""
    data = made(30)
    weighed = replace(data, sample_weight=np.random.default_rng(0).uniform(0.1, 3, data.n_rows))
    native, ours = (ranker(n_estimators=10, alpha=alpha).fit(weighed).predict(data) for alpha in (0.0, 1e-300))
    np.testing.assert_array_equal(native, ours)


def test_rows_that_no_tree_can_split_are_named() -> None:
    data = made(1)
    with pytest.raises(er.DataError, match="LightGBM found no feature to split by"):
        er.lightgbm.FairLGBMRanker(verbose=-1, min_child_samples=1000).fit(data)


def test_a_list_sorted_before_is_sorted_again() -> None:
    """The kernel begins with the order of the last call; the derivatives do not depend on it."""
    data, rng = made(20), np.random.default_rng(3)
    bound = LambdaRank().bind(data.relevance, data.query_ptr)
    for _ in range(5):
        scores = np.round(rng.normal(size=data.n_rows), 1)
        fresh = LambdaRank().bind(data.relevance, data.query_ptr).gradient(scores)
        np.testing.assert_array_equal(bound.gradient(scores), fresh)


def test_a_violation_that_cannot_be_reached_is_said() -> None:
    data = made(30)
    with pytest.warns(er.DataWarning, match=r"max_violation=0 was not reached: demographic_parity@5 on the training"):
        ranker(max_violation=0.0, n_estimators=2).fit(data)


# ------------------------------------------------------------------ still LightGBM


def test_rows_queries_and_frames_in_any_order() -> None:
    import pandas as pd

    data = made()
    sorted_fit = ranker(alpha=0.2).fit(data.features, data.relevance, group=sizes(data), sensitive_features=data.group)
    # The queries interleaved: first all first items, then all second ones …
    order = np.argsort(np.arange(data.n_rows) - data.query_ptr[data.query_of_row], kind="stable")
    frame = pd.DataFrame(data.features[order], columns=[f"f{j}" for j in range(6)])
    qid = np.array([f"q{number:03d}" for number in data.query_of_row])[order]
    shuffled = ranker(alpha=0.2).fit(frame, data.relevance[order], qid=qid, sensitive_features=data.group[order])
    np.testing.assert_allclose(shuffled.predict(frame), sorted_fit.predict(data.features)[order])
    assert shuffled.violation_ == pytest.approx(sorted_fit.violation_)
    assert shuffled.feature_name_ == [f"f{j}" for j in range(6)]


def test_missing_values_are_lightgbms_to_handle() -> None:
    data = made()
    X = data.features.copy()
    X[::7, 2] = np.nan
    found = ranker(alpha=0.2).fit(X, data.relevance, group=sizes(data), sensitive_features=data.group)
    assert np.isfinite(found.predict(X)).all()


def test_early_stopping_callbacks_and_evaluation() -> None:
    train, test = made(80), made(40, seed=1)
    seen: list[int] = []
    model = ranker(alpha=0.1, n_estimators=200, learning_rate=0.5)
    shuffle = np.random.default_rng(0).permutation(test.n_rows)
    model.fit(
        train,
        eval_set=[(test.features[shuffle], test.relevance[shuffle])],
        eval_qid=[test.query_of_row[shuffle]],
        eval_at=[5],
        callbacks=[lightgbm.early_stopping(5, verbose=False), lambda env: seen.append(env.iteration)],
    )
    assert 0 < model.best_iteration_ < len(seen) < 200
    settled = model.evals_result_["valid_0"]["ndcg@5"][SETTLED:]
    assert max(settled) == pytest.approx(model.best_score_["valid_0"]["ndcg@5"])
    assert model.feature_importances_.sum() > 0


def test_native_model_files_predict_the_same(tmp_path: Path) -> None:
    data = made()
    model = ranker(alpha=0.2).fit(data)
    model.booster_.save_model(tmp_path / "model.txt")
    again = lightgbm.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(data.features), model.predict(data.features))
    assert pickle.loads(pickle.dumps(model)).predict(data) == pytest.approx(model.predict(data))


def test_own_model_files(tmp_path: Path) -> None:
    data = made()
    model = ranker(alpha=0.2, target="score").fit(data)
    model.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    assert (again.alpha, again.target, again.n_estimators) == (0.2, "score", 5)
    assert (again.alpha_, again.violation_, again.group_names_) == (0.2, model.violation_, ("a", "b"))
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    content["model"] = "no trees"
    (tmp_path / "cut.json").write_bytes(written(content))
    with pytest.raises(er.DataError, match="LightGBM model in it is damaged"):
        er.load(tmp_path / "cut.json")
    with pytest.raises(er.NotFittedError, match="not fitted yet"):
        ranker().save(tmp_path / "none.json")


def test_parameters_are_scikit_learns() -> None:
    model = ranker(alpha=0.3, num_leaves=9, lambdarank_truncation_level=7)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert {"notion", "alpha", "num_leaves", "lambdarank_truncation_level"} <= set(model.get_params())
    copied.set_params(alpha=0.7, max_violation=0.1, num_leaves=3, lambdarank_truncation_level=9)
    found = copied.get_params()
    assert (found["alpha"], found["max_violation"], found["num_leaves"]) == (0.7, 0.1, 3)
    assert found["lambdarank_truncation_level"] == 9
    model.set_params(alpha=0.0).fit(made())
    assert model.objective_ == "lambdarank"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"objective": "rank:map"},
            "objective must be one of lambdarank, rank_xendcg, squared, logistic; got 'rank:map'",
        ),
        ({"notion": "fair"}, "notion must be one of"),
        ({"target": "rank"}, "target must be one of"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(er.ConfigError, match=message):
        ranker(alpha=0.1, **options).fit(made())


# ------------------------------------------------------------------ bare callables


def test_callables_for_training_code_of_ones_own() -> None:
    data = made()
    objective = er.lightgbm.fair_objective(data, notion="dp", alpha=0.2)
    metric = er.lightgbm.fair_metric(data, notion="dp", k=5)
    params = {"objective": objective, "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    dataset = lightgbm.Dataset(data.features, data.relevance, group=sizes(data))
    history: dict[str, Any] = {}
    booster = lightgbm.train(
        params, dataset, 5, valid_sets=[dataset], feval=metric, callbacks=[lightgbm.record_evaluation(history)]
    )
    expected = ranker(alpha=0.2).fit(data)
    np.testing.assert_allclose(booster.predict(data.features), expected.predict(data), atol=1e-9)
    assert history["training"]["dp@5"][-1] == pytest.approx(expected.violation_)
    native = lightgbm.LGBMRanker(objective=objective, n_estimators=5, **QUIET)
    native.fit(data.features, data.relevance, group=sizes(data), eval_metric=metric)
    np.testing.assert_allclose(native.predict(data.features), expected.predict(data), atol=1e-9)


def test_train_scores_for_a_sweep() -> None:
    train, test = made(), made(20, seed=3)
    scores = er.lightgbm.train_scores(train, test, "dp", 0.2, n_estimators=5, min_child_samples=5)
    np.testing.assert_allclose(scores, ranker(alpha=0.2).fit(train).predict(test))


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "lightgbm_two_lines.py"), run_name="__main__")
    before, after = (float(line.rsplit(maxsplit=1)[1]) for line in capsys.readouterr().out.splitlines())
    assert after < before / 2
