"""The command line with models that need an extra: train, rank, sweep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.cli import main

pytestmark = pytest.mark.extras


@pytest.fixture
def run(capsys):
    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        assert ended.value.code == 0, told.err
        return told.out

    return command


@pytest.fixture
def credit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = er.datasets.german_credit("age", lists=60)
    frame = pl.DataFrame(np.asarray(rows.features), schema=[f"f{j}" for j in range(rows.n_features)]).with_columns(
        qid=rows.query_ids[rows.query_of_row],
        item=pl.Series([str(item) for item in rows.item_ids]),
        relevance=rows.relevance,
        group=pl.Series([rows.group_names[code] for code in rows.group]),
    )
    frame.write_parquet("rows.parquet")
    return frame


SMALL = {"lightgbm": ["--set", "n_estimators=20", "--set", "n_jobs=1"], "mlp": ["--set", "epochs=3"]}
SMALL["xgboost"] = SMALL["lightgbm"]


@pytest.mark.parametrize("model", ["lightgbm", "xgboost", "mlp"])
def test_a_model_trains_ranks_and_is_swept_by_name(run, credit, model):
    told = {
        alpha: json.loads(
            run(
                "train", "rows.parquet", "--model", model, "--notion", "dp", "--alpha", alpha,
                "-o", "model.json", "--json", *SMALL[model],
            )
        )
        for alpha in (0, 3)
    }  # fmt: skip
    gap = "demographic_parity@5"
    assert told[3]["measures"][gap] < told[0]["measures"][gap]
    run("rank", "rows.parquet", "-m", "model.json", "-o", "ranked.csv")
    ranked = pl.read_csv("ranked.csv")
    scores = er.load("model.json").predict(credit.select([f"f{j}" for j in range(44)]).to_numpy())
    best = credit.with_columns(score=pl.Series(scores)).sort("score", descending=True).group_by("qid").first()
    assert len(ranked) == len(credit)
    firsts = dict(ranked.filter(pl.col("rank") == 1).select("qid", "score").iter_rows())
    expected = dict(best.select("qid", "score").iter_rows())
    assert {str(key): value for key, value in firsts.items()} == pytest.approx(
        {str(key): value for key, value in expected.items()}, rel=1e-5, abs=1e-6
    )
    grid = ["--notions", "dp", "--strengths", "0,1", "--k", "5", "--folds", "2"]
    run("sweep", "rows.parquet", "--methods", model, *grid, "-o", "run", "--set", f"{model}.{SMALL[model][1]}")
    result = er.Sweep.load("run")
    assert result.methods == [model]
    assert len(result) == 4
    assert np.isfinite(result.curve("dp", 5).violation).all()


@pytest.mark.parametrize("model", ["lightgbm", "mlp"])
def test_a_limit_on_queries_outside_training_and_a_model_that_sees_the_group(run, capsys, credit, model):
    common = ["train", "rows.parquet", "--model", model, "--notion", "dp", "-o", "model.json", "--json", *SMALL[model]]
    told = json.loads(run(*common, "--max-violation", 0.9, "--set", "validation_fraction=0.3"))
    assert told["alpha"] == 0
    assert er.load("model.json").validation_fraction == 0.3
    told = json.loads(run(*common, "--alpha", 9, "--group-aware"))
    assert told["measures"]["demographic_parity@5"] < told["before"]["measures"]["demographic_parity@5"]
    ranker = er.load("model.json")
    run("rank", "rows.parquet", "-m", "model.json", "-o", "ranked.csv")
    scores = ranker.predict(credit.select([f"f{j}" for j in range(44)]), sensitive_features=credit["group"])
    ranked = pl.read_csv("ranked.csv", schema_overrides={"item": pl.String})
    assert sorted(ranked["score"]) == pytest.approx(sorted(scores.tolist()), rel=1e-5, abs=1e-6)
    credit.drop("group").write_parquet("blind.parquet")
    for wrong, words in (
        (["rank", "blind.parquet", "-m", "model.json"], "group"),
        ([*common, "--alpha", 1, "--set", "validation_fraction=0.3"], "is for max_violation, which is not set"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in wrong])
        (line,) = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert words in line
    grid = ["--notions", "dp", "--strengths", "0,9", "--k", "5", "--folds", "2"]
    more = ["--set", f"{model}.group_aware=true", "--set", f"{model}.{SMALL[model][1]}"]
    run("sweep", "rows.parquet", "--methods", model, *grid, "-o", "run", *more)
    gaps = er.Sweep.load("run").curve("dp", 5).violation
    assert gaps[1] < gaps[0]
    seen = "may see the group at training and at serving"
    run("report", "run", "-o", "report.html")
    assert seen in Path("report.html").read_text(encoding="utf-8")
    settings = er.Sweep.load("run").about.settings
    options = {"notions": ["dp"], "ks": [5], "folds": 3, "seeds": 1, "strengths": {model: [0, 9]}}
    result = er.bench({"rows": er.read("rows.parquet", item="item")}, [model], settings=settings, **options)
    standings = [each for each in result.standings() if each.method == model]
    assert {(each.sees.group_at_serving, each.is_blind) for each in standings} == {(True, False)}


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("lightgbm", "n_estimators=many"),
        ("xgboost", "max_depth=deep"),
        ("xgboost", "objective=zz"),
        ("mlp", "hidden=64"),
        ("mlp", "momentum=much"),
        ("mlp", "device=abacus"),
    ],
)
def test_an_option_the_library_refuses_is_one_line(capsys, credit, model, setting):
    with pytest.raises(SystemExit) as ended:
        main(["train", "rows.parquet", "--model", model, "--set", setting])
    told = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert len(told) == 1
    assert setting.partition("=")[0] in told[0]


def test_what_lightgbm_prints_stays_out_of_the_json(run, credit):
    told = run("train", "rows.parquet", "--model", "lightgbm", "--set", "nonsense=1", *SMALL["lightgbm"], "--json")
    assert json.loads(told)["method"] == "lightgbm"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("lightgbm.n_estimators=many", "lightgbm does not take n_estimators=many"),
        ("xgboost.max_depth=deep", "xgboost does not take max_depth=deep"),
        ("mlp.device=abacus", "device must be one that torch has here, as 'cpu'; got 'abacus'"),
    ],
)
def test_a_sweep_says_what_the_library_refuses_in_one_line(capsys, credit, setting, words):
    model = setting.partition(".")[0]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "rows.parquet", "--methods", model, "--notions", "dp", "--set", setting, "-o", "run"])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]
