"""`--engine`: audits of tables that are not read into memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.audits.audit import Audit
from evenrank.checks import choose
from evenrank.engines.audits import audit_table
from evenrank.engines.engine import Roles
from evenrank.engines.files import checked_parts, parquet_files
from evenrank.errors import ConfigError
from evenrank.extras import require
from evenrank.io.limits import byte_limit
from evenrank.io.parquet_footer import BadParquet, read_footer

NEEDED = 4  # columns: query, group, score and relevance
ENGINES = ("memory", "duckdb", "spark")
PANEL = "Rows that do not fit in memory"
ADDRESS = re.compile(r"^([a-z][a-z0-9+.-]+):/+")  # of a store, whose second slash a path loses

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="memory; duckdb: Parquet files, a folder or a glob, whatever their size; spark: the same on a cluster.  "
        "[default: memory; duckdb for a folder, a glob, and more rows than memory may hold]",
        rich_help_panel=PANEL,
    ),
]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Spark's master, as spark://host:7077 or local[4].", rich_help_panel=PANEL),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="The most memory that DuckDB takes, as 2GB.", rich_help_panel=PANEL),
]


def engine_of(engine: str | None, files: Sequence[Path], master: str | None, memory: str | None) -> str:
    """Settle which engine audits the files."""
    if engine is None:
        many = any(map(_several, files))
        beyond = memory is not None or many or _beyond_memory(files)
        engine = "spark" if master is not None else "duckdb" if beyond else "memory"
    choose(engine, ENGINES, what="--engine")
    if master is not None and engine != "spark":
        raise ConfigError(f"--master is for --engine spark; got --engine {engine}. Leave one of them out.")
    if memory is not None and engine != "duckdb":
        raise ConfigError(f"--memory is for --engine duckdb; got --engine {engine}. Leave it out.")
    return engine


def _several(path: Path) -> bool:
    """Whether a path stands for Parquet files: a folder that holds some, or a pattern."""
    if path.is_dir():
        return next(path.rglob("*.parquet"), None) is not None
    return has_magic(str(path)) and not path.exists()


def _beyond_memory(files: Sequence[Path]) -> bool:
    """Whether Parquet files have more rows than may be read into memory; what cannot be read is told by the reader."""
    if not all(path.suffix.lower() == ".parquet" and path.is_file() for path in files):
        return False
    try:
        rows = sum(read_footer(path).n_rows for path in files)
    except (BadParquet, OSError):
        return False
    return 8 * NEEDED * rows > byte_limit()


def refuse(engine: str, **options: Any) -> None:
    """Refuse options that need rows in memory."""
    for name, value in options.items():
        if value:
            raise ConfigError(
                f"--{name.replace('_', '-')} is not for --engine {engine}, which holds no rows. Leave it out, or audit "
                "a sample of the queries in memory."
            )


def audited(
    engine: str,
    files: list[Path],
    roles: Roles,
    ks: Sequence[int],
    *,
    master: str | None,
    memory: str | None,
    **how: Any,
) -> tuple[Audit, list[Path]]:
    """Audit Parquet files in an engine.

    Returns
    -------
    audit : Audit
        What was found.
    files : list of Path
        Those that were read, for the record; none where they are not on this machine.
    """
    labelled = roles.relevance is not None
    if engine == "duckdb":
        from evenrank.duckdb import DuckEngine

        require("duckdb")
        paths, title = parquet_files(files)
        checked_parts(paths, roles)
        with DuckEngine(paths, title, memory=memory) as duck:
            return audit_table(duck, roles, ks, labelled=labelled, **how), paths
    if master is None:
        raise ConfigError("--engine spark needs --master, as spark://host:7077 or local[4].")
    require("pyspark")
    from evenrank.spark.engine import SparkEngine, fit_partitions, parquet_of, session_for

    remote = [ADDRESS.sub(r"\1://", str(path)) for path in files if ADDRESS.match(str(path))]
    paths = [] if remote else parquet_files(files)[0]
    if not remote:
        checked_parts(paths, roles)
    with session_for(master) as session:
        df = parquet_of(session, remote or [str(path.absolute()) for path in paths])
        if not remote:
            fit_partitions(session, sum(path.stat().st_size for path in paths))
        with SparkEngine(df, str(files[0])) as spark:
            return audit_table(spark, roles, ks, labelled=labelled, **how), paths
