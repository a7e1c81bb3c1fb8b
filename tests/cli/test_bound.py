"""`evenrank bound`: the paper's claims beside what can be certified."""

import pytest

import evenrank as er


def test_paper_setting_is_called_vacuous(run):
    shown = run("bound", "-N", 652, "-m", 7, "--n-features", 9, "--min-share", 0.2)
    assert shown.code == 0
    assert "vacuous" in shown.out
    assert "does not apply" in shown.out
    assert "20." not in shown.out  # the theorem's number, which would look useful
    assert "the paper's claims" in shown.out
    planned = er.bounds.planned("dp", n_queries=652, min_share=0.2)
    assert f"{float(planned):.3f}" in shown.out


def test_json_has_null_for_vacuous(run):
    report = run("bound", "-N", 652, "-m", 7, "--min-share", 0.2, "--json").json()
    entry = report["bounds"][0]
    assert entry["adds"]["uniform"] is None
    assert entry["queries_needed"]["fixed"] == er.bounds.queries_needed("dp", 0.1, bound="fixed", min_share=0.2)


def test_file_gives_certified_bounds(run, save, logged):
    report = run("bound", save(logged, "rows.csv"), "--min-share", 0.1, "--k", 3, "--json").json()
    data = er.read("rows.csv", score="score")
    scores = data.to_caller(data.column("score"))
    for entry, alias in zip(report["bounds"], ("dp", "eop", "eod"), strict=True):
        made = er.bounds.certified(scores, data, f"{alias}@3")
        assert entry["certified"]["bernstein"]["seen"] == pytest.approx(made.estimate)
        assert entry["certified"]["bernstein"]["at_most"] == (None if made.vacuous else pytest.approx(made.bound))
    assert "Certified from the file" in run("bound", "rows.csv", "--min-share", 0.1).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("-N 652", "give --queries, --list-length and --min-share"),
        ("-N 652 -m 7 --min-share 0", "min_share must be a finite number > 0 and ≤ 1"),
        ("-N 652 -m 7 --min-share 0.2 --delta 2", "delta must be between 0 and 1, ends excluded"),
        ("-N 0 -m 7 --min-share 0.2", "must be a whole number ≥ 1"),
        ("nowhere.csv", "there is no such file"),
    ],
)
def test_bad_options(run, arguments, says):
    refused = run("bound", *arguments.split())
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert says in refused.err
