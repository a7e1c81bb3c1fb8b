"""How a sweep runs each family of methods: a task in, test scores out, strength by strength."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.design_columns import column_scale
from evenrank.errors import DataError, DataWarning
from evenrank.linear.path import FairnessPath, fairness_path
from evenrank.methods.crossfit import crossfit_scores
from evenrank.methods.method import ANY, Method, Part, Task, larger_group, refusals
from evenrank.rankers.matching import protected_code
from evenrank.rankers.row_products import row_products
from evenrank.rerankers.chances import shared_chances
from evenrank.rerankers.scored_lists import ScoredLists

# A strength far beyond α*, from which on an exact path is constant.
PATH_END = 1e6
# What the order of scores adds to chances at most.
TIE_BREAK = 1e-7


def regularized(method: Method, task: Task) -> Iterator[Part]:
    """Train all groupings, notions and strengths together.

    Parameters
    ----------
    method : Method
        The method.
    task : Task
        What it is run on.

    Yields
    ------
    Part
        Test scores, (n, strengths), of one grouping and notion.
    """
    options = {"scale": task.scale, "seed": task.seed, **method.fixed, **task.settings}
    path = fairness_path(
        list(task.train), [task.notion(name) for name in task.notions], task.strengths, task.solver, **options
    )
    size = len(task.strengths)
    parts = [(grouping, notion) for grouping in range(len(task.train)) for notion in task.notions]
    for number, (grouping, notion) in enumerate(parts):
        models = slice(number * size, (number + 1) * size)
        yield Part(grouping, notion, None, _some(path, models).scores(task.test[grouping]))


def beyond(method: Method, task: Task) -> Iterator[Part]:
    """Go from strength 0 towards α*, where the exact path ends, and beyond it, as far as the strength says."""
    ends = replace(task, strengths=np.array([0.0, PATH_END]), solver="exact")
    for part in regularized(method, ends):
        start, end = part.scores[:, :1], part.scores[:, 1:]
        yield replace(part, scores=start + (end - start) * task.strengths)


def selected(method: Method, task: Task) -> Iterator[Part]:
    """Close the gap of the selection as a straight line tells it, for each notion and cut-off."""
    from evenrank.linear.selection_path import selection_path

    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion, k in product(task.notions, task.ks):
            path = selection_path(train, task.notion(notion), k, task.strengths, scale=task.scale, **task.settings)
            yield Part(grouping, notion, k, path.scores(test))


def selected_by_ranks(method: Method, task: Task) -> Iterator[Part]:
    """Do as `selected` with the features' ranks in their lists beside them, making up for all of random order's gap."""
    from evenrank.linear.list_ranks import groupings_with_list_ranks

    train, test = groupings_with_list_ranks(task.train), groupings_with_list_ranks(task.test)
    return selected(method, replace(task, train=train, test=test, settings={"makes_up": 1.0, **task.settings}))


def group_aware(method: Method, task: Task) -> Iterator[Part]:
    """Train each grouping alone, as a group-aware model sees one grouping."""
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for part in regularized(method, replace(task, train=(train,), test=(test,))):
            yield replace(part, grouping=grouping)


def _some(path: FairnessPath, models: slice) -> FairnessPath:
    offset = None if path.group_offset is None else path.group_offset[models]
    alphas, intercept = path.alphas[models], path.intercept[models]
    step = None if path.resolution is None else path.resolution[models]
    return replace(
        path, coef=path.coef[models], intercept=intercept, alphas=alphas, group_offset=offset, resolution=step
    )


def deltr(method: Method, task: Task) -> Iterator[Part]:
    """Train all strengths of a grouping together."""
    from evenrank.linear.deltr_path import deltr_path

    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        protected = larger_group(train) if method.larger else None
        path, _ = deltr_path(train, task.strengths, protected=protected, **method.fixed, **task.settings)
        yield Part(grouping, ANY, None, path.scores(test))


def deltr_published(method: Method, task: Task) -> Iterator[Part]:
    """Train all strengths as the published package trains each, which sees the protected flag as a feature.

    Features are scaled as the task says, which in the paper's experiment is one by one over the data set, and the
    package's own standardisation, one mean and deviation for all of them, stays off, as it is by default. It divides by
    the number of a list's items of each group, so that lists that lack one cannot be trained on.
    """
    from evenrank.linear.deltr_published import first_weights, train_published

    for grouping, (rows, test) in enumerate(zip(task.train, task.test, strict=True)):
        code = protected_code(rows, None)
        members = np.add.reduceat(rows.group == code, rows.query_ptr[:-1])
        train = rows.take((members > 0) & (members < rows.lengths))
        center, spread = _feature_scale(rows, task.scale)
        flagged = [
            replace(
                data,
                features=np.column_stack([(np.asarray(data.features, float) - center) / spread, data.group == code]),
                feature_names=(*data.feature_names, "protected"),
            )
            for data in (train, test)
        ]
        start = first_weights(task.seed, flagged[0].n_features)
        steps = {"learning_rate": 0.001, "max_iter": None, **task.settings}
        theta, _ = train_published(flagged[0], task.strengths, code, start, None, **steps)
        yield Part(grouping, ANY, None, test.to_caller(row_products(flagged[1].features, theta)))


def _feature_scale(train: RankingData, scale: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is taken from each feature and what it is divided by, (d,) each, as `fairness_path` scales."""
    if scale is None:
        return np.zeros(train.n_features), np.ones(train.n_features)
    source = train.parent if scale == "dataset" and train.parent is not None else train
    return column_scale(source)


def fastar(method: Method, task: Task) -> Iterator[Part]:
    """Re-rank the strength-0 model's scores by the table for k; share 0 leaves them alone."""
    of_fastar, _, plain = _base_scores(task, ("significance",), learns=False)
    shares = task.strengths > 0
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        protected = larger_group(train) if method.larger else train.group_names[protected_code(train, None)]
        for k in task.ks:
            out = np.repeat(plain[:, None], len(task.strengths), axis=1)
            if shares.any():
                parameters = {"p": task.strengths[shares], "protected": protected, **method.fixed, **of_fastar}
                out[:, shares] = method.ranker_class()(**parameters).rerank(plain, test, k)
            yield Part(grouping, ANY, k, out)


def controller(method: Method, task: Task) -> Iterator[Part]:
    """Serve the strength-0 model's test lists in their order, one run per gain; gain 0 leaves them alone.

    A controller that served the training lists says where to start and what chance of being relevant a score means.
    """
    of_controller, learned, plain = _base_scores(task, ("value", "limit", "memory"))
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion, k in product(task.notions, task.ks):
            pilot = method.ranker_class()(task.notion(notion), k, **of_controller).fit(learned, train)
            columns = [
                method.ranker_class()(task.notion(notion), k, gain, warm=pilot, **of_controller).rerank(plain, test)
                if gain
                else plain
                for gain in task.strengths.tolist()
            ]
            yield Part(grouping, notion, k, np.stack(columns, axis=1))


def offset(method: Method, task: Task) -> Iterator[Part]:
    """Re-rank by offsets chosen on scores of the training rows, for each notion and cut-off.

    Methods that see other lists choose them anew on the test lists, without labels.
    """
    options, trained, plain = _base_scores(task, ("max_ndcg_loss", "shrink"))
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        if test.group_names != train.group_names:
            raise DataError(f"{method.name} must know the groups to be ranked, {list(test.group_names)}.")
        lists, to_rank = ScoredLists.of(trained, train), ScoredLists.of(plain, test)
        for k, notion in product(task.ks, task.notions):  # notions at one k share their crossings
            reranker = method.ranker_class()(task.notion(notion), k, **method.fixed, **options).fit_lists(lists)
            if method.sees.other_lists:
                reranker = reranker.adapt_lists(to_rank)
            yield Part(grouping, notion, k, reranker.along(to_rank, task.strengths))


def prefixes(method: Method, task: Task) -> Iterator[Part]:
    """Re-rank the strength-0 model's scores so that prefixes have shares of the groups of the training rows."""
    own, _, plain = _base_scores(task, ("significance", "adjust"), learns=False)
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        reranker = method.ranker_class()(**method.fixed, **own).fit(None, train)
        for k in task.ks:
            columns = [reranker.at(strength).rerank(plain, test, k) for strength in task.strengths.tolist()]
            yield Part(grouping, ANY, k, np.stack(columns, axis=1))


def exposed(method: Method, task: Task) -> Iterator[Part]:
    """Draw one ranking of each list; relevance is estimated from the scores, as the training rows say."""
    own, trained, plain = _base_scores(task, ("slack",))
    merit = _merits(trained, task.train[0], plain, task.test[0])
    columns: list[NDArray[Any]] = []
    for grouping, test in enumerate(task.test):
        if not columns or method.sees.group_at_serving:  # without groups all groupings have the same draws
            columns = []
            for strength in task.strengths.tolist():
                ranker = method.ranker_class()(strength=strength, **method.fixed, **own)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)  # the method's facts say that it is not always met
                    columns.append(ranker.rerank(merit, test, seed=task.seed) if strength else plain)
        yield Part(grouping, ANY, None, np.stack(columns, axis=1))


def attention(method: Method, task: Task) -> Iterator[Part]:
    """Serve the test lists in turn; the strength is the part of the best quality that need not be kept."""
    _, trained, plain = _base_scores(task, ())
    merit = _merits(trained, task.train[0], plain, task.test[0])
    scores = [
        method.ranker_class()(theta=1 - strength).serve(merit, task.test[0]) if strength else plain
        for strength in task.strengths.tolist()
    ]
    for grouping in range(len(task.train)):
        yield Part(grouping, ANY, None, np.stack(scores, axis=1))


def _merits(trained: NDArray[Any], train: RankingData, plain: NDArray[Any], test: RankingData) -> NDArray[np.float64]:
    """The chance of being relevant that each test score stands for; scores are in the caller's row order.

    Chances are equal over ranges of scores. There the scores still say who is better, and not the order of the rows,
    which may be that of the labels.
    """
    chances = shared_chances(np.asarray(train.to_stored(trained), float), train)
    scores = np.asarray(plain, float)
    place = np.unique(scores, return_inverse=True)[1]
    return np.asarray(chances(scores) + TIE_BREAK * place / max(1, place.max()))


def mapped(method: Method, task: Task) -> Iterator[Part]:
    """Re-rank by maps of scores learned on scores of the training rows."""
    options, trained, plain = _base_scores(task, ("n_quantiles",))
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        reranker = method.ranker_class()(**method.fixed, **options).fit(trained, train)
        yield Part(grouping, ANY, None, _at_strengths(reranker, plain, test, task))


def _base_scores(
    task: Task, own: tuple[str, ...], *, learns: bool = True
) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any]]:
    """The settings of the re-ranker itself, and the strength-0 model's scores of the training and the test rows.

    Training rows that a re-ranker learns from are scored by models of other queries.
    """
    options: dict[str, Any] = {"scale": task.scale, "seed": task.seed, **task.settings}
    of_reranker = {name: options.pop(name) for name in own if name in options}

    def train_scores(train: RankingData, test: RankingData) -> NDArray[Any]:
        return fairness_path(train, "demographic_parity", [0.0], task.solver, **options).scores(test)[:, 0]

    train, plain = task.train[0], train_scores(task.train[0], task.test[0])
    return of_reranker, crossfit_scores(train, train_scores, task.seed) if learns else np.empty(0), plain


def _at_strengths(reranker: Any, scores: NDArray[Any], data: RankingData, task: Task) -> NDArray[Any]:
    """Re-ranked scores, (n, strengths)."""
    return np.stack([reranker.at(strength).rerank(scores, data) for strength in task.strengths.tolist()], axis=1)


def boosted(method: Method, task: Task) -> Iterator[Part]:
    """Train trees, one strength after the other, on one thread."""
    adapter = import_module(method.home[0])
    options = {"random_state": task.seed, **task.settings}
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion in task.notions:
            strengths = task.strengths.tolist()
            with refusals(method.name, task.settings):
                scores = [
                    adapter.train_scores(train, test, task.notion(notion), alpha, **options) for alpha in strengths
                ]
            yield Part(grouping, notion, None, np.stack(scores, axis=1))


def neural(method: Method, task: Task) -> Iterator[Part]:
    """Train the networks of all strengths together."""
    adapter = import_module(method.home[0])
    options = {"random_state": task.seed, **task.settings}
    for grouping, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
        for notion in task.notions:
            with refusals(method.name, task.settings):
                scores = adapter.train_scores(train, test, task.notion(notion), task.strengths, **options)
            yield Part(grouping, notion, None, scores)
