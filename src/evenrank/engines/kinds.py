"""Summaries of kinds of lists: what is brought here does not grow with the number of lists, once all kinds are seen.

Lists are of one kind if nothing that is summed up tells them apart, so each cut-off, and the top k, the exposure and
the quality at it, have kinds of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.ids import canonical_ids
from evenrank.audits.pairs import BINS
from evenrank.audits.parts import TOP_QUERIES
from evenrank.audits.summary import QUALITY, VALUES, Summary
from evenrank.engines import sql
from evenrank.engines.engine import Engine, arrays
from evenrank.inference import Residuals

if TYPE_CHECKING:
    from evenrank.engines.summaries import EngineLists

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class KindIds:
    """The ids of the lists of each kind, which stay in the engine until those of one kind are asked for.

    Attributes
    ----------
    engine : Engine
        Where they are.
    keys : list of str
        The columns that tell kinds apart.
    kinds : dict
        Their values, kind by kind.
    """

    engine: Engine
    keys: list[str]
    kinds: Columns

    def __getitem__(self, place: int) -> list[Any]:
        """Give the first few ids of a kind."""
        alike = " AND ".join(f"{key} = {self._literal(self.kinds[key][place])}" for key in self.keys)
        text = f"SELECT query FROM {self.engine.named('wide')} WHERE {alike} ORDER BY query LIMIT {TOP_QUERIES}"
        return list(self.engine.fetch(text)["query"].to_pylist())

    def _literal(self, value: Any) -> str:
        if isinstance(value, float | np.floating):
            return sql.number(float(value))
        if isinstance(value, int | np.integer):
            return str(int(value))
        return "'" + str(value).replace("\\", "\\\\" if self.engine.backslashes else "\\").replace("'", "''") + "'"


@dataclass(frozen=True)
class Kinds:
    """The kinds of the lists of a table.

    Attributes
    ----------
    lists : EngineLists
        The lists.
    """

    lists: EngineLists

    def summaries(self) -> Iterator[Summary]:
        """Give the summaries of all kinds, cut-off by cut-off: the top k, the exposure, the quality."""
        shape, squares = self.lists.shape, self.lists.squares
        for k in self.lists.ks:
            yield self._summary(k, "top", squares=squares)
            yield self._summary(k, "exposure", squares=True)
            if shape.labelled:
                yield self._qualities(k)

    @property
    def _engine(self) -> Engine:
        return self.lists.rows.engine

    @cached_property
    def _copies(self) -> tuple[int, int]:
        found = self._engine.fetch(sql.copies(self._engine.named("lists"))).to_pylist()[0]
        number = int(found["number"] or 0)
        return number - int(found["different"]), number

    def _summary(self, k: int, value: str, *, squares: bool) -> Summary:
        engine, shape, cut = self._engine, self.lists.shape, self.lists.cut(k)
        named = sql.kind_columns(shape, value, cut, squares=squares)
        keys = [*shape.cluster_names, "length", *named]
        kinds = arrays(engine.fetch(sql.kinds(engine.named("wide"), keys)))
        order = np.lexsort([kinds[name] for name in ("length", *named)])  # the same, whatever the engine
        kinds = {name: column[order] for name, column in kinds.items()}
        cells = [(max(s, 0) * shape.groups + g, name, s, g) for name, (s, g, what) in named.items() if what == "number"]
        number = np.stack([kinds[name] for _, name, _, _ in cells], axis=1)
        held, place = np.nonzero(number)
        tables = {part: np.zeros((len(VALUES), 1, len(held))) for part in ("", "_squares")}
        for part, table in tables.items():
            source = part if squares else ""
            names = [f"{value}{source}_{cut}_{'all' if s < 0 else s}_{g}" for _, _, s, g in cells]
            table[VALUES.index(value), 0] = np.stack([kinds[name] for name in names], axis=1)[held, place]
        code = np.array([cell for cell, *_ in cells])
        count = number[held, place]
        clusters = tuple(canonical_ids(kinds[name]) for name in shape.cluster_names)
        return Summary(
            ks=(k,),
            labelled=shape.labelled,
            group_names=self.lists.rows.group_names,
            query_ids=KindIds(engine, keys, kinds),  # type: ignore[arg-type]
            lengths=kinds["length"],
            relevant=kinds["relevant"],
            key=held * (2 * shape.groups) + code[place],
            count=count,
            weight=count,
            sums=tables[""],
            squares=tables["_squares"],
            quality=np.empty((0, 1, len(order))),
            marks=np.zeros(0, np.uint64),
            clusters=clusters,
            cluster_names=self.lists.rows.roles.cluster,
            times=kinds["times"],
            copied=self._copies,
            values=(value,),
            binned=None if clusters else partial(self._binned, keys, kinds),
        )

    def _binned(self, keys: list[str], kinds: Columns, residuals: list[Residuals]) -> list[Residuals]:
        """Bring residuals of kinds to their lists, and put these together into bins."""
        import pyarrow as pa

        columns = {key: kinds[key] for key in keys}
        for j, each in enumerate(residuals):
            column = np.zeros(len(kinds["length"]))
            column[each.codes] = each.values
            columns[f"residual{j}"] = column
        engine = self._engine
        engine.put("residuals", pa.table(columns))
        text = sql.binned(engine.named("wide"), engine.named("residuals"), keys, len(residuals), BINS)
        found = arrays(engine.fetch(text), "bin")
        return [_scaled(found["bin"], found[f"residual{j}"]) for j in range(len(residuals))]

    def _qualities(self, k: int) -> Summary:
        engine, cut = self._engine, self.lists.cut(k)
        kinds = arrays(engine.fetch(sql.qualities(engine.named("lists"), cut)))
        order = np.lexsort([kinds[name] for name in QUALITY])
        quality = np.stack([kinds[name][order] for name in QUALITY])[:, None]
        quality[1] *= cut / k  # beyond the longest list precision alone divides by the cut-off
        none = np.zeros(0)
        return Summary(
            ks=(k,),
            labelled=True,
            group_names=self.lists.rows.group_names,
            query_ids=np.zeros(0, np.int64),
            lengths=np.ones(len(order), np.int64),
            relevant=np.zeros(len(order), np.int64),
            key=np.zeros(0, np.int64),
            count=none,
            weight=none,
            sums=np.zeros((len(VALUES), 1, 0)),
            squares=np.zeros((len(VALUES), 1, 0)),
            quality=quality,
            marks=np.zeros(0, np.uint64),
            times=kinds["times"][order],
            copied=(0, 0),
            values=("quality",),
        )


def _scaled(codes: NDArray[np.int64], values: NDArray[np.float64]) -> Residuals:
    moved = np.flatnonzero(values)
    length = float(np.sqrt(values @ values)) or 1.0
    return Residuals(codes[moved], values[moved] / length)
