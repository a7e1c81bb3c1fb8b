"""One list in one process: the scores and refusals of tables for plain arrays, threads, light imports."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import evenrank as er


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    whole = er.datasets.german_credit("age", lists=30, items=12)
    group = [whole.group_names[code] for code in whole.group]
    return er.RankingData.from_arrays(whole.features, whole.relevance, group, whole.query_of_row)


@pytest.mark.parametrize("kind", [er.FairLinearRanker("dp", alpha=0.1), er.DELTR(gamma=0.1)])
def test_an_array_gets_the_scores_of_a_table(data: er.RankingData, kind) -> None:
    ranker = kind.fit(data)
    expected = data.to_stored(ranker.predict(data))
    for rows in (data.features, data.features[:, :], np.asfortranarray(data.features), data.features.tolist()):
        np.testing.assert_array_equal(ranker.predict(rows), expected)
    np.testing.assert_array_equal(ranker.predict(data.features[3:4]), expected[3:4])
    narrow = data.features.astype(np.float32)
    np.testing.assert_array_equal(ranker.predict(narrow), ranker.predict(narrow.astype(np.float64)))


def test_what_is_wrong_with_an_array_is_said_as_before(data: er.RankingData) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    rows = np.array(data.features[:4])
    with pytest.raises(ValueError, match="features"):
        ranker.predict(rows[:, :-1])
    rows[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ranker.predict(rows)
    rows[2, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        ranker.predict(rows)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        ranker.predict(rows[:0])
    with pytest.raises(er.NotFittedError):
        er.FairLinearRanker().predict(rows)


def test_an_array_without_the_names_of_training_is_warned_of() -> None:
    data = er.datasets.german_credit("age", lists=20, items=6)
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but FairLinearRanker was fitted"):
        found = ranker.predict(np.asarray(data.features))
    np.testing.assert_array_equal(data.to_caller(found), ranker.predict(data))


def test_a_group_aware_ranker_still_asks_for_groups(data: er.RankingData) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.1, group_aware=True).fit(data)
    with pytest.raises(er.ConfigError, match="needs sensitive_features"):
        ranker.predict(np.asarray(data.features))


def test_threads_share_a_ranker(data: er.RankingData) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    offset = er.GroupOffset("dp", k=3, shrink=False).fit(ranker.predict(data), data)
    lists = [np.array(data.features[first : first + 12]) for first in data.query_ptr[:-1]]
    expected = [ranker.predict(rows) for rows in lists]
    reranked = offset.rerank(ranker.predict(data), data)
    with ThreadPoolExecutor(8) as pool:
        for found, scores in zip(pool.map(ranker.predict, lists * 20), expected * 20, strict=True):
            np.testing.assert_array_equal(found, scores)
        for found in pool.map(lambda _: offset.rerank(ranker.predict(data), data), range(20)):
            np.testing.assert_array_equal(found, reranked)


def test_load_imports_only_what_the_model_needs(data: er.RankingData, tmp_path: Path) -> None:
    er.FairLinearRanker("dp", alpha=0.1).fit(data).save(tmp_path / "model.json")
    heavy = ["torch", "lightgbm", "xgboost", "polars", "jinja2", "altair", "typer", "onnx", "numba"]
    code = (
        "import sys, evenrank as er\n"
        f"er.load({str(tmp_path / 'model.json')!r})\n"
        f"print(*[name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
