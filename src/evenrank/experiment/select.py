"""`select`: choose one strength of a sweep by a stated rule, and estimate honestly what it gives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.comparisons import Comparison, compare
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.experiment.choice import RATIO, Choice, HeldOut, Outcome
from evenrank.experiment.curves import mean_and_error
from evenrank.experiment.select_rules import RULES, Means, Rule, Table, current_rule, least
from evenrank.experiment.trials import Sweep
from evenrank.methods.filling import run
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS
from evenrank.notions import as_notion


def select(
    sweep: Sweep,
    notion: str,
    k: int | None = None,
    *,
    rule: str = "no_loss",
    tolerance: float = 0.01,
    quality: str = "ndcg",
    methods: Sequence[str] | str | None = None,
    baseline: str | None = None,
    grouping: str | None = None,
    train: RankingData | None = None,
    test: RankingData | None = None,
) -> Choice:
    """Choose a strength (and, among several, a method) by a rule, and say honestly what to expect of it.

    Choosing and reporting on the same folds flatters the choice. ``held_out`` therefore repeats the choice without each
    fold in turn and measures it there; the strength to use is the choice on all folds.

    Parameters
    ----------
    sweep : Sweep
        What to choose from.
    notion : str
        The notion whose gap counts.
    k : int, optional
        The cut-off; the largest of the sweep by default.
    rule : str
        "no_loss": the smallest gap at no significant quality loss (the paper's rule).
        "four_fifths": the best quality where the four-fifths rule is met.
        "within": the smallest gap whose quality is at least (1 − tolerance) × the best.
        "knee": the front's point farthest from the line between its ends.
        "alpha_star": the strength at which the training gap is 0, whatever the outcome: nothing is selected by what is
        measured. It is known where the sweep trained exactly and goes beyond it, where its curves are flat.
        For "no_loss", "within" and "knee" a strength must lower the gap. "no_loss" is also known as "free".
    tolerance : float
        For "within": the share of the best quality that may be lost.
    quality : str
        "ndcg" or "precision".
    methods : str or sequence of str, optional
        Which to choose from; all by default.
    baseline : str, optional
        The method whose strength 0 is what choices are held against, on all folds and on each; the first of the
        sweep's that may be chosen, by default.
    grouping : str, optional
        The first of the sweep by default.
    train, test : RankingData, optional
        Train the choice and the baseline on ``train`` and compare them on ``test``, queries that took no part in the
        sweep, with intervals.

    Returns
    -------
    Choice
        The strength to use. If no strength qualifies, a `DataWarning` says so and the choice is the baseline.

    Raises
    ------
    ConfigError
        If an option is not one of its choices, or the sweep has no such curve.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=100)
    >>> result = er.sweep(data, notions=["dp"], ks=[5], folds=er.datasets.german_credit_folds(data))
    >>> choice = er.select(result, "dp", 5, rule="within", tolerance=0.02)
    >>> choice.qualified, choice.chosen.violation < choice.baseline.violation
    (True, True)
    """
    rule = choose(current_rule(rule), RULES, what="rule")
    if not isinstance(tolerance, int | float) or not 0 <= tolerance < 1:
        raise ConfigError(f"tolerance must be a share from 0 to below 1; got {tolerance!r}.")
    if (train is None) != (test is None):
        raise ConfigError("train and test go together; give both or neither.")
    name, k = as_notion(notion).name, max(sweep.ks) if k is None else k
    chosen = [methods] if isinstance(methods, str) else list(methods or sweep.methods)
    grouping = sweep.groupings[0] if grouping is None else grouping
    for method in chosen:  # or the error that says which curves there are
        sweep.curve(name, k, method=method, quality=quality, grouping=grouping)
    against = next(method for method in sweep.methods if method in chosen) if baseline is None else baseline
    table, folds = _table(sweep, name, k, quality, chosen, grouping, choose(against, chosen, what="baseline"))
    everything = np.arange(table.quality.shape[1])
    means = table.means(everything)
    picked = RULES[rule].pick(means, tolerance)
    near = None
    if rule == RATIO and picked is None:
        near = least(-means.ratio, np.ones(len(means.ratio), bool))
    row = means.base if picked is None else picked
    choice = Choice(
        rule=rule,
        tolerance=float(tolerance),
        notion=name,
        k=k,
        quality_name=f"{quality}@{k}",
        grouping=grouping,
        qualified=picked is not None,
        chosen=_outcome(table, means, row),
        baseline=_outcome(table, means, means.base),
        nearest=None if near is None else _outcome(table, means, near),
        held_out=_held_out(table, folds, RULES[rule], tolerance) if _by_fold(sweep) and len(folds) > 1 else None,
    )
    if train is not None and test is not None:
        choice = replace(choice, test=_tested(sweep, choice, train, test))
    if not choice.qualified:
        warnings.warn(choice.verdict(), DataWarning, stacklevel=2)
    return choice


def _by_fold(sweep: Sweep) -> bool:
    """Whether repeats test different queries; those of seeds share them."""
    return sweep.about.repeats == "folds"


def _table(
    sweep: Sweep, notion: str, k: int, quality: str, methods: Sequence[str], grouping: str, baseline: str
) -> tuple[Table, list[int]]:
    """The rows to choose from, and the folds of the columns; repeats that not every method has yet are left out."""
    columns = {}
    for method in methods:
        of = {
            name: sweep.by_repeat(name, notion, method=method, grouping=grouping)
            for name in ("fold", "seed", f"{quality}@{k}", f"{notion}@{k}", f"{RATIO}@{k}")
        }
        columns[method] = of
    repeats = [
        list(zip(of["fold"][1][0].astype(int).tolist(), of["seed"][1][0].astype(int).tolist(), strict=True))
        for of in columns.values()
    ]
    shared = [repeat for repeat in repeats[0] if all(repeat in other for other in repeats)]
    if not shared:
        raise ConfigError(f"methods {list(methods)} have no finished fold in common. Finish the sweep, or choose one.")

    def stacked(name: str) -> NDArray[np.float64]:
        parts = zip(columns.values(), repeats, strict=True)
        return np.vstack([of[name][1][:, [present.index(repeat) for repeat in shared]] for of, present in parts])

    strengths = [of["fold"][0] for of in columns.values()]
    of_row = np.repeat(np.array(list(methods), dtype=object), [len(grid) for grid in strengths])
    strength = np.concatenate(strengths)
    solved = sweep.about.solver == "exact"
    table = Table(
        method=of_row,
        strength=strength,
        quality=stacked(f"{quality}@{k}"),
        violation=stacked(f"{notion}@{k}"),
        ratio=stacked(f"{RATIO}@{k}"),
        spread=sweep.spread,
        base=int(np.flatnonzero((of_row == baseline) & (strength == 0))[0]),
        exact=np.array([solved and name in METHODS and METHODS[name].has_exact_path for name in of_row.tolist()]),
    )
    return table, [fold for fold, _ in shared]


def _outcome(table: Table, means: Means, row: int) -> Outcome:
    values = (means.quality[row], means.violation[row], means.ratio[row])
    return Outcome(str(table.method[row]), float(table.strength[row]), *map(float, values))


def _held_out(table: Table, folds: Sequence[int], rule: Rule, tolerance: float) -> HeldOut:
    """Measure on each fold what the other folds choose: their baseline if nothing qualifies there."""
    rows = []
    for column in range(len(folds)):
        means = table.means(np.delete(np.arange(len(folds)), column))
        picked = rule.pick(means, tolerance)
        rows.append(means.base if picked is None else picked)
    each = np.arange(len(folds))
    names = ("quality", "violation", "ratio")
    after = {name: mean_and_error(getattr(table, name)[rows, each][None]) for name in names}
    before = {name: mean_and_error(getattr(table, name)[table.base][None])[0] for name in names}
    return HeldOut(
        quality=float(after["quality"][0][0]),
        quality_error=float(after["quality"][1][0]),
        violation=float(after["violation"][0][0]),
        violation_error=float(after["violation"][1][0]),
        ratio=float(after["ratio"][0][0]),
        before=Outcome(str(table.method[table.base]), 0.0, *(float(before[name][0]) for name in names)),
        picks={
            fold: (str(table.method[row]), float(table.strength[row])) for fold, row in zip(folds, rows, strict=True)
        },
    )


def _tested(sweep: Sweep, choice: Choice, train: RankingData, test: RankingData) -> tuple[Comparison, ...]:
    """The baseline and the choice trained on ``train`` as the sweep trained them, compared on ``test``."""
    scores = []
    for outcome in (choice.baseline, choice.chosen):
        strengths = np.unique([0.0, outcome.strength])
        task = Task(
            train=(train,),
            test=(test,),
            notions=(choice.notion,),
            strengths=strengths,
            ks=(choice.k,),
            solver=sweep.about.solver,
            scale=sweep.about.scale,
            seed=sweep.about.seed,
            settings=sweep.about.settings.get(outcome.method, {}),
        )
        method = METHODS[outcome.method]
        scores.append(next(iter(run(method, task))).scores[:, -1])
    before, after = scores
    measures = [f"{choice.notion}@{choice.k}", choice.quality_name, f"{RATIO}@{choice.k}"]
    return tuple(compare(before, after, test, measures))
