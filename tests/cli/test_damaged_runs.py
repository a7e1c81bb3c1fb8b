"""Damaged run folders on the command line: one line and exit code 2, or a warning and the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ASKED = ("--notions", "dp", "--strengths", "0.1", "--k", "2", "--folds", "3", "--examples", "2", "-o", "RUN")
DEEP = b"[" * 100_000


@pytest.fixture
def folder(run):
    """A finished run of a small file, made by the command that resumes it."""
    rng = np.random.default_rng(0)
    lines = [f"{row // 8},{row // 2 % 2},{'ab'[row % 2]},{rng.normal():.3f}" for row in range(96)]
    Path("rows.csv").write_text("\n".join(["qid,relevance,group,x", *lines]) + "\n")
    assert run("sweep", "rows.csv", *ASKED).code == 0
    return Path("RUN")


def commands(run):
    return [run("report", "RUN"), run("select", "RUN"), run("sweep", "rows.csv", *ASKED)]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.json", DEEP, "RUN/config.json: is not whole JSON."),
        ("config.json", b'{"format": 2}', "RUN/config.json: its content must be an object with 'asked';"),
        ("config.json", b"[]", "RUN/config.json: is not a configuration of format 1 or 2."),
    ],
)
def test_a_damaged_configuration(run, folder, name, content, says):
    (folder / name).write_bytes(content)
    for done in commands(run):
        assert done.code == 2
        assert [line.startswith(f"evenrank: {says}") for line in done.lines] == [True], done.err


def test_an_edited_configuration_and_another_runs_journal(run, folder):
    whole = (folder / "config.json").read_text()
    (folder / "config.json").write_text(whole.replace('"exact"', '"gd"'))
    for done in commands(run):
        assert done.code == 2
        assert len(done.lines) == 1
        assert "config.json: was changed after the run began" in done.err
    (folder / "config.json").write_text(whole)
    other = [*ASKED[:-1], "OTHER", "--seed", "5"]
    assert run("sweep", "rows.csv", *other).code == 0
    (folder / "journal.jsonl").write_bytes(Path("OTHER/journal.jsonl").read_bytes())
    for done in commands(run):
        assert done.code == 2
        assert len(done.lines) == 1
        assert "journal.jsonl, line 1: belongs to another run" in done.err


def test_a_damaged_line_and_lost_examples(run, folder):
    before = run("select", "RUN", "--json").json()
    journal = folder / "journal.jsonl"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first[:30] + DEEP + b"\n" + b"".join(others))
    (folder / "examples.json").unlink()
    for command in ("report", "select"):
        done = run(command, "RUN")
        assert done.code == 0
        assert done.lines == []
        assert [line.split(": ")[2] for line in done.warnings] == [
            "RUN/journal.jsonl, line 1",
            "RUN",
            "RUN/examples.json",
        ]
    done = run("sweep", "rows.csv", *ASKED)
    assert done.code == 0
    assert len(done.warnings) == 1
    assert "line 1: damaged and left out" in done.warnings[0]
    after = run("select", "RUN", "--json")
    assert after.json() == before
    assert "damaged" not in after.err


def test_a_damaged_line_that_keeps_its_checksum(run, folder):
    import json
    import zlib

    journal = folder / "journal.jsonl"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    content = json.loads(first)
    content["record"]["table"][0]["values"]["ndcg@2"] = [0.5]
    body = f'"run": "{content["run"]}", '
    record = json.dumps(content["record"])
    check = zlib.crc32((body + record).encode())
    journal.write_bytes(f'{{"check": {check}, {body}"record": {record}}}\n'.encode() + b"".join(others))
    for done in commands(run):
        assert done.code == 2
        (line,) = done.lines
        assert "RUN/journal.jsonl, line 1: table[0].values.ndcg@2 must be a list of 2; found [0.5]" in line
