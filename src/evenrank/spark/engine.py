"""`SparkEngine`: statements over a DataFrame, on the session that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from uuid import uuid4

from evenrank.errors import ConfigError, DataError, one_line
from evenrank.extras import require

INTEGERS = ("tinyint", "smallint", "int", "bigint")
PARTITIONS = "spark.sql.shuffle.partitions"
PARTITION_BYTES = 1 << 25  # of files, which are several times as large in memory
PLAIN = {"string": "text", "double": "double", "float": "float", "boolean": "boolean"}


@contextmanager
def session_for(master: str) -> Iterator[Any]:
    """Make a session for a command, which ends with it; a program gives its own.

    Spark's own settings (spark-defaults.conf, SPARK_CONF_DIR) hold, as in any program that it runs.
    """
    require("pyspark")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.master(master).appName("evenrank")
        quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        for name, value in quiet.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    except PySparkException as error:
        raise ConfigError(f"Spark cannot start on {master}: {_reason(error)}") from None
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def in_one_line(title: str) -> Iterator[None]:
    """Make a `DataError` of one line of what Spark raises, which has pages of its own; ``title`` names the rows."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise DataError(f"{title}: Spark cannot go on: {_reason(error)}") from None
    except Exception as error:
        if type(error).__module__.startswith(("py4j", "grpc")):
            raise DataError(f"{title}: Spark cannot go on: {_reason(error)}") from None
        raise


def parquet_of(session: Any, paths: Sequence[str]) -> Any:
    """Take Parquet files as a DataFrame; what Spark cannot read is a DataError in one line."""
    with in_one_line(paths[0]):
        return session.read.parquet(*paths)


def fit_partitions(session: Any, size: int) -> None:
    """Cut rows that move between workers by their size, unless Spark's settings say how.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        A session that `session_for` made.
    size : int
        The bytes of the files. Spark's 200 partitions take minutes where there is little in them.
    """
    if not session.sparkContext.getConf().contains(PARTITIONS):
        wanted = max(session.sparkContext.defaultParallelism, -(-size // PARTITION_BYTES))
        session.conf.set(PARTITIONS, str(wanted))


class SparkEngine:
    """A DataFrame and the views that an audit makes beside it; they are dropped at the end.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The rows; its session runs everything, whatever its kind: local, on a cluster, or Spark Connect.
    title : str
        What an error calls the rows.
    """

    backslashes = True

    def __init__(self, df: Any, title: str = "df") -> None:
        require("pyspark")
        require("pyarrow", extra="spark")
        session = getattr(df, "sparkSession", None)
        if session is None or not hasattr(df, "createOrReplaceTempView"):
            raise DataError(f"df must be a Spark DataFrame; got {type(df).__name__}.")
        self.title = title
        self._session = session
        self._prefix = f"evenrank_{uuid4().hex[:8]}_"
        self._views: list[str] = []
        self._kept: list[Any] = []
        self.kinds = {name: _kind(kind) for name, kind in df.dtypes}
        self.source = self.named("source")
        self._name(self.source, df)

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from pyspark.errors import PySparkException

        try:
            # Spark Connect looks up the views of a table once more to forget it, so views go last.
            for table in reversed(self._kept):
                table.unpersist()
            for name in reversed(self._views):
                self._session.catalog.dropTempView(name)
        except (PySparkException, OSError):
            if error is None:
                raise

    def _name(self, name: str, df: Any) -> None:
        df.createOrReplaceTempView(name)
        self._views.append(name)

    def _run(self, sql: str, act: Any) -> Any:
        with in_one_line(self.title):
            return act(self._session.sql(sql))

    def named(self, name: str) -> str:
        return self._prefix + name

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def fetch(self, sql: str) -> Any:
        return self._run(sql, lambda df: df.toArrow())

    def view(self, name: str, sql: str) -> None:
        self._run(sql, lambda df: self._name(self.named(name), df))

    def keep(self, name: str, sql: str) -> None:
        kept = self._run(sql, lambda df: df.persist())
        self._kept.append(kept)
        self._name(self.named(name), kept)

    def put(self, name: str, table: Any) -> None:
        self._name(self.named(name), self._session.createDataFrame(table))


def _kind(name: str) -> str:
    if name in PLAIN:
        return PLAIN[name]
    if name.startswith("decimal"):
        return "decimal"
    return "integer" if name in INTEGERS else "other"


def _reason(error: Exception) -> str:
    """The first line of an error, which often has pages of the cluster's own; of a failed job, that of its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return one_line((causes or lines or [type(error).__name__])[-1 if causes else 0])[:300]
