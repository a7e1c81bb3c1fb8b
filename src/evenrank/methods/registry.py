"""The methods, as data: the command line, the sweeps and the documentation all read this registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, EvenrankError
from evenrank.linear.path import FairnessPath, fairness_path, strength_grid
from evenrank.rerankers.fastar import FAStar, protected_code

ANY = "any"
LINEAR = ("loss", "ridge", "fit_intercept", "learning_rate", "max_iter", "epochs", "batch_queries", "batch_items")


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is run on: rows to train on and to test on under each grouping, which share their features.

    Attributes
    ----------
    settings : the method's own options
    """

    train: tuple[RankingData, ...]
    test: tuple[RankingData, ...]
    notions: tuple[str, ...]
    strengths: NDArray[np.float64]
    ks: tuple[int, ...]
    solver: str = "exact"
    scale: str | None = "train"
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Part:
    """Test scores, (n, strengths), of one grouping, one notion (or `ANY`), and one k if the method is run for each."""

    grouping: int
    notion: str
    k: int | None
    scores: NDArray[Any]


@dataclass(frozen=True)
class Method:
    """What a method is and how a sweep runs it.

    Attributes
    ----------
    kind : "in-processing" (it trains) or "post-processing" (it re-ranks the scores of the strength-0 model)
    strength : its own name for the swept knob
    grid : its default strengths; 0 is its baseline
    run : task → parts, made one after the other so that only one's scores are in memory
    options : names of the settings it takes; None leaves it to the library that trains
    by_notion : it trains for a notion; otherwise one run serves all
    by_k : it is run anew for each cut-off
    extra : the optional dependency it needs
    """

    name: str
    title: str
    kind: str
    strength: str
    grid: Callable[[], NDArray[np.float64]]
    run: Callable[[Task], Iterator[Part]]
    options: tuple[str, ...] | None = ()
    by_notion: bool = False
    by_k: bool = False
    extra: str = ""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings the method does not have."""
        for name in settings:
            if self.options is not None and name not in self.options:
                known = ", ".join(self.options) or "none"
                raise ConfigError(f"setting {self.name}.{name} is not known; the settings of {self.name} are: {known}.")


def share_grid() -> NDArray[np.float64]:
    """FA*IR's shares 0.02, 0.04, …, 0.98, after 0 for the untouched ranking."""
    return np.arange(50) / 50


def other_group(train: RankingData) -> Any:
    """The label of the largest group: the protected one if not the smallest is."""
    return train.group_names[int(np.argmax(np.bincount(train.group[train.group >= 0], minlength=train.n_groups)))]


def _regularized(task: Task, *, scope: str) -> Iterator[Part]:
    """All groupings, notions and strengths train together."""
    options = {"scale": task.scale, "seed": task.seed, **task.settings}
    path = fairness_path(list(task.train), list(task.notions), task.strengths, task.solver, scope, **options)
    size = len(task.strengths)
    parts = [(grouping, notion) for grouping in range(len(task.train)) for notion in task.notions]
    for number, (grouping, notion) in enumerate(parts):
        models = slice(number * size, (number + 1) * size)
        yield Part(grouping, notion, None, _some(path, models).scores(task.test[grouping]))


def _group_aware(task: Task) -> Iterator[Part]:
    """A group-aware model sees one grouping, so each trains alone."""
    options = {"scale": task.scale, "seed": task.seed, "group_aware": True, **task.settings}
    size = len(task.strengths)
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        scores = fairness_path(train, list(task.notions), task.strengths, task.solver, **options).scores(test)
        for number, notion in enumerate(task.notions):
            yield Part(grouping, notion, None, scores[:, number * size : (number + 1) * size])


def _some(path: FairnessPath, models: slice) -> FairnessPath:
    return replace(path, coef=path.coef[models], intercept=path.intercept[models], alphas=path.alphas[models])


def _deltr(task: Task, *, group_aware: bool, larger: bool) -> Iterator[Part]:
    from evenrank.linear.deltr import deltr_path

    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        protected = other_group(train) if larger else None
        path, _ = deltr_path(train, task.strengths, group_aware=group_aware, protected=protected, **task.settings)
        yield Part(grouping, ANY, None, path.scores(test))


def _fastar(task: Task, *, adjust: bool, larger: bool) -> Iterator[Part]:
    """Re-rank the strength-0 model's scores by the table for k; share 0 leaves them alone."""
    own = {name: value for name, value in task.settings.items() if name == "significance"}
    options: dict[str, Any] = {"scale": task.scale, "seed": task.seed, **task.settings}
    options.pop("significance", None)
    plain = fairness_path(task.train[0], "demographic_parity", [0.0], task.solver, **options).scores(task.test[0])[:, 0]
    shares = task.strengths > 0
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        protected = other_group(train) if larger else train.group_names[protected_code(train, None)]
        for k in task.ks:
            out = np.repeat(plain[:, None], len(task.strengths), axis=1)
            if shares.any():
                ranker = FAStar(task.strengths[shares], adjust=adjust, protected=protected, **own)
                out[:, shares] = ranker.rerank(plain, test, k)
            yield Part(grouping, ANY, k, out)


@contextmanager
def refusals(name: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """An error of the library that trains, where it was given options of its own, as a ConfigError of one line."""
    try:
        yield
    except EvenrankError:
        raise
    except Exception as error:
        if not settings:
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        given = " and ".join(f"{option}={value}" for option, value in settings.items())
        raise ConfigError(f"{name} does not take {given}: {reason}") from None


def _boosted(task: Task, *, library: str) -> Iterator[Part]:
    """Trees, one strength after the other, one thread."""
    adapter = import_module(f"evenrank.{library}")
    options = {"random_state": task.seed, **task.settings}
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion in task.notions:
            strengths = task.strengths.tolist()
            with refusals(library, task.settings):
                scores = [adapter.train_scores(train, test, notion, alpha, **options) for alpha in strengths]
            yield Part(grouping, notion, None, np.stack(scores, axis=1))


def _neural(task: Task) -> Iterator[Part]:
    """Networks of all strengths train together."""
    adapter = import_module("evenrank.torch")
    options = {"seed": task.seed, **task.settings}
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion in task.notions:
            with refusals("mlp", task.settings):
                scores = adapter.train_scores(train, test, notion, task.strengths, **options)
            yield Part(grouping, notion, None, scores)


def _model_method(name: str, title: str, run: Callable[[Task], Iterator[Part]], extra: str) -> Method:
    return Method(name, title, "in-processing", "alpha", strength_grid, run, None, by_notion=True, extra=extra)


def _regularized_method(name: str, title: str) -> Method:
    run = partial(_regularized, scope=name)
    return Method(name, title, "in-processing", "alpha", strength_grid, run, LINEAR, by_notion=True)


def _deltr_method(name: str, title: str, *, group_aware: bool = False, larger: bool = False) -> Method:
    run = partial(_deltr, group_aware=group_aware, larger=larger)
    return Method(name, title, "in-processing", "gamma", strength_grid, run, ("weighting", "max_iter", "tolerance"))


def _fastar_method(name: str, title: str, *, adjust: bool = True, larger: bool = False) -> Method:
    run = partial(_fastar, adjust=adjust, larger=larger)
    return Method(name, title, "post-processing", "p", share_grid, run, ("significance", *LINEAR), by_k=True)


METHODS = {
    method.name: method
    for method in (
        _regularized_method("amortized", "fairness regularisation, gaps pooled over all queries (the paper's method)"),
        _regularized_method("per_query", "fairness regularisation, gaps within each query (the paper's ablation)"),
        Method(
            "amortized_aware",
            "as amortized, the model seeing the group itself",
            "in-processing",
            "alpha",
            strength_grid,
            _group_aware,
            LINEAR,
            by_notion=True,
        ),
        _deltr_method("deltr", "ListNet with a penalty on disparate exposure"),
        _deltr_method("deltr_aware", "DELTR with the protected flag as a feature", group_aware=True),
        _deltr_method("deltr_larger", "DELTR with the larger group as the protected one", larger=True),
        _fastar_method("fastar", "FA*IR: a minimum of protected items in every prefix, significance adjusted"),
        _fastar_method("fastar_unadjusted", "FA*IR without the adjustment", adjust=False),
        _fastar_method("fastar_larger", "FA*IR with the larger group as the protected one", larger=True),
        _model_method(
            "lightgbm", "LightGBM's trees (LambdaMART) and the gap", partial(_boosted, library="lightgbm"), "lightgbm"
        ),
        _model_method(
            "xgboost", "XGBoost's trees (LambdaMART) and the gap", partial(_boosted, library="xgboost"), "xgboost"
        ),
        _model_method("mlp", "a neural network (ListNet) and the gap", _neural, "torch"),
    )
}
