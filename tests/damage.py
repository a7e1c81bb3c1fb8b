"""Damage that the fuzz targets share: to the bytes of a file, to the place of a file, to a value of JSON."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Damage = Callable[[Path, random.Random], None]


def flip_bits(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def change_digit(file: Path, rng: random.Random) -> None:
    """The damage that a parser cannot see."""
    content = bytearray(file.read_bytes())
    digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        place = rng.choice(digits)
        content[place] = rng.choice([digit for digit in range(48, 58) if digit != content[place]])
    file.write_bytes(content)


def cut(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content))] if content else b"")


def empty(file: Path, rng: random.Random) -> None:
    file.write_bytes(b"")


def remove_bytes(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    start = rng.randrange(max(1, len(content)))
    file.write_bytes(content[:start] + content[start + rng.choice([1, 2, 8, 500]) :])


def insert_bytes(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    start = rng.randrange(len(content) + 1)
    inserted = rng.choice([b"\0", b"\n", b"{", b"\xff", b"0", b"e", rng.randbytes(40), content[:200]])
    file.write_bytes(content[:start] + inserted + content[start:])


def zero_bytes(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    start = rng.randrange(max(1, len(content)))
    stop = min(len(content), start + rng.choice([1, 8, 512, 4096]))
    content[start:stop] = bytes(stop - start)
    file.write_bytes(content)


def remove(file: Path, rng: random.Random) -> None:
    file.unlink()


def make_folder(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.mkdir()


def link_to_itself(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.symlink_to(file.name)


def nest_deeply(file: Path, rng: random.Random) -> None:
    depth = rng.choice([30, 900, 1000, 100_000])
    file.write_bytes(rng.choice([b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth]))


def replace_by_junk(file: Path, rng: random.Random) -> None:
    file.write_bytes(rng.choice([b"null", b"[]", b"{}", b"3", b'"text"', b"\n\n\n", b"NaN", rng.randbytes(300)]))


BYTES: list[Damage] = [flip_bits, change_digit, cut, empty, remove_bytes, insert_bytes, zero_bytes]
FILES: list[Damage] = [remove, make_folder, link_to_itself, nest_deeply, replace_by_junk]


def swap(file: Path, other: Path) -> None:
    """Put the file of the same name from another folder in its place."""
    if (other / file.name).is_file():
        shutil.copyfile(other / file.name, file)


STRANGE: list[Any] = [
    None,
    True,
    False,
    "",
    "text",
    "\ud800",
    0,
    -1,
    1,
    3,
    2**31,
    2**64,
    10**400,
    0.5,
    -0.5,
    1e300,
    -0.0,
    [],
    {},
    [[]],
    [None],
    {"a": {"b": []}},
    ["text", "text"],
]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value of JSON, as the keys that lead there."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def edit(value: Any, rng: random.Random) -> Any:
    """A copy with one place changed, removed, doubled or renamed."""
    value = json.loads(json.dumps(value))
    *above, last = rng.choice([path for path in places(value) if path] or [(None,)])
    if last is None:
        return rng.choice(STRANGE)
    parent = value
    for key in above:
        parent = parent[key]
    kind = rng.choice(["change", "change", "change", "remove", "double", "nest", "sibling"])
    if kind == "change":
        parent[last] = rng.choice(STRANGE)
    elif kind == "remove":
        del parent[last]
    elif kind == "double" and isinstance(parent, list):
        parent.insert(last, parent[last])
    elif kind == "double":
        parent[f"{last} "] = parent[last]
    elif kind == "nest":
        parent[last] = nested(rng.choice([1, 25, 300]))
    else:
        others = [key for key in (parent if isinstance(parent, dict) else range(len(parent))) if key != last]
        if others:
            parent[last] = parent[rng.choice(others)]
    return value
