"""`evenrank export`: what is written and printed, and one line for what cannot be done."""

from __future__ import annotations

import json

import polars as pl
import pytest

from evenrank.export import ENGINES
from export import random_models as random


@pytest.fixture
def model(run, save, logged, tmp_path):
    save(logged, "rows.parquet")
    assert run("train", "rows.parquet", "--alpha", "0.1", "-o", "model.json").code == 0
    return tmp_path / "model.json"


def test_a_linear_ranker_checked_on_its_rows(run, model, tmp_path):
    found = run("export", "model.json", "--to", "opensearch", "-o", "out", "--check", "rows.parquet", "--k", "3,10")
    assert (found.code, found.err) == (0, "")
    assert "Checked on 480 rows of 40 queries: scores differ by" in found.out
    assert "Top 3: 0 of 40 lists would differ." in found.out
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "README.md",
        "definition.json",
        "features.json",
        "model.json",
        "upload.sh",
    }
    report = run("export", "model.json", "--to", "solr", "-o", "out", "--check", "rows.parquet", "--json").json()
    assert report["check"]["lists"] == {"10": 0}
    assert report["check"]["largest_difference"] < 1e-4
    assert report["files"] == ["features.json", "model.json", "upload.sh", "README.md"]
    assert not (tmp_path / "out" / "definition.json").exists()


def test_trees_of_the_libraries_own_files_need_no_library(run, tmp_path):
    forest = [random.Split(0, 0.5, True, random.NAN, 1.0, 2.0)]
    (tmp_path / "model.txt").write_text(random.lightgbm_text(forest, 1))
    found = run("export", "model.txt", "--to", "vespa", "-o", "out", "--shift", "auto")
    assert (found.code, found.err) == (0, "")
    assert "Not checked: give rows with --check." in found.out


def test_offsets_and_fastar(run, save, logged, tmp_path):
    save(logged, "rows.csv")
    run("train", "rows.csv", "--method", "offset", "--set", "shrink=false", "--notion", "dp", "-o", "model.json")
    found = run("export", "model.json", "--to", "solr", "-o", "out", "--check", "rows.csv", "--fastar-p", "0.4")
    assert found.code == 0, found.err
    assert "of 40 lists would differ" in found.out
    assert "the group of an item counts at serving" in found.out
    assert len(json.loads((tmp_path / "out" / "fastar.json").read_text())["table"]) == 10
    features = json.loads((tmp_path / "out" / "features.json").read_text())
    assert features[-1]["params"]["q"].startswith("{!func}if(termfreq(group,'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "lucene"], f"--to must be one of {', '.join(ENGINES)}; got 'lucene'."),
        (["--to", "ranklib"], "a linear model has no RankLib form here. Export it to opensearch or elasticsearch."),
        (["--to", "vespa", "--rename", "age"], "--rename must be written as OLD=NEW; got 'age'."),
        (["--to", "vespa", "--rename", "zz=a"], "rename names 'zz', which is no feature of the model."),
        (["--to", "solr", "--missing", "none"], "missing must be one of nan, zero; got 'none'."),
        (["--to", "solr", "--engine-version", "x"], "the engine's version must be numbers such as 3.7 or 2.19.0"),
        (["--to", "solr", "--shift", "auto"], "the scores of this model have no smallest value. Give shift a number."),
        (["--to", "solr", "--name", "a b"], "name must be letters, digits"),
        (["--to", "solr", "--check", "nothing.csv"], "nothing.csv: there is no such file"),
        (["--to", "solr", "--check", "rows.csv"], "check on rows that have all its features"),
        (["--to", "solr", "--fastar-p", "2"], "p must be between 0 and 1"),
        (["--to", "solr", "--k", "0"], "--k must be whole numbers"),
    ],
)
def test_refusals_write_nothing(run, model, tmp_path, arguments, message):
    pl.DataFrame({"qid": [1, 1], "other": [1.0, 2.0]}).write_csv(tmp_path / "rows.csv")
    found = run("export", "model.json", "-o", "out", *arguments)
    assert (found.code, found.out) == (2, "")
    assert len(found.lines) == 1
    assert message in found.lines[0]
    assert not (tmp_path / "out").exists()


def test_damaged_models(run, model, tmp_path):
    text = model.read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    (tmp_path / "edited.json").write_text(text.replace('"intercept": ', '"intercept": 1'))
    forest = random.lightgbm_text([random.Split(0, 0.5, True, random.NAN, 1.0, 2.0)], 1)
    (tmp_path / "trees.txt").write_text(forest.replace("left_child=-1", "left_child=9"))
    for name, message in (
        ("cut.json", "it is not JSON"),
        ("edited.json", "does not match its digest"),
        ("trees.txt", "the lightgbm model in it is damaged"),
        ("nothing.json", "there is no such model file"),
    ):
        found = run("export", name, "--to", "opensearch", "-o", "out")
        assert (found.code, found.out, len(found.lines)) == (2, "", 1)
        assert message in found.lines[0]
    assert not (tmp_path / "out").exists()
