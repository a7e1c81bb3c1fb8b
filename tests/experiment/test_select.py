"""`er.select` against a slow twin, on sweeps made by hand and on a real one."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataWarning
from evenrank.experiment.select_rules import RULES
from evenrank.experiment.trials import Sweep

GRID = [0.0, 0.1, 1.0, 10.0]


def made(tables, about=None, notion="demographic_parity", ks=(5,)):
    """A sweep from {method: (quality, violation, ratio)}, each (strengths, folds); a method may have notion "any"."""
    columns = {name: [] for name in ("grouping", "method", "notion", "strength", "fold", "seed", "seconds")}
    names = [f"{name}@{k}" for k in ks for name in ("ndcg", "precision", "demographic_parity", "four_fifths")]
    columns |= {name: [] for name in names}
    for method, (quality, violation, ratio, *grouping) in tables.items():
        method, _, any_notion = method.partition(":")
        for i, strength in enumerate(GRID[: len(quality)]):
            for fold in range(len(quality[0])):
                row = [grouping[0] if grouping else "group", method, any_notion or notion, strength, fold, 0, 0.1]
                values = [quality[i][fold], quality[i][fold] / 2, violation[i][fold], ratio[i][fold]]
                for name, value in zip(columns, [*row, *values * len(ks)], strict=True):
                    columns[name].append(value)
    return Sweep(columns, ks, {"notions": [notion], **(about or {})})


def flat(*values, folds=3):
    """The same in every fold."""
    return [[value] * folds for value in values]


def mean(values):
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def error(values):
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return 0.0
    middle = mean(known)
    return math.sqrt(sum((value - middle) ** 2 for value in known) / (len(known) - 1) / len(known))


def slow_choice(tables, folds, rule, tolerance):
    """(base, chosen or None) as (method, number of the strength), by loops over plain lists."""
    points = [(method, i) for method, table in tables.items() for i in range(len(table[0]))]
    quality, violation, ratio = (
        {(m, i): mean([tables[m][part][i][fold] for fold in folds]) for m, i in points} for part in range(3)
    )
    errors = {(m, i): error([tables[m][0][i][fold] for fold in folds]) for m, i in points}
    base = (next(iter(tables)), 0)
    best = None
    if rule == "alpha_star":  # no path ends in a flat part here; see below
        return base, None
    if rule == "four_fifths":
        if ratio[base] >= 0.8:
            return base, base
        for point in points:
            if ratio[point] >= 0.8 and (best is None or quality[point] > quality[best]):
                best = point
        return base, best
    if rule == "knee":
        eligible = [point for point in points if violation[point] < violation[base] or point == base]
        front = [
            one
            for place, one in enumerate(eligible)
            if not any(
                quality[two] >= quality[one]
                and violation[two] <= violation[one]
                and ((quality[two], violation[two]) != (quality[one], violation[one]) or other < place)
                for other, two in enumerate(eligible)
            )
        ]
        if len(front) < 3:
            return base, None
        ends = min(front, key=quality.get), max(front, key=quality.get)
        (q0, v0), (q1, v1) = ((quality[end], violation[end]) for end in ends)
        most = 1e-9
        for point in front:
            above = (quality[point] - q0) / (q1 - q0) - (violation[point] - v0) / (v1 - v0)
            if above > most:
                best, most = point, above
        return base, best
    for point in points:
        allowed = errors[point] + errors[base] if rule == "no_loss" else 0
        if rule == "no_loss":
            good = quality[base] - quality[point] <= allowed
        else:
            good = quality[point] >= (1 - tolerance) * max(quality.values())
        fairer = violation[point] < violation[base]
        if good and fairer and (best is None or violation[point] < violation[best]):
            best = point
    return base, best


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_a_slow_twin(rule, seed):
    rng = np.random.default_rng(seed)
    folds = int(rng.integers(2, 6))
    tables = {}
    for method in ["amortized", "fastar"][: int(rng.integers(1, 3))]:
        size = int(rng.integers(2, 5))
        fall = np.linspace(0, 1, size)[:, None]
        tables[method] = (
            (0.8 - 0.1 * fall**2 + rng.normal(0, 0.02, (size, folds))).tolist(),
            np.clip(0.3 - 0.25 * fall + rng.normal(0, 0.03, (size, folds)), 0, 1).tolist(),
            np.clip(0.6 + 0.25 * fall + rng.normal(0, 0.05, (size, folds)), 0, 1).tolist(),
        )
        if seed % 4 == 3:  # a fold that lacks a group
            for part in (1, 2):
                for row in tables[method][part]:
                    row[0] = math.nan
    sweep = made({name + (":any" if name == "fastar" else ""): table for name, table in tables.items()})
    base, chosen = slow_choice(tables, range(folds), rule, 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = er.select(sweep, "dp", rule=rule, tolerance=0.05)
    assert found.qualified is (chosen is not None)
    method, number = chosen or base
    assert (found.method, found.strength) == (method, GRID[number])
    assert (found.baseline.method, found.baseline.strength) == (base[0], 0)
    for part, name in enumerate(("quality", "violation", "ratio")):
        assert getattr(found.chosen, name) == pytest.approx(mean(tables[method][part][number]))
        assert getattr(found.baseline, name) == pytest.approx(mean(tables[base[0]][part][0]))
    # The honest estimate: each fold with the choice of the others.
    picks, before, after = {}, [], []
    for fold in range(folds):
        others = [other for other in range(folds) if other != fold]
        base, chosen = slow_choice(tables, others, rule, 0.05)
        method, number = chosen or base
        picks[fold] = (method, GRID[number])
        before.append([tables[base[0]][part][0][fold] for part in range(3)])
        after.append([tables[method][part][number][fold] for part in range(3)])
    held = found.held_out
    assert held.picks == picks
    for part, name in enumerate(("quality", "violation", "ratio")):
        assert getattr(held, name) == pytest.approx(mean([row[part] for row in after]), nan_ok=True)
        assert getattr(held.before, name) == pytest.approx(mean([row[part] for row in before]), nan_ok=True)
    for part, name in enumerate(("quality_error", "violation_error")):
        expected = error([row[part] for row in after])
        assert getattr(held, name) == (pytest.approx(expected) if expected else pytest.approx(math.nan, nan_ok=True))


def test_no_loss_is_the_smallest_gap_at_no_significant_loss():
    quality = [[0.78, 0.80, 0.82], [0.77, 0.80, 0.80], [0.70, 0.70, 0.71], [0.80, 0.80, 0.80]]
    choice = er.select(made({"amortized": (quality, flat(0.4, 0.2, 0.1, 0.3), flat(0.5, 0.6, 0.7, 0.5))}), "dp", 5)
    assert (choice.method, choice.strength, choice.qualified) == ("amortized", 0.1, True)
    assert choice.verdict() == (
        "Demographic parity at 5: amortized, strength 0.1, has the smallest gap at no significant loss of NDCG@5: "
        "gap 0.400 → 0.200, NDCG@5 0.800 → 0.790, four-fifths ratio 0.500 → 0.600."
    )
    assert "On folds that took no part in the choice: gap 0.400 → " in choice.text()
    assert choice.holds is True


def test_no_loss_is_still_known_by_its_former_name():
    quality = [[0.78, 0.80, 0.82], [0.77, 0.80, 0.80]]
    sweep = made({"amortized": (quality, flat(0.4, 0.2), flat(0.5, 0.6))})
    assert er.select(sweep, "dp", 5, rule="free") == er.select(sweep, "dp", 5, rule="no_loss")
    assert er.select(sweep, "dp", 5, rule="free").rule == "no_loss"


def test_choosing_where_one_reports_flatters():
    """Every strength is the same but for noise in the gap; the least mean is chosen, and held-out folds show none."""
    rng = np.random.default_rng(1)
    flattered, honest = [], []
    for _ in range(40):
        violation = np.clip(0.3 + rng.normal(0, 0.05, (4, 5)), 0, 1).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            choice = er.select(
                made({"amortized": (flat(*[0.8] * 4, folds=5), violation, flat(*[0.9] * 4, folds=5))}), "dp"
            )
        flattered.append(choice.chosen.violation)
        honest.append(choice.held_out.violation)
    assert np.mean(flattered) < 0.3 - 0.015
    assert abs(np.mean(honest) - 0.3) < 0.01


def test_four_fifths_takes_the_best_quality_that_meets_it():
    sweep = made({"amortized": (flat(0.8, 0.7, 0.75, 0.5), flat(0.4, 0.3, 0.2, 0.1), flat(0.5, 0.8, 0.85, 0.9))})
    assert er.select(sweep, "dp", rule="four_fifths").strength == 1.0
    already = made({"amortized": (flat(0.8, 0.9), flat(0.4, 0.1), flat(0.81, 0.9))})
    choice = er.select(already, "dp", rule="four_fifths")
    assert (choice.strength, choice.qualified) == (0.0, True)
    assert "which is the baseline, has the best NDCG@5 of those that meet the four-fifths rule." in choice.verdict()


def test_four_fifths_that_does_not_hold_on_other_folds_is_said():
    ratio = [[0.5] * 3, [0.9, 0.78, 0.75], [0.7, 0.82, 0.9]]
    sweep = made({"amortized": (flat(0.8, 0.79, 0.7), flat(0.4, 0.3, 0.2), ratio)})
    choice = er.select(sweep, "dp", rule="four_fifths")
    assert choice.qualified
    assert choice.held_out.ratio < 0.8
    assert choice.holds is False
    assert choice.text().endswith("There the four-fifths rule is not met, so what was seen may be chance.")


def test_a_gap_that_does_not_fall_on_other_folds_is_said():
    violation = [[0.3] * 3, [0.0, 0.3, 0.59], [0.6, 0.0, 0.28]]  # each is the best on some folds and bad on the rest
    choice = er.select(made({"amortized": (flat(0.8, 0.8, 0.8), violation, flat(0.5, 0.5, 0.5))}), "dp")
    assert (choice.qualified, choice.strength) == (True, 1.0)
    assert choice.held_out.picks == {0: ("amortized", 1.0), 1: ("amortized", 0.1), 2: ("amortized", 0.1)}
    assert choice.held_out.violation == pytest.approx((0.6 + 0.3 + 0.59) / 3)
    assert choice.holds is False
    assert choice.text().endswith("There the gap does not fall, so what was seen may be chance.")


def test_nothing_meets_the_four_fifths_rule():
    sweep = made({"amortized": (flat(0.8, 0.7, 0.6), flat(0.4, 0.3, 0.2), flat(0.3, 0.72, 0.6))})
    says = (
        r"no strength meets the four-fifths rule \(nearest: amortized, strength 0.1: 0.720\). Left at the baseline: amo"
    )
    with pytest.warns(DataWarning, match=says):
        choice = er.select(sweep, "dp", rule="four_fifths")
    assert (choice.qualified, choice.strength, choice.nearest.strength) == (False, 0.0, 0.1)
    assert choice.chosen == choice.baseline


def test_within_is_relative_to_the_best_quality():
    # The best is 0.8 at strength 0.1; 5 % of it is 0.04.
    sweep = made({"amortized": (flat(0.78, 0.8, 0.761, 0.759), flat(0.4, 0.3, 0.2, 0.1), flat(*[0.5] * 4))})
    assert er.select(sweep, "dp", rule="within", tolerance=0.05).strength == 1.0
    assert er.select(sweep, "dp", rule="within", tolerance=0.1).strength == 10.0
    assert "with NDCG@5 within 5% of the best" in er.select(sweep, "dp", rule="within", tolerance=0.05).text()


def test_knee_is_where_quality_begins_to_fall():
    sweep = made({"amortized": (flat(0.8, 0.79, 0.78, 0.5), flat(0.4, 0.25, 0.1, 0.05), flat(*[0.5] * 4))})
    assert er.select(sweep, "dp", rule="knee").strength == 1.0


@pytest.mark.parametrize(
    ("quality", "violation"),
    [
        ((0.8, 0.75, 0.7), (0.4, 0.3, 0.2)),  # a straight line
        ((0.8, 0.6, 0.59), (0.4, 0.35, 0.1)),  # bends the other way
        ((0.8, 0.7), (0.4, 0.2)),  # two points
        ((0.8, 0.9, 0.85), (0.4, 0.6, 0.5)),  # better, but less fair
    ],
)
def test_no_knee(quality, violation):
    sweep = made({"amortized": (flat(*quality), flat(*violation), flat(*[0.5] * len(quality)))})
    with pytest.warns(DataWarning, match="the trade-off between gap and NDCG@5 has no knee"):
        assert er.select(sweep, "dp", rule="knee").qualified is False


@pytest.mark.parametrize("rule", ["no_loss", "within"])
def test_a_strength_that_lowers_nothing_does_not_qualify(rule):
    sweep = made({"amortized": (flat(0.8, 0.9, 0.2), flat(0.3, 0.3, 0.1), flat(0.5, 0.5, 0.5))})
    with pytest.warns(
        DataWarning, match=r"no strength lowers the gap with.* Left at the baseline: amortized, strength 0"
    ):
        choice = er.select(sweep, "dp", rule=rule)
    assert (choice.strength, choice.qualified, choice.nearest) == (0.0, False, None)


def test_the_four_fifths_rule_needs_no_gap():
    nothing = flat(math.nan, math.nan, math.nan)
    sweep = made({"amortized": (flat(0.8, 0.8, 0.8), nothing, flat(0.5, 0.6, 0.7))})
    with pytest.warns(DataWarning, match=r"no strength meets the four-fifths rule \(nearest: amortized, strength "):
        er.select(sweep, "dp", rule="four_fifths")


def test_a_quality_that_is_not_defined():
    nothing = flat(math.nan, math.nan, math.nan)
    sweep = made({"amortized": (nothing, flat(0.3, 0.2, 0.1), flat(0.5, 0.5, 0.5))})
    with pytest.warns(DataWarning, match="NDCG@5 is not defined; no query has a relevant item"):
        er.select(sweep, "dp")


@pytest.mark.parametrize("rule", RULES)
def test_a_gap_that_is_not_defined(rule):
    nothing = flat(math.nan, math.nan, math.nan)
    sweep = made({"amortized": (flat(0.8, 0.8, 0.8), nothing, nothing)})
    with pytest.warns(DataWarning, match="the gap is not defined; the queries lack items of a group"):
        choice = er.select(sweep, "dp", rule=rule)
    assert (choice.strength, choice.qualified) == (0.0, False)
    assert np.isnan(choice.held_out.violation)
    assert choice.text() == choice.verdict()


def test_one_fold_allows_no_loss_and_has_nothing_held_out():
    sweep = made(
        {"amortized": (flat(0.8, 0.79, 0.81, folds=1), flat(0.4, 0.1, 0.2, folds=1), flat(*[0.5] * 3, folds=1))}
    )
    choice = er.select(sweep, "dp")
    assert (choice.strength, choice.held_out, choice.holds) == (1.0, None, None)
    assert choice.text().endswith(
        "The figures are of the queries it was chosen on, which flatter it; measure it on others."
    )


def test_seeds_share_queries_so_nothing_is_held_out():
    table = (flat(0.8, 0.8), flat(0.4, 0.1), flat(0.5, 0.9))
    assert er.select(made({"amortized": table}, {"repeats": "seeds"}), "dp").held_out is None
    assert er.select(made({"amortized": table}, {"repeats": "folds"}), "dp").held_out is not None


def test_several_methods_are_held_against_one_named_baseline():
    tables = {
        "amortized": (flat(0.8, 0.8), flat(0.4, 0.3), flat(0.5, 0.6)),
        "deltr:any": (flat(0.7, 0.7), flat(0.2, 0.1), flat(0.5, 0.6)),  # its own strength 0 is worse
        "fastar:any": (flat(0.8, 0.8), flat(0.4, 0.2), flat(0.5, 0.6)),
    }
    sweep = made(tables)
    choice = er.select(sweep, "dp")
    assert (choice.method, choice.strength, choice.baseline.method) == ("fastar", 0.1, "amortized")
    assert "(against amortized, strength 0)" in choice.text()
    assert er.select(sweep, "dp", methods=["deltr", "amortized"]).baseline.method == "amortized"  # the sweep's first
    against = er.select(sweep, "dp", baseline="deltr")
    assert (against.method, against.baseline.method, against.baseline.violation) == (
        "deltr",
        "deltr",
        pytest.approx(0.2),
    )
    with pytest.raises(ConfigError, match="baseline must be one of amortized; got 'deltr'"):
        er.select(sweep, "dp", methods="amortized", baseline="deltr")
    alone = er.select(sweep, "dp", methods="deltr")
    assert (alone.method, alone.strength, alone.baseline.violation) == ("deltr", 0.1, pytest.approx(0.2))


def test_the_baseline_is_the_same_in_every_fold():
    """Another method's strength 0 is better in some folds; what is held out is against the named one all the same."""
    tables = {
        "amortized": ([[0.8, 0.7, 0.8]] * 2, flat(0.4, 0.3), flat(0.5, 0.6)),
        "fastar:any": ([[0.7, 0.9, 0.9]] * 2, flat(0.2, 0.1), flat(0.5, 0.6)),
    }
    choice = er.select(made(tables), "dp")
    assert choice.baseline.method == choice.held_out.before.method == "amortized"
    assert choice.held_out.before.violation == pytest.approx(0.4)
    assert choice.held_out.before.quality == pytest.approx(choice.baseline.quality) == pytest.approx(2.3 / 3)


def test_alpha_star_is_the_first_strength_of_the_flat_part():
    tables = {
        "amortized": (flat(0.8, 0.7, 0.5, 0.5), flat(0.4, 0.2, 0.3, 0.3), flat(0.5, 0.9, 0.8, 0.8)),
        "centered": (flat(0.8, 0.7, 0.6, 0.6), flat(0.4, 0.2, 0.0, 0.0), flat(0.5, 0.9, 1.0, 1.0)),
        "fastar:any": (flat(0.8, 0.8, 0.8, 0.8), flat(0.4, 0.1, 0.1, 0.1), flat(0.5, 0.9, 0.9, 0.9)),
    }
    sweep = made(tables)
    # The first method's, although others do better: nothing is chosen by what is measured.
    choice = er.select(sweep, "dp", rule="alpha_star")
    assert (choice.method, choice.strength, choice.qualified) == ("amortized", 1.0, True)
    assert set(choice.held_out.picks.values()) == {("amortized", 1.0)}
    assert "has a training gap of 0, whatever the outcome: gap 0.400 → 0.300" in choice.text()
    assert er.select(sweep, "dp", rule="alpha_star", methods="centered").strength == 1.0
    for methods, about in (("fastar", {}), ("amortized", {"solver": "gd"})):
        with pytest.warns(DataWarning, match="no strength is known to reach a training gap of 0"):
            assert not er.select(made(tables, about), "dp", rule="alpha_star", methods=methods).qualified
    # One fold that still changes moves the end for all.
    tables["amortized"][1][2][1] = 0.31
    with pytest.warns(DataWarning, match="strengths beyond it"):
        er.select(made(tables), "dp", rule="alpha_star", methods="amortized")


def test_alpha_star_of_a_real_sweep_is_that_of_the_path():
    data = er.datasets.german_credit("age", lists=60)
    sweep = er.sweep(data, ["centered"], ["dp"], ks=[5], folds=er.datasets.german_credit_folds(data))
    choice = er.select(sweep, "dp", rule="alpha_star")
    fold = er.datasets.german_credit_folds(data)
    stars = [er.fairness_path(data.take(fold != f), "dp", [1.0], target="centered").alpha_star[0] for f in range(5)]
    grid = np.unique(sweep.columns["strength"])
    assert choice.strength == grid[grid >= max(stars)][0]


def test_only_folds_that_all_methods_have_are_compared():
    """An unfinished run: the second method lacks the last fold."""
    one = ([[0.8, 0.8, 0.1], [0.8, 0.8, 0.1]], flat(0.4, 0.3), flat(0.5, 0.6))
    sweep = made(
        {"amortized": one, "fastar:any": (flat(0.8, 0.8, folds=2), flat(0.4, 0.2, folds=2), flat(0.5, 0.6, folds=2))}
    )
    choice = er.select(sweep, "dp")
    assert choice.baseline.quality == pytest.approx(0.8)
    assert list(choice.held_out.picks) == [0, 1]
    assert er.select(sweep, "dp", methods="amortized").baseline.quality == pytest.approx(1.7 / 3)


def test_quality_and_k():
    sweep = made({"amortized": (flat(0.8, 0.8), flat(0.4, 0.1), flat(0.5, 0.9))}, ks=(5, 1))
    assert er.select(sweep, "dp").k == 5
    choice = er.select(sweep, "dp", 1, quality="precision")
    assert (choice.quality_name, choice.chosen.quality) == ("precision@1", pytest.approx(0.4))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rule": "best"}, "rule must be one of no_loss, four_fifths, within, knee, alpha_star; got 'best'"),
        ({"tolerance": 1}, "tolerance must be a share from 0 to below 1; got 1"),
        ({"tolerance": "x"}, "tolerance must be a share from 0 to below 1; got 'x'"),
        ({"methods": ["magic"]}, "the sweep has no curve for demographic_parity at k=5, method 'magic'"),
        ({"grouping": "hair"}, "grouping 'hair'"),
        ({"k": 7}, "at k=7"),
        ({"quality": "recall"}, "'recall'"),
        ({"notion": "eop"}, "no curve for equal_opportunity"),
        ({"notion": "fair"}, "notion must be one of"),
    ],
)
def test_options_that_cannot_be_used(options, says):
    sweep = made({"amortized": (flat(0.8, 0.8), flat(0.4, 0.1), flat(0.5, 0.9))})
    with pytest.raises(ConfigError, match=says):
        er.select(sweep, options.pop("notion", "dp"), **options)


def test_train_and_test_go_together():
    sweep = made({"amortized": (flat(0.8, 0.8), flat(0.4, 0.1), flat(0.5, 0.9))})
    with pytest.raises(ConfigError, match="train and test go together"):
        er.select(sweep, "dp", train=er.datasets.german_credit("age", lists=5))


# ---------------------------------------------------------------------- a real sweep


@pytest.fixture(scope="module")
def split():
    data = er.datasets.german_credit("age", lists=120, items=15)
    held = data.folds(4, 3) == 0
    return data.take(~held), data.take(held)


@pytest.fixture(scope="module")
def real(split):
    settings = {"amortized": {"ridge": 0.01}}
    strengths = {"amortized": [0.05, 0.1, 0.3], "fastar": [0.2, 0.4]}
    return er.sweep(split[0], ["amortized", "fastar"], ["dp"], strengths, [5], folds=4, settings=settings)


def test_the_choice_is_the_curves_best(real):
    choice = er.select(real, "dp", methods="amortized")
    curve = real.curve("dp", 5)
    assert curve.best > 0
    assert choice.strength == curve.strengths[curve.best]
    assert choice.chosen.violation == pytest.approx(curve.violation[curve.best])


@pytest.mark.parametrize("method", ["amortized", "fastar"])
def test_the_choice_is_trained_and_compared_on_queries_that_took_no_part(real, split, method):
    train, test = split
    choice = er.select(real, "dp", methods=method, rule="within", tolerance=0.5, train=train, test=test)
    assert choice.strength > 0
    ridge = 0.01 if method == "amortized" else 0.0
    before = er.FairLinearRanker("dp", 0.0, ridge=ridge).fit(train).predict(test)
    if method == "amortized":
        after = er.FairLinearRanker("dp", choice.strength, ridge=ridge).fit(train).predict(test)
    else:
        after = er.FAStar(choice.strength, protected="25 or younger").rerank(before, test, 5)
    expected = er.compare(before, after, test, ["dp@5", "ndcg@5", "four_fifths@5"])
    for found, one in zip(choice.test, expected, strict=True):
        for name in ("a", "b", "difference", "low", "high"):
            assert getattr(found, name) == pytest.approx(getattr(one, name), abs=1e-9)
    assert f"demographic_parity@5 {expected[0].a:.3f} → {expected[0].b:.3f} (change " in choice.text()


def test_each_grouping_is_chosen_for_alone():
    data = er.datasets.german_credit("age", lists=40, items=12)
    sex = data.with_group(["even" if item % 2 else "odd" for item in range(data.n_rows)])
    both = er.sweep({"age": data, "parity": sex}, notions=["dp"], strengths=[0.1, 1], ks=[3], folds=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, one in (("age", data), ("parity", sex)):
            alone = er.sweep(one, notions=["dp"], strengths=[0.1, 1], ks=[3], folds=4)
            found, expected = er.select(both, "dp", grouping=name), er.select(alone, "dp")
            assert (found.strength, found.grouping) == (expected.strength, name)
            assert found.baseline.violation == pytest.approx(expected.baseline.violation)
        assert er.select(both, "dp").grouping == "age"
        assert er.select(both, "dp").text().startswith("Demographic parity at 3 (age): ")
