"""Losses of ranking quality for torch, in one call form: ``(scores, relevance, group=None, qid=None)``.

Scores are (n,), which gives a scalar, or (n, models), which gives (models,). Rows of a query may stand anywhere,
queries may differ in length, and nothing loops over queries. Padded lists are taken too, as `FairnessLoss` takes them:
scores, relevance and weights (B, L), no ``qid``, and ``mask``, (B, L), false where a list is padded. ``group`` is taken
and ignored, so that every loss of `evenrank.torch` is called alike. With ``sample_weight``, a row of weight 2 counts as
two rows and one of weight 0 as none; only the weights' proportions matter.
"""

from __future__ import annotations

from typing import Any

from evenrank.errors import DataError
from evenrank.extras import require
from evenrank.row_checks import unmasked
from evenrank.torch.padding import are_lists, unpadded

torch: Any = require("torch")
Tensor = Any  # torch.Tensor, which is known only where torch is installed


class SquaredLoss(torch.nn.Module):  # type: ignore[misc]
    """The mean over rows of (s − r)², the paper's pointwise loss.

    Examples
    --------
    >>> float(SquaredLoss()(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])))
    0.5
    """

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        group: Any = None,
        qid: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> Tensor:
        """Give the loss of a batch, called as the module says."""
        if are_lists(relevance, mask):
            scores, relevance, _, qid, sample_weight = unpadded(scores, relevance, None, qid, sample_weight, mask)
        check_rows(scores, relevance=relevance, sample_weight=sample_weight)
        return _mean((scores - _like(scores, relevance)) ** 2, sample_weight)


class LogisticLoss(torch.nn.Module):  # type: ignore[misc]
    """The mean over rows of log(1 + eˢ) − y s, where y is whether relevance reaches ``relevance_threshold``.

    Parameters
    ----------
    relevance_threshold : float
        Relevance at or above it counts as relevant.

    Examples
    --------
    >>> round(float(LogisticLoss()(torch.zeros(2), torch.tensor([1.0, 0.0]))), 3)
    0.693
    """

    def __init__(self, *, relevance_threshold: float = 1.0) -> None:
        super().__init__()
        self.relevance_threshold = relevance_threshold

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        group: Any = None,
        qid: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> Tensor:
        """Give the loss of a batch, called as the module says."""
        if are_lists(relevance, mask):
            scores, relevance, _, qid, sample_weight = unpadded(scores, relevance, None, qid, sample_weight, mask)
        check_rows(scores, relevance=relevance, sample_weight=sample_weight)
        relevant = (_like(scores, relevance) >= self.relevance_threshold).to(scores.dtype)
        return _mean(torch.nn.functional.softplus(scores) - relevant * scores, sample_weight)


class _QueryLoss(torch.nn.Module):  # type: ignore[misc]
    """A loss over the queries of a batch; subclasses define `_of_queries`."""

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        group: Any = None,
        qid: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> Tensor:
        """Give the loss of a batch, called as the module says."""
        if are_lists(relevance, mask):
            scores, relevance, _, qid, sample_weight = unpadded(scores, relevance, None, qid, sample_weight, mask)
        check_rows(scores, relevance=relevance, qid=qid, sample_weight=sample_weight)
        query, count = query_numbers(qid, scores)
        weight = None if sample_weight is None else sample_weight.to(scores.device, scores.dtype)
        return self._of_queries(scores, relevance, query, count, weight)

    def _of_queries(self, scores: Tensor, relevance: Tensor, query: Tensor, count: int, weight: Any) -> Tensor:
        raise NotImplementedError


class RankNetLoss(_QueryLoss):
    """log(1 + e^(s_j − s_i)) over the pairs of a query with r_i > r_j: their mean, averaged over queries that have any.

    Without ``qid`` all rows are one query. Memory grows with the square of the longest lists.

    Examples
    --------
    >>> round(float(RankNetLoss()(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]), None, torch.tensor([7, 7]))), 3)
    0.313
    """

    def _of_queries(self, scores: Tensor, relevance: Tensor, query: Tensor, count: int, weight: Any) -> Tensor:
        above, below = pairs_within(query, count)
        ordered = relevance[above] > relevance[below]
        above, below = above[ordered], below[ordered]
        each = torch.nn.functional.softplus(scores[below] - scores[above])
        if weight is None:
            of_query = torch.bincount(query[above], minlength=count)
            share = 1 / (of_query[query[above]] * (of_query > 0).sum()).to(scores.dtype)
        else:
            pair_weight = weight[above] * weight[below]
            of_query = pair_weight.new_zeros(count).index_add(0, query[above], pair_weight)
            least = torch.finfo(pair_weight.dtype).tiny
            share = pair_weight / (of_query[query[above]] * (of_query > 0).sum()).clamp(min=least)
        return (each * _like(each, share)).sum(dim=0)


class ListNetLoss(_QueryLoss):
    """Cross entropy of softmax(relevance) and softmax(scores) within a query, averaged over queries (ListNet, top one).

    Without ``qid`` all rows are one query.

    Examples
    --------
    >>> round(float(ListNetLoss()(torch.zeros(4), torch.tensor([1.0, 0.0, 0.0, 0.0]), None, torch.ones(4))), 3)
    1.386
    """

    def _of_queries(self, scores: Tensor, relevance: Tensor, query: Tensor, count: int, weight: Any) -> Tensor:
        if weight is None:
            wanted = log_softmax_within(relevance.to(scores.dtype), query, count).exp()
            each = _like(scores, wanted) * log_softmax_within(scores, query, count)
            return -each.sum(dim=0) / max(count, 1)
        live = weight > 0
        weight = weight[live] / weight[live].mean()
        left, query = torch.unique(query[live], return_inverse=True)
        kept = len(left)
        wanted = weight * log_softmax_within(relevance[live].to(scores.dtype), query, kept, weight).exp()
        each = _like(scores, wanted) * log_softmax_within(scores[live], query, kept, weight)
        return -each.sum(dim=0) / max(kept, 1)


LOSSES = {"squared": SquaredLoss, "logistic": LogisticLoss, "ranknet": RankNetLoss, "listnet": ListNetLoss}


def check_rows(scores: Tensor, **others: Any) -> None:
    """Refuse scores or columns of a wrong shape.

    Parameters
    ----------
    scores : Tensor
        (n,) or (n, models).
    **others : Tensor or None
        Columns by name, (n,) each.
    """
    unmasked(scores, "scores")
    if scores.ndim not in (1, 2):
        raise DataError(f"scores must have shape (n,) or (n, models); got {tuple(scores.shape)}.")
    rows = scores.shape[:1]
    for name, values in others.items():
        if values is not None and unmasked(values, name).shape != rows:
            raise DataError(
                f"{name} must have shape ({len(scores)},), one value per row of scores; got {tuple(values.shape)}."
            )


def query_numbers(qid: Tensor | None, scores: Tensor) -> tuple[Tensor, int]:
    """Number the queries of the rows.

    Parameters
    ----------
    qid : Tensor or None
        The query of each row, (n,); None is a single query.
    scores : Tensor
        The scores of the rows.

    Returns
    -------
    tuple of Tensor and int
        Each row's query as a number from 0, (n,), and the number of queries.
    """
    if qid is None:
        return torch.zeros(len(scores), dtype=torch.int64, device=scores.device), min(1, len(scores))
    ids, query = torch.unique(qid.to(scores.device), return_inverse=True)
    return query, len(ids)


def pairs_within(query: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """List every ordered pair of rows of the same query, those of a row with itself included.

    Parameters
    ----------
    query : Tensor
        Each row's query as a number from 0, (n,).
    count : int
        The number of queries.

    Returns
    -------
    tuple of Tensor
        The row numbers of the first and of the second of each pair, (pairs,) each.
    """
    order = torch.argsort(query, stable=True)
    lengths = torch.bincount(query, minlength=count)
    starts = torch.cumsum(lengths, 0) - lengths
    partners = lengths[query[order]]
    first = torch.repeat_interleave(order, partners)
    run = torch.cumsum(partners, 0) - partners
    place = torch.arange(len(first), device=query.device) - torch.repeat_interleave(run, partners)
    return first, order[starts[query[first]] + place]


def log_softmax_within(values: Tensor, query: Tensor, count: int, weight: Tensor | None = None) -> Tensor:
    """Take the log softmax over the rows of each query.

    Parameters
    ----------
    values : Tensor
        (n,) or (n, models).
    query : Tensor
        Each row's query as a number from 0, (n,).
    count : int
        The number of queries.
    weight : Tensor, optional
        The number of rows that each stands for, (n,) above 0.

    Returns
    -------
    Tensor
        The shape of ``values``.
    """
    shape = (count, *values.shape[1:])
    index = query if values.ndim == 1 else query[:, None].expand_as(values)
    top = torch.full(shape, -torch.inf, dtype=values.dtype, device=values.device)
    top = top.scatter_reduce(0, index, values.detach(), "amax")
    shifted = values - top[query]
    power = shifted.exp() if weight is None else _like(values, weight) * shifted.exp()
    total = torch.zeros(shape, dtype=values.dtype, device=values.device).index_add(0, query, power)
    return shifted - total.log()[query]


def _mean(rows: Tensor, weight: Tensor | None) -> Tensor:
    """The mean over the rows; 0 without rows, as an empty batch has nothing to learn from."""
    if weight is not None:
        total = weight.to(rows.device, rows.dtype).sum().clamp(min=torch.finfo(rows.dtype).tiny)
        return (rows * _like(rows, weight)).sum(dim=0) / total
    return rows.mean(dim=0) if len(rows) else rows.sum(dim=0)


def _like(scores: Tensor, values: Tensor) -> Tensor:
    """One value per row, in the scores' type and shaped to broadcast over the models."""
    values = values.to(scores.device, scores.dtype)
    return values if scores.ndim == 1 else values[:, None]
