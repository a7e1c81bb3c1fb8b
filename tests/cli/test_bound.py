"""`evenrank bound`: the paper's claims beside what can be certified."""

import polars as pl
import pytest

import evenrank as er


def test_a_number_above_1_is_printed_and_said_to_say_nothing(run):
    shown = run("bound", "-N", 652, "-m", 7, "--n-features", 9, "--min-share", 0.2)
    assert shown.code == 0
    text = " ".join(shown.out.split())
    theorem = er.bounds.uniform("dp", n_queries=652, list_length=7, vc=10, min_share=0.2)
    assert f"{float(theorem):.3f}" in text
    assert "says nothing" in text
    assert "does not apply" in text
    assert "the paper's claims" in text
    assert "for each number by itself" in text
    assert f"{float(er.bounds.planned('dp', n_queries=652, min_share=0.2)):.3f}" in text


def test_json_has_the_number_and_that_it_says_nothing(run):
    report = run("bound", "-N", 652, "-m", 7, "--min-share", 0.2, "--json").json()
    entry = report["bounds"][0]
    assert entry["adds"]["uniform"] > 20
    assert entry["says_nothing"] == {"uniform": True, "fixed": True, "certified, planned": False}
    assert entry["queries_needed"]["fixed"] == er.bounds.queries_needed("dp", 0.1, bound="fixed", min_share=0.2)
    assert report["asked"]["each_or_joint"] == "each"


def test_plans_count_groups_and_the_longest_list(run):
    """Lists of 5 with some of 80 need far more queries than lists of 5 alone: the bound divides by the longest."""
    short, long = (
        run("bound", "-N", 100, "-m", 5, "--min-share", 0.3, "--groups", 6, *more, "--json").json()["bounds"][0]
        for more in ([], ["--longest", 80])
    )
    assert short["queries_needed"]["hoeffding"] == er.bounds.queries_needed("dp", 0.1, min_share=0.3, groups=6)
    assert long["certified_share"] == pytest.approx(0.3 * 5 / 80)
    assert long["queries_needed"]["hoeffding"] == pytest.approx(256 * short["queries_needed"]["hoeffding"], rel=1e-3)
    assert long["queries_needed"]["fixed"] == short["queries_needed"]["fixed"]


def test_a_file_with_one_long_list_needs_many_queries(run, save):
    """3,984 queries were said to be enough here, where the certified bound takes several hundred thousand."""
    qid = [q for q in range(400) for _ in range(4)] + [400] * 120
    n = len(qid)
    columns = {
        "qid": qid,
        "group": ["a", "b"] * (n // 2),
        "relevance": [1, 1, 0, 0] * (n // 4),
        "score": list(range(n)),
    }
    report = run("bound", save(pl.DataFrame(columns), "rows.csv"), "--json").json()["bounds"][0]
    data = er.read("rows.csv", score="score")
    needed = report["queries_needed"]["hoeffding"]
    many = er.bounds.planned("dp", n_queries=needed, min_share=er.bounds.certified_share(data, "dp"))
    assert float(many) == pytest.approx(0.1, abs=1e-3)
    assert needed > 300_000


def test_file_gives_certified_bounds(run, save, logged):
    report = run("bound", save(logged, "rows.csv"), "--min-share", 0.1, "--k", 3, "--json").json()
    data = er.read("rows.csv", score="score")
    scores = data.to_caller(data.column("score"))
    for entry, alias in zip(report["bounds"], ("dp", "eop", "eod"), strict=True):
        made = er.bounds.certified(scores, data, f"{alias}@3")
        assert entry["certified"]["bernstein"]["seen"] == pytest.approx(made.estimate)
        assert entry["certified"]["bernstein"]["at_most"] == pytest.approx(made.bound)
        assert entry["certified"]["bernstein"]["says_nothing"] == made.vacuous
        assert "the longest seen" in entry["certified"]["bernstein"]["condition"]
    assert "Certified from the file for the population" in run("bound", "rows.csv", "--min-share", 0.1).out
    following = run("bound", "rows.csv", "--min-share", 0.1, "--next", 500, "--longest", 90)
    assert "for the next 500 queries" in following.out
    assert "no list is longer than 90." in following.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("-N 652", "give --queries, --list-length and --min-share"),
        ("-N 652 -m 7 --min-share 0", "min_share must be a finite number > 0 and ≤ 1"),
        ("-N 652 -m 7 --min-share 0.2 --delta 2", "delta must be between 0 and 1, ends excluded"),
        ("-N 0 -m 7 --min-share 0.2", "must be a whole number ≥ 1"),
        ("nowhere.csv", "there is no such file"),
        ("-N 652 -m 7 --min-share 0.2 --next 9", "--next needs a file"),
        ("-N 652 -m 7 --min-share 0.2 --longest 5", "--longest must be at least --list-length, 7; got 5"),
    ],
)
def test_bad_options(run, arguments, says):
    refused = run("bound", *arguments.split())
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert says in refused.err
