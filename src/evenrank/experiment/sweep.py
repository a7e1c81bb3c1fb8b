"""`sweep`: train and measure every method, notion, strength and fold."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment.examples import PLACES, Titles, choose_queries, describe, group_texts
from evenrank.experiment.facts import data_facts
from evenrank.experiment.journal import Journal
from evenrank.experiment.plan import Block, Groupings, Plan, Runner
from evenrank.experiment.run_folder import TRIALS, RunFolder
from evenrank.experiment.trials import Sweep
from evenrank.extras import require
from evenrank.linear.path import SCALES, SOLVERS
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS, as_notion
from evenrank.row_checks import as_array, unmasked

FOLDS = 5
ONE = "group"  # the name of the grouping of data given without one


def sweep(
    data: RankingData | Mapping[str, RankingData],
    methods: Sequence[str] = ("amortized",),
    notions: Sequence[str] = tuple(NOTIONS),
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
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    examples: int = 100,
    titles: Titles | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Train and measure by cross-validation, or over seeds: every strength and notion of a split trains together.

    Parameters
    ----------
    data : the rows, or several groupings of the same rows by name (see `RankingData.with_group`)
    methods, notions : names; see `evenrank methods`
    strengths : the grid, (A,), for all methods or by method; None is each method's own. 0, the baseline, is added
    ks : cut-offs of the measures
    folds : their number (5 by default), or each query's own fold, (q,); errors are standard errors over folds
    test : held-out data in the form of ``data``: no folds, and errors are standard deviations over ``seeds``
    seeds : their number or the seeds themselves; without ``test`` each draws its own random split of the queries
    test_share : share of the queries that such a split holds out
    solver : "exact", "gd" or "sgd", of the linear methods
    scale : how their features are standardised, as in `fairness_path`
    settings : method → its own options, say ``{"lightgbm": {"n_estimators": 50}}``
    out : a run folder. It keeps every finished block, so that the same call goes on where a stopped one was
    n_jobs : processes that run blocks beside each other; -1 is one a core
    examples : number of queries whose rankings are kept for the report
    titles : texts of queries and items for the report
    progress : called with the fraction done

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=50)
    >>> result = er.sweep(data, notions=["dp"], strengths=[0, 0.1], ks=[5], folds=er.datasets.german_credit_folds(data))
    >>> len(result), result.curve("dp", 5).max_reduction > 0
    (10, True)
    """
    names = tuple(dict.fromkeys(_name(notion) for notion in _several(notions)))
    chosen = list(dict.fromkeys(choose(name, METHODS, what="method") for name in _several(methods)))
    cuts = tuple(dict.fromkeys(check_k(k) for k in np.atleast_1d(np.asarray(ks)).tolist()))
    if not names or not chosen or not cuts:
        raise ConfigError("a sweep needs at least one method, one notion and one k.")
    choose(solver, SOLVERS, what="solver")
    if scale not in SCALES:
        raise ConfigError(f"scale must be 'train', 'dataset' or None; got {scale!r}.")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be a number of processes, or -1 for one a core; got {n_jobs!r}.")
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise ConfigError(f"examples must be a whole number ≥ 0; got {examples!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed must be a whole number ≥ 0; got {seed!r}.")
    for name in strengths if isinstance(strengths, Mapping) else ():
        choose(name, chosen, what="a method of strengths")
    groupings = _groupings(data, "data")
    tests = None if test is None else _groupings(test, "test")
    if tests is not None:
        _refuse_other_groups(groupings, tests)
    for name, own in (settings or {}).items():
        METHODS[choose(name, METHODS, what="a method of settings")].check_settings(own)
    for name in chosen:
        if METHODS[name].extra:
            require(METHODS[name].extra)
    fold_of, splits, spread = _splits(groupings, tests, folds, seed, seeds, test_share)
    tested = groupings if tests is None else tests
    plan = Plan(
        groupings=groupings,
        tests=tests,
        fold_of=fold_of,
        blocks=tuple(Block(name, *split) for split in splits for name in chosen),
        notions=names,
        grids={name: _grid(strengths, name) for name in chosen},
        ks=cuts,
        solver=solver,
        scale=scale,
        settings=settings or {},
        examples=choose_queries(tested, examples, min(cuts), seed),
        places=min(PLACES, max(cuts)),
    )
    config = {
        "asked": plan.asked(),
        "data": plan.fingerprint(),
        "versions": _versions(chosen),
        "made": {"command": _command(), "began": datetime.now(UTC).isoformat(timespec="seconds")},
        "measures": [*plan.measures, *plan.rates],
        "about": _about(plan, seed, spread, len(splits)),
    }
    shown = describe(tested, plan.examples, titles)
    if out is None:
        return Sweep.of(config, _run(plan, [], None, n_jobs, progress), shown)
    folder = RunFolder(out)
    with folder.opened(config, shown) as journal:
        result = Sweep.of(folder.config, _run(plan, journal.records, journal, n_jobs, progress), shown)
        for file in TRIALS:
            result.write(folder.path / file)
    return result


def _run(
    plan: Plan,
    records: list[dict[str, Any]],
    journal: Journal | None,
    n_jobs: int,
    progress: Callable[[float], None] | None,
) -> list[dict[str, Any]]:
    """Run the blocks that are not among the records yet, writing each down as it is finished."""
    said: set[str] = set()
    done = {Block(**record["block"]) for record in records}
    todo = [block for block in plan.blocks if block not in done]
    _relay(records, said)
    if progress is not None and records:
        progress(len(records) / len(plan.blocks))
    for record in _results(plan, todo, n_jobs):
        if journal is not None:
            journal.append(record)
        records.append(record)
        _relay([record], said)
        if progress is not None:
            progress(len(records) / len(plan.blocks))
    return records


def _results(plan: Plan, todo: Sequence[Block], n_jobs: int) -> Iterable[dict[str, Any]]:
    if n_jobs == 1 or len(todo) < 2:
        return map(Runner(plan).run, todo)
    return _in_parallel(plan, todo, n_jobs)


def _in_parallel(plan: Plan, todo: Sequence[Block], n_jobs: int) -> Iterator[dict[str, Any]]:
    from joblib import Parallel, delayed

    jobs = (delayed(_one)(plan, block) for block in todo)
    # Loky whatever the surroundings prefer: its workers are children of this process, as `_follow` takes for granted.
    run = Parallel(
        n_jobs=n_jobs,
        backend="loky",
        return_as="generator_unordered",
        initializer=_follow,
        initargs=(os.getpid(),),
    )
    yield from run(jobs)


def _one(plan: Plan, block: Block) -> dict[str, Any]:
    return Runner(plan).run(block)


def _follow(parent: int) -> None:
    """End this worker soon after its parent: one that is killed cannot tell its workers to stop."""
    if os.getpid() == parent:  # a thread
        return

    def watch() -> None:
        while os.getppid() == parent:  # which is not so from the start if it was killed while this one began
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _relay(records: Sequence[dict[str, Any]], said: set[str]) -> None:
    """Each of the blocks' warnings once."""
    for record in records:
        for message in record["warnings"]:
            if message not in said:
                said.add(message)
                warnings.warn(message, DataWarning, stacklevel=4)


# ---------------------------------------------------------------------- what was asked


def _several(names: Sequence[str] | str) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _name(notion: str) -> str:
    name = as_notion(notion).name
    if name not in NOTIONS:
        raise ConfigError(
            f"a sweep takes the notions {', '.join(NOTIONS)}; got {name!r}. For others, use fairness_path."
        )
    return name


def _groupings(data: RankingData | Mapping[str, RankingData], what: str) -> Groupings:
    groupings = {ONE: data} if isinstance(data, RankingData) else dict(data) if isinstance(data, Mapping) else {}
    first = next(iter(groupings.values()), None)
    if first is None or not all(isinstance(one, RankingData) for one in groupings.values()):
        given = repr(data) if isinstance(data, Mapping) else type(data).__name__
        raise DataError(f"{what} must be a RankingData, or groupings of one by name; got {given}.")
    for name, one in groupings.items():
        if one.features is not first.features:
            raise DataError(f"{what}: grouping {name!r} has other rows; make groupings with RankingData.with_group.")
        if one.n_groups < 2:
            found = f"only {one.group_names[0]!r}" if one.n_groups else "no group labels"
            raise DataError(f"{what}: a sweep compares groups and needs at least two; {name!r} has {found}.")
        one.need_labels("a sweep")
    return groupings


def _refuse_other_groups(groupings: Groupings, tests: Groupings) -> None:
    if list(groupings) != list(tests):
        raise DataError(f"test must have the groupings of data, {list(groupings)}; it has {list(tests)}.")
    for name, train in groupings.items():
        if tests[name].group_names != train.group_names:
            raise DataError(
                f"test must have the groups of data, {list(train.group_names)}; it has {list(tests[name].group_names)}."
            )


def _splits(
    groupings: Groupings,
    tests: Groupings | None,
    folds: int | ArrayLike | None,
    seed: int,
    seeds: int | Sequence[int] | None,
    test_share: float,
) -> tuple[NDArray[np.int64] | None, list[tuple[int, int]], str]:
    """Each query's fold in each repeat, the (fold, seed) of each split, and what the errors are."""
    data = next(iter(groupings.values()))
    if tests is None and seeds is None:
        fold_of = _fold_of(data, FOLDS if folds is None else folds, seed)
        return fold_of[None], [(fold, seed) for fold in np.unique(fold_of).tolist()], "standard error"
    if folds is not None:
        raise ConfigError("folds go neither with test nor with seeds; leave folds out, or the other.")
    chosen = _seeds(seeds, seed)
    splits = [(0, one) for one in chosen]
    if tests is not None:
        return None, splits, "standard deviation"
    if not 0 < test_share < 1:
        raise ConfigError(f"test_share must be a share of the queries between 0 and 1; got {test_share!r}.")
    held = min(max(1, round(test_share * data.n_queries)), data.n_queries - 1)
    if held < 1:
        raise ConfigError("a random split needs at least two queries; the data has one.")
    fold_of = np.ones((len(chosen), data.n_queries), np.int64)
    for number, one in enumerate(chosen):
        drawn = data.sorted_queries[np.random.default_rng(one).permutation(data.n_queries)[:held]]
        fold_of[number, drawn] = 0
    return fold_of, splits, "standard deviation"


def _seeds(seeds: int | Sequence[int] | None, seed: int) -> list[int]:
    chosen = [seed] if seeds is None else list(range(seed, seed + seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or not all(isinstance(one, int | np.integer) and one >= 0 for one in chosen):
        raise ConfigError(f"seeds must be a number ≥ 1 or whole numbers ≥ 0; got {seeds!r}.")
    return list(dict.fromkeys(int(one) for one in chosen))


def _grid(strengths: ArrayLike | Mapping[str, ArrayLike] | None, method: str) -> NDArray[np.float64]:
    """The distinct strengths and 0, ascending."""
    given = strengths.get(method) if isinstance(strengths, Mapping) else strengths
    if given is None:
        return METHODS[method].strength.grid()
    given = unmasked(given, "strengths")
    try:
        grid = np.asarray(given, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        grid = np.array([np.nan])
    if not (np.isfinite(grid) & (grid >= 0)).all():
        raise ConfigError(f"strengths must be finite numbers ≥ 0; got {given!r}.")
    strength = METHODS[method].strength
    if not (grid < strength.below).all():
        raise ConfigError(
            f"strengths of {method} are values of {strength.name} below {strength.below:g}; "
            f"got {grid[grid >= strength.below].tolist()}. Give it its own."
        )
    return np.unique(np.append(grid, 0.0))


def _fold_of(data: RankingData, folds: int | ArrayLike, seed: int) -> NDArray[Any]:
    """Each query's fold, (q,); there must be two at least, one to train on and one to test on."""
    if np.ndim(folds) == 0:
        return data.folds(folds, seed)  # type: ignore[arg-type]
    fold_of = as_array(folds, "folds")
    if fold_of.shape != (data.n_queries,) or fold_of.dtype.kind not in "iu":
        raise ConfigError(
            f"folds must be a number or one whole number a query, ({data.n_queries},); "
            f"got {fold_of.dtype} values of shape {fold_of.shape}."
        )
    if len(np.unique(fold_of)) < 2:
        raise ConfigError(f"folds must hold at least two different folds; every query is in fold {fold_of[0]}.")
    return fold_of.astype(np.int64)


# ---------------------------------------------------------------------- what is written down


def _about(plan: Plan, seed: int, spread: str, repeats: int) -> dict[str, Any]:
    """What a reader of the results wants to know."""
    data = next(iter(plan.groupings.values()))
    groups = {
        name: {label: float((one.group == code).mean()) for code, label in enumerate(group_texts(one))}
        for name, one in plan.groupings.items()
    }
    return {
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "groups": next(iter(groups.values())) if len(groups) == 1 else groups,
        "folds": repeats,
        "repeats": "folds" if spread == "standard error" else "seeds",
        "spread": spread,
        "seed": seed,
        "solver": plan.solver,
        "scale": plan.scale,
        "settings": {name: dict(own) for name, own in plan.settings.items()},
        "notions": list(plan.notions),
        "tested": next(iter(plan.tested.values())).n_queries,
        "tested_each": _tested_each(plan),
        **data_facts(plan.groupings, plan.notions),
    }


def _tested_each(plan: Plan) -> int:
    """The fewest queries that a model is tested on."""
    if plan.fold_of is None:
        return next(iter(plan.tested.values())).n_queries
    return min(int((fold_of == fold).sum()) for fold_of in plan.fold_of for fold in {one.fold for one in plan.blocks})


def _versions(methods: Sequence[str]) -> dict[str, str]:
    out = {"python": platform.python_version()}
    extras = [METHODS[name].extra for name in methods if METHODS[name].extra]
    for package in ("evenrank", "numpy", "scipy", "scikit-learn", *extras):
        for distribution in (package, f"{package}-cpu"):
            try:
                out[package] = version(distribution)
                break
            except PackageNotFoundError:
                continue
    return out


def _command() -> str:
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    return shlex.join([program, *sys.argv[1:]])
