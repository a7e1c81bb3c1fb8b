"""The program as a user starts it: entry points, help, exit codes, clean stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evenrank as er

PROGRAM = [sys.executable, "-m", "evenrank"]
HEADER = ["--header", "--no-header"]
ROWS = ["--query", "--item", "--relevance", "--group", "--threshold", "--k", "--input-format", "--json", *HEADER]
COLUMNS = ["--features", "--ignore", "--categorical", "--sample-weight", "--impute"]
FIT = ["--notion", "--alpha", "--scope", "--solver", "--loss", "--ridge", "--group-aware", "--seed", *COLUMNS]
FIT += [
    "--gamma",
    "--strength",
    "--method",
    "--protected",
    "--model",
    "--max-violation",
    "--target",
    "--target-k",
    "--set",
    "--before",
    "--no-before",
]
RERANK = ["--method", "--p", "--significance", "--protected", "--notion", "--gain", "--k"]
RERANK += ["--target", "--strength", "--slack", "--theta", "--seed"]
END = ["--input-format", "--json", *HEADER]
JUDGE = ["--confidence", "--compare", "--fail-over", "--format", "--out"]
DESIGN = ["--cluster", "--no-items", "--min-share", "--min-count", "--many-groups", "--no-examples", "--items"]
SPLIT = ["--folds", "--seeds", "--test", "--seed"]
RUN = ["--solver", "--scale", "--set", "--jobs", "--examples"]
TITLES = ["--query-title", "--item-title"]
OPTIONS = {
    "demo": ["--group", "--k", "--solver", "--seed", "--out", "--json"],
    "audit": [
        *(*JUDGE, *DESIGN, "--score", "--rank", "--no-relevance", "--qrels", "--groups", "--measures", *ROWS),
        *("--standard", "--sex", "--race", "--person", "--rate", "--reduce", "--unknown"),
        *("--engine", "--master", "--memory"),
    ],
    "train": ["--out", "--score", "--engine", *FIT, *ROWS],
    "rank": [
        *("--model", "--engine", "--out", "--top", *RERANK),
        *("--score", "--query", "--item", "--relevance", "--group", *END),
    ],
    "export": [
        *("--to", "--out", "--name", "--engine-version", "--missing", "--shift", "--rename", "--group-field"),
        *("--fastar-p", "--significance", "--protected", "--check", "--k", "--query", "--item", "--group"),
        "--input-format",
        "--json",
    ],
    "sweep": ["--out", "--methods", "--measures", "--notions", "--strengths", *SPLIT, *RUN, *COLUMNS, *TITLES, *ROWS],
    "select": [
        "--rule",
        "--tolerance",
        "--baseline",
        "--notion",
        "--k",
        "--quality",
        "--gap",
        "--methods",
        "--grouping",
        "--json",
    ],
    "methods": ["--json"],
}


def start(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
    )


def test_version(run):
    assert run("--version").out == f"evenrank {er.__version__}\n"


def test_help_lists_the_commands(run):
    shown = run("--help")
    assert shown.code == 0
    for command in OPTIONS:
        assert f"  {command} " in shown.out
    assert run().out == shown.out


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_a_command_lists_its_options(run, command):
    shown = run(command, "--help")
    assert shown.code == 0
    words = shown.out.replace(",", " ").split()
    assert [option for option in OPTIONS[command] if option not in words] == []
    assert sorted({word for word in words if word.startswith("--")} - {"--help"}) == sorted(OPTIONS[command])


def test_demo_really_runs(tmp_path):
    done = start("demo", "--k", "5", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["about"]["queries"] == 500
    assert "<html" in (tmp_path / report["report"]).read_text(encoding="utf-8")
    data = er.datasets.german_credit("age")
    sweep = er.sweep(data, notions=["eod"], strengths=[10], ks=[5], folds=er.datasets.german_credit_folds(data))
    curve = next(curve for curve in report["curves"] if curve["notion"] == "equalized_odds")
    ends = [curve["equalized_odds@5"][0], curve["equalized_odds@5"][-1]]
    assert ends == pytest.approx(sweep.curve("eod", 5).violation.tolist())


def test_failure_is_one_line_and_exit_code_two(tmp_path):
    done = start("audit", "nowhere.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "evenrank: nowhere.csv: there is no such file. Check the path.\n"


def test_stdout_that_is_not_unicode(tmp_path, logged):
    rows = logged.with_columns(group=logged["group"].str.replace("over", "über"))
    rows.write_csv(tmp_path / "rows.csv")
    table = start("audit", "rows.csv", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (table.returncode, table.stderr) == (0, "")
    assert "all: ?ber 25" in table.stdout
    report = start("audit", "rows.csv", "--json", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert list(json.loads(report.stdout)["data"]["groups"]) == ["25 or younger", "über 25"]


@pytest.mark.skipif(os.name != "posix", reason="pipes and /dev/stdout are POSIX's")
@pytest.mark.parametrize("more", [[], ["--top", "1"]], ids=["long output", "short output"])
def test_a_reader_that_stops_early_gets_no_message(tmp_path, logged, more):
    logged.drop("score").write_csv(tmp_path / "rows.csv")
    er.FairLinearRanker("dp", alpha=0.0).fit(er.read(tmp_path / "rows.csv")).save(tmp_path / "model.json")
    command = [*PROGRAM, "rank", "rows.csv", "--json"]
    process = subprocess.Popen([*command, *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=120) not in (0, 2)


def test_measures_lists_all_of_them(run: Any) -> None:
    printed = run("measures")
    assert (printed.code, printed.err) == (0, "")
    text = " ".join(printed.out.split())
    for row in er.measures_table():
        assert f"\n{row['name']}" in f"\n{printed.out}"
        assert row["formula"] in text
    assert [row["name"] for row in run("measures", "--json").json()] == [row["name"] for row in er.measures_table()]
