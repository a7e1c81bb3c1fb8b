"""`evenrank demo`: the bundled data, the sweep of the library, a table and a page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import evenrank as er
from evenrank.datasets import german_credit

METHODS = ["amortized", "fastar", "offset"]


@pytest.fixture
def quick(monkeypatch):
    """The demo on fewer lists; everything else is as it is."""
    monkeypatch.setattr(er.datasets, "german_credit", lambda group, seed: german_credit(group, lists=50, seed=seed))


def expected(group="age", **options):
    data = german_credit(group, lists=50, seed=options.get("seed", 0))
    shares = {"fastar": np.arange(25) / 50}
    return er.sweep(data, METHODS, strengths=shares, folds=er.datasets.german_credit_folds(data), **options)


@pytest.mark.usefixtures("quick")
def test_json_is_the_sweep_of_the_library(run):
    report = run("demo", "--k", "5,2,5", "--seed", "4", "--json").json()
    sweep = expected(ks=[2, 5], seed=4)
    assert report["report"] == "report.html"
    assert report["about"]["models"] == len(sweep) == 5 * (3 * 26 + 25 + 3 * 11)
    curves = {(curve["method"], curve["notion"], curve["k"]): curve for curve in report["curves"]}
    assert list(curves) == [(method, notion, k) for method in METHODS for notion in sweep.notions for k in (2, 5)]
    for (method, notion, k), found in curves.items():
        curve = sweep.curve(notion, k, method=method)
        assert found["strength"] == pytest.approx(curve.strengths.tolist(), rel=1e-11)
        assert found[f"ndcg@{k}"] == pytest.approx(curve.quality.tolist())
        assert found[f"ndcg@{k} error"] == pytest.approx(curve.quality_error.tolist())
        assert found[f"{notion}@{k}"] == pytest.approx(curve.violation.tolist())
        assert found["significantly_worse"] == curve.worse.tolist()
        assert found["best_strength"] == pytest.approx(curve.strengths[curve.best], rel=1e-11)
        assert found["max_reduction"] == pytest.approx(curve.max_reduction)
        assert found["mean_reduction"] == pytest.approx(curve.mean_reduction)


@pytest.mark.usefixtures("quick")
def test_the_table_has_the_gaps_at_no_loss(run):
    shown = run("demo", "--k", "5", "-o", "page.html")
    assert shown.code == 0
    assert shown.err == ""
    sweep = expected(ks=[5])
    for notion, alias in {"demographic_parity": "dp", "equal_opportunity": "eop", "equalized_odds": "eod"}.items():
        for method in METHODS:
            curve = sweep.curve(notion, 5, method=method)
            row = next(line for line in shown.out.splitlines() if re.match(rf" *{method} +{alias} ", line)).split()
            i = curve.best
            assert row[2] == f"{curve.violation[0]:.3f}"
            assert row[3] == f"{curve.violation[i]:.3f}"
            assert row[4] == f"{curve.max_reduction:.0%}"
            assert row[-1] == f"{curve.strengths[i]:.3g}"
    assert "; it may see the group at training and at serving.\n" in shown.out
    assert shown.out.splitlines()[-1] == "The page with the trade-off plots: page.html"
    assert max(map(len, shown.out.split("dp = ")[0].splitlines()[2:])) <= 80
    page = Path("page.html").read_text(encoding="utf-8")
    assert "How evenly can credit applicants be ranked?" in page
    assert "CC BY 4.0" in page
    assert "offset may see the group at training and at serving" in page
    assert "fastar may see the group at serving" in page


@pytest.mark.usefixtures("quick")
def test_four_groups_and_gd(run):
    report = run("demo", "--group", "sex+age", "--k", "3", "--solver", "gd", "--json").json()
    assert len(report["about"]["groups"]) == 4
    sweep = expected("sex+age", ks=[3], solver="gd")
    curve = sweep.curve("dp", 3)
    assert report["curves"][0]["demographic_parity@3"] == pytest.approx(curve.violation.tolist())
    assert np.isfinite(report["curves"][0]["max_reduction"])


@pytest.mark.usefixtures("quick")
def test_an_existing_page_is_kept_if_anything_fails(run):
    Path("report.html").write_text("mine")
    assert run("demo", "--solver", "magic").code == 2
    assert run("demo", "--group", "height").code == 2
    assert Path("report.html").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["report.html"]
