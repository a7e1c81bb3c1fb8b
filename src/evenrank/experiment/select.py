"""`select`: choose one strength of a sweep by a stated rule, and estimate honestly what it gives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

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
from evenrank.measures import MeasureLike, ask
from evenrank.methods.filling import run
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS, Notion, NotionLike, as_notion


def select(
    sweep: Sweep,
    notion: NotionLike,
    k: int | None = None,
    *,
    gap: MeasureLike | None = None,
    rule: str = "no_loss",
    tolerance: float = 0.01,
    quality: MeasureLike = "ndcg",
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
    notion : str or Notion
        The notion that models were trained for, and whose gap counts.
    gap : str, Notion or callable, optional
        One of the sweep's ``measures``, to count instead of that gap. If higher is better, its distance from its fair
        value counts.
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
    quality : str or callable
        "ndcg" or "precision", or one of the sweep's ``measures``.
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
    name, k = sweep.notion_name(notion), max(sweep.ks) if k is None else k
    columns = _columns(sweep, name, k, gap, quality)
    chosen = [methods] if isinstance(methods, str) else list(methods or sweep.methods)
    grouping = sweep.groupings[0] if grouping is None else grouping
    for method in chosen:  # or the error that says which curves there are
        sweep.curve(
            name, k, method=method, quality="ndcg" if columns.quality_given else str(quality), grouping=grouping
        )
    against = next(method for method in sweep.methods if method in chosen) if baseline is None else baseline
    table, folds = _table(sweep, name, k, columns, chosen, grouping, choose(against, chosen, what="baseline"))
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
        quality_name=columns.quality,
        grouping=grouping,
        qualified=picked is not None,
        chosen=_outcome(table, means, row),
        baseline=_outcome(table, means, means.base),
        nearest=None if near is None else _outcome(table, means, near),
        held_out=_held_out(table, folds, RULES[rule], tolerance) if _by_fold(sweep) and len(folds) > 1 else None,
        gap_name=columns.gap_words,
    )
    if train is not None and test is not None:
        own = {} if isinstance(notion, str) else {name: as_notion(notion)}
        if name not in own and name not in NOTIONS:
            raise ConfigError(f"train and test need the notion {name!r} itself; give the Notion instead of its name.")
        counted = ((own[name], k) if own else f"{name}@{k}") if gap is None else gap
        compared = [counted, quality if columns.quality_given else columns.quality, f"{RATIO}@{k}"]
        choice = replace(choice, test=_tested(sweep, choice, train, test, own, compared))
    if not choice.qualified:
        warnings.warn(choice.verdict(), DataWarning, stacklevel=2)
    return choice


class _Columns(NamedTuple):
    """Which columns of the sweep are chosen by, and what makes a gap of one: ``sign · value + shift``."""

    quality: str
    gap: str
    quality_given: bool
    gap_words: str = ""
    sign: float = 1.0
    shift: float = 0.0


def _columns(sweep: Sweep, notion: str, k: int, gap: MeasureLike | None, quality: MeasureLike) -> _Columns:
    given = not isinstance(quality, str) or quality in sweep.columns
    quality_name = ask(quality)[0] if given else f"{quality}@{k}"
    if given and ask(quality)[1].measure.best != "high":
        raise ConfigError(f"quality must be a measure of which higher is better; got {quality_name!r}.")
    if gap is None:
        columns = _Columns(quality_name, f"{notion}@{k}", given)
    else:
        gap_name, asked = ask(gap)
        fair = asked.measure.fair_value
        if asked.measure.best == "low":
            columns = _Columns(quality_name, gap_name, given, gap_name)
        elif fair is None:
            raise ConfigError(f"gap must be a measure with lower as its better end or a fair value; got {gap_name!r}.")
        else:
            words = f"{fair:g} − {gap_name}" if fair else f"−{gap_name}"
            columns = _Columns(quality_name, gap_name, given, words, -1.0, fair)
    for column in (columns.quality, columns.gap) if given or gap is not None else ():
        if column not in sweep.columns:
            raise ConfigError(f"the sweep did not measure {column!r}; give it to sweep(measures=[…]).")
    return columns


def _by_fold(sweep: Sweep) -> bool:
    """Whether repeats test different queries; those of seeds share them."""
    return sweep.about.repeats == "folds"


def _table(
    sweep: Sweep, notion: str, k: int, wanted: _Columns, methods: Sequence[str], grouping: str, baseline: str
) -> tuple[Table, list[int]]:
    """The rows to choose from, and the folds of the columns; repeats that not every method has yet are left out."""
    columns = {}
    for method in methods:
        of = {
            name: sweep.by_repeat(name, notion, method=method, grouping=grouping)
            for name in ("fold", "seed", wanted.quality, wanted.gap, f"{RATIO}@{k}")
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
        quality=stacked(wanted.quality),
        violation=wanted.sign * stacked(wanted.gap) + wanted.shift,
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


def _tested(
    sweep: Sweep,
    choice: Choice,
    train: RankingData,
    test: RankingData,
    own: dict[str, Notion],
    measures: Sequence[MeasureLike],
) -> tuple[Comparison, ...]:
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
            own={name: notion for name, notion in own.items() if name not in NOTIONS},
        )
        method = METHODS[outcome.method]
        scores.append(next(iter(run(method, task))).scores[:, -1])
    before, after = scores
    return tuple(compare(before, after, test, measures))
