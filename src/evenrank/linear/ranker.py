"""`FairLinearRanker`: one strength of the fairness path, in scikit-learn's idiom."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.linear.base import LinearRanker
from evenrank.linear.descent import Diverged
from evenrank.linear.moment_design import is_summed
from evenrank.linear.path import GD_STEPS, FairnessPath, fairness_path
from evenrank.linear.strengths import strength_grid
from evenrank.losses import LOSSES
from evenrank.moments import Moments
from evenrank.progress import bar
from evenrank.rankers.base import seed_of
from evenrank.rankers.search import weakest_within
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import top_violation

if TYPE_CHECKING:
    from evenrank.io.row_files import RankingFiles


class FairLinearRanker(LinearRanker):
    """A linear ranker trained to rank well and to treat groups evenly: mean loss + ridge ‖θ‖² + α·Γ(target).

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        "demographic_parity", "equal_opportunity", "equalized_odds", their short names dp, eop, eod, or a notion of
        your own.
    alpha : float
        The strength of the fairness term; 0 is an ordinary ranker.
    scope : str
        "amortized" over all queries, or "per_query".
    solver : str
        "exact", "gd" or "sgd"; see `fairness_path`.
    group_aware : bool
        Let the model see the group itself, at training and prediction. That reaches parity at least cost, since the
        model can add a constant to a group's scores. It is appropriate where treating groups differently is lawful and
        intended (say, evening out vendors on a marketplace) and the group is known at prediction. It is not where
        equal items must get equal scores whatever their group, as most law on hiring and credit demands.
    target : str
        The value that is evened out: the "score" or, "centered", the score less its query's mean; with solver="gd" also
        "probability", "topk" or "exposure". See `fairness_path`.
    k : int
        The cut-off of target "topk" and of ``max_violation``.
    max_violation : float, optional
        Instead of ``alpha``, which is then ignored: train with the weakest strength at which the gap of the top k on
        the training rows (``dp@5`` and the like) is at most this. If no strength reaches it, the model with the lowest
        gap is kept, with a `DataWarning` that gives the gap.
    loss : str
        "squared", "pairwise" or "logistic".
    ridge, scale, fit_intercept, across, learning_rate, max_iter, epochs, batch_queries, batch_items
        See `fairness_path`.
    impute : str, optional
        "mean" or "median" of the training rows stands for missing values, and categories become columns of 0 and 1; by
        default neither may occur. See `evenrank.rankers.imputing.Imputer`.
    relevance_threshold : float
        Relevance at or above it counts as relevant.
    random_state : int, RandomState or None
        The seed of sgd's batches; None gives other batches at each fit.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray
        Weights, (d,), in the features' own units.
    intercept_ : float
        The intercept, in the same units.
    alpha_ : float
        The strength of this model.
    violation_ : float
        The gap of the top k on the training rows; NaN without groups, and where moments or files were trained on.
    n_iter_ : int
        The number of steps (gd) or batches (sgd).
    feature_names_, group_names_ : tuple
        The names of the features and groups in training.
    group_offset_ : ndarray or None
        What is added to each group's scores if group-aware, (G,).
    resolution_ : float
        The step that scores are rounded to, see `FairnessPath`; 0 where they are not.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> blind = er.FairLinearRanker(notion="demographic_parity", alpha=0.0).fit(data)
    >>> fair = er.FairLinearRanker(notion="demographic_parity", alpha=0.05).fit(data)
    >>> er.measure(fair.predict(data), data, "dp@5")["dp@5"] < er.measure(blind.predict(data), data, "dp@5")["dp@5"]
    True
    """

    alpha_: float
    violation_: float

    def __init__(
        self,
        notion: Any = "equal_opportunity",
        alpha: float = 1.0,
        scope: str = "amortized",
        solver: str = "exact",
        group_aware: bool = False,
        *,
        target: str = "score",
        k: int = 5,
        max_violation: float | None = None,
        loss: str = "squared",
        ridge: float = 0.0,
        scale: str | None = "train",
        fit_intercept: bool = True,
        across: str = "mean",
        impute: str | None = None,
        relevance_threshold: float = 1.0,
        learning_rate: float | None = None,
        max_iter: int = GD_STEPS,
        epochs: int = 5,
        batch_queries: int = 100,
        batch_items: int | None = 10,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.notion = notion
        self.alpha = alpha
        self.scope = scope
        self.solver = solver
        self.group_aware = group_aware
        self.target = target
        self.k = k
        self.max_violation = max_violation
        self.loss = loss
        self.ridge = ridge
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.across = across
        self.impute = impute
        self.relevance_threshold = relevance_threshold
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.epochs = epochs
        self.batch_queries = batch_queries
        self.batch_items = batch_items
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
    ) -> FairLinearRanker:
        """Train on rows (X, relevance y) with their query and group, or on a `RankingData`.

        Ctrl-C during gd or sgd keeps the weights reached so far, with a warning.

        Parameters
        ----------
        X : array, frame, RankingData, Moments or RankingFiles
            The rows, (n, d). A `RankingData` brings y, the queries and the weights with it; so do `Moments` and files
            of any size (`evenrank.scan`), see `fairness_path` on what trains from them.
        y : array-like, optional
            Relevance, (n,).
        qid : array-like, optional
            The query id of each row, (n,), in any order. Without it all rows are one query.
        sensitive_features : array-like, optional
            The group label of each row, (n,). Without it ``alpha`` must be 0.
        sample_weight : array-like, optional
            The weight of each row, (n,).

        Returns
        -------
        FairLinearRanker
            The trained ranker itself.
        """
        spec = FairnessSpec.of(self)
        data: RankingData | Moments | RankingFiles
        if is_summed(X):
            data = self._summed(X, spec, (y, qid, sensitive_features, sample_weight))
        else:
            data = self._checked_rows(X, y, qid, sensitive_features, sample_weight)
            spec.check_groups(data, group_aware=self.group_aware)
            data.need_numbers("a linear ranker")
        seed = seed_of(self.random_state)
        with bar(f"{type(self).__name__} ({self.solver})", show=self.verbose) as progress:

            def train(strengths: ArrayLike) -> FairnessPath:
                return fairness_path(
                    data,
                    self.notion,
                    strengths,
                    self.solver,
                    self.scope,
                    target=self.target,
                    k=self.k,
                    loss=self.loss,
                    ridge=self.ridge,
                    scale=self.scale,
                    fit_intercept=self.fit_intercept,
                    group_aware=self.group_aware,
                    across=self.across,
                    learning_rate=self.learning_rate,
                    max_iter=self.max_iter,
                    epochs=self.epochs,
                    batch_queries=self.batch_queries,
                    batch_items=self.batch_items,
                    seed=seed,
                    progress=progress,
                )

            if spec.bounded and isinstance(data, RankingData):
                path, chosen = self._within(spec, train, data)
            else:
                path, chosen = train([self.alpha]), 0
        self._take(path, chosen)
        if isinstance(data, RankingData):
            self.violation_ = top_violation(self._scores(data), data, spec, across=self.across)
        else:
            self._remember_features(path.feature_names)
        return self

    def _take(self, path: FairnessPath, chosen: int) -> Self:
        """Become one model of a path."""
        self.alpha_ = float(path.alphas[chosen])
        self.coef_ = path.coef[chosen]
        self.intercept_ = float(path.intercept[chosen])
        self.n_iter_ = path.steps or 1
        self.feature_names_ = path.feature_names
        self.group_names_ = path.group_names
        self.group_offset_ = None if path.group_offset is None else path.group_offset[chosen]
        self.group_shares_ = path.shares
        self.resolution_ = 0.0 if path.resolution is None else float(path.resolution[chosen])
        self.violation_ = float("nan")
        return self

    def _summed(self, X: Moments | RankingFiles, spec: FairnessSpec, given: tuple[Any, ...]) -> Moments | RankingFiles:
        """Moments or files as they are, where nothing is asked that needs the rows in memory."""
        if any(part is not None for part in given):
            raise ConfigError("files and moments bring relevance, queries, groups and weights; leave them out.")
        if spec.bounded:
            raise ConfigError(
                "max_violation ranks the training rows, which files and moments do not hold. Train several strengths "
                "with er.fairness_path, rank with each, and take the weakest whose audit is within it."
            )
        if self.impute is not None:
            raise ConfigError("impute needs the rows in memory. Fill missing values in the files, or use er.read.")
        self.imputer_ = None
        return X

    def _within(
        self, spec: FairnessSpec, train: Callable[[ArrayLike], FairnessPath], data: RankingData
    ) -> tuple[FairnessPath, int]:
        """The path that holds the weakest model within ``max_violation``, and its number there."""

        def try_strengths(strengths: NDArray[np.float64]) -> tuple[FairnessPath, NDArray[np.float64]]:
            path = train(strengths)
            return path, path.scores(data)

        grid = strength_grid()
        if self.solver == "exact" and LOSSES[self.loss].quadratic:
            # The path bends below α*, wherever that lies, and is constant beyond it.
            vanishing = float(train([1.0]).alpha_star[0])
            grid = np.unique(np.concatenate([grid, vanishing * np.linspace(0, 1, 26)]))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", Diverged)
            path, chosen = weakest_within(spec, data, grid, try_strengths, across=self.across)
        for each in said:
            # What happened at strengths that were only tried is not of this model.
            if not isinstance(each.message, Diverged) or path.alphas[chosen] in each.message.alphas:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        return path, chosen
