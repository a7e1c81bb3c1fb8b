"""`evenrank monitor`: windows, a state that is carried on, alerts as exit code, and everyday bad input."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from weekly import rows

QUIET = rows(8, 40, seed=31)
CHANGED = rows(8, 40, lean=[0.0] * 6 + [-3.0] * 2, seed=31)


@pytest.fixture
def changed(save):
    return save(CHANGED, "changed.csv")


@pytest.fixture
def quiet(save):
    return save(QUIET, "quiet.csv")


def weeks(frame: pl.DataFrame, *wanted: int) -> pl.DataFrame:
    return frame.filter((pl.col("qid") // 40).is_in(list(wanted)))


def test_a_change_is_exit_code_1_and_no_change_0(run, changed, quiet):
    alert = run("monitor", changed, "--time", "when", "--k", 3)
    assert alert.code == 1
    assert alert.err == ""
    assert "Changed at the last look, 2026-02-23:" in alert.out
    calm = run("monitor", quiet, "--time", "when", "--k", 3)
    assert (calm.code, calm.err) == (0, "")
    assert "No change is shown at the last look, 2026-02-23." in calm.out


def test_json(run, changed, quiet):
    done = run("monitor", quiet, "--time", "when", "--k", 3, "--json")
    report = done.json()
    assert report["verdict"] == "no change shown"
    assert report["alerts"] == []
    assert report["reference"] == ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]
    assert [window["lists"] for window in report["windows"]] == [40] * 8
    assert {chart["measure"] for chart in report["charts"]} == {
        "demographic_parity",
        "equal_opportunity",
        "equalized_odds",
        "exposure_gap",
        "four_fifths",
        "ndcg",
    }
    alert = run("monitor", changed, "--time", "when", "--k", 3, "--json")
    assert alert.code == 1
    assert json.loads(alert.out)["verdict"] == "changed"
    assert len(alert.lines) == 1
    assert alert.lines[0].startswith("evenrank: changed at 2026-02-23: ")


def test_days_as_parquet_without_labels(run, save):
    frame = QUIET.with_columns(pl.col("when").str.to_date()).drop("relevance")
    done = run("monitor", save(frame, "rows.parquet"), "--time", "when", "--window", "day", "--no-relevance", "--json")
    report = done.json()
    assert report["windows"][0]["window"] == "2026-01-05"
    assert {chart["measure"] for chart in report["charts"]} == {"demographic_parity", "exposure_gap", "four_fifths"}


# ---------------------------------------------------------------------- the state


def test_the_state_carried_on_tells_the_same_as_all_rows(run, save, changed):
    for part in ((0, 1, 2), (3, 4, 5), (6,)):
        last = run("monitor", save(weeks(CHANGED, *part), "part.csv"), "--time", "when", "--k", 3, "--state", "s.npz")
        assert last.code == (1 if part == (6,) else 0), last.err
    done = run("monitor", save(weeks(CHANGED, 7), "part.csv"), "--time", "when", "--state", "s.npz", "--json")
    whole = run("monitor", changed, "--time", "when", "--k", 3, "--json")
    assert (done.code, whole.code) == (1, 1)
    carried, at_once = json.loads(done.out), json.loads(whole.out)
    assert [alert["window"] for alert in carried["alerts"]] == [alert["window"] for alert in at_once["alerts"]]
    for mine, theirs in zip(carried["charts"], at_once["charts"], strict=True):
        assert [point["value"] for point in mine["points"]] == pytest.approx([p["value"] for p in theirs["points"]])
    alone = run("monitor", "--state", "s.npz", "--json")
    assert alone.code == 1
    assert json.loads(alone.out)["charts"] == carried["charts"]


def test_only_windows_of_this_run_alarm(run, save):
    """An alert of a window that was told before does not alarm again when a calm window comes."""
    frame = rows(40, 40, lean=[0.0] * 5 + [-3.0] + [0.0] * 34, seed=33)
    options = ("--time", "when", "--k", 3, "--measures", "dp", "--state", "s.npz")
    assert run("monitor", save(weeks(frame, *range(39)), "a.csv"), *options).code == 1
    assert run("monitor", save(weeks(frame, 39), "b.csv"), *options).code == 0


def test_lists_again(run, save, quiet):
    options = ("--time", "when", "--k", 3, "--state", "s.npz")
    assert run("monitor", quiet, *options).code == 0
    before = Path("s.npz").read_bytes()
    refused = run("monitor", save(weeks(QUIET, 7), "b.csv"), *options)
    assert refused.code == 2
    assert len(refused.lines) == 1
    assert "window 2026-02-23: 40 of 40 lists are already counted, such as query " in refused.err
    assert Path("s.npz").read_bytes() == before
    assert run("monitor", "b.csv", *options, "--again", "skip").code == 0
    assert Path("s.npz").read_bytes() == before
    replaced = run("monitor", "b.csv", *options, "--again", "replace", "--json").json()
    assert [window["lists"] for window in replaced["windows"]] == [40] * 8
    assert run("monitor", "b.csv", *options, "--again", "maybe").code == 2


def test_late_and_out_of_order_rows(run, save):
    options = ("--time", "when", "--k", 3, "--state", "s.npz")
    run("monitor", save(weeks(QUIET, 7, 5, 6), "a.csv"), *options)
    late = run("monitor", save(weeks(QUIET, 2, 0, 1, 3, 4), "b.csv"), *options)
    assert late.code == 0
    assert "Lists that came late and were added to their windows: 2026-01-05 (40 lists)" in late.out


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--k", 5, "--k: the state s.npz has 3; got 5."),
        ("--window", "day", "--window: the state s.npz has week; got day."),
        ("--measures", "dp", "--measures: the state s.npz has demographic_parity, equal_opportunity"),
        ("--timezone", "Europe/Berlin", "--timezone: the state s.npz has UTC; got Europe/Berlin."),
    ],
)
def test_a_state_with_other_settings_is_refused(run, quiet, option, value, told):
    assert run("monitor", quiet, "--time", "when", "--k", 3, "--state", "s.npz").code == 0
    refused = run("monitor", quiet, "--time", "when", "--state", "s.npz", option, value)
    assert refused.code == 2
    assert told in refused.err


def test_a_damaged_state_is_one_line_and_stays(run, quiet):
    Path("s.npz").write_bytes(b"PK\x03\x04 nothing")
    refused = run("monitor", quiet, "--time", "when", "--state", "s.npz")
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert "s.npz: is no state of a monitor, or is damaged." in refused.err
    assert Path("s.npz").read_bytes() == b"PK\x03\x04 nothing"


def test_a_reference_state(run, save, quiet):
    run("monitor", save(weeks(CHANGED, 6, 7), "a.csv"), "--time", "when", "--k", 3, "--state", "ref.npz")
    done = run("monitor", quiet, "--time", "when", "--reference-state", "ref.npz")
    assert done.code == 1
    assert run("monitor", quiet, "--time", "when", "--reference", "2026-01-05..2026-01-19", "--k", 3).code == 0


# ---------------------------------------------------------------------- one file per period


def test_a_folder_is_its_files_in_the_order_of_names(run, save, tmp_path):
    (tmp_path / "logs").mkdir()
    for week in range(6):
        save(weeks(CHANGED, week + 1).drop("when"), f"logs/w{week + 8}.csv")
    (tmp_path / "logs" / "README.md").write_text("not rows")
    done = run("monitor", "logs", "--k", 3, "--reference", 2, "--json")
    report = json.loads(done.out)
    assert [window["window"] for window in report["windows"]] == ["w8", "w9", "w10", "w11", "w12", "w13"]
    assert done.code == 1
    assert {alert["window"] for alert in report["alerts"]} == {"w13"}


def test_periods_are_named_and_the_same_one_is_refused(run, save):
    one, two = save(weeks(QUIET, 0).drop("when"), "one.csv"), save(weeks(QUIET, 1).drop("when"), "two.csv")
    done = run("monitor", one, two, "--period", "March", "--period", "April", "--state", "s.npz", "--json").json()
    assert [window["window"] for window in done["windows"]] == ["April", "March"]  # by name
    again = run("monitor", one, "--period", "March", "--state", "s.npz")
    assert again.code == 2
    assert "window March: 40 of 40 lists are already counted" in again.err
    assert "--period must be given once per file, 2 times; got 1." in run("monitor", one, two, "--period", "x").err
    timed = run("monitor", save(QUIET, "t.csv"), "--time", "when", "--state", "s.npz")
    assert timed.code == 2


# ---------------------------------------------------------------------- everyday input


def test_bad_times_name_the_row(run, save):
    frame = QUIET.with_columns(when=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("n/a")).otherwise("when"))
    refused = run("monitor", save(frame, "rows.csv"), "--time", "when", "--state", "s.npz")
    assert refused.code == 2
    assert len(refused.lines) == 1
    assert (
        "rows.csv: row 5: time must be a date or a time, as 2026-01-31 or 2026-01-31T12:00; got 'n/a'." in refused.err
    )
    assert not Path("s.npz").exists()


def test_queries_and_items_that_come_again_every_week(run, save):
    frame = QUIET.with_columns(qid=pl.col("qid") % 40, item=pl.int_range(pl.len()) % 8)
    done = run("monitor", save(frame, "rows.csv"), "--time", "when", "--k", 3, "--json").json()
    assert [window["lists"] for window in done["windows"]] == [40] * 8
    twice = frame.with_columns(item=pl.lit(1))
    assert "item 1 occurs twice in query 0" in run("monitor", save(twice, "rows.csv"), "--time", "when").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["quiet.csv", "--time", "nope"], "quiet.csv: time column 'nope' is not in the data"),
        (["quiet.csv", "--time", "when", "--group", "nope"], "group column 'nope' is not in the data"),
        (["quiet.csv", "--time", "when", "--item", "nope"], "item column 'nope' is not in the data"),
        (["quiet.csv", "--time", "when", "--window", "year"], "window must be day, week, month"),
        (["quiet.csv", "--time", "when", "--reference", "zero"], "--reference must be a number of windows"),
        (["quiet.csv", "--time", "when", "--reference", "0"], "--reference must be a number of windows"),
        (["quiet.csv", "--time", "when", "--reference", "a..b"], "must begin and end with windows or times; got 'a'"),
        (["quiet.csv", "--time", "when", "--measures", "gini"], "gini cannot be watched, since it has no interval"),
        (["quiet.csv", "--time", "when", "--alert-on", "some"], "--alert-on must be one of within, all"),
        (["quiet.csv", "--time", "when", "--measures", "ndcg", "--alert-on", "within"], "needs a gap within queries"),
        (["quiet.csv", "--time", "when", "--question", "all"], "--question must be one of within, pooled, both"),
        (["quiet.csv", "--time", "when", "-o", "x.pdf"], "--out must end in .txt, .json, .html"),
        (["quiet.csv", "--time", "when", "-o", "x.json", "--state", "x.json"], "--state and --out must be two files"),
        (["quiet.csv", "--time", "when", "--state", "quiet.csv"], "evenrank: --state must not be the input"),
        (["quiet.csv", "--time", "when", "--measures", ","], "--measures must name what is watched, as dp,awrf@10"),
        (["quiet.csv", "--cluster", "nope"], "cluster column 'nope' is not in the data"),
        (["quiet.csv", "--time", "when", "--measures", "rnd(protected=z)"], "protected must be one of the groups a, b"),
        (["quiet.csv", "--time", "when", "--period", "x"], "--period names files without times"),
        ([], "monitor needs rows, or a --state that exists"),
        (["nowhere.csv", "--time", "when"], "nowhere.csv"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, quiet, arguments, told):
    refused = run("monitor", *arguments)
    assert refused.code == 2
    assert len(refused.lines) == 1
    assert told in refused.err


def test_one_group_is_refused_and_a_week_without_one_is_not(run, save):
    one = save(QUIET.with_columns(group=pl.lit("a")), "one.csv")
    assert (
        "at least two groups are needed, to compare them; found only 'a'" in run("monitor", one, "--time", "when").err
    )
    part = QUIET.filter((pl.col("group") == "a") | (pl.col("qid") < 240))
    done = run("monitor", save(part, "rows.csv"), "--time", "when", "--k", 3)
    assert done.code in (0, 1)
    assert '"a" or "b" is absent in: 2026-02-16, 2026-02-23.' in done.out


def test_the_page(run, changed):
    done = run("monitor", changed, "--time", "when", "--k", 3, "-o", "page.html")
    assert done.code == 1
    page = Path("page.html").read_text()
    assert "<h1>Monitor</h1>" in page
    assert page.count("<svg") == 6
    assert "Changed at the last look, 2026-02-23" in page


def test_measures_of_the_field_in_a_state_that_is_carried_on(run, save):
    """Options hold commas; a later part may lack a group; the state knows what it watches."""
    names = "awrf@3(target=a:0.5/b:0.5,discount=log2),ndkl@3,dtr@3,pairwise_gap,mrr"
    late = QUIET.filter(pl.col("when") >= "2026-02-09")
    save(QUIET.filter(pl.col("when") < "2026-02-09"), "early.csv")
    save(late, "late.csv")
    alone = late.filter(pl.col("group") == "a").with_columns(pl.col("qid") + 10**6, when=pl.lit("2026-05-04"))
    save(alone, "alone.csv")
    save(QUIET, "all.csv")
    first = run("monitor", "early.csv", "--time", "when", "--measures", names, "--k", 3, "--state", "s.npz")
    assert first.code == 0, first.err
    parts = run("monitor", "late.csv", "--time", "when", "--state", "s.npz", "--json").json()
    whole = run("monitor", "all.csv", "--time", "when", "--measures", names, "--k", 3, "--json").json()
    for mine, theirs in zip(parts["charts"], whole["charts"], strict=True):
        assert (mine["measure"], mine["question"], mine["alerting"]) == (theirs["measure"], theirs["question"], True)
        assert [p["value"] for p in mine["points"]] == pytest.approx([p["value"] for p in theirs["points"]])
        assert [p["p"] for p in mine["points"]] == pytest.approx([p["p"] for p in theirs["points"]])
    assert {chart["measure"].partition("(")[0] for chart in whole["charts"]} == {
        "awrf",
        "ndkl",
        "dtr",
        "pairwise_gap",
        "mrr",
    }
    changed = run("monitor", "alone.csv", "--time", "when", "--state", "s.npz")
    assert changed.code == 1  # without b, shares of exposure are far from the target
    assert "AWRF@3(discount=log2,target=a:0.5/b:0.5): " in changed.out
    assert run("monitor", "alone.csv", "--time", "when", "--measures", "awrf@3").code == 2
    refused = run("monitor", "--state", "s.npz", "--measures", "mrr")
    assert refused.code == 2
    assert "--measures: the state s.npz has awrf@3(discount=log2,target=a:0.5/b:0.5), ndkl@3" in refused.err


def test_charts_that_give_no_alert_do_not_set_the_exit_code(run, save):
    """Quality falls and no gap changes: shown as moved; an alert with --alert-on all."""
    worse = pl.when(pl.col("when") >= "2026-02-09").then(pl.col("score") - 4 * pl.col("relevance")).otherwise("score")
    save(QUIET.with_columns(score=worse), "worse.csv")
    told = run("monitor", "worse.csv", "--time", "when", "--k", 3)
    assert told.code == 0, told.out
    assert "Moved, and no alert: NDCG@3: " in told.out
    assert "moved" in told.out.splitlines()[-1]
    assert run("monitor", "worse.csv", "--time", "when", "--k", 3, "--alert-on", "all").code == 1
