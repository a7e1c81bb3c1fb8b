"""`MultinomialFAStar`: FA*IR for several protected groups, a minimum of each in every prefix (Zehlike et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log2
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.rankers import model_file
from evenrank.rerankers.base import one_column
from evenrank.rerankers.by_shares import ShareReranker, depth_of
from evenrank.rerankers.count_tree import CountTree, adjusted_tree
from evenrank.rerankers.group_lists import GroupLists, fill
from evenrank.rerankers.shares import as_written
from evenrank.row_checks import listed

LONGEST = 1000
LARGEST = 30_000_000  # numbers in the table of probabilities


class MultinomialFAStar(ShareReranker):
    """A re-ranker: scores in, scores of a new order out.

    A fair list of k items has its groups drawn with shares p. Every prefix is held to minima that such a list misses
    with at most the probability asked for. Of several minima that would do, the likeliest path is taken.

    Parameters
    ----------
    p : mapping or sequence, optional
        The share of each protected group by its label; groups not named are not protected. Or all shares in the order
        of the data's groups, of which the first is not protected. None: the groups' shares of the data, those of `fit`
        if it was called; the largest group is not protected.
    significance : float
        The probability with which a list drawn with these shares may fail.
    adjust : bool
        Adjust the significance for testing every prefix: the largest at which the exact probability of failing is no
        more than asked for.
    strength : float
        Ask for this part of each share; 0 leaves the order alone.

    Attributes
    ----------
    p_ : dict
        The share of each protected group, after `fit`.
    group_names_ : tuple
        The groups, after `fit`.

    Examples
    --------
    >>> ranker = MultinomialFAStar({"b": 0.3, "c": 0.2}, significance=0.1)
    >>> ranker.table(8).tolist()[-1]
    [1, 1]
    >>> ranker.failure_probability(8) <= 0.1
    True
    """

    def __init__(
        self,
        p: Any = None,
        significance: float = 0.1,
        adjust: bool = True,
        strength: float = 1.0,
    ) -> None:
        self.p, self.significance, self.adjust, self.strength = p, significance, adjust, strength
        check_number(significance, "significance", above=0, below=1)
        check_number(strength, "strength", least=0, most=1)
        if p is None:
            return
        if isinstance(p, str) or not isinstance(p, Mapping | Sequence | np.ndarray) or not len(p):
            raise ConfigError(f'p must be a share per protected group, as {{"b": 0.3}}; got {p!r}.')
        by_group = p if isinstance(p, Mapping) else dict(enumerate(p))
        for label, share in by_group.items():
            check_number(share, f"the share of {label!r}", above=0, below=1)
        total = sum(map(as_written, by_group.values()), Fraction(0))
        if isinstance(p, Mapping) and total >= 1:
            raise ConfigError(
                f"shares of protected groups must add up to less than 1; got {float(total):.6g}. Leave out the group "
                "that is not protected."
            )
        if not isinstance(p, Mapping) and (len(p) < 2 or abs(total - 1) > Fraction(1, 10**6)):
            raise ConfigError(f"shares of all groups must be two or more and add up to 1; got {float(total):.6g}.")

    # ------------------------------------------------------------------ tables

    def tree(self, k: int) -> list[list[tuple[int, ...]]]:
        """List the minima that are in order at each place: a list must reach one of each.

        Parameters
        ----------
        k : int
            The number of places.

        Returns
        -------
        list of list of tuple
            One number per protected group, in the order of ``p``.
        """
        return self._tree(self._own_shares(), k).nodes

    def table(self, k: int) -> NDArray[np.int64]:
        """Compute the minima that `rerank` holds lists to.

        Parameters
        ----------
        k : int
            The number of places.

        Returns
        -------
        ndarray
            (k, protected groups), in the order of ``p``.
        """
        return np.array(self._tree(self._own_shares(), k).likely_path(), np.int64)

    def adjusted_significance(self, k: int) -> float:
        """Compute the significance that the tree is built with.

        Parameters
        ----------
        k : int
            The number of places.

        Returns
        -------
        float
            At most ``significance``.
        """
        return float(self._tree(self._own_shares(), k).significance)

    def failure_probability(self, k: int) -> float:
        """Compute the exact probability that a list drawn with shares p fails at some place.

        Parameters
        ----------
        k : int
            The number of places.

        Returns
        -------
        float
            The probability.
        """
        return self._tree(self._own_shares(), k).failure_probability

    def is_fair(self, groups: Sequence[Any]) -> bool:
        """Check one list.

        Parameters
        ----------
        groups : sequence
            The items' groups from the top; any label that is not protected counts for none.

        Returns
        -------
        bool
            Whether its numbers reach minima of the tree at every place.
        """
        protected = list(self._own_shares())
        counts = np.cumsum([[label == name for name in protected] for label in groups], axis=0)
        tree = self.tree(check_k(len(counts)))
        return all(any((have >= minima).all() for minima in nodes) for have, nodes in zip(counts, tree, strict=True))

    # ------------------------------------------------------------------ rankings

    @property
    def p_(self) -> dict[Any, Fraction]:
        """The share of each protected group, after `fit`."""
        return self.shares_

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> NDArray[np.float64]:
        """Reorder each list: where a group is below its minimum its best item is next, else the best item.

        Parameters
        ----------
        scores, data
            As in `evenrank.interval`. Rows of unknown group keep their place. A group that runs out of items is left
            out from there on. Ties go by item id (by row, without ids).
        k : int, optional
            Fill the first k places so, and let the rest follow by score. None: as many as the longest list has.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank), (n,), in the caller's row order.
        """
        stored = one_column(scores, data)
        codes, names, shares = self._asked_of(data)
        depth = depth_of(data, k)
        minima = np.zeros((depth, len(names)), np.int64)
        columns = [names.index(label) for label in shares if label in names]
        path = np.array(self._tree(shares, depth if k is None else check_k(k)).likely_path(), np.int64)
        minima[:, columns] = path[:depth, [label in names for label in shares]]
        return fill(GroupLists(stored, data, codes, len(names), k), minima)

    # ------------------------------------------------------------------ files

    def content(self) -> dict[str, Any]:
        """Give what the model file holds, in plain values."""
        self._check_fitted("save")
        header = model_file.header(self)
        header["parameters"]["p"] = None  # the shares say it; JSON has no labels but texts
        protected = [[self.group_names_.index(label), str(share)] for label, share in self.shares_.items()]
        return header | {"protected": protected}

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> Self:
        """Make the re-ranker of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        reranker = cls()
        model_file.set_parameters(reranker, content, name)
        groups = model_file.names(content, "groups", name=name)
        pairs = model_file.need(content, "protected", list, name=name)
        try:
            shares = {groups[at]: Fraction(share) for at, share in pairs if type(at) is int and at >= 0}
            if len(shares) != len(pairs) or not all(0 < share < 1 for share in shares.values()):
                raise ValueError
        except (ValueError, TypeError, IndexError, ZeroDivisionError):
            raise DataError(
                f"{name}: 'protected' must be pairs of a group's number and its share. Was it edited?"
            ) from None
        if sum(shares.values()) >= 1:
            raise DataError(f"{name}: the shares of 'protected' must add up to less than 1. Was it edited?")
        reranker.shares_, reranker.group_names_ = shares, groups
        return reranker

    # ------------------------------------------------------------------ shares

    def _own_shares(self) -> Mapping[Any, Fraction]:
        """The shares of `fit`, or those that ``p`` says without data."""
        if hasattr(self, "shares_"):
            return self.shares_
        if isinstance(self.p, Mapping):
            return {label: as_written(share) for label, share in self.p.items()}
        if self.p is not None:
            return {place: as_written(share) for place, share in enumerate(self.p) if place}
        raise ConfigError("the shares are those of the data: call fit, or name them with p=.")

    def _shares_of(self, data: RankingData) -> dict[Any, Fraction]:
        data.need_labels(type(self).__name__)
        names = data.group_names
        if isinstance(self.p, Mapping):
            return {label: as_written(share) for label, share in self.p.items()}
        if self.p is not None:
            if len(self.p) != len(names):
                raise ConfigError(f"p has {len(self.p)} shares; the data has {len(names)} groups, {listed(names)}.")
            return {name: as_written(share) for name, share in list(zip(names, self.p, strict=True))[1:]}
        if len(names) < 2:
            raise DataError(f"{type(self).__name__} needs two groups; the data has {listed(names) or 'none'}.")
        members = np.bincount(data.group[data.group >= 0], minlength=len(names)).tolist()
        largest = members.index(max(members))
        every = zip(names, members, strict=True)
        return {name: Fraction(number, sum(members)) for at, (name, number) in enumerate(every) if at != largest}

    def _tree(self, shares: Mapping[Any, Fraction], k: int) -> CountTree:
        k = check_k(k)
        asked = [share * as_written(self.strength) for share in shares.values()]
        size = (k + 1) ** (len(asked) + 1)
        if k > LONGEST or size > LARGEST:
            most = min(LONGEST, int(LARGEST ** (1 / (len(asked) + 1))) - 1)
            if most < 1:
                raise ConfigError(
                    f"{type(self).__name__} protects at most {int(log2(LARGEST)) - 1} groups, as its table has a "
                    f"dimension for each; got {len(asked)}. Name fewer with p=, or use DetRanker."
                )
            raise ConfigError(f"k must be at most {most:,} for {len(asked)} protected groups; got {k:,}.")
        p = (float(1 - sum(asked)), *map(float, asked))
        make = adjusted_tree if self.adjust else CountTree
        return make(p, float(self.significance), k)
