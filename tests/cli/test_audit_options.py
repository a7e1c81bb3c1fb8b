"""`evenrank audit`: several attributes, ranks, comparisons, limits for pipelines, and the formats of its output."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er


@pytest.fixture
def two(logged):
    """The logged rows under two attributes, one of them unknown here and there."""
    rng = np.random.default_rng(3)
    sex = pl.Series(rng.choice(["female", "male", ""], len(logged), p=[0.45, 0.5, 0.05]))
    return logged.rename({"group": "age"}).with_columns(sex=sex)


@pytest.fixture
def unfair(logged):
    """The older get a bonus that no sampling error hides."""
    return logged.with_columns(score=pl.col("score") + 0.2 * (pl.col("group") == "over 25"))


def test_ranks_instead_of_scores(run, save, logged):
    ranked = logged.with_columns(place=pl.col("score").rank("ordinal", descending=True).over("qid"))
    by_rank = run("audit", save(ranked.drop("score"), "rows.csv"), "--rank", "place", "--json").json()
    scored = ranked.with_columns(score=-pl.col("place").cast(pl.Float64))
    by_score = run("audit", save(scored, "scored.csv"), "--json").json()
    assert by_rank | {"provenance": None} == by_score | {"provenance": None}
    assert by_rank["measures"]["ndcg@3"] > 0.5


def test_several_attributes_and_their_intersection(run, save, two):
    path = save(two, "rows.csv")
    report = run("audit", path, "--group", "sex", "--group", "age", "--k", "5", "--json").json()["attributes"]
    assert list(report) == ["sex", "age", "sex & age"]
    for name in ("sex", "age"):
        alone = run("audit", path, "--group", name, "--k", "5", "--json").json()
        del alone["provenance"]
        assert report[name] == alone
    data = er.read(path, group="sex", score="score")
    labels = [f"{sex} & {age}" if sex else None for sex, age in two.select("sex", "age").iter_rows()]
    both = er.audit(two["score"].to_numpy(), data.with_group(labels), [5])
    assert report["sex & age"]["measures"] == pytest.approx(both.to_dict()["measures"], abs=1e-12)
    assert list(report["sex & age"]["data"]["groups"]) == sorted({label for label in labels if label})
    out = run("audit", path, "--group", "sex", "--group", "age", "--k", "5").out
    assert [line for line in out.splitlines() if line.startswith("Audit of")] == [
        "Audit of rows.csv by sex",
        "Audit of rows.csv by age",
        "Audit of rows.csv by sex & age",
    ]
    assert "(largest pair)" in out


def test_confidence(run, save, logged, data, scores):
    report = run("audit", save(logged, "rows.csv"), "--confidence", "0.5", "--k", "5", "--json").json()
    (expected,) = (one.interval for one in er.audit(scores, data, [5], confidence=0.5).find("equal_opportunity"))
    (found,) = [one for one in report["findings"] if one["measure"] == "equal_opportunity"]
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert "50% interval" in run("audit", "rows.csv", "--confidence", "0.5").out


@pytest.mark.parametrize(("below", "code"), [(1e-6, 1), (-1e-6, 0)])
def test_fail_over_looks_at_the_low_end_of_the_interval(run, save, unfair, data, below, code):
    (found,) = (one.interval for one in er.audit(unfair["score"].to_numpy(), data, [4]).find("equal_opportunity"))
    limit = found.low - below
    assert 0 < limit < found.estimate
    path = save(unfair, "rows.csv")
    one = run("audit", path, "--fail-over", f"eop@4={limit}")
    assert one.code == code
    assert len(one.lines) == code
    assert "k = 4" in one.out
    if code:
        assert f"eop@4={limit} fails: equal_opportunity at 4 is {found.estimate:.3f}, 95% interval" in one.err
    assert run("audit", path, "--fail-over", "dp@3=1", "--fail-over", f"eop@4={limit}").code == code


def test_further_measures_and_limits_of_any_measure(run, save, unfair, data):
    path, scores = save(unfair, "rows.csv"), unfair["score"].to_numpy()
    names = ["awrf@4(target=equal,discount=log2)", "ndkl@4", "gini@4"]
    found = run("audit", path, "--k", "4", "--measures", ",".join(names), "--json").json()
    expected = er.audit(scores, data, [4], measures=names).measures
    assert [part["measure"] for part in found["further_measures"]] == names
    for part, interval in zip(found["further_measures"], expected, strict=True):
        assert part["estimate"] == pytest.approx(interval.estimate, abs=1e-12)
    text = " ".join(run("audit", path, "--k", "4", "--measures", ",".join(names)).out.split())
    assert "gini@4 has no interval: it is of items" in text
    assert "ndkl@4: low is better, 0 and above" in text
    awrf, ndkl = (er.audit(scores, data, [4], measures=["awrf@4", "ndkl@4"])).measures
    for limit, code in (
        (f"awrf@4={awrf.high + 1e-6}", 1),
        (f"awrf@4={awrf.high - 1e-6}", 0),
        (f"ndkl@4={ndkl.low - 1e-6}", 1),
        (f"ndkl@4={ndkl.low + 1e-6}", 0),
    ):
        one = run("audit", path, "--k", "4", "--fail-over", limit)
        assert (one.code, len(one.lines)) == (code, code), limit
    assert "significantly below" in run("audit", path, "--fail-over", f"awrf@4={awrf.high + 1e-6}").err


def test_limits_and_measures_that_cannot_be_judged(run, save, unfair):
    path = save(unfair, "rows.csv")
    for arguments, said in (
        (["--fail-over", "gini@4=0.1"], "gini has no interval"),
        (["--fail-over", "awrf@4"], "must be a measure and a limit"),
        (["--fail-over", "awrf@4=nan"], "must be a measure and a limit"),
        (["--fail-over", "eop@4=3"], "a limit of equal_opportunity is from 0 to 1"),
        (["--measures", "awrf@4(step=2)"], "has no option 'step'"),
        (["--measures", "awrf@4(target=equal"], "measure must be one of"),
        (["--no-relevance", "--measures", "ee_l@4"], "ee_l needs relevance labels"),
        (["--no-relevance", "--fail-over", "eop@4=0.1"], "equal_opportunity needs relevance labels"),
        (["--standard", "ll144", "--sex", "group", "--measures", "awrf"], "--measures is not for --standard"),
    ):
        refused = run("audit", path, *arguments)
        assert refused.code == 2, arguments
        assert said in refused.err


def test_fail_over_names_the_attribute_and_needs_a_number(run, save, two, unfair):
    path = save(two.with_columns(unfair["score"]), "rows.csv")
    found = run("audit", path, "--group", "sex", "--group", "age", "--fail-over", "eop@5=0.001")
    assert found.code == 1
    assert [line for line in found.lines if "(by age) fails" in line]
    assert not [line for line in found.lines if "(by sex) fails" in line]
    nothing = save(unfair.with_columns(relevance=pl.lit(0)), "none.csv")
    undefined = run("audit", nothing, "--fail-over", "eop@5=0.1")
    assert undefined.code == 2
    assert undefined.lines[-1].startswith("evenrank: --fail-over eop@5=0.1: equal_opportunity at 5 cannot be judged")


def test_compare_is_that_of_the_library_whatever_the_order(run, save, logged, data, scores):
    other = np.round(scores + np.random.default_rng(0).normal(0, 0.1, len(scores)), 2)
    path = save(logged, "rows.csv")
    shuffled = logged.with_columns(score=pl.Series(other)).sample(fraction=1.0, shuffle=True, seed=1)
    rival = save(shuffled.select("qid", "item", "score"), "other.parquet")
    report = run("audit", path, "--compare", rival, "--k", "3,5", "--json").json()["comparison"]
    expected = er.compare(scores, other, data, [one["measure"] for one in report])
    assert len(report) == 16
    for one, wanted in zip(report, expected, strict=True):
        numbers = {name: value for name, value in vars(wanted).items() if name != "pairs"}
        assert {name: one[name] for name in numbers} == pytest.approx(numbers)
        assert [pair["p_value"] for pair in one["pairs"]] == pytest.approx([pair.p_value for pair in wanted.pairs])
    assert "Compared with the other ranking" in run("audit", path, "--compare", rival).out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[1:], "it lacks 1, such as item '"),
        (
            lambda rows: pl.concat([rows, rows[:1].with_columns(item=pl.lit(10**6, pl.Int64))]),
            "it has besides 1, such as item",
        ),
        (lambda rows: rows.drop("item"), "--compare matches rows by query and item; an item column is missing."),
    ],
)
def test_compare_needs_the_same_rows(run, save, logged, change, says):
    path = save(logged, "rows.csv")
    other = save(change(logged.select("qid", "item", "score").cast({"item": pl.Int64})), "other.csv")
    found = run("audit", path, "--compare", other)
    assert (found.code, len(found.lines)) == (2, 1)
    assert says in found.err
    assert found.out == ""


def test_output_formats_and_files(run, save, logged):
    path = save(logged, "rows.csv")
    plain = run("audit", path).out
    assert run("audit", path, "--format", "text").out == plain
    one, two = (run("audit", path, *form).json() for form in (("--format", "json"), ("--json",)))
    assert one | {"provenance": None} == two | {"provenance": None}
    table = run("audit", path, "--format", "md").out
    assert table.startswith("# Audit of rows.csv\n")
    assert "| demographic parity gap | " in table
    page = run("audit", path, "--format", "html").out
    assert page.startswith("<!doctype html>")
    assert not re.search("https?://", page)
    for name, expected in {"a.txt": plain, "a.md": table, "a.html": page}.items():
        written = run("audit", path, "-o", name)
        assert written.out == f"The audit: {name}\n"
        content = Path(name).read_text(encoding="utf-8")
        assert content.startswith(expected if name != "a.html" else expected[: expected.index("How the numbers")])
        assert "How the numbers were made" in content
    run("audit", path, "-o", "a.txt", "--json")
    assert json.loads(Path("a.txt").read_text())["k"] == [1, 3, 5, 10]


def test_hostile_labels_and_columns_in_the_page(run, save, logged):
    names = {"25 or younger": "<script>x</script>", "over 25": "</style><b>"}
    frame = logged.with_columns(pl.col("group").replace(names)).rename({"group": "<i>g"})
    frame = frame.with_columns(other=pl.Series(["u", "v"] * (len(frame) // 2)))
    page = run("audit", save(frame, "rows.csv"), "--group", "<i>g", "--group", "other", "--format", "html").out
    assert "<script" not in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
