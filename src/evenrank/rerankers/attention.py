"""`EquityOfAttention`: over many lists, attention in proportion to relevance for every item (Biega et al., 2018)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, shortened
from evenrank.rerankers.base import one_column
from evenrank.rerankers.controller_input import lists_of
from evenrank.row_checks import LARGEST, as_array, as_floats

Floats = NDArray[np.float64]
PARAMETERS = ("theta", "p", "k")
VERSION = 1


class EquityOfAttention:
    """A re-ranker of lists that are served one by one, which keeps what every item got and what it deserved.

    In each list relevance adds up to 1, and so does the attention of its places, p(1 − p)^(place − 1) for the first k.
    The next list is the order after which Σ |attention − relevance| over all lists so far is least, as long as DCG@k
    stays at θ of the best or above.

    Parameters
    ----------
    theta : float
        The least DCG@k, as a part of that of the list by relevance; gains are 2^relevance − 1. With 0 a list is a sort;
        above 0 it is a program of whole numbers, which takes tenths of a second for 50 items.
    p : float
        The share of attention that stops at each place.
    k : int, optional
        Places below k get no attention; None: all places get some.

    Attributes
    ----------
    attention, relevance : dict
        What each item got and deserved so far, by its id.
    served : int
        The number of lists.

    Examples
    --------
    >>> ranker = EquityOfAttention()
    >>> [ranker.rank([0.6, 0.5], ["x", "y"]).tolist() for _ in range(3)]
    [[0, 1], [1, 0], [0, 1]]
    """

    def __init__(self, theta: float = 0.0, p: float = 0.5, k: int | None = None) -> None:
        check_number(theta, "theta", least=0, most=1)
        check_number(p, "p", above=0, below=1)
        if k is not None:
            check_k(k)
        self.theta, self.p, self.k = theta, p, k
        self.attention: dict[Hashable, float] = {}
        self.relevance: dict[Hashable, float] = {}
        self.served = 0

    def __repr__(self) -> str:
        return f"EquityOfAttention(theta={self.theta!r}, p={self.p!r}, k={self.k!r})"

    @property
    def unfairness(self) -> float:
        """Σ |attention − relevance| over all items, of the lists served so far."""
        return sum(abs(self.attention[item] - self.relevance[item]) for item in self.attention)

    def rank(self, relevance: ArrayLike, items: Sequence[Hashable] | NDArray[Any]) -> NDArray[np.int64]:
        """Order one list, and count it as served.

        Parameters
        ----------
        relevance : array-like
            Each item's relevance, (n,), at least 0; it is divided by its sum.
        items : sequence
            The items' ids, each once.

        Returns
        -------
        ndarray
            Items from the top, (n,), by their number in ``items``.
        """
        deserved = as_floats(as_array(relevance, "relevance"), "relevance")
        names = _ids(items)
        if deserved.ndim != 1 or not len(deserved) or len(names) != len(deserved):
            raise DataError(
                f"relevance and items must be of one length, one item at least; got {deserved.shape} and {len(names)}."
            )
        if len(set(names)) != len(names):
            raise DataError("an item can stand in a list only once; items holds an id twice.")
        if not ((deserved >= 0) & (deserved <= LARGEST)).all() or not deserved.any():
            raise DataError(
                f"relevance must be 0 to {LARGEST:g} and not all 0; got {deserved.min():g} to {deserved.max():g}."
            )
        deserved = deserved / deserved.sum()
        owed = np.array([self.relevance.get(name, 0.0) - self.attention.get(name, 0.0) for name in names]) + deserved
        given = self._attention(len(names))
        # What is owed, sorted, meets attention, sorted: no exchange of two items could bring both nearer.
        order = np.lexsort([-deserved, -owed])
        if self.theta > 0:
            order = _with_quality(order, owed, deserved, given, self._depth(len(names)), float(self.theta))
        for place, item in enumerate(order.tolist()):
            name = names[item]
            self.attention[name] = self.attention.get(name, 0.0) + float(given[place])
            self.relevance[name] = self.relevance.get(name, 0.0) + float(deserved[item])
        self.served += 1
        return order

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> Floats:
        """Serve all lists, in the order in which they first appear in the data.

        Parameters
        ----------
        scores : array-like
            Relevance as it is estimated, (n,), at least 0, in the caller's row order.
        data : RankingData
            The rows, with item ids, by which an item is known again.
        k : int, optional
            Instead of the re-ranker's own, if it has served no list yet.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank), (n,), in the caller's row order.
        """
        if k is not None and not self.served:
            self.k = check_k(k)
        if k not in (None, self.k):
            raise ConfigError(f"this one counts the top {self.k}; got k={k}. Make one with EquityOfAttention(k={k}).")
        if data.item_ids is None:
            raise DataError(
                "EquityOfAttention knows items by their ids; the data has none. Name the column of the item."
            )
        return self.serve(scores, data)

    def serve(self, scores: ArrayLike, data: RankingData) -> Floats:
        """Do the same; without item ids every row is an item of its own, which meets once."""
        stored = as_floats(one_column(scores, data), "scores")
        ids = range(data.n_rows) if data.item_ids is None else data.item_ids.tolist()
        names = np.array(list(ids), object)
        out = np.empty(data.n_rows)
        for rows, _ in lists_of(stored, data):
            # A list without any relevance says nothing of what its items deserve, and is served as it is.
            order = self.rank(stored[rows], names[rows]) if stored[rows].any() else np.arange(len(rows))
            out[rows[order]] = -1.0 - np.arange(len(rows))
        return data.to_caller(out)

    # ------------------------------------------------------------------ states

    def state(self) -> dict[str, Any]:
        """Give everything it knows, as plain values that JSON can hold.

        Returns
        -------
        dict
            The state, for `from_state`.
        """
        owed = [[item, got, self.relevance[item]] for item, got in self.attention.items()]
        own = {name: getattr(self, name) for name in PARAMETERS}
        return {"equity_of_attention": VERSION, **own, "served": self.served, "items": owed}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> EquityOfAttention:
        """Make the re-ranker whose `state` was kept.

        Parameters
        ----------
        state : mapping
            A state, or what JSON made of it.

        Returns
        -------
        EquityOfAttention
            It serves on as that one would have.
        """
        try:
            if state["equity_of_attention"] != VERSION:
                raise DataError(
                    f"this state is of version {shortened(repr(state['equity_of_attention']))}; "
                    f"this evenrank knows {VERSION}."
                )
            ranker = cls(**{name: state[name] for name in PARAMETERS})
            check_number(state["served"], "served", least=0, whole=True)
            for item, got, deserved in state["items"]:
                check_number(got, "an item's attention", least=0)
                check_number(deserved, "an item's relevance", least=0)
                ranker.attention[item], ranker.relevance[item] = float(got), float(deserved)
        except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
            raise DataError(
                f"this is not a whole state of EquityOfAttention: {shortened(str(error))}. Keep what state() gives."
            ) from None
        ranker.served = state["served"]
        return ranker

    def merge(self, *others: EquityOfAttention) -> EquityOfAttention:
        """Add up what several servers know.

        Parameters
        ----------
        *others : EquityOfAttention
            With the same parameters; the order does not matter.

        Returns
        -------
        EquityOfAttention
            A new one that goes on from all lists together.
        """
        merged = EquityOfAttention.from_state(self.state())
        for other in others:
            strange = [name for name in PARAMETERS if getattr(self, name) != getattr(other, name)]
            if strange:
                values = f"{getattr(self, strange[0])!r} and {getattr(other, strange[0])!r}"
                raise ConfigError(f"what merges must share {strange[0]}; got {values}.")
            merged.served += other.served
            for item, got in other.attention.items():
                merged.attention[item] = merged.attention.get(item, 0.0) + got
                merged.relevance[item] = merged.relevance.get(item, 0.0) + other.relevance[item]
        return merged

    # ------------------------------------------------------------------ one list

    def _depth(self, n: int) -> int:
        return n if self.k is None else min(self.k, n)

    def _attention(self, n: int) -> Floats:
        """The attention of each place, (n,), which adds up to 1."""
        weights = self.p * (1.0 - self.p) ** np.arange(n)
        weights[self._depth(n) :] = 0.0
        return np.asarray(weights / weights.sum())


def _ids(items: Any) -> list[Hashable]:
    """Ids as plain values, which a state can hold."""
    names = [name.item() if isinstance(name, np.generic) else name for name in items]
    for name in names:
        if not isinstance(name, str | int | float) or name != name:
            raise DataError(f"an item's id must be a text or a number; got {name!r}.")
    return names


def _with_quality(
    free: NDArray[np.int64], owed: Floats, relevance: Floats, given: Floats, k: int, theta: float
) -> NDArray[np.int64]:
    """The fairest order of those whose DCG@k is ``theta`` of the best; ``free`` is the fairest of all."""
    gain, discount = 2.0**relevance - 1.0, 1.0 / np.log2(np.arange(2, k + 2))
    best = np.lexsort([-owed, -relevance])
    least = theta * float(gain[best[:k]] @ discount) * (1 - 1e-12)
    if gain[free[:k]] @ discount >= least:
        return free
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, vstack

    n = len(owed)
    # x[item, place] is 1 if the item stands there; items without a place among the first k get nothing.
    cost = np.abs(owed[:, None] - given[None, :k]) - np.abs(owed)[:, None]
    item, place = np.divmod(np.arange(n * k), k)
    ones, every = np.ones(n * k), np.arange(n * k)
    rows = [
        coo_array((ones, (item, every)), shape=(n, n * k)),
        coo_array((ones, (place, every)), shape=(k, n * k)),
        coo_array((gain[:, None] * discount).ravel()[None, :]),
    ]
    lower = np.r_[np.zeros(n), np.ones(k), least]
    upper = np.r_[np.ones(n), np.ones(k), np.inf]
    found = milp(
        cost.ravel(),
        constraints=LinearConstraint(vstack(rows).tocsr(), lower, upper),
        integrality=ones,
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        return best
    at = np.full(n, k)
    chosen = np.argwhere(found.x.reshape(n, k) > 0.5)
    at[chosen[:, 0]] = chosen[:, 1]
    return np.lexsort([-relevance, at])
