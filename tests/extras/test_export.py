"""Exports of models that the libraries themselves trained, read and ran; ONNX in onnxruntime itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.export import WRITERS
from evenrank.export.source import describe
from evenrank.methods.reranked import RerankedRanker
from export import random_models as random
from export.test_writers import STEP

pytestmark = pytest.mark.extras
NARROW = ("opensearch", "elasticsearch", "solr")


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    """Lists with 32-bit features and plain names."""
    whole = er.datasets.german_credit("age", lists=60, items=12)
    names = [f"f{j}" for j in range(whole.n_features)]
    group = [whole.group_names[code] for code in whole.group]
    features = np.asarray(whole.features, np.float32)
    return er.RankingData.from_arrays(features, whole.relevance, group, whole.query_of_row, feature_names=names)


@pytest.fixture(scope="module")
def holes(data: er.RankingData) -> np.ndarray:
    """The features with missing values, (n, d)."""
    features = np.array(data.features)
    features[np.random.default_rng(0).random(features.shape) < 0.15] = np.nan
    return features


@given(drawn=st.data())
def test_the_plain_twin_is_lightgbm_and_onnx_is_the_twin(drawn: st.DataObject) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    d = drawn.draw(st.integers(1, 3))
    forest = drawn.draw(random.trees(d, library="lightgbm"))
    rows = drawn.draw(random.rows(forest, d))
    expected = random.scores(forest, rows, "lightgbm")
    booster = lightgbm.Booster(model_str=random.lightgbm_text(forest, d))
    np.testing.assert_array_equal(booster.predict(rows), expected)
    np.testing.assert_allclose(er.export.to_onnx(booster).score(rows), expected, rtol=0, atol=1e-11)


@given(drawn=st.data())
def test_the_plain_twin_is_xgboost_and_onnx_is_the_twin(drawn: st.DataObject) -> None:
    xgboost = pytest.importorskip("xgboost")
    d = drawn.draw(st.integers(1, 3))
    forest = drawn.draw(random.trees(d, library="xgboost"))
    rows = drawn.draw(random.rows(forest, d))
    ranker = xgboost.XGBRanker()
    ranker.load_model(bytearray(random.xgboost_json(forest, d, base=0.5).encode()))
    expected = random.scores(forest, rows, "xgboost", base=0.5, width=np.float32)
    np.testing.assert_array_equal(ranker.predict(rows), expected)
    wide = random.scores(forest, rows, "xgboost", base=0.5)
    np.testing.assert_allclose(er.export.to_onnx(ranker).score(rows), wide, rtol=0, atol=1e-11)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("fair", [False, True])
def test_lightgbm(data: er.RankingData, holes: np.ndarray, fair: bool, missing: bool, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    settings_ = {"n_estimators": 20, "num_leaves": 7, "n_jobs": 1, "verbose": -1}
    rows = holes if missing else data.features
    sizes = np.diff(data.query_ptr)
    if fair:
        group = [data.group_names[code] for code in data.group]
        ranker = er.lightgbm.FairLGBMRanker(alpha=0.3, notion="dp", **settings_)
        ranker.fit(rows, data.relevance, group=sizes, sensitive_features=group)
    else:
        ranker = lightgbm.LGBMRanker(**settings_).fit(rows, data.relevance, group=sizes)
    exact = ranker.predict(rows)
    ranker.booster_.save_model(tmp_path / "model.txt")
    for model in (ranker, ranker.booster_, tmp_path / "model.txt"):
        for engine in NARROW:
            assert np.abs(WRITERS[engine](model).score(rows) - exact).max() < STEP * 20 * 20
        np.testing.assert_array_equal(er.export.to_vespa(model, rename="plain").score(rows), exact)
        np.testing.assert_allclose(er.export.to_onnx(model).score(rows), exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("fair", [False, True])
def test_xgboost(data: er.RankingData, holes: np.ndarray, fair: bool, tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    kind = er.xgboost.FairXGBRanker if fair else xgboost.XGBRanker
    options = {"alpha": 0.3, "notion": "dp"} if fair else {"base_score": 0.25}
    ranker = kind(n_estimators=20, max_depth=3, n_jobs=1, early_stopping_rounds=3, **options)
    groups = {"sensitive_features": [data.group_names[code] for code in data.group]} if fair else {}
    qid = data.query_of_row
    ranker.fit(holes, data.relevance, qid=qid, eval_set=[(holes, data.relevance)], eval_qid=[qid], **groups)
    exact = ranker.predict(holes)
    ranker.get_booster().save_model(tmp_path / "model.json")
    for model in (ranker, ranker.get_booster(), tmp_path / "model.json"):
        for engine in NARROW:
            np.testing.assert_array_equal(WRITERS[engine](model).score(holes), exact)
        for engine in ("vespa", "onnx"):
            assert np.abs(WRITERS[engine](model).score(holes) - exact).max() < STEP * 20 * 20


def test_a_linear_booster(data: er.RankingData) -> None:
    xgboost = pytest.importorskip("xgboost")
    ranker = xgboost.XGBRanker(booster="gblinear", n_estimators=5, n_jobs=1, base_score=0.5)
    ranker.fit(data.features, data.relevance, qid=data.query_of_row)
    exact = ranker.predict(data.features)
    for engine in ("opensearch", "solr", "vespa", "onnx"):
        found = WRITERS[engine](ranker).score(data.features)
        assert np.abs(found - exact).max() < STEP * 100 * max(1.0, np.abs(exact).max())


def test_what_the_libraries_have_and_engines_have_not(data: er.RankingData) -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    sizes = np.diff(data.query_ptr)
    for model, message in (
        (xgboost.XGBRanker(), "not fitted yet"),
        (lightgbm.LGBMRanker(), "not fitted yet"),
        (
            xgboost.XGBRanker(missing=0.0).fit(data.features, data.relevance, qid=data.query_of_row),
            "reads 0 as missing",
        ),
        (
            lightgbm.LGBMRanker(zero_as_missing=True, verbose=-1, n_estimators=2).fit(
                data.features, data.relevance, group=sizes
            ),
            "reads 0 as missing",
        ),
        (
            lightgbm.LGBMRanker(
                boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, verbose=-1, n_estimators=2
            ).fit(data.features, data.relevance, group=sizes),
            "averages its trees",
        ),
        (
            lightgbm.LGBMRegressor(objective="poisson", verbose=-1, n_estimators=2).fit(data.features, data.relevance),
            "puts a function on the sum",
        ),
    ):
        with pytest.raises(er.ConfigError, match=message):
            describe(model)


def test_networks(data: er.RankingData) -> None:
    pytest.importorskip("torch")
    ranker = er.torch.FairNeuralRanker(notion="dp", alpha=0.1, hidden=[6, 4], epochs=2).fit(data)
    exact = ranker.predict(data)
    size = np.abs(exact).max()
    for engine in ("solr", "onnx"):
        assert np.abs(WRITERS[engine](ranker).score(data) - exact).max() < STEP * 500 * size
    for engine in ("opensearch", "vespa", "ranklib"):
        with pytest.raises(er.ConfigError, match="Export it to"):
            WRITERS[engine](ranker)
    offset = er.GroupOffset("dp", k=3, shrink=False).fit(exact, data)
    model = RerankedRanker(ranker, offset)
    for engine in ("solr", "onnx"):
        assert np.abs(WRITERS[engine](model).score(data) - model.predict(data)).max() < STEP * 500 * size


AWARE = {
    "lightgbm": ("FairLGBMRanker", {"n_estimators": 5, "num_leaves": 4, "n_jobs": 1, "verbose": -1}),
    "xgboost": ("FairXGBRanker", {"n_estimators": 5, "max_depth": 2, "n_jobs": 1}),
    "torch": ("FairNeuralRanker", {"epochs": 2, "hidden": [6]}),
}


@pytest.mark.parametrize("library", AWARE)
def test_rankers_that_see_the_group_take_their_offsets_along(
    library: str, data: er.RankingData, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    name, options = AWARE[library]
    ranker = getattr(getattr(er, library), name)(notion="dp", alpha=9.0, k=3, group_aware=True, **options).fit(data)
    exact, labels = ranker.predict(data), np.array(data.group_names, object)[data.group]
    by_group = np.where(labels == data.group_names[0], *ranker.group_offset_)
    assert np.ptp(by_group) > 0.01
    ranker.save(tmp_path / "model.json")
    for model in (ranker, tmp_path / "model.json"):
        for engine in ("solr", "onnx"):
            exported = WRITERS[engine](model)
            assert np.abs(exported.score(data) - exact).max() < 2e-5 * np.abs(exact).max()
            unknown = exported.score(data.features, [None] * data.n_rows)
            assert np.abs(unknown + by_group - exact).max() < 2e-5 * np.abs(exact).max()
            with pytest.raises(er.ConfigError, match="pass groups"):
                exported.score(data.features)
    assert er.export.check(WRITERS["solr"](ranker), ranker, data, [5]).largest_difference < 1e-4


def test_offsets_are_an_input_of_onnx_and_trees_elsewhere(data: er.RankingData) -> None:
    pytest.importorskip("xgboost")
    onnxruntime = pytest.importorskip("onnxruntime")
    ranker = er.xgboost.FairXGBRanker(alpha=0.0, n_estimators=5, max_depth=2, n_jobs=1).fit(data)
    offset = er.GroupOffset("dp", k=3, shrink=False).fit(ranker.predict(data), data)
    model = RerankedRanker(ranker, offset)
    exact = model.predict(data)
    for engine in ("opensearch", "ranklib", "solr", "vespa", "onnx"):
        exported = WRITERS[engine](model, missing="zero")
        assert np.abs(exported.score(data) - exact).max() < 1e-6
        assert er.export.check(exported, model, data, [5]).largest_difference < 1e-6
    session = onnxruntime.InferenceSession(exported.definition)
    assert [part.name for part in session.get_inputs()] == ["features", "group_offset"]
    numbers = np.array([offset.offsets_[data.group_names[code]] for code in data.group])
    features = np.asarray(data.features, np.float32)
    (found,) = session.run(["score"], {"features": features, "group_offset": numbers})
    np.testing.assert_allclose(data.to_caller(found), exact, rtol=0, atol=1e-6)
