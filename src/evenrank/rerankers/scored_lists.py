"""`ScoredLists`: what offsets are chosen on, made once for scores and rows and shared by all notions and cut-offs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.notions import Notion
from evenrank.rerankers.base import Settled, one_column
from evenrank.rerankers.chances import Chances, RowWeights, group_chances, labelled_weights
from evenrank.rerankers.crossings import BLUR, TopRows, usual_step
from evenrank.rerankers.moving import TopLists

# A score further than this many steps from the median is a sentinel, which an offset leaves alone.
FAR = 2.0**30
# No offset is larger, so that sums stay finite.
MOST = 2.0**1020
# Notions whose weights are kept.
KEPT = 8


def is_sentinel(score: NDArray[np.float64], centre: float, reach: float) -> NDArray[np.bool_]:
    """Tell which scores, (n,), are further from the centre than those that move."""
    return np.abs(score / 2 - centre / 2) > reach / 2  # halves do not overflow


def largest_move(low: float, high: float, step: float) -> float:
    """Give the largest move for scores between two ends."""
    return min(4 * (float(high) / 2 - float(low) / 2) + 2 * step, MOST)


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """Scores of lists, their ties settled, and which of them are sentinels.

    Attributes
    ----------
    settled : Settled
        The scores.
    data : RankingData
        The rows.
    """

    settled: Settled
    data: RankingData
    _weights: dict[Notion, RowWeights] = field(default_factory=dict, repr=False)
    _rows: dict[tuple[int, ...], tuple[TopRows, NDArray[np.int64]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, scores: ArrayLike, data: RankingData) -> ScoredLists:
        """Take scores (n,) in the caller's row order."""
        return cls(Settled.of(one_column(scores, data), data), data)

    @property
    def score(self) -> NDArray[np.float64]:
        """Scores, (n,), in stored order."""
        return self.settled.score

    @cached_property
    def step(self) -> float:
        """The usual difference between neighbours of a list."""
        return usual_step(self.score[self.settled.order], self.data.query_of_row)

    @cached_property
    def centre(self) -> float:
        """The median score."""
        return 2 * float(np.median(self.score / 2))  # whose mean of two does not overflow

    @property
    def reach(self) -> float:
        """How far from the centre a score may be and still move."""
        return min(FAR * self.step, np.finfo(np.float64).max)

    @cached_property
    def limit(self) -> float:
        """The largest move: twice from one end of the scores that can move to the other, so that nothing is out of
        reach but sentinels."""
        moved = self.score[~is_sentinel(self.score, self.centre, self.reach)]
        low, high = (float(moved.min()), float(moved.max())) if len(moved) else (0.0, 0.0)
        return largest_move(low, high, self.step)

    @cached_property
    def chances(self) -> tuple[Chances, ...]:
        """How relevance rises with the score in each group."""
        return group_chances(self.score, self.data)

    def weights(self, notion: Notion) -> RowWeights:
        """Give what the rows count for, by their labels; they are kept for the next cut-off.

        Parameters
        ----------
        notion : Notion
            The notion of fairness.

        Returns
        -------
        RowWeights
            The weights.
        """
        if notion not in self._weights:
            if len(self._weights) == KEPT:
                self._weights.clear()
            self._weights[notion] = labelled_weights(notion, self.data)
        return self._weights[notion]

    @cached_property
    def largest(self) -> int:
        """The group with the most rows; of equal ones that with the higher median score."""
        group = self.data.group
        counts = np.bincount(group[group >= 0], minlength=self.data.n_groups)
        largest = np.flatnonzero(counts == counts.max())
        if len(largest) == 1:
            return int(largest[0])
        return int(largest[np.argmax([np.median(self.score[group == code] / 2) for code in largest])])

    @cached_property
    def _ranks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """By ``order``: what each row moves with (-1: nothing), how many such rows of its list stand clearly above it,
        and whether one stands above it so closely that an offset may make them tie, by rounding.
        """
        data, order = self.data, self.settled.order
        score = self.score[order]
        far = is_sentinel(score, self.centre, self.reach)
        moves_with = np.where(far, -1, data.group[order]).astype(np.int64)
        largest = min(4 * self.limit, MOST)  # with several groups, moves add up
        above, close = np.zeros(data.n_rows, np.int64), np.zeros(data.n_rows, bool)
        for code in range(-1, data.n_groups):
            mine = np.flatnonzero(moves_with == code)
            if not len(mine):
                continue
            own, query, place = score[mine], data.query_of_row[mine], np.arange(len(mine))
            new_list = np.append(True, query[1:] != query[:-1])
            step = np.append(np.inf, own[:-1] / 2 - own[1:] / 2)
            blur = BLUR * (np.abs(own) + (largest / 2 if code >= 0 else 0.0))  # of halves, which do not overflow
            close[mine] = ~new_list & (step > 0) & (step <= blur)
            begins = np.maximum.accumulate(np.where(new_list | (step > blur), place, 0))
            above[mine] = begins - np.maximum.accumulate(np.where(new_list, place, 0))
        return moves_with, above, close

    def top(self, weights: RowWeights, ks: tuple[int, ...]) -> TopLists:
        """Keep the rows that can reach the largest k: those below fewer than k others that move with them.

        Parameters
        ----------
        weights : RowWeights
            What rows count for.
        ks : tuple of int
            The cut-offs, ascending.

        Returns
        -------
        TopLists
            The rows.
        """
        if ks not in self._rows:
            moves_with, above, close = self._ranks
            keep = np.flatnonzero(above < ks[-1])
            kept = self.settled.order[keep]
            rows = TopRows(
                score=self.score[kept],
                query=self.data.query_of_row[keep],
                group=moves_with[keep],
                cell=self.data.group[kept].astype(np.int64),
                ks=ks,
                step=self.step,
                limit=self.limit,
                crisp=not close[keep].any(),
            )
            self._rows.clear()  # the next notion asks for the same cut-offs
            self._rows[ks] = rows, kept
        rows, kept = self._rows[ks]
        return TopLists(rows, weights[kept], weights.total, Pairs.of(weights.total[:, None, :]))

    def kept_rows(self, ks: tuple[int, ...]) -> NDArray[np.int64]:
        """Give the rows that `top` kept for these cut-offs, which must have been the last, (m,), in stored order."""
        return self._rows[ks][1]
