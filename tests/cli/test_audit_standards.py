"""`evenrank audit --standard ll144`: the tables in every format, and one line for what cannot be done."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import polars as pl
import pytest

import evenrank as er

ASK = ("--standard", "ll144", "--sex", "sex", "--race", "race")


@pytest.fixture(scope="module")
def hiring() -> pl.DataFrame:
    """200 people, each in two of 20 lists of 20; some of unknown race."""
    rng = np.random.default_rng(5)
    people = np.concatenate([rng.permutation(200), rng.permutation(200)])
    sex, race = rng.choice(["female", "male"], 200), rng.choice(["Asian", "Black", "White", ""], 200)
    return pl.DataFrame(
        {
            "qid": np.repeat(np.arange(20), 20),
            "item": people,
            "score": rng.normal(size=400) + (sex[people] == "male"),
            "sex": sex[people],
            "race": race[people],
        }
    )


def test_json_has_the_tables_of_the_library(run, save, hiring):
    found = run("audit", save(hiring, "log.csv"), *ASK, "--k", "5", "--json").json()
    data = er.RankingData.from_arrays(
        np.zeros((400, 1)), np.zeros(400), None, hiring["qid"].to_numpy(), item_ids=hiring["item"].to_numpy()
    )
    sex, race = ({name: hiring[name].to_list()} for name in ("sex", "race"))
    expected = er.bias_audit(hiring["score"].to_numpy(), data, sex=sex, race=race, k=5)
    for mine, theirs in zip(found["tables"], expected.to_dict()["tables"], strict=True):
        assert mine["unknown"] == theirs["unknown"]
        for row, other in zip(mine["categories"], theirs["categories"], strict=True):
            assert row == pytest.approx(other)
    assert found["standard"] == "ll144"
    assert found["reduce"] == "best"
    assert found["data"]["applicants"] == 200
    assert found["provenance"]["files"][0]["name"] == "log.csv"
    # 1 person counts once although each is in two lists
    assert sum(row["number"] for row in found["tables"][0]["categories"]) == 200


@pytest.mark.parametrize("suffix", ["txt", "md", "html", "json", "csv", "xlsx"])
def test_every_format_has_the_tables_and_how_they_were_made(run, save, hiring, tmp_path, suffix):
    if suffix == "xlsx":
        pytest.importorskip("xlsxwriter")
    out = tmp_path / f"audit.{suffix}"
    done = run("audit", save(hiring, "log.csv"), *ASK, "--k", "5", "-o", out)
    assert (done.code, done.err) == (0, "")
    if suffix == "xlsx":
        sheets = pl.read_excel(out, sheet_id=0) if _reads_excel() else {}
        assert out.read_bytes()[:2] == b"PK"
        assert not sheets or {"sex", "race", "intersectional", "about", "conclusions"} <= set(sheets)
        return
    text = out.read_text(encoding="utf-8")
    for name in ("female", "male", "Asian", "Black", "White", "female & Asian"):
        assert name in text.replace("&amp;", "&")
    if suffix == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 2 + 3 + 6
        assert {row["table"] for row in rows} == {"sex", "race", "intersectional"}
    elif suffix == "json":
        assert json.loads(text)["provenance"]["command"]
    else:
        assert "SHA-256" in text
        assert "legal advice" in text


def _reads_excel() -> bool:
    try:
        import fastexcel  # noqa: F401
    except ImportError:
        return False
    return True


def test_ranks_rows_and_scoring(run, save, hiring):
    log = save(hiring, "log.csv")
    ranked = hiring.with_columns(place=pl.col("score").rank("ordinal", descending=True).over("qid"))
    both = [
        run("audit", file, *ASK, "--k", "5", *more, "--json").json()["tables"]
        for file, more in ((log, ()), (save(ranked, "ranked.csv"), ("--rank", "place")))
    ]
    assert both[0] == both[1]
    rows = run("audit", log, *ASK, "--k", "5", "--reduce", "rows", "--json").json()
    assert rows["data"]["applicants"] == 400
    assert all(row["fisher_p"] is None for table in rows["tables"] for row in table["categories"])
    scoring = run("audit", log, *ASK, "--rate", "scoring", "--json").json()
    assert scoring["k"] is None
    above = sum(row["selected"] for row in scoring["tables"][0]["categories"])
    assert above == 100  # half of 200 people without ties


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*ASK], "--rate selection needs --k"),
        ([*ASK, "--k", "1,3"], "takes one --k; got '1,3'"),
        ([*ASK, "--rate", "scoring", "--k", "3"], "--k is not for --rate scoring"),
        ([*ASK, "--rate", "scoring", "--rank", "score"], "--rate scoring needs scores, and --rank score has none"),
        (["--standard", "ll144", "--k", "3"], "needs --sex COLUMN, --race COLUMN or both"),
        (["--standard", "ll144", "--sex", "gender", "--k", "3"], "sex column 'gender' is not in the data; .* --sex."),
        (["--standard", "ll144", "--race", "origin", "--k", "3"], "race column 'origin' .* --race."),
        ([*ASK, "--person", "who", "--k", "3"], "person column 'who' .* --person."),
        ([*ASK, "--query", "list", "--k", "3"], "query column 'list' .* --query; applicants of one list"),
        (["--standard", "ll144", "--sex", "sex", "--race", "sex", "--k", "3"], "must be different columns"),
        (["--standard", "ll144", "--sex", "none", "--k", "3"], "the category of all 200 applicants is unknown"),
        (["--standard", "ll144", "--sex", "one", "--k", "3"], 'at least two categories; all 200 .* "x"'),
        (["--standard", "eeoc", "--sex", "sex", "--k", "3"], "--standard must be .*ll144.*'eeoc'"),
        ([*ASK, "--k", "3", "--rate", "hiring"], "--rate must be"),
        ([*ASK, "--k", "3", "--reduce", "first"], "--reduce must be"),
        ([*ASK, "--k", "3", "--group", "sex"], "--group is not for --standard ll144; got 'sex'"),
        ([*ASK, "--k", "3", "--fail-over", "dp@3=0.1"], "--fail-over is not for --standard"),
        ([*ASK, "--k", "3", "--engine", "duckdb"], "--engine is not for --standard ll144; got 'duckdb'"),
        ([*ASK, "--k", "3", "--min-share", "0.05"], "min_share must be at most 0.02"),
        (["--sex", "sex"], "--sex is for --standard only; got 'sex'"),
        ([*ASK, "--k", "3", "--person", "qid"], "the query column must have no other part"),
    ],
)
def test_one_line_says_what_is_missing(run, save, hiring, arguments, says):
    log = save(hiring.with_columns(none=pl.lit(""), one=pl.lit("x")), "log.csv")
    done = run("audit", log, *arguments)
    assert done.code == 2
    assert len(done.lines) == 1
    assert re.search(says, done.lines[0]), done.lines[0]


def test_hostile_names_are_text(run, save, hiring, tmp_path):
    names = {"female": "<script>alert(1)</script>", "male": "=1+1"}
    log = save(hiring.with_columns(pl.col("sex").replace(names)), "log.csv")
    page, table = tmp_path / "a.html", tmp_path / "a.csv"
    assert run("audit", log, *ASK, "--k", "5", "-o", page).code == 0
    assert "<script>alert" not in page.read_text()
    assert run("audit", log, *ASK, "--k", "5", "-o", table).code == 0
    assert "'=1+1" in table.read_text()
