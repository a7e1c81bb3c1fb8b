"""`FairNeuralRanker`: a multilayer perceptron with the fairness term, in scikit-learn's idiom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.linear.strengths import strength_grid
from evenrank.progress import bar
from evenrank.quiet import first_line
from evenrank.rankers import model_file
from evenrank.rankers.base import BaseRanker, seed_of
from evenrank.rankers.matching import match_features
from evenrank.rankers.search import least_loss_of
from evenrank.rankers.spec import FairnessSpec
from evenrank.rankers.top_violation import top_violation
from evenrank.rows import TO_SCORE
from evenrank.targets import STRONGEST
from evenrank.torch.losses import LOSSES, LogisticLoss
from evenrank.torch.network import Networks, decode, encode, train
from evenrank.torch.pull import BatchPull, Term, told_groups

torch: Any = require("torch")


class FairNeuralRanker(BaseRanker):
    """A neural ranker trained to rank well and to treat groups evenly: loss + c·α·Γ(target), with Adam.

    c makes a strength of 1 pull at the scores about as strongly as the loss does; see `evenrank.torch.pull.BatchPull`.

    Parameters
    ----------
    notion, alpha, max_violation
        See `FairLinearRanker`. With ``max_violation`` strength 0 trains first and is kept if it is within the limit;
        then others train together, and of those within it the one with the highest NDCG on the training rows is kept.
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
    alpha_, violation_, feature_names_, group_names_
        See `FairLinearRanker`.

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
    ) -> FairNeuralRanker:
        """Train on rows (X, relevance y) with their query and group, or on a `RankingData`.

        Ctrl-C keeps the weights reached so far, with a warning. A row's weight multiplies its term of the loss and its
        share in its group's mean, within each batch: with "squared" and "logistic" a row of weight 2 counts as two,
        with "ranknet" and "listnet" in every pair and softmax. Only the proportions of the weights matter.

        Parameters
        ----------
        X, y, qid, sensitive_features, sample_weight
            As in `FairLinearRanker.fit`.

        Returns
        -------
        FairNeuralRanker
            The trained ranker itself.
        """
        spec = FairnessSpec.of(self)
        data = self._checked_rows(X, y, qid, sensitive_features, sample_weight)
        spec.check_groups(data)
        with bar(type(self).__name__, show=self.verbose) as progress:
            if spec.bounded:
                data.need_numbers("a network")
                chances = told_groups(data)

                def tried(strengths: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
                    trained, taken = self._trained(data, strengths, progress, chances)
                    return (trained, taken, strengths), data.to_caller(trained.score_data(data))

                models, chosen = least_loss_of(spec, data, strength_grid(), tried)
                networks, taken, strengths = models
            else:
                strengths, chosen = np.array([float(self.alpha)]), 0
                networks, taken = self._trained(data, strengths, progress)
        self.networks_ = networks.one(chosen)
        self.alpha_ = float(strengths[chosen])
        self.n_iter_ = taken
        self.feature_names_, self.group_names_ = data.feature_names, data.group_names
        self.violation_ = top_violation(self._scores(data), data, spec)
        return self

    def predict(self, X: Any, sensitive_features: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows.

        Parameters
        ----------
        X, sensitive_features
            As in `FairLinearRanker.predict`; ``sensitive_features`` changes nothing.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        data = self._rows_to_score(X, reorder=True)
        return self._scores(data)

    def _scores(self, data: RankingData) -> NDArray[np.float64]:
        """Scores of rows that are filled, (n,), in the caller's order."""
        return data.to_caller(_scores_of(self.networks_, data, self.feature_names_)[:, 0])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, with the weights as base64, which `evenrank.load` reads.

        Parameters
        ----------
        path
            As in `FairLinearRanker.save`.
        """
        self._check_fitted("save")
        content = {"features": list(self.feature_names_), "layers": encode(self.networks_), "alpha": self.alpha_}
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
        ranker.feature_names_, ranker.group_names_ = features, groups
        ranker._take_imputer(content, name)
        return ranker

    # ------------------------------------------------------------------ training

    def _trained(
        self,
        data: RankingData,
        alphas: NDArray[np.float64],
        progress: Callable[[float], None] | None = None,
        chances: NDArray[np.float64] | None = None,
    ) -> tuple[Networks, int]:
        """Networks for every strength, trained together, and the batches taken; ``chances`` of the groups, if known."""
        choose(self.loss, LOSSES, what="loss")
        check_number(self.batch_queries, "batch_queries", least=1, whole=True)
        epochs = max(10, -(-100 // -(-data.n_queries // self.batch_queries))) if self.epochs is None else self.epochs
        check_number(epochs, "epochs", least=1, whole=True)
        hidden: Any = self.hidden
        if isinstance(hidden, str) or not np.iterable(hidden):
            raise ConfigError(f"hidden must be a list of widths, as [64, 32]; got {hidden!r}.")
        for width in self.hidden:
            check_number(width, "hidden", least=1, whole=True)
        check_number(self.learning_rate, "learning_rate", above=0)
        check_number(self.weight_decay, "weight_decay", least=0)
        check_number(self.smoothing, "smoothing", least=0)
        alphas, seed = np.minimum(alphas, STRONGEST), seed_of(self.random_state)
        data.need_numbers("a network")
        if data.n_features == 0:
            raise DataError("training needs at least one feature; the data has none.")
        if alphas.any():
            data.need_labels("training")
            if data.n_groups < 2:
                groups = f"1 ({data.group_names[0]})" if data.n_groups else "none"
                raise DataError(
                    f"training with alpha > 0 compares groups and needs at least two; the data has {groups}."
                )
        threshold, base = data.relevance_threshold, LOSSES[self.loss]
        loss = base(relevance_threshold=threshold) if base is LogisticLoss else base()
        networks = Networks.fresh(data, self.hidden, len(alphas), seed=seed, device=_device(self.device))
        pull = None
        if alphas.any():
            known = told_groups(data) if chances is None else chances
            term = Term(self.notion, self.scope, self.target, self.k, self.smoothing, self.momentum)
            pull = BatchPull(term, data, alphas, known)
        taken = train(
            networks,
            data,
            loss,
            alphas,
            pull,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            epochs=epochs,
            batch_queries=self.batch_queries,
            seed=seed,
            progress=progress,
        )
        return networks, taken


def _device(name: str | None) -> Any:
    """The device of that name, if there is one here."""
    try:
        return torch.empty(0, device=name or "cpu").device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = first_line(error)
        raise ConfigError(f"device must be one that torch has here, as 'cpu'; got {name!r} ({reason}).") from None


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
    ranker = FairNeuralRanker(notion, **settings)
    networks, _ = ranker._trained(training, np.atleast_1d(np.asarray(alphas, np.float64)))
    return test.to_caller(_scores_of(networks, test, training.feature_names))


def _scores_of(networks: Networks, data: RankingData, names: tuple[str, ...]) -> NDArray[np.float64]:
    """(n, models) in stored order, features matched with those of training."""
    columns = match_features(data, names)
    data.need_numbers("a network", np.array(data.feature_names, object)[columns], TO_SCORE)
    return networks.score_data(data, columns)
