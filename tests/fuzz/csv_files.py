"""Comma-separated tables against Python's own csv module."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from evenrank.io import read
from fuzz import cases

NAME = "csv"
EXTRA = None
NUMBERS = [
    "0",
    "1",
    "-1.5",
    "1e3",
    "1E-2",
    "+3",
    " 7 ",
    "007",
    ".5",
    "5.",
    "0.1",
    "123456789.123456789",
    "-0",
    "2e-308",
]
STRANGE = ["", "nan", "inf", "1e999", "0x1F", "1_0", "１", "1,5", "--1", "one", "true", "1 2", "\u00a01", "1e", "-"]
IDS = [
    "a",
    "b,c",
    'q"x',
    '""',
    "x\ny",
    "é",
    "😀",
    "007",
    "1",
    "22",
    "-0",
    "-5",
    "9223372036854775807",
    " a",
    "a ",
    "NA",
]
IDS += [
    "9223372036854775808",
    "null",
    "None",
    "\u202e",
    "=1+1",
    "a\r\nb",
    "\ta",
    "日本",
    "a\rb",
    "'",
    "x" * 300,
    "\x1b[31m",
]
MARKS = [
    b",",
    b'"',
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b'""',
    b"\n\n",
    b"nan",
    b"\xc3",
]


def run(n: int, seed: int) -> list[str]:
    return list(run_table(n, seed, NAME, ","))


def run_table(n: int, seed: int, name: str, separator: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{name}"
        for number, random in cases.cases(n, seed):
            table, good = made(random)
            content = written(random, table, separator)
            if random.random() < 0.5:
                content, good = cases.mutated(random, content, MARKS), False
            expected = parsed(content, separator)
            path.write_bytes(gzip.compress(content) if random.random() < 0.05 else content)
            found, fault = cases.outcome(lambda: read(path, features=["x", "y"]))
            problem = cases.verdict(found, fault, expected, good=good)
            if problem:
                yield cases.line(name, seed, number, f"{problem}; file {content!r:.400}")


def made(random: Random) -> tuple[list[list[str]], bool]:
    """A table with its header, and whether it keeps the rules."""
    names = ["qid", "relevance", "group", "x", "y"]
    names += ["item"] if random.random() < 0.7 else []
    names += random.sample(["z", "title", "a b", "é", 'quo"te', "new\nline"], random.choice([0, 0, 1, 2]))
    random.shuffle(names)
    n = random.choice([1, 1, 2, 3, 5, 12])
    ids = random.sample(IDS, random.randint(1, 5))
    strange = random.random() < 0.3
    pairs: set[tuple[str, str]] = set()
    rows = [names]
    for _ in range(n):
        query, item = random.choice(ids), random.choice(IDS)
        if "item" in names and (query, item) in pairs:
            continue
        pairs.add((query, item))
        values = {"qid": query, "item": item, "group": random.choice([*ids, "", ""])}
        values["relevance"] = random.choice(["0", "1", "2", "0.5", " 1", "1e0"])
        values |= {name: random.choice(NUMBERS) for name in ("x", "y")}
        if strange and random.random() < 0.5:
            values[random.choice(["x", "y", "relevance"])] = random.choice(STRANGE)
        rows.append([values.get(name, random.choice(["", "word", "5", "two\nlines", 'a "b"'])) for name in names])
    return rows, not strange


def written(random: Random, table: list[list[str]], separator: str) -> bytes:
    end = random.choice(["\n", "\n", "\r\n"])
    quoting = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    out = io.StringIO()
    for row in table:
        record = io.StringIO()
        csv.writer(record, delimiter=separator, quoting=quoting, lineterminator="\r\n").writerow(row)
        out.write(record.getvalue().removesuffix("\r\n") + end)
        if random.random() < 0.05:
            out.write(end)
    text = out.getvalue()
    if random.random() < 0.1:
        text = text.removesuffix(end)
    if random.random() < 0.05 and "\n" not in "".join("".join(row) for row in table):
        text = text.replace("\r\n", "\n").replace("\n", "\r")
    return (b"\xef\xbb\xbf" if random.random() < 0.1 else b"") + text.encode()


def parsed(content: bytes, separator: str) -> list[tuple[Any, ...]] | None:
    """What the standard module makes of the bytes, or None where they break a rule."""
    try:
        text = content.decode().removeprefix("\ufeff")
        if "\0" in text:
            return None
        if "\n" not in text:
            text = text.replace("\r", "\n")
        table = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if row]
    except (UnicodeDecodeError, csv.Error):
        return None
    if not table or any(len(row) != len(table[0]) for row in table):
        return None
    head, *body = table
    named = [name for name in head if name]
    if len(set(named)) < len(named) or not {"qid", "relevance", "group", "x", "y"} <= set(head):
        return None
    raw: dict[str, list[Any]] = {name: [row[j] or None for row in body] for j, name in enumerate(head)}
    columns = {name: cases.whole_numbers(raw[name]) for name in ("qid", "group", "item") if name in raw}
    columns |= {name: cases.with_missing(raw[name], numbers(raw[name])) for name in ("x", "y")}
    return cases.assembled(columns, ["x", "y"], numbers(raw["relevance"]))


def numbers(values: list[str | None]) -> list[float | None]:
    """A column of true and false is one of numbers too."""
    words = [None if value is None else value.strip().lower() for value in values]
    if any(words) and all(word in ("true", "false", None) for word in words):
        return [None if word is None else float(word == "true") for word in words]
    return [cases.number(value) for value in values]
