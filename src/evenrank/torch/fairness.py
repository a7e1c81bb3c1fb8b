"""`FairnessLoss`: Γ of a batch as a torch module, around the one definition in `evenrank.targets`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.contrasts import ACROSS, Contrast, pairs_of
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.extras import require
from evenrank.labels import group_rows
from evenrank.notions import SCOPES, Cells, Notion, NotionLike, as_notion
from evenrank.row_checks import unmasked
from evenrank.targets import TARGETS, BoundTarget, FairnessTerm, bind_target
from evenrank.targets.bound import BLOCK
from evenrank.torch.arrays import Known, as_numpy, as_tensor
from evenrank.torch.batch_checks import MOST_GROUPS, check_groups, codes, likeliest, usable
from evenrank.torch.batch_rows import BatchRows, compiled, is_named, pooled
from evenrank.torch.losses import Tensor, check_rows
from evenrank.torch.padding import are_lists, unpadded
from evenrank.torch.running_means import Averaged, Memory

torch: Any = require("torch")


class FairnessLoss(torch.nn.Module):  # type: ignore[misc]
    """Γ of the scores of a batch, to be added to any loss: ``loss + alpha * fairness(scores, relevance, group, qid)``.

    The formula and its gradient are those of `evenrank.targets.FairnessTerm`, worked out on the CPU in float64, so the
    scores of a batch go there and their gradient comes back; any device and floating type will do. A pair of groups
    that the batch lacks is dropped (a stratum of equalized odds keeps its ½); a batch with nothing to compare gives 0.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        "demographic_parity", "equal_opportunity", "equalized_odds", dp, eop, eod, or a notion of your own.
    scope : str
        "amortized" pools the queries of the batch, "per_query" averages the gaps of the queries.
    target : str
        The value that is evened out: "score", "centered", "probability", "topk" or "exposure".
    k : int
        The cut-off of target "topk".
    temperature : float, optional
        Softness of the targets "topk" and "exposure".
    across : str
        How more than two groups are combined: the "mean" over pairs, or the "max".
    relevance_threshold : float
        Relevance at or above it counts as relevant.
    smoothing : float or array-like
        ε of √(gap² + ε²) − ε in place of |gap|; one for all models, or (models,).
    momentum : float, optional
        The weight of earlier batches against the current one, from 0 to below 1. The gap is then that of the groups'
        running means. Its sign steers the gradient, which flows through the current batch at full size. It is for
        pooled gaps of small batches, whose |gap| is too large on average. In ``eval()`` mode each batch counts alone
        and nothing is remembered; `reset` forgets.

    Examples
    --------
    >>> scores = torch.tensor([3.0, 1.0, 1.0, 1.0], requires_grad=True)
    >>> fairness = FairnessLoss("demographic_parity")
    >>> gamma = fairness(scores, torch.tensor([1, 0, 1, 0]), torch.tensor([0, 0, 1, 1]), torch.tensor([8, 8, 8, 8]))
    >>> gamma.backward()
    >>> gamma.item(), scores.grad.tolist()
    (1.0, [0.5, 0.5, -0.5, -0.5])
    """

    def __init__(
        self,
        notion: NotionLike = "equal_opportunity",
        scope: str = "amortized",
        target: str = "score",
        *,
        k: int = 5,
        temperature: float | None = None,
        across: str = "mean",
        relevance_threshold: float = 1.0,
        smoothing: Any = 0.0,
        momentum: float | None = None,
    ) -> None:
        super().__init__()
        self.notion = as_notion(notion)
        self.scope = choose(scope, SCOPES, what="scope")
        self.target, self.k, self.temperature = target, k, temperature
        # An option that is wrong is refused now, not in training.
        bind_target(target, np.zeros(1, np.int64), k=k, temperature=temperature)
        self._by_query = scope == "per_query" or TARGETS[target].listwise
        self.across = choose(across, ACROSS, what="across")
        self.relevance_threshold, self.smoothing, self.momentum = relevance_threshold, smoothing, momentum
        if momentum is not None and not (isinstance(momentum, int | float | np.number) and 0 <= momentum < 1):
            raise ConfigError(f"momentum must be a number from 0 to below 1, or None; got {momentum!r}.")
        if momentum is not None and scope == "per_query":
            raise ConfigError("momentum is for scope='amortized': a batch's own queries are a fair sample of all.")
        self.reset()

    def reset(self) -> None:
        """Forget the earlier batches."""
        self._memory = Memory(self.momentum or 0.0)

    def extra_repr(self) -> str:
        """Give the options that torch prints between the parentheses."""
        return f"{self.notion.name}, scope={self.scope}, target={self.target}, momentum={self.momentum}"

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        group: Tensor,
        qid: Tensor | None = None,
        *,
        sample_weight: Tensor | None = None,
        strata: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Give Γ of a batch: of rows with their queries, or of padded lists with a mask.

        Parameters
        ----------
        scores : Tensor
            (n,) or (n, models); or lists, (B, L), with relevance, group and weights of that shape and no ``qid``.
        relevance : Tensor
            (n,).
        group : Tensor
            (n,), whole numbers from 0, with -1 for an unknown one; or the probabilities of the groups, (n, groups): a
            row that sums to less than 1 is partly unknown. Of lists, (B, L) or (B, L, groups).
        qid : Tensor, optional
            (n,), whole numbers in any order; None is a single query.
        sample_weight : Tensor, optional
            (n,), weighs a row in its group's mean.
        strata : array-like, optional
            (strata, n) of booleans: the masks of a notion that looks at features, which a batch lacks.
        mask : Tensor, optional
            Of lists: (B, L) of booleans, false where a list is padded; what stands there does not matter. Without a
            mask every place counts, and scores that look like padding (−1e8 and below) are refused.

        Returns
        -------
        Tensor
            A scalar, or (models,).
        """
        if are_lists(relevance, mask):
            scores, relevance, group, qid, sample_weight = unpadded(
                scores, relevance, group, qid, sample_weight, mask, strata
            )
        by_chance = group.ndim == 2
        columns = {"relevance": relevance, "qid": qid, "sample_weight": sample_weight}
        check_rows(scores, **columns if by_chance else {**columns, "group": group})
        if not len(scores):
            return scores.sum(dim=0)
        numbers = as_numpy(scores).astype(np.float64)
        if strata is None and not by_chance and numbers.ndim == 1:
            value = self._compiled(scores, numbers, relevance, group, qid, sample_weight)
            if value is not None:
                return value
        if not usable(scores, np.minimum.reduce(numbers, axis=None), np.maximum.reduce(numbers, axis=None)):
            return (scores * torch.nan).sum(dim=0)
        if self._by_query and qid is not None:
            order, ptr, ids = group_rows(as_numpy(qid))
        else:
            order, ptr, ids = None, np.array([0, len(numbers)]), np.zeros(1, np.int64)
        in_order: Any = slice(None) if order is None else order
        notion = self.notion
        if strata is not None:
            masks = np.asarray(unmasked(strata, "strata"), bool)[:, in_order]
            notion = Notion(notion.name, lambda _: list(masks))
        weight = None if sample_weight is None else as_numpy(sample_weight).astype(np.float64)[in_order]
        code, chances = likeliest(as_numpy(group), len(numbers)) if by_chance else (codes(as_numpy(group)), None)
        chances = None if chances is None else chances[in_order]
        data = self._rows(notion, as_numpy(relevance)[in_order], code[in_order], chances, weight, ptr, ids)
        term = self._term(notion, data, ptr, numbers.ndim)
        value, gradient = term.value_and_gradient(numbers[in_order])
        if order is not None:
            stored, gradient = gradient, np.empty_like(gradient)
            gradient[order] = stored
        return Known.apply(scores, as_tensor(value, scores), as_tensor(gradient, scores))

    def _compiled(
        self,
        scores: Tensor,
        numbers: NDArray[np.float64],
        relevance: Tensor,
        group: Tensor,
        qid: Tensor | None,
        sample_weight: Tensor | None,
    ) -> Tensor | None:
        """`forward` for scores (n,), compiled, for less time; None where the compiled form lacks what is asked."""
        modules = compiled()
        pooled_mean = self.scope == "amortized" and self.across == "mean" and is_named(self.notion)
        if modules is None or not pooled_mean:
            return None
        if not isinstance(self.smoothing, int | float) or not 0 <= self.smoothing < np.inf:
            return None
        if (self.momentum is not None and self.training) or (self.target == "probability" and len(numbers) > BLOCK):
            return None  # long rows are faster by numpy's exponential
        batch, query = modules[1], modules[1].NO_QUERY
        if self._by_query and qid is not None:
            query = as_numpy(qid)
            if query.dtype != np.int64:
                return None
        code = codes(as_numpy(group))
        if code.dtype == np.uint64:
            return None
        code = np.ascontiguousarray(code, np.int64)
        masks = self.notion.masks(BatchRows(as_numpy(relevance), code, 0, self.relevance_threshold))  # type: ignore[arg-type]
        if len(masks) > 2:
            return None
        first, second = masks[0], masks[-1] if len(masks) == 2 else batch.NO_ROWS
        weight = batch.NO_WEIGHT if sample_weight is None else as_numpy(sample_weight).astype(np.float64)
        low, high, least, most, lightest, cell, sums, order, ptr = batch.lay_out(
            numbers, first, second, code, weight, np.ascontiguousarray(query), MOST_GROUPS
        )
        if not usable(scores, low, high):
            return (scores * torch.nan).sum(dim=0)
        check_groups(least, most, lightest)
        shape = len(masks), 1, sums.shape[1] // len(masks)
        pairs = pairs_of(shape, tuple([total > 0 for total in sums[1].tolist()]), self.across)
        gradient = np.empty(len(numbers))
        value = batch.evaluate(
            numbers,
            batch.NUMBER[self.target],
            self.k,
            self._temperature * batch.WIDTH.get(self.target, 1.0),
            cell,
            weight,
            sums,
            order,
            ptr,
            pairs.a,
            pairs.b,
            pairs.weight,
            float(self.smoothing),
            gradient,
        )
        return Known.apply(scores, as_tensor(np.asarray(value), scores), as_tensor(gradient, scores))

    def _rows(
        self,
        notion: Notion,
        relevance: NDArray[Any],
        group: NDArray[Any],
        chances: NDArray[np.float64] | None,
        weight: NDArray[np.float64] | None,
        ptr: NDArray[np.int64],
        ids: NDArray[Any],
    ) -> BatchRows | RankingData:
        """The rows as the notion needs them."""
        least, most = int(np.minimum.reduce(group)), int(np.maximum.reduce(group))
        check_groups(least, most, 0 if weight is None else float(np.minimum.reduce(weight)))
        groups = max(most + 1, 2, self._memory.groups) if chances is None else chances.shape[1]
        if self.scope == "amortized" and is_named(notion):
            return BatchRows(relevance, group, groups, self.relevance_threshold, weight, least < 0, chances)
        return RankingData(
            features=np.empty((len(relevance), 0)),
            relevance=relevance,
            group=group,
            query_ptr=ptr,
            query_ids=ids,
            item_ids=None,
            feature_names=(),
            group_names=tuple(range(groups)),
            relevance_threshold=self.relevance_threshold,
            sample_weight=weight,
            membership=chances,
        )

    @property
    def _temperature(self) -> float:
        return (TARGETS[self.target].temperature or 1.0) if self.temperature is None else float(self.temperature)

    def _term(self, notion: Notion, data: Any, ptr: NDArray[np.int64], axes: int) -> FairnessTerm:
        if self.scope == "per_query":
            contrast = Cells.of(notion, data).contrast(
                unit=data.query_of_row, n_units=data.n_queries, across=self.across
            )
        else:
            contrast = pooled(notion, data, self.across)
        if self.momentum is not None and self.training:
            contrast = Averaged(contrast, self._memory)
        modules = compiled() if axes == 1 else None
        bind = TARGETS[self.target].bind
        if modules is not None:
            bind = modules[0].COMPILED.get(self.target, bind)
        bound = bind(ptr, self.k, self._temperature, 0.0)
        by_model = np.ndim(self.smoothing) > 0
        return (
            SmoothedByModel(contrast, bound, self.smoothing)
            if by_model
            else FairnessTerm(contrast, bound, self.smoothing)
        )


class SmoothedByModel(FairnessTerm):
    """The fairness term with one ε ≥ 0 per model, (models,)."""

    smoothing: Any

    def __init__(self, contrast: Contrast, target: BoundTarget, smoothing: Any) -> None:
        super().__init__(contrast, target)
        self.smoothing = np.asarray(smoothing, np.float64)

    def _value(self, gaps: NDArray[Any]) -> NDArray[Any]:
        return self.contrast.pairs.value(np.hypot(gaps, self.smoothing) - self.smoothing)

    def _slope(self, gaps: NDArray[Any]) -> NDArray[Any]:
        size = np.hypot(gaps, self.smoothing)
        ratio = np.divide(np.abs(gaps), size, out=np.zeros_like(size), where=size > 0)
        return np.asarray(self.contrast.pairs.slope(gaps) * ratio)
