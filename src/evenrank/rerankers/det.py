"""`DetRanker`: every prefix holds each group's target share, as far as whole items allow (Geyik et al., KDD 2019)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number, choose
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rankers import model_file
from evenrank.rerankers import shares as of_groups
from evenrank.rerankers.base import one_column
from evenrank.rerankers.by_shares import ShareReranker, depth_of
from evenrank.rerankers.const_sort import const_sort
from evenrank.rerankers.group_lists import GroupLists, fill

RULES = ("greedy", "cons", "relaxed", "const_sort")


class DetRanker(ShareReranker):
    """A re-ranker: scores in, scores of a new order out.

    With share t a group should have at least ⌊k·t⌋ of the first k items, for every k. A group that is below gets the
    next place. Where none is, the rules differ.

    Parameters
    ----------
    rule : str
        "greedy": the best item of a group that is below ⌈k·t⌉. With four groups or more it can run into a place where
        two groups are due at once. "cons" and "relaxed": the group whose next item falls due first, so that no minimum
        is missed; "relaxed" rounds that place up and so leaves more to the scores. "const_sort": items enter as minima
        rise, then move up by score as far as no other misses its place; of those that miss none it usually keeps most
        quality.
    target : mapping, sequence or str
        The share of each group by its label, or in the order of the data's groups; groups left out have no minimum, and
        shares may add up to less than 1. "equal": equal shares. "data": the groups' shares of the data, those of `fit`
        if it was called.
        Shares count as decimals are written, so 0.58 of 50 places are 29.
    strength : float
        Ask for this part of each share; 0 leaves the order alone.

    Attributes
    ----------
    target_ : dict
        The share of each group, after `fit`.
    group_names_ : tuple
        The groups, after `fit`.

    Examples
    --------
    >>> data = RankingData.from_arrays(np.zeros((4, 0)), [0] * 4, ["a", "a", "b", "b"], [1] * 4)
    >>> DetRanker("greedy").rerank([4.0, 3.0, 2.0, 1.0], data)
    array([-1., -3., -2., -4.])
    """

    def __init__(self, rule: str = "const_sort", target: of_groups.Target = "data", strength: float = 1.0) -> None:
        self.rule, self.target, self.strength = rule, target, strength
        choose(rule, RULES, what="rule")
        of_groups.check_target(target)
        check_number(strength, "strength", least=0, most=1)

    @property
    def target_(self) -> dict[Any, Fraction]:
        """The share of each group, after `fit`."""
        return self.shares_

    def _shares_of(self, data: RankingData) -> dict[Any, Fraction]:
        return of_groups.target_shares(self.target, data)

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> NDArray[np.float64]:
        """Reorder each list.

        Parameters
        ----------
        scores, data
            As in `evenrank.interval`. Rows of unknown group keep their place. A group that runs out of items is left
            out from there on. Ties go by item id (by row, without ids).
        k : int, optional
            Fill the first k places so, and let the rest follow by score; None fills all.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank), (n,), in the caller's row order.
        """
        stored = one_column(scores, data)
        depth = depth_of(data, k)
        codes, _, asked = self._asked_of(data)
        shares = [share * of_groups.as_written(self.strength) for share in asked.values()]
        lists = GroupLists(stored, data, codes, len(shares), k)
        if self.rule == "const_sort":
            return const_sort(lists, shares)
        due = None if self.rule == "greedy" else of_groups.order_due(shares, depth, whole=self.rule == "relaxed")
        return fill(lists, of_groups.least(shares, depth), of_groups.most(shares, depth), due)

    # ------------------------------------------------------------------ files

    def content(self) -> dict[str, Any]:
        """Give what the model file holds, in plain values."""
        self._check_fitted("save")
        shares = [[share.numerator, share.denominator] for share in self.shares_.values()]
        header = model_file.header(self)
        header["parameters"]["target"] = self.target if isinstance(self.target, str) else of_groups.DATA  # see "shares"
        return header | {"shares": shares}

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> Self:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = cls()
        model_file.set_parameters(reranker, content, name)
        groups = model_file.names(content, "groups", name=name)
        pairs = model_file.need(content, "shares", list, name=name)
        shares = [
            Fraction(pair[0], pair[1])
            for pair in pairs
            if isinstance(pair, list) and len(pair) == 2 and all(type(part) is int for part in pair) and pair[1] > 0
        ]
        good = len(shares) == len(pairs) == len(groups) and all(0 <= share <= 1 for share in shares)
        if not good or sum(shares) > 1 + of_groups.ROUNDING:
            raise DataError(
                f"{name}: 'shares' must be a fraction per group, from 0 to 1, at most 1 in all; got {pairs!r:.80}."
            )
        reranker.shares_, reranker.group_names_ = dict(zip(groups, shares, strict=True)), groups
        return reranker
