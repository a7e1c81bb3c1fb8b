"""What a sweep was asked, checked: names, groupings, splits and strengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, floats_or_none, found
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.experiment.plan import FAIRNESS, QUALITIES, Groupings
from evenrank.labels import label_places
from evenrank.measures import MeasureAt, MeasureLike, ask, ask_all, listed_measures, measure_names
from evenrank.methods.registry import METHODS
from evenrank.notions import Notion, as_notion
from evenrank.row_checks import as_array, unmasked

FOLDS = 5
ONE = "group"  # the name of the grouping of data given without one
LARGEST_SEED = 2**63 - 1  # what a run folder holds
MOST_SEEDS = 100_000


def listed_names(names: Sequence[str] | str) -> Sequence[str]:
    """Give a list of names; one name stands for a list of one."""
    return [names] if isinstance(names, str) else names


def checked_notions(notions: Any) -> dict[str, Notion]:
    """Look up the notions that a sweep trains for, by full name.

    Parameters
    ----------
    notions : str, Notion or callable, or a sequence of them
        As `sweep` takes them.

    Returns
    -------
    dict
        Name → notion, in the order given.

    Raises
    ------
    ConfigError
        For an unknown name, or two notions of one name.
    """
    several = isinstance(notions, Iterable) and not isinstance(notions, str)
    out: dict[str, Notion] = {}
    for given in notions if several else [notions]:
        if isinstance(given, list | np.ndarray):
            raise ConfigError(
                "a sweep cuts rows into folds and takes no row masks; give a Notion, whose masks are a "
                "function of the data."
            )
        notion = as_notion(given)
        ask((notion, 1))  # or why its name cannot be used
        if out.setdefault(notion.name, notion) != notion:
            raise ConfigError(f"two different notions are called {notion.name!r}; give each its own name.")
    return out


def extra_measures(
    measures: Iterable[MeasureLike] | MeasureLike, ks: Sequence[int], own: Mapping[str, Notion]
) -> dict[str, MeasureLike]:
    """Name the further measures of a sweep, without those that it has anyway.

    Parameters
    ----------
    measures : iterable, or one measure
        As `sweep` takes them.
    ks : sequence of int
        The cut-offs.
    own : mapping of str to Notion
        The user's own notions.

    Returns
    -------
    dict
        Name → measure.
    """
    ask_all(measures)  # or which two have one name
    usual = set(measure_names(ks, [*QUALITIES, *FAIRNESS, *own]))
    out: dict[str, MeasureLike] = {}
    for measure in listed_measures(measures):
        name, asked = ask(measure)
        if isinstance(measure, tuple) and own.get(asked.measure.name, measure[0]) != measure[0]:
            raise ConfigError(f"two different notions are called {asked.measure.name!r}; give each its own name.")
        full = str(MeasureAt(asked.measure.name, asked.k))
        if (full if not str(asked.options) else name) not in usual:
            out[name] = measure
    return out


def checked_groupings(data: RankingData | Mapping[str, RankingData], what: str, least: int = 2) -> Groupings:
    """Check that groupings have enough groups each and are of the same rows.

    Parameters
    ----------
    data : RankingData or mapping of str to RankingData
        One grouping, or several by name.
    what : str
        What an error calls them.
    least : int
        How many groups each must have.

    Returns
    -------
    dict
        The groupings by name.
    """
    groupings = {ONE: data} if isinstance(data, RankingData) else dict(data) if isinstance(data, Mapping) else {}
    first = next(iter(groupings.values()), None)
    if first is None or not all(isinstance(grouping, RankingData) for grouping in groupings.values()):
        described = repr(data) if isinstance(data, Mapping) else type(data).__name__
        raise DataError(f"{what} must be a RankingData, or groupings of one by name; got {described}.")
    for name, grouping in groupings.items():
        if grouping.features is not first.features:
            raise DataError(f"{what}: grouping {name!r} has other rows; make groupings with RankingData.with_group.")
        if grouping.n_groups < least:
            present = f"only {grouping.group_names[0]!r}" if grouping.n_groups else "no group labels"
            number = "two" if least > 1 else "one"
            raise DataError(f"{what}: a sweep compares groups and needs at least {number}; {name!r} has {present}.")
        grouping.need_labels("a sweep")
    return groupings


def with_groups_of(groupings: Groupings, tests: Groupings) -> dict[str, RankingData]:
    """Give held-out data the groups of the data, some of which it may lack.

    Parameters
    ----------
    groupings, tests : mapping of str to RankingData
        The data and the held-out data under each grouping.

    Returns
    -------
    dict
        The held-out data.

    Raises
    ------
    DataError
        If held-out data has other groupings, or a group that the data lacks.
    """
    if list(groupings) != list(tests):
        raise DataError(f"test must have the groupings of data, {list(groupings)}; it has {list(tests)}.")
    out = {}
    for name, train in groupings.items():
        places = label_places(tests[name].group_names, train.group_names)
        if -1 in places:
            strange = tests[name].group_names[places.index(-1)]
            raise DataError(
                f"test must have no groups but those of data, {list(train.group_names)}; it has {strange!r}."
            )
        codes = np.array([*places, -1], np.int32)[tests[name].group]
        out[name] = replace(tests[name], group=codes, group_names=train.group_names)
    return out


def splits_of(
    groupings: Groupings,
    tests: Groupings | None,
    folds: int | ArrayLike | None,
    seed: int,
    seeds: int | Sequence[int] | None,
    test_share: float,
) -> tuple[NDArray[np.int64] | None, list[tuple[int, int]], str]:
    """Split the queries as `sweep` was asked to; the parameters are its own.

    Returns
    -------
    fold_of : ndarray of int or None
        Each query's fold in each repeat, (repeats, q); None if the test data is given.
    splits : list of tuple
        The (fold, seed) of each split.
    spread : str
        What the errors are: "standard error" or "standard deviation".
    """
    data = next(iter(groupings.values()))
    if tests is None and seeds is None:
        fold_of = _fold_of(data, FOLDS if folds is None else folds, seed)
        return fold_of[None], [(fold, seed) for fold in np.unique(fold_of).tolist()], "standard error"
    if folds is not None:
        raise ConfigError("folds go neither with test nor with seeds; leave folds out, or the other.")
    chosen = checked_seeds(seeds, seed)
    splits = [(0, chosen_seed) for chosen_seed in chosen]
    if tests is not None:
        return None, splits, "standard deviation"
    check_number(test_share, "test_share", above=0, below=1)
    held = min(max(1, round(test_share * data.n_queries)), data.n_queries - 1)
    if held < 1:
        raise ConfigError("a random split needs at least two queries; the data has one.")
    fold_of = np.ones((len(chosen), data.n_queries), np.int64)
    for number, chosen_seed in enumerate(chosen):
        drawn = data.sorted_queries[np.random.default_rng(chosen_seed).permutation(data.n_queries)[:held]]
        fold_of[number, drawn] = 0
    return fold_of, splits, "standard deviation"


def checked_seeds(seeds: int | Sequence[int] | None, seed: int) -> list[int]:
    """List the seeds that are asked for: those given, or as many as asked for from ``seed`` on."""
    requested: Any = seeds
    if isinstance(requested, Iterable) and not isinstance(requested, str):
        chosen = list(requested)
        if not chosen:
            raise ConfigError("seeds must be a number ≥ 1 or whole numbers ≥ 0; got none.")
    else:
        count = 1 if requested is None else requested
        check_number(count, "seeds", least=1, most=MOST_SEEDS, whole=True)
        chosen = list(range(seed, seed + count))
    for number in chosen:
        check_number(number, "seeds", least=0, most=LARGEST_SEED, whole=True)
    return list(dict.fromkeys(int(number) for number in chosen))


def grid_of(strengths: ArrayLike | Mapping[str, ArrayLike] | None, method: str) -> NDArray[np.float64]:
    """Give the method's strengths: those asked for, or its own grid; distinct, ascending, with 0."""
    requested = strengths.get(method) if isinstance(strengths, Mapping) else strengths
    if requested is None:
        return METHODS[method].strength.grid()
    requested = unmasked(requested, "strengths")
    grid = floats_or_none(requested).ravel()
    if not (np.isfinite(grid) & (grid >= 0)).all():
        raise ConfigError(f"strengths must be finite numbers ≥ 0; got {found(requested)}.")
    strength = METHODS[method].strength
    outside = (grid >= strength.below) | (grid > strength.most)
    if outside.any():
        raise ConfigError(
            f"strengths of {method} are values of {strength.name} {strength.range}; "
            f"got {grid[outside].tolist()}. Give it its own."
        )
    return np.unique(np.append(grid, 0.0))


def _fold_of(data: RankingData, folds: int | ArrayLike, seed: int) -> NDArray[Any]:
    """Each query's fold, (q,); there must be two at least, one to train on and one to test on."""
    if np.ndim(folds) == 0:
        return data.folds(folds, seed)  # type: ignore[arg-type]
    fold_of = as_array(folds, "folds")
    if fold_of.shape != (data.n_queries,) or fold_of.dtype.kind not in "iu":
        raise ConfigError(
            f"folds must be a number or one whole number per query, ({data.n_queries},); "
            f"got {fold_of.dtype} values of shape {fold_of.shape}."
        )
    if len(np.unique(fold_of)) < 2:
        raise ConfigError(f"folds must hold at least two different folds; every query is in fold {fold_of[0]}.")
    return fold_of.astype(np.int64)
