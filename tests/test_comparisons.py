"""Paired comparisons: differences of measures, a randomisation test against all swaps, and Holm's correction."""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.comparisons import compare, holm
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.intervals import interval
from evenrank.measures import MEASURES
from oracles import Query, as_data

# Small data has few queries in a cell; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")

EVERY = [f"{name}@{k}" for name in MEASURES for k in (1, 3)] + ["ndcg", "mrr", "exposure_gap"]


def example(q: int, *, noise: float = 1.0, groups: str = "ab", seed: int = 0) -> tuple[Any, Any, RankingData]:
    """Scores that lean towards the last group, the same with noise and no lean, and their data."""
    rng = np.random.default_rng(seed)
    length = rng.integers(4, 8, q)
    n = length.sum()
    group = rng.choice(list(groups), n)
    relevance = rng.integers(0, 2, n)
    quality = rng.standard_normal(n) + relevance
    a, b = quality + 0.8 * (group == groups[-1]), quality + noise * rng.standard_normal(n)
    return a, b, RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.repeat(np.arange(q), length))


@pytest.mark.parametrize("groups", ["ab", "abcd"])
@pytest.mark.parametrize("across", ["mean", "max"])
def test_the_difference_is_that_of_the_measures(groups: str, across: str) -> None:
    a, b, data = example(30, groups=groups)
    before, after = (er.measure(scores, data, EVERY, across=across) for scores in (a, b))
    for found in compare(a, b, data, EVERY, across=across, replicates=200):
        name = found.measure
        assert found.a == pytest.approx(before[name], abs=1e-12)
        assert found.b == pytest.approx(after[name], abs=1e-12)
        assert found.difference == pytest.approx(after[name] - before[name], abs=1e-12)
        assert -1 <= found.low <= found.difference <= found.high <= 1
        assert 0 < found.p_value <= found.adjusted <= 1


@pytest.mark.parametrize("name", ["dp@2", "eop@2", "ndcg@3", "four_fifths@2"])
@pytest.mark.parametrize("q", [4, 8])
def test_the_p_value_is_the_share_of_all_swaps_as_extreme(name: str, q: int) -> None:
    a, b, data = example(q, seed=3)
    observed = abs(er.measure(b, data, name)[name] - er.measure(a, data, name)[name])
    extreme = []
    for swaps in product([False, True], repeat=q):
        swapped = np.array(swaps)[data.query_of_row]
        one, two = np.where(swapped, b, a), np.where(swapped, a, b)
        difference = er.measure(two, data, name)[name] - er.measure(one, data, name)[name]
        extreme.append(abs(difference) >= observed - 1e-9)
    exact = np.mean(extreme)
    replicates = 20_000
    (found,) = compare(a, b, data, [name], replicates=replicates)
    assert found.p_value == pytest.approx(exact, abs=1e-4 + 4 * sqrt(exact * (1 - exact) / replicates))


def test_a_p_value_is_rarely_small_without_a_difference() -> None:
    """Two noisy versions of the same scores: p ≤ 0.1 in about a tenth of the cases, for every measure."""
    small = []
    for seed in range(100):
        base, _, data = example(30, seed=seed)
        rng = np.random.default_rng(seed)
        a, b = (base + rng.standard_normal(len(base)) for _ in range(2))
        small += [[one.p_value <= 0.1 for one in compare(a, b, data, ["dp@2", "ndcg@3"], replicates=199)]]
    share = np.mean(small, axis=0)
    assert (share < 0.1 + 4 * sqrt(0.1 * 0.9 / 100)).all()


def test_an_interval_holds_also_where_one_gap_is_0() -> None:
    """b ignores the group, so its true gap is 0 and its seen gap always above: a plain bootstrap covers too rarely."""
    names = ["dp@3", "eod@3", "four_fifths@3"]
    a, _, data = example(20_000, seed=1000)
    gap = er.measure(a, data, names)
    truth = {name: (1.0 if name.startswith("four") else 0.0) - gap[name] for name in names}
    covered = []
    for seed in range(100):
        a, b, data = example(60, seed=seed)
        found = compare(a, b, data, names, replicates=200)
        covered.append([one.low <= truth[one.measure] <= one.high for one in found])
    assert (np.mean(covered, axis=0) > 0.95 - 4 * sqrt(0.95 * 0.05 / 100)).all()


def test_a_real_difference_is_found() -> None:
    a, b, data = example(200, noise=0.3)
    (found,) = compare(a, b, data, ["dp@3"])
    assert found.high < 0
    assert found.p_value < 0.01
    (back,) = compare(b, a, data, ["dp@3"])
    assert back.difference == pytest.approx(-found.difference)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))


def test_the_same_ranking_twice_does_not_differ() -> None:
    a, _, data = example(30)
    for found in compare(a, 2 * a + 1, data, EVERY):
        assert (found.difference, found.low, found.high, found.p_value, found.adjusted) == (0, 0, 0, 1, 1)


def test_pairing_narrows_the_interval_of_similar_rankings() -> None:
    a, _, data = example(200)
    b = a + 0.1 * np.random.default_rng(1).standard_normal(len(a))
    for name in ("ndcg@3", "dp@3", "four_fifths@3"):
        (paired,) = compare(a, b, data, [name])
        widths = [interval(scores, data, name).high - interval(scores, data, name).low for scores in (a, b)]
        unpaired = sqrt(widths[0] ** 2 + widths[1] ** 2)
        assert paired.high - paired.low < 0.7 * unpaired


def test_order_of_rows_changes_no_number() -> None:
    a, b, data = example(40, groups="abc")
    order = np.random.default_rng(1).permutation(len(a))
    shuffled = RankingData.from_arrays(
        np.zeros((len(a), 0)),
        data.relevance[order],
        np.array(data.group_names)[data.group[order]],
        data.query_of_row[order],
    )
    one, two = compare(a, b, data, EVERY), compare(a[order], b[order], shuffled, EVERY)
    for before, after in zip(one, two, strict=True):
        for field in ("a", "b", "difference", "low", "high", "p_value", "adjusted"):
            assert getattr(before, field) == pytest.approx(getattr(after, field), abs=1e-12), (before.measure, field)


def test_a_seed_decides_everything_and_one_name_is_enough() -> None:
    a, b, data = example(40)
    assert compare(a, b, data, "dp@3") == compare(a, b, data, ["dp@3"])
    assert compare(a, b, data, ["dp@3"], seed=1) != compare(a, b, data, ["dp@3"])


def test_a_missing_cell_is_nan_and_leaves_the_others_corrected_alone() -> None:
    some = [Query([3.0, 2.0, 1.0], [1, 0, 0], ["a", "a", "b"]) for _ in range(12)]
    data = as_data(some)
    a = np.array([3.0, 2.0, 1.0] * 12)
    odd, even = compare(a, -a, data, ["eop@1", "dp@1"])
    assert np.isnan([odd.difference, odd.low, odd.high, odd.p_value, odd.adjusted]).all()
    assert even.adjusted == even.p_value


def test_a_cell_of_one_query_leaves_everything_possible() -> None:
    some = [Query([2.0, 1.0], [1, 1], ["a", "a"]) for _ in range(9)] + [Query([2.0, 1.0], [1, 1], ["a", "b"])]
    a = np.array([2.0, 1.0] * 10)
    (found,) = compare(a, -a, as_data(some), ["dp@1"])
    assert (found.low, found.high) == (-1, 1)


def test_options_are_checked() -> None:
    a, b, data = example(5)
    with pytest.raises(ConfigError, match="confidence must be between 0 and 1"):
        compare(a, b, data, ["dp@1"], confidence=95)
    with pytest.raises(ConfigError, match="replicates must be a whole number ≥ 1; got 0"):
        compare(a, b, data, ["dp@1"], replicates=0)
    with pytest.raises(DataError, match="scores must have shape"):
        compare(a, b[:-1], data, ["dp@1"])
    one = data.take([0])
    with pytest.raises(DataError, match="needs at least two; the data has 1"):
        compare(a[: one.n_rows], b[: one.n_rows], one, ["ndcg@1"])


# ---------------------------------------------------------------------- Holm


def plain_holm(p_values: list[float]) -> list[float]:
    """Step down from the smallest: the i-th smallest of m is multiplied by m − i, and none is below its predecessor."""
    out = [0.0] * len(p_values)
    largest = 0.0
    for i, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, (len(p_values) - i) * p_values[at])
        out[at] = min(1.0, largest)
    return out


@given(st.lists(st.floats(0, 1), min_size=0, max_size=8))
def test_holm_is_the_plain_step_down(p_values: list[float]) -> None:
    assert holm(np.array(p_values)).tolist() == pytest.approx(plain_holm(p_values))


def test_holm_rejects_as_often_as_it_should() -> None:
    """Of five true null hypotheses, some is rejected in at most about 5 % of the cases."""
    draws = np.random.default_rng(0).random((4000, 5))
    rejected = np.mean([(holm(line) <= 0.05).any() for line in draws])
    assert abs(rejected - 0.05) < 4 * sqrt(0.05 * 0.95 / 4000)


def test_holm_leaves_nan_out_of_the_count() -> None:
    assert holm(np.array([0.01, np.nan, 0.04])).tolist() == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
