"""`er.sweep` against a slow loop over models, and `Curve` against numbers worked out by hand."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment.curves import Curve
from evenrank.experiment.examples import Titles, choose_queries, describe, pack, top_places, unpack
from evenrank.experiment.run_folder import RunFolder
from evenrank.experiment.trials import Sweep
from evenrank.methods import runs


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
    assert result.about.models == len(slow)
    assert result.about.folds == 3


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
            "method must be one of amortized, .*deltr, .*; got 'magic'",
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
        ({"folds": [0, 1]}, r"folds must be a number or one whole number per query, \(30,\); got int64 .* \(2,\)"),
        ({"folds": [0.5] * 30}, "folds must be a number or one whole number per query"),
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


def test_a_gap_of_rounding_is_none():
    made = curve([0.9, 0.9, 0.9], [0.1] * 3, [6e-15, 5e-15, 4e-15])
    assert made.even
    assert np.isnan(made.reduction).all()
    assert made.best == 0
    assert curve([0.9, 0.9, 0.9], [0.1] * 3, [0.2, 0.1, 0.1 - 1e-16]).best == 1  # the weaker of equal ones


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


# ---------------------------------------------------------------------- seeds, held-out data, groupings


def values_of(result, **which):
    """The measures of the trials that have these keys, by strength."""
    chosen = [trial for trial in result if all(getattr(trial, name) == value for name, value in which.items())]
    return {trial.strength: trial.values for trial in chosen}


def test_seeds_with_held_out_data_agree_with_a_slow_loop(data):
    held = data.folds(3, 1) == 0
    train, test = data.take(~held), data.take(held)
    settings = {"amortized": {"epochs": 2, "learning_rate": 0.01}}
    options = {"notions": ["dp"], "strengths": [0.5], "ks": [3], "solver": "sgd", "settings": settings}
    result = er.sweep(train, test=test, seeds=[4, 9], **options)
    assert len(result) == 4
    for seed in (4, 9):
        for strength, values in values_of(result, seed=seed).items():
            ranker = er.FairLinearRanker("dp", strength, solver="sgd", epochs=2, learning_rate=0.01, random_state=seed)
            expected = er.measure(ranker.fit(train).predict(test), test, ["ndcg@3", "dp@3", "four_fifths@3"])
            for name, value in expected.items():
                assert values[name.replace("dp@", "demographic_parity@")] == pytest.approx(value, abs=1e-9)
    curve = result.curve("dp", 3)
    each = [values_of(result, seed=seed)[0.5]["ndcg@3"] for seed in (4, 9)]
    assert each[0] != each[1]
    assert curve.quality[1] == pytest.approx(np.mean(each))
    assert curve.quality_error[1] == pytest.approx(np.std(each, ddof=1))  # a standard deviation, over seeds
    assert result.spread == "standard deviation"


def test_seeds_without_held_out_data_draw_splits(data):
    result = er.sweep(data, notions=["eop"], strengths=[0.1], ks=[3], seeds=3, seed=5, test_share=0.3)
    assert sorted(set(result.columns["seed"])) == [5, 6, 7]
    for seed in (5, 6, 7):
        ids = sorted(data.query_ids.tolist())
        drawn = {ids[place] for place in np.random.default_rng(seed).permutation(30)[:9]}
        held = np.array([query in drawn for query in data.query_ids.tolist()])
        train, test = data.take(~held), data.take(held)
        for strength, values in values_of(result, seed=seed).items():
            scores = er.FairLinearRanker("eop", strength).fit(train).predict(test)
            assert values["equal_opportunity@3"] == pytest.approx(er.measure(scores, test, "eop@3")["eop@3"], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seeds": 2, "folds": 3}, "folds go neither with test nor with seeds"),
        ({"seeds": 0}, "seeds must be a whole number ≥ 1 and ≤ 100000; got 0"),
        ({"seeds": [1, -1]}, "seeds must be a whole number ≥ 0 and ≤ 9223372036854775807; got -1"),
        ({"seeds": []}, "seeds must be a number ≥ 1 or whole numbers ≥ 0; got none"),
        ({"seeds": 2**70}, "seeds must be a whole number ≥ 1 and ≤ 100000; got 1180591620717411303424"),
        ({"seeds": "3"}, "seeds must be a whole number ≥ 1 and ≤ 100000; got '3'"),
        ({"seeds": 2, "seed": 2**63 - 1}, "seeds must be a whole number ≥ 0 and ≤ 9223372036854775807"),
        ({"seeds": 2, "test_share": 1.0}, "test_share must be between 0 and 1, ends excluded; got 1.0"),
        ({"n_jobs": 0}, "n_jobs must be a number of processes"),
        ({"examples": -1}, "examples must be a whole number ≥ 0; got -1"),
        ({"scale": "x"}, "scale must be 'train', 'dataset' or None; got 'x'"),
        ({"seed": -1}, "seed must be a whole number ≥ 0 and ≤ 9223372036854775807; got -1"),
        ({"seed": 2**70}, "seed must be a whole number ≥ 0 and ≤ 9223372036854775807; got 1180591620717411303424"),
        ({"n_jobs": "2"}, "n_jobs must be a whole number; got '2'"),
        ({"seed": 0.5}, "seed must be a whole number ≥ 0 and ≤ 9223372036854775807; got 0.5"),
        ({"strengths": {"amortised": [1.0]}}, "a method of strengths must be one of amortized; got 'amortised'"),
        ({"notions": [er.Notion("ndcg", lambda data: [data.relevant])]}, "needs a name of its own; .ndcg. is one of"),
        ({"settings": {"magic": {}}}, "a method of settings must be one of"),
        (
            {"settings": {"deltr": {"speed": 1}}},
            "setting deltr.speed is not known; the settings of deltr are: weighting",
        ),
    ],
)
def test_more_options_that_cannot_be_used(data, options, says):
    with pytest.raises(ConfigError, match=says):
        er.sweep(data, **options)


def test_strengths_that_a_later_method_cannot_use_are_refused_before_anything_runs(data, tmp_path):
    with pytest.raises(ConfigError, match=r"strengths of fastar are values of p below 1; got \[1.0, 10.0\]"):
        er.sweep(data, ["amortized", "fastar"], strengths=[0.1, 1, 10], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    given = {"amortized": [0.1, 1, 10], "fastar": [0.5]}
    assert len(er.sweep(data, list(given), ["dp"], given, ks=[3], folds=2)) == 2 * (4 + 2)


def test_a_frame_is_no_data(data):
    with pytest.raises(DataError, match="data must be a RankingData, or groupings of one by name; got DataFrame"):
        er.sweep(pl.DataFrame({"qid": [1, 2]}))


def test_groups_whose_names_look_alike_stay_apart(data):
    mixed = data.with_group([1 if row % 3 else "1" for row in range(data.n_rows)])
    result = er.sweep(mixed, notions=["dp"], strengths=[0.1], ks=[3], folds=2)
    assert set(result.about.groups) == {"1", "'1'"}
    assert sum(result.about.groups.values()) == pytest.approx(1)
    seen = {item["groups"]["group"] for query in result.examples.queries for item in query["items"]}
    assert seen == {"1", "'1'"}


WORKERS = """
import signal
from dataclasses import dataclass
from evenrank.experiment.running import run_blocks

@dataclass(frozen=True)
class Block:
    number: int

class Plan:
    blocks = [Block(number) for number in range(4)]
    def runner(self):
        return self
    def run(self, block):
        held = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        return {"block": {"number": block.number}, "warnings": [], "held": held}

for record in run_blocks(Plan(), [], None, 2, None):
    assert record["held"], record
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_does_not_reach_the_workers():
    """A terminal sends it to them too, and one that still loads its modules would write a traceback."""
    done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def groupings():
    data = er.datasets.german_credit("age", lists=30, items=12)
    labels = np.random.default_rng(2).choice(["a", "b", "c"], data.n_rows)
    return {"age": data, "letters": data.with_group(labels)}


def test_groupings_trained_together_equal_separate_sweeps(groupings):
    options = {
        "methods": ["amortized", "per_query", "deltr", "deltr_larger", "fastar", "fastar_larger"],
        "notions": ["dp", "eod"],
        "strengths": [0.1, 0.6],
        "ks": [2, 4],
        "folds": 3,
    }
    pair = {name: one for name, one in groupings.items() if name == "age"}
    pair["halves"] = groupings["age"].with_group(np.where(np.arange(groupings["age"].n_rows) % 3, "x", "y"))
    together = er.sweep(pair, **options)
    assert together.groupings == ["age", "halves"]
    for name, one in pair.items():
        alone = er.sweep(one, **options).frame().drop("seconds", "grouping")
        found = together.frame().filter(pl.col("grouping") == name).drop("seconds", "grouping")
        assert found.columns == alone.columns
        for column in alone.columns:
            if alone[column].dtype == pl.Float64:
                assert found[column].to_numpy() == pytest.approx(alone[column].to_numpy(), abs=1e-9, nan_ok=True)
            else:
                assert found[column].equals(alone[column])


def test_groupings_may_have_other_numbers_of_groups(groupings):
    result = er.sweep(groupings, notions=["dp"], strengths=[0.1], ks=[3], folds=2)
    rates = [
        name for name in result.columns if name.startswith("selection_rate_") and name[15:].partition("@")[0].isdigit()
    ]
    assert rates == ["selection_rate_0@3", "selection_rate_1@3", "selection_rate_2@3"]
    third = result.frame()["selection_rate_2@3"]
    assert third.is_nan().to_list() == (result.frame()["grouping"] == "age").to_list()
    assert list(result.about.groups) == ["age", "letters"]


def test_groupings_that_do_not_fit(groupings, data):
    with pytest.raises(DataError, match=r"grouping 'other' has other rows; make groupings with RankingData.with_group"):
        er.sweep({"age": groupings["age"], "other": data})
    with pytest.raises(DataError, match=r"must be a RankingData, or groupings of one by name; got \{\}"):
        er.sweep({})
    with pytest.raises(DataError, match="test must have no groups but those of data"):
        er.sweep(groupings["age"], test=groupings["letters"])
    with pytest.raises(DataError, match="test must have the groupings of data"):
        er.sweep(groupings, test=groupings["age"])


def test_baselines_with_the_larger_group_protected_agree_with_direct_calls(groupings):
    data = groupings["age"]
    larger = "over 25"
    result = er.sweep(data, ["deltr", "deltr_larger", "fastar", "fastar_larger"], ["dp"], [0.3], [2, 4], folds=2)
    fold_of = data.folds(2, 0)
    for fold in (0, 1):
        train, test = data.take(fold_of != fold), data.take(fold_of == fold)
        plain = er.FairLinearRanker("dp", 0.0).fit(train).predict(test)
        for name, protected in (("", "25 or younger"), ("_larger", larger)):
            trained = er.deltr_path(train, [0.3], protected=protected)[0].scores(test)[:, 0]
            found = values_of(result, method=f"deltr{name}", fold=fold)[0.3]
            for k in (2, 4):
                expected = er.measure(trained, test, [f"ndcg@{k}", f"exposure_gap@{k}"])
                assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-6)
                ranked = er.FAStar(0.3, protected=protected).rerank(plain, test, k)
                expected = er.measure(ranked, test, [f"ndcg@{k}", f"four_fifths@{k}"])
                reranked = values_of(result, method=f"fastar{name}", fold=fold)[0.3]
                assert {key: reranked[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def test_strength_0_alone(groupings):
    result = er.sweep(groupings["age"], ["amortized", "fastar", "deltr"], ["dp"], [0], [3], folds=2)
    assert len(result) == 6
    both = [result.curve("dp", 3, method=method) for method in ("amortized", "fastar")]
    assert both[0].violation == pytest.approx(both[1].violation)


def test_an_interrupt_ends_the_sweep_although_trainers_keep_their_weights(data, tmp_path, monkeypatch):
    """A half-trained model must not pass for a finished trial."""
    trained = []

    def keeps_going(*arguments, **options):
        trained.append(arguments)
        if len(trained) == 2:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return er.fairness_path(*arguments, **options)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(runs, "fairness_path", keeps_going)
    options = {"notions": ["dp"], "strengths": [0.1], "ks": [3], "folds": 3, "out": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        er.sweep(data, **options)
    assert len(RunFolder(tmp_path / "run").blocks()) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert len(er.sweep(data, **options)) == 6
    assert len(trained) == 4


# ---------------------------------------------------------------------- the table


def test_trials_go_into_trackers_as_they_are(data):
    result = er.sweep(data, ["amortized", "fastar"], ["dp"], [0.1], [3], folds=2)
    for trial in result:
        for name in (*trial.params, *trial.metrics):
            assert re.fullmatch("[A-Za-z0-9_]+", name)
        assert all(isinstance(value, float) and np.isfinite(value) for value in trial.metrics.values())
        assert all(isinstance(value, str | int | float) for value in trial.params.values())
        assert trial.metrics["ndcg_at_3"] == trial.values["ndcg@3"]
        assert trial.params["strength"] == trial.strength
    gone = dataclasses.replace(trial, values={"ndcg@3": np.nan, "precision@3": 0.5})
    assert gone.metrics == {"precision_at_3": 0.5, "seconds": trial.seconds}
    options = {"ndkl@10(target=equal)": 0.1, "awrf@5(discount=rbp, patience=0.8)": 0.2}
    gone = dataclasses.replace(trial, values=options, seconds=1.0)
    assert gone.metrics == {"ndkl_at_10_target_equal": 0.1, "awrf_at_5_discount_rbp_patience_0_8": 0.2, "seconds": 1.0}


def test_frames_and_files(data, tmp_path):
    result = er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3], folds=2)
    frame = result.frame()
    result.write(tmp_path / "trials.parquet")
    result.write(tmp_path / "trials.csv")
    assert pl.read_parquet(tmp_path / "trials.parquet").equals(frame)
    assert pl.read_csv(tmp_path / "trials.csv").equals(frame)
    with pytest.raises(ConfigError, match=r"trials are written to .parquet, .csv; got '.txt'"):
        result.write(tmp_path / "trials.txt")
    with pytest.raises(ConfigError, match="kind must be 'polars' or 'pandas'; got 'dask'"):
        result.frame("dask")


def test_a_pandas_frame(data):
    pytest.importorskip("pandas")
    result = er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3], folds=2)
    frame = result.frame("pandas")
    assert frame.columns.tolist() == result.frame().columns
    assert frame["ndcg@3"].tolist() == result.columns["ndcg@3"].tolist()


def slow_front(quality, violation):
    """O(n²): a point is on the front if none beats it, and none before it equals it."""
    out = []
    for i, (q, v) in enumerate(zip(quality, violation, strict=True)):
        beaten = np.isnan(q) or np.isnan(v)
        for j, (other, gap) in enumerate(zip(quality, violation, strict=True)):
            beaten |= bool(other >= q and gap <= v and (other > q or gap < v or j < i))
        out.append(not beaten)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_the_front_agrees_with_a_slow_twin(seed):
    rng = np.random.default_rng(seed)
    quality, violation = rng.integers(0, 6, (2, 12)) / 10  # coarse, so that points coincide
    quality[rng.random(12) < 0.1] = np.nan
    violation[rng.random(12) < 0.1] = np.nan
    assert curve(quality, [0.1] * 12, violation).front.tolist() == slow_front(quality, violation)


# ---------------------------------------------------------------------- examples


def test_examples_show_what_stood_in_the_top_places(data):
    result = er.sweep(data, ["amortized", "fastar"], ["dp", "eop"], [0.2], [2, 4], folds=3, examples=5)
    fold_of = data.folds(3, 0)
    assert len(result.examples.queries) == 5
    assert set(result.examples.tops) == {
        ("amortized", "group", "demographic_parity", None),
        ("amortized", "group", "equal_opportunity", None),
        ("fastar", "group", "any", 2),
        ("fastar", "group", "any", 4),
    }
    for number, shown in enumerate(result.examples.queries):
        query = [str(one) for one in data.query_ids.tolist()].index(shown["id"])
        rows = slice(data.query_ptr[query], data.query_ptr[query + 1])
        assert [item["id"] for item in shown["items"]] == [str(item) for item in data.item_ids[rows].tolist()]
        assert [item["relevance"] for item in shown["items"]] == data.relevance[rows].tolist()
        groups = [str(data.group_names[code]) for code in data.group[rows]]
        assert [item["groups"] for item in shown["items"]] == [{"group": group} for group in groups]
        train, test = data.take(fold_of != fold_of[query]), data.take([query])
        plain = er.FairLinearRanker("dp", 0.0).fit(train).predict(test)
        fair = er.FairLinearRanker("dp", 0.2).fit(train).predict(test)
        top = result.examples.tops["amortized", "group", "demographic_parity", None][number]
        for column, scores in enumerate((plain, fair)):
            assert top[:, column].tolist() == sorted(range(test.n_rows), key=lambda i: -scores[i])[:4]


def test_top_places_keep_ties_in_order_and_mark_short_lists(data):
    rows = er.RankingData.from_arrays(np.zeros((5, 1)), [1, 0, 0, 1, 0], list("abaab"), [1, 1, 1, 2, 2])
    scores = np.array([[1.0, 1.0], [3.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    top = top_places(scores, rows, np.array([0, 1]), 3)
    assert top[:, :, 0].tolist() == [[1, 2, 0], [1, 0, -1]]
    assert top[:, :, 1].tolist() == [[0, 1, 2], [0, 1, -1]]
    assert (unpack(pack(top)) == top).all()


def test_titles_stand_for_ids():
    rows = er.RankingData.from_arrays(
        np.zeros((3, 1)), [1, 0, 2], ["a", None, "b"], [7, 7, 7], item_ids=["x", "y", "z"], relevance_threshold=2
    )
    (shown,) = describe({"group": rows}, np.array([0]), Titles({7: "seven"}, {"x": "the first"}))
    assert (shown["id"], shown["title"]) == ("7", "seven")
    assert [item["title"] for item in shown["items"]] == ["the first", "y", "z"]
    assert [item["groups"]["group"] for item in shown["items"]] == ["a", None, "b"]
    assert [item["relevant"] for item in shown["items"]] == [False, False, True]
    bare = er.RankingData.from_arrays(np.zeros((2, 1)), [1, 0], ["a", "b"], [7, 7])
    (shown,) = describe({"group": bare}, np.array([0]), None)
    assert [item["title"] for item in shown["items"]] == ["item 1", "item 2"]


def test_examples_are_queries_that_can_show_something(data):
    """Longer than the least k and with two groups; the same whatever the order of rows, and any if none fits."""
    qid = np.repeat([3, 1, 2, 0], [4, 2, 4, 4])
    group = np.array(list("abababaaaaabbb"))
    rows = er.RankingData.from_arrays(np.zeros((14, 1)), np.zeros(14), group, qid)
    assert rows.query_ids[choose_queries({"g": rows}, 10, 2, 0)].tolist() == [3, 0]
    assert len(choose_queries({"g": rows}, 1, 2, 0)) == 1
    assert len(choose_queries({"g": rows}, 10, 9, 0)) == 4
    other = rows.with_group(np.array(list("aaaaaaababaaaa")))
    assert rows.query_ids[choose_queries({"g": rows, "h": other}, 10, 2, 0)].tolist() == [3, 2, 0]
    assert len(choose_queries({"g": rows}, 0, 2, 0)) == 0


def test_top_places_keep_near_ties_in_order(data):
    rows = data.take([0])
    scores = np.zeros((rows.n_rows, 1))
    scores[:3, 0] = 1.0, 1.0 + 2.0**-52, 2.0
    assert top_places(scores, rows, np.array([0]), 3)[0, :, 0].tolist() == [2, 0, 1]


def test_names_that_begin_like_formulas_are_none_in_the_csv(tmp_path):
    rng = np.random.default_rng(0)
    group, qid = np.tile(["=1+1", "b"], 30), np.repeat(np.arange(10), 6)
    data = er.RankingData.from_arrays(rng.normal(size=(60, 2)), rng.integers(0, 2, 60), group, qid)
    grouped = {"=HYPERLINK(1)": data, "plain": data.with_group(data.group, ("x", "y"))}
    result = er.sweep(grouped, notions=["dp"], strengths=[0, 1], ks=[3], folds=2)
    result.write(tmp_path / "trials.csv")
    result.write(tmp_path / "trials.parquet")
    names = {
        suffix: pl.Series(read(tmp_path / f"trials{suffix}")["grouping"]).unique().sort().to_list()
        for suffix, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet))
    }
    assert names == {".csv": ["'=HYPERLINK(1)", "plain"], ".parquet": ["=HYPERLINK(1)", "plain"]}
