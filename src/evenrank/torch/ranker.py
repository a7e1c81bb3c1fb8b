"""`FairNeuralRanker`: a multilayer perceptron with the fairness term, in scikit-learn's idiom."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.boosting.held_out import Judged, check_limits
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.progress import Progress, bar
from evenrank.rankers import model_file
from evenrank.rankers.base import BaseRanker
from evenrank.rankers.matching import added_by_group, match_features
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import top_violation
from evenrank.rows import TO_SCORE
from evenrank.torch.aware import check_aware, fit_with_offsets, trained_with_offsets
from evenrank.torch.limits import evaluation_rows, fit_within_limit, parted
from evenrank.torch.network import Networks, decode, encode
from evenrank.torch.training import train_at


class FairNeuralRanker(BaseRanker):
    """A neural ranker trained to rank well and to treat groups evenly: loss + c·α·Γ(target), with Adam.

    c makes a strength of 1 pull at the scores about as strongly as the loss does; see `evenrank.torch.pull.BatchPull`.

    Parameters
    ----------
    notion, alpha, max_violation
        See `FairLinearRanker`. With ``max_violation`` strength 0 trains first and is kept if it is within the limit;
        then others train together, and of those within it the one with the highest NDCG@k on the rows that count is
        kept: the training rows, unless ``validation_fraction`` or an ``eval_set`` of `fit` says otherwise.
    scope : str
        "amortized" over the queries of a batch, or "per_query".
    target : str
        The value that is evened out: "topk", "exposure", "probability", "score" or "centered"; docs/neural.md
        compares them.
    k : int
        The cut-off of target "topk" and of ``max_violation``.
    hidden : sequence of int
        The widths of the hidden layers.
    loss : str
        "listnet", "ranknet", "squared" or "logistic".
    smoothing : float
        √(gap² + ε²) − ε stands for |gap|, with ε = smoothing · alpha · spread of the target over rows, so that the
        slope near 0 is the same at every strength. With 0, that is |gap| itself, the loss hardly counts in Adam's steps
        at large strengths.
    momentum : float, optional
        The weight of earlier batches in the gap, see `FairnessLoss`; None takes the gap of all rows, each with the
        value it had when it was last in a batch.
    epochs : int, optional
        Passes over the rows; None is 10, or the number that makes 100 batches.
    batch_queries : int
        The number of queries in a batch.
    learning_rate, weight_decay : float
        Adam's.
    group_aware : bool
        Whether the ranker may see the group, at training and at serving: the score is that of a network trained by the
        loss alone plus a part alpha/(1 + alpha) of a `GroupOffset` learned on other queries, for which two more
        networks of half the queries are trained. `predict` then needs ``sensitive_features``. For target "topk" and
        scope "amortized".
    validation_fraction : float, optional
        With ``max_violation``: the share of queries that are kept out of training, and on which the upper end of the
        gap's interval (95 %, one-sided) must be within it.
    impute : str, optional
        "mean" or "median" of the training rows stands for missing values, and categories become columns of 0 and 1; by
        default neither may occur. See `evenrank.rankers.imputing.Imputer`.
    relevance_threshold : float
        Relevance at or above it counts as relevant.
    random_state : int, RandomState or None
        The seed of the first weights and of the order of queries. With an int, training on a CPU gives the same model
        again; None gives another model at each fit.
    device : str, optional
        As torch names it; None is the CPU.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    networks_ : Networks
        The trained weights.
    n_iter_ : int
        The number of batches.
    group_offset_ : ndarray or None
        With ``group_aware``, what is added to the scores of each group, (groups,); an unknown group has 0.
    tried_ : list of tuple
        With ``max_violation``, the strengths that were tried, each with its gap and NDCG@k on the rows that count; the
        gap of queries out of training is the upper end of its interval.
    alpha_, violation_, feature_names_, group_names_
        See `FairLinearRanker`. ``violation_`` is the gap on the rows that were trained on.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> ranker = FairNeuralRanker("demographic_parity", alpha=0.3, epochs=3).fit(data)
    >>> ranker.predict(data).shape == (data.n_rows,)
    True
    """

    networks_: Networks
    alpha_: float
    violation_: float
    tried_: list[tuple[float, float, float]]
    group_offset_: NDArray[np.float64] | None = None

    def __init__(
        self,
        notion: Any = "equal_opportunity",
        alpha: float = 1.0,
        scope: str = "amortized",
        target: str = "topk",
        *,
        k: int = 5,
        max_violation: float | None = None,
        hidden: Sequence[int] = (64, 32),
        loss: str = "listnet",
        smoothing: float = 0.3,
        momentum: float | None = None,
        epochs: int | None = None,
        batch_queries: int = 100,
        learning_rate: float = 0.003,
        weight_decay: float = 0.0,
        group_aware: bool = False,
        validation_fraction: float | None = None,
        impute: str | None = None,
        relevance_threshold: float = 1.0,
        random_state: Any = 0,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.notion = notion
        self.alpha = alpha
        self.scope = scope
        self.target = target
        self.k = k
        self.max_violation = max_violation
        self.hidden = hidden
        self.loss = loss
        self.smoothing = smoothing
        self.momentum = momentum
        self.epochs = epochs
        self.batch_queries = batch_queries
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.group_aware = group_aware
        self.validation_fraction = validation_fraction
        self.impute = impute
        self.relevance_threshold = relevance_threshold
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_sensitive_features: Any = None,
    ) -> FairNeuralRanker:
        """Train on rows (X, relevance y) with their query and group, or on a `RankingData`.

        Ctrl-C keeps the weights reached so far, with a warning. A row's weight multiplies its term of the loss and its
        share in its group's mean, within each batch: with "squared" and "logistic" a row of weight 2 counts as two,
        with "ranknet" and "listnet" in every pair and softmax. Only the proportions of the weights matter.

        Parameters
        ----------
        X, y, qid, sensitive_features, sample_weight
            As in `FairLinearRanker.fit`.
        eval_set : RankingData or list, optional
            ``[RankingData]`` or ``[(X, y)]``: the rows, out of training, on which the upper end of the gap's interval
            must be within ``max_violation``, instead of a ``validation_fraction`` of these.
        eval_qid, eval_sensitive_features : list of array-like, optional
            The query ids and group labels of the rows of ``eval_set``, as ``[ids]``; a `RankingData` has its own.

        Returns
        -------
        FairNeuralRanker
            The trained ranker itself.
        """
        spec = FairnessSpec.of(self)
        rows = self._raw_rows(X, y, qid, sensitive_features, sample_weight)
        spec.check_groups(rows, group_aware=self.group_aware)
        if self.group_aware:
            check_aware(spec, rows)
        rows, aside = parted(rows, spec, self.validation_fraction, eval_set)
        data = self._imputed(rows)
        self.feature_names_, self.group_names_ = data.feature_names, data.group_names
        held_out = self._filled(aside) if aside is not None else None
        if held_out is None:
            held_out = evaluation_rows(self, eval_set, eval_qid, eval_sensitive_features)
        judged = Judged(None, data) if held_out is None else Judged(None, held_out, held_out=True)
        self.group_offset_ = None
        self.__dict__.pop("tried_", None)
        with bar(type(self).__name__, show=self.verbose) as progress:
            if self.group_aware:
                fit_with_offsets(self, spec, data, judged, progress)
            elif spec.bounded:
                fit_within_limit(self, spec, data, judged, progress)
            else:
                self.alpha_ = float(self.alpha)
                self.networks_, self.n_iter_ = self._trained(data, np.array([self.alpha_]), progress)
        self.violation_ = top_violation(self._scores(data), data, spec)
        return self

    def predict(self, X: Any, sensitive_features: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows.

        Parameters
        ----------
        X
            As in `FairLinearRanker.predict`.
        sensitive_features : array-like, optional
            The group label of each row, (n,), which a ``group_aware`` ranker scores by; a `RankingData` has them. It
            changes nothing for any other.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        if self.group_offset_ is None:
            return self._scores(self._rows_to_score(X, reorder=True))
        data = self._rows_to_score(X, sensitive_features, reorder=True)
        if sensitive_features is None and not data.n_groups:
            raise ConfigError("this ranker is group_aware: pass sensitive_features to predict, one label per row.")
        return self._scores(data)

    def _scores(self, data: RankingData) -> NDArray[np.float64]:
        """Scores of rows that are filled, (n,), in the caller's order."""
        return data.to_caller(self._scores_of(Judged(None, data)))

    def _scores_of(self, rows: Judged, trained: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Scores of rows, (n,), in stored order; ``trained`` are those of the network alone, where they are known."""
        scores = self._network_scores(rows.data, self.networks_)[:, 0] if trained is None else trained
        if self.group_offset_ is None:
            return scores
        return scores + added_by_group(self.group_offset_, rows.data, self.group_names_)

    def _network_scores(self, data: RankingData, networks: Networks) -> NDArray[np.float64]:
        """Scores of the networks alone, (n, models), in stored order; features are matched with those of training."""
        columns = match_features(data, self.feature_names_)
        data.need_numbers("a network", np.array(data.feature_names, object)[columns], TO_SCORE)
        return networks.score_data(data, columns)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, with the weights as base64, which `evenrank.load` reads.

        Parameters
        ----------
        path
            As in `FairLinearRanker.save`.
        """
        self._check_fitted("save")
        content = {"features": list(self.feature_names_), "layers": encode(self.networks_), "alpha": self.alpha_}
        content["group_offset"] = None if self.group_offset_ is None else self.group_offset_.tolist()
        scaling = {"center": self.networks_.center.tolist(), "spread": self.networks_.spread.tolist()}
        imputer = {} if self.imputer_ is None else {"imputer": self.imputer_.content()}
        model_file.write(model_file.header(self) | content | scaling | imputer, path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> FairNeuralRanker:
        """Make the ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        ranker = cls()
        model_file.set_parameters(ranker, content, name)
        features, groups = (model_file.names(content, key, name=name) for key in ("features", "groups"))
        scale = [model_file.numbers(key, content.get(key), len(features), name=name) for key in ("center", "spread")]
        ranker.alpha_ = float(model_file.numbers("alpha", [content.get("alpha")], 1, name=name)[0])
        try:
            ranker.networks_ = decode(content.get("layers"), scale[0], scale[1])
        except ValueError as error:
            raise DataError(f"{name}: the weights are missing or damaged ({error}). Was it cut short?") from None
        if content.get("group_offset") is not None or ranker.group_aware:  # older files have none
            offsets = model_file.need(content, "group_offset", list, name=name)
            ranker.group_offset_ = model_file.numbers("group_offset", offsets, len(groups), name=name)
        ranker.feature_names_, ranker.group_names_ = features, groups
        ranker._take_imputer(content, name)
        return ranker

    # ------------------------------------------------------------------ training

    def _trained(
        self,
        data: RankingData,
        alphas: NDArray[np.float64],
        progress: Progress | None = None,
        chances: NDArray[np.float64] | None = None,
    ) -> tuple[Networks, int]:
        """Networks for every strength, trained together, and the batches taken; ``chances`` of the groups, if known."""
        return train_at(self, data, alphas, progress, chances)


def train_scores(
    training: RankingData, test: RankingData, notion: Any, alphas: ArrayLike, **settings: Any
) -> NDArray[np.float64]:
    """Train rankers for every strength together and score the test rows.

    Parameters
    ----------
    training, test, notion
        As in `evenrank.lightgbm.train_scores`.
    alphas : array-like
        The strengths, (strengths,).
    **settings : Any
        The other parameters of `FairNeuralRanker`.

    Returns
    -------
    ndarray
        Scores of the test rows, (n, strengths), in the caller's row order.
    """
    ranker, strengths = FairNeuralRanker(notion, **settings), np.atleast_1d(np.asarray(alphas, np.float64))
    spec = FairnessSpec.of(ranker)
    check_limits(ranker.validation_fraction, None, [], spec)
    if spec.max_violation is not None:
        raise ConfigError(
            f"max_violation={spec.max_violation:g} is for fit, which finds its strength; here the strengths are given. "
            "Leave it out."
        )
    ranker.feature_names_, ranker.group_names_ = training.feature_names, training.group_names
    if not ranker.group_aware:
        networks, _ = ranker._trained(training, strengths)
        return test.to_caller(ranker._network_scores(test, networks))
    check_aware(spec, training)
    _, offsets_at = trained_with_offsets(ranker, training, spec)
    scores = ranker._network_scores(test, ranker.networks_)[:, 0]
    columns = [scores + added_by_group(offsets_at(alpha), test, ranker.group_names_) for alpha in strengths.tolist()]
    return test.to_caller(np.stack(columns, axis=1))
