"""The summary tables against numbers worked out from the trials one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evenrank as er
from evenrank.paper import summary
from evenrank.paper.printed import printed


@pytest.fixture(scope="module")
def result():
    data = er.datasets.german_credit("age", lists=40, items=15)
    sexes = er.datasets.german_credit("sex", lists=40, items=15)
    groupings = {"age": data, "sex": data.with_group(sexes.to_caller(sexes.group), sexes.group_names)}
    return er.sweep(
        groupings, ["amortized", "fastar"], ["dp", "eop"], {"amortized": [0, 0.05, 1], "fastar": [0, 0.3, 0.6]}, [2, 4],
        folds=3, examples=0,
    )  # fmt: skip


def slow_reduction(result, statistic, method, notion, grouping, k, quality):
    """The paper's rule, trial by trial."""
    rows = [
        trial
        for trial in result
        if trial.method == method and trial.grouping == grouping and trial.notion in (notion, "any")
    ]
    by_strength = {}
    for trial in rows:
        by_strength.setdefault(trial.strength, []).append(trial)

    def mean(values):
        return sum(values) / len(values)

    def error(values):
        middle = mean(values)
        return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))

    quality_of = {s: [t.values[f"{quality}@{k}"] for t in trials] for s, trials in by_strength.items()}
    gap_of = {s: mean([t.values[f"{notion}@{k}"] for t in trials]) for s, trials in by_strength.items()}
    allowed = [
        s
        for s, values in quality_of.items()
        if s == 0 or mean(quality_of[0]) - mean(values) <= error(values) + error(quality_of[0])
    ]
    falls = [(gap_of[0] - gap_of[s]) / gap_of[0] for s in allowed]
    return max(falls) if statistic == "max" else mean(falls)


@pytest.mark.parametrize("quality", ["ndcg", "precision"])
@pytest.mark.parametrize("statistic", ["max", "mean"])
@pytest.mark.parametrize("method", ["amortized", "fastar"])
def test_reductions_follow_the_papers_rule(result, statistic, method, quality):
    found = summary.reductions(result, statistic, method, [2, 4], quality)
    expected = [
        [slow_reduction(result, statistic, method, notion, grouping, k, quality) for k in (2, 4)]
        for notion in ("demographic_parity", "equal_opportunity")
        for grouping in ("age", "sex")
    ]
    assert found == pytest.approx(np.array(expected))


def test_overview_averages_over_k_then_over_settings(result):
    table = summary.overview(result, methods={"amortized": "ours", "fastar": "FA*IR"}, ks={"fastar": [4]})
    assert table.columns == ("ours max", "ours mean", "FA*IR max", "FA*IR mean")
    assert [row.labels for row in table.rows] == [
        ("demographic parity", "age"),
        ("demographic parity", "sex"),
        ("equal opportunity", "age"),
        ("equal opportunity", "sex"),
        ("average", ""),
    ]
    found = np.array(table.numbers)
    assert found[:4, 0] == pytest.approx(summary.reductions(result, "max", "amortized", [2, 4]).mean(axis=1))
    assert found[:4, 3] == pytest.approx(summary.reductions(result, "mean", "fastar", [4])[:, 0])
    assert found[4] == pytest.approx(found[:4].mean(axis=0))
    assert table.rows[0].cells[0] == f"{found[0, 0]:.0%}"


def test_numbers_stand_beside_in_brackets_and_joined(result):
    def beside(statistic, method, notion, grouping):
        return 0.25 if (statistic, method, notion, grouping) == ("max", "amortized", "average", "average") else math.nan

    table = summary.overview(result, beside=beside, extra={"best": np.full((4, 2), 0.5)})
    assert table.rows[-1].cells[0].endswith(" (25%)")
    assert "(" not in table.rows[0].cells[0] + table.rows[-1].cells[1]
    assert table.columns[-2:] == ("best max", "best mean")
    assert table.rows[2].cells[-1] == "50%"
    joined = summary.overview(result, beside=lambda *_: 0.1, extra={"best": np.full((4, 2), 0.5)}, joined=True)
    assert joined.columns == ("amortized", "fastar", "best")
    one, two = (f"{value:.0%}" for value in table.numbers[0][:2])
    assert joined.rows[0].cells == (f"{one}/{two} (10%/10%)", joined.rows[0].cells[1], "50%/50%")


def test_by_k_has_both_averages(result):
    table = summary.by_k(result, "mean", "amortized", "precision")
    found = np.array(table.numbers)
    assert table.columns == ("k=2", "k=4", "average")
    assert found[:4, :2] == pytest.approx(summary.reductions(result, "mean", "amortized", [2, 4], "precision"))
    assert found[:, 2] == pytest.approx(found[:, :2].mean(axis=1))
    assert found[4] == pytest.approx(found[:4].mean(axis=0))
    assert summary.by_k(result, "max", "fastar", ks=[4]).columns == ("k=4", "average")


def test_every_strength_with_its_error(result):
    table = summary.strengths(result, "amortized", "dp", 4, grouping="sex")
    curve = result.curve("dp", 4, method="amortized", grouping="sex")
    assert len(table.rows) == 3
    assert table.rows[1].cells[0] == f"{curve.quality[1]:.3f} ± {curve.quality_error[1]:.3f}"
    assert [row.cells[3] == "significantly worse" for row in table.rows] == curve.worse.tolist()
    assert "standard error over 3 folds" in table.title


def test_what_is_not_defined_is_left_out_of_averages():
    values = np.array([[0.5, np.nan], [np.nan, np.nan]])
    assert summary.average(values, axis=1).tolist()[0] == 0.5
    assert np.isnan(summary.average(values, axis=1)[1])
    assert summary.average(values) == 0.5
    assert summary.percent(np.nan) == "–"
    assert summary.percent(-0.001) == "0%"
    assert summary.with_error(0.5, np.nan) == "0.500"


# ---------------------------------------------------------------------- the paper's numbers


@pytest.mark.parametrize(
    ("dataset", "groupings", "methods"),
    [
        ("trec", ["t=3", "t=4", "t=5"], ["amortized", "deltr", "fastar", "per_query"]),
        ("msmarco", ["com", "ext"], ["amortized", "fastar", "per_query"]),
    ],
)
def test_the_papers_tables_agree_with_each_other(dataset, groupings, methods):
    """Averages printed in whole per cent are within rounding of those of the printed cells."""
    notions = ["equal_opportunity", "demographic_parity", "equalized_odds"]
    for statistic in ("max", "mean"):
        for method in methods:
            ks = "345" if method == "fastar" else "12345"
            rows = []
            for notion in notions:
                for grouping in groupings:
                    cells = [printed(dataset, statistic, method, notion, grouping, k) for k in ks]
                    assert not np.isnan(cells).any()
                    rows.append(printed(dataset, statistic, method, notion, grouping))
                    assert rows[-1] == pytest.approx(np.mean(cells), abs=0.0101)
            assert printed(dataset, statistic, method, "average", "average") == pytest.approx(np.mean(rows), abs=0.0101)


def test_numbers_the_paper_does_not_print():
    assert np.isnan(printed("msmarco", "max", "deltr", "equal_opportunity", "com"))
    assert np.isnan(printed("trec", "max", "fastar", "equal_opportunity", "t=3", "1"))
    assert np.isnan(printed("trec", "max", "lightgbm", "equal_opportunity", "t=3"))
