"""`evenrank audit`: verdicts and pairs in the JSON, clusters, ratios as limits, groups set aside, the tidy table."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er


@pytest.fixture
def unfair(logged):
    """The older get a bonus that no sampling error hides."""
    return logged.with_columns(score=pl.col("score") + 0.2 * (pl.col("group") == "over 25"))


@pytest.fixture
def never():
    """30 lists of 60 with 6 women each, none ever in the top 3."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(30):
        rest = rng.permutation(["woman"] * 6 + ["man"] * 51)
        rows += [(query, "man" if place < 3 else str(rest[place - 3]), -place) for place in range(60)]
    return pl.DataFrame(rows, schema=["qid", "group", "score"], orient="row")


def test_json_carries_verdicts_pairs_impact_ratios_and_provenance(run, save, unfair):
    path = save(unfair, "rows.csv")
    report = run("audit", path, "--k", "3,5", "--json").json()
    assert report["verdict"] == {"pooled": "uneven", "within_query": "uneven"}
    assert len(report["pairs"]) == 4 * 2
    assert len(report["verdicts"]) == 2 * len(report["pairs"])
    for pair in report["pairs"]:
        assert pair["pooled"]["difference"] == pytest.approx(pair["rate_a"] - pair["rate_b"], abs=1e-9)
        assert pair["ranker_part"] + pair["mix_part"] == pytest.approx(pair["pooled"]["difference"], abs=1e-9)
        for question in ("pooled", "within_query"):
            assert {"low", "high", "ratio", "ratio_low", "ratio_high", "p", "adjusted", "method", "reason"} <= set(
                pair[question]
            )
    assert {(row["k"], row["category"]) for row in report["impact_ratios"]} == {
        (k, name) for k in (3, 5) for name in ("25 or younger", "over 25")
    }
    assert max(row["ratio"] for row in report["impact_ratios"]) == 1
    made = report["provenance"]
    assert made["files"] == [{"name": "rows.csv", "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}]
    assert made["evenrank"] == er.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", made["date"])
    assert made["seed"] == 0
    assert made["command"]


def test_csv_is_one_tidy_table(run, save, unfair):
    path = save(unfair.with_columns(pl.col("group").replace({"over 25": "=1+1"})), "rows.csv")
    assert run("audit", path, "--k", "3", "-o", "a.csv").code == 0
    with Path("a.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 4 * 2
    assert {row["question"] for row in table} == {"pooled", "within_query"}
    assert {row["b"] for row in table} == {"'=1+1"}
    dp = next(row for row in table if (row["measure"], row["question"]) == ("demographic_parity", "pooled"))
    assert float(dp["difference"]) == pytest.approx(float(dp["rate_a"]) - float(dp["rate_b"]))
    assert run("audit", path, "--k", "3", "--format", "csv").out == Path("a.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["four_fifths", "dp_ratio"])
def test_ratios_fail_below_where_absolute_gaps_pass(run, save, never, name):
    path = save(never, "rows.csv")
    assert run("audit", path, "--no-relevance", "--fail-over", "dp@3=0.1").code == 0
    found = run("audit", path, "--no-relevance", "--fail-over", f"{name}@3=0.8")
    assert found.code == 1
    assert found.lines == [
        line
        for line in found.lines
        if line.startswith(f"evenrank: {name}@3=0.8 fails: the lowest rate over the highest")
    ]
    assert "significantly below 0.8." in found.lines[0]
    assert run("audit", path, "--no-relevance", "--fail-over", f"{name}@3=0").code == 0


def test_cluster_columns(run, save, logged):
    users = logged.with_columns(user=pl.col("qid").str.slice(0, 1), day=pl.col("qid").str.slice(-1))
    path = save(users, "rows.csv")
    found = run("audit", path, "--cluster", "user", "--k", "5")
    assert 'queries of 5 "user"' in " ".join(found.out.split())
    both = run("audit", path, "--cluster", "user", "--cluster", "day", "--k", "5", "--json").json()
    assert len([note for note in both["notes"] if note.startswith("Clusters")]) == 2
    bad = run("audit", save(users.with_columns(user=pl.Series(range(len(users)))), "bad.csv"), "--cluster", "user")
    assert (bad.code, len(bad.lines)) == (2, 1)
    assert "user: a list must be in one cluster; query " in bad.err
    lost = run("audit", path, "--cluster", "nobody")
    assert (lost.code, len(lost.lines)) == (2, 1)
    assert "--cluster" in lost.err
    three = ["--cluster", "user", "--cluster", "day", "--cluster", "group"]
    assert run("audit", path, *three).lines == ["evenrank: at most 2 clusterings can be taken into account; got 3."]


def test_groups_are_set_aside_with_a_note(run, save, logged):
    few = logged.with_columns(group=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("few")).otherwise(pl.col("group")))
    path = save(few, "rows.csv")
    whole = run("audit", path, "--k", "5", "--json").json()
    assert len(whole["data"]["groups"]) == 3
    report = run("audit", path, "--k", "5", "--min-count", "10", "--json").json()
    assert list(report["data"]["groups"]) == ["25 or younger", "over 25"]
    assert [row["category"] for row in report["impact_ratios"] if row["set_aside"]] == ["few"]
    assert 'Set aside, as asked (fewer than 10 items): "few" (3 items).' in report["notes"][0]
    assert run("audit", path, "--k", "5", "--min-share", "0.02", "--json").json()["pairs"] == report["pairs"]
    none = run("audit", path, "--min-share", "0.9")
    assert (none.code, len(none.lines)) == (2, 1)
    assert "were set aside" in none.err


def test_a_quantity_as_the_group_is_questioned(run, save, logged):
    numbers = logged.with_columns(group=pl.int_range(pl.len()) % 120)
    path = save(numbers, "rows.csv")
    found = run("audit", path, "--k", "5")
    assert (found.code, len(found.lines)) == (2, 1)
    assert "the groups of 'group' are 120 different numbers" in found.err
    assert "--many-groups" in found.err


def test_queries_can_be_hidden(run, save, unfair):
    path = save(unfair, "rows.csv")
    shown = run("audit", path, "--k", "5", "--json").json()["queries"]
    hidden = run("audit", path, "--k", "5", "--no-examples", "--json").json()["queries"]
    assert {one["query"] for one in hidden} == {"hidden"}
    assert [one["without"] for one in hidden] == [one["without"] for one in shown]
    assert shown[0]["query"] not in run("audit", path, "--k", "5", "--no-examples").out


def test_recurring_items_can_be_left_out_of_account(run, save, logged):
    again = pl.concat([logged, logged.with_columns(qid=pl.col("qid") + "'")])
    path = save(again, "rows.csv")
    assert "Items recur" in run("audit", path, "--k", "5").out
    assert "Items recur" not in run("audit", path, "--k", "5", "--no-items").out
