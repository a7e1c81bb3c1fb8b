"""Names from files, printed: no terminal obeys them, no spreadsheet computes them, and data for programs keeps them."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from html import unescape

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning, one_line
from evenrank.wording import name_cell

ESCAPE = "\x1b[31m\x9b2J\x07\u202e"


@pytest.fixture
def hostile(logged, tmp_path):
    """Groups, queries and a column whose names a terminal would obey, one group ahead by far."""
    names = {"25 or younger": f"{ESCAPE}young", "over 25": f"=old{ESCAPE}"}
    frame = logged.with_columns(
        pl.col("group").replace(names),
        qid=pl.format("@{}{}", pl.lit(ESCAPE), pl.col("qid")),
        score=pl.col("score") + 5.0 * (pl.col("group") == "over 25"),
    )
    frame = frame.rename({"group": f"g{ESCAPE}"})
    frame.write_csv(tmp_path / "rows.csv")
    frame.rename({f"g{ESCAPE}": "group"}).write_csv(tmp_path / f"r{ESCAPE}.csv")
    return frame


def obeyed(text: str) -> set[str]:
    return {mark for mark in text if not mark.isprintable() and mark != "\n"}


@pytest.mark.parametrize("format", ["text", "md", "html", "json"])
def test_audits_hold_nothing_that_a_terminal_obeys(run, hostile, format):
    found = run("audit", "rows.csv", "--group", f"g{ESCAPE}", "--k", "3", "--format", format)
    assert found.code == 0, found.err
    assert obeyed(found.out + found.err) == set()
    again = run("audit", f"r{ESCAPE}.csv", "--k", "3", "--format", format, "--fail-over", "dp@3=0.1")
    assert again.code == 1
    assert obeyed(again.out + again.err) == set()
    if format == "json":
        assert set(json.loads(found.out)["data"]["groups"]) == {f"{ESCAPE}young", f"=old{ESCAPE}"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "rows.csv", "--group", f"g{ESCAPE}", "--k", "3"],
        ["train", "rows.csv", "--group", f"h{ESCAPE}"],
        ["audit", "rows.csv", "--group", "qid"],
        ["audit", f"no{ESCAPE}.csv"],
        ["audit", f"no{ESCAPE}"],
        [
            "sweep",
            "rows.csv",
            "--group",
            f"g{ESCAPE}",
            "--strengths",
            "0,1",
            "--folds",
            "2",
            "--k",
            "3",
            "-o",
            f"s{ESCAPE}",
        ],
        ["rank", "rows.csv", "--score", f"s{ESCAPE}"],
        ["rank", "rows.csv", "--score", "score", "-o", f"out{ESCAPE}.csv"],
        [f"comm{ESCAPE}"],
        ["audit", "rows.csv", f"--opt{ESCAPE}"],
    ],
)
def test_tables_errors_and_warnings_hold_nothing_that_a_terminal_obeys(run, hostile, arguments):
    found = run(*arguments)
    assert found.out + found.err
    assert obeyed(found.out + found.err) == set()


def test_cells_of_audit_tables_are_no_formulas(run, hostile):
    for format, cells in (("md", r"\| '=old"), ("html", ">'=old")):
        out = run("audit", "rows.csv", "--group", f"g{ESCAPE}", "--k", "3", "--format", format).out
        assert cells.replace("\\", "") in unescape(out).replace("\\", "")
        assert "| =old" not in out
        assert ">=old" not in out
        assert "| @" not in out
        assert ">@" not in out


@pytest.mark.parametrize("text", ["=1", "+a", "-a", "@a", "\t=1", "\r=1", "\n+a", "＝1", "-1+1", "+1e5"])
def test_a_name_that_begins_like_a_formula_is_quoted(text):
    assert name_cell(text, 20).startswith("'")


@pytest.mark.parametrize("text", ["-1", "+2.5", "a=b", "1-2", "é", "–5"])
def test_other_names_and_numbers_stay(text):
    assert name_cell(text, 20) == text


def test_ids_of_ranked_rows_stay_as_they_are(run, hostile):
    out = run("rank", "rows.csv", "--score", "score", "--group", f"g{ESCAPE}").out
    ranked = pl.read_csv(out.encode())
    assert set(ranked["qid"]) == set(hostile["qid"])
    assert all(query.startswith("@") for query in ranked["qid"])
    run("rank", "rows.csv", "--score", "score", "-o", "out.csv")
    assert set(pl.read_csv("out.csv")["qid"]) == set(hostile["qid"])


def test_on_a_terminal_ids_are_not_obeyed(run, hostile, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert obeyed(run("rank", "rows.csv", "--score", "score").out) == set()


def test_errors_and_warnings_of_the_library_are_one_plain_line():
    assert one_line("a\nb\tc\x1b\ud800é\u200d") == "a b c\\x1b\\ud800é\u200d"
    error = DataError("file\x1b[1m\n: no")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "file\\x1b[1m : no"
    with pytest.warns(DataWarning, match=r"^column \\x1b$"):
        warnings.warn("column \x1b", DataWarning, stacklevel=1)
    data = er.RankingData.from_arrays(np.ones((2, 1)), [0, 1], ["\x1b[1ma", "b"], [1, 1])
    with pytest.raises(ConfigError) as caught:
        er.DELTR(protected="\x1b[2J").fit(data)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("command", ["bench", "sweep"])
def test_files_of_a_folder_hold_nothing_that_a_terminal_obeys(run, hostile, tmp_path, command):
    (tmp_path / f"r{ESCAPE}.csv").rename(tmp_path / f"=<b>{ESCAPE}.csv")
    options = ["--k", "3", "--methods", "amortized", "--folds", "3", "-j", "1", "-o", "made"]
    own = ["--seeds", "1", "--notions", "dp"] if command == "bench" else ["--strengths", "0,1"]
    found = run(command, f"=<b>{ESCAPE}.csv", *options, *own)
    assert found.code == 0, found.err
    if command == "sweep":
        assert run("report", "made").code == 0
        for rule in ("no_loss", "all"):
            chosen = run("select", "made", "--rule", rule)
            assert obeyed(chosen.out + chosen.err) == set()
    texts = {
        file.name: file.read_bytes().decode() for file in (tmp_path / "made").iterdir() if file.suffix != ".parquet"
    }
    written_out = {
        name: obeyed(text) - {"\r", "\t"} for name, text in texts.items() if not name.endswith((".json", ".jsonl"))
    }
    assert not any(written_out.values()), written_out
    if command == "bench":
        assert set(written_out) == {"bench.csv", "bench.md", "bench.html"}
        assert texts["bench.csv"].splitlines()[1].startswith("'=<b>")
        assert r"**=\<b\>" in texts["bench.md"]


def test_a_bench_of_a_file_whose_name_is_not_utf8(run, logged, tmp_path):
    logged.write_csv(tmp_path / "rows.csv")
    name = os.fsdecode(b"r\xff.csv")
    (tmp_path / "rows.csv").rename(tmp_path / name)
    options = ["--k", "3", "--methods", "amortized", "--notions", "dp", "--folds", "3", "--seeds", "1", "-j", "1"]
    found = run("bench", name, *options, "-o", "made")
    assert found.code == 0, found.err
    assert (tmp_path / "made" / "bench.csv").read_text().splitlines()[1].startswith(r"r\udcff,amortized,")


def test_a_group_has_one_share(run, logged, tmp_path):
    logged.write_csv(tmp_path / "rows.csv")
    found = run("rank", "rows.csv", "--score", "score", "--method", "det_greedy", "--target", "over 25=0.5,over 25=0.3")
    assert (found.code, found.out) == (2, "")
    assert found.err == "evenrank: --target must give each group one share; got 'over 25' twice.\n"


def test_a_column_of_groups_in_the_trials_is_obeyed_by_none(run, hostile):
    options = ["--strengths", "0,1", "--folds", "2", "--k", "3", "-o", "made"]
    found = run("sweep", "rows.csv", "--group", f"g{ESCAPE}", *options)
    assert found.code == 0, found.err
    with open("made/trials.csv", encoding="utf-8", newline="") as file:
        assert obeyed(file.read()) == set()
