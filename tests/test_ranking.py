"""Places in lists: against every possible tie-breaking, and what must not change them."""

from __future__ import annotations

from math import log2
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import oracles
from evenrank import ranking as module
from evenrank.checks import check_k
from evenrank.errors import ConfigError
from evenrank.ranking import Ranking, discount_sums
from oracles import Query, as_data, pooled
from strategies import LEVELS, queries

KS = st.integers(1, 7)
seeds = st.integers(0, 2**32 - 1)


def pointers(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


def rank_list(scores: np.ndarray, ties: str = "average") -> Ranking:
    return Ranking(scores, pointers([len(scores)]), ties=ties)


def ragged(seed: int, longest: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Many lists of mixed lengths whose scores are distinct, equal, or equal but for noise and chains of noise."""
    rng = np.random.default_rng(seed)
    ptr = pointers(rng.integers(1, longest + 1, 12).tolist())
    scores = rng.integers(-4, 5, ptr[-1]) / 4
    noise = 1e-12 if dtype == np.float64 else 1e-6
    chained = scores + rng.integers(-3, 4, ptr[-1]) * (0.4 * noise)
    return np.where(rng.random(ptr[-1]) < 0.5, scores, chained).astype(dtype), ptr


# ---------------------------------------------------------------------- against the definition


@given(queries(), KS)
def test_one_model_is_the_average_over_all_tie_breakings(some: list[Query], k: int) -> None:
    ranking = Ranking(np.array(pooled(some, "scores")), as_data(some).query_ptr)
    for found, twin in [
        (ranking.rank, oracles.rank),
        (ranking.top(k), lambda scores: oracles.top(scores, k)),
        (ranking.exposure(), oracles.exposure),
        (ranking.exposure(k), lambda scores: oracles.exposure(scores, k)),
    ]:
        assert found.tolist() == pytest.approx([value for query in some for value in twin(query.scores)], rel=1e-12)


@given(st.integers(1, 40), st.integers(1, 4), seeds)
def test_many_models_are_each_model_alone(length: int, models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ptr = pointers([length, 1, length, 3])
    scores = rng.choice(LEVELS, (ptr[-1], models))
    together = Ranking(scores, ptr)
    for model in range(models):
        alone = Ranking(scores[:, model].copy(), ptr)
        np.testing.assert_array_equal(together.first[:, model], alone.first)
        np.testing.assert_array_equal(together.top(3)[:, model], alone.top(3))
        np.testing.assert_array_equal(together.exposure(3)[:, model], alone.exposure(3))


@pytest.mark.parametrize("length", [2, module.SHORT, module.SHORT + 1, 60])
def test_places_count_the_items_above_and_beside(length: int) -> None:
    scores = np.random.default_rng(length).choice(LEVELS, length)
    ranking = rank_list(scores)
    assert ranking.first.tolist() == [sum(other > score for other in scores) for score in scores]
    assert ranking.size.tolist() == [sum(other == score for other in scores) for score in scores]


@pytest.mark.parametrize("length", [2, module.SHORT, module.SHORT + 1, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_in_input_order_are_a_stable_sort(length: int, dtype: type) -> None:
    rng = np.random.default_rng(length)
    scores = rng.choice(LEVELS, (length, 5)).astype(dtype)
    scores[:, 0] = rng.permutation(length)
    ranking = rank_list(scores, ties="input")
    for model in range(5):
        order = sorted(range(length), key=lambda item: -scores[item, model])
        assert [int(ranking.first[item, model]) for item in order] == list(range(length))
    assert (ranking.size == 1).all()


def test_expected_values_of_a_tied_list() -> None:
    ranking = rank_list(np.array([1.0, 7.0, 1.0, 1.0]))
    assert ranking.top(2).tolist() == [1 / 3, 1, 1 / 3, 1 / 3]
    assert ranking.rank.tolist() == [(2 + 3 + 4) / 3, 1, (2 + 3 + 4) / 3, (2 + 3 + 4) / 3]
    assert ranking.exposure(3)[0] == pytest.approx((1 / log2(1 + 2) + 1 / log2(1 + 3)) / 3, rel=1e-15)
    assert ranking.exposure()[1] == 1 / log2(1 + 1)


# ---------------------------------------------------------------------- the two ways of counting


@given(seeds, st.sampled_from([np.float32, np.float64]), st.sampled_from(["average", "input"]))
def test_counting_pairs_and_sorting_agree(seed: int, dtype: type, ties: str) -> None:
    scores, ptr = ragged(seed, 30, dtype)
    results = []
    for short in (0, 10, 30):
        with mock.patch.object(module, "SHORT", short):
            results.append(Ranking(scores, ptr, ties=ties))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].first, other.first)
        np.testing.assert_array_equal(results[0].size, other.size)


@given(seeds)
def test_chunks_do_not_show(seed: int) -> None:
    scores, ptr = ragged(seed, 30)
    whole = Ranking(scores, ptr)
    with mock.patch.object(module, "CHUNK", 64):
        parts = Ranking(scores, ptr)
    np.testing.assert_array_equal(whole.first, parts.first)
    np.testing.assert_array_equal(whole.size, parts.size)


@given(seeds, KS, st.sampled_from([np.float32, np.float64]), st.sampled_from(["average", "input"]))
def test_a_list_gives_k_places_whatever_the_ties(seed: int, k: int, dtype: type, ties: str) -> None:
    scores, ptr = ragged(seed, 40, dtype)
    ranking = Ranking(scores, ptr, ties=ties)
    lengths = np.diff(ptr)
    np.testing.assert_allclose(np.add.reduceat(ranking.top(k), ptr[:-1]), np.minimum(k, lengths), rtol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(ranking.rank, ptr[:-1]), lengths * (lengths + 1) / 2, rtol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(ranking.exposure(), ptr[:-1]), discount_sums(40)[lengths], rtol=1e-12)


# ---------------------------------------------------------------------- what changes nothing


@given(queries(longest=8), KS, st.randoms(use_true_random=False))
def test_shuffled_rows_keep_their_places(some: list[Query], k: int, random: object) -> None:
    scores = np.array(pooled(some, "scores"))
    order = list(range(len(scores)))
    random.shuffle(order)  # type: ignore[attr-defined]
    plain, mixed = as_data(some), as_data(some, order)
    before = Ranking(scores, plain.query_ptr).top(k)
    after = mixed.to_caller(Ranking(mixed.to_stored(scores[order]), mixed.query_ptr).top(k))
    np.testing.assert_array_equal(after, before[order])


@given(queries(longest=8), st.sampled_from([-1000.0, -0.5, 8.0]), st.floats(1e-6, 1e6))
def test_shifted_and_scaled_scores_keep_their_places(some: list[Query], shift: float, scale: float) -> None:
    scores, ptr = np.array(pooled(some, "scores")), as_data(some).query_ptr
    expected = Ranking(scores, ptr).rank
    np.testing.assert_array_equal(Ranking(scores + shift, ptr).rank, expected)
    np.testing.assert_array_equal(Ranking(scores * scale, ptr).rank, expected)


@given(arrays(np.float64, st.integers(2, 40), elements=st.sampled_from([-1.5, 0.5, 0.75, 3.0])), seeds)
def test_float_noise_is_a_tie(scores: np.ndarray, seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(-1e-14, 1e-14, len(scores))
    clean, noisy = rank_list(scores), rank_list(scores * (1 + noise))
    np.testing.assert_array_equal(noisy.first, clean.first)
    np.testing.assert_array_equal(noisy.size, clean.size)


@pytest.mark.parametrize("length", [5, 40])
def test_a_chain_of_near_ties_is_one_block(length: int) -> None:
    """Its ends differ by more than the tolerance, but no neighbours do."""
    chain = 1 - 0.6e-12 * np.arange(length)
    scores = np.random.default_rng(0).permutation(np.append(chain, [0.5, 2.0]))
    assert chain[0] - chain[-1] > 1e-12 * 2
    ranking = rank_list(scores)
    inside = (scores > 0.9) & (scores < 1.1)
    assert set(ranking.first[inside].tolist()) == {1}
    assert set(ranking.size[inside].tolist()) == {length}
    assert ranking.top(2)[inside].tolist() == pytest.approx([1 / length] * length)


@pytest.mark.parametrize("length", [2, 40])
@pytest.mark.parametrize(
    ("dtype", "difference", "tied"),
    [
        (np.float64, 1e-13, True),
        (np.float64, 1e-11, False),
        (np.float32, 5e-7, True),
        (np.float32, 1e-5, False),
        (np.longdouble, 1e-11, False),
    ],
)
def test_tolerance_follows_the_precision_of_the_scores(length: int, dtype: type, difference: float, tied: bool) -> None:
    scores = -np.arange(length, dtype=dtype)
    scores[:2] = length, length * (1 + dtype(difference))
    assert rank_list(scores).top(1)[:2].tolist() == ([0.5, 0.5] if tied else [0, 1])


def test_tolerance_is_of_the_query_and_not_of_all() -> None:
    ranking = Ranking(np.array([1e-9, 2e-9, 1e9, 0.0]), pointers([2, 2]))
    assert ranking.top(1).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("extreme", [100.0, -100.0])
@pytest.mark.parametrize("length", [3, 40])
def test_tolerance_is_of_the_largest_magnitude(extreme: float, length: int) -> None:
    scores = np.append(np.linspace(2, 3, length - 1), extreme)
    scores[1] = scores[0] + 50e-12  # within 1e-12 · 100, beyond 1e-12 · 3
    assert rank_list(scores).size[:2].tolist() == [2, 2]
    assert rank_list(scores[:-1]).size[:2].tolist() == [1, 1]


def test_extreme_scores_and_cut_offs() -> None:
    for length in (3, 30):
        scores = np.linspace(-1, 1, length) * np.finfo(float).max
        assert rank_list(scores).first.tolist() == list(range(length))[::-1]
    assert rank_list(np.zeros(4)).top(2).tolist() == [0.5] * 4
    assert rank_list(np.array([1.0, 2.0])).top(2**40).tolist() == [1, 1]
    assert rank_list(np.array([1.0, 2.0])).exposure(2**40).tolist() == [1 / log2(3), 1]


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0, True, "3", None, np.nan])
def test_k_is_a_whole_number(k: object) -> None:
    with pytest.raises(ConfigError, match=r"^k must be a whole number ≥ 1; got "):
        check_k(k)
    with pytest.raises(ConfigError):
        rank_list(np.ones(3)).top(k)


def test_numpy_k_is_a_whole_number_too() -> None:
    assert rank_list(np.array([2.0, 1.0])).top(np.int8(1)).tolist() == [1, 0]


def test_unknown_ties() -> None:
    with pytest.raises(ConfigError, match=r"^ties must be one of average, input; got 'first'\.$"):
        rank_list(np.ones(3), ties="first")
