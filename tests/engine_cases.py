"""Rows for the tests of engines, hostile ones among them, and what their audits must be: the one in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank as er

# Each case: how rows are made, and the options of the audit.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ties": ({}, {}),
    "no ties": ({"digits": 9}, {}),
    "three groups, text": ({"groups": "xyz", "text": True}, {}),
    "more lists than bins": ({"queries": 3000}, {}),
    "users": ({"text": True}, {"cluster": "user"}),
    "users and days": ({}, {"cluster": ("user", "day")}),
    "no labels": ({}, {"relevance": None}),
    "graded, threshold": ({"grades": 5}, {"relevance_threshold": 3.0}),
    "weights": ({}, {"sample_weight": "weight"}),
    "six groups, one set aside": ({"groups": "abcdef", "queries": 200}, {"min_share": 0.13}),
    "beyond the longest list": ({"digits": 9}, {"ks": (2, 40, 100)}),
    "few lists": ({"queries": 6}, {}),
    "one long list": ({"skew": 700, "digits": 3}, {}),
    "single precision": ({"single": True, "digits": 9, "near": True}, {}),
    "nearly tied": ({"digits": 3, "near": True}, {}),
    "recurring items": ({"items": 60}, {}),
    "ids that are places": ({"items": 0}, {}),
    "ranks": ({"digits": 9}, {"rank": "rank"}),
    "huge scores": ({"digits": 9, "scale": 1e307}, {}),
    "unwanted items far down": ({"digits": 2, "sentinel": True}, {}),
}


def make(
    seed: int = 0,
    *,
    queries: int = 300,
    groups: str = "ab",
    digits: int = 1,
    grades: int = 2,
    text: bool = False,
    skew: int = 0,
    single: bool = False,
    near: bool = False,
    items: int | None = None,
    scale: float = 1.0,
    sentinel: bool = False,
) -> pl.DataFrame:
    """Make shuffled rows of ragged lists with unknown groups; ``near`` puts scores a few last digits apart."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 15, queries)
    lengths[0] = skew or lengths[0]
    qid = np.repeat(rng.permutation(queries), lengths)
    n = len(qid)
    label = np.array([*groups, None, ""], object)
    group = label[rng.choice(len(label), n, p=[*([0.9 / len(groups)] * len(groups)), 0.05, 0.05])]
    kind = np.float32 if single else np.float64
    score = np.round(rng.normal(size=n), digits).astype(kind)
    if near:  # chains of neighbours that are 1 to 3 ulps apart, longer than a block may be
        for at in np.flatnonzero(rng.random(n - 8) < 0.1):
            step = rng.integers(1, 4)
            for j in range(1, 7):
                value = score[at + j - 1]
                for _ in range(step):
                    value = np.nextafter(value, kind(-9))
                score[at + j] = value
    score = score * kind(scale)
    if sentinel:
        score[rng.random(n) < 0.1] = -1e30
    frame = {
        "qid": [f"q{q}" for q in qid] if text else qid,
        "group": group.tolist(),
        "score": score,
        "relevance": rng.integers(0, grades, n).astype(float),
        "user": [f"u{q % 40}" for q in qid],
        "day": qid % 7,
        "weight": rng.random(n) + 0.1,
        "rank": np.concatenate([rng.permutation(length) + 1 for length in lengths]),
    }
    if items is not None:
        places = np.concatenate([np.arange(length) for length in lengths])
        frame["item"] = places
        if items:
            own = np.concatenate([rng.permutation(items)[:length] for length in lengths])
            frame["item"] = [f"i{j}" for j in own]
            frame["group"] = np.array([*groups, None] * items, object)[own].tolist()
    return pl.DataFrame(frame).sample(fraction=1, shuffle=True, seed=seed)


def write(frame: pl.DataFrame, folder: Path, parts: int) -> Path:
    """Write the rows as files of which each has rows of most lists, one of them in small row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        frame[part::parts].write_parquet(folder / f"part-{part}.parquet", row_group_size=100 if part else None)
    return folder


def in_memory(frame: pl.DataFrame, folder: Path, **options: Any) -> Any:
    """The audit of the same rows in memory, read from one file."""
    path = folder / "whole.parquet"
    frame.write_parquet(path)
    options = dict(options)
    relevance = options.pop("relevance", "relevance")
    rank = options.pop("rank", None)
    cluster = options.pop("cluster", ())
    data = er.read(
        path,
        score=rank or "score",
        relevance=relevance,
        sample_weight=options.pop("sample_weight", None),
        relevance_threshold=options.pop("relevance_threshold", 1.0),
    )
    values = data.to_caller(data.column(rank or "score"))
    names = (cluster,) if isinstance(cluster, str) else cluster
    return er.audit(
        -values if rank else values,
        data,
        options.pop("ks", (1, 3, 5, 10)),
        labelled=relevance is not None,
        cluster={name: frame[name].to_numpy() for name in names} or None,
        **options,
    )


def differences(a: Any, b: Any, place: str = "") -> Iterator[str]:
    """Where two audits, as plain values, are not the same to 1e-9."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            yield f"{place}: {list(a)} and {list(b)}"
        for key in a.keys() & b.keys():
            yield from differences(a[key], b[key], f"{place}/{key}")
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"{place}: {len(a)} and {len(b)} entries"
        for j, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, f"{place}[{j}]")
    elif isinstance(a, float) and isinstance(b, int | float):
        if not (a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-9 * max(1.0, abs(a))):
            yield f"{place}: {a!r} and {b!r}"
    elif a != b:
        yield f"{place}: {a!r} and {b!r}"


def assert_same(expected: Any, found: Any) -> None:
    """Check that two audits have the same numbers, to 1e-9, and the same words."""
    assert list(differences(expected.to_dict(), found.to_dict())) == []
    assert expected.text() == found.text()
