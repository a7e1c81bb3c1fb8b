"""`by_group`: one row per group, each column against a plain loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError

GROUP = ["a", "b", "a", None, "b", "b", "a", "b"]
RELEVANCE = [1, 0, 2, 0, 1, 1, 0, 0]
QID = [0, 0, 0, 0, 1, 1, 1, 2]
SCORES = [3.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 5.0]
RANKS = [2, 1, 3, 4, 2, 2, 2, 1]  # three tied items
TOP2 = [1, 1, 0, 0, 2 / 3, 2 / 3, 2 / 3, 1]
DATA = er.RankingData.from_arrays(np.zeros((8, 0)), RELEVANCE, GROUP, QID)


def mean(values: list[float], group: str, relevant: bool = False) -> float:
    inside = [v for v, g, r in zip(values, GROUP, RELEVANCE, strict=True) if g == group and (r >= 1 or not relevant)]
    return sum(inside) / len(inside)


def test_columns() -> None:
    names = ["count", "lists", "share", "selection_rate@2", "selection_rate_relevant@2", "mean_rank", "relevance"]
    rows = er.by_group(SCORES, DATA, [*names, "relevant_share", "exposure", "pairwise_accuracy"])
    assert [row["group"] for row in rows] == ["a", "b"]
    assert list(rows[0]) == ["group", *names, "relevant_share", "exposure", "pairwise_accuracy"]
    log = [1 / math.log2(1 + rank) for rank in range(1, 5)]
    exposure = [log[1], log[0], log[2], log[3], *[sum(log[:3]) / 3] * 3, log[0]]
    for row in rows:
        group = row["group"]
        assert row["count"] == GROUP.count(group)
        assert row["share"] == pytest.approx(GROUP.count(group) / 7)
        assert row["lists"] == {"a": 2, "b": 3}[group]
        assert row["selection_rate@2"] == pytest.approx(mean(TOP2, group))
        assert row["selection_rate_relevant@2"] == pytest.approx(mean(TOP2, group, relevant=True))
        assert row["mean_rank"] == pytest.approx(mean([float(rank) for rank in RANKS], group))
        assert row["relevance"] == pytest.approx(mean([float(value) for value in RELEVANCE], group))
        assert row["relevant_share"] == pytest.approx(mean([float(value >= 1) for value in RELEVANCE], group))
        assert row["exposure"] == pytest.approx(mean(exposure, group))
    # a: item 0 (1) loses to item 1 (0); item 2 (2) loses to 0 and to 1. b: items 4 and 5 tie with item 6.
    assert [row["pairwise_accuracy"] for row in rows] == pytest.approx([0 / 3, 0.5])


def test_rates_are_selection_rates_with_weights_and_soft_groups() -> None:
    rng = np.random.default_rng(0)
    weighted = er.RankingData.from_arrays(np.zeros((8, 0)), RELEVANCE, GROUP, QID, sample_weight=rng.uniform(0, 2, 8))
    soft = DATA.with_membership(rng.dirichlet([1, 1, 1], 8)[:, :2], ["a", "b"])
    for data in (DATA, weighted, soft):
        rates = er.selection_rates(SCORES, data, 2)
        assert {row["group"]: row["selection_rate@2"] for row in er.by_group(SCORES, data, "selection_rate@2")} == (
            pytest.approx(rates)
        )


def test_a_function_of_rows_and_other_discounts() -> None:
    def clicks(scores: Any, data: er.RankingData) -> Any:
        assert scores.tolist() == SCORES
        return np.arange(8.0)

    rows = er.by_group(SCORES, DATA, [clicks, "exposure@1"], discount="rbp", patience=0.5)
    assert [row["clicks"] for row in rows] == [mean(list(np.arange(8.0)), group) for group in "ab"]
    top1 = [0, 1, 0, 0, 1 / 3, 1 / 3, 1 / 3, 1]
    assert [row["exposure@1"] for row in rows] == pytest.approx([mean(top1, group) for group in "ab"])


def test_a_group_without_rows_is_nan() -> None:
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [1, 0], ["a", "a"], [0, 0], group_names=["a", "b"])
    row = er.by_group([1.0, 2.0], data)[1]
    assert row["count"] == 0
    assert np.isnan([row["exposure"], row["mean_rank"], row["pairwise_accuracy"]]).all()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["selection_rate"], "a column must be one of selection_rate@k"),
        (["selection_rate@0"], "got 'selection_rate@0'"),
        (["mean_rank@3"], "got 'mean_rank@3'"),
        (["ndcg@3"], "got 'ndcg@3'"),
        ([lambda scores, data: scores], "a function that has a name of its own"),
        ([7], "a function that has a name of its own; got 7"),
    ],
)
def test_wrong_columns_are_said_in_one_line(columns: list[Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        er.by_group(SCORES, DATA, columns)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_rows() -> None:
    with pytest.raises(DataError, match="one score per row"):
        er.by_group(np.zeros((8, 2)), DATA)
    with pytest.raises(DataError, match="needs the group of each row"):
        er.by_group([1.0], er.RankingData.from_arrays([[0.0]], [1], None, [0]))
