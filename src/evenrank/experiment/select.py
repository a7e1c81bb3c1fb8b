"""`select`: one strength of a sweep by a stated rule, and an honest estimate of what it gives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.comparisons import Comparison, compare
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.experiment.curves import mean_and_error
from evenrank.experiment.select_rules import RULES, Means, Rule, Table, current_rule, least
from evenrank.experiment.sweep import ONE
from evenrank.experiment.trials import Sweep
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS
from evenrank.notions import as_notion
from evenrank.wording import FOUR_FIFTHS

RATIO = "four_fifths"


@dataclass(frozen=True)
class Outcome:
    """What a strength gives, averaged over repeats: quality, violation, and the four-fifths ratio."""

    method: str
    strength: float
    quality: float
    violation: float
    ratio: float


@dataclass(frozen=True)
class HeldOut:
    """Means over folds, each measured with what the *other* folds would have chosen.

    No fold's outcome takes part in the choice that is measured on it. Its rows did train the models that the other
    folds compare, as in any cross-validation without an inner one; ``select(train=…, test=…)`` is free of that too.

    Attributes
    ----------
    picks : fold → (method, strength)
    before : the same folds at the baseline
    """

    quality: float
    quality_error: float
    violation: float
    violation_error: float
    ratio: float
    before: Outcome
    picks: dict[int, tuple[str, float]]


@dataclass(frozen=True)
class Choice:
    """A strength and why; see `select`.

    Attributes
    ----------
    qualified : whether a strength meets the rule; if not, ``method`` and ``strength`` are the baseline's
    chosen, baseline : means over all repeats, which took part in the choice and so flatter it
    nearest : the strength with the highest four-fifths ratio, if that rule is not met
    held_out : the honest estimate from folds, or None where repeats share queries or there is one only
    test : on the test data, the baseline (a) against the choice (b), with intervals; or None
    """

    rule: str
    tolerance: float
    notion: str
    k: int
    quality_name: str
    grouping: str
    qualified: bool
    chosen: Outcome
    baseline: Outcome
    nearest: Outcome | None = None
    held_out: HeldOut | None = None
    test: tuple[Comparison, ...] | None = None

    @property
    def method(self) -> str:
        return self.chosen.method

    @property
    def strength(self) -> float:
        return self.chosen.strength

    @property
    def holds(self) -> bool | None:
        """Whether what was chosen shows on the held-out folds: a smaller gap, or the four-fifths rule met."""
        if self.held_out is None or not self.qualified:
            return None
        if self.rule == RATIO:
            return self.held_out.ratio >= FOUR_FIFTHS
        return self.held_out.violation < self.held_out.before.violation

    def text(self) -> str:
        """The choice in a few sentences."""
        parts = [self.verdict()]
        if self.held_out is not None and self.qualified:
            before, after = self.held_out.before, self.held_out
            parts.append(f"On folds that took no part in the choice: {self._change(before, after)}.")
            if not self.holds:
                lost = "the four-fifths rule is not met" if self.rule == RATIO else "the gap does not fall"
                parts.append(f"There {lost}, so what was seen may be chance.")
        elif self.held_out is None and self.test is None:
            parts.append("The figures are of the queries it was chosen on, which flatter it; measure it on others.")
        if self.test is not None:
            changes = (
                f"{one.measure} {_three(one.a)} → {_three(one.b)} "
                f"(change {one.difference:+.3f}, {one.confidence:.0%} interval {one.low:+.3f} to {one.high:+.3f})"
                for one in self.test
            )
            parts.append(f"On the test data: {', '.join(changes)}.")
        return " ".join(parts)

    def verdict(self) -> str:
        """The first sentence: what was chosen, or that nothing qualifies."""
        rule = RULES[self.rule]
        words = {"quality": self.quality_name.upper(), "share": f"{100 * self.tolerance:.3g}%"}
        of = f" ({self.grouping})" if self.grouping not in ("", ONE) else ""
        name = f"{self.notion.replace('_', ' ').capitalize()} at {self.k}{of}"
        model = f"{self.method}, strength {self.strength:.3g}"
        if not self.qualified:
            near = self.nearest
            also = (
                "" if near is None else f" (nearest: {near.method}, strength {near.strength:.3g}: {_three(near.ratio)})"
            )
            why = rule.lacking.format(**words)
            if np.isnan(self.baseline.quality):
                why = f"{words['quality']} is not defined; no query has a relevant item"
            elif np.isnan(self.baseline.violation) and near is None:
                why = "the gap is not defined; the queries lack items of a group"
            return f"{name}: {why}{also}. Left at the baseline: {model}."
        if self.strength == 0:
            return f"{name}: {model}, which is the baseline, has {rule.asked.format(**words)}."
        change = self._change(self.baseline, self.chosen)
        return f"{name}: {model}, has {rule.asked.format(**words)}: {change}."

    def _change(self, before: Outcome, after: Outcome | HeldOut) -> str:
        return (
            f"gap {_three(before.violation)} → {_three(after.violation)}, "
            f"{self.quality_name.upper()} {_three(before.quality)} → {_three(after.quality)}, "
            f"four-fifths ratio {_three(before.ratio)} → {_three(after.ratio)}"
        )


def _three(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def select(
    sweep: Sweep,
    notion: str,
    k: int | None = None,
    *,
    rule: str = "no_loss",
    tolerance: float = 0.01,
    quality: str = "ndcg",
    methods: Sequence[str] | str | None = None,
    grouping: str | None = None,
    train: RankingData | None = None,
    test: RankingData | None = None,
) -> Choice:
    """Choose a strength (and, among several, a method) by a rule, and say honestly what to expect of it.

    Choosing and reporting on the same folds flatters the choice. ``held_out`` therefore repeats the choice without each
    fold in turn and measures it there; the strength to use is the choice on all folds.

    Parameters
    ----------
    k : the cut-off; the largest of the sweep by default
    rule : "free": the smallest violation with no significant loss of quality (the paper's rule, against the best
        strength 0); "four_fifths": the best quality where the four-fifths rule is met; "within": the smallest violation
        whose quality is at least (1 − tolerance) × the best; "knee": the front's point farthest from the line between
        its ends
    quality : "ndcg" or "precision"
    methods, grouping : which to choose from; all methods, the first grouping
    train, test : train the choice and the baseline on ``train`` and compare them on ``test``, queries that took no part
        in the sweep, with intervals

    A strength that does not lower the violation does not qualify for "free", "within" and "knee". If none qualifies, a
    `DataWarning` says so and the choice is the baseline.

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
    table, folds = _table(sweep, name, k, quality, chosen, grouping)
    everything = np.arange(table.quality.shape[1])
    means = table.means(everything)
    picked = RULES[rule].pick(means, tolerance)
    near = None
    if rule == RATIO and picked is None:
        near = least(-means.ratio, np.ones(len(means.ratio), bool))
    row = means.base if picked is None else picked
    made = Choice(
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
        made = replace(made, test=_tested(sweep, made, train, test))
    if not made.qualified:
        warnings.warn(made.verdict(), DataWarning, stacklevel=2)
    return made


def _by_fold(sweep: Sweep) -> bool:
    """Whether repeats test different queries; those of seeds share them."""
    return bool(sweep.about.get("repeats", "folds") == "folds")


def _table(
    sweep: Sweep, notion: str, k: int, quality: str, methods: Sequence[str], grouping: str
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
        return np.vstack([of[name][1][:, [own.index(repeat) for repeat in shared]] for of, own in parts])

    strengths = [of["fold"][0] for of in columns.values()]
    table = Table(
        method=np.repeat(np.array(list(methods), dtype=object), [len(one) for one in strengths]),
        strength=np.concatenate(strengths),
        quality=stacked(f"{quality}@{k}"),
        violation=stacked(f"{notion}@{k}"),
        ratio=stacked(f"{RATIO}@{k}"),
        spread=sweep.spread,
    )
    return table, [fold for fold, _ in shared]


def _outcome(table: Table, means: Means, row: int) -> Outcome:
    values = (means.quality[row], means.violation[row], means.ratio[row])
    return Outcome(str(table.method[row]), float(table.strength[row]), *map(float, values))


def _held_out(table: Table, folds: Sequence[int], rule: Rule, tolerance: float) -> HeldOut:
    """For each fold the choice of the others, which is their baseline if nothing qualifies there."""
    rows, bases = [], []
    for column in range(len(folds)):
        means = table.means(np.delete(np.arange(len(folds)), column))
        picked = rule.pick(means, tolerance)
        rows.append(means.base if picked is None else picked)
        bases.append(means.base)
    each = np.arange(len(folds))
    names = ("quality", "violation", "ratio")
    after = {name: mean_and_error(getattr(table, name)[rows, each][None]) for name in names}
    before = {name: mean_and_error(getattr(table, name)[bases, each][None])[0] for name in names}
    methods = list(dict.fromkeys(table.method[bases].tolist()))
    return HeldOut(
        quality=float(after["quality"][0][0]),
        quality_error=float(after["quality"][1][0]),
        violation=float(after["violation"][0][0]),
        violation_error=float(after["violation"][1][0]),
        ratio=float(after["ratio"][0][0]),
        before=Outcome(" or ".join(methods), 0.0, *(float(before[name][0]) for name in names)),
        picks={
            fold: (str(table.method[row]), float(table.strength[row])) for fold, row in zip(folds, rows, strict=True)
        },
    )


def _tested(sweep: Sweep, made: Choice, train: RankingData, test: RankingData) -> tuple[Comparison, ...]:
    """The baseline and the choice trained on ``train`` as the sweep trained them, compared on ``test``."""
    scores = []
    for one in (made.baseline, made.chosen):
        strengths = np.unique([0.0, one.strength])
        task = Task(
            train=(train,),
            test=(test,),
            notions=(made.notion,),
            strengths=strengths,
            ks=(made.k,),
            solver=sweep.about.get("solver", "exact"),
            scale=sweep.about.get("scale", "train"),
            seed=sweep.about.get("seed", 0),
            settings=sweep.about.get("settings", {}).get(one.method, {}),
        )
        method = METHODS[one.method]
        scores.append(next(method.run(method, task)).scores[:, -1])
    before, after = scores
    return tuple(compare(before, after, test, [f"{made.notion}@{made.k}", made.quality_name, f"{RATIO}@{made.k}"]))
