"""Parquet tables of many types, whole and damaged, against pyarrow."""

from __future__ import annotations

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from evenrank.io import read
from fuzz import cases

NAME = "parquet"
EXTRA = "pyarrow"
TEXTS = ["a", "é", "007", "1", "a\0", "x" * 50, "=1", "😀", "\x1b[0m", "NA", " a"]
FLAT = ["qid", "group", "x", "y"]
DAY = datetime.datetime(2020, 1, 1)


def run(n: int, seed: int) -> list[str]:
    import pyarrow.parquet as pq

    failures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        for number, random in cases.cases(n, seed):
            table, good = made(random)
            compression = random.choice(["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
            settings: dict[str, Any] = {"compression": compression, "use_dictionary": random.random() < 0.5}
            if not settings["use_dictionary"]:
                settings["column_encoding"] = {name: encoding(random, table.schema.field(name).type) for name in FLAT}
            settings |= {"data_page_version": random.choice(["1.0", "2.0"]), "write_page_checksum": True}
            pq.write_table(table, path, row_group_size=random.choice([1, 3, 1000]), **settings)
            damaged = random.random() < 0.4
            if damaged:
                content = bytearray(path.read_bytes())
                for _ in range(random.choice([1, 1, 3, 20])):
                    content[random.randrange(len(content))] = random.randrange(256)
                path.write_bytes(content[: random.choice([len(content), len(content), random.randrange(len(content))])])
            found, fault = cases.outcome(lambda: read(path, features=["x", "y"]))
            # Which damage a parser notices is its own affair; that it ends in one line is ours.
            problem = fault if damaged else cases.verdict(found, fault, expected(table), good=good)
            if problem:
                failures.append(cases.line(NAME, seed, number, f"{problem}; schema {table.schema.to_string()!r:.300}"))
    return failures


def encoding(random: Random, kind: Any) -> str:
    """One of the ways in which a column of this type may be written."""
    import pyarrow as pa

    choices = ["PLAIN"]
    if pa.types.is_integer(kind):
        choices += ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        choices += ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
        choices += ["BYTE_STREAM_SPLIT"]
    elif pa.types.is_boolean(kind):
        choices += ["RLE"]
    return random.choice(choices)


def made(random: Random) -> tuple[Any, bool]:
    """A table, and whether its types and values keep the rules."""
    import pyarrow as pa

    n = random.choice([1, 2, 5, 20])
    strange = random.random() < 0.3

    def column(kinds: list[Any], *, missing: bool) -> Any:
        kind, pool = random.choice(kinds)
        values = [random.choice(pool) for _ in range(n)]
        if missing:
            values = [None if random.random() < 0.3 else value for value in values]
        made = pa.array(values, kind)
        # A dictionary of texts is a categorical column, which is no number even if its words are.
        return made.dictionary_encode() if pool is TEXTS and random.random() < 0.3 else made

    labels = [
        (pa.string(), TEXTS),
        (pa.large_string(), TEXTS),
        (pa.int64(), [1, -2, 2**63 - 1]),
        (pa.uint64(), [1, 2**64 - 1]),
        (pa.int8(), [1, -2]),
        (pa.float64(), [1.5, -2.0, float("inf")]),
        (pa.bool_(), [True, False]),
        (pa.binary(), [b"a", b"\xff\xfe", b"b\0"]),
        (pa.date32(), [DAY.date(), DAY.date() + datetime.timedelta(1)]),
        (pa.timestamp("us"), [DAY, DAY + datetime.timedelta(1)]),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.25")]),
    ]
    numbers = [
        (pa.float64(), [0.5, -1e300, 5e-324]),
        (pa.float32(), [0.5, 0.1]),
        (pa.int64(), [1, 2**62 + 1]),
        (pa.uint64(), [2**64 - 1]),
        (pa.int16(), [-3]),
        (pa.bool_(), [True, False]),
        (pa.decimal128(10, 2), [Decimal("0.25"), Decimal("7.00")]),
        (pa.string(), ["1", " 2.5", "1e3"]),
        (pa.float16(), [0.5, 2.0]),
    ]
    nested = [
        (pa.list_(pa.int64()), [[1], [1, 2], []]),
        (pa.struct([("a", pa.int64())]), [{"a": 1}]),
        (pa.null(), [None]),
        (pa.time64("us"), [datetime.time(1)]),
        (pa.duration("us"), [datetime.timedelta(1)]),
        (pa.float64(), [float("nan")]),
        (pa.string(), ["x", ""]),
    ]
    columns = {
        "qid": column(labels, missing=False),
        "relevance": pa.array([random.choice([0, 1, 2]) for _ in range(n)]),
        "group": column(labels, missing=True),
        "x": column(numbers, missing=False),
        "y": column(numbers, missing=False),
    }
    if random.random() < 0.5:
        columns["item"] = pa.array([f"d{j}" for j in range(n)])
    if strange:
        columns[random.choice(list(columns))] = column(nested + numbers, missing=random.random() < 0.5)
    if random.random() < 0.3:
        columns["extra"] = column(nested, missing=True)
    return pa.table(columns), not strange


def expected(table: Any) -> list[tuple[Any, ...]] | None:
    """The rows as pyarrow has them, or None where a rule is broken."""
    import pyarrow as pa

    raw = {name: table[name].to_pylist() for name in table.column_names}
    columns: dict[str, list[Any]] = {}
    for name in ("qid", "group", "item"):
        if name in raw:
            if any(isinstance(value, list | dict) for value in raw[name]) or pa.types.is_nested(
                table.schema.field(name).type
            ):
                return None
            columns[name] = [None if value != value else value for value in raw[name]]
    columns |= {name: cases.with_missing(raw[name], numbers(raw[name])) for name in ("x", "y")}
    return cases.assembled(columns, ["x", "y"], numbers(raw["relevance"]))


def numbers(values: list[Any]) -> list[float | None]:
    """Of text, what it says; of dates and lists, nothing."""
    out: list[float | None] = []
    for value in values:
        if isinstance(value, str):
            out.append(cases.number(value))
        elif isinstance(value, bool | int | float | Decimal) and abs(float(value)) != float("inf"):
            out.append(float(value))
        else:
            out.append(None)
    return out
