"""Missing values and categories in models that need an extra, and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.cli import main
from evenrank.errors import DataError

pytestmark = pytest.mark.extras

N = 300
RANDOM = np.random.default_rng(1)
COLOUR = RANDOM.choice(["red", "green", "blue", "grey"], N)
FRAME = pl.DataFrame(
    {
        "qid": np.arange(N) // 10,
        "item": np.arange(N),
        "relevance": (COLOUR == "green").astype(int),  # "green" is neither first nor last: no threshold finds it
        "group": RANDOM.choice(["a", "b"], N),
        "colour": COLOUR,
        "price": np.where(RANDOM.random(N) < 0.3, None, RANDOM.normal(size=N)).tolist(),
    }
).with_columns(pl.col("price").cast(pl.Float64))


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return er.RankingData.from_frame(FRAME, categorical=["colour"])


def ranker(name: str) -> Any:
    if name == "lightgbm":
        return er.lightgbm.FairLGBMRanker(
            notion="dp", alpha=0.01, n_estimators=5, num_leaves=2, min_child_samples=5, n_jobs=1, verbose=-1
        )
    return er.xgboost.FairXGBRanker(notion="dp", alpha=0.01, n_estimators=5, max_depth=1, n_jobs=1)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_trees_split_by_sets_of_categories(data: er.RankingData, name: str, tmp_path: Path) -> None:
    model = ranker(name).fit(data)
    scores = model.predict(data)
    assert scores[COLOUR == "green"].min() > scores[COLOUR != "green"].max()  # one split per tree tells green apart
    model.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    assert again.categories_ == {"colour": ("blue", "green", "grey", "red")}
    np.testing.assert_array_equal(again.predict(data), scores)
    typed = FRAME.with_columns(pl.col("colour").cast(pl.Categorical))[["price", "colour"]]
    for frame in (typed, typed.to_pandas()):
        np.testing.assert_array_equal(again.predict(frame), scores)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_other_numbers_of_the_same_categories_change_nothing(data: er.RankingData, name: str) -> None:
    model = ranker(name).fit(data)
    kept = np.isin(COLOUR, ["green", "red"])
    rows = er.RankingData.from_frame(FRAME.filter(kept), categorical=["colour"])
    assert rows.categories == {"colour": ("green", "red")}
    np.testing.assert_array_equal(model.predict(rows), model.predict(data)[kept])
    new = FRAME.with_columns(colour=pl.lit("violet"))
    missing = FRAME.with_columns(colour=pl.lit(None, pl.String))
    of_new, of_missing = (
        model.predict(er.RankingData.from_frame(frame, categorical=["colour"])) for frame in (new, missing)
    )
    np.testing.assert_array_equal(of_new, of_missing)
    with pytest.raises(DataError, match="feature 'colour' held categories in training and holds numbers here"):
        model.predict(er.RankingData.from_frame(FRAME.with_columns(colour=pl.lit(1.0))))


def test_a_network_is_filled_as_a_linear_ranker_is(data: er.RankingData, tmp_path: Path) -> None:
    from evenrank.rankers.imputing import Imputer

    with pytest.raises(DataError, match="a network takes numbers only"):
        er.torch.FairNeuralRanker("dp").fit(data)
    model = er.torch.FairNeuralRanker("dp", alpha=0.1, epochs=2, impute="mean").fit(data)
    by_hand = Imputer.fit(data, "mean").transform(data)
    plain = er.torch.FairNeuralRanker("dp", alpha=0.1, epochs=2).fit(by_hand)
    np.testing.assert_array_equal(model.predict(data), plain.predict(by_hand))
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(er.load(tmp_path / "model.json").predict(data), model.predict(data))


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    FRAME.with_columns(note=pl.lit("free text")).write_csv("rows.csv")

    def command(*arguments: object) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return int(ended.value.code or 0), "".join(capsys.readouterr())

    return command


ROWS = ("rows.csv", "--categorical", "colour", "--ignore", "note")


@pytest.mark.parametrize("options", [("--model", "lightgbm", "--set", "min_child_samples=5"), ("--impute", "median")])
def test_train_and_rank(run: Any, data: er.RankingData, options: tuple[str, ...]) -> None:
    code, text = run("train", *ROWS, "--alpha", "0.01", *options)
    assert (code, "warning" in text) == (0, False), text
    model = er.load("model.json")
    code, text = run("rank", "rows.csv", "-o", "ranked.csv")
    assert code == 0, text
    ranked = pl.read_csv("ranked.csv").sort("row")
    np.testing.assert_allclose(ranked["score"].to_numpy(), model.predict(data), rtol=1e-12)


def test_what_cannot_take_them_says_so_in_one_line(run: Any) -> None:
    code, text = run("train", *ROWS)
    assert code == 2
    assert text.count("\n") == 1
    assert "a linear ranker takes numbers only; the data has missing values (NaN) in 'price'" in text
    assert "--impute median" in text
    code, text = run("sweep", *ROWS, "--methods", "amortized,lightgbm")
    assert code == 2
    assert "'amortized' cannot take missing values or categories, which the data has; lightgbm, xgboost can" in text
    code, text = run("bench", *ROWS, "--methods", "amortized")
    assert code == 2
    assert "'amortized' cannot take missing values" in text
    assert "'amortized', 'amortized'" not in text
    code, text = run("train", *ROWS, "--model", "lightgbm", "--impute", "mean")
    assert code == 2
    assert "--impute is not for --method lightgbm" in text
    code, text = run("train", "rows.csv", "--categorical", "hue")
    assert code == 2
    assert "categorical column 'hue' is not in the data" in text


def test_a_bench_of_trees_alone_goes_without_the_linear_baseline(run: Any) -> None:
    options = ("--methods", "lightgbm", "--notions", "dp", "--k", "3", "--folds", "3", "--seeds", "1", "-j", "1")
    options += ("--set", "lightgbm.n_estimators=5", "--set", "lightgbm.min_child_samples=5")
    code, text = run("bench", *ROWS, *options)
    assert code == 0, text
    assert "the noise floor is left out of rows: it needs the linear ranker" in " ".join(text.split())
    found = er.Bench.load("bench")
    assert {standing.method for standing in found.standings()} == {"lightgbm"}
    assert "noise_floor" in found.config["left_out"]
    assert "left out: noise_floor (needs the linear ranker" in Path("bench/bench.md").read_text()
    assert "noise floor: one offset" not in Path("bench/bench.md").read_text()
    code, text = run("bench", *ROWS, *options, "--impute", "median", "-o", "filled")
    assert code == 0, text
    assert "left out" not in text
    by_method = {standing.method: standing for standing in er.Bench.load("filled").standings()}
    assert set(by_method) == {"lightgbm", "noise_floor"}
    (alone,) = found.standings()  # its own baseline, whether the noise floor is there or not
    assert (by_method["lightgbm"].reduction, by_method["lightgbm"].pooled) == (alone.reduction, alone.pooled)


def test_sweep_with_a_test_file(run: Any) -> None:
    FRAME.filter(pl.col("qid") >= 20).write_csv("test.csv")
    options = (
        "--notions",
        "dp",
        "--strengths",
        "0.01",
        "--k",
        "3",
        "--impute",
        "mean",
        "--set",
        "lightgbm.n_estimators=5",
    )
    code, text = run("sweep", *ROWS, "--test", "test.csv", "--methods", "lightgbm,amortized,mlp", *options)
    assert code == 0, text
    code, text = run("sweep", *ROWS, "-o", "folds", "--folds", "2", "--methods", "lightgbm", *options)
    assert code == 0, text
