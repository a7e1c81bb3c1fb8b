"""The rows of a table as the statements expect them: checked, with groups as codes and near ties resolved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.audits.ids import sorted_labels
from evenrank.engines import sql
from evenrank.engines.engine import Engine, Roles
from evenrank.errors import DataError, DataWarning
from evenrank.labels import is_missing, whole_labels
from evenrank.ranking import Ranking
from evenrank.rounding import EXACT, rounded_scores
from evenrank.rounding import NEAR as APART
from evenrank.row_checks import LARGEST, shown

MOST_GROUPS = 10_000
ROWS = "rows"
# Wider than 4 ulps of the larger score, at any power of two: what may be tied is then looked at by the rule itself.
NEAR = {"double": (2.0**-49, 1e-307), "float": (2.0**-20, 1e-37)}
RULES = {
    "query": ("query id must not be empty", "Fill it or drop the row."),
    "score": ("score must be a finite number", "Fill or drop it."),
    "relevance": ("relevance must be a finite number ≥ 0", "Drop the row or fill the value."),
    "weight": ("sample_weight must be a finite number ≥ 0", "Drop the row or fill the value."),
    "item": ("item id must not be empty", "Fill it or drop the row."),
    "cluster0": ("cluster must not be empty", "Fill it or drop the row."),
    "cluster1": ("cluster must not be empty", "Fill it or drop the row."),
}


@dataclass(frozen=True)
class TableRows:
    """A view of checked rows in an engine.

    Attributes
    ----------
    engine : Engine
        The engine.
    roles : Roles
        The parts of its columns.
    group_names : tuple
        The sorted labels.
    number : int
        The number of rows.
    """

    engine: Engine
    roles: Roles
    group_names: tuple[Any, ...]
    number: int

    @classmethod
    def of(cls, engine: Engine, roles: Roles) -> TableRows:
        """Make the view; a row that breaks a rule is a `DataError`."""
        roles = roles.settled(engine)
        names = _groups(engine, roles)
        engine.view(ROWS, _view(engine, roles))
        clusters = [f"cluster{j}" for j in range(len(roles.cluster))]
        columns = {"query": roles.query, **dict(zip(clusters, roles.cluster, strict=True))}
        columns |= {} if roles.item is None else {"item": roles.item}
        text = [name for name, column in columns.items() if engine.kinds[column] in ("text", "other")]
        rules = sql.broken(clusters, text)
        counts = engine.fetch(sql.checks(engine.named(ROWS), rules)).to_pylist()[0]
        number = int(counts.pop("number"))
        if not number:
            raise DataError(f"{engine.title}: there are no rows; at least one is needed.")
        for name, bad in counts.items():
            if bad:
                raise _refusal(engine, name, rules[name], int(bad))
        if roles.rank is None and engine.kinds[roles.score] in ("integer", "decimal"):
            _note_rounded(engine, roles)
        return cls(engine, roles, names, number)

    @property
    def near(self) -> tuple[float, float]:
        """How near scores must be for the rule of ties to be asked."""
        return NEAR["float" if self.engine.kinds[self.roles.order] == "float" else "double"]

    def resolve_ties(self, near: str) -> str:
        """Make a view of the rows of some queries, in which tied scores are equal; ``near`` names their table."""
        engine = self.engine
        rows = engine.named(ROWS)
        found = engine.fetch(
            f"SELECT DISTINCT r.query, r.score FROM {rows} r JOIN {near} n ON n.query = r.query "
            "ORDER BY query, score DESC"
        )
        query = found["query"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        score = found["score"].to_numpy()
        ptr = np.flatnonzero(np.concatenate([[True], query[1:] != query[:-1], [True]]))
        own = score.astype(np.float32) if self.near == NEAR["float"] else score
        first = Ranking(own, ptr).first + np.repeat(ptr[:-1], np.diff(ptr))
        moved = np.flatnonzero(score[first] != score)
        blocks = found.take(moved)
        engine.put("blocks", blocks.append_column("block", [score[first[moved]]]))
        engine.view(
            "resolved",
            f"SELECT r.query, r.code, r.relevance, r.weight, r.raw, coalesce(b.block, r.score) AS score, r.item"
            f"{''.join(f', r.cluster{j}' for j in range(len(self.roles.cluster)))} "
            f"FROM {rows} r JOIN {near} n ON n.query = r.query "
            f"LEFT JOIN {engine.named('blocks')} b ON b.query = r.query AND b.score = r.score",
        )
        return engine.named("resolved")


def _refusal(engine: Engine, name: str, condition: str, bad: int) -> DataError:
    """Make the error for rows that break a rule, with the first of them that is found."""
    rule, remedy = RULES[name]
    found = engine.fetch(f"SELECT query, {name} AS value FROM {engine.named(ROWS)} WHERE {condition} LIMIT 1")
    value, query = found["value"][0].as_py(), found["query"][0].as_py()
    where = "" if name == "query" else f", one of them in query {shown(query)}"
    got = "" if value is None or value == "" else f"; got {value:g}"
    if name in ("relevance", "weight") and value is not None and LARGEST < value < np.inf:
        rule = f"{rule.split(' ')[0]} must be at most {LARGEST:g}"
    return DataError(f"{engine.title}: {rule}{got}, in {bad:,} rows{where}. {remedy}")


def _note_rounded(engine: Engine, roles: Roles) -> None:
    """Warn of exact scores so large that the rule of ties, for floats, ties some of a list that differ."""
    large = engine.fetch(f"SELECT max(abs(score)) AS large FROM {engine.named(ROWS)}")["large"][0].as_py()
    if large < EXACT:
        return
    exact = f"s.{engine.quoted(roles.score)}"
    steps = (
        f"SELECT {exact} AS exact, lag({exact}) OVER list AS below FROM {engine.source} s "
        f"WINDOW list AS (PARTITION BY {_column(engine, roles.query)} ORDER BY {exact})"
    )
    high, low = "CAST(exact AS DOUBLE)", "CAST(below AS DOUBLE)"
    number = engine.fetch(
        f"SELECT count(*) AS number FROM ({steps}) steps "
        f"WHERE exact > below AND {high} - {low} <= greatest(abs({high}), abs({low})) * {sql.number(APART)}"
    )["number"][0].as_py()
    if number:
        warnings.warn(rounded_scores(roles.score, number), DataWarning, stacklevel=4)


def _groups(engine: Engine, roles: Roles) -> tuple[Any, ...]:
    """Find the groups' labels and give the engine their codes."""
    import pyarrow as pa

    column = _column(engine, roles.group)
    found = engine.fetch(f"SELECT {column} AS label FROM {engine.source} s GROUP BY {column} LIMIT {MOST_GROUPS + 1}")
    if len(found) > MOST_GROUPS:
        raise DataError(
            f"{engine.title}: column {roles.group!r} has more than {MOST_GROUPS:,} different groups; groups are "
            "categories. Cut them into bands in a column of its own."
        )
    labels = tuple(
        sorted_labels(whole_labels([label for label in found["label"].to_pylist() if not is_missing(label)]))
    )
    codes = pa.array(np.arange(len(labels), dtype=np.int32))
    engine.put(
        "groups",
        pa.table({"evenrank_label": pa.array(labels, found.schema.field("label").type), "evenrank_code": codes}),
    )
    return labels


def _column(engine: Engine, name: str) -> str:
    """A column of ids or labels, as text unless it holds text or numbers; empty text is no value."""
    column = f"s.{engine.quoted(name)}"
    kind = engine.kinds[name]
    if kind == "text":
        return f"nullif({column}, '')"
    if kind in ("other", "decimal"):
        return f"CAST({column} AS STRING)"
    return column


def _view(engine: Engine, roles: Roles) -> str:
    def numbers(name: str | None, default: str) -> str:
        return default if name is None else f"CAST(s.{engine.quoted(name)} AS DOUBLE) + 0.0"

    order = numbers(roles.order, "")
    score = order if roles.rank is None else f"0.0 - ({order})"
    score = f"CAST({score} AS DOUBLE)"
    label = _column(engine, roles.group)
    item = "0" if roles.item is None else _column(engine, roles.item)
    clusters = [f"{_column(engine, name)} AS cluster{j}" for j, name in enumerate(roles.cluster)]
    return f"""
        SELECT {
        ", ".join(
            [
                f"{_column(engine, roles.query)} AS query",
                "coalesce(g.evenrank_code, -1) AS code",
                f"CAST({numbers(roles.relevance, '0.0')} AS DOUBLE) AS relevance",
                f"CAST({numbers(roles.sample_weight, '1.0')} AS DOUBLE) AS weight",
                f"{score} AS raw",
                f"{score} AS score",
                f"{item} AS item",
                *clusters,
            ]
        )
    }
        FROM {engine.source} s LEFT JOIN {engine.named("groups")} g ON g.evenrank_label = {label}"""
