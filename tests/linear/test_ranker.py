"""`FairLinearRanker` by scikit-learn's rules, and what is ours: queries, groups, names."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import evenrank as er
from evenrank.errors import ConfigError, DataError
from linear_oracles import random_data


def columns(data: er.RankingData) -> dict[str, Any]:
    """What fit takes, in stored order."""
    names = np.array([*data.group_names, None], object)
    return {
        "X": np.array(data.features),
        "y": np.array(data.relevance),
        "qid": data.query_ids[data.query_of_row],
        "sensitive_features": names[data.group],
    }


@pytest.fixture
def rows() -> dict[str, Any]:
    return columns(random_data(0, groups=3))


# ---------------------------------------------------------------------- scikit-learn's rules


@parametrize_with_checks([er.FairLinearRanker(alpha=0.0), er.FairLinearRanker(alpha=0.0, solver="gd", loss="logistic")])
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        # Made-up data of two or three rows is separable, and checks hand over arrays where names were seen.
        warnings.filterwarnings("ignore", "logistic loss did not converge")
        check(estimator)


def test_parameters_are_kept_untouched() -> None:
    notion = er.Notion("own", lambda data: [data.relevant])
    ranker = er.FairLinearRanker(notion, alpha=0.3, solver="gd", max_iter=7, random_state=3)
    assert ranker.get_params()["notion"] is notion
    copy = clone(ranker)
    assert copy.get_params() | {"notion": None} == ranker.get_params() | {"notion": None}
    copy.set_params(alpha=2.0, scope="per_query")
    assert (copy.alpha, copy.scope, ranker.alpha) == (2.0, "per_query", 0.3)


@pytest.mark.parametrize("options", [{}, {"group_aware": True}, {"solver": "sgd"}])
def test_pickling_keeps_the_scores(rows: dict[str, Any], options: dict[str, Any]) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.1, **options).fit(**rows)
    again = pickle.loads(pickle.dumps(ranker))
    groups = rows["sensitive_features"]
    assert (again.predict(rows["X"], groups) == ranker.predict(rows["X"], groups)).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_feature_names(rows: dict[str, Any], frame: Any) -> None:
    X = frame({name: rows["X"][:, j] for j, name in enumerate("uvw")})
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(**rows | {"X": X})
    assert ranker.feature_names_in_.tolist() == ["u", "v", "w"]
    assert ranker.feature_names_ == ("u", "v", "w")
    expected = er.FairLinearRanker("dp", alpha=0.1).fit(**rows).predict(rows["X"])
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="same order"):
        ranker.predict(X[["w", "u", "v"]])
    data = er.RankingData.from_arrays(
        rows["X"][:, [2, 0, 1]], rows["y"], None, rows["qid"], feature_names=["w", "u", "v"]
    )
    np.testing.assert_allclose(ranker.predict(data), expected, rtol=0, atol=1e-13)


def test_names_of_our_own_data_hold_for_frames_too(rows: dict[str, Any]) -> None:
    names = ["u", "v", "w"]
    data = er.RankingData.from_arrays(
        rows["X"], rows["y"], rows["sensitive_features"], rows["qid"], feature_names=names
    )
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    assert ranker.feature_names_in_.tolist() == names
    frame = pd.DataFrame(rows["X"], columns=names)
    np.testing.assert_allclose(ranker.predict(frame), ranker.predict(data), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="same order"):
        ranker.predict(frame[["w", "u", "v"]])
    unnamed = er.RankingData.from_arrays(rows["X"], rows["y"], rows["sensitive_features"], rows["qid"])
    ranker.fit(unnamed)
    assert not hasattr(ranker, "feature_names_in_")
    assert ranker.n_features_in_ == 3
    np.testing.assert_allclose(ranker.predict(rows["X"]), ranker.predict(unnamed), rtol=0, atol=1e-14)


def test_in_a_pipeline(rows: dict[str, Any]) -> None:
    metadata = {f"fairlinearranker__{name}": rows[name] for name in ("qid", "sensitive_features")}
    pipeline = make_pipeline(StandardScaler(), er.FairLinearRanker("dp", alpha=0.1, scale=None))
    found = pipeline.fit(rows["X"], rows["y"], **metadata).predict(rows["X"])
    expected = er.FairLinearRanker("dp", alpha=0.1).fit(**rows).predict(rows["X"])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


# ---------------------------------------------------------------------- fit


@pytest.mark.parametrize("solver", ["exact", "gd", "sgd"])
@pytest.mark.parametrize("scope", ["amortized", "per_query"])
def test_rows_and_data_train_the_same_model(solver: str, scope: str) -> None:
    data = random_data(1, groups=3, unknown=True, weighted=True)
    rows = columns(data) | {"sample_weight": data.sample_weight}
    options: dict[str, Any] = {"notion": "eod", "alpha": 0.2, "scope": scope, "solver": solver}
    ours, theirs = er.FairLinearRanker(**options).fit(data), er.FairLinearRanker(**options).fit(**rows)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-14)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-14)
    assert isinstance(ours.intercept_, float)
    path = er.fairness_path(data, "eod", [0.2], solver, scope)
    assert (ours.coef_ == path.coef[0]).all()
    assert ours.n_iter_ == max(1, path.steps)
    assert ours.group_names_ == ("a", "b", "c")
    np.testing.assert_allclose(ours.predict(data), path.scores(data)[:, 0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(theirs.predict(rows["X"]), data.to_stored(ours.predict(data)), rtol=0, atol=1e-14)


def test_every_parameter_reaches_the_path(rows: dict[str, Any]) -> None:
    """Each of these changes the scores, and to those of the path with the same option."""
    data = er.RankingData.from_arrays(rows["X"], rows["y"], rows["sensitive_features"], rows["qid"])
    options: list[dict[str, Any]] = [
        {"notion": "dp"},
        {"alpha": 0.7},
        {"scope": "per_query"},
        {"solver": "gd"},
        {"group_aware": True},
        {"loss": "logistic"},
        {"ridge": 0.4},
        {"ridge": 0.4, "scale": None},
        {"fit_intercept": False},
        {"solver": "gd", "across": "max"},
        {"solver": "gd", "learning_rate": 0.001},
        {"solver": "gd", "max_iter": 100},
        {"solver": "sgd", "learning_rate": 0.01},
        {"solver": "sgd", "learning_rate": 0.01, "epochs": 2},
        {"solver": "sgd", "learning_rate": 0.01, "batch_queries": 3},
        {"solver": "sgd", "learning_rate": 0.01, "batch_queries": 3, "random_state": 1},
        {"solver": "sgd", "learning_rate": 0.01, "batch_items": 3},
    ]
    seen = [er.FairLinearRanker(alpha=0.1).fit(data).predict(data)]
    for option in options:
        scores = er.FairLinearRanker(**{"alpha": 0.1} | option).fit(data).predict(data)
        assert min(np.abs(scores - other).max() for other in seen) > 1e-5, option
        seen.append(scores)
        rest = {name: value for name, value in option.items() if name not in ("alpha", "random_state")}
        if "random_state" in option:
            rest["seed"] = option["random_state"]
        path = er.fairness_path(data, alphas=[option.get("alpha", 0.1)], **rest)
        np.testing.assert_allclose(scores, path.scores(data)[:, 0], rtol=0, atol=1e-12)


def test_the_threshold_is_the_ranker_s(rows: dict[str, Any]) -> None:
    graded = rows | {"y": rows["y"] * np.random.default_rng(0).integers(1, 4, len(rows["y"]))}
    low, high = (er.FairLinearRanker("eop", 0.1, relevance_threshold=t).fit(**graded) for t in (1, 3))
    assert np.abs(low.coef_ - high.coef_).max() > 1e-4
    data = er.RankingData.from_arrays(
        rows["X"], graded["y"], rows["sensitive_features"], rows["qid"], relevance_threshold=3
    )
    np.testing.assert_allclose(er.FairLinearRanker("eop", 0.1).fit(data).coef_, high.coef_, rtol=0, atol=1e-14)


def test_a_weight_of_two_is_the_row_twice(rows: dict[str, Any]) -> None:
    # Pooled over queries, it does not matter in which query the copies stand.
    chosen = np.arange(len(rows["y"])) % 3 == 0
    weighted = er.FairLinearRanker("eod", 0.1).fit(**rows, sample_weight=1.0 + chosen)
    copies = {name: np.concatenate([value, value[chosen]]) for name, value in rows.items()}
    copies["qid"] = np.concatenate([rows["qid"], 1000 + rows["qid"][chosen]])
    doubled = er.FairLinearRanker("eod", 0.1).fit(**copies)
    np.testing.assert_allclose(weighted.coef_, doubled.coef_, rtol=0, atol=1e-12)
    plain = er.FairLinearRanker("eod", 0.1).fit(**rows)
    assert np.abs(weighted.coef_ - plain.coef_).max() > 1e-4


def test_without_queries_all_rows_are_one(rows: dict[str, Any]) -> None:
    rest = {name: value for name, value in rows.items() if name != "qid"}
    for scope in ("amortized", "per_query"):
        alone = er.FairLinearRanker("dp", 0.1, scope).fit(**rest)
        one = er.FairLinearRanker("dp", 0.1, "amortized").fit(**rest, qid=np.ones(len(rows["y"])))
        np.testing.assert_allclose(alone.coef_, one.coef_, rtol=0, atol=1e-12)


def test_what_fit_refuses(rows: dict[str, Any]) -> None:
    data = random_data(0)
    with pytest.raises(ConfigError, match=r"alpha=0\.5 needs groups: pass sensitive_features"):
        er.FairLinearRanker(alpha=0.5).fit(rows["X"], rows["y"])
    with pytest.raises(ConfigError, match="alpha=0 and group_aware needs groups"):
        er.FairLinearRanker(alpha=0, group_aware=True).fit(rows["X"], rows["y"])
    with pytest.raises(ConfigError, match="alpha must be a finite number ≥ 0; got -1"):
        er.FairLinearRanker(alpha=-1).fit(data)
    with pytest.raises(ConfigError, match="alpha must be a finite number ≥ 0; got 'much'"):
        er.FairLinearRanker(alpha="much").fit(data)  # type: ignore[arg-type]
    for extra in ({"y": rows["y"]}, {"qid": rows["qid"]}, {"sample_weight": rows["y"]}):
        with pytest.raises(ConfigError, match=r"leave y, qid and sample_weight out"):
            er.FairLinearRanker().fit(data, **extra)
    with pytest.raises(DataError, match="relevance must be a finite number ≥ 0; got -1"):
        er.FairLinearRanker(alpha=0).fit(rows["X"], rows["y"] - 1)
    with pytest.raises(DataError, match="group must have one value for each of the 120 rows"):
        er.FairLinearRanker().fit(**rows | {"sensitive_features": ["a", "b"]})
    with pytest.raises(ConfigError, match="solver must be one of"):
        er.FairLinearRanker(solver="newton").fit(data)


def test_groups_may_be_given_for_data(rows: dict[str, Any]) -> None:
    data = random_data(0)
    group = np.where(np.arange(data.n_rows) % 3, "u", "v")
    one = er.FairLinearRanker("dp", 0.1).fit(data, sensitive_features=group)
    two = er.FairLinearRanker("dp", 0.1).fit(data.with_group(group))
    assert (one.coef_ == two.coef_).all()
    assert one.group_names_ == ("u", "v")


def test_verbose_shows_a_bar_on_a_terminal(
    rows: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for verbose in (False, True):
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        if not verbose:
            monkeypatch.setenv("FORCE_COLOR", "1")  # how rich is told of a terminal
        er.FairLinearRanker("dp", 0.1, solver="gd", max_iter=60, verbose=verbose).fit(**rows)
        silent = capsys.readouterr()
        assert silent.out == silent.err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    er.FairLinearRanker("dp", 0.1, solver="gd", max_iter=60, verbose=True).fit(**rows)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "FairLinearRanker (gd)" in shown.err


# ---------------------------------------------------------------------- predict and score


def test_predict_before_fit(rows: dict[str, Any]) -> None:
    with pytest.raises(er.NotFittedError, match="is not fitted yet") as caught:
        er.FairLinearRanker().predict(rows["X"])
    assert isinstance(caught.value, sklearn.exceptions.NotFittedError)
    assert isinstance(caught.value, er.EvenrankError)
    with pytest.raises(er.NotFittedError):
        er.FairLinearRanker().score(random_data(0))


def test_group_aware_prediction_needs_the_groups_of_training(rows: dict[str, Any]) -> None:
    X, groups = rows["X"], rows["sensitive_features"]
    ranker = er.FairLinearRanker("dp", 0.02, group_aware=True).fit(**rows)
    offset, share = ranker.group_offset_, np.array([(groups == name).mean() for name in "abc"])
    assert np.ptp(offset) > 1e-3
    plain = X @ ranker.coef_ + ranker.intercept_
    np.testing.assert_allclose(ranker.predict(X, groups), plain + offset[np.searchsorted(["a", "b", "c"], groups)])
    with pytest.raises(ConfigError, match="group-aware and needs sensitive_features"):
        ranker.predict(X)
    with pytest.raises(ConfigError, match="group-aware and needs sensitive_features"):
        ranker.predict(random_data(0).with_group(None))
    with pytest.raises(DataError, match="group 'z' was not in training"):
        ranker.predict(X[:2], ["a", "z"])
    some = ranker.predict(X[:2], [None, "b"])
    np.testing.assert_allclose(some - plain[:2], [offset @ share, offset[1]])
    np.testing.assert_allclose(ranker.predict(X[:1], [None]), plain[:1] + offset @ share)
    data = er.RankingData.from_arrays(X, rows["y"], groups, rows["qid"])
    np.testing.assert_allclose(ranker.predict(data), ranker.predict(X, groups))
    np.testing.assert_allclose(ranker.predict(data, ["c"] * len(X)), plain + offset[2])


def test_groups_do_not_matter_to_a_blind_ranker(rows: dict[str, Any]) -> None:
    ranker = er.FairLinearRanker("dp", 0.1).fit(**rows)
    assert ranker.group_offset_ is None
    assert (ranker.predict(rows["X"], ["z"] * 120) == ranker.predict(rows["X"])).all()


def test_other_features_are_refused(rows: dict[str, Any]) -> None:
    data = er.RankingData.from_arrays(
        rows["X"], rows["y"], rows["sensitive_features"], rows["qid"], feature_names=["u", "v", "w"]
    )
    ranker = er.FairLinearRanker("dp", 0.1).fit(data)
    other = er.RankingData.from_arrays(rows["X"], rows["y"], None, rows["qid"], feature_names=["u", "v", "year"])
    with pytest.raises(DataError, match="the data lacks 'w'"):
        ranker.predict(other)
    with pytest.raises(ValueError, match="X has 2 features, but FairLinearRanker is expecting 3"):
        er.FairLinearRanker("dp", 0.1).fit(**rows).predict(rows["X"][:, :2])


def test_score_is_ndcg(rows: dict[str, Any]) -> None:
    data = er.RankingData.from_arrays(rows["X"], rows["y"], rows["sensitive_features"], rows["qid"])
    ranker = er.FairLinearRanker("dp", 0.1).fit(data)
    expected = er.measure(ranker.predict(data), data, ["ndcg"])["ndcg"]
    assert 0 < expected < 1
    assert ranker.score(data) == pytest.approx(expected)
    assert ranker.score(rows["X"], rows["y"], qid=rows["qid"]) == pytest.approx(expected)
    one_query = er.RankingData.from_arrays(rows["X"], rows["y"], None, np.zeros(120))
    expected = er.measure(ranker.predict(rows["X"]), one_query, ["ndcg"])["ndcg"]
    assert ranker.score(rows["X"], rows["y"]) == pytest.approx(expected)
    with pytest.raises(ConfigError, match="y, the relevance of each row, is needed"):
        ranker.score(rows["X"])
    aware = er.FairLinearRanker("dp", 0.02, group_aware=True).fit(data)
    assert aware.score(data) == pytest.approx(
        aware.score(rows["X"], rows["y"], qid=rows["qid"], sensitive_features=rows["sensitive_features"])
    )


original = er.FairLinearRanker._rows


def test_memmap_rows_in_any_order_stay_out_of_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=(60, 3))
    X[:] = rng.normal(size=X.shape)
    seen = []
    ranker = er.FairLinearRanker(alpha=0.0)
    monkeypatch.setattr(type(ranker), "_rows", lambda self, X, *rest: seen.append(type(X)) or original(self, X, *rest))
    ranker.fit(X, rng.integers(0, 2, 60), qid=np.tile(range(6), 10))
    assert seen == [np.memmap]
