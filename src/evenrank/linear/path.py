"""`fairness_path`: linear rankers for every strength at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.design_columns import group_shares
from evenrank.errors import ConfigError, DataError
from evenrank.linear import gd, sgd
from evenrank.linear.asked import same_rows, several_notions
from evenrank.linear.descent import Penalised, Penalty
from evenrank.linear.design import Design
from evenrank.linear.exact import Solution, Whitened, exact, vanishing_strength
from evenrank.linear.moment_design import MomentDesign, is_summed, refuse_rows, summed_rows
from evenrank.linear.scores import linear_scores
from evenrank.linear.strengths import checked_strengths
from evenrank.losses import LOSSES
from evenrank.moments import Moments
from evenrank.notions import SCOPES, Cells, Notion, NotionLike, as_notion
from evenrank.progress import Progress
from evenrank.row_checks import listed
from evenrank.rows import TO_SUM
from evenrank.targets import TARGETS, bind_target

if TYPE_CHECKING:
    from evenrank.io.row_files import RankingFiles

SOLVERS = ("exact", "gd", "sgd")
SCALES = ("train", "dataset", None)
GD_RATE, GD_STEPS = 0.003, 1500
SGD_RATE = 1e-4


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Trained linear rankers along the strengths.

    Attributes
    ----------
    coef, intercept : ndarray
        Weights (models, d) and intercepts (models,), in the features' own units.
    alphas : ndarray
        Strengths, (models,).
    notions : tuple of str
        The notion of each model; with several, the strengths repeat notion by notion.
    feature_names, group_names : tuple
        The names of the features and groups in training.
    residual : ndarray
        The exact solution's distance from optimality, (models,): the largest entry of the subgradient made with the
        multipliers, and how far those are from fitting the gaps' signs; NaN for other solvers.
    multipliers : ndarray or None
        u of the exact solution, (models, J), in [−1, 1].
    group_offset : ndarray or None
        What is added to a group's scores if group-aware, (models, G).
    shares : ndarray or None
        Each group's share of the training rows if group-aware, (G,).
    steps : int
        The number of steps (gd) or batches (sgd).
    resolution : ndarray or None
        The step that scores are rounded to, (models,): some 1e-10 of their deviation where the exact solver holds a gap
        within a query at 0, which may tie two rows, and 0 (as they come) for all other models.
    problems : tuple
        The whitened problem of each grouping and notion, for `alpha_star`.
    options : dict
        The options of training that a ranker keeps, for `ranker`.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    alphas: NDArray[np.float64]
    notions: tuple[str, ...]
    feature_names: tuple[str, ...]
    group_names: tuple[Any, ...]
    residual: NDArray[np.float64]
    multipliers: NDArray[np.float64] | None = None
    group_offset: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    steps: int = 0
    resolution: NDArray[np.float64] | None = None
    problems: tuple[tuple[Whitened, NDArray[np.float64]], ...] = field(default=(), repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def alpha_star(self) -> NDArray[np.float64]:
        """The strength from which on the training gap is 0 and the path constant, one per notion."""
        if not self.problems:
            raise ConfigError(
                "alpha_star is known for solver='exact', loss='squared' or 'pairwise', and a strength above 0 only."
            )
        return np.array([vanishing_strength(white, weight) for white, weight in self.problems])

    def ranker(self, alpha: float | None = None, notion: NotionLike | None = None) -> Any:
        """Give one model as a ranker, which can be saved.

        Parameters
        ----------
        alpha : float, optional
            Its strength, one of ``alphas``; needed where there are several.
        notion : str, optional
            Its notion; needed where there are several.

        Returns
        -------
        FairLinearRanker
            The ranker; its ``violation_`` is NaN, since no rows are ranked.
        """
        from evenrank.linear.ranker import FairLinearRanker

        good = np.ones(len(self), bool) if alpha is None else np.asarray(self.alphas == alpha)
        if notion is not None:
            good &= np.array([name == as_notion(notion).name for name in self.notions])
        if good.sum() != 1:
            asked = f"alpha={alpha!r}" + ("" if notion is None else f", notion={notion!r}")
            shown = listed([f"{a:g}" for a in np.unique(self.alphas)])
            raise ConfigError(
                f"a path gives one ranker at a time; {asked} names {good.sum()} of {len(self)} models. "
                f"Its strengths are {shown}, its notions {listed(list(dict.fromkeys(self.notions)))}."
            )
        chosen = int(np.argmax(good))
        options = {**self.options, "alpha": float(self.alphas[chosen]), "notion": self.notions[chosen]}
        ranker = FairLinearRanker(**options)._take(self, chosen)
        ranker._remember_features(self.feature_names)
        return ranker

    def scores(self, data: RankingData) -> NDArray[np.float64]:
        """Score rows with every model.

        Parameters
        ----------
        data : RankingData
            The rows.

        Returns
        -------
        ndarray
            Scores, (n, models), in the caller's row order.
        """
        return data.to_caller(linear_scores(self, data))


def fairness_path(
    train: RankingData | Sequence[RankingData] | Moments | RankingFiles,
    notion: NotionLike | Sequence[str | Notion] = "equal_opportunity",
    alphas: ArrayLike | None = None,
    solver: str = "exact",
    scope: str = "amortized",
    *,
    target: str = "score",
    k: int = 5,
    loss: str = "squared",
    ridge: float = 0.0,
    scale: str | None = "train",
    fit_intercept: bool = True,
    group_aware: bool = False,
    across: str = "mean",
    relative: bool = False,
    learning_rate: float | None = None,
    max_iter: int = GD_STEPS,
    epochs: int = 5,
    batch_queries: int = 100,
    batch_items: int | None = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> FairnessPath:
    """Train a linear ranker for every strength: minimise mean loss + ridge ‖θ‖² + α·Γ(target).

    Parameters
    ----------
    train : RankingData, sequence of RankingData, Moments or RankingFiles
        The data, or several groupings of the same rows (`RankingData.with_group`), which train together. `Moments`, or
        files of any size (`evenrank.scan`), train with the solvers exact and gd, the losses squared and pairwise, the
        pooled scope and the targets score and centered.
    notion : str, Notion, callable, row masks or sequence of str
        One notion, or a list of names, which train together.
    alphas : array-like, optional
        Strengths, (A,); None is the paper's grid of 26.
    solver : str
        "exact" (the minimiser), "gd" (full-batch descent, the paper's TREC settings) or "sgd" (batches of queries, the
        paper's MS MARCO settings).
    scope : str
        "amortized" pools all queries; "per_query" averages the gaps of the queries.
    target : str
        The value that is evened out: the "score" (the paper's) or, "centered", the score less its query's mean, since
        what differs between queries cannot change a ranking (per query the two are the same). With gd also its
        "probability", a soft "topk" indicator or the "exposure" of the soft rank, which hold the rows in memory; see
        `evenrank.targets`.
    k : int
        The cut-off of target "topk".
    loss : str
        "squared"; "pairwise", the squared error of differences within a query (½ its mean over the pairs of a row with
        its list, averaged over rows); or "logistic" (relevance at the threshold).
    ridge : float
        The weight of ‖θ‖² in standardised features, without the intercept.
    scale : str, optional
        Standardise with the statistics of "train", of the whole "dataset" it was taken from, or not at all (None).
    fit_intercept : bool
        Whether the score has an intercept.
    group_aware : bool
        Let the model see the group; see `FairLinearRanker` on when that is appropriate.
    across : str
        How more than two groups are combined: the "mean" over pairs, or the "max" (gd and sgd).
    relative : bool
        ``alphas`` are fractions of α*, the strength at which the training gap vanishes (exact, squared or pairwise).
    learning_rate : float, optional
        By default 0.003 for gd and 0.0001 for sgd.
    max_iter : int
        Steps of gd. The paper's 1500 of 0.003 stop short of the minimum, which more or longer steps reach.
    epochs, batch_queries, seed : int
        Of sgd: passes over the queries, queries in a batch, and the seed of their order.
    batch_items : int, optional
        Of sgd: the most items of a query in a batch; None takes all.
    progress : Callable, optional
        Called with the fraction done.

    Returns
    -------
    FairnessPath
        One model per grouping, notion and strength, the strengths last.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> path = er.fairness_path(data, "demographic_parity", alphas=[0.0, 0.5, 1.0], relative=True)
    >>> er.violation(path.scores(data), data, "demographic_parity").round(3).tolist()
    [0.097, 0.049, 0.0]
    """
    groupings = [] if is_summed(train) else same_rows(train)  # type: ignore[arg-type]
    notions = [as_notion(item) for item in (several_notions(notion) or [notion])]
    strengths = checked_strengths(alphas)
    choose(solver, SOLVERS, what="solver")
    choose(scope, SCOPES, what="scope")
    choose(loss, LOSSES, what="loss")
    choose(target, TARGETS, what="target")
    if is_summed(train):
        refuse_rows(solver=solver, scope=scope, target=target, loss=loss)
    if not TARGETS[target].linear and solver != "gd":
        raise ConfigError(
            f"target={target!r} trains with solver='gd'; solver={solver!r} takes target='score' or 'centered'."
        )
    if scale not in SCALES:
        raise ConfigError(f"scale must be 'train', 'dataset' or None; got {scale!r}.")
    check_number(ridge, "ridge", least=0)
    if across == "max" and solver == "exact":
        raise ConfigError("across='max' trains with solver='gd' or 'sgd'; the exact solver takes across='mean'.")
    if relative and not (solver == "exact" and LOSSES[loss].quadratic):
        raise ConfigError("relative strengths need solver='exact' and loss='squared' or 'pairwise'.")
    counts = {"max_iter": max_iter, "epochs": epochs, "batch_queries": batch_queries, "batch_items": batch_items}
    for name, value in counts.items():
        if not (name == "batch_items" and value is None):
            check_number(value, name, least=1, whole=True)
    check_number(seed, "seed", least=0, whole=True)
    rate = (SGD_RATE if solver == "sgd" else GD_RATE) if learning_rate is None else learning_rate
    check_number(rate, "learning_rate", above=0)

    penalised = bool(strengths.any())
    scaling: dict[str, Any] = {
        "across": across,
        "scale": scale,
        "ridge": ridge,
        "fit_intercept": fit_intercept,
        "any_units": solver == "exact",
        "target": target,
        "within": LOSSES[loss].within,
    }
    design: Design
    if is_summed(train):
        moments = summed_rows(train, notions if penalised else [], group_aware=group_aware, **scaling)
        design = MomentDesign(moments, notions if penalised else [], **scaling)
        features, groups = moments.feature_names[: design.n_features], moments.group_names
        shares = moments.group_rows / max(1, moments.group_rows.sum())
    else:
        data = groupings[0]
        if group_aware and (not data.n_groups or len(groupings) > 1):
            raise ConfigError(
                f"group_aware needs data with one grouping; got {len(groupings) if data.n_groups else 'none'}."
            )
        data.need_numbers("a linear ranker", advice=TO_SUM)
        if penalised or group_aware:
            for grouping in groupings:
                grouping.need_labels("training")
        options: dict[str, Any] = {"scope": scope, "group_aware": group_aware, **scaling}
        design = Design(groupings, notions if penalised else [], **options)
        features, groups, shares = data.feature_names, data.group_names, group_shares(data)
    if not features:
        raise DataError("training needs at least one feature; the data has none.")
    if solver == "exact":
        solved = exact(design, LOSSES[loss], strengths, relative=relative, progress=progress)
    elif solver == "gd":
        penalty: Penalised
        if TARGETS[target].linear or not penalised:
            penalty = Penalty(design.terms(), strengths)
        else:
            bound = bind_target(target, groupings[0].query_ptr, k=k)
            penalty = design.target_penalty(bound, strengths, LOSSES[loss])
        solved = gd.train(design, LOSSES[loss], penalty, rate, max_iter, progress)
    else:
        cells = [Cells.of(item, grouping) for grouping in groupings for item in design.notions]
        schedule = sgd.Schedule(rate, epochs, batch_queries, batch_items, seed)
        theta, taken = sgd.train(design, cells, strengths, LOSSES[loss], schedule, progress=progress)
        solved = Solution(theta, np.tile(strengths, max(1, len(cells))), steps=taken)

    coef, intercept, offset = design.in_own_units(solved.theta)
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise DataError("training gave weights that are not finite: features or relevance are too large. Rescale them.")
    # Where nothing is penalised, one solution serves every grouping and notion.
    copies = 1 if penalised else max(1, len(groupings)) * len(notions)
    return FairnessPath(
        coef=np.tile(coef, (copies, 1)),
        intercept=np.tile(intercept, copies),
        alphas=np.tile(solved.alphas, copies),
        notions=tuple(item.name for _ in range(max(1, len(groupings))) for item in notions for _ in strengths),
        feature_names=features,
        group_names=groups,
        residual=np.tile(solved.residual, copies),
        multipliers=solved.multipliers,
        group_offset=None if offset is None else np.tile(offset, (copies, 1)),
        shares=shares if group_aware else None,
        steps=solved.steps,
        resolution=None if solved.resolution is None else np.tile(solved.resolution, copies),
        problems=solved.problems if penalised else (),
        options={
            "solver": solver,
            "scope": scope,
            "group_aware": group_aware,
            "target": target,
            "k": k,
            "loss": loss,
            "ridge": ridge,
            "scale": scale,
            "fit_intercept": fit_intercept,
            "across": across,
        },
    )
