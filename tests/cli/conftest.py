"""Running commands in this process, and rows to run them on."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.cli import main


@dataclass(frozen=True)
class Run:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines on stderr that are not warnings."""
        return [line for line in self.err.splitlines() if not line.startswith("evenrank: warning: ")]

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("evenrank: warning: ")]

    def json(self) -> Any:
        assert self.code == 0, self.err

        def refuse(text: str) -> Any:
            raise AssertionError(f"{text} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


Command = Callable[..., Run]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run `evenrank` with the given arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("evenrank.progress.EVERY", float("inf"))  # lines that only a busy machine would print

    def command(*arguments: object) -> Run:
        capsys.readouterr()
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return Run(int(stop.value.code or 0), found.out, found.err)

    return command


def as_frame(data: er.RankingData, scores: np.ndarray | None = None) -> pl.DataFrame:
    """The rows as a user's table; an unknown group is empty."""
    group = [None if code < 0 else str(data.group_names[code]) for code in data.group]
    frame = pl.DataFrame(
        {
            "qid": data.query_ids[data.query_of_row],
            "item": data.item_ids,
            "relevance": data.relevance,
            "group": group,
        }
    )
    if scores is not None:
        frame = frame.with_columns(score=pl.Series(scores))
    return frame.hstack(pl.DataFrame(dict(zip(data.feature_names, data.features.T, strict=True))))


Save = Callable[[pl.DataFrame, str], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a frame in the format of the name's suffix; LETOR numbers the columns after the first three from 1."""

    def write(frame: pl.DataFrame, name: str) -> Path:
        path = tmp_path / name
        if path.suffix == ".letor":
            _write_letor(frame, path)
        else:
            {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[path.suffix](path)
        return path

    return write


def _write_letor(frame: pl.DataFrame, path: Path) -> None:
    """LETOR has no text, so groups become their numbers in sorted order."""
    frame = frame.with_columns(pl.col("group").rank("dense").cast(pl.Int64) - 1)
    with path.open("w") as file:
        for query, item, relevance, *values in frame.select(
            "qid", "item", "relevance", pl.exclude("qid", "item", "relevance")
        ).iter_rows():
            features = " ".join(f"{j}:{value!r}" for j, value in enumerate(values, 1))
            file.write(f"{relevance:g} qid:{query} {features} # docid = {item}\n")


@pytest.fixture(scope="session")
def data() -> er.RankingData:
    """40 lists of 12 applicants, with features enough to rank by."""
    whole = er.datasets.german_credit("age", lists=40, items=12)
    frame = as_frame(whole)
    kept = frame.select(frame.columns[:4] + [name for name in frame.columns[4:] if frame[name].n_unique() > 3])
    return er.RankingData.from_frame(kept, item="item")


@pytest.fixture(scope="session")
def scores(data: er.RankingData) -> np.ndarray:
    """An ordinary ranker's scores, coarse enough to have ties."""
    fitted = er.FairLinearRanker(alpha=0.0).fit(data)
    return np.round(fitted.predict(data), 2)


@pytest.fixture(scope="session")
def logged(data: er.RankingData, scores: np.ndarray) -> pl.DataFrame:
    return as_frame(data, scores)
