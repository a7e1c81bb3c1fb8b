"""Masked values are never data: a masked group is an unknown one, and anything else masked is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evenrank as er

N = 8
X = np.arange(2.0 * N).reshape(N, 2) % 5
Y = np.array([1, 0, 1, 0, 1, 1, 0, 0])
GROUP = np.array(["a", "b"] * 4)
QID = np.repeat([1, 2], 4)
SCORES = np.array([0.5, 0.25, 0.75, 0.1, 0.9, 0.3, 0.2, 0.6])
DATA = er.RankingData.from_arrays(X, Y, GROUP, QID)


def masked(values: Any, row: int = 2) -> Any:
    """The values with one of them masked, and something there that would show."""
    array = np.ma.array(values, copy=True)
    array[row] = np.ma.masked
    return array


CALLS: dict[str, Callable[[], Any]] = {
    "X": lambda: er.RankingData.from_arrays(masked(X), Y, GROUP, QID),
    "relevance": lambda: er.RankingData.from_arrays(X, masked(Y), GROUP, QID),
    "sample_weight": lambda: er.RankingData.from_arrays(X, Y, GROUP, QID, sample_weight=masked(np.ones(N))),
    "membership": lambda: DATA.with_membership(masked(np.full((N, 2), 0.5)), ["a", "b"]),
    "queries": lambda: DATA.take(masked(np.array([0, 1, 1]))),
    "scores": lambda: er.measure(masked(SCORES), DATA, "ndcg@3"),
    "scores of models": lambda: er.measure(masked(SCORES[:, None]), DATA, "ndcg@3"),
    "scores of rates": lambda: er.selection_rates(masked(SCORES), DATA, 2),
    "scores of an audit": lambda: er.audit(masked(SCORES), DATA, [2]),
    "scores to re-rank": lambda: er.FAStar(0.5).rerank(masked(SCORES), DATA),
    "values": lambda: er.violation(masked(SCORES), DATA, "dp"),
    "a notion's mask": lambda: er.violation(SCORES, DATA, [masked(Y == 1)]),
    "a mask of mine": lambda: er.violation(SCORES, DATA, er.Notion("mine", lambda data: [masked(Y == 1)])),
    "ranking": lambda: er.FAStar(0.5).is_fair(masked(np.array([True, False, True, True]))),
    "alphas": lambda: er.fairness_path(DATA, "dp", masked(np.array([0.0, 0.1, 0.2]))),
    "X of fit": lambda: er.FairLinearRanker("dp").fit(masked(X), Y, qid=QID, sensitive_features=GROUP),
    "y": lambda: er.FairLinearRanker("dp").fit(X, masked(Y), qid=QID, sensitive_features=GROUP),
    "y of DELTR": lambda: er.DELTR().fit(X, masked(Y), qid=QID, sensitive_features=GROUP),
    "sample_weight of fit": lambda: er.FairLinearRanker("dp").fit(
        X, Y, qid=QID, sensitive_features=GROUP, sample_weight=masked(np.ones(N))
    ),
    "X of predict": lambda: er.FairLinearRanker("dp").fit(DATA).predict(masked(X)),
    "folds": lambda: er.sweep(DATA, folds=masked(np.array([0, 1, 1]))),
}


@pytest.mark.parametrize("subject", CALLS)
def test_masked_values_are_refused(subject: str) -> None:
    name = subject.partition(" of ")[0] if not subject.startswith("a ") else subject
    name = "scores" if subject == "scores to re-rank" else name
    with pytest.raises(er.DataError) as caught:
        CALLS[subject]()
    assert str(caught.value) == f"row 2: {name} must not be masked; got a masked value. Fill it or drop the row."


@pytest.mark.parametrize("what", ["qid", "item_ids"])
def test_masked_ids_are_missing_ones(what: str) -> None:
    ids = {"qid": QID, "item_ids": np.arange(N)}
    with pytest.raises(er.DataError, match=rf"^row 2: {what} must not be empty"):
        er.RankingData.from_arrays(X, Y, GROUP, **ids | {what: masked(ids[what])})


@pytest.mark.parametrize(
    "group",
    [GROUP, Y, Y.astype(float), np.array([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")] * 4, "M8[ns]")],
    ids=["text", "int", "float", "time"],
)
def test_a_masked_group_is_an_unknown_one(group: np.ndarray) -> None:
    plain = er.RankingData.from_arrays(X, Y, group, QID)
    data = er.RankingData.from_arrays(X, Y, masked(group), QID)
    assert data.group_names == plain.group_names
    assert data.group.tolist() == [-1 if row == 2 else code for row, code in enumerate(plain.group.tolist())]
    assert DATA.with_group(masked(group)).group.tolist() == data.group.tolist()


def test_one_masked_label_in_a_list_is_an_unknown_group() -> None:
    data = er.RankingData.from_arrays(X, Y, ["a", "b", np.ma.masked, *GROUP[3:].tolist()], QID)
    assert data.group[2] == -1


def test_masked_arrays_with_nothing_masked_are_plain_ones() -> None:
    X_, Y_, group, qid, scores = map(np.ma.array, (X, Y, GROUP, QID, SCORES))
    data = er.RankingData.from_arrays(X_, Y_, group, qid, item_ids=np.ma.arange(N), sample_weight=np.ma.ones(N))
    for name in ("features", "relevance", "query_ids", "item_ids", "sample_weight"):
        assert type(getattr(data, name)) is np.ndarray
    assert er.measure(scores, data, "ndcg@3") == er.measure(SCORES, DATA, "ndcg@3")
    fitted = er.FairLinearRanker("dp").fit(X_, Y_, qid=qid, sensitive_features=group)
    np.testing.assert_array_equal(fitted.predict(X_), fitted.predict(X))
