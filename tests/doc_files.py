"""The files that the documentation's commands read, small, under the names that it uses."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from example_rows import log, rows

LISTS = 60


@pytest.fixture(scope="session")
def example_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    logged, trained = log(LISTS), rows(LISTS)
    number = logged["qid"].rank("dense").to_numpy().astype(int) - 1
    weeks = np.datetime64("2026-01-05") + 7 * (number // 5)
    logged = logged.with_columns(
        group=pl.col("age"),
        when=pl.Series(weeks.astype(str)),
        user=pl.Series([f"user {one // 2}" for one in number]),
    )
    # A person's race must be one; the example has none, so it is made from the person's number.
    person = logged["item"].str.extract(r"(\d+)$").cast(pl.Int64)
    logged = logged.with_columns(race=pl.Series(np.where(person.to_numpy() % 3 > 0, "A", "B")))
    some = ["qid", "item", "relevance", "group", *trained.columns[4:12]]
    scored = trained.select(some).with_columns(score=logged["score"], my_score=logged["score"], chance=_chance(logged))
    ab = scored.with_columns(group=pl.Series(np.array(["a", "b", "c"])[np.arange(len(scored)) % 3]))
    late = logged.filter(pl.col("when") >= "2026-03-09")
    early = logged.filter(pl.col("when") < "2026-03-09")
    files = {
        "log.csv": logged,
        "log.parquet": logged,
        "scored.csv": scored,
        "served.csv": logged,
        "today.csv": late,
        "rows.parquet": trained.select(some),
        "rows/part-0.parquet": trained.select(some).head(700),
        "rows/part-1.parquet": trained.select(some).slice(700),
        "served/part-0.parquet": logged[::2],
        "served/part-1.parquet": logged[1::2],
        "new.parquet": trained.select(some),
        "rows.csv": scored,
        "groups.csv": ab,
        "new.csv": scored,
        "held-out.csv": scored,
        "logs/2026-01.csv": early,
        "logs/2026-03.csv": late,
    }
    for name, frame in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path)
    # For pages that train it with an extra.
    er.FairLinearRanker("dp", alpha=0.1).fit(er.read(folder / "rows.parquet")).save(folder / "model.json")
    return folder


def _chance(logged: pl.DataFrame) -> pl.Series:
    return 1 / (1 + (-3 * logged["score"]).exp())


@pytest.fixture
def folder(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files, to work in."""
    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
