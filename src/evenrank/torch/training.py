"""`train_at`: the networks of a `FairNeuralRanker` at some strengths, with its parameters checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.progress import Progress
from evenrank.quiet import first_line
from evenrank.rankers.base import seed_of
from evenrank.targets import STRONGEST
from evenrank.torch.losses import LOSSES, LogisticLoss
from evenrank.torch.network import Networks, train
from evenrank.torch.pull import BatchPull, Term, told_groups

torch: Any = require("torch")


def train_at(
    ranker: Any,
    data: RankingData,
    alphas: NDArray[np.float64],
    progress: Progress | None = None,
    chances: NDArray[np.float64] | None = None,
) -> tuple[Networks, int]:
    """Train a network for every strength, all of them together.

    Parameters
    ----------
    ranker : FairNeuralRanker
        Its parameters are used.
    data : RankingData
        The training rows.
    alphas : ndarray
        The strengths, (strengths,).
    progress : Callable, optional
        Called with the fraction done.
    chances : ndarray, optional
        What features tell of the groups, (n, groups), if it is known already; see `told_groups`.

    Returns
    -------
    tuple of Networks and int
        The networks, and the number of batches taken.
    """
    choose(ranker.loss, LOSSES, what="loss")
    check_number(ranker.batch_queries, "batch_queries", least=1, whole=True)
    batches = -(-data.n_queries // ranker.batch_queries)
    epochs = max(10, -(-100 // batches)) if ranker.epochs is None else ranker.epochs
    check_number(epochs, "epochs", least=1, whole=True)
    hidden: Any = ranker.hidden
    if isinstance(hidden, str) or not np.iterable(hidden):
        raise ConfigError(f"hidden must be a list of widths, as [64, 32]; got {hidden!r}.")
    for width in ranker.hidden:
        check_number(width, "hidden", least=1, whole=True)
    check_number(ranker.learning_rate, "learning_rate", above=0)
    check_number(ranker.weight_decay, "weight_decay", least=0)
    check_number(ranker.smoothing, "smoothing", least=0)
    alphas, seed = np.minimum(alphas, STRONGEST), seed_of(ranker.random_state)
    data.need_numbers("a network")
    if data.n_features == 0:
        raise DataError("training needs at least one feature; the data has none.")
    if alphas.any():
        data.need_labels("training")
        if data.n_groups < 2:
            groups = f"1 ({data.group_names[0]})" if data.n_groups else "none"
            raise DataError(f"training with alpha > 0 compares groups and needs at least two; the data has {groups}.")
    threshold, base = data.relevance_threshold, LOSSES[ranker.loss]
    loss = base(relevance_threshold=threshold) if base is LogisticLoss else base()
    networks = Networks.fresh(data, ranker.hidden, len(alphas), seed=seed, device=_device(ranker.device))
    pull = None
    if alphas.any():
        known = told_groups(data, ranker.notion) if chances is None else chances
        term = Term(ranker.notion, ranker.scope, ranker.target, ranker.k, ranker.smoothing, ranker.momentum)
        pull = BatchPull(term, data, alphas, known)
    taken = train(
        networks,
        data,
        loss,
        alphas,
        pull,
        learning_rate=ranker.learning_rate,
        weight_decay=ranker.weight_decay,
        epochs=epochs,
        batch_queries=ranker.batch_queries,
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
