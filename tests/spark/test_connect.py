"""Spark Connect: everything that a session of the other kind does, with the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import evenrank as er
from engine_cases import differences, in_memory, make, write
from evenrank.methods.reranked import RerankedRanker
from file_layouts import FEATURES, skewed_rows, written

pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
PROGRAM = Path(__file__).with_name("connect_program.py")


def test_connect_says_what_memory_says(tmp_path: Path) -> None:
    from evenrank.ranking import strict_places

    logs, rows = make(4, queries=60, digits=2, near=True), skewed_rows(3)
    write(logs, tmp_path / "logs", 3)
    written(tmp_path / "rows", rows, "many files")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), *FEATURES],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    data = er.RankingData.from_frame(rows, features=FEATURES)
    path = er.fairness_path(data, "dp", [0.0, 0.1])
    offset = er.GroupOffset("dp", 3, shrink=False).fit(rows["f0"].to_numpy(), data)
    places = data.to_caller(strict_places(data.to_stored(RerankedRanker(path.ranker(0.1), offset).predict(data)), data))
    ranked = sorted(
        [query, int(place) + 1, item]
        for query, place, item in zip(rows["qid"], places, rows["item"], strict=True)
        if place < 2
    )
    stored = logs["score"].to_numpy(), er.RankingData.from_frame(logs, features=["score"])
    expected = {
        "audit": json.loads(json.dumps(in_memory(logs, tmp_path, ks=[3]).to_dict())),
        "measures": er.measure(*stored, ["ndcg@3", "dp@3"]),
        "coef": path.coef.tolist(),
        "centered": er.fairness_path(data, "dp", [0.1], target="centered").coef.tolist(),
        "offsets": offset.offsets_,
        "ranked": ranked,
        "left": [],
    }
    assert list(differences(expected, found)) == []
