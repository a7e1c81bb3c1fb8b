"""TREC runs, judgements and groups against a plain parser."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from evenrank.io import read
from fuzz import cases

NAME = "trec"
EXTRA = None
SCORES = ["9.5", "7", "-1", "1e-3", "0", "3", "3", "+2", "1e5"]
STRANGE = ["nan", "inf", "x", "1e999", "1_0", "１"]
QUERIES = ["301", "302", "q", "007", "é"]
ITEMS = ["d1", "d2", "d3", "FT-1", "日本", '"q"', "5", "a,b", "#1"]
MARKS = [
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b'"',
    b"\n\n",
    b" x",
    b"\xef\xbb\xbf",
    b"\x0b",
    b"\xc2\xa0",
    b"  ",
    b",",
]


def run(n: int, seed: int) -> list[str]:
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("rows.run", "qrels.txt", "groups.csv")}
        for number, random in cases.cases(n, seed):
            contents, good = made(random)
            if random.random() < 0.5:
                name = random.choice(["rows.run", "rows.run", "qrels.txt"])
                contents[name], good = cases.mutated(random, contents[name], MARKS), False
            for name, path in paths.items():
                path.write_bytes(contents[name])
            judged = random.random() < 0.8
            expected = parsed(contents, judged)
            options = {"qrels": paths["qrels.txt"]} if judged else {}
            found, fault = cases.outcome(
                lambda options=options: read(paths["rows.run"], groups=paths["groups.csv"], **options)
            )
            problem = cases.verdict(found, fault, expected, good=good)
            if problem:
                failures.append(cases.line(NAME, seed, number, f"{problem}; files {contents!r:.600}"))
    return failures


def made(random: Random) -> tuple[dict[str, bytes], bool]:
    strange = random.random() < 0.3
    queries = random.sample(QUERIES, random.randint(1, 3))
    scores = SCORES + (STRANGE if strange else [])
    space = random.choice([" ", "\t", "  "])
    pairs = [(query, item) for query in queries for item in random.sample(ITEMS, random.randint(1, 5))]
    random.shuffle(pairs)
    end = random.choice(["\n", "\r\n", " \n"])
    run = [space.join([query, "Q0", item, "1", random.choice(scores), "tag"]) for query, item in pairs]
    judged = [(query, item) for query in [*queries, "999"] for item in random.sample(ITEMS, random.randint(0, 4))]
    grades = ["0", "1", "2", "-1", "1.5", *(["yes", "nan"] if strange else [])]
    qrels = [space.join([query, "0", item, random.choice(grades)]) for query, item in judged]
    groups = "item,group\n" + "".join(f"{quoted(item)},{random.choice(['u', 'v', ''])}\n" for item in ITEMS)
    texts = {"rows.run": end.join(run) + end, "qrels.txt": end.join(qrels) + end, "groups.csv": groups}
    return {name: text.encode() for name, text in texts.items()}, not strange


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def parsed(contents: dict[str, bytes], judged: bool) -> list[tuple[Any, ...]] | None:
    """Field by field, or None where a rule is broken."""
    run = fields(contents["rows.run"], 6)
    qrels = fields(contents["qrels.txt"], 4) if judged else []
    if not run or qrels is None or (judged and not qrels):
        return None
    score = {(row[0], row[2]): cases.number(row[4]) for row in run}
    relevance = {(row[0], row[2]): cases.number(row[3]) for row in qrels}
    if len(score) < len(run) or len(relevance) < len(qrels) or None in score.values() or None in relevance.values():
        return None
    retrieved = {row[0] for row in run}
    if judged and not retrieved & {query for query, _ in relevance}:
        return None
    lowest = {query: min(score[pair] for pair in score if pair[0] == query) for query in retrieved}
    missed = [pair for pair in relevance if pair[0] in retrieved and pair not in score]
    pairs = [*score, *missed]
    values = [score.get(pair, lowest[pair[0]] - 1.0) for pair in pairs]
    label = {row[0]: row[1] or None for row in csv.reader(contents["groups.csv"].decode().splitlines()[1:])}
    groups = [label.get(item) for _, item in pairs]
    if not any(groups):
        return None
    queries, items = (cases.whole_numbers([pair[j] for pair in pairs]) for j in (0, 1))
    grades = [max(relevance.get(pair, 0.0), 0.0) + 0.0 for pair in pairs]  # -0 is 0
    return list(zip(queries, items, grades, groups, ((value,) for value in values), strict=True))


def fields(content: bytes, count: int) -> list[list[str]] | None:
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    if "\n" not in text:
        text = text.replace("\r", "\n")
    rows = [line.replace("\t", " ").replace("\r", " ").split(" ") for line in text.split("\n")]
    rows = [[field for field in row if field] for row in rows]
    rows = [row for row in rows if row]
    return rows if all(len(row) == count for row in rows) else None
