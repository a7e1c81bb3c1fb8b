"""Places in lists: against every possible tie-breaking, and what must not change them."""

from __future__ import annotations

from math import log2
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from evenrank import ranking as module
from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.discounts import discount_sums
from evenrank.errors import ConfigError, DataError
from evenrank.ranking import Ranking, strict_places
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
    chained = scores + rng.integers(-9, 10, ptr[-1]) * np.finfo(dtype).eps / 2
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
        with mock.patch.multiple(module, SHORT=short, MANY=0):
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


# ---------------------------------------------------------------------- which scores are tied

KINDS = [np.float16, np.float32, np.float64]
CENTRES = [0.0, 1.0, -1.0, 2.0, -2.0, 0.75, -3.0, 1000.0, "tiny", "max", "-max", "smallest_subnormal"]


def neighbours(kind: type, centre: float | str, steps: list[int]) -> np.ndarray:
    """Numbers so many representable ones above or below a centre; those that are infinite left out."""
    if isinstance(centre, str):
        value = getattr(np.finfo(kind), centre.removeprefix("-"))
        centre = -value if centre.startswith("-") else value
    whole = {np.float16: np.int16, np.float32: np.int32, np.float64: np.int64}[kind]
    bits = int(np.array(centre, kind).view(whole))
    lowest = np.iinfo(whole).min
    # Read as integers, numbers of one sign stand in order; below 0 the order is turned.
    place = bits if bits >= 0 else lowest - bits
    places = np.array([place + step for step in steps], np.int64)
    places = np.where(places >= 0, places, lowest - places).astype(whole)
    numbers = places.view(kind)
    return numbers[np.isfinite(numbers)]


near_scores = st.builds(
    lambda kind, parts: np.concatenate([neighbours(kind, centre, steps) for centre, steps in parts]),
    st.sampled_from(KINDS),
    st.lists(
        st.tuples(st.sampled_from(CENTRES), st.lists(st.integers(-20, 20), min_size=1, max_size=15)),
        min_size=1,
        max_size=3,
    ),
).filter(len)


def assert_blocks(ranking: Ranking, blocks: list[list[int]]) -> None:
    first = 0
    for block in blocks:
        assert {int(ranking.first[item]) for item in block} == {first}
        assert {int(ranking.size[item]) for item in block} == {len(block)}
        first += len(block)


@given(near_scores)
def test_blocks_are_those_of_the_definition(scores: np.ndarray) -> None:
    expected = oracles.blocks([float(score) for score in scores], scores.dtype.type)
    for short in (0, module.SHORT):
        with mock.patch.multiple(module, SHORT=short, MANY=0):
            assert_blocks(rank_list(scores), expected)


@given(near_scores, st.randoms(use_true_random=False))
def test_shuffled_scores_keep_their_blocks(scores: np.ndarray, random: object) -> None:
    order = list(range(len(scores)))
    random.shuffle(order)  # type: ignore[attr-defined]
    before, after = rank_list(scores), rank_list(scores[order])
    np.testing.assert_array_equal(after.first, before.first[order])
    np.testing.assert_array_equal(after.size, before.size[order])


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=40), st.sampled_from([1.0, -2.0, 0.75]), st.integers(-9, 9))
def test_scaling_by_a_power_of_two_changes_no_block(steps: list[int], centre: float, power: int) -> None:
    for kind in (np.float32, np.float64):
        scores = neighbours(kind, centre, steps)
        before, after = rank_list(scores), rank_list(np.ldexp(scores, power))
        np.testing.assert_array_equal(after.first, before.first)
        np.testing.assert_array_equal(after.size, before.size)


@given(near_scores, st.sampled_from([-1e30, -1e13, -1e9, -5.0]))
def test_a_sentinel_changes_nothing_for_the_others(scores: np.ndarray, sentinel: float) -> None:
    scores = scores[np.abs(scores) < 4]
    sentinel = max(sentinel, float(np.finfo(scores.dtype).min))
    alone, beside = rank_list(scores), rank_list(np.append(scores, scores.dtype.type(sentinel)))
    np.testing.assert_array_equal(beside.first[:-1], alone.first)
    np.testing.assert_array_equal(beside.size[:-1], alone.size)
    assert (beside.first[-1], beside.size[-1]) == (len(scores), 1)


@given(st.lists(near_scores, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_queries_changes_nothing(lists: list[np.ndarray], random: object) -> None:
    lists = [scores.astype(np.float64) for scores in lists]
    order = list(range(len(lists)))
    random.shuffle(order)  # type: ignore[attr-defined]
    ranking = Ranking(np.concatenate([lists[i] for i in order]), pointers([len(lists[i]) for i in order]))
    alone = [rank_list(lists[i]) for i in order]
    np.testing.assert_array_equal(ranking.first, np.concatenate([one.first for one in alone]))
    np.testing.assert_array_equal(ranking.size, np.concatenate([one.size for one in alone]))


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize(
    ("dtype", "sentinel"),
    [(np.float64, -1e13), (np.float64, -1e30), (np.float64, 1e30), (np.float32, -1e9), (np.float32, -1e30)],
)
def test_one_huge_score_ties_no_others(length: int, dtype: type, sentinel: float) -> None:
    """Scores were once compared with the largest of their list, so that one sentinel tied all the rest."""
    scores = np.append(np.linspace(0.9, 0.1, length - 1), sentinel).astype(dtype)
    assert rank_list(scores).untied
    assert rank_list(scores).first.tolist() == np.argsort(np.argsort(-scores)).tolist()


@pytest.mark.parametrize("steps", [[0, 4], [0, -4], [-2, 2]])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("length", [2, 40])
def test_four_ulps_tie_and_five_do_not(length: int, dtype: type, steps: list[int]) -> None:
    rest = -10 - np.arange(length - 2, dtype=dtype)
    for extra, size in ((0, 2), (1, 1)):
        pair = neighbours(dtype, 1.5, [steps[0], steps[1] + (extra if steps[1] > 0 else -extra)])
        assert rank_list(np.concatenate([pair, rest])).size.tolist() == [size] * 2 + [1] * (length - 2)


@pytest.mark.parametrize("dtype", [*KINDS, np.longdouble])
@pytest.mark.parametrize("below", range(1, 7))
def test_scores_just_below_a_power_of_two_are_tied_too(dtype: type, below: int) -> None:
    """numpy's spacing is NaN for the long double before a power of two, whose digits are all ones."""
    first = np.nextafter(dtype(1), dtype(0))
    scores = np.array([first, first - below * (dtype(1) - first)], dtype)
    assert rank_list(scores).size.tolist() == ([2, 2] if below <= 4 else [1, 1])


def test_a_chain_is_cut_at_its_first_score() -> None:
    """Each is tied with the next; blocks take in what is within 4 ulps of their first, and no more."""
    chain = 1.5 - 2 * 2.0**-52 * np.arange(7)
    ranking = rank_list(np.random.default_rng(0).permutation(chain))
    assert sorted(ranking.first.tolist()) == [0, 0, 0, 3, 3, 3, 6]
    assert rank_list(chain).top(2).tolist() == [2 / 3, 2 / 3, 2 / 3, 0, 0, 0, 0]


def test_long_chains_are_blocks_of_five_neighbours() -> None:
    for dtype in (np.float32, np.float64):
        chain = neighbours(dtype, 1.0, list(range(100_000)))
        order = np.random.default_rng(0).permutation(len(chain))
        ranking = rank_list(chain[order])
        from_the_top = np.empty(len(chain), np.int64)
        from_the_top[order] = ranking.first
        np.testing.assert_array_equal(from_the_top[::-1], np.arange(len(chain)) // 5 * 5)


def test_softmax_scores_in_single_precision_do_not_chain() -> None:
    """303 of 1,000 such scores were once one tie."""
    logits = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    scores = np.exp(logits) / np.exp(logits).sum()
    ranking = rank_list(scores)
    assert_blocks(ranking, oracles.blocks(scores.tolist(), np.float32))
    assert ranking.size.max() <= 3


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**53 + 1, 2**53, 2**53 + 2]),
        np.array([2**63 - 1, 2**63 - 2, -(2**63)]),
        np.array([2**64 - 1, 2**64 - 2, 0], np.uint64),
        np.array([10**30 + 1, 10**30, -(10**30)], object),
        np.array([5, 4, -128], np.int8),
    ],
)
def test_integers_are_compared_exactly(length: int, scores: np.ndarray) -> None:
    low = min(scores.tolist())
    scores = np.concatenate([scores, np.full(length - 3, low, scores.dtype)])
    ranking = rank_list(scores)
    values = scores.tolist()
    assert ranking.first.tolist() == [sum(other > value for other in values) for value in values]
    assert ranking.size.tolist() == [values.count(value) for value in values]


def test_true_is_above_false() -> None:
    assert rank_list(np.array([True, False, True])).first.tolist() == [0, 2, 0]
    assert rank_list(np.array([True, False] * 20)).size.tolist() == [20] * 40


@pytest.mark.parametrize("length", [4, 40])
def test_zeros_of_both_signs_are_equal(length: int) -> None:
    scores = np.append([0.0, -0.0, 5e-324, -5e-324], -1 - np.arange(length - 4.0))
    assert rank_list(scores).size[:4].tolist() == [4] * 4  # within 4 of the smallest number there is
    assert rank_list(np.append(scores, 1e-300)).first[-1] == 0


@pytest.mark.parametrize("length", [5, 40])
def test_infinities_are_scores_like_others(length: int) -> None:
    most = np.finfo(float).max
    scores = np.append([np.inf, most, -np.inf, np.inf, -most], np.zeros(length - 5))
    assert rank_list(scores).first[:5].tolist() == [0, 2, length - 1, 0, length - 2]


@given(near_scores)
def test_ties_in_input_order_follow_the_blocks(scores: np.ndarray) -> None:
    expected = [item for block in oracles.blocks(scores.tolist(), scores.dtype.type) for item in sorted(block)]
    for short in (0, module.SHORT):
        with mock.patch.multiple(module, SHORT=short, MANY=0):
            assert np.argsort(rank_list(scores, ties="input").first).tolist() == expected


@pytest.mark.parametrize("items", [["c", "a", "b", "d"], [3, 1, 2, 4], [3, "1", "2", 4], None])
def test_strict_places_break_ties_by_item(items: list[object] | None) -> None:
    scores = np.array([1.0, 1.0 + 2.0**-52, 1.0, 7.0])
    data = RankingData.from_arrays(np.zeros((4, 0)), np.zeros(4), None, np.zeros(4), item_ids=items)
    assert strict_places(scores, data).tolist() == ([3, 1, 2, 0] if items else [1, 2, 3, 0])


def test_masked_scores_are_refused() -> None:
    with pytest.raises(DataError, match=r"^row 1: scores must not be masked; got a masked value\."):
        Ranking(np.ma.array([1.0, 2.0], mask=[False, True]), pointers([2]))


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
