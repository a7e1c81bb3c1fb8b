"""`GroupOffset`: one number per group, added to its items' scores so that the top k treats groups evenly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.measures import measure
from evenrank.notions import NotionLike, as_notion, warn_empty
from evenrank.rankers import model_file
from evenrank.rerankers.base import ScoreReranker, Settled, one_column
from evenrank.rerankers.beyond_chance import parts_beyond_chance
from evenrank.rerankers.chances import RowWeights, chance_of_rows, expected_weights
from evenrank.rerankers.moving import SAME
from evenrank.rerankers.offset_file import chosen_content, read_chosen, read_cut_offs, warn_unchanged
from evenrank.rerankers.offset_search import search
from evenrank.rerankers.reduced_lists import ReducedLists
from evenrank.rerankers.scored_lists import ScoredLists, is_sentinel
from evenrank.row_checks import listed

# The guard on NDCG tries these parts of the offsets.
PARTS = np.arange(20, -1, -1) / 20


class GroupOffset(ScoreReranker):
    """A re-ranker that adds one number per group, chosen on the gap of the top k itself.

    The gap of the top k changes only where an item passes another one, so its smallest value over all offsets is found
    exactly for two groups (see `evenrank.rerankers.moving`); for more, groups and pairs of groups are moved in turn,
    from several starts, until no such move lowers the gap. Of equal gaps the smallest offset is taken.

    It may see the group at training and at serving.

    Parameters
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    k : int or sequence of int
        The cut-off; of several, the mean of their gaps is made small.
    strength : float
        The part of the full offsets that is used, from 0 (nothing changes) to 1. It is a part of the offsets and not
        of the gap: that has a meaning for any number of groups, and more strength is always a longer shift in the same
        direction.
    shrink : bool
        Correct only what is beyond chance: `fit` multiplies each group's offset by max(0, 1 − v/g²), where g is the
        group's gap on the rows of `fit` and v the variance of that gap over queries (see
        `evenrank.rerankers.beyond_chance`). A gap that is within one standard error of 0 is left alone. False gives the
        offsets of the smallest gap on the rows of `fit`, whether other lists have that gap or not.
    max_ndcg_loss : float, optional
        The most NDCG at the largest k that may be lost on the rows of `fit`: the strength is capped, in steps of one
        twentieth, at the largest that keeps it. Without labels (`adapt`), the expected relevance stands for them.
        Where what ``shrink`` and this leave of the offsets would raise the gap, nothing is changed.

    Attributes
    ----------
    offsets_ : dict
        The number of each group. The largest group of the rows of `fit` has 0 (of groups equally large, the one with
        the higher median score, then the first in order); so has an unknown group.
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
    >>> round(offset.offsets_["b"], 9), offset.gap_before_, offset.gap_after_
    (1.25, 1.0, 0.0)
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
        shrink: bool = True,
        max_ndcg_loss: float | None = None,
    ) -> None:
        self.notion, self.k, self.strength = notion, k, strength
        self.shrink, self.max_ndcg_loss = shrink, max_ndcg_loss

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
        self._need_groups(data, 2)
        self.fit_lists(ScoredLists.of(scores, data))
        warn_unchanged(self, data.n_queries, stacklevel=3)
        return self

    def fit_lists(self, lists: ScoredLists | ReducedLists) -> Self:
        """Choose the offsets as `fit` does, on scores that several re-rankers share.

        Parameters
        ----------
        lists : ScoredLists
            The scores and their rows.

        Returns
        -------
        GroupOffset
            The re-ranker itself.
        """
        self._check()
        data, notion = lists.data, as_notion(self.notion)
        weights = lists.weights(notion)
        warn_empty(notion, weights.total, data.group_names, training=True)
        if ((weights.total > 0).sum(axis=1) < 2).all():
            raise DataError(f"{notion.name} has no two groups to compare in these rows. Fit on more of them.")
        self.group_names_, self.chances_, self._reference = data.group_names, lists.chances, lists.largest
        self._choose(lists, weights, np.zeros(data.n_groups))
        return self

    def adapt(self, scores: ArrayLike, data: RankingData) -> GroupOffset:
        """Choose the offsets anew on lists without labels.

        Where the notion asks for labels, the chance that a row is relevant stands for them: a rising function of the
        score that `fit` learned for each group (for all together where a group has fewer than 50 relevant or irrelevant
        rows). Labels in ``data`` are not looked at. A group that these lists lack keeps its offset. Where they have
        fewer than two groups all do, and a `DataWarning` says so.

        Parameters
        ----------
        scores, data
            As for `fit`; no group that `fit` never saw.

        Returns
        -------
        GroupOffset
            A new one; this one stays as it is.
        """
        known = replace(data, group=self._groups(data).astype(np.int32), group_names=self.group_names_)
        return self.adapt_lists(ScoredLists.of(scores, known))

    def adapt_lists(self, lists: ScoredLists) -> GroupOffset:
        """Choose the offsets anew as `adapt` does, on scores that several re-rankers share.

        Parameters
        ----------
        lists : ScoredLists
            The scores and their rows, whose groups are numbered as those of `fit`.

        Returns
        -------
        GroupOffset
            A new one; this one stays as it is.
        """
        known, group = lists.data, lists.data.group
        new = type(self)(**self.get_params())
        new.__dict__ |= self.__dict__
        present = np.bincount(group[group >= 0], minlength=len(self.group_names_)) > 0
        if present.sum() < 2:
            names = listed([name for name, here in zip(self.group_names_, present, strict=True) if here]) or "none"
            fact = f"the lists to adapt to have no two groups ({names}); the offsets stay as they are."
            warnings.warn(fact, DataWarning, stacklevel=2)
            return new
        weights = expected_weights(self.notion, known, chance_of_rows(self.chances_, lists.score, group))
        if not present[self._reference]:
            new._reference = lists.largest
        old = self._start + self._change
        new._choose(lists, weights, np.where(present, old[new._reference], old), present)
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
        new = self._with(strength=strength)
        new._check()
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
        stored, offsets = one_column(scores, data), self._use(float(self.strength))
        settled = Settled.of(stored, data).score
        return data.to_caller(settled + self._added(settled, group, offsets) if offsets.any() else stored)

    def along(self, lists: ScoredLists, strengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Re-rank at several strengths.

        Parameters
        ----------
        lists : ScoredLists
            The scores and their rows, whose groups are numbered as those of `fit`.
        strengths : ndarray
            From 0 to 1, (strengths,).

        Returns
        -------
        ndarray
            Scores, (n, strengths), in the caller's row order.
        """
        part = np.minimum(strengths, self._most)
        added = [self._added(lists.score, lists.data.group, offsets) for offsets in (self._start, self._change)]
        return lists.data.to_caller(lists.score[:, None] + added[0][:, None] + added[1][:, None] * part)

    # ------------------------------------------------------------------ choosing

    def _check(self) -> tuple[int, ...]:
        """The cut-offs, if all parameters are what they must be."""
        as_notion(self.notion)
        check_number(self.strength, "strength", least=0, most=1)
        if not isinstance(self.shrink, bool):
            raise ConfigError(f"shrink must be True or False; got {self.shrink!r}.")
        if self.max_ndcg_loss is not None:
            check_number(self.max_ndcg_loss, "max_ndcg_loss", least=0)
        ks = [self.k] if np.ndim(self.k) == 0 else list(self.k)  # type: ignore[arg-type]
        if not ks:
            raise ConfigError("k must be a whole number ≥ 1 or several; got none.")
        return tuple(sorted({check_k(k) for k in ks}))

    def _choose(
        self,
        lists: ScoredLists | ReducedLists,
        weights: RowWeights,
        start: NDArray[np.float64],
        free: NDArray[np.bool_] | None = None,
    ) -> None:
        """Set the offsets; groups that are not ``free`` keep those of ``start``, (groups,)."""
        self._centre, self._reach = lists.centre, lists.reach
        top = lists.top(weights, self._check())
        movable = np.ones(len(start), bool) if free is None else free.copy()
        movable[self._reference] = False
        self._start, self._change, self._most = start, search(top, start, movable) - start, 1.0
        if self.shrink and free is None and self._change.any():
            self._change = self._change * parts_beyond_chance(top, weights, lists.data, start)
        if self.max_ndcg_loss is not None:
            if not isinstance(lists, ScoredLists):
                raise ConfigError("max_ndcg_loss needs all rows in memory. Fit there, or use a smaller strength.")
            self._most = self._allowed(lists, labelled=free is None)
        self.gap_before_ = top.gamma(start)
        # A part of the way to the smallest gap may have a larger one than where it begins.
        if top.gamma(self._use(1.0)) > self.gap_before_ + SAME:
            self._most = 0.0
        self.gap_after_ = top.gamma(self._use(float(self.strength)))

    def _use(self, strength: float) -> NDArray[np.float64]:
        """Set and give the offsets of a strength, (groups,); the guard on NDCG caps it."""
        offsets: NDArray[np.float64] = self._start + min(strength, self._most) * self._change
        self.offsets_ = dict(zip(self.group_names_, offsets.tolist(), strict=True))
        return offsets

    def _allowed(self, lists: ScoredLists, *, labelled: bool) -> float:
        """The largest of `PARTS` at which NDCG stays."""
        name, data = f"ndcg@{self._check()[-1]}", lists.data
        if not labelled:
            data = replace(data, relevance=chance_of_rows(self.chances_, lists.score, data.group))
        offsets = [self._start + part * self._change for part in PARTS]
        scores = np.stack([lists.score + self._added(lists.score, data.group, some) for some in offsets], axis=1)
        quality = measure(data.to_caller(scores), data, [name])[name]
        kept = quality >= quality[-1] - float(self.max_ndcg_loss or 0) - 1e-12
        return float(PARTS[np.argmax(kept)])

    def _added(self, score: NDArray[Any], group: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.float64]:
        """What is added to each score, (n,): nothing to a sentinel."""
        return np.where(is_sentinel(score, self._centre, self._reach), 0.0, np.append(offsets, 0.0)[group])

    # ------------------------------------------------------------------ model files

    def content(self) -> dict[str, Any]:
        """Give what the model file holds; a notion of your own is kept by name only."""
        self._check_fitted("save")
        header = model_file.header(self)
        header["parameters"].pop("k")
        return header | {"ks": list(self._check())} | chosen_content(self)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> GroupOffset:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = cls()
        model_file.set_parameters(reranker, content, name)
        reranker.k = read_cut_offs(content, name)
        try:
            reranker._check() if isinstance(reranker.notion, str) else None
        except ConfigError as error:
            raise DataError(f"{name}: {error} Was the file edited?") from None
        reranker.__dict__ |= read_chosen(content, model_file.names(content, "groups", name=name), name)
        reranker._use(float(reranker.strength))
        return reranker
