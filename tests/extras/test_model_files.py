"""Model files of boosted rankers: what was trained comes back, and no file can crash, hang or silence the process."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError
from model_files_v1 import CASES, FOLDER, loads_as_before, rows_of
from model_mutations import MACHINE, with_sizes, written

pytestmark = pytest.mark.extras
for library in ("lightgbm", "xgboost", "torch"):
    pytest.importorskip(library, reason="installed by make test-extras")


def rows() -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    draw = np.random.default_rng(1)
    n = 400
    X = draw.normal(size=(n, 4))
    X[::9, 0] = np.nan
    X[::3, 2] = 0
    y = (np.nan_to_num(X[:, 0]) + X[:, 1] + draw.normal(size=n) > 0.3).astype(float)
    return X, y, {"qid": np.repeat(np.arange(40), 10), "sensitive_features": draw.choice(["a", "b"], n)}


def frame(X: np.ndarray) -> pd.DataFrame:
    draw = np.random.default_rng(2)
    out = pd.DataFrame(X, columns=["a b", "c", "d", "größe"])
    out["c"] = pd.Categorical(draw.choice(["x", "yy", 'q"', "ü"], len(X)))
    return out.assign(e=pd.Categorical(draw.integers(3, 9, len(X))))


def lightgbm_ranker(**options: Any) -> Any:
    shared = {"notion": "dp", "alpha": 0.3, "n_estimators": 4, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1}
    return er.lightgbm.FairLGBMRanker(**shared | {"verbose": -1} | options)


def xgboost_ranker(**options: Any) -> Any:
    shared = {"notion": "dp", "alpha": 0.3, "n_estimators": 4, "max_depth": 4, "n_jobs": 1}
    return er.xgboost.FairXGBRanker(**shared | options)


# ---------------------------------------------------------------------- what was trained comes back


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("linear", "deltr"))])
def test_files_of_version_1_load_as_before(name: str, tmp_path: Path) -> None:
    loads_as_before(name, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0},
        {"boosting_type": "dart"},
        {"boosting_type": "rf", "alpha": 0, "subsample": 0.5, "subsample_freq": 1},
        {"linear_tree": True},
        {"zero_as_missing": True},
        {"monotone_constraints": [1, 0, 0, 0]},
        {"alpha": 0, "objective": "rank_xendcg"},
        {"alpha": 0, "objective": "binary"},
        {"alpha": 0, "objective": "regression", "reg_sqrt": True},
        {"objective": "squared"},
        {"num_leaves": 100, "min_child_samples": 1, "n_estimators": 20},
        {"min_split_gain": 1e9},
        {"use_quantized_grad": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("framed", [False, True])
def test_every_kind_of_lightgbm_comes_back(options: dict[str, Any], framed: bool, tmp_path: Path) -> None:
    if framed and ("monotone_constraints" in options or len(options) > 1):
        pytest.skip("the same as without a frame")
    X, y, labels = rows()
    given = frame(X) if framed else X
    model = lightgbm_ranker(**options).fit(given, y, **labels)
    model.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(given), model.predict(given))
    texts = [each.booster_.model_to_string().partition("end of trees")[0] for each in (model, again)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0},
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear", "max_depth": None},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"tree_method": "exact", "gamma": 1.0},
        {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0},
        {"alpha": 0, "objective": "rank:pairwise", "lambdarank_unbiased": True},
        {"missing": 0.0},
        {"reg_alpha": 1e9},
        {"max_violation": 0.01},
        {"enable_categorical": True},
        {"enable_categorical": True, "max_cat_to_onehot": 1, "tree_method": "approx"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:max_violation")
def test_every_kind_of_xgboost_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    X, y, labels = rows()
    given = frame(X) if "enable_categorical" in options else X
    model = xgboost_ranker(**options).fit(given, y, **labels)
    model.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(given), model.predict(given))
    assert again.get_booster().save_raw("json") == model.get_booster().save_raw("json")


def test_parameters_of_prediction_have_no_place_in_a_file(tmp_path: Path) -> None:
    X, y, labels = rows()
    model = lightgbm_ranker(num_iteration_predict=1).fit(X, y, **labels)
    with pytest.raises(ConfigError, match="num_iteration_predict changes predictions and has no place in a model file"):
        model.save(tmp_path / "model.json")


def test_what_this_evenrank_does_not_know_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, labels = rows()
    model = lightgbm_ranker().fit(X, y, **labels)
    text = model.booster_.model_to_string().replace("version=v4", "version=v5")
    monkeypatch.setattr(type(model.booster_), "model_to_string", lambda self: text)
    with pytest.raises(ConfigError, match=r"this LightGBM model has no model file: line 2 must be 'version=v4'"):
        model.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- what a file may say


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_file_has_no_say_about_the_machine(name: str, tmp_path: Path) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["parameters"] |= MACHINE
    (tmp_path / "model.json").write_bytes(written(content | {"version": 2}))
    ranker = er.load(tmp_path / "model.json")
    assert not set(MACHINE) & {key for key, value in ranker.get_params().items() if value in MACHINE.values()}
    assert ranker.n_jobs is None
    expected = er.load(FOLDER / f"{name}.json")
    matrix = np.array(CASES[name]["rows"], float)
    np.testing.assert_array_equal(ranker.predict(matrix), expected.predict(matrix))
    assert (ranker.notion, ranker.n_estimators) == ("demographic_parity", 4)


def in_text(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        assert old in content["model"]
        content["model"] = with_sizes(content["model"].replace(old, new, 1))

    return change


def in_model(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], None]:
    def outer(content: dict[str, Any]) -> None:
        model = json.loads(content["model"])
        change(model["learner"])
        content["model"] = json.dumps(model)

    return outer


def first_tree(learner: dict[str, Any]) -> dict[str, Any]:
    return dict(learner["gradient_booster"]["model"]["trees"][0])


# Each of these killed the process, hung it, or gave other scores.
CRAFTED: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "a loop": ("lightgbm", in_text("left_child=", "left_child=0 "), "LightGBM model in it is damaged: left_child"),
    "leaves beyond": ("lightgbm", in_text("num_leaves=5", "num_leaves=500000"), "LightGBM model in it is damaged"),
    "a feature beyond": ("lightgbm", in_text("split_feature=", "split_feature=99"), "LightGBM model in it is damaged"),
    "rounds of no trees": (
        "lightgbm",
        in_text("num_tree_per_iteration=1", "num_tree_per_iteration=0"),
        "must be 'num_tree_per_iteration=1'",
    ),
    "no model": ("lightgbm", lambda content: content.update(model=""), "line 1 must be 'tree'; got ''"),
    "a loop in XGBoost": (
        "xgboost",
        in_model(lambda learner: first_tree(learner)["left_children"].__setitem__(1, 0)),
        "XGBoost model in it is damaged: tree 0 reaches a node twice",
    ),
    "a child beyond": (
        "xgboost",
        in_model(lambda learner: first_tree(learner)["left_children"].__setitem__(0, 10**6)),
        "tree 0 has a child outside",
    ),
    "a group beyond": (
        "xgboost",
        in_model(lambda learner: learner["gradient_booster"]["model"].update(tree_info=[0, 0, 0, 1000])),
        "tree_info must be from 0 to 0",
    ),
    "another booster": (
        "xgboost",
        lambda content: content["parameters"].update(booster="gblinear"),
        "the parameters are not those of the model in it",
    ),
    "an objective that is none": (
        "xgboost",
        lambda content: content["parameters"].update(objective="reg:zz"),
        "the parameters are damaged",
    ),
    "missing of a text": (
        "xgboost",
        lambda content: content["parameters"].update(missing="x"),
        "the parameter 'missing' must be a finite number; got 'x'",
    ),
    "a notion of masks": (
        "lightgbm",
        lambda content: content["parameters"].update(notion=[[1, 0]]),
        "the parameter 'notion' must be a name",
    ),
    "features missing": ("lightgbm", lambda content: content.update(features=["x0"]), "must be 'max_feature_idx=0'"),
    "a violation of a text": (
        "xgboost",
        lambda content: content.update(violation="x"),
        "'violation' is missing or damaged",
    ),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("name", "change", "message"), CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_model_is_one_clear_line(
    name: str, change: Callable[[dict[str, Any]], None], message: str, version: int, tmp_path: Path
) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) | {"version": version}
    change(content)
    (tmp_path / "model.json").write_bytes(written(content, seal=version == 2))
    with pytest.raises(DataError) as caught:
        er.load(tmp_path / "model.json")
    text = str(caught.value)
    assert message in text
    assert text.startswith("model.json: ")
    assert "\n" not in text
    assert len(text) < 250


def test_no_flipped_bit_gives_other_scores(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for name in ("lightgbm", "xgboost", "neural"):
        ranker, matrix = er.load(FOLDER / f"{name}.json"), rows_of(name)
        expected = ranker.predict(matrix)
        ranker.save(path)
        good = path.read_bytes()
        for bit in np.random.default_rng(3).integers(0, 8 * len(good), 200).tolist():
            damaged = bytearray(good)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                again = er.load(path)
            except DataError:
                continue
            np.testing.assert_array_equal(again.predict(matrix), expected)


def test_hostile_files_of_every_kind() -> None:
    target = import_module("fuzz.model_files")
    assert target.run(150, 11) == []


def test_the_fuzz_target_sees_a_crash_and_a_hang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = import_module("fuzz.model_files")
    script = "import json, os, sys, time\nfirst = int(sys.argv[2])\n"
    script += "print(json.dumps({'case': first, 'failure': None}), flush=True)\n"
    script += "os.abort() if first == 0 else time.sleep(60) if first == 1 else None\n"
    script += "print(json.dumps({'case': first, 'failure': None, 'last': True}), flush=True)\n"
    (tmp_path / "worker.py").write_text(script)
    monkeypatch.setattr(target, "__file__", str(tmp_path / "worker.py"))
    monkeypatch.setattr(import_module("fuzz.cases"), "CLOCK", 2.0)
    failures = target.run(3, 0)
    assert len(failures) == 2
    assert "case 0 (seed 0): the process died, exit code -6" in failures[0]
    assert "case 1 (seed 0): no end after 10 s of the processor, or 2 s by the clock" in failures[1]


# ---------------------------------------------------------------------- nothing printed


@pytest.fixture
def credit(tmp_path: Path) -> Path:
    data = er.datasets.german_credit("age", lists=30)
    table = pl.DataFrame(np.asarray(data.features)[:, :6], schema=[f"f{j}" for j in range(6)]).with_columns(
        qid=data.query_ids[data.query_of_row],
        relevance=data.relevance,
        group=pl.Series([data.group_names[code] for code in data.group]),
    )
    table.write_parquet(tmp_path / "rows.parquet")
    return tmp_path


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evenrank", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("model", "setting", "message"),
    [
        ("lightgbm", "path_smooth=-1", "lightgbm does not take path_smooth=-1"),
        ("xgboost", "max_depth=deep", "xgboost does not take max_depth=deep"),
        ("xgboost", "tree_method=zz", "xgboost does not take tree_method=zz"),
    ],
)
def test_a_refusal_of_the_library_is_one_line(credit: Path, model: str, setting: str, message: str) -> None:
    done = program(credit, "train", "rows.parquet", "--model", model, "--set", setting)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"evenrank: {message}")
    assert done.stderr.count("\n") == 1
    assert ".cc" not in done.stderr


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("lightgbm", "warning: LightGBM: Unknown parameter: nonsense"),
        ("xgboost", 'Parameters: { "nonsense" } are not used'),
    ],
)
def test_a_warning_of_the_library_is_a_line_of_ours(credit: Path, model: str, words: str) -> None:
    done = program(credit, "train", "rows.parquet", "--model", model, "--set", "nonsense=1", "--set", "n_estimators=3")
    assert done.returncode == 0
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "[" not in done.stderr + done.stdout
    ranked = program(credit, "rank", "rows.parquet", "-m", "model.json", "-o", "ranked.csv")
    assert (ranked.returncode, ranked.stderr) == (0, "")


def test_training_that_cannot_be_is_one_line(credit: Path) -> None:
    table = pl.read_parquet(credit / "rows.parquet").with_columns(pl.col("^f.$") * 0)
    table.write_parquet(credit / "rows.parquet")
    done = program(credit, "train", "rows.parquet", "--model", "lightgbm")
    if done.returncode:
        assert done.returncode == 2
        assert "evenrank: LightGBM found no feature to split by" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_crafted_model_on_the_command_line(credit: Path, name: str) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    content["model"] = content["model"].replace("0", "9", 40)
    (credit / "model.json").write_bytes(written(content, seal=False))
    done = program(credit, "rank", "rows.parquet", "-m", "model.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("evenrank: model.json: the ")
    assert done.stderr.count("\n") == 1


def test_loading_in_python_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("lightgbm", "xgboost", "neural"):
            er.load(FOLDER / f"{name}.json")
    assert tuple(capfd.readouterr()) == ("", "")
