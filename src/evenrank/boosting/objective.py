"""The objective of fair boosted rankers: a loss plus c·α·Γ, where c makes a strength of 1 pull as the loss does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.group_chances import group_chances, known_contrast
from evenrank.boosting.pull import OWN, FairPull, list_steps, looked_at
from evenrank.boosting.rows import as_rows
from evenrank.boosting.rules import POINTWISE
from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.losses import LOSSES
from evenrank.notions import Cells, bind
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import TopViolation
from evenrank.targets import TARGETS, BoundTarget, bind_target

BASES = ("lambdarank", *POINTWISE)
TARGET = "topk"
TEMPERATURE = 0.2
FLOOR = 0.3  # of a list's spread: all scores are equal before the first tree
# The multiplier of ``max_violation`` in a bare objective: where it starts, its bounds, how far it moves in a round, and
# how far below the limit it aims, since trees overshoot both ways.
SMALLEST_ALPHA, FIRST_ALPHA, LARGEST_ALPHA = 0.001, 0.3, 30.0
GAIN, HURRY = 0.05, 2.0
MARGIN = 0.8
# The longest step that the fairness term asks of a row, in units of the mean step that the loss asks of its list.
LENGTH = 0.7
# Of a round's step of the groups' offsets, and the largest such step in units of the scores' spread: a small group that
# is carried beyond all others is out of reach of the soft top k, whose slope is 0 there.
OFFSET_RATE, OFFSET_STEP = 0.1, 0.1

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
    """First and second derivatives of the boosted scores' loss + c·α·Γ, called once per round.

    Parameters
    ----------
    data : RankingData
        The training rows; scores come in its stored order.
    base : Callable
        The loss's derivatives by row; see `base_gradients`.
    spec : FairnessSpec
        What is evened out, how strongly, and in what value. With ``max_violation`` the multiplier moves in each round
        so that the gap of the top k on these rows comes down to it.
    chances : ndarray, optional
        What features tell of each row's group, (n, groups); see `group_chances`.
    group_aware : bool
        Whether the scores are those of the trees plus one number per group. Then the term moves these numbers, and the
        trees have the loss alone, at the scores with the numbers added.
    own : float
        With ``chances``, how strongly rows are pulled along the groups themselves; see `FairPull`.
    watch : bool
        Whether the gap of the top k is measured in each round.

    Attributes
    ----------
    alpha : float
        The multiplier now.
    gaps : list of float
        With ``watch``, the gap of the top k before each tree.
    offsets : list of ndarray
        With ``group_aware``, the number of each group before each tree, (groups,).
    rounds : int
        How often it was called.
    before : int
        How many trees a model that is continued had; what trains it says so.
    from_zero : bool
        Whether the scores of the first call were 0: no tree and no starting score came before.
    scores : ndarray or None
        The scores of the last call, (n,): those of all trees but the last one.
    """

    weight: NDArray[Any] | None
    pull: FairPull | None
    measured: TopViolation | None
    gaps: list[float]
    offsets: list[NDArray[np.float64]]
    scores: NDArray[np.float64] | None
    _watched: TopViolation | None
    _last_top: NDArray[Any] | None

    def __init__(
        self,
        data: RankingData,
        base: Gradients,
        spec: FairnessSpec,
        *,
        chances: NDArray[Any] | None = None,
        group_aware: bool = False,
        own: float = OWN,
        watch: bool = False,
    ) -> None:
        self._begin(data, base, spec)
        self._length *= max(1.0, own / OWN)
        self._watched = TopViolation(data, spec) if watch else None
        self._of_group = group_sums(data) if group_aware else None
        if data.sample_weight is not None:
            self.weight = data.sample_weight.astype(np.float32)  # as the libraries keep them
        if self.alpha > 0:
            contrast = bind(spec.notion, data, scope=spec.scope, training=True)
            known = None if chances is None else known_contrast(contrast, data, spec, chances)
            lists = fixed_sums(spec, data.query_ptr)
            self.pull = FairPull(contrast, bound_target(spec, data.query_ptr), known, own=own, lists=lists)
        self.measured = TopViolation(data, spec) if spec.bounded else None
        if self.measured is not None and self.measured.contrast.pairs.missing:
            name = self.measured.name
            raise ConfigError(f"max_violation needs {name}, which these rows do not define. Set alpha instead.")

    def _begin(self, data: RankingData, base: Gradients, spec: FairnessSpec) -> None:
        """Set what every objective has before its first round: no pull, nothing measured."""
        self.data, self.base, self.spec = data, base, spec
        self.alpha = FIRST_ALPHA if spec.bounded else float(spec.alpha)
        self._length, self._steps = LENGTH, np.zeros(0)
        self.weight = None
        self.pull = None
        self.gaps = []
        self.offsets = []
        self.rounds, self.before, self.from_zero = 0, 0, True
        self.scores = None
        self.measured = None
        self._watched = None
        self._of_group = None
        self._last_top = None

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
        self.scores = precise = np.array(scores, np.float64)  # a copy: libraries write over their own
        self.from_zero = self.from_zero and (self.rounds > 0 or not precise.any())
        self.rounds += 1
        if self._watched is not None:
            self.gaps.append(self._watched.value(precise))
        if self._of_group is not None:
            return self._with_offsets(precise, self._of_group)
        first, second = self._loss(scores)
        if self.pull is not None:
            self._update(precise)
            if looked_at(self.pull.rounds):
                self._steps = list_steps(first, second, self.data.query_ptr)
            pull = self.pull(precise, first, self.alpha, second, self._steps)
            longest = self._length * self._steps
            per_pull = np.divide(1.0, longest, out=np.zeros_like(longest), where=longest > 0)
            second = held_back(pull, second, np.repeat(per_pull, self.data.lengths))
            first = first + pull
        return np.asarray(first, np.float32), np.asarray(second, np.float32)

    def _loss(self, scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        first, second = self.base(scores)
        return (first, second) if self.weight is None else (first * self.weight, second * self.weight)

    def _with_offsets(self, scores: NDArray[np.float64], of_group: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The step that a tree with one leaf per group would take, before the tree's own round."""
        old = self.offsets[-1] if self.offsets else np.zeros(of_group.shape[0])
        shifted = scores + of_group.T @ old
        first, second = self._loss(shifted)
        self._update(shifted)
        total = first if self.pull is None else first + self.pull(shifted, first, self.alpha)
        slope, bend = of_group @ total, of_group @ second
        step = OFFSET_RATE * np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0)
        largest = OFFSET_STEP * max(float(shifted.std()), FLOOR)
        new = old - np.clip(step, -largest, largest)
        rows = of_group.sum(axis=1)
        self.offsets.append(new - rows @ new / rows.sum())
        return np.asarray(first, np.float32), np.asarray(second, np.float32)

    def _update(self, scores: NDArray[np.float64]) -> None:
        """Raise the multiplier while the gap is above ``max_violation``, lower it while it is below.

        A gap that has changed sign was overshot: a larger multiplier would only widen its swing.
        """
        limit = self.spec.max_violation
        if limit is None or self.measured is None:
            return
        gaps = self.measured.gaps(scores)
        excess = self.measured.of_gaps(gaps) - MARGIN * limit
        step = np.clip(excess / max(limit, 0.02), -1, HURRY)
        if step > 0 and self._last_top is not None and (gaps * self._last_top).sum() < 0:
            step = -HURRY
        self._last_top = gaps
        self.alpha = float(np.clip(self.alpha * np.exp(GAIN * step), SMALLEST_ALPHA, LARGEST_ALPHA))


def held_back(pull: NDArray[Any], second: NDArray[Any], per_pull: NDArray[Any]) -> NDArray[Any]:
    """Give second derivatives with which no step along the pull is longer than it may be.

    Where the order of a list is settled the loss hardly holds its rows, and a leaf of such rows that are pulled would
    take a step, Σ pull / Σ second derivative, that has no bound.

    Parameters
    ----------
    pull, second : ndarray
        The pull, and the loss's second derivative, (n,).
    per_pull : ndarray
        One over the longest step of each row, (n,); 0 leaves the row as it is.

    Returns
    -------
    ndarray
        At least ``second``, (n,): a row's pull over it is at most the longest step.
    """
    return np.asarray(np.maximum(second, np.abs(pull) * per_pull))


def group_sums(data: RankingData) -> Any:
    """Give the matrix whose product with values is their sum over each group's rows.

    Parameters
    ----------
    data : RankingData
        The rows.

    Returns
    -------
    csr_array
        (groups, n) of 0 and 1.
    """
    from scipy.sparse import csr_array

    rows = np.flatnonzero(data.group >= 0)
    return csr_array((np.ones(len(rows)), (data.group[rows], rows)), shape=(data.n_groups, data.n_rows))


def bound_target(spec: FairnessSpec, query_ptr: NDArray[np.int64]) -> BoundTarget:
    """Bind the value that is evened out to lists, (q + 1,) bounds, as boosted rankers soften it."""
    temperature = TEMPERATURE if spec.temperature is None and spec.target == "topk" else spec.temperature
    plain = bind_target(spec.target, query_ptr, k=spec.k, temperature=temperature, floor=FLOOR)
    if spec.target != "topk":
        return plain
    from evenrank.boosting.soft_topk import FastTopK

    return FastTopK(query_ptr, spec.k, float(temperature or TEMPERATURE), FLOOR)


def fixed_sums(spec: FairnessSpec, query_ptr: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The bounds of the lists, where no order changes the sum over a list of what is evened out; else None."""
    return query_ptr if TARGETS[spec.target].listwise else None


def base_gradients(name: str, data: RankingData, rule: Any = None) -> Gradients:
    """Make the function that gives a loss's derivatives by row, before weights.

    Parameters
    ----------
    name : str
        "logistic" or "squared", or whatever ``rule`` is.
    data : RankingData
        The training rows.
    rule : LambdaRank or CrossEntropyNDCG, optional
        A listwise loss; see `evenrank.boosting.rules`.

    Returns
    -------
    Callable
        From scores (n,) in stored order to first and second derivatives, (n,) each.
    """
    if rule is not None:
        return rule.bind(data.relevance, data.query_ptr).gradient  # type: ignore[no-any-return]
    loss = LOSSES[choose(name, POINTWISE, what="objective")]
    relevance = data.relevant.astype(np.float64) if loss.binary else data.relevance
    return lambda scores: (loss.gradient(scores, relevance), loss.curvature(scores, relevance))


class ObjectiveOnRows:
    """What the `fair_objective` of both libraries share: an objective on given rows; subclasses are called with scores.

    Parameters
    ----------
    data, objective, params, **options
        See `evenrank.lightgbm.fair_objective`.
    """

    lambdarank_rule: Callable[..., Any]
    classifier: Callable[[], Any]

    def __init__(
        self, data: Any, *, objective: str = "lambdarank", params: dict[str, Any] | None = None, **options: Any
    ) -> None:
        rows, spec = as_rows(data), fairness(**options)
        rule = None if objective in POINTWISE else self.lambdarank_rule(params or {}, objective)
        known = spec.active and rows.n_features > 0 and rows.n_groups > 1 and rows.membership is None
        chances = None
        if known:
            chances = group_chances(self.classifier, rows.features, rows, Cells.of(spec.notion, rows).strata)
        self.objective = FairObjective(rows, base_gradients(objective, rows, rule), spec, chances=chances)
