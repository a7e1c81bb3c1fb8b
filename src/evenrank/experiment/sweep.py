"""`sweep`: train and measure every method, notion, strength and fold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.experiment import asked
from evenrank.experiment.about import about_plan, made_now
from evenrank.experiment.examples import PLACES, Titles, choose_queries, describe
from evenrank.experiment.plan import Block, Plan
from evenrank.experiment.run_folder import TRIALS, RunFolder
from evenrank.experiment.running import run_blocks
from evenrank.experiment.trials import Sweep
from evenrank.extras import require
from evenrank.linear.path import SCALES, SOLVERS
from evenrank.measures import MeasureLike
from evenrank.methods.filling import with_impute
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS, Notion


def sweep(
    data: RankingData | Mapping[str, RankingData],
    methods: Sequence[str] = ("amortized",),
    notions: Sequence[str | Notion] = tuple(NOTIONS),
    strengths: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ks: Sequence[int] = (1, 3, 5),
    folds: int | ArrayLike | None = None,
    seed: int = 0,
    *,
    test: RankingData | Mapping[str, RankingData] | None = None,
    seeds: int | Sequence[int] | None = None,
    test_share: float = 0.2,
    solver: str = "exact",
    scale: str | None = "train",
    impute: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    measures: Iterable[MeasureLike] = (),
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    examples: int = 100,
    titles: Titles | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Train and measure by cross-validation, or over seeds: every strength and notion of a split trains together.

    Parameters
    ----------
    data : RankingData or mapping of str to RankingData
        The rows, or several groupings of the same rows by name (see `RankingData.with_group`).
    methods : sequence of str
        Their names; see `evenrank methods`.
    notions : sequence of str or Notion
        The notions to train for and to measure by: names, and notions of your own, whose masks are functions of the
        data.
    strengths : array-like or mapping of str to array-like, optional
        The grid, (A,), for all methods or by method; by default each method's own. 0, the baseline, is added.
    ks : sequence of int
        The cut-offs of the measures.
    folds : int or array-like of int, optional
        Their number (5 by default), or each query's fold, (q,); errors are standard errors over folds.
    seed : int
        The seed of the folds, of training and of the choice of examples.
    test : RankingData or mapping of str to RankingData, optional
        Held-out data in the form of ``data``: no folds, and errors are standard deviations over ``seeds``.
    seeds : int or sequence of int, optional
        Their number or the seeds themselves; without ``test`` each draws its own random split of the queries.
    test_share : float
        The share of the queries that such a split holds out.
    solver : str
        "exact", "gd" or "sgd", of the linear methods.
    scale : str or None
        How their features are standardised, as in `fairness_path`.
    impute : str, optional
        "mean" or "median", of each split's training rows, stands for missing values in methods that take numbers only;
        categories become columns of 0 and 1 for them. See docs/files.md.
    settings : mapping of str to mapping, optional
        Method → its own options, such as ``{"lightgbm": {"n_estimators": 50}}``.
    measures : sequence of str, Notion or callable
        Further measures of each model, as in `measure`; a value that is not finite is written as missing. A function of
        your own is bound to its name and to its value on one fixed ranking of the data.
    out : path, optional
        A run folder. It keeps every finished block, so that the same call continues a run that was stopped.
    n_jobs : int
        The number of processes that run blocks in parallel; -1 is one per core.
    examples : int
        The number of queries whose rankings are kept for the report.
    titles : Titles, optional
        Texts of queries and items for the report.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Sweep
        The table of trials.

    Raises
    ------
    ConfigError
        An option has a value that cannot be used.
    DataError
        The groupings are of different rows, have fewer than two groups, or differ between ``data`` and ``test``.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=50)
    >>> result = er.sweep(data, notions=["dp"], strengths=[0, 0.1], ks=[5], folds=er.datasets.german_credit_folds(data))
    >>> len(result), result.curve("dp", 5).max_reduction > 0
    (10, True)
    """
    by_name = asked.checked_notions(notions)
    own = {name: notion for name, notion in by_name.items() if name not in NOTIONS}
    names = tuple(by_name)
    chosen = list(dict.fromkeys(choose(name, METHODS, what="method") for name in asked.listed_names(methods)))
    cuts = tuple(dict.fromkeys(check_k(k) for k in np.atleast_1d(np.asarray(ks)).tolist()))
    if not names or not chosen or not cuts:
        raise ConfigError("a sweep needs at least one method, one notion and one k.")
    choose(solver, SOLVERS, what="solver")
    if scale not in SCALES:
        raise ConfigError(f"scale must be 'train', 'dataset' or None; got {scale!r}.")
    check_number(n_jobs, "n_jobs", whole=True)
    if n_jobs == 0:
        raise ConfigError("n_jobs must be a number of processes, or -1 for one per core; got 0.")
    check_number(examples, "examples", least=0, whole=True)
    check_number(seed, "seed", least=0, most=asked.LARGEST_SEED, whole=True)
    for name in strengths if isinstance(strengths, Mapping) else ():
        choose(name, chosen, what="a method of strengths")
    groupings = asked.checked_groupings(data, "data")
    tests = None if test is None else asked.checked_groupings(test, "test", least=1)
    if tests is not None:
        tests = asked.with_groups_of(groupings, tests)
    for name, method_settings in (settings or {}).items():
        METHODS[choose(name, METHODS, what="a method of settings")].check_settings(method_settings)
    rows = [grouping for group in (groupings, tests or {}) for grouping in group.values()]
    settings = with_impute(settings, chosen, impute, rows)
    for name in chosen:
        if METHODS[name].extra:
            require(METHODS[name].extra)
    fold_of, splits, spread = asked.splits_of(groupings, tests, folds, seed, seeds, test_share)
    tested = groupings if tests is None else tests
    plan = Plan(
        groupings=groupings,
        tests=tests,
        fold_of=fold_of,
        blocks=tuple(Block(name, *split) for split in splits for name in chosen),
        notions=names,
        grids={name: asked.grid_of(strengths, name) for name in chosen},
        ks=cuts,
        solver=solver,
        scale=scale,
        settings=settings,
        examples=choose_queries(tested, examples, min(cuts), seed),
        places=min(PLACES, max(cuts)),
        own=own,
        extra=asked.extra_measures(measures, cuts, own),
    )
    config = {
        "asked": plan.asked(),
        "data": plan.fingerprint(),
        **made_now(chosen),
        "measures": [*plan.measures, *plan.rates],
        "about": about_plan(plan, seed, spread, len(splits)).before_run(),
    }
    shown = describe(tested, plan.examples, titles)
    if out is None:
        return Sweep.of(config, run_blocks(plan, [], None, n_jobs, progress), shown)
    folder = RunFolder(out)
    with folder.opened(config, shown) as journal:
        result = Sweep.of(folder.config, run_blocks(plan, journal.records, journal, n_jobs, progress), shown)
        for file in TRIALS:
            result.write(folder.path / file)
    return result
