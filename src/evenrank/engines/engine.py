"""What an engine must do, and which column of a table has which part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.frame_columns import item_column
from evenrank.io.columns import MissingColumn
from evenrank.row_checks import listed

FLOATS = ("double", "float")
KINDS = ("text", "integer", *FLOATS, "decimal", "boolean", "other")


class Engine(Protocol):
    """DuckDB or Spark: what runs statements over one table of rows.

    Attributes
    ----------
    source : str
        The table of rows, as statements call it.
    title : str
        What an error calls it.
    kinds : dict of str to str
        Column → one of `KINDS`.
    backslashes : bool
        Whether a backslash in a text must be doubled.
    """

    backslashes: bool
    source: str
    title: str
    kinds: dict[str, str]

    def fetch(self, sql: str) -> Any:
        """Run a statement and bring its rows here, as a pyarrow table."""

    def view(self, name: str, sql: str) -> None:
        """Call what a statement gives by a name."""

    def keep(self, name: str, sql: str) -> None:
        """Run a statement and keep its rows under a name, in the engine."""

    def put(self, name: str, table: Any) -> None:
        """Give a small pyarrow table to the engine under a name."""

    def quoted(self, name: str) -> str:
        """Write the name of a column of the rows."""

    def named(self, name: str) -> str:
        """Give the name that statements know a view or table by."""


@dataclass(frozen=True)
class Roles:
    """Which column has which part, as in `evenrank.read`; ``rank`` stands in for ``score``."""

    query: str = "qid"
    relevance: str | None = "relevance"
    group: str = "group"
    score: str = "score"
    rank: str | None = None
    item: str | None = None
    sample_weight: str | None = None
    cluster: tuple[str, ...] = ()
    relevance_threshold: float = 1.0
    advice: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.group, str):
            raise ConfigError(
                f"group must be the name of one column of labels; got {self.group!r}. Groups as probabilities need the "
                "rows in memory: RankingData.with_membership."
            )

    @property
    def order(self) -> str:
        """The column that orders lists."""
        return self.score if self.rank is None else self.rank

    def settled(self, engine: Engine) -> Roles:
        """Check them against the columns that there are, and find the items' column.

        Raises
        ------
        MissingColumn
            A named column is absent.
        ConfigError
            The query column has another part.
        """
        names = list(engine.kinds)
        wanted = [
            ("query", self.query),
            ("relevance", self.relevance),
            ("group", self.group),
            ("score", self.order),
            ("item", self.item),
            ("sample_weight", self.sample_weight),
            *(("cluster", name) for name in self.cluster),
        ]
        for role, name in wanted:
            if name is not None and name not in names:
                raise MissingColumn(
                    role,
                    f"{engine.title}: {role} column {name!r} is not in the data; it has {listed(names)}.",
                    self.advice.get(role, f"Name the right column with {role}=."),
                )
            if role != "query" and name == self.query:
                raise ConfigError(
                    f"{engine.title}: the query column must have no other part; {name!r} is also the {role} column. "
                    "Name another column for one of the two."
                )
        for role, name in wanted:
            numeric = role in ("score", "relevance", "sample_weight") and name is not None
            if numeric and engine.kinds[str(name)] in ("text", "other"):
                raise DataError(f"{engine.title}: {role} column {name!r} must hold numbers; it holds other values.")
        taken = [name for _, name in wanted]
        return Roles(**{**self.__dict__, "item": item_column(self.item, names, taken)})


def arrays(table: Any, *by: str) -> dict[str, NDArray[Any]]:
    """The columns of a pyarrow table as numpy arrays, NaN for null, sorted by some of them, the last one first."""
    found = {name: table[name].to_numpy() for name in table.column_names}
    if not by or bool((np.diff(found[by[-1]]) > 0).all()):
        return found
    order = np.lexsort([found[name] for name in by]) if len(by) > 1 else np.argsort(found[by[0]])
    return {name: values[order] for name, values in found.items()}
