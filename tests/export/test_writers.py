"""Native model → export → the engine's arithmetic: the model's own scores, on rows chosen to break it."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from export import random_models as random
from export.test_engines_golden import numbers, table
from golden import FOLDER, golden

STEP = 2.0**-23  # of 32-bit numbers
WRITERS = {
    "opensearch": er.export.to_opensearch,
    "elasticsearch": er.export.to_elasticsearch,
    "solr": er.export.to_solr,
    "vespa": er.export.to_vespa,
    "ranklib": er.export.to_ranklib,
}


def engines_of(case: dict[str, Any]) -> list[str]:
    if "ranklib" in case["model_type"]:
        return ["ranklib"]
    return case["engine"] if isinstance(case["engine"], list) else [case["engine"]]


@golden("engines/*__")
def test_native_models_give_the_engines_scores(case: dict[str, Any]) -> None:
    if "neural" in case["native"] and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    rows, expected = table(case["rows"]), numbers(case["expected_scores"])
    real = slice(0, case["row_kinds"][0][1] if case["row_kinds"][0][0] == "real" else 0)
    python = numbers(case["python_scores"])[real]
    native = case.get("native_feature_names")
    rename = None if native is None else dict(zip(native, case["feature_names"], strict=True))
    for engine in engines_of(case):
        exported = WRITERS[engine](FOLDER / "engines" / case["native"], rename=rename)
        assert exported.features == tuple(case["feature_names"])
        found = exported.score(rows)
        assert (np.abs(found[real] - python) <= 5e-6 * max(1.0, np.abs(python).max(initial=0.0))).all()
        if case["model_type"].endswith("+raw"):
            continue  # XGBoost's own file, in which neither base_score nor best_iteration counts
        if "intercept" in case and engine != "vespa":
            # The intercept is in a normalizer of ours; without it the engine's bits are those of plain weights.
            if "feature_normalizers" in case or engine == "solr":
                continue
            found = er.export.emulate(engine, exported.definition, rows, features=exported.features)
        np.testing.assert_array_equal(found, expected.astype(found.dtype))


# ---------------------------------------------------------------------- at random


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@given(drawn=st.data())
def test_random_trees_are_exact(tmp_path_factory, library: str, drawn: st.DataObject) -> None:
    d = drawn.draw(st.integers(1, 3))
    forest = drawn.draw(random.trees(d, library=library))
    rows = drawn.draw(random.rows(forest, d))
    base = drawn.draw(st.sampled_from([0.0, 0.5, -1e-9])) if library == "xgboost" else 0.0
    base = float(np.float32(base))
    path = tmp_path_factory.getbasetemp() / f"random.{library}"
    path.write_text(
        random.lightgbm_text(forest, d) if library == "lightgbm" else random.xgboost_json(forest, d, base=base)
    )
    narrow = random.scores(forest, rows, library, base=base, width=np.float32)
    wide = random.scores(forest, rows, library, base=base)
    for engine in ("opensearch", "solr"):
        exported = WRITERS[engine](path)
        if not any("moved down" in note for note in exported.notes):
            np.testing.assert_array_equal(exported.score(rows), narrow)
    exported = er.export.to_vespa(path)
    np.testing.assert_array_equal(exported.score(rows), wide)
    fast = exported.score(rows, evaluator="fast_forest")
    np.testing.assert_allclose(fast, wide, rtol=0, atol=STEP * 100 * len(forest))
    # RankLib and old versions know no missing values: the same trees with 0 in their place.
    known = np.nan_to_num(rows, posinf=np.inf, neginf=-np.inf)
    narrow = random.scores(forest, known, library, base=base, width=np.float32)
    for writer, options in (
        (er.export.to_ranklib, {}),
        (er.export.to_opensearch, {"version": "2.19"}),
        (er.export.to_solr, {}),
    ):
        zero = writer(path, missing="zero", **options)
        if not any("moved down" in note for note in zero.notes):
            np.testing.assert_array_equal(zero.score(rows), narrow)


sizes = st.floats(-1000, 1000).map(lambda x: float(np.float32(x)))


@given(
    st.integers(1, 6).flatmap(
        lambda d: st.tuples(
            st.lists(sizes, min_size=d, max_size=d),
            st.lists(st.lists(sizes, min_size=d, max_size=d), min_size=1, max_size=5),
        )
    ),
    st.sampled_from([0.0, 1.0, -1e-3, 1e6]) | sizes,
)
def test_random_weights(model: tuple[list[float], list[list[float]]], intercept: float) -> None:
    coef, rows = np.array(model[0]), np.array(model[1])
    ranker = er.FairLinearRanker()
    ranker.coef_, ranker.intercept_ = coef, intercept
    ranker.feature_names_, ranker.group_names_ = tuple(f"f{j}" for j in range(len(coef))), ()
    exact = rows @ coef + intercept
    largest = (np.abs(rows) @ np.abs(coef) + abs(intercept)).max()
    for engine in ("opensearch", "elasticsearch", "solr"):
        found = WRITERS[engine](ranker).score(rows)
        assert np.abs(found - exact).max() <= STEP * (len(coef) + 4) * largest
    assert np.abs(er.export.to_vespa(ranker).score(rows) - exact).max() <= 1e-14 * (len(coef) + 4) * largest


def test_trees_beyond_the_best_do_not_count(tmp_path: Path) -> None:
    forest = [1.0, 2.0, 4.0]
    path = tmp_path / "early.json"
    path.write_text(random.xgboost_json(forest, 1, best=1))
    exported = er.export.to_opensearch(path)
    assert exported.score([[0.0]]).tolist() == [3.0]
    assert exported.notes == ("early stopping: 2 of 3 trees count",)


def test_a_threshold_that_solr_cannot_reach_together_with_another(tmp_path: Path) -> None:
    forest = [random.Split(0, -1e-45, False, random.NAN, random.Split(0, 1e30, False, random.NAN, 1.0, 2.0), 3.0)]
    path = tmp_path / "wide.json"
    path.write_text(random.xgboost_json(forest, 1))
    exported = er.export.to_solr(path)
    assert "thresholds of 'f0' are moved down" in exported.notes[0]
    assert exported.score([[-1.0], [1.0]]).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("engine", list(WRITERS))
def test_a_shift_is_added_only_when_asked_for(tmp_path: Path, engine: str) -> None:
    forest = [random.Split(0, 0.5, True, random.NAN, -3.0, 1.0), random.Split(0, 2.5, True, random.NAN, -0.5, 1.0)]
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json(forest, 1))
    rows = [[0.0], [1.0], [3.0]]
    assert WRITERS[engine](path, missing="zero").score(rows).tolist() == [-3.5, 0.5, 2.0]
    assert WRITERS[engine](path, missing="zero", shift=10).score(rows).tolist() == [6.5, 10.5, 12.0]
    exported = WRITERS[engine](path, missing="zero", shift="auto")
    assert 3.5 <= exported.shift <= 3.5001
    assert 0 <= exported.score(rows).min() < 1e-4


def test_missing_values_that_a_version_cannot_route(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json([random.Split(0, 0.5, True, random.NAN, 1.0, 2.0)], 1))
    for version in ("3.2", "3.7.0.0"):
        with pytest.warns(er.DataWarning, match="sends a missing value to 'no', always; at 1 of 1 splits"):
            assert er.export.to_opensearch(path, version=version).score([[None]]).tolist() == [2.0]
        with pytest.raises(er.ConfigError, match="Fill missing values"):
            er.export.to_opensearch(path, version=version, missing="nan")
    assert er.export.to_opensearch(path, version="2.19", missing="nan").score([[None]]).tolist() == [1.0]
    path.write_text(random.xgboost_json([random.Split(0, 0.5, False, random.NAN, 1.0, 2.0)], 1))
    assert er.export.to_opensearch(path, version="3.7", missing="nan").score([[None]]).tolist() == [2.0]
    with pytest.warns(er.DataWarning, match="RankLib reads a missing value as 0"):
        er.export.to_ranklib(path)
    with pytest.warns(er.DataWarning, match=r"Solr 9.1 reads a missing value as 0"):
        er.export.to_solr(path, version="9.1")


# ---------------------------------------------------------------------- what is written


def test_files_of_the_plugins(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json([random.Split(1, 0.5, True, random.NAN, 1.0, 2.0)], 2))
    exported = er.export.to_opensearch(path, name="fair-1", rename={"f1": "clicks per day"})
    files = {file.name: file.read_text() for file in exported.write(tmp_path / "out")}
    assert set(files) == {"definition.json", "features.json", "model.json", "upload.sh", "README.md"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(files)
    request = json.loads(files["model.json"])["model"]
    assert request["name"] == "fair-1"
    assert request["model"]["type"] == "model/xgboost+json"
    assert json.loads(request["model"]["definition"])["splits"][0]["split"] == "clicks per day"
    features = json.loads(files["features.json"])["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["f0", "clicks per day"]
    assert "/_ltr/_featureset/fair-1/_createmodel" in files["upload.sh"]
    assert "example.org" in files["upload.sh"]
    assert "window_size" in files["README.md"]
    er.export.to_solr(path).write(tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "features.json",
        "model.json",
        "upload.sh",
        "README.md",
    }
    (tmp_path / "file").write_text("mine")
    with pytest.raises(er.ConfigError, match="cannot be written"):
        exported.write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_solr_features_say_that_missing_is_nan(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json([random.Split(0, 0.5, True, random.NAN, 1.0, 2.0)], 1))
    (feature,) = json.loads(er.export.to_solr(path).files["features.json"])
    assert feature["params"] == {"field": "f0", "defaultValue": "NaN"}
    (feature,) = json.loads(er.export.to_solr(path, missing="zero").files["features.json"])
    assert feature["params"] == {"field": "f0"}


# ---------------------------------------------------------------------- offsets per group


def test_offsets_travel_as_features() -> None:
    data = er.datasets.german_credit("age", lists=40, items=12)
    base = er.FairLinearRanker(alpha=0).fit(data)
    reranker = er.GroupOffset("dp", k=3, shrink=False).fit(base.predict(data), data)
    assert any(reranker.offsets_.values())
    from evenrank.methods.reranked import RerankedRanker

    model = RerankedRanker(base, reranker)
    expected = model.predict(data)
    labels = [data.group_names[code] for code in data.to_caller(data.group)]
    for engine in ("opensearch", "solr", "vespa"):
        exported = WRITERS[engine](model, rename="plain")
        assert np.abs(exported.score(data) - expected).max() < 1e-5
        np.testing.assert_array_equal(exported.score(data.features, labels), data.to_stored(exported.score(data)))
        assert "the group of an item counts at serving" in " ".join(exported.notes)
        with pytest.raises(er.ConfigError, match="pass groups"):
            exported.score(data.features)
    with pytest.raises(er.ConfigError, match="fits its offsets anew"):
        er.export.to_solr(RerankedRanker(base, reranker, adapt=True))


def test_a_group_aware_linear_ranker_is_offsets_too() -> None:
    data = er.datasets.german_credit("age", lists=40, items=12)
    group = np.array([data.group_names[code] for code in data.group], object)
    group[::7] = None
    data = data.with_group(data.to_caller(group))
    ranker = er.FairLinearRanker("dp", alpha=0.1, group_aware=True).fit(data)
    exported = er.export.to_elasticsearch(ranker)
    assert np.abs(exported.score(data) - ranker.predict(data)).max() < 1e-5


def test_fastar_as_a_table() -> None:
    table = er.export.fastar_table(er.FAStar(0.4, 0.1, protected="b"), 12)
    assert table["table"] == er.FAStar(0.4, 0.1).table(12).tolist()
    assert json.loads(json.dumps(table)) == table
    with pytest.raises(er.ConfigError, match="one p"):
        er.export.fastar_table(er.FAStar([0.4, 0.5]), 12)


# ---------------------------------------------------------------------- refusals


def test_names_that_vespa_cannot_take(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for name in ("a b", "a=b", "a%", "2", "if", "max", "ä", "a-b", "a(b", " "):
        path.write_text(random.xgboost_json([1.0], 1).replace('"f0"', json.dumps(name)))
        with pytest.raises(er.ConfigError, match="Vespa cannot take the feature") as caught:
            er.export.to_vespa(path)
        assert "\n" not in str(caught.value)
        assert er.export.to_vespa(path, rename="plain").score([[1.0]]).tolist() == [1.0]
        if name.strip():
            er.export.to_opensearch(path)
    path.write_text(random.xgboost_json([1.0], 1).replace('"f0"', '"attribute(price)"'))
    assert "function" not in er.export.to_vespa(path).files["rank-profile.txt"]


def test_names_must_differ(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json([1.0], 2))
    with pytest.raises(er.ConfigError, match="two features would be called 'f1'"):
        er.export.to_solr(path, rename={"f0": "f1"})
    with pytest.raises(er.ConfigError, match="no feature of the model"):
        er.export.to_solr(path, rename={"zz": "f1"})
    with pytest.raises(er.ConfigError, match="rename must be 'plain'"):
        er.export.to_solr(path, rename="short")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda text: text.replace("objective=lambdarank", "objective=binary sigmoid:1"), "puts a function on the sum"),
        (lambda text: text.replace("feature_names", "average_output\nfeature_names"), "averages its trees"),
        (lambda text: text.replace("decision_type=2", "decision_type=6"), "'f0' reads 0 as missing"),
    ],
)
def test_what_lightgbm_has_and_engines_have_not(tmp_path: Path, changed: Any, message: str) -> None:
    text = random.lightgbm_text([random.Split(0, 0.5, True, random.NONE, 1.0, 2.0)], 1)
    path = tmp_path / "model.txt"
    path.write_text(changed(text))
    with pytest.raises(er.ConfigError, match=message) as caught:
        er.export.to_opensearch(path)
    assert "Train" in str(caught.value) or "Export a model" in str(caught.value)


@pytest.mark.parametrize("name", ["lightgbm_categorical", "xgboost_categorical", "xgboost_dart"])
def test_stored_models_that_are_refused_by_name(name: str) -> None:
    folder = Path(__file__).parents[1] / "rankers" / "model_files_v1"
    message = "DART weights its trees" if "dart" in name else "is split by categories, which no engine"
    with pytest.raises(er.ConfigError, match=message):
        er.export.to_opensearch(folder / f"{name}.json")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_files_of_version_1_give_their_scores(name: str) -> None:
    folder = Path(__file__).parents[1] / "rankers" / "model_files_v1"
    case = json.loads((folder / "expected.json").read_text())[name]
    exported = er.export.to_opensearch(folder / f"{name}.json")
    rows = np.array(case["rows"], np.float32).astype(float)
    np.testing.assert_allclose(exported.score(rows), case["scores"], atol=1e-6)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    for model, message in (
        (object(), "cannot export a object"),
        (er.FAStar(0.5), "gives no scores to export"),
        (er.FairLinearRanker(), "cannot export a FairLinearRanker"),
    ):
        with pytest.raises(er.ConfigError, match=message):
            er.export.to_solr(model)
    path = tmp_path / "damaged.txt"
    path.write_text(random.lightgbm_text([1.0], 1).replace("leaf_value=1.0", "leaf_value=x"))
    with pytest.raises(er.DataError, match=r"damaged.txt: the lightgbm model in it is damaged"):
        er.export.to_solr(path)
    path.write_text(random.xgboost_json([1.0], 1)[:-40])
    with pytest.raises(er.DataError, match=r"damaged.txt: the xgboost model in it is damaged"):
        er.export.to_solr(path)
    path.write_text("no model")
    with pytest.raises(er.DataError, match="not an evenrank model"):
        er.export.to_solr(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(er.DataError, match="it is not text"):
        er.export.to_solr(path)
    with pytest.raises(er.DataError, match="cannot read the model file"):
        er.export.to_solr(tmp_path / "nothing.json")
    empty = er.FairLinearRanker()
    empty.coef_, empty.intercept_, empty.feature_names_, empty.group_names_ = np.zeros(0), 1.0, (), ()
    with pytest.raises(er.ConfigError, match="a feature set must not be empty"):
        er.export.to_solr(empty)


def test_a_ranker_that_fills_missing_values_is_refused() -> None:
    rows = np.array([[1.0, np.nan], [2.0, 1.0], [np.nan, 3.0], [0.5, 2.0]])
    ranker = er.FairLinearRanker(alpha=0, impute="median").fit(rows, [0, 1, 0, 1], qid=[1, 1, 2, 2])
    with pytest.raises(er.ConfigError, match="fills missing values by itself"):
        er.export.to_opensearch(ranker)
    full = np.array([[1.0, 2.0], [0.0, 1.0]])
    np.testing.assert_array_equal(ranker.predict(full), ranker.predict(full.tolist()))


def test_trees_that_are_too_deep_for_json(tmp_path: Path) -> None:
    def chain(depth: int) -> Any:
        node: Any = 0.0
        for number in range(depth):
            node = random.Split(0, float(number), True, random.NAN, node, float(number))
        return node

    path = tmp_path / "deep.json"
    path.write_text(random.xgboost_json([chain(401)], 1))
    with pytest.raises(er.ConfigError, match="a tree is 401 splits deep"):
        er.export.to_opensearch(path)
    path.write_text(random.xgboost_json([chain(400)], 1))
    for engine in WRITERS:
        found = WRITERS[engine](path, missing="zero").score([[1.5], [250.5], [1000.0], [-1.0]])
        assert found.tolist() == [1.0, 250.0, 399.0, 0.0]


def test_options_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(random.xgboost_json([1.0], 1))
    for options, message in (
        ({"name": "a b"}, "name must be letters"),
        ({"missing": "none"}, "missing must be one of nan, zero"),
        ({"shift": "much"}, "shift must be a finite number"),
        ({"version": "new"}, "version must be numbers"),
        ({"group_field": "a b"}, "group_field must be letters"),
    ):
        with pytest.raises(er.ConfigError, match=message):
            er.export.to_opensearch(path, **options)
    with pytest.raises(er.ConfigError, match="engine must be one of opensearch"):
        er.export.emulate("lucene", "[]", [[1.0]])
    with pytest.raises(er.ConfigError, match="Name the columns with features="):
        er.export.emulate("opensearch", "[]", [[1.0]])
    with pytest.raises(er.DataError, match="rows must have 1 columns"):
        er.export.to_opensearch(path).score([[1.0, 2.0]])
    with pytest.raises(er.DataError, match="rows must be numbers"):
        er.export.to_opensearch(path).score([["a"]])


def test_a_linear_model_without_weights_keeps_its_intercept() -> None:
    ranker = er.FairLinearRanker()
    ranker.coef_, ranker.intercept_ = np.array([0.0, 1e-40]), 0.75
    ranker.feature_names_, ranker.group_names_ = ("a", "b"), ()
    for engine in ("opensearch", "solr", "vespa"):
        np.testing.assert_allclose(WRITERS[engine](ranker).score([[5.0, -3.0], [0.0, 2.0]]), 0.75)


def test_check_counts_lists_that_differ() -> None:
    data = er.RankingData.from_arrays([[1.0], [2.0], [1.0], [1 + 1e-9]], [0, 1, 0, 1], None, [1, 1, 2, 2])
    ranker = er.FairLinearRanker(alpha=0).fit(data)
    ranker.coef_, ranker.intercept_, ranker.resolution_ = np.array([1.0]), 0.0, 0.0
    found = er.export.check(er.export.to_opensearch(ranker), ranker, data, [1, 2])
    # 1 and 1 + 1e-9 are one 32-bit number: the tie goes by row.
    assert found.lists == {1: 1, 2: 1}
    assert found.largest_swap == pytest.approx(1e-9, rel=1e-6)
    assert found.largest_difference == pytest.approx(1e-9, rel=1e-6)
