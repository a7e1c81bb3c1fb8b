"""Audits and measures in DuckDB: those in memory, to 1e-9 and word for word, whatever the files look like."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings

import numpy as np
import polars as pl
import pytest

import evenrank as er
from engine_cases import CASES, assert_same, differences, in_memory, make, write

pytest.importorskip("duckdb", reason="run `make test-extras`")
pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::evenrank.DataWarning")]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_the_audit_is_the_one_in_memory(case, parts, tmp_path):
    rows, options = CASES[case]
    frame = make(len(case), **rows)
    folder = write(frame, tmp_path / "parts", parts)
    assert_same(in_memory(frame, tmp_path, **options), er.duckdb.audit(folder, **options))


def test_whole_groups_written_as_floats_are_named_as_in_memory(tmp_path):
    frame = make(5).with_columns(group=pl.col("group").replace_strict({"a": 1.0, "b": 2.0}, default=None))
    folder = write(frame, tmp_path / "parts", 2)
    found = er.duckdb.audit(folder)
    assert_same(in_memory(frame, tmp_path), found)
    assert list(found.to_dict()["data"]["groups"]) == ["1", "2"]


@pytest.mark.parametrize("case", ["ties", "no ties", "users", "no labels", "more lists than bins"])
def test_lists_one_by_one_give_what_kinds_of_lists_give(case, tmp_path, monkeypatch):
    rows, options = CASES[case]
    folder = write(make(3, **rows), tmp_path, 2)
    kinds = er.duckdb.audit(folder, **options)
    monkeypatch.setattr("evenrank.engines.summaries.MOST_GROUPS", 0)
    assert_same(kinds, er.duckdb.audit(folder, **options))


def test_kinds_are_fewer_than_lists(tmp_path):
    from evenrank.duckdb import DuckEngine
    from evenrank.engines.engine import Roles
    from evenrank.engines.summaries import EngineLists

    write(make(0, queries=4000, digits=9), tmp_path, 2)
    with DuckEngine(sorted(tmp_path.iterdir()), "rows") as engine:
        summaries = list(EngineLists.of(engine, Roles(), [1]).summaries())
    assert [summary.n_queries for summary in summaries] == [4000] * 3
    assert max(summary.held for summary in summaries) < 4000


@pytest.mark.parametrize("seed", range(4))
def test_near_ties_follow_the_rule_of_the_library(seed, tmp_path):
    frame = make(seed, digits=2, near=True, single=seed % 2 == 1)
    names = ["ndcg@3", "precision@3", "dp@1", "exposure_gap@5"]
    data = er.RankingData.from_frame(frame, features=["score"])
    scores = frame["score"].to_numpy()
    plain = er.measure(np.unique(scores, return_inverse=True)[1].astype(float), data, names)
    found = er.duckdb.measure(write(frame, tmp_path, 3), names)
    assert found == pytest.approx(er.measure(scores, data, names), abs=1e-9)
    assert found != pytest.approx(plain, abs=1e-9)  # equality alone would be another rule


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64, pl.Decimal(38, 0)])
@pytest.mark.parametrize(("power", "warned"), [(40, False), (52, True), (60, True)])
def test_whole_scores_that_floats_tie_are_warned_of(kind, power, warned, tmp_path):
    rows = pl.DataFrame({"qid": [1, 1, 2, 2], "relevance": [0, 1, 0, 1], "group": [*"abab"]})
    scores = pl.Series([2**power, 2**power + 1, 2**power, 2**power]).cast(kind)
    rows.with_columns(score=scores).write_parquet(tmp_path / "rows.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        er.duckdb.audit(tmp_path / "rows.parquet", ks=[1])
    told = [str(warning.message) for warning in caught]
    assert any("beyond 2^50 are rounded, which may tie 1 that" in text for text in told) == warned


def test_measures_are_those_in_memory(tmp_path):
    frame = make(1, groups="abc", grades=4)
    names = [
        f"{name}@{k}" for name in ("ndcg", "precision", "recall", "dp", "eop", "eod", "exposure_gap") for k in (1, 20)
    ]
    names.append("four_fifths@5")
    data = er.RankingData.from_frame(frame, features=["score"])
    expected = er.measure(frame["score"].to_numpy(), data, names)
    assert er.duckdb.measure(write(frame, tmp_path, 2), names) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["mrr", "ndcg", "awrf@5"])
def test_a_measure_that_engines_lack_is_refused(name, tmp_path):
    with pytest.raises(er.ConfigError, match=r"an engine measures .*sample"):
        er.duckdb.measure(write(make(), tmp_path, 1), [name])


def test_little_memory_is_enough(tmp_path):
    frame = make(2, queries=20_000)
    expected = er.duckdb.audit(write(frame, tmp_path / "a", 4))
    assert_same(expected, er.duckdb.audit(tmp_path / "a", memory="100MB", threads=1))


BAD = {
    "score": (pl.col("score").replace(None, None) * float("nan"), "score must be a finite number"),
    "relevance": (-pl.col("relevance") - 1, r"relevance must be a finite number ≥ 0; got -\d"),
    "qid": (pl.when(pl.col("qid") == 3).then(None).otherwise(pl.col("qid")), "query id must not be empty"),
    "user": (pl.when(pl.col("qid") == 3).then(pl.lit("")).otherwise(pl.col("user")), "cluster must not be empty"),
    "day": (pl.int_range(pl.len()), "a list must be in one cluster"),
    "item": (pl.lit("i1"), "item 'i1' occurs .* times in query"),
}


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("item", None, "item id must not be empty"),
        ("item", "", "item id must not be empty"),
        ("relevance", 1e101, r"relevance must be at most 1e\+100; got 1e\+101, in \d+ rows"),
    ],
)
def test_single_values_that_memory_refuses_are_refused_too(column, value, words, tmp_path):
    frame = make(0, items=60).with_columns(pl.col("relevance").cast(pl.Float64), pl.col("item").cast(pl.String))
    changed = pl.when(pl.col("qid") == 3).then(pl.lit(value)).otherwise(pl.col(column))
    with pytest.raises(er.DataError, match=words):
        er.duckdb.audit(write(frame.with_columns(changed.alias(column)), tmp_path, 2))


@pytest.mark.parametrize("column", BAD)
def test_rows_that_break_a_rule_are_refused_in_one_line(column, tmp_path):
    change, words = BAD[column]
    folder = write(make(0, items=60).with_columns(change.alias(column)), tmp_path, 2)
    with pytest.raises(er.DataError, match=words) as refused:
        er.duckdb.audit(folder, cluster=("user", "day"))
    assert "\n" not in str(refused.value)


def test_columns_and_files_that_are_not_there(tmp_path):
    folder = write(make(), tmp_path / "rows", 2)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(er.DataError, match="relevance column 'clicks' is not in the data; it has 'qid'"):
        er.duckdb.audit(folder, relevance="clicks")
    with pytest.raises(er.DataError, match="score column 'user' must hold numbers"):
        er.duckdb.audit(folder, score="user")
    with pytest.raises(er.DataError, match="at least two groups are needed"):
        er.duckdb.audit(write(make(groups="a"), tmp_path / "one", 1))
    with pytest.raises(er.DataError, match="no file is like that"):
        er.duckdb.audit(f"{folder}/x*.parquet")
    with pytest.raises(er.DataError, match=r"has no \.parquet files"):
        er.duckdb.audit(empty)
    make().drop("group").write_parquet(folder / "part-9.parquet")
    with pytest.raises(er.DataError, match=r"part-9\.parquet: parts of one table .* 'group' is missing"):
        er.duckdb.audit(folder)


def test_ids_of_other_types_and_groups_as_probabilities_are_refused(tmp_path):
    frame = make(0, queries=50)
    folder = write(frame, tmp_path, 2)
    frame[::2].with_columns(pl.col("qid").cast(pl.Float64)).write_parquet(folder / "part-0.parquet")
    with pytest.raises(er.DataError, match=r"part-1\.parquet: the query ids of all parts must have one type"):
        er.duckdb.audit(folder)
    with pytest.raises(er.ConfigError, match=r"one column of labels; got \['pa', 'pb'\]. Groups as probabilities need"):
        er.duckdb.audit(folder, group=["pa", "pb"])


@pytest.mark.parametrize("first", [True, False])
def test_columns_that_differ_in_case_alone_are_refused(first, tmp_path):
    frame = make(3, queries=60)
    other = frame.with_columns(pl.lit(1).alias("QID"), pl.lit(1).alias("F"), pl.lit(1).alias("f"))
    other = other.select("QID", *frame.columns) if first else other
    with pytest.raises(er.DataError, match=r"columns 'qid' and 'QID' differ in case alone"):
        er.duckdb.audit(write(other, tmp_path, 2))


def test_a_glob_and_hidden_files(tmp_path):
    frame = make()
    folder = write(frame, tmp_path / "rows", 3)
    (folder / "_SUCCESS.parquet").write_text("")
    (folder / ".part.parquet").write_text("")
    expected = er.duckdb.audit(folder)
    assert_same(expected, er.duckdb.audit(f"{folder}/part-*.parquet"))
    assert_same(expected, er.duckdb.audit(sorted(folder.glob("part*"))))


# ---------------------------------------------------------------------- faults


def damaged(folder):
    """Spoil the pages of a row group, whose footer stays whole."""
    path = folder / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[200 : len(content) // 2] = bytes(len(content) // 2 - 200)
    path.write_bytes(content)
    return path


def test_a_damaged_row_group_is_an_error_not_a_number(tmp_path):
    folder = write(make(0, queries=3000), tmp_path, 2)
    damaged(folder)
    with pytest.raises(er.DataError, match="DuckDB cannot go on") as refused:
        er.duckdb.audit(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are UTF-8 there")
def test_names_of_files_that_duckdb_cannot_open_are_refused_in_one_line(tmp_path):
    path = tmp_path / os.fsdecode(b"r\xff.parquet")
    make().write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").rename(path)
    for given in (path, tmp_path):
        with pytest.raises(
            er.DataError, match=r"r\\udcff.parquet: the name of a Parquet file .* must be UTF-8"
        ) as refused:
            er.duckdb.audit(given)
        assert str(refused.value).isprintable()


def test_a_file_that_vanishes_is_an_error(tmp_path, monkeypatch):
    from evenrank.engines.rows import TableRows

    folder = write(make(), tmp_path, 3)
    plain = TableRows.of.__func__

    def vanish(cls, engine, roles):
        found = plain(cls, engine, roles)
        (folder / "part-1.parquet").unlink()
        return found

    monkeypatch.setattr(TableRows, "of", classmethod(vanish))
    with pytest.raises(er.DataError, match=r"DuckDB cannot go on: .*part-1\.parquet"):
        er.duckdb.audit(folder)


def test_a_file_that_is_written_anew_meanwhile_is_an_error(tmp_path, monkeypatch):
    from evenrank.engines.rows import TableRows

    folder = write(make(), tmp_path, 3)
    plain = TableRows.of.__func__

    def changed(cls, engine, roles):
        found = plain(cls, engine, roles)
        make(1, queries=10).write_parquet(folder / "part-1.parquet")
        return found

    monkeypatch.setattr(TableRows, "of", classmethod(changed))
    with pytest.raises(er.DataError, match=r"rows were counted, and then .* were ranked"):
        er.duckdb.audit(folder)


def test_no_room_for_what_does_not_fit_in_memory(tmp_path, monkeypatch):
    from evenrank import duckdb as adapter

    folder = write(make(0, queries=40_000), tmp_path, 1)
    plain = adapter.DuckEngine.__init__

    def without_room(self, *paths, **options):
        plain(self, *paths, **options)
        self._run("SET max_temp_directory_size = '1MB'")

    monkeypatch.setattr(adapter.DuckEngine, "__init__", without_room)
    with pytest.raises(er.DataError, match="DuckDB cannot go on: Out of Memory"):
        er.duckdb.audit(folder, memory="20MB", threads=1)


class Signalled(Exception):
    """What a handler of a signal raises."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals are POSIX's")
@pytest.mark.parametrize("after", [0.02, 0.3])
@pytest.mark.parametrize(
    "ask",
    [lambda engine, sql: engine.keep("x", sql), lambda engine, sql: engine.fetch(sql)],
    ids=["keep", "fetch"],
)
def test_ctrl_c_in_a_query_is_ctrl_c(ask, after, tmp_path):
    """DuckDB looks for signals itself, and would make a RuntimeError of whatever their handlers raise."""
    from evenrank.duckdb import DuckEngine

    def stop(*_):
        raise Signalled

    def ask_then_stop(engine):
        signal.setitimer(signal.ITIMER_REAL, after)
        ask(engine, "SELECT sum(sqrt(a.range * b.range)) AS x FROM range(1000000) a, range(1000000) b")

    before = signal.signal(signal.SIGALRM, stop)
    folder = write(make(), tmp_path, 1)
    began = time.monotonic()
    try:
        with DuckEngine([folder / "part-0.parquet"], "rows") as engine:
            with pytest.raises(Signalled):
                ask_then_stop(engine)
            assert engine.fetch("SELECT 1 AS one")["one"].to_pylist() == [1]  # it can go on
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 60


# ---------------------------------------------------------------------- the command


@pytest.fixture
def run(capsys):
    from evenrank.cli import main

    def ran(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        return left.value.code, capsys.readouterr()

    return ran


@pytest.mark.parametrize("options", [[], ["--cluster", "user"], ["--no-relevance", "--k", "3"], ["--rank", "rank"]])
def test_the_command_prints_the_same_json(options, run, tmp_path):
    frame = make(5)
    folder = write(frame, tmp_path / "rows", 3)
    frame.write_parquet(tmp_path / "rows.parquet")
    found = []
    for where in ([folder], [tmp_path / "rows.parquet"], [folder, "--engine", "duckdb", "--memory", "500MB"]):
        code, printed = run("audit", *where, "--json", *options)
        assert code == 0, printed.err
        found.append(json.loads(printed.out))
    first, second, third = ({name: value for name, value in one.items() if name != "provenance"} for one in found)
    assert list(differences(second, first)) == []
    assert first == third
    assert [len(one["provenance"]["files"]) for one in found] == [3, 1, 3]


def test_files_with_more_rows_than_memory_may_hold_are_not_read_into_it(run, tmp_path, monkeypatch):
    make(5).write_parquet(tmp_path / "rows.parquet")
    expected = run("audit", tmp_path / "rows.parquet")
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "50K")
    assert run("audit", tmp_path / "rows.parquet") == expected
    code, printed = run("audit", tmp_path / "rows.parquet", "--engine", "memory")
    assert (code, printed.out) == (2, "")
    assert "are allowed" in printed.err


def test_the_command_refuses_in_one_line(run, tmp_path):
    folder = write(make(), tmp_path / "rows", 2)
    for options, words in (
        (["--compare", folder / "part-0.parquet"], "--compare is not for --engine duckdb"),
        (["--group", "group", "--group", "user"], "--group is not for --engine duckdb"),
        (["--master", "local[2]", "--engine", "duckdb"], "--master is for --engine spark"),
        (["--engine", "hive"], "--engine"),
        (["--relevance", "clicks"], "pass --no-relevance if the log has none"),
        (["--memory", "lots"], "lots"),
    ):
        code, printed = run("audit", folder, *options)
        assert (code, printed.out, printed.err.count("\n")) == (2, "", 1), printed.err
        assert words in printed.err


def test_nothing_is_written_where_the_disk_is_full(run, tmp_path):
    folder = write(make(), tmp_path / "rows", 2)
    damaged_folder = write(make(0, queries=3000), tmp_path / "damaged", 2)
    damaged(damaged_folder)
    out = tmp_path / "audit.json"
    assert run("audit", damaged_folder, "-o", out)[0] == 2
    assert not out.exists()
    code, printed = run("audit", folder, "-o", "/dev/full")
    assert code == 2, printed
    assert printed.err.count("\n") == 1
