"""Boosted rankers that are continued, stopped early and cut, and the callbacks and sets of their users."""

from __future__ import annotations

import warnings
from threading import Lock
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


class Record(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined, unused-ignore]
    """A callback that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock, self.rounds = Lock(), 0

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.rounds += 1
        return False


def arrays(seed: int, queries: int = 60) -> tuple[Any, ...]:
    """Features, relevance, queries and groups."""
    data = made(queries, seed)
    names = np.array(data.group_names)
    return data.features, data.relevance, data.query_of_row, names[data.group]


def fitted(library: str, rows: tuple[Any, ...], others: tuple[Any, ...] | None = None, **options: Any) -> Any:
    X, y, qid, group = rows
    begin = options.pop("begin", None)
    more: dict[str, Any] = {} if begin is None else {"init_model" if library == "lightgbm" else "xgb_model": begin}
    if others is not None:
        more |= {"eval_set": [others[:2]], "eval_qid": [others[2]]}
    patience = options.pop("patience", None)
    if patience is not None:
        options["early_stopping_round" if library == "lightgbm" else "early_stopping_rounds"] = patience
    return ranker(library, **options).fit(X, y, qid=qid, sensitive_features=group, **more)


def trees_of(library: str, model: Any) -> int:
    return int(model.booster_.num_trees() if library == "lightgbm" else model.get_booster().num_boosted_rounds())


@pytest.mark.filterwarnings("ignore:max_violation")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_continued_model_that_stops_early_is_cut_among_its_new_trees(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, others = arrays(0), arrays(1)
    first = fitted(library, rows, alpha=0.0, n_estimators=9)
    begin = first.booster_ if library == "lightgbm" else first.get_booster()
    cuts = []
    kind = type(first)
    cut = kind._cut

    def seen(self: Any, before: int, trees: int) -> None:
        cut(self, before, trees)
        cuts.append((before, trees, trees_of(library, self)))

    monkeypatch.setattr(kind, "_cut", seen)
    fitted(library, rows, others, begin=begin, max_violation=1e-9, n_estimators=40, patience=4)
    assert cuts
    assert all(before == 9 and trees >= 1 and total == before + trees for before, trees, total in cuts)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_limit_out_of_reach_leaves_no_larger_gap_than_one_within_it(library: str) -> None:
    for seed in range(4):
        rows = arrays(seed, 40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loose, tight = (fitted(library, rows, max_violation=limit, n_estimators=15) for limit in (0.01, 1e-9))
        assert tight.violation_ <= loose.violation_ + 1e-9


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("target", ["topk", "score"])
def test_parameters_of_early_stopping_go_with_group_aware(library: str, target: str) -> None:
    model = fitted(library, arrays(0), arrays(1), group_aware=True, alpha=1.0, target=target, patience=3)
    assert model.group_offset_ is not None


@pytest.mark.parametrize("trees", [1, 8, SETTLED, SETTLED + 1])
@pytest.mark.parametrize("library", LIBRARIES)
def test_few_trees_that_may_stop_early_have_a_best_round(library: str, trees: int) -> None:
    model = fitted(library, arrays(0), arrays(1), alpha=1.0, n_estimators=trees, patience=30)
    best = model.best_iteration_ if library == "lightgbm" else model.best_iteration + 1
    assert min(trees, SETTLED) <= best <= trees
    score = model.best_score_["valid_0"] if library == "lightgbm" else model.best_score
    assert score is not None
    if library == "xgboost":
        alone = xgboost.callback.EarlyStopping(rounds=30, save_best=True)
        kept = fitted(library, arrays(0), arrays(1), alpha=1.0, n_estimators=trees, callbacks=[alone])
        assert trees_of(library, kept) == kept.best_iteration + 1


@pytest.mark.filterwarnings("ignore:max_violation")
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_best_score_of_a_model_that_was_cut_is_its_own(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, others = arrays(6), arrays(1)
    monkeypatch.setattr("evenrank.boosting.within_limit.least_loss_within", _the_first_last)
    model = fitted(library, rows, others, max_violation=1e-9, n_estimators=40, patience=30)
    kept = trees_of(library, model)
    assert kept < 40
    if library == "lightgbm":
        scores = model.evals_result_["valid_0"]
        name = next(iter(scores))
        assert model.best_iteration_ in (0, kept)
        assert model.best_score_["valid_0"][name] == scores[name][kept - 1]
    else:
        assert model.best_iteration == kept - 1
        assert model.best_score == list(model.evals_result()["validation_0"].values())[-1][kept - 1]


def _the_first_last(limit: float, train: Any, *, last: Any, **_: Any) -> Any:
    tried = [train(0.0), next(iter(last))()]
    return tried[1], tried


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_lightgbm_knows_its_training_rows_among_the_sets(alpha: float) -> None:
    X, y, qid, group = arrays(0)
    other, labels, queries, _ = arrays(1)
    sizes, others = (np.bincount(each) for each in (qid, queries))
    options: dict[str, Any] = {"n_estimators": 60, "n_jobs": 1, "verbose": -1, "num_leaves": 6}

    def sets() -> dict[str, Any]:
        stop = lightgbm.early_stopping(5, verbose=False)
        return {"eval_set": [(X, y), (other, labels)], "eval_group": [sizes, others], "callbacks": [stop]}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        native = lightgbm.LGBMRanker(**options).fit(X, y, group=sizes, **sets())
        ours = er.lightgbm.FairLGBMRanker(notion="dp", alpha=alpha, **options)
        ours.fit(X, y, group=sizes, sensitive_features=group, **sets())
    assert list(ours.evals_result_) == list(native.evals_result_) == ["training", "valid_1"]
    if alpha == 0:
        assert ours.best_iteration_ == native.best_iteration_
        np.testing.assert_array_equal(ours.predict(X), native.predict(X))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_callbacks_of_xgboost_are_the_users_own(alpha: float) -> None:
    record = Record()
    fitted("xgboost", arrays(0), alpha=alpha, callbacks=[record], n_estimators=5)
    assert record.rounds == 5


def test_random_forests_of_lightgbm_are_refused_in_one_line() -> None:
    options: dict[str, Any] = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}
    with pytest.raises(er.ConfigError, match="random forests take no objective in Python"):
        fitted("lightgbm", arrays(0), alpha=1.0, **options)
    assert fitted("lightgbm", arrays(0), alpha=0.0, **options).violation_ > 0
    assert fitted("lightgbm", arrays(0), alpha=1.0, group_aware=True, **options).group_offset_ is not None
