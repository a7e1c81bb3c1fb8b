"""`ScoredLists`: what offsets are chosen on, made once for scores and rows and shared by all notions and cut-offs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.contrasts import Pairs
from evenrank.data import RankingData
from evenrank.notions import Notion
from evenrank.rerankers.base import Settled, one_column
from evenrank.rerankers.chances import Chances, RowWeights, group_chances, labelled_weights
from evenrank.rerankers.moving import TopLists, usual_step

# A score further than this many steps from the median is a sentinel, which an offset leaves alone.
FAR = 2.0**30


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
        return float(np.median(self.score))

    @property
    def reach(self) -> float:
        """How far from the centre a score may be and still move."""
        return FAR * self.step

    @cached_property
    def chances(self) -> tuple[Chances, ...]:
        """How relevance rises with the score in each group."""
        return group_chances(self.score, self.data)

    def weights(self, notion: Notion) -> RowWeights:
        """Give what the rows count for, by their labels; those of the last notion are kept for the next cut-off.

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
        return int(largest[np.argmax([np.median(self.score[group == code]) for code in largest])])

    @cached_property
    def _ranks(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """What each row moves with (-1: nothing), and how many such rows stand above its block, both by ``order``."""
        data, settled = self.data, self.settled
        far = np.abs(self.score - self.centre) > self.reach
        moves_with = np.where(far, -1, data.group)[settled.order]
        list_start = np.repeat(data.query_ptr[:-1], data.lengths)
        above = np.zeros(data.n_rows, np.int64)
        for code in range(-1, data.n_groups):
            mine = moves_with == code
            before = np.cumsum(mine) - mine
            np.copyto(above, before[settled.first] - before[list_start], where=mine)
        return moves_with, above

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
        moves_with, above = self._ranks
        keep = np.flatnonzero(above < ks[-1])
        rows = self.settled.order[keep]
        return TopLists(
            score=self.score[rows],
            query=self.data.query_of_row[keep],
            group=moves_with[keep].astype(np.int64),
            cell=self.data.group[rows].astype(np.int64),
            weight=weights[rows],
            total=weights.total,
            pairs=Pairs.of(weights.total[:, None, :]),
            ks=ks,
            step=self.step,
        )
