"""`bench`: every method on several data sets, with strengths chosen on other queries than reported."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment import asked
from evenrank.experiment.about import made_now
from evenrank.experiment.plain_json import dump
from evenrank.experiment.running import run_blocks
from evenrank.extras import require
from evenrank.io.files import write_whole
from evenrank.leaderboard.folder import PAGE, SUMMARY, TABLE, TEXT, BenchFolder
from evenrank.leaderboard.plan import FLOOR, PLAIN, BenchBlock, BenchData, BenchPlan
from evenrank.leaderboard.result import Bench
from evenrank.leaderboard.words import markdown
from evenrank.linear.path import SCALES
from evenrank.methods.filling import with_impute
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS

CORE, ALL = "core", "all"
LEAST_FOLDS = 3  # one to report, one to choose on, one to train on
# Of a method's own grid, every second strength; every fifth if each of them is trained anew.
COARSE, TREES = 2, 5
NO_BASELINE = "needs the linear ranker, which takes no missing values and no categories"

Source = RankingData | Mapping[str, RankingData] | BenchData


def bench(
    data: RankingData | Mapping[str, Source],
    methods: str | Sequence[str] = CORE,
    notions: Sequence[str] = tuple(NOTIONS),
    strengths: Mapping[str, ArrayLike] | None = None,
    ks: Sequence[int] = (1, 3, 5),
    folds: int = 5,
    seeds: int | Sequence[int] = 10,
    *,
    scale: str | None = "train",
    impute: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Bench:
    """Compare methods by nested cross-validation, repeated over divisions into folds.

    A strength is never chosen on the queries that it is reported on: for each fold it is chosen on inner folds of the
    others (rule "no_loss"), or not at all (rule "full"). Methods get the test rows without labels.

    Parameters
    ----------
    data : RankingData or mapping
        The rows; or data sets by name, each of them rows, several groupings of the same rows by name, or a `BenchData`.
    methods : str or sequence of str
        "core" (those that need no extra), "all" (those whose extra is installed too), or names.
    notions : sequence of str
        The notions that are trained for and whose gaps are measured.
    strengths : mapping of str to array-like, optional
        Method → its grid; by default every second strength of its own, of trees and networks every fifth. Methods
        that serve list after list are run at full strength only, unless they are given a grid.
    ks : sequence of int
        The cut-offs.
    folds : int
        The number of folds, at least 3.
    seeds : int or sequence of int
        How many divisions into folds, or their seeds.
    scale : str or None
        How linear methods standardise features, as in `fairness_path`.
    impute : str, optional
        As in `sweep`. The noise floor stands on the linear ranker without mitigation: where only methods that take
        missing values and categories are asked for, rows that have some are benched without it.
    settings : mapping of str to mapping, optional
        Method → its own options.
    out : path, optional
        A folder. It keeps every finished block, so that the same call continues a bench that was stopped.
    n_jobs : int
        The number of processes; -1 is one per core.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Bench
        The table and the standings.

    Raises
    ------
    ConfigError
        An option has a value that cannot be used.
    DataError
        A data set has fewer than two groups, or too few queries for the folds.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=60)
    >>> result = er.bench(data, ["amortized", "fastar"], ["dp"], ks=[5], folds=3, seeds=1)
    >>> sorted({standing.method for standing in result.standings()})
    ['amortized', 'fastar', 'noise_floor']
    """
    check_number(n_jobs, "n_jobs", whole=True)
    if n_jobs == 0:
        raise ConfigError("n_jobs must be a number of processes, or -1 for one per core; got 0.")
    chosen, left_out = chosen_methods(methods)
    plan = planned(
        data, chosen, notions, strengths or {}, ks, folds, seeds, scale=scale, impute=impute, settings=settings
    )
    lacking = plan.without_floor()
    if lacking:
        left_out = left_out | {FLOOR: f"{NO_BASELINE}, as in {', '.join(lacking)}"}
        warnings.warn(
            f"the noise floor is left out of {', '.join(lacking)}: it {NO_BASELINE}; for it, pass impute='median' "
            "(--impute median)",
            DataWarning,
            stacklevel=2,
        )
    config = {"asked": plan.asked(), "data": plan.facts(), **made_now(chosen), "left_out": left_out}
    if out is None:
        return Bench.of(config, run_blocks(plan, [], None, n_jobs, progress))
    folder = BenchFolder(out)
    with folder.opened(config, None) as journal:
        result = Bench.of(folder.config, run_blocks(plan, journal.records, journal, n_jobs, progress))
        write_whole(folder.path / TABLE, result.csv())
        write_whole(folder.path / SUMMARY, dump(result.to_dict(), indent=1))
        write_whole(folder.path / TEXT, markdown(result))
        write_whole(folder.path / PAGE, result.html())
    return result


def planned(
    data: RankingData | Mapping[str, Source],
    methods: Sequence[str],
    notions: Sequence[str],
    strengths: Mapping[str, ArrayLike],
    ks: Sequence[int],
    folds: int,
    seeds: int | Sequence[int],
    *,
    scale: str | None = "train",
    impute: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> BenchPlan:
    """Check what `bench` was asked, whose parameters these are, and plan it."""
    names = tuple(asked.checked_notions(notions))
    for name in names:
        choose(name, NOTIONS, what="a notion of a bench")
    cuts = tuple(dict.fromkeys(check_k(k) for k in np.atleast_1d(np.asarray(ks)).tolist()))
    if not names or not methods or not cuts:
        raise ConfigError("a bench needs at least one method, one notion and one k.")
    if scale not in SCALES:
        raise ConfigError(f"scale must be 'train', 'dataset' or None; got {scale!r}.")
    check_number(folds, "folds", least=LEAST_FOLDS, whole=True)
    sources = checked_sources(data, int(folds))
    for name, method_settings in (settings or {}).items():
        METHODS[choose(name, METHODS, what="a method of settings")].check_settings(method_settings)
    # Each method that takes missing values has a baseline of its own model; the linear one is the noise floor's alone.
    own_baselines = all(METHODS[name].takes_missing for name in methods)
    filled = impute is not None or (settings or {}).get(PLAIN, {}).get("impute") is not None
    floors = {name: filled or not own_baselines or not _has_missing(source) for name, source in sources.items()}
    rows = [rows for name, source in sources.items() if floors[name] for rows in source.groupings.values()]
    settings = with_impute(settings, list(dict.fromkeys([*methods, PLAIN])), impute, rows)
    for name in strengths:
        choose(name, methods, what="a method of strengths")
    numbers = asked.checked_seeds(seeds, 0)
    return BenchPlan(
        sources=sources,
        # The methods of one data set and seed together: they share splits and baselines.
        blocks=tuple(
            BenchBlock(source, name, seed)
            for source in sources
            for seed in numbers
            for name in (*methods, *([FLOOR] if floors[source] else []))
        ),
        notions=names,
        grids={name: _grid(strengths, name) for name in methods},
        ks=cuts,
        folds=int(folds),
        scale=scale,
        settings=settings,
    )


def chosen_methods(methods: str | Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """List the methods that are asked for.

    Parameters
    ----------
    methods : str or sequence of str
        "core", "all" or names.

    Returns
    -------
    chosen : list of str
        Their names.
    left_out : dict
        Name → why it is not among them, for "core" and "all".
    """
    if isinstance(methods, str) and methods in (CORE, ALL):
        missing = {
            name: f"needs the extra {method.extra}" + (", which is not installed" if methods == ALL else "")
            for name, method in METHODS.items()
            if method.extra and (methods == CORE or find_spec(method.extra) is None)
        } | {name: "takes long; name it to run it" for name, method in METHODS.items() if method.by_name}
        return [name for name in METHODS if name not in missing], missing
    chosen = list(
        dict.fromkeys(choose(name, [*METHODS, CORE, ALL], what="method") for name in asked.listed_names(methods))
    )
    if CORE in chosen or ALL in chosen:
        raise ConfigError(f"methods must be {CORE!r}, {ALL!r} or names; got {chosen}.")
    for name in chosen:
        if METHODS[name].extra:
            require(METHODS[name].extra)
    return chosen, {}


def checked_sources(data: RankingData | Mapping[str, Source], folds: int) -> dict[str, BenchData]:
    """Check the data sets, and give each as a `BenchData` by name."""
    named: Mapping[str, Any] = {asked.ONE: data} if isinstance(data, RankingData) else data
    if not isinstance(named, Mapping) or not named:
        raise DataError(f"data must be a RankingData, or data sets by name; got {type(data).__name__}.")
    sources = {}
    for name, given in named.items():
        source = given if isinstance(given, BenchData) else BenchData(asked.checked_groupings(given, f"data {name!r}"))
        groupings = asked.checked_groupings(source.groupings, f"data {name!r}")
        rows = next(iter(groupings.values()))
        units, what = rows.n_queries, "queries"
        if source.clusters is not None:
            if np.shape(source.clusters) != (rows.n_queries,):
                raise DataError(f"data {name!r}: clusters must be one value per query, ({rows.n_queries},).")
            units, what = len(np.unique(source.clusters)), "clusters"
        if units < folds:
            raise DataError(f"data {name!r}: {folds} folds need at least as many {what}; found {units}. Ask for fewer.")
        sources[str(name)] = BenchData(groupings, source.clusters)
    return sources


def _has_missing(source: BenchData) -> bool:
    return any(rows.missing_features or rows.categories for rows in source.groupings.values())


def _grid(strengths: Mapping[str, ArrayLike], name: str) -> NDArray[np.float64]:
    method = METHODS[name]
    if name in strengths:
        return asked.grid_of(strengths, name)
    if method.in_turn and method.strength.full is not None:
        return np.zeros(0)
    return method.strength.grid()[:: TREES if method.extra else COARSE]
