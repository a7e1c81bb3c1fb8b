"""The protocol of a bench: `BenchRunner` trains, chooses and tests.

For every fold the method trains on the other folds and is tested on it. The strength is chosen for that fold on inner
folds: each other fold is tested by models that were trained without it and without the outer fold. A training without
two folds serves both of them, so n folds need n + n (n − 1) / 2 trainings. Methods are given test rows without labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.experiment.plan import Groupings, take_groupings
from evenrank.experiment.recording import recorded
from evenrank.leaderboard.by_fold import FoldMeter, FoldValues, pooled_gap
from evenrank.leaderboard.floor import floor_parts
from evenrank.leaderboard.plan import FLOOR, PLAIN, BenchBlock, BenchPlan
from evenrank.leaderboard.rules import ALL_DATA, BASELINE, FULL, NO_LOSS, chosen_strengths
from evenrank.methods.filling import run
from evenrank.methods.method import ANY, Method, Part, Task
from evenrank.methods.registry import METHODS

Values = dict[tuple[int, ...], dict[int, FoldValues]]  # folds left out of training → fold tested → its values


@dataclass(frozen=True, eq=False)
class Split:
    """Rows without some folds to train on, and the rows of those folds to test on.

    Attributes
    ----------
    folds : tuple of int
        The folds that are left out.
    train, test : tuple of RankingData
        Under each grouping; the test rows carry no labels.
    meter : FoldMeter
        Measures scores of the test rows.
    """

    folds: tuple[int, ...]
    train: tuple[RankingData, ...]
    test: tuple[RankingData, ...]
    meter: FoldMeter


class BenchRunner:
    """Run the blocks of a bench; splits and baselines are kept for the next block of the same data and seed.

    Parameters
    ----------
    plan : BenchPlan
        The plan.
    """

    def __init__(self, plan: BenchPlan) -> None:
        self.plan = plan
        self._kept: tuple[tuple[str, int], dict[str, Any]] | None = None

    def run(self, block: BenchBlock) -> dict[str, Any]:
        """Train, choose and test one block.

        Parameters
        ----------
        block : BenchBlock
            A block of the plan.

        Returns
        -------
        dict
            The block's record in plain values: the results of each rule and of the baseline.
        """
        return recorded(block, lambda: self._results(block))

    def _results(self, block: BenchBlock) -> dict[str, Any]:
        if block.method == FLOOR:
            base = self._plain(block)
            floor = self._floor(block)
            columns = {ALL_DATA: np.zeros((self.plan.folds, *base[0,][0].gap.shape[:3]), np.int64)}
            outer, strengths = floor, np.full((self.plan.folds, 1), np.nan)
        else:
            method = METHODS[block.method]
            values, strengths = self._values(block, method)
            base = self._plain(block) if method.model in ("", METHODS[PLAIN].model) else _first_column(values)
            outer = [values[fold,][fold] for fold in range(self.plan.folds)]
            columns = self._columns(method, values, base)
        base_outer = [base[fold,][fold] for fold in range(self.plan.folds)]
        nothing = np.full((self.plan.folds, *base_outer[0].gap.shape[:3]), BASELINE)
        return {
            "results": [
                {"rule": rule, **row}
                for rule, chosen in columns.items()
                for row in self._rows(block, outer, base_outer, chosen, strengths)
            ],
            "base": self._rows(block, outer, base_outer, nothing, strengths),
        }

    # ------------------------------------------------------------------ training

    def _values(self, block: BenchBlock, method: Method) -> tuple[Values, NDArray[np.float64]]:
        """The method's values by split and fold; and its strengths in each fold, full ones last, (folds, models)."""
        plan, grid = self.plan, self.plan.grids[block.method]
        values: Values = {}
        strengths = []
        for split in self._splits(block):
            if len(split.folds) > 1 and not len(grid):
                continue  # nothing is chosen
            full = [] if method.strength.full is None else [method.strength.full(data) for data in split.train]
            wanted = np.concatenate([grid, full])
            distinct, place = np.unique(wanted, return_inverse=True)
            task = Task(
                train=split.train,
                test=split.test,
                notions=plan.notions,
                strengths=distinct,
                ks=plan.ks,
                solver="exact",
                scale=plan.scale,
                seed=block.seed,
                settings=plan.settings.get(block.method, {}),
            )
            values[split.folds] = _tested(method, task, split, place)
            if len(split.folds) == 1:
                strengths.append(wanted)
        return values, np.stack(strengths)

    def _columns(self, method: Method, values: Values, base: Values) -> dict[str, NDArray[np.int64]]:
        """Rule → the chosen column in each fold and setting, (folds, groupings, notions, ks)."""
        folds, size = range(self.plan.folds), len(self.plan.grids[method.name])
        shape = (len(folds), *values[0,][0].gap.shape[:3])
        columns = {}
        if method.strength.full is not None:
            columns[FULL] = np.broadcast_to(size + np.arange(shape[1])[:, None, None], shape)
        if not size:
            return columns
        chosen = []
        for fold in folds:
            others = [other for other in folds if other != fold]
            pairs = {other: tuple(sorted((fold, other))) for other in others}
            inner = [values[pairs[other]][other] for other in others]
            chosen.append(
                chosen_strengths(
                    [(fold_values.quality[..., :size], fold_values.gap[..., :size]) for fold_values in inner],
                    [(base[pairs[other]][other].quality, base[pairs[other]][other].gap) for other in others],
                )
            )
        return columns | {NO_LOSS: np.stack(chosen)}

    def _plain(self, block: BenchBlock) -> Values:
        """The values of the linear ranker without mitigation."""
        kept = self._for(block)
        if "plain" not in kept:
            kept["plain"], kept["scores"] = {}, {}
            for split in self._splits(block):
                scores = _plain_scores(split, self.plan, block)
                parts = [Part(number, ANY, None, scores) for number in range(len(split.train))]
                kept["plain"][split.folds] = dict(zip(split.folds, split.meter.measure(parts, 1), strict=True))
                if len(split.folds) == 1:
                    kept["scores"][split.folds[0]] = scores[:, 0]
        plain: Values = kept["plain"]
        return plain

    def _floor(self, block: BenchBlock) -> list[FoldValues]:
        """The values of an offset tuned on all rows, the tested ones included, in each fold."""
        kept, plan = self._for(block), self.plan
        groupings, fold_of = tuple(plan.sources[block.data].groupings.values()), kept["fold_of"]
        stored = np.empty(groupings[0].n_rows)
        for fold, of_fold in kept["scores"].items():
            stored[(fold_of == fold)[groupings[0].query_of_row]] = of_fold
        meter = FoldMeter(groupings, fold_of, plan.folds, plan.notions, plan.ks)
        return meter.measure(list(floor_parts(groupings[0].to_caller(stored), groupings, plan.notions, plan.ks)), 1)

    # ------------------------------------------------------------------ splits

    def _for(self, block: BenchBlock) -> dict[str, Any]:
        key = (block.data, block.seed)
        if self._kept is None or self._kept[0] != key:
            self._kept = key, {"fold_of": self.plan.sources[block.data].fold_of(self.plan.folds, block.seed)}
        return self._kept[1]

    def _splits(self, block: BenchBlock) -> list[Split]:
        """One split per fold, and one per pair of folds."""
        kept, folds = self._for(block), range(self.plan.folds)
        if "splits" not in kept:
            groupings, fold_of = self.plan.sources[block.data].groupings, kept["fold_of"]
            left_out: list[tuple[int, ...]] = [*((fold,) for fold in folds), *combinations(folds, 2)]
            kept["splits"] = [_split(groupings, fold_of, out, self.plan) for out in left_out]
        splits: list[Split] = kept["splits"]
        return splits

    def _groupings(self, block: BenchBlock) -> list[str]:
        return list(self.plan.sources[block.data].groupings)

    # ------------------------------------------------------------------ results

    def _rows(
        self,
        block: BenchBlock,
        outer: Sequence[FoldValues],
        base: Sequence[FoldValues],
        columns: NDArray[np.int64],
        strengths: NDArray[np.float64],
    ) -> list[dict[str, Any]]:
        """Per setting: gap and quality in each fold at the chosen columns, and the gap over all folds together."""
        rows = []
        for g, grouping in enumerate(self._groupings(block)):
            for n, notion in enumerate(self.plan.notions):
                for number, k in enumerate(self.plan.ks):
                    chosen = columns[:, g, n, number].tolist()
                    used = [
                        (base[fold], 0) if column == BASELINE else (outer[fold], column)
                        for fold, column in enumerate(chosen)
                    ]
                    selected = [values.selected[g, n][number, :, :, column] for values, column in used]
                    sizes = [values.size[g, n] for values, _ in used]
                    rows.append(
                        {
                            "grouping": grouping,
                            "notion": notion,
                            "k": k,
                            "strength": [
                                float("nan") if column == BASELINE else float(strengths[fold, column])
                                for fold, column in enumerate(chosen)
                            ],
                            "gap": [float(values.gap[g, n, number, column]) for values, column in used],
                            "quality": [float(values.quality[g, n, number, column]) for values, column in used],
                            "pooled": pooled_gap(np.stack(selected), np.stack(sizes)),
                        }
                    )
        return rows


def _split(groupings: Groupings, fold_of: NDArray[np.int64], out: tuple[int, ...], plan: BenchPlan) -> Split:
    inside = np.isin(fold_of, out)
    train, test = take_groupings(groupings, ~inside), take_groupings(groupings, inside)
    meter = FoldMeter(test, np.searchsorted(out, fold_of[inside]), len(out), plan.notions, plan.ks)
    return Split(out, train, tuple(map(_unlabelled, test)), meter)


def _unlabelled(data: RankingData) -> RankingData:
    """The rows with no relevance: what a method does not get it cannot use."""
    return replace(data, relevance=np.zeros(data.n_rows))


def _tested(method: Method, task: Task, split: Split, place: NDArray[np.int64]) -> dict[int, FoldValues]:
    """The values in each tested fold; a method that sees other lists is given one fold at a time."""
    columns = len(place)
    if len(split.folds) == 1 or not method.sees.other_lists:
        parts = [replace(part, scores=part.scores[:, place]) for part in run(method, task)]
        return dict(zip(split.folds, split.meter.measure(parts, columns), strict=True))
    values = {}
    for number, fold in enumerate(split.folds):
        alone, meter = split.meter.alone(number)
        of_fold = replace(task, test=tuple(map(_unlabelled, alone)))
        parts = [replace(part, scores=part.scores[:, place]) for part in run(method, of_fold)]
        values[fold] = meter.measure(parts, columns)[0]
    return values


def _plain_scores(split: Split, plan: BenchPlan, block: BenchBlock) -> NDArray[np.float64]:
    """The test scores of the linear ranker without mitigation, (n, 1)."""
    method = METHODS[PLAIN]
    task = Task(
        train=split.train[:1],
        test=split.test[:1],
        notions=plan.notions[:1],
        strengths=np.zeros(1),
        ks=plan.ks,
        scale=plan.scale,
        seed=block.seed,
        settings=plan.settings.get(PLAIN, {}),
    )
    return next(iter(run(method, task))).scores


def _first_column(values: Values) -> Values:
    """What strength 0 gives."""
    return {
        out: {
            fold: FoldValues(
                of.quality[..., :1], of.gap[..., :1], {key: sums[..., :1] for key, sums in of.selected.items()}, of.size
            )
            for fold, of in by_fold.items()
        }
        for out, by_fold in values.items()
    }
