"""`Monitor`: the sums of all windows so far; it can be updated, merged, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.audits.ids import hashed
from evenrank.audits.recurring import Recurring
from evenrank.audits.summary import Summary
from evenrank.checks import check_k, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.monitoring.field import field_table
from evenrank.monitoring.parts import Part, lists_by_window
from evenrank.monitoring.series import COLUMNS, GAPS, Table, table_of
from evenrank.monitoring.watched import DEFAULT, PAIRS, RATIO, UNLABELLED, needs_labels, watched
from evenrank.monitoring.windows import Key, Windows, in_order

USUAL_KS = (1, 3, 5, 10)
AGAIN = ("refuse", "skip", "replace")
MOST_GROUPS = 12  # that make 66 pairs: with more, shares of the level are too small to notice anything


@dataclass(frozen=True, eq=False)
class Window:
    """What is known of a window besides its sums.

    Attributes
    ----------
    key : int or str
        Sorts as time does.
    label : str
        What it is called.
    ids : ndarray
        64 bits per list, sorted, by which lists that come again are known.
    rows : int
        Its rows.
    late : int
        Lists that came when a later window had been read.
    """

    key: Key
    label: str
    ids: NDArray[np.uint64]
    rows: int
    late: int = 0

    @property
    def lists(self) -> int:
        """The number of its lists."""
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Monitor:
    """The state of a monitor: sums per window from which every chart and test is made, without the rows.

    Parameters
    ----------
    measures : sequence of str
        Gaps (``demographic_parity``, ``equal_opportunity``, ``equalized_odds``: its irrelevant rows,
        ``exposure_gap``) and ``four_fifths``, of each pair of groups; and any other measure that has an interval, such
        as ``ndcg`` or ``awrf@10`` (see `watched.watched`). By default the gaps, four_fifths and ndcg.
    window, timezone : str
        As in `Windows`.
    k : int, optional
        The cut-off; by default that of 1, 3, 5 and 10 which is nearest to half of a usual list of the first rows.
    labelled : bool
        False for logs without relevance labels.
    items : bool
        Whether items that recur are taken into account.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores, times = data.to_caller(data.features[:, 0]), data.to_caller(data.query_of_row)
    >>> state = Monitor(window="100", k=5).update(scores, data, times)
    >>> [window.lists for window in state.windows]
    [100, 100, 100, 100, 100]
    """

    measures: Sequence[str] = ()
    window: str = "week"
    timezone: str = "UTC"
    k: int | None = None
    labelled: bool = True
    items: bool = True
    cluster_names: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    table: Table = field(default=Table((), np.zeros(0, np.int64), np.zeros((0, COLUMNS)), 0), repr=False)

    def __post_init__(self) -> None:
        names = [watched(name) for name in self.measures] or list(DEFAULT if self.labelled else UNLABELLED)
        for name in names:
            if not self.labelled and needs_labels(name):
                raise ConfigError(f"{name} needs relevance labels, and the log has none. Watch others.")
        if self.k is not None:
            check_k(self.k)
        object.__setattr__(self, "measures", tuple(dict.fromkeys(names)))
        self.rule  # noqa: B018  (an unknown window is refused here)

    @property
    def rule(self) -> Windows:
        """The rule of its windows."""
        return Windows(self.window, self.timezone)

    def update(
        self,
        scores: ArrayLike,
        data: RankingData,
        times: Any,
        *,
        cluster: Any = None,
        again: str = "refuse",
    ) -> Monitor:
        """Add lists, in any order of time.

        Parameters
        ----------
        scores : array-like
            (n,), in the caller's row order.
        data : RankingData
            The rows. A query with rows in several windows is a list in each.
        times : array-like
            (n,): when each row was ranked, or the name of its period, in the caller's row order; see `Windows.keys`.
        cluster : str, array-like, or a tuple of two of them, optional
            What lists share, as in `evenrank.audits.Summary.of`.
        again : str
            What to do with lists that a window already has: "refuse", "skip" (count them once), or "replace" (drop
            what is known of every window that these rows are in).

        Returns
        -------
        Monitor
            A new one; this one stays as it is.
        """
        choose(again, AGAIN, what="again")
        if data.sample_weight is not None or data.membership is not None:
            raise DataError("a monitor counts rows; these have weights or probabilities of groups. Drop them.")
        if data.n_groups > MOST_GROUPS:
            raise DataError(
                f"a monitor compares at most {MOST_GROUPS} groups; the data has {data.n_groups}. Join small ones."
            )
        keys = self.rule.keys(times)
        if len(keys) != data.n_rows:
            raise DataError(f"times must be one per row, {data.n_rows}; got {len(keys)}.")
        stored = keys if data.row_order is None else keys[data.row_order]
        order = in_order(stored.tolist())
        place = {key: j for j, key in enumerate(order)}
        number = np.fromiter((place[key] for key in stored.tolist()), np.int64, len(stored))
        part = lists_by_window(data.to_stored(scores), data, number, cluster)
        ids = hashed(part.names)
        known = self._known(order, part.window, ids)
        if again == "refuse" and known.any():
            j = int(np.argmax(known))
            raise DataError(
                f"window {self.rule.label(order[part.window[j]])}: {int(known.sum()):,} of {len(known):,} lists are "
                f"already counted, such as query {part.names[j]!s}. Say again='skip' (--again skip) to count them "
                "once, or 'replace' to count these rows instead of the window's."
            )
        base = self
        if again == "replace":
            base = self.without([order[j] for j in np.unique(part.window)])
        elif known.all():
            return self
        elif known.any():
            part, ids = part.taken(~known), ids[~known]
        return base._added(part, ids, order)

    def _known(self, order: list[Key], window: NDArray[np.int64], ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which lists are counted already."""
        known = np.zeros(len(ids), bool)
        own = {one.key: one.ids for one in self.windows}
        for j in np.unique(window):
            if order[j] in own:
                here = window == j
                known[here] = np.isin(ids[here], own[order[j]])
        return known

    def _added(self, part: Part, ids: NDArray[np.uint64], order: list[Key]) -> Monitor:
        k = self.k or min(USUAL_KS, key=lambda cut: (abs(2 * cut - float(np.median(part.data.lengths))), cut))
        summary = Summary.of(
            part.scores, part.data, [k], cluster=part.cluster, labelled=self.labelled, items=self.items
        )
        if self.windows and summary.cluster_names != self.cluster_names:
            raise DataError(
                f"the state has the clusterings {list(self.cluster_names)}; got {list(summary.cluster_names)}. "
                "Name the same."
            )
        items = summary.items is not None and (bool(self.windows) or Recurring(summary).of_one_group)
        # The state without items stays so: windows are compared with each other by the same clusters.
        gaps = [name for name in self.measures if name in GAPS]
        if RATIO in self.measures and "demographic_parity" not in gaps:
            gaps.append("demographic_parity")
        others = [name for name in self.measures if name not in PAIRS]
        tables = [
            table_of(summary, part.window, len(order), ids, gaps, items=items and self.items),
            field_table(others, k, part.scores, part.data, part.window, len(order), ids, summary, part.names),
        ]
        table = Table.sum_of([(one, np.arange(len(order))) for one in tables], len(order))
        last = self.windows[-1].key if self.windows else None
        fresh = []
        for j, key in enumerate(order):
            own = np.flatnonzero(part.window == j)
            if len(own):
                late = len(own) if last is not None and in_order([key, last])[-1] == last and key != last else 0
                rows = int(part.data.lengths[own].sum())
                fresh.append(Window(key, self.rule.label(key), np.sort(ids[own]), rows, late))
        added = replace(
            self,
            k=k,
            items=items and self.items,
            cluster_names=summary.cluster_names,
            windows=tuple(fresh),
            table=_renumbered(table, order, [window.key for window in fresh]),
        )
        return added if not self.windows else self.merge(added)

    def merge(self, *others: Monitor) -> Monitor:
        """Give the state of the lists of all parts; a window that is in several has the lists of all of them.

        Parameters
        ----------
        *others : Monitor
            With the same settings.

        Returns
        -------
        Monitor
            A new one.
        """
        parts = [part for part in (self, *others) if part.windows]
        if not parts:
            return self
        for part in parts[1:]:
            for name in ("measures", "window", "timezone", "k", "labelled", "items", "cluster_names"):
                mine, theirs = getattr(parts[0], name), getattr(part, name)
                if mine != theirs:
                    raise DataError(f"parts of one monitor must agree in their {name}; got {mine!r} and {theirs!r}.")
        keys = in_order(window.key for part in parts for window in part.windows)
        place = {key: j for j, key in enumerate(keys)}
        joined: list[Window | None] = [None] * len(keys)
        for part in parts:
            for window in part.windows:
                joined[place[window.key]] = _joined(joined[place[window.key]], window)
        tables = [(part.table, np.array([place[window.key] for window in part.windows], np.int64)) for part in parts]
        windows = tuple(window for window in joined if window is not None)
        return replace(parts[0], windows=windows, table=Table.sum_of(tables, len(keys)))

    def without(self, keys: Sequence[Key]) -> Monitor:
        """Drop windows."""
        gone = np.array([j for j, window in enumerate(self.windows) if window.key in keys], np.int64)
        if not len(gone):
            return self
        kept = [j for j in range(len(self.windows)) if j not in set(gone.tolist())]
        number = np.zeros(len(self.windows), np.int64)
        number[kept] = np.arange(len(kept))
        table = Table.sum_of([(self.table.without(gone), number)], len(kept))
        return replace(self, windows=tuple(self.windows[j] for j in kept), table=table)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a file, whole or not at all."""
        from evenrank.monitoring.state_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Monitor:
        """Read a state that `save` wrote; a damaged file is a `DataError` of one line."""
        from evenrank.monitoring.state_file import load

        return load(path)


def _joined(mine: Window | None, other: Window) -> Window:
    if mine is None:
        return other
    both = np.concatenate([mine.ids, other.ids])
    ids = np.unique(both)
    if len(ids) < len(both):
        raise DataError(f"window {mine.label}: {len(both) - len(ids):,} lists are in two parts. Count each once.")
    return Window(mine.key, mine.label, ids, mine.rows + other.rows, mine.late + other.late)


def _renumbered(table: Table, order: list[Key], kept: list[Key]) -> Table:
    number = np.zeros(len(order), np.int64)
    for j, key in enumerate(kept):
        number[order.index(key)] = j
    return Table.sum_of([(table, number)], len(kept))
