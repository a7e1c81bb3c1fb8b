"""Model files that the code before version 2 wrote, and the scores it gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import evenrank as er

FOLDER = Path(__file__).parent / "rankers" / "model_files_v1"
CASES = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def rows_of(name: str) -> er.RankingData | np.ndarray:
    """The rows scored then: a matrix where values are missing, which only boosters take."""
    rows = np.array(CASES[name]["rows"], float)
    if np.isnan(rows).any():
        return rows
    zeros = np.zeros(len(rows), np.int64)
    return er.RankingData.from_arrays(rows, zeros, CASES[name]["group"], zeros, feature_names=["u", "v v", "größe"])


def loads_as_before(name: str, folder: Path) -> None:
    """The file gives the scores it gave, and saved anew it is of this version and gives them still."""
    expected = np.array(CASES[name]["scores"])
    tolerance = 1e-6 * np.abs(expected).max()  # sums of other processors
    ranker = er.load(FOLDER / f"{name}.json")
    np.testing.assert_allclose(ranker.predict(rows_of(name)), expected, rtol=0, atol=tolerance)
    ranker.save(folder / "again.json")
    assert json.loads((folder / "again.json").read_text(encoding="utf-8"))["version"] == 2
    again = er.load(folder / "again.json")
    np.testing.assert_array_equal(again.predict(rows_of(name)), ranker.predict(rows_of(name)))
