"""`train` and `rank` of Parquet folders: the files of memory, one line for what cannot be, nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.errors import ConfigError
from evenrank.io import row_files
from evenrank.io.write_frames import write_frames
from file_layouts import FEATURES, skewed_rows, written

TRAIN = ["train", "--engine", "stream", "--features", ",".join(FEATURES)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(row_files, "PART_BYTES", 8 * 5 * 1024)
    return written(tmp_path / "rows", skewed_rows(1, ties=True).sort("qid", maintain_order=True), "many files")


def weights(path: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(path.read_text())["weights"]
    return found


def test_a_streamed_model_and_its_lists_are_those_of_memory(run: Any, folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    told = run(*TRAIN, folder, "--notion", "dp", "--alpha", 0.1, "-o", one)
    assert told.code == 0, told.err
    assert "Gap of the mean scores: " in told.out
    assert run("train", folder, "--features", ",".join(FEATURES), "--notion", "dp", "--alpha", 0.1, "-o", two).code == 0
    for name, value in weights(two).items():
        assert weights(one)[name] == pytest.approx(value, rel=1e-9)
    for suffix in ("csv", "jsonl", "parquet"):
        a, b = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
        assert run("rank", folder, "--engine", "stream", "-m", one, "-o", a).code == 0
        assert run("rank", folder, "--engine", "memory", "-m", one, "-o", b).code == 0
        if suffix == "parquet":
            assert pl.read_parquet(a).equals(pl.read_parquet(b))
        else:
            assert a.read_bytes() == b.read_bytes()


def test_the_report_is_of_sums(run: Any, folder: Path, tmp_path: Path) -> None:
    report = run(*TRAIN, folder, "--notion", "dp", "--alpha", 5.0, "-o", tmp_path / "m.json", "--json").json()
    assert report["rows"] == 3000
    assert report["score_gap"] < 1e-9 < report["before"]["score_gap"]
    assert report["loss"] >= report["before"]["loss"]
    rows = pl.read_parquet(folder / "*.parquet")
    content = json.loads((tmp_path / "m.json").read_text())
    score = rows.select(FEATURES).to_numpy() @ list(content["weights"].values()) + content["intercept"]
    assert report["loss"] == pytest.approx(float(np.mean((score - rows["relevance"].to_numpy()) ** 2)), rel=1e-9)


def test_what_is_too_large_for_memory_is_streamed(run: Any, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "100K")
    told = run("train", folder / "*.parquet", "--features", ",".join(FEATURES), "-o", tmp_path / "m.json")
    assert told.code == 0, told.err
    assert "read part by part" in told.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--solver", "sgd"], "solver='sgd' goes through the rows"),
        (["--loss", "logistic"], "loss='logistic' goes through the rows"),
        (["--max-violation", 0.1], "--max-violation ranks the training rows"),
        (["--method", "deltr"], "--method deltr needs the rows in memory"),
        (["--method", "offset"], "--method offset needs the rows in memory"),
        (["--scope", "per_query"], "scope='per_query' has one gap per query"),
    ],
)
def test_what_needs_rows_is_one_line(run: Any, folder: Path, tmp_path: Path, options: list[Any], told: str) -> None:
    found = run(*TRAIN, folder, *options, "-o", tmp_path / "m.json")
    assert found.code == 2
    assert len(found.lines) == 1
    assert told in found.lines[0]
    assert not (tmp_path / "m.json").exists()


def test_bad_requests_are_one_line(run: Any, folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("qid,relevance,group,f\n1,1,a,2\n")
    assert "--engine stream reads Parquet files; got 'rows.csv'" in run("train", rows, "--engine", "stream").err
    assert "--engine must be one of memory, stream; got 'x'" in run("train", folder, "--engine", "x").err
    model = tmp_path / "m.json"
    assert run(*TRAIN, folder, "-o", model).code == 0
    told = run("rank", folder, "--engine", "stream", "-m", model, "--method", "fastar")
    assert told.code == 2
    assert "--method fastar looks at all rows" in told.err
    told = run("rank", folder, "--engine", "stream", "-m", model, "--json")
    assert "Name a file with --out" in told.err


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_fault_in_the_middle_leaves_the_old_file(run: Any, folder: Path, tmp_path: Path, suffix: str) -> None:
    model, out = tmp_path / "m.json", tmp_path / f"out.{suffix}"
    assert run(*TRAIN, folder, "-o", model).code == 0
    out.write_bytes(b"old")
    file = folder / "part-6.parquet"
    bad = pl.read_parquet(file).with_columns(f1=pl.lit(np.inf))
    bad.write_parquet(file)
    told = run("rank", folder, "--engine", "stream", "-m", model, "-o", out)
    assert told.code == 2
    assert len(told.lines) == 1
    assert "part-6.parquet: row 0: feature 'f1' must be a finite number; got inf" in told.lines[0]
    assert out.read_bytes() == b"old"
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_full_disk_is_one_line(tmp_path: Path, suffix: str) -> None:
    """A link to a device without room stands for a disk without room."""
    (tmp_path / f"out.{suffix}").symlink_to("/dev/full")
    frames = (pl.DataFrame({"a": np.arange(200_000) + number, "b": ["text"] * 200_000}) for number in range(3))
    with pytest.raises(
        ConfigError, match=r"cannot be written \(No space left on device.*\)\. Choose another output"
    ) as caught:
        write_frames(tmp_path / f"out.{suffix}", frames)
    assert "\n" not in str(caught.value)
