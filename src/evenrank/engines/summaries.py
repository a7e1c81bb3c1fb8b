"""From rows in an engine to summaries of their lists, one batch of cut-offs after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.ids import MIX, canonical_ids
from evenrank.audits.pairs import RECURRING
from evenrank.audits.summary import QUALITY, VALUES, Summary
from evenrank.checks import check_k
from evenrank.discounts import discount_sums
from evenrank.engines import sql
from evenrank.engines.engine import Engine, Roles, arrays
from evenrank.engines.kinds import Kinds
from evenrank.engines.rows import ROWS, TableRows
from evenrank.errors import DataError
from evenrank.row_checks import shown

HELD = 1 << 28  # bytes of sums that are brought here at a time
MOST_ITEM_ROWS = 20_000_000  # whose items are looked at one by one
MOST_GROUPS = 4  # of which lists are told apart by kinds
LONG = 1 << 16  # cut-offs from which the longest list is asked for


class ListIds:
    """Ids of lists, in their order, that stay in the engine until one is asked for."""

    dtype = np.dtype(object)

    def __init__(self, engine: Engine, number: int) -> None:
        self._engine, self._number = engine, number

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, place: int) -> Any:
        found = self._engine.fetch(f"SELECT query FROM {self._engine.named('lists')} WHERE list = {int(place)}")
        return found["query"][0].as_py()


@dataclass(frozen=True)
class EngineLists:
    """The lists of a table, summed up in its engine.

    Attributes
    ----------
    rows : TableRows
        The rows.
    shape : sql.Shape
        What the statements are written for.
    ks : tuple of int
        The cut-offs that were asked for; those beyond the longest list are cut to it in the statements.
    items : bool
        Whether items recur, and are to be noticed.
    levels : str
        The table of sums per list, group and relevance.
    by_kind : bool
        Whether kinds of lists are brought here rather than lists.
    squares : bool
        Whether scores are tied; otherwise each x of the top k is 0 or 1, and its own square.
    """

    rows: TableRows
    shape: sql.Shape
    ks: tuple[int, ...]
    items: bool
    levels: str
    by_kind: bool
    squares: bool

    @classmethod
    def of(
        cls,
        engine: Engine,
        roles: Roles,
        ks: Sequence[int],
        *,
        labelled: bool = True,
        items: bool = True,
        groups: int = 0,
    ) -> EngineLists:
        """Rank and sum up all rows: one pass over them, and another over lists with nearly equal scores.

        With fewer than ``groups`` groups there is a `DataError` before that.
        """
        import pyarrow as pa

        cuts = tuple(sorted({check_k(k) for k in ks}))
        rows = TableRows.of(engine, roles if labelled else Roles(**{**roles.__dict__, "relevance": None}))
        if len(rows.group_names) < groups:
            present = f"only {rows.group_names[0]!r}" if rows.group_names else "no group labels"
            raise DataError(f"{engine.title}: at least two groups are needed, to compare them; found {present}.")
        roles = rows.roles
        table = engine.named(ROWS)
        longest = cuts[-1]
        if longest > LONG:
            counts = f"SELECT count(*) AS number FROM {table} GROUP BY query"
            longest = int(engine.fetch(f"SELECT max(number) AS longest FROM ({counts}) c")["longest"][0].as_py())
        total = discount_sums(min(longest, cuts[-1]))
        reach = {min(k, longest): float(total[min(k, longest)]) for k in cuts}
        shape = sql.Shape(
            ks=tuple(reach),
            reach=reach,
            clusters=len(roles.cluster),
            weighted=roles.sample_weight is not None,
            threshold=roles.relevance_threshold,
            labelled=labelled,
            groups=max(1, len(rows.group_names)),
            near=rows.near,
        )
        engine.put("places", pa.table({"place": np.arange(len(total), dtype=np.int64), "total": np.array(total)}))
        places = engine.named("places")
        items = items and roles.item is not None and _recur(rows)
        by_kind = not shape.weighted and shape.groups <= MOST_GROUPS and not items
        engine.keep("levels0", sql.levels(table, places, shape))
        levels = engine.named("levels0")
        engine.keep("near", f"SELECT DISTINCT query FROM {levels} WHERE near > 0")
        if engine.fetch(f"SELECT count(*) AS number FROM {engine.named('near')}")["number"][0].as_py():
            near = engine.named("near")
            engine.view(
                "other", f"SELECT * FROM {levels} l WHERE NOT EXISTS (SELECT 1 FROM {near} n WHERE n.query = l.query)"
            )
            engine.keep("levels1", sql.levels(rows.resolve_ties(near), places, shape))
            engine.view(
                "levels", f"SELECT * FROM {engine.named('other')} UNION ALL SELECT * FROM {engine.named('levels1')}"
            )
            levels = engine.named("levels")
        squares = int(engine.fetch(f"SELECT max(tied) AS tied FROM {levels}")["tied"][0].as_py()) > 1
        more = sql.wide_sums(shape, squares=squares) if by_kind else []
        engine.keep("lists", sql.lists(levels, places, shape, more))
        engine.view("wide", sql.with_clusters(engine.named("lists"), shape))
        found = cls(rows, shape, cuts, items, levels, by_kind, squares)
        found._refuse_other_rows()
        found._refuse_split_clusters()
        return found

    def _refuse_other_rows(self) -> None:
        """Refuse rows that were others when they were ranked: a file was written anew, or a frame draws them."""
        engine = self.rows.engine
        total = engine.fetch(f"SELECT CAST(sum(length) AS BIGINT) AS number FROM {engine.named('lists')}")
        ranked = int(total["number"][0].as_py() or 0)
        if ranked != self.rows.number:
            raise DataError(
                f"{engine.title}: {self.rows.number:,} rows were counted, and then {ranked:,} were ranked. Did the "
                "data change meanwhile?"
            )

    def _refuse_split_clusters(self) -> None:
        engine = self.rows.engine
        for name, column in zip(self.shape.cluster_names, self.rows.roles.cluster, strict=True):
            odd = engine.fetch(
                f"SELECT query, {name}_min AS a, {name}_max AS b FROM {engine.named('lists')} "
                f"WHERE {name}_min <> {name}_max LIMIT 1"
            ).to_pylist()
            if odd:
                raise DataError(
                    f"{column}: a list must be in one cluster; query {odd[0]['query']} has {odd[0]['a']} and "
                    f"{odd[0]['b']}. Choose a column that is the same in all rows of a query."
                )

    def summaries(self) -> Iterator[Summary]:
        """Give the summaries of all lists at successive cut-offs.

        They are of kinds of lists, and so small, however many the lists are; or, where lists are hardly ever alike
        (rows have weights), where items matter one by one and where groups are many, of the lists themselves.
        """
        if self.by_kind:
            yield from Kinds(self).summaries()
            return
        engine = self.rows.engine
        engine.keep("cells", sql.cells(self.levels, engine.named("lists"), self.shape))
        at_once = max(1, HELD // (64 * max(1, self._cells)))
        for start in range(0, len(self.ks), at_once):
            yield self._summary(self.ks[start : start + at_once])

    # ------------------------------------------------------------------ one batch of cut-offs

    @cached_property
    def _cells(self) -> int:
        return int(self._fetch("SELECT count(*) AS number FROM {cells}")["number"][0].as_py())

    def _fetch(self, text: str) -> Any:
        engine = self.rows.engine
        return engine.fetch(text.format(cells=engine.named("cells"), lists=engine.named("lists")))

    @cached_property
    def _lists(self) -> dict[str, NDArray[Any]]:
        """What lists are at any cut-off, in their order."""
        names = ["list", "length", "relevant", "broken", "mark0", "mark1"]
        names += [f"{name}_min AS {name}" for name in self.shape.cluster_names]
        return arrays(self._fetch(f"SELECT {', '.join(names)} FROM {{lists}}"), "list")

    @cached_property
    def _marks(self) -> NDArray[np.uint64]:
        lists = self._lists
        with np.errstate(over="ignore"):
            marks = lists["mark0"].astype(np.uint64) * MIX ^ lists["mark1"].astype(np.uint64)
        return np.where((lists["broken"] > 0) & (lists["length"] > 2), marks | np.uint64(1), np.uint64(0))

    def cut(self, k: int) -> int:
        """Give the cut-off that the statements have for one that was asked for."""
        return min(k, self.shape.ks[-1])

    def _summary(self, ks: tuple[int, ...]) -> Summary:
        cuts = [self.cut(k) for k in ks]
        names = [f"{name}{part}_{k}" for k in dict.fromkeys(cuts) for name in VALUES for part in ("", "_squares")]
        cells = arrays(self._fetch(f"SELECT cell, number, weight, {', '.join(names)} FROM {{cells}}"), "cell")
        sums, squares = (
            np.array([[cells[f"{name}{part}_{cut}"] for cut in cuts] for name in VALUES]) for part in ("", "_squares")
        )
        lists = self._lists
        count = cells["number"].astype(np.float64)
        items, first, size = self._items()
        return Summary(
            ks=ks,
            labelled=self.shape.labelled,
            group_names=self.rows.group_names,
            query_ids=ListIds(self.rows.engine, len(lists["length"])),  # type: ignore[arg-type]
            lengths=lists["length"],
            relevant=lists["relevant"],
            key=cells["cell"],
            count=count,
            weight=cells["weight"] if self.shape.weighted else count,
            sums=sums,
            squares=squares,
            quality=self._quality(ks),
            marks=self._marks,
            clusters=tuple(canonical_ids(lists[name]) for name in self.shape.cluster_names),
            cluster_names=self.rows.roles.cluster,
            items=items,
            first=first,
            size=size,
            weighted=self.shape.weighted,
        )

    def _quality(self, ks: tuple[int, ...]) -> NDArray[np.float64]:
        """NDCG, precision and recall of each list, (3, K, q)."""
        if not self.shape.labelled:
            return np.empty((0, len(ks), len(self._lists["length"])))
        names = [f"{name}_{cut}" for cut in dict.fromkeys(map(self.cut, ks)) for name in QUALITY]
        found = arrays(self._fetch(f"SELECT list, {', '.join(names)} FROM {{lists}}"), "list")
        quality = np.array([[found[f"{name}_{self.cut(k)}"] for k in ks] for name in QUALITY])
        for j, k in enumerate(ks):
            quality[1, j] *= self.cut(k) / k  # beyond the longest list precision alone divides by the cut-off
        return quality

    # ------------------------------------------------------------------ items

    def _items(self) -> tuple[Any, Any, Any]:
        if not self.items:
            return None, None, None
        return self._item_rows

    @cached_property
    def _item_rows(self) -> tuple[Any, Any, Any]:
        engine = self.rows.engine
        if self.rows.number > MOST_ITEM_ROWS:
            raise DataError(
                f"{engine.title}: items recur in several lists, and {self.rows.number:,} rows are more than the "
                f"{MOST_ITEM_ROWS:,} whose items an engine takes into account. Pass --no-items (items=False), or audit "
                "a sample of the queries."
            )
        text = sql.placed_items(self._ranked_rows, engine.named("lists"), self.shape)
        found = arrays(engine.fetch(text), "item", "cell")
        return found["item"].view(np.uint64), found["first"].astype(np.int32), found["size"].astype(np.int32)

    @property
    def _ranked_rows(self) -> str:
        """The rows, with tied scores made equal."""
        engine = self.rows.engine
        near = engine.named("near")
        if not engine.fetch(f"SELECT count(*) AS number FROM {near}")["number"][0].as_py():
            return engine.named(ROWS)
        columns = ", ".join(["query", "code", "relevance", "weight", "raw", "score", "item", *self.shape.cluster_names])
        engine.view(
            "untied",
            f"SELECT {columns} FROM {engine.named(ROWS)} r WHERE NOT EXISTS (SELECT 1 FROM {near} n WHERE n.query = "
            f"r.query) UNION ALL SELECT {columns} FROM {engine.named('resolved')}",
        )
        return engine.named("untied")


def _recur(rows: TableRows) -> bool:
    """Tell whether ids recur in several lists, as `audits.recurring` asks."""
    engine = rows.engine
    again = engine.fetch(sql.twice(engine.named(ROWS))).to_pylist()
    if again:
        raise DataError(
            f"{engine.title}: item {shown(again[0]['item'])} occurs {again[0]['number']} times in query "
            f"{shown(again[0]['query'])}. Keep one row per item."
        )
    table = arrays(engine.fetch(sql.lists_per_item(engine.named(ROWS))))
    return bool((table["lists"] / table["number"]).max(initial=0.0) >= RECURRING)
