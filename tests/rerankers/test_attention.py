"""Equity of attention: golden steps, enumeration, states, and bad input."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.rerankers.attention import EquityOfAttention
from golden import golden


def started(case: dict[str, Any], attention: list[float], relevance: list[float]) -> EquityOfAttention:
    items = [[i, got, deserved] for i, (got, deserved) in enumerate(zip(attention, relevance, strict=True))]
    state = {"equity_of_attention": 1, "served": 1, "items": items}
    return EquityOfAttention.from_state(state | {name: case[name] for name in ("theta", "p", "k")})


@golden("rerankers/equity_of_attention", "cases")
def test_every_step_is_as_fair_as_can_be(case: dict[str, Any]) -> None:
    for step in case["steps"]:
        ranker = started(case, step["attention_before"], step["relevance_before"])
        order = ranker.rank(step["relevance"], range(case["n_items"]))
        assert ranker.unfairness == pytest.approx(step["optimum"], abs=1e-9)
        share = np.array(step["relevance"]) / np.sum(step["relevance"])
        k = min(case["k"], len(order))
        dcg = ((2.0 ** share[order[:k]] - 1) / np.log2(np.arange(2, k + 2))).sum()
        assert dcg >= case["theta"] * step["ideal_dcg"] - 1e-9


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 2), st.floats(0, 2)), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.integers(1, 6),
)
def test_no_order_is_fairer(items: list[Any], theta: float, k: int) -> None:
    relevance, got, deserved = (np.array(column) for column in zip(*items, strict=True))
    share = relevance / relevance.sum()
    depth, n = min(k, len(items)), len(items)
    given_ = 0.5 ** np.arange(n) * (np.arange(n) < depth)
    given_ = given_ / given_.sum()
    gain, discount = 2.0**share - 1, np.append(1 / np.log2(np.arange(2, depth + 2)), np.zeros(n - depth))

    def result(order: Any) -> tuple[float, float]:
        attention = np.zeros(n)
        attention[list(order)] = given_
        return float(gain[list(order)] @ discount), float(np.abs(got + attention - deserved - share).sum())

    orders = [result(order) for order in permutations(range(n))]
    best = max(dcg for dcg, _ in orders)
    fairest = min(unfair for dcg, unfair in orders if dcg >= theta * best - 1e-12)
    ranker = started({"theta": theta, "p": 0.5, "k": k}, got.tolist(), deserved.tolist())
    dcg, unfair = result(ranker.rank(relevance, range(n)))
    assert unfair == pytest.approx(fairest, abs=1e-7)
    assert dcg >= theta * best - 1e-9


def test_attention_follows_relevance_over_many_lists() -> None:
    rng = np.random.default_rng(0)
    relevance = rng.random(10) + 0.5
    ranker = EquityOfAttention(p=0.3)
    for _ in range(300):
        ranker.rank(relevance, range(10))
    got = np.array([ranker.attention[i] for i in range(10)])
    assert got / got.sum() == pytest.approx(relevance / relevance.sum(), abs=0.005)


def test_a_state_goes_on_and_servers_add_up() -> None:
    rng = np.random.default_rng(1)
    lists = rng.random((20, 6))
    whole, kept = EquityOfAttention(0.8, k=3), EquityOfAttention(0.8, k=3)
    for number, relevance in enumerate(lists):
        expected = whole.rank(relevance, list("uvwxyz"))
        if number == 9:
            kept = EquityOfAttention.from_state(json.loads(json.dumps(kept.state())))
        assert kept.rank(relevance, list("uvwxyz")).tolist() == expected.tolist()
    first, second = EquityOfAttention(), EquityOfAttention()
    first.rank([0.5, 0.5], ["a", "b"])
    second.rank([0.9, 0.1], ["b", "c"])
    merged = first.merge(second)
    assert merged.served == 2
    assert merged.relevance == pytest.approx({"a": 0.5, "b": 1.4, "c": 0.1})
    other = second.merge(first)
    assert (other.attention, other.relevance) == (pytest.approx(merged.attention), pytest.approx(merged.relevance))


def test_a_state_holds_numpy_s_ids_too() -> None:
    ranker = EquityOfAttention()
    ranker.rank([0.6, 0.4], [np.int64(1), np.str_("b")])
    again = EquityOfAttention.from_state(json.loads(json.dumps(ranker.state())))
    assert again.attention == ranker.attention == {1: pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}


def test_batches_know_items_again() -> None:
    data = RankingData.from_arrays(
        np.zeros((4, 0)), [0] * 4, ["a", "b"] * 2, [1, 1, 2, 2], item_ids=["x", "y", "x", "y"]
    )
    assert EquityOfAttention().rerank([0.6, 0.5, 0.6, 0.5], data).tolist() == [-1, -2, -2, -1]
    unnamed = RankingData.from_arrays(np.zeros((2, 0)), [0] * 2, ["a", "b"], [1, 1])
    with pytest.raises(DataError, match="knows items by their ids"):
        EquityOfAttention().rerank([1, 2], unnamed)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: EquityOfAttention(theta=1.5), ConfigError, "theta must be a finite number ≥ 0 and ≤ 1"),
        (lambda: EquityOfAttention(p=1), ConfigError, "p must be between 0 and 1"),
        (lambda: EquityOfAttention().rank([1, 2], ["a"]), DataError, "must be of one length"),
        (lambda: EquityOfAttention().rank([1, 2], ["a", "a"]), DataError, "only once"),
        (lambda: EquityOfAttention().rank([0, 0], ["a", "b"]), DataError, "0 to 1e\\+100 and not all 0; got 0 to 0"),
        (
            lambda: EquityOfAttention().rank([1e308, 1e308], ["a", "b"]),
            DataError,
            "0 to 1e\\+100 and not all 0; got 1e",
        ),
        (lambda: EquityOfAttention().rank([-1, 2], ["a", "b"]), DataError, "0 to 1e\\+100 and not all 0; got -1 to 2"),
        (lambda: EquityOfAttention().rank([], []), DataError, "one item at least; got"),
        (lambda: EquityOfAttention().rank([np.nan, 2], ["a", "b"]), DataError, "not all 0; got nan to nan"),
        (lambda: EquityOfAttention().rank([1, 2], [["a"], "b"]), DataError, "must be a text or a number; got .'a'."),
        (lambda: EquityOfAttention().rank([1, 2], [float("nan"), "b"]), DataError, "text or a number; got nan"),
        (lambda: EquityOfAttention.from_state({"served": 1}), DataError, "not a whole state"),
        (lambda: EquityOfAttention().merge(EquityOfAttention(0.5)), ConfigError, "must share theta; got 0.0 and 0.5"),
    ],
)
def test_input_is_checked(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
