"""`evenrank sweep` and `evenrank select`: the library's sweep into a folder, and a strength out of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.experiment.examples import Titles
from evenrank.experiment.run_folder import RunFolder
from evenrank.io.registry import FORMATS, Format
from evenrank.methods.registry import METHODS

QUICK = ["--notions", "dp", "--strengths", "0.1,1", "--k", "3", "--folds", "3"]
ASKED = {"notions": ["dp"], "strengths": [0.1, 1], "ks": [3], "folds": 3}


@pytest.fixture
def table(logged):
    return logged.drop("score")


@pytest.fixture
def frame(table):
    """Rows with two groupings and texts."""
    rows = table
    return rows.with_columns(
        half=pl.Series([["left", "right"][row % 2] if row % 7 else None for row in range(rows.height)]),
        query_text=pl.format("list {}", pl.col("qid")),
        name=pl.format("applicant {}", pl.col("item")),
    )


@pytest.fixture
def rows(frame, save):
    return save(frame, "rows.parquet")


@pytest.fixture
def plain(table, save):
    return save(table, "rows.csv")


def without_seconds(sweep):
    return sweep.frame().drop("seconds")


def test_it_is_the_sweep_of_the_library(run, plain):
    report = run("sweep", plain, *QUICK, "-o", "there", "--json").json()
    expected = er.sweep(er.read(plain), **ASKED)
    found = er.Sweep.load("there")
    assert without_seconds(found).equals(without_seconds(expected).with_columns(grouping=pl.lit("group")))
    assert report["run"] == "there"
    assert report["about"]["models"] == 9
    assert report["curves"][0]["ndcg@3"] == pytest.approx(expected.curve("dp", 3).quality.tolist())


def test_the_table_and_what_comes_next(run, plain):
    shown = run("sweep", plain, *QUICK)
    assert (shown.code, shown.err) == (0, "")
    curve = er.Sweep.load("run").curve("dp", 3)
    row = next(line for line in shown.out.splitlines() if line.split()[:2] == ["dp", "3"]).split()
    assert row[2].startswith(f"{curve.violation[0]:.3f}±")
    assert row[-1] == f"{curve.strengths[curve.best]:.3g}"
    assert shown.out.splitlines()[-1] == "Run folder: run. Next: evenrank report run, evenrank select run"


def test_names_that_look_like_markup_or_need_quotes(run, frame, save):
    rows = save(frame.drop("query_text", "name").rename({"group": "[/red]g", "half": "h[b]"}), "two words.parquet")
    shown = run("sweep", rows, "--group", "[/red]g,h[b]", *QUICK, "-o", "a run")
    assert (shown.code, shown.err) == (0, "")
    assert "groups by [/red]g" in shown.out
    assert shown.out.splitlines()[-1].endswith("Next: evenrank report 'a run', evenrank select 'a run'")
    assert "groups by h[b]" in run("select", "a run", "--rule", "four_fifths").out


def test_several_methods_and_groupings(run, rows, frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(
        *("sweep", rows, "--group", "group,half", "--methods", "amortized,fastar_unadjusted", "--notions", "dp,eop"),
        *("--strengths", "0.1", "--strengths", "fastar_unadjusted=0.2,0.4", "--k", "2,3", "--folds", "3", "-j", "2"),
        *("--query-title", "query_text", "--item-title", "name", "--examples", "3"),
    )
    assert (shown.code, shown.err) == (0, "")
    assert "…" not in shown.out
    data = er.RankingData.from_frame(frame.drop("half", "query_text", "name"), item="item")
    halves = frame["half"].to_list()
    expected = er.sweep(
        {"group": data, "half": data.with_group(halves)},
        ["amortized", "fastar_unadjusted"],
        ["dp", "eop"],
        {"amortized": [0.1], "fastar_unadjusted": [0.2, 0.4]},
        [2, 3],
        folds=3,
        examples=3,
        titles=Titles(
            dict(zip(frame["qid"], frame["query_text"], strict=True)),
            dict(zip(frame["item"], frame["name"], strict=True)),
        ),
    )
    found = er.Sweep.load("run")
    assert without_seconds(found).equals(without_seconds(expected))
    assert found.examples.queries == expected.examples.queries
    assert found.examples.queries[0]["title"].startswith("list ")
    assert found.examples.queries[0]["items"][0]["title"].startswith("applicant ")
    lines = [line.split() for line in shown.out.splitlines()]
    for grouping in ("group", "half"):
        assert f"At no significant quality loss, k = 3, groups by {grouping}" in shown.out
        for method in found.methods:
            curve = found.curve("eop", 3, method=method, grouping=grouping)
            start = [method, "eop", f"{curve.violation[0]:.3f}", f"{curve.violation[curve.best]:.3f}"]
            assert any(line[:4] == start for line in lines)


def test_held_out_rows_and_seeds(run, table, save):
    held = pl.col("qid").is_in(table["qid"].unique().sort()[::4].to_list())
    train, test = save(table.filter(~held), "train.csv"), save(table.filter(held), "test.csv")
    asked = ["--notions", "dp", "--strengths", "0.1", "--k", "3", "--solver", "sgd", "--set", "amortized.epochs=2"]
    assert run("sweep", train, "--test", test, "--seeds", "2", *asked, "--json").code == 0
    found = er.Sweep.load("run")
    expected = er.sweep(
        er.read(train),
        notions=["dp"],
        strengths=[0.1],
        ks=[3],
        test=er.read(test),
        seeds=2,
        solver="sgd",
        settings={"amortized": {"epochs": 2}},
    )
    assert without_seconds(found).equals(without_seconds(expected))
    assert found.about.repeats == "seeds"
    assert run("sweep", train, "--seeds", "3,5", *asked, "-o", "splits", "--scale", "none", "--json").code == 0
    assert sorted(set(er.Sweep.load("splits").columns["seed"])) == [3, 5]


def test_held_out_rows_without_a_group_still_measure_quality(run, table, save):
    held = pl.col("qid").is_in(table["qid"].unique().sort()[::4].to_list())
    first, second = sorted(table["group"].drop_nulls().unique())
    train = save(table.filter(~held), "train.csv")
    test = save(table.filter(held, pl.col("group") == second), "test.csv")
    asked = ["--notions", "dp", "--strengths", "0.1", "--k", "3"]
    done = run("sweep", train, "--test", test, *asked)
    assert done.code == 0
    assert f"all rows have no item of group {first!r}; the violation is NaN" in " ".join(done.warnings)
    columns = er.Sweep.load("run").columns
    assert np.isnan(columns["demographic_parity@3"]).all()
    assert np.isfinite(columns["ndcg@3"]).all()
    assert run("report", "run").code == 0
    none = save(table.filter(held).with_columns(group=pl.lit(None, pl.String)), "none.csv")
    refused = run("sweep", train, "--test", none, *asked, "-o", "none")
    assert refused.code == 2
    assert "none.csv: at least one group is needed; found no group labels." in refused.err


@pytest.mark.parametrize("methods", ["amortized", "amortized,per_query"])
def test_a_single_test_has_no_error_so_no_drop_is_called_significant(run, table, save, methods):
    held = pl.col("qid").is_in(table["qid"].unique().sort()[::4].to_list())
    train, test = save(table.filter(~held), "train.csv"), save(table.filter(held), "test.csv")
    asked = ["--methods", methods, "--notions", "dp", "--strengths", "0.1", "--k", "3"]
    said = " ".join(run("sweep", train, "--test", test, *asked, "-o", "once").out.split())
    assert "at no quality loss at all" in said.lower()
    assert "significant" not in said
    assert "±" not in said
    said = " ".join(run("sweep", train, *asked, "--folds", "3", "-o", "folds").out.split())
    assert "no significant quality loss" in said
    assert "± standard error" in said


def test_all_methods_are_those_that_can_run(run, plain, monkeypatch):
    from dataclasses import replace

    from evenrank.cli import sweep as command

    few = {name: METHODS[name] for name in ("amortized", "fastar")}
    few["absent"] = replace(METHODS["amortized"], name="absent", extra="no_such_module")
    monkeypatch.setattr(command, "METHODS", few)
    assert run("sweep", plain, *QUICK[:2], "--k", "3", "--folds", "2", "--methods", "all", "--json").code == 0
    assert er.Sweep.load("run").methods == ["amortized", "fastar"]


def test_methods_that_need_an_extra_say_so(run, monkeypatch):
    from dataclasses import replace

    from evenrank.cli import methods as command

    monkeypatch.setattr(command, "METHODS", {"x": replace(METHODS["amortized"], name="x", extra="lightgbm")})
    assert "(needs pip install 'evenrank[lightgbm]')" in run("methods").out
    assert run("methods", "--json").json()[0]["extra"] == "lightgbm"


def test_a_finished_run_is_shown_again(run, plain):
    first = run("sweep", plain, *QUICK)
    before = (Path("run") / "journal.jsonl").read_bytes()
    assert run("sweep", plain, *QUICK).out == first.out
    assert (Path("run") / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--methods", "magic"], "--methods must be one of amortized, "),
        (["--methods", ""], "a sweep needs at least one method"),
        (["--notions", "fair"], "notion must be one of"),
        (["--strengths", "many"], "--strengths must be numbers, comma-separated; got 'many'"),
        (["--strengths", "deltr=1"], "a method of --strengths must be one of amortized; got 'deltr'"),
        (["--strengths", "1", "--strengths", "2"], "--strengths are given twice for all"),
        (["--strengths", "amortized="], "--strengths must be numbers"),
        (["--strengths=-1"], "strengths must be finite numbers ≥ 0"),
        (["--methods", "fastar", "--strengths", "2"], "strengths of fastar are values of p below 1; got [2.0]"),
        (["--methods", "amortized,fastar", "--strengths", "0.1,10"], "strengths of fastar are values of p below 1"),
        (["--k", "0"], "--k must be whole numbers ≥ 1"),
        (["--folds", "1"], "must be a whole number ≥ 2; got '1'"),
        (["--folds", "41"], "folds must be a whole number from 2 to the 40 queries; got 41"),
        (["--seeds", "x"], "--seeds must be a number ≥ 1"),
        (["--seeds", "0"], "--seeds must be a number ≥ 1"),
        (["--seeds", "2", "--folds", "3"], "folds go neither with test nor with seeds"),
        (["--solver", "magic"], "solver must be one of exact, gd, sgd"),
        (["--scale", "magic"], "--scale must be one of train, dataset, none"),
        (["--set", "loss=x"], "--set must be written as method.option=value; got 'loss'"),
        (["--set", "amortized.loss"], "--set must be written as option=value; got 'amortized.loss'"),
        (["--set", "magic.loss=x"], "a method of --set must be one of"),
        (["--set", "amortized.speed=9"], "setting amortized.speed is not known; the settings of amortized are: loss"),
        (["--set", "amortized.loss=magic"], "loss must be one of"),
        (["--jobs", "0"], "n_jobs must be a number of processes"),
        (["--group", "hair"], "group column 'hair' is not in the data"),
        (["--group", "group,hair"], "group column 'hair' is not in the data"),
        (["--item-title", "hair"], "item-title column 'hair' is not in the data"),
        (["--query-title", "hair"], "Name the right column with --query-title."),
        (["--test", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["-o", "rows.csv"], "rows.csv: exists and is not a run folder"),
    ],
)
def test_bad_options_are_one_line_and_leave_no_folder(run, plain, arguments, says):
    shown = run("sweep", plain, *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert len(shown.lines) == 1
    assert says in shown.lines[0]
    assert [path.name for path in Path().iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_file_is_read_once_for_all_its_columns(run, frame, save, monkeypatch, suffix):
    seen = []

    def counted(paths, columns):
        seen.extend(path.name for path in paths)
        return original(paths, columns)

    original = FORMATS[suffix].read
    monkeypatch.setitem(FORMATS, suffix, Format(counted, FORMATS[suffix].suffixes))
    held = pl.col("qid").is_in(frame["qid"].unique().sort()[::4].to_list())
    train, test = save(frame.filter(~held), f"train.{suffix}"), save(frame.filter(held), f"test.{suffix}")
    options = ("--group", "group,half", "--query-title", "query_text", "--item-title", "name", "--notions", "dp")
    shown = run("sweep", train, "--test", test, *options, "--strengths", "0.1", "--k", "2", "--examples", "2")
    assert (shown.code, shown.err) == (0, "")
    assert seen == [f"train.{suffix}", f"test.{suffix}"]
    result = er.Sweep.load("run")
    assert result.groupings == ["group", "half"]
    texts = dict(zip(frame["qid"].cast(str), frame["query_text"], strict=True))
    assert [texts[query["id"]] for query in result.examples.queries] == [q["title"] for q in result.examples.queries]


def test_titles_of_items_need_items(run, table, save):
    shown = run("sweep", save(table.rename({"item": "x"}), "rows.parquet"), "--item-title", "group")
    assert (shown.code, "--item-title needs item ids" in shown.lines[0]) == (2, True)


def test_another_run_in_the_folder_is_refused(run, plain):
    run("sweep", plain, *QUICK)
    shown = run("sweep", plain, *QUICK, "--solver", "gd")
    assert shown.code == 2
    assert shown.lines == [
        'evenrank: run: holds a run whose solver (asked) differ: "exact" there, "gd" now. Name another folder, or '
        "remove this one."
    ]


# ---------------------------------------------------------------------- stopped


def started(plain: Path, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evenrank", "sweep", str(plain), "-o", str(folder), "--solver", "gd"]
    command += ["--methods", "amortized,per_query", "--k", "3", "--folds", "10"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_command_goes_on(plain, tmp_path, how):
    folder = tmp_path / "stopped"
    process = started(plain, folder)
    while not RunFolder(folder).blocks():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate(timeout=120)
    done = len(RunFolder(folder).blocks())
    assert 0 < done < 20
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert said.strip().splitlines()[-1] == "evenrank: interrupted; the same command goes on from here"
    again = started(plain, folder)
    again.communicate(timeout=120)
    assert again.returncode == 0
    assert len(RunFolder(folder).blocks()) == 20


# ---------------------------------------------------------------------- select


@pytest.fixture
def swept(run, rows):
    asked = ["--group", "group,half", "--methods", "amortized,fastar", "--notions", "dp,eop", "--strengths", "0.1,0.5"]
    assert (
        run("sweep", rows, *asked, "--k", "1,3", "--folds", "4", "--features", "credit amount in DM", "--json").code
        == 0
    )
    return er.Sweep.load("run")


def expected(sweep, *arguments, **options):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return er.select(sweep, *arguments, **options)


def test_select_says_what_the_library_chooses(run, swept, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("select", "run")
    assert (shown.code, shown.err) == (0, "")
    assert "…" not in shown.out
    for grouping in ("group", "half"):
        for notion in ("dp", "eop"):
            choice = expected(swept, notion, grouping=grouping)
            assert choice.text() in shown.out.splitlines()


def test_select_knows_the_former_name_of_a_rule(run, swept):
    shown = run("select", "run", "--rule", "free", "--notion", "dp", "--json")
    assert {choice["rule"] for choice in json.loads(shown.out)} == {"no_loss"}


def test_select_as_json(run, swept):
    arguments = ["--rule", "within", "--tolerance", "0.2", "--notion", "eop", "--k", "1", "--quality", "precision"]
    shown = run("select", "run", *arguments, "--methods", "amortized", "--grouping", "group", "--json")
    choice = expected(
        swept, "eop", 1, rule="within", tolerance=0.2, quality="precision", methods="amortized", grouping="group"
    )
    (found,) = shown.json()
    assert found["text"] == choice.text()
    assert found["chosen"] == pytest.approx(asdict(choice)["chosen"])
    assert found["held_out"]["quality"] == pytest.approx(choice.held_out.quality)
    assert found["qualified"] is choice.qualified


def test_select_by_all_rules_warns_of_those_that_choose_nothing(run, swept):
    shown = run("select", "run", "--rule", "all", "--notion", "dp", "--grouping", "half")
    choices = {rule: expected(swept, "dp", rule=rule, grouping="half") for rule in er.select.__globals__["RULES"]}
    assert len(shown.warnings) == sum(not choice.qualified for choice in choices.values())
    rows = [line.split() for line in shown.out.splitlines() if line.split()[:1] == ["dp"]]
    assert [row[1] for row in rows] == list(choices)
    for row, choice in zip(rows, choices.values(), strict=True):
        assert row[2:4] == ([choice.method, f"{choice.strength:.3g}"] if choice.qualified else ["none", "–"])


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere: is not a run folder (it has no config.json). Make one with evenrank sweep."),
        (
            ["run", "--rule", "best"],
            "--rule must be one of no_loss, four_fifths, within, knee, alpha_star, all; got 'best'",
        ),
        (["run", "--k", "7"], "the sweep has no curve for demographic_parity at k=7"),
        (["run", "--notion", "eod"], "no curve for equalized_odds"),
        (["run", "--methods", "deltr"], "method 'deltr'"),
        (["run", "--grouping", "hair"], "grouping 'hair'"),
        (["run", "--tolerance", "2"], "tolerance must be a share from 0 to below 1; got 2.0"),
    ],
)
def test_select_with_bad_options(run, arguments, says):
    shown = run("select", *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert len(shown.lines) == 1
    assert says in shown.lines[0]


@pytest.mark.usefixtures("swept")
def test_select_from_an_unfinished_run(run):
    journal = Path("run") / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    shown = run("select", "run", "--notion", "dp", "--grouping", "group")
    assert shown.code == 0
    assert shown.warnings == [
        "evenrank: warning: run: the run is not finished, 7 of 8 blocks are done. Go on with the command that began it"
    ]
    assert json.loads(journal.read_text().splitlines()[0])


def test_a_list_of_strengths_is_printed_in_full(run, save, logged):
    asked = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.3, 0.7, 2.0]
    path = save(logged.drop("score"), "rows.csv")
    strengths = ("--strengths", ",".join(map(str, asked)))
    found = run("sweep", path, "--notions", "dp", "--k", "3", "--folds", "2", *strengths)
    table = found.out.split("Along the strengths")[1]
    printed = [float(words[0]) for words in map(str.split, table.splitlines()) if words and words[0][0].isdigit()]
    assert printed == [0, *asked]


@pytest.mark.parametrize("others", [{}, {"a": 1, "b": 2}])
def test_a_group_may_be_absent_from_the_test_rows(run, save, logged, others):
    """Labels written as numbers in one file and as text in the other are the same labels."""
    labels = {name: others.get(letter, letter) for name, letter in zip(sorted(set(logged["group"])), "ab", strict=True)}
    rows = logged.drop("score").with_columns(pl.col("group").replace_strict(labels, return_dtype=pl.String))
    third = rows.with_columns(group=pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("other")).otherwise("group"))
    options = ("--notions", "dp", "--k", "3", "--strengths", "0.1", "--methods", "amortized,offset,deltr")
    found = run("sweep", save(third, "rows.csv"), "--test", save(rows, "test.csv"), *options, "--json")
    assert any("no item of group 'other'; pairs with it are left out" in line for line in found.warnings)
    assert found.json()["run"] == "run"
    found = run("sweep", save(rows, "rows.csv"), "--test", save(third, "test.csv"), *options)
    assert found.code == 2
    assert "test must have no groups but those of data" in found.err
