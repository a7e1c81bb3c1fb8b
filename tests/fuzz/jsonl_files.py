"""JSON lines against Python's own json module."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from evenrank.io import read
from fuzz import cases

NAME = "jsonl"
EXTRA = None
NUMBERS = [
    "0",
    "1",
    "-1.5",
    "1e3",
    "0.1",
    "-0",
    "-0.0",
    "5e-324",
    "123456789012345678",
    "1E+2",
    "true",
    "false",
    '" 7 "',
]
STRANGE = ["null", "NaN", "-Infinity", "1e999", "9" * 400, '"x"', "[1]", "{}", '{"a": {"b": [1]}}', '""', '"1e5"', "01"]
IDS = [
    '"a"',
    '"\\u00e9"',
    '"😀"',
    '"\\ud83d\\ude00"',
    '"007"',
    '"1"',
    "1",
    "2",
    "-7",
    "9223372036854775807",
    "1.5",
    "1.0",
]
IDS += [
    "9223372036854775808",
    str(2**70),
    '"a\\u0000"',
    '"a\\nb"',
    '"\\u202e"',
    '"\\"q\\""',
    "true",
    '" a"',
    "1e3",
    '"\\\\ud800"',
]
ODD_IDS = ["null", '""', '"\\ud800"', '"\\udc00x"', "NaN", "[1]", "{}", "9" * 5000, "[" * 3000 + "]" * 3000]
MARKS = [
    b"{",
    b"}",
    b'"',
    b",",
    b":",
    b"\n",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"[",
    b"]",
    b"null",
    b"NaN",
    b"\0",
    b"\xff",
    b"\r",
]
MARKS += [b"\xef\xbb\xbf", b'"x":1,', b'"qid":2,', b"9" * 30, b"\xe2\x80\xa8", b"\x0b", b"\xc2\x85", b" "]


def run(n: int, seed: int) -> list[str]:
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        for number, random in cases.cases(n, seed):
            content, good = made(random)
            if random.random() < 0.5:
                content, good = cases.mutated(random, content, MARKS), False
            path.write_bytes(content)
            expected = parsed(content)
            found, fault = cases.outcome(lambda: read(path, features=["x", "y"]))
            problem = cases.verdict(found, fault, expected, good=good)
            if problem:
                failures.append(cases.line(NAME, seed, number, f"{problem}; file {content!r:.400}"))
    return failures


def made(random: Random) -> tuple[bytes, bool]:
    """Lines, and whether they keep the rules."""
    strange = random.random() < 0.4
    names = ["qid", "relevance", "group", "x", "y", *(["item"] if random.random() < 0.7 else [])]
    names += random.sample(["z", "\\u00e9", "", "a b"], random.choice([0, 0, 1, 2]))
    ids = random.sample(IDS, random.randint(1, 4))
    numbers = random.sample(NUMBERS, random.randint(1, 4))
    lines, pairs = [], set()
    for _ in range(random.choice([1, 2, 3, 8])):
        query, item = random.choice(ids), random.choice(IDS)
        if "item" in names and (plain(query), plain(item)) in pairs:
            continue
        pairs.add((plain(query), plain(item)))
        values = {"qid": query, "item": item, "group": random.choice([*ids, "null", '""'])}
        values |= {"relevance": random.choice(["0", "1", "2.5", "true"]), "x": random.choice(numbers), "y": "3"}
        if strange and random.random() < 0.6:
            name = random.choice(["x", "y", "relevance", "qid", "item", "group"])
            values[name] = random.choice(ODD_IDS if name in ("qid", "item", "group") else STRANGE)
        kept = [name for name in names if not (name == "group" and random.random() < 0.2)]
        if random.random() < 0.3:
            random.shuffle(kept)
        colon, comma = random.choice([(":", ","), (": ", ", "), (" : ", " ,\t")])
        lines.append("{" + comma.join(f'"{name}"{colon}{values.get(name, "[1]")}' for name in kept) + "}")
    end = random.choice(["\n", "\n", "\r\n", "\n\n", " \n"])
    text = end.join(lines) + random.choice(["", end])
    return (b"\xef\xbb\xbf" if random.random() < 0.1 else b"") + text.encode(), not strange


def plain(text: str) -> str:
    """Ids that may be written in several ways are one."""
    value = json.loads(text)
    return str(float(value)) if isinstance(value, int | float) else value


def parsed(content: bytes) -> list[tuple[Any, ...]] | None:
    """What the standard module makes of the bytes, or None where they break a rule."""
    try:
        text = content.decode().removeprefix("\ufeff")
        if "\0" in text:
            return None
        if "\n" not in text:
            text = text.replace("\r", "\n")
        objects = [once(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None
    names = {name for found in objects for name in found}
    if not {"qid", "relevance", "group", "x", "y"} <= names:
        return None
    raw = {name: [found.get(name) for found in objects] for name in names}
    columns: dict[str, list[Any]] = {}
    for name in ("qid", "group", "item"):
        if name in raw:
            if any(isinstance(value, list | dict) for value in raw[name]):
                return None
            columns[name] = labels(raw[name])
    columns |= {name: cases.with_missing(raw[name], numbers(raw[name])) for name in ("x", "y")}
    return cases.assembled(columns, ["x", "y"], numbers(raw["relevance"]))


def once(line: str) -> dict[str, Any]:
    def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError(line)
        return dict(pairs)

    found = json.loads(line, object_pairs_hook=unrepeated)
    if not isinstance(found, dict):
        raise ValueError(line)
    json.dumps(found, ensure_ascii=False).encode()
    return found


def labels(values: list[Any]) -> list[Any]:
    """Values of one kind as they are, NaN as none; of several kinds, numbers as floats and all else as text."""
    kinds = {type(value) for value in values} - {type(None)}
    large = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values)
    if kinds <= {int, float, bool} and len(kinds) > 1:
        values = [None if value is None else wide(value) for value in values]
    elif len(kinds) > 1 or (kinds == {int} and large):
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return [None if value != value else value for value in values]


def numbers(values: list[Any]) -> list[float | None]:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds & {list, dict}:
        return [None] * len(values)
    if kinds <= {int, float, bool}:
        wider = [None if value is None else wide(value) for value in values]
        return [None if value is None or abs(value) == float("inf") else value for value in wider]
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    words = [None if text is None else text.strip().lower() for text in texts]
    if all(word in ("true", "false", None) for word in words):
        return [None if word is None else float(word == "true") for word in words]
    return [cases.number(text) for text in texts]


def wide(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
