"""Audits and measures of Parquet files larger than memory, with DuckDB."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from evenrank.engines.audits import audit_table
from evenrank.engines.engine import Roles
from evenrank.engines.files import checked_parts, parquet_files
from evenrank.engines.measures import measure_table
from evenrank.errors import ConfigError, DataError, one_line
from evenrank.extras import require
from evenrank.page.audit import Audit
from evenrank.threads import interruptible

SIZE = re.compile(r"[0-9]+(\.[0-9]+)?\s*[KMGT]i?B")
PathLike = str | os.PathLike[str]


class DuckEngine:
    """A DuckDB of its own, in memory and in a folder for what does not fit there.

    Parameters
    ----------
    paths : sequence of Path
        The Parquet files.
    title : str
        What an error calls them.
    memory : str, optional
        The most memory that DuckDB takes, such as "2GB"; by default its own choice, 80 % of the machine's.
    threads : int, optional
        The threads it takes; by default as many as there are processors.
    """

    backslashes = False

    def __init__(
        self, paths: Sequence[Path], title: str, *, memory: str | None = None, threads: int | None = None
    ) -> None:
        if memory is not None and not SIZE.fullmatch(memory):
            raise ConfigError(f"memory must be a size such as 2GB or 500MB; got {memory!r}.")
        self._duckdb = require("duckdb")
        require("pyarrow", extra="duckdb")
        self.title = title
        self._folder = tempfile.TemporaryDirectory(prefix="evenrank-")
        settings: dict[str, Any] = {"temp_directory": self._folder.name, "preserve_insertion_order": False}
        settings |= {} if memory is None else {"memory_limit": memory}
        settings |= {} if threads is None else {"threads": threads}
        self._prefix = f"evenrank_{uuid4().hex[:8]}_"
        try:
            self._connection = self._duckdb.connect(config=settings)
        except self._duckdb.Error as error:
            self._folder.cleanup()
            raise self._refusal(error) from None
        self._connection.execute("CREATE MACRO xxhash64(a, b, c) AS CAST(hash(a, b, c) >> 1 AS BIGINT)")
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        self.source = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
        self.kinds = self._kinds()

    def __enter__(self) -> DuckEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._folder.cleanup()

    def _kinds(self) -> dict[str, str]:
        described = self._run(f"DESCRIBE SELECT * FROM {self.source}").fetchall()
        return {name: _kind(str(kind)) for name, kind, *_ in described}

    def _run(self, sql: str) -> Any:
        return self._asked(lambda: self._connection.execute(sql))

    def _asked(self, query: Callable[[], Any]) -> Any:
        try:
            return interruptible(query, self._connection.interrupt)
        except self._duckdb.Error as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> DataError:
        return DataError(f"{self.title}: DuckDB cannot go on: {one_line(str(error))}")

    def named(self, name: str) -> str:
        return self._prefix + name

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def fetch(self, sql: str) -> Any:
        return self._asked(lambda: self._connection.sql(sql).to_arrow_table())

    def view(self, name: str, sql: str) -> None:
        self._run(f"CREATE OR REPLACE TEMP VIEW {self.named(name)} AS {sql}")

    def keep(self, name: str, sql: str) -> None:
        self._run(f"CREATE OR REPLACE TEMP TABLE {self.named(name)} AS {sql}")

    def put(self, name: str, table: Any) -> None:
        self._connection.register(self.named(name), table)


def _kind(name: str) -> str:
    if name in ("DOUBLE", "FLOAT", "BOOLEAN"):
        return name.lower()
    if name == "VARCHAR" or name.startswith("ENUM"):
        return "text" if name == "VARCHAR" else "other"
    if name.startswith("DECIMAL"):
        return "decimal"
    return "integer" if name.endswith("INT") or name.endswith("INTEGER") else "other"


def audit(
    path: PathLike | Sequence[PathLike],
    ks: Sequence[int] = (1, 3, 5, 10),
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str = "group",
    score: str = "score",
    rank: str | None = None,
    item: str | None = None,
    sample_weight: str | None = None,
    cluster: str | Sequence[str] = (),
    relevance_threshold: float = 1.0,
    confidence: float = 0.95,
    items: bool = True,
    min_share: float = 0.0,
    min_count: float = 0,
    memory: str | None = None,
    threads: int | None = None,
) -> Audit:
    """Audit a Parquet file, a folder or a glob of them that may be larger than memory.

    Parameters
    ----------
    path : str, path or sequence of them
        Parquet files, folders of them, or globs such as "logs/2026-*.parquet". A query may be spread over files.
    ks : sequence of int
        The cut-offs.
    query, group, score, item, sample_weight : str
        The columns, as in `evenrank.read`; ``item=None`` takes the column ``item`` if there is one.
    relevance : str or None
        The column of relevance; None for logs without labels.
    rank : str, optional
        A column of ranks, 1 first, instead of scores.
    cluster : str or sequence of two str
        Columns of what queries share, such as a user.
    relevance_threshold : float
        Relevance at or above it counts as relevant.
    confidence, items, min_share, min_count
        As in `evenrank.audit`.
    memory : str, optional
        The most memory that DuckDB takes, such as "2GB"; the rest goes to a temporary folder.
    threads : int, optional
        The threads that DuckDB takes.

    Returns
    -------
    Audit
        The same as `evenrank.audit` gives of the same rows in memory.
    """
    roles = Roles(query, relevance, group, score, rank, item, sample_weight, _several(cluster), relevance_threshold)
    paths, title = parquet_files(path)
    checked_parts(paths, roles)
    with DuckEngine(paths, title, memory=memory, threads=threads) as engine:
        return audit_table(
            engine,
            roles,
            ks,
            confidence=confidence,
            labelled=relevance is not None,
            items=items,
            min_share=min_share,
            min_count=min_count,
        )


def measure(
    path: PathLike | Sequence[PathLike],
    measures: str | Sequence[str],
    *,
    query: str = "qid",
    relevance: str | None = "relevance",
    group: str = "group",
    score: str = "score",
    rank: str | None = None,
    sample_weight: str | None = None,
    relevance_threshold: float = 1.0,
    memory: str | None = None,
    threads: int | None = None,
) -> dict[str, float]:
    """Measure the rankings of Parquet files that may be larger than memory.

    Parameters
    ----------
    path, query, relevance, group, score, rank, sample_weight, relevance_threshold, memory, threads
        As in `audit`.
    measures : str or sequence of str
        Such as "ndcg@10", "dp@5" or "four_fifths@5": NDCG, precision, recall, gaps and the four-fifths ratio.

    Returns
    -------
    dict
        Measure → value, the same as `evenrank.measure` gives of the same rows in memory.
    """
    roles = Roles(query, relevance, group, score, rank, None, sample_weight, (), relevance_threshold)
    paths, title = parquet_files(path)
    checked_parts(paths, roles)
    with DuckEngine(paths, title, memory=memory, threads=threads) as engine:
        return measure_table(engine, roles, measures)


def _several(cluster: str | Sequence[str]) -> tuple[str, ...]:
    return (cluster,) if isinstance(cluster, str) else tuple(cluster)
