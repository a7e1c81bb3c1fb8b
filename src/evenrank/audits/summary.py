"""`Summary`: what an audit needs of ranked lists, as sums per list; it can be merged, saved and loaded.

A list must be whole in one part: places depend on all its items. Lists are kept in the order of their ids and items in
the order of their lists' cells, so parts merged in any order hold the same arrays, and audits of them agree to the
last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.audits.ids import joined_ids, sorted_labels
from evenrank.data import RankingData
from evenrank.errors import DataError

QUALITY = ("ndcg", "precision", "recall")
VALUES = ("top", "exposure")


@dataclass(frozen=True, eq=False)
class Summary:
    """Ranked lists as sums per list and cell: (irrelevant or relevant) × group.

    Build one with `of`; join parts with `merge`. All arrays are read-only by convention.

    Attributes
    ----------
    ks : tuple of int
        The cut-offs, ascending.
    labelled : bool
        Whether rows have relevance labels; without them all rows are in the first stratum.
    group_names : tuple
        The G sorted group labels.
    query_ids : ndarray
        (q,), sorted.
    lengths, relevant : ndarray
        (q,): the items of each list, and the relevant ones, those of unknown group included.
    key : ndarray
        (e,), increasing: list · 2G + stratum · G + group, for every cell of a list that holds an item.
    count, weight : ndarray
        (e,): the items of each cell, and the sum of their weights.
    sums, squares : ndarray
        (2, K, e): the weighted sums of x and of x² over each cell, where x is the chance of being in the top k
        (first) or the exposure in it (second).
    quality : ndarray
        (3, K, q): NDCG, precision and recall of each list; NaN where not defined.
    clusters : tuple of ndarray
        At most two; the cluster of each list, (q,).
    cluster_names : tuple of str
        What they are called.
    items : ndarray or None
        (m,): a hash of the item id of each row of known group, cell by cell; None without ids.
    first, size : ndarray or None
        (m,): how many items stand above each such row, and how many share its score.
    weighted : bool
        Whether rows have weights, or probabilities of groups: then counts are not whole numbers.
    marks : ndarray
        (q,): 64 bits that are the same in lists with the same scores, labels and groups, row by row in any order; 0
        where lists are so alike by chance.
    times : ndarray or None
        (q,): for how many lists, alike in all that is summed up, each of the q stands; None where each is one.
    copied : tuple of int or None
        What `copies` is, where it was counted before.
    values : tuple of str
        What is summed up: "top", "exposure" and "quality".
    binned : callable or None
        From residuals of the q kinds of lists to those of lists, as `audits.pairs.binned` gives them.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores = data.to_caller(data.features[:, 0])
    >>> half = np.arange(data.n_queries) % 2 == 0
    >>> stored = data.to_stored(scores)
    >>> parts = [Summary.of(stored[mask[data.query_of_row]], data.take(mask), [5]) for mask in (half, ~half)]
    >>> er.audit(parts[1].merge(parts[0])).to_dict() == er.audit(scores, data, [5]).to_dict()
    True
    """

    ks: tuple[int, ...]
    labelled: bool
    group_names: tuple[Any, ...]
    query_ids: NDArray[Any]
    lengths: NDArray[np.int64]
    relevant: NDArray[np.int64]
    key: NDArray[np.int64]
    count: NDArray[np.float64]
    weight: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]
    quality: NDArray[np.float64]
    marks: NDArray[np.uint64]
    clusters: tuple[NDArray[Any], ...] = ()
    cluster_names: tuple[str, ...] = ()
    items: NDArray[np.uint64] | None = None
    first: NDArray[np.int32] | None = None
    size: NDArray[np.int32] | None = None
    weighted: bool = False
    times: NDArray[np.float64] | None = None
    copied: tuple[int, int] | None = None
    values: tuple[str, ...] = (*VALUES, "quality")
    binned: Callable[[list[Any]], list[Any]] | None = None

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        data: RankingData,
        ks: Sequence[int] = (1, 3, 5, 10),
        *,
        cluster: Any = None,
        labelled: bool = True,
        items: bool = True,
    ) -> Summary:
        """Sum up rankings given by scores in the caller's row order.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows that the scores are of.
        ks : sequence of int
            The cut-offs.
        cluster : str, array-like, or a tuple of two of them, optional
            What lists share that makes them depend on each other, such as a user: one label per row, (n,), in the
            caller's order, the same in all rows of a list; or the name of a feature.
        labelled : bool
            False for logs without relevance labels.
        items : bool
            Whether item ids that recur in several lists are to be noticed.

        Returns
        -------
        Summary
            The sums.
        """
        from evenrank.audits.ranked import Ranked

        return Ranked(scores, data, cluster=cluster, labelled=labelled, items=items).summary(ks)

    def update(self, scores: ArrayLike, data: RankingData, *, cluster: Any = None) -> Summary:
        """Give the summary of these lists and of further ones; parameters as in `of`."""
        return self.merge(
            Summary.of(scores, data, self.ks, cluster=cluster, labelled=self.labelled, items=self.items is not None)
        )

    def merge(self, *others: Summary) -> Summary:
        """Give the summary of the lists of all parts.

        Parameters
        ----------
        *others : Summary
            Other parts, with the same cut-offs and clusterings, in any order.

        Returns
        -------
        Summary
            A new summary; the parts stay as they are.

        Raises
        ------
        DataError
            If a list is in two parts, or the parts differ in what they hold.
        """
        parts = [self, *others]
        while len(parts) > 1:  # in pairs, so that no part is copied often
            parts = [_merged(*parts[j : j + 2]) if j + 1 < len(parts) else parts[j] for j in range(0, len(parts), 2)]
        return parts[0]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the summary to a file (.npz), whole or not at all."""
        from evenrank.audits.summary_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Summary:
        """Read a summary that `save` wrote; a damaged file is a `DataError` of one line."""
        from evenrank.audits.summary_file import load

        return load(path)

    @property
    def held(self) -> int:
        """The number of lists that are held, q."""
        return len(self.lengths)

    @cached_property
    def n_queries(self) -> int:
        """The number of lists, as often as each of those held stands for one."""
        return self.held if self.times is None else round(float(self.times.sum()))

    def total(self, values: NDArray[Any]) -> float:
        """Sum one value per list that is held, (q,), over all lists."""
        return float(values.sum() if self.times is None else values @ self.times)

    @cached_property
    def cell_times(self) -> NDArray[np.float64] | float:
        """For how many lists each cell stands, (e,)."""
        return 1.0 if self.times is None else self.times[self.query]

    @property
    def n_groups(self) -> int:
        """The number of groups, G."""
        return len(self.group_names)

    @cached_property
    def query(self) -> NDArray[np.int64]:
        """The list of each cell, (e,)."""
        return self.key // (2 * self.n_groups)

    @cached_property
    def stratum(self) -> NDArray[np.int64]:
        """The stratum of each cell, (e,): 0 irrelevant (or all, without labels), 1 relevant."""
        return self.key // self.n_groups % 2

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """The group of each cell, (e,)."""
        return self.key % self.n_groups

    @cached_property
    def group_counts(self) -> NDArray[np.float64]:
        """The items of each group, (G,)."""
        return np.bincount(self.group, self.count * self.cell_times, minlength=self.n_groups).astype(np.float64)

    @cached_property
    def unit(self) -> float:
        """The mean weight of an item of known group; tests count in it, so that only the weights' ratios matter."""
        total, weight = (float((each * self.cell_times).sum()) for each in (self.count, self.weight))
        return weight / total if self.weighted and total > 0 else 1.0

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Whether every x of a value is 0 or 1 and no row has a weight, (2, K)."""
        whole = np.zeros(self.sums.shape[:2], bool)
        for place in np.ndindex(whole.shape):
            sums = self.sums[place]
            whole[place] = not self.weighted and bool((sums == self.squares[place]).all() and (sums % 1 == 0).all())
        return whole

    @cached_property
    def copies(self) -> tuple[int, int]:
        """How many lists have the same scores, labels and groups as an earlier one, and of how many that is asked."""
        if self.copied is not None:
            return self.copied
        marks = self.marks[self.marks != 0]
        return len(marks) - len(np.unique(marks)), len(marks)

    def without_groups(self, codes: NDArray[np.int64]) -> Summary:
        """Give the same lists with some groups taken as unknown; the others keep their codes' order."""
        stays = np.ones(self.n_groups, bool)
        stays[codes] = False
        return self._regrouped(
            tuple(name for name, keep in zip(self.group_names, stays, strict=True) if keep),
            np.where(stays, np.cumsum(stays) - 1, -1),
        )

    def _regrouped(self, names: tuple[Any, ...], code: NDArray[np.int64]) -> Summary:
        """Number the groups anew, -1 dropping one; ``code`` is increasing, so the cells stay in order."""
        new = code[self.group]
        kept = new >= 0
        rows = slice(None) if kept.all() else np.repeat(kept, self.count.astype(np.int64)) if self._rows else None
        key = (self.query * 2 + self.stratum) * len(names) + new
        return replace(
            self._with_rows(rows),
            group_names=names,
            key=key[kept],
            count=self.count[kept],
            weight=self.weight[kept],
            sums=self.sums[:, :, kept],
            squares=self.squares[:, :, kept],
        )

    @property
    def _rows(self) -> bool:
        return self.items is not None

    def _with_rows(self, rows: Any) -> Summary:
        if self.items is None or self.first is None or self.size is None:
            return self
        return replace(self, items=self.items[rows], first=self.first[rows], size=self.size[rows])

    def ordered(self, query_ids: NDArray[Any], clusters: tuple[NDArray[Any], ...]) -> Summary:
        """Bring the lists into the order of their new ids."""
        order = np.argsort(query_ids, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        key = place[self.query] * (2 * self.n_groups) + self.key % (2 * self.n_groups)
        cells = np.argsort(key, kind="stable")
        rows = None
        if self._rows:
            position = np.empty(len(cells), np.int64)
            position[cells] = np.arange(len(cells))
            rows = np.argsort(np.repeat(position, self.count.astype(np.int64)), kind="stable")
        return replace(
            self._with_rows(rows),
            query_ids=query_ids[order],
            clusters=tuple(ids[order] for ids in clusters),
            lengths=self.lengths[order],
            relevant=self.relevant[order],
            quality=self.quality[:, :, order],
            marks=self.marks[order],
            key=key[cells],
            count=self.count[cells],
            weight=self.weight[cells],
            sums=self.sums[:, :, cells],
            squares=self.squares[:, :, cells],
        )


def _merged(a: Summary, b: Summary) -> Summary:
    for what, mine, other in (
        ("cut-offs", a.ks, b.ks),
        ("relevance labels", a.labelled, b.labelled),
        ("clusterings", a.cluster_names, b.cluster_names),
        ("item ids", a.items is not None, b.items is not None),
    ):
        if mine != other:
            raise DataError(f"parts of one summary must agree in their {what}; got {mine} and {other}.")
    query_ids = joined_ids(a.query_ids, b.query_ids)
    ids, times = np.unique(query_ids, return_counts=True)
    if len(ids) < len(query_ids):
        twice = ids[times > 1][0]
        raise DataError(
            f"a list must be whole in one part; query {twice.item()!r} is in two parts. Split the rows between queries."
        )
    names = tuple(sorted_labels({*a.group_names, *b.group_names}))
    a, b = (part._regrouped(names, np.array([names.index(name) for name in part.group_names])) for part in (a, b))
    both: dict[str, Any] = {
        name: np.concatenate([getattr(a, name), getattr(b, name)], axis=-1)
        for name in ("lengths", "relevant", "marks", "count", "weight", "sums", "squares", "quality")
    }
    if a.items is not None:
        both |= {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in ("items", "first", "size")}
    both["key"] = np.concatenate([a.key, b.key + a.n_queries * 2 * len(names)])
    clusters = tuple(joined_ids(*pair) for pair in zip(a.clusters, b.clusters, strict=True))
    whole = replace(a, query_ids=query_ids, clusters=clusters, weighted=a.weighted or b.weighted, **both)
    return whole.ordered(query_ids, clusters)
