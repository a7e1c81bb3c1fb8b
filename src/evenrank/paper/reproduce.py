"""The paper's experiments: what is run, the tables that come of it, and the strongest front the package reaches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataWarning
from evenrank.experiment.curves import Curve, pareto_front
from evenrank.experiment.examples import Titles
from evenrank.experiment.plan import QUALITIES
from evenrank.experiment.select import select
from evenrank.experiment.sweep import sweep
from evenrank.experiment.trials import Sweep
from evenrank.io.files import write_whole
from evenrank.linear.path import strength_grid
from evenrank.methods.registry import METHODS
from evenrank.paper import printed as paper
from evenrank.paper import summary
from evenrank.paper.tables import SUFFIXES, Row, Table
from evenrank.wording import percent, short_title, spoken

NOTIONS = ("equal_opportunity", "demographic_parity", "equalized_odds")  # in the paper's order
KS = (1, 2, 3, 4, 5)
FASTAR_KS = (3, 4, 5)  # the cut-offs the paper tabulates for FA*IR
# The paper's columns, then what the design asks for beside them.
PAPER_METHODS = ("amortized", "deltr", "fastar", "per_query")
OTHER_METHODS = ("deltr_aware", "deltr_larger", "fastar_unadjusted", "fastar_larger")
# Everything whose front may be the strongest, along a fine path to its end.
FRONT_METHODS = ("amortized", "amortized_aware")
FINE = 60

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Experiment:
    """The settings of one of the paper's two data sets.

    Attributes
    ----------
    methods : those the paper has, and ours besides
    grid : strengths of the trained methods
    seeds : number of seeds where there are no folds
    """

    name: str
    methods: Sequence[str]
    others: Sequence[str]
    grid: NDArray[np.float64]
    solver: str
    scale: str | None
    folds: int | None = None
    seeds: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


EXPERIMENTS = {
    "trec": Experiment("trec", PAPER_METHODS, OTHER_METHODS, strength_grid(), "gd", "dataset", folds=5),
    "msmarco": Experiment(
        "msmarco",
        ("amortized", "fastar", "per_query"),
        ("fastar_unadjusted", "fastar_larger"),
        strength_grid(15),
        "sgd",
        None,
        seeds=10,
    ),
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A finished reproduction: the sweeps and every table, by file name without suffix."""

    experiment: Experiment
    result: Sweep
    front: Sweep | None
    tables: Mapping[str, Table]

    @property
    def seconds(self) -> dict[str, float]:
        """Processor seconds of each method, training and measuring together."""
        spent: dict[str, float] = {}
        for one in _present(self.result, self.front):
            for method, seconds in zip(one.columns["method"], one.columns["seconds"], strict=True):
                name = method if one is self.result else f"{method} (front)"
                spent[name] = spent.get(name, 0.0) + seconds
        return spent

    def brief(self) -> Table:
        """Table 1 in the width of a terminal, the paper's numbers in brackets."""
        return _first_table(self.experiment, self.result, self.front, "ndcg", joined=True)

    def write_tables(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Every table as text, Markdown, LaTeX and CSV."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        files = []
        for name, table in self.tables.items():
            for kind, suffix in SUFFIXES.items():
                write_whole(target / f"{name}{suffix}", table.as_format(kind))
                files.append(target / f"{name}{suffix}")
        return files


def reproduce(
    experiment: Experiment,
    groupings: Mapping[str, RankingData],
    tests: Mapping[str, RankingData] | None = None,
    *,
    out: str | os.PathLike[str],
    quick: bool = False,
    n_jobs: int = 1,
    titles: Titles | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reproduction:
    """Run an experiment into ``out`` (run folders ``sweep`` and ``front``) and make its tables.

    ``quick`` takes every fifth strength, the paper's own methods only, and 2 seeds: a taste, not a reproduction.
    """
    grid = experiment.grid[::5] if quick else experiment.grid
    methods = list(experiment.methods) + ([] if quick else list(experiment.others))
    shares = np.arange(50)[:: 7 if quick else 1] / 50
    repeats: dict[str, Any] = {"folds": experiment.folds} if experiment.folds else {"test": tests}
    if experiment.seeds:
        repeats["seeds"] = 2 if quick else experiment.seeds
    common: dict[str, Any] = {"notions": NOTIONS, "ks": KS, "seed": seed, "scale": experiment.scale, "n_jobs": n_jobs}
    common |= repeats
    Path(out).mkdir(parents=True, exist_ok=True)
    linear = {name: dict(experiment.settings) for name in methods if "ridge" in (METHODS[name].settings or ())}
    result = sweep(
        groupings,
        methods,
        strengths={name: shares if METHODS[name].by_k else grid for name in methods},
        solver=experiment.solver,
        settings=linear,
        out=Path(out) / "sweep",
        titles=titles,
        progress=None if progress is None else lambda done: progress(0.8 * done),
        **common,
    )
    front = None
    if experiment.solver != "sgd":  # whose every strength costs passes over the data
        front = sweep(
            groupings,
            FRONT_METHODS,
            strengths=np.concatenate([[0.0], np.geomspace(1e-3, 10, 12 if quick else FINE)]),
            solver="exact",
            settings={name: dict(experiment.settings) for name in FRONT_METHODS},
            out=Path(out) / "front",
            examples=0,
            progress=None if progress is None else lambda done: progress(0.8 + 0.2 * done),
            **common,
        )
    return Reproduction(experiment, result, front, _tables(experiment, result, front))


def _tables(experiment: Experiment, result: Sweep, front: Sweep | None) -> dict[str, Table]:
    made: dict[str, Table] = {}
    own, others = (_headings(names, result) for names in (experiment.methods, experiment.others))
    ks = _cut_offs([*own, *others])
    for quality in QUALITIES:
        end = "" if quality == "ndcg" else f"-{quality}"
        beside = quality == "ndcg"  # the paper's tables are for NDCG
        made[f"table1{end}"] = _first_table(experiment, result, front, quality)
        if experiment.folds:
            made[f"honest{end}"] = honest(result, own, ks, quality)
        if others:
            made[f"variants{end}"] = summary.overview(result, quality, methods=others, ks=ks)
        number = 2
        for statistic in summary.STATISTICS:
            for name, title in (own | others).items():

                def at_k(notion: str, grouping: str, k: str, method: str = name, which: str = statistic) -> float:
                    return paper.printed(experiment.name, which, method, notion, grouping, k)

                table = summary.by_k(
                    result,
                    statistic,
                    name,
                    quality,
                    title=title,
                    ks=ks.get(name),
                    beside=at_k if beside and name in own else None,
                )
                made[
                    f"table{number}-{statistic}-{name}{end}" if name in PAPER_METHODS else f"{statistic}-{name}{end}"
                ] = table
                number += name in PAPER_METHODS
    return made


def _headings(names: Sequence[str], result: Sweep) -> dict[str, str]:
    """Method → the heading of its columns, of those that were swept."""
    return {name: METHODS[name].label for name in names if name in result.methods}


def _cut_offs(methods: Iterable[str]) -> dict[str, Sequence[int]]:
    """The cut-offs tabulated for methods that are run for each."""
    return {name: FASTAR_KS for name in methods if METHODS[name].by_k}


def _first_table(
    experiment: Experiment, result: Sweep, front: Sweep | None, quality: str, *, joined: bool = False
) -> Table:
    own = _headings(experiment.methods, result)

    def printed(statistic: str, method: str, notion: str, grouping: str) -> float:
        return paper.printed(experiment.name, statistic, method, notion, grouping)

    return summary.overview(
        result,
        quality,
        methods=own,
        ks=_cut_offs(own),
        beside=printed if quality == "ndcg" else None,
        extra={"best": best_columns(result, front, quality)},
        joined=joined,
    )


def honest(result: Sweep, methods: Mapping[str, str], ks: Mapping[str, Sequence[int]], quality: str = "ndcg") -> Table:
    """By how much the violation falls on folds that took no part in choosing the strength, and what quality does there.

    The paper's maximum is chosen and reported on the same folds, so it flatters every method.
    """
    settings = summary.settings_of(result)
    found = np.full((len(settings), len(methods), 2), np.nan)
    for i, (notion, grouping) in enumerate(settings):
        for j, method in enumerate(methods):
            seen = [_held_out(result, notion, grouping, k, method, quality) for k in ks.get(method, result.ks)]
            found[i, j] = summary.average(np.array(seen), axis=0)
    table = found.reshape(len(settings), -1)
    table = np.concatenate([table, summary.average(table, axis=0)[None]])
    labels = [*((spoken(notion), grouping) for notion, grouping in settings), ("average", "")]
    rows = [
        Row(
            label,
            tuple(percent(one) if j % 2 == 0 else f"{one:+.3f}" for j, one in enumerate(line)),
            rule=number % len(result.groupings) == 0,
        )
        for number, (label, line) in enumerate(zip(labels, table.tolist(), strict=True))
    ]
    name = short_title(quality, "k")
    return Table(
        f"Fall of the violation, and change of {name}, on folds that took no part in choosing the strength",
        ("notion", "grouping"),
        tuple(f"{title} {what}" for title in methods.values() for what in ("falls by", name)),
        tuple(rows),
        tuple(tuple(line) for line in table.tolist()),
    )


def _held_out(result: Sweep, notion: str, grouping: str, k: int, method: str, quality: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # where nothing qualifies, the fall is 0
        seen = select(result, notion, k, quality=quality, methods=method, grouping=grouping).held_out
    if seen is None or not seen.before.violation > 0:
        return np.nan, np.nan
    fall = (seen.before.violation - seen.violation) / seen.before.violation
    return fall, seen.quality - seen.before.quality


# ---------------------------------------------------------------------- the strongest front


def best_columns(result: Sweep, front: Sweep | None, quality: str = "ndcg") -> NDArray[np.float64]:
    """Max and mean reduction of the strongest front, (settings, 2), averaged over k."""
    per_k = np.array(
        [
            [_free(best_front(result, front, notion, grouping, k, quality)) for k in result.ks]
            for notion, grouping in summary.settings_of(result)
        ]
    )
    return summary.average(per_k, axis=1)


def best_front(result: Sweep, front: Sweep | None, notion: str, grouping: str, k: int, quality: str = "ndcg") -> Curve:
    """The strongest front: of every method's points, as one curve against the group-blind model of strength 0.

    That model stands first. Of the points that are neither significantly worse nor less fair than it, those are kept
    that no other beats in both quality and violation; their ``strengths`` are mere numbers.
    """
    base = result.curve(notion, k, method="amortized", quality=quality, grouping=grouping)
    parts = [
        one.curve(notion, k, method=method, quality=quality, grouping=grouping)
        for one in _present(result, front)
        for method in one.methods
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(base, name)[:1], *(getattr(part, name) for part in parts)])
        for name in ("quality", "quality_error", "violation", "violation_error")
    }
    whole = replace(base, method="best", strengths=np.arange(len(columns["quality"]), dtype=float), **columns)
    free = np.where(whole.worse | (whole.violation > whole.violation[0]), np.nan, whole.violation)
    keep = pareto_front(whole.quality, free)
    keep[0] = True
    kept: dict[str, Any] = {name: values[keep] for name, values in columns.items()}
    return replace(whole, strengths=np.arange(keep.sum(), dtype=float), **kept)


def _present(result: Sweep, front: Sweep | None) -> list[Sweep]:
    return [result] if front is None else [result, front]


def _free(curve: Curve) -> tuple[float, float]:
    return curve.max_reduction, curve.mean_reduction
