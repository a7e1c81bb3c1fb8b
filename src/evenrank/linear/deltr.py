"""DELTR: ListNet with a penalty on disparate exposure (Zehlike and Castillo, WWW 2020).

Per query, with P = softmax(scores) and Y = softmax(relevance), the loss is −Σ Y ln P / ln(rows) + γ max(0, Σ a P)²,
where a is 1/(n₀ ln 2) on the other items and −1/(n₁ ln 2) on the protected ones: Σ a P is the difference of their
exposures. A query with one group only has no exposure term, and items of unknown group are in the softmax alone.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.linear.base import LinearRanker
from evenrank.linear.deltr_path import deltr_path, initial_weights
from evenrank.linear.deltr_published import Scaling, first_weights, train_published
from evenrank.progress import bar
from evenrank.rankers.base import seed_of
from evenrank.rankers.matching import protected_code
from evenrank.row_checks import as_array


def _shifted(y: ArrayLike) -> ArrayLike:
    array = as_array(y, "y")
    return array - array.min() if array.dtype.kind in "fi" and array.size and array.min() < 0 else y


class DELTR(LinearRanker):
    """Linear ListNet with γ · (max(0, exposure of the others − exposure of the protected))² in each query.

    Parameters
    ----------
    gamma : float
        The strength of the exposure term.
    protected : label, optional
        The label of the protected group; None is the smaller group in training.
    reference : bool
        Reproduce the published package 1.0.2: its loss (a query counts once per row), its gradient (whose exposure
        part is not the loss' own), its steps, start and standardisation; see docs/decisions/0008. X then holds the
        protected column as a feature, and ``coef_`` stays in the standardised space.
    max_iter : int, optional
        The number of iterations; None is 3000.
    learning_rate : float
        Of gd.
    standardize : bool
        Standardise each feature, which changes no minimiser but takes fewer steps. With ``reference``, as the published
        package does: one mean and deviation for the whole matrix, and the protected column put back as it was.
    init : array-like, optional
        The first weights, (d,); None is 0, or with ``reference`` uniform in [0, 0.01).
    weighting : str
        "queries" (the mean over queries) or "rows" (the published sum, in which a query counts once per row).
    solver : str
        "lbfgs", which converges, or the original's "gd".
    group_aware : bool
        Add the protected flag as a feature.
    impute : str, optional
        "mean" or "median" of the training rows stands for missing values, and categories become columns of 0 and 1; by
        default neither may occur. See `evenrank.rankers.imputing.Imputer`.
    relevance_threshold : float
        Relevance at or above it counts as relevant in `score`.
    random_state : int, RandomState or None
        The seed of the first weights with ``reference``.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray
        Weights, (d,).
    loss_ : float
        The loss reached; with ``reference`` the last one logged, before the last step.
    loss_curve_ : ndarray
        With ``reference``: the loss before each step, (max_iter,).

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age", lists=50)
    >>> plain, fair = (er.DELTR(gamma=gamma).fit(data) for gamma in (0.0, 100.0))
    >>> gaps = [er.measure(ranker.predict(data), data, "exposure_gap")["exposure_gap"] for ranker in (plain, fair)]
    >>> gaps[1] < gaps[0]
    True
    """

    scaling_: Scaling | None = None

    def __init__(
        self,
        gamma: float = 1.0,
        protected: Any = None,
        reference: bool = False,
        max_iter: int | None = None,
        learning_rate: float = 0.001,
        standardize: bool = True,
        init: ArrayLike | None = None,
        *,
        weighting: str = "queries",
        solver: str = "lbfgs",
        group_aware: bool = False,
        impute: str | None = None,
        relevance_threshold: float = 1.0,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.gamma = gamma
        self.protected = protected
        self.reference = reference
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.standardize = standardize
        self.init = init
        self.weighting = weighting
        self.solver = solver
        self.group_aware = group_aware
        self.impute = impute
        self.relevance_threshold = relevance_threshold
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> DELTR:
        """Train on rows (X, relevance y) with their query and group, or on a `RankingData`.

        Only differences of y within a query count (softmax), so negative judgements are shifted up to 0. A row's
        weight multiplies its term of the loss, its part in both softmaxes, and its share in its group's mean exposure:
        with ``gamma=0`` a row of weight 2 counts as two. Weights count relative to their mean, so that equal ones
        change nothing; a weight of 0 leaves the row out.

        Parameters
        ----------
        X, y, qid, sensitive_features, sample_weight
            The rows, as in `FairLinearRanker.fit`.

        Returns
        -------
        DELTR
            The trained ranker itself.
        """
        check_number(self.gamma, "gamma", least=0)
        if y is not None and not isinstance(X, RankingData):
            y = _shifted(y)
        data = self._checked_rows(X, y, qid, sensitive_features, sample_weight)
        if not data.n_groups and (self.gamma > 0 or self.group_aware):
            raise ConfigError(f"gamma={self.gamma:g} needs groups: pass sensitive_features, or set gamma=0.")
        if self.max_iter is not None:
            check_number(self.max_iter, "max_iter", least=1, whole=True)
        self.feature_names_, self.group_names_ = data.feature_names, data.group_names
        self.group_offset_ = self.group_shares_ = None
        self.intercept_ = 0.0
        self.scaling_ = None
        with bar("DELTR", show=self.verbose) as progress:
            if self.reference:
                self._fit_as_published(data, progress)
                return self
            path, value = deltr_path(
                data,
                [self.gamma],
                protected=self.protected,
                weighting=self.weighting,
                solver=self.solver,
                group_aware=self.group_aware,
                max_iter=self.max_iter,
                learning_rate=self.learning_rate,
                standardize=self.standardize,
                init=self.init,
                progress=progress,
            )
        self.coef_, self.loss_, self.n_iter_ = path.coef[0], float(value[0]), path.steps
        self.group_offset_ = None if path.group_offset is None else path.group_offset[0]
        self.group_shares_ = path.shares
        return self

    def _fit_as_published(self, data: RankingData, progress: Any) -> None:
        if data.sample_weight is not None:
            raise ConfigError("the published DELTR has no sample_weight; leave it out, or set reference=False.")
        data.need_numbers("DELTR")
        code = protected_code(data, self.protected)
        self.scaling_ = None
        if self.standardize:
            self.scaling_ = Scaling.of(np.asarray(data.features, dtype=float), data.group == code)
        start = first_weights(seed_of(self.random_state), data.n_features)
        if self.init is not None:
            start = initial_weights(self.init, data.n_features)
        theta, curve = train_published(
            data,
            np.array([float(self.gamma)]),
            code,
            start,
            self.scaling_,
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            progress=progress,
        )
        self.coef_, self.loss_, self.loss_curve_ = theta[0], float(curve[-1, 0]), curve[:, 0]
        self.n_iter_ = len(curve)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, which `evenrank.load` reads.

        Parameters
        ----------
        path
            As in `FairLinearRanker.save`.

        Raises
        ------
        ConfigError
            If the model stays in the standardised space of ``reference``.
        """
        if self.scaling_ is not None:
            raise ConfigError("a DELTR with reference=True and standardize=True is for comparison, without a file.")
        super().save(path)

    def _in_own_units(self) -> tuple[NDArray[np.float64], float]:
        if self.scaling_ is None:
            return self.coef_, 0.0
        coef, intercept = self.scaling_.in_own_units(self.coef_)
        return coef, float(intercept)
