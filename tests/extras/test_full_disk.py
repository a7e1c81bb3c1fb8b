"""A full disk, a damaged page, a file that vanishes: one line, exit code 2, and nothing half-written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank as er
from engine_cases import make, write
from evenrank.errors import ConfigError, DataError
from evenrank.io import row_files, whole_queries
from evenrank.methods.ranked_frames import rank_files
from file_layouts import FEATURES, skewed_rows, written

pytestmark = pytest.mark.extras
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB in memory; where none can be mounted the tests are skipped."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    from evenrank.cli import main

    def ran(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return ran


def fill(disk: Path) -> None:
    """Leave no room."""
    with (disk / "other").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def model_of(rows: pl.DataFrame, path: Path) -> Path:
    er.FairLinearRanker("dp", alpha=0.05).fit(er.RankingData.from_frame(rows, features=FEATURES)).save(path)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("before", [True, False])
def test_ranked_rows_on_a_full_disk(suffix: str, before: bool, run: Run, disk: Path, tmp_path: Path) -> None:
    rows = skewed_rows(1, n=20_000)
    folder = written(tmp_path / "rows", rows, "many files")
    out = disk / f"ranked{suffix}"
    if before:
        out.write_text("what was there")
    command = ["rank", folder, "--engine", "stream", "-m", model_of(rows[:500], tmp_path / "m.json"), "-o", out]
    code, _, told = run(*command)
    assert code == 2
    assert told.count("\n") == 1
    assert f"ranked{suffix}: cannot be written" in told
    assert [path.name for path in disk.iterdir()] == ([out.name] if before else [])
    assert not before or out.read_text() == "what was there"


@pytest.mark.parametrize("command", ["train", "audit"])
def test_models_and_audits_on_a_full_disk(command: str, run: Run, disk: Path, tmp_path: Path) -> None:
    fill(disk)
    if command == "train":
        rows = written(tmp_path / "rows", skewed_rows(2), "many files")
        arguments = ["train", rows, "--engine", "stream", "--alpha", "0.1", "-o", disk / "model.json"]
    else:
        rows = write(make(0, queries=50), tmp_path / "rows", 2)
        arguments = ["audit", rows, "--engine", "duckdb", "-o", disk / "audit.json"]
    code, _, told = run(*arguments)
    assert code == 2
    assert [path.name for path in disk.iterdir()] == ["other"]
    assert [line for line in told.splitlines() if str(disk) in line], told


@pytest.mark.parametrize("work", ["rank", "train", "audit"])
def test_no_room_to_sort_in(work: str, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    rows = skewed_rows(3, n=400_000) if work != "audit" else make(0, queries=40_000)
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    monkeypatch.setattr("evenrank.io.whole_queries.byte_limit", lambda: 1 << 20)
    monkeypatch.setattr("evenrank.io.whole_queries.LEAST", 1 << 24)
    if work == "audit":
        with pytest.raises(DataError, match="DuckDB cannot go on") as caught:
            er.duckdb.audit(write(rows, tmp_path / "rows", 2), memory="20MB", threads=1)
    else:
        files = er.scan(written(tmp_path / "rows", rows, "many files"), features=FEATURES)
        ranker = er.FairLinearRanker("dp", alpha=0.0).fit(files)
        tried: dict[str, Callable[[], Any]] = {
            "rank": lambda: list(rank_files(files, ranker)),
            "train": lambda: er.fairness_path(files, "dp", target="centered"),
        }
        with pytest.raises(ConfigError, match="Set TMPDIR to a larger disk, or sort the files by query") as caught:
            tried[work]()
    assert "\n" not in str(caught.value)
    assert list(disk.iterdir()) == []


def spoil(path: Path, column: str) -> None:
    """Change the bytes of one group of rows of a column; the footer stays whole."""
    from evenrank.io.parquet_footer import read_footer

    content = bytearray(path.read_bytes())
    chunk = next(chunk for chunk in read_footer(path).chunks if chunk.column == column)
    content[chunk.start + 20 : chunk.stop] = np.random.default_rng(0).bytes(chunk.stop - chunk.start - 20)
    path.write_bytes(content)


@pytest.mark.parametrize("fault", ["damaged", "gone"])
@pytest.mark.parametrize("order", ["together", "spread"])
@pytest.mark.parametrize("work", ["rank", "train"])
def test_a_fault_between_two_passes_leaves_no_output(
    work: str, order: str, fault: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are whole when they are scanned and when their queries are looked at, and are not afterwards."""
    rows = skewed_rows(5)
    rows = rows.sort("qid", maintain_order=True) if order == "together" else rows
    folder = written(tmp_path / "rows", rows, "many files", compression="zstd")
    victim = folder / "part-4.parquet"
    out = tmp_path / ("ranked.parquet" if work == "rank" else "model.json")
    model = model_of(rows, tmp_path / "m.json")
    plain, in_order = row_files.RankingFiles.frames, whole_queries.sorted_frames

    def break_it(names: Any) -> None:
        if "f0" in names and victim.exists():
            spoil(victim, "f0") if fault == "damaged" else victim.unlink()

    def frames(self: Any, names: Any) -> Any:
        break_it(names)
        return plain(self, names)

    def sorted_frames(starts: Any, names: Any, query: str) -> Any:
        break_it(names)
        return in_order(starts, names, query)

    monkeypatch.setattr(row_files.RankingFiles, "frames", frames)
    monkeypatch.setattr(whole_queries, "sorted_frames", sorted_frames)
    asked = ["-m", model] if work == "rank" else ["--alpha", "0.1", "--target", "centered", "--features", "f0,f1,f2"]
    code, _, told = run(work, folder, "--engine", "stream", *asked, "-o", out)
    assert (code, out.exists()) == (2, False)
    assert told.splitlines()[-1].startswith("evenrank"), told
    assert str(folder) in told
    assert "Traceback" not in told
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("rows_after", [50, 429])
def test_a_file_that_is_another_one_when_rows_are_sorted(
    rows_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has other rows, fewer or as many, than when it was scanned."""
    rows = skewed_rows(6, n=3000)
    folder = written(tmp_path / "rows", rows, "many files")
    files = er.scan(folder, features=FEATURES)
    plain = whole_queries.stand_together

    def then_changed(some: Any) -> bool:
        found = plain(some)
        skewed_rows(7, n=rows_after).write_parquet(folder / "part-4.parquet")
        return found

    monkeypatch.setattr(whole_queries, "stand_together", then_changed)
    with pytest.raises(DataError, match=r"part-4\.parquet: the file has changed since it was scanned"):
        er.fairness_path(files, "dp", target="centered")
