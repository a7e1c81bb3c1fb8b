"""`by_group`: what each group gets of a ranking, one row per group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.measures import Evaluation, Options
from evenrank.measures.evaluation import divide
from evenrank.measures.pairs import marginal_accuracies
from evenrank.measures.rank_measures import pair_counts

RowFunction = Callable[[NDArray[Any], RankingData], ArrayLike]
DEFAULT = ("count", "selection_rate@5", "exposure", "mean_rank", "relevance", "pairwise_accuracy")

# Values of rows, whose mean over a group is the column; k is needed where it is True.
_OF_ROWS: dict[str, tuple[bool, Callable[[Evaluation, int | None], NDArray[Any]]]] = {
    "selection_rate": (True, lambda ev, k: ev.top(check_k(k))),
    "exposure": (False, lambda ev, k: ev.exposure(k)),
    "mean_rank": (False, lambda ev, k: ev.ranking.rank),
    "relevance": (False, lambda ev, k: ev.data.relevance),
    "relevant_share": (False, lambda ev, k: ev.data.relevant.astype(float)),
}
_OTHERS = ("count", "lists", "share", "selection_rate_relevant", "pairwise_accuracy")


def by_group(
    scores: ArrayLike,
    data: RankingData,
    columns: Sequence[str | RowFunction] = DEFAULT,
    *,
    discount: str | None = None,
    patience: float | None = None,
    stop: float | None = None,
) -> list[dict[str, Any]]:
    """Describe each group's part in a ranking.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order; ties are averaged.
    data : RankingData
        The rows, with groups.
    columns : sequence of str or callable
        "count" (rows, or their weights and probabilities added up), "lists" (that have one), "share" of the rows of
        known group; and means over the group's rows: "selection_rate@k" and "selection_rate_relevant@k" (in the top k),
        "exposure" (or "exposure@k"), "mean_rank", "relevance", "relevant_share". "pairwise_accuracy": how often a
        relevant item of the group stands above a less relevant one of its list. A function of scores and data that
        gives one value per row, (n,), in the caller's order: its mean, under the function's name.
    discount, patience, stop : optional
        Of the exposure, see `Options`.

    Returns
    -------
    list of dict
        One row per group, in the order of ``data.group_names``, "group" first; NaN where a group has no such row.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
    >>> by_group([3.0, 2.0, 1.0], data, ["count", "selection_rate@2", "mean_rank"])
    [{'group': 'a', 'count': 2.0, 'selection_rate@2': 1.0, 'mean_rank': 1.5}, \
{'group': 'b', 'count': 1.0, 'selection_rate@2': 0.0, 'mean_rank': 3.0}]
    """
    stored = data.to_stored(scores)
    if stored.ndim != 1:
        raise DataError(f"by_group takes one score per row, ({data.n_rows},); got shape {stored.shape}.")
    if not data.n_groups:
        raise DataError("by_group needs the group of each row; the data has none.")
    options = Options(discount=discount, patience=patience, stop=stop)
    ev = Evaluation.of(stored, data).with_options(options)
    table = {"group": list(data.group_names)}
    for column in columns if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]:
        name = column if isinstance(column, str) else _name_of(column)
        table[name] = _column(ev, column).tolist()
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _name_of(function: RowFunction) -> str:
    name = getattr(function, "__name__", "")
    if not callable(function) or not name or name == "<lambda>":
        raise ConfigError(f"a column must be a name, or a function that has a name of its own; got {function!r}.")
    return str(name)


def _column(ev: Evaluation, column: str | RowFunction) -> NDArray[np.float64]:
    data = ev.data
    member = ev.membership if data.sample_weight is None else ev.membership * data.sample_weight[:, None]
    if not isinstance(column, str):
        values = data.to_stored(column(data.to_caller(_scores(ev)), data), what=f"values of {_name_of(column)}")
        return _means(member, values)
    name, at, cut = column.partition("@")
    k = int(cut) if cut.isdecimal() and int(cut) > 0 else None
    takes_k = name.startswith(("selection_rate", "exposure"))
    needs_k = name.startswith("selection_rate")
    if name not in (*_OF_ROWS, *_OTHERS) or (at and (k is None or not takes_k)) or (needs_k and not at):
        known = ", ".join(f"{known}@k" if known.startswith("selection") else known for known in (*_OF_ROWS, *_OTHERS))
        raise ConfigError(f"a column must be one of {known}, exposure@k, or a function; got {column!r}.")
    if name == "count":
        return np.asarray(member.sum(axis=0))
    if name == "share":
        return divide(member.sum(axis=0), np.asarray(member.sum()))
    if name == "lists":
        return np.asarray((ev.per_query_sum(ev.membership) > 0).sum(axis=0), np.float64)
    if name == "pairwise_accuracy":
        return np.asarray(marginal_accuracies(pair_counts(ev, by_relevance=True).pooled(), "marginal")[0])
    if name == "selection_rate_relevant":
        return _means(member * data.relevant[:, None], ev.top(check_k(k)))
    return _means(member, _OF_ROWS[name][1](ev, k))


def _means(member: NDArray[np.float64], values: NDArray[Any]) -> NDArray[np.float64]:
    return divide(member.T @ values, member.sum(axis=0))


def _scores(ev: Evaluation) -> NDArray[Any]:
    assert ev.scores is not None
    return ev.scores
