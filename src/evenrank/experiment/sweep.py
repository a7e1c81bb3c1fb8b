"""`sweep`: train and measure every method, notion, strength and fold; `Sweep` is the table that comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, choose
from evenrank.experiment.methods import METHODS
from evenrank.measures import measure, measure_names
from evenrank.notions import NOTIONS, as_notion

QUALITIES = ("ndcg", "precision")
FAIRNESS = (*NOTIONS, "four_fifths", "exposure_gap")
ANY = "any"
SWEPT = ("exact", "gd")


@dataclass(frozen=True)
class Trial:
    """One trained and measured model."""

    method: str
    notion: str
    strength: float
    fold: int
    seed: int
    values: dict[str, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Quality and violation against strength, averaged over folds, (strengths,) each.

    A strength is *worse* if its mean quality is below that of strength 0 by more than the sum of their standard errors;
    ``reduction`` is (Γ(0) − Γ(α)) / Γ(0).
    """

    method: str
    notion: str
    quality_name: str
    violation_name: str
    strengths: NDArray[np.float64]
    quality: NDArray[np.float64]
    quality_error: NDArray[np.float64]
    violation: NDArray[np.float64]
    violation_error: NDArray[np.float64]

    @property
    def worse(self) -> NDArray[np.bool_]:
        # An error that is not known (one fold only) allows no drop, and a quality that is not known is worse.
        allowed = np.nan_to_num(self.quality_error + self.quality_error[0])
        worse = np.asarray(~(self.quality[0] - self.quality <= allowed))
        worse[0] = False
        return worse

    @property
    def reduction(self) -> NDArray[np.float64]:
        base = self.violation[0]
        return (base - self.violation) / base if base > 0 else np.full(len(self.violation), np.nan)

    @property
    def best(self) -> int:
        """The fairest strength whose quality is not significantly worse (the weakest of them)."""
        return int(np.argmin(np.where(self.worse | np.isnan(self.violation), np.inf, self.violation)))

    @property
    def max_reduction(self) -> float:
        return float(self.reduction[self.best])

    @property
    def mean_reduction(self) -> float:
        return float(self.reduction[~self.worse].mean())


class Sweep:
    """A table of trials, a row each, with what was asked."""

    def __init__(self, columns: dict[str, Any], ks: Sequence[int], about: dict[str, Any]) -> None:
        self.columns = columns
        self.ks = tuple(ks)
        self.about = about

    def __len__(self) -> int:
        return len(self.columns["strength"])

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(self.columns["method"]))

    @property
    def notions(self) -> list[str]:
        """Those asked for; a method that knows no notions is measured by each of them."""
        return list(self.about.get("notions") or dict.fromkeys(self.columns["notion"]))

    def frame(self) -> Any:
        """The trials as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.columns)

    def __iter__(self) -> Iterator[Trial]:
        return self.trials()

    def trials(self) -> Iterator[Trial]:
        for row in self.frame().iter_rows(named=True):
            own = {name: row.pop(name) for name in ("method", "notion", "strength", "fold", "seed", "seconds")}
            yield Trial(values=row, **own)

    def curve(self, notion: str, k: int, *, method: str | None = None, quality: str = "ndcg") -> Curve:
        """One method's curve for one notion, measured by that notion at k."""
        name = as_notion(notion).name
        chosen = (np.array(self.columns["method"]) == (method or self.methods[0])) & (
            np.isin(self.columns["notion"], [name, ANY])
        )
        quality_name, violation_name = f"{quality}@{k}", f"{name}@{k}"
        if not chosen.any() or violation_name not in self.columns or quality_name not in self.columns:
            raise ConfigError(
                f"the sweep has no curve for {name} at k={k}, method {method or self.methods[0]!r} and {quality!r}; "
                f"it has notions {self.notions}, k in {list(self.ks)}, methods {self.methods}."
            )
        strength = np.array(self.columns["strength"])[chosen]
        strengths = np.unique(strength)
        folds = np.array(self.columns["fold"])[chosen]

        def by_strength(column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            values = np.array(self.columns[column])[chosen]
            order = np.lexsort([folds, strength])
            table = values[order].reshape(len(strengths), -1)
            return _mean_and_error(table)

        return Curve(
            method or self.methods[0],
            name,
            quality_name,
            violation_name,
            strengths,
            *by_strength(quality_name),
            *by_strength(violation_name),
        )

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints: the configuration and, for each curve, its means, errors and what comes free."""
        curves = []
        for method in self.methods:
            for notion in self.notions:
                for k in self.ks:
                    curve = self.curve(notion, k, method=method)
                    curves.append(
                        {
                            "method": method,
                            "notion": notion,
                            "k": k,
                            "strength": curve.strengths.tolist(),
                            curve.quality_name: curve.quality.tolist(),
                            f"{curve.quality_name} error": curve.quality_error.tolist(),
                            curve.violation_name: curve.violation.tolist(),
                            f"{curve.violation_name} error": curve.violation_error.tolist(),
                            "significantly_worse": curve.worse.tolist(),
                            "best_strength": float(curve.strengths[curve.best]),
                            "max_reduction": curve.max_reduction,
                            "mean_reduction": curve.mean_reduction,
                        }
                    )
        return {"about": self.about, "curves": curves}


def _mean_and_error(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Over the folds (columns) that have a value: a fold that lacks a group or anything relevant has none.

    Which folds those are depends on the data and not on the scores, so all strengths are averaged over the same ones.
    """
    table = table[:, ~np.isnan(table).all(axis=0)]
    count = table.shape[1]
    nothing = np.full(len(table), np.nan)
    mean = table.mean(axis=1) if count else nothing
    return mean, table.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else nothing


def sweep(
    data: RankingData,
    methods: Sequence[str] = ("amortized",),
    notions: Sequence[str] = tuple(NOTIONS),
    strengths: ArrayLike | None = None,
    ks: Sequence[int] = (1, 3, 5),
    folds: int | ArrayLike = 5,
    seed: int = 0,
    *,
    solver: str = "exact",
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Cross-validate by query: every strength of every notion of a fold trains together.

    Parameters
    ----------
    methods, notions : names
    strengths : the grid, (A,); None is each method's own. 0, the baseline, is added if absent
    ks : cut-offs of the measures
    folds : their number, or each query's own fold, (q,)
    solver : "exact" or "gd"

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=50)
    >>> result = er.sweep(data, notions=["dp"], strengths=[0, 0.1], ks=[5], folds=er.datasets.german_credit_folds(data))
    >>> len(result), result.curve("dp", 5).max_reduction > 0
    (10, True)
    """
    names = list(dict.fromkeys(as_notion(notion).name for notion in _several(notions)))
    methods = list(dict.fromkeys(choose(name, METHODS, what="method") for name in _several(methods)))
    ks = list(dict.fromkeys(np.atleast_1d(ks).tolist()))
    if not names or not methods or not ks:
        raise ConfigError("a sweep needs at least one method, one notion and one k.")
    choose(solver, SWEPT, what="solver")
    given = None if strengths is None else _checked_grid(strengths)
    fold_of = _fold_of(data, folds, seed)
    wanted = measure_names(ks, [*QUALITIES, *FAIRNESS])
    columns: dict[str, list[Any]] = {name: [] for name in ("method", "notion", "strength", "fold", "seed", "seconds")}
    columns |= {name: [] for name in wanted}
    numbers = np.unique(fold_of).tolist()
    started = time.perf_counter()
    for done, (fold, name) in enumerate((fold, name) for fold in numbers for name in methods):
        method = METHODS[name]
        grid = method.grid() if given is None else given
        train, test = data.take(fold_of != fold), data.take(fold_of == fold)
        began = time.perf_counter()
        values: dict[str, Any] = {}
        for k in ks if method.by_k else [None]:
            scores = method.run(train, test, names, grid, solver, k)
            values |= measure(scores, test, wanted if k is None else measure_names([k], [*QUALITIES, *FAIRNESS]))
        trained = names if method.by_notion else [ANY]
        models = len(trained) * len(grid)
        columns["method"] += [name] * models
        columns["notion"] += [notion for notion in trained for _ in grid]
        columns["strength"] += np.tile(grid, len(trained)).tolist()
        columns["fold"] += [int(fold)] * models
        columns["seed"] += [seed] * models
        columns["seconds"] += [(time.perf_counter() - began) / models] * models
        for column in wanted:
            columns[column] += values[column].tolist()
        if progress is not None:
            progress((done + 1) / (len(numbers) * len(methods)))
    about = {
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "groups": {str(name): float((data.group == code).mean()) for code, name in enumerate(data.group_names)},
        "folds": len(numbers),
        "seed": seed,
        "solver": solver,
        "notions": names,
        "models": len(columns["fold"]),
        "seconds": time.perf_counter() - started,
    }
    return Sweep(columns, ks, about)


def _several(names: Sequence[str] | str) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _checked_grid(strengths: ArrayLike) -> NDArray[np.float64]:
    """The distinct strengths and 0, ascending."""
    try:
        grid = np.asarray(strengths, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        grid = np.array([np.nan])
    if not (np.isfinite(grid) & (grid >= 0)).all():
        raise ConfigError(f"strengths must be finite numbers ≥ 0; got {strengths!r}.")
    return np.unique(np.append(grid, 0.0))


def _fold_of(data: RankingData, folds: int | ArrayLike, seed: int) -> NDArray[Any]:
    """Each query's fold, (q,); there must be two at least, one to train on and one to test on."""
    if np.ndim(folds) == 0:
        return data.folds(folds, seed)  # type: ignore[arg-type]
    fold_of = np.asarray(folds)
    if fold_of.shape != (data.n_queries,) or fold_of.dtype.kind not in "iu":
        raise ConfigError(
            f"folds must be a number or one whole number a query, ({data.n_queries},); "
            f"got {fold_of.dtype} values of shape {fold_of.shape}."
        )
    if len(np.unique(fold_of)) < 2:
        raise ConfigError(f"folds must hold at least two different folds; every query is in fold {fold_of[0]}.")
    return fold_of
