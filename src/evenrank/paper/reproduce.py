"""The paper's experiments: what is run, and the tables that result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.experiment.examples import Titles
from evenrank.experiment.plain_json import dump
from evenrank.experiment.plan import QUALITIES
from evenrank.experiment.sweep import sweep
from evenrank.experiment.trials import Sweep
from evenrank.io.files import write_whole
from evenrank.linear.strengths import strength_grid
from evenrank.methods.registry import METHODS
from evenrank.paper import printed as paper
from evenrank.paper import summary
from evenrank.paper.front import best_columns
from evenrank.paper.honest import honest
from evenrank.paper.tables import SUFFIXES, Table

NOTIONS = ("equal_opportunity", "demographic_parity", "equalized_odds")  # in the paper's order
KS = (1, 2, 3, 4, 5)
FASTAR_KS = (3, 4, 5)  # the cut-offs the paper tabulates for FA*IR
# The paper's columns, then what the design asks for beside them.
PAPER_METHODS = ("amortized", "deltr", "fastar", "per_query")
OTHER_METHODS = ("deltr_aware", "deltr_larger", "fastar_unadjusted", "fastar_larger")
# Everything whose front may be the strongest, along a fine path to its end.
FRONT_METHODS = ("amortized", "amortized_aware")
FINE = 60
PUBLISHED = "deltr_published"
CAPTIONS = "captions.json"
SEEDS = 10  # divisions into folds that the honest table averages over

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Experiment:
    """The settings of one of the paper's two data sets.

    Attributes
    ----------
    name : str
        How commands call it.
    methods, others : sequence of str
        The methods that the paper has, and further ones.
    grid : ndarray
        The strengths of the trained methods.
    solver, scale : str
        How linear models are trained, and what features are scaled by (None: not at all).
    folds, seeds : int or None
        The number of folds; or, for data with a test part, the number of seeds.
    settings : mapping
        Further options of the linear methods.
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
    """A finished reproduction.

    Attributes
    ----------
    experiment : Experiment
        What was run.
    result : Sweep
        The sweep of the methods.
    front : Sweep or None
        The finer sweep for the strongest front, if there is one.
    published : Sweep or None
        DELTR as its package trains it, if it was run.
    tables : mapping
        File name without suffix → table.
    """

    experiment: Experiment
    result: Sweep
    front: Sweep | None
    published: Sweep | None
    tables: Mapping[str, Table]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each method in all processes, training and measuring together."""
        spent: dict[str, float] = {}
        for run in filter(None, (self.result, self.front, self.published)):
            for method in run.methods:
                name = f"{method} (front)" if run is self.front else method
                seconds = float(run.columns["seconds"][run.columns["method"] == method].sum())
                spent[name] = spent.get(name, 0.0) + seconds
        return spent

    def brief(self) -> Table:
        """Make Table 1 in the width of a terminal, the paper's numbers in brackets."""
        return _first_table(self.experiment, self.result, self.front, self.published, "ndcg", joined=True)

    def write_tables(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every table as text, Markdown, LaTeX and CSV into a folder; gives the files.

        Captions stand in the files. CSV has no place for one that every reader would skip, so ``captions.json`` holds
        them by the tables' names.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        files = []
        for name, table in self.tables.items():
            for kind, suffix in SUFFIXES.items():
                write_whole(target / f"{name}{suffix}", table.as_format(kind))
                files.append(target / f"{name}{suffix}")
        captions = {
            name: " ".join(filter(None, (f"{table.title}.", table.note))) for name, table in self.tables.items()
        }
        write_whole(target / CAPTIONS, dump(captions, indent=1))
        return [*files, target / CAPTIONS]


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
    """Run an experiment and make its tables.

    Parameters
    ----------
    experiment : Experiment
        One of `EXPERIMENTS`.
    groupings, tests : mapping
        Grouping → its rows; for an experiment without folds, also the rows to test on.
    out : path-like
        The folder for the runs, in its folders ``sweep``, ``front``, ``published`` and ``seeds``.
    quick : bool
        Take every fifth strength, the paper's methods only, and at most 2 seeds: a taste, not a reproduction.
    n_jobs : int
        The number of processes.
    titles : Titles, optional
        What to show for queries and items.
    seed : int
        Seeds the folds and the training.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Reproduction
        The sweeps and the tables.
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
        progress=_share_of(progress, 0.0, 0.2),
        **common,
    )
    front = None
    if experiment.solver != "sgd":  # with sgd, every strength costs passes over the data
        front = sweep(
            groupings,
            FRONT_METHODS,
            strengths=np.concatenate([[0.0], np.geomspace(1e-3, 10, 12 if quick else FINE)]),
            solver="exact",
            settings={name: dict(experiment.settings) for name in FRONT_METHODS},
            out=Path(out) / "front",
            examples=0,
            progress=_share_of(progress, 0.2, 0.3),
            **common,
        )
    published, again = None, []
    if experiment.folds and not quick:
        published = sweep(
            groupings,
            [PUBLISHED],
            strengths=grid,
            out=Path(out) / "published",
            examples=0,
            progress=_share_of(progress, 0.3, 0.7),
            **common,
        )
        for number in range(1, SEEDS):
            other: dict[str, Any] = {**common, "seed": seed + number}
            done = 0.7 + 0.3 * np.array([number - 1, number]) / (SEEDS - 1)
            again.append(
                sweep(
                    groupings,
                    experiment.methods,
                    strengths={name: shares if METHODS[name].by_k else grid for name in experiment.methods},
                    solver=experiment.solver,
                    settings={name: linear[name] for name in experiment.methods if name in linear},
                    out=Path(out) / "seeds" / str(seed + number),
                    examples=0,
                    progress=_share_of(progress, *done.tolist()),
                    **other,
                )
            )
    if progress is not None:
        progress(1.0)
    return Reproduction(experiment, result, front, published, _tables(experiment, result, front, published, again))


def _share_of(progress: Progress | None, low: float, high: float) -> Progress | None:
    """Report the progress of a part of the work as that of the whole."""
    return None if progress is None else lambda done: progress(low + (high - low) * done)


def _tables(
    experiment: Experiment, result: Sweep, front: Sweep | None, published: Sweep | None, again: Sequence[Sweep]
) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    paper_methods, others = (_headings(names, result) for names in (experiment.methods, experiment.others))
    ks = _cut_offs([*paper_methods, *others])
    for quality in QUALITIES:
        end = "" if quality == "ndcg" else f"-{quality}"
        beside = quality == "ndcg"  # the paper's tables are for NDCG
        tables[f"table1{end}"] = _first_table(experiment, result, front, published, quality)
        if experiment.folds:
            tables[f"honest{end}"] = honest([result, *again], paper_methods, ks, quality)
        if others:
            tables[f"variants{end}"] = summary.overview(result, quality, methods=others, ks=ks)
        number = 2
        for statistic in summary.STATISTICS:
            for name, title in (paper_methods | others).items():

                def at_k(notion: str, grouping: str, k: str, method: str = name, which: str = statistic) -> float:
                    return paper.printed(experiment.name, which, method, notion, grouping, k)

                table = summary.by_k(
                    result,
                    statistic,
                    name,
                    quality,
                    title=title,
                    ks=ks.get(name),
                    beside=at_k if beside and name in paper_methods else None,
                )
                tables[
                    f"table{number}-{statistic}-{name}{end}" if name in PAPER_METHODS else f"{statistic}-{name}{end}"
                ] = table
                number += name in PAPER_METHODS
    return tables


def _headings(names: Sequence[str], result: Sweep) -> dict[str, str]:
    """Method → the heading of its columns, for the methods that were swept."""
    return {name: METHODS[name].label for name in names if name in result.methods}


def _cut_offs(methods: Iterable[str]) -> dict[str, Sequence[int]]:
    """The cut-offs tabulated for methods that are run for each."""
    return {name: FASTAR_KS for name in methods if METHODS[name].by_k}


def _first_table(
    experiment: Experiment,
    result: Sweep,
    front: Sweep | None,
    published: Sweep | None,
    quality: str,
    *,
    joined: bool = False,
) -> Table:
    extra = {}
    if published is not None:
        extra[METHODS[PUBLISHED].label] = summary.columns(published, PUBLISHED, published.ks, quality)
    paper_methods = _headings(experiment.methods, result)

    def printed(statistic: str, method: str, notion: str, grouping: str) -> float:
        return paper.printed(experiment.name, statistic, method, notion, grouping)

    return summary.overview(
        result,
        quality,
        methods=paper_methods,
        ks=_cut_offs(paper_methods),
        beside=printed if quality == "ndcg" else None,
        extra=extra | {"best": best_columns(result, front, quality)},
        joined=joined,
    )
