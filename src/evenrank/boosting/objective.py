"""The objective of fair boosted rankers, a loss plus n·α·Γ, and what the rankers of both libraries share.

Boosting sums losses over rows where the rest of the package takes means, so α·Γ is multiplied by n (by the sum of the
weights): α means the same everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.rows import as_rows, fit_rows
from evenrank.categories import Categories
from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.losses import LOSSES
from evenrank.notions import bind
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation
from evenrank.targets import BoundTarget, FairnessTerm, bind_target

BASES = ("lambdarank", *(name for name, loss in LOSSES.items() if not loss.within))
TARGET = "topk"
TEMPERATURE = 0.2
# √(gap² + ε²) in place of |gap|, whose slope changes sign tree after tree once the gap is near 0. Beyond α = 1, ε grows
# with α: the gap is 0 from some α on, and a stiffer pull could only make it swing.
SMOOTHING = 0.03
FLOOR = 0.3  # of a list's spread: all scores are equal before the first tree
# The diagonal that bounds Γ's Hessian holds even if all rows move together. A tree, which sees groups through its
# features only, moves them less: with the whole bound the loss is hardly learned, with too little of it the gap swings.
# So this share of it is used, doubled (up to all of it) in a round that finds the gap overshot, and let go slowly.
DAMPING, RELEASE, SWING = 0.003, 0.9, 0.01
# The multiplier of ``max_violation``: where it starts, its bounds, how far it moves in a round, and how far below the
# limit it aims, since trees overshoot both ways.
SMALLEST_ALPHA, FIRST_ALPHA, LARGEST_ALPHA = 0.001, 0.3, 30.0
GAIN, HURRY = 0.05, 2.0
MARGIN = 0.8

Gradients = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]


def fairness(*, target: str = TARGET, **options: Any) -> FairnessSpec:
    """Make the spec of a boosted ranker, whose target is the top k unless another is named.

    Parameters
    ----------
    target : str
        The value that is evened out.
    **options : Any
        The other fields of `FairnessSpec`.

    Returns
    -------
    FairnessSpec
        The spec.
    """
    return FairnessSpec(target=target, **options)


class FairObjective:
    """First and second derivatives of the boosted scores' loss + n·α·Γ, called once per round.

    Parameters
    ----------
    data : RankingData
        The training rows; scores come in its stored order.
    base : Callable
        The loss's derivatives by row; see `base_gradients`.
    spec : FairnessSpec
        What is evened out, how strongly, and in what value. With ``max_violation`` the multiplier moves in each round
        so that the gap of the top k on these rows comes down to it.

    Attributes
    ----------
    alpha : float
        The multiplier now.
    damping : float
        The share of the bound on Γ's Hessian now.
    history : list
        With ``max_violation``, the gap and the multiplier before each tree.
    """

    def __init__(self, data: RankingData, base: Gradients, spec: FairnessSpec) -> None:
        self.data, self.base, self.spec = data, base, spec
        self.alpha = FIRST_ALPHA if spec.bounded else float(spec.alpha)
        self.weight = data.sample_weight
        self.total = float(data.n_rows if self.weight is None else self.weight.sum())
        self.term: FairnessTerm | None = None
        if self.alpha > 0:
            contrast = bind(spec.notion, data, scope=spec.scope, training=True)
            self.term = FairnessTerm(contrast, _bound(spec, data.query_ptr), smoothing(self.alpha))
        self.damping = DAMPING
        self.history: list[tuple[float, float]] = []
        self._last: NDArray[Any] | None = None
        self._last_top: NDArray[Any] | None = None
        self.measured = TopViolation(data, spec) if spec.bounded else None
        if self.measured is not None and self.measured.contrast.pairs.missing:
            name = self.measured.name
            raise ConfigError(f"max_violation needs {name}, which these rows do not define. Set alpha instead.")

    def __call__(self, scores: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give the derivatives for the scores of a round.

        Parameters
        ----------
        scores : ndarray
            (n,), in stored order.

        Returns
        -------
        tuple of ndarray
            First and second derivatives, (n,) each.
        """
        first, second = self.base(scores)
        if self.weight is not None:
            first, second = first * self.weight, second * self.weight
        if self.term is not None:
            precise = np.array(scores, np.float64)
            self._update(precise)
            self.term.smoothing = smoothing(self.alpha)
            gradient, bound = self.term.derivatives(precise)
            self._damp(self.term.contrast.gaps(self.term.target.value(precise)))
            first = first + self.alpha * self.total * gradient
            second = second + self.damping * self.alpha * self.total * bound
        return np.asarray(first, np.float32), np.asarray(second, np.float32)

    def trees_within(self) -> int | None:
        """Count the most trees, at least half of them, whose gap is within ``max_violation``.

        Returns
        -------
        int or None
            The number of trees; None if the gap was never within it.
        """
        limit = np.inf if self.spec.max_violation is None else self.spec.max_violation
        within = [count for count, (gap, _) in enumerate(self.history) if gap <= limit]
        return within[-1] if within and within[-1] >= max(1, len(self.history) // 2) else None

    def _damp(self, gaps: NDArray[Any]) -> None:
        """Shorter steps where the last tree carried the gaps to the other side of 0, longer ones elsewhere."""
        assert self.term is not None
        weight = self.term.contrast.pairs.weight
        swung = self._last is not None and weight @ (gaps * self._last) < 0 and weight @ np.abs(gaps) > SWING
        self.damping = min(1.0, 2 * self.damping) if swung else max(DAMPING, RELEASE * self.damping)
        self._last = gaps

    def _update(self, scores: NDArray[np.float64]) -> None:
        """Raise the multiplier while the gap is above ``max_violation``, lower it while it is below.

        A gap that has changed sign was overshot: a larger multiplier would only widen its swing.
        """
        limit = self.spec.max_violation
        if limit is None or self.measured is None:
            return
        gaps = self.measured.gaps(scores)
        violation = self.measured.of_gaps(gaps)
        excess = violation - MARGIN * limit
        step = np.clip(excess / max(limit, 0.02), -1, HURRY)
        if step > 0 and self._last_top is not None and (gaps * self._last_top).sum() < 0:
            step = -HURRY
        self._last_top = gaps
        self.history.append((violation, self.alpha))
        self.alpha = float(np.clip(self.alpha * np.exp(GAIN * step), SMALLEST_ALPHA, LARGEST_ALPHA))


def smoothing(alpha: float) -> float:
    """Give the ε of √(gap² + ε²) at a strength.

    Parameters
    ----------
    alpha : float
        The strength.

    Returns
    -------
    float
        ε, which grows with a strength above 1.
    """
    return SMOOTHING * max(1.0, alpha)


def _bound(spec: FairnessSpec, query_ptr: NDArray[np.int64]) -> BoundTarget:
    temperature = TEMPERATURE if spec.temperature is None and spec.target == "topk" else spec.temperature
    plain = bind_target(spec.target, query_ptr, k=spec.k, temperature=temperature, floor=FLOOR)
    if spec.target != "topk":
        return plain
    from evenrank.boosting.soft_topk import FastTopK

    return FastTopK(query_ptr, spec.k, float(temperature or TEMPERATURE), FLOOR)


def base_gradients(name: str, data: RankingData, rule: Any = None) -> Gradients:
    """Make the function that gives a loss's derivatives by row, before weights.

    Parameters
    ----------
    name : str
        "lambdarank", "logistic" or "squared".
    data : RankingData
        The training rows.
    rule : LambdaRank, optional
        Whose LambdaRank; needed for "lambdarank".

    Returns
    -------
    Callable
        From scores (n,) in stored order to first and second derivatives, (n,) each.
    """
    choose(name, BASES, what="objective")
    if name == "lambdarank":
        return rule.bind(data.relevance, data.query_ptr).gradient  # type: ignore[no-any-return]
    loss = LOSSES[name]
    relevance = data.relevant.astype(np.float64) if loss.binary else data.relevance
    return lambda scores: (loss.gradient(scores, relevance), loss.curvature(scores, relevance))


def warn_if_above(violation: float, spec: FairnessSpec, alpha: float) -> None:
    """Warn that ``max_violation`` was not reached, if it was not.

    Parameters
    ----------
    violation : float
        The gap of the top k on the training rows.
    spec : FairnessSpec
        The spec of the ranker.
    alpha : float
        The strength at the end of training.
    """
    if spec.max_violation is not None and violation > spec.max_violation:
        warnings.warn(
            f"max_violation={spec.max_violation:g} was not reached: {spec.as_notion.name}@{spec.k} on the training "
            f"rows is {violation:.4f} at alpha={alpha:.3g}. Train more trees, or allow a larger violation.",
            DataWarning,
            stacklevel=3,
        )


class ObjectiveOnRows:
    """What the `fair_objective` of both libraries share: an objective on given rows; subclasses are called with scores.

    Parameters
    ----------
    data, objective, params, **options
        See `evenrank.lightgbm.fair_objective`.
    """

    lambdarank_rule: Callable[[dict[str, Any]], Any]

    def __init__(
        self, data: Any, *, objective: str = "lambdarank", params: dict[str, Any] | None = None, **options: Any
    ) -> None:
        rows = as_rows(data)
        rule = self.lambdarank_rule(params or {}) if objective == "lambdarank" else None
        self.objective = FairObjective(rows, base_gradients(objective, rows, rule), fairness(**options))


class FairBoosted:
    """What the fair rankers of both libraries share; the other base of each is its library's own ranker.

    Parameters
    ----------
    notion, alpha, target, max_violation, scope, k, temperature, relevance_threshold
        See `evenrank.lightgbm.FairLGBMRanker`.
    **kwargs : Any
        The parameters of the library's ranker.
    """

    OURS = ("notion", "alpha", "target", "max_violation", "scope", "k", "temperature", "relevance_threshold")

    predict: Callable[..., NDArray[Any]]
    categories_: Categories = MappingProxyType({})

    def __init__(
        self,
        *,
        notion: Any = "equal_opportunity",
        alpha: float = 1.0,
        target: str = TARGET,
        max_violation: float | None = None,
        scope: str = "amortized",
        k: int = 5,
        temperature: float | None = None,
        relevance_threshold: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self._init_library(**kwargs)
        self.notion = notion
        self.alpha = alpha
        self.target = target
        self.max_violation = max_violation
        self.scope = scope
        self.k = k
        self.temperature = temperature
        self.relevance_threshold = relevance_threshold

    def _init_library(self, **options: Any) -> None:
        """Set the parameters of the library's own ranker."""
        super().__init__(**options)

    def _fit_rows(
        self, X: Any, y: Any, qid: Any, group: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> tuple[Any, RankingData, tuple[str, ...]]:
        """The training rows as `fit_rows` gives them, with groups if the fairness term needs them."""
        options = {"notion": self.notion, "relevance_threshold": self.relevance_threshold}
        X, data, names = fit_rows(X, y, qid, group, sensitive_features, sample_weight, **options)
        FairnessSpec.of(self).check_groups(data)
        self.categories_ = data.categories
        return X, data, names

    def _objective_on(self, data: RankingData, name: str, rule: Any) -> FairObjective:
        """The loss of that name (its LambdaRank by ``rule``) and the fairness term, on the training rows."""
        return FairObjective(data, base_gradients(name, data, rule), FairnessSpec.of(self))

    def _conclude(
        self,
        X: Any,
        data: RankingData,
        names: tuple[str, ...],
        objective: FairObjective | None,
        keep: Callable[[int], None] | None,
    ) -> None:
        """Set the results of training; ``keep`` cuts the model to a number of trees, None where that cannot be."""
        self.feature_names_, self.group_names_ = names, data.group_names
        self.alpha_ = float(self.alpha) if objective is None else objective.alpha
        self.violation_ = np.nan
        if data.n_groups < 2:
            return
        spec = FairnessSpec.of(self)
        measured = TopViolation(data, spec)
        self.violation_ = measured.value(self.predict(X))
        above = spec.max_violation is not None and self.violation_ > spec.max_violation
        trees = objective.trees_within() if above and objective is not None and keep is not None else None
        if trees is not None and objective is not None and keep is not None:
            keep(trees)  # the last tree overshot what an earlier one kept
            self.violation_, self.alpha_ = measured.value(self.predict(X)), objective.history[trees][1]
        warn_if_above(self.violation_, spec, self.alpha_)
