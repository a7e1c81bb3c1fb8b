"""Damaged caches of embeddings: the vectors of the encoder, or a clean error; never others.

A case copies a cache that is finished or was stopped, damages a file or two or puts another cache's in their place, and
then asks for the vectors: by the cache alone, and through `msmarco`, which keeps rows beside them.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import damage
import evenrank as er
from evenrank.errors import DataError, DataWarning, EvenrankError
from evenrank.features.cache import Meta, fill_cache, is_finished, open_cache, status
from fuzz.cases import numbers, time_limit

NAME = "caches"
EXTRA = None
ROWS, WIDTH, BLOCK = 60, 4, 8
QUERIES, PASSAGES = 40, 3  # of the data for msmarco


class Numbers:
    """Pairs whose texts are their row numbers."""

    def __len__(self) -> int:
        return ROWS

    def between(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        return [str(row // 7) for row in range(start, stop)], [str(row) for row in range(start, stop)]


class Hashed:
    """Vectors made from the checksums of the texts, and stopped after some calls if asked."""

    width = WIDTH

    def __init__(self, fingerprint: str = "first", calls: int | None = None) -> None:
        self.fingerprint, self.calls = fingerprint, calls

    def encode(self, queries: Sequence[str], passages: Sequence[str]) -> Any:
        if self.calls == 0:
            raise KeyboardInterrupt
        self.calls = None if self.calls is None else self.calls - 1
        pairs = zip(queries, passages, strict=True)
        numbers = np.array([zlib.crc32(f"{self.fingerprint} {q} {p}".encode()) for q, p in pairs], np.uint32)
        return (numbers[:, None] >> np.arange(0, 8 * WIDTH, 8, dtype=np.uint32) & 255) / 256


@dataclass(frozen=True)
class Base:
    """An untouched cache, what its vectors must be, and how to ask for them."""

    folder: Path
    expected: Any
    ask: Callable[[Path], list[Any]]
    bound: bool = True


def run(n: int, seed: int) -> list[str]:
    """Failures of ``n`` cases, one line each."""
    with tempfile.TemporaryDirectory(prefix="evenrank-fuzz-") as made:
        bases = [*_caches(Path(made) / "caches"), *_datasets(Path(made) / "data")]
        failures = []
        for number in numbers(n):
            rng = random.Random(f"{seed} {number}")
            base = rng.choice(bases)
            folder = Path(made) / "case" / base.folder.name
            shutil.rmtree(folder.parent, ignore_errors=True)
            shutil.copytree(base.folder, folder)
            told, forged = _damage(folder, rng, base, bases)
            lines = _wrong(base, folder, forged=forged)
            failures += [f"{NAME}, seed {seed}, case {number}: {base.folder}: {told}: {line}" for line in lines]
        return failures


# ---------------------------------------------------------------------- untouched caches


def _caches(made: Path) -> Iterator[Base]:
    """Finished and stopped ones, of two encoders and two texts."""
    for name, fingerprint, data, calls in (
        ("whole", "first", "data", None),
        ("stopped", "first", "data", 4),
        ("other encoder", "second", "data", None),
        ("other data", "first", "other", None),
    ):
        meta = Meta(fingerprint, data, ROWS, WIDTH, BLOCK)
        with contextlib.suppress(KeyboardInterrupt):
            fill_cache(made / name, Numbers(), Hashed(fingerprint, calls), meta)
        yield Base(made / name, [_expected(fingerprint)], _asking(fingerprint, meta))
    meta = Meta("first", "data", ROWS, WIDTH, BLOCK)
    shutil.copytree(made / "whole", made / "old")
    _unbind(made / "old")
    yield Base(made / "old", [_expected("first")], _asking("first", meta), bound=False)


def _expected(fingerprint: str) -> Any:
    return Hashed(fingerprint).encode(*Numbers().between(0, ROWS)).astype(np.float16)


def _asking(fingerprint: str, meta: Meta) -> Callable[[Path], list[Any]]:
    def ask(folder: Path) -> list[Any]:
        with contextlib.suppress(DataError):
            status(folder)
        if is_finished(folder, meta):
            return [np.array(open_cache(folder, meta))]
        try:
            return [np.array(fill_cache(folder, Numbers(), Hashed(fingerprint), meta))]
        except OSError as error:  # which `msmarco` makes one line of
            raise DataError(str(error)) from None

    return ask


def _unbind(folder: Path) -> None:
    """Make the cache one of format 1, whose checksums know nothing of the texts."""
    meta = json.loads((folder / "meta.json").read_bytes())
    (folder / "meta.json").write_text(json.dumps({**meta, "format": 1}))
    size = meta["block"] * meta["width"] * 2
    vectors = (folder / "embeddings.f16").read_bytes()
    blocks = [vectors[start : start + size] for start in range(0, len(vectors), size)]
    (folder / "progress.txt").write_text(
        "".join(f"{number} {zlib.crc32(block):08x} 0.001\n" for number, block in enumerate(blocks))
    )


def _datasets(made: Path) -> Iterator[Base]:
    """Two files of MS MARCO's form with as many rows, and two encoders."""
    made.mkdir()
    for name, seed in (("one.jsonl", 1), ("two.jsonl", 2)):
        _write_data(made / name, seed)
    for name, fingerprint in (("one.jsonl", "first"), ("one.jsonl", "second"), ("two.jsonl", "first")):
        cache = made / f"cache of {name} by {fingerprint}"
        expected = _loaded(made / name, fingerprint, cache)
        (folder,) = cache.iterdir()
        yield Base(folder, expected, _loading(made / name, fingerprint))


def _write_data(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    addresses = ["http://a.com/1", "https://b.org", "c.edu/x", ""]
    with path.open("w") as file:
        for query in range(QUERIES):
            passages = [
                {
                    "passage_text": f"passage {rng.random()}",
                    "is_selected": rng.randrange(2),
                    "url": rng.choice(addresses),
                }
                for _ in range(PASSAGES)
            ]
            file.write(json.dumps({"query_id": query, "query": f"query {query}", "passages": passages}) + "\n")


def _loading(path: Path, fingerprint: str) -> Callable[[Path], list[Any]]:
    return lambda folder: _loaded(path, fingerprint, folder.parent)


def _loaded(path: Path, fingerprint: str, cache: Path) -> list[Any]:
    data = er.datasets.msmarco(path, encoder=Hashed(fingerprint), cache=cache)
    arrays = [data.features, data.relevance, data.group, data.query_ptr, data.query_ids, data.item_ids]
    return [np.array(values) for values in arrays]


# ---------------------------------------------------------------------- damage and what must hold


def _damage(folder: Path, rng: random.Random, base: Base, bases: list[Base]) -> tuple[str, bool]:
    """What was done, and whether no checksum can tell."""
    told = []
    swapped = set()
    for _ in range(rng.choice([1, 1, 1, 2])):
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "lock")
        if not files:
            break
        file = rng.choice(files)
        kind = rng.choice(["bytes", "bytes", "bytes", "files", "swap", "swap both", "edit", "lines"])
        if kind in ("bytes", "files"):
            action = rng.choice(damage.BYTES if kind == "bytes" else damage.FILES)
            action(file, rng)
            told.append(f"{action.__name__} of {file.name}")
        elif kind.startswith("swap"):
            other = rng.choice(bases)
            for one in [file] if kind == "swap" else [folder / "embeddings.f16", folder / "progress.txt"]:
                if one.is_file():
                    damage.swap(one, other.folder)
                    swapped.add(one.name)
            told.append(f"{kind} with {other.folder.name}")
        elif kind == "edit" and (folder / "meta.json").is_file():
            with contextlib.suppress(ValueError, RecursionError):
                meta = json.loads((folder / "meta.json").read_bytes())
                (folder / "meta.json").write_text(json.dumps(damage.edit(meta, rng)))
                told.append("edit of meta.json")
        elif kind == "lines" and (folder / "progress.txt").is_file():
            lines = (folder / "progress.txt").read_bytes().splitlines(keepends=True)
            rng.shuffle(lines)
            (folder / "progress.txt").write_bytes(b"".join(lines + lines[: rng.randrange(3)]))
            told.append("lines of progress.txt shuffled and doubled")
    return " and ".join(told), not base.bound and len(swapped) > 1


def _wrong(base: Base, folder: Path, *, forged: bool) -> Iterator[str]:
    for step in ("open", "open again"):
        try:
            with time_limit(), warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", DataWarning)
                arrays = base.ask(folder)
        except EvenrankError as error:
            if "\n" in str(error):
                yield f"{step}: a message of several lines: {error!r}"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{step}: {type(error).__name__}: {str(error)[:100]!r} at {Path(where.filename).name}:{where.lineno}"
        else:
            same = all(np.array_equal(one, other) for one, other in zip(arrays, base.expected, strict=True))
            if not same and not forged:
                yield f"{step}: other values in silence"
