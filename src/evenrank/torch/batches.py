"""Batches of whole queries for torch's ``DataLoader``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.extras import require
from evenrank.labels import checked_ids, group_rows

torch: Any = require("torch")
data_tools: Any = require("torch.utils.data")


class QueryBatchSampler(data_tools.Sampler):  # type: ignore[misc]
    """Batches of row numbers that keep each query whole: a ``batch_sampler`` for a DataLoader over rows.

    Parameters
    ----------
    rows : RankingData or array-like
        The data, with its rows in stored order as in `RankingDataset`; or the query id of each row, (n,), in any order.
    batch_queries : int
        The number of queries in a batch.
    shuffle : bool
        Draw the queries in a new order every epoch. The order depends on ``seed`` and the epoch's number alone.
    seed : int
        The seed of the order.
    drop_last : bool
        Leave out a last batch of fewer queries.

    Examples
    --------
    >>> [len(batch) for batch in QueryBatchSampler([7, 8, 7, 9, 9, 9], batch_queries=2, shuffle=False)]
    [3, 3]
    """

    def __init__(
        self,
        rows: Any,
        batch_queries: int = 100,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        check_number(batch_queries, "batch_queries", least=1, whole=True)
        check_number(seed, "seed", least=0, whole=True)
        self.order: NDArray[np.int64] | None = None
        if isinstance(rows, RankingData):
            self.ptr, self.queries = rows.query_ptr, rows.sorted_queries
        else:
            ids = rows.numpy(force=True) if isinstance(rows, torch.Tensor) else rows
            self.order, self.ptr, _ = group_rows(checked_ids(ids, len(ids), "qid", lambda row: f"row {row}"))
            self.queries = np.arange(len(self.ptr) - 1)
        self.batch_queries, self.shuffle, self.seed, self.drop_last = batch_queries, shuffle, seed, drop_last
        self.epoch = 0

    def __len__(self) -> int:
        whole, rest = divmod(len(self.queries), self.batch_queries)
        return whole + bool(rest and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch; otherwise each pass is the next one.

        Parameters
        ----------
        epoch : int
            The number, from 0.
        """
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self.seed, self.epoch))
        self.epoch += 1
        queries = rng.permutation(self.queries) if self.shuffle else self.queries
        for batch in range(len(self)):
            chosen = queries[batch * self.batch_queries : (batch + 1) * self.batch_queries]
            rows = np.concatenate([np.arange(self.ptr[query], self.ptr[query + 1]) for query in chosen.tolist()])
            yield (rows if self.order is None else self.order[rows]).tolist()


class RankingDataset(data_tools.Dataset):  # type: ignore[misc]
    """The rows of a `RankingData` as ``(features, relevance, group, qid)``; qid is the query's number.

    A memmap is read batch by batch.

    Parameters
    ----------
    data : RankingData
        The rows.
    dtype : torch.dtype, optional
        The type of features and relevance; None is the features' own.

    Examples
    --------
    >>> import evenrank as er
    >>> dataset = RankingDataset(er.datasets.german_credit("age"), dtype=torch.float32)
    >>> features, relevance, group, qid = next(iter(dataset.loader(batch_queries=10)))
    >>> len(features) == len(qid) and len(qid.unique())
    10
    """

    def __init__(self, data: RankingData, *, dtype: Any = None) -> None:
        self.data, self.dtype = data, dtype
        self.columns = data.relevance, data.group.astype(np.int64), data.query_of_row

    def __len__(self) -> int:
        return self.data.n_rows

    def __getitem__(self, row: int) -> tuple[Any, ...]:
        return tuple(values[0] for values in self.__getitems__([row]))

    def __getitems__(self, rows: Sequence[int]) -> tuple[Any, ...]:
        """Give the rows of a batch at once, as torch's DataLoader asks: (b, d), and (b,) three times."""
        features = torch.from_numpy(np.array(self.data.features[rows]))
        relevance, group, qid = (torch.from_numpy(values[rows]) for values in self.columns)
        dtype = self.dtype or features.dtype
        return features.to(dtype), relevance.to(dtype), group, qid

    def loader(self, batch_queries: int = 100, *, shuffle: bool = True, seed: int = 0, **options: Any) -> Any:
        """Make a DataLoader over batches of whole queries.

        Parameters
        ----------
        batch_queries, shuffle, seed
            See `QueryBatchSampler`.
        **options : Any
            The DataLoader's own, such as num_workers.

        Returns
        -------
        torch.utils.data.DataLoader
            The loader.
        """
        sampler = QueryBatchSampler(self.data, batch_queries, shuffle=shuffle, seed=seed)
        return data_tools.DataLoader(self, batch_sampler=sampler, collate_fn=collate, **options)


def collate(batch: Any) -> tuple[Any, ...]:
    """Make four tensors of a batch of `RankingDataset`, a ``collate_fn`` for a DataLoader.

    Parameters
    ----------
    batch : tuple or list of tuple
        The batch, whole or row by row.

    Returns
    -------
    tuple of Tensor
        Features (b, d), relevance, group and qid, (b,) each.
    """
    if isinstance(batch, tuple):
        return batch
    return tuple(torch.stack(values) for values in zip(*batch, strict=True))
