"""The objective of fair boosted rankers, a loss plus n·α·Γ, and the violation they measure.

Boosting sums losses over rows where the rest of the package takes means, so α·Γ is multiplied by n (by the sum of the
weights): α means the same everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataWarning
from evenrank.losses import LOSSES
from evenrank.notions import NotionLike, as_notion, bind
from evenrank.ranking import Ranking
from evenrank.targets import TARGETS, BoundTarget, FairnessTerm, bind_target

BASES = ("lambdarank", *LOSSES)
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
# The multiplier of ``max_violation``: where it starts, its bounds, how far it moves in a round, and how far below what
# is asked it aims, since trees overshoot both ways.
SMALLEST_ALPHA, FIRST_ALPHA, LARGEST_ALPHA = 0.001, 0.3, 30.0
GAIN, HURRY = 0.05, 2.0
MARGIN = 0.8

Gradients = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]


class FairObjective:
    """First and second derivatives of the boosted scores' loss + n·α·Γ, called once a round.

    Parameters
    ----------
    data : the training rows; scores come in its stored order
    base : the loss's derivatives by row, see `base_gradients`
    notion, alpha, target, scope, k, temperature : what is equalised, how strongly, and in what value
    max_violation : instead of ``alpha``, move the multiplier in each round so that the violation of the top k on these
        rows comes down to this

    Attributes
    ----------
    alpha : the multiplier now
    damping : the share of the bound on Γ's Hessian now
    history : with ``max_violation``, the violation and the multiplier before each tree
    """

    def __init__(
        self,
        data: RankingData,
        base: Gradients,
        *,
        notion: NotionLike = "equal_opportunity",
        alpha: float = 1.0,
        target: str = TARGET,
        scope: str = "amortized",
        k: int = 5,
        temperature: float | None = None,
        max_violation: float | None = None,
    ) -> None:
        check_number(alpha, "alpha", least=0)
        if max_violation is not None:
            check_number(max_violation, "max_violation", least=0)
        self.data, self.base = data, base
        self.alpha = FIRST_ALPHA if max_violation is not None else float(alpha)
        self.k, self.max_violation = check_k(k), max_violation
        self.weight = data.sample_weight
        self.total = float(data.n_rows if self.weight is None else self.weight.sum())
        self.term: FairnessTerm | None = None
        if self.alpha > 0:
            self.term = FairnessTerm(
                bind(notion, data, scope=scope, training=True),
                _bound(target, data.query_ptr, self.k, temperature),
                smoothing(self.alpha),
            )
        self.damping = DAMPING
        self.history: list[tuple[float, float]] = []
        self._last: NDArray[Any] | None = None
        self._last_top: NDArray[Any] | None = None
        self.measured = None if max_violation is None else TopViolation(data, notion=notion, k=k, scope=scope)
        if self.measured is not None and self.measured.contrast.pairs.missing:
            name = self.measured.name
            raise ConfigError(f"max_violation needs {name}, which these rows do not define. Set alpha instead.")

    def __call__(self, scores: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Derivatives for scores (n,), in stored order."""
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
        """The most trees, from half of them on, whose violation is within what is asked; None if it never is."""
        asked = np.inf if self.max_violation is None else self.max_violation
        good = [count for count, (violation, _) in enumerate(self.history) if violation <= asked]
        return good[-1] if good and good[-1] >= max(1, len(self.history) // 2) else None

    def _damp(self, gaps: NDArray[Any]) -> None:
        """Shorter steps where the last tree carried the gaps to the other side of 0, longer ones elsewhere."""
        assert self.term is not None
        weight = self.term.contrast.pairs.weight
        swung = self._last is not None and weight @ (gaps * self._last) < 0 and weight @ np.abs(gaps) > SWING
        self.damping = min(1.0, 2 * self.damping) if swung else max(DAMPING, RELEASE * self.damping)
        self._last = gaps

    def _update(self, scores: NDArray[np.float64]) -> None:
        """Raise the multiplier while the violation is above what is asked, lower it while it is below.

        A gap that has changed sign was overshot: a larger multiplier would only widen its swing.
        """
        if self.max_violation is None or self.measured is None:
            return
        gaps = self.measured.gaps(scores)
        violation = self.measured.of_gaps(gaps)
        excess = violation - MARGIN * self.max_violation
        step = np.clip(excess / max(self.max_violation, 0.02), -1, HURRY)
        if step > 0 and self._last_top is not None and (gaps * self._last_top).sum() < 0:
            step = -HURRY
        self._last_top = gaps
        self.history.append((violation, self.alpha))
        self.alpha = float(np.clip(self.alpha * np.exp(GAIN * step), SMALLEST_ALPHA, LARGEST_ALPHA))


def smoothing(alpha: float) -> float:
    return SMOOTHING * max(1.0, alpha)


class TopViolation:
    """Γ of the top k on some rows, as `measure` has it; scores in stored order."""

    def __init__(
        self, data: RankingData, *, notion: NotionLike = "equal_opportunity", k: int = 5, scope: str = "amortized"
    ) -> None:
        self.data, self.k = data, check_k(k)
        self.contrast = bind(notion, data, scope=scope)
        self.name = f"{as_notion(notion).alias or as_notion(notion).name}@{k}"

    def value(self, scores: NDArray[Any]) -> float:
        return self.of_gaps(self.gaps(scores))

    def gaps(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Signed differences between the groups' shares in the top k, (J,)."""
        return self.contrast.gaps(Ranking(scores, self.data.query_ptr).top(self.k))

    def of_gaps(self, gaps: NDArray[Any]) -> float:
        return float("nan") if self.contrast.pairs.missing else float(self.contrast.pairs.value(gaps))

    def value_if_own(self, relevance: NDArray[Any], scores: NDArray[Any]) -> float:
        """NaN for rows of another evaluation set, which a metric is called for as well."""
        own = self.data.relevance.astype(np.float32)
        return self.value(scores) if np.array_equal(np.asarray(relevance, np.float32), own) else float("nan")


def _bound(target: str, query_ptr: NDArray[np.int64], k: int, temperature: float | None) -> BoundTarget:
    choose(target, TARGETS, what="target")
    given = TEMPERATURE if temperature is None and target == "topk" else temperature
    plain = bind_target(target, query_ptr, k=k, temperature=given, floor=FLOOR)
    if target != "topk":
        return plain
    from evenrank.boosting.soft_topk import FastTopK

    return FastTopK(query_ptr, k, float(given or TEMPERATURE), FLOOR)


def base_gradients(name: str, data: RankingData, rule: Any = None) -> Gradients:
    """The loss's derivatives by row, before weights: LambdaRank by ``rule``, or a row-wise loss."""
    choose(name, BASES, what="objective")
    if name == "lambdarank":
        return rule.bind(data.relevance, data.query_ptr).gradient  # type: ignore[no-any-return]
    loss = LOSSES[name]
    relevance = data.relevant.astype(np.float64) if loss.binary else data.relevance
    return lambda scores: (loss.gradient(scores, relevance), loss.curvature(scores, relevance))


def check_groups(data: RankingData, alpha: float, max_violation: float | None) -> None:
    """Numbers that can be used, and groups where something is asked of them."""
    check_number(alpha, "alpha", least=0)
    if max_violation is not None:
        check_number(max_violation, "max_violation", least=0)
    if not data.n_groups and (alpha > 0 or max_violation is not None):
        asked = f"alpha={alpha:g}" if max_violation is None else f"max_violation={max_violation:g}"
        raise ConfigError(f"{asked} needs groups: pass sensitive_features, a label a row, or set alpha=0.")


def warn_if_above(violation: float, max_violation: float | None, notion: NotionLike, k: int, alpha: float) -> None:
    if max_violation is not None and violation > max_violation:
        name = as_notion(notion).name
        warnings.warn(
            f"max_violation={max_violation:g} was not reached: {name}@{k} on the training rows is {violation:.4f} at "
            f"alpha={alpha:.3g}. Train more trees, or allow a larger violation.",
            DataWarning,
            stacklevel=3,
        )


class FairBoosted:
    """What the fair rankers of both libraries share, beside their libraries' own rankers."""

    OURS = ("notion", "alpha", "target", "max_violation", "scope", "k", "temperature", "relevance_threshold")

    notion: Any
    alpha: float
    target: str
    max_violation: float | None
    scope: str
    k: int
    temperature: float | None
    predict: Callable[..., NDArray[Any]]

    def _objective_on(self, data: RankingData, name: str, rule: Any) -> FairObjective:
        """The loss of that name (its LambdaRank by ``rule``) and the fairness term, on the training rows."""
        return FairObjective(
            data,
            base_gradients(name, data, rule),
            notion=self.notion,
            alpha=self.alpha,
            target=self.target,
            scope=self.scope,
            k=self.k,
            temperature=self.temperature,
            max_violation=self.max_violation,
        )

    def _conclude(
        self,
        X: Any,
        data: RankingData,
        names: tuple[str, ...],
        objective: FairObjective | None,
        keep: Callable[[int], None] | None,
    ) -> None:
        """What is known after training; ``keep`` cuts the model to so many trees, None where that cannot be."""
        self.feature_names_, self.group_names_ = names, data.group_names
        self.alpha_ = float(self.alpha) if objective is None else objective.alpha
        self.violation_ = np.nan
        if data.n_groups < 2:
            return
        measured = TopViolation(data, notion=self.notion, k=self.k, scope=self.scope)
        self.violation_ = measured.value(self.predict(X))
        above = self.max_violation is not None and self.violation_ > self.max_violation
        trees = objective.trees_within() if above and objective is not None and keep is not None else None
        if trees is not None and objective is not None and keep is not None:
            keep(trees)  # the last tree overshot what an earlier one kept
            self.violation_, self.alpha_ = measured.value(self.predict(X)), objective.history[trees][1]
        warn_if_above(self.violation_, self.max_violation, self.notion, self.k, self.alpha_)
