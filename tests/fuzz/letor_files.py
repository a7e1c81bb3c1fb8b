"""LETOR rows against a plain parser, and against scikit-learn's where it reads the file."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from evenrank.io import read
from fuzz import cases

NAME = "letor"
EXTRA = None
NUMBERS = ["0", "1", "-1.5", "1e3", "0.1", "-0", "5.", ".5", "1E-300", "007", "+2", "123456789.123456789"]
STRANGE = ["", "nan", "inf", "1e999", "x", "1_0", "0x1", "1:2", "１", "--1", "1e", ","]
QUERIES = ["1", "2", "007", "q", "a-b", "é", "9223372036854775808", "-3", "1.5", "😀", "qid", ":"]
MARKS = [
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\t",
    b"#",
    b"qid:",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"1:1",
    b"999999999:1",
    b"\x0c",
    b"-",
]
MARKS += [b"\x0b", b" 5:2", b"\xc2\xa0", b"1000000000:1", b"99999999999999999999:1", b"0:7 "]


def run(n: int, seed: int) -> list[str]:
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.letor"
        for number, random in cases.cases(n, seed):
            content, good = made(random)
            if random.random() < 0.5:
                content, good = cases.mutated(random, content, MARKS), False
            path.write_bytes(content)
            expected = parsed(content)
            found, fault = cases.outcome(lambda: read(path))
            problem = cases.verdict(found, fault, expected, good=good)
            if not problem and found != cases.REFUSED and good:
                problem = against_scikit_learn(content, found)
            if problem:
                failures.append(cases.line(NAME, seed, number, f"{problem}; file {content!r:.400}"))
    return failures


def made(random: Random) -> tuple[bytes, bool]:
    strange = random.random() < 0.3
    queries = random.sample(QUERIES, random.randint(1, 3))
    few = random.choice([[1, 2, 3], list(range(10)), [1, 5, 10**6, 10**7, 999_999_999], [2**20 - 1, 2**20, 2**20 + 1]])
    lines = []
    for _ in range(random.choice([1, 1, 2, 4, 9])):
        chosen = sorted(random.sample(few, random.randint(0, len(few))))
        if strange and random.random() < 0.3:
            random.shuffle(chosen)
        pool = NUMBERS + (STRANGE if strange else [])
        space = random.choice([" ", " ", "  ", "\t"])
        label = random.choice(["0", "1", "2", "0.5", "-1" if strange else "3"])
        tokens = [label, f"qid:{random.choice(queries)}", *(f"{j}:{random.choice(pool)}" for j in chosen)]
        comment = random.choice(["", "", " # docid = 7", " #", " # a:b 3:4"])
        lines.append(random.choice(["", "", " "]) + space.join(tokens) + comment)
        if random.random() < 0.1:
            lines.append(random.choice(["", " ", "# a comment"]))
    end = random.choice(["\n", "\n", "\r\n", " \n"])
    return (end.join(lines) + random.choice(["", end])).encode(), not strange


def parsed(content: bytes) -> list[tuple[Any, ...]] | None:
    """Token by token, or None where a rule is broken."""
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    if "\n" not in text:
        text = text.replace("\r", "\n")
    relevance, queries, features, items = [], [], [], []
    for line in text.encode().split(b"\n"):
        tokens = [token.decode() for token in line.partition(b"#")[0].split()]
        if not tokens:
            continue
        values: dict[int, float] = {}
        for token in tokens[2:]:
            name, colon, value = token.partition(":")
            number = cases.number(value) if value.isascii() else None
            if not colon or not (name.isascii() and name.isdecimal()) or int(name) >= 10**9 or number is None:
                return None
            if values and int(name) <= max(values):
                return None
            values[int(name)] = number
        if len(tokens) < 2 or not tokens[1].startswith("qid:") or tokens[1] == "qid:" or not tokens[0].isascii():
            return None
        relevance.append(cases.number(tokens[0]))
        queries.append(tokens[1][4:])
        features.append(values)
        comment = line.partition(b"#")[2]
        named = re.search(rb"(?<!\w)docid\s*[=:]\s*(\S+)", comment) or re.fullmatch(rb"\s*([^\s=:#]+)\s*", comment)
        items.append(named and named[1].decode())
    occurring = sorted({j for values in features for j in values})
    columns = {str(j): [values.get(j, 0.0) for values in features] for j in occurring}
    columns |= {"qid": cases.whole_numbers(queries), "group": [None] * len(queries)}
    if "docid" in text and all(items) and len({*zip(columns["qid"], items, strict=True)}) == len(items):
        columns["item"] = cases.whole_numbers(items)
    return cases.assembled(columns, list(map(str, occurring)), relevance)


def against_scikit_learn(content: bytes, found: list[tuple[Any, ...]]) -> str:
    """Its query ids are integers, and its table has a column for every number up to the largest."""
    if any(not isinstance(row[0], int) for row in found) or b"\t" in content:
        return ""
    try:
        X, y, query = load_svmlight_file(io.BytesIO(content), query_id=True, zero_based=True)
    except (ValueError, OverflowError):
        return ""
    occurring = np.unique(X.indices)
    table = np.zeros((len(y), len(occurring)))  # X[:, occurring] takes memory for every number up to the largest
    table[np.repeat(np.arange(len(y)), np.diff(X.indptr)), np.searchsorted(occurring, X.indices)] = X.data
    same = table.tolist() == [list(row[4]) for row in found]
    same &= y.tolist() == [row[2] for row in found] and query.tolist() == [row[0] for row in found]
    return "" if same else f"scikit-learn reads {table.tolist()!r:.200}, we {found!r:.200}"
