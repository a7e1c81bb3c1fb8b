"""Evaluation sets of boosted rankers: every form gives the same, and parts that do not fit are refused."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evenrank as er

pytestmark = pytest.mark.extras
pytest.importorskip("lightgbm", reason="installed by make test-extras")
pytest.importorskip("xgboost", reason="installed by make test-extras")
pytest.importorskip("numba", reason="installed by make test-extras")

LIBRARIES = ["lightgbm", "xgboost"]
STARTS = {"lightgbm": "eval_init_score", "xgboost": "base_margin_eval_set"}


def columns(queries: int, seed: int, *, shuffled: bool) -> dict[str, Any]:
    """Columns by name, in the order of the queries or in none."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(5, 12, queries))
    b = rng.random(len(qid)) < 0.4
    X = rng.normal(size=(len(qid), 3))
    X[:, 0] -= 0.8 * b
    X[:, 2] = rng.integers(0, 3, len(qid))
    own = {
        "X": X,
        "y": (X[:, 0] + 0.3 * (X[:, 2] == 1) > 0.4) * 1.0,
        "qid": qid,
        "group": np.where(b, "b", "a"),
        "start": 0.1 * rng.normal(size=len(qid)),
    }
    order = rng.permutation(len(qid)) if shuffled else slice(None)
    return {name: values[order] for name, values in own.items()}


def ranker(library: str, **options: Any) -> Any:
    common = {"notion": "dp", "k": 3, "n_estimators": 6, "n_jobs": 1, "learning_rate": 0.2, **options}
    if library == "lightgbm":
        return er.lightgbm.FairLGBMRanker(**{"verbose": -1, "num_leaves": 6, "min_child_samples": 5, **common})
    return er.xgboost.FairXGBRanker(**{"max_depth": 3, **common})


def history(model: Any) -> dict[str, Any]:
    (by_metric,) = (model.evals_result_ if hasattr(model, "evals_result_") else model.evals_result()).values()
    return {name: list(values) for name, values in by_metric.items()}


def trained(library: str, *, shuffled: bool = True, **evaluation: Any) -> Any:
    train = columns(50, 0, shuffled=shuffled)
    rows = {"y": train["y"], "qid": train["qid"], "sensitive_features": train["group"]}
    return ranker(library).fit(train["X"], **rows, eval_max_violation=0.2, **evaluation)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_set_is_the_same_in_every_form(library: str) -> None:
    own = columns(30, 1, shuffled=True)
    by_query = np.argsort(own["qid"], kind="stable")
    stored = {name: values[by_query] for name, values in own.items()}
    sizes = np.unique(own["qid"], return_counts=True)[1]
    data = er.RankingData.from_arrays(own["X"], own["y"], own["group"], own["qid"])
    pair, groups = [(own["X"], own["y"])], {"eval_sensitive_features": [own["group"]]}
    start = STARTS[library]
    plain = trained(library, eval_set=pair, eval_qid=[own["qid"]], **groups, **{start: [own["start"]]})
    expected = history(plain)
    assert any(name.startswith("ndcg@3") and "0.2" in name for name in expected)
    forms: list[dict[str, Any]] = [
        {"eval_set": [data], start: [own["start"]]},
        {"eval_set": data, start: [own["start"]]},
        {"eval_set": [data.with_group(None)], **groups, start: [own["start"]]},
        {
            "eval_set": (stored["X"], stored["y"]),
            "eval_group": [sizes],
            "eval_sensitive_features": [stored["group"]],
            start: [stored["start"]],
        },
    ]
    for form in forms:
        for name, values in history(trained(library, **form)).items():
            np.testing.assert_allclose(values, expected[name], rtol=0, atol=1e-6)  # XGBoost has the metric in float32


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("form", ["data", "pandas", "polars", "numpy"])
def test_features_of_a_set_are_found_by_name(library: str, form: str) -> None:
    train, own = columns(50, 0, shuffled=True), columns(30, 1, shuffled=True)
    rows = {"y": train["y"], "qid": train["qid"], "sensitive_features": train["group"]}
    labels = np.array(["red", "green", "blue"])
    kinds = {} if form != "data" else {"categorical": ["c"]}
    pandas = pytest.importorskip("pandas", reason="installed by make test-extras")

    def frame(of: dict[str, Any]) -> Any:
        table = pandas.DataFrame(of["X"], columns=["a", "b", "c"])
        table["c"] = labels[of["X"][:, 2].astype(int)] if kinds else table["c"].astype(int)
        return table

    options = {"query": "qid", "relevance": "y", "group": "group", **kinds}
    as_data = lambda of, names: er.RankingData.from_frame(  # noqa: E731
        frame(of).assign(**{name: of[name] for name in ("qid", "y", "group")}), **options, features=names
    )
    if form == "data":
        X: Any = as_data(train, ["a", "b", "c"])
        rows = {}
    elif form == "polars":
        X = pytest.importorskip("polars", reason="installed by make test-extras").from_pandas(frame(train))
    else:
        X = frame(train) if form == "pandas" else train["X"]
    seen = own["X"][:, 2] > 0 if kinds else slice(None)  # a set without one of the categories numbers them otherwise
    data = as_data({name: values[seen] for name, values in own.items()}, list("abc" if form == "numpy" else "cba"))
    model = ranker(library, max_violation=0.9).fit(X, **rows, eval_set=[data], eval_max_violation=1.0)
    found = [values[-1] for name, values in history(model).items() if "dp" in name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # of a model trained on a frame
        scores = model.predict(data)
    assert found == pytest.approx([er.measure(scores, data, "ndcg@3")["ndcg@3"]], abs=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_data_as_a_set_brings_groups_weights_and_the_limit(library: str) -> None:
    train, own = (columns(60, seed, shuffled=True) for seed in (0, 1))
    data, held_out = (
        er.RankingData.from_arrays(each["X"], each["y"], each["group"], each["qid"]) for each in (train, own)
    )
    with pytest.warns(er.DataWarning, match="held-out queries may be as large as"):
        model = ranker(library, max_violation=0.001).fit(data, eval_set=[held_out])
    assert len(model.tried_) > 1
    without = history(ranker(library).fit(data, eval_set=[held_out.with_group(None)]))
    assert not any("dp" in name for name in without)
    if library == "lightgbm":
        alone = data.with_group(None)
        assert list(ranker(library, alpha=0.0).fit(alone, eval_set=[alone]).evals_result_) == ["training"]
        weight = np.where(held_out.query_of_row < 30, 1.0, 0.0)
        half = replace(held_out, sample_weight=weight)
        assert history(ranker(library, alpha=0.0).fit(data, eval_set=[half.with_group(None)])) != history(
            ranker(library, alpha=0.0).fit(data, eval_set=[held_out.with_group(None)])
        )


def wrong(library: str, own: dict[str, Any]) -> dict[str, tuple[dict[str, Any], str]]:
    """Arguments of `fit` that do not fit together, and what they are answered."""
    n, pair, qid, group = len(own["y"]), [(own["X"], own["y"])], [own["qid"]], [own["group"]]
    data = er.RankingData.from_arrays(own["X"], own["y"], own["group"], own["qid"])
    rest = {"eval_set": pair, "eval_qid": qid, "eval_sensitive_features": group}
    rows, start = f"one value for each of the {n} rows", STARTS[library]
    return {
        "too many groups": ({**rest, "eval_sensitive_features": [[*own["group"], "a"]]}, f"{rows}; got {n + 1}"),
        "too few groups": ({**rest, "eval_sensitive_features": [own["group"][1:]]}, f"{rows}; got {n - 1}"),
        "groups of no set": ({**rest, "eval_sensitive_features": []}, "the groups of each eval_set"),
        "too many labels": ({**rest, "eval_set": [(own["X"], [*own["y"], 1])]}, f"{rows}; got {n + 1}"),
        "too few labels": ({**rest, "eval_set": [(own["X"], own["y"][1:])]}, f"{rows}; got {n - 1}"),
        "too few ids": ({**rest, "eval_qid": [own["qid"][1:]]}, f"eval_qid must have {rows}; got {n - 1}"),
        "too many starts": ({**rest, start: [np.zeros(n + 3)]}, f"{start} must have {rows}; got {n + 3}"),
        "starts of no set": ({**rest, start: []}, f"{start} must have the values of each of the 1 eval_set; got 0"),
        "no queries": ({**rest, "eval_qid": None}, "pass eval_qid or eval_group"),
        "sizes of no set": ({**rest, "eval_qid": None, "eval_group": []}, "sizes of queries of each of the 1 eval_set"),
        "three parts": ({**rest, "eval_set": [(1, 2, 3)]}, r"a pair \(X, y\), or a RankingData; got tuple of 3"),
        "arrays": ({**rest, "eval_set": [own["X"], own["y"]]}, r"a pair \(X, y\), or a RankingData; got ndarray"),
        "both forms": ({"eval_set": [data, *pair]}, "got some of both"),
        "queries twice": ({"eval_set": [data], "eval_qid": qid}, "has its queries; leave out eval_qid"),
        "groups of another": ({"eval_set": [data], "eval_sensitive_features": [own["group"][1:]]}, rows),
    }


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shuffled", [False, True])
def test_parts_that_do_not_fit_are_refused(library: str, shuffled: bool) -> None:
    for evaluation, message in wrong(library, columns(30, 1, shuffled=shuffled)).values():
        with pytest.raises((er.DataError, er.ConfigError), match=message):
            trained(library, shuffled=shuffled, **evaluation)


@pytest.mark.parametrize(("library", "start"), [("lightgbm", "init_score"), ("xgboost", "base_margin")])
@pytest.mark.parametrize("shuffled", [False, True])
def test_starting_scores_are_one_per_row(library: str, start: str, shuffled: bool) -> None:
    own = columns(30, 1, shuffled=shuffled)
    n = len(own["y"])
    for number in (n - 1, n + 1):
        with pytest.raises(er.DataError, match=f"{start} must have one value for each of the {n} rows; got {number}"):
            ranker(library).fit(
                own["X"], own["y"], qid=own["qid"], sensitive_features=own["group"], **{start: np.zeros(number)}
            )
