"""`FairController`: serves one list after the other and pushes back what its groups have been short of so far."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, shortened
from evenrank.rerankers.chances import ChanceTable, group_chances
from evenrank.rerankers.controller_input import (
    MERIT,
    VALUES,
    VERSION,
    checked_relevance,
    kept_start,
    known_chances,
    lists_of,
    mean_start,
    not_finite,
    notion_name,
    one_list,
    spread_of,
    stored_scores,
    warm_start,
)
from evenrank.rerankers.served_sums import sums_of
from evenrank.rerankers.tallies import Tallies

PARAMETERS = ("notion", "k", "gain", "value", "limit", "memory")
TOP_K = 5
GAIN, MERIT_GAIN = 3.0, 0.01
STEP = 0.1  # spreads that a gain of 1 moves a group that is short by one whole list, if half of all items get in


class FairController:
    """A controller of lists that are served one by one: the groups that got too little so far are moved up in the next.

    After each list it knows what each group's items got (``value``) and what they would have got at the mean rate of
    all groups. In the next list a group's scores are shifted by ``gain`` × (mean rate − the group's rate) × (lists that
    had the group), in tenths of the list's own spread (more, where the mean rate is far from one half). The shift grows
    until the group gets its share, so that the gap of all lists served goes to 0 like 1 / their number. It may see the
    group and other lists at serving.

    Parameters
    ----------
    notion : str, optional
        "dp", "eop" or "eod" (or their full names): what is given is divided by the number of a group's items, of its
        relevant ones, or of both kinds. "merit", the default for exposure and impact, is FairCo [1]_ as published: what
        is given so far, divided by the group's relevance in the list at hand; the largest quotient less the group's own
        is multiplied by ``gain`` and added to the scores as they are. It has neither ``limit`` nor ``memory``.
    k : int, optional
        The cut-off. By default 5 for "topk", and the whole list for the others.
    gain : float, optional
        How hard the gap is pushed back; 0 changes nothing. By default 3, and 0.01 for "merit". A gain too large makes
        the order of a list swing from one side to the other, at a cost in quality; one too small closes the gap late.
    value : str
        What an item gets: "topk" (1 in the top k), "exposure" (1 / log2(1 + rank)) or "impact" (exposure × relevance).
    warm : GroupOffset, FairController or dict, optional
        Where to start: offsets by group that are added to the scores, or a controller that was fitted. A `GroupOffset`
        and a fitted controller also bring the chance that an item is relevant.
    limit : float
        The most that a group is shifted by the running gap, in spreads of the list.
    memory : float, optional
        The number of lists after which what was served counts 1/e. With ``limit`` it keeps an error that cannot be
        closed from piling up (anti-windup). None remembers everything.

    Attributes
    ----------
    start_ : dict
        By group, the shift in spreads that `fit` found to be needed.

    Notes
    -----
    Scores may have any scale. Of a list, the spread is that between its quartiles, so that a sentinel such as -1e30
    does not stretch it. Within a group the order is always that of the scores; ties keep the order they are given in.
    An item of unknown group (None, NaN, "") is not shifted and not counted. A group that was never served before, or
    that ``warm`` does not name, begins without a shift. A list of one group is counted and keeps its order, and an
    empty list gives an empty order. One controller is for one thread; give each its own, and `merge` them.

    References
    ----------
    .. [1] M. Morik, A. Singh, J. Hong, T. Joachims: Controlling fairness and bias in dynamic learning-to-rank (2020).

    Examples
    --------
    >>> controller = FairController("dp", k=1, gain=20)
    >>> [controller.rank([2.0, 1.0], ["a", "b"]).tolist() for _ in range(4)]
    [[0, 1], [1, 0], [0, 1], [1, 0]]
    """

    def __init__(
        self,
        notion: str | None = None,
        k: int | None = None,
        gain: float | None = None,
        value: str = "topk",
        warm: Any = None,
        *,
        limit: float = 3.0,
        memory: float | None = 1000.0,
    ) -> None:
        self.value = choose(value, VALUES, what="value")
        self.notion = name = notion_name(notion, value)
        self.k = TOP_K if k is None and value == "topk" else k if k is None else check_k(k)
        self.gain = (MERIT_GAIN if name == MERIT else GAIN) if gain is None else gain
        check_number(self.gain, "gain", least=0)
        check_number(limit, "limit", above=0)
        if memory is not None:
            check_number(memory, "memory", above=0)
        self.limit, self.memory = limit, memory
        self.start_, self.offsets, self.chances_ = warm_start(warm)
        self._tallies = Tallies(
            1 + (name == "equalized_odds"), 1.0 if memory is None or name == MERIT else exp(-1 / memory)
        )
        for label in self.offsets:
            self._tallies.code(label)
        self._discount, self._table = np.zeros(0), None  # type: tuple[NDArray[np.float64], ChanceTable | None]
        self._sums = sums_of(name, value)
        self._relevance_counts = name != "demographic_parity" or value == "impact"

    @property
    def served(self) -> int:
        """The number of lists served."""
        return self._tallies.served

    # ------------------------------------------------------------------ serving

    def rank(self, scores: ArrayLike, groups: Any, relevance: ArrayLike | None = None) -> NDArray[np.int64]:
        """Order one list, and count it as served.

        Parameters
        ----------
        scores : array-like
            (n,), finite, higher is better.
        groups : sequence
            The group label of each item, (n,).
        relevance : array-like, optional
            The chance that each item is relevant, (n,), for "eop", "eod" and "impact"; by default what ``warm`` learned
            of scores. For "merit", the items' relevance; by default the scores.

        Returns
        -------
        ndarray
            The numbers of the items, best first, (n,).

        Raises
        ------
        DataError
            If a score is not finite, or the lengths differ; nothing is counted then.
        """
        own = one_list(scores, groups)
        if not len(own):
            return np.zeros(0, np.int64)
        down = -own
        order = down.argsort(kind="stable")
        down = down[order]
        if not (isfinite(down.item(0)) and isfinite(down.item(-1))):  # NaN is sorted last
            raise not_finite(own)
        given = own if self._relevance_counts else None
        if given is not None and relevance is not None:
            given = checked_relevance(relevance, own, self.notion)
        code = self._tallies.codes(groups, len(own))
        if given is own and relevance is None and self.notion != MERIT:
            given = self._expected(own, code)
        count = np.bincount(code, None, len(self._tallies.labels)).tolist()
        mass = None if given is None else np.bincount(code, given, len(count)).tolist()
        if self.gain or self.offsets:
            shift = np.array(self._shifts(down, count, mass))
            # Sorting what is sorted already keeps the order within a group, however small its differences are.
            order = order[(down - shift[code[order]]).argsort(kind="stable")]
        top = order[: self.k]
        if self.value != "topk" and len(self._discount) < len(top):
            self._discount = 1 / np.log2(np.arange(2, 2 * len(top) + 2))
        gives = None if self.value == "topk" else self._discount[: len(top)]
        relevant = None if given is None else given[top]
        self._tallies.add(*self._sums(code[top], gives, relevant, count, mass))
        return order

    def _expected(self, own: NDArray[np.float64], code: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chances of a list's items by their scores, (n,)."""
        labels = self._tallies.labels
        if self._table is None or self._table.rows != len(labels):
            self._table = ChanceTable(known_chances(self.chances_, self.notion), labels)
        return self._table(own, code)

    def _shifts(self, down: NDArray[np.float64], count: list[int], mass: list[float] | None) -> list[float]:
        """What is added to the scores of each group; the first is that of unknown groups."""
        if self.notion == MERIT:
            assert mass is not None
            shift = self._tallies.lifts(self.gain, count, mass)
        else:
            spread = spread_of(down)
            shift = [spread * part for part in self._parts()]
        for label, number in self.offsets.items():
            shift[self._tallies.code(label)] += number
        return shift

    def _parts(self) -> list[float]:
        """The shift of each group in spreads."""
        parts = self._tallies.pushes(STEP * self.gain, self.limit)
        if self.gain and self.start_:
            return [part + self.start_.get(label, 0.0) for part, label in zip(parts, self._tallies.labels, strict=True)]
        return parts

    # ------------------------------------------------------------------ several servers, and the next start

    def state(self) -> dict[str, Any]:
        """Give everything the controller knows, as plain values that JSON can hold.

        Returns
        -------
        dict
            For `from_state`.
        """
        return {
            "controller": VERSION,
            **{name: getattr(self, name) for name in PARAMETERS},
            "start": [list(pair) for pair in self.start_.items()],
            "offsets": [list(pair) for pair in self.offsets.items()],
            "chances": [[label, fit.score.tolist(), fit.chance.tolist()] for label, fit in self.chances_.items()],
            **self._tallies.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FairController:
        """Make the controller whose `state` was kept; it serves on exactly as that one would have.

        Parameters
        ----------
        state : mapping
            A state, or what JSON made of it.

        Returns
        -------
        FairController
            The controller.

        Raises
        ------
        DataError
            If it is not a whole state.
        """
        try:
            start = kept_start(state)
            controller = cls(**{name: state[name] for name in PARAMETERS})
            controller.start_, controller.offsets, controller.chances_ = start
            controller._tallies.restore(state)
            for label in controller.offsets:
                controller._tallies.code(label)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            if isinstance(error, DataError):
                raise DataError(shortened(str(error))) from None
            reason = shortened(str(error).rstrip("."))
            raise DataError(f"this is not the state of a FairController ({reason}). Keep what state() gave.") from None
        return controller

    def merge(self, *others: FairController) -> FairController:
        """Add up controllers that served different lists.

        Parameters
        ----------
        *others : FairController
            With the same parameters; the order does not matter.

        Returns
        -------
        FairController
            A new one that goes on from all lists together, with this one's start.
        """
        merged = FairController.from_state(self.state())
        for other in others:
            if not isinstance(other, FairController):
                raise ConfigError(f"controllers merge with controllers; got {type(other).__name__}.")
            for name in PARAMETERS:
                mine, theirs = getattr(self, name), getattr(other, name)
                if mine != theirs:
                    raise ConfigError(f"controllers that merge must share their {name}; got {mine!r} and {theirs!r}.")
            merged._tallies.merge(other._tallies)
        return merged

    # ------------------------------------------------------------------ whole data

    def fit(self, scores: ArrayLike, data: RankingData) -> Self:
        """Learn from lists with labels where to start, and what chance of being relevant a score means.

        The lists are served once by a controller without a start; the start is its mean shift over the second half,
        drawn towards 0 for a group of which few items got something.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows, with relevance and groups.

        Returns
        -------
        FairController
            The controller itself; lists served so far stay counted, these are not.
        """
        if self.notion == MERIT:
            raise ConfigError("notion='merit' is FairCo as published, which has no start to fit. Leave fit out.")
        stored = stored_scores(scores, data, 2)
        self.chances_, self._table = dict(zip(data.group_names, group_chances(stored, data), strict=True)), None
        pilot = FairController(self.notion, self.k, value=self.value, limit=self.limit, memory=self.memory)
        shifts, relevant = list[dict[Any, float]](), data.relevant.astype(float)
        for rows, labels in lists_of(stored, data):
            pilot.rank(stored[rows], labels, relevant[rows])
            shifts.append(dict(zip(pilot._tallies.labels, pilot._parts(), strict=True)))
        self.start_ = mean_start(shifts[len(shifts) // 2 :], pilot._tallies)
        return self

    def rerank(self, scores: ArrayLike, data: RankingData, k: int | None = None) -> NDArray[np.float64]:
        """Serve all lists, in the order in which they first appear in the data.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows. Their relevance is not looked at.
        k : int, optional
            Counted instead of the controller's own, if it has served no list yet.

        Returns
        -------
        ndarray
            Scores of the new order (minus the new rank) in the caller's row order, (n,).
        """
        if k is not None and not self.served:
            self.k = check_k(k)
        if k not in (None, self.k):
            raise ConfigError(
                f"this controller counts the top {self.k}; got k={k}. Make one with FairController(k={k})."
            )
        stored = stored_scores(scores, data, 1)
        out = np.empty(data.n_rows)
        for rows, labels in lists_of(stored, data):
            out[rows[self.rank(stored[rows], labels)]] = -1.0 - np.arange(len(rows))
        return data.to_caller(out)
