"""`GroupOffset`: one number per group, added to its items' scores so that the top k treats groups evenly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number
from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.measures import measure
from evenrank.notions import NotionLike, as_notion, warn_empty
from evenrank.rankers import model_file
from evenrank.rerankers.base import ScoreReranker, Settled, one_column
from evenrank.rerankers.chances import Chances, expected_weights, row_weights
from evenrank.rerankers.moving import TopLists, usual_step
from evenrank.rerankers.offset_search import search
from evenrank.row_checks import listed

# A score further than this many steps from the median is a sentinel, which an offset leaves alone.
FAR = 2.0**30
# The guard on NDCG tries these parts of the offsets.
PARTS = np.arange(20, -1, -1) / 20


class GroupOffset(ScoreReranker):
    """A re-ranker that adds one number per group, chosen on the gap of the top k itself.

    The gap of the top k changes only where an item passes another one, so its smallest value over all offsets is found
    exactly for two groups (see `evenrank.rerankers.moving`); for more, groups and pairs of groups are moved in turn, from
    several starts, until no such move lowers the gap. Of equal gaps the smallest offset is taken.

    It may see the group at training and at serving.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    k : int or sequence of int
        The cut-off; of several, the mean of their gaps is made small.
    strength : float
        The part of the full offsets that is used, from 0 (nothing changes) to 1. A part of the offset, and not a part of
        the gap, because it has a meaning for any number of groups and keeps the order of methods' strengths: more strength
        is always a longer shift in the same direction.
    max_ndcg_loss : float, optional
        The most NDCG at the largest k that may be lost on the rows of `fit`: the offsets are cut, in steps of one twentieth,
        until it is kept. Without labels (`adapt`), the expected relevance stands for the labels.

    Attributes
    ----------
    offsets_ : dict
        The number of each group. The largest group of the rows of `fit` has 0 (of groups equally large, the one with the
        higher median score, then the first in order); so has an unknown group.
    gap_before_, gap_after_ : float
        The gap on the rows of `fit`, or the expected one of `adapt`, without and with the offsets.

    Notes
    -----
    Tied scores come back equal. A score further from the median of all scores than 2^30 of the usual steps between
    neighbours of a list is a sentinel, such as -1e30 for an item that must not be shown; it is left alone.

    Examples
    --------
    >>> data = RankingData.from_arrays(np.zeros((4, 0)), [1, 0, 1, 0], ["a", "a", "b", "b"], [1, 2, 1, 2])
    >>> offset = GroupOffset("dp", k=1).fit([4.0, 3.0, 2.0, 2.5], data)
    >>> offset.offsets_, offset.gap_before_, offset.gap_after_
    ({'a': 0.0, 'b': 1.25}, 1.0, 0.0)
    >>> offset.rerank([4.0, 3.0, 2.0, 2.5], data)
    array([4.  , 3.  , 3.25, 3.75])
    """

    offsets_: dict[Any, float]
    gap_before_: float
    gap_after_: float

    def __init__(
        self,
        notion: NotionLike = "eop",
        k: int | Sequence[int] = 5,
        strength: float = 1.0,
        *,
        max_ndcg_loss: float | None = None,
    ) -> None:
        self.notion, self.k, self.strength, self.max_ndcg_loss = notion, k, strength, max_ndcg_loss

    def fit(self, scores: ArrayLike, data: RankingData) -> Self:
        """Choose the offsets on rows with labels.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows, with relevance and groups.

        Returns
        -------
        GroupOffset
            The re-ranker itself.

        Raises
        ------
        DataError
            If there are fewer than two groups, or the notion has none to compare.
        """
        self._check()
        self._need_groups(data, 2)
        settled = Settled.of(one_column(scores, data), data)
        weights = row_weights(self.notion, data)
        totals = _totals(weights, data.group, data.n_groups)
        warn_empty(as_notion(self.notion), totals, data.group_names, training=True)
        if not len(Pairs.of(totals[:, None, :]).a):
            raise DataError(
                f"{as_notion(self.notion).name} has no two groups to compare in these rows. Fit on more of them."
            )
        self.group_names_ = data.group_names
        self.chances_ = Chances.of(settled.score, data)
        self._reference = _largest(settled.score, data.group, data.n_groups)
        self._choose(settled, data, data.group, weights, np.zeros(data.n_groups))
        return self

    def adapt(self, scores: ArrayLike, data: RankingData) -> GroupOffset:
        """Choose the offsets anew on lists without labels.

        Where the notion asks for labels, the chance that a row is relevant stands for them: a rising function of the score
        that `fit` learned. Labels in ``data`` are not looked at. A group that these lists lack keeps its offset. Where they
        have fewer than two groups all do, and a `DataWarning` says so.

        Parameters
        ----------
        scores, data
            As for `fit`; no group that `fit` never saw.

        Returns
        -------
        GroupOffset
            A new one; this one stays as it is.
        """
        group = self._groups(data)
        settled = Settled.of(one_column(scores, data), data)
        new = type(self)(**self.get_params())
        new.__dict__ |= self.__dict__
        present = np.bincount(group[group >= 0], minlength=len(self.group_names_)) > 0
        old = np.array([self.offsets_[name] for name in self.group_names_])
        if present.sum() < 2:
            names = listed([name for name, here in zip(self.group_names_, present, strict=True) if here]) or "none"
            warnings.warn(
                f"the lists have no two groups to compare ({names}); the offsets stay.", DataWarning, stacklevel=2
            )
            return new
        known = replace(data, group=group.astype(np.int32), group_names=self.group_names_)
        weights = expected_weights(self.notion, known, self.chances_(settled.score))
        if not present[self._reference]:
            new._reference = _largest(settled.score, group, len(present))
        start = np.where(present, old[new._reference], old)
        new._choose(settled, known, group, weights, start, present)
        return new

    def at(self, strength: float) -> GroupOffset:
        """Give the same choice at another strength, without fitting again.

        Parameters
        ----------
        strength : float
            From 0 to 1.

        Returns
        -------
        GroupOffset
            A new one; ``gap_after_`` is not known and NaN.
        """
        self._check_fitted("at")
        new = type(self)(**{**self.get_params(), "strength": strength})
        new._check()
        new.__dict__ |= {name: value for name, value in self.__dict__.items() if name not in new.get_params()}
        new._use(strength)
        new.gap_after_ = float("nan")
        return new

    def rerank(self, scores: ArrayLike, data: RankingData) -> NDArray[np.float64]:
        """Add each item's offset to its score.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows; labels are not needed. A row of unknown group keeps its score.

        Returns
        -------
        ndarray
            Scores, (n,), in the caller's row order.

        Raises
        ------
        DataError
            If a group was not in `fit`.
        """
        group = self._groups(data)
        settled = Settled.of(one_column(scores, data), data).score
        offsets = np.array([*(self.offsets_[name] for name in self.group_names_), 0.0])
        return data.to_caller(settled + np.where(self._is_far(settled), 0.0, offsets[group]))

    # ------------------------------------------------------------------ choosing

    def _check(self) -> tuple[int, ...]:
        """The cut-offs, if all parameters are what they must be."""
        as_notion(self.notion)
        check_number(self.strength, "strength", least=0, most=1)
        if self.max_ndcg_loss is not None:
            check_number(self.max_ndcg_loss, "max_ndcg_loss", least=0)
        ks = [self.k] if np.ndim(self.k) == 0 else list(self.k)  # type: ignore[arg-type]
        if not ks:
            raise ConfigError("k must be a whole number ≥ 1 or several; got none.")
        return tuple(sorted({check_k(k) for k in ks}))

    def _choose(
        self,
        settled: Settled,
        data: RankingData,
        group: NDArray[Any],
        weights: NDArray[np.float64],
        start: NDArray[np.float64],
        free: NDArray[np.bool_] | None = None,
    ) -> None:
        """Set the offsets; groups that are not ``free`` keep those of ``start``, (groups,)."""
        step = usual_step(settled.score[settled.order], data.query_of_row)
        self._centre, self._reach = float(np.median(settled.score)), FAR * step
        lists = _top_lists(settled, data, group, weights, self._check(), step, self._is_far(settled.score))
        movable = np.ones(len(start), bool) if free is None else free.copy()
        movable[self._reference] = False
        full = search(lists, start, movable)
        self._start, self._change, self._most = start, full - start, 1.0
        if self.max_ndcg_loss is not None:
            self._most = self._allowed(settled, data, group, start, full - start)
        offsets = self._use(float(self.strength))
        self.gap_before_, self.gap_after_ = lists.gamma(start), lists.gamma(offsets)

    def _use(self, strength: float) -> NDArray[np.float64]:
        """Set and give the offsets of a strength, (groups,); the guard on NDCG caps it."""
        offsets = self._start + min(strength, self._most) * self._change
        self.offsets_ = dict(zip(self.group_names_, offsets.tolist(), strict=True))
        return np.asarray(offsets)

    def _allowed(
        self,
        settled: Settled,
        data: RankingData,
        group: NDArray[Any],
        start: NDArray[np.float64],
        change: NDArray[np.float64],
    ) -> float:
        """The largest of `PARTS` at which NDCG stays."""
        name = f"ndcg@{self._check()[-1]}"
        far = self._is_far(settled.score)
        added = np.append(start, 0.0)[group][:, None] + np.append(change, 0.0)[group][:, None] * PARTS
        scores = settled.score[:, None] + np.where(far[:, None], 0.0, added)
        quality = measure(data.to_caller(scores), data, [name])[name]
        kept = quality >= quality[-1] - float(self.max_ndcg_loss or 0) - 1e-12
        return float(PARTS[np.argmax(kept)])

    def _is_far(self, score: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.abs(score - self._centre) > self._reach

    # ------------------------------------------------------------------ model files

    def content(self) -> dict[str, Any]:
        """Give what the model file holds; a notion of your own is kept by name only."""
        self._check_fitted("save")
        header = model_file.header(self)
        header["parameters"].pop("k")
        return header | {
            "ks": list(self._check()),
            "start": self._start.tolist(),
            "change": self._change.tolist(),
            "most": self._most,
            "gaps": [self.gap_before_, self.gap_after_],
            "reference": self._reference,
            "sentinels": [self._centre, self._reach],
            "chances": {"score": self.chances_.score.tolist(), "chance": self.chances_.chance.tolist()},
        }

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> GroupOffset:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = cls()
        model_file.set_parameters(reranker, content, name)
        groups = model_file.names(content, "groups", name=name)
        ks = model_file.need(content, "ks", list, name=name)
        try:
            reranker.k = [check_k(k) for k in ks] if len(ks) != 1 else check_k(ks[0])
            if not ks:
                raise ConfigError("'ks' is empty")
            reranker._check() if isinstance(reranker.notion, str) else None
        except ConfigError as error:
            raise DataError(f"{name}: {error} Was the file edited?") from None
        return reranker._filled(content, groups, name)

    def _filled(self, content: dict[str, Any], groups: tuple[Any, ...], name: str) -> GroupOffset:
        self.group_names_ = groups
        self._start = model_file.numbers("start", content.get("start"), len(groups), name=name)
        self._change = model_file.numbers("change", content.get("change"), len(groups), name=name)
        self._most = float(model_file.numbers("most", [content.get("most")], 1, name=name)[0])
        self._use(float(self.strength))
        self.gap_before_, self.gap_after_ = model_file.numbers("gaps", content.get("gaps"), 2, name=name).tolist()
        self._centre, self._reach = model_file.numbers("sentinels", content.get("sentinels"), 2, name=name).tolist()
        self._reference = model_file.need(content, "reference", int, name=name)
        if not 0 <= self._reference < len(groups):
            raise DataError(f"{name}: 'reference' must be the number of a group; got {self._reference}.")
        chances = model_file.need(content, "chances", dict, name=name)
        points = model_file.need(chances, "score", list, name=name)
        score = model_file.numbers("score", points, len(points), name=name)
        chance = model_file.numbers("chance", chances.get("chance"), len(points), name=name)
        rising = len(points) and (np.diff(score) > 0).all() and (np.diff(chance) >= 0).all()
        if not rising or chance[0] < 0 or chance[-1] > 1:
            raise DataError(f"{name}: 'chances' must be rising points of chances. Was the file edited?")
        self.chances_ = Chances(score, chance)
        return self


def _totals(weights: NDArray[np.float64], group: NDArray[Any], groups: int) -> NDArray[np.float64]:
    known = group >= 0
    return np.array([np.bincount(group[known], weight[known], minlength=groups) for weight in weights])


def _largest(score: NDArray[np.float64], group: NDArray[Any], groups: int) -> int:
    """The group with the most rows; of equal ones that with the higher median score."""
    counts = np.bincount(group[group >= 0], minlength=groups)
    largest = np.flatnonzero(counts == counts.max())
    if len(largest) == 1:
        return int(largest[0])
    return int(largest[np.argmax([np.median(score[group == code]) for code in largest])])


def _top_lists(
    settled: Settled,
    data: RankingData,
    group: NDArray[Any],
    weights: NDArray[np.float64],
    ks: tuple[int, ...],
    step: float,
    far: NDArray[np.bool_],
) -> TopLists:
    """Keep the rows that can reach the largest k: those of which fewer than k of their own group stand above."""
    total = _totals(weights, group, weights.shape[0] and len(data.group_names))
    moves_with = np.where(far, -1, group)[settled.order]
    list_start = np.repeat(data.query_ptr[:-1], data.lengths)
    keep = np.zeros(data.n_rows, bool)
    for code in range(-1, total.shape[1]):
        mine = moves_with == code
        before = np.cumsum(mine) - mine
        keep |= mine & (before[settled.first] - before[list_start] < ks[-1])
    rows = settled.order[keep]
    return TopLists(
        score=settled.score[rows],
        query=data.query_of_row[keep],
        group=moves_with[keep].astype(np.int64),
        cell=group[rows].astype(np.int64),
        weight=weights[:, rows],
        total=total,
        pairs=Pairs.of(total[:, None, :]),
        ks=ks,
        step=step,
    )
