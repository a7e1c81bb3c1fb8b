"""The same rows in different Parquet files: how they are cut, sorted and typed must change no number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

FEATURES = ["f0", "f1", "f2"]


def skewed_rows(seed: int = 0, n: int = 3000, groups: int = 2, *, ties: bool = False) -> pl.DataFrame:
    """Rows in mixed order: a few very long queries and many short ones, unknown groups, graded labels, weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, groups, n)
    X = rng.normal(size=(n, 3)) * [1.0, 100.0, 1e-3] + [0.0, 5000.0, 1.0]
    X[:, 1] += 30 * code
    if ties:
        X = np.round(X, 1)
    labels = np.array(list("abcdef"), object)[code]
    labels[rng.random(n) < 0.1] = None
    score = X[:, 0] + X[:, 1] / 100
    relevance = np.digitize(score + rng.normal(size=n), np.quantile(score, [0.6, 0.9])).astype(float)
    return pl.DataFrame(
        {
            "qid": rng.zipf(1.4, n) % 200,
            "item": rng.permutation(n),
            "relevance": relevance,
            "group": pl.Series(labels.tolist(), dtype=pl.String),
            "weight": rng.uniform(0.3, 2, n),
        }
        | {name: X[:, j] for j, name in enumerate(FEATURES)}
    )


def written(folder: Path, rows: pl.DataFrame, layout: str, **options: Any) -> Path:
    """Write rows to a new folder: as one file, as many, in small groups of rows, or in folders."""
    folder.mkdir(parents=True)
    parts = {"one file": 1, "small row groups": 1, "many files": 7, "folders": 4}[layout]
    size = 97 if layout == "small row groups" else None
    bounds = np.linspace(0, rows.height, parts + 1).astype(int)
    for number in range(parts):
        place = folder / f"day={number}" if layout == "folders" else folder
        place.mkdir(exist_ok=True)
        part = rows[int(bounds[number]) : int(bounds[number + 1])]
        part.write_parquet(place / f"part-{number}.parquet", row_group_size=size, **options)
    (folder / "_SUCCESS").write_text("")
    return folder


LAYOUTS = ("one file", "small row groups", "many files", "folders")
