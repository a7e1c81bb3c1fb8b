"""`FairBoosted`: what the fair rankers of LightGBM and XGBoost share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.aware import (
    OF_THESE_ROWS,
    evened,
    has_exact_offsets,
    offsets_by_strength,
    part_of_offsets,
    scores_by_others,
)
from evenrank.boosting.frames import columns, frame_categories, with_pandas_categories
from evenrank.boosting.group_chances import group_chances
from evenrank.boosting.held_out import Judged, check_held_out, check_limits, kept_aside
from evenrank.boosting.metrics import EvaluationMetric
from evenrank.boosting.objective import TARGET, FairObjective, base_gradients
from evenrank.boosting.pull import OWN
from evenrank.boosting.rows import fit_rows
from evenrank.boosting.search import BETWEEN, LAST, best_cut
from evenrank.boosting.within_limit import FitAt, keep_within_limit
from evenrank.categories import Categories
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.notions import Cells
from evenrank.rankers.matching import added_by_group
from evenrank.rankers.spec import FairnessSpec


class FairBoosted:
    """What the fair rankers of both libraries share; the other base of each is its library's own ranker.

    Parameters
    ----------
    notion, alpha, target, max_violation, scope, k, temperature, relevance_threshold, group_aware, validation_fraction
        See `evenrank.lightgbm.FairLGBMRanker`.
    **kwargs : Any
        The parameters of the library's ranker.
    """

    OURS = (
        "notion",
        "alpha",
        "target",
        "max_violation",
        "scope",
        "k",
        "temperature",
        "relevance_threshold",
        "group_aware",
        "validation_fraction",
    )

    categories_: Categories = MappingProxyType({})
    group_offset_: NDArray[np.float64] | None = None
    _training_objective: FairObjective | None = None
    _types: list[str] | None = None  # XGBoost: of the features, where some are categories
    _silent: bool = False  # LightGBM: whether its own metrics are left out
    _patient: bool = False  # LightGBM: whether parameters of early stopping are left out
    _query_weight: NDArray[np.float64] | None = None  # XGBoost: the weights of queries in `fit`

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
        group_aware: bool = False,
        validation_fraction: float | None = None,
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
        self.group_aware = group_aware
        self.validation_fraction = validation_fraction

    def _init_library(self, **options: Any) -> None:
        """Set the parameters of the library's own ranker."""
        super().__init__(**options)

    # ------------------------------------------------------------------ of each library

    def _raw_scores(self, X: Any) -> NDArray[Any]:
        """Scores of the trees, (n,)."""
        raise NotImplementedError

    def _base(self, data: RankingData) -> tuple[str, Any]:
        """The name of the loss and its LambdaRank, if it is one."""
        raise NotImplementedError

    def _is_native(self, data: RankingData) -> bool:
        """Whether the library has the loss itself."""
        raise NotImplementedError

    def _classifier(self) -> Any:
        """A small untrained classifier of the library's; see `group_chances`."""
        raise NotImplementedError

    def _trees_kept(self) -> int:
        """The number of trees that predict."""
        raise NotImplementedError

    def _trees_grown(self) -> int:
        """The number of trees that there are."""
        raise NotImplementedError

    def _can_be_cut(self) -> bool:
        """Whether the first trees alone are the model of a training with fewer rounds."""
        raise NotImplementedError

    def _cut(self, before: int, trees: int) -> None:
        """Keep the trees of a model that was continued, and of the new ones the first only."""
        raise NotImplementedError

    def _trained_scores(self, X: Any, objective: FairObjective) -> NDArray[Any] | None:
        """Scores of the trees on the training rows, (n,), where training knows them; else None."""
        return None

    # ------------------------------------------------------------------ training

    def _fit_rows(
        self, X: Any, y: Any, qid: Any, group: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> tuple[Any, RankingData, tuple[str, ...]]:
        """The training rows as `fit_rows` gives them, with groups if the fairness term needs them."""
        options = {"notion": self.notion, "relevance_threshold": self.relevance_threshold}
        X = with_pandas_categories(X)
        X, data, names = fit_rows(X, y, qid, group, sensitive_features, sample_weight, **options)
        FairnessSpec.of(self).check_groups(data, group_aware=self.group_aware)
        self.categories_ = data.categories or frame_categories(X)
        return X, data, names

    def _train(
        self,
        X: Any,
        data: RankingData,
        names: tuple[str, ...],
        sets: list[Judged],
        limit: float | None,
        fit_once: Callable[..., None],
        start: NDArray[Any] | None = None,
    ) -> None:
        """Train at the strength asked for, or at the one that ``max_violation`` takes.

        ``start`` is the score that each row starts from, (n,). ``fit_once`` trains the library's ranker on features,
        rows, their numbers among all rows (None: all of them), an objective (None: the library's own), a metric, and
        perhaps a number of trees: so many, with no evaluation.
        """
        spec = FairnessSpec.of(self)
        check_limits(self.validation_fraction, limit, sets, spec)
        exact = self.group_aware and has_exact_offsets(spec, data)
        if spec.active and not exact:
            self._base(data)  # refuses a loss that is not ours now, not after the first model
        rows, training = None, Judged(X, data, start=start)
        judged = training
        if spec.bounded and (self.validation_fraction is not None or sets):
            check_held_out(spec)
            if sets:
                judged = sets[0]
            else:
                aside = kept_aside(data, float(self.validation_fraction or 0))
                in_training = ~aside[data.query_of_row]
                rows = np.flatnonzero(in_training)
                judged = training.some(aside, np.flatnonzero(~in_training), held_out=True)
                training = training.some(~aside, rows)
                X, data = training.X, training.data
        self.feature_names_, self.group_names_ = names, data.group_names
        self.__dict__.pop("tried_", None)
        chances = self._chances(X, data, spec)
        limit = spec.max_violation if limit is None else limit

        def trained_at(alpha: float, own: float = OWN, within: float | None = None) -> NDArray[Any] | None:
            objective = self._objective_at(alpha, data, spec, chances, own, watch=within is not None)
            metric = EvaluationMetric(sets, spec, limit, self._shifted) if sets else None
            self.group_offset_, self._training_objective = None, objective
            try:
                fit_once(X, data, rows, objective, metric)
            finally:
                self._training_objective = None
            self.alpha_ = alpha
            if objective is None:
                return None
            kept = self._trees_kept() - objective.before
            if self.group_aware:
                self.group_offset_ = objective.offsets[min(kept, len(objective.offsets)) - 1]
            trained = self._trained_scores(X, objective)
            if within is None or (gap := self._gap(training, spec, trained)) <= within:
                return trained
            fewer = best_cut(within, objective.gaps, kept, gap)
            if fewer is None:
                return trained
            self._cut(objective.before, fewer)
            return None

        fit_at = self._fit_with_offsets(training, rows, sets, limit, fit_once) if exact else trained_at
        if spec.max_violation is not None:
            cut = not self.group_aware and self._can_be_cut()
            closer = partial(trained_at, within=spec.max_violation if cut else None)
            last: Any = [(alpha, partial(closer, own=own)) for alpha, own in LAST if cut or chances is not None]
            last = [(OF_THESE_ROWS, fit_at)] if exact else last
            on_training_rows = {} if judged.held_out else {"last": last, "finally_": () if exact else BETWEEN}
            gap = keep_within_limit(self, spec, judged, fit_at, **on_training_rows)
            self.violation_ = gap if not judged.held_out else self._gap(training, spec)
        else:
            trained = fit_at(float(self.alpha))
            self.violation_ = self._gap(training, spec, trained)

    def _fit_with_offsets(
        self,
        training: Judged,
        numbers: NDArray[np.int64] | None,
        sets: list[Judged],
        limit: float | None,
        fit_once: Callable[..., None],
    ) -> FitAt:
        """Train the trees, and what is to be added to them; gives what sets the strength. See `_train`."""
        spec, X, data = FairnessSpec.of(self), training.X, training.data
        part = 1.0 if spec.bounded else part_of_offsets(float(self.alpha))
        metric = EvaluationMetric(sets, spec, limit, lambda s, rows: evened(s, rows, spec, part)) if sets else None
        self.group_offset_ = None
        own = self._loss_alone(data, spec)
        fit_once(X, data, numbers, own, metric)
        trained = self._raw_scores(X) if own is None else self._trained_scores(X, own)
        trained = self._raw_scores(X) if trained is None else trained
        trees, state = self._trees_kept(), dict(self.__dict__)

        def train(X: Any, some: RankingData, of_rows: NDArray[np.int64]) -> Callable[[Any], NDArray[Any]]:
            own = of_rows if numbers is None else numbers[of_rows]
            fit_once(X, some, own, self._loss_alone(some, spec), None, trees)
            return self._raw_scores

        others = scores_by_others(X, data, train) if data.n_queries > 1 else trained
        self.__dict__.clear()
        self.__dict__.update(state)
        offsets_at = offsets_by_strength(training.started(others), training.started(trained), data, spec)

        def at(alpha: float) -> NDArray[Any]:
            self.alpha_, self.group_offset_ = alpha, offsets_at(alpha)
            return trained

        return at

    def _gap(self, rows: Judged, spec: FairnessSpec, trees: NDArray[Any] | None = None) -> float:
        return float("nan") if rows.data.n_groups < 2 else rows.gap(self._scores_of(rows, trees), spec)

    def _loss_alone(self, data: RankingData, spec: FairnessSpec) -> FairObjective | None:
        """The objective without fairness; None where the library's own is enough."""
        if self._is_native(data):
            return None
        name, rule = self._base(data)
        return FairObjective(data, base_gradients(name, data, rule), replace(spec, alpha=0.0, max_violation=None))

    def _objective_at(
        self,
        alpha: float,
        data: RankingData,
        spec: FairnessSpec,
        chances: NDArray[Any] | None,
        own: float,
        *,
        watch: bool,
    ) -> FairObjective | None:
        """None where the library's own objective is enough."""
        if alpha == 0 and not self.group_aware and self._is_native(data):
            return None
        name, rule = self._base(data)
        return FairObjective(
            data,
            base_gradients(name, data, rule),
            replace(spec, alpha=alpha, max_violation=None),
            chances=chances,
            group_aware=self.group_aware,
            own=own,
            watch=watch,
        )

    def _chances(self, X: Any, data: RankingData, spec: FairnessSpec) -> NDArray[Any] | None:
        """What the features tell of the groups; None where rows are pulled by the groups themselves."""
        if not spec.active or self.group_aware or data.membership is not None or data.n_groups < 2:
            return None
        return group_chances(self._classifier, X, data, Cells.of(spec.notion, data).strata)

    # ------------------------------------------------------------------ scores

    def _columns(self, X: Any) -> Any:
        """The features of rows to predict, as training had them."""
        return columns(X, getattr(self, "feature_names_", None), self.categories_)

    def _scores_of(self, rows: Judged, trees: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Scores of rows, (n,); ``trees`` are those of the trees alone, where they are known."""
        raw = self._raw_scores(rows.X) if trees is None else trees
        return self._shifted(rows.started(raw), rows.data)

    def _shifted(self, scores: NDArray[Any], data: RankingData) -> NDArray[Any]:
        """Scores with the offset of each row's group; during training, the offsets of the last round."""
        objective = self._training_objective
        offsets = self.group_offset_ if objective is None else objective.offsets[-1] if objective.offsets else None
        if offsets is None:
            return scores
        return np.asarray(scores + added_by_group(offsets, data, self.group_names_))

    def _serving_groups(self, X: Any, sensitive_features: ArrayLike | None) -> RankingData | None:
        """Rows with the groups to score by; None where the ranker has no use for them."""
        if self.group_offset_ is None:
            return None
        if isinstance(X, RankingData) and (sensitive_features is not None or X.n_groups):
            return X if sensitive_features is None else X.with_group(sensitive_features)
        if sensitive_features is None:
            raise ConfigError("this ranker is group_aware: pass sensitive_features to predict, one label per row.")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), sensitive_features, np.zeros(n, np.int64))
