"""The SQL of an audit: one text that DuckDB and Spark both run, from rows to sums per list.

Every number that a formula of this library gives (the sums of discounts over ranks, which scores are tied beyond those
that are equal) comes in from it, in small tables. What is left to SQL is to count, to sum and to look up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WHOLE = 2.0**53  # doubles from here on are whole numbers, and beyond what Spark takes the floor of
MODULI = (1 << 40, (1 << 40) - 87)  # without a common divisor, so that remainders by both tell marks apart


@dataclass(frozen=True)
class Shape:
    """What the statements are written for.

    Attributes
    ----------
    ks : tuple of int
        The cut-offs, ascending.
    reach : dict of int to float
        Cut-off → the sum of the discounts down to it.
    clusters : int
        The number of clusterings.
    weighted : bool
        Whether rows have weights.
    threshold : float
        Relevance at or above it counts as relevant.
    labelled : bool
        Whether rows have labels.
    groups : int
        The number of groups.
    near : tuple of float
        Scores may be tied if they are no further apart than the first number times the larger, plus the second.
    """

    ks: tuple[int, ...]
    reach: dict[int, float]
    clusters: int
    weighted: bool
    threshold: float
    labelled: bool
    groups: int
    near: tuple[float, float]

    @property
    def cluster_names(self) -> list[str]:
        """The columns of clusters."""
        return [f"cluster{j}" for j in range(self.clusters)]


def number(value: float) -> str:
    """Write a double so that both engines read back the same bits."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def ranked(rows: str, shape: Shape) -> str:
    """Rows with their places: ``first``, the items above; ``size``, those that share the score."""
    relative, absolute = map(number, shape.near)
    ahead = "(lag(score) OVER list)"
    gap = f"greatest(abs({ahead}), abs(score)) * {relative} + {absolute}"
    return f"""
        SELECT query, code, relevance, weight, score, raw, item, {"".join(f"{name}, " for name in shape.cluster_names)}
            (rank() OVER list) - 1 AS first,
            count(*) OVER (PARTITION BY query ORDER BY score DESC RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS size,
            CASE WHEN {ahead} > score AND {ahead} - score <= {gap} THEN 1 ELSE 0 END AS near
        FROM {rows} WINDOW list AS (PARTITION BY query ORDER BY score DESC)"""


def levels(rows: str, places: str, shape: Shape) -> str:
    """Sums over the rows of each list, group and relevance."""
    last = shape.ks[-1]
    sums = []
    for k in shape.ks:
        top = f"CAST(least(greatest({k} - first, 0), size) AS DOUBLE) / size"
        seen = number(shape.reach[k])
        exposure = f"(least(through, {seen}) - least(above, {seen})) / size"
        for name, value in (("top", top), ("exposure", exposure)):
            sums.append(f"sum(weight * ({value})) AS {name}_{k}")
            sums.append(f"sum(weight * ({value}) * ({value})) AS {name}_squares_{k}")
            if shape.weighted:
                sums.append(f"sum({value}) AS {name}_plain_{k}")
    marked = [f"CAST(sum(CAST(mark % {m} AS BIGINT)) AS BIGINT) AS mark{j}" for j, m in enumerate(MODULI)]
    shared = [f"{side}({name}) AS {name}_{side}" for name in shape.cluster_names for side in ("min", "max")]
    return f"""
        SELECT query, code, relevance, count(*) AS number, sum(weight) AS weight, max(near) AS near,
            max(CASE WHEN abs(raw) >= {number(WHOLE)} THEN 0 WHEN raw = floor(raw) THEN 0 ELSE 1 END) AS broken,
            max(size) AS tied,
            {", ".join([*marked, *shared, *sums])}
        FROM (
            SELECT r.*, a.total AS above, b.total AS through, xxhash64(r.raw, r.relevance, r.code) AS mark
            FROM ({ranked(rows, shape)}) r
            JOIN {places} a ON a.place = least(r.first, {last})
            JOIN {places} b ON b.place = least(r.first + r.size, {last})
        ) placed
        GROUP BY query, code, relevance"""


def lists(levels: str, places: str, shape: Shape, more: Sequence[str] = ()) -> str:
    """One row per list: length, quality, clusters, marks and ``more`` sums, numbered in the order of the ids."""
    relevant = f"relevance >= {number(shape.threshold)}"
    plain = "_plain" if shape.weighted else ""
    sums, quality = [], []
    for k in shape.ks if shape.labelled else ():
        sums.append(f"sum(CASE WHEN {relevant} THEN top{plain}_{k} ELSE 0 END) AS hits_{k}")
        sums.append(f"sum(relevance * exposure{plain}_{k}) AS gain_{k}")
        quality.append(f"gain_{k} / nullif(ideal_{k}, 0) AS ndcg_{k}")
        quality.append(f"hits_{k} / {k} AS precision_{k}")
        quality.append(f"hits_{k} / nullif(relevant, 0) AS recall_{k}")
    sums += [f"{side}({name}_{side}) AS {name}_{side}" for name in shape.cluster_names for side in ("min", "max")]
    ideal = f"LEFT JOIN ({ideals(levels, places, shape)}) i ON i.query_of_ideal = t.query" if shape.labelled else ""
    return f"""
        SELECT row_number() OVER (ORDER BY query) - 1 AS list, t.*{"".join(f", {text}" for text in quality)} FROM (
            SELECT query, CAST(sum(number) AS BIGINT) AS length,
                CAST(sum(CASE WHEN {relevant} THEN number ELSE 0 END) AS BIGINT) AS relevant,
                max(broken) AS broken, max(tied) AS tied,
                CAST(sum(mark0) AS BIGINT) AS mark0, CAST(sum(mark1) AS BIGINT) AS mark1
                {"".join(f", {text}" for text in [*sums, *more])}
            FROM {levels} GROUP BY query
        ) t {ideal}"""


def ideals(levels: str, places: str, shape: Shape) -> str:
    """The gain that each list would have if its most relevant items came first; of lists without any, nothing."""
    last = shape.ks[-1]
    gains = []
    for k in shape.ks:
        seen = number(shape.reach[k])
        gains.append(f"sum(relevance * (least(b.total, {seen}) - least(a.total, {seen}))) AS ideal_{k}")
    up_to = "sum(number) OVER (PARTITION BY query ORDER BY relevance DESC ROWS UNBOUNDED PRECEDING)"
    return f"""
        SELECT l.query AS query_of_ideal, {", ".join(gains)}
        FROM (
            SELECT query, relevance, number, CAST({up_to} AS BIGINT) AS up_to FROM (
                SELECT query, relevance, CAST(sum(number) AS BIGINT) AS number FROM {levels}
                WHERE relevance > 0 GROUP BY query, relevance
            ) n
        ) l
        JOIN {places} a ON a.place = least(l.up_to - l.number, {last})
        JOIN {places} b ON b.place = least(l.up_to, {last})
        GROUP BY l.query"""


def cells(levels: str, lists: str, shape: Shape) -> str:
    """Sums per list, stratum and group, with keys as in a `Summary`."""
    stratum = f"CASE WHEN relevance >= {number(shape.threshold)} THEN 1 ELSE 0 END" if shape.labelled else "0"
    names = [f"{name}{squares}_{k}" for k in shape.ks for name in ("top", "exposure") for squares in ("", "_squares")]
    return f"""
        SELECT l.list * {2 * shape.groups} + stratum * {shape.groups} + code AS cell, c.*
        FROM (
            SELECT query, code, {stratum} AS stratum, CAST(sum(number) AS BIGINT) AS number, sum(weight) AS weight,
                {", ".join(f"sum({name}) AS {name}" for name in names)}
            FROM {levels} WHERE code >= 0 GROUP BY query, code{f", {stratum}" if shape.labelled else ""}
        ) c JOIN (SELECT list, query AS query_of_list FROM {lists}) l ON l.query_of_list = c.query"""


GRAIN = 2.0**43  # exposures are told apart to this part: equal sums, added up in another order, are one kind


def _grained(value: str) -> str:
    return f"CAST(floor(({value}) * {number(GRAIN)} + {number(0.5)}) AS DOUBLE) / {number(GRAIN)}"


def kind_columns(shape: Shape, value: str, k: int, *, squares: bool) -> dict[str, tuple[int, int, str]]:
    """What tells kinds of lists apart: column → stratum (-1: all rows), group and what is summed there."""
    strata = (-1,) if value == "exposure" or not shape.labelled else (0, 1)
    places = [(stratum, code) for stratum in strata for code in range(shape.groups)]
    named = {f"number_{'all' if s < 0 else s}_{g}": (s, g, "number") for s, g in places}
    for part in ("", "_squares") if squares else ("",):
        named |= {f"{value}{part}_{k}_{'all' if s < 0 else s}_{g}": (s, g, f"{value}{part}_{k}") for s, g in places}
    return named


def wide_sums(shape: Shape, *, squares: bool) -> list[str]:
    """Sums over the cells of a list, each a column of its own."""
    relevant = f"relevance >= {number(shape.threshold)}"
    named: dict[str, tuple[int, int, str]] = {}
    for k in shape.ks:
        named |= kind_columns(shape, "top", k, squares=squares) | kind_columns(shape, "exposure", k, squares=True)
    sums = []
    for column, (stratum, code, name) in named.items():
        inside = {-1: "", 0: f" AND NOT {relevant}", 1: f" AND {relevant}"}[stratum]
        value = f"sum(CASE WHEN code = {code}{inside} THEN {name} ELSE 0 END)"
        text = _grained(value) if name.startswith("exposure") else f"CAST({value} AS DOUBLE)"
        sums.append(f"{text} AS {column}")
    return sums


def with_clusters(lists: str, shape: Shape) -> str:
    """Lists with their clusters under the names that they have in rows."""
    return f"SELECT *{''.join(f', {name}_min AS {name}' for name in shape.cluster_names)} FROM {lists}"


def kinds(table: str, keys: Sequence[str]) -> str:
    """Lists that are alike in some columns, how many they are, and how many relevant items they have on average."""
    return f"""
        SELECT {", ".join(keys)}, CAST(count(*) AS DOUBLE) AS times,
            CAST(sum(relevant) AS DOUBLE) / count(*) AS relevant
        FROM {table} GROUP BY {", ".join(keys)}"""


def binned(table: str, residuals: str, keys: Sequence[str], number_of: int, bins: int) -> str:
    """Sums of residuals, given by kind of list, over lists put together into bins."""
    same = " AND ".join(f"t.{key} = r.{key}" for key in keys)
    sums = ", ".join(f"sum(r.residual{j}) AS residual{j}" for j in range(number_of))
    return f"SELECT t.list % {bins} AS bin, {sums} FROM {table} t JOIN {residuals} r ON {same} GROUP BY t.list % {bins}"


def qualities(lists: str, k: int) -> str:
    """Lists that are alike in their quality, and how many they are."""
    names = [f"{name}_{k}" for name in ("ndcg", "precision", "recall")]
    keys = ", ".join(f"{name} AS {name.partition('_')[0]}" for name in names)
    return f"SELECT {keys}, CAST(count(*) AS DOUBLE) AS times FROM {lists} GROUP BY {', '.join(names)}"


def copies(lists: str) -> str:
    """How many lists are told apart by their marks, and how many differ."""
    return f"""
        SELECT CAST(sum(number) AS BIGINT) AS number, count(*) AS different FROM (
            SELECT mark0, mark1, count(*) AS number FROM {lists} WHERE broken > 0 AND length > 2 GROUP BY mark0, mark1
        ) m"""


def lists_per_item(rows: str) -> str:
    """Per group: its rows, and the sum over them of the lists that their item stands in with that group."""
    return f"""
        SELECT code, CAST(sum(number) AS DOUBLE) AS number, sum(CAST(number AS DOUBLE) * number) AS lists
        FROM (SELECT item, code, count(*) AS number FROM {rows} WHERE code >= 0 GROUP BY item, code) by_item
        GROUP BY code"""


def twice(rows: str) -> str:
    """An item that occurs twice in a query."""
    return f"SELECT query, item, count(*) AS number FROM {rows} GROUP BY query, item HAVING count(*) > 1 LIMIT 1"


def placed_items(rows: str, lists: str, shape: Shape) -> str:
    """Each row of known group with its cell, its item as a number, and its place."""
    stratum = f"CASE WHEN relevance >= {number(shape.threshold)} THEN 1 ELSE 0 END" if shape.labelled else "0"
    return f"""
        SELECT l.list * {2 * shape.groups} + ({stratum}) * {shape.groups} + r.code AS cell,
            xxhash64(r.item, 0, 0) AS item, r.first, r.size
        FROM ({ranked(rows, shape)}) r JOIN {lists} l ON l.query = r.query
        WHERE r.code >= 0"""


def broken(cluster_names: Sequence[str], text: Sequence[str]) -> dict[str, str]:
    """Column → the condition of rows that break its rule; ``text`` are those in which empty text is no value."""

    def missing(name: str) -> str:
        return f"({name} IS NULL OR {name} = '')" if name in text else f"({name} IS NULL)"

    # x - x is 0 for finite numbers alone.
    return {
        "query": missing("query"),
        "score": "NOT coalesce(score - score = 0, false)",
        "relevance": "NOT coalesce(relevance - relevance = 0 AND relevance >= 0, false)",
        "weight": "NOT coalesce(weight - weight = 0 AND weight >= 0, false)",
        **{name: missing(name) for name in cluster_names},
    }


def checks(rows: str, rules: Mapping[str, str]) -> str:
    """Count the rows, and those that break a rule, rule by rule."""
    counts = [f"sum(CASE WHEN {rule} THEN 1 ELSE 0 END) AS {name}" for name, rule in rules.items()]
    return f"SELECT count(*) AS number, {', '.join(counts)} FROM {rows}"
