"""`er.sweep` against a slow loop over models, and `Curve` against numbers worked out by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment.curves import Curve
from evenrank.experiment.trials import Sweep


@pytest.fixture(scope="module")
def data():
    return er.datasets.german_credit("sex+age", lists=30, items=15)


def slow_sweep(data, methods, notions, strengths, ks, fold_of, solver):
    """(method, notion, strength, fold) → values: one model trained and measured at a time."""
    out = {}
    for fold in sorted(set(fold_of.tolist())):
        train, test = data.take(fold_of != fold), data.take(fold_of == fold)
        for method in methods:
            for notion in notions:
                for strength in strengths:
                    ranker = er.FairLinearRanker(notion, strength, scope=method, solver=solver).fit(train)
                    names = [f"{name}@{k}" for name in ("ndcg", "precision", *notions) for k in ks]
                    out[method, notion, strength, fold] = er.measure(ranker.predict(test), test, names)
    return out


@pytest.mark.parametrize("solver", ["exact", "gd"])
def test_agrees_with_a_slow_loop(data, solver):
    methods, notions = ["amortized", "per_query"], ["demographic_parity", "equalized_odds"]
    strengths, ks = [0.0, 0.1], [2, 5]
    result = er.sweep(data, methods, notions, strengths, ks, folds=3, seed=7, solver=solver)
    fold_of = data.folds(3, 7)
    slow = slow_sweep(data, methods, notions, strengths, ks, fold_of, solver)
    trials = list(result.trials())
    assert len(result) == len(trials) == len(slow) == 2 * 2 * 2 * 3
    for trial in trials:
        expected = slow[trial.method, trial.notion, trial.strength, trial.fold]
        assert {name: trial.values[name] for name in expected} == pytest.approx(expected, abs=1e-9)
        assert trial.seed == 7
        assert trial.seconds > 0
    assert result.about["models"] == len(slow)
    assert result.about["folds"] == 3


def test_folds_may_be_a_number_or_given_for_each_query(data):
    options = {"notions": ["dp"], "strengths": [0.1], "ks": [3]}
    by_number = er.sweep(data, folds=4, seed=2, **options)
    by_array = er.sweep(data, folds=data.folds(4, 2), seed=2, **options)
    listed = er.sweep(data, folds=(data.folds(4, 2) * 10 - 3).tolist(), seed=2, **options)
    for other in (by_array, listed):
        assert other.curve("dp", 3).violation == pytest.approx(by_number.curve("dp", 3).violation)
    assert sorted(set(listed.columns["fold"])) == [-3, 7, 17, 27]


def test_rows_in_another_order_give_the_same_sweep(data):
    order = np.random.default_rng(0).permutation(data.n_rows)
    group = np.array([data.group_names[code] for code in data.group])
    qid = data.query_ids[data.query_of_row]
    mixed = er.RankingData.from_arrays(
        data.features[order], data.relevance[order], group[order], qid[order], item_ids=data.item_ids[order]
    )
    one, two = (er.sweep(rows, notions=["eop"], strengths=[0.1], ks=[5]).curve("eop", 5) for rows in (data, mixed))
    assert two.quality == pytest.approx(one.quality, abs=1e-12)
    assert two.violation == pytest.approx(one.violation, abs=1e-12)


def test_strength_0_is_added_and_strengths_are_sorted_once(data):
    result = er.sweep(data, notions=["dp"], strengths=[1.0, 0.1, 1.0], ks=[3], folds=2)
    assert result.curve("dp", 3).strengths.tolist() == [0, 0.1, 1]
    assert len(result) == 6
    assert er.sweep(data, notions=["dp"], ks=[3], folds=2).curve("dp", 3).strengths == pytest.approx(er.strength_grid())


def test_names_given_twice_count_once(data):
    result = er.sweep(data, "amortized", ["dp", "demographic_parity"], [0.1], [3, 3, 1], folds=2)
    assert (result.notions, result.methods, result.ks) == (["demographic_parity"], ["amortized"], (3, 1))
    assert len(result) == 4
    assert {len(column) for column in result.columns.values()} == {4}
    assert er.sweep(data, notions="eop", strengths=[0.1], ks=3, folds=2).notions == ["equal_opportunity"]


def test_progress_reaches_the_end(data):
    seen: list[float] = []
    er.sweep(data, ["amortized", "per_query"], ["dp"], [0.1], [3], folds=2, solver="gd", progress=seen.append)
    assert seen == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"methods": ["magic"]},
            "method must be one of amortized, per_query, deltr, .*; got 'magic'",
        ),
        ({"methods": []}, "at least one method, one notion and one k"),
        ({"notions": []}, "at least one method, one notion and one k"),
        ({"ks": []}, "at least one method, one notion and one k"),
        ({"notions": ["fair"]}, "notion must be one of demographic_parity"),
        ({"ks": [0]}, "k must be a whole number ≥ 1; got 0"),
        ({"ks": [2.5]}, "k must be a whole number ≥ 1; got 2.5"),
        ({"strengths": [-1]}, r"strengths must be finite numbers ≥ 0; got \[-1\]"),
        ({"strengths": [np.nan]}, "strengths must be finite numbers ≥ 0"),
        ({"strengths": "many"}, "strengths must be finite numbers ≥ 0; got 'many'"),
        ({"solver": "magic"}, "solver must be one of exact, gd, sgd; got 'magic'"),
        ({"folds": 1}, "folds must be a whole number from 2 to the 30 queries; got 1"),
        ({"folds": 31}, "folds must be a whole number from 2 to the 30 queries; got 31"),
        ({"folds": 2.5}, "folds must be a whole number from 2 to the 30 queries; got 2.5"),
        ({"folds": [0, 1]}, r"folds must be a number or one whole number a query, \(30,\); got int64 .* \(2,\)"),
        ({"folds": [0.5] * 30}, "folds must be a number or one whole number a query"),
        ({"folds": [4] * 30}, "at least two different folds; every query is in fold 4"),
    ],
)
def test_options_that_cannot_be_used(data, options, says):
    with pytest.raises(ConfigError, match=says):
        er.sweep(data, **options)


def test_data_without_groups_is_refused(data):
    with pytest.raises(DataError, match="needs at least two; 'group' has no group labels"):
        er.sweep(data.with_group(None), strengths=[0.1], folds=2)


def test_a_curve_that_is_not_there(data):
    result = er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3], folds=2)
    for wrong in ({"notion": "eop", "k": 3}, {"notion": "dp", "k": 4}, {"notion": "dp", "k": 3, "method": "per_query"}):
        with pytest.raises(ConfigError, match=r"it has notions \['demographic_parity'\], k in \[3\], methods"):
            result.curve(**wrong)
    with pytest.raises(ConfigError, match="'recall'"):
        result.curve("dp", 3, quality="recall")
    assert result.curve("dp", 3, quality="precision").quality_name == "precision@3"


# ---------------------------------------------------------------------- curves


def curve(quality, error, violation) -> Curve:
    size = len(quality)
    values = [np.array(column, float) for column in (range(size), quality, error, violation, [0.01] * size)]
    return Curve("amortized", "demographic_parity", "ndcg@5", "demographic_parity@5", *values)


def test_means_and_errors_are_over_folds():
    values = {0.0: [0.5, 0.7, 0.9], 0.5: [0.4, 0.4, 0.7]}
    gaps = {0.0: [0.3, 0.1, 0.2], 0.5: [0.1, 0.0, 0.2]}
    rows = [(strength, fold) for fold in (2, 0, 1) for strength in (0.5, 0.0)]  # in no particular order
    columns = {
        "method": ["amortized"] * 6,
        "notion": ["demographic_parity"] * 6,
        "strength": [strength for strength, _ in rows],
        "fold": [fold for _, fold in rows],
        "seed": [0] * 6,
        "seconds": [0.0] * 6,
        "ndcg@5": [values[strength][fold] for strength, fold in rows],
        "demographic_parity@5": [gaps[strength][fold] for strength, fold in rows],
    }
    found = Sweep(columns, [5], {}).curve("dp", 5)
    assert found.strengths.tolist() == [0, 0.5]
    assert found.quality == pytest.approx([2.1 / 3, 1.5 / 3])
    # Standard errors: the standard deviation with n − 1 = 2 in its denominator, over √3.
    assert found.quality_error == pytest.approx([np.sqrt((0.04 + 0 + 0.04) / 2 / 3), np.sqrt((0.02 + 0.04) / 2 / 3)])
    assert found.violation == pytest.approx([0.2, 0.1])
    assert found.violation_error == pytest.approx([np.sqrt((0.01 + 0.01) / 2 / 3)] * 2)
    assert found.reduction == pytest.approx([0, 0.5])


def test_significantly_worse_is_a_drop_beyond_the_sum_of_both_errors():
    found = curve([0.75, 0.625, 0.62, 0.9], [0.0625, 0.0625, 0.0625, 0.5], [0.4, 0.3, 0.2, 0.1])
    assert found.worse.tolist() == [False, False, True, False]  # 0.125 is not more than 0.0625 + 0.0625; 0.13 is


def test_best_max_and_mean_are_over_the_strengths_that_are_not_worse():
    found = curve([0.8, 0.8, 0.79, 0.5, 0.785], [0.01] * 5, [0.4, 0.3, 0.1, 0.0, 0.1])
    assert found.worse.tolist() == [False, False, False, True, False]
    assert found.best == 2  # the weakest of the two fairest; strength 3 is fairer but worse
    assert found.max_reduction == pytest.approx((0.4 - 0.1) / 0.4)
    assert found.mean_reduction == pytest.approx((0 + 0.25 + 0.75 + 0.75) / 4)  # strength 0 included


def test_nothing_is_free_where_every_strength_is_worse_or_less_fair():
    found = curve([0.8, 0.5, 0.81], [0.01] * 3, [0.2, 0.1, 0.3])
    assert (found.best, found.max_reduction) == (0, 0)
    assert found.mean_reduction == pytest.approx((0 - 0.5) / 2)


def test_reduction_is_not_defined_where_there_is_no_gap():
    found = curve([0.8, 0.8], [0.01] * 2, [0.0, 0.0])
    assert np.isnan(found.reduction).all()
    assert found.best == 0
    assert np.isnan([found.max_reduction, found.mean_reduction]).all()


def test_unknown_errors_and_qualities_are_not_taken_for_good():
    found = curve([0.8, 0.79, 0.8], [np.nan] * 3, [0.3, 0.1, 0.2])
    assert found.worse.tolist() == [False, True, False]
    assert found.best == 2
    found = curve([np.nan] * 3, [np.nan] * 3, [0.3, 0.1, 0.2])
    assert found.best == 0


# ---------------------------------------------------------------------- folds that lack a group


@pytest.fixture(scope="module")
def lopsided():
    """Two groups, but the queries of fold 0 have items of one only, and fold 1 has relevant items of one only."""
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(12), 8)
    fold = np.arange(12) % 4
    group = rng.integers(0, 2, len(qid))
    group[fold[qid] == 0] = 0
    relevance = rng.integers(0, 2, len(qid))
    relevance[(fold[qid] == 1) & (group == 1)] = 0
    features = rng.normal(size=(len(qid), 3)) + group[:, None]
    data = er.RankingData.from_arrays(features, relevance, group, qid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return data, fold, er.sweep(data, strengths=[0.05, 1], ks=[2, 4], folds=fold)


def test_a_fold_without_a_group_is_left_out_of_that_mean(lopsided):
    _, _, result = lopsided
    trials = [trial for trial in result.trials() if trial.notion == "demographic_parity" and trial.strength == 0.05]
    gaps = [trial.values["demographic_parity@2"] for trial in trials]
    assert np.isnan(gaps).tolist() == [True, False, False, False]
    found = result.curve("dp", 2)
    at = found.strengths.tolist().index(0.05)
    assert found.violation[at] == pytest.approx(np.mean(gaps[1:]))
    assert found.violation_error[at] == pytest.approx(np.std(gaps[1:], ddof=1) / np.sqrt(3))
    assert found.quality[at] == pytest.approx(np.mean([trial.values["ndcg@2"] for trial in trials]))
    eop = result.curve("eop", 2)
    gaps = [trial.values["equal_opportunity@2"] for trial in result.trials() if trial.notion == "equal_opportunity"]
    assert np.isnan(gaps).sum() == 2 * 3
    assert np.isfinite(eop.violation).all()


def test_a_fold_without_a_group_is_warned_of(lopsided):
    data, fold, _ = lopsided
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        er.sweep(data, notions=["dp"], strengths=[0.05], ks=[2], folds=fold)
    said = {str(warning.message) for warning in caught}
    assert "demographic_parity: all rows have no item of group 1; the violation is NaN" in said


def test_no_fold_with_both_groups():
    features, qid = np.arange(16.0).reshape(-1, 1) % 3, np.repeat([0, 1, 2, 3], 4)
    data = er.RankingData.from_arrays(features, np.arange(16) % 2, qid % 2, qid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = er.sweep(data, strengths=[0.5], ks=[2], folds=[0, 1, 0, 1])
    for notion in result.notions:
        found = result.curve(notion, 2)
        assert np.isnan(found.violation).all()
        assert found.best == 0
        assert np.isnan(found.max_reduction)
    described = result.to_dict()["curves"][0]
    assert (described["best_strength"], described["significantly_worse"]) == (0.0, [False, False])
